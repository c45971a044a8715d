#include "tools/onnx/graph_importer.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/status_macros.h"
#include "tools/onnx/fold_constants.h"
#include "tools/onnx/onnx_node.h"
#include "tools/onnx/onnx_operators.h"

namespace svod {
namespace {

// Limits of what subgraphs and functions may expand to.
constexpr int kMaxDepth = 64;
constexpr int64_t kMaxNodes = 1 << 20;
// Messages that are shown of those that were collected.
constexpr size_t kMaxMessages = 50;

std::string DomainOf(absl::string_view domain) {
  return domain == "ai.onnx" ? std::string() : std::string(domain);
}

std::string OperatorName(absl::string_view domain, absl::string_view op) {
  return domain.empty() ? std::string(op) : absl::StrCat(domain, ".", op);
}

// "node 'add_3'", or for one without a name the output that it makes.
std::string NodeName(const onnx::NodeProto& node) {
  if (!node.name().empty()) return absl::StrCat("node '", node.name(), "'");
  for (const std::string& output : node.output()) {
    if (!output.empty()) return absl::StrCat("node of '", output, "'");
  }
  return "node without outputs";
}

bool HasReferences(const onnx::NodeProto& node) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (!attribute.ref_attr_name().empty()) return true;
    for (const onnx::NodeProto& inner : attribute.g().node()) {
      if (HasReferences(inner)) return true;
    }
  }
  return false;
}

// Puts a function call's attributes in the place of references to them.
void FillIn(const absl::flat_hash_map<std::string, const onnx::AttributeProto*>& attributes,
            onnx::NodeProto* node) {
  for (int i = node->attribute_size(); i-- > 0;) {
    onnx::AttributeProto* attribute = node->mutable_attribute(i);
    if (attribute->has_g()) {
      for (onnx::NodeProto& inner : *attribute->mutable_g()->mutable_node()) {
        FillIn(attributes, &inner);
      }
    }
    if (attribute->ref_attr_name().empty()) continue;
    auto given = attributes.find(attribute->ref_attr_name());
    if (given == attributes.end()) {
      node->mutable_attribute()->DeleteSubrange(i, 1);  // the operator's default counts
      continue;
    }
    std::string name = attribute->name();
    *attribute = *given->second;
    attribute->set_name(name);
  }
}

}  // namespace

GraphImporter::GraphImporter(std::shared_ptr<const onnx::ModelProto> model,
                             const OnnxImportOptions& options)
    : model_(std::move(model)),
      options_(options),
      builder_(std::make_shared<Context>()),
      known_(builder_),
      reader_(model_, options.folder) {}

void GraphImporter::Record(absl::string_view where, const absl::Status& status) {
  errors_.emplace_back(std::string(where), status);
}

absl::Status GraphImporter::Errors() const {
  if (errors_.empty()) return absl::OkStatus();
  std::vector<std::string> lines;
  bool all_unimplemented = true;
  for (const auto& [where, status] : errors_) {
    all_unimplemented &= absl::IsUnimplemented(status);
    if (lines.size() < kMaxMessages) lines.push_back(absl::StrCat(where, ": ", status.message()));
  }
  if (errors_.size() > lines.size()) {
    lines.push_back(absl::StrCat("and ", errors_.size() - lines.size(), " more"));
  }
  std::string message = absl::StrJoin(lines, "\n");
  if (all_unimplemented) return absl::UnimplementedError(message);
  return absl::InvalidArgumentError(message);
}

// The name with what text does not take replaced, and a number behind it if it is taken.
std::string GraphImporter::UniqueName(absl::string_view name) {
  std::string clean;
  for (char c : name) clean.push_back(absl::ascii_isalnum(c) ? c : '_');
  if (clean.empty() || absl::ascii_isdigit(clean[0])) clean.insert(0, "t");
  if (clean.size() > 64) clean.resize(64);
  while (true) {
    int count = names_[clean]++;
    if (count == 0) return clean;
    clean = absl::StrCat(clean, "_", count);
  }
}

absl::Status GraphImporter::ReadOpsets() {
  for (const onnx::OperatorSetIdProto& opset : model_->opset_import()) {
    opsets_[DomainOf(opset.domain())] = opset.version();
  }
  auto standard = opsets_.find("");
  if (standard == opsets_.end()) {
    opsets_[""] = 1;  // models of before there were opsets
  } else if (standard->second < 1 || standard->second > kMaxOnnxOpset) {
    return absl::UnimplementedError(
        absl::StrCat("opset, got ", standard->second, ", expected 1 to ", kMaxOnnxOpset));
  }
  for (const onnx::FunctionProto& function : model_->functions()) {
    functions_[absl::StrCat(DomainOf(function.domain()), ":", function.name())] = &function;
  }
  return absl::OkStatus();
}

absl::StatusOr<ImportedOnnx> GraphImporter::Import() {
  SVOD_RETURN_IF_ERROR(ReadOpsets());
  Scope scope{nullptr, &opsets_, nullptr, ""};
  ImportInputs(scope);
  // Without the inputs' dimensions everything behind them would fail as well.
  if (!errors_.empty()) return Errors();
  ImportInitializers(model_->graph(), scope);
  ImportNodes(model_->graph().node(), scope);
  return Finish(scope);
}

// --- Inputs and constants -----------------------------------------------------------------------

void GraphImporter::ImportInputs(Scope& scope) {
  std::set<std::string> initialized = InitializedNames(model_->graph());
  for (const onnx::ValueInfoProto& info : model_->graph().input()) {
    if (!initialized.contains(info.name())) ImportInput(info, scope);
  }
  for (const auto& [name, value] : options_.fixed_inputs) {
    if (!scope.values.contains(name)) {
      Record(absl::StrCat("input '", name, "'"),
             absl::InvalidArgumentError("the model has no input of this name"));
    }
  }
}

void GraphImporter::ImportInput(const onnx::ValueInfoProto& info, Scope& scope) {
  std::string where = absl::StrCat("input '", info.name(), "'");
  if (scope.values.contains(info.name())) {
    Record(where, absl::InvalidArgumentError("name, got it twice, expected each once"));
    return;
  }
  scope.values[info.name()] = nullptr;
  auto fixed = options_.fixed_inputs.find(info.name());
  if (fixed != options_.fixed_inputs.end()) {
    scope.values[info.name()] = Constant(fixed->second, info.name());
    return;
  }
  if (!info.type().has_tensor_type()) {
    Record(where, absl::UnimplementedError("type, got a sequence, map or optional, expected a "
                                           "tensor"));
    return;
  }
  const onnx::TypeProto::Tensor& type = info.type().tensor_type();
  absl::StatusOr<DType> dtype = DTypeOfOnnx(type.elem_type());
  if (!dtype.ok()) {
    Record(where, dtype.status());
    return;
  }
  std::optional<Shape> shape = InputShape(info, type);
  if (!shape.has_value()) return;
  std::string name = UniqueName(info.name());
  const UOp* param = builder_.Param(name, *dtype, *shape, Access::kIn, num_params_++);
  if (param != nullptr) builder_.ShapeOf(param);
  absl::Status status = builder_.Take();
  if (!status.ok()) {
    Record(where, status);
    return;
  }
  scope.values[info.name()] = param;
  input_names_[param] = info.name();
  inputs_.push_back({info.name(), *dtype, *shape, name});
}

std::optional<Shape> GraphImporter::InputShape(const onnx::ValueInfoProto& info,
                                               const onnx::TypeProto::Tensor& type) {
  std::string where = absl::StrCat("input '", info.name(), "'");
  auto given = options_.input_shapes.find(info.name());
  const std::vector<int64_t>* actual =
      given == options_.input_shapes.end() ? nullptr : &given->second;
  if (!type.has_shape()) {
    if (actual != nullptr) return builder_.ConstShape(*actual);
    Record(where, absl::InvalidArgumentError("shape, got none, expected one to be given"));
    return std::nullopt;
  }
  int rank = type.shape().dim_size();
  if (actual != nullptr && actual->size() != static_cast<size_t>(rank)) {
    Record(where,
           absl::InvalidArgumentError(absl::StrCat("shape, got [", absl::StrJoin(*actual, ", "),
                                                   "], expected ", rank, " dimensions")));
    return std::nullopt;
  }
  Shape shape;
  for (int i = 0; i < rank; ++i) {
    const onnx::TensorShapeProto::Dimension& dimension = type.shape().dim(i);
    if (dimension.has_dim_value() && dimension.dim_value() >= 0) {
      shape.push_back(builder_.Index(dimension.dim_value()));
      continue;
    }
    std::string name = dimension.dim_param();
    if (name.empty()) name = absl::StrCat(info.name(), "_", i);
    auto bounds = options_.dims.find(name);
    if (bounds != options_.dims.end()) {
      auto [min, max, multiple] = bounds->second;
      if (multiple < 1 || min < 0 || min > max || max > (int64_t{1} << 40) || min % multiple != 0 ||
          max % multiple != 0) {
        Record(where, absl::InvalidArgumentError(absl::StrCat(
                          "dimension '", name, "': bounds, got ", min, " to ", max,
                          multiple == 1 ? "" : absl::StrCat(" in steps of ", multiple),
                          ", expected 0 <= least <= most <= 2^40, multiples of the step")));
        return std::nullopt;
      }
      const UOp*& value = dims_[name];
      if (value == nullptr && min == max) value = builder_.Index(min);
      if (value == nullptr) {
        value = builder_.Variable(UniqueName(name), min / multiple, max / multiple);
        value = builder_.dims().Mul(value, builder_.Index(multiple));
      }
      shape.push_back(value);
      continue;
    }
    if (actual != nullptr) {
      shape.push_back(builder_.Index((*actual)[static_cast<size_t>(i)]));
      continue;
    }
    Record(where, absl::InvalidArgumentError(
                      absl::StrCat("dimension '", name, "': bounds, got none, expected --dim ",
                                   name, "=LEAST..MOST or --dim ", name, "=SIZE")));
    return std::nullopt;
  }
  return shape;
}

const UOp* GraphImporter::Constant(ConstantTensor tensor, absl::string_view name) {
  Shape shape = builder_.ConstShape(tensor.shape);
  const UOp* node;
  if (tensor.bytes.size() == static_cast<size_t>(tensor.dtype.size_bytes())) {
    uint64_t bits = ReadElement(tensor.bytes.data(), tensor.dtype, 0);
    node = builder_.Reshape(builder_.context().Bits(tensor.dtype, bits), shape);
  } else {
    node = builder_.Param(UniqueName(name), tensor.dtype, shape, Access::kIn, num_params_++);
    if (node == nullptr) return nullptr;
    constants_[node] = tensor;
    known_.SetConstant(node, std::move(tensor));
  }
  return node;
}

void GraphImporter::ImportInitializers(const onnx::GraphProto& graph, Scope& scope) {
  auto add = [&](const std::string& name, absl::StatusOr<ConstantTensor> tensor) {
    absl::Status status = tensor.status();
    const UOp* node = nullptr;
    if (tensor.ok()) {
      node = Constant(*std::move(tensor), name);
      status = builder_.Take();
    }
    if (!status.ok()) Record(absl::StrCat(scope.path, "initializer '", name, "'"), status);
    scope.values[name] = node;
  };
  for (const onnx::TensorProto& proto : graph.initializer()) {
    add(proto.name(), reader_.Read(proto));
  }
  for (const onnx::SparseTensorProto& proto : graph.sparse_initializer()) {
    add(proto.values().name(), reader_.ReadSparse(proto));
  }
}

// --- Nodes --------------------------------------------------------------------------------------

std::pair<const UOp*, bool> GraphImporter::Look(const std::string& name, const Scope& scope) const {
  for (const Scope* s = &scope; s != nullptr; s = s->parent) {
    auto value = s->values.find(name);
    if (value != s->values.end()) return {value->second, true};
  }
  return {nullptr, false};
}

bool GraphImporter::CollectInputs(const onnx::NodeProto& node, const Scope& scope,
                                  absl::string_view where, std::vector<const UOp*>* inputs) {
  bool ok = true;
  for (const std::string& name : node.input()) {
    if (name.empty()) {
      inputs->push_back(nullptr);
      continue;
    }
    auto [value, exists] = Look(name, scope);
    ok &= value != nullptr;
    if (!exists) {
      Record(where, absl::InvalidArgumentError(absl::StrCat(
                        "input '", name,
                        "', expected an input, an initializer or what an earlier node makes")));
    }
    inputs->push_back(value);
  }
  while (!inputs->empty() && inputs->back() == nullptr) inputs->pop_back();
  return ok;
}

void GraphImporter::ImportNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                                Scope& scope) {
  Scope* outer = scope_;
  for (const onnx::NodeProto& node : nodes) {
    if (num_nodes_ > kMaxNodes) return;
    if (++num_nodes_ > kMaxNodes) {
      Record("model", absl::ResourceExhaustedError(
                          absl::StrCat("nodes, got more than ", kMaxNodes, " after expansion")));
      return;
    }
    scope_ = &scope;
    ImportNode(Resolve(node, scope), scope);
  }
  scope_ = outer;
}

const onnx::NodeProto& GraphImporter::Resolve(const onnx::NodeProto& node, const Scope& scope) {
  if (scope.attributes == nullptr || !HasReferences(node)) return node;
  resolved_.push_back(node);
  FillIn(*scope.attributes, &resolved_.back());
  return resolved_.back();
}

void GraphImporter::ImportNode(const onnx::NodeProto& node, Scope& scope) {
  for (const std::string& output : node.output()) {
    if (!output.empty()) scope.values.try_emplace(output, nullptr);
  }
  std::string domain = DomainOf(node.domain());
  auto opset = scope.opsets->find(domain);
  int64_t version = opset == scope.opsets->end() ? 1 : opset->second;
  std::string where = absl::StrCat(scope.path, NodeName(node), " (",
                                   OperatorName(domain, node.op_type()), ", opset ", version, ")");
  std::vector<const UOp*> inputs;
  if (!CollectInputs(node, scope, where, &inputs)) return;
  auto function = functions_.find(absl::StrCat(domain, ":", node.op_type()));
  if (function != functions_.end()) {
    return ExpandFunction(*function->second, node, inputs, where, scope);
  }
  const OnnxOperator* op = FindOnnxOperator(domain, node.op_type());
  if (op == nullptr) {
    return Record(where, absl::UnimplementedError("the operator is not supported"));
  }
  auto in_force = std::upper_bound(op->versions.begin(), op->versions.end(), version);
  if (in_force == op->versions.begin() || (op->removed > 0 && version >= op->removed)) {
    return Record(where, absl::UnimplementedError(absl::StrCat(
                             "opset, expected ", op->versions.front(),
                             op->removed > 0 ? absl::StrCat(" to ", op->removed - 1) : " or later",
                             " for this operator")));
  }
  auto num_inputs = static_cast<int>(inputs.size());
  if (num_inputs < op->min_inputs || (op->max_inputs >= 0 && num_inputs > op->max_inputs)) {
    return Record(where, absl::InvalidArgumentError(absl::StrCat(
                             "inputs, got ", num_inputs, ", expected ", op->min_inputs,
                             op->max_inputs == op->min_inputs ? ""
                             : op->max_inputs < 0             ? " or more"
                                                  : absl::StrCat(" to ", op->max_inputs))));
  }
  for (int i = 0; i < op->min_inputs; ++i) {
    if (inputs[static_cast<size_t>(i)] == nullptr) {
      return Record(where, absl::InvalidArgumentError(
                               absl::StrCat("input ", i, ", got none, expected a tensor")));
    }
  }
  subgraph_failed_ = false;
  OnnxNode view(*this, node, *(in_force - 1), std::move(inputs));
  OnnxResults results = op->import(view);
  absl::Status status = view.Finish();
  bool was_said = std::exchange(subgraph_failed_, false);
  if (!status.ok()) {
    if (!was_said) Record(where, status);
    return;
  }
  for (size_t i = 0; i < view.num_outputs(); ++i) {
    if (!view.wants_output(i)) continue;
    const UOp* result = i < results.size() ? results[i] : nullptr;
    if (result == nullptr) {
      if (was_said) break;
      Record(where, absl::UnimplementedError(absl::StrCat("output ", i, " is not supported")));
      continue;
    }
    scope.values[node.output(static_cast<int>(i))] = result;
  }
}

void GraphImporter::ExpandFunction(const onnx::FunctionProto& function, const onnx::NodeProto& node,
                                   const std::vector<const UOp*>& inputs, absl::string_view where,
                                   Scope& scope) {
  if (inputs.size() > static_cast<size_t>(function.input_size())) {
    return Record(
        where, absl::InvalidArgumentError(absl::StrCat("inputs, got ", inputs.size(), ", expected ",
                                                       function.input_size(), " at most")));
  }
  if (depth_ >= kMaxDepth) {
    return Record(
        where, absl::InvalidArgumentError(absl::StrCat(
                   "functions and subgraphs in each other, got more than ", kMaxDepth, " levels")));
  }
  ++depth_;
  absl::Cleanup leave = [this] { --depth_; };
  function_opsets_.emplace_back(opsets_);
  for (const onnx::OperatorSetIdProto& opset : function.opset_import()) {
    function_opsets_.back()[DomainOf(opset.domain())] = opset.version();
  }
  Attributes attributes;
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    attributes[attribute.name()] = &attribute;
  }
  Scope body{nullptr, &function_opsets_.back(), &attributes,
             absl::StrCat(scope.path, "function '", function.name(), "' / ")};
  for (int i = 0; i < function.input_size(); ++i) {
    auto at = static_cast<size_t>(i);
    // An input that is left out is no value of the body: its nodes leave it out as well.
    if (at < inputs.size() && inputs[at] != nullptr) body.values[function.input(i)] = inputs[at];
  }
  std::set<std::string> left_out;
  for (const std::string& name : function.input()) {
    if (!body.values.contains(name)) left_out.insert(name);
  }
  size_t num_errors = errors_.size();
  if (left_out.empty()) {
    ImportNodes(function.node(), body);
  } else {
    onnx::FunctionProto copy(function);
    for (onnx::NodeProto& inner : *copy.mutable_node()) {
      for (std::string& name : *inner.mutable_input()) {
        if (left_out.contains(name)) name.clear();
      }
    }
    ImportNodes(copy.node(), body);
  }
  for (int i = 0; i < node.output_size() && i < function.output_size(); ++i) {
    auto [value, exists] = Look(function.output(i), body);
    if (value == nullptr && errors_.size() == num_errors) {
      Record(where, absl::InvalidArgumentError(absl::StrCat("function '", function.name(),
                                                            "': output '", function.output(i),
                                                            "', expected a node that makes it")));
    }
    if (!node.output(i).empty()) scope.values[node.output(i)] = value;
  }
}

std::optional<std::vector<const UOp*>> GraphImporter::Subgraph(
    const onnx::GraphProto& graph, absl::Span<const UOp* const> inputs) {
  std::string where = absl::StrCat(scope_->path, "subgraph '", graph.name(), "'");
  auto fail = [&](const std::string& message) {
    Record(where, absl::InvalidArgumentError(message));
    subgraph_failed_ = true;
    return std::nullopt;
  };
  if (depth_ >= kMaxDepth) {
    return fail(absl::StrCat("subgraphs in each other, got more than ", kMaxDepth, " levels"));
  }
  if (graph.input_size() != static_cast<int>(inputs.size())) {
    return fail(absl::StrCat("inputs, got ", graph.input_size(), ", expected ", inputs.size()));
  }
  ++depth_;
  absl::Cleanup leave = [this] { --depth_; };
  Scope scope{scope_, scope_->opsets, scope_->attributes, where + " / "};
  for (int i = 0; i < graph.input_size(); ++i) {
    scope.values[graph.input(i).name()] = inputs[static_cast<size_t>(i)];
  }
  size_t num_errors = errors_.size();
  ImportInitializers(graph, scope);
  ImportNodes(graph.node(), scope);
  if (errors_.size() > num_errors) {
    subgraph_failed_ = true;
    return std::nullopt;
  }
  std::vector<const UOp*> outputs;
  for (const onnx::ValueInfoProto& info : graph.output()) {
    auto [value, exists] = Look(info.name(), scope);
    if (exists && value == nullptr) {  // its node failed, and was said to
      subgraph_failed_ = true;
      return std::nullopt;
    }
    if (!exists) {
      return fail(absl::StrCat("output '", info.name(), "', expected a node that makes it"));
    }
    outputs.push_back(value);
  }
  return outputs;
}

std::vector<std::string> GraphImporter::NoteNeeded(const UOp* tensor) {
  std::vector<std::string> names;
  for (const UOp* param : known_.UnknownParams(tensor)) {
    auto name = input_names_.find(param);
    if (name == input_names_.end()) continue;
    names.push_back(name->second);
    needed_inputs_.insert(name->second);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool GraphImporter::NoteSettings(const UOp* tensor) {
  if (!options_.fixes_settings) return false;
  std::vector<const UOp*> params = known_.UnknownParams(tensor);
  for (const UOp* param : params) {
    if (param->dtype().is_float() ||
        !IsConstInt(builder_.dims().Product(builder_.ShapeOf(param)), 1)) {
      return false;
    }
  }
  if (params.empty()) return false;
  NoteNeeded(tensor);
  Record("condition",
         absl::InvalidArgumentError("expected the values of the inputs that it depends on"));
  subgraph_failed_ = true;
  return true;
}

// --- The whole graph ----------------------------------------------------------------------------

absl::StatusOr<ImportedOnnx> GraphImporter::Finish(const Scope& scope) {
  std::vector<const UOp*> results;
  ImportedOnnx imported;
  for (const onnx::ValueInfoProto& info : model_->graph().output()) {
    auto [value, exists] = Look(info.name(), scope);
    if (!exists) {
      Record(absl::StrCat("output '", info.name(), "'"),
             absl::InvalidArgumentError("expected a node that makes it"));
    }
    if (value == nullptr) continue;
    ShapeSpan shape = builder_.ShapeOf(value);
    results.push_back(value);
    imported.outputs.push_back(
        {info.name(), value->dtype(), Shape(shape.begin(), shape.end()), ""});
  }
  SVOD_RETURN_IF_ERROR(Errors());
  if (results.empty()) return absl::InvalidArgumentError("model: outputs, got none");
  absl::StatusOr<Function> finished = builder_.Finish("main", results);
  if (!finished.ok()) return finished.status();

  for (const auto& [param, value] : constants_) {
    imported.constants.emplace_back(std::string(param->arg<ParamArgument>().name), value);
  }
  std::sort(imported.constants.begin(), imported.constants.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  imported.inputs = inputs_;
  Function function = *std::move(finished);
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i]->op() != Op::kParam && !function.notes.contains(results[i])) {
      function.notes[results[i]] = {UniqueName(imported.outputs[i].name)};
    }
  }
  imported.module = {builder_.shared_context(), {std::move(function)}};
  // Parameters that nothing depends on are not in the graph.
  SVOD_RETURN_IF_ERROR(Rebuild(imported, {}));
  return imported;
}

absl::StatusOr<ImportedOnnx> ImportOnnx(std::shared_ptr<const onnx::ModelProto> model,
                                        const OnnxImportOptions& options, OnnxImportNeeds* needs) {
  GraphImporter importer(std::move(model), options);
  absl::StatusOr<ImportedOnnx> imported = importer.Import();
  if (needs != nullptr) {
    needs->inputs.assign(importer.needed_inputs().begin(), importer.needed_inputs().end());
  }
  return imported;
}

}  // namespace svod
