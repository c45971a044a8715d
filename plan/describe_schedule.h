// DescribeSchedule: a schedule as text for people.
// Included by tools and tests. Must not schedule, compile or run anything.
#ifndef SVOD_PLAN_DESCRIBE_SCHEDULE_H_
#define SVOD_PLAN_DESCRIBE_SCHEDULE_H_

#include <string>

#include "absl/status/statusor.h"
#include "plan/memory_plan.h"
#include "plan/schedule.h"

namespace svod {

// A kernel's loops on one line, in the order in which they run:
// "cores 32: loop 2 { reduce 128; reduce 128; loop 128 }". "once" without loops.
// Errors: those of Linearize.
absl::StatusOr<std::string> DescribeLoops(const UOp* sink);

// The kernels of a scheduled graph with their loops; its ops by level, with what they write and
// read; its intermediate buffers with bytes, levels and places in the arena; and why values live
// where they do. `source`: the graph that was scheduled, for names of values; null: none.
// Errors: those of OrderGraph and Linearize.
absl::StatusOr<std::string> DescribeSchedule(const Schedule& schedule, absl::string_view graph,
                                             const MemoryPlan& memory, const Function* source);

}  // namespace svod

#endif  // SVOD_PLAN_DESCRIBE_SCHEDULE_H_
