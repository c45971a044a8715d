#include "jit/kernel_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/unit/jit/fake_compiler.h"

namespace svod {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(KernelCacheTest, SecondRequestIsAHitOnTheSameKernel) {
  FakeCompiler compiler;
  auto cache = Create(compiler.Options());
  Context context;
  auto first = cache->GetOrCompile(Constant(context, "k", 1));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(Call(*first), 1);
  Context other;
  auto second = cache->GetOrCompile(Constant(other, "k", 1));
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(compiler.compiles, 1);
  EXPECT_EQ(compiler.optimisations, 1);
  KernelCacheStats stats = cache->stats();
  EXPECT_EQ(stats.hits, 1);
  EXPECT_EQ(stats.misses, 1);
  EXPECT_EQ(stats.compiles, 1);
  EXPECT_EQ(stats.kernels, 1);
  EXPECT_EQ(stats.code_bytes, (*first)->code_bytes);
  EXPECT_EQ(stats.linked_code_bytes, (*first)->code_bytes);
  EXPECT_GT(stats.compile_ms, 0);
  EXPECT_GT((*first)->compile_ms, 0);
}

TEST(KernelCacheTest, WhateverDecidesTheCodeIsInTheKey) {
  FakeCompiler compiler;
  auto cache = Create(compiler.Options());
  Context context;
  CompileOptions options;
  options.target = *HostTarget();
  auto get = [&](const UOp* sink) { return Call(*cache->GetOrCompile(sink, options)); };
  EXPECT_EQ(get(Constant(context, "k", 1)), 1);
  EXPECT_EQ(get(Constant(context, "k", 2)), 2);
  EXPECT_EQ(get(Constant(context, "other", 1)), 3);
  options.code_gen_level = 0;
  EXPECT_EQ(get(Constant(context, "k", 1)), 4);
  options.noalias = true;
  EXPECT_EQ(get(Constant(context, "k", 1)), 5);
  auto older = MakeTarget(
      "", options.target.architecture == Architecture::kX86_64 ? "x86-64" : "generic", "");
  options.target = *older;
  EXPECT_EQ(get(Constant(context, "k", 1)), 6);
  options = {};
  options.target = *HostTarget();
  EXPECT_EQ(get(Constant(context, "k", 1)), 1);
  options.target = {};  // the host
  EXPECT_EQ(get(Constant(context, "k", 1)), 1);
}

TEST(KernelCacheTest, KernelsThatOptimiseToOneShareItsCode) {
  FakeCompiler compiler;
  KernelCacheOptions options = compiler.Options();
  options.optimize = [](const UOp*, Context& context, const CompileOptions&) {
    return absl::StatusOr<const UOp*>(Constant(context, "same", 5));
  };
  auto cache = Create(options);
  Context context;
  auto a = cache->GetOrCompile(Constant(context, "a", 1));
  auto b = cache->GetOrCompile(Constant(context, "b", 2));
  EXPECT_EQ(*a, *b);
  EXPECT_EQ(cache->stats().compiles, 1);
  EXPECT_EQ(cache->stats().hits, 1);
  EXPECT_EQ(*cache->GetOrCompileFinal(Constant(context, "same", 5)), *a);
}

TEST(KernelCacheTest, KernelTellsWhatAPlanNeeds) {
  FakeCompiler compiler;
  auto cache = Create(compiler.Options());
  KernelPtr kernel;
  {
    Context context;
    const UOp* n = *context.Make(Op::kDefineVar, {}, VariableArgument{"n", 1, 9});
    const UOp* core = *context.Make(Op::kCoreId, {*context.Make(Op::kAdd, {n, context.Index(1)})});
    const UOp* y = *context.Make(Op::kParam, Scalar::kF32, {context.Index(16)},
                                 ParamArgument{0, Access::kOut, "y"});
    const UOp* index = *context.Make(Op::kIndex, {y, core});
    const UOp* store =
        *context.Make(Op::kStore, {index, context.Float(Scalar::kF32, 1)}, AlignmentArgument{});
    kernel =
        *cache->GetOrCompile(*context.Make(Op::kSink, {store}, FunctionArgument{true, "k", {}}));
  }  // nothing of the caller's context is needed any more
  EXPECT_THAT(kernel->name, StartsWith("svod_k_"));
  EXPECT_THAT(kernel->variable_names, ::testing::ElementsAre("n"));
  EXPECT_EQ(kernel->scratch_bytes, 128);
  ASSERT_NE(kernel->global_size[0], nullptr);
  EXPECT_EQ(kernel->global_size[0]->op(), Op::kAdd);
  EXPECT_EQ(kernel->global_size[1], nullptr);
  EXPECT_FALSE(kernel->local_size.has_value());
  EXPECT_THAT(kernel->source, HasSubstr("core_id"));
  EXPECT_THAT(kernel->source, ::testing::Not(HasSubstr("target")));
  EXPECT_TRUE(kernel->host_parallel_safe);
}

TEST(KernelCacheTest, FailureKeepsItsCodeAndMessageAndIsNotCached) {
  FakeCompiler compiler;
  auto cache = Create(compiler.Options());
  Context context;
  const UOp* sink = Constant(context, "k", 1);
  compiler.fails = true;
  EXPECT_EQ(cache->GetOrCompile(sink).status(), absl::UnimplementedError("fake: not today"));
  EXPECT_EQ(cache->stats().failures, 1);
  EXPECT_EQ(cache->stats().kernels, 0);
  compiler.fails = false;
  EXPECT_TRUE(cache->GetOrCompile(sink).ok());
  EXPECT_EQ(compiler.compiles, 2);
  EXPECT_EQ(cache->stats().misses, 2);
  EXPECT_EQ(cache->stats().compiles, 1);
}

TEST(KernelCacheTest, FailedPassIsAFailureAndNotCached) {
  FakeCompiler compiler;
  KernelCacheOptions options = compiler.Options();
  bool fails = true;
  options.optimize = [&](const UOp* sink, Context&,
                         const CompileOptions&) -> absl::StatusOr<const UOp*> {
    if (fails) return absl::InternalError("pass: broken");
    return sink;
  };
  auto cache = Create(options);
  Context context;
  const UOp* sink = Constant(context, "k", 1);
  EXPECT_EQ(cache->GetOrCompile(sink).status(), absl::InternalError("pass: broken"));
  EXPECT_EQ(cache->stats().failures, 1);
  EXPECT_EQ(cache->stats().misses, 1);
  fails = false;
  EXPECT_TRUE(cache->GetOrCompile(sink).ok());
}

TEST(KernelCacheTest, LinkFailureIsReportedAndNotCached) {
  KernelCacheOptions options;
  options.optimize = [](const UOp* sink, Context&, const CompileOptions&) {
    return absl::StatusOr<const UOp*>(sink);
  };
  options.compile = [](const UOp*, const CompileOptions&) {
    ObjectCode object;
    object.entry = "f";
    object.bytes = "no object";
    return absl::StatusOr<ObjectCode>(object);
  };
  auto cache = Create(options);
  Context context;
  absl::Status status = cache->GetOrCompile(Constant(context, "k", 1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("orc: reading the object: "));
  EXPECT_EQ(cache->stats().failures, 1);
}

TEST(KernelCacheTest, ForeignTargetIsRefused) {
  FakeCompiler compiler;
  auto cache = Create(compiler.Options());
  Context context;
  CompileOptions options;
  options.target =
      *MakeTarget(HostTarget()->architecture == Architecture::kX86_64 ? "aarch64-linux-gnu"
                                                                      : "x86_64-linux-gnu",
                  "", "");
  absl::Status status = cache->GetOrCompile(Constant(context, "k", 1), options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("expected one whose code this machine runs"));
  EXPECT_EQ(compiler.compiles, 0);
}

TEST(KernelCacheTest, FindKnowsBothKeysOfAKernel) {
  FakeCompiler compiler;
  auto cache = Create(compiler.Options());
  Context context;
  const UOp* sink = Constant(context, "k", 1);
  CompileOptions options;
  options.target = *HostTarget();
  KernelKey key = *MakeKey(sink, options);
  KernelKey source_key = MakeSourceKey(sink, options);
  EXPECT_EQ(cache->Find(key), nullptr);
  EXPECT_EQ(cache->Find(source_key), nullptr);
  KernelPtr kernel = *cache->GetOrCompile(sink, options);
  EXPECT_EQ(cache->Find(key), kernel);
  EXPECT_EQ(cache->Find(source_key), kernel);
  EXPECT_EQ(cache->Find(*MakeKey(Constant(context, "k", 2), options)), nullptr);
}

TEST(KernelCacheTest, UnusedKernelsGoLongestUnusedFirstAndTheirMemoryReturns) {
  FakeCompiler compiler;
  KernelCacheOptions options = compiler.Options();
  options.capacity_bytes = 8 * 64;
  auto cache = Create(options);
  Context context;
  CompileOptions compile_options;
  compile_options.target = *HostTarget();
  auto key = [&](int i) {
    return *MakeKey(Constant(context, "k", static_cast<float>(i)), compile_options);
  };
  auto get = [&](int i) {
    return *cache->GetOrCompile(Constant(context, "k", static_cast<float>(i)));
  };
  KernelPtr held = get(0);
  for (int i = 1; i < 8; ++i) get(i);
  EXPECT_EQ(cache->stats().code_bytes, 8 * 64);
  EXPECT_EQ(cache->stats().evictions, 0);
  get(1);  // young again
  get(8);  // over the budget
  EXPECT_GE(cache->stats().evictions, 1);
  EXPECT_LE(cache->stats().code_bytes, 8 * 64);
  EXPECT_EQ(cache->stats().linked_code_bytes, cache->stats().code_bytes);
  EXPECT_NE(cache->Find(key(0)), nullptr) << "in use";
  EXPECT_NE(cache->Find(key(1)), nullptr) << "used lately";
  EXPECT_EQ(cache->Find(key(2)), nullptr) << "longest unused";
  EXPECT_NE(cache->Find(key(8)), nullptr) << "new";
  EXPECT_EQ(Call(held), 1);
  // What was evicted is compiled again, also when asked for in its first form.
  int before = compiler.compiles;
  EXPECT_EQ(Call(get(2)), before + 1);
}

TEST(KernelCacheTest, KernelsInUseMayExceedTheBudgetAndGoOnceUnused) {
  FakeCompiler compiler;
  KernelCacheOptions options = compiler.Options();
  options.capacity_bytes = 64;
  auto cache = Create(options);
  Context context;
  std::vector<KernelPtr> held;
  for (int i = 0; i < 20; ++i)
    held.push_back(*cache->GetOrCompile(Constant(context, "k", static_cast<float>(i))));
  EXPECT_EQ(cache->stats().code_bytes, 20 * 64);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Call(held[i]), i + 1);
  held.clear();
  (void)cache->GetOrCompile(Constant(context, "k", 100));
  EXPECT_LE(cache->stats().linked_code_bytes, 64);
}

TEST(KernelCacheTest, ClearForgetsAllAndHeldKernelsGoOn) {
  FakeCompiler compiler;
  auto cache = Create(compiler.Options());
  Context context;
  const UOp* sink = Constant(context, "k", 1);
  KernelPtr held = *cache->GetOrCompile(sink);
  cache->Clear();
  EXPECT_EQ(cache->stats().kernels, 0);
  EXPECT_EQ(cache->stats().code_bytes, 0);
  EXPECT_EQ(cache->stats().linked_code_bytes, 64);
  KernelPtr again = *cache->GetOrCompile(sink);
  EXPECT_EQ(Call(held), 1);
  EXPECT_EQ(Call(again), 2);
}

TEST(KernelCacheTest, KernelOutlivesItsCache) {
  FakeCompiler compiler;
  auto cache = Create(compiler.Options());
  Context context;
  KernelPtr kernel = *cache->GetOrCompile(Constant(context, "k", 1));
  cache = nullptr;
  EXPECT_EQ(Call(kernel), 1);
}

TEST(KernelCacheTest, DefaultIsOne) {
  auto first = KernelCache::Default();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*first, *KernelCache::Default());
}

// Thousands of kernels through a small cache: nothing may pile up (ResidentBytes is not exact, so
// the bound is coarser than what was measured).
TEST(KernelCacheTest, CompilingAndEvictingDoesNotGrow) {
  KernelCacheOptions options;
  options.optimize = [](const UOp* sink, Context&, const CompileOptions&) {
    return absl::StatusOr<const UOp*>(sink);
  };
  const std::string bytes = ObjectThatReturns("f", 1);
  options.compile = [&](const UOp*, const CompileOptions&) {
    ObjectCode object;
    object.entry = "f";
    object.bytes = bytes;
    return absl::StatusOr<ObjectCode>(object);
  };
  options.capacity_bytes = 64 * 32;
  auto cache = Create(options);
  auto resident_bytes = [] {
    std::ifstream statm("/proc/self/statm");
    int64_t total = 0, resident = 0;
    statm >> total >> resident;
    return resident * 4096;
  };
  auto run = [&](int begin, int end) {
    for (int i = begin; i < end; ++i) {
      Context context;
      ASSERT_TRUE(cache->GetOrCompile(Constant(context, "k", static_cast<float>(i))).ok());
    }
  };
  run(0, 1000);
  int64_t before = resident_bytes();
  run(1000, 4000);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const int64_t allowed_bytes = 1 << 30;  // they keep freed memory for a while
#else
  const int64_t allowed_bytes = 4 << 20;
#endif
  EXPECT_LT(resident_bytes() - before, allowed_bytes);
  EXPECT_LE(cache->stats().code_bytes, 64 * 32);
  EXPECT_EQ(cache->stats().mapped_code_bytes, 1 << 20);
  EXPECT_GE(cache->stats().evictions, 3900);
}

TEST(KernelCacheTest, CompileAllGivesResultsInOrderAndCompilesEqualOnesOnce) {
  FakeCompiler compiler;
  KernelCacheOptions options = compiler.Options();
  auto compile = options.compile;
  options.compile = [&](const UOp* sink, const CompileOptions& o) -> absl::StatusOr<ObjectCode> {
    if (sink->arg<FunctionArgument>().name == "bad") return absl::InternalError("bad kernel");
    return compile(sink, o);
  };
  auto cache = Create(options);
  Context context;
  const UOp* a = Constant(context, "a", 1);
  const UOp* bad = Constant(context, "bad", 1);
  const UOp* b = Constant(context, "b", 1);
  auto results = cache->CompileAll({a, bad, b, a}, {}, RunSerially);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_THAT((*results[0])->name, StartsWith("svod_a_"));
  EXPECT_EQ(results[1].status(), absl::InternalError("bad kernel"));
  EXPECT_THAT((*results[2])->name, StartsWith("svod_b_"));
  EXPECT_EQ(*results[3], *results[0]);
  EXPECT_EQ(cache->stats().misses, 3);
  EXPECT_TRUE(cache->CompileAll({}, {}, RunSerially).empty());
}

}  // namespace
}  // namespace svod
