// The thread sanitizer sees races between kernels: neither the way tasks are handed over nor
// tests/tsan.supp hides them.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "executor/executor.h"
#include "gmock/gmock.h"
#include "tests/unit/plan/fake_kernels.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SVOD_TEST_THREAD_SANITIZER 1
#endif
#endif

namespace svod {
namespace {

#ifdef SVOD_TEST_THREAD_SANITIZER
int64_t hidden_counter = 0;

// Touches memory that the plan knows nothing of, once a second thread has come: a busy machine may
// let the first one run many kernels before. Relaxed order makes no happens-before edge.
int32_t RacyKernel(void* const*, const int64_t*, int64_t, void*) {
  static std::atomic<int> num_threads_seen{0};
  thread_local bool is_counted = false;
  if (!is_counted) num_threads_seen.fetch_add(1, std::memory_order_relaxed);
  is_counted = true;
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (num_threads_seen.load(std::memory_order_relaxed) < 2 &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  ++hidden_counter;
  return 0;
}

void RunRacyPlan() {
  ExecutionPlanBuilder builder;
  for (uint64_t i = 0; i < 32; ++i) {
    builder.AddBuffer(i, Bytes(64));
    PreparedKernel kernel = FakeKernel(i, &RacyKernel, {i}, {0});
    kernel.cost_ns = 1e6;
    builder.AddKernel(std::move(kernel));
  }
  builder.SetOutputBuffer(0);
  ExecutionPlan plan = Must(std::move(builder).Build());
  auto executor = Must(Executor::Create(2));
  for (int run = 0; run < 50; ++run) SVOD_EXPECT_OK(Execute(plan, {.executor = executor.get()}));
  std::exit(0);  // the sanitizer turns this into its own code once it has reported something
}

TEST(SanitizerDeathTest, RacesBetweenKernelsAreReported) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(RunRacyPlan(), ::testing::ExitedWithCode(66), "data race");
}
#endif

}  // namespace
}  // namespace svod
