#include "ir/range_arithmetic.h"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <optional>

namespace svod {
namespace {

// Exact integers: every product of two 64-bit values but u64 * u64 fits, and that is checked.
using Int128 = __int128;

struct Wide {
  Int128 min;
  Int128 max;
  bool is_single() const { return min == max; }
};
// No value: what a result that may leave 128 bits has.
using MaybeWide = std::optional<Wide>;

constexpr Wide kBoolean = {0, 1};

Wide LimitsOf(DType dtype) {
  if (dtype.scalar == Scalar::kU64) return {0, (Int128{1} << 64) - 1};
  return {MinValue(dtype), MaxValue(dtype)};
}

Wide Hull(Wide a, Wide b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }

bool IsInside(Wide inner, Wide outer) { return outer.min <= inner.min && inner.max <= outer.max; }

// The range of a u64 says nothing of its values when they pass INT64_MAX; then it is Full().
Wide Widen(IntRange range, DType dtype) {
  if (dtype.scalar == Scalar::kU64 && range.min < 0) return LimitsOf(dtype);
  return {range.min, range.max};
}

IntRange Narrow(MaybeWide wide, DType dtype) {
  if (!wide.has_value() || !IsInside(*wide, LimitsOf(dtype))) return TypeRange(dtype);
  if (wide->max > std::numeric_limits<int64_t>::max()) return IntRange::Full();
  return {static_cast<int64_t>(wide->min), static_cast<int64_t>(wide->max)};
}

MaybeWide HullOf(std::initializer_list<Int128> values) {
  return Wide{std::min(values), std::max(values)};
}

MaybeWide Product(Wide x, Wide y) {
  Int128 products[4];
  bool overflows = false;
  int i = 0;
  for (Int128 a : {x.min, x.max}) {
    for (Int128 b : {y.min, y.max}) overflows |= __builtin_mul_overflow(a, b, &products[i++]);
  }
  if (overflows) return std::nullopt;
  return HullOf({products[0], products[1], products[2], products[3]});
}

MaybeWide Sum(MaybeWide x, Wide y) {
  Wide sum;
  if (!x.has_value() || __builtin_add_overflow(x->min, y.min, &sum.min) ||
      __builtin_add_overflow(x->max, y.max, &sum.max)) {
    return std::nullopt;
  }
  return sum;
}

Int128 FloorDiv(Int128 x, Int128 y) {
  Int128 quotient = x / y;
  return x % y != 0 && (x < 0) != (y < 0) ? quotient - 1 : quotient;
}

// Both quotients are monotone in x and, on each side of 0, in y: the corners are the extremes.
Wide Quotient(Wide x, Wide y, bool floors) {
  std::optional<Wide> result;
  auto add = [&](Wide part) { result = result.has_value() ? Hull(*result, part) : part; };
  auto corners = [&](Int128 low, Int128 high) {
    for (Int128 a : {x.min, x.max}) {
      for (Int128 b : {low, high}) {
        Int128 quotient = floors ? FloorDiv(a, b) : a / b;
        add({quotient, quotient});
      }
    }
  };
  if (y.min <= 0 && y.max >= 0) add({0, 0});
  if (y.min < 0) corners(y.min, std::min<Int128>(y.max, -1));
  if (y.max > 0) corners(std::max<Int128>(y.min, 1), y.max);
  return *result;
}

Wide Remainder(Wide x, Wide y, bool floors) {
  std::optional<Wide> result;
  auto add = [&](Wide part) { result = result.has_value() ? Hull(*result, part) : part; };
  // For divisors of one sign; low and high are their magnitudes.
  auto part = [&](Int128 low, Int128 high, bool negative) {
    if (low == high) {  // one divisor, one quotient: the remainder just follows x
      Int128 divisor = negative ? -low : low;
      Int128 first = floors ? FloorDiv(x.min, divisor) : x.min / divisor;
      Int128 last = floors ? FloorDiv(x.max, divisor) : x.max / divisor;
      if (first == last) return add({x.min - first * divisor, x.max - first * divisor});
    }
    Int128 largest = high - 1;
    if (!floors) {
      if (-low < x.min && x.max < low) return add(x);
      return add(
          {x.min < 0 ? std::max(-largest, x.min) : 0, x.max > 0 ? std::min(largest, x.max) : 0});
    }
    if (!negative) {
      if (x.min >= 0) return add(x.max < low ? x : Wide{0, std::min(largest, x.max)});
      return add({0, largest});
    }
    if (x.max <= 0) return add(x.min > -low ? x : Wide{std::max(-largest, x.min), 0});
    return add({-largest, 0});
  };
  if (y.min <= 0 && y.max >= 0) add(x);
  if (y.min < 0) part(-std::min<Int128>(y.max, -1), -y.min, true);
  if (y.max > 0) part(std::max<Int128>(y.min, 1), y.max, false);
  return *result;
}

// The smallest k with x in [-2^k, 2^k - 1].
int BitsFor(Wide x) {
  uint64_t magnitude = static_cast<uint64_t>(x.max >= 0 ? x.max : ~x.max) |
                       static_cast<uint64_t>(x.min >= 0 ? x.min : ~x.min);
  return std::bit_width(magnitude);
}

Wide Bitwise(Op op, Wide x, Wide y) {
  if (x.is_single() && y.is_single()) {
    Int128 a = x.min, b = y.min;
    Int128 value = op == Op::kAnd ? a & b : op == Op::kOr ? a | b : a ^ b;
    return {value, value};
  }
  Int128 reach = Int128{1} << std::max(BitsFor(x), BitsFor(y));
  if (op == Op::kAnd) {
    if (x.min >= 0 && y.min >= 0) return {0, std::min(x.max, y.max)};
    if (x.min >= 0) return {0, x.max};
    if (y.min >= 0) return {0, y.max};
    return {-reach, std::max(x.max, y.max) < 0 ? Int128{-1} : reach - 1};
  }
  if (x.min >= 0 && y.min >= 0) return {op == Op::kOr ? std::max(x.min, y.min) : 0, reach - 1};
  return {-reach, op == Op::kOr && (x.max < 0 || y.max < 0) ? Int128{-1} : reach - 1};
}

// The amounts of a shift that stay below the width; the others are read as unsigned and give
// `beyond`, if they are possible at all.
struct ShiftAmounts {
  bool any_below;
  int min, max;
  bool any_beyond;
};

ShiftAmounts AmountsOf(Wide y, int width) {
  ShiftAmounts amounts;
  amounts.any_below = y.max >= 0 && y.min < width;
  amounts.min = static_cast<int>(std::clamp<Int128>(y.min, 0, width - 1));
  amounts.max = static_cast<int>(std::clamp<Int128>(y.max, 0, width - 1));
  amounts.any_beyond = y.min < 0 || y.max >= width;
  return amounts;
}

MaybeWide ShiftLeft(Wide x, Wide y, int width) {
  ShiftAmounts amounts = AmountsOf(y, width);
  if (!amounts.any_below) return Wide{0, 0};
  MaybeWide product = Product(x, {Int128{1} << amounts.min, Int128{1} << amounts.max});
  if (product.has_value() && amounts.any_beyond) product = Hull(*product, {0, 0});
  return product;
}

Wide ShiftRight(Wide x, Wide y, int width) {
  ShiftAmounts amounts = AmountsOf(y, width);
  Wide beyond = {x.min < 0 ? -1 : 0, x.max < 0 ? -1 : 0};
  if (!amounts.any_below) return beyond;
  Wide below = {std::min(x.min >> amounts.min, x.min >> amounts.max),
                std::max(x.max >> amounts.min, x.max >> amounts.max)};
  return amounts.any_beyond ? Hull(below, beyond) : below;
}

Wide Truth(bool always, bool never) { return always ? Wide{1, 1} : never ? Wide{0, 0} : kBoolean; }

Wide Compare(Op op, Wide x, Wide y) {
  bool apart = x.max < y.min || y.max < x.min;
  bool equal = x.is_single() && y.is_single() && x.min == y.min;
  if (op == Op::kCmpLt) return Truth(x.max < y.min, x.min >= y.max);
  if (op == Op::kCmpLe) return Truth(x.max <= y.min, x.min > y.max);
  return op == Op::kCmpEq ? Truth(equal, apart) : Truth(apart, equal);
}

// The exact result of an op that may leave its dtype; nullopt for other ops.
std::optional<MaybeWide> Unwrapped(const UOp* node, SourceRange source_range) {
  DType dtype = node->dtype();
  if (!dtype.is_integer()) return std::nullopt;
  auto wide = [&](int i) { return Widen(source_range(node->source(i)), dtype); };
  Op op = node->op();
  if (op == Op::kAdd) return Sum(wide(0), wide(1));
  if (op == Op::kSub) return Sum(wide(0), {-wide(1).max, -wide(1).min});
  if (op == Op::kMul) return Product(wide(0), wide(1));
  if (op == Op::kNeg) return Wide{-wide(0).max, -wide(0).min};
  if (op == Op::kMulAcc) return Sum(Product(wide(0), wide(1)), wide(2));
  if (op == Op::kShl) return ShiftLeft(wide(0), wide(1), dtype.bits());
  return std::nullopt;
}

Wide Absolute(Wide x) {
  if (x.min >= 0) return x;
  if (x.max <= 0) return {-x.max, -x.min};
  return {0, std::max(-x.min, x.max)};
}

Wide Complement(Wide x, DType dtype) {
  if (dtype.is_signed()) return {-1 - x.max, -1 - x.min};
  Int128 ones = LimitsOf(dtype).max;
  return {ones - x.max, ones - x.min};
}

MaybeWide Elementwise(const UOp* node, SourceRange source_range) {
  Op op = node->op();
  DType dtype = node->dtype();
  DType operand = node->source(node->num_sources() - 1)->dtype();
  auto wide = [&](int i) { return Widen(source_range(node->source(i)), node->source(i)->dtype()); };
  if (operand.is_float()) return dtype.is_bool() ? MaybeWide(kBoolean) : std::nullopt;
  if (op == Op::kCast && dtype.is_bool()) return Compare(Op::kCmpNe, wide(0), {0, 0});
  if (op == Op::kCast || op == Op::kBitcast) return wide(0);
  if (op == Op::kWhere) {
    Wide condition = wide(0);
    if (condition.is_single()) return wide(condition.min != 0 ? 1 : 2);
    return Hull(wide(1), wide(2));
  }
  Wide x = wide(0);
  if (op == Op::kAbs) return Absolute(x);
  if (op == Op::kNot) return Complement(x, dtype);
  if (node->num_sources() != 2) return std::nullopt;
  Wide y = wide(1);
  if (op == Op::kCdiv || op == Op::kFloordiv) return Quotient(x, y, op == Op::kFloordiv);
  if (op == Op::kCmod || op == Op::kFloormod) return Remainder(x, y, op == Op::kFloormod);
  // The add of bools is their or, the mul their and.
  bool takes_max = op == Op::kMax || (dtype.is_bool() && (op == Op::kAdd || op == Op::kOr));
  bool takes_min = op == Op::kMin || (dtype.is_bool() && (op == Op::kMul || op == Op::kAnd));
  if (takes_max) return Wide{std::max(x.min, y.min), std::max(x.max, y.max)};
  if (takes_min) return Wide{std::min(x.min, y.min), std::min(x.max, y.max)};
  if (op == Op::kAnd || op == Op::kOr || op == Op::kXor) return Bitwise(op, x, y);
  if (op == Op::kShr) return ShiftRight(x, y, dtype.bits());
  if (op == Op::kCmpLt || op == Op::kCmpLe || op == Op::kCmpEq || op == Op::kCmpNe) {
    return Compare(op, x, y);
  }
  return std::nullopt;
}

// A counter from 0 up to an end. Where the end may be 0 the loop does not run, so the counter's
// values need no care.
IntRange CounterBelow(IntRange end) { return {0, std::max<int64_t>(end.max, 1) - 1}; }

IntRange HullOf(IntRange a, IntRange b, DType dtype) {
  return Narrow(Hull(Widen(a, dtype), Widen(b, dtype)), dtype);
}

IntRange RangeOfLanes(const UOp* node, SourceRange source_range) {
  const UOp* vector = node->source(0);
  if (node->op() != Op::kLanes || vector->op() != Op::kStack) {
    IntRange range = source_range(vector);
    if (node->op() == Op::kStack) {
      for (const UOp* element : node->sources()) {
        range = HullOf(range, source_range(element), node->dtype());
      }
    }
    return range;
  }
  absl::Span<const uint16_t> lanes = node->arg<LanesArgument>().lanes;
  IntRange range = source_range(vector->source(lanes[0]));
  for (uint16_t lane : lanes) {
    range = HullOf(range, source_range(vector->source(lane)), node->dtype());
  }
  return range;
}

}  // namespace

IntRange TypeRange(DType dtype) {
  if (dtype.scalar == Scalar::kU64) return IntRange::Full();
  return {MinValue(dtype), MaxValue(dtype)};
}

bool RangeDependsOn(const UOp* node, int i) {
  DType dtype = node->dtype();
  Op op = node->op();
  if (!dtype.is_integer() && !dtype.is_bool()) return false;
  if (op == Op::kRange || op == Op::kCoreId || InfoOf(op).op_class == OpClass::kVector) return true;
  return IsElementwise(op) && !node->source(i)->dtype().is_float();
}

bool MayWrap(const UOp* node, SourceRange source_range) {
  std::optional<MaybeWide> result = Unwrapped(node, source_range);
  if (!result.has_value() || !result->has_value()) return true;
  return !IsInside(**result, LimitsOf(node->dtype()));
}

IntRange RangeOfNode(const UOp* node, SourceRange source_range) {
  Op op = node->op();
  DType dtype = node->dtype();
  if (!dtype.is_integer() && !dtype.is_bool()) return IntRange::Full();
  if (op == Op::kConst) {
    int64_t value = ConstInt(node);
    if (dtype.scalar == Scalar::kU64 && value < 0) return IntRange::Full();
    return {value, value};
  }
  if (op == Op::kDefineVar) {
    const auto& variable = node->arg<VariableArgument>();
    return {variable.min, variable.max};
  }
  if (op == Op::kBind) return {ConstInt(node->source(1)), ConstInt(node->source(1))};
  if (op == Op::kRange || op == Op::kCoreId) return CounterBelow(source_range(node->source(0)));
  if (InfoOf(op).op_class == OpClass::kVector) return RangeOfLanes(node, source_range);
  if (!IsElementwise(op)) return TypeRange(dtype);
  std::optional<MaybeWide> arithmetic = Unwrapped(node, source_range);
  return Narrow(arithmetic.has_value() ? *arithmetic : Elementwise(node, source_range), dtype);
}

}  // namespace svod
