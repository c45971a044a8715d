#include "ir/passes/copy_nodes.h"

#include <vector>

#include "ir/status_macros.h"

namespace svod {

absl::StatusOr<const UOp*> CopyNodes(const UOp* root, Replaced& replaced, Context& context) {
  for (const UOp* node : Toposort(root)) {
    if (replaced.contains(node)) continue;
    std::vector<const UOp*> sources;
    for (const UOp* source : node->sources()) {
      auto it = replaced.find(source);
      sources.push_back(it == replaced.end() ? source : it->second);
    }
    if (sources == node->sources()) continue;
    SVOD_ASSIGN_OR_RETURN(replaced[node],
                          context.Make(node->op(), node->dtype(), sources, node->argument()));
  }
  auto it = replaced.find(root);
  return it == replaced.end() ? root : it->second;
}

}  // namespace svod
