// simplify: constants, identities and ranges together, to one fixpoint.
// Included by the pipeline, other passes and tests. Must not hold rules of its own.
#ifndef SVOD_IR_PASSES_SIMPLIFY_H_
#define SVOD_IR_PASSES_SIMPLIFY_H_

#include "ir/rewrite.h"

namespace svod {

const RuleSet& SimplifyRules();
absl::StatusOr<const UOp*> RunSimplify(const UOp* root, PassContext& context);

}  // namespace svod

#endif  // SVOD_IR_PASSES_SIMPLIFY_H_
