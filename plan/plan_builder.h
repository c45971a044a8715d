// ExecutionPlanBuilder: gathers buffers and ops and makes an ExecutionPlan of them.
// Included by Prepare, schedulers and embedders with kernels of their own.
#ifndef SVOD_PLAN_PLAN_BUILDER_H_
#define SVOD_PLAN_PLAN_BUILDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "plan/custom_function.h"
#include "plan/execution_plan.h"

namespace svod {

// How a tensor of the plan's user is declared: dimensions are index expressions of constants and
// variables that Build can find (AddVariable, or a kernel's).
struct PlanTensorSpec {
  std::string name;
  DType dtype;
  Access access = Access::kIn;
  size_t buffer_index = 0;
  std::vector<const UOp*> dimensions;  // must live until Build
  std::vector<int64_t> max_shape;
};

// One plan per builder. Calls only gather; everything is checked in Build.
class ExecutionPlanBuilder {
 public:
  explicit ExecutionPlanBuilder(DeviceSpec device = {});
  ~ExecutionPlanBuilder();
  ExecutionPlanBuilder(ExecutionPlanBuilder&&) noexcept;
  ExecutionPlanBuilder& operator=(ExecutionPlanBuilder&&) noexcept;

  // Appends a buffer and maps `ast_id` to it; an id that was mapped now names this one. Gives the
  // buffer's index.
  size_t AddBuffer(uint64_t ast_id, Buffer buffer);
  // The same without memory: somebody must Bind or Rebind it before the plan can run.
  size_t AddUnboundBuffer(uint64_t ast_id, int64_t size_bytes);
  // The buffer at an index that an Add gave.
  const Buffer& buffer_at(size_t index) const;
  // One more node id for a buffer.
  void MapBuffer(uint64_t ast_id, size_t index);
  void ReplaceBuffer(size_t index, Buffer buffer);
  // Replace what was set before. The same buffer may stand twice.
  void SetOutputBuffer(size_t index);
  void SetOutputBuffers(std::vector<size_t> indices);

  void AddOp(PreparedOp op);
  void AddKernel(PreparedKernel kernel) { AddOp(std::move(kernel)); }
  // Comes after the ops at the given indices, besides the ids that it names.
  void AddOpWithInstanceDependencies(PreparedOp op, std::vector<size_t> instance_dependencies);
  // Ids that only the release functions report.
  void AddAliasIds(absl::Span<const uint64_t> ids);

  // Ops that conflict on some byte keep the order in which they were added, through rebinding too;
  // and the operands of one kernel may not overlap in part where it writes one of them.
  // Without this, order comes from dependencies alone.
  void KeepProgramOrder();
  // Name tensors for the plan's user. Outputs set here are only described; SetOutputBuffers rules.
  void AddParameter(PlanTensorSpec spec);
  void AddOutput(PlanTensorSpec spec);
  // A variable that must be given a value before the plan can run.
  void AddVariable(RuntimeVar variable);
  // Where custom functions are found; the process-wide registry by default.
  void SetCustomFunctions(std::shared_ptr<const CustomFunctionRegistry> registry);
  // Most threads that may run kernels with scratch memory at once; by default as many as the
  // machine runs at once.
  void SetMaxScratchThreads(int num_threads);
  // Scratch memory and buffers added unbound count here.
  void SetAllocator(std::shared_ptr<BufferAllocator> allocator);

  // Checks everything, allocates lazy buffers, and works out levels, groups, launch sizes and the
  // flat program.
  // Errors, the first in this order: InvalidArgument (OutOfRange for a value beyond its bounds)
  // for a misuse above, for ops in their order, for outputs and mapped ids out of range, for a plan
  // with buffers but no outputs; Unimplemented for a custom function that is not registered;
  // ResourceExhausted; InvalidArgument for dependencies on nothing and cycles.
  absl::StatusOr<ExecutionPlan> Build() &&;

 private:
  std::unique_ptr<PlanState> state_;
  absl::Status misuse_;
  std::vector<PlanTensorSpec> parameters_, outputs_;
  std::shared_ptr<const CustomFunctionRegistry> registry_;
};

}  // namespace svod

#endif  // SVOD_PLAN_PLAN_BUILDER_H_
