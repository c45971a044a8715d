// ExpandSums: the loop action that writes out the terms of short reductions.
// Included by loop_actions.cc and the choice of actions.
#ifndef SVOD_IR_PASSES_EXPAND_SUMS_H_
#define SVOD_IR_PASSES_EXPAND_SUMS_H_

#include "absl/status/statusor.h"
#include "ir/pass.h"

namespace svod {

// Most terms of one REDUCE that are written out.
inline constexpr int64_t kMaxExpandedTerms = 64;

// Each REDUCE that folds over loop `axis` becomes a chain that folds its terms in the order of its
// loops: the same bits without the loops, so that terms and neighbouring results share what they
// load, and conditions on the counters are constants. Errors: InvalidArgument, saying why, when
// there is no such loop or it is not a reduction's, extents are not constant, there are more than
// kMaxExpandedTerms terms, or another loop or an order of accesses is inside.
absl::StatusOr<const UOp*> ExpandSums(const UOp* sink, int64_t axis, PassContext& context);

}  // namespace svod

#endif  // SVOD_IR_PASSES_EXPAND_SUMS_H_
