#include "plan/levels.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

void AddEdge(DependencyGraph& graph, size_t from, size_t to) {
  ++graph.in_degree[to];
  graph.successors[from].push_back(to);
}

absl::Status ResolveUnique(absl::Span<const OpNode> ops,
                           const absl::flat_hash_map<uint64_t, size_t>& index_of,
                           DependencyGraph& graph) {
  for (size_t i = 0; i < ops.size(); ++i) {
    for (uint64_t dependency : ops[i].dependencies) {
      auto it = index_of.find(dependency);
      if (it == index_of.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("plan: op ", ops[i].id, " depends on unknown op id ", dependency));
      }
      AddEdge(graph, it->second, i);
    }
  }
  return absl::OkStatus();
}

absl::Status ResolveDuplicates(absl::Span<const OpNode> ops, DependencyGraph& graph) {
  absl::flat_hash_map<uint64_t, size_t> last_seen;
  for (size_t i = 0; i < ops.size(); ++i) {
    for (uint64_t dependency : ops[i].dependencies) {
      auto it = last_seen.find(dependency);
      if (it == last_seen.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("plan: op ", ops[i].id, " depends on unknown earlier op id ", dependency,
                         " (ids repeat in this plan, so a dependency names the most recent "
                         "earlier op)"));
      }
      AddEdge(graph, it->second, i);
    }
    // After its dependencies, so that an op's own id means the instance before it.
    last_seen[ops[i].id] = i;
  }
  return absl::OkStatus();
}

absl::Status CycleError(const DependencyGraph& graph, const std::vector<size_t>& left) {
  std::vector<uint64_t> blocked;
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i] > 0) blocked.push_back(graph.ids[i]);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "plan: cycle in the dependencies of ops, blocked ids [", absl::StrJoin(blocked, ", "), "]"));
}

}  // namespace

absl::StatusOr<DependencyGraph> BuildDependencyGraph(
    absl::Span<const OpNode> ops, absl::Span<const std::vector<size_t>> instance_dependencies) {
  if (!instance_dependencies.empty() && instance_dependencies.size() != ops.size()) {
    return absl::InvalidArgumentError(absl::StrCat("plan: table of instance dependencies, got ",
                                                   instance_dependencies.size(), " rows, expected ",
                                                   ops.size()));
  }
  DependencyGraph graph;
  graph.in_degree.assign(ops.size(), 0);
  graph.successors.resize(ops.size());
  absl::flat_hash_map<uint64_t, size_t> index_of;
  index_of.reserve(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    graph.ids.push_back(ops[i].id);
    index_of.emplace(ops[i].id, i);
  }
  if (index_of.size() == ops.size()) {
    SVOD_RETURN_IF_ERROR(ResolveUnique(ops, index_of, graph));
  } else {
    SVOD_RETURN_IF_ERROR(ResolveDuplicates(ops, graph));
  }
  for (size_t i = 0; i < instance_dependencies.size(); ++i) {
    for (size_t dependency : instance_dependencies[i]) {
      if (dependency >= ops.size()) {
        return absl::InvalidArgumentError(absl::StrCat("plan: op ", ops[i].id,
                                                       " depends on op index ", dependency,
                                                       ", expected less than ", ops.size()));
      }
      if (dependency == i) {
        return absl::InvalidArgumentError(
            absl::StrCat("plan: op ", ops[i].id, " depends on itself by op index ", i));
      }
      AddEdge(graph, dependency, i);
    }
  }
  return graph;
}

absl::StatusOr<std::vector<size_t>> ComputeOrder(const DependencyGraph& graph) {
  std::vector<size_t> left = graph.in_degree;
  std::priority_queue<size_t, std::vector<size_t>, std::greater<size_t>> ready;
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i] == 0) ready.push(i);
  }
  std::vector<size_t> order;
  order.reserve(left.size());
  while (!ready.empty()) {
    size_t op = ready.top();
    ready.pop();
    order.push_back(op);
    for (size_t successor : graph.successors[op]) {
      if (--left[successor] == 0) ready.push(successor);
    }
  }
  if (order.size() != left.size()) return CycleError(graph, left);
  return order;
}

absl::StatusOr<std::vector<std::vector<size_t>>> ComputeLevels(const DependencyGraph& graph) {
  std::vector<size_t> left = graph.in_degree;
  std::vector<std::vector<size_t>> levels;
  std::vector<size_t> level;
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i] == 0) level.push_back(i);
  }
  size_t num_visited = 0;
  while (!level.empty()) {
    num_visited += level.size();
    std::vector<size_t> next;
    for (size_t op : level) {
      for (size_t successor : graph.successors[op]) {
        if (--left[successor] == 0) next.push_back(successor);
      }
    }
    std::sort(next.begin(), next.end());
    levels.push_back(std::move(level));
    level = std::move(next);
  }
  if (num_visited != left.size()) return CycleError(graph, left);
  return levels;
}

}  // namespace svod
