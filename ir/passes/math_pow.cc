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

// 2^(y log2 size) for f32, size >= 0. The logarithm, relative: degree 13, 2^-35.9.
Value PowerF32(Value size, Value y) {
  Value wide = size.CastTo(Scalar::kF64);
  auto [k, f] = SplitNormal(wide);
  Value p = Polynomial(
      f, {0x1.42a6709fa61d9p-3, -0x1.543032212aed3p-3, 0x1.fa1c4a216709p-4, -0x1.1984dff72d702p-3,
          0x1.49816123b484ep-3, -0x1.724a7b9c425a7p-3, 0x1.a60b287344fc8p-3, -0x1.ec687b442f21ap-3,
          0x1.2776e228d3106p-2, -0x1.715484fb812c4p-2, 0x1.ec709d900d451p-2, -0x1.7154764b33296p-1,
          0x1.71547652bbe3ep0});
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
// q(z))) where c1 = 2 / ln 2 and c3 = c1 / 3 are sums of two f64 and q has degree 8: 2^-68.8 of the
// whole, about 2^-66 with the roundings, of which that of q itself is the largest.
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
  Value factor = Polynomial(z, {0x1.0d685dbe1e777p-3, 0x1.3dcd140cc9465p-3, 0x1.5b038d1612b0fp-3,
                                0x1.89f9e0b13f765p-3, 0x1.c68f332be8993p-3, 0x1.0c9a84d18f97dp-2,
                                0x1.484b13d7621f6p-2, 0x1.a61762a7ae33ap-2, 0x1.2776c50ef9bfep-1});
  Value q = z * factor;
  Value q_low = Fma(z_low, factor, Fma(z, factor, -q));
  Value v = q + c3;
  Value v_low = (q - (v - c3)) + (q_low + c3_low);
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
  Value most = t - (shifted - RoundingShift(t.dtype()));
  Value r = most + t_low;
  Value r_low = t_low - (r - most);
  return ScaleByPowerOfTwo(Exp2Polynomial(r, r_low), shifted.BitsAs(Scalar::kI64));
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
