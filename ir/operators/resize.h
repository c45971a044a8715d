// Resizing of images by nearest neighbour and linear interpolation.
// Included by importers, embedders and the operator table. Must not know windows.
#ifndef SVOD_IR_OPERATORS_RESIZE_H_
#define SVOD_IR_OPERATORS_RESIZE_H_

#include <cstdint>

#include "ir/tensor_builder.h"

namespace svod {

enum class ResizeMode : uint8_t { kNearest, kLinear };
// Where element i of n, resized to m, lies in the old dimension:
enum class ResizeAlignment : uint8_t {
  kHalfPixel,     // (i + 1/2) * n / m - 1/2
  kAlignCorners,  // i * (n - 1) / (m - 1)
  kAsymmetric,    // i * n / m
};

// x [N, C, i...] with 1 to 3 spatial dimensions as [N, C, o...], sizes = o. Places are worked out
// exactly, as fractions of integers. Nearest: x's element at the place rounded down (kHalfPixel:
// that whose cell holds it; kAlignCorners: rounded, halves up), of any dtype. Linear: between the
// two neighbours, one axis after the other, of floats; f16 and bf16 in f32, rounded once; places
// outside the centres of the first and last element are theirs.
// o and i are constants and not 0, of at most 2^28. Null after a failure, which the builder holds.
const UOp* Resize(TensorBuilder& builder, const UOp* x, absl::Span<const int64_t> sizes,
                  ResizeMode mode, ResizeAlignment alignment = ResizeAlignment::kHalfPixel);

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_RESIZE_H_
