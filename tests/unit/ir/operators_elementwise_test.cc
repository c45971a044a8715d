#include <functional>

#include "ir/operators/special_functions.h"
#include "tests/unit/ir/operator_tester.h"

namespace svod {
namespace {

using OperatorsElementwiseTest = OperatorTest;

// Positive floats from the smallest subnormal to infinity with all exponents, and their negatives.
std::vector<double> AllExponents(bool is_f32) {
  std::vector<double> numbers = {0, -0.0, kInf, -kInf, kNan, 1, -1};
  int least = is_f32 ? -149 : -1074, most = is_f32 ? 127 : 1023;
  for (int exponent = least; exponent <= most; exponent += is_f32 ? 1 : 5) {
    for (double fraction : {1.0, 1.1, 1.25, 1.4142135, 1.7, 1.999}) {
      numbers.push_back(std::ldexp(fraction, exponent));
      numbers.push_back(-numbers.back());
    }
  }
  // And closely where most functions bend.
  for (int i = -2400; i <= 2400; ++i) numbers.push_back(i / 200.0 + 1e-4);
  return numbers;
}

double Ulp(double x, bool is_f32) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, is_f32 ? std::max(exponent - 24, -149) : std::max(exponent - 53, -1074));
}

// The largest error in units of the last place; NaN and infinities must agree, and zeros' signs.
double WorstError(const std::vector<double>& got, const std::vector<long double>& expected,
                  bool is_f32, std::string* where) {
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    double rounded = is_f32 ? static_cast<double>(static_cast<float>(expected[i]))
                            : static_cast<double>(expected[i]);
    double error = 0;
    if (std::isnan(rounded) || std::isinf(rounded) || rounded == 0) {
      bool agrees = std::isnan(rounded) ? std::isnan(got[i])
                                        : got[i] == rounded || std::fabs(got[i]) == Ulp(0, is_f32);
      bool sign = std::isnan(rounded) || std::signbit(got[i]) == std::signbit(rounded);
      error = agrees && sign ? 0 : 1e9;
    } else {
      error = static_cast<double>(std::fabs(static_cast<long double>(got[i]) - expected[i])) /
              Ulp(rounded, is_f32);
      if (std::isnan(error)) error = 1e9;
    }
    if (error > worst) {
      worst = error;
      *where = "element " + std::to_string(i) + ": got " + std::to_string(got[i]) + ", expected " +
               std::to_string(static_cast<double>(expected[i]));
    }
  }
  return worst;
}

struct UnaryCase {
  const char* name;
  long double (*reference)(long double);
};

// Against C's functions in 80 bits, within the 4 units that the header promises.
TEST_F(OperatorsElementwiseTest, SpecialFunctionsAreRightToFourUnitsInTheLastPlace) {
  const UnaryCase cases[] = {
      {"tan", [](long double x) { return std::tan(x); }},
      {"asin", [](long double x) { return std::asin(x); }},
      {"acos", [](long double x) { return std::acos(x); }},
      {"atan", [](long double x) { return std::atan(x); }},
      {"sinh", [](long double x) { return std::sinh(x); }},
      {"cosh", [](long double x) { return std::cosh(x); }},
      {"asinh", [](long double x) { return std::asinh(x); }},
      {"acosh", [](long double x) { return std::acosh(x); }},
      {"atanh", [](long double x) { return std::atanh(x); }},
      {"log1p", [](long double x) { return std::log1p(x); }},
      {"expm1", [](long double x) { return std::expm1(x); }},
      {"rsqrt", [](long double x) { return 1 / std::sqrt(x); }},
  };
  for (const UnaryCase& c : cases) {
    for (Scalar scalar : {Scalar::kF32, Scalar::kF64}) {
      SCOPED_TRACE(std::string(c.name) + " " + ToString(DType(scalar)));
      bool is_f32 = scalar == Scalar::kF32;
      const UOp* x = Row(AllExponents(is_f32), scalar);
      std::vector<long double> expected;
      for (double number : NumbersOf(params.back())) expected.push_back(c.reference(number));
      std::string where;
      Numbers got = NumbersIn(Call(c.name, {x}));
      // The quotient for f32 is one of f64.
      double bound = is_f32 && c.name == std::string("tan") ? 1 : 4;
      EXPECT_LE(WorstError(got, expected, is_f32, &where), bound) << where;
    }
  }
}

TEST_F(OperatorsElementwiseTest, Atan2AndHypotAreRightToFourUnitsInTheLastPlace) {
  Numbers sides = {0, -0.0, kInf, -kInf, kNan, 1, -1, 1e-40, -1e-40, 3e38, -3e38, 0.3, -7, 1e-20};
  for (double number : Noise(30, 3)) sides.push_back(number + 0.01);
  Numbers ys, xs;
  for (double y : sides) {
    for (double x : sides) {
      ys.push_back(y);
      xs.push_back(x);
    }
  }
  for (Scalar scalar : {Scalar::kF32, Scalar::kF64}) {
    bool is_f32 = scalar == Scalar::kF32;
    const UOp *y = Row(ys, scalar), *x = Row(xs, scalar);
    Numbers y_in = NumbersOf(params[params.size() - 2]), x_in = NumbersOf(params.back());
    std::vector<long double> angles, lengths;
    for (size_t i = 0; i < y_in.size(); ++i) {
      angles.push_back(std::atan2(static_cast<long double>(y_in[i]), x_in[i]));
      lengths.push_back(std::hypot(static_cast<long double>(y_in[i]), x_in[i]));
    }
    std::string where;
    EXPECT_LE(WorstError(NumbersIn(Call("atan2", {y, x})), angles, is_f32, &where), 4) << where;
    EXPECT_LE(WorstError(NumbersIn(Call("hypot", {y, x})), lengths, is_f32, &where), 4) << where;
  }
}

TEST_F(OperatorsElementwiseTest, HalvesAreRoundedOnce) {
  Numbers numbers;
  for (int i = -60; i <= 60; ++i) numbers.push_back(i / 16.0);
  for (Scalar scalar : {Scalar::kF16, Scalar::kBF16}) {
    for (const char* name : {"gelu", "silu", "mish", "sinh", "softplus", "rsqrt"}) {
      const UOp *half = Row(numbers, scalar), *single = Row(numbers, Scalar::kF32);
      EXPECT_TRUE(
          SameBits(ValueOf(Call(name, {half})), ValueOf(b.Cast(Call(name, {single}), scalar))))
          << name;
    }
  }
}

TEST_F(OperatorsElementwiseTest, SignsOfZerosAndNan) {
  const UOp* x = Row({0.0, -0.0, 2, -2, kNan, kInf, -kInf});
  Expect(Call("sign", {x}), {7}, {0, 0, 1, -1, kNan, 1, -1});
  Expect(Call("signbit", {x}), {7}, {0, 1, 0, 1, 0, 0, 1});
  Expect(Call("isnan", {x}), {7}, {0, 0, 0, 0, 1, 0, 0});
  Expect(Call("isinf", {x}), {7}, {0, 0, 0, 0, 0, 1, 1});
  Expect(Call("isfinite", {x}), {7}, {1, 1, 1, 1, 0, 0, 0});
  Expect(Call("logical_not", {x}), {7}, {1, 1, 0, 0, 0, 0, 0});
  Expect(Call("relu", {x}), {7}, {0, 0, 2, 0, kNan, kInf, 0});
  Expect(Call("copysign", {b.Const(Scalar::kF32, 3), x}), {7}, {3, -3, 3, -3, 3, 3, -3});
}

TEST_F(OperatorsElementwiseTest, IntegersAreNeitherNanNorInfinite) {
  const UOp* x = Row({0, 7, 255}, Scalar::kU8);
  Expect(Call("isnan", {x}), {3}, {0, 0, 0});
  Expect(Call("isinf", {x}), {3}, {0, 0, 0});
  Expect(Call("isfinite", {x}), {3}, {1, 1, 1});
  Expect(Call("sign", {x}), {3}, {0, 1, 1});
  Expect(Call("sign", {Row({-128, 0, 127}, Scalar::kI8)}), {3}, {-1, 0, 1});
  Expect(Call("signbit", {Row({-128, 0, 127}, Scalar::kI8)}), {3}, {1, 0, 0});
  Expect(Call("square", {Row({16, -12}, Scalar::kI8)}), {2}, {0, -112});  // wraps
}

TEST_F(OperatorsElementwiseTest, BoundsOfClipAreThoseOfTheDtype) {
  const UOp* x = Row({-128, -5, 0, 5, 127}, Scalar::kI8);
  Expect(Call("clip", {x}, {{"low", -2.5}, {"high", 1e30}}), {5}, {-2, -2, 0, 5, 127});
  Expect(Call("clip", {x}, {{"low", -kInf}, {"high", 3.9}}), {5}, {-128, -5, 0, 3, 3});
  Expect(Call("clip", {x}), {5}, {-128, -5, 0, 5, 127});
  const UOp* f = Row({kNan, -kInf, 0, kInf});
  Expect(Call("clip", {f}, {{"low", 4.0}, {"high", 2.0}}), {4}, {kNan, 2, 2, 2});
  Call("clip", {f}, {{"low", kNan}});
  ExpectFailure("clip: bound, got nan, expected a number");
}

TEST_F(OperatorsElementwiseTest, DivisionOfIntegersIsTrue) {
  const UOp *x = Row({7, -7, 1, 0}, Scalar::kI32), *y = Row({2, 2, 0, 0}, Scalar::kI32);
  EXPECT_EQ(ShapeOf(Call("divide", {x, y})), "f64[4]");
  Expect(Call("divide", {x, y}), {4}, {3.5, -3.5, kInf, kNan});
  Call("divide", {x, Row({1, 1, 1, 1})});
  ExpectFailure("divide: operand dtypes, got i32 and f32, expected them equal");
}

TEST_F(OperatorsElementwiseTest, WrongDtypesAreNamed) {
  const UOp *i = Row({1, 2}, Scalar::kI32), *f = Row({1, 2}), *h = Row({1, 2}, Scalar::kF16);
  Call("gelu", {i});
  ExpectFailure("gelu: operand dtype, got i32, expected a float");
  Call("atan2", {f, h});
  ExpectFailure("atan2: operand dtypes, got f32 and f16, expected them equal");
  Call("celu", {f}, {{"alpha", 0.0}});
  ExpectFailure("celu: alpha, got 0, expected another number");
  Call("softplus", {f}, {{"beta", -1.0}});
  ExpectFailure("softplus: beta, got -1, expected more than 0");
  Call("lt", {f, i});
  ExpectFailure("lt: cmplt: operand types differ, got f32 and i32, expected equal");
  Call("hypot", {Row({1, 2}), Row({1, 2, 3})});
  EXPECT_THAT(std::string(b.Take().message()), ::testing::HasSubstr("got [2] and [3]"));
}

TEST_F(OperatorsElementwiseTest, LargeOperandsNeitherOverflowNorVanish) {
  const UOp* x = Row({-1000, -100, 100, 1000});
  Expect(Call("softplus", {x}), {4}, {0, 3.7835e-44, 100, 1000}, 1e-6);
  Expect(Call("sigmoid", {x}), {4}, {0, 3.7835e-44, 1, 1}, 1e-6);
  Expect(Call("mish", {x}), {4}, {-0.0, -3.7835e-42, 100, 1000}, 1e-6);
  Expect(Call("silu", {x}), {4}, {-0.0, -3.7835e-42, 100, 1000}, 1e-6);
  Expect(Call("elu", {x}), {4}, {-1, -1, 100, 1000});
}

TEST_F(OperatorsElementwiseTest, OperandsBroadcastWithSymbolicDimensions) {
  const UOp* n = b.Variable("n", 0, 9);
  const UOp* x = Given(Scalar::kF32, Shape{n, b.Index(1)}, {2, 1}, {1, -1});
  const UOp* slope = Row({0.5, 2, 4});
  variables = {{"n", 2}};
  const UOp* y = Call("prelu", {x, slope});
  EXPECT_EQ(ShapeOf(y), "f32[n, 3]");
  Expect(y, {2, 3}, {1, 1, 1, -0.5, -2, -4});
}

}  // namespace
}  // namespace svod
