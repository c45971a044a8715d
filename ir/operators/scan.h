// Cumulative sums, products and extremes along an axis.
// Included by importers, embedders and the operator table. Must not know windows.
#ifndef SVOD_IR_OPERATORS_SCAN_H_
#define SVOD_IR_OPERATORS_SCAN_H_

#include <cstdint>
#include <optional>

#include "ir/tensor_builder.h"

namespace svod {

struct ScanOptions {
  bool exclusive = false;  // element i takes what is before i, not i itself; the first the identity
  bool reverse = false;    // from the end
};

// Element i is the fold of elements 0 to i of x along `axis`; the shape is x's. Sums and products
// are in `dtype` or, without one, in SumDType(x's); extremes in x's dtype. f16 and bf16 accumulate
// in f32 and are rounded once. Null after a failure, which the builder holds.
// Cost: along an axis of n elements some 16 n steps, of which vectors take several at once, over
// blocks of 16 elements, of 64 such blocks, and so on (Blelloch, "Prefix Sums and Their
// Applications"); a symbolic dimension costs what its greatest value does.
const UOp* CumulativeSum(TensorBuilder& builder, const UOp* x, int64_t axis,
                         const ScanOptions& options = {},
                         std::optional<DType> dtype = std::nullopt);
const UOp* CumulativeProduct(TensorBuilder& builder, const UOp* x, int64_t axis,
                             const ScanOptions& options = {},
                             std::optional<DType> dtype = std::nullopt);
// NaN from the first NaN on.
const UOp* CumulativeMax(TensorBuilder& builder, const UOp* x, int64_t axis,
                         const ScanOptions& options = {});
const UOp* CumulativeMin(TensorBuilder& builder, const UOp* x, int64_t axis,
                         const ScanOptions& options = {});

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_SCAN_H_
