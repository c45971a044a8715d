// Every pass keeps what a kernel computes: generated kernels, interpreted before and after.
#include <set>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/passes/simplify.h"
#include "ir/pipeline.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "tests/unit/kernel_generator.h"

namespace svod {
namespace {

constexpr uint64_t kNumKernels = 400;

std::string Text(const UOp* root) {
  Function function;
  function.root = root;
  absl::StatusOr<std::string> text = Print(function);
  return text.ok() ? *text : std::string(text.status().message());
}

class GeneratedKernelsTest : public ::testing::Test {
 protected:
  // Runs `check` on kernels of many seeds and kinds.
  template <typename Check>
  void ForEachKernel(const GeneratorOptions& options, Check check) {
    for (uint64_t seed = 1; seed <= kNumKernels; ++seed) {
      auto context = std::make_shared<Context>();
      absl::StatusOr<GeneratedKernel> kernel = GenerateKernel(seed, context, options);
      ASSERT_TRUE(kernel.ok()) << "seed " << seed << ": " << kernel.status();
      SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << Text(kernel->sink));
      check(*kernel, *context);
      if (HasFailure()) return;
    }
  }

  void ExpectVerified(const UOp* root, const char* after) {
    Function function;
    function.root = root;
    absl::Status status = Verify(function);
    ASSERT_TRUE(status.ok()) << after << ": " << status << "\n" << Text(root);
  }

  void ExpectSame(const GeneratedKernel& kernel, const UOp* before, const UOp* after,
                  const char* pass) {
    absl::StatusOr<Buffers> expected = Interpret(before, kernel), got = Interpret(after, kernel);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_TRUE(got.ok()) << got.status() << "\n" << Text(after);
    EXPECT_EQ(FirstDifference(kernel, *got, *expected), "") << "after " << pass << "\n"
                                                            << Text(after);
  }
};

TEST_F(GeneratedKernelsTest, AreVerifiedAndReadBack) {
  ForEachKernel({}, [&](const GeneratedKernel& kernel, Context&) {
    ExpectVerified(kernel.sink, "generation");
    auto context = std::make_shared<Context>();
    std::string text = Text(kernel.sink);
    absl::StatusOr<Module> module = ParseModule(text, "generated.uop", context);
    ASSERT_TRUE(module.ok()) << module.status();
    EXPECT_EQ(module->functions[0].root->hash(), kernel.sink->hash());
  });
}

TEST_F(GeneratedKernelsTest, SameSeedSameKernel) {
  auto a = std::make_shared<Context>(), b = std::make_shared<Context>();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(GenerateKernel(seed, a)->sink->hash(), GenerateKernel(seed, b)->sink->hash());
  }
}

TEST_F(GeneratedKernelsTest, EachPassKeepsEveryBit) {
  std::set<std::string> used;
  int hidden = 0;
  ForEachKernel({}, [&](const GeneratedKernel& kernel, Context& context) {
    PassContext pass_context(context);
    const UOp* root = kernel.sink;
    for (const char* name :
         {"fold-constants", "fold-identities", "simplify-ranges", "lower-reduce",
          "decompose-transcendentals", "guard-accesses", "simplify", "guard-accesses"}) {
      absl::StatusOr<const UOp*> result = RunPass(*FindPass(name), root, pass_context);
      ASSERT_TRUE(result.ok()) << name << ": " << result.status() << "\n" << Text(root);
      if (*result == root) continue;
      ASSERT_NO_FATAL_FAILURE(ExpectSame(kernel, root, *result, name));
      Function function;
      function.root = root = *result;
      absl::Status status = Verify(function);
      // A simpler position may hide that two accesses are apart; OptimizeKernel knows a way out.
      if (absl::StrContains(status.message(), ": order against ")) {
        ++hidden;
        break;
      }
      ASSERT_TRUE(status.ok()) << name << ": " << status << "\n" << Text(root);
    }
    for (const auto& [rule, hits] : pass_context.rule_hits) used.insert(rule);
  });
  EXPECT_LE(hidden, static_cast<int>(kNumKernels / 100));
  // The kernels are varied enough to need most of the rules.
  EXPECT_GT(used.size(), 60u);
  EXPECT_EQ(used.count("lower-reduce"), 1u);
  EXPECT_EQ(used.count("guard-accesses"), 1u);
  EXPECT_EQ(used.count("index-open-gate"), 1u);
}

TEST_F(GeneratedKernelsTest, PipelineKeepsEveryBitAndMakesThemLowerable) {
  ForEachKernel({}, [&](const GeneratedKernel& kernel, Context& context) {
    absl::StatusOr<const UOp*> result = OptimizeKernel(kernel.sink, context);
    ASSERT_TRUE(result.ok()) << result.status();
    ExpectSame(kernel, kernel.sink, *result, "the pipeline");
    // The result reads back, and is at rest.
    auto other = std::make_shared<Context>();
    absl::StatusOr<Module> module = ParseModule(Text(*result), "result.uop", other);
    ASSERT_TRUE(module.ok()) << module.status();
    EXPECT_EQ(module->functions[0].root->hash(), (*result)->hash());
  });
}

TEST_F(GeneratedKernelsTest, ResultsDoNotDependOnTheContext) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    auto fresh = std::make_shared<Context>(), used = std::make_shared<Context>();
    // Other nodes first, so that ids and addresses differ.
    ASSERT_TRUE(GenerateKernel(seed + 1000, used).ok());
    const UOp* a = *OptimizeKernel(GenerateKernel(seed, fresh)->sink, *fresh);
    const UOp* b = *OptimizeKernel(GenerateKernel(seed, used)->sink, *used);
    EXPECT_EQ(a->hash(), b->hash()) << "seed " << seed;
  }
}

TEST_F(GeneratedKernelsTest, TranscendentalsBecomeArithmetic) {
  GeneratorOptions options;
  options.transcendentals = true;
  ForEachKernel(options, [&](const GeneratedKernel& kernel, Context& context) {
    absl::StatusOr<const UOp*> result = OptimizeKernel(kernel.sink, context);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_TRUE(Interpret(*result, kernel).ok());
  });
}

}  // namespace
}  // namespace svod
