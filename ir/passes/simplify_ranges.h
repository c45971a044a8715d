// simplify-ranges: what follows from the smallest and largest values that integers can have.
// Included by the pipeline, other passes and tests. Must not change loops or accesses.
#ifndef SVOD_IR_PASSES_SIMPLIFY_RANGES_H_
#define SVOD_IR_PASSES_SIMPLIFY_RANGES_H_

#include "ir/rewrite.h"

namespace svod {

// Division, remainder, comparison, max, min and casts of integers whose range is known. Division by
// a positive constant of what cannot be negative takes the flooring form, on which most rules are.
// A rule that moves terms asks that no sum or product on the way can wrap.
const RuleSet& SimplifyRangesRules();
absl::StatusOr<const UOp*> RunSimplifyRanges(const UOp* root, PassContext& context);

}  // namespace svod

#endif  // SVOD_IR_PASSES_SIMPLIFY_RANGES_H_
