// contract-mulacc: float x * y + z becomes one fused operation.
// Included by the pipeline and tests. Not part of the default pipeline: it changes bits.
#ifndef SVOD_IR_PASSES_CONTRACT_MULACC_H_
#define SVOD_IR_PASSES_CONTRACT_MULACC_H_

#include "ir/rewrite.h"

namespace svod {

const RuleSet& ContractMulaccRules();
// The one pass that may change values: a product that it takes up is no longer rounded by itself.
absl::StatusOr<const UOp*> RunContractMulacc(const UOp* root, PassContext& context);

}  // namespace svod

#endif  // SVOD_IR_PASSES_CONTRACT_MULACC_H_
