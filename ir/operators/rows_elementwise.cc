// Rows of the operator table: comparisons, logic, functions and activations.
#include "ir/operators/activation.h"
#include "ir/operators/elementwise.h"
#include "ir/operators/operator_rows.h"
#include "ir/operators/special_functions.h"

namespace svod {
namespace {

constexpr const char* kComparisons = "Comparisons and logic";
constexpr const char* kFunctions = "Functions";
constexpr const char* kActivations = "Activations";
constexpr const char* kSame = "y has x's shape and dtype";
constexpr const char* kSameFloat = "x of a float dtype; y has x's shape and dtype";
constexpr const char* kBool = "y is bool of x's shape";
constexpr const char* kBools = "x and y broadcast; z is bool";
constexpr const char* kFloats = "x and y of one float dtype broadcast; z has that dtype";

template <Op kOp, bool kSwap = false>
OperatorResults Compare(TensorBuilder& builder, const OperatorCall& call) {
  const UOp *x = call.operand(0), *y = call.operand(1);
  return One(kSwap ? builder.Make(kOp, {y, x}) : builder.Make(kOp, {x, y}));
}

void AddComparisons(OperatorRows* rows) {
  const char* shapes = "x and y of one dtype broadcast; z is bool";
  auto add = [&](const char* name, const char* meaning, auto build) {
    rows->push_back({name, "x, y", {}, "z", shapes, meaning, kComparisons, build});
  };
  add("eq", "x == y; false if either is NaN; -0 == +0", Compare<Op::kCmpEq>);
  add("ne", "x != y; true if either is NaN", Compare<Op::kCmpNe>);
  add("lt", "x < y; false if either is NaN", Compare<Op::kCmpLt>);
  add("le", "x <= y; false if either is NaN", Compare<Op::kCmpLe>);
  add("gt", "x > y; false if either is NaN", Compare<Op::kCmpLt, true>);
  add("ge", "x >= y; false if either is NaN", Compare<Op::kCmpLe, true>);
  auto unary = [&](const char* name, const char* meaning, auto build) {
    rows->push_back({name, "x", {}, "y", kBool, meaning, kComparisons, build});
  };
  unary("isnan", "whether x is NaN", Unary<IsNan>);
  unary("isinf", "whether x is an infinity", Unary<IsInf>);
  unary("isfinite", "whether x is neither NaN nor an infinity", Unary<IsFinite>);
  unary("signbit", "whether x is negative or -0; of NaN its sign bit", Unary<SignBit>);
  unary("logical_not", "whether x is 0; NaN is not", Unary<LogicalNot>);
  auto binary = [&](const char* name, const char* meaning, auto build) {
    rows->push_back({name, "x, y", {}, "z", kBools, meaning, kComparisons, build});
  };
  binary("logical_and", "whether neither is 0; dtypes may differ", Binary<LogicalAnd>);
  binary("logical_or", "whether not both are 0; dtypes may differ", Binary<LogicalOr>);
  binary("logical_xor", "whether one of the two is 0; dtypes may differ", Binary<LogicalXor>);
}

void AddFunctions(OperatorRows* rows) {
  auto unary = [&](const char* name, const char* shapes, const char* meaning, auto build) {
    rows->push_back({name, "x", {}, "y", shapes, meaning, kFunctions, build});
  };
  auto binary = [&](const char* name, const char* shapes, const char* meaning, auto build) {
    rows->push_back({name, "x, y", {}, "z", shapes, meaning, kFunctions, build});
  };
  unary("sign", kSame, "-1, 0 or 1; 0 for both zeros, NaN for NaN", Unary<Sign>);
  unary("square", kSame, "x * x", Unary<Square>);
  unary("rsqrt", kSameFloat, "1 / sqrt(x)", Unary<Rsqrt>);
  binary("divide", "x and y of one dtype broadcast; z has it, or is f64 for integers and bools",
         "x / y, the true quotient", Binary<Divide>);
  binary("copysign", kFloats, "x with the sign of y", Binary<CopySign>);
  rows->push_back({"clip",
                   "x",
                   {{"low", AttributeKind::kFloat, ""}, {"high", AttributeKind::kFloat, ""}},
                   "y",
                   kSame,
                   "min(max(x, low), high), with those bounds that are given; NaN stays NaN",
                   kFunctions,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(Clip(builder, call.operand(0), Optional<double>(call, "low"),
                                     Optional<double>(call, "high")));
                   }});
  unary("tan", kSameFloat, "tangent of x radians", Unary<Tan>);
  unary("asin", kSameFloat, "arc sine; NaN outside [-1, 1]", Unary<Asin>);
  unary("acos", kSameFloat, "arc cosine; NaN outside [-1, 1]", Unary<Acos>);
  unary("atan", kSameFloat, "arc tangent", Unary<Atan>);
  rows->push_back({"atan2",
                   "y, x",
                   {},
                   "z",
                   kFloats,
                   "the angle of the point with abscissa x and ordinate y, in [-pi, pi]",
                   kFunctions,
                   Binary<Atan2>});
  unary("sinh", kSameFloat, "hyperbolic sine", Unary<Sinh>);
  unary("cosh", kSameFloat, "hyperbolic cosine", Unary<Cosh>);
  unary("asinh", kSameFloat, "inverse hyperbolic sine", Unary<Asinh>);
  unary("acosh", kSameFloat, "inverse hyperbolic cosine; NaN below 1", Unary<Acosh>);
  unary("atanh", kSameFloat, "inverse hyperbolic tangent; NaN outside [-1, 1]", Unary<Atanh>);
  unary("log1p", kSameFloat, "log(1 + x), right near 0", Unary<Log1p>);
  unary("expm1", kSameFloat, "exp(x) - 1, right near 0", Unary<Expm1>);
  binary("hypot", kFloats, "sqrt(x^2 + y^2), without overflow in between", Binary<Hypot>);
}

void AddActivations(OperatorRows* rows) {
  auto unary = [&](const char* name, const char* meaning, auto build) {
    rows->push_back({name, "x", {}, "y", kSameFloat, meaning, kActivations, build});
  };
  // With one number, `name`.
  auto tuned = [&](const char* name, AttributeInfo attribute, const char* meaning, auto build) {
    rows->push_back({name, "x", {attribute}, "y", kSameFloat, meaning, kActivations, build});
  };
  rows->push_back({"relu", "x", {}, "y", kSame, "max(x, 0)", kActivations, Unary<Relu>});
  rows->push_back({"relu6", "x", {}, "y", kSame, "min(max(x, 0), 6)", kActivations, Unary<Relu6>});
  tuned("leaky_relu", {"slope", AttributeKind::kFloat, "0.01"}, "x where x > 0, else slope * x",
        [](TensorBuilder& builder, const OperatorCall& call) {
          return One(LeakyRelu(builder, call.operand(0), call.Get<double>("slope")));
        });
  rows->push_back({"prelu",
                   "x, slope",
                   {},
                   "y",
                   kFloats,
                   "x where x > 0, else slope * x",
                   kActivations,
                   Binary<Prelu>});
  tuned("elu", {"alpha", AttributeKind::kFloat, "1"}, "x where x > 0, else alpha * expm1(x)",
        [](TensorBuilder& builder, const OperatorCall& call) {
          return One(Elu(builder, call.operand(0), call.Get<double>("alpha")));
        });
  tuned("celu", {"alpha", AttributeKind::kFloat, "1"},
        "x where x > 0, else alpha * expm1(x / alpha)",
        [](TensorBuilder& builder, const OperatorCall& call) {
          return One(Celu(builder, call.operand(0), call.Get<double>("alpha")));
        });
  unary("selu", "1.0507 * x where x > 0, else 1.0507 * 1.67326 * expm1(x)", Unary<Selu>);
  unary("sigmoid", "1 / (1 + exp(-x))", Unary<Sigmoid>);
  unary("hardsigmoid", "relu6(x + 3) / 6", Unary<HardSigmoid>);
  unary("hardswish", "x * relu6(x + 3) / 6", Unary<HardSwish>);
  unary("silu", "x / (1 + exp(-x))", Unary<Silu>);
  tuned("softplus", {"beta", AttributeKind::kFloat, "1"},
        "log(1 + exp(beta * x)) / beta, without overflow",
        [](TensorBuilder& builder, const OperatorCall& call) {
          return One(Softplus(builder, call.operand(0), call.Get<double>("beta")));
        });
  unary("softsign", "x / (1 + |x|)", Unary<Softsign>);
  unary("mish", "x * tanh(softplus(x))", Unary<Mish>);
  tuned("gelu", {"approximate", AttributeKind::kWord, "none"},
        "x * (1 + erf(x / sqrt(2))) / 2; approximate=tanh: x * (1 + tanh(sqrt(2 / pi) * (x + "
        "0.044715 * x^3))) / 2",
        [](TensorBuilder& builder, const OperatorCall& call) {
          auto is_tanh =
              Choice<bool>(builder, call, "approximate", {{"none", false}, {"tanh", true}});
          if (!is_tanh.has_value()) return OperatorResults();
          const UOp* x = call.operand(0);
          return One(*is_tanh ? GeluTanh(builder, x) : Gelu(builder, x));
        });
}

}  // namespace

void AddElementwiseRows(OperatorRows* rows) {
  AddComparisons(rows);
  AddFunctions(rows);
  AddActivations(rows);
}

}  // namespace svod
