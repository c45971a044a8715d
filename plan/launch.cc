#include "plan/launch.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/evaluate.h"
#include "ir/status_macros.h"

namespace svod {

absl::StatusOr<IndexProgram> IndexProgram::Create(const UOp* expression,
                                                  const VariableLookup& lookup) {
  if (expression->dtype() != Scalar::kIndex) {
    return absl::InvalidArgumentError(
        absl::StrCat("an extent of dtype ", ToString(expression->dtype()), ", expected index"));
  }
  IndexProgram program;
  absl::flat_hash_map<const UOp*, uint32_t> step_of;
  absl::flat_hash_set<const UOp*> missing;  // variables that only a bind may refer to
  auto check_value = [&](const UOp* node) {
    if (!missing.contains(node)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("variable ", node->arg<VariableArgument>().name, " has no value"));
  };
  for (const UOp* node : Toposort(expression)) {
    Step step;
    step.op = node->op();
    step.dtype = node->dtype();
    if (node->dtype().is_vector() || node->dtype().is_float() || node->dtype().is_void()) {
      return absl::InvalidArgumentError(absl::StrCat("a node of dtype ", ToString(node->dtype()),
                                                     " in an extent, expected an integer"));
    }
    if (node->op() == Op::kDefineVar) {
      std::optional<VariableSource> source = lookup(node->arg<VariableArgument>().name);
      if (!source) {
        missing.insert(node);
        source = VariableSource{true, 0, 0};
      }
      step.is_variable = !source->is_fixed;
      step.position = source->position;
      step.bits = static_cast<uint64_t>(source->fixed_value);
    } else if (node->op() == Op::kConst) {
      step.bits = node->arg<ConstArgument>().bits;
    } else if (node->op() == Op::kBind) {
      // The constant that the variable is fixed to; its own step is not read.
      step_of[node] = step_of.at(node->source(1));
      continue;
    } else if (IsElementwise(node->op()) && node->num_sources() <= 3) {
      step.num_operands = node->num_sources();
      step.operand_dtype = node->source(node->num_sources() - 1)->dtype();
      for (int i = 0; i < node->num_sources(); ++i) {
        SVOD_RETURN_IF_ERROR(check_value(node->source(i)));
        step.operands[i] = step_of.at(node->source(i));
      }
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          InfoOf(node->op()).text, " in an extent, expected constants, variables and arithmetic"));
    }
    step_of[node] = static_cast<uint32_t>(program.steps_.size());
    program.steps_.push_back(step);
  }
  SVOD_RETURN_IF_ERROR(check_value(expression));
  // The result is the last step; a bind at the root stands for an earlier one.
  program.steps_.resize(step_of.at(expression) + 1);
  bool reads_variables = std::any_of(program.steps_.begin(), program.steps_.end(),
                                     [](const Step& step) { return step.is_variable; });
  if (!reads_variables) {
    Step constant;
    constant.bits = static_cast<uint64_t>(program.Run({}));
    program.steps_.assign(1, constant);
  }
  return program;
}

int64_t IndexProgram::Run(absl::Span<const int64_t> values) const {
  if (steps_.empty()) return 1;
  for (const Step& step : steps_) {
    if (step.is_variable) {
      step.bits = static_cast<uint64_t>(values[step.position]);
    } else if (step.num_operands > 0) {
      uint64_t operands[3];
      for (int i = 0; i < step.num_operands; ++i) operands[i] = steps_[step.operands[i]].bits;
      step.bits =
          EvaluateScalar(step.op, step.dtype, step.operand_dtype,
                         absl::MakeConstSpan(operands, static_cast<size_t>(step.num_operands)));
    }
  }
  return static_cast<int64_t>(steps_.back().bits);
}

namespace {

absl::StatusOr<std::array<IndexProgram, 3>> CreateAll(const LaunchExpression& expressions,
                                                      absl::string_view what,
                                                      const VariableLookup& lookup) {
  std::array<IndexProgram, 3> programs;
  for (size_t axis = 0; axis < 3; ++axis) {
    if (expressions[axis] == nullptr) continue;
    absl::StatusOr<IndexProgram> program = IndexProgram::Create(expressions[axis], lookup);
    if (!program.ok()) return Annotate(program.status(), absl::StrCat(what, "[", axis, "]"));
    programs[axis] = *std::move(program);
  }
  return programs;
}

}  // namespace

absl::StatusOr<LaunchSizes> LaunchSizes::Create(const CompiledKernel& kernel,
                                                const VariableLookup& lookup) {
  LaunchSizes sizes;
  SVOD_ASSIGN_OR_RETURN(sizes.global_, CreateAll(kernel.global_size, "global_size", lookup));
  auto is_symbolic = [](const IndexProgram& program) { return !program.is_constant(); };
  sizes.is_symbolic_ = std::any_of(sizes.global_.begin(), sizes.global_.end(), is_symbolic);
  if (kernel.local_size) {
    SVOD_ASSIGN_OR_RETURN(sizes.local_, CreateAll(*kernel.local_size, "local_size", lookup));
    sizes.is_symbolic_ |= std::any_of(sizes.local_->begin(), sizes.local_->end(), is_symbolic);
  }
  return sizes;
}

void LaunchSizes::Resolve(absl::Span<const int64_t> values) {
  for (size_t axis = 0; axis < 3; ++axis) global_size_[axis] = global_[axis].Run(values);
  if (!local_) return;
  local_size_.emplace();
  for (size_t axis = 0; axis < 3; ++axis) (*local_size_)[axis] = (*local_)[axis].Run(values);
}

}  // namespace svod
