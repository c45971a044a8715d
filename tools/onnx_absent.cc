// The commands on ONNX models in a build without protobuf or ONNX's schema.
#include "absl/strings/match.h"
#include "tools/onnx_commands.h"

namespace svod {
namespace {

absl::Status Absent() {
  return absl::UnimplementedError(
      "this build has no ONNX: install libonnx-dev, libprotobuf-dev and protobuf-compiler, and "
      "configure again");
}

}  // namespace

bool IsOnnxFile(absl::string_view path) { return absl::EndsWith(path, ".onnx"); }

absl::StatusOr<RunResult> RunOnnx(Session&, const std::string&, const RunRequest&,
                                  const std::vector<NamedBounds>&, bool) {
  return Absent();
}

absl::StatusOr<std::string> PlanOnnx(Session&, const std::string&, const std::vector<NamedTensor>&,
                                     const std::vector<NamedBounds>&) {
  return Absent();
}

absl::StatusOr<std::string> DescribeOnnx(const std::string&, const std::vector<NamedBounds>&) {
  return Absent();
}

}  // namespace svod
