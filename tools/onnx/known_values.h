// KnownValues: what the importer knows of small tensors before anything runs.
// Included by the importer. Must not know ONNX.
#ifndef SVOD_TOOLS_ONNX_KNOWN_VALUES_H_
#define SVOD_TOOLS_ONNX_KNOWN_VALUES_H_

#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/evaluate_tensor.h"
#include "ir/tensor_builder.h"
#include "tools/onnx/constant_tensor.h"

namespace svod {

// Either a constant, or integers that depend on variables: index expressions, in the normal form
// of Dims, in row-major order.
struct KnownValue {
  std::optional<SharedTensor> constant;
  std::vector<const UOp*> elements;
};

// Works out the values of tensors from the graph below them: constants by the interpreter's
// functions, dimensions with variables in them as index expressions. So shapes that a model
// computes need no rule of their own, whatever operators it uses. One thread at a time.
class KnownValues {
 public:
  // Values of more elements than these are not worked out.
  static constexpr int64_t kMaxElements = int64_t{1} << 20;
  static constexpr int64_t kMaxSymbolicElements = 4096;

  explicit KnownValues(TensorBuilder& builder) : builder_(builder) {}

  // The value that a parameter always has.
  void SetConstant(const UOp* param, ConstantTensor value);
  // Null when it is not known. Lives until the next call.
  // Cost: a visit to each node below the tensor, once.
  const KnownValue* Of(const UOp* tensor);
  // The parameters without a value that the tensor depends on.
  std::vector<const UOp*> UnknownParams(const UOp* tensor);

 private:
  std::optional<KnownValue> Evaluate(const UOp* node);
  std::optional<KnownValue> EvaluateConstant(const UOp* node, absl::Span<const int64_t> numbers);
  std::optional<KnownValue> EvaluateElementwise(const UOp* node);
  std::optional<KnownValue> EvaluateMovement(const UOp* node, absl::Span<const int64_t> numbers);
  std::optional<KnownValue> EvaluateReduce(const UOp* node);
  std::optional<std::vector<int64_t>> ShapeOf(const UOp* node);
  const UOp* Combine(const UOp* node, absl::Span<const UOp* const> operands);
  std::vector<const UOp*> ElementsOf(const UOp* node);

  TensorBuilder& builder_;
  absl::flat_hash_map<const UOp*, ConstantTensor> given_;
  absl::flat_hash_map<const UOp*, std::optional<KnownValue>> known_;
};

}  // namespace svod

#endif  // SVOD_TOOLS_ONNX_KNOWN_VALUES_H_
