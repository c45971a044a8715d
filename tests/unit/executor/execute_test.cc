// Running plans of fake kernels: rows E1 to E29 of docs/seed.md.
#include <map>
#include <stdexcept>
#include <thread>

#include "executor/executor.h"
#include "gmock/gmock.h"
#include "tests/unit/plan/fake_kernels.h"

namespace svod {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

Executor* Threads(int num_threads) {
  static auto* executors = new std::map<int, std::unique_ptr<Executor>>;
  auto& executor = (*executors)[num_threads];
  if (executor == nullptr) executor = Must(Executor::Create(num_threads));
  return executor.get();
}

// Every way to run a plan; results and errors must be the same in all of them.
std::vector<ExecuteOptions> AllOptions() {
  std::vector<ExecuteOptions> options = {{}, {.serial = true}};
  for (int threads : {1, 2, 3, 8}) options.push_back({.executor = Threads(threads)});
  return options;
}

TEST(Execute, E1LevelsAreBarriers) {
  TracedPlan traced(8);
  // Four independent kernels, then four that depend on the first only: they wait for all of them.
  for (uint64_t i = 1; i <= 4; ++i) traced.builder.AddKernel(TracedPlan::Kernel(i, {i}, 1));
  for (uint64_t i = 5; i <= 8; ++i) traced.builder.AddKernel(TracedPlan::Kernel(i, {i}, 1, {1}));
  ExecutionPlan plan = traced.Build();
  EXPECT_TRUE(plan.program().has_parallel_segments);
  for (const ExecuteOptions& options : AllOptions()) {
    traced.trace.Clear();
    SVOD_ASSERT_OK(Execute(plan, options));
    ASSERT_EQ(traced.trace.size, 8);
    for (int64_t early = 1; early <= 4; ++early) {
      for (int64_t late = 5; late <= 8; ++late) {
        EXPECT_LT(traced.trace.Find(early).end, traced.trace.Find(late).begin);
      }
    }
  }
}

absl::Status RecordCall(const CustomCall& call, int64_t tag) {
  auto* trace = reinterpret_cast<Trace*>(call.buffers[0].data());
  if (trace == nullptr) return absl::InternalError("the trace has no memory");
  void* buffers[] = {trace};
  int64_t variables[] = {tag, 0, 0};
  RecordKernel(buffers, variables, 0, nullptr);
  return absl::OkStatus();
}

TEST(Execute, E2E3SerialOpsWaitForAllBeforeThemInTheirLevel) {
  auto registry = std::make_shared<CustomFunctionRegistry>();
  SVOD_ASSERT_OK(
      registry->Register("record", [](const CustomCall& call) { return RecordCall(call, 90); }));
  TracedPlan traced(6);
  traced.builder.SetCustomFunctions(registry);
  traced.builder.AddKernel(TracedPlan::Kernel(1, {1}, 1));
  traced.builder.AddKernel(TracedPlan::Kernel(2, {2}, 1));
  PreparedCustomFunction custom;
  custom.id = 3;
  custom.kind = "record";
  custom.buffer_indices = {0};
  traced.builder.AddOp(custom);
  traced.builder.AddKernel(TracedPlan::Kernel(4, {3}, 1));
  PreparedKernel alone = TracedPlan::Kernel(5, {4}, 1);
  auto compiled = std::make_shared<CompiledKernel>(*alone.kernel);
  compiled->host_parallel_safe = false;
  alone.kernel = compiled;
  traced.builder.AddKernel(std::move(alone));
  traced.builder.AddKernel(TracedPlan::Kernel(6, {5}, 1));
  traced.builder.AddOp(PreparedCopy{7, {6, 5}, {}});
  ExecutionPlan plan = traced.Build();
  EXPECT_THAT(plan.op_levels(), ElementsAre(ElementsAre(0, 1, 2, 3, 4, 5, 6)));
  EXPECT_THAT(plan.op_groups()[0], ElementsAre(ElementsAre(0, 1), ElementsAre(2), ElementsAre(3),
                                               ElementsAre(4), ElementsAre(5), ElementsAre(6)));
  for (const ExecuteOptions& options : AllOptions()) {
    traced.trace.Clear();
    SVOD_ASSERT_OK(Execute(plan, options));
    std::vector<int64_t> tags = traced.trace.tags();
    ASSERT_EQ(tags.size(), 6u);
    EXPECT_THAT(std::vector<int64_t>(tags.begin(), tags.begin() + 2), UnorderedElementsAre(1, 2));
    EXPECT_THAT(std::vector<int64_t>(tags.begin() + 2, tags.end()), ElementsAre(90, 4, 5, 6));
  }
}

TEST(Execute, E2E3ViewsAreBarriersInTheirLevelToo) {
  TracedPlan traced(2);
  Buffer base = Bytes(64);
  size_t base_index = traced.builder.AddBuffer(1, base);
  size_t view_index = traced.builder.AddBuffer(2, Must(base.View(0, 8)));
  traced.builder.AddKernel(TracedPlan::Kernel(1, {1}, 1));
  traced.builder.AddOp(PreparedBufferView{2, {view_index, base_index}, 0, 8, {}});
  traced.builder.AddKernel(TracedPlan::Kernel(3, {2}, 1));
  ExecutionPlan plan = traced.Build();
  EXPECT_THAT(plan.op_groups()[0], ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
  SVOD_ASSERT_OK(Execute(plan, {.executor = Threads(2)}));
  EXPECT_THAT(traced.trace.tags(), ElementsAre(1, 3));
}

TEST(Execute, E4E8ConflictingKernelsRunInGroupsOneAfterAnother) {
  TracedPlan traced(4);
  traced.builder.AddKernel(TracedPlan::Kernel(1, {1}, 1));
  traced.builder.AddKernel(TracedPlan::Kernel(2, {2, 1}, 1));  // reads what 1 writes
  traced.builder.AddKernel(TracedPlan::Kernel(3, {3}, 1));     // joins the first group
  ExecutionPlan plan = traced.Build();
  EXPECT_THAT(plan.op_groups()[0], ElementsAre(ElementsAre(0, 2), ElementsAre(1)));
  for (const ExecuteOptions& options : AllOptions()) {
    traced.trace.Clear();
    SVOD_ASSERT_OK(Execute(plan, options));
    EXPECT_EQ(traced.trace.tags()[2], 2);
  }
}

// The sanitizer would report it if kernels of one group met on a byte, or if levels did not order
// what they share.
TEST(Execute, E5E6ConflictingWritesNeverRaceAndNoneIsLost) {
  ExecutionPlanBuilder builder;
  Buffer arena = Bytes(64);
  for (uint64_t i = 0; i < 6; ++i) {
    builder.AddBuffer(i, Must(arena.View(static_cast<int64_t>(i % 2) * 8, 8)));
  }
  builder.SetOutputBuffer(0);
  for (uint64_t i = 0; i < 60; ++i) {
    PreparedKernel kernel = FakeKernel(i, &BumpKernel, {i % 6}, {0}, {1});
    kernel.cost_ns = 1e6;
    builder.AddKernel(std::move(kernel));
  }
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_EQ(plan.op_groups()[0].size(), 30u);
  int64_t runs = 0;
  for (const ExecuteOptions& options : AllOptions()) {
    SVOD_ASSERT_OK(Execute(plan, options));
    ++runs;
    EXPECT_THAT(arena.ReadAs<int64_t>().subspan(0, 2), ElementsAre(30 * runs, 30 * runs));
  }
}

TEST(Execute, E9GroupsOfOneRunOnTheCallingThread) {
  struct Caller {
    static int32_t Note(void* const* buffers, const int64_t*, int64_t, void*) {
      *static_cast<std::thread::id*>(buffers[0]) = std::this_thread::get_id();
      return 0;
    }
  };
  ExecutionPlanBuilder builder;
  builder.AddBuffer(1, Bytes(64));
  builder.SetOutputBuffer(0);
  PreparedKernel kernel = FakeKernel(1, &Caller::Note, {0}, {0});
  kernel.cost_ns = 1e9;
  builder.AddKernel(std::move(kernel));
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_FALSE(plan.program().has_parallel_segments);
  SVOD_ASSERT_OK(Execute(plan, {.executor = Threads(8)}));
  EXPECT_EQ(*reinterpret_cast<const std::thread::id*>(plan.buffers()[0].data()),
            std::this_thread::get_id());
}

// Cores add their number + 1 to an element of their own.
int32_t CoreKernel(void* const* buffers, const int64_t*, int64_t core, void*) {
  static_cast<int64_t*>(buffers[0])[core] += core + 1;
  return 0;
}

PreparedKernel Threaded(uint64_t id, KernelFunction function, size_t buffer, int64_t cores) {
  auto context = std::make_shared<Context>();
  PreparedKernel kernel = FakeKernel(id, function, {buffer}, {0});
  auto compiled = std::make_shared<CompiledKernel>(*kernel.kernel);
  compiled->context = context;
  compiled->global_size[0] = context->Index(cores);
  kernel.kernel = compiled;
  return kernel;
}

TEST(Execute, E10CoresAndGroupsShareTheArenaWithTheSameResult) {
  ExecutionPlanBuilder builder;
  for (uint64_t i = 0; i < 3; ++i) builder.AddBuffer(i, Bytes(100 * 8));
  builder.SetOutputBuffer(0);
  for (uint64_t i = 0; i < 3; ++i) builder.AddKernel(Threaded(i, &CoreKernel, i, 100));
  ExecutionPlan plan = Must(std::move(builder).Build());
  ASSERT_EQ(plan.program().segments.size(), 1u);
  EXPECT_GT(plan.program().chunks.size(), 100u);
  int64_t runs = 0;
  for (const ExecuteOptions& options : AllOptions()) {
    SVOD_ASSERT_OK(Execute(plan, options));
    ++runs;
    for (const Buffer& buffer : plan.buffers()) {
      for (int64_t core = 0; core < 100; ++core) {
        EXPECT_EQ(buffer.ReadAs<int64_t>()[static_cast<size_t>(core)], runs * (core + 1));
      }
    }
  }
}

TEST(Execute, E11OnlyCpuKernelsHaveTheirCoresCalled) {
  ExecutionPlanBuilder builder;
  builder.AddBuffer(1, Bytes(64));
  builder.SetOutputBuffer(0);
  PreparedKernel kernel = Threaded(1, &CoreKernel, 0, 5);
  kernel.device = {"cuda", 0};
  builder.AddKernel(std::move(kernel));
  ExecutionPlan plan = Must(std::move(builder).Build());
  SVOD_ASSERT_OK(Execute(plan));
  EXPECT_THAT(plan.buffers()[0].ReadAs<int64_t>().subspan(0, 3), ElementsAre(1, 0, 0));
  EXPECT_EQ(plan.launch_sizes(0)->global_size()[0], 5);
}

TEST(Execute, LaunchesOfNoCoresCallNothing) {
  for (int64_t cores : {0, -3}) {
    ExecutionPlanBuilder builder;
    builder.AddBuffer(1, Bytes(64));
    builder.SetOutputBuffer(0);
    builder.AddKernel(Threaded(1, &CoreKernel, 0, cores));
    ExecutionPlan plan = Must(std::move(builder).Build());
    SVOD_ASSERT_OK(Execute(plan));
    EXPECT_EQ(plan.buffers()[0].ReadAs<int64_t>()[0], 0);
  }
}

TEST(Execute, E12LowestOpIndexWinsAndLaterGroupsDoNotStart) {
  TracedPlan traced(20);
  // One group of 18; 7 and 11 fail. Then one more group, and one more level.
  for (uint64_t i = 1; i <= 18; ++i) {
    traced.builder.AddKernel(TracedPlan::Kernel(i, {i}, 1, {}, i == 11 ? 3 : i == 7 ? 40 : 0));
  }
  traced.builder.AddKernel(TracedPlan::Kernel(19, {1}, 1));
  traced.builder.AddKernel(TracedPlan::Kernel(20, {20}, 1, {18}));
  ExecutionPlan plan = traced.Build();
  for (int round = 0; round < 20; ++round) {
    for (const ExecuteOptions& options : AllOptions()) {
      traced.trace.Clear();
      ExpectError(Execute(plan, options), absl::StatusCode::kInternal,
                  "execute: kernel 7 (k7): returned 40 on core 0, expected 0");
      for (int64_t tag : traced.trace.tags()) EXPECT_LE(tag, 18);
    }
  }
}

int32_t FailingCores(void* const*, const int64_t*, int64_t core, void*) {
  return core >= 3 ? static_cast<int32_t>(100 + core) : 0;
}

TEST(Execute, E12LowestCoreOfAKernelWins) {
  ExecutionPlanBuilder builder;
  builder.AddBuffer(1, Bytes(64));
  builder.SetOutputBuffer(0);
  builder.AddKernel(Threaded(9, &FailingCores, 0, 64));
  ExecutionPlan plan = Must(std::move(builder).Build());
  for (const ExecuteOptions& options : AllOptions()) {
    ExpectError(Execute(plan, options), absl::StatusCode::kInternal,
                "execute: kernel 9 (k9): returned 103 on core 3, expected 0");
  }
}

TEST(Execute, E13FixedVariablesDecideLaunchesAndValuesGoToTheKernel) {
  auto context = std::make_shared<Context>();
  TracedPlan traced(1);
  PreparedKernel kernel = TracedPlan::Kernel(1, {1}, 1);
  auto compiled = std::make_shared<CompiledKernel>(*kernel.kernel);
  compiled->context = context;
  compiled->global_size[0] =
      Must(context->Make(Op::kDefineVar, {}, VariableArgument{"v2", 0, 100}));
  kernel.kernel = compiled;
  kernel.fixed_variables["v2"] = 3;
  kernel.values[2] = 77;  // not baked: the kernel gets what stands in the values
  traced.builder.AddKernel(std::move(kernel));
  ExecutionPlan plan = traced.Build();
  SVOD_ASSERT_OK(Execute(plan, {.serial = true}));
  ASSERT_EQ(traced.trace.size, 3);
  for (int64_t core = 0; core < 3; ++core) {
    EXPECT_EQ(traced.trace.events[static_cast<size_t>(core)].core, core);
    EXPECT_EQ(traced.trace.events[static_cast<size_t>(core)].variable, 77);
  }
}

TEST(Execute, E16LocalSizeIsOptionalAndChangesNothingOnTheCpu) {
  TracedPlan traced(1);
  PreparedKernel kernel = TracedPlan::Kernel(1, {1}, 1);
  auto context = std::make_shared<Context>();
  auto compiled = std::make_shared<CompiledKernel>(*kernel.kernel);
  compiled->context = context;
  compiled->local_size.emplace();
  (*compiled->local_size)[0] = context->Index(8);
  kernel.kernel = compiled;
  traced.builder.AddKernel(std::move(kernel));
  ExecutionPlan plan = traced.Build();
  EXPECT_THAT(*plan.launch_sizes(0)->local_size(), ElementsAre(8, 1, 1));
  SVOD_ASSERT_OK(Execute(plan));
  EXPECT_THAT(traced.trace.tags(), ElementsAre(1));
}

TEST(Execute, E17FailuresNameTheKernel) {
  TracedPlan traced(1);
  traced.builder.AddKernel(TracedPlan::Kernel(5, {1}, 1, {}, -2));
  ExecutionPlan plan = traced.Build();
  ExpectError(Execute(plan), absl::StatusCode::kInternal,
              "execute: kernel 5 (k5): returned -2 on core 0, expected 0");
}

TEST(Execute, E18PlanNeverSetsCoreIdInTheValues) {
  TracedPlan traced(1);
  PreparedKernel kernel = TracedPlan::Kernel(1, {1}, 1);
  auto compiled = std::make_shared<CompiledKernel>(*kernel.kernel);
  compiled->variable_names[2] = "core_id";
  kernel.kernel = compiled;
  kernel.fixed_variables.erase("v2");
  kernel.values[2] = 41;
  traced.builder.AddKernel(std::move(kernel));
  ExecutionPlan plan = traced.Build();
  SVOD_ASSERT_OK(ExecuteWithVariables(plan, {{"core_id", 9}}));
  EXPECT_EQ(traced.trace.events[0].variable, 41);
  EXPECT_EQ(traced.trace.events[0].core, 0);
}

TEST(Execute, E19E20E21CopiesMoveAllBytes) {
  ExecutionPlanBuilder builder;
  Buffer memory = Bytes(48);
  SVOD_ASSERT_OK(memory.CopyFrom<int64_t>({1, 2, 3, 4, 5, 6}));
  builder.AddBuffer(1, Must(memory.View(8, 32)));
  builder.AddBuffer(2, Must(memory.View(0, 32)));
  builder.SetOutputBuffer(0);
  builder.AddOp(PreparedCopy{1, {0, 1, 77}, {}});
  ExecutionPlan plan = Must(std::move(builder).Build());
  SVOD_ASSERT_OK(Execute(plan));
  EXPECT_THAT(memory.ReadAs<int64_t>(), ElementsAre(1, 1, 2, 3, 4, 6));
}

TEST(Execute, E22E23E24ViewsMoveAndCostNothing) {
  ExecutionPlanBuilder builder;
  Buffer memory = Bytes(64);
  builder.AddBuffer(1, memory);
  builder.AddBuffer(2, Must(memory.View(8, 8)));
  builder.SetOutputBuffer(1);
  builder.AddOp(PreparedBufferView{1, {1, 0}, 8, 8, {}});
  PreparedKernel kernel = FakeKernel(2, &BumpKernel, {0}, {0}, {5});
  kernel.dependencies = {1};
  builder.AddKernel(std::move(kernel));
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_EQ(plan.program().records.size(), 1u);
  SVOD_ASSERT_OK(Execute(plan));
  EXPECT_THAT(memory.ReadAs<int64_t>().subspan(0, 2), ElementsAre(5, 0));
}

// A plan of one custom function on two buffers, with variable n fixed to 5.
ExecutionPlan CustomPlan(CustomFunction function) {
  auto registry = std::make_shared<CustomFunctionRegistry>();
  EXPECT_TRUE(registry->Register("sort", std::move(function)).ok());
  auto context = std::make_shared<Context>();
  ExecutionPlanBuilder builder;
  builder.SetCustomFunctions(registry);
  builder.AddBuffer(1, Bytes(64));
  builder.AddBuffer(2, Bytes(64));
  builder.SetOutputBuffer(0);
  PreparedCustomFunction custom;
  custom.id = 8;
  custom.kind = "sort";
  custom.context = context;
  custom.attributes = {context->Index(3)};
  custom.buffer_indices = {1, 0};
  custom.fixed_variables = {{"n", 5}};
  custom.runtime_variables = {{"m", 1, 10}, {"n", 0, 5}};
  builder.AddOp(std::move(custom));
  return Must(std::move(builder).Build());
}

TEST(Execute, E25E28CustomFunctionsGetHandlesOfThePlansBuffers) {
  ExecutionPlan plan = CustomPlan([](const CustomCall& call) {
    EXPECT_EQ(call.buffers.size(), 2u);
    EXPECT_EQ(ConstInt(call.attributes[0]), 3);
    return call.buffers[1].CopyFrom<int64_t>({1, 2, 3, 4, 5, 6, 7, 8});
  });
  SVOD_ASSERT_OK(Execute(plan));
  EXPECT_EQ(plan.buffers()[0].ReadAs<int64_t>()[7], 8);
  // Rebinding reaches the function as well.
  Buffer other = Bytes(64);
  SVOD_ASSERT_OK(plan.Rebind(0, other));
  SVOD_ASSERT_OK(Execute(plan));
  EXPECT_EQ(other.ReadAs<int64_t>()[0], 1);
}

TEST(Execute, E26CustomFunctionsSeeStickyVariablesUnderFixedOnes) {
  VariableMap seen;
  ExecutionPlan plan = CustomPlan([&](const CustomCall& call) {
    seen = call.variables;
    return absl::OkStatus();
  });
  SVOD_ASSERT_OK(Execute(plan));
  EXPECT_THAT(seen, ElementsAre(Pair("n", 5)));
  SVOD_ASSERT_OK(ExecuteWithVariables(plan, {{"m", 2}, {"n", 99}, {"unknown", 1}}));
  EXPECT_THAT(seen, ElementsAre(Pair("m", 2), Pair("n", 5), Pair("unknown", 1)));
  SVOD_ASSERT_OK(Execute(plan));
  EXPECT_EQ(seen.at("m"), 2);
  ExpectError(ExecuteWithVariables(plan, {{"m", 11}}), absl::StatusCode::kOutOfRange,
              "plan: custom function op 8 (\"sort\"): variable m, got 11, expected 1 to 10");
}

TEST(Execute, E27UnimplementedPassesUnchangedAndOtherErrorsGetTheOp) {
  absl::Status answer = absl::UnimplementedError("no such codec");
  ExecutionPlan plan = CustomPlan([&](const CustomCall&) { return answer; });
  ExpectError(Execute(plan), absl::StatusCode::kUnimplemented, "no such codec");
  answer = absl::ResourceExhaustedError("disk full");
  ExpectError(Execute(plan), absl::StatusCode::kResourceExhausted,
              "execute: custom function op 8 (\"sort\"): disk full");
  answer = absl::OkStatus();
  SVOD_EXPECT_OK(Execute(plan));
}

TEST(Execute, E27ExceptionsOfCustomFunctionsBecomeErrors) {
  ExecutionPlan plan =
      CustomPlan([](const CustomCall&) -> absl::Status { throw std::runtime_error("thrown"); });
  ExpectError(Execute(plan), absl::StatusCode::kInternal,
              "execute: custom function op 8 (\"sort\"): exception: thrown");
}

int32_t FailOnDemand(void* const* buffers, const int64_t* variables, int64_t, void*) {
  *static_cast<int64_t*>(buffers[0]) += 1;
  return static_cast<int32_t>(variables[0]);
}

TEST(Execute, E29PlanIsUsableAfterAFailedRun) {
  ExecutionPlanBuilder builder;
  builder.AddBuffer(1, Bytes(64));
  builder.AddBuffer(2, Bytes(64));
  builder.SetOutputBuffer(1);
  PreparedKernel kernel = FakeKernel(1, &FailOnDemand, {0}, {0}, {0});
  kernel.fixed_variables.clear();
  builder.AddKernel(std::move(kernel));
  builder.AddOp(PreparedCopy{2, {1, 0}, {1}});
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_FALSE(ExecuteWithVariables(plan, {{"v0", 6}}).ok());
  EXPECT_EQ(plan.output_buffer()->ReadAs<int64_t>()[0], 0);  // the later level did not start
  SVOD_ASSERT_OK(ExecuteWithVariables(plan, {{"v0", 0}}));
  EXPECT_EQ(plan.output_buffer()->ReadAs<int64_t>()[0], 2);
}

TEST(Execute, D15EmptyPlansSucceed) {
  ExecutionPlan plan = Must(ExecutionPlanBuilder().Build());
  for (const ExecuteOptions& options : AllOptions()) {
    SVOD_EXPECT_OK(Execute(plan, options));
    EXPECT_THAT(Must(ExecuteProfiled(plan, options)), IsEmpty());
  }
}

TEST(Execute, D16LevelsRunAndTheFlatOrderDoesNot) {
  // In flat order op 4 comes last; by level it comes before 2 and 3.
  TracedPlan traced(4);
  traced.builder.AddKernel(TracedPlan::Kernel(1, {1}, 1));
  traced.builder.AddKernel(TracedPlan::Kernel(2, {2}, 1, {1}));
  traced.builder.AddKernel(TracedPlan::Kernel(3, {3}, 1, {2}));
  traced.builder.AddKernel(TracedPlan::Kernel(4, {4}, 1));
  ExecutionPlan plan = traced.Build();
  EXPECT_THAT(plan.op_order(), ElementsAre(0, 1, 2, 3));
  SVOD_ASSERT_OK(Execute(plan, {.serial = true}));
  EXPECT_THAT(traced.trace.tags(), ElementsAre(1, 4, 2, 3));
}

TEST(Execute, ASecondRunIsRefusedWhileOneIsOn) {
  struct Gate {
    std::atomic<int> state{0};  // 1: inside, 2: may leave
    static int32_t Pass(void* const* buffers, const int64_t*, int64_t, void*) {
      auto* gate = static_cast<Gate*>(buffers[0]);
      gate->state = 1;
      while (gate->state != 2) std::this_thread::yield();
      return 0;
    }
  } gate;
  ExecutionPlanBuilder builder;
  builder.AddBuffer(1, Must(Buffer::Wrap(&gate, sizeof(gate))));
  builder.SetOutputBuffer(0);
  builder.AddKernel(FakeKernel(1, &Gate::Pass, {0}, {0}));
  ExecutionPlan plan = Must(std::move(builder).Build());
  std::thread runner([&] { SVOD_EXPECT_OK(Execute(plan)); });
  while (gate.state != 1) std::this_thread::yield();
  absl::string_view message = "plan: in use by another call, expected one at a time";
  ExpectError(Execute(plan), absl::StatusCode::kFailedPrecondition, message);
  ExpectError(ExecuteProfiled(plan).status(), absl::StatusCode::kFailedPrecondition, message);
  ExpectError(ExecuteWithVariables(plan, {}), absl::StatusCode::kFailedPrecondition, message);
  ExpectError(plan.Rebind(0, Bytes(64)), absl::StatusCode::kFailedPrecondition, message);
  gate.state = 2;
  runner.join();
  SVOD_EXPECT_OK(plan.SetVariables({}));
}

}  // namespace
}  // namespace svod
