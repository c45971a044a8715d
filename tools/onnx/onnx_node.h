// OnnxNode: one node of a model as the function that imports it sees it.
// Included by the rows of the operator table. Must not know single operators.
#ifndef SVOD_TOOLS_ONNX_ONNX_NODE_H_
#define SVOD_TOOLS_ONNX_ONNX_NODE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "ir/tensor_builder.h"
#include "onnx.pb.h"
#include "tools/onnx/constant_tensor.h"
#include "tools/onnx/known_values.h"

namespace svod {

class GraphImporter;

// The outputs of a node by position; null for those that nobody wants. Empty after a failure.
using OnnxResults = std::vector<const UOp*>;

// Failures stick: the first one, of this node or of the builder, is what the importer reports, with
// the node's name, operator and version in front, and it goes on with the other nodes. So a row
// may use a null or empty answer as an operand of the builder, and has to look at it only where it
// reads it itself.
//
// An attribute that the row never asks about is a failure: read all that the version has before
// the first return.
class OnnxNode {
 public:
  OnnxNode(GraphImporter& importer, const onnx::NodeProto& proto, int64_t version,
           std::vector<const UOp*> inputs);

  TensorBuilder& builder() { return builder_; }
  GraphImporter& importer() { return importer_; }
  const onnx::NodeProto& proto() const { return proto_; }
  absl::string_view op() const { return proto_.op_type(); }
  // The version of the operator's schema that is in force: one of those in its row.
  int64_t version() const { return version_; }

  // --- Inputs. An optional input that is left out is null, and so is any beyond the last.
  size_t num_inputs() const { return inputs_.size(); }
  const std::vector<const UOp*>& inputs() const { return inputs_; }
  const UOp* input(size_t i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }
  bool has_input(size_t i) const { return input(i) != nullptr; }
  int64_t rank(size_t i) { return has_input(i) ? builder_.RankOf(input(i)) : 0; }

  // --- Values of inputs that must be known when the model is loaded; nothing and a failure when
  // the input is missing or its value depends on what the model is run with.
  std::optional<std::vector<int64_t>> KnownInts(size_t i);
  std::optional<std::vector<double>> KnownNumbers(size_t i);
  // Integers that may depend on symbolic dimensions, as index expressions.
  std::optional<Shape> KnownDims(size_t i);
  // The whole tensor.
  std::optional<SharedTensor> KnownTensor(size_t i);
  // Whether KnownTensor would give one. Records nothing.
  bool IsKnown(size_t i);

  // --- Attributes; the fallback when there is none. A failure when it has another type.
  bool HasAttribute(absl::string_view name);
  int64_t Int(absl::string_view name, int64_t fallback);
  bool Bool(absl::string_view name, bool fallback) { return Int(name, fallback ? 1 : 0) != 0; }
  double Float(absl::string_view name, double fallback);
  std::string String(absl::string_view name, absl::string_view fallback);
  std::vector<int64_t> Ints(absl::string_view name, std::vector<int64_t> fallback = {});
  std::vector<double> Floats(absl::string_view name, std::vector<double> fallback = {});
  std::vector<std::string> Strings(absl::string_view name);
  // The dtype that an attribute of TensorProto::DataType means.
  DType TypeAttribute(absl::string_view name, DType fallback);
  // Null without one; a sparse one with all its elements.
  std::optional<ConstantTensor> TensorAttribute(absl::string_view name);
  std::optional<ConstantTensor> SparseTensorAttribute(absl::string_view name);
  const onnx::GraphProto* Graph(absl::string_view name);
  // A failure when the attribute is missing.
  void Require(absl::string_view name);
  // Attributes that change nothing here.
  void Ignore(std::initializer_list<absl::string_view> names);
  // One of several words, as its position; -1 and a failure for another one.
  int Choice(absl::string_view name, absl::string_view fallback,
             std::initializer_list<absl::string_view> words);

  // --- Constants, and outputs.
  const UOp* Constant(ConstantTensor tensor);
  const UOp* IntsConstant(absl::Span<const int64_t> values, DType dtype = Scalar::kI64);
  const UOp* FloatsConstant(absl::Span<const double> values, DType dtype);
  // A dimension, or several as a vector, as numbers of the dtype.
  const UOp* DimsTensor(ShapeSpan dims, DType dtype = Scalar::kI64);
  size_t num_outputs() const { return static_cast<size_t>(proto_.output_size()); }
  bool wants_output(size_t i) const {
    return i < num_outputs() && !proto_.output(static_cast<int>(i)).empty();
  }

  // --- Failures: "what, got X, expected Y" without the node, which the importer adds.
  OnnxResults Fail(absl::string_view message);          // the model is wrong
  OnnxResults FailUnsupported(absl::string_view what);  // legal, but missing here
  bool ok() const { return status_.ok() && builder_.ok(); }
  // The first failure; also for an attribute that nobody asked about.
  absl::Status Finish();

 private:
  const onnx::AttributeProto* Find(absl::string_view name, int type);
  std::optional<ConstantTensor> OrFail(absl::StatusOr<ConstantTensor> tensor);
  const KnownValue* Known(size_t i, absl::string_view expected);

  GraphImporter& importer_;
  TensorBuilder& builder_;
  const onnx::NodeProto& proto_;
  const int64_t version_;
  const std::vector<const UOp*> inputs_;
  absl::Status status_;
  absl::flat_hash_set<std::string> asked_;
};

}  // namespace svod

#endif  // SVOD_TOOLS_ONNX_ONNX_NODE_H_
