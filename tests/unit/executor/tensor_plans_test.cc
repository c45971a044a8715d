// Tensor graphs as plans: what stands between kernels, sizes that change, results that are reused.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "executor/executor.h"
#include "gmock/gmock.h"
#include "ir/text.h"
#include "jit/kernel_cache.h"
#include "plan/prepare.h"

namespace svod {
namespace {

class TensorPlans : public ::testing::Test {
 protected:
  ExecutionPlan Plan(absl::string_view text, PrepareOptions options = {}) {
    absl::StatusOr<Module> module = ParseModule(text, "plan.uop", std::make_shared<Context>());
    EXPECT_TRUE(module.ok()) << module.status();
    std::shared_ptr<KernelCache> kernels = KernelCache::Default().value();
    absl::StatusOr<ExecutionPlan> plan =
        Prepare(*module, "", [&](const UOp* sink) { return kernels->GetOrCompile(sink); }, options);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return *std::move(plan);
  }

  static void Fill(ExecutionPlan& plan, size_t parameter, std::vector<float> numbers) {
    const PlanTensor tensor = plan.parameters()[parameter];
    auto* to = reinterpret_cast<float*>(plan.buffers()[tensor.buffer_index].data());
    std::copy(numbers.begin(), numbers.end(), to);
  }

  static std::vector<float> Result(const ExecutionPlan& plan, size_t result) {
    const PlanTensor tensor = plan.outputs()[result];
    int64_t elements = 1;
    for (int64_t dimension : tensor.shape) elements *= dimension;
    const auto* from = reinterpret_cast<const float*>(plan.buffers()[tensor.buffer_index].data());
    return {from, from + elements};
  }
};

TEST_F(TensorPlans, CustomFunctionsCopiesAndViewsStandBetweenKernels) {
  auto registry = std::make_shared<CustomFunctionRegistry>();
  ASSERT_TRUE(registry
                  ->Register("twice",
                             [](const CustomCall& call) {
                               auto* data = reinterpret_cast<float*>(call.buffers[0].data());
                               for (int i = 0; i < 8; ++i) data[i] *= 2;
                               return absl::OkStatus();
                             })
                  .ok());
  PrepareOptions options;
  options.custom_functions = registry;
  ExecutionPlan plan = Plan(R"(
graph @g(%x: f32[8], %y: inout f32[8]) {
  %b = buffer f32[8]
  %d = mul %x, 2.0
  %a = assign %b, %d
  %b1 = after %b, %a
  %f = custom_function "twice", %b1
  %b2 = after %b1, %f
  %v = buffer_view %b2, offset=16 : f32[4]
  %s = reduce_add %v, axes=[0], keep
  %z = add %b2, %s
  %c = copy %y, %b2
  %y1 = after %y, %c
  %w = add %y1, %y
  return %z, %y1, %w
})",
                            options);
  Fill(plan, 0, {0, 1, 2, 3, 4, 5, 6, 7});
  Fill(plan, 1, {100, 100, 100, 100, 100, 100, 100, 100});
  ASSERT_TRUE(Execute(plan, {}).ok());
  EXPECT_THAT(Result(plan, 0), ::testing::ElementsAre(88, 92, 96, 100, 104, 108, 112, 116));
  EXPECT_THAT(Result(plan, 1), ::testing::ElementsAre(0, 4, 8, 12, 16, 20, 24, 28));
  EXPECT_THAT(Result(plan, 2), ::testing::ElementsAre(100, 104, 108, 112, 116, 120, 124, 128));
}

// Reported cases 15 and 16: one plan for every size, whose results report the size of the run;
// a later run overwrites them.
TEST_F(TensorPlans, OnePlanServesAllSizes) {
  ExecutionPlan plan = Plan(R"(
graph @g(%n = define_var "n", min=1, max=40; %x: f32[%n]) {
  %e = softmax(%x, axis=0)
  %j = concatenate(%e, %x, axis=0)
  return %e, %j
})");
  for (int64_t n : {1, 40, 17, 2}) {
    ASSERT_TRUE(plan.SetVariables({{"n", n}}).ok());
    Fill(plan, 0, std::vector<float>(static_cast<size_t>(n), 3));
    ASSERT_TRUE(Execute(plan, {}).ok());
    EXPECT_THAT(plan.outputs()[0].shape, ::testing::ElementsAre(n));
    EXPECT_THAT(plan.outputs()[1].shape, ::testing::ElementsAre(2 * n));
    EXPECT_THAT(Result(plan, 0), ::testing::Each(::testing::FloatEq(1.0f / static_cast<float>(n))));
    EXPECT_EQ(Result(plan, 1).back(), 3);
  }
}

// Reported case 24, compiled: a stack of thousands; of fewer under sanitizers, which take a minute.
TEST_F(TensorPlans, AStackOfThousandsIsPutTogetherInGroups) {
#ifdef NDEBUG
  constexpr int kPieces = 6131;
#else
  constexpr int kPieces = 613;
#endif
  std::string params, operands;
  for (int i = 0; i < kPieces; ++i) {
    absl::StrAppend(&params, i == 0 ? "" : ", ", "%x", i, ": f32[3]");
    absl::StrAppend(&operands, i == 0 ? "" : ", ", "%x", i);
  }
  ExecutionPlan plan = Plan(absl::StrCat("graph @g(", params, ") {\n  %y = stack_tensors(",
                                         operands, ", axis=0)\n  return %y\n}\n"));
  EXPECT_LE(plan.report().num_kernels, 10);
  for (int i = 0; i < kPieces; ++i) {
    float number = static_cast<float>(i);
    Fill(plan, static_cast<size_t>(i), {number, number + 0.25f, number + 0.5f});
  }
  ASSERT_TRUE(Execute(plan, {}).ok());
  std::vector<float> stacked = Result(plan, 0);
  ASSERT_EQ(stacked.size(), 3 * kPieces);
  for (size_t i = 0; i < stacked.size(); ++i) {
    ASSERT_EQ(stacked[i], static_cast<float>(i / 3) + 0.25f * static_cast<float>(i % 3));
  }
}

TEST_F(TensorPlans, UpdatesInPlaceAddUpOverRuns) {
  ExecutionPlan plan = Plan(R"(
graph @g(%w: inout f32[5]) {
  %n = add %w, 1.0
  %a = assign %w, %n
  %w1 = after %w, %a
  return %w1
})");
  for (float expected : {1.0f, 2.0f, 3.0f}) {
    ASSERT_TRUE(Execute(plan, {}).ok());
    EXPECT_THAT(Result(plan, 0), ::testing::Each(expected));
  }
}

}  // namespace
}  // namespace svod
