// OrderKeeper: keeps the order of memory while a pass replaces the operands of accesses.
// Included by the rewrite engine. Must not know rules.
#ifndef SVOD_IR_ORDER_KEEPER_H_
#define SVOD_IR_ORDER_KEEPER_H_

#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "ir/linearize.h"
#include "ir/uop.h"

namespace svod {

// Accesses of memory that changes are ordered by what they depend on, be it an AFTER or an operand:
// in `v = load y[0]; store y[0], v * 0` the product alone keeps the store behind the load, and in a
// loop over i the position i * 0 alone keeps a load inside. When a pass drops such an operand, the
// dependence has to be spelled out.
class OrderKeeper {
 public:
  // `root`: the kernel before the pass.
  OrderKeeper(const UOp* root, Context& context) : root_(root), context_(context) {}

  // `rebuilt` is the LOAD or STORE `old` with new sources; `renewed` maps nodes of the old kernel
  // to new ones (what is under `old` is mapped). Gives `rebuilt`, or the same access of
  // AFTER(state, what it would have lost). Errors: Linearize's, for a kernel that cannot be put in
  // order. Cost: the size of the expressions under the access, up to other accesses.
  absl::StatusOr<const UOp*> Keep(const UOp* old, const UOp* rebuilt,
                                  const absl::flat_hash_map<const UOp*, const UOp*>& renewed);

 private:
  absl::Status Prepare();
  std::vector<const UOp*> Dependences(const UOp* access) const;

  const UOp* root_;
  Context& context_;
  std::optional<LinearKernel> linear_;
  absl::flat_hash_map<const UOp*, const UOp*> listed_in_;  // effect -> the END that lists it
  absl::flat_hash_set<const UOp*> ordered_reduces_;        // those that read memory that changes
};

}  // namespace svod

#endif  // SVOD_IR_ORDER_KEEPER_H_
