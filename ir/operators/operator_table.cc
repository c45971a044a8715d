#include "ir/operators/operator_table.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ir/operators/operator_rows.h"

namespace svod {
namespace {

// Built at the first use and kept: nothing is destroyed at exit.
struct Table {
  OperatorRows rows;
  absl::flat_hash_map<absl::string_view, const OperatorInfo*> by_name;
};

const Table& TheTable() {
  static const Table* const table = [] {
    auto* made = new Table;
    AddElementwiseRows(&made->rows);
    AddReductionRows(&made->rows);
    AddShapingRows(&made->rows);
    AddIndexingRows(&made->rows);
    AddNetworkRows(&made->rows);
    for (const OperatorInfo& info : made->rows) made->by_name[info.name] = &info;
    return made;
  }();
  return *table;
}

const char* KindName(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kInt:
      return "an integer";
    case AttributeKind::kFloat:
      return "a number";
    case AttributeKind::kBool:
      return "true or false";
    case AttributeKind::kWord:
      return "a word";
    case AttributeKind::kDType:
      return "a dtype";
    case AttributeKind::kInts:
      return "integers";
    case AttributeKind::kDims:
      return "dimensions";
    case AttributeKind::kTensor:
      return "a tensor";
  }
  return "";
}

// "1", "[0, 1]" and "[]".
std::vector<int64_t> ParseInts(absl::string_view text) {
  std::vector<int64_t> numbers;
  absl::ConsumePrefix(&text, "[");
  absl::ConsumeSuffix(&text, "]");
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    int64_t number = 0;
    if (absl::SimpleAtoi(absl::StripAsciiWhitespace(part), &number)) numbers.push_back(number);
  }
  return numbers;
}

AttributeValue ParseDefault(TensorBuilder& builder, const AttributeInfo& info) {
  absl::string_view text = info.default_text;
  switch (info.kind) {
    case AttributeKind::kInt: {
      int64_t number = 0;
      (void)absl::SimpleAtoi(text, &number);
      return number;
    }
    case AttributeKind::kFloat: {
      double number = 0;
      (void)absl::SimpleAtod(text, &number);
      return number;
    }
    case AttributeKind::kBool:
      return text == "true";
    case AttributeKind::kWord:
      return std::string(text);
    case AttributeKind::kDType:
      return ParseDType(text).value_or(DType());
    case AttributeKind::kInts:
      return ParseInts(text);
    case AttributeKind::kDims:
      return builder.ConstShape(ParseInts(text));
    case AttributeKind::kTensor:
      return static_cast<const UOp*>(nullptr);
  }
  return int64_t{0};
}

// A value of another kind that stands for one of this: an integer for a number, one integer for a
// list, integers for dimensions. Others are left.
AttributeValue Converted(TensorBuilder& builder, AttributeKind kind, AttributeValue value) {
  if (const auto* number = std::get_if<int64_t>(&value)) {
    if (kind == AttributeKind::kFloat) return static_cast<double>(*number);
    if (kind == AttributeKind::kInts) return std::vector<int64_t>{*number};
    if (kind == AttributeKind::kDims) return builder.ConstShape({*number});
  }
  if (const auto* numbers = std::get_if<std::vector<int64_t>>(&value)) {
    if (kind == AttributeKind::kDims) return builder.ConstShape(*numbers);
  }
  return value;
}

// The attributes in the order of the row, with defaults. Errors: unknown, given twice, of another
// kind, missing.
absl::StatusOr<std::vector<std::pair<std::string, AttributeValue>>> CheckAttributes(
    TensorBuilder& builder, const OperatorInfo& info,
    std::vector<std::pair<std::string, AttributeValue>> given) {
  std::vector<std::pair<std::string, AttributeValue>> result;
  std::vector<bool> is_used(given.size(), false);
  for (const AttributeInfo& attribute : info.attributes) {
    bool is_found = false;
    for (size_t i = 0; i < given.size(); ++i) {
      auto& [name, value] = given[i];
      if (name != attribute.name) continue;
      if (is_found) {
        return absl::InvalidArgumentError(
            absl::StrCat("attribute ", name, ", got it twice, expected it once"));
      }
      is_found = is_used[i] = true;
      value = Converted(builder, attribute.kind, std::move(value));
      const auto* tensor = std::get_if<const UOp*>(&value);
      bool is_null = tensor != nullptr && *tensor == nullptr;
      if (is_null || value.index() != static_cast<size_t>(attribute.kind)) {
        const char* got = is_null ? "null" : KindName(static_cast<AttributeKind>(value.index()));
        return absl::InvalidArgumentError(absl::StrCat("attribute ", name, ", got ", got,
                                                       ", expected ", KindName(attribute.kind)));
      }
      result.emplace_back(name, std::move(value));
    }
    if (is_found) continue;
    if (attribute.default_text == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "attribute ", attribute.name, ", got none, expected ", KindName(attribute.kind)));
    }
    if (*attribute.default_text == '\0') continue;
    result.emplace_back(attribute.name, ParseDefault(builder, attribute));
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (is_used[i]) continue;
    std::string names;
    for (const AttributeInfo& attribute : info.attributes) {
      absl::StrAppend(&names, names.empty() ? "" : ", ", attribute.name);
    }
    return absl::InvalidArgumentError(absl::StrCat("attribute, got ", given[i].first, ", expected ",
                                                   names.empty() ? "none" : "one of ", names));
  }
  return result;
}

absl::Status CheckOperands(const OperatorInfo& info, absl::Span<const UOp* const> operands) {
  auto [least, most] = NumOperands(info);
  int count = static_cast<int>(operands.size());
  if (count >= least && (most < 0 || count <= most)) {
    if (std::find(operands.begin(), operands.end(), nullptr) == operands.end()) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError("operand, got null, expected a tensor");
  }
  std::string expected = most < 0        ? absl::StrCat(least, " or more")
                         : most == least ? absl::StrCat(least)
                                         : absl::StrCat(least, " to ", most);
  if (*info.operands != '\0') absl::StrAppend(&expected, " (", info.operands, ")");
  return absl::InvalidArgumentError(
      absl::StrCat("number of operands, got ", count, ", expected ", expected));
}

}  // namespace

absl::Span<const OperatorInfo> Operators() { return TheTable().rows; }

const OperatorInfo* FindOperator(absl::string_view name) {
  auto it = TheTable().by_name.find(name);
  return it == TheTable().by_name.end() ? nullptr : it->second;
}

std::pair<int, int> NumOperands(const OperatorInfo& info) {
  int least = 0, most = 0;
  for (absl::string_view name : absl::StrSplit(info.operands, ", ", absl::SkipEmpty())) {
    if (absl::EndsWith(name, "...")) return {least + 1, -1};
    if (!absl::EndsWith(name, "?")) ++least;
    ++most;
  }
  return {least, most};
}

std::vector<const UOp*> BuildOperator(TensorBuilder& builder, const OperatorInfo& info,
                                      OperatorCall call) {
  if (!builder.ok()) return {};
  std::vector<const UOp*> results;
  absl::Status status = CheckOperands(info, call.operands());
  if (status.ok()) {
    auto attributes = CheckAttributes(builder, info, call.attributes());
    status = attributes.status();
    if (status.ok()) {
      std::vector<const UOp*> operands(call.operands().begin(), call.operands().end());
      results = info.build(builder, OperatorCall(std::move(operands), *std::move(attributes)));
      status = builder.Take();
    }
  }
  if (status.ok()) return results;
  std::string prefix = absl::StrCat(info.name, ": ");
  if (!absl::StartsWith(status.message(), prefix)) {
    status = absl::Status(status.code(), absl::StrCat(prefix, status.message()));
  }
  builder.Fail(status);
  return {};
}

}  // namespace svod
