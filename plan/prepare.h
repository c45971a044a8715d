// Prepare: from a parsed graph or kernel to an execution plan.
// Included by tools/ and embedders. Compiles through the provider it is given; knows no LLVM.
#ifndef SVOD_PLAN_PREPARE_H_
#define SVOD_PLAN_PREPARE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/program.h"
#include "jit/kernel.h"
#include "jit/task_runner.h"
#include "plan/custom_function.h"
#include "plan/execution_plan.h"

namespace svod {

// Gives the compiled form of a kernel. Called from several threads at once when a TaskRunner has
// several; reads the nodes and must make none in their context.
using KernelProvider =
    std::function<absl::StatusOr<std::shared_ptr<const CompiledKernel>>(const UOp* sink)>;

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
};

// The plan of function `name` of `module`; "" means the last graph or, without graphs, the only
// kernel. A kernel becomes a plan of one launch on its parameters. In a graph, ops come after what
// their operands' AFTERs name; the plan keeps that order as well where accesses conflict because
// buffers that were bound overlap.
//
// Parameters and returned buffers are reported by name with dtype and shape. The plan keeps the
// module's context alive and needs the module no more.
// Errors: InvalidArgument for an unknown name, a program that does not verify, operands that do not
// fit the callee's parameters at their largest; OutOfRange for variables and binds outside their
// bounds; what the provider says, after the words "compiling kernel <name>: ", the first by the
// order of the calls; and those of ExecutionPlanBuilder::Build.
// Cost: linear in nodes but for hazards, which take a logarithm of the number of byte ranges.
absl::StatusOr<ExecutionPlan> Prepare(const Module& module, absl::string_view name,
                                      const KernelProvider& provider,
                                      const PrepareOptions& options = {});

// Time that one launch of a kernel may take on one thread, all its cores together, from the trip
// counts of its loops at their largest [ns]. Good to a factor of a few: it only decides what is
// worth a fork.
double EstimateCostNs(const UOp* sink);

}  // namespace svod

#endif  // SVOD_PLAN_PREPARE_H_
