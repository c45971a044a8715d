#include "ir/kernel_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/linearize.h"
#include "ir/text.h"

namespace svod {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class KernelBuilderTest : public ::testing::Test {
 protected:
  // The buffer state that a LOAD or STORE addresses.
  static const UOp* StateOf(const UOp* access) { return access->source(0)->source(0); }
  // What its AFTER names; empty without one.
  static std::vector<const UOp*> OrderOf(const UOp* access) {
    const UOp* state = StateOf(access);
    if (state->op() != Op::kAfter) return {};
    return {state->sources().begin() + 1, state->sources().end()};
  }
  const UOp* Index(int64_t value) { return context_->Index(value); }
  const UOp* Value(double value) { return context_->Float(Scalar::kF32, value); }
  const UOp* Add(const UOp* a, const UOp* b) { return b_.Make(Op::kAdd, {a, b}); }

  void ExpectFailure(absl::string_view message,
                     absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
    absl::StatusOr<const UOp*> sink = b_.Finish();
    ASSERT_FALSE(sink.ok());
    EXPECT_EQ(sink.status().code(), code);
    EXPECT_THAT(std::string(sink.status().message()), HasSubstr(std::string(message)));
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  KernelBuilder b_{context_, "k"};
};

// --- Order ------------------------------------------------------------------------------------

TEST_F(KernelBuilderTest, StoreThenLoadOfOneElementIsOrdered) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  const UOp* store = b_.Store(y, Index(3), Value(1));
  const UOp* load = b_.Load(y, Index(3));
  EXPECT_THAT(OrderOf(load), ElementsAre(store));
  EXPECT_EQ(StateOf(store), y);
}

TEST_F(KernelBuilderTest, AccessesOfOtherElementsAndOtherBuffersAreNot) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  const UOp* z = b_.Param("z", Scalar::kF32, {8}, Access::kInOut);
  b_.Store(y, Index(3), Value(1));
  EXPECT_EQ(StateOf(b_.Load(y, Index(4))), y);
  EXPECT_EQ(StateOf(b_.Load(z, Index(3))), z);
}

TEST_F(KernelBuilderTest, LoadsAreNotOrderedAmongThemselves) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  const UOp* first = b_.Load(y, Index(3));
  EXPECT_EQ(b_.Load(y, Index(3)), first);
  EXPECT_EQ(StateOf(first), y);
}

TEST_F(KernelBuilderTest, AValueThatLeadsBackIsOrderEnough) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  const UOp* load = b_.Load(y, Index(3));
  const UOp* store = b_.Store(y, Index(3), Add(load, Value(1)));
  EXPECT_EQ(StateOf(store), y);
  // A store of something else overwrites what was loaded: it must wait.
  const UOp* z = b_.Param("z", Scalar::kF32, {8}, Access::kInOut);
  const UOp* read = b_.Load(z, Index(3));
  EXPECT_THAT(OrderOf(b_.Store(z, Index(3), Value(1))), ElementsAre(read));
}

TEST_F(KernelBuilderTest, OnlyTheLastStoreOfAnElementIsNamed) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  b_.Store(y, Index(3), Value(1));
  const UOp* second = b_.Store(y, Index(3), Value(2));
  const UOp* other = b_.Store(y, Index(4), Value(2));
  EXPECT_THAT(OrderOf(b_.Load(y, Index(3))), ElementsAre(second));
  // One that may be any element comes after both.
  const UOp* n = b_.Variable("n", 0, 7);
  EXPECT_THAT(OrderOf(b_.Load(y, n)), UnorderedElementsAre(second, other));
}

TEST_F(KernelBuilderTest, VectorsOverlapElementByElement) {
  const UOp* y = b_.Param("y", Scalar::kF32, {32}, Access::kInOut);
  const UOp* vector = context_->Float(DType(Scalar::kF32, 8), 0);
  const UOp* wide = b_.Store(y, Index(8), vector);
  EXPECT_EQ(StateOf(b_.Load(y, Index(7))), y);
  EXPECT_EQ(StateOf(b_.Load(y, Index(16))), y);
  EXPECT_THAT(OrderOf(b_.Load(y, Index(15))), ElementsAre(wide));
  KernelBuilder::AccessOptions options;
  options.lanes = 2;
  EXPECT_THAT(OrderOf(b_.Load(y, {Index(7)}, options)), ElementsAre(wide));
}

TEST_F(KernelBuilderTest, AfterALoopItsEndStandsForItsAccesses) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  const UOp* i = b_.Range(8);
  b_.Store(y, i, Value(1));
  const UOp* end = b_.End(i);
  EXPECT_THAT(OrderOf(b_.Load(y, Index(0))), ElementsAre(end));
}

TEST_F(KernelBuilderTest, AfterAReduceItStandsForItsLoads) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  const UOp* x = b_.Param("x", Scalar::kF32, {8}, Access::kIn);
  const UOp* k = b_.Range(8, AxisKind::kReduce);
  const UOp* v = b_.Load(y, k);
  const UOp* w = b_.Load(x, k);
  // Two reduces share the loop; only the second reads y.
  b_.Reduce(ReduceKind::kAdd, w, {k});
  const UOp* largest = b_.Reduce(ReduceKind::kMax, v, {k});
  EXPECT_THAT(OrderOf(b_.Store(y, Index(0), Value(1))), ElementsAre(largest));
}

TEST_F(KernelBuilderTest, OfNestedReducesThoseCountThatDependOnTheAccess) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  const UOp* x = b_.Param("x", Scalar::kF32, {8}, Access::kIn);
  const UOp* i = b_.Range(8, AxisKind::kReduce);
  const UOp* k = b_.Range(8, AxisKind::kReduce);
  const UOp* v = b_.Load(x, k);
  const UOp* w = b_.Load(y, k);
  const UOp* sum = b_.Reduce(ReduceKind::kAdd, v, {k});
  const UOp* largest = b_.Reduce(ReduceKind::kMax, w, {k});
  const UOp* of_sums = b_.Reduce(ReduceKind::kAdd, sum, {i});
  const UOp* of_largest = b_.Reduce(ReduceKind::kMax, largest, {i});
  // The sums lead to x only.
  EXPECT_THAT(OrderOf(b_.Store(y, Index(0), of_sums)), ElementsAre(of_largest));
}

TEST_F(KernelBuilderTest, WhatALoopLoadsForNothingNeedsNoOrder) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  const UOp* z = b_.Param("z", Scalar::kF32, {8}, Access::kOut);
  const UOp* i = b_.Range(8);
  b_.Load(y, i);
  b_.Store(z, i, Value(1));
  b_.End(i);
  EXPECT_EQ(StateOf(b_.Store(y, Index(0), Value(1))), y);
}

TEST_F(KernelBuilderTest, AccessesStayInTheLoopsAroundThem) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kOut);
  const UOp* acc = b_.Reg(Scalar::kF32, 1);
  const UOp* i = b_.Range(8);
  const UOp* init = b_.Store(acc, Index(0), Value(0));
  const UOp* k = b_.Range(4);
  const UOp* old = b_.Load(acc, Index(0));
  const UOp* add = b_.Store(acc, Index(0), Add(old, Value(1)));
  const UOp* end = b_.End(k);
  const UOp* total = b_.Load(acc, Index(0));
  const UOp* result = b_.Store(y, i, total);
  b_.End(i);
  EXPECT_THAT(OrderOf(init), ElementsAre(i));
  EXPECT_THAT(OrderOf(old), ElementsAre(init, k));  // i follows from init
  EXPECT_EQ(StateOf(add), acc);
  EXPECT_THAT(OrderOf(total), ElementsAre(end));
  EXPECT_EQ(StateOf(result), y);
  absl::StatusOr<const UOp*> sink = b_.Finish();
  ASSERT_TRUE(sink.ok()) << sink.status();
  EXPECT_TRUE(Linearize(*sink).ok());
}

TEST_F(KernelBuilderTest, EveryOpenLoopIsNamedThatAnAccessDoesNotDependOn) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  const UOp* i = b_.Range(2);
  const UOp* j = b_.Range(8);
  // Without i this loop would run once, and add once.
  const UOp* load = b_.Load(y, j);
  EXPECT_THAT(OrderOf(load), ElementsAre(i));
  const UOp* store = b_.Store(y, j, Add(load, Value(1)));
  EXPECT_EQ(StateOf(store), y);
  b_.End(j);
  b_.End(i);
  absl::StatusOr<const UOp*> sink = b_.Finish();
  ASSERT_TRUE(sink.ok()) << sink.status();
  absl::StatusOr<LinearKernel> linear = Linearize(*sink);
  ASSERT_TRUE(linear.ok()) << linear.status();
  EXPECT_EQ(linear->parent_loop[j], i);
}

TEST_F(KernelBuilderTest, InputsNeverChangeAndStayOutside) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kOut);
  const UOp* x = b_.Param("x", Scalar::kF32, {8}, Access::kIn);
  const UOp* i = b_.Range(8);
  EXPECT_EQ(StateOf(b_.Load(x, Index(0))), x);
  b_.Store(y, i, Value(1));
}

TEST_F(KernelBuilderTest, ExactAccessesGetNoOrder) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  const UOp* store = b_.Store(y, Index(3), Value(1));
  KernelBuilder::AccessOptions options;
  options.exact = true;
  EXPECT_EQ(StateOf(b_.Load(y, {Index(3)}, options)), y);
  // One that names its state itself is ordered already.
  const UOp* state = b_.After(y, {store});
  const UOp* load = b_.Load(state, Index(3));
  EXPECT_EQ(StateOf(load), state);
}

TEST_F(KernelBuilderTest, EffectsAreThoseThatNoOtherTakesUp) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  const UOp* z = b_.Param("z", Scalar::kF32, {8}, Access::kOut);
  const UOp* i = b_.Range(8);
  b_.Store(y, i, Value(1));
  const UOp* through = b_.Store(z, i, b_.Load(y, i));  // takes up the first
  const UOp* last = b_.Store(y, i, Value(2));
  const UOp* end = b_.End(i);
  EXPECT_THAT(end->sources(), ElementsAre(i, through, last));
  absl::StatusOr<const UOp*> sink = b_.Finish();
  ASSERT_TRUE(sink.ok()) << sink.status();
  EXPECT_THAT((*sink)->sources(), ElementsAre(end));
}

TEST_F(KernelBuilderTest, AStoreWhoseOnlyReaderIsUnusedIsStillPerformed) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  const UOp* store = b_.Store(y, Index(0), Value(1));
  b_.Load(y, Index(0));
  absl::StatusOr<const UOp*> sink = b_.Finish();
  ASSERT_TRUE(sink.ok()) << sink.status();
  EXPECT_THAT((*sink)->sources(), ElementsAre(store));
}

TEST_F(KernelBuilderTest, CoordinatesAreRowMajor) {
  const UOp* n = b_.Variable("n", 1, 100);
  const UOp* y = b_.Param("y", Scalar::kF32, {Index(4), n, Index(8)}, Access::kOut);
  const UOp* i = b_.Range(4);
  const UOp* j = b_.Range(n);
  const UOp* store = b_.Store(y, {i, j, Index(5)}, Value(1), {});
  const UOp* expected =
      Add(b_.Make(Op::kMul, {Add(b_.Make(Op::kMul, {i, n}), j), Index(8)}), Index(5));
  EXPECT_EQ(store->source(0)->source(1), expected);
}

// --- Errors -----------------------------------------------------------------------------------

TEST_F(KernelBuilderTest, ErrorsStick) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  EXPECT_EQ(b_.Make(Op::kAdd, {y}), nullptr);
  EXPECT_EQ(b_.Load(y, Index(0)), nullptr);
  EXPECT_EQ(b_.Range(4), nullptr);
  EXPECT_EQ(b_.End(nullptr), nullptr);
  ExpectFailure("add: number of operands, got 1, expected 2");
}

TEST_F(KernelBuilderTest, LoopsCloseInnermostFirst) {
  b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  const UOp* i = b_.Range(4);
  b_.Range(4);
  EXPECT_EQ(b_.End(i), nullptr);
  ExpectFailure("end: its range is not the innermost open loop");
}

TEST_F(KernelBuilderTest, ReduceClosesTheInnermostLoops) {
  const UOp* i = b_.Range(4);
  const UOp* j = b_.Range(4);
  EXPECT_EQ(b_.Reduce(ReduceKind::kAdd, i, {j, i}), nullptr);
  ExpectFailure("reduce: its ranges are not the innermost open loops");
}

TEST_F(KernelBuilderTest, OpenLoopAtTheEnd) {
  b_.Range(4);
  ExpectFailure("a loop is still open", absl::StatusCode::kFailedPrecondition);
}

TEST_F(KernelBuilderTest, ValuesOfALoopStayInIt) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  const UOp* i = b_.Range(4);
  const UOp* v = Add(i, Index(1));
  b_.Store(y, i, Value(1));
  b_.End(i);
  EXPECT_EQ(Add(v, Index(1)), nullptr);
  EXPECT_EQ(b_.bad_operand(), v);
  ExpectFailure("add: used after the end of its loop");
}

TEST_F(KernelBuilderTest, ASecondReduceOfALoopFollowsTheFirst) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  const UOp* i = b_.Range(4);
  const UOp* v = b_.Make(Op::kCast, Scalar::kF32, {i});
  const UOp* sum = b_.Reduce(ReduceKind::kAdd, v, {i});
  EXPECT_NE(b_.Reduce(ReduceKind::kMax, v, {i}), nullptr);
  b_.Store(y, Index(0), sum);
  EXPECT_EQ(b_.Reduce(ReduceKind::kMin, v, {i}), nullptr);
  ExpectFailure("used after the end of its loop");
}

TEST_F(KernelBuilderTest, AStoreThatNothingPerformsIsAnError) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  const UOp* first = b_.Store(y, Index(0), Value(1));
  const UOp* second = b_.Store(y, Index(1), Value(1));
  EXPECT_FALSE(b_.Finish({first}).ok());
  EXPECT_EQ(b_.culprit(), second);
  ExpectFailure("store: not performed, expected among the effects of the sink");
}

TEST_F(KernelBuilderTest, AStoreInAReducedLoopMustBePartOfTheValue) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  const UOp* k = b_.Range(4, AxisKind::kReduce);
  const UOp* store = b_.Store(y, k, Value(1));
  const UOp* sum = b_.Reduce(ReduceKind::kAdd, Value(1), {k});
  b_.Store(y, Index(0), sum);
  EXPECT_EQ(b_.culprit(), store);
  ExpectFailure("is not part of the reduced value");
}

TEST_F(KernelBuilderTest, AReduceThatStoresMustBeUsed) {
  b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  const UOp* r = b_.Reg(Scalar::kF32, 1);
  const UOp* k = b_.Range(4, AxisKind::kReduce);
  b_.Store(r, Index(0), Value(1));
  b_.Reduce(ReduceKind::kAdd, b_.Load(r, Index(0)), {k});
  ExpectFailure("reduce: its loop stores, but nothing uses its value");
}

TEST_F(KernelBuilderTest, NodesOfOthersAreRefused) {
  Context other;
  b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  EXPECT_EQ(b_.Range(other.Index(4)), nullptr);
  ExpectFailure("const: not made by this builder");

  KernelBuilder second(context_, "second");
  const UOp* i = second.Range(4);
  KernelBuilder third(context_, "third");
  EXPECT_EQ(third.Make(Op::kAdd, {i, i}), nullptr);
  EXPECT_THAT(std::string(third.status().message()), HasSubstr("range: not made by this builder"));
}

TEST_F(KernelBuilderTest, ArithmeticOfTheContextIsWelcome) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  const UOp* i = b_.Range(4);
  const UOp* sum = *context_->Make(Op::kAdd, {i, Index(1)});
  EXPECT_NE(b_.Store(y, sum, Value(1)), nullptr);
  b_.End(i);
  EXPECT_TRUE(b_.Finish().ok());
}

TEST_F(KernelBuilderTest, LoopsNestUpToTheLimit) {
  const UOp* y = b_.Param("y", Scalar::kF32, {1}, Access::kInOut);
  std::vector<const UOp*> loops;
  for (int i = 0; i < kMaxLoopDepth; ++i) loops.push_back(b_.Range(1));
  b_.Store(y, Index(0), Value(1));
  for (; !loops.empty(); loops.pop_back()) ASSERT_NE(b_.End(loops.back()), nullptr);
  absl::StatusOr<const UOp*> sink = b_.Finish();
  ASSERT_TRUE(sink.ok()) << sink.status();
  EXPECT_TRUE(Linearize(*sink).ok());

  KernelBuilder deep(context_, "deep");
  for (int i = 0; i < kMaxLoopDepth; ++i) EXPECT_NE(deep.Range(1), nullptr);
  EXPECT_EQ(deep.Range(1), nullptr);
  EXPECT_THAT(std::string(deep.status().message()), HasSubstr("open loops, expected at most"));
}

TEST_F(KernelBuilderTest, AnUnusedParameterIsAnError) {
  const UOp* y = b_.Param("y", Scalar::kF32, {8}, Access::kInOut);
  b_.Param("x", Scalar::kF32, {8}, Access::kIn);
  b_.Store(y, Index(0), Value(1));
  ExpectFailure("param: never used");
}

// --- Size -------------------------------------------------------------------------------------

// Many accesses that may all touch one another: order by joins, in linear time, and still complete.
TEST_F(KernelBuilderTest, ManyConflictsTakeLinearTime) {
  constexpr int kNum = 5000;
  const UOp* y = b_.Param("y", Scalar::kF32, {1000000}, Access::kInOut);
  const UOp* x = b_.Param("x", Scalar::kI32, {1000000}, Access::kIn);
  std::vector<const UOp*> accesses;
  for (int i = 0; i < kNum; ++i) {
    // Unknown positions, so that no two can be told apart.
    const UOp* position = b_.Make(Op::kCast, Scalar::kIndex, {b_.Load(x, Index(i))});
    const UOp* fixed = Index(2 * i);
    accesses.push_back(b_.Store(y, fixed, Value(i)));
    accesses.push_back(i % 2 == 0 ? b_.Load(y, position) : b_.Store(y, position, Value(1)));
    ASSERT_NE(accesses.back(), nullptr) << b_.status();
  }
  absl::StatusOr<const UOp*> sink = b_.Finish();
  ASSERT_TRUE(sink.ok()) << sink.status();
  int64_t num_edges = 0;
  std::vector<const UOp*> order = Toposort(*sink);
  for (const UOp* node : order) num_edges += node->num_sources();
  EXPECT_LT(num_edges, 100 * kNum);

  // Every store of an unknown place is under every later access of an unknown place: there is a
  // chain through all of them.
  absl::flat_hash_map<const UOp*, int> latest;  // the largest number of an unknown store under it
  absl::flat_hash_map<const UOp*, int> number;
  for (size_t i = 0; i < accesses.size(); ++i) number[accesses[i]] = static_cast<int>(i);
  for (const UOp* node : order) {
    int& most = latest[node];
    most = -1;
    for (const UOp* source : node->sources()) most = std::max(most, latest[source]);
    auto it = number.find(node);
    if (it == number.end()) continue;
    int i = it->second;
    if (i % 2 == 1 && i > 4) {
      EXPECT_EQ(most, (i - 3) / 4 * 4 + 3 - (i % 4 == 3 ? 4 : 0)) << i;
    }
    if (i % 4 == 3) most = i;
  }
}

}  // namespace
}  // namespace svod
