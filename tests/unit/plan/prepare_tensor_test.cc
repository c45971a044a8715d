// From tensor graphs to plans, with kernels that do nothing in the place of compiled ones.
#include <latch>

#include "gmock/gmock.h"
#include "ir/text.h"
#include "plan/prepare.h"
#include "tests/unit/plan/fake_kernels.h"

namespace svod {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Module Parse(absl::string_view text) {
  return Must(ParseModule(text, "t.uop", std::make_shared<Context>()));
}

// Makes kernels that do nothing, and counts them.
struct FakeCompiler {
  std::atomic<int> calls{0};
  KernelProvider provider() {
    return [this](const UOp* sink) -> absl::StatusOr<std::shared_ptr<const CompiledKernel>> {
      ++calls;
      auto kernel =
          FakeCompiled(&NothingKernel, 0, std::string(sink->arg<FunctionArgument>().name));
      for (const UOp* variable : VariablesOf(sink)) {
        kernel->variable_names.emplace_back(variable->arg<VariableArgument>().name);
      }
      return std::shared_ptr<const CompiledKernel>(std::move(kernel));
    };
  }
};

constexpr absl::string_view kSoftmax = R"(
graph @softmax(%n = define_var "n", min=1, max=32; %x: f32[%n, 16], %w: inout f32[16]) {
  %m = reduce_max %x, axes=[1], keep
  %d = sub %x, %m
  %e = exp %d
  %s = reduce_add %e, axes=[1], keep
  %y = fdiv %e, %s
  %c = contiguous %y
  %f = flip %c, axes=[1]
  %g = contiguous %f
  %r = reduce_add %g, axes=[0]
  %a = assign %w, %r
  %w1 = after %w, %a
  return %y, %r, %w1
}
)";

TEST(PrepareTensor, ParametersAndResultsCarryNamesAndPresentShapes) {
  FakeCompiler compiler;
  PrepareOptions options;
  options.schedule_cache = std::make_shared<ScheduleCache>();
  options.variables = {{"n", 5}};
  ExecutionPlan plan = Must(Prepare(Parse(kSoftmax), "softmax", compiler.provider(), options));
  ASSERT_EQ(plan.parameters().size(), 2u);
  EXPECT_EQ(plan.parameters()[0].name, "x");
  EXPECT_THAT(plan.parameters()[0].shape, ElementsAre(5, 16));
  EXPECT_THAT(plan.parameters()[0].max_shape, ElementsAre(32, 16));
  ASSERT_EQ(plan.outputs().size(), 3u);
  EXPECT_EQ(plan.outputs()[0].name, "y");
  EXPECT_THAT(plan.outputs()[0].shape, ElementsAre(5, 16));
  EXPECT_EQ(plan.outputs()[1].name, "r");
  EXPECT_THAT(plan.outputs()[1].shape, ElementsAre(16));
  // A state of a parameter is in its memory.
  EXPECT_EQ(plan.outputs()[2].name, "w");
  EXPECT_EQ(plan.outputs()[2].buffer_index, plan.parameters()[1].buffer_index);
  SVOD_ASSERT_OK(plan.SetVariables({{"n", 32}}));
  EXPECT_THAT(plan.outputs()[0].shape, ElementsAre(32, 16));
  EXPECT_EQ(plan.SetVariables({{"n", 33}}).code(), absl::StatusCode::kOutOfRange);
}

TEST(PrepareTensor, EqualGraphsAreNeitherScheduledNorCompiledAgain) {
  FakeCompiler compiler;
  PrepareOptions options;
  options.schedule_cache = std::make_shared<ScheduleCache>();
  options.compiler = "fake";
  options.variables = {{"n", 5}};
  ExecutionPlan first = Must(Prepare(Parse(kSoftmax), "", compiler.provider(), options));
  EXPECT_EQ(compiler.calls, first.report().num_kernels);
  EXPECT_FALSE(first.report().schedule_hit);
  // Another context, other names, another value, memory bound later.
  std::string text(kSoftmax);
  text.replace(text.find("%y, %r, %w1"), 11, "%y, %result, %w1");
  text.replace(text.find("%r ="), 2, "%result");
  text.replace(text.find("%w, %r"), 6, "%w, %result");
  options.variables = {{"n", 9}};
  options.allocate_parameters = false;
  ExecutionPlan second = Must(Prepare(Parse(text), "", compiler.provider(), options));
  EXPECT_EQ(compiler.calls, first.report().num_kernels);
  EXPECT_TRUE(second.report().schedule_hit);
  EXPECT_EQ(second.kernels(), first.kernels());
  EXPECT_EQ(second.outputs()[1].name, "result");
  EXPECT_THAT(second.outputs()[0].shape, ElementsAre(9, 16));
  EXPECT_THAT(first.outputs()[0].shape, ElementsAre(5, 16));
  // Another compiler's kernels are others; without a name it is always asked.
  options.compiler = "other";
  Must(Prepare(Parse(kSoftmax), "", compiler.provider(), options));
  EXPECT_EQ(compiler.calls, 2 * first.report().num_kernels);
  options.compiler = "";
  Must(Prepare(Parse(kSoftmax), "", compiler.provider(), options));
  EXPECT_EQ(compiler.calls, 3 * first.report().num_kernels);
  EXPECT_EQ(options.schedule_cache->stats().misses, 1);
  EXPECT_EQ(options.schedule_cache->stats().hits, 3);
}

TEST(PrepareTensor, KernelsAreSearchedOneAfterTheOtherBeforeAnyIsCompiled) {
  FakeCompiler compiler;
  PrepareOptions options;
  options.variables = {{"n", 5}};
  options.schedule_cache = std::make_shared<ScheduleCache>();
  options.compiler = "fake";
  const int num_kernels =
      Must(Prepare(Parse(kSoftmax), "", compiler.provider(), options)).report().num_kernels;
  EXPECT_EQ(compiler.calls, num_kernels);
  int num_searched = 0;
  options.search = [&](const UOp*, const SearchControl& control) {
    // Kernels that the schedule cache has are older than the search.
    EXPECT_EQ(compiler.calls, num_kernels);
    ++num_searched;
    control.progress(3, 8);
    return absl::OkStatus();
  };
  std::string told;
  options.progress = [&](const PrepareProgress& now) {
    if (now.stage != PrepareStage::kSearch) return;
    absl::StrAppend(&told, ToString(now.stage), " ", now.done, " ", now.measured, "/",
                    now.measurements, "\n");
  };
  Must(Prepare(Parse(kSoftmax), "", compiler.provider(), options));
  EXPECT_EQ(num_searched, num_kernels);
  EXPECT_EQ(compiler.calls, 2 * num_kernels);
  EXPECT_THAT(told, ::testing::StartsWith("search 0 0/0\nsearch 0 3/8\nsearch 1 0/0\n"));

  std::atomic<bool> cancelled{false};
  options.cancelled = &cancelled;
  options.search = [&](const UOp*, const SearchControl& control) {
    EXPECT_EQ(control.cancelled, &cancelled);
    return absl::CancelledError("search: cancelled");
  };
  ExpectError(Prepare(Parse(kSoftmax), "", compiler.provider(), options).status(),
              absl::StatusCode::kCancelled, "prepare: cancelled");
  options.search = [](const UOp*, const SearchControl&) { return absl::InternalError("broken"); };
  ExpectError(Prepare(Parse(kSoftmax), "", compiler.provider(), options).status(),
              absl::StatusCode::kInternal, "searching for kernel reduce_nx16: broken");
}

TEST(PrepareTensor, ReportsTellPeakAndSumOfBytes) {
  FakeCompiler compiler;
  PrepareOptions options;
  options.schedule_cache = nullptr;
  ExecutionPlan arena = Must(Prepare(Parse(kSoftmax), "", compiler.provider(), options));
  options.memory = MemoryMode::kOff;
  ExecutionPlan off = Must(Prepare(Parse(kSoftmax), "", compiler.provider(), options));
  EXPECT_EQ(arena.report().sum_bytes, off.report().sum_bytes);
  EXPECT_EQ(off.report().peak_bytes, off.report().sum_bytes);
  EXPECT_GT(arena.report().peak_bytes, 0);
  EXPECT_LE(arena.report().peak_bytes, off.report().peak_bytes);
  EXPECT_EQ(arena.op_levels().size(), off.op_levels().size());
  EXPECT_GT(arena.report().schedule_ms, 0);
  EXPECT_EQ(arena.report().num_kernels, compiler.calls / 2);
}

TEST(PrepareTensor, ReplicasShareCodeAndNoMemoryThatIsWritten) {
  FakeCompiler compiler;
  PrepareOptions options;
  options.variables = {{"n", 5}};
  ExecutionPlan plan = Must(Prepare(Parse(kSoftmax), "", compiler.provider(), options));
  int calls = compiler.calls;
  ExecutionPlan replica = Must(plan.Replicate());
  EXPECT_EQ(compiler.calls, calls);
  EXPECT_EQ(replica.kernels(), plan.kernels());
  EXPECT_EQ(replica.report().peak_bytes, plan.report().peak_bytes);
  for (size_t i = 0; i < plan.outputs().size(); ++i) {
    EXPECT_NE(replica.output_buffer_at(i)->data(), plan.output_buffer_at(i)->data()) << i;
  }
  // Views of the arena stay where they were in it.
  for (size_t i = 0; i < plan.buffers().size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (plan.buffers()[i].storage_id() != plan.buffers()[j].storage_id()) continue;
      if (plan.buffers()[i].size_bytes() == 0 || plan.buffers()[j].size_bytes() == 0) continue;
      EXPECT_EQ(replica.buffers()[i].data() - replica.buffers()[j].data(),
                plan.buffers()[i].data() - plan.buffers()[j].data());
    }
  }
}

TEST(PrepareTensor, ProgressGoesThroughTheStages) {
  FakeCompiler compiler;
  PrepareOptions options;
  options.schedule_cache = std::make_shared<ScheduleCache>();
  std::string told;
  options.progress = [&](const PrepareProgress& progress) {
    absl::StrAppend(&told, ToString(progress.stage), " ", progress.done, "/", progress.total, "\n");
  };
  ExecutionPlan plan = Must(Prepare(Parse(kSoftmax), "", compiler.provider(), options));
  int n = plan.report().num_kernels;
  std::string expected = "schedule 0/1\nschedule 1/1\n";
  for (int i = 0; i <= n; ++i) absl::StrAppend(&expected, "compile ", i, "/", n, "\n");
  absl::StrAppend(&expected, "build 0/1\nbuild 1/1\n");
  EXPECT_EQ(told, expected);
}

TEST(PrepareTensor, CancelledPreparationLeavesEverythingUsable) {
  PrepareOptions options;
  options.schedule_cache = std::make_shared<ScheduleCache>();
  options.compiler = "fake";
  std::atomic<bool> cancelled{false};
  options.cancelled = &cancelled;
  // After so many steps.
  FakeCompiler whole;
  int num_steps = 0;
  options.progress = [&](const PrepareProgress&) { ++num_steps; };
  Must(Prepare(Parse(kSoftmax), "", whole.provider(), options));
  ASSERT_GT(num_steps, 6);
  for (int stop = 0; stop < num_steps; ++stop) {
    options.schedule_cache = std::make_shared<ScheduleCache>();
    FakeCompiler compiler;
    int step = 0;
    cancelled = stop == 0;
    options.progress = [&](const PrepareProgress&) { cancelled = ++step >= stop; };
    ExpectError(Prepare(Parse(kSoftmax), "", compiler.provider(), options).status(),
                absl::StatusCode::kCancelled, "prepare: cancelled");
    EXPECT_EQ(step, stop);
    cancelled = false;
    options.progress = nullptr;
    Must(Prepare(Parse(kSoftmax), "", compiler.provider(), options));
  }
}

// A sum over nothing reads nothing, and yet the parameter is one of the plan's.
TEST(PrepareTensor, ParametersThatNothingReadsStay) {
  FakeCompiler compiler;
  for (bool allocate : {true, false}) {
    PrepareOptions options;
    options.allocate_parameters = allocate;
    ExecutionPlan plan = Must(Prepare(Parse(R"(
graph @main(%n = define_var "n", min=0, max=4; %x: f32[%n, 0], %y: f32[3]) {
  %s = reduce_add %x
  %r = add %s, %y
  return %r
}
)"),
                                      "", compiler.provider(), options));
    ASSERT_EQ(plan.parameters().size(), 2u);
    EXPECT_EQ(plan.parameters()[0].name, "x");
    EXPECT_EQ(plan.parameters()[1].name, "y");
    EXPECT_THAT(plan.parameters()[1].shape, ElementsAre(3));
  }
}

TEST(PrepareTensor, ShapesThatDoNotFitAreRefusedBeforeAnythingIsCompiled) {
  auto context = std::make_shared<Context>();
  auto param = [&](int64_t slot, int64_t size) {
    return Must(context->Make(Op::kParam, Scalar::kF32, {context->Index(size)},
                              ParamArgument{slot, Access::kIn, ""}));
  };
  const UOp* sum = Must(context->Make(Op::kAdd, {param(0, 3), param(1, 4)}));
  Module module{context, {}};
  module.functions.push_back(
      {Must(context->Make(Op::kSink, {sum}, FunctionArgument{false, "g", {}})), {}, "t.uop"});
  module.functions[0].notes[sum] = {"sum", 3, 7};
  FakeCompiler compiler;
  absl::Status status = Prepare(module, "g", compiler.provider()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("t.uop:3:7: %sum"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("[3] and [4]"));
  EXPECT_EQ(compiler.calls, 0);
}

TEST(PrepareTensor, NumbersOfSharedKernelsAreBoundAndNoVariablesOfThePlan) {
  std::string text = "graph @g(%x: f32[16]) {\n", names;
  for (int i = 0; i < 9; ++i) {
    absl::StrAppend(&text, "  %a", i, " = %x * ", i + 2, "\n  %c", i, " = contiguous %a", i,
                    "\n  %y", i, " = reduce_add %c", i, ", axes=[0]\n");
    absl::StrAppend(&names, i == 0 ? "" : ", ", "%y", i);
  }
  FakeCompiler compiler;
  PrepareOptions options;
  options.schedule_cache = std::make_shared<ScheduleCache>();
  ExecutionPlan plan = Must(Prepare(Parse(absl::StrCat(text, "  return ", names, "\n}\n")), "",
                                    compiler.provider(), options));
  EXPECT_EQ(compiler.calls.load(), 2);
  EXPECT_TRUE(plan.variables().empty());
  // What is between the kernels is in the arena, bound numbers or not.
  EXPECT_EQ(plan.report().sum_bytes, 9 * 64);
  EXPECT_EQ(plan.report().peak_bytes, 9 * 64);
}

TEST(PrepareTensor, KernelsOfAFewShortRunsAreMadeQuickly) {
  // A kernel of some 20 ns, and one of some milliseconds.
  constexpr absl::string_view kText = R"(
graph @g(%x: f32[16], %y: f32[1024, 4096]) {
  %a = add %x, 2.0
  %b = exp %y
  return %a, %b
}
)";
  FakeCompiler good, quick;
  PrepareOptions options;
  options.schedule_cache = std::make_shared<ScheduleCache>();
  options.compiler = "fake";
  options.quick_provider = quick.provider();
  auto made = [&](int64_t expected_runs) {
    good.calls = quick.calls = 0;
    options.expected_runs = expected_runs;
    Must(Prepare(Parse(kText), "", good.provider(), options));
    return std::pair(good.calls.load(), quick.calls.load());
  };
  EXPECT_EQ(made(1), std::pair(1, 1));
  // What was made quickly is not for other plans of the graph.
  EXPECT_EQ(made(1'000'000'000), std::pair(2, 0));
  // What was made well is for all.
  EXPECT_EQ(made(1), std::pair(0, 0));
  options.schedule_cache = nullptr;
  EXPECT_EQ(made(0), std::pair(2, 0));
  options.quick_provider = nullptr;
  EXPECT_EQ(made(1), std::pair(2, 0));
}

}  // namespace
}  // namespace svod
