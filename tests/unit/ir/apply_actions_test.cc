// Loop actions that a kernel's opts ask for.
#include "ir/passes/apply_actions.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "ir/text.h"

namespace svod {
namespace {

using ::testing::HasSubstr;

std::string Relu(absl::string_view opts) {
  return absl::StrCat("kernel @relu(%y: out f32[4, 8], %x: f32[4, 8]) opts=[", opts, R"(] {
  %i = range 4 loop
    %j = range 8 loop
      %v = load %x[%i, %j]
      %r = max %v, 0.0
      store %y[%i, %j], %r
    end %j
  end %i
}
)");
}

absl::StatusOr<Module> Parse(absl::string_view opts) {
  return ParseModule(Relu(opts), "k.uop", std::make_shared<Context>());
}

absl::StatusOr<std::string> Applied(absl::string_view opts) {
  auto module = Parse(opts);
  if (!module.ok()) return module.status();
  PassContext pass(*module->context);
  auto done = RunApplyActions(module->functions[0].root, pass);
  return done.ok() ? PrintCanonical(*done) : done.status();
}

TEST(ApplyActions, DoesThemInOrderAndSaysSoAsIfTheyHadBeenChosen) {
  auto text = Applied("mulacc, apply, merge(0), upcast(0, 4)");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("opts=[mulacc, merge(0), upcast(0, 4)] {"));
  EXPECT_THAT(*text, HasSubstr("range 8 loop"));
  EXPECT_THAT(*text, HasSubstr(": f32x4"));
}

TEST(ApplyActions, LeavesKernelsAloneThatDoNotAsk) {
  for (const char* opts : {"", "auto", "upcast(0, 4)", "mulacc"}) {
    auto module = Parse(opts);
    ASSERT_TRUE(module.ok()) << module.status();
    PassContext pass(*module->context);
    EXPECT_EQ(RunApplyActions(module->functions[0].root, pass).value(), module->functions[0].root);
  }
}

TEST(ApplyActions, ItsTextComesBack) {
  auto module = Parse("mulacc, apply, merge(0), upcast(0, 4)");
  ASSERT_TRUE(module.ok()) << module.status();
  auto text = Print(module->functions[0]);
  ASSERT_TRUE(text.ok()) << text.status();
  auto again = ParseModule(*text, "k.uop", module->context);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->functions[0].root, module->functions[0].root);
}

TEST(ApplyActions, WhatFollowsMustBeActions) {
  for (const char* opts : {"apply, auto", "apply, upcast(0)", "apply, merge(0), \"x\""}) {
    EXPECT_THAT(Parse(opts).status().message(), HasSubstr("expected one such as 'upcast(0, 16)'"))
        << opts;
  }
  EXPECT_THAT(Parse("apply, upcast(0, 6)").status().message(), HasSubstr("k.uop:1:61: action"));
}

TEST(ApplyActions, AnIllegalOneIsNamedWithItsPlace) {
  auto module = Parse("apply, merge(0), merge(0)");
  ASSERT_TRUE(module.ok()) << module.status();
  absl::Status status = CheckActions(module->functions[0]);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "k.uop:1:8: merge(0): expected one loop directly inside it");
  // Without a text there is no place.
  Function bare;
  bare.root = module->functions[0].root;
  EXPECT_EQ(CheckActions(bare).message(), "merge(0): expected one loop directly inside it");
  EXPECT_TRUE(CheckActions(Parse("apply, merge(0)")->functions[0]).ok());
  EXPECT_TRUE(CheckActions(Parse("auto")->functions[0]).ok());
}

TEST(ApplyActions, ListsComeBack) {
  for (const char* text : {"[]", "[swap(1)]", "[upcast(0, 16), stream(0)]"}) {
    auto actions = ParseLoopActions(text);
    ASSERT_TRUE(actions.ok()) << actions.status();
    EXPECT_EQ(ToString(*actions), text);
  }
  EXPECT_EQ(ParseLoopActions(" upcast(0,16) ,swap( 1)")->size(), 2);
  for (const char* text :
       {"[", "[swap(1)", "swap(1),", "swap(1) swap(2)", "[swap(1)],", "x", ","}) {
    EXPECT_FALSE(ParseLoopActions(text).ok()) << text;
  }
}

TEST(ApplyActions, ActionsTakeThePlaceOfChoiceAndOfOthers) {
  auto module = Parse("upcast(3, 4), mulacc, auto");
  ASSERT_TRUE(module.ok()) << module.status();
  Context& context = *module->context;
  const UOp* sink = module->functions[0].root;
  const LoopAction merge{LoopAction::Kind::kMerge, 0, 1};
  const UOp* with = WithActions(sink, {merge}, context);
  EXPECT_THAT(PrintCanonical(with).value(),
              HasSubstr("opts=[upcast(3, 4), mulacc, apply, merge(0)] {"));
  EXPECT_THAT(PrintCanonical(WithActions(with, {}, context)).value(),
              HasSubstr("opts=[upcast(3, 4), mulacc, apply] {"));
  EXPECT_EQ(WithChoice(with, context), sink);
  EXPECT_TRUE(HasOpt(with, kApplyOpt));
  EXPECT_FALSE(HasOpt(with, kAutoOpt));
}

}  // namespace
}  // namespace svod
