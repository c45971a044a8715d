// ModelMaker: ONNX models for tests, a line a node.
#ifndef SVOD_TESTS_UNIT_ONNX_MODEL_MAKER_H_
#define SVOD_TESTS_UNIT_ONNX_MODEL_MAKER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "onnx.pb.h"
#include "tools/onnx/import.h"
#include "tools/onnx/onnx_model.h"

namespace svod {

class ModelMaker {
 public:
  explicit ModelMaker(int64_t opset = 17);

  // Dimensions are numbers or names: Input("x", "N 3"). "?" has neither; "*": no shape at all.
  ModelMaker& Input(absl::string_view name, absl::string_view dims,
                    int type = onnx::TensorProto::FLOAT);
  ModelMaker& Output(absl::string_view name);
  ModelMaker& Floats(absl::string_view name, std::vector<float> values, std::vector<int64_t> dims);
  ModelMaker& Ints(absl::string_view name, std::vector<int64_t> values);
  // Names apart by blanks; "-" is an input that is left out.
  onnx::NodeProto& Node(absl::string_view op, absl::string_view inputs, absl::string_view outputs);

  onnx::GraphProto& graph() { return *model_->mutable_graph(); }
  onnx::ModelProto& model() { return *model_; }
  std::shared_ptr<const onnx::ModelProto> Proto() const { return model_; }
  std::string Bytes() const { return model_->SerializeAsString(); }

 private:
  std::shared_ptr<onnx::ModelProto> model_;
};

void SetInt(onnx::NodeProto& node, absl::string_view name, int64_t value);
void SetFloat(onnx::NodeProto& node, absl::string_view name, float value);
void SetString(onnx::NodeProto& node, absl::string_view name, absl::string_view value);
void SetInts(onnx::NodeProto& node, absl::string_view name, std::vector<int64_t> values);
onnx::GraphProto& SetGraph(onnx::NodeProto& node, absl::string_view name);
onnx::NodeProto& AddNode(onnx::GraphProto& graph, absl::string_view op, absl::string_view inputs,
                         absl::string_view outputs);
void AddOutput(onnx::GraphProto& graph, absl::string_view name);
void AddInput(onnx::GraphProto& graph, absl::string_view name);

ConstantTensor FloatTensor(std::vector<int64_t> shape, std::vector<float> values);
// sin(step), sin(2 * step), ...
ConstantTensor Waves(std::vector<int64_t> shape, float step);
ConstantTensor IntTensor(std::vector<int64_t> shape, std::vector<int64_t> values);
std::vector<float> FloatsOf(const ConstantTensor& tensor);
std::vector<int64_t> IntsOf(const ConstantTensor& tensor);

// A model on the process's kernel cache.
absl::StatusOr<std::unique_ptr<OnnxModel>> Open(const ModelMaker& maker,
                                                OnnxModelOptions options = {});
// The model's outputs; none and a failure of the test when it cannot be run.
std::vector<OnnxTensor> RunOn(const ModelMaker& maker, const std::vector<OnnxTensor>& inputs,
                              OnnxModelOptions options = {});
// The numbers of the first output.
std::vector<float> FloatsOn(const ModelMaker& maker, const std::vector<OnnxTensor>& inputs,
                            OnnxModelOptions options = {});
// What importing says.
absl::Status ImportError(const ModelMaker& maker, const OnnxImportOptions& options = {});

}  // namespace svod

#endif  // SVOD_TESTS_UNIT_ONNX_MODEL_MAKER_H_
