#include "ir/ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/evaluate.h"
#include "tests/unit/ir/raw_graph.h"

namespace svod {
namespace {

using ::testing::HasSubstr;
using Nodes = RawGraph::Nodes;

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

// The bits of every lane of an integer node, by the interpreter's arithmetic.
class Interpreter {
 public:
  absl::flat_hash_map<const UOp*, int64_t> leaves;  // counters and variables

  const std::vector<uint64_t>& Lanes(const UOp* node) {
    auto it = values_.find(node);
    if (it != values_.end()) return it->second;
    std::vector<uint64_t> lanes;
    Op op = node->op();
    if (leaves.contains(node)) {
      lanes = {static_cast<uint64_t>(leaves[node])};
    } else if (IsConst(node)) {
      lanes.assign(node->dtype().lanes, node->arg<ConstArgument>().bits);
    } else if (op == Op::kSplat) {
      lanes.assign(node->dtype().lanes, Lanes(node->source(0))[0]);
    } else if (op == Op::kStack) {
      for (const UOp* source : node->sources()) lanes.push_back(Lanes(source)[0]);
    } else if (op == Op::kLanes) {
      std::vector<uint64_t> all = Lanes(node->source(0));
      for (uint16_t lane : node->arg<LanesArgument>().lanes) lanes.push_back(all[lane]);
    } else {
      DType operand = node->source(node->num_sources() - 1)->dtype().element();
      for (int lane = 0; lane < node->dtype().lanes; ++lane) {
        std::vector<uint64_t> operands;
        for (const UOp* source : node->sources()) operands.push_back(Lanes(source)[lane]);
        lanes.push_back(EvaluateScalar(op, node->dtype().element(), operand, operands));
      }
    }
    return values_[node] = std::move(lanes);
  }
  // The value as an integer; false if it is a u64 beyond int64.
  bool Value(const UOp* node, int lane, int64_t* value) {
    uint64_t bits = Lanes(node)[lane];
    DType dtype = node->dtype();
    int width = InfoOf(dtype.scalar).size_bytes * 8;
    *value = static_cast<int64_t>(bits);
    if (dtype.is_signed()) *value = static_cast<int64_t>(bits << (64 - width)) >> (64 - width);
    return dtype.scalar != Scalar::kU64 || *value >= 0;
  }
  void Reset() { values_.clear(); }

 private:
  absl::flat_hash_map<const UOp*, std::vector<uint64_t>> values_;
};

// Grows a random graph of integers and bools over a few variables.
class RandomGraph {
 public:
  RandomGraph(RawGraph& g, uint32_t seed) : g_(g), random_(seed) {}

  Nodes variables;
  Nodes nodes;

  int64_t Pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  const UOp* AnyOf(DType dtype) {
    Nodes fitting;
    for (const UOp* node : nodes) {
      if (node->dtype() == dtype) fitting.push_back(node);
    }
    if (fitting.empty() || Pick(0, 4) == 0) return g_.context.Int(dtype, AConstant());
    return fitting[Pick(0, static_cast<int64_t>(fitting.size()) - 1)];
  }
  int64_t AConstant() {
    constexpr int64_t kSpecial[] = {kLowest, kHighest, -1, 0, 1, 127, 128, 255, 1 << 15, 63, 64};
    return Pick(0, 3) == 0 ? kSpecial[Pick(0, 10)] : Pick(-9, 9);
  }
  void Grow(int count) {
    constexpr Scalar kScalars[] = {Scalar::kIndex, Scalar::kIndex, Scalar::kIndex, Scalar::kI8,
                                   Scalar::kU8,    Scalar::kI32,   Scalar::kU64,   Scalar::kBool};
    for (int i = 0; i < 3; ++i) {
      int64_t low = Pick(-5, 3), high = low + Pick(0, 5);
      variables.push_back(g_.Variable(i == 0 ? "a" : i == 1 ? "b" : "c", low, high));
    }
    nodes = variables;
    for (int i = 0; i < count; ++i) {
      DType dtype(kScalars[Pick(0, 7)], Pick(0, 3) == 0 ? 4 : 1);
      Op op = static_cast<Op>(Pick(0, kNumOps - 1));
      absl::StatusOr<const UOp*> node = MakeOne(op, dtype);
      if (!node.ok() || (*node)->dtype().is_float()) continue;
      nodes.push_back(*node);
    }
  }

 private:
  absl::StatusOr<const UOp*> MakeOne(Op op, DType dtype) {
    Nodes sources;
    if (op == Op::kLanes) {
      uint16_t lanes[3] = {static_cast<uint16_t>(Pick(0, 3)), static_cast<uint16_t>(Pick(0, 3)),
                           static_cast<uint16_t>(Pick(0, 3))};
      return g_.context.Make(op, {AnyOf(dtype.with_lanes(4))},
                             LanesArgument{absl::MakeSpan(lanes, Pick(1, 3))});
    }
    if (op == Op::kStack) {
      for (int i = 0; i < 4; ++i) sources.push_back(AnyOf(dtype.element()));
      return g_.context.Make(op, sources);
    }
    if (op == Op::kSplat) {
      return g_.context.Make(op, dtype.with_lanes(4), {AnyOf(dtype.element())});
    }
    if (!IsElementwise(op)) return absl::NotFoundError("not elementwise");
    if (op == Op::kCast || op == Op::kBitcast) {
      DType from =
          Pick(0, 1) == 0 ? DType(Scalar::kIndex, dtype.lanes) : DType(Scalar::kI8, dtype.lanes);
      return g_.context.Make(op, dtype, {AnyOf(from)});
    }
    if (op == Op::kWhere) {
      return g_.context.Make(
          op, {AnyOf(DType(Scalar::kBool, dtype.lanes)), AnyOf(dtype), AnyOf(dtype)});
    }
    for (int i = 0; i < InfoOf(op).min_sources; ++i) sources.push_back(AnyOf(dtype));
    return g_.context.Make(op, sources);
  }

  RawGraph& g_;
  std::mt19937 random_;
};

template <typename Check>
void ForAllValues(const RandomGraph& graph, Interpreter& interpreter, Check check) {
  auto bounds = [&](int i) { return graph.variables[i]->arg<VariableArgument>(); };
  for (int64_t a = bounds(0).min; a <= bounds(0).max; ++a) {
    for (int64_t b = bounds(1).min; b <= bounds(1).max; ++b) {
      for (int64_t c = bounds(2).min; c <= bounds(2).max; ++c) {
        interpreter.Reset();
        interpreter.leaves = {
            {graph.variables[0], a}, {graph.variables[1], b}, {graph.variables[2], c}};
        check();
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

// Reported case 14: division and remainder of negative ranges are among the ops.
TEST(RangesPropertyTest, EveryValueIsInsideItsRange) {
  int64_t tight = 0, checked = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    RawGraph g;
    RandomGraph graph(g, seed);
    graph.Grow(60);
    RangeAnalysis ranges;
    Interpreter interpreter;
    for (const UOp* node : graph.nodes) {
      ++checked;
      if (ranges.Of(node).min > MinValue(node->dtype())) ++tight;
    }
    ForAllValues(graph, interpreter, [&] {
      for (const UOp* node : graph.nodes) {
        for (int lane = 0; lane < node->dtype().lanes; ++lane) {
          int64_t value;
          IntRange range = ranges.Of(node);
          if (!interpreter.Value(node, lane, &value)) {
            ASSERT_EQ(range, IntRange::Full()) << "seed " << seed;
          }
          ASSERT_TRUE(range.Contains(value))
              << "seed " << seed << " " << InfoOf(node->op()).text << " " << ToString(node->dtype())
              << " lane " << lane << ": " << value << " not in [" << range.min << ", " << range.max
              << "]";
        }
      }
    });
    if (HasFailure()) return;
  }
  EXPECT_GT(tight * 4, checked);  // the ranges say something
}

TEST(RangesPropertyTest, EveryAffineFormEqualsItsNode) {
  int64_t sums = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    RawGraph g;
    RandomGraph graph(g, 1000 + seed);
    graph.Grow(60);
    RangeAnalysis ranges;
    Interpreter interpreter;
    for (const UOp* node : graph.nodes) {
      if (!node->dtype().is_integer()) continue;
      for (int lane = 0; lane < node->dtype().lanes; ++lane) {
        Affine form = ranges.AffineOfLane(node, lane);
        if (form.terms.size() > 1) ++sums;
        IntRange bounds = BoundsOf(form, ranges);
        ForAllValues(graph, interpreter, [&] {
          uint64_t wrapped = static_cast<uint64_t>(form.constant);
          for (const Term& term : form.terms) {
            uint64_t product = static_cast<uint64_t>(term.coefficient);
            for (const Atom& atom : term.atoms) {
              int64_t value;
              interpreter.Value(atom.node, atom.lane, &value);
              product *= static_cast<uint64_t>(value);
            }
            wrapped += product;
          }
          int64_t value;
          bool is_int64 = interpreter.Value(node, lane, &value);
          ASSERT_EQ(wrapped, static_cast<uint64_t>(value)) << "seed " << seed;
          if (form.exact && is_int64) {
            ASSERT_TRUE(bounds.Contains(value)) << "seed " << seed;
          }
        });
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(sums, 150);
}

TEST(RangesPropertyTest, ConditionalRangesHoldWhereTheConditionDoes) {
  int64_t narrowed = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    RawGraph g;
    RandomGraph graph(g, 5000 + seed);
    graph.Grow(60);
    for (int i = 0; i < 30; ++i) {  // conditions worth the name
      for (int lanes : {1, 4}) {
        DType dtype(Scalar::kIndex, lanes);
        Op op = i % 3 == 0 ? Op::kCmpEq : i % 3 == 1 ? Op::kCmpLe : Op::kCmpLt;
        const UOp* condition = g.Make(op, {graph.AnyOf(dtype), graph.AnyOf(dtype)});
        if (i % 4 == 0) condition = g.Make(Op::kNot, {condition});
        graph.nodes.push_back(condition);
        graph.nodes.push_back(
            g.And(graph.AnyOf(condition->dtype()), graph.AnyOf(condition->dtype())));
      }
    }
    RangeAnalysis ranges;
    Interpreter interpreter;
    for (int i = 0; i < 100; ++i) {
      const UOp* condition = graph.AnyOf(DType(Scalar::kBool, i % 2 ? 4 : 1));
      const UOp* node = graph.AnyOf(DType(Scalar::kIndex, i % 2 ? 4 : 1));
      IntRange range = ranges.OfWhere(node, condition);
      if (range != ranges.Of(node)) ++narrowed;
      ForAllValues(graph, interpreter, [&] {
        for (int lane = 0; lane < node->dtype().lanes; ++lane) {
          int64_t value;
          interpreter.Value(node, lane, &value);
          if (interpreter.Lanes(condition)[lane] != 0) {
            ASSERT_TRUE(range.Contains(value)) << "seed " << seed << " " << value;
          }
        }
      });
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(narrowed, 1000);
}

TEST(RangesTest, CountersRunBelowTheirEnds) {
  RawGraph g;
  RangeAnalysis ranges;
  const UOp* n = g.Variable("n", 1, 10);
  EXPECT_EQ(ranges.Of(g.Range(0, n)), (IntRange{0, 9}));
  EXPECT_EQ(ranges.Of(g.Range(1, g.Range(0, n))), (IntRange{0, 8}));
  EXPECT_EQ(ranges.Of(g.Range(2, g.Int(0))), (IntRange{0, 0}));  // its body never runs
  EXPECT_EQ(ranges.Of(g.Range(3, -4)), (IntRange{0, 0}));
  EXPECT_EQ(ranges.Of(g.Make(Op::kCoreId, {g.Int(8)})), (IntRange{0, 7}));
  EXPECT_EQ(ranges.Of(g.Make(Op::kBind, {n, g.Int(5)})), (IntRange{5, 5}));
}

TEST(RangesTest, WhatMayWrapHasItsWholeType) {
  RawGraph g;
  RangeAnalysis ranges;
  const UOp* big = g.Variable("n", 0, kHighest);
  EXPECT_EQ(ranges.Of(g.Add(big, g.Int(1))), IntRange::Full());
  EXPECT_EQ(ranges.Of(g.Sub(big, g.Int(1))), (IntRange{-1, kHighest - 1}));
  EXPECT_EQ(ranges.Of(g.Make(Op::kNeg, {g.Variable("m", kLowest, 0)})), IntRange::Full());
  const UOp* byte = g.Make(Op::kCast, Scalar::kI8, {g.Variable("b", 0, 100)});
  EXPECT_EQ(ranges.Of(byte), (IntRange{0, 100}));
  EXPECT_EQ(ranges.Of(g.Add(byte, byte)), (IntRange{-128, 127}));
  const UOp* wide = g.Make(Op::kBitcast, Scalar::kU64, {g.Variable("s", -1, 5)});
  EXPECT_EQ(ranges.Of(wide), IntRange::Full());
  const UOp* five = g.context.Int(Scalar::kU64, 5);
  EXPECT_EQ(ranges.Of(g.Make(Op::kCmod, {wide, five})), (IntRange{0, 4}));
  EXPECT_EQ(ranges.Of(g.Make(Op::kMin, {wide, five})), (IntRange{0, 5}));
}

TEST(RangesTest, LoadsAndFloatsHaveTheRangeOfTheirType) {
  RawGraph g;
  RangeAnalysis ranges;
  const UOp* at = g.Int(0);
  EXPECT_EQ(ranges.Of(g.Load(g.Param(0, 4, Access::kIn, Scalar::kU8), at)), (IntRange{0, 255}));
  const UOp* f = g.Load(g.Param(1, 4), at);
  EXPECT_EQ(ranges.Of(f), IntRange::Full());
  EXPECT_EQ(ranges.Of(g.Lt(f, f)), (IntRange{0, 1}));
  EXPECT_EQ(ranges.Of(g.Make(Op::kCast, Scalar::kI8, {f})), (IntRange{-128, 127}));
}

TEST(RangesTest, AMillionNodesAreNoRecursion) {
  RawGraph g;
  RangeAnalysis ranges;
  const UOp *n = g.Variable("n", 0, 1), *value = n;
  for (int i = 0; i < 500000; ++i) value = g.Add(value, g.Int(i % 2 ? 1 : -1));
  for (int i = 0; i < 500000; ++i) value = g.Make(Op::kMax, {g.Add(value, n), n});
  EXPECT_EQ(ranges.Of(value), (IntRange{0, 500001}));
  EXPECT_EQ(ranges.AffineOf(value).terms.size(), 1u);
}

TEST(MaxElementsTest, MultipliesTheLargestDimensions) {
  RawGraph g;
  const UOp* n = g.Variable("n", 0, 10);
  auto param = [&](const Nodes& shape, DType dtype = Scalar::kF32) {
    return g.Make(Op::kParam, dtype, shape, ParamArgument{0, Access::kIn, ""});
  };
  EXPECT_EQ(*MaxElements(param({})), 1);
  EXPECT_EQ(*MaxElements(param({g.Int(3), n, g.Add(n, g.Int(1))})), 330);
  EXPECT_EQ(*MaxElements(param({g.Int(0), g.Int(5)})), 0);
  EXPECT_EQ(*MaxElements(g.Reg(0, 7, DType(Scalar::kF32, 8))), 7);
  const UOp* view =
      g.Make(Op::kBufferView, Scalar::kF32, {param({}), g.Int(4), g.Int(2)}, ViewArgument{0});
  EXPECT_EQ(*MaxElements(view), 8);
  auto message = [&](const UOp* buffer) {
    absl::StatusOr<int64_t> size = MaxElements(buffer);
    EXPECT_EQ(size.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(size.status().message());
  };
  EXPECT_EQ(message(param({g.Variable("n", -1, 4)})),
            "param: dimension, got a lower bound of -1, expected 0 or more");
  EXPECT_THAT(message(param({g.Variable("n", 0, kHighest)})), HasSubstr("got no upper bound"));
  EXPECT_THAT(message(param({g.Int(int64_t{1} << 40), g.Int(int64_t{1} << 40)})),
              HasSubstr("more than 2^62 elements"));
  EXPECT_THAT(message(param({g.Int(int64_t{1} << 61)})), HasSubstr("at most 2^62 bytes"));
}

}  // namespace
}  // namespace svod
