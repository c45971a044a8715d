// IndexProgram and LaunchSizes: symbolic extents, prepared so that a change of a variable costs a
// few arithmetic steps. Included by plan/. Knows no plan.
#ifndef SVOD_PLAN_LAUNCH_H_
#define SVOD_PLAN_LAUNCH_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/uop.h"
#include "jit/kernel.h"

namespace svod {

// Where an expression finds a variable: fixed to a value, or at a position of the values array.
struct VariableSource {
  bool is_fixed = false;
  int64_t fixed_value = 0;
  size_t position = 0;
};
// nullopt for a variable that has no value.
using VariableLookup = std::function<std::optional<VariableSource>(absl::string_view name)>;

// An index expression in postfix form; a fresh one is the constant 1. Needs neither its nodes nor
// their context any more.
class IndexProgram {
 public:
  // Errors: InvalidArgument for a variable without a value, or an op that is no integer
  // arithmetic on constants and variables.
  static absl::StatusOr<IndexProgram> Create(const UOp* expression, const VariableLookup& lookup);

  // The value; allocates nothing. `values` is what positions of the lookup refer to.
  int64_t Run(absl::Span<const int64_t> values) const;
  bool is_constant() const {
    return steps_.empty() || (steps_.size() == 1 && !steps_[0].is_variable);
  }

 private:
  struct Step {
    Op op = Op::kConst;
    DType dtype, operand_dtype;
    std::array<uint32_t, 3> operands = {};
    int num_operands = 0;
    bool is_variable = false;
    size_t position = 0;
    mutable uint64_t bits = 0;  // the constant, or the result of the last Run
  };
  std::vector<Step> steps_;
};

// The launch extents of one kernel.
class LaunchSizes {
 public:
  // Errors: as IndexProgram::Create, with the extent's name before the message.
  static absl::StatusOr<LaunchSizes> Create(const CompiledKernel& kernel,
                                            const VariableLookup& lookup);

  // Works the extents out again. One thread at a time.
  void Resolve(absl::Span<const int64_t> values);
  bool is_symbolic() const { return is_symbolic_; }
  // As last resolved.
  const std::array<int64_t, 3>& global_size() const { return global_size_; }
  const std::optional<std::array<int64_t, 3>>& local_size() const { return local_size_; }

 private:
  std::array<IndexProgram, 3> global_;
  std::optional<std::array<IndexProgram, 3>> local_;
  bool is_symbolic_ = false;
  std::array<int64_t, 3> global_size_ = {1, 1, 1};
  std::optional<std::array<int64_t, 3>> local_size_;
};

}  // namespace svod

#endif  // SVOD_PLAN_LAUNCH_H_
