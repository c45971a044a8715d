#include "tests/unit/onnx/model_maker.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "jit/kernel_cache.h"

namespace svod {
namespace {

template <typename T>
ConstantTensor MakeTensor(DType dtype, std::vector<int64_t> shape, std::vector<T> values) {
  auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes->data(), values.data(), bytes->size());
  return {dtype, std::move(shape), *bytes, bytes};
}

template <typename T>
std::vector<T> ValuesOf(const ConstantTensor& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

onnx::AttributeProto& AddAttribute(onnx::NodeProto& node, absl::string_view name,
                                   onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(std::string(name));
  attribute.set_type(type);
  return attribute;
}

}  // namespace

ModelMaker::ModelMaker(int64_t opset) : model_(std::make_shared<onnx::ModelProto>()) {
  model_->set_ir_version(8);
  model_->add_opset_import()->set_version(opset);
  model_->mutable_graph()->set_name("test");
}

ModelMaker& ModelMaker::Input(absl::string_view name, absl::string_view dims, int type) {
  onnx::ValueInfoProto& info = *graph().add_input();
  info.set_name(std::string(name));
  onnx::TypeProto::Tensor& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  if (dims == "*") return *this;
  tensor.mutable_shape();
  for (absl::string_view dim : absl::StrSplit(dims, ' ', absl::SkipEmpty())) {
    onnx::TensorShapeProto::Dimension& dimension = *tensor.mutable_shape()->add_dim();
    int64_t size;
    if (absl::SimpleAtoi(dim, &size)) {
      dimension.set_dim_value(size);
    } else if (dim != "?") {
      dimension.set_dim_param(std::string(dim));
    }
  }
  return *this;
}

ModelMaker& ModelMaker::Output(absl::string_view name) {
  AddOutput(graph(), name);
  return *this;
}

ModelMaker& ModelMaker::Floats(absl::string_view name, std::vector<float> values,
                               std::vector<int64_t> dims) {
  onnx::TensorProto& tensor = *graph().add_initializer();
  tensor.set_name(std::string(name));
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (int64_t dim : dims) tensor.add_dims(dim);
  for (float value : values) tensor.add_float_data(value);
  return *this;
}

ModelMaker& ModelMaker::Ints(absl::string_view name, std::vector<int64_t> values) {
  onnx::TensorProto& tensor = *graph().add_initializer();
  tensor.set_name(std::string(name));
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  tensor.set_raw_data(
      std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)));
  return *this;
}

onnx::NodeProto& ModelMaker::Node(absl::string_view op, absl::string_view inputs,
                                  absl::string_view outputs) {
  return AddNode(graph(), op, inputs, outputs);
}

onnx::NodeProto& AddNode(onnx::GraphProto& graph, absl::string_view op, absl::string_view inputs,
                         absl::string_view outputs) {
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(std::string(op));
  for (absl::string_view name : absl::StrSplit(inputs, ' ', absl::SkipEmpty())) {
    node.add_input(name == "-" ? "" : std::string(name));
  }
  for (absl::string_view name : absl::StrSplit(outputs, ' ', absl::SkipEmpty())) {
    node.add_output(std::string(name));
  }
  return node;
}

void AddOutput(onnx::GraphProto& graph, absl::string_view name) {
  graph.add_output()->set_name(std::string(name));
}

void AddInput(onnx::GraphProto& graph, absl::string_view name) {
  graph.add_input()->set_name(std::string(name));
}

void SetInt(onnx::NodeProto& node, absl::string_view name, int64_t value) {
  AddAttribute(node, name, onnx::AttributeProto::INT).set_i(value);
}

void SetFloat(onnx::NodeProto& node, absl::string_view name, float value) {
  AddAttribute(node, name, onnx::AttributeProto::FLOAT).set_f(value);
}

void SetString(onnx::NodeProto& node, absl::string_view name, absl::string_view value) {
  AddAttribute(node, name, onnx::AttributeProto::STRING).set_s(std::string(value));
}

void SetInts(onnx::NodeProto& node, absl::string_view name, std::vector<int64_t> values) {
  onnx::AttributeProto& attribute = AddAttribute(node, name, onnx::AttributeProto::INTS);
  for (int64_t value : values) attribute.add_ints(value);
}

onnx::GraphProto& SetGraph(onnx::NodeProto& node, absl::string_view name) {
  return *AddAttribute(node, name, onnx::AttributeProto::GRAPH).mutable_g();
}

ConstantTensor FloatTensor(std::vector<int64_t> shape, std::vector<float> values) {
  return MakeTensor(Scalar::kF32, std::move(shape), std::move(values));
}
ConstantTensor Waves(std::vector<int64_t> shape, float step) {
  int64_t count = 1;
  for (int64_t dimension : shape) count *= dimension;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(std::sin(step * static_cast<float>(i + 1)));
  }
  return FloatTensor(std::move(shape), std::move(values));
}

ConstantTensor IntTensor(std::vector<int64_t> shape, std::vector<int64_t> values) {
  return MakeTensor(Scalar::kI64, std::move(shape), std::move(values));
}
std::vector<float> FloatsOf(const ConstantTensor& tensor) { return ValuesOf<float>(tensor); }
std::vector<int64_t> IntsOf(const ConstantTensor& tensor) { return ValuesOf<int64_t>(tensor); }

absl::StatusOr<std::unique_ptr<OnnxModel>> Open(const ModelMaker& maker, OnnxModelOptions options) {
  auto cache = KernelCache::Default();
  if (!cache.ok()) return cache.status();
  return OnnxModel::Parse(
      maker.Bytes(), "test.onnx", "",
      [cache = *cache](const UOp* sink) { return cache->GetOrCompile(sink); }, std::move(options));
}

std::vector<OnnxTensor> RunOn(const ModelMaker& maker, const std::vector<OnnxTensor>& inputs,
                              OnnxModelOptions options) {
  auto model = Open(maker, std::move(options));
  if (!model.ok()) {
    ADD_FAILURE() << model.status();
    return {};
  }
  auto outputs = (*model)->Run(inputs);
  if (!outputs.ok()) {
    ADD_FAILURE() << outputs.status();
    return {};
  }
  return *outputs;
}

std::vector<float> FloatsOn(const ModelMaker& maker, const std::vector<OnnxTensor>& inputs,
                            OnnxModelOptions options) {
  std::vector<OnnxTensor> outputs = RunOn(maker, inputs, std::move(options));
  return outputs.empty() ? std::vector<float>() : FloatsOf(outputs[0].tensor);
}

absl::Status ImportError(const ModelMaker& maker, const OnnxImportOptions& options) {
  return ImportOnnx(maker.Proto(), options).status();
}

}  // namespace svod
