// tanh and erf. Both are odd, and 1 but for an exponential at large arguments.
#include <limits>

#include "ir/passes/math_functions.h"

namespace svod {

Value WithSignOf(Value magnitude, Value x) {
  const Scalar real = x.dtype().scalar;
  const bool is_f32 = real == Scalar::kF32;
  const Scalar integer = is_f32 ? Scalar::kI32 : Scalar::kI64;
  const int64_t sign = is_f32 ? 0x80000000 : std::numeric_limits<int64_t>::min();
  return (magnitude.BitsAs(integer) | (x.BitsAs(integer) & sign)).BitsAs(real);
}

// tanh |x| = e / (e + 2) with e = exp(2|x|) - 1, which one formula gives for all x: from
// 2|x| = n ln 2 + r it is e = (2^n - 1) + 2^n r + 2^n r^2 tail(r). Numerator and denominator are
// kept as unevaluated sums high + low, and the quotient of their leading parts is corrected once.
Value DecomposeTanh(Value x) {
  if (x.dtype().scalar == Scalar::kF32) return TanhByTable(x);
  const double largest = 20;  // tanh rounds to 1 from 19.07 on
  Value size = Abs(x);
  size = Where(size.Literal(largest) < size, largest, size);
  auto [bits, r, r_low] = ReduceExpPrecisely(size + size);
  Value scale = PowerOfTwo(bits);
  Value less_one = scale - 1.0;
  Value linear = scale * r;
  Value leading = less_one + linear;
  Value tail = Fma(scale, Fma(r * r, ExpTail(r), r_low), linear - (leading - less_one));
  Value high = leading + tail;
  Value low = tail - (high - leading);
  Value denominator = high + 2.0;
  // high may be on either side of 2.
  Value two = denominator - high;
  Value denominator_low = (high - (denominator - two)) + (2.0 - two) + low;
  Value reciprocal = denominator.Apply(Op::kRecip);
  Value quotient = high * reciprocal;
  Value rest = Fma(-quotient, denominator, high) + Fma(-quotient, denominator_low, low);
  return WithSignOf(Fma(rest, reciprocal, quotient), x);
}

// Small |x|: x + x P(x^2). Large |x|: 1 - exp(L(|x|)) where L approximates log(erfc), as
// c + u q(u) with u = |x| - c0. The point c0 is chosen such that c = log(erfc(c0)) is a short
// number: the largest error of the sum, where erfc is largest, would be the rounding of c.
// P of degree 11 in x^2, 2^-55.9; L of degree 18 up to 6, 2^-57.9.
Value DecomposeErf(Value x) {
  if (x.dtype().scalar == Scalar::kF32) return ErfByTable(x);
  const double middle = 0x1.c0000000a8deep-1;
  const double log_at_middle = -0x1.88672eaa808p0;
  const double largest = 6;  // erf rounds to 1 from 5.87 on
  Value square = x * x;
  Value p =
      Polynomial(square, {-0x1.ac1a419750f6dp-31, 0x1.d73d744d725f6p-27, -0x1.5c0bc31310e51p-23,
                          0x1.b9807f2338cccp-20, -0x1.f4ca5bb28570cp-17, 0x1.f9a2bb4bba0e5p-14,
                          -0x1.c02db03ff6859p-11, 0x1.565bccf908894p-8, -0x1.b82ce311f7069p-6,
                          0x1.ce2f21a040b02p-4, -0x1.812746b0379b5p-2, 0x1.06eba8214db68p-3});
  Value small = Fma(x, p, x);

  Value size = Abs(x);
  Value u = Where(size.Literal(largest) < size, largest, size) - middle;
  Value q = Polynomial(u, {0x1.96746259dff69p-40, -0x1.6d03d8c13dc05p-35, 0x1.2f75a93adb599p-31,
                           -0x1.3562ce6fb2d3cp-28, 0x1.acc2b4dca90adp-26, -0x1.9e6d2da81add6p-24,
                           0x1.005e3072c7318p-22, -0x1.2b1715a038b3ep-23, -0x1.116491b9c23c5p-19,
                           0x1.981a20b867298p-17, -0x1.4a4b8b5ef67fdp-15, 0x1.f1561d89eb1e9p-15,
                           0x1.a51399bc59c3ep-13, -0x1.19049abac60fp-9, 0x1.730b0e9c06a3bp-7,
                           -0x1.802c27933713dp-5, -0x1.a730790b64dfcp-1, -0x1.3711709c5d7e8p1});
  auto [bits, r] = ReduceExpOfMulAcc(u, q, log_at_middle);
  Value complement = Fma(Fma(ExpTail(r), r, 1.0), r, 1.0);
  Value large = Fma(-complement, PowerOfTwo(bits), 1.0);
  return Where(size < middle, small, WithSignOf(large, x));
}

}  // namespace svod
