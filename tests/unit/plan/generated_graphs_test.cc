// Generated tensor graphs: what the scheduler and the memory planner make of them, run by the
// interpreter of kernels, against the interpreter of tensor graphs. No machine code is involved.
//
// To run other seeds: svod_plan_test --gtest_filter='*Slow*Graphs*/17' takes seeds 17000 to 17999.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "plan/memory_plan.h"
#include "plan/schedule.h"
#include "tests/unit/graph_generator/graph_shrinker.h"
#include "tests/unit/ir/tensor_values.h"

namespace svod {
namespace {

struct NamedOptions {
  const char* name;
  ScheduleOptions options;
};

std::vector<NamedOptions> AllOptions() {
  ScheduleOptions plain;
  std::vector<NamedOptions> all = {{"default", plain}};
  auto add = [&](const char* name, bool inlined, bool staged, int64_t stage, int64_t launch) {
    ScheduleOptions options;
    options.inline_values = inlined;
    options.stage_values = staged;
    options.max_stage_bytes = stage;
    options.max_launch_size = launch;
    all.push_back({name, options});
  };
  add("no inlining", false, true, plain.max_stage_bytes, plain.max_launch_size);
  add("no stages", true, false, plain.max_stage_bytes, plain.max_launch_size);
  add("neither", false, false, plain.max_stage_bytes, plain.max_launch_size);
  add("stages of 64 bytes", true, true, 64, plain.max_launch_size);
  add("one core", true, true, plain.max_stage_bytes, 1);
  add("three cores", true, true, plain.max_stage_bytes, 3);
  return all;
}

struct Outcome {
  std::vector<TensorValue> results, params;
};

absl::StatusOr<Outcome> Run(const Function& graph, const GraphCase& on) {
  GraphCase copy = on;
  copy.graph = graph;
  Outcome outcome;
  absl::StatusOr<std::vector<TensorValue>> results = Interpret(copy, &outcome.params);
  if (!results.ok()) return results.status();
  outcome.results = *std::move(results);
  return outcome;
}

// "" when equal; `bounds` may be empty for the same bits everywhere.
std::string Compare(const Outcome& got, const Outcome& expected,
                    const std::vector<ResultBound>& bounds,
                    const std::vector<TensorValue>& magnitudes) {
  if (got.results.size() != expected.results.size()) return "number of results";
  std::string text;
  for (size_t i = 0; i < got.results.size() && text.empty(); ++i) {
    std::string what = absl::StrCat("result ", i);
    if (bounds.empty() || bounds[i].relative_error == 0) {
      text = FirstDifference(got.results[i], expected.results[i], what);
    } else {
      text = FirstDifference(got.results[i], expected.results[i], what, bounds[i],
                             magnitudes[static_cast<size_t>(bounds[i].magnitude)]);
    }
  }
  for (size_t i = 0; i < got.params.size() && text.empty(); ++i) {
    text = FirstDifference(got.params[i], expected.params[i], absl::StrCat("parameter ", i));
  }
  return text;
}

// What leaves the scheduler by way of an exception is a failure that can be shrunk like others.
absl::StatusOr<Schedule> TrySchedule(const GraphCase& of, const ScheduleOptions& options) {
  try {
    return ScheduleGraph(of.graph, options);
  } catch (const std::exception& exception) {
    return absl::InternalError(absl::StrCat("exception: ", exception.what()));
  }
}

// Everything that one schedule of a graph has to fulfil, as text; "" when it does. `first` is what
// another schedule gave, and is set by the first call.
std::string CheckSchedule(const GraphCase& of, const ScheduleOptions& options,
                          const Outcome& expected, const std::vector<ResultBound>& bounds,
                          const std::vector<TensorValue>& magnitudes, Outcome* first) {
  absl::StatusOr<Schedule> schedule = TrySchedule(of, options);
  if (!schedule.ok()) return absl::StrCat("scheduling: ", schedule.status().ToString());
  for (const Function& function : schedule->module.functions) {
    absl::Status verified = Verify(function);
    if (!verified.ok()) return absl::StrCat("verifying: ", verified.ToString());
  }
  absl::StatusOr<Outcome> got = Run(schedule->module.functions.back(), of);
  if (!got.ok()) return absl::StrCat("interpreting kernels: ", got.status().ToString());
  std::string text = Compare(*got, expected, bounds, magnitudes);
  if (!text.empty()) return text;
  if (first->results.empty()) *first = *got;
  text = Compare(*got, *first, {}, {});
  if (!text.empty()) return absl::StrCat("against another schedule: ", text);
  for (MemoryMode mode : {MemoryMode::kArena, MemoryMode::kOff}) {
    const char* name = mode == MemoryMode::kArena ? "with an arena: " : "without an arena: ";
    absl::StatusOr<MemoryPlan> plan =
        PlanMemory(schedule->module, schedule->module.functions.back().name(), mode);
    if (!plan.ok()) return absl::StrCat(name, plan.status().ToString());
    for (const Function& function : plan->module.functions) {
      absl::Status verified = Verify(function);
      if (!verified.ok()) return absl::StrCat(name, "verifying: ", verified.ToString());
    }
    absl::StatusOr<Outcome> planned = Run(plan->module.functions.back(), of);
    if (!planned.ok()) return absl::StrCat(name, planned.status().ToString());
    text = Compare(*planned, *got, {}, {});
    if (!text.empty()) return absl::StrCat(name, text);
  }
  return "";
}

// Shrinks a failure and tells of it. Of results whose floats may be folded in another order the
// shrunk case no longer knows the bound, so that only coarse differences keep it failing.
std::string Report(const GraphCase& failing, const ScheduleOptions& options, bool is_exact) {
  auto problem = [&](const GraphCase& of) -> std::string {
    absl::StatusOr<Outcome> expected = Run(of.graph, of);
    if (!expected.ok()) return "";
    std::vector<ResultBound> bounds;
    std::vector<TensorValue> magnitudes;
    for (const TensorValue& value : expected->results) {
      ResultBound bound;
      if (!is_exact && value.dtype.is_float()) {
        bound = {1e-2, static_cast<int>(magnitudes.size())};
        TensorValue size = ZeroTensor(Scalar::kF64, value.shape);
        for (int64_t i = 0; i < size.num_elements(); ++i) {
          size.SetBitsAt(i, DoubleToBits(Scalar::kF64, std::abs(NumberAt(value, i)) + 1));
        }
        magnitudes.push_back(size);
      }
      bounds.push_back(bound);
    }
    Outcome first;
    return CheckSchedule(of, options, *expected, bounds, magnitudes, &first);
  };
  if (problem(failing).empty()) return "does not fail alone";
  GraphCase small = ShrinkCase(failing, [&](const GraphCase& of) { return !problem(of).empty(); });
  absl::StatusOr<Schedule> schedule = TrySchedule(small, options);
  std::string text = absl::StrCat(problem(small), "\n", DescribeCase(small));
  if (!schedule.ok()) return text;
  absl::StrAppend(&text, "\nscheduled:\n", Print(schedule->module).value_or(""));
  absl::StatusOr<MemoryPlan> plan =
      PlanMemory(schedule->module, schedule->module.functions.back().name());
  if (plan.ok()) absl::StrAppend(&text, "\nwith an arena:\n", Print(plan->module).value_or(""));
  return text;
}

// "" when all is well. Large graphs, in which reductions are split and loops are cut for cores,
// take seconds and so run with fewer options.
std::string CheckSeed(uint64_t seed, bool is_large) {
  GraphGeneratorOptions generator;
  generator.rounded_reductions = seed % 2 == 0;
  if (is_large) {
    generator.large_sizes = true;
    generator.max_elements = 200000;
    generator.max_ops = 8;
  }
  absl::StatusOr<GeneratedGraph> graph =
      GenerateGraph(seed, std::make_shared<Context>(), generator);
  if (!graph.ok()) return graph.status().ToString();
  for (const VariableList& variables : graph->variables) {
    absl::StatusOr<std::vector<TensorValue>> inputs = MakeInputs(*graph, variables, seed);
    if (!inputs.ok()) return inputs.status().ToString();
    GraphCase one = {graph->context, graph->graph, *inputs, variables};
    absl::StatusOr<Outcome> expected = Run(graph->graph, one);
    if (!expected.ok()) return expected.status().ToString();
    std::vector<TensorValue> magnitudes;
    bool is_exact = graph->magnitudes.root == nullptr;
    if (!is_exact) {
      absl::StatusOr<Outcome> sizes = Run(graph->magnitudes, one);
      if (!sizes.ok()) return sizes.status().ToString();
      magnitudes = sizes->results;
    }
    Outcome first;
    std::vector<NamedOptions> all = AllOptions();
    if (is_large) all = {all[0], all[seed % (all.size() - 1) + 1]};
    for (const auto& [name, options] : all) {
      std::string text = CheckSchedule(one, options, *expected, graph->bounds, magnitudes, &first);
      if (!text.empty()) {
        return absl::StrCat(name, ": ", text, "\nsmaller: ", Report(one, options, is_exact));
      }
    }
  }
  return "";
}

void CheckSeeds(uint64_t first, uint64_t count, bool is_large) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    ASSERT_EQ(CheckSeed(seed, is_large), "") << "seed " << seed;
  }
}

TEST(GeneratedGraphsTest, SchedulesGiveWhatTheGraphsMean) { CheckSeeds(0, 500, false); }

TEST(GeneratedGraphsTest, SchedulesOfLargeShapesGiveWhatTheGraphsMean) { CheckSeeds(0, 100, true); }

// One parameter is a thousand seeds, or a hundred of large shapes.
class SlowGeneratedGraphsTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(SlowGeneratedGraphsTest, SchedulesGiveWhatTheGraphsMean) {
  CheckSeeds(GetParam() * 1000, 1000, false);
}

TEST_P(SlowGeneratedGraphsTest, SchedulesOfLargeShapesGiveWhatTheGraphsMean) {
  CheckSeeds(GetParam() * 100, 100, true);
}

INSTANTIATE_TEST_SUITE_P(Thousands, SlowGeneratedGraphsTest,
                         ::testing::Range(uint64_t{0}, uint64_t{64}));

}  // namespace
}  // namespace svod
