// Runs workloads: Svod's plan, the peers that are compiled in, and the machine's limits.
// Included by the bench's sources only.
#ifndef SVOD_TOOLS_BENCH_WORKLOAD_RUNNER_H_
#define SVOD_TOOLS_BENCH_WORKLOAD_RUNNER_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/executor.h"
#include "jit/kernel_cache.h"
#include "plan/execution_plan.h"
#include "tools/bench/measure.h"
#include "tools/bench/workload.h"

namespace svod::bench {

// A workload prepared on an executor, its inputs bound.
struct PreparedWorkload {
  std::unique_ptr<ExecutionPlan> plan;

  // Samples of the result of the last run.
  std::vector<double> samples() const;
};
// Errors: those of Prepare.
absl::StatusOr<PreparedWorkload> PrepareWorkload(const Workload& workload,
                                                 absl::Span<const Buffer> inputs,
                                                 Executor& executor, KernelCache& kernels);

// Measures a workload. With `compare`, in turns with the peers and the limits; a record then also
// has flops, bytes, and of Svod limit_ns: the time at the machine's limit. The first record is
// Svod's. Errors: those of Prepare and of the first run.
absl::StatusOr<std::vector<Record>> RunWorkload(const Workload& workload, Executor& executor,
                                                bool compare);

}  // namespace svod::bench

#endif  // SVOD_TOOLS_BENCH_WORKLOAD_RUNNER_H_
