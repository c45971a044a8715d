// IsInBounds and MayOverlap of ir/ranges.h: written cases, and all values of random ones.
#include <gtest/gtest.h>

#include <random>

#include "ir/ranges.h"
#include "tests/unit/ir/raw_graph.h"

namespace svod {
namespace {

using Nodes = RawGraph::Nodes;

class InBoundsTest : public ::testing::Test {
 protected:
  const UOp* Sized(const Nodes& shape) {
    return g.Make(Op::kParam, Scalar::kF32, shape, ParamArgument{0, Access::kIn, ""});
  }
  bool Is(const UOp* buffer, const UOp* position, const UOp* gate = nullptr, int lanes = 1) {
    return IsInBounds(g.Index(buffer, position, gate), lanes, ranges);
  }
  // The gates that guard-accesses writes.
  const UOp* Guard(const UOp* position, const UOp* size) {
    if (position->dtype().is_vector()) size = g.Splat(size, position->dtype().lanes);
    const UOp* zero = g.context.Int(position->dtype(), 0);
    return g.And(g.Le(zero, position), g.Lt(position, size));
  }
  const UOp* RampAt(const UOp* position, int lanes) {
    return g.Add(g.Splat(position, lanes), g.Ramp(lanes));
  }

  RawGraph g;
  RangeAnalysis ranges;
};

TEST_F(InBoundsTest, ConstantsAndCounters) {
  const UOp *i = g.Range(0, 4), *j = g.Range(1, 8), *x = Sized({g.Int(4), g.Int(8)});
  const UOp* at = g.Add(g.Mul(i, g.Int(8)), j);
  EXPECT_TRUE(Is(x, g.Int(31)));
  EXPECT_FALSE(Is(x, g.Int(32)));
  EXPECT_FALSE(Is(x, g.Int(-1)));
  EXPECT_TRUE(Is(x, at));
  EXPECT_FALSE(Is(x, g.Add(at, g.Int(1))));
  EXPECT_FALSE(Is(x, g.Sub(at, g.Int(1))));
}

TEST_F(InBoundsTest, ConsecutiveLanesMustAllFit) {
  const UOp *x = Sized({g.Int(32)}), *at = g.Mul(g.Range(0, 4), g.Int(8));
  EXPECT_TRUE(Is(x, at, nullptr, 8));
  EXPECT_FALSE(Is(x, at, nullptr, 9));
  // A buffer of vectors counts vectors.
  const UOp* acc = g.Reg(0, 2, DType(Scalar::kF32, 8));
  EXPECT_TRUE(Is(acc, g.Int(1), nullptr, 8));
  EXPECT_FALSE(Is(acc, g.Int(2), nullptr, 8));
}

TEST_F(InBoundsTest, NothingIsInsideAnEmptyBuffer) {
  EXPECT_FALSE(Is(Sized({g.Int(0)}), g.Int(0)));
  EXPECT_FALSE(Is(Sized({g.Variable("n", 0, 8)}), g.Int(0)));
  EXPECT_FALSE(Is(g.Reg(0, 0), g.Int(0)));
}

TEST_F(InBoundsTest, SymbolicSizes) {
  const UOp *n = g.Variable("n", 1, 100), *m = g.Variable("m", 0, 100);
  const UOp *i = g.Range(0, n), *j = g.Range(1, m);
  EXPECT_TRUE(Is(Sized({n}), i));
  EXPECT_FALSE(Is(Sized({n}), g.Add(i, g.Int(1))));
  EXPECT_TRUE(Is(Sized({g.Add(n, g.Int(1))}), g.Add(i, g.Int(1))));
  EXPECT_FALSE(Is(Sized({n}), g.Range(2, 100)));  // n may be smaller
  EXPECT_TRUE(Is(Sized({g.Int(100)}), i));
  EXPECT_TRUE(Is(Sized({n, m}), g.Add(g.Mul(i, m), j)));
  EXPECT_FALSE(Is(Sized({n, m}), g.Add(g.Mul(i, n), j)));
  EXPECT_TRUE(Is(Sized({n, g.Int(4)}), g.Mul(i, g.Int(4)), nullptr, 4));
  EXPECT_TRUE(Is(Sized({n}), g.Sub(g.Sub(n, g.Int(1)), i)));  // backwards
  EXPECT_TRUE(Is(Sized({n}), g.Int(0)));
  EXPECT_TRUE(Is(Sized({g.Mul(n, g.Int(8))}),
                 g.Add(g.Mul(g.Make(Op::kCoreId, {n}), g.Int(8)), g.Range(3, 8))));
}

TEST_F(InBoundsTest, TriangularLoops) {
  const UOp *n = g.Variable("n", 1, 100), *i = g.Range(0, n);
  const UOp* j = g.Range(1, g.Add(i, g.Int(1)));
  EXPECT_TRUE(Is(Sized({n}), j));
  EXPECT_TRUE(Is(Sized({n}), g.Sub(i, j)));
  EXPECT_TRUE(Is(Sized({n, n}), g.Add(g.Mul(i, n), j)));
  EXPECT_FALSE(Is(Sized({n}), g.Add(i, j)));
}

TEST_F(InBoundsTest, PositionsThatMayWrapAreNotProved) {
  const UOp* n = g.Variable("n", 0, std::numeric_limits<int64_t>::max());
  const UOp* x = Sized({g.Int(8)});
  EXPECT_FALSE(
      Is(x, g.Sub(g.Add(n, g.Int(2)), g.Add(n, g.Int(1)))));  // 1, but not by true integers
  EXPECT_FALSE(Is(x, g.Mul(g.Range(0, 4), g.Int(int64_t{1} << 62))));
}

TEST_F(InBoundsTest, GuardsOfScalars) {
  const UOp* loaded = g.Load(g.Param(1, 4, Access::kIn, Scalar::kIndex), g.Int(0));
  const UOp* n = g.Variable("n", 0, 100);
  for (const UOp* size : {g.Int(8), n, g.Add(n, g.Int(3))}) {
    const UOp* x = Sized({size});
    EXPECT_TRUE(Is(x, loaded, Guard(loaded, size)));
    EXPECT_FALSE(Is(x, loaded, g.Lt(loaded, size)));
    EXPECT_FALSE(Is(x, loaded, g.Le(g.Int(0), loaded)));
    EXPECT_FALSE(Is(x, loaded, g.And(g.Le(g.Int(0), loaded), g.Le(loaded, size))));
    EXPECT_FALSE(Is(x, loaded, g.Make(Op::kOr, {g.Le(g.Int(0), loaded), g.Lt(loaded, size)})));
    // The same said otherwise.
    const UOp* negated = g.Make(Op::kNot, {g.Lt(loaded, g.Int(0))});
    EXPECT_TRUE(Is(x, loaded, g.And(negated, g.Make(Op::kNot, {g.Le(size, loaded)}))));
    EXPECT_TRUE(Is(x, loaded, g.And(g.Lt(g.Int(-1), loaded), g.Lt(loaded, size))));
    // At the highest integer this sum wraps and the gate holds.
    EXPECT_FALSE(
        Is(x, loaded, g.And(g.Lt(g.Int(-1), loaded), g.Le(g.Add(loaded, g.Int(1)), size))));
    // With a condition of the program's own in front.
    const UOp* own = g.Lt(g.Range(0, 4), g.Int(2));
    EXPECT_TRUE(Is(x, loaded, g.And(own, Guard(loaded, size))));
  }
  // A half that is proved may be left out.
  const UOp* i = g.Range(0, 10);
  EXPECT_TRUE(Is(Sized({n}), i, g.Lt(i, n)));
  EXPECT_TRUE(Is(Sized({g.Int(8)}), i, g.Lt(i, g.Int(8))));
  const UOp* below = g.Sub(i, g.Int(5));
  EXPECT_TRUE(Is(Sized({g.Int(8)}), below, g.Le(g.Int(0), below)));
}

TEST_F(InBoundsTest, GatesOnPartsOfThePosition) {
  const UOp *i = g.Range(0, 10), *j = g.Range(1, 4), *x = Sized({g.Int(6), g.Int(4)});
  const UOp* at = g.Add(g.Mul(i, g.Int(4)), j);
  EXPECT_FALSE(Is(x, at));
  EXPECT_TRUE(Is(x, at, g.Lt(i, g.Int(6))));
  EXPECT_FALSE(Is(x, at, g.Lt(i, g.Int(7))));
  EXPECT_TRUE(Is(x, at, g.Make(Op::kCmpEq, {i, g.Int(5)})));
}

TEST_F(InBoundsTest, GuardsOfConsecutiveLanes) {
  const UOp* loaded = g.Load(g.Param(1, 4, Access::kIn, Scalar::kIndex), g.Int(0));
  const UOp *n = g.Variable("n", 0, 100), *i = g.Mul(g.Range(0, 10), g.Int(4));
  for (const UOp* size : {g.Int(8), n}) {
    const UOp* x = Sized({size});
    for (const UOp* at : {loaded, i}) {
      const UOp* ramp = RampAt(at, 4);
      EXPECT_TRUE(Is(x, at, Guard(ramp, size), 4));
      EXPECT_TRUE(Is(x, at, Guard(g.Add(g.Ramp(4), g.Splat(at, 4)), size), 4));
      const UOp* late = g.Add(ramp, g.context.Int(DType(Scalar::kIndex, 4), -1));
      EXPECT_FALSE(Is(x, at, Guard(late, size), 4));
      // A guard of the first lane is none of the others.
      EXPECT_FALSE(Is(x, at, g.Splat(Guard(at, size), 4), 4));
      // One gate for all of them.
      const UOp* all = g.And(g.Le(g.Int(0), at), g.Le(g.Add(at, g.Int(4)), size));
      EXPECT_EQ(Is(x, at, all, 4), at == i);  // the loaded one may wrap
    }
    EXPECT_TRUE(Is(x, i, g.Lt(RampAt(i, 4), g.Splat(size, 4)), 4));
    EXPECT_FALSE(Is(x, loaded, g.Lt(RampAt(loaded, 4), g.Splat(size, 4)), 4));
  }
  // At a constant position the ramp is a stack of constants.
  const UOp* folded = g.Make(Op::kStack, Nodes{g.Int(6), g.Int(7), g.Int(8), g.Int(9)});
  EXPECT_TRUE(Is(Sized({g.Int(8)}), g.Int(6), Guard(folded, g.Int(8)), 4));
}

TEST_F(InBoundsTest, AMinimumIsBoundedAsAWholeOrByItsSide) {
  const UOp *x = Sized({g.Int(12)}), *n = g.Variable("n", -100, 100);
  const UOp* low = g.Make(Op::kMin, {g.Int(0), n});
  const UOp* ramp = RampAt(low, 2);
  EXPECT_TRUE(Is(x, low, Guard(ramp, g.Int(12)), 2));
  EXPECT_TRUE(Is(x, low, g.Le(g.Splat(g.Int(0), 2), ramp), 2));
  EXPECT_FALSE(Is(x, g.Add(low, g.Int(11)), g.Le(g.Splat(g.Int(0), 2), ramp), 2));
  // A loop's last piece starts early enough to be whole: at min(8 i, m - 8).
  const UOp *m = g.Variable("m", 8, 100), *i = g.Range(0, 20);
  const UOp* start = g.Make(Op::kMin, {g.Mul(i, g.Int(8)), g.Sub(m, g.Int(8))});
  EXPECT_TRUE(Is(Sized({m}), g.Add(start, g.Range(1, 8))));
  EXPECT_FALSE(Is(Sized({m}), g.Add(start, g.Range(1, 9))));
}

TEST_F(InBoundsTest, GuardsOfGathers) {
  const UOp* many = g.Load(g.Param(1, 4, Access::kIn, Scalar::kIndex), g.Int(0), 4);
  const UOp* n = g.Variable("n", 0, 100);
  for (const UOp* size : {g.Int(8), n}) {
    const UOp* x = Sized({size});
    EXPECT_FALSE(Is(x, many));
    EXPECT_TRUE(Is(x, many, Guard(many, size)));
    EXPECT_FALSE(Is(x, many, g.Lt(many, g.Splat(size, 4))));
    // Lanes in another order: the gate speaks of other elements.
    const uint16_t reversed[] = {3, 2, 1, 0};
    const UOp* turned = g.Make(Op::kLanes, {many}, LanesArgument{reversed});
    EXPECT_FALSE(Is(x, turned, Guard(many, size)));
    EXPECT_TRUE(Is(x, turned, Guard(turned, size)));
  }
  EXPECT_TRUE(Is(Sized({g.Int(4)}), g.Ramp(4)));
  EXPECT_FALSE(Is(Sized({g.Int(3)}), g.Ramp(4)));
  EXPECT_TRUE(Is(Sized({g.Mul(n, g.Int(4))}), RampAt(g.Mul(g.Range(0, n), g.Int(4)), 4)));
}

TEST_F(InBoundsTest, AGateThatNeverHoldsProvesAnything) {
  EXPECT_TRUE(Is(Sized({g.Int(4)}), g.Int(9), g.context.Bool(false)));
}

TEST_F(InBoundsTest, RandomNestsAreProvedOnlyWhenInside) {
  std::mt19937 random(7);
  auto pick = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  int proved = 0, inside = 0;
  for (int round = 0; round < 4000; ++round) {
    RawGraph g;
    RangeAnalysis ranges;
    const UOp* n = g.Variable("n", pick(0, 2), pick(2, 4));
    const UOp* i = g.Range(0, pick(0, 1) ? n : g.Int(pick(1, 4)));
    const UOp* j = g.Range(1, pick(0, 2) == 0 ? g.Add(i, g.Int(pick(0, 1))) : g.Int(pick(0, 3)));
    auto linear = [&](bool may_be_size) {
      const UOp* sum = g.Int(pick(may_be_size ? 0 : -2, 4));
      for (const UOp* atom : may_be_size ? Nodes{n} : Nodes{n, i, j}) {
        int factor = pick(may_be_size ? 0 : -1, 3);
        if (factor != 0) sum = g.Add(sum, g.Mul(atom, g.Int(factor)));
        if (!may_be_size && pick(0, 5) == 0) sum = g.Add(sum, g.Mul(atom, n));
      }
      return sum;
    };
    const UOp *size = linear(true), *at = linear(false);
    const UOp *low = pick(0, 1) ? at : linear(false), *high = pick(0, 1) ? at : linear(false);
    int d = pick(-1, 1), lanes = pick(1, 3);
    const UOp* gate = nullptr;
    if (pick(0, 2) > 0) {
      gate = g.And(g.Le(g.Int(pick(-1, 1)), g.Add(low, g.Int(d))),
                   g.Lt(g.Add(high, g.Int(pick(0, 3))), size));
    }
    const UOp* x = g.Make(Op::kParam, Scalar::kF32, {size}, ParamArgument{0, Access::kIn, ""});
    bool is_proved = IsInBounds(g.Index(x, at, gate), lanes, ranges);
    // Values of the expressions by hand: sums and products of n, i and j.
    auto value = [&](auto&& self, const UOp* node, int64_t vn, int64_t vi, int64_t vj) -> int64_t {
      if (node == n) return vn;
      if (node == i) return vi;
      if (node == j) return vj;
      if (IsConst(node)) return ConstInt(node);
      int64_t a = self(self, node->source(0), vn, vi, vj);
      int64_t b = self(self, node->source(1), vn, vi, vj);
      if (node->op() == Op::kAdd) return a + b;
      if (node->op() == Op::kMul) return a * b;
      if (node->op() == Op::kCmpLe) return a <= b;
      if (node->op() == Op::kCmpLt) return a < b;
      return a & b;
    };
    bool is_inside = true;
    const auto& bounds = n->arg<VariableArgument>();
    for (int64_t vn = bounds.min; vn <= bounds.max; ++vn) {
      for (int64_t vi = 0; vi < value(value, i->source(0), vn, 0, 0); ++vi) {
        for (int64_t vj = 0; vj < value(value, j->source(0), vn, vi, 0); ++vj) {
          if (gate != nullptr && value(value, gate, vn, vi, vj) == 0) continue;
          int64_t position = value(value, at, vn, vi, vj);
          is_inside =
              is_inside && position >= 0 && position + lanes <= value(value, size, vn, vi, vj);
        }
      }
    }
    inside += is_inside;
    proved += is_proved;
    ASSERT_TRUE(is_inside || !is_proved) << "round " << round;
  }
  EXPECT_GT(proved * 2, inside);
}

class OverlapTest : public InBoundsTest {
 protected:
  bool May(const UOp* a, const UOp* b, int lanes_a = 1, int lanes_b = 1) {
    const UOp* x = Sized({g.Int(64)});
    bool forwards = MayOverlap(g.Index(x, a), lanes_a, g.Index(x, b), lanes_b, ranges);
    EXPECT_EQ(forwards, MayOverlap(g.Index(x, b), lanes_b, g.Index(x, a), lanes_a, ranges));
    return forwards;
  }
};

TEST_F(OverlapTest, ConstantDistances) {
  const UOp *i = g.Range(0, 8), *at = g.Mul(i, g.Int(4));
  auto plus = [&](int64_t d) { return g.Add(at, g.Int(d)); };
  EXPECT_TRUE(May(at, at));
  EXPECT_FALSE(May(at, plus(1)));
  EXPECT_TRUE(May(at, plus(1), 2, 1));
  EXPECT_FALSE(May(at, plus(2), 2, 4));
  EXPECT_TRUE(May(plus(3), plus(0), 1, 4));
  EXPECT_FALSE(May(plus(4), plus(0), 4, 4));
  // A loaded position is as good as any.
  const UOp* loaded = g.Load(g.Param(1, 4, Access::kIn, Scalar::kIndex), g.Int(0));
  EXPECT_FALSE(May(loaded, g.Add(loaded, g.Int(1))));
  EXPECT_TRUE(May(loaded, at));
}

TEST_F(OverlapTest, DisjointIntervalsAndBoundedDistances) {
  const UOp *i = g.Range(0, 8), *j = g.Range(1, 4), *k = g.Range(2, 4);
  EXPECT_FALSE(May(j, g.Add(k, g.Int(4))));
  EXPECT_TRUE(May(j, g.Add(k, g.Int(3))));
  const UOp* row = g.Mul(i, g.Int(8));
  EXPECT_TRUE(May(g.Add(row, j), g.Add(row, k)));
  EXPECT_FALSE(May(g.Add(row, j), g.Add(g.Add(row, g.Int(4)), k)));
  EXPECT_TRUE(May(g.Add(row, j), g.Add(g.Add(row, g.Int(4)), k), 2));
}

TEST_F(OverlapTest, VectorPositionsByIntervalsOnly) {
  EXPECT_TRUE(May(g.Ramp(4), g.Int(3)));
  EXPECT_FALSE(May(g.Ramp(4), g.Int(4)));
}

}  // namespace
}  // namespace svod
