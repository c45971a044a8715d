// Sorting along an axis: values and positions, all or the first few.
// Included by importers, embedders and the operator table. Must not know scans.
#ifndef SVOD_IR_OPERATORS_SORTING_H_
#define SVOD_IR_OPERATORS_SORTING_H_

#include <cstdint>
#include <utility>

#include "ir/tensor_builder.h"

namespace svod {

// The order: numbers by value, -0.0 equal to 0.0, NaN behind all numbers, as in NumPy; `descending`
// turns it round, so that NaN comes first. Equal elements keep their order, either way.
//
// An element's place is the number of elements before it in that order, which one reduction counts;
// a scatter puts values there. Symbolic dimensions are welcome. Null after a failure, which the
// builder holds.
// Cost: n^2 comparisons along an axis of n elements, without branches.

// The place that each element has in the order, from 0; i32, or i64 if the axis may be that long.
const UOp* SortRank(TensorBuilder& builder, const UOp* x, int64_t axis = -1,
                    bool descending = false);
// The sorted values, and the positions that they had (i64).
std::pair<const UOp*, const UOp*> Sort(TensorBuilder& builder, const UOp* x, int64_t axis = -1,
                                       bool descending = false);
// The first `count` of the order: the largest, or else the smallest, and their positions (i64).
// Errors: a count below 0 or beyond the axis.
std::pair<const UOp*, const UOp*> TopK(TensorBuilder& builder, const UOp* x, int64_t count,
                                       int64_t axis = -1, bool largest = true);

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_SORTING_H_
