// The parser's composite operators: calls by name of the operator table, which expand to nodes.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/literal.h"
#include "ir/parser.h"

namespace svod {

const AttributeInfo* Parser::FindAttributeInfo(absl::string_view name) const {
  for (const AttributeInfo& info : statement_.composite->attributes) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

bool Parser::CheckOperatorParts() {
  auto refuse = [&](const Token& token, absl::string_view what) {
    return Fail(token, absl::StrCat(statement_.op_token.text, " takes no ", what));
  };
  if (statement_.string.has_value()) return refuse(*statement_.string, "string");
  if (statement_.list.has_value()) return refuse(statement_.list->token, "list without a name");
  if (statement_.type.has_value()) return refuse(statement_.type->token, "type");
  for (const Operand& operand : statement_.operands) {
    if (operand.kind == Operand::Kind::kKernel) {
      return Fail(operand.token, absl::StrCat(statement_.op_token.text, ": operand, got ",
                                              Describe(operand.token), ", expected a value"));
    }
  }
  return true;
}

bool Parser::ValueOf(const AttributeInfo& info, Operand* operand, AttributeValue* value) {
  switch (info.kind) {
    case AttributeKind::kInt:
      return IntegerOf(*operand, std::numeric_limits<int64_t>::min(), &value->emplace<int64_t>());
    case AttributeKind::kFloat: {
      if (operand->kind != Operand::Kind::kLiteral || operand->dtype.has_value() ||
          !operand->steps.empty()) {
        return Fail(operand->token,
                    absl::StrCat("got ", Describe(operand->token), ", expected a plain number"));
      }
      absl::StatusOr<uint64_t> bits = ParseLiteral(operand->token.text, Scalar::kF64);
      if (!bits.ok()) return Fail(operand->token, bits.status().message());
      *value = BitsToDouble(Scalar::kF64, *bits);
      return true;
    }
    case AttributeKind::kBool:
      if (!operand->token.IsWord("true") && !operand->token.IsWord("false")) {
        return Fail(operand->token,
                    absl::StrCat("got ", Describe(operand->token), ", expected true or false"));
      }
      *value = operand->token.text == "true";
      return true;
    case AttributeKind::kWord:
      *value = std::string(operand->token.text);
      return true;
    case AttributeKind::kDType: {
      absl::StatusOr<DType> dtype = ParseDType(operand->token.text);
      if (!dtype.ok()) return Fail(operand->token, dtype.status().message());
      *value = *dtype;
      return true;
    }
    case AttributeKind::kInts: {
      auto& integers = value->emplace<std::vector<int64_t>>();
      bool is_list = operand->kind == Operand::Kind::kList;
      for (const Operand& item : is_list ? operand->items : std::vector<Operand>{*operand}) {
        constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
        if (!IntegerOf(item, kLowest, &integers.emplace_back())) return false;
      }
      return true;
    }
    case AttributeKind::kDims: {
      auto& dims = value->emplace<svod::Shape>();
      if (operand->kind == Operand::Kind::kList) return ResolveDims(&operand->items, &dims);
      std::vector<Operand> one = {*operand};
      return ResolveDims(&one, &dims);
    }
    case AttributeKind::kTensor: {
      std::optional<DType> dtype;
      if (!statement_.operands.empty()) dtype = statement_.operands[0].dtype;
      if (!Resolve(operand, dtype)) return false;
      *value = operand->node;
      return true;
    }
  }
  return false;
}

// Literals take the dtype of the first operand that has one.
bool Parser::BuildOperatorCall() {
  std::optional<DType> dtype;
  for (const Operand& operand : statement_.operands) {
    if (!dtype.has_value()) dtype = operand.dtype;
  }
  for (Operand& operand : statement_.operands) {
    if (!Resolve(&operand, dtype)) return false;
  }
  std::vector<std::pair<std::string, AttributeValue>> attributes;
  for (const Token& flag : statement_.flags) {
    if (FindAttribute(flag.text) != nullptr) {
      return Fail(flag, absl::StrCat("attribute ", Describe(flag), " is given twice"));
    }
    attributes.emplace_back(std::string(flag.text), true);
  }
  for (Attribute& attribute : statement_.attributes) {
    const AttributeInfo& info = *FindAttributeInfo(attribute.name.text);
    auto& [name, value] = attributes.emplace_back();
    name = std::string(attribute.name.text);
    if (!ValueOf(info, &attribute.value, &value)) return false;
  }
  size_t first_id = context_->num_nodes();
  results_ = BuildOperator(tensors_, *statement_.composite,
                           OperatorCall(OperandNodes(), std::move(attributes)));
  if (!tensors_.ok()) return Fail(statement_.op_token, tensors_.Take().message());
  for (const UOp* result : results_) NotePlaces(result, first_id, statement_.op_token);
  return true;
}

}  // namespace svod
