#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "jit/kernel_cache.h"
#include "tests/unit/jit/fake_compiler.h"

namespace svod {
namespace {

using ::testing::StartsWith;

void RunOnThreads(int num_tasks, const std::function<void(int)>& task) {
  std::atomic<int> next = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = next++; i < num_tasks; i = next++) task(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(KernelCacheConcurrencyTest, CompileAllOnThreads) {
  FakeCompiler compiler;
  auto cache = Create(compiler.Options());
  Context context;
  std::vector<const UOp*> sinks;
  for (int i = 0; i < 40; ++i) sinks.push_back(Constant(context, absl::StrCat("k", i % 30), 1));
  auto results = cache->CompileAll(sinks, {}, RunOnThreads);
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(results[i].ok()) << results[i].status();
    EXPECT_THAT((*results[i])->name, StartsWith(absl::StrCat("svod_k", i % 30, "_")));
  }
  EXPECT_EQ(compiler.compiles, 30);
}

TEST(KernelCacheConcurrencyTest, ManyThreadsCompileOneKernelOnce) {
  FakeCompiler compiler;
  compiler.delay_ms = 50;
  auto cache = Create(compiler.Options());
  std::vector<std::thread> threads;
  std::vector<KernelPtr> kernels(6);
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      Context context;
      const UOp* sink = Constant(context, "k", 1);
      // Both ways in lead to one compilation.
      kernels[t] = t % 2 == 0 ? *cache->GetOrCompile(sink) : *cache->GetOrCompileFinal(sink);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(compiler.compiles, 1);
  for (const KernelPtr& kernel : kernels) EXPECT_EQ(kernel, kernels[0]);
  EXPECT_EQ(cache->stats().hits + cache->stats().misses, 6);
}

TEST(KernelCacheConcurrencyTest, FailureReachesEveryWaiter) {
  FakeCompiler compiler;
  compiler.delay_ms = 50;
  compiler.fails = true;
  auto cache = Create(compiler.Options());
  Context context;
  const UOp* sink = Constant(context, "k", 1);
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      if (cache->GetOrCompile(sink).status() == absl::UnimplementedError("fake: not today")) {
        ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 6);
  compiler.fails = false;
  EXPECT_TRUE(cache->GetOrCompile(sink).ok());
}

// Requests, evictions, look-ups, statistics and Clear at once; each kernel must be the right one.
TEST(KernelCacheConcurrencyTest, EverythingAtOnce) {
  KernelCacheOptions options;
  options.optimize = [](const UOp* sink, Context&, const CompileOptions&) {
    return absl::StatusOr<const UOp*>(sink);
  };
  constexpr int kKernels = 24;
  std::vector<std::string> objects;
  for (int i = 0; i < kKernels; ++i) objects.push_back(ObjectThatReturns("f", i));
  options.compile = [&](const UOp* sink, const CompileOptions&) {
    ObjectCode object;
    object.entry = "f";
    object.bytes = objects[std::stoi(std::string(sink->arg<FunctionArgument>().name.substr(1)))];
    return absl::StatusOr<ObjectCode>(object);
  };
  options.capacity_bytes = 64 * 10;
  auto cache = Create(options);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      Context context;
      for (int step = 0; step < 400; ++step) {
        int i = static_cast<int>(random() % kKernels);
        const UOp* sink = Constant(context, absl::StrCat("k", i), 1);
        auto kernel = cache->GetOrCompile(sink);
        ASSERT_TRUE(kernel.ok()) << kernel.status();
        ASSERT_EQ(Call(*kernel), i);
        if (step % 50 == 0) cache->Clear();
        if (step % 7 == 0) {
          ASSERT_GE(cache->stats().code_bytes, 0);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  KernelCacheStats stats = cache->stats();
  EXPECT_EQ(stats.hits + stats.misses, 4 * 400);
  EXPECT_EQ(stats.linked_code_bytes, stats.code_bytes);
  EXPECT_EQ(stats.code_bytes, stats.kernels * 64);
}

}  // namespace
}  // namespace svod
