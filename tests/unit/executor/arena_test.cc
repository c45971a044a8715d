// Whose threads a plan runs on: the embedder's arena, an executor's, several at once.
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <thread>

#include "gmock/gmock.h"
#include "tests/unit/executor/stress_program.h"

namespace svod::stress {
namespace {

TEST(Arena, PlansRunInsideTheCallersArena) {
  Program program = Generate(5);
  Arenas expected = Simulate(program, 1);
  tbb::task_arena arena(4);
  arena.execute([&] {
    Built built = Build(program);
    SVOD_EXPECT_OK(Execute(built.plan));
    EXPECT_EQ(Contents(built.arenas), expected);
  });
}

TEST(Arena, ManyPlansRunAtOnceFromTasksOfTheEmbedder) {
  // Each task runs a plan that forks in the arena that the task itself occupies.
  tbb::task_arena arena(8);
  std::atomic<int> num_right{0};
  arena.execute([&] {
    tbb::parallel_for(0, 32, [&](int i) {
      Program program = Generate(static_cast<uint32_t>(100 + i));
      Built built = Build(program);
      if (!Execute(built.plan).ok()) return;
      if (Contents(built.arenas) == Simulate(program, 1)) ++num_right;
    });
  });
  EXPECT_EQ(num_right, 32);
}

TEST(Arena, ThreadsShareOneExecutor) {
  auto executor = Must(Executor::Create(3));
  std::vector<std::thread> threads;
  std::atomic<int> num_right{0};
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 8; ++i) {
        Program program = Generate(200 + t * 8 + i);
        Built built = Build(program);
        if (!Execute(built.plan, {.executor = executor.get()}).ok()) continue;
        if (Contents(built.arenas) == Simulate(program, 1)) ++num_right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_right, 32);
}

TEST(Arena, TheProcessWideLimitStaysAsItWas) {
  auto limit = [] {
    return tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  };
  size_t before = limit();
  auto executor = Must(Executor::Create(2));
  Built built = Build(Generate(1));
  SVOD_ASSERT_OK(Execute(built.plan, {.executor = executor.get()}));
  EXPECT_EQ(limit(), before);
}

TEST(Arena, ExecutorsRefuseSillyNumbersOfThreads) {
  ExpectError(Executor::Create(0).status(), absl::StatusCode::kInvalidArgument,
              "executor: number of threads, got 0, expected 1 to 4096");
  EXPECT_FALSE(Executor::Create(1 << 20).ok());
  EXPECT_EQ(Must(Executor::Create(3))->num_threads(), 3);
}

}  // namespace
}  // namespace svod::stress
