// pow: |x|^y = 2^(y log2 |x|), with the signs and special cases of IEEE-754 put in at the end.
//
// The exponent may be as large as 1075, so that its logarithm has to be ten bits better than the
// result: f32 takes it in f64, f64 as an unevaluated sum of two f64.
#include <limits>

#include "ir/passes/math_functions.h"

namespace svod {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Infinite for 0 and inf, NaN for NaN.
Value WithEnds(Value size, Value logarithm) {
  logarithm = Where(size == 0.0, -kInfinity, logarithm);
  return Where(size < kInfinity, logarithm, size);
}

// 2^(y log2 size) for f32, size >= 0. The logarithm, relative: degree 13, 2^-35.8.
Value PowerF32(Value size, Value y) {
  Value wide = size.CastTo(Scalar::kF64);
  auto [k, f] = SplitNormal(wide);
  Value p = Polynomial(
      f, {0x1.3cea35198229fp-4, -0x1.248a0eef550dbp-3, 0x1.28722d4e73de8p-3, -0x1.252f07a24b13bp-3,
          0x1.45290542f733cp-3, -0x1.7141735fc857p-3, 0x1.a63f45ea8601fp-3, -0x1.ec72b58e16d57p-3,
          0x1.277651f656f11p-2, -0x1.715470979354ap-2, 0x1.ec709ebba3abdp-2, -0x1.715476565d47bp-1,
          0x1.71547652a1e7fp0});
  Value t = y.CastTo(Scalar::kF64) * WithEnds(wide, Fma(f, p, k));
  t = ClampKeepingNaN(t, -200, 200);
  Value shifted = t + RoundingShift(t.dtype());
  Value r = (t - (shifted - RoundingShift(t.dtype()))).CastTo(Scalar::kF32);
  return ScaleByPowerOfTwo(Exp2Polynomial(r), shifted.BitsAs(Scalar::kI64).CastTo(Scalar::kI32));
}

struct Sum {
  Value high;
  Value low;
};

// log2 of a positive finite f64. With s = f / (2 + f) and z = s^2 it is k + s (c1 + z (c3 + z
// q(z))), c1 = 2 / ln 2 and c3 = c1 / 3 as sums of two f64, q of degree 7: 2^-71.3 of the whole;
// with the roundings about 2^-65.
Sum LogarithmF64(Value size) {
  auto [k, f] = SplitExponent(size);
  Value d = f + 2.0;
  Value d_low = f - (d - 2.0);
  Value reciprocal = d.Apply(Op::kRecip);
  Value s = f * reciprocal;
  Value s_low = Fma(-s, d_low, Fma(-s, d, f)) * reciprocal;
  Value z = s * s;
  Value z_low = Fma(s + s, s_low, Fma(s, s, -z));

  const double c1 = 0x1.71547652b82fep+1, c1_low = 0x1.777d0ffda0d24p-55;
  const double c3 = 0x1.ec709dc3a03fdp-1, c3_low = 0x1.d27f05548af0cp-55;
  Value q = z * Polynomial(z, {0x1.6042e325eb5b2p-3, 0x1.593a5e3b24224p-3, 0x1.8a062754eac9p-3,
                               0x1.c68f04d7aefd2p-3, 0x1.0c9a85003bc5dp-2, 0x1.484b13d735a4ep-2,
                               0x1.a61762a7ae41fp-2, 0x1.2776c50ef9bfep-1});
  Value v = q + c3;
  Value v_low = (q - (v - c3)) + c3_low;
  Value u = z * v;
  Value u_low = Fma(z_low, v, Fma(z, v_low, Fma(z, v, -u)));
  Value c = u + c1;
  Value c_low = (u - (c - c1)) + (u_low + c1_low);
  Value log = s * c;
  Value log_low = Fma(s_low, c, Fma(s, c_low, Fma(s, c, -log)));
  Value high = k + log;
  return {high, (log - (high - k)) + log_low};
}

// 2^(y log2 size) for f64, size >= 0.
Value PowerF64(Value size, Value y) {
  auto [log, log_low] = LogarithmF64(size);
  log = WithEnds(size, log);
  Value t = y * log;
  Value t_low = Fma(y, log_low, Fma(y, log, -t));
  // Where the result overflows or vanishes t alone says so, and t_low may be anything.
  t_low = Where(Abs(t) < 1100.0, t_low, 0.0);
  t = ClampKeepingNaN(t, -1100, 1100);
  Value shifted = t + RoundingShift(t.dtype());
  Value r = (t - (shifted - RoundingShift(t.dtype()))) + t_low;
  return ScaleByPowerOfTwo(Exp2Polynomial(r), shifted.BitsAs(Scalar::kI64));
}

}  // namespace

Value DecomposePow(Value x, Value y) {
  const Scalar real = x.dtype().scalar;
  const bool is_f32 = real == Scalar::kF32;
  const Scalar integer = is_f32 ? Scalar::kI32 : Scalar::kI64;
  Value size = Abs(x);
  Value power = is_f32 ? PowerF32(size, y) : PowerF64(size, y);
  power = Where(size == 1.0, 1.0, power);  // even if y is infinite

  Value is_whole = Trunc(y) == y;
  Value half = y * 0.5;
  Value is_odd = is_whole & (Trunc(half) != half);
  Value sign = x.BitsAs(integer) & (int64_t{1} << (is_f32 ? 31 : 63));
  power = (power.BitsAs(integer) | Where(is_odd, sign, 0)).BitsAs(real);

  Value is_negative = (x < 0.0) & (x.Literal(-kInfinity) < x);
  power = Where(is_negative & (Trunc(y) != y), kNaN, power);
  return Where((y == 0.0) | (x == 1.0), 1.0, power);  // even if the other is NaN
}

}  // namespace svod
