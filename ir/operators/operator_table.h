// The operator table: composite operators by name, for text, tools and documentation.
// Included by the parser, importers and tests. Must not build nodes itself.
#ifndef SVOD_IR_OPERATORS_OPERATOR_TABLE_H_
#define SVOD_IR_OPERATORS_OPERATOR_TABLE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/tensor_builder.h"

namespace svod {

enum class AttributeKind : uint8_t {
  kInt,     // axis=1
  kFloat,   // eps=1e-5
  kBool,    // keep=true, or the bare word keep
  kWord,    // mode=reflect
  kDType,   // dtype=f32
  kInts,    // axes=[0, 1]; one integer stands for [it]
  kDims,    // shape=[64, %n]: integers and index expressions
  kTensor,  // mask=%m
};

// In the order of AttributeKind.
using AttributeValue = std::variant<int64_t, double, bool, std::string, DType, std::vector<int64_t>,
                                    Shape, const UOp*>;

struct AttributeInfo {
  const char* name;
  AttributeKind kind;
  const char* default_text;  // as text writes it; null: required; "": may be missing (see Has)
};

// One use of an operator: its operands and attributes as they were given.
class OperatorCall {
 public:
  OperatorCall(std::vector<const UOp*> operands,
               std::vector<std::pair<std::string, AttributeValue>> attributes)
      : operands_(std::move(operands)), attributes_(std::move(attributes)) {}

  absl::Span<const UOp* const> operands() const { return operands_; }
  // Operand i; null when fewer were given.
  const UOp* operand(size_t i) const { return i < operands_.size() ? operands_[i] : nullptr; }
  const std::vector<std::pair<std::string, AttributeValue>>& attributes() const {
    return attributes_;
  }
  bool Has(absl::string_view name) const { return Find(name) != nullptr; }
  // The attribute's value; T{} when it was neither given nor has a default.
  template <typename T>
  T Get(absl::string_view name) const {
    const AttributeValue* value = Find(name);
    return value == nullptr ? T{} : std::get<T>(*value);
  }

 private:
  const AttributeValue* Find(absl::string_view name) const {
    for (const auto& [key, value] : attributes_) {
      if (key == name) return &value;
    }
    return nullptr;
  }
  std::vector<const UOp*> operands_;
  std::vector<std::pair<std::string, AttributeValue>> attributes_;
};

struct OperatorInfo {
  const char* name;  // as text writes it: "softmax"
  const char*
      operands;  // "x, w, b?": those with '?' may be left out, "x..." stands for one or more
  std::vector<AttributeInfo> attributes;
  const char* results;  // "y", or "values, positions"
  const char* shapes;   // "x [..., K], y [..., K]": how shapes and dtypes follow
  const char* meaning;  // one or two lines
  const char* section;  // heading in docs/operators.md
  // As many results as `results` names (any number for "y..."); empty after a failure, which the
  // builder holds. Attributes with defaults are filled in.
  std::vector<const UOp*> (*build)(TensorBuilder& builder, const OperatorCall& call);
};

absl::Span<const OperatorInfo> Operators();
// Null if there is none of that name.
const OperatorInfo* FindOperator(absl::string_view name);

// Checks the number of operands and the names, kinds and presence of attributes, fills in defaults
// and builds. Errors: the builder's, each after "name: "; empty then.
std::vector<const UOp*> BuildOperator(TensorBuilder& builder, const OperatorInfo& info,
                                      OperatorCall call);

// The least and most operands; most is -1 for any number.
std::pair<int, int> NumOperands(const OperatorInfo& info);

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_OPERATOR_TABLE_H_
