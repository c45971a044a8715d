// Execute allocates nothing: every allocation of the process is counted, on all threads.
#include <atomic>
#include <cstdlib>
#include <memory>

#include "executor/executor.h"
#include "gmock/gmock.h"
#include "tests/unit/plan/fake_kernels.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SVOD_TEST_SANITIZER 1
#endif
#endif

namespace {
std::atomic<int64_t> num_allocations{0};
}  // namespace

#ifndef SVOD_TEST_SANITIZER
// The whole process goes through these: operator new, and libtbb. A sanitizer needs its own in
// their place.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  num_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  num_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
void* realloc(void* block, size_t size) {
  num_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(block, size);
}
void* memalign(size_t alignment, size_t size) {
  num_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  num_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** block, size_t alignment, size_t size) {
  num_allocations.fetch_add(1, std::memory_order_relaxed);
  *block = __libc_memalign(alignment, size);
  return *block == nullptr ? 12 : 0;
}
}
#endif

namespace svod {
namespace {

// Kernels write their scratch, so that a missing block would show.
int32_t UseScratch(void* const* buffers, const int64_t* variables, int64_t, void* scratch) {
  static_cast<int64_t*>(scratch)[0] = variables[0];
  *static_cast<int64_t*>(buffers[0]) += static_cast<int64_t*>(scratch)[0];
  return 0;
}

ExecutionPlan MakePlan(uint64_t num_kernels, bool chained, double cost_ns) {
  ExecutionPlanBuilder builder;
  builder.SetMaxScratchThreads(8);
  for (uint64_t i = 0; i < num_kernels; ++i) {
    builder.AddBuffer(i, Bytes(64));
    PreparedKernel kernel = FakeKernel(i, &UseScratch, {i}, {0}, {1});
    auto compiled = std::make_shared<CompiledKernel>(*kernel.kernel);
    compiled->scratch_bytes = 8;
    kernel.kernel = compiled;
    if (chained && i > 0) kernel.dependencies = {i - 1};
    kernel.cost_ns = cost_ns;
    builder.AddKernel(std::move(kernel));
  }
  builder.AddOp(PreparedCopy{num_kernels, {0, 1}, {0, 1}});
  builder.SetOutputBuffer(0);
  return Must(std::move(builder).Build());
}

int64_t AllocationsOf(ExecutionPlan& plan, const ExecuteOptions& options, int num_runs) {
  int64_t before = num_allocations;
  for (int i = 0; i < num_runs; ++i) {
    absl::Status status = Execute(plan, options);
    if (!status.ok()) ADD_FAILURE() << status.ToString();
  }
  return num_allocations - before;
}

class Allocation : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef SVOD_TEST_SANITIZER
    GTEST_SKIP() << "the sanitizer's allocator stands in the place of the counting one";
#endif
  }
};

TEST_F(Allocation, TheCounterCountsOurAllocationsAndThoseOfTbb) {
  int64_t before = num_allocations;
  auto value = std::make_unique<int>(1);
  EXPECT_EQ(num_allocations - before, 1) << *value;
  auto executor = Must(Executor::Create(2));
  before = num_allocations;
  MakeTbbTaskRunner(executor.get())(2, [](int) {});
  EXPECT_GT(num_allocations - before, 0);  // the arena, on its first use
}

TEST_F(Allocation, SerialRunsAllocateNothingFromTheFirstOneOn) {
  ExecutionPlan plan = MakePlan(100, true, 0);
  EXPECT_EQ(AllocationsOf(plan, {}, 1), 0);
  EXPECT_EQ(AllocationsOf(plan, {.serial = true}, 100), 0);
  EXPECT_EQ(plan.buffers()[99].ReadAs<int64_t>()[0], 101);
}

// oneTBB starts a thread, and makes its task pool, when it first gets work, which on a busy machine
// may be hundreds of runs late. A run that allocates by itself leaves no round quiet.
void ExpectQuietOnceThreadsAreUp(ExecutionPlan& plan, const ExecuteOptions& options) {
  constexpr int kRounds = 100;
  int64_t allocations = 1;
  for (int round = 0; round < kRounds && allocations > 0; ++round) {
    allocations = AllocationsOf(plan, options, 300);
  }
  EXPECT_EQ(allocations, 0);
}

TEST_F(Allocation, ParallelRunsAllocateNothingOnceThreadsAreUp) {
  ExecutionPlan plan = MakePlan(64, false, 1e6);
  ASSERT_TRUE(plan.program().has_parallel_segments);
  for (int threads : {2, 4, 8}) {
    SCOPED_TRACE(threads);
    auto executor = Must(Executor::Create(threads));
    ExpectQuietOnceThreadsAreUp(plan, {.executor = executor.get()});
  }
  SCOPED_TRACE("in the caller's arena");
  ExpectQuietOnceThreadsAreUp(plan, {});
}

}  // namespace
}  // namespace svod
