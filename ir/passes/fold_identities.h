// fold-identities: algebra that holds for all values: x + 0, x - x, where with equal branches.
// Included by the pipeline, other passes and tests. Must not look at ranges.
#ifndef SVOD_IR_PASSES_FOLD_IDENTITIES_H_
#define SVOD_IR_PASSES_FOLD_IDENTITIES_H_

#include "ir/rewrite.h"

namespace svod {

// Integers wrap, so rules of ring arithmetic hold for them without conditions. Of floats only those
// are here that keep every bit (but which NaN): x * 1, x - 0.0, x + -0.0; not x + 0.0 or x * 0.
const RuleSet& FoldIdentitiesRules();
absl::StatusOr<const UOp*> RunFoldIdentities(const UOp* root, PassContext& context);

}  // namespace svod

#endif  // SVOD_IR_PASSES_FOLD_IDENTITIES_H_
