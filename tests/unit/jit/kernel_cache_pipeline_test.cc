#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "ir/evaluate.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "jit/kernel_cache.h"
#include "tests/unit/jit/fake_compiler.h"

namespace svod {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

float RunConstant(const KernelPtr& kernel) {
  float y[4] = {};
  void* buffers[] = {y};
  EXPECT_EQ(kernel->function(buffers, nullptr, 0, nullptr), 0);
  return y[0];
}

TEST(KernelCachePipelineTest, DefaultStepsCompileWhatRuns) {
  auto cache = Create({});
  Context context;
  for (int level : {0, 1, 3}) {
    CompileOptions options;
    options.code_gen_level = level;
    auto kernel = cache->GetOrCompile(Constant(context, "odd name %$", 2.5F), options);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_EQ(RunConstant(*kernel), 2.5F);
    EXPECT_THAT((*kernel)->name, StartsWith("svod_odd_name____"));
    EXPECT_LE((*kernel)->code_bytes, 128);
  }
  EXPECT_EQ(cache->stats().compiles, 3);
}

TEST(KernelCachePipelineTest, WarmingUpLeavesNoTrace) {
  auto cache = Create({});
  for (int level : {0, 1}) {
    CompileOptions options;
    options.code_gen_level = level;
    ASSERT_EQ(cache->WarmUp(options), absl::OkStatus());
  }
  KernelCacheStats stats = cache->stats();
  EXPECT_EQ(stats.misses, 0);
  EXPECT_EQ(stats.compiles, 0);
  EXPECT_EQ(stats.kernels, 0);
  EXPECT_EQ(stats.linked_code_bytes, 0);
  CompileOptions wrong;
  wrong.code_gen_level = 7;
  EXPECT_THAT(std::string(cache->WarmUp(wrong).message()), HasSubstr("level, got 7"));
}

TEST(KernelCacheConcurrencyTest, WarmingUpAndCompilingGoSideBySide) {
  auto cache = Create({});
  std::thread warm_up([&] { EXPECT_EQ(cache->WarmUp(), absl::OkStatus()); });
  Context context;
  auto kernel = cache->GetOrCompile(Constant(context, "k", 2.5F));
  warm_up.join();
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(RunConstant(*kernel), 2.5F);
}

// From text, through every pass and machine code, to the interpreter's bits; the interpreter reads
// the final kernel, since transcendentals are approximated there.
TEST(KernelCachePipelineTest, KernelAtAnyStageIsOptimisedAndAgreesWithTheInterpreter) {
  auto module = ParseModule(R"(kernel @softmax(%y: out f32[40], %x: f32[40]) {
  %r = range 40 reduce
  %a = load %x[%r]
  %m = reduce_max %a, %r
  %k = range 40 reduce
  %b = load %x[%k]
  %d = sub %b, %m
  %e = exp %d
  %s = reduce_add %e, %k
  %i = range 41 loop
  %c = load %x[%i]
  %f = sub %c, %m
  %g = exp %f
  %h = fdiv %g, %s
  store %y[%i], %h
  end %i
}
)",
                            "softmax.uop", std::make_shared<Context>());
  ASSERT_TRUE(module.ok()) << module.status();
  auto cache = Create({});
  auto kernel = cache->GetOrCompile(module->functions[0].root);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  auto final_kernel = ParseModule((*kernel)->source, "final", std::make_shared<Context>());
  ASSERT_TRUE(final_kernel.ok()) << final_kernel.status();

  float x[40], expected[40] = {}, y[41] = {};
  for (int i = 0; i < 40; ++i) x[i] = static_cast<float>(i % 7) * 0.75F - 2;
  y[40] = -1;  // the store past the end does nothing
  std::vector<absl::Span<std::byte>> spans = {
      absl::MakeSpan(reinterpret_cast<std::byte*>(expected), sizeof(expected)),
      absl::MakeSpan(reinterpret_cast<std::byte*>(x), sizeof(x))};
  absl::Status evaluated = Evaluate(final_kernel->functions[0].root, spans);
  ASSERT_TRUE(evaluated.ok()) << evaluated;
  void* buffers[] = {y, x};
  std::vector<char> scratch(static_cast<size_t>((*kernel)->scratch_bytes) + 64);
  EXPECT_EQ((*kernel)->function(buffers, nullptr, 0, scratch.data()), 0);
  float sum = 0;
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(y[i], expected[i]) << i;
    sum += y[i];
  }
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_EQ(y[40], -1);

  // The final kernel is a fixed point, and so finds the same code.
  EXPECT_EQ(*cache->GetOrCompile(final_kernel->functions[0].root), *kernel);
  EXPECT_EQ(cache->stats().compiles, 1);
}

TEST(KernelCachePipelineTest, ContractionIsAnotherKernelAndShowsInItsText) {
  auto module = ParseModule(R"(kernel @axpy(%y: out f32[1], %x: f32[1]) {
  %a = load %x[0]
  %p = mul %a, %a
  %s = add %p, %a
  store %y[0], %s
}
)",
                            "axpy.uop", std::make_shared<Context>());
  ASSERT_TRUE(module.ok()) << module.status();
  auto cache = Create({});
  CompileOptions options;
  auto plain = cache->GetOrCompile(module->functions[0].root, options);
  options.contract_mulacc = true;
  auto fused = cache->GetOrCompile(module->functions[0].root, options);
  ASSERT_TRUE(plain.ok() && fused.ok()) << plain.status() << fused.status();
  EXPECT_THAT((*plain)->source, ::testing::Not(HasSubstr("mulacc")));
  EXPECT_THAT((*fused)->source, HasSubstr("mulacc"));
}

TEST(KernelCachePipelineTest, VerifiersWordPassesThroughUnwrapped) {
  auto cache = Create({});
  Context context;
  const UOp* y = *context.Make(Op::kParam, Scalar::kF32, {context.Index(4)},
                               ParamArgument{1, Access::kOut, "y"});  // there is no slot 0
  const UOp* index = *context.Make(Op::kIndex, {y, context.Index(0)});
  const UOp* store =
      *context.Make(Op::kStore, {index, context.Float(Scalar::kF32, 1)}, AlignmentArgument{});
  const UOp* sink = *context.Make(Op::kSink, {store}, FunctionArgument{true, "k", {}});
  Function function;
  function.root = sink;
  absl::Status expected = Verify(function);
  ASSERT_EQ(expected.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cache->GetOrCompile(sink).status(), expected);
  EXPECT_EQ(cache->GetOrCompileFinal(sink).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cache->stats().failures, 2);
}

}  // namespace
}  // namespace svod
