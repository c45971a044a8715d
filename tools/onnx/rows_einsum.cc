// Rows of the operator table: Einsum.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/operators/compose.h"
#include "tools/onnx/onnx_operators.h"

namespace svod {
namespace {

// The labels of a term. The dimensions of "..." have the characters 1, 2, ... from the last one on,
// which no equation holds.
std::optional<std::string> Spell(OnnxNode& node, absl::string_view term, int64_t num_hidden) {
  std::string labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (absl::StartsWith(term.substr(i), "...")) {
      if (num_hidden < 0 || num_hidden > 20) break;
      for (int64_t k = num_hidden; k-- > 0;) labels.push_back(static_cast<char>(1 + k));
      i += 2;
    } else if (absl::ascii_isalpha(static_cast<unsigned char>(term[i]))) {
      labels.push_back(term[i]);
    } else {
      node.Fail(absl::StrCat("attribute 'equation': term, got '", term, "', expected letters"));
      return std::nullopt;
    }
  }
  return labels;
}

int64_t LettersOf(absl::string_view term) {
  return std::count_if(term.begin(), term.end(),
                       [](char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); });
}

// The diagonal where a label stands several times: only the places where all are equal, of which
// there is one for each index.
const UOp* TakeDiagonals(OnnxNode& node, const UOp* x, std::string* labels) {
  TensorBuilder& builder = node.builder();
  for (size_t i = 0; i < labels->size(); ++i) {
    size_t again = labels->find((*labels)[i], i + 1);
    if (again == std::string::npos) continue;
    if (!builder.dims().Same(builder.Dim(x, static_cast<int64_t>(i)),
                             builder.Dim(x, static_cast<int64_t>(again)))) {
      node.Fail("a label that stands twice, expected equal dimensions");
      return nullptr;
    }
    int rank = builder.RankOf(x);
    auto place = [&](size_t axis) {
      auto at = static_cast<int64_t>(axis);
      return PositionsAlong(builder, rank, at, builder.Dim(x, at), Scalar::kI64);
    };
    const UOp* on_diagonal =
        builder.Where(Equal(place(i), place(again)), x, builder.ConstInt(x->dtype(), 0));
    x = builder.Squeeze(
        builder.ReduceAxis(ReduceKind::kAdd, on_diagonal, {static_cast<int64_t>(again)}, true),
        static_cast<int64_t>(again));
    labels->erase(again, 1);
    --i;
    if (!node.ok()) return nullptr;
  }
  return x;
}

// x with its dimensions in the order of `all`, 1 for labels that it lacks.
const UOp* Align(TensorBuilder& builder, const UOp* x, const std::string& labels,
                 const std::string& all) {
  std::vector<int64_t> order;
  for (char label : all) {
    size_t at = labels.find(label);
    if (at != std::string::npos) order.push_back(static_cast<int64_t>(at));
  }
  x = builder.Permute(x, order);
  for (size_t i = 0; i < all.size(); ++i) {
    if (labels.find(all[i]) == std::string::npos) x = builder.Unsqueeze(x, static_cast<int64_t>(i));
  }
  return x;
}

// Two operands into one, adding over the labels that nothing later wants: the product over all
// labels and one reduction, as Matmul has it.
OnnxResults ImportEinsum(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  node.Require("equation");
  std::string equation = node.String("equation", "");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  std::pair<std::string, std::string> sides = absl::StrSplit(equation, absl::MaxSplits("->", 1));
  bool has_result = absl::StrContains(equation, "->");
  std::vector<std::string> terms = absl::StrSplit(sides.first, ',');
  if (terms.size() != node.num_inputs()) {
    return node.Fail(absl::StrCat("attribute 'equation', got ", terms.size(), " terms, expected ",
                                  node.num_inputs()));
  }
  std::vector<const UOp*> operands;
  std::vector<std::string> labels;
  int64_t most_hidden = 0;
  std::map<char, int> uses;
  for (size_t i = 0; i < terms.size(); ++i) {
    int64_t hidden = node.rank(i) - LettersOf(terms[i]);
    std::optional<std::string> spelt = Spell(node, terms[i], hidden);
    if (!spelt.has_value()) return {};
    if (static_cast<int64_t>(spelt->size()) != node.rank(i)) {
      return node.Fail(absl::StrCat("attribute 'equation': term ", i, ", got '", terms[i],
                                    "' for rank ", node.rank(i)));
    }
    for (char label : *spelt) ++uses[label];
    if (absl::StrContains(terms[i], "...")) most_hidden = std::max(most_hidden, hidden);
    std::string own = *spelt;
    operands.push_back(TakeDiagonals(node, node.input(i), &own));
    labels.push_back(own);
    if (!node.ok()) return {};
  }
  std::string result;
  if (has_result) {
    std::optional<std::string> spelt = Spell(node, sides.second, most_hidden);
    if (!spelt.has_value()) return {};
    result = *spelt;
  } else {
    for (int64_t k = most_hidden; k-- > 0;) result.push_back(static_cast<char>(1 + k));
    for (const auto& [label, count] : uses) {
      if (count == 1 && absl::ascii_isalpha(static_cast<unsigned char>(label))) {
        result.push_back(label);
      }
    }
  }
  if (std::set<char>(result.begin(), result.end()).size() != result.size()) {
    return node.Fail("attribute 'equation': the result, got a label twice");
  }
  for (char label : result) {
    if (uses[label] == 0)
      return node.Fail("attribute 'equation': the result has a label of its own");
  }
  const UOp* value = operands[0];
  std::string have = labels[0];
  for (size_t i = 1; i <= operands.size(); ++i) {
    // What is left to be wanted after this step.
    std::set<char> wanted(result.begin(), result.end());
    for (size_t k = i + 1; k < operands.size(); ++k)
      wanted.insert(labels[k].begin(), labels[k].end());
    std::string all = have;
    if (i < operands.size()) {
      for (char label : labels[i]) {
        if (all.find(label) == std::string::npos) all.push_back(label);
      }
      value = builder.Mul(Align(builder, value, have, all),
                          Align(builder, operands[i], labels[i], all));
    }
    std::vector<int64_t> axes;
    have.clear();
    for (size_t k = 0; k < all.size(); ++k) {
      if (wanted.contains(all[k])) {
        have.push_back(all[k]);
      } else {
        axes.push_back(static_cast<int64_t>(k));
      }
    }
    if (!axes.empty()) value = builder.ReduceAxis(ReduceKind::kAdd, value, axes, false);
    if (!node.ok()) return {};
  }
  return {Align(builder, value, have, result)};
}

}  // namespace

OnnxRows OnnxEinsumRows() { return {{"Einsum", {12}, 1, -1, ImportEinsum}}; }

}  // namespace svod
