// exp and exp2.
//
// Reduction by Cody and Waite ("Software Manual for the Elementary Functions", 1980): x = n ln 2 +
// r with n whole and |r| <= ln(2)/2, where ln 2 is the sum of a short constant, whose product with
// n is exact, and a correction. Then e^x = 2^n e^r, with e^r a polynomial.
#include "ir/passes/math_functions.h"

namespace svod {
namespace {

// e^r - 1 - r = r^2 * ExpTail(r) on |r| <= 0.3475. Degree 6 for f32, 2^-28.2; 11 for f64, 2^-57.9.
Value ExpTail(Value r) {
  if (r.dtype().scalar == Scalar::kF32) {
    return Polynomial(r,
                      {0x1.695414p-10, 0x1.123b04p-7, 0x1.555a22p-5, 0x1.55549p-3, 0x1.fffffap-2});
  }
  return Polynomial(
      r, {0x1.ad8dcc540e8c5p-26, 0x1.28ae4e475fcb6p-22, 0x1.71df1ce6681ccp-19,
          0x1.a01999128ca8fp-16, 0x1.a01a012dd5481p-13, 0x1.6c16c1848d831p-10, 0x1.1111111127257p-7,
          0x1.555555555067bp-5, 0x1.55555555554fcp-3, 0x1.000000000000ap-1});
}

// 2^r on |r| <= 0.5005. Degree 6 for f32, 2^-28.0; 11 for f64, 2^-57.3.
Value Exp2Polynomial(Value r) {
  if (r.dtype().scalar == Scalar::kF32) {
    return Polynomial(r, {0x1.3fad5cp-13, 0x1.5f0ca8p-10, 0x1.3b3096p-7, 0x1.c6af74p-5,
                          0x1.ebfbd8p-3, 0x1.62e43p-1, 1.0});
  }
  return Polynomial(
      r, {0x1.e96c003b960d1p-32, 0x1.e61da9b910f7p-28, 0x1.b52527b1d38d8p-24, 0x1.62bfc627a96fap-20,
          0x1.ffcbfc6419472p-17, 0x1.4309130f7bdb7p-13, 0x1.5d87fe789f11dp-10, 0x1.3b2ab6fb9fd79p-7,
          0x1.c6b08d704a12ap-5, 0x1.ebfbdff82c5a6p-3, 0x1.62e42fefa39efp-1, 1.0});
}

// x within [low, high]; NaN stays NaN.
Value ClampKeepingNaN(Value x, double low, double high) {
  x = Where(x.Literal(high) < x, high, x);
  return Where(x < low, low, x);
}

}  // namespace

double RoundingShift(DType dtype) { return dtype.scalar == Scalar::kF32 ? 0x1.8p23 : 0x1.8p52; }

// The power is split into two factors, since 2^n itself may be out of range: the first product is
// exact and only the second can round, overflow or become subnormal. Shifting left by the width of
// the mantissa drops everything of `shifted` but n. (Adding n to p's exponent field would save an
// op, but turn NaN into numbers.)
Value ScaleByPowerOfTwo(Value p, Value shifted) {
  const Scalar real = p.dtype().scalar;
  const bool is_f32 = real == Scalar::kF32;
  const int mantissa_bits = is_f32 ? 23 : 52;
  const int64_t one = is_f32 ? 0x3f800000 : 0x3ff0000000000000;  // the bits of 1.0
  Value n = shifted.BitsAs(is_f32 ? Scalar::kI32 : Scalar::kI64);
  Value half = (n >> 1) << mantissa_bits;
  Value rest = (n << mantissa_bits) - half;
  return p * (half + one).BitsAs(real) * (rest + one).BitsAs(real);
}

Value DecomposeExp(Value x) {
  const bool is_f32 = x.dtype().scalar == Scalar::kF32;
  const double shift = RoundingShift(x.dtype());
  // Beyond these the result is infinite or rounds to zero; n stays within bounds.
  x = is_f32 ? ClampKeepingNaN(x, -104, 89) : ClampKeepingNaN(x, -746, 710);
  Value shifted = Fma(x, 0x1.71547652b82fep+0, shift);
  Value n = shifted - shift;
  // ln 2 with 16 and 42 bits, and the rest.
  Value r = is_f32 ? Fma(n, -0x1.62e4p-1, x) : Fma(n, -0x1.62e42fefa38p-1, x);
  r = is_f32 ? Fma(n, -0x1.7f7d1cp-20, r) : Fma(n, -0x1.ef35793c7673p-45, r);
  Value p = Fma(Fma(ExpTail(r), r, 1.0), r, 1.0);
  return ScaleByPowerOfTwo(p, shifted);
}

Value DecomposeExp2(Value x) {
  const bool is_f32 = x.dtype().scalar == Scalar::kF32;
  const double shift = RoundingShift(x.dtype());
  x = is_f32 ? ClampKeepingNaN(x, -150, 128) : ClampKeepingNaN(x, -1076, 1024);
  Value shifted = x + shift;
  Value r = x - (shifted - shift);
  return ScaleByPowerOfTwo(Exp2Polynomial(r), shifted);
}

}  // namespace svod
