// References and error measures for the tests of the math decompositions: libm one precision up
// (f64 for f32, long double for f64), and the distance of a result from them in ULP.
#ifndef SVOD_TESTS_UNIT_IR_MATH_REFERENCE_H_
#define SVOD_TESTS_UNIT_IR_MATH_REFERENCE_H_

#include <cmath>
#include <limits>

#include "ir/op.h"

namespace svod {

// Of two operands pow reads both, all others the first.
template <typename Wide>
Wide ReferenceOf(Op op, Wide x, Wide y) {
  if (op == Op::kExp) return std::exp(x);
  if (op == Op::kExp2) return std::exp2(x);
  if (op == Op::kLog) return std::log(x);
  if (op == Op::kLog2) return std::log2(x);
  if (op == Op::kSin) return std::sin(x);
  if (op == Op::kCos) return std::cos(x);
  if (op == Op::kTanh) return std::tanh(x);
  if (op == Op::kErf) return std::erf(x);
  if (op == Op::kPow) return std::pow(x, y);
  return std::numeric_limits<Wide>::quiet_NaN();
}

// |got - want| in units of the last place that a T of want's size has, subnormals included. A NaN,
// an infinity, a zero or a sign of zero where it does not belong is infinitely far, except that a
// value that rounds to infinity may come out as the largest finite number, one unit off, and the
// other way round.
template <typename T, typename Wide>
double UlpDistance(T got, Wide want) {
  using Limits = std::numeric_limits<T>;
  constexpr double kFar = std::numeric_limits<double>::infinity();
  if (std::isnan(want)) return std::isnan(got) ? 0 : kFar;
  if (std::isnan(got)) return kFar;
  const Wide two_to_max = std::ldexp(Wide{1}, Limits::max_exponent);
  if (std::isinf(got) && got == static_cast<T>(want)) return 0;
  if (std::isinf(want)) return kFar;
  if (std::signbit(got) != std::signbit(want)) return kFar;
  if (want == 0) return got == 0 ? 0 : kFar;
  const Wide value = std::isinf(got) ? std::copysign(two_to_max, want) : static_cast<Wide>(got);
  int exponent = 0;
  std::frexp(want, &exponent);
  exponent = std::min(std::max(exponent, Limits::min_exponent), Limits::max_exponent);
  return static_cast<double>(std::ldexp(std::abs(value - want), Limits::digits - exponent));
}

}  // namespace svod

#endif  // SVOD_TESTS_UNIT_IR_MATH_REFERENCE_H_
