// Constant folding: taking out of a graph what depends on nothing but its constants.
// Included by onnx_model.cc and tests. Must not run anything.
#ifndef SVOD_TOOLS_ONNX_FOLD_CONSTANTS_H_
#define SVOD_TOOLS_ONNX_FOLD_CONSTANTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/onnx/import.h"

namespace svod {

// The part of a graph that is to be run once. `part` has no inputs; its constants are the graph's.
struct FoldedPart {
  ImportedOnnx part;                 // no outputs when there is nothing to fold
  std::vector<std::string> results;  // parameters of the graph that take the part's results
};

// Replaces the largest values of `imported` that depend on constants alone by parameters. Left
// alone is what costs nothing: movement of constants, casts, and values without any constant's data
// below them, such as positions.
// Cost: linear in nodes. Errors: none but those of building nodes.
absl::StatusOr<FoldedPart> TakeConstantPart(ImportedOnnx& imported);

// The graph with `replaced` in place of nodes, and parameters counted anew: inputs first, in the
// order of slots. Constants that are gone are dropped from `imported`, inputs lose their parameter.
absl::Status Rebuild(ImportedOnnx& imported,
                     const absl::flat_hash_map<const UOp*, const UOp*>& replaced);

}  // namespace svod

#endif  // SVOD_TOOLS_ONNX_FOLD_CONSTANTS_H_
