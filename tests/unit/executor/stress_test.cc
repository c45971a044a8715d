// Generated plans: random kernels and copies over overlapping views. The parallel run, the serial
// run and a simulation of the program agree on every byte, on 1, 2, 3 and 8 threads.
#include <oneapi/tbb/global_control.h>

#include "gmock/gmock.h"
#include "tests/unit/executor/stress_program.h"

namespace svod::stress {
namespace {

// Without this a machine of two cores never has more than two threads in an arena. It is the
// test's right; the library leaves the process's limits alone.
const tbb::global_control* const kAllowThreads =
    new tbb::global_control(tbb::global_control::max_allowed_parallelism, 8);

class Stress : public ::testing::TestWithParam<int> {};

TEST_P(Stress, ParallelSerialAndSimulatedRunsAgree) {
  int threads = GetParam();
  auto executor = Must(Executor::Create(threads));
  size_t num_parallel = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Program program = Generate(seed);
    Built parallel = Build(program), serial = Build(program);
    num_parallel += parallel.plan.program().has_parallel_segments ? 1 : 0;
    for (int runs = 1; runs <= 3; ++runs) {
      Arenas expected = Simulate(program, runs);
      SVOD_ASSERT_OK(Execute(parallel.plan, {.executor = executor.get()}));
      SVOD_ASSERT_OK(Execute(serial.plan, {.serial = true}));
      ASSERT_EQ(Contents(parallel.arenas), expected) << "seed " << seed << " run " << runs;
      ASSERT_EQ(Contents(serial.arenas), expected) << "seed " << seed << " run " << runs;
    }
  }
  EXPECT_GT(num_parallel, 30u);  // the programs do test something
}

INSTANTIATE_TEST_SUITE_P(Threads, Stress, ::testing::Values(1, 2, 3, 8),
                         ::testing::PrintToStringParamName());

TEST(TaskRunner, CallsEveryTaskOnceOnAnyNumberOfThreads) {
  for (int threads : {1, 2, 8}) {
    auto executor = Must(Executor::Create(threads));
    TaskRunner runner = MakeTbbTaskRunner(executor.get());
    for (int num_tasks : {0, 1, 2, 100}) {
      // Plain integers: the sanitizer sees whether tasks and the caller are ordered.
      std::vector<int> calls(static_cast<size_t>(num_tasks), 0);
      runner(num_tasks, [&](int task) { ++calls[static_cast<size_t>(task)]; });
      EXPECT_THAT(calls, ::testing::Each(1));
      EXPECT_EQ(calls.size(), static_cast<size_t>(num_tasks));
    }
  }
  int sum = 0;
  MakeTbbTaskRunner()(1, [&](int task) { sum += task + 1; });
  EXPECT_EQ(sum, 1);
}

// Threads of a run never share a scratch block.
TEST(Scratch, EveryRunningKernelHasABlockOfItsOwn) {
  struct Fill {
    static int32_t Check(void* const* buffers, const int64_t* variables, int64_t core, void* at) {
      auto* scratch = static_cast<volatile int64_t*>(at);
      int64_t mark = variables[0] * 1000 + core;
      for (int i = 0; i < 64; ++i) scratch[i] = mark;
      for (int i = 0; i < 64; ++i) {
        if (scratch[i] != mark) return 1;
      }
      static_cast<int64_t*>(buffers[0])[core] = mark;
      return 0;
    }
  };
  auto context = std::make_shared<Context>();
  ExecutionPlanBuilder builder;
  builder.SetMaxScratchThreads(8);
  for (uint64_t i = 0; i < 20; ++i) {
    builder.AddBuffer(i, Bytes(64));
    PreparedKernel kernel = FakeKernel(i, &Fill::Check, {i}, {0}, {static_cast<int64_t>(i)});
    auto compiled = std::make_shared<CompiledKernel>(*kernel.kernel);
    compiled->context = context;
    compiled->global_size[0] = context->Index(8);
    compiled->scratch_bytes = 64 * 8;
    kernel.kernel = compiled;
    builder.AddKernel(std::move(kernel));
  }
  builder.SetOutputBuffer(0);
  ExecutionPlan plan = Must(std::move(builder).Build());
  auto executor = Must(Executor::Create(8));
  for (int run = 0; run < 20; ++run) {
    SVOD_ASSERT_OK(Execute(plan, {.executor = executor.get()}));
  }
  EXPECT_EQ(plan.buffers()[19].ReadAs<int64_t>()[7], 19007);
}

}  // namespace
}  // namespace svod::stress
