// RebuildGraph: a graph again, with other nodes in place of some.
// Included by rewrites of tensor graphs. Must not know what they do.
#ifndef SVOD_PLAN_REBUILD_GRAPH_H_
#define SVOD_PLAN_REBUILD_GRAPH_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/program.h"

namespace svod {

// Gives every node to `replace`, sources before users and with sources already replaced, and takes
// what it returns instead. Notes go with nodes. Iterative; enters no kernels.
// Errors: those of `replace`, and of building nodes.
absl::Status RebuildGraph(Function* graph, Context& context,
                          absl::FunctionRef<absl::StatusOr<const UOp*>(const UOp*)> replace);

}  // namespace svod

#endif  // SVOD_PLAN_REBUILD_GRAPH_H_
