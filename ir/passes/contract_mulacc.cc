#include "ir/passes/contract_mulacc.h"

namespace svod {
namespace {

std::vector<RewriteRule> MakeRules() {
  const Pattern product = Binary(Op::kMul, Float("x"), Float("y"));
  return {
      {"contract-add", Binary(Op::kAdd, product, Float("z")),
       [](const Match& m) { return m.Make(Op::kMulAcc, {m["x"], m["y"], m["z"]}); }},
      {"contract-sub", Binary(Op::kSub, product, Float("z")),
       [](const Match& m) {
         return m.Make(Op::kMulAcc, {m["x"], m["y"], m.Make(Op::kNeg, {m["z"]})});
       }},
      {"contract-sub-from", Binary(Op::kSub, Float("z"), product),
       [](const Match& m) {
         return m.Make(Op::kMulAcc, {m.Make(Op::kNeg, {m["x"]}), m["y"], m["z"]});
       }},
  };
}

}  // namespace

const RuleSet& ContractMulaccRules() {
  static const RuleSet& rules = *new RuleSet(MakeRules());
  return rules;
}

absl::StatusOr<const UOp*> RunContractMulacc(const UOp* root, PassContext& context) {
  return RewriteBottomUp(root, ContractMulaccRules(), context);
}

}  // namespace svod
