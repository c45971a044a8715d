// Normalizations of neural networks.
// Included by importers, embedders and the operator table. Must not know windows.
#ifndef SVOD_IR_OPERATORS_NORMALIZATION_H_
#define SVOD_IR_OPERATORS_NORMALIZATION_H_

#include <cstdint>

#include "ir/tensor_builder.h"

namespace svod {

// All take floats of one dtype, give x's shape and dtype, compute (x - mean) / sqrt(variance +
// epsilon), times weight, plus bias, in f32 for f16 and bf16 and rounded once. A null weight or
// bias is left out. Variances are those of the elements themselves (no correction), in two passes.
// Null after a failure, which the builder holds: dtypes, and shapes other than those named.

// Over dimensions `axis` and behind, whose shape weight and bias have.
const UOp* LayerNorm(TensorBuilder& builder, const UOp* x, const UOp* weight, const UOp* bias,
                     int64_t axis = -1, double epsilon = 1e-5);
// x / sqrt(mean(x^2) + epsilon), the same way. Zhang and Sennrich 2019.
const UOp* RmsNorm(TensorBuilder& builder, const UOp* x, const UOp* weight, int64_t axis = -1,
                   double epsilon = 1e-5);
// With a given mean, variance, weight and bias [C] for each element of dimension `axis`.
const UOp* BatchNorm(TensorBuilder& builder, const UOp* x, const UOp* mean, const UOp* variance,
                     const UOp* weight, const UOp* bias, int64_t axis = 1, double epsilon = 1e-5);
// x [N, C, ...] in num_groups groups of channels, each of a batch by itself; weight and bias [C]. C
// is a constant, a multiple of num_groups.
const UOp* GroupNorm(TensorBuilder& builder, const UOp* x, const UOp* weight, const UOp* bias,
                     int64_t num_groups, double epsilon = 1e-5);
// x [N, C, ...], each channel of a batch by itself; weight and bias [C].
const UOp* InstanceNorm(TensorBuilder& builder, const UOp* x, const UOp* weight, const UOp* bias,
                        double epsilon = 1e-5);

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_NORMALIZATION_H_
