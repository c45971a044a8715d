// Interval arithmetic of one node: its range from those of its sources.
// Included by the range analysis and simplify-ranges. Must not walk graphs.
#ifndef SVOD_IR_RANGE_ARITHMETIC_H_
#define SVOD_IR_RANGE_ARITHMETIC_H_

#include "absl/functional/function_ref.h"
#include "ir/ranges.h"

namespace svod {

using SourceRange = absl::FunctionRef<IntRange(const UOp*)>;

// The values that a dtype can hold: its limits, Full() for u64, floats and void.
IntRange TypeRange(DType dtype);

// Range of `node` when source n has source_range(n); asked only for sources whose range matters, so
// the cost is that of the node and not of the graph.
IntRange RangeOfNode(const UOp* node, SourceRange source_range);

// Whether the result of an add, sub, mul, neg, shl or mulacc of integers may leave its dtype; true
// for every other op.
bool MayWrap(const UOp* node, SourceRange source_range);

// Whether the range of `node` depends on that of source `i`.
bool RangeDependsOn(const UOp* node, int i);

}  // namespace svod

#endif  // SVOD_IR_RANGE_ARITHMETIC_H_
