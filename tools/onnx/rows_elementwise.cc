// Rows of the operator table: arithmetic, comparisons, logic, activations, casts.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/operators/activation.h"
#include "ir/operators/compose.h"
#include "ir/operators/elementwise.h"
#include "ir/operators/special_functions.h"
#include "tools/onnx/onnx_operators.h"

namespace svod {
namespace {

using Unary = const UOp* (*)(TensorBuilder&, const UOp*);
using Binary = const UOp* (*)(TensorBuilder&, const UOp*, const UOp*);

template <Unary function>
OnnxResults ImportUnary(OnnxNode& node) {
  node.Ignore({"consumed_inputs"});  // of opset 1
  return {function(node.builder(), node.input(0))};
}

template <Op op>
OnnxResults ImportOp(OnnxNode& node) {
  node.Ignore({"consumed_inputs"});
  return {node.builder().Make(op, node.inputs())};
}

// Until opset 6 the second operand was not aligned at the last dimension but at `axis`.
const UOp* LegacyOperand(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp* y = node.input(1);
  if (node.version() >= 7) return y;
  node.Ignore({"consumed_inputs"});
  bool broadcast = node.Bool("broadcast", false);
  int64_t axis = node.Int("axis", -1);
  if (!broadcast || axis < 0) return y;
  for (int64_t i = axis + node.rank(1); i < node.rank(0); ++i) {
    y = builder.Unsqueeze(y, builder.RankOf(y));
  }
  return y;
}

template <Op op>
OnnxResults ImportBinary(OnnxNode& node) {
  const UOp* y = LegacyOperand(node);
  return {node.builder().Make(op, {node.input(0), y})};
}

template <Binary function>
OnnxResults ImportLogic(OnnxNode& node) {
  const UOp* y = LegacyOperand(node);
  return {function(node.builder(), node.input(0), y)};
}

// x < y with the operands turned round for greater.
template <Op op>
OnnxResults ImportGreater(OnnxNode& node) {
  const UOp* y = LegacyOperand(node);
  return {node.builder().Make(op, {y, node.input(0)})};
}

OnnxResults ImportDiv(OnnxNode& node) {
  const UOp* y = LegacyOperand(node);
  Op op = node.input(0)->dtype().is_float() ? Op::kFdiv : Op::kCdiv;
  return {node.builder().Make(op, {node.input(0), y})};
}

OnnxResults ImportMod(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  bool like_c = node.Bool("fmod", false);
  const UOp *x = node.input(0), *y = node.input(1);
  if (x->dtype().is_integer()) {
    return {builder.Make(like_c ? Op::kCmod : Op::kFloormod, {x, y})};
  }
  if (!like_c) return node.Fail("attribute 'fmod', got 0, expected 1 for floats");
  // x - trunc(x / y) * y loses digits where the quotient is large; in f64 the product of f32 is
  // exact up to quotients of 2^29.
  DType wide = Scalar::kF64;
  Expression a(builder, builder.Cast(x, wide)), b(builder, builder.Cast(y, wide));
  Expression result = a - (a / b).Of(Op::kTrunc) * b;
  return {builder.Cast(result, x->dtype())};
}

OnnxResults ImportPow(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp *x = node.input(0), *y = LegacyOperand(node);
  if (y == nullptr) return {};
  DType dtype = x->dtype();
  DType wide = dtype == Scalar::kF32 && (y->dtype() == Scalar::kF32 || y->dtype().bits() <= 16)
                   ? DType(Scalar::kF32)
                   : DType(Scalar::kF64);
  if (dtype.is_float() && dtype.bits() == 16) wide = Scalar::kF32;
  const UOp* power = builder.Make(Op::kPow, {builder.Cast(x, wide), builder.Cast(y, wide)});
  return {builder.Cast(power, dtype)};
}

// Folds any number of operands.
template <Op op>
OnnxResults ImportFold(OnnxNode& node) {
  node.Ignore({"consumed_inputs"});
  const UOp* result = node.input(0);
  for (size_t i = 1; i < node.num_inputs(); ++i) {
    result = node.builder().Make(op, {result, node.input(i)});
  }
  return {result};
}

OnnxResults ImportMean(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  Expression sum = Widen(builder, node.input(0));
  for (size_t i = 1; i < node.num_inputs(); ++i) sum = sum + Widen(builder, node.input(i));
  Expression mean = sum / static_cast<double>(node.num_inputs());
  return {builder.Cast(mean, node.input(0)->dtype())};
}

OnnxResults ImportBitShift(OnnxNode& node) {
  node.Require("direction");
  int direction = node.Choice("direction", "", {"LEFT", "RIGHT"});
  return {node.builder().Make(direction == 0 ? Op::kShl : Op::kShr, node.inputs())};
}

OnnxResults ImportBitwiseNot(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp* ones = builder.ConstInt(node.input(0)->dtype(), -1);
  return {builder.Make(Op::kXor, {node.input(0), ones})};
}

const UOp* Reciprocal(TensorBuilder& builder, const UOp* x) {
  return builder.Make(Op::kFdiv, {builder.Like(x, 1), x});
}

// --- Activations ---------------------------------------------------------------------------------

OnnxResults ImportLeakyRelu(OnnxNode& node) {
  node.Ignore({"consumed_inputs"});
  return {LeakyRelu(node.builder(), node.input(0), node.Float("alpha", 0.01))};
}

OnnxResults ImportElu(OnnxNode& node) {
  node.Ignore({"consumed_inputs"});
  return {Elu(node.builder(), node.input(0), node.Float("alpha", 1))};
}

OnnxResults ImportCelu(OnnxNode& node) {
  return {Celu(node.builder(), node.input(0), node.Float("alpha", 1))};
}

// gamma * (x where x > 0, else alpha * expm1(x))
OnnxResults ImportSelu(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  node.Ignore({"consumed_inputs"});
  bool is_old = node.version() == 1;
  double alpha = node.Float("alpha", is_old ? 1.6732 : 1.67326319217681884765625);
  double gamma = node.Float("gamma", is_old ? 1.0507 : 1.05070102214813232421875);
  return {InWide(builder, "selu", node.input(0), [&](Expression x) {
    Expression below(builder, Expm1(builder, x));
    return Select(x > 0.0, x * gamma, below * (alpha * gamma));
  })};
}

OnnxResults ImportHardSigmoid(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  node.Ignore({"consumed_inputs"});
  double alpha = node.Float("alpha", 0.2), beta = node.Float("beta", 0.5);
  return {InWide(builder, "hardsigmoid", node.input(0),
                 [&](Expression x) { return Max(Min(x * alpha + beta, 1.0), 0.0); })};
}

OnnxResults ImportHardSwish(OnnxNode& node) {
  return {InWide(node.builder(), "hardswish", node.input(0),
                 [](Expression x) { return x * Max(Min(x * (1.0 / 6.0) + 0.5, 1.0), 0.0); })};
}

OnnxResults ImportThresholdedRelu(OnnxNode& node) {
  Expression x(node.builder(), node.input(0));
  double alpha = node.Float("alpha", 1);
  return {Select(x > x.Number(alpha), x, 0.0)};
}

OnnxResults ImportShrink(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  Expression x(builder, node.input(0));
  double lambda = node.Float("lambd", 0.5), bias = node.Float("bias", 0);
  Expression above = Select(x > x.Number(lambda), x - bias, 0.0);
  return {Select(x < x.Number(-lambda), x + bias, above)};
}

OnnxResults ImportGelu(OnnxNode& node) {
  int approximate = node.Choice("approximate", "none", {"none", "tanh"});
  return {approximate == 1 ? GeluTanh(node.builder(), node.input(0))
                           : Gelu(node.builder(), node.input(0))};
}

OnnxResults ImportPRelu(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  node.Ignore({"consumed_inputs"});
  const UOp *x = node.input(0), *slope = node.input(1);
  // Until opset 6 slopes belonged to channels.
  if (node.version() < 7 && node.rank(1) == 1) {
    for (int64_t i = 2; i < node.rank(0); ++i) slope = builder.Unsqueeze(slope, -1);
  }
  Expression y(builder, x);
  return {Select(y < 0.0, y.Of(Op::kMul, {builder, slope}), y)};
}

OnnxResults ImportClip(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp* x = node.input(0);
  if (node.version() < 11) {
    node.Ignore({"consumed_inputs"});
    std::optional<double> low, high;
    if (node.HasAttribute("min")) low = node.Float("min", 0);
    if (node.HasAttribute("max")) high = node.Float("max", 0);
    return {Clip(builder, x, low, high)};
  }
  for (size_t i = 1; i <= 2; ++i) {
    if (!node.has_input(i)) continue;
    const UOp* bound = builder.Reshape(node.input(i), ShapeSpan{});
    x = builder.Make(i == 1 ? Op::kMax : Op::kMin, {x, bound});
  }
  return {x};
}

// --- Casts and choices ---------------------------------------------------------------------------

OnnxResults ImportCast(OnnxNode& node) {
  node.Require("to");
  if (node.Int("saturate", 1) != 1) return node.FailUnsupported("saturate=0");
  DType dtype = node.TypeAttribute("to", node.input(0)->dtype());
  return {node.builder().Cast(node.input(0), dtype)};
}

OnnxResults ImportCastLike(OnnxNode& node) {
  if (node.Int("saturate", 1) != 1) return node.FailUnsupported("saturate=0");
  return {node.builder().Cast(node.input(0), node.input(1)->dtype())};
}

OnnxResults ImportWhere(OnnxNode& node) {
  return {node.builder().Where(node.input(0), node.input(1), node.input(2))};
}

OnnxResults ImportIsInf(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  Expression x(builder, node.input(0));
  bool negative = node.Bool("detect_negative", true), positive = node.Bool("detect_positive", true);
  double infinity = std::numeric_limits<double>::infinity();
  Expression none(builder, NotEqual(x, x).Of(Op::kAnd, {builder, Equal(x, x)}));
  Expression result = none;
  if (positive) result = Or(result, Equal(x, infinity));
  if (negative) result = Or(result, Equal(x, -infinity));
  return {result};
}

}  // namespace

OnnxRows OnnxElementwiseRows() {
  return {
      {"Abs", {1, 6, 13}, 1, 1, ImportOp<Op::kAbs>},
      {"Acos", {7, 22}, 1, 1, ImportUnary<Acos>},
      {"Acosh", {9, 22}, 1, 1, ImportUnary<Acosh>},
      {"Add", {1, 6, 7, 13, 14}, 2, 2, ImportBinary<Op::kAdd>},
      {"And", {1, 7}, 2, 2, ImportLogic<LogicalAnd>},
      {"Asin", {7, 22}, 1, 1, ImportUnary<Asin>},
      {"Asinh", {9, 22}, 1, 1, ImportUnary<Asinh>},
      {"Atan", {7, 22}, 1, 1, ImportUnary<Atan>},
      {"Atanh", {9, 22}, 1, 1, ImportUnary<Atanh>},
      {"BitShift", {11}, 2, 2, ImportBitShift},
      {"BitwiseAnd", {18}, 2, 2, ImportBinary<Op::kAnd>},
      {"BitwiseNot", {18}, 1, 1, ImportBitwiseNot},
      {"BitwiseOr", {18}, 2, 2, ImportBinary<Op::kOr>},
      {"BitwiseXor", {18}, 2, 2, ImportBinary<Op::kXor>},
      {"Cast", {6, 9, 13, 19, 21}, 1, 1, ImportCast, "", "no strings"},
      {"CastLike", {15, 19, 21}, 2, 2, ImportCastLike, "", "no strings"},
      {"Ceil", {1, 6, 13}, 1, 1, ImportOp<Op::kCeil>},
      {"Celu", {12}, 1, 1, ImportCelu},
      {"Clip", {1, 6, 11, 12, 13}, 1, 3, ImportClip},
      {"Cos", {7, 22}, 1, 1, ImportOp<Op::kCos>},
      {"Cosh", {9, 22}, 1, 1, ImportUnary<Cosh>},
      {"Div", {1, 6, 7, 13, 14}, 2, 2, ImportDiv},
      {"Elu", {1, 6, 22}, 1, 1, ImportElu},
      {"Equal", {1, 7, 11, 13, 19}, 2, 2, ImportBinary<Op::kCmpEq>, "", "no strings"},
      {"Erf", {9, 13}, 1, 1, ImportOp<Op::kErf>},
      {"Exp", {1, 6, 13}, 1, 1, ImportOp<Op::kExp>},
      {"Floor", {1, 6, 13}, 1, 1, ImportOp<Op::kFloor>},
      {"Gelu", {20}, 1, 1, ImportGelu},
      {"Greater", {1, 7, 9, 13}, 2, 2, ImportGreater<Op::kCmpLt>},
      {"GreaterOrEqual", {12, 16}, 2, 2, ImportGreater<Op::kCmpLe>},
      {"HardSigmoid", {1, 6, 22}, 1, 1, ImportHardSigmoid},
      {"HardSwish", {14, 22}, 1, 1, ImportHardSwish},
      {"IsInf", {10, 20}, 1, 1, ImportIsInf},
      {"IsNaN", {9, 13, 20}, 1, 1, ImportUnary<IsNan>},
      {"LeakyRelu", {1, 6, 16}, 1, 1, ImportLeakyRelu},
      {"Less", {1, 7, 9, 13}, 2, 2, ImportBinary<Op::kCmpLt>},
      {"LessOrEqual", {12, 16}, 2, 2, ImportBinary<Op::kCmpLe>},
      {"Log", {1, 6, 13}, 1, 1, ImportOp<Op::kLog>},
      {"Max", {1, 6, 8, 12, 13}, 1, -1, ImportFold<Op::kMax>},
      {"Mean", {1, 6, 8, 13}, 1, -1, ImportMean},
      {"Min", {1, 6, 8, 12, 13}, 1, -1, ImportFold<Op::kMin>},
      {"Mish", {18, 22}, 1, 1, ImportUnary<Mish>},
      {"Mod", {10, 13}, 2, 2, ImportMod},
      {"Mul", {1, 6, 7, 13, 14}, 2, 2, ImportBinary<Op::kMul>},
      {"Neg", {1, 6, 13}, 1, 1, ImportOp<Op::kNeg>},
      {"Not", {1}, 1, 1, ImportUnary<LogicalNot>},
      {"Or", {1, 7}, 2, 2, ImportLogic<LogicalOr>},
      {"PRelu", {1, 6, 7, 9, 16}, 2, 2, ImportPRelu},
      {"Pow", {1, 7, 12, 13, 15}, 2, 2, ImportPow},
      {"Reciprocal", {1, 6, 13}, 1, 1, ImportUnary<Reciprocal>},
      {"Relu", {1, 6, 13, 14}, 1, 1, ImportUnary<Relu>},
      {"Round", {11, 22}, 1, 1, ImportOp<Op::kRound>},
      {"Selu", {1, 6, 22}, 1, 1, ImportSelu},
      {"Shrink", {9}, 1, 1, ImportShrink},
      {"Sigmoid", {1, 6, 13}, 1, 1, ImportUnary<Sigmoid>},
      {"Sign", {9, 13}, 1, 1, ImportUnary<Sign>},
      {"Sin", {7, 22}, 1, 1, ImportOp<Op::kSin>},
      {"Sinh", {9, 22}, 1, 1, ImportUnary<Sinh>},
      {"Softplus",
       {1, 22},
       1,
       1,
       [](OnnxNode& node) -> OnnxResults { return {Softplus(node.builder(), node.input(0))}; }},
      {"Softsign", {1, 22}, 1, 1, ImportUnary<Softsign>},
      {"Sqrt", {1, 6, 13}, 1, 1, ImportOp<Op::kSqrt>},
      {"Sub", {1, 6, 7, 13, 14}, 2, 2, ImportBinary<Op::kSub>},
      {"Sum", {1, 6, 8, 13}, 1, -1, ImportFold<Op::kAdd>},
      {"Tan", {7, 22}, 1, 1, ImportUnary<Tan>},
      {"Tanh", {1, 6, 13}, 1, 1, ImportOp<Op::kTanh>},
      {"ThresholdedRelu", {10, 22}, 1, 1, ImportThresholdedRelu},
      {"Where", {9, 16}, 3, 3, ImportWhere},
      {"Xor", {1, 7}, 2, 2, ImportLogic<LogicalXor>},
  };
}

}  // namespace svod
