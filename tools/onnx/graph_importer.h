// GraphImporter: walks the nodes of a model and its subgraphs and builds the tensor graph.
// Included by import.cc, onnx_node.cc and the rows that have subgraphs. Must not know operators.
#ifndef SVOD_TOOLS_ONNX_GRAPH_IMPORTER_H_
#define SVOD_TOOLS_ONNX_GRAPH_IMPORTER_H_

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/tensor_builder.h"
#include "onnx.pb.h"
#include "tools/onnx/import.h"
#include "tools/onnx/known_values.h"
#include "tools/onnx/model_file.h"

namespace svod {

// One thread at a time, one model each.
class GraphImporter {
 public:
  GraphImporter(std::shared_ptr<const onnx::ModelProto> model, const OnnxImportOptions& options);

  absl::StatusOr<ImportedOnnx> Import();
  // Inputs whose values somebody wanted and did not know.
  const std::set<std::string>& needed_inputs() const { return needed_inputs_; }

  TensorBuilder& builder() { return builder_; }
  KnownValues& known() { return known_; }
  TensorReader& reader() { return reader_; }
  const onnx::ModelProto& model() const { return *model_; }

  // A parameter that is to be bound to this tensor, or a constant for one element.
  const UOp* Constant(ConstantTensor tensor, absl::string_view name = "constant");
  // Imports a subgraph of the node that is being imported, with these values for its inputs and
  // what its nodes see around them. Its outputs; nothing when a node of it failed, which is
  // recorded then.
  std::optional<std::vector<const UOp*>> Subgraph(const onnx::GraphProto& graph,
                                                  absl::Span<const UOp* const> inputs);
  // Notes that the value of `tensor` had to be known: the names of the inputs below it.
  std::vector<std::string> NoteNeeded(const UOp* tensor);
  // The same if `tensor` depends on nothing but inputs that are one bool or integer each, and the
  // caller can give their values (OnnxImportOptions::fixes_settings). Whether it did; the import is
  // of no use then, and will be asked for again.
  bool NoteSettings(const UOp* tensor);

 private:
  using Attributes = absl::flat_hash_map<std::string, const onnx::AttributeProto*>;
  // Null stands for a value whose node failed.
  struct Scope {
    const Scope* parent;
    const std::map<std::string, int64_t>* opsets;
    const Attributes* attributes;  // of the function call that this is the body of; null: none
    std::string path;              // "function F / ", for messages
    absl::flat_hash_map<std::string, const UOp*> values = {};
  };

  absl::Status ReadOpsets();
  void ImportInputs(Scope& scope);
  void ImportInput(const onnx::ValueInfoProto& info, Scope& scope);
  std::optional<Shape> InputShape(const onnx::ValueInfoProto& info,
                                  const onnx::TypeProto::Tensor& type);
  void ImportInitializers(const onnx::GraphProto& graph, Scope& scope);
  void ImportNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, Scope& scope);
  void ImportNode(const onnx::NodeProto& node, Scope& scope);
  bool CollectInputs(const onnx::NodeProto& node, const Scope& scope, absl::string_view where,
                     std::vector<const UOp*>* inputs);
  void ExpandFunction(const onnx::FunctionProto& function, const onnx::NodeProto& node,
                      const std::vector<const UOp*>& inputs, absl::string_view where, Scope& scope);
  const onnx::NodeProto& Resolve(const onnx::NodeProto& node, const Scope& scope);
  // Null and false when there is no such value; null and true for one whose node failed.
  std::pair<const UOp*, bool> Look(const std::string& name, const Scope& scope) const;
  absl::StatusOr<ImportedOnnx> Finish(const Scope& scope);
  void Record(absl::string_view where, const absl::Status& status);
  absl::Status Errors() const;
  std::string UniqueName(absl::string_view name);

  std::shared_ptr<const onnx::ModelProto> model_;
  const OnnxImportOptions& options_;
  TensorBuilder builder_;
  KnownValues known_;
  TensorReader reader_;
  std::map<std::string, int64_t> opsets_;
  std::deque<std::map<std::string, int64_t>> function_opsets_;
  absl::flat_hash_map<std::string, const onnx::FunctionProto*> functions_;  // by domain:name
  std::deque<onnx::NodeProto> resolved_;  // nodes of functions with attributes filled in
  Scope* scope_ = nullptr;                // of the node that is being imported
  bool subgraph_failed_ = false;          // of the last node, which then need not say more
  int depth_ = 0;
  int64_t num_nodes_ = 0;
  int64_t num_params_ = 0;
  std::vector<OnnxValueInfo> inputs_;
  absl::flat_hash_map<const UOp*, std::string> input_names_;
  absl::flat_hash_map<const UOp*, ConstantTensor> constants_;
  absl::flat_hash_map<std::string, int> names_;
  std::set<std::string> needed_inputs_;
  absl::flat_hash_map<std::string, const UOp*> dims_;  // symbolic ones by the model's names
  std::vector<std::pair<std::string, absl::Status>> errors_;
};

}  // namespace svod

#endif  // SVOD_TOOLS_ONNX_GRAPH_IMPORTER_H_
