// Operators that read and write at positions that tensors hold.
// Included by importers, embedders and the operator table. Must not know reductions.
#ifndef SVOD_IR_OPERATORS_INDEXING_H_
#define SVOD_IR_OPERATORS_INDEXING_H_

#include <cstdint>

#include "ir/tensor_builder.h"

namespace svod {

// Positions are integers of any dtype; -1 is the last element, -2 the one before. What is read
// outside is 0, what is written outside is left out. Dimensions may be symbolic. Null after a
// failure, which the builder holds.

// Parts of x along `axis`: dimension `axis` of x gives way to the dimensions of `positions`.
const UOp* Take(TensorBuilder& builder, const UOp* x, const UOp* positions, int64_t axis);
// Elements of x: other dimensions of x and positions than `axis` broadcast.
const UOp* TakeAlongAxis(TensorBuilder& builder, const UOp* x, const UOp* positions, int64_t axis);
// Rows of table [N, D...] by number: [ids..., D...].
const UOp* Embedding(TensorBuilder& builder, const UOp* table, const UOp* ids);
// 1 at the position that ids give along a new axis of `depth`, else 0; only 0 outside.
const UOp* OneHot(TensorBuilder& builder, const UOp* ids, const UOp* depth, DType dtype,
                  int64_t axis = -1);
// x [D1, ..., DK, R...] at positions [P..., K]: [P..., R...].
const UOp* GatherNd(TensorBuilder& builder, const UOp* x, const UOp* positions);
// x after updates [P..., R...] went to positions [P..., K], in row-major order.
const UOp* ScatterNd(TensorBuilder& builder, const UOp* x, const UOp* positions, const UOp* updates,
                     ScatterKind kind = ScatterKind::kSet);
// x after updates went to positions along `axis`, both of one shape, no larger than x elsewhere.
const UOp* ScatterElements(TensorBuilder& builder, const UOp* x, const UOp* positions,
                           const UOp* updates, int64_t axis, ScatterKind kind = ScatterKind::kSet);

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_INDEXING_H_
