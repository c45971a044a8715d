// What the rows of the operator table are made of; each theme has a source of rows.
// Included by operator_table.cc and the sources rows_*.cc. Must not be included by others.
#ifndef SVOD_IR_OPERATORS_OPERATOR_ROWS_H_
#define SVOD_IR_OPERATORS_OPERATOR_ROWS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/operators/operator_table.h"

namespace svod {

using OperatorRows = std::vector<OperatorInfo>;
using OperatorResults = std::vector<const UOp*>;

// Each appends the rows of its themes, in the order of the documentation.
void AddElementwiseRows(OperatorRows* rows);
void AddReductionRows(OperatorRows* rows);
void AddShapingRows(OperatorRows* rows);
void AddIndexingRows(OperatorRows* rows);
void AddNetworkRows(OperatorRows* rows);

// A result; none after a failure.
inline OperatorResults One(const UOp* y) {
  return y == nullptr ? OperatorResults() : OperatorResults{y};
}
inline OperatorResults Two(std::pair<const UOp*, const UOp*> results) {
  if (results.first == nullptr || results.second == nullptr) return {};
  return {results.first, results.second};
}

// Builders without attributes, of one and two operands.
template <const UOp* (*kBuild)(TensorBuilder&, const UOp*)>
OperatorResults Unary(TensorBuilder& builder, const OperatorCall& call) {
  return One(kBuild(builder, call.operand(0)));
}
template <const UOp* (*kBuild)(TensorBuilder&, const UOp*, const UOp*)>
OperatorResults Binary(TensorBuilder& builder, const OperatorCall& call) {
  return One(kBuild(builder, call.operand(0), call.operand(1)));
}

template <typename T>
std::optional<T> Optional(const OperatorCall& call, absl::string_view name) {
  return call.Has(name) ? std::optional<T>(call.Get<T>(name)) : std::nullopt;
}

// The value that a word stands for; nothing and a failure that lists the words otherwise.
template <typename T>
std::optional<T> Choice(TensorBuilder& builder, const OperatorCall& call, absl::string_view name,
                        std::initializer_list<std::pair<absl::string_view, T>> words) {
  std::string word = call.Get<std::string>(name), expected;
  for (const auto& [text, value] : words) {
    if (text == word) return value;
    absl::StrAppend(&expected, expected.empty() ? "" : ", ", text);
  }
  builder.FailInvalid(absl::StrCat(name, ", got ", word, ", expected one of ", expected));
  return std::nullopt;
}

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_OPERATOR_ROWS_H_
