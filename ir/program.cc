#include "ir/program.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace svod {

std::string Function::Describe(const UOp* node) const {
  auto it = notes.find(node);
  absl::string_view name;
  std::string place;
  if (it != notes.end()) {
    const NodeNote& note = it->second;
    name = note.name;
    if (note.line > 0) {
      place = absl::StrCat(file, file.empty() ? "" : ":", note.line, ":", note.column, ": ");
    }
  }
  // Parameters and variables bring their names along.
  if (name.empty() && node->op() == Op::kParam) name = node->arg<ParamArgument>().name;
  if (name.empty() && node->op() == Op::kDefineVar) name = node->arg<VariableArgument>().name;
  return name.empty() ? absl::StrCat(place, InfoOf(node->op()).text)
                      : absl::StrCat(place, "%", name);
}

const Function* Module::Find(absl::string_view name) const {
  for (const Function& function : functions) {
    if (function.name() == name) return &function;
  }
  return nullptr;
}

absl::StatusOr<std::vector<const UOp*>> ParamsOf(const UOp* sink) {
  std::vector<const UOp*> found;
  // Not Toposort: a graph's parameters are not those of the kernels that it calls.
  absl::flat_hash_set<const UOp*> seen = {sink};
  std::vector<const UOp*> stack = {sink};
  while (!stack.empty()) {
    const UOp* node = stack.back();
    stack.pop_back();
    if (node->op() == Op::kParam) found.push_back(node);
    for (const UOp* source : node->sources()) {
      if (source->op() != Op::kSink && seen.insert(source).second) stack.push_back(source);
    }
  }
  std::vector<const UOp*> params(found.size(), nullptr);
  for (const UOp* param : found) {
    int64_t slot = param->arg<ParamArgument>().slot;
    if (slot < 0 || slot >= static_cast<int64_t>(params.size())) {
      return absl::InvalidArgumentError(absl::StrCat("param: slot, got ", slot, " of ",
                                                     params.size(), " parameters, expected 0 to ",
                                                     params.size() - 1));
    }
    if (params[slot] != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("param: slot, got ", slot, " twice, expected each parameter its own"));
    }
    params[slot] = param;
  }
  return params;
}

std::vector<const UOp*> VariablesOf(const UOp* root) {
  std::vector<const UOp*> variables;
  absl::flat_hash_set<absl::string_view> names;
  for (const UOp* node : Toposort(root)) {
    if (node->op() != Op::kDefineVar) continue;
    if (names.insert(node->arg<VariableArgument>().name).second) variables.push_back(node);
  }
  return variables;
}

}  // namespace svod
