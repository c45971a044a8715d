// OrderKeeper: keeps effects and the order of memory while a pass replaces operands.
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
// loop over i the position i * 0 alone keeps a load inside. When a pass drops such an operand, what
// hung on it has to be spelled out.
class OrderKeeper {
 public:
  using Renewed = absl::flat_hash_map<const UOp*, const UOp*>;

  // `root`: the kernel before the pass.
  OrderKeeper(const UOp* root, Context& context) : root_(root), context_(context) {}

  // `rebuilt` is `old` with new sources; `renewed` maps nodes of the old kernel to new ones (what
  // is under `old` is mapped). Gives `rebuilt`, or the same access of AFTER(state, what it would
  // have lost): earlier accesses and effects, or loops around it. To be asked for every node that
  // changes, sources before users.
  // Errors: Linearize's, for a kernel that cannot be put in order.
  // Cost: the size of what is under the access, up to earlier accesses.
  absl::StatusOr<const UOp*> Keep(const UOp* old, const UOp* rebuilt, const Renewed& renewed);

  // Whether every effect of the old kernel is performed in the new one. A REDUCE cannot list the
  // effects of its loop, so one that no longer reads what they write loses them.
  bool AllPerformed(const UOp* result, const Renewed& renewed) const;

 private:
  using NodeSet = absl::flat_hash_set<const UOp*>;

  absl::Status Prepare();
  absl::StatusOr<const UOp*> KeepAccess(const UOp* old, const UOp* rebuilt, const Renewed& renewed);
  NodeSet LoopsAround(const UOp* access) const;
  bool IsIn(const UOp* node, const NodeSet& loops) const;

  const UOp* root_;
  Context& context_;
  std::optional<LinearKernel> linear_;
  absl::flat_hash_map<const UOp*, const UOp*> listed_in_;  // effect -> the END that lists it
  NodeSet ordered_reduces_;                                // those that read memory that changes
  // The loop (null: none) of effects, accesses and these reduces, old and new, as the old RANGE.
  absl::flat_hash_map<const UOp*, const UOp*> home_;
  std::vector<const UOp*> effects_;  // of the old kernel
};

}  // namespace svod

#endif  // SVOD_IR_ORDER_KEEPER_H_
