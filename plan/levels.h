// Levels: the dependency graph between the ops of a plan, its flat order and its waves.
// Included by the plan builder and tests. Knows ids and indices only.
#ifndef SVOD_PLAN_LEVELS_H_
#define SVOD_PLAN_LEVELS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace svod {

// What the graph needs to know of an op: its id and the ids it comes after.
struct OpNode {
  uint64_t id = 0;
  absl::Span<const uint64_t> dependencies;
};

struct DependencyGraph {
  std::vector<uint64_t> ids;
  std::vector<size_t> in_degree;                // a dependency listed twice counts twice
  std::vector<std::vector<size_t>> successors;  // and stands here twice
};

// Resolves dependencies. While all ids differ, an id names its op wherever that stands. As soon as
// one id repeats, every dependency names the most recent earlier op of that id, an op's own id the
// instance before it: so the instances of an unrolled loop chain.
// `instance_dependencies[i]` adds op indices that op i comes after; an empty table means none.
// Errors: InvalidArgument for a table of another length, ids and indices of no op, and an op index
// that depends on itself.
absl::StatusOr<DependencyGraph> BuildDependencyGraph(
    absl::Span<const OpNode> ops, absl::Span<const std::vector<size_t>> instance_dependencies);

// Every op after its dependencies, the lowest ready index first.
// Errors: InvalidArgument "cycle ..." with the ids of all ops that cannot run.
absl::StatusOr<std::vector<size_t>> ComputeOrder(const DependencyGraph& graph);

// Waves: level(op) = 1 + the largest level of its dependencies; ascending indices in a level.
// Errors: as ComputeOrder.
absl::StatusOr<std::vector<std::vector<size_t>>> ComputeLevels(const DependencyGraph& graph);

}  // namespace svod

#endif  // SVOD_PLAN_LEVELS_H_
