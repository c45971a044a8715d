// fold-constants: arithmetic on constants, and the plumbing of vectors around it.
// Included by the pipeline, other passes and tests. Must not look at ranges.
#ifndef SVOD_IR_PASSES_FOLD_CONSTANTS_H_
#define SVOD_IR_PASSES_FOLD_CONSTANTS_H_

#include "ir/rewrite.h"

namespace svod {

// Folds with EvaluateScalar, so that folded and computed values cannot differ.
const RuleSet& FoldConstantsRules();
absl::StatusOr<const UOp*> RunFoldConstants(const UOp* root, PassContext& context);

}  // namespace svod

#endif  // SVOD_IR_PASSES_FOLD_CONSTANTS_H_
