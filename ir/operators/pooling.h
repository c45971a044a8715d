// Pooling over windows and over whole images.
// Included by importers, embedders and the operator table. Must not know convolution.
#ifndef SVOD_IR_OPERATORS_POOLING_H_
#define SVOD_IR_OPERATORS_POOLING_H_

#include <cstdint>
#include <vector>

#include "ir/tensor_builder.h"

namespace svod {

// One number for each spatial dimension, or one for all. Padding is less than what a window spans
// and may have two a dimension: those before every dimension, then those after.
struct PoolOptions {
  std::vector<int64_t> kernel;
  std::vector<int64_t> stride = {};  // none: the kernel's size
  std::vector<int64_t> padding = {}, dilation = {};
  bool ceil_mode = false;         // also windows that begin inside and reach over the end
  bool count_include_pad = true;  // whether an average counts padding
};

// x [N, C, i...] of any dtype, 1 to 3 spatial dimensions: [N, C, o...], with o as for convolutions.
// Padding is less than every element. Null after a failure, which the builder holds.
const UOp* MaxPool(TensorBuilder& builder, const UOp* x, const PoolOptions& options);
// The sum over a window by the number of its elements, those beyond the padded end never counted.
// Integers are taken as f64, f16 and bf16 in f32.
const UOp* AveragePool(TensorBuilder& builder, const UOp* x, const PoolOptions& options);
// [N, C, 1...]: over all spatial dimensions.
const UOp* GlobalMaxPool(TensorBuilder& builder, const UOp* x);
const UOp* GlobalAveragePool(TensorBuilder& builder, const UOp* x);

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_POOLING_H_
