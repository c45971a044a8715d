// PlanState: what an ExecutionPlan owns, and the steps that derive levels and the flat program.
// Included by plan_state.cc, the builder and the plan; not installed use. Must not run ops.
#ifndef SVOD_PLAN_PLAN_STATE_H_
#define SVOD_PLAN_PLAN_STATE_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "plan/custom_function.h"
#include "plan/execution_plan.h"
#include "plan/hazards.h"

namespace svod {

// What follows from ops and the bytes that their buffers have.
struct PlanSchedule {
  std::vector<OpAccess> accesses;  // by op
  std::vector<size_t> order;
  std::vector<std::vector<size_t>> levels;
  std::vector<std::vector<std::vector<size_t>>> groups;  // by level
};

// A custom function as its record calls it.
struct CustomState {
  std::shared_ptr<const CustomFunction> function;
  std::vector<Buffer> buffers;
  VariableMap variables;
  absl::Status status;  // of the last failed call
};

// Who has to hear of a variable.
struct VariableUsers {
  struct Bound {
    size_t op_index;
    int64_t min, max;
  };
  std::vector<Bound> bounds;
  std::vector<std::pair<size_t, size_t>> slots;  // op index, position in its values
  std::optional<size_t> plan_variable;           // index into PlanState::variables
};

// One aligned block that holds records, buffer pointers and variables one after another.
class RunMemory {
 public:
  RunMemory() = default;
  RunMemory(size_t num_records, size_t num_pointers, size_t num_values);

  absl::Span<RunRecord> records() { return {records_, num_records_}; }
  void** pointers() { return pointers_; }
  int64_t* values() { return values_; }

 private:
  struct Free {
    void operator()(std::byte* block) const;
  };
  std::unique_ptr<std::byte, Free> block_;
  size_t num_records_ = 0;
  RunRecord* records_ = nullptr;
  void** pointers_ = nullptr;
  int64_t* values_ = nullptr;
};

struct PlanState {
  // As gathered.
  DeviceSpec device;
  std::vector<PreparedOp> ops;
  std::vector<std::vector<size_t>> instance_dependencies;  // by op
  std::vector<Buffer> buffers;
  std::vector<bool> unbound;  // by buffer: somebody must still bind it
  absl::btree_map<uint64_t, size_t> ast_to_buffer;
  std::vector<size_t> output_indices;
  std::vector<uint64_t> alias_ids;
  bool keeps_program_order = false;
  std::vector<PlanTensor> parameters, outputs;
  std::vector<RuntimeVar> declared_variables;
  std::shared_ptr<BufferAllocator> allocator = BufferAllocator::Default();
  int max_scratch_threads = 0;
  PrepareReport report;

  // Variables.
  std::vector<PlanVariable> variables;
  std::vector<int64_t> variable_values;  // parallel, for shapes; the minimum while there is none
  absl::flat_hash_map<std::string, VariableUsers> variable_users;
  VariableMap runtime_variables;
  std::vector<std::optional<LaunchSizes>> launches;  // by op

  // Derived from buffers.
  PlanSchedule schedule;
  std::vector<ByteRange> ranges;  // by buffer
  // By buffer: the launches that take it, as op index and position; the view ops that name it as
  // either side; and those of which it is the base.
  std::vector<std::vector<std::pair<size_t, size_t>>> buffer_users;
  std::vector<std::vector<size_t>> view_ops, views_of;
  std::vector<size_t> custom_ops;

  // The flat program.
  RunMemory memory;
  std::vector<uint32_t> record_of_op;  // kNoRecord for views
  std::vector<RunSegment> segments;
  std::vector<RunChunk> chunks;
  std::vector<std::unique_ptr<CustomState>> customs;  // by op; null for others
  Buffer scratch;
  RunProgram program;

  std::atomic<bool> running{false};
  bool is_ready = false;  // nothing is unbound and no variable lacks a value

  static constexpr uint32_t kNoRecord = ~uint32_t{0};

  // Fills the indices by buffer. Ops are checked.
  void IndexBuffers();
  // The rest of Build: memory, checks of buffers, schedule, scratch, program.
  absl::Status Finish();
  // Flatten takes `schedule` as it is; Segment cuts the records by their present launch sizes.
  void Flatten();
  void Segment();
  // Updates everything that holds buffer `index`'s address.
  void RefreshBuffer(size_t index);
  void UpdateReadiness();
  void UpdateShapes();
  void ResolveLaunch(size_t op_index);
  // Calls of the launch: 0 when an extent is not positive.
  int64_t CoresOf(size_t op_index) const;
};

// Indices, arities, values and bounds of ops; needs no buffer.
absl::Status CheckOps(absl::Span<const PreparedOp> ops, size_t num_buffers);
// Sizes, alignments, read-only memory, views and, with `keeps_program_order`, operands of one
// kernel that overlap in part.
absl::Status CheckBuffersOf(const PreparedOp& op, absl::Span<const Buffer> buffers,
                            bool keeps_program_order);
absl::StatusOr<PlanSchedule> ComputeSchedule(
    absl::Span<const PreparedOp> ops, absl::Span<const std::vector<size_t>> instance_dependencies,
    absl::Span<const Buffer> buffers, bool keeps_program_order);

// What a plan in use answers.
inline absl::Status PlanInUse() {
  return absl::FailedPreconditionError("plan: in use by another call, expected one at a time");
}

// "kernel 7", "copy op 3", "custom function op 5 (\"sort\")".
std::string Describe(const PreparedOp& op);

// Marks a plan as in use as long as it lives, if it was not.
class PlanClaim {
 public:
  explicit PlanClaim(PlanState& state)
      : state_(state), held_(!state.running.exchange(true, std::memory_order_acquire)) {}
  ~PlanClaim() {
    if (held_) state_.running.store(false, std::memory_order_release);
  }
  PlanClaim(const PlanClaim&) = delete;
  PlanClaim& operator=(const PlanClaim&) = delete;
  bool held() const { return held_; }

 private:
  PlanState& state_;
  bool held_;
};

}  // namespace svod

#endif  // SVOD_PLAN_PLAN_STATE_H_
