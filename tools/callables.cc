#include "tools/callables.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/operators/operator_table.h"

namespace svod {
namespace {

std::vector<std::string> CollectNames() {
  std::vector<std::string> names;
  for (const OpInfo& info : kOpInfos) {
    Op op = static_cast<Op>(&info - kOpInfos);
    bool is_tensor_op = info.op_class == OpClass::kTensor && op != Op::kAssign;
    if (op == Op::kReduceAxis) {
      for (int kind = 0; kind <= static_cast<int>(ReduceKind::kOr); ++kind) {
        names.push_back(absl::StrCat("reduce_", ToString(static_cast<ReduceKind>(kind))));
      }
    } else if (is_tensor_op || IsElementwise(op)) {
      names.emplace_back(info.text);
    }
    if (op != Op::kScatter) continue;
    for (int kind = 1; kind <= static_cast<int>(ScatterKind::kMin); ++kind) {
      names.push_back(absl::StrCat("scatter_", ToString(static_cast<ScatterKind>(kind))));
    }
  }
  for (const OperatorInfo& info : Operators()) names.emplace_back(info.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

const std::vector<std::string>& CallableNames() {
  static const auto* const kNames = new std::vector<std::string>(CollectNames());
  return *kNames;
}

std::string CallablesInColumns() {
  std::string text, line = " ";
  for (const std::string& name : CallableNames()) {
    if (line.size() + name.size() >= 99) {
      absl::StrAppend(&text, line, "\n");
      line = " ";
    }
    absl::StrAppend(&line, " ", name);
  }
  return absl::StrCat(text, line, "\n");
}

absl::StatusOr<std::string> DescribeCallable(absl::string_view name) {
  if (const OperatorInfo* info = FindOperator(name)) {
    std::string parts = info->operands;
    for (const AttributeInfo& attribute : info->attributes) {
      absl::StrAppend(&parts, parts.empty() ? "" : ", ", attribute.name);
      // As the table says: null where it must be given, "" where it may be missing.
      absl::string_view value = attribute.default_text == nullptr ? "" : attribute.default_text;
      if (!value.empty()) absl::StrAppend(&parts, "=", value);
      if (value.empty() && attribute.default_text != nullptr) parts.push_back('?');
    }
    return absl::StrCat(info->name, "(", parts, ") gives ", info->results, "\n  ", info->meaning,
                        "\n  ", info->shapes, "\n");
  }
  const auto& names = CallableNames();
  if (std::binary_search(names.begin(), names.end(), std::string(name))) {
    std::optional<Op> op = FindOp(name);
    if (absl::StartsWith(name, "reduce_")) op = Op::kReduceAxis;
    if (absl::StartsWith(name, "scatter")) op = Op::kScatter;
    return absl::StrCat(name, "\n  ", InfoOf(*op).meaning, "\n");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no command, op or operator '", name, "', see :help"));
}

}  // namespace svod
