#include "plan/rebuild_graph.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/status_macros.h"
#include "plan/graph_order.h"

namespace svod {

absl::Status RebuildGraph(Function* graph, Context& context,
                          absl::FunctionRef<absl::StatusOr<const UOp*>(const UOp*)> replace) {
  absl::flat_hash_map<const UOp*, const UOp*> copies;
  std::vector<const UOp*> sources;
  for (const UOp* node : GraphToposort(graph->root)) {
    sources.clear();
    bool is_same = true;
    for (const UOp* source : node->sources()) {
      auto copy = copies.find(source);
      sources.push_back(copy == copies.end() ? source : copy->second);
      is_same = is_same && sources.back() == source;
    }
    const UOp* copy = node;
    if (!is_same) {
      SVOD_ASSIGN_OR_RETURN(copy,
                            context.Make(node->op(), node->dtype(), sources, node->argument()));
    }
    SVOD_ASSIGN_OR_RETURN(copy, replace(copy));
    copies[node] = copy;
    auto note = graph->notes.find(node);
    if (copy != node && note != graph->notes.end()) {
      NodeNote moved = note->second;
      graph->notes.try_emplace(copy, std::move(moved));
    }
  }
  graph->root = copies.at(graph->root);
  return absl::OkStatus();
}

}  // namespace svod
