#include "ir/operators/special_functions.h"

#include <limits>

#include "ir/operators/compose.h"
#include "ir/operators/elementwise.h"

namespace svod {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = 3.14159265358979323846;
constexpr double kLn2 = 0.69314718055994530942;

// h(z) = (atan(t) / t - 1) / z for z = t^2 <= tan(pi / 8)^2, interpolated at Chebyshev's nodes:
// atan is off by less than 2^-28 (the first) and 2^-57 (the second) of itself.
constexpr double kAtanF32[] = {-0.33333331760434554, 0.1999954031495797, -0.14263949753605723,
                               0.10743668324830098, -0.06451718869358958};
constexpr double kAtanF64[] = {-0.3333333333333333,  0.19999999999995516,  -0.14285714284665682,
                               0.11111111015187018,  -0.0909090457530649,  0.07692183125376892,
                               -0.06664510525508936, 0.05858140904866328,  -0.050854078345894844,
                               0.03923044778479309,  -0.019175404711104935};

// What a multiple of pi loses when it is rounded to the dtype of `like`.
double Lost(Expression like, double turn) {
  bool is_f32 = like.node() != nullptr && like.node()->dtype() == Scalar::kF32;
  if (is_f32) return turn - static_cast<double>(static_cast<float>(turn));
  return turn / kPi * 1.2246467991473531772e-16;
}

// turn - x, with the part of `turn` that its rounding loses.
Expression TurnMinus(double turn, Expression x) { return turn - (x - Lost(x, turn)); }

// t of at most tan(pi / 8).
Expression AtanOfSmall(Expression t) {
  Expression z = t * t;
  bool is_f32 = t.node() != nullptr && t.node()->dtype() == Scalar::kF32;
  absl::Span<const double> coefficients =
      is_f32 ? absl::MakeConstSpan(kAtanF32) : absl::MakeConstSpan(kAtanF64);
  Expression h = t.Number(coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) h = h * z + coefficients[i];
  return t * z * h + t;
}

// t of at least 0.
Expression AtanOf(Expression t) {
  constexpr double kTanPiOver8 = 0.41421356237309504880, kTan3PiOver8 = 2.41421356237309504880;
  Expression is_large = t > kTan3PiOver8, is_middle = t > kTanPiOver8;
  Expression reduced = Select(is_large, -Recip(t), Select(is_middle, (t - 1) / (t + 1), t));
  Expression part = AtanOfSmall(reduced);
  return Select(is_large, part + Lost(t, kPi / 2) + kPi / 2,
                Select(is_middle, part + Lost(t, kPi / 4) + kPi / 4, part));
}

Expression WithSignOf(Expression x, Expression y) {
  return {x.builder(), CopySign(x.builder(), x, y)};
}

Expression Atan2Of(Expression y, Expression x) {
  Expression ay = Abs(y), ax = Abs(x);
  Expression larger = Max(ay, ax), smaller = Min(ay, ax);
  // Of two zeros the ratio 0 and of two infinities 1 give the angles that C does.
  Expression ratio = Select(Equal(larger, 0), 0, smaller / larger);
  ratio = Select(Equal(smaller, kInfinity), 1, ratio);
  Expression angle = AtanOf(ratio);
  angle = Select(ay > ax, TurnMinus(kPi / 2, angle), angle);
  angle = Select(Expression(x.builder(), SignBit(x.builder(), x)), TurnMinus(kPi, angle), angle);
  return WithSignOf(angle, y);
}

Expression Log1pOf(Expression x) {
  Expression sum = x + 1, rounded = sum - 1;
  Expression corrected = Log(sum) * (x / rounded);
  return Select(Equal(rounded, 0), x, Select(Equal(sum, kInfinity), sum, corrected));
}

Expression Expm1Of(Expression x) {
  Expression power = Exp(x), less = power - 1;
  Expression corrected = less * (x / Log(power));
  Expression result =
      Select(Equal(less, -1), less, Select(Equal(power, kInfinity), power, corrected));
  return Select(Equal(less, 0), x, result);
}

// From here on exp(-x) is lost beside exp(x), in f64 too.
constexpr double kLargeExponent = 20;

// exp(x) / 2, for x of up to ln(2) beyond the logarithm of the largest number.
Expression HalfExp(Expression x) {
  Expression root = Exp(x * 0.5);
  return root * 0.5 * root;
}

// From here on x^2 + 1 is x^2, in f64 too.
constexpr double kLargeSquare = 1e9;

}  // namespace

const UOp* Tan(TensorBuilder& builder, const UOp* x) {
  // A quotient of two rounded f32 is off by up to three units in the last place.
  if (x != nullptr && x->dtype().scalar == Scalar::kF32) {
    return builder.Cast(Tan(builder, builder.Cast(x, Scalar::kF64)), Scalar::kF32);
  }
  return InWide(builder, "tan", x, [](Expression v) { return v.Of(Op::kSin) / v.Of(Op::kCos); });
}

const UOp* Atan(TensorBuilder& builder, const UOp* x) {
  return InWide(builder, "atan", x, [](Expression v) { return WithSignOf(AtanOf(Abs(v)), v); });
}

const UOp* Atan2(TensorBuilder& builder, const UOp* y, const UOp* x) {
  return InWide(builder, "atan2", y, x, Atan2Of);
}

const UOp* Asin(TensorBuilder& builder, const UOp* x) {
  return InWide(builder, "asin", x,
                [](Expression v) { return Atan2Of(v, Sqrt((1 - v) * (1 + v))); });
}

const UOp* Acos(TensorBuilder& builder, const UOp* x) {
  return InWide(builder, "acos", x,
                [](Expression v) { return Atan2Of(Sqrt((1 - v) * (1 + v)), v); });
}

const UOp* Sinh(TensorBuilder& builder, const UOp* x) {
  return InWide(builder, "sinh", x, [](Expression v) {
    Expression a = Abs(v), e = Expm1Of(a);
    return WithSignOf(Select(a > kLargeExponent, HalfExp(a), (e + e / (e + 1)) * 0.5), v);
  });
}

const UOp* Cosh(TensorBuilder& builder, const UOp* x) {
  return InWide(builder, "cosh", x, [](Expression v) {
    Expression a = Abs(v), e = Exp(a);
    return Select(a > kLargeExponent, HalfExp(a), (e + Recip(e)) * 0.5);
  });
}

const UOp* Asinh(TensorBuilder& builder, const UOp* x) {
  return InWide(builder, "asinh", x, [](Expression v) {
    Expression a = Abs(v), square = a * a;
    Expression near = Log1pOf(a + square / (Sqrt(square + 1) + 1));
    return WithSignOf(Select(a > kLargeSquare, Log(a) + kLn2, near), v);
  });
}

const UOp* Acosh(TensorBuilder& builder, const UOp* x) {
  return InWide(builder, "acosh", x, [](Expression v) {
    Expression t = v - 1;
    Expression near = Log1pOf(t + Sqrt(t * 2 + t * t));
    return Select(v < 1, kNan, Select(v > kLargeSquare, Log(v) + kLn2, near));
  });
}

const UOp* Atanh(TensorBuilder& builder, const UOp* x) {
  return InWide(builder, "atanh", x, [](Expression v) {
    Expression a = Abs(v);
    return WithSignOf(Log1pOf(a * 2 / (1 - a)) * 0.5, v);
  });
}

const UOp* Log1p(TensorBuilder& builder, const UOp* x) {
  return InWide(builder, "log1p", x, Log1pOf);
}

const UOp* Expm1(TensorBuilder& builder, const UOp* x) {
  return InWide(builder, "expm1", x, Expm1Of);
}

const UOp* Hypot(TensorBuilder& builder, const UOp* x, const UOp* y) {
  return InWide(builder, "hypot", x, y, [](Expression v, Expression w) {
    Expression a = Abs(v), b = Abs(w), larger = Max(a, b), ratio = Min(a, b) / larger;
    Expression length = Select(Equal(larger, 0), larger, larger * Sqrt(ratio * ratio + 1));
    return Select(Or(Equal(a, kInfinity), Equal(b, kInfinity)), kInfinity, length);
  });
}

}  // namespace svod
