#include "ir/passes/simplify.h"

#include "ir/passes/fold_constants.h"
#include "ir/passes/fold_identities.h"
#include "ir/passes/simplify_ranges.h"

namespace svod {

const RuleSet& SimplifyRules() {
  static const RuleSet& rules =
      *new RuleSet({&FoldConstantsRules(), &FoldIdentitiesRules(), &SimplifyRangesRules()});
  return rules;
}

absl::StatusOr<const UOp*> RunSimplify(const UOp* root, PassContext& context) {
  return RewriteBottomUp(root, SimplifyRules(), context);
}

}  // namespace svod
