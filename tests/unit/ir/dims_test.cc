// Dims: divisions in index expressions come out, and every form has the same value.
#include <limits>
#include <random>

#include "gmock/gmock.h"
#include "ir/evaluate.h"
#include "ir/passes/copy_nodes.h"
#include "ir/shape.h"

namespace svod {
namespace {

class DimsTest : public ::testing::Test {
 protected:
  const UOp* Variable(absl::string_view name, int64_t min, int64_t max) {
    return *context_.Make(Op::kDefineVar, {}, VariableArgument{name, min, max});
  }
  const UOp* Counter(const UOp* extent) {
    return *context_.Make(Op::kRange, {extent}, AxisArgument{next_axis_++, AxisKind::kLoop});
  }
  const UOp* Make(Op op, const UOp* a, const UOp* b) { return *context_.Make(op, {a, b}); }
  const UOp* Times(const UOp* a, int64_t b) { return dims_.Mul(a, dims_.Const(b)); }
  const UOp* Plus(const UOp* a, int64_t b) { return dims_.Add(a, dims_.Const(b)); }

  Context context_;
  Dims dims_{context_};
  int64_t next_axis_ = 0;
};

// A number is its quotient's multiple and its remainder, also where both stand in products; a
// square of the remainder is something else.
TEST_F(DimsTest, QuotientsAndRemaindersOfProductsAreTheNumber) {
  const UOp *n = Variable("n", 1, 100), *k = Variable("k", 1, 100);
  const UOp* quotient = dims_.Floordiv(n, dims_.Const(4));
  const UOp* remainder = dims_.Floormod(n, dims_.Const(4));
  const UOp* product = dims_.Add(dims_.Mul(k, remainder), Times(dims_.Mul(k, quotient), 4));
  EXPECT_EQ(product, dims_.Mul(k, n));
  EXPECT_TRUE(dims_.Same(Times(dims_.Mul(k, quotient), 4), dims_.Mul(k, dims_.Sub(n, remainder))));
  const UOp* squared = dims_.Add(dims_.Mul(remainder, remainder), Times(quotient, 4));
  EXPECT_FALSE(dims_.Same(squared, n));
}

// The rows of a picture with a border of one, one after another, three at a time: x, moved by one
// in each of the three.
TEST_F(DimsTest, WindowsOverAPaddedWidthNeedNoDivision) {
  const UOp* w = Variable("w", 32, 640);
  const UOp* k = Counter(dims_.Const(3));
  const UOp* x = Counter(w);
  const UOp* position = dims_.Add(dims_.Mul(k, Plus(w, 3)), x);
  EXPECT_EQ(dims_.Floormod(position, Plus(w, 2)), dims_.Add(k, x));
  EXPECT_EQ(dims_.Floordiv(position, Plus(w, 2)), k);
  // One more, and the last row's last window would wrap.
  const UOp* beyond = Plus(position, 1);
  EXPECT_EQ(dims_.Floormod(beyond, Plus(w, 2))->op(), Op::kFloormod);
}

TEST_F(DimsTest, DivisionByAProductOfPaddedSizes) {
  const UOp* h = Variable("h", 1, 64);
  const UOp* w = Variable("w", 1, 64);
  const UOp* padded = dims_.Mul(Plus(h, 2), Plus(w, 2));
  const UOp* c = Counter(dims_.Const(5));
  const UOp* y = Counter(Plus(h, 2));
  const UOp* x = Counter(Plus(w, 2));
  const UOp* position = dims_.Add(dims_.Mul(c, padded), dims_.Add(dims_.Mul(y, Plus(w, 2)), x));
  EXPECT_EQ(dims_.Floordiv(dims_.Floormod(position, padded), Plus(w, 2)), y);
  EXPECT_EQ(dims_.Floormod(position, Plus(w, 2)), x);
  EXPECT_EQ(dims_.Floordiv(position, padded), c);
}

// What -1 divides into an integer that does not exist stops nobody.
TEST_F(DimsTest, DivisorsThatShrinkWithAVariable) {
  const UOp* n = Variable("n", 0, 1);
  const UOp* lowest = Make(Op::kMul, n, dims_.Const(std::numeric_limits<int64_t>::min()));
  const UOp* divisor = dims_.Sub(dims_.Const(10), n);
  for (Op op : {Op::kFloordiv, Op::kFloormod}) {
    EXPECT_EQ(dims_.Normalize(Make(op, lowest, divisor))->op(), op);
  }
}

// The last piece of a loop begins earlier: min(32 i, w - 32) + 31 stays below w.
TEST_F(DimsTest, LastPiecesStayWithinSymbolicSizes) {
  const UOp* w = Variable("w", 32, 640);
  const UOp* i = Counter(dims_.Floordiv(Plus(w, 31), dims_.Const(32)));
  const UOp* first = Make(Op::kMin, Times(i, 32), Plus(w, -32));
  RangeAnalysis ranges;
  auto above = [&](int64_t lane) {
    return BoundsOf(ranges.AffineOf(first) + Affine::Constant(lane) - ranges.AffineOf(w), ranges);
  };
  EXPECT_EQ(above(31).max, -1);
  EXPECT_EQ(above(32).max, 0);
  // With a sign the other way round nothing is known of the smaller of the two.
  EXPECT_GE(BoundsOf(ranges.AffineOf(w) - ranges.AffineOf(first), ranges).max, 640);
}

// Whatever becomes of a division of sums by sums, its value stays.
TEST_F(DimsTest, DivisionsBySumsKeepTheirValue) {
  std::mt19937_64 random(7);
  auto pick = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  };
  int carried_out = 0;
  for (int round = 0; round < 2000; ++round) {
    const UOp* w = Variable("w", 1, 12);
    const UOp* h = Variable("h", 2, 9);
    const UOp* counters[] = {Counter(Plus(w, pick(0, 3))), Counter(dims_.Const(3)),
                             Counter(dims_.Mul(w, h)), w, h};
    auto sum = [&](int terms, int64_t least) {
      const UOp* result = dims_.Const(pick(least, 4));
      for (int i = 0; i < terms; ++i) {
        const UOp* term = counters[pick(0, 4)];
        if (pick(0, 2) > 0) term = dims_.Mul(term, Plus(pick(0, 1) > 0 ? w : h, pick(0, 2)));
        result = dims_.Add(result, Times(term, pick(1, 2)));
      }
      return result;
    };
    const UOp* divisor = Plus(dims_.Mul(w, dims_.Const(pick(1, 2))), pick(0, 3));
    if (pick(0, 1) > 0) divisor = dims_.Mul(divisor, Plus(h, pick(0, 2)));
    const UOp* dividend = sum(static_cast<int>(pick(1, 4)), -4);
    for (Op op : {Op::kFloordiv, Op::kFloormod}) {
      const UOp* plain = Make(op, dividend, divisor);
      const UOp* normal = dims_.Normalize(plain);
      carried_out += normal->op() != op;
      for (int sample = 0; sample < 8; ++sample) {
        std::vector<std::pair<std::string, int64_t>> variables = {{"w", pick(1, 12)},
                                                                  {"h", pick(2, 9)}};
        Replaced values;
        for (const UOp* counter : counters) {
          if (counter->op() != Op::kRange) continue;
          absl::StatusOr<int64_t> extent = EvaluateIndex(counter->source(0), variables);
          ASSERT_TRUE(extent.ok()) << extent.status();
          values[counter] = dims_.Const(pick(0, *extent - 1));
        }
        Replaced again = values;
        absl::StatusOr<int64_t> expected =
            EvaluateIndex(*CopyNodes(plain, values, context_), variables);
        absl::StatusOr<int64_t> got = EvaluateIndex(*CopyNodes(normal, again, context_), variables);
        ASSERT_TRUE(expected.ok() && got.ok()) << expected.status() << got.status();
        ASSERT_EQ(*got, *expected) << ToString(plain) << " became " << ToString(normal);
      }
    }
  }
  EXPECT_GT(carried_out, 100);
}

}  // namespace
}  // namespace svod
