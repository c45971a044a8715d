// Executor: runs plans on oneTBB. Included by tools/ and embedders. No TBB header is needed.
#ifndef SVOD_EXECUTOR_EXECUTOR_H_
#define SVOD_EXECUTOR_EXECUTOR_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "jit/kernel.h"
#include "jit/task_runner.h"
#include "plan/execution_plan.h"

namespace svod {

// An arena of its own with a number of threads. Without one, plans run in the arena that the
// calling thread is in. Neither changes TBB's process-wide limits, so more threads than
// TBB allows do not show up. Safe to use from any thread.
class Executor {
 public:
  // Threads are counted with the calling one. Errors: InvalidArgument for less than 1.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(int num_threads);
  ~Executor();
  int num_threads() const;

 private:
  friend class ArenaRun;
  struct Arena;
  explicit Executor(std::unique_ptr<Arena> arena);
  std::unique_ptr<Arena> arena_;
};

struct ExecuteOptions {
  // Everything on the calling thread, in the order of the levels: to find out whether a fault comes
  // from running side by side.
  bool serial = false;
  Executor* executor = nullptr;  // null: the caller's arena
};

// One launch of a kernel, timed. Copies, views and custom functions are run but have none.
struct KernelProfile {
  std::shared_ptr<const CompiledKernel> kernel;
  DeviceSpec device;
  uint64_t id = 0;  // the op's
  size_t op_index = 0;
  size_t num_buffers = 0;
  std::array<int64_t, 3> global_size = {1, 1, 1};
  int64_t start_ns = 0;    // since the run began
  int64_t elapsed_ns = 0;  // from the first core's start to the last one's end
  int thread = 0;          // which of the run's threads ran its first core, from 0
};

// Runs all levels in order. Kernels of a group and the cores of one kernel run side by side where
// their cost is worth a fork; results do not depend on how many threads there are.
// Errors: FailedPrecondition while another call uses the plan, or while a parameter has no buffer
//         or a variable no value; else that of the lowest op index in the first group that fails:
//         later groups do not start. The plan may be run again.
// Threads: one call at a time per plan; different plans run concurrently.
// Cost:    no allocation, no lock; one indirect call per kernel.
absl::Status Execute(ExecutionPlan& plan, const ExecuteOptions& options = {});
// The same with a record per launch, in the order of levels, groups and op indices.
absl::StatusOr<std::vector<KernelProfile>> ExecuteProfiled(ExecutionPlan& plan,
                                                           const ExecuteOptions& options = {});
// SetVariables, then one of the above. Nothing runs when a value is refused.
absl::Status ExecuteWithVariables(ExecutionPlan& plan, VariableValues values,
                                  const ExecuteOptions& options = {});
absl::StatusOr<std::vector<KernelProfile>> ExecuteWithVariablesProfiled(
    ExecutionPlan& plan, VariableValues values, const ExecuteOptions& options = {});

// Lends the threads of an executor, or of the caller's arena, to compilation. The executor must
// outlive the runner.
TaskRunner MakeTbbTaskRunner(Executor* executor = nullptr);

}  // namespace svod

#endif  // SVOD_EXECUTOR_EXECUTOR_H_
