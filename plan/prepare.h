// Prepare: from a parsed graph or kernel to an execution plan.
// Included by tools/ and embedders. Compiles through the provider it is given; knows no LLVM.
#ifndef SVOD_PLAN_PREPARE_H_
#define SVOD_PLAN_PREPARE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/program.h"
#include "jit/kernel.h"
#include "jit/search_actions.h"
#include "jit/task_runner.h"
#include "plan/custom_function.h"
#include "plan/execution_plan.h"
#include "plan/memory_plan.h"
#include "plan/schedule.h"
#include "plan/schedule_cache.h"

namespace svod {

// Gives the compiled form of a kernel. Called from several threads at once when a TaskRunner has
// several; reads the nodes and must make none in their context.
using KernelProvider =
    std::function<absl::StatusOr<std::shared_ptr<const CompiledKernel>>(const UOp* sink)>;

// Looks for a faster form of a kernel, which the provider is then to give. Usually SearchActions.
using KernelSearch = std::function<absl::Status(const UOp* sink, const SearchControl& control)>;

enum class PrepareStage : uint8_t { kSchedule, kSearch, kCompile, kBuild };
const char* ToString(PrepareStage stage);  // "schedule", "search", "compile", "build"

// How far preparation is: `done` of `total` steps of a stage; kernels, when it searches and
// compiles.
struct PrepareProgress {
  PrepareStage stage;
  int done = 0;
  int total = 0;
  // Of the kernel that is being searched: forms that were tried, of how many at most.
  int measured = 0;
  int measurements = 0;
};

struct PrepareOptions {
  DeviceSpec device;
  // Lent for compilation: all kernels of the program are asked for in one call.
  TaskRunner task_runner = RunSerially;
  // First values of variables. Others must be set before the plan can run.
  std::vector<std::pair<std::string, int64_t>> variables;
  // Gives every parameter zeroed memory of the plan's. Without it each one must be bound before the
  // plan can run, and memory that would only be replaced is never counted.
  bool allocate_parameters = true;
  // Counts and limits the plan's memory.
  std::shared_ptr<BufferAllocator> allocator = BufferAllocator::Default();
  std::shared_ptr<const CustomFunctionRegistry> custom_functions =
      CustomFunctionRegistry::Default();
  int max_scratch_threads = 0;  // 0: as many as the machine runs at once

  // Of tensor graphs: how they are cut into kernels, whether their values share memory, and where
  // schedules are kept; null: nowhere.
  ScheduleOptions schedule;
  MemoryMode memory = MemoryMode::kArena;
  std::shared_ptr<ScheduleCache> schedule_cache = ScheduleCache::Default();
  // Says what the provider compiles with (target, options), so that equal graphs and compilers get
  // the same kernels from the schedule cache and the provider is not asked. Empty: always ask.
  std::string compiler;

  // For a plan that runs but a few times, such as one that folds constants: how often, if it is
  // known; 0: often. Kernels that take less time in all these runs than good code takes to make are
  // asked of `quick_provider`, unless the schedule cache has them. It computes the same bits by
  // worse code. Empty: `provider` makes all.
  int64_t expected_runs = 0;
  KernelProvider quick_provider;

  // Asked for each kernel before any is compiled, for one after the other and on the calling
  // thread, since other work would disturb its clock. The schedule cache's kernels are not used
  // then. Empty: no search.
  KernelSearch search;

  // Checked between steps: when it becomes true, Prepare gives up soon. May be null.
  const std::atomic<bool>* cancelled = nullptr;
  // Called before the first and after each step of a stage, and each measurement of a search, by
  // one thread at a time, but from whatever threads `task_runner` has. May be empty.
  std::function<void(const PrepareProgress&)> progress;
};

// The plan of function `name` of `module`; "" means the last graph or, without graphs, the only
// kernel. A kernel becomes a plan of one launch on its parameters. A tensor graph (see
// IsTensorGraph) is scheduled and its memory planned first, unless the cache has seen an equal one.
// In a graph of calls, ops come after what their operands' AFTERs name; the plan keeps that order
// as well where accesses conflict because buffers that were bound overlap.
//
// Parameters and results are reported by name with dtype and shape, for dynamic sizes the shape at
// the present values of the variables. Results that are states of parameters, or views of them,
// are in the parameters' memory. The plan keeps the module's context alive, or for tensor graphs
// one of its own, and needs the module no more.
// Errors: InvalidArgument for an unknown name, a program that does not verify, operands that do not
// fit the callee's parameters at their largest; OutOfRange for variables and binds outside their
// bounds; Cancelled; those of ScheduleGraph and PlanMemory; what the provider says, after the words
// "compiling kernel <name>: ", the first by the order of the calls; and those of
// ExecutionPlanBuilder::Build. Cost: linear in nodes but for hazards, which take a logarithm of the
// number of byte ranges.
absl::StatusOr<ExecutionPlan> Prepare(const Module& module, absl::string_view name,
                                      const KernelProvider& provider,
                                      const PrepareOptions& options = {});

// Time that one launch of a kernel may take on one thread, all its cores together, from the trip
// counts of its loops at their largest [ns]. Good to a factor of a few: it only decides what is
// worth a fork.
double EstimateCostNs(const UOp* sink);

}  // namespace svod

#endif  // SVOD_PLAN_PREPARE_H_
