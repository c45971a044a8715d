// CopyNodes: nodes again with others in place of some below them.
// Included by loop actions.
#ifndef SVOD_IR_PASSES_COPY_NODES_H_
#define SVOD_IR_PASSES_COPY_NODES_H_

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ir/uop.h"

namespace svod {

using Replaced = absl::flat_hash_map<const UOp*, const UOp*>;

// `root` with each node that is a key of `replaced` exchanged for its value; what changes above
// them is added to `replaced`. What is below a key is not looked at. Errors: Context::Make's.
absl::StatusOr<const UOp*> CopyNodes(const UOp* root, Replaced& replaced, Context& context);

}  // namespace svod

#endif  // SVOD_IR_PASSES_COPY_NODES_H_
