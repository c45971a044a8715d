#include "ir/linearize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/unit/ir/raw_graph.h"

namespace svod {
namespace {

using ::testing::HasSubstr;
using Nodes = RawGraph::Nodes;

// Loops as "0{ ... }", ops by name; constants, indices and buffers are left out.
std::string Show(const absl::StatusOr<LinearKernel>& kernel) {
  if (!kernel.ok()) return std::string(kernel.status().message());
  std::vector<std::string> words;
  for (const Step& step : kernel->steps) {
    Op op = step.node->op();
    if (step.kind == Step::Kind::kLoopBegin) {
      words.push_back(absl::StrCat(step.node->arg<AxisArgument>().axis, "{"));
    } else if (step.kind == Step::Kind::kLoopEnd) {
      words.push_back("}");
    } else if (op != Op::kConst && op != Op::kIndex && InfoOf(op).op_class != OpClass::kBuffer) {
      words.push_back(InfoOf(op).text);
    }
  }
  return absl::StrJoin(words, " ");
}

// Every step's sources stand before it in a loop that is still open or around it, and every node
// is there once.
void ExpectRunnable(const UOp* sink, const LinearKernel& kernel) {
  absl::flat_hash_set<const UOp*> available, seen;
  std::vector<std::vector<const UOp*>> scopes(1);
  std::vector<const UOp*> open;
  for (const Step& step : kernel.steps) {
    const UOp* node = step.node;
    if (step.kind == Step::Kind::kLoopEnd) {
      ASSERT_FALSE(open.empty());
      ASSERT_EQ(open.back(), node);
      for (const UOp* gone : scopes.back()) {
        if (!IsEffect(gone->op())) available.erase(gone);
      }
      scopes.pop_back();
      open.pop_back();
      continue;
    }
    ASSERT_TRUE(seen.insert(node).second) << InfoOf(node->op()).text;
    bool is_closer = node->op() == Op::kEnd || node->op() == Op::kReduce;
    for (const UOp* source : node->sources()) {
      if (source->op() == Op::kSink) continue;
      if (is_closer) {
        ASSERT_TRUE(seen.contains(source));
      } else {
        ASSERT_TRUE(available.contains(source))
            << InfoOf(node->op()).text << " needs " << InfoOf(source->op()).text;
      }
    }
    if (step.kind == Step::Kind::kLoopBegin) {
      auto parent = kernel.parent_loop.find(node);
      ASSERT_EQ(open.empty() ? nullptr : open.back(),
                parent == kernel.parent_loop.end() ? nullptr : parent->second);
      open.push_back(node);
      scopes.emplace_back();
    }
    auto loop = kernel.loop_of.find(node);
    ASSERT_EQ(open.empty() ? nullptr : open.back(),
              loop == kernel.loop_of.end() ? nullptr : loop->second);
    available.insert(node);
    scopes.back().push_back(node);
  }
  ASSERT_TRUE(open.empty());
  for (const UOp* node : Toposort(sink)) {
    if (node != sink) {
      ASSERT_TRUE(seen.contains(node)) << InfoOf(node->op()).text;
    }
  }
}

std::string Order(const UOp* sink) {
  absl::StatusOr<LinearKernel> kernel = Linearize(sink);
  if (kernel.ok()) ExpectRunnable(sink, *kernel);
  return Show(kernel);
}

void ExpectError(const UOp* sink, absl::string_view message, const UOp* blamed = nullptr) {
  const UOp* culprit = nullptr;
  absl::StatusOr<LinearKernel> kernel = Linearize(sink, &culprit);
  ASSERT_FALSE(kernel.ok()) << Show(kernel);
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(kernel.status().message()), HasSubstr(std::string(message)));
  ASSERT_NE(culprit, nullptr);
  if (blamed != nullptr) {
    EXPECT_EQ(culprit, blamed);
  }
}

TEST(LinearizeTest, AnEmptyKernelHasNoSteps) {
  RawGraph g;
  EXPECT_EQ(Order(g.Kernel({})), "");
}

TEST(LinearizeTest, APerfectNestRunsItsBodyInside) {
  RawGraph g;
  const UOp *i = g.Range(0, 4), *j = g.Range(1, 8);
  const UOp* at = g.Add(g.Mul(i, g.Int(8)), j);
  const UOp* store = g.Store(g.Param(0, 32), at, g.Load(g.Param(1, 32), at));
  EXPECT_EQ(Order(g.Kernel({g.End(i, {g.End(j, {store})})})),
            "0{ mul 1{ add load store } end } end");
}

TEST(LinearizeTest, AnImperfectNestKeepsItsEffectsAroundTheInnerLoop) {
  RawGraph g;
  const UOp *y = g.Param(0, 4), *x = g.Param(1, 4), *i = g.Range(0, 4), *j = g.Range(1, 8);
  const UOp* first = g.Store(y, i, g.Float(0));
  const UOp* inner = g.End(j, {g.Store(x, j, g.Float(1))});
  const UOp* last = g.Store(g.After(y, {first, inner}), i, g.Float(2));
  EXPECT_EQ(Order(g.Kernel({g.End(i, {first, inner, last})})),
            "0{ store 1{ store } end after store } end");
}

TEST(LinearizeTest, SequentialLoopsFollowTheSink) {
  RawGraph g;
  const UOp *i = g.Range(7, 4), *j = g.Range(3, 4);
  const UOp* a = g.End(i, {g.Store(g.Param(0, 4), i, g.Float(1))});
  const UOp* b = g.End(j, {g.Store(g.Param(1, 4), j, g.Float(2))});
  EXPECT_EQ(Order(g.Kernel({a, b})), "7{ store } end 3{ store } end");
  EXPECT_EQ(Order(g.Kernel({b, a})), "3{ store } end 7{ store } end");
}

TEST(LinearizeTest, ADependencyBeatsTheListedOrder) {
  RawGraph g;
  const UOp *x = g.Param(0, 4), *i = g.Range(0, 4), *j = g.Range(1, 4);
  const UOp* a = g.End(i, {g.Store(x, i, g.Float(1))});
  const UOp* b = g.End(j, {g.Store(g.After(x, {a}), j, g.Float(2))});
  EXPECT_EQ(Order(g.Kernel({b, a})), "0{ store } end after 1{ store } end");
}

TEST(LinearizeTest, AnInnerLoopNeedNotDependOnTheOuterCounter) {
  RawGraph g;
  const UOp *x = g.Param(0, 4), *i = g.Range(0, 4), *j = g.Range(1, 4);
  const UOp* bump = g.Store(x, j, g.Add(g.Load(x, j), g.Float(1)));
  EXPECT_EQ(Order(g.Kernel({g.End(i, {g.End(j, {bump})})})), "0{ 1{ load add store } end } end");
}

TEST(LinearizeTest, AStoreListedByAnEndIsOfItsLoop) {
  RawGraph g;
  const UOp *x = g.Param(0, 4), *i = g.Range(0, 4);
  const UOp* store = g.Store(x, g.Int(0), g.Float(1));
  EXPECT_EQ(Order(g.Kernel({g.End(i, {store})})), "0{ store } end");
  // So is whatever needs the store to have happened.
  const UOp* load = g.Load(g.After(x, {store}), g.Int(0));
  const UOp* copy = g.Store(g.Param(1, 4), i, load);
  EXPECT_EQ(Order(g.Kernel({g.End(i, {store, copy})})), "0{ store after load store } end");
}

TEST(LinearizeTest, ValuesLeaveLoopsThatTheyDoNotDependOn) {
  RawGraph g;
  const UOp *i = g.Range(0, 4), *j = g.Range(1, 4);
  const UOp* top = g.Make(Op::kExp, {g.Load(g.Param(1, 4, Access::kIn), g.Int(0))});
  const UOp* middle = g.Make(Op::kSin, {g.Load(g.Param(2, 4, Access::kIn), i)});
  const UOp* store = g.Store(g.Param(0, 4), j, g.Add(top, middle));
  EXPECT_EQ(Order(g.Kernel({g.End(i, {g.End(j, {store})})})),
            "load exp 0{ load sin add 1{ store } end } end");
}

TEST(LinearizeTest, TheEndOfALoopMayDependOnALoopAroundIt) {
  RawGraph g;
  const UOp* i = g.Range(0, 4);
  const UOp* j = g.Range(1, g.Add(i, g.Int(1)));
  EXPECT_EQ(Order(g.Kernel({g.End(i, {g.End(j, {g.Store(g.Param(0, 4), j, g.Float(0))})})})),
            "0{ add 1{ store } end } end");
}

TEST(LinearizeTest, AReductionRunsInItsLoopAndFollowsIt) {
  RawGraph g;
  const UOp *i = g.Range(0, 4), *k = g.Range(1, 8);
  const UOp* x = g.Load(g.Param(1, 32), g.Add(g.Mul(i, g.Int(8)), k));
  const UOp* store = g.Store(g.Param(0, 4), i, g.Sum(x, {k}));
  EXPECT_EQ(Order(g.Kernel({g.End(i, {store})})), "0{ mul 1{ add load } reduce store } end");
}

TEST(LinearizeTest, AReductionMayCloseSeveralRangesOutermostFirst) {
  RawGraph g;
  const UOp *a = g.Range(0, 4), *b = g.Range(1, 8);
  const UOp* partial = g.Make(Op::kSin, {g.Load(g.Param(1, 4), a)});
  const UOp* value = g.Mul(partial, g.Load(g.Param(2, 8), b));
  EXPECT_EQ(Order(g.Kernel({g.Store(g.Param(0, 1), g.Int(0), g.Sum(value, {a, b}))})),
            "0{ load sin 1{ load mul } } reduce store");
  EXPECT_EQ(Order(g.Kernel({g.Store(g.Param(0, 1), g.Int(0), g.Sum(value, {b, a}))})),
            "1{ load 0{ load sin mul } } reduce store");
  // The value need not depend on every range, nor on any.
  EXPECT_EQ(Order(g.Kernel({g.Store(g.Param(0, 1), g.Int(0), g.Sum(partial, {a, b}))})),
            "0{ load sin 1{ } } reduce store");
  EXPECT_EQ(Order(g.Kernel({g.Store(g.Param(0, 1), g.Int(0), g.Sum(g.Float(1), {a, b}))})),
            "0{ 1{ } } reduce store");
}

TEST(LinearizeTest, ReductionsFeedReductions) {  // softmax over the rows of a matrix
  RawGraph g;
  const UOp *y = g.Param(0, 32), *x = g.Param(1, 32), *i = g.Range(0, 4);
  auto at = [&](const UOp* column) { return g.Add(g.Mul(i, g.Int(8)), column); };
  const UOp *j = g.Range(1, 8), *k = g.Range(2, 8), *l = g.Range(3, 8);
  const UOp* max = g.Reduce(ReduceKind::kMax, g.Load(x, at(j)), {j});
  auto e = [&](const UOp* column) { return g.Make(Op::kExp, {g.Sub(g.Load(x, at(column)), max)}); };
  const UOp* sum = g.Sum(e(k), {k});
  const UOp* store = g.Store(y, at(l), g.Make(Op::kFdiv, {e(l), sum}));
  EXPECT_EQ(Order(g.Kernel({g.End(i, {g.End(l, {store})})})),
            "0{ mul 1{ add load } reduce 2{ add load sub exp } reduce "
            "3{ add load sub exp fdiv store } end } end");
}

TEST(LinearizeTest, ReductionsOverTheSameRangesShareOneLoop) {
  RawGraph g;
  const UOp *i = g.Range(0, 4), *k = g.Range(1, 8);
  const UOp* x = g.Load(g.Param(1, 32), k);
  const UOp* sum = g.Sum(x, {k});
  // Only the second depends on i, but one loop serves both.
  const UOp* scaled = g.Sum(g.Mul(x, g.Load(g.Param(2, 4), i)), {k});
  const UOp* store = g.Store(g.Param(0, 4), i, g.Make(Op::kFdiv, {sum, scaled}));
  EXPECT_EQ(Order(g.Kernel({g.End(i, {store})})),
            "0{ load 1{ load mul } reduce reduce fdiv store } end");
  absl::StatusOr<LinearKernel> kernel = Linearize(g.Kernel({g.End(i, {store})}));
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ(kernel->closers[k], Nodes({sum, scaled}));
}

TEST(LinearizeTest, AReductionInsideAReductionsLoop) {
  RawGraph g;
  const UOp *a = g.Range(0, 4), *b = g.Range(1, 8);
  const UOp* inner = g.Sum(g.Mul(g.Load(g.Param(1, 8), b), g.Load(g.Param(2, 4), a)), {b});
  const UOp* outer = g.Reduce(ReduceKind::kMax, inner, {a});
  EXPECT_EQ(Order(g.Kernel({g.Store(g.Param(0, 1), g.Int(0), outer)})),
            "0{ load 1{ load mul } reduce } reduce store");
}

TEST(LinearizeTest, AnAccumulatorLivesInTheLoopThatPinsIt) {
  RawGraph g;
  const UOp *i = g.Range(0, 4), *k = g.Range(1, 8), *acc = g.Reg(0, 1), *zero = g.Int(0);
  const UOp* clear = g.Store(g.After(acc, {i}), zero, g.Float(0));
  const UOp* state = g.After(acc, {clear, k});
  const UOp* add = g.Store(state, zero, g.Add(g.Load(state, zero), g.Load(g.Param(1, 8), k)));
  const UOp* end = g.End(k, {add});
  const UOp* store = g.Store(g.Param(0, 4), i, g.Load(g.After(acc, {end}), zero));
  EXPECT_EQ(Order(g.Kernel({g.End(i, {store})})),
            "0{ after store 1{ after load load add store } end after load store } end");
}

TEST(LinearizeTest, TheOrderDoesNotDependOnConstruction) {
  auto build = [](RawGraph& g, bool backwards) {
    const UOp* i = nullptr;
    if (backwards) {  // make every leaf in another order first
      for (int64_t value : {8, 4, 2, 0}) g.Int(value);
      g.Param(2, 8), g.Param(1, 8), g.Param(0, 8), g.Range(1, 8);
    }
    i = g.Range(0, 4);
    const UOp* j = g.Range(1, 8);
    const UOp* a = g.End(i, {g.Store(g.Param(0, 8), i, g.Load(g.Param(1, 8), i))});
    const UOp* b = g.End(j, {g.Store(g.Param(2, 8), j, g.Load(g.Param(1, 8), j))});
    return g.Kernel({a, b});
  };
  RawGraph forwards, backwards;
  const UOp* first = build(forwards, false);
  const UOp* second = build(backwards, true);
  ASSERT_EQ(first->hash(), second->hash());
  absl::StatusOr<LinearKernel> a = Linearize(first), b = Linearize(second);
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_EQ(a->steps.size(), b->steps.size());
  for (size_t i = 0; i < a->steps.size(); ++i) {
    EXPECT_EQ(a->steps[i].node->hash(), b->steps[i].node->hash()) << i;
    EXPECT_EQ(a->steps[i].kind, b->steps[i].kind) << i;
  }
}

TEST(LinearizeTest, AGraphIsOrderedWithoutTheKernelsThatItCalls) {
  RawGraph g;
  const UOp* i = g.Range(0, 4);
  const UOp* kernel = g.Kernel({g.End(i, {g.Store(g.Param(0, 4), i, g.Float(1))})});
  const UOp* buffer = g.Make(Op::kBuffer, Scalar::kF32, {g.Int(4)}, BufferArgument{0});
  const UOp* call = g.Make(Op::kCall, {kernel, buffer});
  absl::StatusOr<LinearKernel> plan = Linearize(g.Plan({g.After(buffer, {call})}));
  EXPECT_EQ(Show(plan), "call after");
  EXPECT_EQ(plan->steps.size(), 4u);  // the dimension, the buffer, the call, its after
}

TEST(LinearizeErrorTest, RootIsNoSink) {
  RawGraph g;
  ExpectError(g.Int(1), "linearize: root, got const, expected sink");
}

TEST(LinearizeErrorTest, ARangeIsNeverClosed) {
  RawGraph g;
  const UOp* i = g.Range(5, 4);
  ExpectError(g.Kernel({g.Store(g.Param(0, 4), i, g.Float(1))}),
              "linearize: range of axis 5: never closed, expected an end or a reduce", i);
}

TEST(LinearizeErrorTest, ARangeIsClosedTwice) {
  RawGraph g;
  const UOp *i = g.Range(5, 4), *j = g.Range(6, 4);
  const UOp* a = g.End(i, {g.Store(g.Param(0, 4), i, g.Float(1))});
  const UOp* b = g.End(i, {g.Store(g.Param(1, 4), i, g.Float(2))});
  ExpectError(g.Kernel({a, b}),
              "range of axis 5: closed twice, by end of axis 5 and by end of axis 5", b);
  const UOp* sum = g.Sum(g.Load(g.Param(1, 4), i), {i});
  ExpectError(g.Kernel({a, g.Store(g.Param(2, 4), g.Int(0), sum)}),
              "closed twice, by end of axis 5 and by reduce_add over axis 5");
  const UOp* both = g.Sum(g.Load(g.Param(1, 4), i), {j, i});
  ExpectError(g.Kernel({g.Store(g.Param(2, 4), g.Int(0), g.Add(sum, both))}),
              "closed twice, by reduce_add over axis 5 and by reduce_add over axis 6, 5");
  ExpectError(g.Kernel({g.Store(g.Param(2, 4), g.Int(0), g.Sum(g.Float(1), {i, i}))}),
              "reduce_add over axis 5, 5: names axis 5 twice, expected each once");
}

TEST(LinearizeErrorTest, ARangeIsUsedAfterItsEnd) {
  RawGraph g;
  const UOp *x = g.Param(0, 4), *i = g.Range(5, 4), *j = g.Range(6, 4);
  const UOp* end = g.End(i, {g.Store(x, i, g.Float(1))});
  const UOp* late = g.Store(g.After(x, {end}), i, g.Float(2));
  ExpectError(g.Kernel({end, late}),
              "range of axis 5: used after its end, by store, expected only under end of axis 5",
              late);
  // The same through another loop, and through an effect that is of the loop by being listed.
  const UOp* nested = g.End(j, {g.Store(g.Param(1, 4), j, g.Load(g.After(x, {end}), i))});
  ExpectError(g.Kernel({end, nested}), "range of axis 5: used after its end, by store");
  const UOp* inside = g.Store(x, g.Int(0), g.Float(1));
  const UOp* reader = g.Store(g.Param(1, 4), g.Int(0), g.Load(g.After(x, {inside}), g.Int(0)));
  ExpectError(g.Kernel({g.End(i, {inside}), reader}), "range of axis 5: used after its end",
              reader);
  ExpectError(g.Kernel({g.End(i, {inside}), inside}), "range of axis 5: used after its end, by ");
  ExpectError(g.Kernel({end, i}), "range of axis 5: used after its end, by sink");
}

TEST(LinearizeErrorTest, AReductionIsUsedInItsOwnLoop) {
  RawGraph g;
  const UOp* k = g.Range(1, 8);
  const UOp* max = g.Reduce(ReduceKind::kMax, g.Load(g.Param(1, 8), k), {k});
  const UOp* sum = g.Sum(g.Sub(g.Load(g.Param(1, 8), k), max), {k});
  ExpectError(g.Kernel({g.Store(g.Param(0, 1), g.Int(0), sum)}),
              "reduce_max over axis 1: used inside its own loop, by sub", max);
  // Two groups that wait for each other.
  const UOp* l = g.Range(2, 8);
  auto over = [&](const UOp* value, const UOp* range) {
    return g.Sum(g.Add(value, g.Load(g.Param(1, 8), range)), {range});
  };
  const UOp *k1 = over(g.Float(1), k), *l1 = over(g.Float(2), l);
  const UOp *k2 = over(l1, k), *l2 = over(k1, l);
  ExpectError(g.Kernel({g.Store(g.Param(0, 1), g.Int(0), g.Add(k2, l2))}),
              "used inside its own loop");
}

TEST(LinearizeErrorTest, LoopsInterleave) {
  RawGraph g;
  const UOp *x = g.Param(0, 64), *i = g.Range(3, 4), *j = g.Range(4, 4);
  const UOp* in_both = g.Store(x, g.Add(i, j), g.Float(1));
  // Each would have to stand in the other: one effect under i's end that needs j, and vice versa.
  const UOp* other = g.Store(g.Param(1, 64), g.Add(i, j), g.Float(1));
  ExpectError(
      g.Kernel({g.End(i, {in_both}), g.End(j, {other})}),
      "loops of axis 3 and axis 4: would have to interleave, expected one inside the other");
  // Two loops in no order around one node: both end in the same outer loop.
  const UOp* k = g.Range(5, 4);
  const UOp* a = g.Store(g.Param(2, 4), i, g.Load(x, k));
  const UOp* b = g.Store(g.Param(3, 4), j, g.Load(x, k));
  const UOp* mixed = g.Store(g.Param(4, 64), g.Add(i, j), g.Float(1));
  ExpectError(g.Kernel({g.End(k, {g.End(i, {a, mixed}), g.End(j, {b})})}), "interleave");
}

TEST(LinearizeErrorTest, AnEffectIsListedByTwoEnds) {
  RawGraph g;
  const UOp *i = g.Range(3, 4), *j = g.Range(4, 4);
  const UOp* store = g.Store(g.Param(0, 4), g.Int(0), g.Float(1));
  ExpectError(g.Kernel({g.End(i, {store}), g.End(j, {store})}),
              "store: listed by the ends of axis 3 and axis 4, expected one", store);
}

TEST(LinearizeErrorTest, TheEndOfALoopDependsOnALoopInsideOrOnItself) {
  RawGraph g;
  const UOp* inner = g.Range(3, 4);
  const UOp* outer = g.Range(4, g.Add(inner, g.Int(1)));
  ExpectError(g.Kernel({g.Store(g.Param(0, 1), g.Int(0), g.Sum(g.Float(1), {outer, inner}))}),
              "range of axis 4: its end depends on axis 3, expected only loops around it", outer);
  const UOp* counts = g.Param(1, 4, Access::kInOut, Scalar::kIndex);
  const UOp* bump = g.Store(counts, g.Int(0), g.Int(7));
  const UOp* self = g.Range(5, g.Load(g.After(counts, {bump}), g.Int(0)));
  ExpectError(g.Kernel({g.End(self, {bump})}), "range of axis 5: its end depends on axis 5");
}

TEST(LinearizeErrorTest, AKernelHoldsAnotherFunction) {
  RawGraph g;
  const UOp* inner = g.Kernel({}, "inner");
  ExpectError(g.Kernel({inner}), "sink: source, got sink, expected a node of the same kernel");
  ExpectError(g.Kernel({g.Make(Op::kCall, {inner})}), "call: source, got sink");
}

TEST(LinearizeErrorTest, LoopsAreTooDeep) {
  for (bool dependent : {false, true}) {
    for (int depth : {kMaxLoopDepth, kMaxLoopDepth + 1}) {
      RawGraph g;
      Nodes ranges;
      const UOp* at = g.Int(0);
      for (int i = 0; i < depth; ++i) {
        ranges.push_back(g.Range(i, 1));
        if (dependent) at = g.Add(at, ranges.back());
      }
      const UOp* effect = g.Store(g.Param(0, 1), at, g.Float(1));
      for (int i = depth - 1; i >= 0; --i) effect = g.End(ranges[i], {effect});
      if (depth <= kMaxLoopDepth) {
        EXPECT_TRUE(Linearize(g.Kernel({effect})).ok());
      } else {
        ExpectError(g.Kernel({effect}), "got 129, expected at most 128");
      }
    }
  }
}

TEST(LinearizeSizeTest, AMillionNodesInAChain) {
  RawGraph g;
  const UOp *i = g.Range(0, 4), *value = g.Load(g.Param(1, 4), i);
  for (int n = 0; n < 1000000; ++n) value = g.Make(n % 2 ? Op::kNeg : Op::kSqrt, {value});
  absl::StatusOr<LinearKernel> kernel =
      Linearize(g.Kernel({g.End(i, {g.Store(g.Param(0, 4), i, value)})}));
  ASSERT_TRUE(kernel.ok());
  EXPECT_GT(kernel->steps.size(), 1000000u);
}

TEST(LinearizeSizeTest, ManyLoopsAndManyReductionsOfOneLoop) {
  RawGraph g;
  Nodes effects;
  for (int n = 0; n < 30000; ++n) {
    const UOp* i = g.Range(n, 4);
    effects.push_back(g.End(i, {g.Store(g.Param(n, 4), i, g.Float(n))}));
  }
  ASSERT_TRUE(Linearize(g.Kernel(effects)).ok());
  const UOp *k = g.Range(0, 4), *x = g.Load(g.Param(0, 4), k), *sum = g.Float(0);
  for (int n = 0; n < 30000; ++n) sum = g.Add(sum, g.Sum(g.Mul(x, g.Float(n)), {k}));
  absl::StatusOr<LinearKernel> kernel =
      Linearize(g.Kernel({g.Store(g.Param(1, 1), g.Int(0), sum)}));
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ(kernel->closers[k].size(), 30000u);
}

}  // namespace
}  // namespace svod
