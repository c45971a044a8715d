#include "tools/onnx/describe_model.h"

#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "ir/status_macros.h"
#include "tools/onnx/model_file.h"

namespace svod {
namespace {

std::string TypeText(const onnx::ValueInfoProto& info) {
  if (!info.type().has_tensor_type()) return "no tensor";
  const onnx::TypeProto::Tensor& type = info.type().tensor_type();
  absl::StatusOr<DType> dtype = DTypeOfOnnx(type.elem_type());
  std::string text = dtype.ok() ? ToString(*dtype) : std::string(dtype.status().message());
  if (!type.has_shape()) return absl::StrCat(text, "[...]");
  std::vector<std::string> dims;
  for (const onnx::TensorShapeProto::Dimension& dimension : type.shape().dim()) {
    dims.push_back(dimension.has_dim_value()       ? absl::StrCat(dimension.dim_value())
                   : dimension.dim_param().empty() ? "?"
                                                   : dimension.dim_param());
  }
  return absl::StrCat(text, "[", absl::StrJoin(dims, ", "), "]");
}

void CountOperators(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                    std::map<std::string, int>* counts) {
  for (const onnx::NodeProto& node : nodes) {
    std::string domain = node.domain() == "ai.onnx" ? "" : node.domain();
    ++(*counts)[domain.empty() ? node.op_type() : absl::StrCat(domain, ".", node.op_type())];
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      CountOperators(attribute.g().node(), counts);
    }
  }
}

// What a model's constants hold, as initializers or as nodes.
struct Parameters {
  double count = 0, bytes = 0;

  void Add(const onnx::TensorProto& tensor) {
    double elements = 1;
    for (int64_t dimension : tensor.dims()) elements *= static_cast<double>(dimension);
    absl::StatusOr<DType> dtype = DTypeOfOnnx(tensor.data_type());
    count += elements;
    if (dtype.ok()) bytes += elements * static_cast<double>(dtype->size_bytes());
  }
  void Add(const onnx::GraphProto& graph) {
    for (const onnx::TensorProto& tensor : graph.initializer()) Add(tensor);
    for (const onnx::SparseTensorProto& sparse : graph.sparse_initializer()) Add(sparse.values());
    for (const onnx::NodeProto& node : graph.node()) {
      for (const onnx::AttributeProto& attribute : node.attribute()) {
        if (attribute.has_g()) Add(attribute.g());
        if (attribute.has_t() && node.op_type() == "Constant") Add(attribute.t());
      }
    }
  }
};

// "12.3 M", "456".
std::string Short(double number) {
  constexpr const char* kUnits[] = {"", " k", " M", " G", " T", " P"};
  int unit = 0;
  for (; number >= 1000 && unit < 5; ++unit) number /= 1000;
  return absl::StrCat(absl::AlphaNum(static_cast<int64_t>(number * 100 + 0.5) / 100.0),
                      kUnits[unit]);
}

// Gives bounds to the dimensions that have none and names them.
std::vector<std::string> AssumeDims(const onnx::GraphProto& graph, OnnxImportOptions* options) {
  std::vector<std::string> assumed;
  for (const onnx::ValueInfoProto& info : graph.input()) {
    const onnx::TensorShapeProto& shape = info.type().tensor_type().shape();
    for (int i = 0; i < shape.dim_size(); ++i) {
      if (shape.dim(i).has_dim_value() && shape.dim(i).dim_value() >= 0) continue;
      std::string name = shape.dim(i).dim_param();
      if (name.empty()) name = absl::StrCat(info.name(), "_", i);
      auto [bounds, is_new] = options->dims.try_emplace(name, DimBounds{1, 1, 1});
      if (is_new) assumed.push_back(name);
      bounds->second.min = bounds->second.max;
    }
  }
  return assumed;
}

double BytesOf(const std::vector<OnnxValueInfo>& values) {
  double bytes = 0;
  for (const OnnxValueInfo& value : values) {
    double size = static_cast<double>(value.dtype.size_bytes());
    for (const UOp* dimension : value.shape) {
      size *= IsConst(dimension) ? static_cast<double>(ConstInt(dimension)) : 1;
    }
    bytes += size;
  }
  return bytes;
}

}  // namespace

double CountFlops(const Function& graph, Context& context) {
  ShapeAnalysis shapes(context);
  double flops = 0;
  for (const UOp* node : Toposort(graph.root)) {
    bool is_reduce = node->op() == Op::kReduceAxis;
    if (!is_reduce && !IsElementwise(node->op())) continue;
    bool is_arithmetic = node->dtype().is_float() && node->op() != Op::kWhere &&
                         InfoOf(node->op()).op_class != OpClass::kConversion;
    if (!is_arithmetic) continue;
    absl::StatusOr<ShapeSpan> shape = shapes.Of(is_reduce ? node->source(0) : node);
    if (!shape.ok()) continue;
    double count = 1;
    for (const UOp* dimension : *shape) {
      count *= static_cast<double>(shapes.dims().RangeOf(dimension).max);
    }
    flops += count;
  }
  return flops;
}

absl::StatusOr<std::string> DescribeOnnxModel(const std::string& path, OnnxImportOptions options) {
  SVOD_ASSIGN_OR_RETURN(std::shared_ptr<const onnx::ModelProto> model, ReadModel(path));
  const onnx::GraphProto& graph = model->graph();
  options.folder = std::filesystem::path(path).parent_path().string();
  std::string text = absl::StrCat("model ", path, "\n");
  if (!model->producer_name().empty()) {
    absl::StrAppend(&text, "made by ", model->producer_name(), " ", model->producer_version(),
                    "\n");
  }
  for (const onnx::OperatorSetIdProto& opset : model->opset_import()) {
    absl::StrAppend(&text, "opset ", opset.version(),
                    opset.domain().empty() ? "" : absl::StrCat(" of ", opset.domain()), "\n");
  }
  std::set<std::string> initialized = InitializedNames(graph);
  Parameters parameters;
  parameters.Add(graph);
  for (const onnx::ValueInfoProto& info : graph.input()) {
    if (initialized.contains(info.name())) continue;
    absl::StrAppend(&text, "input ", info.name(), ": ", TypeText(info), "\n");
  }
  for (const onnx::ValueInfoProto& info : graph.output()) {
    absl::StrAppend(&text, "output ", info.name(), ": ", TypeText(info), "\n");
  }
  std::map<std::string, int> counts;
  CountOperators(graph.node(), &counts);
  for (const onnx::FunctionProto& function : model->functions()) {
    CountOperators(function.node(), &counts);
  }
  absl::StrAppend(
      &text, "operators: ",
      absl::StrJoin(counts, ", ",
                    [](std::string* out, const std::pair<const std::string, int>& count) {
                      absl::StrAppend(out, count.second, " ", count.first);
                    }),
      "\n", "parameters: ", Short(parameters.count), ", ", Short(parameters.bytes), "B\n");

  std::vector<std::string> assumed = AssumeDims(graph, &options);
  std::string at =
      assumed.empty() ? "" : absl::StrCat(" with ", absl::StrJoin(assumed, " = "), " = 1");
  OnnxImportNeeds needs;
  absl::StatusOr<ImportedOnnx> imported = ImportOnnx(model, options, &needs);
  if (imported.ok()) {
    absl::StrAppend(&text, "arithmetic: ",
                    Short(CountFlops(imported->module.functions[0], *imported->module.context)),
                    "FLOP a run", at, "\n", "memory: ", Short(BytesOf(imported->inputs)),
                    "B of inputs, ", Short(BytesOf(imported->outputs)), "B of outputs", at, "\n");
    return text;
  }
  if (!needs.inputs.empty()) {
    absl::StrAppend(&text, "shapes depend on the values of: ", absl::StrJoin(needs.inputs, ", "),
                    "\n");
  }
  std::string problems(imported.status().message());
  absl::StrAppend(&text, "not supported", at, ":\n  ",
                  absl::StrReplaceAll(problems, {{"\n", "\n  "}}), "\n");
  return text;
}

}  // namespace svod
