// OnnxModel: a model from a file that runs on tensors: the way in for embedders and the tool.
// Included by embedders, tools and tests. Must not know protobuf or print.
#ifndef SVOD_TOOLS_ONNX_ONNX_MODEL_H_
#define SVOD_TOOLS_ONNX_ONNX_MODEL_H_

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/executor.h"
#include "plan/prepare.h"
#include "tools/onnx/import.h"

namespace svod {

struct FoldedPart;

struct OnnxModelOptions {
  // Bounds of symbolic dimensions by name: one plan serves all sizes in them. Dimensions without
  // bounds have those of the first run, and others get a plan of their own.
  absl::flat_hash_map<std::string, DimBounds> dims;
  // With a quick_provider, what is made of constants alone, which runs once, is compiled by it
  // where that pays.
  PrepareOptions prepare;
};

// An input or output by name; "" in a list of inputs: the next one in the model's order.
struct OnnxTensor {
  std::string name;
  ConstantTensor tensor;
};

// What the file says of an input.
struct OnnxInputInfo {
  struct Dim {
    int64_t size = -1;  // -1: symbolic
    std::string name;   // of a symbolic one, as OnnxModelOptions::dims has it
  };
  std::string name;
  absl::StatusOr<DType> dtype;  // or why it is not supported
  std::vector<Dim> dims;        // none as well where the file gives no shape
  std::string type;             // "f32[N, 3, 224, 224]"
};

// A plan for inputs of some shapes, and how the model's inputs and outputs are found in it.
struct OnnxPlan {
  ImportedOnnx imported;
  ExecutionPlan plan;
};

// One thread at a time; different models run concurrently.
class OnnxModel {
 public:
  // Reads the file; nothing is prepared before the first run or Prepare. Kernels come from
  // `provider`. Errors: those of ReadModel.
  static absl::StatusOr<std::unique_ptr<OnnxModel>> Load(const std::string& path,
                                                         KernelProvider provider,
                                                         OnnxModelOptions options = {});
  // The same for bytes; `folder` holds external data.
  static absl::StatusOr<std::unique_ptr<OnnxModel>> Parse(absl::string_view bytes,
                                                          absl::string_view name,
                                                          const std::string& folder,
                                                          KernelProvider provider,
                                                          OnnxModelOptions options = {});

  std::vector<OnnxInputInfo> inputs() const;
  const onnx::ModelProto& proto() const { return *proto_; }

  // The graph for inputs of these shapes; where none are given, for the bounds of dimensions.
  absl::StatusOr<ImportedOnnx> Import(absl::Span<const OnnxTensor> inputs);
  // The plan that inputs of these shapes, and of these values where shapes depend on values, run
  // on: made now, with weights bound, unless there is one. Lives until 64 others were made.
  // Errors: InvalidArgument for inputs that the model does not have, lacks, or has with another
  // dtype or shape; those of ImportOnnx and Prepare.
  absl::StatusOr<OnnxPlan*> Prepare(absl::Span<const OnnxTensor> inputs);
  // Prepares if need be, runs, and gives copies of the outputs in the model's order.
  // Errors: Prepare's and those of Execute.
  absl::StatusOr<std::vector<OnnxTensor>> Run(absl::Span<const OnnxTensor> inputs,
                                              const ExecuteOptions& execute = {});
  // The two halves of Run around Execute: binds inputs, which must stay until it is over, and sets
  // variables; copies outputs.
  absl::Status Bind(OnnxPlan& plan, absl::Span<const OnnxTensor> inputs);
  static absl::StatusOr<std::vector<OnnxTensor>> CopyOutputs(const OnnxPlan& plan);

 private:
  OnnxModel(std::shared_ptr<const onnx::ModelProto> proto, std::string folder,
            KernelProvider provider, OnnxModelOptions options);
  absl::StatusOr<std::vector<OnnxTensor>> MatchInputs(absl::Span<const OnnxTensor> inputs) const;
  absl::StatusOr<ImportedOnnx> ImportFor(absl::Span<const OnnxTensor> matched);
  absl::Status RewriteConvolutions(ImportedOnnx& imported) const;
  absl::StatusOr<ExecutionPlan> PrepareGraph(const ImportedOnnx& imported,
                                             int64_t expected_runs) const;
  absl::Status Fold(const FoldedPart& folded, ImportedOnnx& imported) const;
  std::string KeyOf(absl::Span<const OnnxTensor> inputs) const;

  std::shared_ptr<const onnx::ModelProto> proto_;
  const std::string folder_;
  const KernelProvider provider_;
  const OnnxModelOptions options_;
  std::set<std::string> fixed_;  // inputs whose values decide shapes
  std::vector<std::pair<std::string, std::unique_ptr<OnnxPlan>>> plans_;
};

}  // namespace svod

#endif  // SVOD_TOOLS_ONNX_ONNX_MODEL_H_
