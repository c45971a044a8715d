// Generated tensor graphs as compiled plans: machine code on any number of threads and in both
// memory modes against the interpreter, bit for bit. What the interpreter runs are the final UOps
// of the same kernels, since that is where transcendentals become arithmetic; before that, and
// after loop actions, a graph without them gives the same bits too.
//
// To run other seeds: svod_executor_test --gtest_filter='*Slow*GraphPlans*/17' takes seeds 1700 to
// 1799.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "executor/executor.h"
#include "ir/pipeline.h"
#include "ir/status_macros.h"
#include "ir/text.h"
#include "jit/choose_actions.h"
#include "jit/kernel_cache.h"
#include "plan/memory_plan.h"
#include "plan/prepare.h"
#include "plan/schedule.h"
#include "tests/unit/graph_generator/graph_rebuild.h"
#include "tests/unit/ir/tensor_values.h"

namespace svod {
namespace {

struct Outcome {
  std::vector<TensorValue> results, params;
};

// Takes out of a call's sources the buffers that its kernel, once lowered, no longer reads. The
// plan passes them all, by slot; the interpreter counts them.
absl::Status DropUnusedBuffers(const UOp* kernel, std::vector<const UOp*>& sources) {
  SVOD_ASSIGN_OR_RETURN(std::vector<const UOp*> params, ParamsOf(kernel));
  SVOD_ASSIGN_OR_RETURN(std::vector<const UOp*> used, ParamsOf(sources[0]));
  absl::flat_hash_set<int64_t> slots;
  for (const UOp* param : used) slots.insert(param->arg<ParamArgument>().slot);
  size_t kept = 1;
  for (size_t i = 0; i < params.size(); ++i) {
    bool is_used = slots.contains(params[i]->arg<ParamArgument>().slot);
    if (is_used) sources[kept++] = sources[i + 1];
  }
  sources.erase(sources.begin() + static_cast<int64_t>(kept),
                sources.begin() + static_cast<int64_t>(params.size() + 1));
  return absl::OkStatus();
}

// The graph with every kernel as it is lowered.
absl::StatusOr<Function> WithFinalKernels(const Module& module) {
  Function graph = module.functions.back();
  absl::flat_hash_map<const UOp*, const UOp*> made;
  for (const UOp* node : Toposort(graph.root)) {
    bool is_kernel = node->op() == Op::kSink && node != graph.root;
    if (is_kernel) {
      PassContext pass(*module.context);
      SVOD_ASSIGN_OR_RETURN(const UOp* shaped, OptimizeLoops(node, Target(), pass));
      SVOD_ASSIGN_OR_RETURN(made[node], OptimizeKernel(shaped, pass));
      continue;
    }
    std::vector<const UOp*> sources;
    for (const UOp* source : node->sources()) sources.push_back(made.at(source));
    if (node->op() == Op::kCall) {
      SVOD_RETURN_IF_ERROR(DropUnusedBuffers(node->source(0), sources));
    }
    SVOD_ASSIGN_OR_RETURN(
        made[node], module.context->Make(node->op(), node->dtype(), sources, node->argument()));
  }
  graph.root = made.at(graph.root);
  return graph;
}

absl::StatusOr<Outcome> RunInterpreter(const Function& graph, const GraphCase& on) {
  GraphCase copy = on;
  copy.graph = graph;
  Outcome outcome;
  SVOD_ASSIGN_OR_RETURN(outcome.results, Interpret(copy, &outcome.params));
  return outcome;
}

absl::StatusOr<TensorValue> Read(const ExecutionPlan& plan, const PlanTensor& tensor) {
  TensorValue value = ZeroTensor(tensor.dtype, tensor.shape);
  absl::Span<const std::byte> bytes = plan.buffers()[tensor.buffer_index].Read();
  if (bytes.size() < value.bytes.size()) return absl::InternalError("a result is too small");
  std::copy_n(bytes.begin(), value.bytes.size(), value.bytes.begin());
  return value;
}

absl::StatusOr<Outcome> RunPlan(ExecutionPlan& plan, const GraphCase& on, Executor* executor) {
  std::vector<std::pair<absl::string_view, int64_t>> values(on.variables.begin(),
                                                            on.variables.end());
  SVOD_RETURN_IF_ERROR(plan.SetVariables(values));
  for (size_t i = 0; i < on.params.size(); ++i) {
    const PlanTensor& parameter = plan.parameters()[i];
    const Buffer& buffer = plan.buffers()[parameter.buffer_index];
    auto size = static_cast<int64_t>(on.params[i].bytes.size());
    SVOD_ASSIGN_OR_RETURN(Buffer part, buffer.View(0, size));
    SVOD_RETURN_IF_ERROR(part.CopyFrom(absl::Span<const std::byte>(on.params[i].bytes)));
  }
  ExecuteOptions options;
  options.executor = executor;
  SVOD_RETURN_IF_ERROR(Execute(plan, options));
  Outcome outcome;
  for (const PlanTensor& output : plan.outputs()) {
    SVOD_ASSIGN_OR_RETURN(TensorValue value, Read(plan, output));
    outcome.results.push_back(std::move(value));
  }
  for (const PlanTensor& parameter : plan.parameters()) {
    SVOD_ASSIGN_OR_RETURN(TensorValue value, Read(plan, parameter));
    outcome.params.push_back(std::move(value));
  }
  return outcome;
}

// The same bits, or for results with bounds what those allow.
std::string Compare(const Outcome& got, const Outcome& expected,
                    const std::vector<ResultBound>& bounds = {}, const Outcome& magnitudes = {}) {
  if (got.results.size() != expected.results.size()) return "number of results";
  std::string text;
  for (size_t i = 0; i < got.results.size() && text.empty(); ++i) {
    std::string what = absl::StrCat("result ", i);
    if (bounds.empty() || bounds[i].relative_error == 0) {
      text = FirstDifference(got.results[i], expected.results[i], what);
    } else {
      text = FirstDifference(got.results[i], expected.results[i], what, bounds[i],
                             magnitudes.results[static_cast<size_t>(bounds[i].magnitude)]);
    }
  }
  for (size_t i = 0; i < got.params.size() && text.empty(); ++i) {
    text = FirstDifference(got.params[i], expected.params[i], absl::StrCat("parameter ", i));
  }
  return text;
}

bool HasTranscendentals(const UOp* root) {
  for (const UOp* node : Toposort(root)) {
    if (HasFlag(node->op(), kTranscendental)) return true;
  }
  return false;
}

class GraphPlans {
 public:
  GraphPlans() {
    for (int threads : {1, 2, 3, 8}) executors_.push_back(*Executor::Create(threads));
    cache_ = *KernelCache::Create();
  }

  // OK, or what went wrong.
  absl::Status Check(uint64_t seed) {
    GraphGeneratorOptions generator;
    generator.rounded_reductions = seed % 2 == 0;
    generator.transcendentals = seed % 3 == 0;
    generator.max_ops = 12;
    if (seed % 8 == 7) {
      generator.large_sizes = true;
      generator.max_elements = 200000;
    }
    SVOD_ASSIGN_OR_RETURN(GeneratedGraph graph,
                          GenerateGraph(seed, std::make_shared<Context>(), generator));
    SVOD_ASSIGN_OR_RETURN(Schedule schedule, ScheduleGraph(graph.graph));
    SVOD_ASSIGN_OR_RETURN(Function final_graph, WithFinalKernels(schedule.module));
    bool is_arithmetic = !HasTranscendentals(graph.graph.root);
    std::vector<std::pair<std::string, ExecutionPlan>> plans;
    for (MemoryMode mode : {MemoryMode::kArena, MemoryMode::kOff}) {
      absl::string_view name = schedule.module.functions.back().name();
      SVOD_ASSIGN_OR_RETURN(MemoryPlan memory, PlanMemory(schedule.module, name, mode));
      SVOD_ASSIGN_OR_RETURN(ExecutionPlan plan, Prepare(memory.module, name, [&](const UOp* sink) {
                              return cache_->GetOrCompile(sink);
                            }));
      plans.emplace_back(mode == MemoryMode::kArena ? "arena" : "no arena", std::move(plan));
    }
    for (const VariableList& variables : graph.variables) {
      SVOD_ASSIGN_OR_RETURN(std::vector<TensorValue> inputs, MakeInputs(graph, variables, seed));
      GraphCase one = {graph.context, graph.graph, std::move(inputs), variables};
      SVOD_ASSIGN_OR_RETURN(Outcome expected, RunInterpreter(final_graph, one));
      if (is_arithmetic) {
        SVOD_ASSIGN_OR_RETURN(Outcome meant, RunInterpreter(graph.graph, one));
        Outcome magnitudes;
        if (graph.magnitudes.root != nullptr) {
          SVOD_ASSIGN_OR_RETURN(magnitudes, RunInterpreter(graph.magnitudes, one));
        }
        SVOD_RETURN_IF_ERROR(Differs(Compare(expected, meant, graph.bounds, magnitudes),
                                     "final kernels", one, schedule));
      }
      for (auto& [name, plan] : plans) {
        for (const std::unique_ptr<Executor>& executor : executors_) {
          SVOD_ASSIGN_OR_RETURN(Outcome got, RunPlan(plan, one, executor.get()));
          std::string what = absl::StrCat(name, ", ", executor->num_threads(), " threads");
          SVOD_RETURN_IF_ERROR(Differs(Compare(got, expected), what, one, schedule));
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status Differs(const std::string& difference, absl::string_view what,
                              const GraphCase& on, const Schedule& schedule) {
    if (difference.empty()) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(what, ": ", difference, "\n", DescribeCase(on), "\n",
                                            Print(schedule.module).value_or("")));
  }

  std::vector<std::unique_ptr<Executor>> executors_;
  std::shared_ptr<KernelCache> cache_;
};

void CheckSeeds(uint64_t first, uint64_t count) {
  GraphPlans plans;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    absl::Status status = plans.Check(seed);
    ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status;
  }
}

TEST(GeneratedGraphPlansTest, AnyNumberOfThreadsGivesTheInterpretersBits) { CheckSeeds(0, 80); }

// One parameter is a hundred seeds.
class SlowGeneratedGraphPlansTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(SlowGeneratedGraphPlansTest, AnyNumberOfThreadsGivesTheInterpretersBits) {
  CheckSeeds(GetParam() * 100, 100);
}

INSTANTIATE_TEST_SUITE_P(Hundreds, SlowGeneratedGraphPlansTest,
                         ::testing::Range(uint64_t{0}, uint64_t{100}));

}  // namespace
}  // namespace svod
