// ExecutionPlan: prepared ops with their buffers, variables and levels; runs any number of times.
// Included by executor/, tools/ and embedders. Must not run anything itself.
#ifndef SVOD_PLAN_EXECUTION_PLAN_H_
#define SVOD_PLAN_EXECUTION_PLAN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "plan/buffer.h"
#include "plan/device.h"
#include "plan/launch.h"
#include "plan/prepared.h"
#include "plan/run_program.h"

namespace svod {

struct PlanState;

// A parameter or output of a plan as its user sees it.
struct PlanTensor {
  std::string name;
  DType dtype;
  Access access = Access::kIn;
  size_t buffer_index = 0;
  int64_t alignment = 1;           // that a bound buffer must have [bytes]
  std::vector<int64_t> shape;      // at the present values of the variables
  std::vector<int64_t> max_shape;  // what the buffer has room for
  std::vector<IndexProgram> dimensions;

  int64_t num_elements() const;  // of `shape`
  int64_t size_bytes() const { return num_elements() * dtype.size_bytes(); }
};

// A variable that some op or shape depends on, and its value once it has one.
struct PlanVariable {
  std::string name;
  int64_t min = 0;  // inclusive; the narrowest over all users
  int64_t max = 0;  // inclusive
  std::optional<int64_t> value;
};

// What preparation made of a program. Zeros for plans that were built by hand.
struct PrepareReport {
  int num_kernels = 0;        // different ones
  int64_t peak_bytes = 0;     // of intermediate values while the plan runs
  int64_t sum_bytes = 0;      // of all of them, as if none shared memory
  bool schedule_hit = false;  // the schedule cache had the graph
  // Wall time [ms]: of scheduling with memory planning, or of finding the schedule; of having all
  // kernels compiled; of the rest: buffers, levels and hazards.
  double schedule_ms = 0, compile_ms = 0, build_ms = 0;
};

using VariableValues = absl::Span<const std::pair<absl::string_view, int64_t>>;

// Made by ExecutionPlanBuilder or Prepare, run by the executor. Owns handles to all its buffers and
// shares its kernels. Results of a run stay in the output buffers until the next run overwrites
// them; copy what must last, or bind another output buffer first. After a failed run the contents
// of written buffers are unspecified, and the plan may be run again.
// Threads: one call at a time; a second one that mutates or runs is refused, not raced. Different
// plans are independent, replicas included.
class ExecutionPlan {
 public:
  ExecutionPlan(ExecutionPlan&&) noexcept;
  ExecutionPlan& operator=(ExecutionPlan&&) noexcept;
  ~ExecutionPlan();

  // Outputs, in the order in which they were set. Null or nullopt when there is none at `position`.
  const Buffer* output_buffer() const { return output_buffer_at(0); }
  const Buffer* output_buffer_at(size_t position) const;
  std::vector<const Buffer*> output_buffers() const;
  size_t num_outputs() const;
  std::optional<size_t> output_buffer_index() const;

  // Buffers by the id of their node, or all by index. A const handle can still write its bytes;
  // another buffer in its place is what Rebind is for.
  const Buffer* buffer(uint64_t ast_id) const;  // null when the id is not mapped
  absl::Span<const Buffer> buffers() const;
  const absl::btree_map<uint64_t, size_t>& ast_to_buffer_map() const;

  absl::Span<const PreparedOp> prepared_ops() const;            // all kinds, schedule order
  std::vector<const PreparedKernel*> prepared_kernels() const;  // kernels only, schedule order
  std::vector<const CompiledKernel*> kernels() const;           // theirs
  const DeviceSpec& device() const;
  // The dependency-safe flat order; informative, since runs go by level.
  absl::Span<const size_t> op_order() const;
  absl::Span<const std::vector<size_t>> op_levels() const;
  // For each level the groups that run one after another; ops of one group may run side by side.
  absl::Span<const std::vector<std::vector<size_t>>> op_groups() const;
  // Extents that op `op_index` launches with at present; null if it is no kernel.
  const LaunchSizes* launch_sizes(size_t op_index) const;

  absl::Span<const PlanTensor> parameters() const;
  absl::Span<const PlanTensor> outputs() const;
  const PlanTensor* FindParameter(absl::string_view name) const;  // null if there is none
  absl::Span<const PlanVariable> variables() const;
  // What SetVariables was given so far, names that nothing consumes included.
  const VariableMap& runtime_variables() const;

  // Gives variables values that stay until they are given others. Fixed variables keep theirs;
  // core_id is ignored; of a repeated name the last value counts; unknown names are only kept.
  // Errors: OutOfRange for a value outside the bounds of any op that consumes it, and then nothing
  // has changed; FailedPrecondition while the plan runs.
  absl::Status SetVariables(VariableValues values);

  // Puts a buffer in the place of a parameter, or of any buffer by index. Views of it move along.
  // Of a larger buffer the first bytes are used. Buffers may overlap one another: levels and groups
  // follow the bytes.
  // Errors: InvalidArgument for an unknown name or index, a buffer too small, misaligned or
  // read-only where the plan writes, or overlapping another operand of a kernel that writes one of
  // them (equal ranges are fine); FailedPrecondition while the plan runs. Then nothing has changed.
  // Cost: linear in the number of buffers; all of Build's scheduling when buffers overlap.
  absl::Status Bind(absl::string_view parameter, const Buffer& buffer);
  absl::Status Rebind(size_t buffer_index, const Buffer& buffer);

  // An independent plan with the same kernels and variables. Buffers that share no byte with any
  // that the plan writes or returns are shared with this one; all others are its own, zeroed.
  // Errors: ResourceExhausted; FailedPrecondition while the plan runs.
  absl::StatusOr<ExecutionPlan> Replicate() const;

  // Calls `remove` for every mapped node id but those of outputs (of all: for every one),
  // ascending, then for every alias id. The plan keeps its buffers.
  void ReleaseIntermediateBuffers(const std::function<void(uint64_t)>& remove) const;
  void ReleaseAllBuffers(const std::function<void(uint64_t)>& remove) const;

  const PrepareReport& report() const;
  void SetReport(const PrepareReport& report);  // for Prepare

  // Counts of ops, instance dependencies, order, kernels and buffers, and the device.
  std::string DebugString() const;

  // For the executor. BeginRun claims the plan until EndRun.
  // Errors of BeginRun: FailedPrecondition while another call runs, or when a parameter has no
  // buffer or a variable no value.
  absl::Status BeginRun();
  void EndRun();
  const RunProgram& program() const;
  // The status of a record whose function gave `code`, not 0, for core `core`.
  absl::Status FailureOf(uint32_t record, int64_t core, int32_t code) const;

 private:
  friend class ExecutionPlanBuilder;
  explicit ExecutionPlan(std::unique_ptr<PlanState> state);
  std::unique_ptr<PlanState> state_;
};

}  // namespace svod

#endif  // SVOD_PLAN_EXECUTION_PLAN_H_
