#include "tools/onnx/onnx_model.h"

#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/evaluate.h"
#include "ir/status_macros.h"
#include "onnx.pb.h"
#include "plan/winograd.h"
#include "tools/match_inputs.h"
#include "tools/onnx/fold_constants.h"
#include "tools/onnx/model_file.h"

namespace svod {
namespace {

// Plans that a model keeps; the oldest goes first.
constexpr size_t kMaxPlans = 64;

std::string TypeOf(const ConstantTensor& tensor) {
  return absl::StrCat(ToString(tensor.dtype), "[", absl::StrJoin(tensor.shape, ", "), "]");
}

absl::StatusOr<ConstantTensor> CopyOutput(const ExecutionPlan& plan, const PlanTensor& output) {
  absl::Span<const std::byte> bytes = plan.buffers()[output.buffer_index].Read();
  auto size = static_cast<size_t>(output.size_bytes());
  if (bytes.size() < size) return absl::ResourceExhaustedError("memory of an output");
  bytes = bytes.subspan(0, size);
  auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  return ConstantTensor{output.dtype, output.shape, *copy, copy};
}

std::string DimensionText(const onnx::TensorShapeProto::Dimension& dimension) {
  if (dimension.has_dim_value()) return absl::StrCat(dimension.dim_value());
  return dimension.dim_param().empty() ? "?" : dimension.dim_param();
}

// As options call a symbolic dimension.
std::string DimensionName(const onnx::ValueInfoProto& info,
                          const onnx::TensorShapeProto::Dimension& dimension, int axis) {
  return dimension.dim_param().empty() ? absl::StrCat(info.name(), "_", axis)
                                       : dimension.dim_param();
}

std::string DeclaredType(const onnx::ValueInfoProto& info) {
  if (!info.type().has_tensor_type()) return "no tensor";
  const onnx::TypeProto::Tensor& type = info.type().tensor_type();
  absl::StatusOr<DType> dtype = DTypeOfOnnx(type.elem_type());
  std::string text = dtype.ok() ? ToString(*dtype) : absl::StrCat("type ", type.elem_type());
  if (!type.has_shape()) return absl::StrCat(text, "[...]");
  std::vector<std::string> dims;
  for (const auto& dimension : type.shape().dim()) dims.push_back(DimensionText(dimension));
  return absl::StrCat(text, "[", absl::StrJoin(dims, ", "), "]");
}

// The inputs that a run gives: those without an initializer.
std::vector<const onnx::ValueInfoProto*> InputsOf(const onnx::GraphProto& graph) {
  std::set<std::string> initialized = InitializedNames(graph);
  std::vector<const onnx::ValueInfoProto*> inputs;
  for (const onnx::ValueInfoProto& info : graph.input()) {
    if (!initialized.contains(info.name())) inputs.push_back(&info);
  }
  return inputs;
}

}  // namespace

OnnxModel::OnnxModel(std::shared_ptr<const onnx::ModelProto> proto, std::string folder,
                     KernelProvider provider, OnnxModelOptions options)
    : proto_(std::move(proto)),
      folder_(std::move(folder)),
      provider_(std::move(provider)),
      options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<OnnxModel>> OnnxModel::Load(const std::string& path,
                                                           KernelProvider provider,
                                                           OnnxModelOptions options) {
  SVOD_ASSIGN_OR_RETURN(std::shared_ptr<const onnx::ModelProto> proto, ReadModel(path));
  std::string folder = std::filesystem::path(path).parent_path().string();
  return std::unique_ptr<OnnxModel>(
      new OnnxModel(std::move(proto), folder, std::move(provider), std::move(options)));
}

absl::StatusOr<std::unique_ptr<OnnxModel>> OnnxModel::Parse(absl::string_view bytes,
                                                            absl::string_view name,
                                                            const std::string& folder,
                                                            KernelProvider provider,
                                                            OnnxModelOptions options) {
  SVOD_ASSIGN_OR_RETURN(std::shared_ptr<const onnx::ModelProto> proto, ParseModel(bytes, name));
  return std::unique_ptr<OnnxModel>(
      new OnnxModel(std::move(proto), folder, std::move(provider), std::move(options)));
}

std::vector<OnnxInputInfo> OnnxModel::inputs() const {
  std::vector<OnnxInputInfo> infos;
  for (const onnx::ValueInfoProto* info : InputsOf(proto_->graph())) {
    const onnx::TypeProto::Tensor& type = info->type().tensor_type();
    OnnxInputInfo described{info->name(), DTypeOfOnnx(type.elem_type()), {}, DeclaredType(*info)};
    for (int i = 0; i < type.shape().dim_size(); ++i) {
      const onnx::TensorShapeProto::Dimension& dimension = type.shape().dim(i);
      bool is_number = dimension.has_dim_value() && dimension.dim_value() >= 0;
      described.dims.push_back(
          {is_number ? dimension.dim_value() : -1, DimensionName(*info, dimension, i)});
    }
    infos.push_back(std::move(described));
  }
  return infos;
}

// The given inputs in the model's order, each with its name.
absl::StatusOr<std::vector<OnnxTensor>> OnnxModel::MatchInputs(
    absl::Span<const OnnxTensor> inputs) const {
  std::vector<WantedInput> wanted;
  for (const OnnxInputInfo& info : this->inputs()) wanted.push_back({info.name, info.type});
  std::vector<std::string> names;
  for (const OnnxTensor& input : inputs) names.push_back(input.name);
  SVOD_ASSIGN_OR_RETURN(std::vector<size_t> positions, MatchInputNames(wanted, names));
  std::vector<const ConstantTensor*> given(wanted.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) given[positions[i]] = &inputs[i].tensor;
  std::vector<OnnxTensor> matched;
  for (size_t i = 0; i < wanted.size(); ++i) {
    int64_t num_bytes = given[i]->dtype.size_bytes();
    for (int64_t dimension : given[i]->shape) num_bytes *= dimension;
    if (num_bytes != static_cast<int64_t>(given[i]->bytes.size())) {
      return absl::InvalidArgumentError(absl::StrCat("input ", wanted[i].name, ": data, got ",
                                                     given[i]->bytes.size(), " bytes, expected ",
                                                     num_bytes, " for ", TypeOf(*given[i])));
    }
    matched.push_back({wanted[i].name, *given[i]});
  }
  return matched;
}

// What tells plans apart: dimensions without bounds, and values that shapes depend on.
std::string OnnxModel::KeyOf(absl::Span<const OnnxTensor> inputs) const {
  std::string key;
  std::vector<OnnxInputInfo> infos = this->inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ConstantTensor& tensor = inputs[i].tensor;
    absl::StrAppend(&key, ToString(tensor.dtype), "[");
    for (size_t k = 0; k < tensor.shape.size(); ++k) {
      bool is_bounded = k < infos[i].dims.size() && infos[i].dims[k].size < 0 &&
                        options_.dims.contains(infos[i].dims[k].name);
      absl::StrAppend(&key, is_bounded ? "*" : absl::StrCat(tensor.shape[k]), ",");
    }
    if (fixed_.contains(inputs[i].name)) {
      absl::StrAppend(&key, "=", absl::StrJoin(tensor.shape, ","), ":",
                      absl::string_view(reinterpret_cast<const char*>(tensor.bytes.data()),
                                        tensor.bytes.size()));
    }
    key.push_back(']');
  }
  return key;
}

absl::StatusOr<ImportedOnnx> OnnxModel::Import(absl::Span<const OnnxTensor> inputs) {
  if (inputs.empty()) return ImportFor({});
  SVOD_ASSIGN_OR_RETURN(std::vector<OnnxTensor> matched, MatchInputs(inputs));
  return ImportFor(matched);
}

absl::StatusOr<ImportedOnnx> OnnxModel::ImportFor(absl::Span<const OnnxTensor> inputs) {
  // An input whose value somebody needs is fixed, until nothing new is needed.
  while (true) {
    OnnxImportOptions options;
    options.dims = options_.dims;
    options.folder = folder_;
    options.fixes_settings = !inputs.empty();
    for (const OnnxTensor& input : inputs) {
      options.input_shapes[input.name] = input.tensor.shape;
      if (fixed_.contains(input.name)) options.fixed_inputs[input.name] = input.tensor;
    }
    OnnxImportNeeds needs;
    absl::StatusOr<ImportedOnnx> imported = ImportOnnx(proto_, options, &needs);
    size_t before = fixed_.size();
    fixed_.insert(needs.inputs.begin(), needs.inputs.end());
    if (imported.ok() && options_.prepare.schedule.winograd_error > 0) {
      SVOD_RETURN_IF_ERROR(RewriteConvolutions(*imported));
    }
    if (imported.ok() || fixed_.size() == before) return imported;
  }
}

// Before the constant part is taken out, so that the transforms of weights belong to it.
absl::Status OnnxModel::RewriteConvolutions(ImportedOnnx& imported) const {
  Function& function = imported.module.functions[0];
  std::set<std::string> names;
  for (const auto& [name, value] : imported.constants) names.insert(name);
  std::vector<const UOp*> constants;
  for (const UOp* node : Toposort(function.root)) {
    if (node->op() == Op::kParam && names.contains(std::string(node->arg<ParamArgument>().name))) {
      constants.push_back(node);
    }
  }
  return svod::RewriteConvolutions(&function, imported.module.context,
                                   options_.prepare.schedule.winograd_error, constants)
      .status();
}

// A plan with the graph's constants bound.
absl::StatusOr<ExecutionPlan> OnnxModel::PrepareGraph(const ImportedOnnx& imported,
                                                      int64_t expected_runs) const {
  PrepareOptions prepare = options_.prepare;
  prepare.expected_runs = expected_runs;
  prepare.allocate_parameters = false;
  SVOD_ASSIGN_OR_RETURN(ExecutionPlan plan, svod::Prepare(imported.module, "", provider_, prepare));
  for (const auto& [name, constant] : imported.constants) {
    SVOD_ASSIGN_OR_RETURN(
        Buffer buffer,
        Buffer::WrapConst(constant.bytes.data(), static_cast<int64_t>(constant.bytes.size()),
                          constant.owner));
    SVOD_RETURN_IF_ERROR(plan.Bind(name, buffer));
  }
  return plan;
}

// Runs the constant part, whose results are constants of the graph then.
absl::Status OnnxModel::Fold(const FoldedPart& folded, ImportedOnnx& imported) const {
  SVOD_ASSIGN_OR_RETURN(ExecutionPlan plan, PrepareGraph(folded.part, /*expected_runs=*/1));
  SVOD_RETURN_IF_ERROR(Execute(plan));
  for (size_t i = 0; i < folded.results.size(); ++i) {
    const PlanTensor& output = plan.outputs()[i];
    SVOD_ASSIGN_OR_RETURN(ConstantTensor value, CopyOutput(plan, output));
    imported.constants.emplace_back(folded.results[i], std::move(value));
  }
  return absl::OkStatus();
}

absl::StatusOr<OnnxPlan*> OnnxModel::Prepare(absl::Span<const OnnxTensor> inputs) {
  SVOD_ASSIGN_OR_RETURN(std::vector<OnnxTensor> matched, MatchInputs(inputs));
  std::string key = KeyOf(matched);
  for (auto& [known, plan] : plans_) {
    if (known == key) return plan.get();
  }
  SVOD_ASSIGN_OR_RETURN(ImportedOnnx imported, ImportFor(matched));
  SVOD_ASSIGN_OR_RETURN(FoldedPart folded, TakeConstantPart(imported));
  if (!folded.results.empty()) SVOD_RETURN_IF_ERROR(Fold(folded, imported));
  SVOD_ASSIGN_OR_RETURN(ExecutionPlan plan, PrepareGraph(imported, options_.prepare.expected_runs));
  auto made = std::make_unique<OnnxPlan>(OnnxPlan{std::move(imported), std::move(plan)});
  key = KeyOf(matched);  // more inputs may be fixed now
  if (plans_.size() == kMaxPlans) plans_.erase(plans_.begin());
  plans_.emplace_back(std::move(key), std::move(made));
  return plans_.back().second.get();
}

absl::Status OnnxModel::Bind(OnnxPlan& plan, absl::Span<const OnnxTensor> inputs) {
  SVOD_ASSIGN_OR_RETURN(std::vector<OnnxTensor> matched, MatchInputs(inputs));
  std::vector<std::pair<std::string, int64_t>> variables;
  for (const OnnxValueInfo& info : plan.imported.inputs) {
    const OnnxTensor* input = nullptr;
    for (const OnnxTensor& given : matched) {
      if (given.name == info.name) input = &given;
    }
    if (input == nullptr) return absl::InternalError("an input of the plan is none of the model");
    const ConstantTensor& tensor = input->tensor;
    bool fits = tensor.dtype == info.dtype && tensor.shape.size() == info.shape.size();
    for (size_t i = 0; fits && i < tensor.shape.size(); ++i) {
      const UOp* dimension = info.shape[i];
      if (IsConst(dimension)) {
        fits = ConstInt(dimension) == tensor.shape[i];
        continue;
      }
      // A variable, or a multiple of one.
      int64_t multiple = 1;
      if (dimension->op() == Op::kMul) {
        multiple = ConstInt(dimension->source(1));
        dimension = dimension->source(0);
      }
      std::string name(dimension->arg<VariableArgument>().name);
      int64_t number = tensor.shape[i] / multiple;
      fits = tensor.shape[i] % multiple == 0;
      bool is_new = true;
      for (const auto& [known, value] : variables) {
        if (known != name) continue;
        is_new = false;
        fits = fits && value == number;
      }
      if (is_new) variables.emplace_back(std::move(name), number);
    }
    if (!fits) {
      return absl::InvalidArgumentError(absl::StrCat("input ", info.name, ": got ", TypeOf(tensor),
                                                     ", expected ",
                                                     ShapeToString(info.dtype, info.shape)));
    }
  }
  std::vector<std::pair<absl::string_view, int64_t>> values(variables.begin(), variables.end());
  SVOD_RETURN_IF_ERROR(plan.plan.SetVariables(values));
  for (const OnnxValueInfo& info : plan.imported.inputs) {
    const PlanTensor* parameter = plan.plan.FindParameter(info.param);
    if (info.param.empty() || parameter == nullptr) continue;
    for (const OnnxTensor& given : matched) {
      if (given.name != info.name) continue;
      // Room for the largest sizes is asked for, whatever is used.
      int64_t room = parameter->dtype.size_bytes(), size = room;
      for (int64_t dimension : parameter->max_shape) room *= dimension;
      for (int64_t dimension : given.tensor.shape) size *= dimension;
      Buffer buffer;
      if (size == room) {
        SVOD_ASSIGN_OR_RETURN(
            buffer, Buffer::WrapConst(given.tensor.bytes.data(), size, given.tensor.owner));
      } else {
        SVOD_ASSIGN_OR_RETURN(buffer, Buffer::Create(room, options_.prepare.allocator));
        SVOD_ASSIGN_OR_RETURN(absl::Span<std::byte> bytes, buffer.Write());
        if (size > 0)
          std::memcpy(bytes.data(), given.tensor.bytes.data(), given.tensor.bytes.size());
      }
      SVOD_RETURN_IF_ERROR(plan.plan.Bind(info.param, buffer));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OnnxTensor>> OnnxModel::CopyOutputs(const OnnxPlan& plan) {
  std::vector<OnnxTensor> outputs;
  for (size_t i = 0; i < plan.plan.num_outputs(); ++i) {
    SVOD_ASSIGN_OR_RETURN(ConstantTensor value, CopyOutput(plan.plan, plan.plan.outputs()[i]));
    outputs.push_back({plan.imported.outputs[i].name, std::move(value)});
  }
  return outputs;
}

absl::StatusOr<std::vector<OnnxTensor>> OnnxModel::Run(absl::Span<const OnnxTensor> inputs,
                                                       const ExecuteOptions& execute) {
  SVOD_ASSIGN_OR_RETURN(OnnxPlan * plan, Prepare(inputs));
  SVOD_RETURN_IF_ERROR(Bind(*plan, inputs));
  SVOD_RETURN_IF_ERROR(Execute(plan->plan, execute));
  return CopyOutputs(*plan);
}

}  // namespace svod
