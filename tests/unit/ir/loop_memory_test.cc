// Which loops fill scratch memory, and whose stores stay apart.
#include "ir/passes/loop_memory.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ir/passes/loop_actions.h"
#include "ir/text.h"

namespace svod {
namespace {

// Whether every load of the kernel's scratch array finds it filled, after `actions`.
bool LoadsAreFilled(absl::string_view text, std::vector<std::string> actions = {}) {
  auto module = ParseModule(text, "k.uop", std::make_shared<Context>());
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return false;
  const UOp* sink = module->functions[0].root;
  PassContext pass(*module->context);
  for (const std::string& action : actions) {
    auto done = ApplyLoopAction(sink, *ParseLoopAction(action), pass);
    EXPECT_TRUE(done.ok()) << done.status();
    sink = done.value_or(sink);
  }
  int num_loads = 0;
  bool all = true;
  for (const UOp* node : Toposort(sink)) {
    if (node->op() != Op::kLoad || BaseBuffer(node->source(0))->op() != Op::kLocal) continue;
    ++num_loads;
    all = all && LoadsFilledScratch(node, pass.ranges);
  }
  EXPECT_GT(num_loads, 0);
  return all;
}

std::string Kernel(absl::string_view extents, absl::string_view position) {
  std::pair<int, int> sizes;
  EXPECT_EQ(sscanf(std::string(extents).c_str(), "%d %d", &sizes.first, &sizes.second), 2);
  return absl::StrCat(R"(
kernel @k(%y: out f32[12], %x: f32[12]) {
  %t = local f32[12]
  %i = range )",
                      sizes.first, " loop\n  %j = range ", sizes.second, R"( loop
  %v = load %x[%j]
)",
                      position, R"(
  store %t[%p], %v
  end %j
  end %i
  %k = range 12 loop
  %w = load %t[%k]
  store %y[%k], %w
  end %k
}
)");
}

TEST(FillsScratch, LoopsThatReachEveryElementOnceOrMoreOften) {
  EXPECT_TRUE(LoadsAreFilled(Kernel("3 4", "%a = mul %i, 4\n%p = add %a, %j")));
  EXPECT_TRUE(LoadsAreFilled(Kernel("4 3", "%a = mul %j, 4\n%p = add %a, %i")));
  EXPECT_TRUE(LoadsAreFilled(Kernel("5 4", "%a = mul %i, 2\n%p = add %a, %j")));
}

TEST(FillsScratch, GapsAndEnds) {
  EXPECT_FALSE(LoadsAreFilled(Kernel("3 3", "%a = mul %i, 4\n%p = add %a, %j")));
  EXPECT_FALSE(LoadsAreFilled(Kernel("2 4", "%a = mul %i, 4\n%p = add %a, %j")));
  EXPECT_FALSE(LoadsAreFilled(Kernel("3 4", "%a = mul %i, 5\n%p = add %a, %j")));
  EXPECT_FALSE(LoadsAreFilled(Kernel("1 11", "%p = add %j, 1")));
}

TEST(FillsScratch, PiecesOfLoopsMeet) {
  std::string text = Kernel("1 12", "%p = add %j, %i");
  EXPECT_TRUE(LoadsAreFilled(text, {"split(1, 5)"}));
  EXPECT_TRUE(LoadsAreFilled(text, {"upcast(1, 8)"}));
  EXPECT_TRUE(LoadsAreFilled(text, {"split(1, 6)", "upcast(3, 4)"}));
}

TEST(FillsScratch, AStoreInALaterLoopIsNoFill) {
  EXPECT_FALSE(LoadsAreFilled(R"(
kernel @k(%y: out f32[4], %x: f32[4]) {
  %t = local f32[4]
  %i = range 4 loop
  %w = load %t[%i]
  store %y[%i], %w
  end %i
  %j = range 4 loop
  %v = load %x[%j]
  store %t[%j], %v
  end %j
}
)"));
}

TEST(FillsScratch, AGatedStoreIsNoFill) {
  EXPECT_FALSE(LoadsAreFilled(R"(
kernel @k(%y: out f32[4], %x: f32[4]) {
  %t = local f32[4]
  %j = range 4 loop
  %v = load %x[%j]
  %g = cmplt 0.0, %v
  store %t[%j], %v, gate=%g
  end %j
  %i = range 4 loop
  %w = load %t[%i]
  store %y[%i], %w
  end %i
}
)"));
}

}  // namespace
}  // namespace svod
