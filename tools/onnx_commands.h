// The commands on ONNX models: what run, bench, plan and info do with a file FILE.onnx.
// Included by commands.cc. A build without protobuf has onnx_absent.cc in its place.
#ifndef SVOD_TOOLS_ONNX_COMMANDS_H_
#define SVOD_TOOLS_ONNX_COMMANDS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/session.h"

namespace svod {

// By its name.
bool IsOnnxFile(absl::string_view path);

// Bounds of a symbolic dimension.
struct NamedBounds {
  std::string name;
  int64_t min = 1, max = 1, multiple = 1;
};

// Loads, prepares and runs a model; `request.variables` has no meaning. Inputs that are not given
// are random where `random_inputs` says so. Outputs are in the model's order.
// Errors: those of OnnxModel; Unimplemented in a build without ONNX.
absl::StatusOr<RunResult> RunOnnx(Session& session, const std::string& path,
                                  const RunRequest& request, const std::vector<NamedBounds>& dims,
                                  bool random_inputs);
// The schedule, as Session::DescribePlan. Shapes come from `dims` or from inputs.
absl::StatusOr<std::string> PlanOnnx(Session& session, const std::string& path,
                                     const std::vector<NamedTensor>& inputs,
                                     const std::vector<NamedBounds>& dims);
absl::StatusOr<std::string> DescribeOnnx(const std::string& path,
                                         const std::vector<NamedBounds>& dims);

}  // namespace svod

#endif  // SVOD_TOOLS_ONNX_COMMANDS_H_
