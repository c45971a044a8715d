// From an ONNX model to a tensor graph.
// Included by onnx_model.h, tools and tests. Must not run anything or know protobuf.
#ifndef SVOD_TOOLS_ONNX_IMPORT_H_
#define SVOD_TOOLS_ONNX_IMPORT_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ir/program.h"
#include "ir/shape.h"
#include "tools/onnx/constant_tensor.h"

namespace onnx {
class ModelProto;
}

namespace svod {

// The values that a symbolic dimension may take: from min to max, both inclusive, multiples of
// `multiple` as both are. One value makes it a constant.
struct DimBounds {
  int64_t min = 1;
  int64_t max = 1;
  int64_t multiple = 1;
};

struct OnnxImportOptions {
  // By the names that the model gives to dimensions; an unnamed one is called INPUT_AXIS ("x_0").
  absl::flat_hash_map<std::string, DimBounds> dims;
  // Shapes of inputs, for the dimensions and ranks that neither the model nor `dims` gives.
  absl::flat_hash_map<std::string, std::vector<int64_t>> input_shapes;
  // Inputs that always have this value: shapes may depend on it.
  absl::flat_hash_map<std::string, ConstantTensor> fixed_inputs;
  // Ask for the values of inputs of one bool or integer that an If depends on, rather than working
  // out both branches: by a failure that OnnxImportNeeds explains.
  bool fixes_settings = false;
  std::string folder;  // of files with external data
};

struct OnnxValueInfo {
  std::string name;
  DType dtype;
  Shape shape;        // of constants and variables; nodes of the module's context
  std::string param;  // an input's parameter in the graph; "" where nothing depends on it
};

struct ImportedOnnx {
  Module module;                       // one graph
  std::vector<OnnxValueInfo> inputs;   // in the model's order, without fixed ones
  std::vector<OnnxValueInfo> outputs;  // in the order of the graph's results
  // What the graph's other parameters must be bound to, by name.
  std::vector<std::pair<std::string, ConstantTensor>> constants;
};

// Where a model can only be imported if the value of an input is known, that input's name.
struct OnnxImportNeeds {
  std::vector<std::string> inputs;
};

// Builds the graph of the model's tensors: one operator after the other by the table of
// onnx_operators.h, with functions and subgraphs expanded in place.
// Errors: InvalidArgument for a model that breaks the format's rules, Unimplemented if all that is
// wrong is missing here. The message has one line for each node that cannot be imported, with its
// name, operator and version. `needs`, if not null, says which inputs' values it wanted.
absl::StatusOr<ImportedOnnx> ImportOnnx(std::shared_ptr<const onnx::ModelProto> model,
                                        const OnnxImportOptions& options,
                                        OnnxImportNeeds* needs = nullptr);

}  // namespace svod

#endif  // SVOD_TOOLS_ONNX_IMPORT_H_
