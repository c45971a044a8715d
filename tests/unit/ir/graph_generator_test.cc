// The generator of tensor graphs and the shrinker, themselves: what other tests rest upon.
#include "tests/unit/graph_generator/graph_generator.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ir/shape.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "tests/unit/graph_generator/graph_shrinker.h"
#include "tests/unit/ir/tensor_values.h"

namespace svod {
namespace {

absl::StatusOr<GeneratedGraph> Generated(uint64_t seed) {
  GraphGeneratorOptions options;
  options.rounded_reductions = seed % 2 == 0;
  return GenerateGraph(seed, std::make_shared<Context>(), options);
}

TEST(GraphGeneratorTest, GraphsVerifyAndRunForAllSizes) {
  int symbolic = 0, inexact = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    absl::StatusOr<GeneratedGraph> graph = Generated(seed);
    ASSERT_TRUE(graph.ok()) << "seed " << seed << ": " << graph.status();
    absl::Status verified = Verify(graph->graph);
    ASSERT_TRUE(verified.ok()) << "seed " << seed << ": " << verified << "\n"
                               << Print(graph->graph).value_or("");
    if (graph->variables.size() > 1) ++symbolic;
    for (const ResultBound& bound : graph->bounds) inexact += bound.relative_error > 0 ? 1 : 0;
    for (const VariableList& variables : graph->variables) {
      absl::StatusOr<std::vector<TensorValue>> inputs = MakeInputs(*graph, variables, seed);
      ASSERT_TRUE(inputs.ok()) << "seed " << seed << ": " << inputs.status();
      EvaluateGraphOptions options;
      options.variables = variables;
      std::vector<TensorValue> before = *inputs;
      absl::StatusOr<std::vector<TensorValue>> results =
          EvaluateGraph(graph->graph, *inputs, options);
      ASSERT_TRUE(results.ok()) << "seed " << seed << ": " << results.status();
      ASSERT_EQ(results->size(), graph->bounds.size());
      if (graph->magnitudes.root == nullptr) continue;
      auto magnitudes = EvaluateGraph(graph->magnitudes, before, options);
      ASSERT_TRUE(magnitudes.ok()) << "seed " << seed << ": " << magnitudes.status();
      // A value is no larger than the magnitudes of its terms together.
      for (size_t i = 0; i < results->size(); ++i) {
        const ResultBound& bound = graph->bounds[i];
        if (bound.relative_error == 0) continue;
        const TensorValue& size = (*magnitudes)[static_cast<size_t>(bound.magnitude)];
        ASSERT_EQ(size.shape, (*results)[i].shape);
        for (int64_t j = 0; j < size.num_elements(); ++j) {
          double limit = NumberAt(size, j), value = NumberAt((*results)[i], j);
          if (!std::isfinite(limit) || std::isinf(value)) continue;
          ASSERT_LE(std::abs(value), limit * (1 + bound.relative_error)) << "seed " << seed;
        }
      }
    }
  }
  EXPECT_GT(symbolic, 50);
  EXPECT_GT(inexact, 20);
}

TEST(GraphGeneratorTest, GraphsHaveAllOpsAndDTypes) {
  std::set<Op> ops;
  std::set<std::string> dtypes;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    absl::StatusOr<GeneratedGraph> graph = Generated(seed);
    ASSERT_TRUE(graph.ok());
    for (const UOp* node : Toposort(graph->graph.root)) {
      ops.insert(node->op());
      dtypes.insert(ToString(node->dtype()));
    }
  }
  for (int i = 0; i < kNumOps; ++i) {
    Op op = static_cast<Op>(i);
    if (InfoOf(op).op_class == OpClass::kTensor || IsElementwise(op)) {
      EXPECT_TRUE(ops.contains(op)) << InfoOf(op).text;
    }
  }
  EXPECT_EQ(dtypes.size(), static_cast<size_t>(kNumScalars)) << "of all scalars, void included";
}

TEST(GraphGeneratorTest, ASeedGivesOneGraph) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    auto one = Generated(seed), other = Generated(seed);
    ASSERT_TRUE(one.ok() && other.ok());
    EXPECT_EQ(one->graph.root->hash(), other->graph.root->hash());
  }
}

TEST(GraphGeneratorTest, TextGivesTheSameGraph) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    absl::StatusOr<GeneratedGraph> graph = Generated(seed);
    ASSERT_TRUE(graph.ok());
    absl::StatusOr<std::string> text = Print(graph->graph);
    ASSERT_TRUE(text.ok()) << text.status();
    absl::StatusOr<Module> read = ParseModule(*text, "generated", std::make_shared<Context>());
    ASSERT_TRUE(read.ok()) << "seed " << seed << ": " << read.status() << "\n" << *text;
    EXPECT_EQ(read->functions.back().root->hash(), graph->graph.root->hash()) << *text;
  }
}

GraphCase CaseOf(uint64_t seed) {
  absl::StatusOr<GeneratedGraph> graph = Generated(seed);
  EXPECT_TRUE(graph.ok());
  GraphCase result{graph->context, graph->graph, {}, graph->variables.back()};
  result.params = *MakeInputs(*graph, result.variables, seed);
  return result;
}

int CountOf(const GraphCase& of, Op op) {
  int count = 0;
  for (const UOp* node : Toposort(of.graph.root)) count += node->op() == op ? 1 : 0;
  return count;
}

// Every op in turn is the culprit; nothing but it, what it takes and its result should be left.
TEST(GraphShrinkerTest, WhatIsLeftIsTheCulprit) {
  for (Op culprit : {Op::kPad, Op::kReduceAxis, Op::kScatter, Op::kGather, Op::kFlip, Op::kWhere,
                     Op::kAssign, Op::kArange}) {
    int tried = 0;
    for (uint64_t seed = 0; seed < 400 && tried < 3; ++seed) {
      GraphCase failing = CaseOf(seed);
      if (CountOf(failing, culprit) == 0) continue;
      ++tried;
      GraphCase small =
          ShrinkCase(failing, [&](const GraphCase& of) { return CountOf(of, culprit) > 0; });
      EXPECT_EQ(CountOf(small, culprit), 1);
      int others = 0;
      for (const UOp* node : Toposort(small.graph.root)) {
        Op op = node->op();
        bool is_source = op == Op::kParam || op == Op::kConst || op == Op::kSink ||
                         op == Op::kAfter || op == Op::kDefineVar;
        others += is_source || op == culprit ? 0 : 1;
      }
      // Where a part that is assigned to is the culprit, the assignment stays.
      EXPECT_LE(others, 1) << "seed " << seed << "\n" << DescribeCase(small);
      EXPECT_EQ(small.graph.root->sources().size(), 1u);
    }
    EXPECT_EQ(tried, 3) << InfoOf(culprit).text;
  }
}

TEST(GraphShrinkerTest, DimensionsAndDataShrinkToWhatFailureNeeds) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    GraphCase failing = CaseOf(seed);
    auto has_reduction_of_three = [](const GraphCase& of) {
      for (const UOp* node : Toposort(of.graph.root)) {
        if (node->op() != Op::kReduceAxis) continue;
        ShapeAnalysis shapes(*of.context);
        absl::StatusOr<ShapeSpan> shape = shapes.Of(node->source(0));
        if (!shape.ok()) continue;
        for (int64_t axis : node->arg<ReduceAxesArgument>().axes) {
          const UOp* size = (*shape)[static_cast<size_t>(axis)];
          if (IsConst(size) && ConstInt(size) >= 3) return true;
        }
      }
      return false;
    };
    if (!has_reduction_of_three(failing)) continue;
    GraphCase small = ShrinkCase(failing, has_reduction_of_three);
    ASSERT_EQ(small.params.size(), 1u) << DescribeCase(small);
    // Equal dimensions are lowered together.
    for (int64_t size : small.params[0].shape) EXPECT_LE(size, 3) << DescribeCase(small);
    for (double number : NumbersOf(small.params[0])) EXPECT_EQ(number, 0);
  }
}

TEST(GraphShrinkerTest, WhatDependsOnValuesKeepsThem) {
  // Fails while some result is 6 somewhere.
  auto has_six = [](const GraphCase& of) {
    auto results = Interpret(of);
    if (!results.ok()) return false;
    for (const TensorValue& value : *results) {
      for (double number : NumbersOf(value)) {
        if (number == 6) return true;
      }
    }
    return false;
  };
  int tried = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    GraphCase failing = CaseOf(seed);
    if (!has_six(failing)) continue;
    ++tried;
    GraphCase small = ShrinkCase(failing, has_six);
    EXPECT_TRUE(has_six(small));
    EXPECT_LE(Toposort(small.graph.root).size(), 8u) << DescribeCase(small);
  }
  EXPECT_GT(tried, 5);
}

}  // namespace
}  // namespace svod
