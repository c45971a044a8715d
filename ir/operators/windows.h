// Windows: overlapping parts of a tensor side by side, for convolution and pooling.
// Included by sources of ir/operators/. Must not compute.
#ifndef SVOD_IR_OPERATORS_WINDOWS_H_
#define SVOD_IR_OPERATORS_WINDOWS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/tensor_builder.h"

namespace svod {

// Attributes of each spatial dimension, which are the last ones. `low` and `high`: what is added
// before and after.
struct WindowOptions {
  std::vector<int64_t> size, stride, dilation, low, high;
};

// Fills in one number for all dimensions, or none (1; no padding), and checks them. `padding`: one
// number a dimension, or those before every dimension and then those after.
// Errors: InvalidArgument to the builder, naming `op`, the attribute, got and expected.
std::optional<WindowOptions> CheckWindows(TensorBuilder& builder, absl::string_view op,
                                          int64_t num_dims, absl::Span<const int64_t> size,
                                          absl::Span<const int64_t> stride,
                                          absl::Span<const int64_t> padding,
                                          absl::Span<const int64_t> dilation);

// x with `value` before and after its last dimensions.
const UOp* PadSpatial(TensorBuilder& builder, const UOp* x, const UOp* value,
                      absl::Span<const int64_t> low, absl::Span<const int64_t> high);

// x [lead..., i...], already padded, as [lead..., o..., k...]: element (o, k) is x's at o * stride
// + k * dilation; o = floor((i - dilation * (k - 1) - 1) / stride) + 1. By movement ops alone, so
// that every access is affine. Dimensions may be symbolic. Errors: windows that do not fit.
const UOp* Windows(TensorBuilder& builder, absl::string_view op, const UOp* x,
                   const WindowOptions& options);

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_WINDOWS_H_
