// SplitLoop, SwapLoops and MergeLoops: loop actions that change which loops there are, and nothing
// inside them. Included by loop_actions.cc only.
#ifndef SVOD_IR_PASSES_REARRANGE_LOOPS_H_
#define SVOD_IR_PASSES_REARRANGE_LOOPS_H_

#include "absl/status/statusor.h"
#include "ir/pass.h"

namespace svod {

// Loop `axis` becomes a loop over pieces, which keeps the axis, and a loop of `amount` iterations
// in it, whose axis is the next free one. When the amount does not divide the extent, the last
// piece begins earlier and repeats iterations of the one before. Errors: InvalidArgument, saying
// why, for no such loop, an extent that may be below the amount, and iterations that may not be
// repeated.
absl::StatusOr<const UOp*> SplitLoop(const UOp* sink, int64_t axis, int64_t amount,
                                     PassContext& context);

// Loop `axis` and the one loop directly inside it change places. Errors: InvalidArgument, saying
// why, when there is more than a loop of stores inside it, or memory would be reached in an order
// that matters.
absl::StatusOr<const UOp*> SwapLoops(const UOp* sink, int64_t axis, PassContext& context);

// Loop `axis` and the one loop directly inside it become one loop, with the axis of the outer one;
// so do two counters that reductions fold over one right after the other.
// Errors: InvalidArgument, saying why, unless every access that moves with them moves as if they
// were one: by as much with the outer counter as with all iterations of the inner one.
absl::StatusOr<const UOp*> MergeLoops(const UOp* sink, int64_t axis, PassContext& context);

}  // namespace svod

#endif  // SVOD_IR_PASSES_REARRANGE_LOOPS_H_
