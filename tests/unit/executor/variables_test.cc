// Runs with variables and profiles: rows V1 and V5, and P1 to P7 of docs/seed.md.
#include <chrono>

#include "executor/executor.h"
#include "executor/trace.h"
#include "gmock/gmock.h"
#include "tests/unit/plan/fake_kernels.h"

namespace svod {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// A traced kernel whose third value is the free variable v2 in [1, 64].
PreparedKernel FreeKernel(uint64_t id, std::vector<size_t> buffers, int32_t code = 0) {
  PreparedKernel kernel = TracedPlan::Kernel(id, std::move(buffers), 1, {}, code);
  kernel.fixed_variables.erase("v2");
  kernel.runtime_variables = {{"v2", 1, 64}};
  kernel.values[2] = 8;
  return kernel;
}

TEST(ExecuteWithVariables, V1ChecksAllThenUpdatesThenRuns) {
  TracedPlan traced(1);
  traced.builder.AddKernel(FreeKernel(1, {1}));
  ExecutionPlan plan = traced.Build();
  ExpectError(ExecuteWithVariables(plan, {{"v2", 65}}), absl::StatusCode::kOutOfRange,
              "plan: kernel 1 (k1): variable v2, got 65, expected 1 to 64");
  EXPECT_EQ(traced.trace.size, 0);
  SVOD_ASSERT_OK(ExecuteWithVariables(plan, {{"v2", 64}}));
  EXPECT_EQ(traced.trace.events[0].variable, 64);
}

TEST(ExecuteWithVariables, V5ValuesStickFromRunToRun) {
  TracedPlan traced(1);
  traced.builder.AddKernel(FreeKernel(1, {1}));
  ExecutionPlan plan = traced.Build();
  SVOD_ASSERT_OK(Execute(plan));
  SVOD_ASSERT_OK(ExecuteWithVariables(plan, {{"v2", 3}}));
  SVOD_ASSERT_OK(Execute(plan));
  SVOD_ASSERT_OK(ExecuteWithVariables(plan, {}));
  std::vector<int64_t> seen;
  for (int64_t i = 0; i < traced.trace.size; ++i) seen.push_back(traced.trace.events[i].variable);
  EXPECT_THAT(seen, ElementsAre(8, 3, 3, 3));
}

// Reported case 15: one plan run with n = 1, 2, 3, 4 covers 1, 2, 3, 4 elements.
TEST(ExecuteWithVariables, EveryValueOfAVariableIsHonoured) {
  struct Fill {
    // buffers[0][core] = 1 for every core of a launch as wide as n.
    static int32_t One(void* const* buffers, const int64_t*, int64_t core, void*) {
      static_cast<int64_t*>(buffers[0])[core] = 1;
      return 0;
    }
  };
  auto context = std::make_shared<Context>();
  const UOp* n = Must(context->Make(Op::kDefineVar, {}, VariableArgument{"n", 0, 8}));
  auto compiled = FakeCompiled(&Fill::One, 0);
  compiled->variable_names = {"n"};
  compiled->context = context;
  compiled->global_size[0] = n;
  PreparedKernel kernel = FakeKernel(1, &Fill::One, {0}, {0});
  kernel.kernel = compiled;
  kernel.values = {0};
  kernel.runtime_variables = CollectRuntimeVars(n);
  ExecutionPlanBuilder builder;
  builder.AddBuffer(1, Bytes(64));
  builder.SetOutputBuffer(0);
  builder.AddKernel(std::move(kernel));
  builder.AddOutput({"y", Scalar::kI64, Access::kOut, 0, {n}, {8}});
  ExecutionPlan plan = Must(std::move(builder).Build());
  for (int64_t value : {1, 2, 3, 4, 8, 0, 2}) {
    SVOD_ASSERT_OK(plan.output_buffer()->CopyFrom(Bytes(64)));
    SVOD_ASSERT_OK(ExecuteWithVariables(plan, {{"n", value}}));
    EXPECT_THAT(plan.outputs()[0].shape, ElementsAre(value));
    EXPECT_THAT(plan.outputs()[0].max_shape, ElementsAre(8));
    EXPECT_EQ(plan.outputs()[0].size_bytes(), value * 8);
    int64_t sum = 0;
    for (int64_t element : plan.output_buffer()->ReadAs<int64_t>()) sum += element;
    EXPECT_EQ(sum, value);
  }
}

TEST(ExecuteWithVariables, ShapesThatChangeWhetherWorkForks) {
  // With 1 core the group is one chunk; with 64 it is cut; back and forth.
  auto context = std::make_shared<Context>();
  const UOp* n = Must(context->Make(Op::kDefineVar, {}, VariableArgument{"n", 1, 64}));
  struct Count {
    static int32_t Core(void* const* buffers, const int64_t*, int64_t core, void*) {
      static_cast<int64_t*>(buffers[0])[core] += 1;
      return 0;
    }
  };
  auto compiled = FakeCompiled(&Count::Core, 0);
  compiled->variable_names = {"n"};
  compiled->context = context;
  compiled->global_size[0] = n;
  PreparedKernel kernel = FakeKernel(1, &Count::Core, {0}, {0});
  kernel.kernel = compiled;
  kernel.values = {1};
  ExecutionPlanBuilder builder;
  builder.AddBuffer(1, Bytes(64 * 8));
  builder.SetOutputBuffer(0);
  builder.AddKernel(std::move(kernel));
  ExecutionPlan plan = Must(std::move(builder).Build());
  auto executor = Must(Executor::Create(4));
  EXPECT_FALSE(plan.program().has_parallel_segments);
  int64_t first = 0, last = 0;
  for (int64_t value : {64, 1, 64, 2, 64}) {
    SVOD_ASSERT_OK(ExecuteWithVariables(plan, {{"n", value}}, {.executor = executor.get()}));
    EXPECT_EQ(plan.program().has_parallel_segments, value > 1);
    ++first;
    last += value == 64 ? 1 : 0;
    EXPECT_EQ(plan.output_buffer()->ReadAs<int64_t>()[0], first);
    EXPECT_EQ(plan.output_buffer()->ReadAs<int64_t>()[63], last);
  }
}

TEST(Profile, P1OneRecordForEveryKernelAndForNothingElse) {
  TracedPlan traced(3);
  traced.builder.AddKernel(TracedPlan::Kernel(1, {1}, 1));
  traced.builder.AddOp(PreparedCopy{2, {2, 3}, {1}});
  traced.builder.AddKernel(TracedPlan::Kernel(3, {3}, 1, {2}));
  ExecutionPlan plan = traced.Build();
  std::vector<KernelProfile> profiles = Must(ExecuteProfiled(plan));
  ASSERT_THAT(profiles, SizeIs(2));
  EXPECT_EQ(profiles[0].id, 1u);
  EXPECT_EQ(profiles[1].id, 3u);
  EXPECT_THAT(traced.trace.tags(), ElementsAre(1, 3));
}

int32_t Spin(void* const*, const int64_t* variables, int64_t, void*) {
  auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(variables[0]);
  while (std::chrono::steady_clock::now() < end) {
  }
  return 0;
}

TEST(Profile, P2RecordsHoldTheKernelItsDeviceBuffersAndTime) {
  ExecutionPlanBuilder builder;
  builder.AddBuffer(1, Bytes(64));
  builder.AddBuffer(2, Bytes(64));
  builder.SetOutputBuffer(0);
  PreparedKernel kernel = FakeKernel(7, &Spin, {0, 1}, {0}, {200});
  kernel.device = {"cpu", 3};
  builder.AddKernel(kernel);
  ExecutionPlan plan = Must(std::move(builder).Build());
  std::vector<KernelProfile> profiles = Must(ExecuteProfiled(plan));
  ASSERT_THAT(profiles, SizeIs(1));
  EXPECT_EQ(profiles[0].kernel, kernel.kernel);
  EXPECT_EQ(ToString(profiles[0].device), "cpu:3");
  EXPECT_EQ(profiles[0].num_buffers, 2u);
  EXPECT_THAT(profiles[0].global_size, ElementsAre(1, 1, 1));
  EXPECT_GE(profiles[0].elapsed_ns, 200000);
}

TEST(Profile, P3LevelsThenGroupsThenOpIndices) {
  TracedPlan traced(4);
  traced.builder.AddKernel(TracedPlan::Kernel(1, {1}, 1, {4}));  // level 1
  traced.builder.AddKernel(TracedPlan::Kernel(2, {2}, 1));       // level 0, first group
  traced.builder.AddKernel(TracedPlan::Kernel(3, {3, 2}, 1));    // level 0, second group
  traced.builder.AddKernel(TracedPlan::Kernel(4, {4}, 1));       // level 0, first group
  ExecutionPlan plan = traced.Build();
  auto executor = Must(Executor::Create(3));
  for (bool serial : {false, true}) {
    std::vector<uint64_t> ids;
    for (const KernelProfile& profile :
         Must(ExecuteProfiled(plan, {.serial = serial, .executor = executor.get()}))) {
      ids.push_back(profile.id);
    }
    EXPECT_THAT(ids, ElementsAre(2, 4, 3, 1));
  }
}

TEST(Profile, P4P5KernelsAndThreadedKernelsAreTimedOneByOne) {
  auto context = std::make_shared<Context>();
  ExecutionPlanBuilder builder;
  for (uint64_t i = 0; i < 2; ++i) builder.AddBuffer(i, Bytes(64));
  builder.SetOutputBuffer(0);
  PreparedKernel threaded = FakeKernel(1, &Spin, {0}, {0}, {50});
  auto compiled = std::make_shared<CompiledKernel>(*threaded.kernel);
  compiled->context = context;
  compiled->global_size[0] = context->Index(8);
  threaded.kernel = compiled;
  builder.AddKernel(std::move(threaded));
  PreparedKernel single = FakeKernel(2, &Spin, {1}, {0}, {100});
  single.cost_ns = 1e6;
  builder.AddKernel(std::move(single));
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_TRUE(plan.program().has_parallel_segments);
  auto executor = Must(Executor::Create(2));
  std::vector<KernelProfile> profiles = Must(ExecuteProfiled(plan, {.executor = executor.get()}));
  ASSERT_THAT(profiles, SizeIs(2));
  EXPECT_EQ(profiles[0].global_size[0], 8);
  // Eight cores of 50 us on at most two threads; from the first one's start to the last one's end.
  EXPECT_GE(profiles[0].elapsed_ns, 200000);
  EXPECT_GE(profiles[1].elapsed_ns, 100000);
}

TEST(Profile, P6VariablesAreCheckedAsInAPlainRun) {
  TracedPlan traced(1);
  traced.builder.AddKernel(FreeKernel(1, {1}));
  ExecutionPlan plan = traced.Build();
  EXPECT_EQ(ExecuteWithVariablesProfiled(plan, {{"v2", 0}}).status().code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(traced.trace.size, 0);
  EXPECT_THAT(Must(ExecuteWithVariablesProfiled(plan, {{"v2", 9}})), SizeIs(1));
  EXPECT_EQ(traced.trace.events[0].variable, 9);
}

TEST(Profile, P7ErrorsGiveNoRecords) {
  TracedPlan traced(2);
  traced.builder.AddKernel(TracedPlan::Kernel(1, {1}, 1));
  traced.builder.AddKernel(TracedPlan::Kernel(2, {2}, 1, {1}, 4));
  ExecutionPlan plan = traced.Build();
  ExpectError(ExecuteProfiled(plan).status(), absl::StatusCode::kInternal,
              "execute: kernel 2 (k2): returned 4 on core 0, expected 0");
}

TEST(Trace, IsJsonOfCompleteEvents) {
  auto compiled = FakeCompiled(&Spin, 0, "say \"hi\"\n");
  KernelProfile profile;
  profile.kernel = compiled;
  profile.id = 5;
  profile.op_index = 2;
  profile.num_buffers = 3;
  profile.global_size = {4, 1, 1};
  profile.start_ns = 1500;
  profile.elapsed_ns = 250;
  profile.thread = 1;
  EXPECT_EQ(ChromeTrace({profile, profile}),
            "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"
            "{\"name\": \"say \\\"hi\\\"\\u000a\", \"cat\": \"kernel\", \"ph\": \"X\", \"pid\": 1, "
            "\"tid\": 1, \"ts\": 1.500, \"dur\": 0.250, \"args\": {\"id\": 5, \"op\": 2, "
            "\"device\": \"cpu\", \"buffers\": 3, \"global_size\": [4, 1, 1]}},\n"
            "{\"name\": \"say \\\"hi\\\"\\u000a\", \"cat\": \"kernel\", \"ph\": \"X\", \"pid\": 1, "
            "\"tid\": 1, \"ts\": 1.500, \"dur\": 0.250, \"args\": {\"id\": 5, \"op\": 2, "
            "\"device\": \"cpu\", \"buffers\": 3, \"global_size\": [4, 1, 1]}}\n]}\n");
  EXPECT_EQ(ChromeTrace({}), "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n]}\n");
}

}  // namespace
}  // namespace svod
