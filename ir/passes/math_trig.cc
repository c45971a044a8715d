// sin and cos, right for every finite argument.
//
// Both reduce |x| to a quarter turn n and the angle r that is left, |r| <= pi/4, in the way of
// Payne and Hanek ("Radian reduction for trigonometric functions", 1983): of the product of x with
// 2/pi (or 1/(2 pi)) only the bits near the point matter. Constants whose product with every x of
// the class at hand is a whole number of turns are left out, as many as reach the precision are
// kept. Here the products are fused multiply-adds, so that no path branches and no table is read;
// the class is selected by comparisons.
#include <cmath>
#include <vector>

#include "ir/passes/math_functions.h"

namespace svod {
namespace {

enum class Function { kSin, kCos };

// n mod 4 in the low bits of an integer, and r as a sum high + low.
struct Angle {
  Value quadrant;
  Value high;
  Value low;
};

// --- f32: in f64, which holds |x| 2/pi to within 2^-57 for constants of two f64 each.

// Four classes of |x|. C is 2/pi for |x| < 2^50; beyond, from 2^E on, it is 2/pi less a multiple of
// 2^(25-E), since x is a multiple of 2^(E-23) and four quarter turns are none. |x C| < 2^51.
Value ReduceF32(Value size, Value* quadrant) {
  Value x = size.CastTo(Scalar::kF64);
  Value first = x < 0x1p50, second = x < 0x1p76, third = x < 0x1p102;
  auto select = [&](double c0, double c1, double c2, double c3) {
    return Where(first, c0, Where(second, c1, Where(third, x.Literal(c2), c3)));
  };
  Value high = select(0x1.45f306dc9c883p-1, -0x1.1b1bbead603d9p-28, -0x1.5ac07b1505c16p-53,
                      -0x1.505c1596447e5p-81);
  Value low = select(-0x1.6b01ec5417056p-55, 0x1.5f47d4d377037p-82, 0x1.a6ee06db14acdp-107,
                     0x1.b14acc9e21c82p-135);
  Value product = x * high;
  Value error = Fma(x, high, -product);
  // Twice to the nearest whole number: the low parts may be a quarter themselves.
  const double shift = RoundingShift(x.dtype());
  Value shifted = product + shift;
  Value turns = (product - (shifted - shift)) + Fma(x, low, error);
  Value shifted_again = turns + shift;
  turns = turns - (shifted_again - shift);
  *quadrant =
      (shifted.BitsAs(Scalar::kI64) + shifted_again.BitsAs(Scalar::kI64)).CastTo(Scalar::kI32);
  return (turns * 0x1.921fb54442d18p+0).CastTo(Scalar::kF32);
}

// On |r| <= pi/4, relative: sin of degree 7, 2^-26.2, and cos of degree 8, 2^-31.8.
Value SinF32(Value r, Value square) {
  Value p = Polynomial(square, {-0x1.9ab3fp-13, 0x1.110be6p-7, -0x1.555552p-3});
  return Fma(r * square, p, r);
}

Value CosF32(Value square) {
  return Fma(Polynomial(square, {0x1.9a7f12p-16, -0x1.6c0e64p-10, 0x1.55554ep-5, -0.5}), square,
             1.0);
}

// --- f64

// 1/(2 pi) = sum of kTurnChunks[i] 2^(-52 i); each is at most 1/2 and a multiple of 2^-52.
constexpr double kTurnChunks[] = {
    0x1.45f306dc9c880p-3,  0x1.529fc2757d1f4p-2,  0x1.34ddc0db62958p-2,   0x1.93c439041fe50p-2,
    0x1.63abdebbc561cp-2,  -0x1.1b7238b7b6458p-3, -0x1.1ff9b6d115f64p-2,  0x1.1921cfe1deb1cp-2,
    0x1.62534e7dd1048p-3,  -0x1.415a28976f630p-3, 0x1.9c7026b45f7e4p-2,   0x1.3991d63983540p-6,
    -0x1.8c16c6f740e88p-3, -0x1.036be27003b40p-5, -0x1.0fd33f8086000p-13, -0x1.0ee74a5f592e0p-2,
    -0x1.25930261b06a0p-3, 0x1.36e9e8c7ecd40p-3,  -0x1.a015d28ad8454p-2,  0x1.faf97c5ecf420p-4,
    -0x1.8c10eb5ada2b0p-3, -0x1.404a04ee072a4p-2, 0x1.0856033046fc8p-2};
constexpr int kChunksUsed = 5;

// A sum of two numbers, |sum| <= 1, as three: a multiple of 2^-51; one of 2^-102, up to 2^-51; and
// the rest, which is rounded. Up to four of the first kind, or of the second, add without rounding.
struct Parts {
  Value coarse;
  Value fine;
  Value rest;
};

constexpr double kFineShift = 0x3p-51;  // adding it makes a small number a multiple of 2^-102

Parts SplitSum(Value a, Value b) {
  Value coarse = ((a + b) + 3.0) - 3.0;
  Value left = a - coarse;
  Value fine = ((left + b) + kFineShift) - kFineShift;
  return {coarse, fine, (left - fine) + b};
}

Value Fraction(Value x) { return x - Round(x); }

// The turns x / (2 pi) modulo 1 are the sum of products of x with five chunks in a row: x times
// those before is whole, the ones behind are below 2^-118 where the nearest that any x comes to a
// quarter turn is 2^-62. The binary digits of the first chunk's number are found one by one; x is
// scaled along, so that in the end it is below 2^104 and nothing can overflow.
Angle ReduceF64(Value size) {
  std::vector<Value> chunk;
  for (double value : kTurnChunks) chunk.push_back(size.Literal(value));
  Value x = size;
  for (int step : {16, 8, 4, 2, 1}) {
    // x is a multiple of 2^52 times 2^(52 (step - 1)) from here on, so chunk step - 1 is droppable.
    Value skip = x.Literal(std::ldexp(1.0, 52 * (step + 1))) <= x;
    x = Where(skip, x * std::ldexp(1.0, -52 * step), x);
    const size_t kept = step - 1 + kChunksUsed;
    for (size_t i = 0; i < kept && i + step < chunk.size(); ++i) {
      chunk[i] = Where(skip, chunk[i + step], chunk[i]);
    }
    chunk.erase(chunk.begin() + kept, chunk.end());
  }

  // Products exactly: high + error. Whole turns leave them part by part.
  auto scaled = [&](int i) { return i == 0 ? x : x * std::ldexp(1.0, -52 * i); };
  auto product = [&](int i, Value* error) {
    Value high = scaled(i) * chunk[i];
    *error = Fma(scaled(i), chunk[i], -high);
    return high;
  };
  Value error0 = x, error1 = x, error2 = x;
  Value product0 = product(0, &error0), product1 = product(1, &error1);
  Value product2 = product(2, &error2);
  Parts part0 = SplitSum(Fraction(product0), Fraction(error0));
  Parts part1 = SplitSum(Fraction(product1), error1);
  Parts part2 = SplitSum(product2, error2);
  Value fine3 = Fma(scaled(3), chunk[3], kFineShift) - kFineShift;
  Value rest3 = Fma(scaled(3), chunk[3], -fine3);

  Value turns = part0.coarse + part1.coarse + part2.coarse;
  Value shifted = Fma(turns, 4.0, RoundingShift(x.dtype()));
  turns = Fma(shifted - RoundingShift(x.dtype()), -0.25, turns);
  Value fine = part0.fine + part1.fine + part2.fine + fine3;
  Value rest = Fma(scaled(4), chunk[4], part0.rest + part1.rest + part2.rest + rest3);
  // turns is a multiple of the last place of fine, whichever is larger: the sum is exact.
  Value high = turns + fine;
  Value low = fine - (high - turns) + rest;

  const double two_pi = 0x1.921fb54442d18p+2;
  Value r = high * two_pi;
  Value r_low = Fma(high, two_pi, -r) + Fma(high, 0x1.1a62633145c07p-52, low * two_pi);
  return {shifted.BitsAs(Scalar::kI64), r, r_low};
}

// On |r| <= pi/4, relative: sin of degree 13, 2^-55.9, and cos of degree 14, 2^-60.4.
Value SinF64(const Angle& angle, Value square) {
  Value r = angle.high;
  Value p =
      Polynomial(square, {0x1.5e11494b41907p-33, -0x1.ae602042d8607p-26, 0x1.71de37b1147aep-19,
                          -0x1.a01a019ea0a8bp-13, 0x1.1111111110c81p-7, -0x1.5555555555555p-3});
  Value low = Fma(square * -0.5, angle.low, angle.low);
  return r + Fma(r * square, p, low);
}

Value CosF64(const Angle& angle, Value square) {
  Value p =
      Polynomial(square, {-0x1.90739324dc0a9p-37, 0x1.1eeb57f5def62p-29, -0x1.27e4fa03161a7p-22,
                          0x1.a01a019f386d6p-16, -0x1.6c16c16c168cbp-10, 0x1.5555555555555p-5});
  // 1 - square / 2 with its rounding error, as fdlibm has it.
  Value half = square * 0.5;
  Value most = 1.0 - half;
  Value error = (1.0 - most) - half;
  Value low = error - angle.high * angle.low;
  return most + Fma(square * square, p, low);
}

Value Trig(Function function, Value x) {
  const Scalar real = x.dtype().scalar;
  const bool is_f32 = real == Scalar::kF32;
  const Scalar integer = is_f32 ? Scalar::kI32 : Scalar::kI64;
  const int top_bit = is_f32 ? 31 : 63;
  Value size = Abs(x);

  Value quadrant = x, sin = x, cos = x;
  if (is_f32) {
    Value r = ReduceF32(size, &quadrant);
    Value square = r * r;
    sin = SinF32(r, square);
    cos = CosF32(square);
  } else {
    Angle angle = ReduceF64(size);
    Value square = angle.high * angle.high;
    quadrant = angle.quadrant;
    sin = SinF64(angle, square);
    cos = CosF64(angle, square);
  }
  // cos is the sine of one quarter turn more, and even; sin is odd.
  if (function == Function::kCos) quadrant = quadrant + 1;
  Value is_odd = (quadrant & 1) != 0;
  Value sign = (quadrant >> 1) << top_bit;
  if (function == Function::kSin) {
    sign = sign ^ (x.BitsAs(integer) & (int64_t{1} << top_bit));
  }
  Value value = Where(is_odd, cos, sin);
  Value result = (value.BitsAs(integer) ^ sign).BitsAs(real);
  // Where sin x rounds to x the products above may be subnormal.
  if (function == Function::kSin && !is_f32) result = Where(size < 0x1p-27, x, result);
  return result;
}

}  // namespace

Value DecomposeSin(Value x) { return Trig(Function::kSin, x); }
Value DecomposeCos(Value x) { return Trig(Function::kCos, x); }

}  // namespace svod
