// Loop actions: what they say, what they refuse, and that no bit changes.
#include "ir/passes/loop_actions.h"

#include <map>

#include "gmock/gmock.h"
#include "ir/kernel_builder.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "tests/unit/kernel_generator.h"

namespace svod {
namespace {

using ::testing::HasSubstr;
using Kind = LoopAction::Kind;

TEST(LoopAction, TextComesBack) {
  for (const char* text : {"upcast(0, 16)", "unroll(3, 5)", "group(12, 64)", "pack(2)"}) {
    auto action = ParseLoopAction(text);
    ASSERT_TRUE(action.ok()) << action.status();
    EXPECT_EQ(ToString(*action), text);
  }
}

TEST(LoopAction, BadTextSaysWhatWasExpected) {
  for (const char* text :
       {"", "upcast", "upcast(0)", "upcast(0, 16", "turn(0, 2)", "unroll(a, 2)"}) {
    EXPECT_THAT(ParseLoopAction(text).status().message(), HasSubstr("expected one such as"));
  }
  EXPECT_THAT(ParseLoopAction("upcast(0, 12)").status().message(), HasSubstr("a power of two"));
  EXPECT_THAT(ParseLoopAction("unroll(0, 1)").status().message(), HasSubstr("2 to 64"));
}

absl::StatusOr<Module> Parse(absl::string_view text) {
  return ParseModule(text, "k.uop", std::make_shared<Context>());
}

absl::StatusOr<std::string> Apply(absl::string_view text, absl::string_view action) {
  auto module = Parse(text);
  if (!module.ok()) return module.status();
  PassContext pass(*module->context);
  auto parsed = ParseLoopAction(action);
  if (!parsed.ok()) return parsed.status();
  auto result = ApplyLoopAction(module->functions[0].root, *parsed, pass);
  if (!result.ok()) return result.status();
  Function function;
  function.root = *result;
  absl::Status verified = Verify(function);
  if (!verified.ok()) return verified;
  return Print(function);
}

constexpr const char* kRelu = R"(
kernel @relu(%y: out f32[70], %x: f32[70]) {
  %i = range 70 loop
  %v = load %x[%i]
  %r = max %v, 0.0
  store %y[%i], %r
  end %i
})";

TEST(LoopAction, UpcastOverlapsAtTheEnd) {
  auto text = Apply(kRelu, "upcast(0, 16)");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("range 5 loop"));
  EXPECT_THAT(*text, HasSubstr("min"));
  EXPECT_THAT(*text, HasSubstr(": f32x16"));
}

TEST(LoopAction, IllegalActionsSayWhy) {
  EXPECT_THAT(Apply(kRelu, "upcast(7, 16)").status().message(),
              HasSubstr("none of the kernel's loops"));
  EXPECT_THAT(Apply(kRelu, "group(0, 16)").status().message(),
              HasSubstr("got a loop, expected a reduction's"));
  EXPECT_THAT(Apply(R"(
kernel @shift(%y: inout f32[70]) {
  %i = range 69 loop
  %j = add %i, 1
  %v = load %y[%i]
  store %y[%j], %v
  end %i
})",
                    "upcast(0, 4)")
                  .status()
                  .message(),
              HasSubstr("loads what another one may store"));
  EXPECT_THAT(Apply(R"(
kernel @last(%y: out f32[1], %x: f32[70]) {
  %i = range 70 loop
  %v = load %x[%i]
  store %y[0], %v
  end %i
})",
                    "unroll(0, 2)")
                  .status()
                  .message(),
              HasSubstr("one place in every iteration"));
}

bool FoldsExactly(const UOp* sink, int64_t axis) {
  for (const UOp* node : Toposort(sink)) {
    if (node->op() != Op::kReduce) continue;
    bool is_it = false;
    for (const UOp* range : node->sources().subspan(1)) {
      is_it = is_it || range->arg<AxisArgument>().axis == axis;
    }
    ReduceKind kind = node->arg<ReduceArgument>().kind;
    bool rounds =
        node->dtype().is_float() && (kind == ReduceKind::kAdd || kind == ReduceKind::kMul);
    if (is_it && rounds) return false;
  }
  return true;
}

// Whatever is legal on a generated kernel leaves the same memory.
TEST(LoopAction, LegalActionsChangeNoBit) {
  std::map<Kind, int> done;
  for (uint64_t seed = 0; seed < 1200; ++seed) {
    auto context = std::make_shared<Context>();
    GeneratorOptions options;
    options.vectors = seed % 3 == 0;
    auto kernel = GenerateKernel(seed, context, options);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    auto expected = Interpret(kernel->sink, *kernel);
    ASSERT_TRUE(expected.ok()) << expected.status();
    PassContext pass(*context);
    for (const UOp* node : Toposort(kernel->sink)) {
      if (node->op() != Op::kRange) continue;
      int64_t axis = node->arg<AxisArgument>().axis;
      for (LoopAction action :
           {LoopAction{Kind::kUpcast, axis, 4}, LoopAction{Kind::kUpcast, axis, 2},
            LoopAction{Kind::kUnroll, axis, 3}, LoopAction{Kind::kUnroll, axis, 2},
            LoopAction{Kind::kGroup, axis, 4}}) {
        auto result = ApplyLoopAction(kernel->sink, action, pass);
        if (!result.ok()) continue;
        if (action.kind == Kind::kGroup && !FoldsExactly(kernel->sink, axis)) continue;
        ++done[action.kind];
        Function function;
        function.root = *result;
        std::string text = PrintCanonical(kernel->sink).value_or("") + ToString(action) + "\n" +
                           PrintCanonical(*result).value_or("");
        absl::Status verified = Verify(function);
        ASSERT_TRUE(verified.ok()) << "seed " << seed << ": " << verified << "\n" << text;
        auto got = Interpret(*result, *kernel);
        ASSERT_TRUE(got.ok()) << "seed " << seed << ": " << got.status() << "\n" << text;
        ASSERT_EQ(FirstDifference(*kernel, *got, *expected), "") << "seed " << seed << "\n" << text;
      }
    }
  }
  for (Kind kind : {Kind::kUpcast, Kind::kUnroll, Kind::kGroup}) EXPECT_GT(done[kind], 5);
}

}  // namespace
}  // namespace svod
