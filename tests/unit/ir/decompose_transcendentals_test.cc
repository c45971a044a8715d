// What the decompositions must give: no transcendental is left, special values are right, and the
// error stays below the bound that docs/math.md states, for every exponent in the quick tests and
// for every f32 in the slow ones.
#include "ir/passes/decompose_transcendentals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/evaluate.h"
#include "tests/unit/ir/block_evaluator.h"
#include "tests/unit/ir/math_reference.h"

namespace svod {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Bound {
  Op op;
  double f32_ulp;
  double f64_ulp;
};

constexpr Bound kBounds[] = {
    {Op::kExp, 1, 1}, {Op::kExp2, 1, 1}, {Op::kLog, 1, 1}, {Op::kLog2, 1, 1}, {Op::kSin, 2, 1},
    {Op::kCos, 2, 1}, {Op::kTanh, 1, 1}, {Op::kErf, 1, 1}, {Op::kPow, 1, 1},
};

int NumOperands(Op op) { return InfoOf(op).min_sources; }

// A decomposed op on parameters that stand for its operands.
struct Formula {
  Context context;
  std::vector<const UOp*> inputs;
  const UOp* root = nullptr;

  Formula(Op op, DType dtype) {
    for (int slot = 0; slot < NumOperands(op); ++slot) {
      inputs.push_back(*context.Make(Op::kParam, dtype, {}, ParamArgument{slot, Access::kIn, ""}));
    }
    absl::StatusOr<const UOp*> result = DecomposeTranscendental(context, op, inputs);
    EXPECT_TRUE(result.ok()) << result.status();
    root = result.ok() ? *result : context.Float(dtype, 0);
  }
};

template <typename T>
constexpr Scalar ScalarOf() {
  return std::is_same_v<T, float> ? Scalar::kF32 : Scalar::kF64;
}

// The decomposed op on values, through EvaluateScalar.
template <typename T>
T Compute(Op op, T x, T y = 0) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  Formula formula(op, ScalarOf<T>());
  const uint64_t values[] = {std::bit_cast<Bits>(x), std::bit_cast<Bits>(y)};
  uint64_t bits =
      EvaluateGraph(formula.root, formula.inputs, absl::MakeConstSpan(values, NumOperands(op)));
  return std::bit_cast<T>(static_cast<Bits>(bits));
}

// A pseudo-random sequence that is the same everywhere (SplitMix64).
struct Random {
  uint64_t state;
  uint64_t Next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
};

struct Worst {
  double ulp = 0;
  double x = 0, y = 0, got = 0, want = 0;
};

// Runs blocks of operands until `next(x, y)` gives false, and keeps the largest error.
template <typename T, typename Next>
Worst LargestError(Op op, Next next) {
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;
  Formula formula(op, ScalarOf<T>());
  absl::StatusOr<BlockEvaluator> evaluator = BlockEvaluator::Create(formula.root, formula.inputs);
  Worst worst;
  if (!evaluator.ok()) {
    ADD_FAILURE() << evaluator.status();
    return worst;
  }
  T* x = evaluator->input<T>(0);
  std::vector<T> unused(BlockEvaluator::kBlock);
  T* y = NumOperands(op) == 2 ? evaluator->input<T>(1) : unused.data();
  for (bool more = true; more;) {
    int count = 0;
    while (count < BlockEvaluator::kBlock && (more = next(x[count], y[count]))) ++count;
    evaluator->Run();
    const T* got = evaluator->result<T>();
    for (int i = 0; i < count; ++i) {
      Wide want = ReferenceOf<Wide>(op, x[i], y[i]);
      double ulp = UlpDistance(got[i], want);
      if (ulp > worst.ulp) {
        worst = {ulp, x[i], y[i], got[i], static_cast<double>(want)};
      }
    }
  }
  return worst;
}

std::string Describe(const Worst& worst) {
  return absl::StrCat(worst.ulp, " ulp at x = ", worst.x, ", y = ", worst.y, ": got ", worst.got,
                      ", expected ", worst.want);
}

std::string NameOf(const ::testing::TestParamInfo<Bound>& info) {
  return InfoOf(info.param.op).text;
}

class MathTest : public ::testing::TestWithParam<Bound> {};
INSTANTIATE_TEST_SUITE_P(Ops, MathTest, ::testing::ValuesIn(kBounds), NameOf);

// A step through all bit patterns meets every exponent, both signs, subnormals, infinities, NaNs.
TEST_P(MathTest, F32WithinBoundOverAllExponents) {
  if (NumOperands(GetParam().op) != 1) return;
  uint64_t bits = 0;
  Worst worst = LargestError<float>(GetParam().op, [&](float& x, float&) {
    x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    bits += 2851;  // 1.5 million points
    return bits < uint64_t{1} << 32;
  });
  EXPECT_LE(worst.ulp, GetParam().f32_ulp) << Describe(worst);
  RecordProperty("ulp", absl::StrCat(worst.ulp));
}

TEST_P(MathTest, F64WithinBoundOverAllExponents) {
  if (NumOperands(GetParam().op) != 1) return;
  Random random{1};
  int left = 400000;
  Worst worst = LargestError<double>(GetParam().op, [&](double& x, double&) {
    x = std::bit_cast<double>(random.Next());
    return left-- > 0;
  });
  EXPECT_LE(worst.ulp, GetParam().f64_ulp) << Describe(worst);
  RecordProperty("ulp", absl::StrCat(worst.ulp));
}

// Most bit patterns are tiny or huge; this looks where the functions do something.
TEST_P(MathTest, F64WithinBoundOnOrdinaryArguments) {
  if (NumOperands(GetParam().op) != 1) return;
  Random random{2};
  int left = 400000;
  Worst worst = LargestError<double>(GetParam().op, [&](double& x, double&) {
    constexpr double kScales[] = {0.25, 1, 2, 8, 30, 800, 1100, 1e5};
    double unit = static_cast<double>(random.Next() >> 11) * 0x1p-53;
    x = (2 * unit - 1) * kScales[left % 8];
    return left-- > 0;
  });
  EXPECT_LE(worst.ulp, GetParam().f64_ulp) << Describe(worst);
  RecordProperty("ulp", absl::StrCat(worst.ulp));
}

// x and y such that x^y spreads over the whole range and a little beyond, and then any bits.
template <typename T>
Worst LargestPowError(int points, uint64_t seed, bool any_bits) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  Random random{seed};
  const double top = std::numeric_limits<T>::max_exponent * 1.2;
  return LargestError<T>(Op::kPow, [&](T& x, T& y) {
    Bits bits = static_cast<Bits>(random.Next());
    x = std::bit_cast<T>(bits);
    if (any_bits) {
      y = std::bit_cast<T>(static_cast<Bits>(random.Next()));
      if (bits % 2 == 0) y = std::round(std::fmod(y, T{100}));
      return points-- > 0;
    }
    // A third around 1, where the logarithm is small and y is large; most x positive.
    if (bits % 3 == 0) x = 1 + static_cast<T>(random.Next() % 2000) / 1000 - T{0.999};
    if (bits % 3 == 1) x = 1 + std::ldexp(static_cast<T>(random.Next() >> 40), -30);
    if (bits % 16 != 0) x = std::abs(x);
    double exponent = (static_cast<double>(random.Next() >> 11) * 0x1p-52 - 1) * top;
    y = static_cast<T>(exponent / std::log2(std::abs(static_cast<double>(x))));
    if (bits % 16 == 0) y = std::round(y);
    return points-- > 0;
  });
}

TEST(DecomposeTranscendentalsTest, PowWithinBound) {
  for (bool any_bits : {false, true}) {
    Worst worst = LargestPowError<float>(1000000, 5, any_bits);
    EXPECT_LE(worst.ulp, 1) << Describe(worst);
    RecordProperty(any_bits ? "f32_any" : "f32", absl::StrCat(worst.ulp));
    worst = LargestPowError<double>(500000, 6, any_bits);
    EXPECT_LE(worst.ulp, 1) << Describe(worst);
    RecordProperty(any_bits ? "f64_any" : "f64", absl::StrCat(worst.ulp));
  }
}

// Every pair of these, against libm: the special cases of IEEE-754 and what lies beside them.
TEST(DecomposeTranscendentalsTest, PowSpecialCases) {
  const double values[] = {0,         -0.0,     1,          -1,        2,        -2,       3,
                           -3,        0.5,      -0.5,       1.5,       -1.5,     2.5,      -2.5,
                           7,         -7,       1e10,       -1e10,     1e30,     -1e30,    kInf,
                           -kInf,     kNaN,     0x1p-149,   -0x1p-149, 0x1p-126, 16777215, 16777216,
                           -16777215, 33554433, 0.99999994, 1.0000001};
  Formula f32(Op::kPow, Scalar::kF32), f64(Op::kPow, Scalar::kF64);
  for (double x : values) {
    for (double y : values) {
      float x32 = static_cast<float>(x), y32 = static_cast<float>(y);
      const uint64_t bits32[] = {std::bit_cast<uint32_t>(x32), std::bit_cast<uint32_t>(y32)};
      const uint64_t bits64[] = {std::bit_cast<uint64_t>(x), std::bit_cast<uint64_t>(y)};
      float got32 =
          std::bit_cast<float>(static_cast<uint32_t>(EvaluateGraph(f32.root, f32.inputs, bits32)));
      double got64 = std::bit_cast<double>(EvaluateGraph(f64.root, f64.inputs, bits64));
      EXPECT_LE(UlpDistance(got32, std::pow(double{x32}, double{y32})), 1) << x << " " << y;
      EXPECT_LE(UlpDistance(got64, std::pow(static_cast<long double>(x), y)), 1) << x << " " << y;
    }
  }
}

// The other tests stand on the block evaluator: it must mean what EvaluateScalar means.
TEST_P(MathTest, BlockEvaluatorAgreesWithEvaluateScalar) {
  const Op op = GetParam().op;
  Formula narrow(op, Scalar::kF32), wide(op, Scalar::kF64);
  absl::StatusOr<BlockEvaluator> f32 = BlockEvaluator::Create(narrow.root, narrow.inputs);
  absl::StatusOr<BlockEvaluator> f64 = BlockEvaluator::Create(wide.root, wide.inputs);
  ASSERT_TRUE(f32.ok() && f64.ok());
  Random random{3};
  std::vector<std::vector<uint64_t>> bits32(2), bits64(2);
  for (int operand = 0; operand < NumOperands(op); ++operand) {
    for (int i = 0; i < BlockEvaluator::kBlock; ++i) {
      // Half of the points near 1, where results are finite.
      uint64_t any = random.Next();
      double near = static_cast<double>(any >> 40) * 0x1p-20 - 4;
      float x = i % 2 == 0 ? std::bit_cast<float>(static_cast<uint32_t>(any)) : near;
      double y = i % 2 == 0 ? std::bit_cast<double>(any) : near;
      bits32[operand].push_back(std::bit_cast<uint32_t>(x));
      bits64[operand].push_back(std::bit_cast<uint64_t>(y));
      f32->input<float>(operand)[i] = x;
      f64->input<double>(operand)[i] = y;
    }
  }
  f32->Run();
  f64->Run();
  for (int i = 0; i < BlockEvaluator::kBlock; ++i) {
    uint64_t values32[2], values64[2];
    for (int operand = 0; operand < NumOperands(op); ++operand) {
      values32[operand] = bits32[operand][i];
      values64[operand] = bits64[operand][i];
    }
    auto operands32 = absl::MakeConstSpan(values32, NumOperands(op));
    auto operands64 = absl::MakeConstSpan(values64, NumOperands(op));
    float want32 = std::bit_cast<float>(
        static_cast<uint32_t>(EvaluateGraph(narrow.root, narrow.inputs, operands32)));
    double want64 = std::bit_cast<double>(EvaluateGraph(wide.root, wide.inputs, operands64));
    float got32 = f32->result<float>()[i];
    double got64 = f64->result<double>()[i];
    if (!std::isnan(want32) || !std::isnan(got32)) {
      ASSERT_EQ(std::bit_cast<uint32_t>(got32), std::bit_cast<uint32_t>(want32)) << values32[0];
    }
    if (!std::isnan(want64) || !std::isnan(got64)) {
      ASSERT_EQ(std::bit_cast<uint64_t>(got64), std::bit_cast<uint64_t>(want64)) << values64[0];
    }
  }
}

// Every f16 and bf16: the f32 result, rounded once, is the nearest or the one beside it where the
// exact result lies close to the middle of two.
TEST_P(MathTest, EveryF16AndBF16WithinOneUlp) {
  const Op op = GetParam().op;
  for (Scalar scalar : {Scalar::kF16, Scalar::kBF16}) {
    Formula formula(op, scalar);
    Random random{4};
    int off = 0;
    for (uint64_t bits = 0; bits < 65536; bits += 1 + random.Next() % 8) {
      uint64_t values[] = {bits, random.Next() & 0xffff};
      auto operands = absl::MakeConstSpan(values, NumOperands(op));
      uint64_t got = EvaluateGraph(formula.root, formula.inputs, operands);
      uint64_t want = EvaluateScalar(op, scalar, scalar, operands);
      if (std::isnan(BitsToDouble(scalar, want))) {
        ASSERT_TRUE(std::isnan(BitsToDouble(scalar, got))) << InfoOf(scalar).name << " " << bits;
        continue;
      }
      ASSERT_LE(std::abs(static_cast<int>(got) - static_cast<int>(want)), 1)
          << InfoOf(scalar).name << " " << bits << " " << values[1];
      off += got != want;
    }
    EXPECT_LE(off, 2) << InfoOf(scalar).name;
  }
}

// One op of the table in a kernel: y[i] = op(x[i], ...).
const UOp* KernelOf(Context& context, Op op, DType dtype) {
  std::vector<const UOp*> operands;
  const UOp* size = context.Index(1024);
  for (int slot = 0; slot < NumOperands(op); ++slot) {
    const UOp* x = *context.Make(Op::kParam, dtype.element(), {size},
                                 ParamArgument{slot, Access::kIn, absl::string_view("x")});
    const UOp* index = *context.Make(Op::kIndex, {x, context.Index(0)});
    operands.push_back(*context.Make(Op::kLoad, dtype, {index}, AlignmentArgument{}));
  }
  const UOp* y =
      *context.Make(Op::kParam, dtype.element(), {size},
                    ParamArgument{NumOperands(op), Access::kOut, absl::string_view("y")});
  const UOp* value = *context.Make(op, operands);
  const UOp* store = *context.Make(
      Op::kStore, {*context.Make(Op::kIndex, {y, context.Index(0)}), value}, AlignmentArgument{});
  return *context.Make(Op::kSink, {store}, FunctionArgument{true, "k", {}});
}

TEST_P(MathTest, NoTranscendentalIsLeftInAnyDType) {
  for (Scalar scalar : {Scalar::kF16, Scalar::kBF16, Scalar::kF32, Scalar::kF64}) {
    for (int lanes : {1, 2, 16, 1024}) {
      Context context;
      PassContext pass(context);
      const UOp* root = KernelOf(context, GetParam().op, DType(scalar, lanes));
      absl::StatusOr<const UOp*> result = RunDecomposeTranscendentals(root, pass);
      ASSERT_TRUE(result.ok()) << result.status();
      int elementwise = 0;
      for (const UOp* node : Toposort(*result)) {
        EXPECT_FALSE(HasFlag(node->op(), kTranscendental)) << InfoOf(node->op()).text;
        if (!IsElementwise(node->op())) continue;
        ++elementwise;
        EXPECT_EQ(node->dtype().lanes, lanes);
      }
      EXPECT_GT(elementwise, 10);
      EXPECT_EQ(pass.rule_hits[absl::StrCat("decompose-", InfoOf(GetParam().op).text)], 1);
    }
  }
}

TEST(DecomposeTranscendentalsTest, KernelWithoutTranscendentalsIsTheSameNode) {
  Context context;
  PassContext pass(context);
  const UOp* root = KernelOf(context, Op::kSqrt, Scalar::kF32);
  absl::StatusOr<const UOp*> result = RunDecomposeTranscendentals(root, pass);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*result, root);
  EXPECT_TRUE(pass.rule_hits.empty());
}

TEST(DecomposeTranscendentalsTest, NestedOpsAreAllReplaced) {
  Context context;
  PassContext pass(context);
  const UOp* x = *context.Make(Op::kParam, Scalar::kF32, {}, ParamArgument{0, Access::kIn, ""});
  const UOp* node = x;
  for (int i = 0; i < 1000; ++i) node = *context.Make(i % 2 ? Op::kExp : Op::kLog, {node});
  absl::StatusOr<const UOp*> result = RunDecomposeTranscendentals(node, pass);
  ASSERT_TRUE(result.ok());
  for (const UOp* n : Toposort(*result)) EXPECT_FALSE(HasFlag(n->op(), kTranscendental));
  EXPECT_EQ(pass.rule_hits["decompose-exp"], 500);
}

TEST(DecomposeTranscendentalsTest, OtherOpsAreRefused) {
  Context context;
  const UOp* x = context.Float(Scalar::kF32, 1);
  absl::Status status = DecomposeTranscendental(context, Op::kSqrt, {x}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(),
            "decompose-transcendentals: op, got sqrt, expected one with a decomposition");
  status = DecomposeTranscendental(context, Op::kExp, {context.Index(1)}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(), "exp: operand dtype, got index, expected a float");
}

// Reported case 20: no overflow before its time.
TEST(DecomposeTranscendentalsTest, ExpNearOverflow) {
  EXPECT_EQ(Compute<float>(Op::kExp, 88.7f), 3.3259768e38f);
  EXPECT_EQ(Compute<double>(Op::kExp, 709.5), 1.3549863193146328e308);
  EXPECT_EQ(Compute<float>(Op::kExp, 88.72283f), 0x1.ffff08p127f);
  EXPECT_EQ(Compute<float>(Op::kExp, 88.72284f), kInf);
  EXPECT_EQ(Compute<double>(Op::kExp, 709.782712893384), 0x1.fffffffffff2ap+1023);
  EXPECT_EQ(Compute<double>(Op::kExp, 709.7827128933841), kInf);
  EXPECT_EQ(Compute<float>(Op::kExp2, 128), kInf);
  EXPECT_EQ(Compute<double>(Op::kExp2, 1024), kInf);
}

TEST(DecomposeTranscendentalsTest, ExpUnderflowsThroughSubnormals) {
  EXPECT_EQ(Compute<float>(Op::kExp, -103.9f), 0x1p-149f);
  EXPECT_EQ(Compute<float>(Op::kExp, -104.1f), 0);
  EXPECT_EQ(Compute<double>(Op::kExp, -745.1), 0x1p-1074);
  EXPECT_EQ(Compute<double>(Op::kExp, -745.2), 0);
  EXPECT_EQ(Compute<float>(Op::kExp2, -149), 0x1p-149f);
  EXPECT_EQ(Compute<float>(Op::kExp2, -150), 0);
  EXPECT_EQ(Compute<double>(Op::kExp2, -1074), 0x1p-1074);
}

TEST(DecomposeTranscendentalsTest, PowersOfTwoAreExact) {
  for (int n = -149; n < 128; ++n) {
    float power = std::ldexp(1.0f, n);
    EXPECT_EQ(Compute<float>(Op::kExp2, n), power);
    EXPECT_EQ(Compute<float>(Op::kLog2, power), n);
  }
  for (int n = -1074; n < 1024; n += 13) {
    double power = std::ldexp(1.0, n);
    EXPECT_EQ(Compute<double>(Op::kExp2, n), power);
    EXPECT_EQ(Compute<double>(Op::kLog2, power), n);
  }
}

// Reported case 20, and the huge arguments after it.
TEST(DecomposeTranscendentalsTest, SinAndCosOfLargeArguments) {
  EXPECT_LE(UlpDistance(Compute<double>(Op::kSin, 39800.0), 0.74285722351259650551L), 1);
  EXPECT_LE(UlpDistance(Compute<double>(Op::kCos, 1e8), -0.36338508935569055387L), 1);
  EXPECT_LE(UlpDistance(Compute<double>(Op::kCos, 1e6), 0.93675212753314478694L), 1);
  EXPECT_LE(UlpDistance(Compute<float>(Op::kSin, 39800.0f), std::sin(39800.0)), 2);
  EXPECT_LE(UlpDistance(Compute<float>(Op::kCos, 1e8f), std::cos(1e8)), 2);
  EXPECT_LE(UlpDistance(Compute<float>(Op::kCos, 1e6f), std::cos(1e6)), 2);
  constexpr double kMax = std::numeric_limits<double>::max();
  EXPECT_LE(UlpDistance(Compute<double>(Op::kSin, kMax), 0.0049619547891840617905L), 1);
  EXPECT_LE(UlpDistance(Compute<double>(Op::kCos, kMax), -0.99998768942655993746L), 1);
}

// The f64 that lie closest to a multiple of pi/2, found by continued fractions for every exponent
// and checked in 2400 bits: here the reduction has to give 2^-62 of a turn to full precision.
TEST(DecomposeTranscendentalsTest, SinAndCosNextToMultiplesOfHalfPi) {
  struct Case {
    double x, sin, cos;
  };
  const Case cases[] = {
      {0x1.6ac5b262ca1ffp+849, 1.0, -4.687165924254628e-19},
      {0x1.6c6cbc45dc8dep+5, 1.0, -6.189806365883577e-19},
      {0x1.6ac5b262ca1ffp+850, -9.374331848509255e-19, -1.0},
      {0x1.6c6cbc45dc8dep+6, -1.2379612731767154e-18, -1.0},
      {0x1.b951f1572eba5p+23, -1.0, -1.6985038298986004e-18},
      {0x1.504cac51f1eafp+131, -1.0, -1.8208566377382172e-18},
      {0x1.6ac5b262ca1ffp+851, 1.874866369701851e-18, 1.0},
      {0x1.e009c53148be1p+991, 1.0, 2.0149386674952238e-18},
      {0x1.6c6cbc45dc8dep+7, 2.475922546353431e-18, 1.0},
      {0x1.4c96c11134d36p+577, -1.0, 2.4853662876185346e-18},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Compute<double>(Op::kSin, c.x), c.sin) << c.x;
    EXPECT_EQ(Compute<double>(Op::kCos, c.x), c.cos) << c.x;
  }
}

TEST(DecomposeTranscendentalsTest, SpecialArguments) {
  struct Case {
    Op op;
    double x, want;
  };
  const Case cases[] = {
      {Op::kExp, 0, 1},
      {Op::kExp, -0.0, 1},
      {Op::kExp, kInf, kInf},
      {Op::kExp, -kInf, 0},
      {Op::kExp2, 0, 1},
      {Op::kExp2, kInf, kInf},
      {Op::kExp2, -kInf, 0},
      {Op::kLog, 1, 0},
      {Op::kLog, 0, -kInf},
      {Op::kLog, -0.0, -kInf},
      {Op::kLog, kInf, kInf},
      {Op::kLog, -1, kNaN},
      {Op::kLog, -kInf, kNaN},
      {Op::kLog2, 1, 0},
      {Op::kLog2, 0, -kInf},
      {Op::kLog2, -0.0, -kInf},
      {Op::kLog2, kInf, kInf},
      {Op::kLog2, -1, kNaN},
      {Op::kLog2, -kInf, kNaN},
      {Op::kSin, 0, 0},
      {Op::kSin, -0.0, -0.0},
      {Op::kSin, kInf, kNaN},
      {Op::kSin, -kInf, kNaN},
      {Op::kSin, 0x1p-149, 0x1p-149},
      {Op::kCos, 0, 1},
      {Op::kCos, -0.0, 1},
      {Op::kCos, kInf, kNaN},
      {Op::kCos, -kInf, kNaN},
      {Op::kTanh, 0x1p-149, 0x1p-149},
      {Op::kTanh, 0, 0},
      {Op::kTanh, -0.0, -0.0},
      {Op::kTanh, kInf, 1},
      {Op::kTanh, -kInf, -1},
      {Op::kErf, 0, 0},
      {Op::kErf, -0.0, -0.0},
      {Op::kErf, kInf, 1},
      {Op::kErf, -kInf, -1},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(UlpDistance(Compute<float>(c.op, c.x), c.want), 0) << InfoOf(c.op).text << c.x;
    EXPECT_EQ(UlpDistance(Compute<double>(c.op, c.x), static_cast<long double>(c.want)), 0)
        << InfoOf(c.op).text << c.x;
  }
  for (const Bound& bound : kBounds) {
    EXPECT_TRUE(std::isnan(Compute<float>(bound.op, kNaN, 2))) << InfoOf(bound.op).text;
    EXPECT_TRUE(std::isnan(Compute<double>(bound.op, kNaN, 2))) << InfoOf(bound.op).text;
  }
}

// Every f32, in eighths so that a run can be taken up again where it stopped.
struct Eighth {
  Bound bound;
  int part;
};

std::vector<Eighth> AllEighths() {
  std::vector<Eighth> all;
  for (const Bound& bound : kBounds) {
    for (int part = 0; part < 8 && NumOperands(bound.op) == 1; ++part) all.push_back({bound, part});
  }
  return all;
}

class MathSlowTest : public ::testing::TestWithParam<Eighth> {};
INSTANTIATE_TEST_SUITE_P(Ops, MathSlowTest, ::testing::ValuesIn(AllEighths()),
                         [](const ::testing::TestParamInfo<Eighth>& info) {
                           return absl::StrCat(InfoOf(info.param.bound.op).text, "_",
                                               info.param.part);
                         });

TEST_P(MathSlowTest, EveryF32WithinBound) {
  const auto& [bound, part] = GetParam();
  uint64_t bits = uint64_t{1} << 29;
  const uint64_t end = bits * (part + 1);
  bits *= part;
  Worst worst = LargestError<float>(bound.op, [&](float& x, float&) {
    x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    return bits++ < end;
  });
  EXPECT_LE(worst.ulp, bound.f32_ulp) << Describe(worst);
  RecordProperty("ulp", absl::StrCat(worst.ulp));
}

}  // namespace
}  // namespace svod
