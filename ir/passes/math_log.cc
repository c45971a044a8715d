// log and log2.
//
// x = 2^k (1 + f) with 1 + f around 1, read off the bits of x; then log x is k ln 2 + log(1 + f),
// where only f and k times the leading part of ln 2 reach the last place of the result: they are
// added without losing their rounding error, the small rest is added to that.
#include <cmath>
#include <limits>

#include "ir/passes/math_functions.h"

namespace svod {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// For f64, log(1 + f) - f = s rest - half_square with s = f / (2 + f): 2 atanh(s) by Tang, "Table-
// driven implementation of the logarithm function in IEEE floating-point arithmetic", 1990, with
// f^2/2 taken out as in fdlibm. rest is f^2/2 + R(s^2), R of degree 8 in s^2, 2^-60.8 of the whole.
struct LogParts {
  Value s;
  Value rest;
  Value half_square;
};

LogParts LogPartsOf(Value f) {
  Value s = f / (f + 2.0);
  Value z = s * s;
  Value r = z * Polynomial(z, {0x1.16e404dc086b1p-3, 0x1.0e821e3e46114p-3, 0x1.3b2a64928ee7cp-3,
                               0x1.745ca8007b58ap-3, 0x1.c71c72f00d137p-3, 0x1.24924923cdbe1p-2,
                               0x1.999999999ap-2, 0x1.5555555555555p-1});
  Value half_square = f * 0.5 * f;
  return {s, half_square + r, half_square};
}

// log(1 + f) - f + addend for the fractions that SplitExponent gives. For f32 log(1 + f) - f is f^2
// times a polynomial; degree 10 in all, 2^-27.6.
Value AddLogTail(Value f, Value addend) {
  if (f.dtype().scalar == Scalar::kF32) {
    Value q = Polynomial(f, {-0x1.06cdfap-3, 0x1.1ec6e2p-3, -0x1.f3a7dep-4, 0x1.1ec0dp-3,
                             -0x1.559802p-3, 0x1.99d1c6p-3, -0x1.ffff14p-3, 0x1.555502p-2, -0.5});
    return Fma(f * f, q, addend);
  }
  auto [s, rest, half_square] = LogPartsOf(f);
  return Fma(s, rest, addend - half_square);
}

// log2(1 + f) - f / ln 2 + addend, likewise. f32: degree 10, 2^-27.5.
Value AddLog2Tail(Value f, Value addend) {
  if (f.dtype().scalar == Scalar::kF32) {
    Value q =
        Polynomial(f, {-0x1.795a28p-3, 0x1.9ddbc2p-3, -0x1.68ea1p-3, 0x1.9dab04p-3, -0x1.ecc50ap-3,
                       0x1.279f9p-2, -0x1.715404p-2, 0x1.ec7024p-2, -0x1.715476p-1});
    return Fma(f * f, q, addend);
  }
  const double log2_e = 0x1.71547652b82fep+0;
  auto [s, rest, half_square] = LogPartsOf(f);
  return Fma(s * rest, log2_e, Fma(half_square, -log2_e, addend));
}

// The results that arithmetic does not give: log 0 = -inf, of a negative number or NaN NaN, of inf
// inf.
Value WithSpecialArguments(Value x, Value result) {
  result = Where(x < kInfinity, result, x);
  Value not_positive = Where(x == 0.0, x.Literal(-kInfinity), kNaN);
  return Where(x.Literal(0.0) < x, result, not_positive);
}

struct TwoSumResult {
  Value high;
  Value low;
};

// a + b exactly, for |a| >= |b| or a = 0 (Dekker, "A floating-point technique for extending the
// available precision", 1971).
TwoSumResult FastTwoSum(Value a, Value b) {
  Value high = a + b;
  return {high, b - (high - a)};
}

// What Split's float of the exponent field is beyond the exponent.
double BiasOf(DType dtype) { return dtype.scalar == Scalar::kF32 ? 127 : 0x1p52 + 1023; }

// 2/3 becomes the point where the exponent field steps, and k plus the bias what it holds.
SplitFloat Split(Value x, Value bias) {
  if (x.dtype().scalar == Scalar::kF32) {
    const int64_t two_thirds = 0x3f2aaaab;
    Value offset = x.BitsAs(Scalar::kI32) + (0x3f800000 - two_thirds);
    Value m = ((offset & 0x7fffff) + two_thirds).BitsAs(Scalar::kF32);
    return {(offset >> 23).CastTo(Scalar::kF32) - bias, m - 1.0};
  }
  const int64_t two_thirds = 0x3fe5555555555555;
  Value offset = x.BitsAs(Scalar::kI64) + (0x3ff0000000000000 - two_thirds);
  // Or-ing a small integer into the bits of 2^52 converts it to f64 without AVX-512's conversion.
  Value biased = ((offset >> 52) | 0x4330000000000000).BitsAs(Scalar::kF64);
  Value m = ((offset & 0xfffffffffffff) + two_thirds).BitsAs(Scalar::kF64);
  return {biased - bias, m - 1.0};
}

}  // namespace

SplitFloat SplitExponent(Value x) {
  const bool is_f32 = x.dtype().scalar == Scalar::kF32;
  const double bias = BiasOf(x.dtype());
  const int digits = is_f32 ? 23 : 52;
  Value is_subnormal = x < (is_f32 ? 0x1p-126 : 0x1p-1022);
  Value scaled = Where(is_subnormal, x * std::ldexp(1.0, digits), x);
  return Split(scaled, Where(is_subnormal, x.Literal(bias + digits), bias));
}

SplitFloat SplitNormal(Value x) { return Split(x, x.Literal(BiasOf(x.dtype()))); }

Value DecomposeLog(Value x) {
  const bool is_f32 = x.dtype().scalar == Scalar::kF32;
  auto [k, f] = SplitExponent(x);
  TwoSumResult sum = FastTwoSum(k * (is_f32 ? 0x1.62e4p-1 : 0x1.62e42fefa38p-1), f);
  Value low = Fma(k, is_f32 ? 0x1.7f7d1cp-20 : 0x1.ef35793c7673p-45, sum.low);
  return WithSpecialArguments(x, sum.high + AddLogTail(f, low));
}

Value DecomposeLog2(Value x) {
  const bool is_f32 = x.dtype().scalar == Scalar::kF32;
  auto [k, f] = SplitExponent(x);
  // 1 / ln 2 to twice the precision; f times it keeps its rounding error as well.
  const double high = is_f32 ? 0x1.715476p+0 : 0x1.71547652b82fep+0;
  const double low = is_f32 ? 0x1.4ae0cp-26 : 0x1.777d0ffda0d24p-56;
  Value product = f * high;
  Value product_error = Fma(f, high, -product);
  TwoSumResult sum = FastTwoSum(k, product);
  Value rest = AddLog2Tail(f, Fma(f, low, product_error) + sum.low);
  return WithSpecialArguments(x, sum.high + rest);
}

}  // namespace svod
