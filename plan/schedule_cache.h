// ScheduleCache: scheduled and memory-planned tensor graphs by content.
// Included by prepare.h, tools and embedders. Compiles nothing; starts no thread.
#ifndef SVOD_PLAN_SCHEDULE_CACHE_H_
#define SVOD_PLAN_SCHEDULE_CACHE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ir/program.h"
#include "jit/kernel.h"
#include "plan/memory_plan.h"
#include "plan/schedule.h"

namespace svod {

// All that a schedule depends on beside the graph.
struct ScheduleRequest {
  ScheduleOptions schedule;
  MemoryMode memory = MemoryMode::kArena;
  bool operator==(const ScheduleRequest&) const = default;
};

// A graph on its way to a plan: immutable, shared by threads and plans, in contexts of its own.
struct ScheduledGraph {
  Module source;           // the tensor graph, its only function
  Schedule schedule;       // `places` names nodes of `source`
  MemoryPlan memory;       // its module is what plans are made of
  double schedule_ms = 0;  // that ScheduleGraph and PlanMemory took
  ScheduleRequest request;

  const Function& graph() const { return source.functions[0]; }
  const Function& planned() const { return *memory.module.Find(graph().name()); }
  int64_t size_bytes() const;  // memory that it holds
};
using ScheduledGraphPtr = std::shared_ptr<const ScheduledGraph>;

// Schedules a tensor graph and plans its memory. The graph is copied first; nothing of it is kept.
// Errors: those of ScheduleGraph and PlanMemory.
absl::StatusOr<ScheduledGraphPtr> ScheduleAndPlan(const Function& graph,
                                                  const ScheduleRequest& request);

// Whether two programs, of any contexts, are the same. Cost: linear; does not recurse.
bool IsSameProgram(const UOp* a, const UOp* b);

struct ScheduleCacheStats {
  int64_t hits = 0;        // answered at once
  int64_t misses = 0;      // all other requests
  int64_t waits = 0;       // misses that waited for another thread's schedule
  int64_t failures = 0;    // graphs that could not be scheduled; they are not remembered
  int64_t evictions = 0;   // graphs
  int64_t graphs = 0;      // in the cache now
  int64_t size_bytes = 0;  // of those
  double schedule_ms = 0;  // of all schedules made
};

// Threads: all methods may be called at any time. Many threads that ask for one graph schedule it
// once and wait for that result, error included. No lock is held meanwhile.
class ScheduleCache {
 public:
  // Past `capacity_bytes` the graphs that were not asked for the longest go. Plans keep those that
  // they were made of.
  explicit ScheduleCache(int64_t capacity_bytes = int64_t{256} << 20);
  // The process's own, made on first use and never destroyed.
  static const std::shared_ptr<ScheduleCache>& Default();
  ~ScheduleCache();
  ScheduleCache(const ScheduleCache&) = delete;
  ScheduleCache& operator=(const ScheduleCache&) = delete;

  // The scheduled form of a tensor graph. The content hash only finds; the whole graphs are
  // compared. Names in notes are no content: an equal graph has those of the first.
  // `is_hit`, if not null, is set.
  // Errors: those of ScheduleAndPlan.
  // Cost of a hit: linear in nodes.
  absl::StatusOr<ScheduledGraphPtr> GetOrSchedule(const Function& graph,
                                                  const ScheduleRequest& request,
                                                  bool* is_hit = nullptr);

  // Kernels that plans of a graph were compiled to under `compiler` (see PrepareOptions), by the
  // order of the planned graph's calls; none when they are not known.
  using Kernels = std::vector<std::shared_ptr<const CompiledKernel>>;
  Kernels FindKernels(const ScheduledGraphPtr& graph, const std::string& compiler);
  void AddKernels(const ScheduledGraphPtr& graph, const std::string& compiler, Kernels kernels);

  void Clear();
  ScheduleCacheStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace svod

#endif  // SVOD_PLAN_SCHEDULE_CACHE_H_
