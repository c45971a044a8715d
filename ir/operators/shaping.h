// Operators that put tensors together, take them apart and move their elements.
// Included by importers, embedders and the operator table. Must not compute.
#ifndef SVOD_IR_OPERATORS_SHAPING_H_
#define SVOD_IR_OPERATORS_SHAPING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/tensor_builder.h"

namespace svod {

// Elements keep their bits. Dimensions may be symbolic unless said otherwise. Null (or nothing)
// after a failure, which the builder holds.

// Tensors of one dtype one after the other along `axis`; other dimensions are equal.
const UOp* Concatenate(TensorBuilder& builder, absl::Span<const UOp* const> tensors, int64_t axis);
// Tensors of one shape along a new axis.
const UOp* StackTensors(TensorBuilder& builder, absl::Span<const UOp* const> tensors, int64_t axis);
// Parts of the given sizes along `axis`, which they fill.
std::vector<const UOp*> Split(TensorBuilder& builder, const UOp* x, ShapeSpan sizes, int64_t axis);
// That many parts, of equal sizes; the dimension must be a constant multiple of it.
std::vector<const UOp*> SplitEvenly(TensorBuilder& builder, const UOp* x, int64_t num_parts,
                                    int64_t axis);
// Elements begin, begin + step, ... before end, along one axis; 0 <= begin <= end <= the dimension.
// A negative step takes them from the last before end towards begin. Steps other than 1 and -1 need
// a constant end - begin.
const UOp* SliceAxis(TensorBuilder& builder, const UOp* x, int64_t axis, const UOp* begin,
                     const UOp* end, int64_t step = 1);

// What stands where a padded tensor has no element: a constant; the mirror image with and without
// the edge itself; the edge; the other end.
enum class PadMode : uint8_t { kConstant, kReflect, kSymmetric, kEdge, kWrap };
// Before and after each dimension that many elements. Errors: amounts below 0; more than the
// dimension gives (kReflect: its size less 1, kSymmetric and kWrap: its size, kEdge: any if not 0).
const UOp* PadWith(TensorBuilder& builder, const UOp* x, absl::Span<const int64_t> low,
                   absl::Span<const int64_t> high, PadMode mode, double value = 0);

// The whole tensor repeated along each dimension, as NumPy's tile: missing repeats and dimensions
// are 1, at the front.
const UOp* Tile(TensorBuilder& builder, const UOp* x, absl::Span<const int64_t> repeats);
// Every element `count` times in a row, along `axis` or, without one, of the flattened tensor.
const UOp* Repeat(TensorBuilder& builder, const UOp* x, int64_t count, std::optional<int64_t> axis);
// Elements moved `shift` places along `axis`, the last ones to the front. Along a symbolic
// dimension by at most its least value.
const UOp* Roll(TensorBuilder& builder, const UOp* x, int64_t shift, int64_t axis);
// x's dimensions begin to end, both included, as one.
const UOp* Flatten(TensorBuilder& builder, const UOp* x, int64_t begin = 0, int64_t end = -1);
// New dimensions of 1, at these places of the result.
const UOp* UnsqueezeAxes(TensorBuilder& builder, const UOp* x, absl::Span<const int64_t> axes);
// Without these dimensions, which are 1; without axes all constant dimensions of 1.
const UOp* SqueezeAxes(TensorBuilder& builder, const UOp* x, absl::Span<const int64_t> axes);

// The last two dimensions with 0 above (Tril) or below (Triu) the diagonal, which begins `diagonal`
// columns to the right of the corner.
const UOp* Tril(TensorBuilder& builder, const UOp* x, int64_t diagonal = 0);
const UOp* Triu(TensorBuilder& builder, const UOp* x, int64_t diagonal = 0);
// bool [rows, columns]: whether column <= row + diagonal.
const UOp* TriangularMask(TensorBuilder& builder, const UOp* rows, const UOp* columns,
                          const UOp* diagonal);
// A constant of a shape; a matrix with ones on the diagonal.
const UOp* Full(TensorBuilder& builder, ShapeSpan shape, double value, DType dtype);
const UOp* Eye(TensorBuilder& builder, const UOp* rows, const UOp* columns, DType dtype);

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_SHAPING_H_
