#include "plan/prepared.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/program.h"

namespace svod {

std::vector<RuntimeVar> CollectRuntimeVars(const UOp* root) {
  std::vector<RuntimeVar> variables;
  for (const UOp* node : VariablesOf(root)) {
    const auto& variable = node->arg<VariableArgument>();
    variables.push_back({std::string(variable.name), variable.min, variable.max});
  }
  return variables;
}

std::string DebugString(const PreparedKernel& kernel) {
  return absl::StrCat("kernel ", kernel.id, ": device ", ToString(kernel.device), ", buffers [",
                      absl::StrJoin(kernel.buffer_indices, ", "), "], outputs [",
                      absl::StrJoin(kernel.output_indices, ", "), "], values [",
                      absl::StrJoin(kernel.values, ", "), "], fixed {",
                      absl::StrJoin(kernel.fixed_variables, ", ", absl::PairFormatter("=")),
                      "}, after [", absl::StrJoin(kernel.dependencies, ", "), "]");
}

}  // namespace svod
