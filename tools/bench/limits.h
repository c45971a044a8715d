// Limits: how fast this machine multiplies and adds in registers, and moves bytes at a footprint.
// Included by the bench's sources only.
#ifndef SVOD_TOOLS_BENCH_LIMITS_H_
#define SVOD_TOOLS_BENCH_LIMITS_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "jit/task_runner.h"

namespace svod::bench {

// Something to run and time: `amount` (operations or bytes) by the time is the machine's rate.
struct Limit {
  std::string name;
  double amount = 0;  // of one run
  std::function<void()> run;
};

// Products of `dtype` summed in registers, on `threads` threads of the runner: fused
// multiply-adds of f32 and f64, dot products of i8 and bf16. Two operations each. Nothing where
// the machine has no instruction for it; f16 and bf16 then run at f32's rate.
std::optional<Limit> ArithmeticLimit(DType dtype, int threads, const TaskRunner& runner);

// Reading alone, or reading and writing (copy: as much written as read; triad: half as much), with
// and without stores around the caches. The arrays together have the footprint.
std::vector<Limit> MemoryLimits(double read_bytes, double written_bytes, int threads,
                                const TaskRunner& runner);

}  // namespace svod::bench

#endif  // SVOD_TOOLS_BENCH_LIMITS_H_
