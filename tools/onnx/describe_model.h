// What an ONNX model is and needs, as text.
// Included by the tool and tests. Must not prepare or run anything.
#ifndef SVOD_TOOLS_ONNX_DESCRIBE_MODEL_H_
#define SVOD_TOOLS_ONNX_DESCRIBE_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "tools/onnx/import.h"

namespace svod {

// Opsets, inputs, outputs, number of each operator, parameters, arithmetic and memory of one run,
// and what stands in the way of running it. Symbolic dimensions are at their most; those without
// bounds are taken to be 1, and the text says so. Errors: those of ReadModel.
absl::StatusOr<std::string> DescribeOnnxModel(const std::string& path, OnnxImportOptions options);

// Float operations of a graph of constant shapes: one for each element of an elementwise result,
// one for each element that is reduced. A multiplication and an addition are two.
double CountFlops(const Function& graph, Context& context);

}  // namespace svod

#endif  // SVOD_TOOLS_ONNX_DESCRIBE_MODEL_H_
