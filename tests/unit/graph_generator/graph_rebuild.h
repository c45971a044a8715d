// GraphCase: a graph with its data, and smaller or other graphs made from it.
// Included by the shrinker and by tests.
#ifndef SVOD_TESTS_UNIT_GRAPH_GENERATOR_GRAPH_REBUILD_H_
#define SVOD_TESTS_UNIT_GRAPH_GENERATOR_GRAPH_REBUILD_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "tests/unit/graph_generator/graph_generator.h"

namespace svod {

struct GraphCase {
  std::shared_ptr<Context> context;
  Function graph;
  std::vector<TensorValue> params;  // by slot
  VariableList variables;
};

// What is to become of a graph; all nodes are of the old one.
struct RebuildPlan {
  std::vector<const UOp*> results;
  absl::flat_hash_map<const UOp*, const UOp*> nodes;    // one node for another
  absl::flat_hash_map<const UOp*, TensorValue> values;  // a parameter of that value for a node
  absl::flat_hash_set<const UOp*> dropped;              // effects that no AFTER names any more
  // Index constants of the first value become the second; parameters are cropped to their new
  // sizes.
  std::optional<std::pair<int64_t, int64_t>> dimension;
  bool fix_variables = false;  // to the case's values
};

// The graph that the plan describes, of a context of its own, with parameters numbered anew.
// Errors: InvalidArgument where nodes or shapes do not fit any more, or the interpreter refuses.
absl::StatusOr<GraphCase> Rebuild(const GraphCase& from, const RebuildPlan& plan);

// What the interpreter gives for the case, on a copy of its parameters.
absl::StatusOr<std::vector<TensorValue>> Interpret(
    const GraphCase& of, std::vector<TensorValue>* params_after = nullptr);

// The program as text, with the data of its parameters in comments, ready for a report.
std::string DescribeCase(const GraphCase& of);

}  // namespace svod

#endif  // SVOD_TESTS_UNIT_GRAPH_GENERATOR_GRAPH_REBUILD_H_
