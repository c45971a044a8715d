// Sharing: kernels that differ in float constants alone become one kernel, whose calls bind them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/status_macros.h"
#include "plan/scheduler.h"

namespace svod {
namespace {

// Fewer are compiled side by side before anybody waits, and know their constants.
constexpr size_t kMinShared = 8;

// Ops to which a number is as good in a register as in the code. Others have forms of their own for
// some numbers: a division becomes a product, a power a square.
bool TakesAnyNumber(Op op) {
  return op == Op::kAdd || op == Op::kSub || op == Op::kMul || op == Op::kMax;
}

// f32 numbers that no rewrite rule asks for.
bool IsPlainNumber(const UOp* node) {
  if (!IsConst(node) || node->dtype() != DType(Scalar::kF32)) return false;
  const double value = ConstFloat(node);
  return std::isfinite(value) && value != 0 && std::abs(value) != 1;
}

// The numbers of a kernel that any others could stand in for, in the order of its nodes.
std::vector<const UOp*> PlainNumbers(absl::Span<const UOp* const> nodes) {
  absl::flat_hash_set<const UOp*> kept;
  for (const UOp* node : nodes) {
    if (TakesAnyNumber(node->op())) continue;
    kept.insert(node->sources().begin(), node->sources().end());
  }
  std::vector<const UOp*> numbers;
  for (const UOp* node : nodes) {
    if (IsPlainNumber(node) && !kept.contains(node)) numbers.push_back(node);
  }
  return numbers;
}

}  // namespace

// A kernel with variables, which hold the bits, instead of its plain numbers; null when it has none
// or is not worth it.
absl::StatusOr<const UOp*> Scheduler::WithoutNumbers(const Kernel& kernel,
                                                     std::vector<const UOp*>* binds) {
  if (kernel.is_copy || kernel.has_reduce || kernel.sink == nullptr) return nullptr;
  const std::vector<const UOp*> nodes = Toposort(kernel.sink);
  const bool has_variables = std::any_of(
      nodes.begin(), nodes.end(), [](const UOp* node) { return node->op() == Op::kDefineVar; });
  const std::vector<const UOp*> numbers = PlainNumbers(nodes);
  if (has_variables || numbers.empty()) return nullptr;
  absl::flat_hash_map<const UOp*, const UOp*> copies;
  for (const UOp* number : numbers) {
    const auto bits = static_cast<int64_t>(number->arg<ConstArgument>().bits);
    const UOp* variable = Make(Op::kDefineVar, Scalar::kIndex, {},
                               VariableArgument{absl::StrCat("constant", binds->size()), 0,
                                                std::numeric_limits<uint32_t>::max()});
    binds->push_back(Make(Op::kBind, DType(), {variable, context_->Index(bits)}));
    copies[number] = Make(Op::kBitcast, Scalar::kF32, {Make(Op::kCast, Scalar::kU32, {variable})});
  }
  std::vector<const UOp*> sources;
  for (const UOp* node : nodes) {
    if (copies.contains(node)) continue;
    sources.clear();
    for (const UOp* source : node->sources()) sources.push_back(copies.at(source));
    Argument argument = node->argument();
    if (auto* function = std::get_if<FunctionArgument>(&argument)) function->name = "";
    copies[node] = Make(node->op(), node->dtype(), sources, argument);
  }
  SVOD_RETURN_IF_ERROR(build_error_);
  return copies.at(kernel.sink);
}

absl::Status Scheduler::ShareKernels() {
  struct Group {
    absl::flat_hash_set<const UOp*> different;
    std::vector<size_t> members;
  };
  std::vector<std::pair<const UOp*, Group>> groups;  // in the order of their first members
  absl::flat_hash_map<const UOp*, size_t> group_of;
  std::vector<std::vector<const UOp*>> binds(kernels_.size());
  if (kernels_.size() < kMinShared) return absl::OkStatus();
  for (size_t i = 0; i < kernels_.size(); ++i) {
    SVOD_ASSIGN_OR_RETURN(const UOp* shared, WithoutNumbers(kernels_[i], &binds[i]));
    if (shared == nullptr) continue;
    auto [it, is_new] = group_of.try_emplace(shared, groups.size());
    if (is_new) groups.emplace_back(shared, Group{});
    Group& group = groups[it->second].second;
    group.different.insert(kernels_[i].sink);
    group.members.push_back(i);
  }
  for (const auto& [shared, group] : groups) {
    if (group.different.size() < kMinShared) continue;
    FunctionArgument function = shared->arg<FunctionArgument>();
    function.name = kernels_[group.members[0]].sink->arg<FunctionArgument>().name;
    const UOp* sink = Make(Op::kSink, DType(), shared->sources(), function);
    for (size_t i : group.members) {
      kernels_[i].sink = sink;
      kernels_[i].binds = std::move(binds[i]);
    }
  }
  return build_error_;
}

}  // namespace svod
