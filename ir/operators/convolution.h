// Convolution and its transpose, in 1 to 3 spatial dimensions.
// Included by importers, embedders and the operator table. Must not know pooling.
#ifndef SVOD_IR_OPERATORS_CONVOLUTION_H_
#define SVOD_IR_OPERATORS_CONVOLUTION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/tensor_builder.h"

namespace svod {

// One number for each spatial dimension, or one for all, or none: 1, and 0 for padding. Padding may
// also have two a dimension: those before every dimension, then those after.
struct ConvolutionOptions {
  std::vector<int64_t> stride = {}, padding = {}, dilation = {};
  int64_t groups = 1;
  std::vector<int64_t> output_padding = {};  // of Transposed alone: more elements at the end
  // Of products, sums and the result; the operands' without it. Integers wrap.
  std::optional<DType> dtype = std::nullopt;
};

// x [N, C, i...], weight [O, C / groups, k...], bias [O] or null, of one dtype: [N, O, o...], with
// o = floor((i + padding - dilation * (k - 1) - 1) / stride) + 1. The weights are not mirrored. A
// product and one REDUCE_AXIS over channels and kernel. f16 and bf16 are worked out in f32 and
// rounded once. N and spatial dimensions may be symbolic. Null after a failure, which
// the builder holds.
const UOp* Convolution(TensorBuilder& builder, const UOp* x, const UOp* weight, const UOp* bias,
                       const ConvolutionOptions& options = {});

// x [N, C, i...], weight [C, O / groups, k...]: what Convolution's gradient by its input is, with
// o = (i - 1) * stride - padding + dilation * (k - 1) + output_padding + 1.
const UOp* TransposedConvolution(TensorBuilder& builder, const UOp* x, const UOp* weight,
                                 const UOp* bias, const ConvolutionOptions& options = {});

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_CONVOLUTION_H_
