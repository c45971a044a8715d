#include "ir/operators/activation.h"

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/special_functions.h"

namespace svod {
namespace {

Expression Expm1Of(Expression x) { return {x.builder(), Expm1(x.builder(), x)}; }

Expression Relu6Of(Expression x) { return Min(Max(x, 0), 6); }

// max(x, 0) + log1p(exp(-|x|)): the exponential never overflows.
Expression SoftplusOf(Expression x) {
  return Max(x, 0) + Expression(x.builder(), Log1p(x.builder(), Exp(-Abs(x))));
}

}  // namespace

const UOp* Relu(TensorBuilder& builder, const UOp* x) {
  if (!IsReady(builder, "relu", {x})) return nullptr;
  return Max(Expression(builder, x), 0);
}

const UOp* Relu6(TensorBuilder& builder, const UOp* x) {
  if (!IsReady(builder, "relu6", {x})) return nullptr;
  return Relu6Of(Expression(builder, x));
}

const UOp* LeakyRelu(TensorBuilder& builder, const UOp* x, double slope) {
  return InWide(builder, "leaky_relu", x,
                [&](Expression v) { return Select(v > 0, v, v * slope); });
}

const UOp* Prelu(TensorBuilder& builder, const UOp* x, const UOp* slope) {
  return InWide(builder, "prelu", x, slope,
                [&](Expression v, Expression s) { return Select(v > 0, v, v * s); });
}

const UOp* Elu(TensorBuilder& builder, const UOp* x, double alpha) {
  return InWide(builder, "elu", x,
                [&](Expression v) { return Select(v > 0, v, Expm1Of(v) * alpha); });
}

const UOp* Celu(TensorBuilder& builder, const UOp* x, double alpha) {
  if (builder.ok() && alpha == 0) {
    return FailOperator(builder, "celu", "alpha", "0", "another number");
  }
  return InWide(builder, "celu", x,
                [&](Expression v) { return Select(v > 0, v, Expm1Of(v / alpha) * alpha); });
}

const UOp* Selu(TensorBuilder& builder, const UOp* x) {
  constexpr double kScale = 1.0507009873554804934193349852946;
  constexpr double kAlpha = 1.6732632423543772848170429916717;
  return InWide(builder, "selu", x, [](Expression v) {
    return Select(v > 0, v * kScale, Expm1Of(v) * (kScale * kAlpha));
  });
}

const UOp* Sigmoid(TensorBuilder& builder, const UOp* x) {
  return InWide(builder, "sigmoid", x, [](Expression v) { return Recip(Exp(-v) + 1); });
}

const UOp* HardSigmoid(TensorBuilder& builder, const UOp* x) {
  return InWide(builder, "hardsigmoid", x, [](Expression v) { return Relu6Of(v + 3) / 6; });
}

const UOp* HardSwish(TensorBuilder& builder, const UOp* x) {
  return InWide(builder, "hardswish", x, [](Expression v) { return v * Relu6Of(v + 3) / 6; });
}

const UOp* Silu(TensorBuilder& builder, const UOp* x) {
  return InWide(builder, "silu", x, [](Expression v) { return v / (Exp(-v) + 1); });
}

const UOp* Softplus(TensorBuilder& builder, const UOp* x, double beta) {
  if (builder.ok() && !(beta > 0)) {
    return FailOperator(builder, "softplus", "beta", absl::StrCat(beta), "more than 0");
  }
  return InWide(builder, "softplus", x, [&](Expression v) {
    return beta == 1 ? SoftplusOf(v) : SoftplusOf(v * beta) / beta;
  });
}

const UOp* Softsign(TensorBuilder& builder, const UOp* x) {
  return InWide(builder, "softsign", x, [](Expression v) { return v / (Abs(v) + 1); });
}

const UOp* Mish(TensorBuilder& builder, const UOp* x) {
  return InWide(builder, "mish", x, [](Expression v) { return v * Tanh(SoftplusOf(v)); });
}

const UOp* Gelu(TensorBuilder& builder, const UOp* x) {
  constexpr double kRootHalf = 0.70710678118654752440;
  return InWide(builder, "gelu", x,
                [](Expression v) { return v * 0.5 * ((v * kRootHalf).Of(Op::kErf) + 1); });
}

const UOp* GeluTanh(TensorBuilder& builder, const UOp* x) {
  constexpr double kRootTwoOverPi = 0.79788456080286535588;
  return InWide(builder, "gelu_tanh", x, [](Expression v) {
    return v * 0.5 * (Tanh((v + v * v * v * 0.044715) * kRootTwoOverPi) + 1);
  });
}

}  // namespace svod
