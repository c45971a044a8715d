// exp and exp2.
//
// Reduction by Cody and Waite ("Software Manual for the Elementary Functions", 1980): x = n ln 2 +
// r with n whole and |r| <= ln(2)/2, where ln 2 is the sum of a short constant, whose product with
// n is exact, and a correction. Then e^x = 2^n e^r, with e^r a polynomial.
#include "ir/passes/math_functions.h"

namespace svod {
namespace {

constexpr double kLog2E = 0x1.71547652b82fep+0;

// ln 2 as a short number (16 bits, 42 bits), whose products with n are exact, and the rest.
struct Ln2 {
  double high;
  double low;
};

Ln2 Ln2Of(DType dtype) {
  if (dtype.scalar == Scalar::kF32) return {0x1.62e4p-1, 0x1.7f7d1cp-20};
  return {0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45};
}

// The bits of a float with a rounding shift, as an integer whose low end is n.
Value IntegerBits(Value shifted) {
  return shifted.BitsAs(shifted.dtype().scalar == Scalar::kF32 ? Scalar::kI32 : Scalar::kI64);
}

}  // namespace

Value ClampKeepingNaN(Value x, double low, double high) {
  x = Where(x.Literal(high) < x, high, x);
  return Where(x < low, low, x);
}

double RoundingShift(DType dtype) { return dtype.scalar == Scalar::kF32 ? 0x1.8p23 : 0x1.8p52; }

// The power is split into two factors, since 2^n itself may be out of range: the first product is
// exact and only the second can round, overflow or become subnormal. Shifting left by the width of
// the mantissa drops everything of `bits` but n. (Adding n to p's exponent field would save an op,
// but turn NaN into numbers.)
Value ScaleByPowerOfTwo(Value p, Value bits) {
  const Scalar real = p.dtype().scalar;
  const bool is_f32 = real == Scalar::kF32;
  const int mantissa_bits = is_f32 ? 23 : 52;
  const int64_t one = is_f32 ? 0x3f800000 : 0x3ff0000000000000;  // the bits of 1.0
  Value half = (bits >> 1) << mantissa_bits;
  Value rest = (bits << mantissa_bits) - half;
  return p * (half + one).BitsAs(real) * (rest + one).BitsAs(real);
}

// Minimax for e^r - 1 = r + r^2 ExpTail(r) on |r| <= 0.3475, relative to that, since tanh needs it
// so. Degree 6 for f32, 2^-26.1 (2^-27.5 of e^r); 11 for f64, 2^-55.5 (2^-56.9).
Value ExpTail(Value r) {
  if (r.dtype().scalar == Scalar::kF32) {
    return Polynomial(r,
                      {0x1.6b79b2p-10, 0x1.12292ep-7, 0x1.555712p-5, 0x1.5554aep-3, 0x1.fffffep-2});
  }
  return Polynomial(
      r, {0x1.ae747fe155c33p-26, 0x1.28a346349c249p-22, 0x1.71de838a5923dp-19,
          0x1.a019a60014437p-16, 0x1.a01a01769f60ep-13, 0x1.6c16c17f5ac05p-10, 0x1.1111111118c61p-7,
          0x1.555555555209cp-5, 0x1.555555555553ap-3, 0x1.0000000000005p-1});
}

Value PowerOfTwo(Value bits) {
  if (bits.dtype().scalar == Scalar::kI32) {
    return ((bits << 23) + 0x3f800000).BitsAs(Scalar::kF32);
  }
  return ((bits << 52) + 0x3ff0000000000000).BitsAs(Scalar::kF64);
}

ExpReduction ReduceExp(Value x) {
  const Ln2 ln2 = Ln2Of(x.dtype());
  Value shifted = Fma(x, kLog2E, RoundingShift(x.dtype()));
  Value n = shifted - RoundingShift(x.dtype());
  return {IntegerBits(shifted), Fma(n, -ln2.low, Fma(n, -ln2.high, x))};
}

PreciseExpReduction ReduceExpPrecisely(Value x) {
  const Ln2 ln2 = Ln2Of(x.dtype());
  Value shifted = Fma(x, kLog2E, RoundingShift(x.dtype()));
  Value n = shifted - RoundingShift(x.dtype());
  Value exact = Fma(n, -ln2.high, x);
  Value r = Fma(n, -ln2.low, exact);
  return {IntegerBits(shifted), r, Fma(n, -ln2.low, exact - r)};
}

ExpReduction ReduceExpOfMulAcc(Value a, Value b, double c) {
  const Ln2 ln2 = Ln2Of(a.dtype());
  Value shifted = Fma(Fma(a, b, c), kLog2E, RoundingShift(a.dtype()));
  Value n = shifted - RoundingShift(a.dtype());
  return {IntegerBits(shifted), Fma(n, -ln2.low, Fma(a, b, Fma(n, -ln2.high, c)))};
}

Value DecomposeExp(Value x) {
  // Beyond these the result is infinite or rounds to zero; n stays within bounds.
  const bool is_f32 = x.dtype().scalar == Scalar::kF32;
  x = is_f32 ? ClampKeepingNaN(x, -104, 89) : ClampKeepingNaN(x, -746, 710);
  auto [bits, r] = ReduceExp(x);
  return ScaleByPowerOfTwo(Fma(Fma(ExpTail(r), r, 1.0), r, 1.0), bits);
}

// 2^r = 1 + r c + r^2 Exp2Tail(r) on |r| <= 0.5005. Degree 6 for f32, 2^-28.0; 11 for f64, 2^-57.3.
double Exp2Linear(DType dtype) {
  return dtype.scalar == Scalar::kF32 ? 0x1.62e43p-1 : 0x1.62e42fefa39efp-1;
}

Value Exp2Tail(Value r) {
  if (r.dtype().scalar == Scalar::kF32) {
    return Polynomial(
        r, {0x1.3fad5cp-13, 0x1.5f0ca8p-10, 0x1.3b3096p-7, 0x1.c6af74p-5, 0x1.ebfbd8p-3});
  }
  return Polynomial(
      r, {0x1.e96c003b960d1p-32, 0x1.e61da9b910f7p-28, 0x1.b52527b1d38d8p-24, 0x1.62bfc627a96fap-20,
          0x1.ffcbfc6419472p-17, 0x1.4309130f7bdb7p-13, 0x1.5d87fe789f11dp-10, 0x1.3b2ab6fb9fd79p-7,
          0x1.c6b08d704a12ap-5, 0x1.ebfbdff82c5a6p-3});
}

Value Exp2Polynomial(Value r) { return Fma(Fma(Exp2Tail(r), r, Exp2Linear(r.dtype())), r, 1.0); }

// The part beyond r c is small enough for its roundings and r_low to vanish in it.
Value Exp2Polynomial(Value r, Value r_low) {
  const double linear = Exp2Linear(r.dtype());
  return Fma(r, linear, Fma(r * r, Exp2Tail(r), r_low * linear)) + 1.0;
}

Value DecomposeExp2(Value x) {
  const bool is_f32 = x.dtype().scalar == Scalar::kF32;
  const double shift = RoundingShift(x.dtype());
  x = is_f32 ? ClampKeepingNaN(x, -150, 128) : ClampKeepingNaN(x, -1076, 1024);
  Value shifted = x + shift;
  Value r = x - (shifted - shift);
  return ScaleByPowerOfTwo(Exp2Polynomial(r), IntegerBits(shifted));
}

}  // namespace svod
