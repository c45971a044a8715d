// EvaluateScalar: one elementwise op on scalars. This file is the definition of the arithmetic.
#include <bit>
#include <cmath>
#include <limits>

#include "ir/check.h"
#include "ir/evaluate.h"
#include "ir/float_formats.h"

namespace svod {
namespace {

using Operands = absl::Span<const uint64_t>;

// --- Integers: computed in 64 bits, then wrapped to the dtype.
// ------------------------------------

uint64_t Wrap(DType dtype, uint64_t value) {
  if (dtype.is_bool()) return value & 1;
  int bits = dtype.bits();
  return bits == 64 ? value : value & ((uint64_t{1} << bits) - 1);
}

// The integer's value: sign-extended for signed dtypes, zero-extended for others.
int64_t Extend(DType dtype, uint64_t bits) {
  int width = dtype.bits();
  if (!dtype.is_signed() || width == 64) return static_cast<int64_t>(bits);
  return static_cast<int64_t>(bits << (64 - width)) >> (64 - width);
}

bool IsLess(DType dtype, uint64_t x, uint64_t y) {
  return dtype.is_signed() ? Extend(dtype, x) < Extend(dtype, y) : x < y;
}

struct Division {
  uint64_t quotient;
  uint64_t remainder;
};

Division Truncating(DType dtype, uint64_t x, uint64_t y) {
  if (y == 0) return {0, x};
  if (!dtype.is_signed()) return {x / y, x % y};
  int64_t a = Extend(dtype, x), b = Extend(dtype, y);
  // The one quotient that does not fit; its remainder is 0 for every width.
  if (b == -1) return {Wrap(dtype, 0 - x), 0};
  return {Wrap(dtype, static_cast<uint64_t>(a / b)), Wrap(dtype, static_cast<uint64_t>(a % b))};
}

Division Flooring(DType dtype, uint64_t x, uint64_t y) {
  Division result = Truncating(dtype, x, y);
  if (!dtype.is_signed() || y == 0 || result.remainder == 0) return result;
  if ((Extend(dtype, result.remainder) < 0) == (Extend(dtype, y) < 0)) return result;
  return {Wrap(dtype, result.quotient - 1), Wrap(dtype, result.remainder + y)};
}

// --- Floats: f16 and bf16 are widened to f32, which is exact, and rounded once at the end.
// --------

float ToF32(Scalar scalar, uint64_t bits) {
  if (scalar == Scalar::kF16) return F16ToF32(static_cast<uint16_t>(bits));
  if (scalar == Scalar::kBF16) return BF16ToF32(static_cast<uint16_t>(bits));
  return std::bit_cast<float>(static_cast<uint32_t>(bits));
}

uint64_t FromF32(Scalar scalar, float value) {
  if (scalar == Scalar::kF16) return F32ToF16(value);
  if (scalar == Scalar::kBF16) return F32ToBF16(value);
  return std::bit_cast<uint32_t>(value);
}

// Calls fn with the operands as double (f64) or float (all others) and rounds what it gives.
template <typename Fn>
uint64_t Float1(DType dtype, Operands v, Fn fn) {
  if (dtype.scalar == Scalar::kF64) {
    return std::bit_cast<uint64_t>(fn(std::bit_cast<double>(v[0])));
  }
  return FromF32(dtype.scalar, fn(ToF32(dtype.scalar, v[0])));
}
template <typename Fn>
uint64_t Float2(DType dtype, Operands v, Fn fn) {
  if (dtype.scalar == Scalar::kF64) {
    return std::bit_cast<uint64_t>(fn(std::bit_cast<double>(v[0]), std::bit_cast<double>(v[1])));
  }
  return FromF32(dtype.scalar, fn(ToF32(dtype.scalar, v[0]), ToF32(dtype.scalar, v[1])));
}
template <typename Fn>
bool FloatCompare(DType dtype, Operands v, Fn fn) {
  if (dtype.scalar == Scalar::kF64) {
    return fn(std::bit_cast<double>(v[0]), std::bit_cast<double>(v[1]));
  }
  return fn(ToF32(dtype.scalar, v[0]), ToF32(dtype.scalar, v[1]));
}

// Transcendentals: the correctly rounded value is what a decomposition approximates. libm one
// precision up, rounded once, is within a hair of it: f64 through long double, the others through
// f64.
template <typename Fn>
uint64_t Transcendental(DType dtype, Operands v, Fn fn) {
  if (dtype.scalar == Scalar::kF64) {
    long double x = std::bit_cast<double>(v[0]);
    return std::bit_cast<uint64_t>(static_cast<double>(fn(x)));
  }
  return DoubleToBits(dtype.scalar, fn(BitsToDouble(dtype.scalar, v[0])));
}

uint64_t Power(DType dtype, Operands v) {
  if (dtype.scalar == Scalar::kF64) {
    long double x = std::bit_cast<double>(v[0]), y = std::bit_cast<double>(v[1]);
    return std::bit_cast<uint64_t>(static_cast<double>(std::pow(x, y)));
  }
  return DoubleToBits(dtype.scalar,
                      std::pow(BitsToDouble(dtype.scalar, v[0]), BitsToDouble(dtype.scalar, v[1])));
}

template <typename T>
T FloatMax(T x, T y) {
  if (std::isnan(x) || std::isnan(y)) return x + y;
  if (x == y) return std::signbit(x) ? y : x;
  return x > y ? x : y;
}
template <typename T>
T FloatMin(T x, T y) {
  if (std::isnan(x) || std::isnan(y)) return x + y;
  if (x == y) return std::signbit(x) ? x : y;
  return x < y ? x : y;
}

uint64_t SignBit(DType dtype) { return uint64_t{1} << (dtype.bits() - 1); }

// --- Conversions
// ----------------------------------------------------------------------------------

// Truncates and saturates; NaN gives 0. Every float format is exact in f64.
uint64_t FloatToInteger(DType to, double value) {
  if (std::isnan(value)) return 0;
  value = std::trunc(value);
  int magnitude_bits = to.bits() - (to.is_signed() ? 1 : 0);
  double limit = std::ldexp(1.0, magnitude_bits);
  if (value >= limit)
    return Wrap(to, magnitude_bits == 64 ? ~uint64_t{0} : (uint64_t{1} << magnitude_bits) - 1);
  if (!to.is_signed()) return value <= 0 ? 0 : static_cast<uint64_t>(value);
  if (value <= -limit) return SignBit(to);
  return Wrap(to, static_cast<uint64_t>(static_cast<int64_t>(value)));
}

// Rounds the exact integer once. f64 and f32 by the language's conversion, which is to nearest. For
// the 16-bit formats f64 is the way station: past 2^53 it would round first, so the bits that it
// cannot hold are gathered into one sticky bit, far below any 16-bit format's last place.
uint64_t IntegerToFloat(DType to, DType from, uint64_t bits) {
  bool negative = from.is_signed() && Extend(from, bits) < 0;
  if (to.scalar == Scalar::kF64 || to.scalar == Scalar::kF32) {
    bool narrow = to.scalar == Scalar::kF32;
    int64_t value = Extend(from, bits);
    if (from.is_signed()) {
      return narrow ? std::bit_cast<uint32_t>(static_cast<float>(value))
                    : std::bit_cast<uint64_t>(static_cast<double>(value));
    }
    return narrow ? std::bit_cast<uint32_t>(static_cast<float>(bits))
                  : std::bit_cast<uint64_t>(static_cast<double>(bits));
  }
  uint64_t magnitude = static_cast<uint64_t>(Extend(from, bits));
  if (negative) magnitude = 0 - magnitude;
  constexpr uint64_t kLost = 0x7ff;
  if (magnitude >> 53 != 0 && (magnitude & kLost) != 0) {
    magnitude = (magnitude & ~kLost) | (kLost + 1);
  }
  double value = static_cast<double>(magnitude);
  return DoubleToBits(to.scalar, negative ? -value : value);
}

uint64_t Cast(DType to, DType from, uint64_t bits) {
  if (from.is_float()) {
    double value = BitsToDouble(from.scalar, bits);
    if (to.is_bool()) return value != 0;  // NaN differs from 0
    return to.is_float() ? DoubleToBits(to.scalar, value) : FloatToInteger(to, value);
  }
  if (to.is_bool()) return bits != 0;
  if (to.is_float()) return IntegerToFloat(to, from, bits);
  return Wrap(to, static_cast<uint64_t>(Extend(from, bits)));
}

// --- Dot products. ---------------------------------------------------------------------------

uint64_t DotOfBytes(Operands v) {
  uint32_t sum = static_cast<uint32_t>(v[2]);
  for (int shift = 0; shift < 32; shift += 8) {
    auto x = static_cast<uint8_t>(v[0] >> shift);
    auto y = static_cast<int8_t>(v[1] >> shift);
    sum += static_cast<uint32_t>(x * y);
  }
  return sum;
}

float WithoutSubnormal(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}

uint64_t DotOfHalves(Operands v) {
  auto half = [](uint64_t bits) {
    return WithoutSubnormal(BF16ToF32(static_cast<uint16_t>(bits)));
  };
  float sum = WithoutSubnormal(std::bit_cast<float>(static_cast<uint32_t>(v[2])));
  for (int shift : {16, 0}) {
    sum = WithoutSubnormal(std::fma(half(v[0] >> shift), half(v[1] >> shift), sum));
  }
  return std::bit_cast<uint32_t>(sum);
}

}  // namespace

uint64_t EvaluateScalar(Op op, DType dtype, DType operand, Operands v) {
  const bool is_float = operand.is_float();
  switch (op) {
    case Op::kCast:
      return Cast(dtype, operand, v[0]);
    case Op::kBitcast:
      return v[0];

    case Op::kNeg:
      return is_float ? v[0] ^ SignBit(dtype) : Wrap(dtype, 0 - v[0]);
    case Op::kAbs:
      if (is_float) return v[0] & ~SignBit(dtype);
      return Extend(dtype, v[0]) < 0 && dtype.is_signed() ? Wrap(dtype, 0 - v[0]) : v[0];
    case Op::kNot:
      return Wrap(dtype, ~v[0]);
    case Op::kRecip:
      return Float1(dtype, v, [](auto x) { return static_cast<decltype(x)>(1) / x; });
    case Op::kSqrt:
      return Float1(dtype, v, [](auto x) { return std::sqrt(x); });
    case Op::kTrunc:
      return Float1(dtype, v, [](auto x) { return std::trunc(x); });
    case Op::kFloor:
      return Float1(dtype, v, [](auto x) { return std::floor(x); });
    case Op::kCeil:
      return Float1(dtype, v, [](auto x) { return std::ceil(x); });
    case Op::kRound:
      return Float1(dtype, v, [](auto x) { return std::nearbyint(x); });
    case Op::kExp:
      return Transcendental(dtype, v, [](auto x) { return std::exp(x); });
    case Op::kExp2:
      return Transcendental(dtype, v, [](auto x) { return std::exp2(x); });
    case Op::kLog:
      return Transcendental(dtype, v, [](auto x) { return std::log(x); });
    case Op::kLog2:
      return Transcendental(dtype, v, [](auto x) { return std::log2(x); });
    case Op::kSin:
      return Transcendental(dtype, v, [](auto x) { return std::sin(x); });
    case Op::kCos:
      return Transcendental(dtype, v, [](auto x) { return std::cos(x); });
    case Op::kTanh:
      return Transcendental(dtype, v, [](auto x) { return std::tanh(x); });
    case Op::kErf:
      return Transcendental(dtype, v, [](auto x) { return std::erf(x); });

    // Of bool, add is or and mul is and: the saturating readings of 1 + 1 and 1 * 1.
    case Op::kAdd:
      if (is_float) return Float2(dtype, v, [](auto x, auto y) { return x + y; });
      return dtype.is_bool() ? v[0] | v[1] : Wrap(dtype, v[0] + v[1]);
    case Op::kSub:
      if (is_float) return Float2(dtype, v, [](auto x, auto y) { return x - y; });
      return Wrap(dtype, v[0] - v[1]);
    case Op::kMul:
      if (is_float) return Float2(dtype, v, [](auto x, auto y) { return x * y; });
      return Wrap(dtype, v[0] * v[1]);
    case Op::kFdiv:
      return Float2(dtype, v, [](auto x, auto y) { return x / y; });
    case Op::kCdiv:
      return Truncating(dtype, v[0], v[1]).quotient;
    case Op::kCmod:
      return Truncating(dtype, v[0], v[1]).remainder;
    case Op::kFloordiv:
      return Flooring(dtype, v[0], v[1]).quotient;
    case Op::kFloormod:
      return Flooring(dtype, v[0], v[1]).remainder;
    case Op::kMax:
      if (is_float) return Float2(dtype, v, [](auto x, auto y) { return FloatMax(x, y); });
      return IsLess(dtype, v[0], v[1]) ? v[1] : v[0];
    case Op::kMin:
      if (is_float) return Float2(dtype, v, [](auto x, auto y) { return FloatMin(x, y); });
      return IsLess(dtype, v[1], v[0]) ? v[1] : v[0];
    case Op::kPow:
      return Power(dtype, v);
    case Op::kAnd:
      return v[0] & v[1];
    case Op::kOr:
      return v[0] | v[1];
    case Op::kXor:
      return v[0] ^ v[1];
    case Op::kShl:
      return v[1] >= static_cast<uint64_t>(dtype.bits()) ? 0 : Wrap(dtype, v[0] << v[1]);
    case Op::kShr: {
      uint64_t last = static_cast<uint64_t>(dtype.bits()) - 1;
      if (!dtype.is_signed()) return v[1] > last ? 0 : v[0] >> v[1];
      return Wrap(dtype, static_cast<uint64_t>(Extend(dtype, v[0]) >> (v[1] > last ? last : v[1])));
    }
    case Op::kCmpLt:
      if (is_float) return FloatCompare(operand, v, [](auto x, auto y) { return x < y; });
      return IsLess(operand, v[0], v[1]);
    case Op::kCmpLe:
      if (is_float) return FloatCompare(operand, v, [](auto x, auto y) { return x <= y; });
      return !IsLess(operand, v[1], v[0]);
    case Op::kCmpEq:
      if (is_float) return FloatCompare(operand, v, [](auto x, auto y) { return x == y; });
      return v[0] == v[1];
    case Op::kCmpNe:
      if (is_float) return FloatCompare(operand, v, [](auto x, auto y) { return x != y; });
      return v[0] != v[1];

    case Op::kWhere:
      return v[0] != 0 ? v[1] : v[2];
    case Op::kMulAcc:
      if (dtype.scalar == Scalar::kF64) {
        return std::bit_cast<uint64_t>(std::fma(
            std::bit_cast<double>(v[0]), std::bit_cast<double>(v[1]), std::bit_cast<double>(v[2])));
      }
      if (is_float) {
        return FromF32(dtype.scalar, std::fma(ToF32(dtype.scalar, v[0]), ToF32(dtype.scalar, v[1]),
                                              ToF32(dtype.scalar, v[2])));
      }
      return Wrap(dtype, v[0] * v[1] + v[2]);

    case Op::kDotU8I8:
      return DotOfBytes(v);
    case Op::kDotBF16:
      return DotOfHalves(v);

    case Op::kConst:
    case Op::kDefineVar:
    case Op::kBind:
    case Op::kCoreId:
    case Op::kParam:
    case Op::kBuffer:
    case Op::kReg:
    case Op::kLocal:
    case Op::kIndex:
    case Op::kLoad:
    case Op::kStore:
    case Op::kAfter:
    case Op::kRange:
    case Op::kEnd:
    case Op::kReduce:
    case Op::kSink:
    case Op::kStack:
    case Op::kSplat:
    case Op::kLanes:
    case Op::kPick:
    case Op::kCall:
    case Op::kCopy:
    case Op::kBufferView:
    case Op::kCustomFunction:
    case Op::kReshape:
    case Op::kExpand:
    case Op::kPermute:
    case Op::kPad:
    case Op::kShrink:
    case Op::kFlip:
    case Op::kReduceAxis:
    case Op::kArange:
    case Op::kGather:
    case Op::kScatter:
    case Op::kContiguous:
    case Op::kAssign:
      break;
  }
  SVOD_DCHECK(IsLanewise(op));
  return 0;
}

uint64_t ReduceIdentity(ReduceKind kind, DType dtype) {
  const Scalar scalar = dtype.scalar;
  const double inf = std::numeric_limits<double>::infinity();
  switch (kind) {
    case ReduceKind::kAdd:
    case ReduceKind::kOr:
      return 0;
    case ReduceKind::kMul:
      return dtype.is_float() ? DoubleToBits(scalar, 1) : 1;
    case ReduceKind::kMax:
      if (dtype.is_float()) return DoubleToBits(scalar, -inf);
      return Wrap(dtype, static_cast<uint64_t>(MinValue(dtype.element())));
    case ReduceKind::kMin:
      if (dtype.is_float()) return DoubleToBits(scalar, inf);
      // MaxValue cannot say 2^64 - 1.
      if (dtype.is_unsigned()) return Wrap(dtype, ~uint64_t{0});
      return Wrap(dtype, static_cast<uint64_t>(MaxValue(dtype.element())));
    case ReduceKind::kAnd:
      return Wrap(dtype, ~uint64_t{0});
  }
  return 0;
}

Op ScatterOp(ScatterKind kind) {
  constexpr Op kOps[] = {Op::kWhere, Op::kAdd, Op::kMul, Op::kMax, Op::kMin};
  return kOps[static_cast<int>(kind)];
}

Op ReduceOp(ReduceKind kind) {
  constexpr Op kOps[] = {Op::kAdd, Op::kMul, Op::kMax, Op::kMin, Op::kAnd, Op::kOr};
  return kOps[static_cast<int>(kind)];
}

}  // namespace svod
