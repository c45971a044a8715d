// Activation functions of neural networks, elementwise.
// Included by importers, embedders and the operator table. Must not know reductions.
#ifndef SVOD_IR_OPERATORS_ACTIVATION_H_
#define SVOD_IR_OPERATORS_ACTIVATION_H_

#include "ir/tensor_builder.h"

namespace svod {

// Each takes a tensor and gives one of its shape and dtype; all but Relu, Relu6, LeakyRelu and
// Prelu need a float, and work f16 and bf16 out in f32, rounded once. NaN gives NaN. Null after a
// failure, which the builder holds. Formulas: those of the PyTorch operators of these names.

const UOp* Relu(TensorBuilder& builder, const UOp* x);   // max(x, 0)
const UOp* Relu6(TensorBuilder& builder, const UOp* x);  // min(max(x, 0), 6)
// x where x > 0, else slope * x.
const UOp* LeakyRelu(TensorBuilder& builder, const UOp* x, double slope = 0.01);
// The same with slopes that broadcast to x.
const UOp* Prelu(TensorBuilder& builder, const UOp* x, const UOp* slope);
const UOp* Elu(TensorBuilder& builder, const UOp* x, double alpha = 1);  // alpha * expm1(x) below 0
const UOp* Celu(TensorBuilder& builder, const UOp* x,
                double alpha = 1);                             // alpha * expm1(x / alpha)
const UOp* Selu(TensorBuilder& builder, const UOp* x);         // Klambauer et al. 2017
const UOp* Sigmoid(TensorBuilder& builder, const UOp* x);      // 1 / (1 + exp(-x))
const UOp* HardSigmoid(TensorBuilder& builder, const UOp* x);  // relu6(x + 3) / 6
const UOp* HardSwish(TensorBuilder& builder, const UOp* x);    // x * relu6(x + 3) / 6
const UOp* Silu(TensorBuilder& builder, const UOp* x);         // x / (1 + exp(-x))
// log(1 + exp(beta * x)) / beta, without overflow.
const UOp* Softplus(TensorBuilder& builder, const UOp* x, double beta = 1);
const UOp* Softsign(TensorBuilder& builder, const UOp* x);  // x / (1 + |x|)
const UOp* Mish(TensorBuilder& builder, const UOp* x);      // x * tanh(softplus(x))
// x * (1 + erf(x / sqrt(2))) / 2
const UOp* Gelu(TensorBuilder& builder, const UOp* x);
// x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2
const UOp* GeluTanh(TensorBuilder& builder, const UOp* x);

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_ACTIVATION_H_
