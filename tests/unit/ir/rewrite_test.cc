// The rewrite engine: matching, fixpoints, termination, long chains, and the order of memory.
#include "ir/rewrite.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/passes/simplify.h"
#include "tests/unit/ir/raw_graph.h"

namespace svod {
namespace {

using ::testing::HasSubstr;

class RewriteTest : public ::testing::Test {
 protected:
  const UOp* Rewrite(const UOp* root, const RuleSet& rules) {
    absl::StatusOr<const UOp*> result = RewriteBottomUp(root, rules, pass);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : nullptr;
  }
  const UOp* Simplify(const UOp* root) { return Rewrite(root, SimplifyRules()); }
  const UOp* Leaf(int64_t slot, DType dtype = Scalar::kI32) {
    return g.Load(g.Param(slot, 4, Access::kIn, dtype), g.Int(0));
  }
  const UOp* I32(int64_t value) { return g.context.Int(Scalar::kI32, value); }

  RawGraph g;
  PassContext pass{g.context};
};

TEST_F(RewriteTest, CommutativePatternsMatchBothOrders) {
  RuleSet rules({{"test-absorb", Binary(Op::kMax, Any("x"), Binary(Op::kMin, Any("x"), Any("y"))),
                  [](const Match& m) { return m["x"]; }}});
  const UOp* x = Leaf(0);
  const UOp* y = Leaf(1);
  for (const UOp* min : {g.Make(Op::kMin, {x, y}), g.Make(Op::kMin, {y, x})}) {
    EXPECT_EQ(Rewrite(g.Make(Op::kMax, {x, min}), rules), x);
    EXPECT_EQ(Rewrite(g.Make(Op::kMax, {min, x}), rules), x);
  }
  EXPECT_EQ(pass.rule_hits["test-absorb"], 4);
  const UOp* other = g.Make(Op::kMax, {Leaf(2), g.Make(Op::kMin, {x, y})});
  EXPECT_EQ(Rewrite(other, rules), other);  // x is not one node here
}

TEST_F(RewriteTest, FirstRuleThatAppliesWins) {
  RuleSet rules({{"test-refuses", Unary(Op::kNeg, Any("x")),
                  [](const Match&) { return static_cast<const UOp*>(nullptr); }},
                 {"test-first", Unary(Op::kNeg, Any("x")), [](const Match& m) { return m["x"]; }},
                 {"test-second", Unary(Op::kNeg, Any("x")),
                  [](const Match& m) { return m.Make(Op::kAbs, {m["x"]}); }}});
  EXPECT_EQ(Rewrite(g.Make(Op::kNeg, {Leaf(0)}), rules), Leaf(0));
  EXPECT_EQ(pass.rule_hits.size(), 1u);
  EXPECT_EQ(pass.rule_hits["test-first"], 1);
}

TEST_F(RewriteTest, RulesThatDoNotEndAreNamed) {
  RuleSet turns({{"test-turns", Binary(Op::kSub, Any("x"), Any("y")),
                  [](const Match& m) { return m.Make(Op::kSub, {m["y"], m["x"]}); }}});
  absl::Status status = RewriteBottomUp(g.Sub(Leaf(0), Leaf(1)), turns, pass).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("rule 'test-turns' does not come to an end"));

  RuleSet grows({{"test-grows", Binary(Op::kAdd, Int("x"), Int("y")), [](const Match& m) {
                    return m.Make(Op::kAdd,
                                  {m.Make(Op::kXor, {m["x"], m["y"]}), m.Make(Op::kNeg, {m["y"]})});
                  }}});
  status = RewriteBottomUp(g.Add(Leaf(0), Leaf(1)), grows, pass).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("rule 'test-grows' does not come to an end"));

  RuleSet inside({{"test-inside", Unary(Op::kNeg, Any("x")),
                   [](const Match& m) { return m.Make(Op::kAbs, {m.root()}); }}});
  status = RewriteBottomUp(g.Make(Op::kNeg, {Leaf(0)}), inside, pass).status();
  EXPECT_THAT(status.message(), HasSubstr("rule 'test-inside' does not come to an end"));
}

TEST_F(RewriteTest, RulesThatChangeTheTypeAreNamed) {
  RuleSet rules({{"test-type", Unary(Op::kNeg, Any("x")),
                  [](const Match& m) { return m.context().Bool(true); }}});
  absl::Status status = RewriteBottomUp(g.Make(Op::kNeg, {Leaf(0)}), rules, pass).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("rule 'test-type' changes i32 to bool"));
}

TEST_F(RewriteTest, LongChainsNeedNoStack) {  // reported case 24
  const UOp* x = Leaf(0);
  const UOp* sum = x;
  const UOp* flips = x;
  for (int i = 0; i < 100000; ++i) {
    sum = g.Add(sum, I32(1));
    flips = g.Make(Op::kNeg, {flips});
  }
  EXPECT_EQ(Simplify(sum), g.Add(x, I32(100000)));
  EXPECT_EQ(Simplify(flips), x);
  // A chain that nothing applies to comes back as it is.
  const UOp* kept = Leaf(0, Scalar::kF32);
  for (int i = 0; i < 100000; ++i) kept = g.Make(Op::kSqrt, {kept});
  EXPECT_EQ(Simplify(kept), kept);
}

TEST_F(RewriteTest, SharedNodesAreRewrittenOnce) {
  // 2^60 paths, 60 nodes.
  const UOp* node = Leaf(0);
  for (int i = 0; i < 60; ++i) node = g.Make(Op::kXor, {g.Add(node, I32(0)), g.Add(I32(3), node)});
  EXPECT_NE(Simplify(node), node);
  EXPECT_EQ(pass.rule_hits["add-int-zero"], 60);
}

// --- The order of memory
// --------------------------------------------------------------------------

TEST_F(RewriteTest, LoadThatLosesItsLoopStaysInIt) {
  const UOp* y = g.Param(0, 4, Access::kInOut, Scalar::kI32);
  const UOp* i = g.Range(0, 4);
  // Reads what the iteration before wrote: outside of the loop it would read the first value only.
  const UOp* v = g.Load(y, g.Mul(i, g.Int(0)));
  const UOp* store = g.Store(y, g.Int(0), g.Add(v, I32(5)));
  const UOp* kept = g.Load(g.After(y, {i}), g.Int(0));
  EXPECT_EQ(Simplify(g.Kernel({g.End(i, {store})})),
            g.Kernel({g.End(i, {g.Store(y, g.Int(0), g.Add(kept, I32(5)))})}));
}

TEST_F(RewriteTest, LoadOfConstantMemoryMayLeaveItsLoop) {
  const UOp* x = g.Param(0, 4, Access::kIn, Scalar::kI32);
  const UOp* y = g.Param(1, 4, Access::kOut, Scalar::kI32);
  const UOp* i = g.Range(0, 4);
  const UOp* store = g.Store(y, i, g.Load(x, g.Mul(i, g.Int(0))));
  EXPECT_EQ(Simplify(g.Kernel({g.End(i, {store})})),
            g.Kernel({g.End(i, {g.Store(y, i, g.Load(x, g.Int(0)))})}));
}

TEST_F(RewriteTest, StoreThatLosesALoadStaysBehindIt) {
  const UOp* y = g.Param(0, 4, Access::kInOut, Scalar::kI32);
  const UOp* z = g.Param(1, 4, Access::kOut, Scalar::kI32);
  const UOp* v = g.Load(y, g.Int(0));
  const UOp* keep = g.Store(z, g.Int(0), v);
  const UOp* clear = g.Store(y, g.Int(0), g.Mul(v, I32(0)));
  EXPECT_EQ(Simplify(g.Kernel({keep, clear})),
            g.Kernel({keep, g.Store(g.After(y, {v}), g.Int(0), I32(0))}));
}

TEST_F(RewriteTest, StoreListedByItsLoopNeedsNoOtherTie) {
  const UOp* y = g.Param(0, 4, Access::kOut, Scalar::kI32);
  const UOp* i = g.Range(0, 4);
  const UOp* store = g.Store(y, g.Mul(i, g.Int(0)), I32(1));
  EXPECT_EQ(Simplify(g.Kernel({g.End(i, {store})})),
            g.Kernel({g.End(i, {g.Store(y, g.Int(0), I32(1))})}));
}

TEST_F(RewriteTest, ReductionOfChangingMemoryStaysBeforeAStore) {
  const UOp* y = g.Param(0, 4, Access::kInOut, Scalar::kI32);
  const UOp* i = g.Range(0, 4);
  const UOp* sum = g.Sum(g.Load(y, i), {i});
  const UOp* used = g.Store(g.Param(1, 4, Access::kOut, Scalar::kI32), g.Int(0), sum);
  const UOp* clear = g.Store(y, g.Int(1), g.Mul(sum, I32(0)));
  EXPECT_EQ(Simplify(g.Kernel({used, clear})),
            g.Kernel({used, g.Store(g.After(y, {sum}), g.Int(1), I32(0))}));
}

TEST_F(RewriteTest, EffectsThatOnlyADroppedLoadPerformedAreKept) {
  const UOp* y = g.Param(0, 4, Access::kInOut, Scalar::kI32);
  const UOp* z = g.Param(1, 4, Access::kOut, Scalar::kI32);
  const UOp* i = g.Range(0, 4);
  const UOp* set = g.Store(y, i, I32(7));
  const UOp* read = g.Load(g.After(y, {set}), i);
  const UOp* use = g.Store(z, i, g.Mul(read, I32(0)));
  const UOp* kept = g.Store(g.After(z, {read}), i, I32(0));
  EXPECT_EQ(Simplify(g.Kernel({g.End(i, {use})})), g.Kernel({g.End(i, {kept})}));
}

TEST_F(RewriteTest, ReductionThatWouldLoseAStoreStays) {
  const UOp* y = g.Param(0, 4, Access::kInOut, Scalar::kI32);
  const UOp* z = g.Param(1, 4, Access::kOut, Scalar::kI32);
  const UOp* i = g.Range(0, 4);
  const UOp* set = g.Store(y, i, I32(7));
  const UOp* sum = g.Sum(g.Mul(g.Load(g.After(y, {set}), i), I32(0)), {i});
  const UOp* sink = g.Kernel({g.Store(z, g.Int(0), sum)});
  EXPECT_EQ(Simplify(sink), sink);
}

TEST_F(RewriteTest, StoreBehindAReductionStaysBehindWhatTheReductionRead) {
  const UOp* y = g.Param(0, 4, Access::kInOut, Scalar::kI32);
  const UOp* i = g.Range(0, 4);
  const UOp* first = g.Store(y, g.Int(0), I32(7));
  const UOp* sum = g.Sum(g.Mul(g.Load(g.After(y, {first}), i), I32(0)), {i});
  const UOp* second = g.Store(y, g.Int(0), sum);
  // The reduction no longer reads, but the stores keep their order.
  const UOp* empty = g.Sum(I32(0), {i});
  EXPECT_EQ(Simplify(g.Kernel({second})),
            g.Kernel({g.Store(g.After(y, {first}), g.Int(0), empty)}));
}

TEST_F(RewriteTest, WhatAKernelIsCalledWithStays) {
  const UOp* x = g.Param(0, 4, Access::kIn, Scalar::kI32);
  const UOp* y = g.Param(1, 4, Access::kOut, Scalar::kI32);
  const UOp* n = g.Variable("n", 1, 9);
  const UOp* core = g.Make(Op::kCoreId, {n});
  const UOp* at = g.Mul(core, g.Int(0));
  const UOp* sink = g.Kernel({g.Store(y, at, g.Mul(g.Load(x, at), I32(0)))});
  // The SINK lists them in the order in which they stood.
  EXPECT_EQ(Simplify(sink), g.Kernel({g.Store(y, g.Int(0), I32(0)), core, x}));
}

}  // namespace
}  // namespace svod
