#include "plan/plan_builder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/status_macros.h"
#include "plan/plan_state.h"

namespace svod {
namespace {

absl::Status CheckIndices(const PlanState& state) {
  size_t num_buffers = state.buffers.size();
  for (size_t index : state.output_indices) {
    if (index >= num_buffers) {
      return absl::InvalidArgumentError(absl::StrCat("plan: output buffer index, got ", index,
                                                     ", expected less than ", num_buffers));
    }
  }
  for (const auto& [ast_id, index] : state.ast_to_buffer) {
    if (index >= num_buffers) {
      return absl::InvalidArgumentError(absl::StrCat("plan: buffer index mapped to node ", ast_id,
                                                     ", got ", index, ", expected less than ",
                                                     num_buffers));
    }
  }
  if (state.output_indices.empty() && num_buffers > 0) {
    return absl::InvalidArgumentError(
        "plan: output buffers must be set explicitly, got none in a plan with buffers");
  }
  return absl::OkStatus();
}

// A variable of the plan: made on first sight, narrowed by every further user.
PlanVariable& VariableOf(PlanState& state, const std::string& name) {
  VariableUsers& users = state.variable_users[name];
  if (!users.plan_variable) {
    users.plan_variable = state.variables.size();
    state.variables.push_back({name, std::numeric_limits<int64_t>::min(),
                               std::numeric_limits<int64_t>::max(), std::nullopt});
  }
  return state.variables[*users.plan_variable];
}

void Narrow(PlanState& state, const RuntimeVar& bound, size_t op_index) {
  PlanVariable& variable = VariableOf(state, bound.name);
  variable.min = std::max(variable.min, bound.min);
  variable.max = std::min(variable.max, bound.max);
  state.variable_users[bound.name].bounds.push_back({op_index, bound.min, bound.max});
}

// Which variables there are, who consumes them, and what they start with.
void CollectVariables(PlanState& state) {
  constexpr size_t kNoOp = ~size_t{0};
  for (const RuntimeVar& declared : state.declared_variables) Narrow(state, declared, kNoOp);
  size_t num_declared = state.variables.size();
  for (size_t i = 0; i < state.ops.size(); ++i) {
    const PreparedOp& op = state.ops[i];
    const auto* kernel = std::get_if<PreparedKernel>(&op);
    const auto* custom = std::get_if<PreparedCustomFunction>(&op);
    if (kernel == nullptr && custom == nullptr) continue;
    const VariableMap& fixed = kernel ? kernel->fixed_variables : custom->fixed_variables;
    for (const RuntimeVar& bound : kernel ? kernel->runtime_variables : custom->runtime_variables) {
      if (bound.name != kCoreIdName && !fixed.contains(bound.name)) Narrow(state, bound, i);
    }
    if (kernel == nullptr) {
      // A function sees variables in a map, where they are missing until somebody sets them.
      for (const RuntimeVar& bound : custom->runtime_variables) {
        if (bound.name == kCoreIdName || fixed.contains(bound.name)) continue;
        PlanVariable& variable = VariableOf(state, bound.name);
        if (*state.variable_users[bound.name].plan_variable >= num_declared && !variable.value) {
          variable.value = variable.min;
        }
      }
      continue;
    }
    const std::vector<std::string>& names = kernel->kernel->variable_names;
    for (size_t position = 0; position < names.size(); ++position) {
      const std::string& name = names[position];
      if (name == kCoreIdName || fixed.contains(name)) continue;
      PlanVariable& variable = VariableOf(state, name);
      VariableUsers& users = state.variable_users[name];
      users.slots.emplace_back(i, position);
      // What was declared must be set; others start with what their first user was prepared with.
      if (*users.plan_variable >= num_declared && !variable.value) {
        variable.value = kernel->values[position];
      }
    }
  }
  for (const PlanVariable& variable : state.variables) {
    state.variable_values.push_back(variable.value.value_or(variable.min));
  }
}

absl::Status CreateLaunches(PlanState& state) {
  state.launches.resize(state.ops.size());
  for (size_t i = 0; i < state.ops.size(); ++i) {
    const auto* kernel = std::get_if<PreparedKernel>(&state.ops[i]);
    if (kernel == nullptr) continue;
    const std::vector<std::string>& names = kernel->kernel->variable_names;
    auto lookup = [&](absl::string_view name) -> std::optional<VariableSource> {
      auto fixed = kernel->fixed_variables.find(std::string(name));
      if (fixed != kernel->fixed_variables.end()) return VariableSource{true, fixed->second, 0};
      for (size_t position = 0; position < names.size(); ++position) {
        if (names[position] == name) return VariableSource{false, 0, position};
      }
      return std::nullopt;
    };
    absl::StatusOr<LaunchSizes> sizes = LaunchSizes::Create(*kernel->kernel, lookup);
    if (!sizes.ok()) {
      return Annotate(sizes.status(),
                      absl::StrCat("plan: ", Describe(state.ops[i]), ": launch sizes"));
    }
    state.launches[i] = *std::move(sizes);
    state.ResolveLaunch(i);
  }
  return absl::OkStatus();
}

absl::Status CreateTensors(PlanState& state, const std::vector<PlanTensorSpec>& specs,
                           std::vector<PlanTensor>& tensors) {
  auto lookup = [&](absl::string_view name) -> std::optional<VariableSource> {
    auto it = state.variable_users.find(name);
    if (it == state.variable_users.end() || !it->second.plan_variable) return std::nullopt;
    return VariableSource{false, 0, *it->second.plan_variable};
  };
  for (const PlanTensorSpec& spec : specs) {
    if (spec.buffer_index >= state.buffers.size() ||
        spec.dimensions.size() != spec.max_shape.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "plan: tensor ", spec.name, ": buffer index ", spec.buffer_index, " of ",
          state.buffers.size(), ", ", spec.dimensions.size(), " dimensions and ",
          spec.max_shape.size(), " largest extents, expected a buffer and as many of each"));
    }
    PlanTensor tensor;
    tensor.name = spec.name;
    tensor.dtype = spec.dtype;
    tensor.access = spec.access;
    tensor.buffer_index = spec.buffer_index;
    tensor.max_shape = spec.max_shape;
    tensor.shape.resize(spec.max_shape.size());
    for (const UOp* dimension : spec.dimensions) {
      absl::StatusOr<IndexProgram> program = IndexProgram::Create(dimension, lookup);
      if (!program.ok()) {
        return Annotate(program.status(), absl::StrCat("plan: shape of ", spec.name));
      }
      tensor.dimensions.push_back(*std::move(program));
    }
    // The strictest of the element's alignment and what kernels ask for.
    tensor.alignment = std::max<int64_t>(1, spec.dtype.size_bytes());
    for (auto [op, position] : state.buffer_users[spec.buffer_index]) {
      const auto* kernel = std::get_if<PreparedKernel>(&state.ops[op]);
      if (kernel == nullptr) continue;
      for (const std::vector<int64_t>* list :
           {&kernel->alignments, &kernel->kernel->param_alignment}) {
        if (position < list->size())
          tensor.alignment = std::max(tensor.alignment, (*list)[position]);
      }
    }
    tensors.push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

}  // namespace

ExecutionPlanBuilder::ExecutionPlanBuilder(DeviceSpec device)
    : state_(std::make_unique<PlanState>()), registry_(CustomFunctionRegistry::Default()) {
  state_->device = std::move(device);
}
ExecutionPlanBuilder::~ExecutionPlanBuilder() = default;
ExecutionPlanBuilder::ExecutionPlanBuilder(ExecutionPlanBuilder&&) noexcept = default;
ExecutionPlanBuilder& ExecutionPlanBuilder::operator=(ExecutionPlanBuilder&&) noexcept = default;

size_t ExecutionPlanBuilder::AddBuffer(uint64_t ast_id, Buffer buffer) {
  size_t index = state_->buffers.size();
  if (buffer.is_null()) {
    misuse_.Update(absl::InvalidArgumentError(
        absl::StrCat("plan: buffer ", index, " (node ", ast_id, ") is null")));
  }
  state_->buffers.push_back(std::move(buffer));
  state_->unbound.push_back(false);
  state_->ast_to_buffer[ast_id] = index;
  return index;
}

size_t ExecutionPlanBuilder::AddUnboundBuffer(uint64_t ast_id, int64_t size_bytes) {
  absl::StatusOr<Buffer> buffer = Buffer::Create(size_bytes, state_->allocator);
  misuse_.Update(buffer.status());
  size_t index = AddBuffer(ast_id, buffer.ok() ? *buffer : Buffer());
  state_->unbound[index] = true;
  return index;
}

const Buffer& ExecutionPlanBuilder::buffer_at(size_t index) const { return state_->buffers[index]; }

void ExecutionPlanBuilder::MapBuffer(uint64_t ast_id, size_t index) {
  state_->ast_to_buffer[ast_id] = index;
}

void ExecutionPlanBuilder::ReplaceBuffer(size_t index, Buffer buffer) {
  if (index >= state_->buffers.size() || buffer.is_null()) {
    misuse_.Update(absl::InvalidArgumentError(
        absl::StrCat("plan: replacing buffer ", index, " of ", state_->buffers.size(),
                     buffer.is_null() ? " by the null buffer" : "")));
    return;
  }
  state_->buffers[index] = std::move(buffer);
  state_->unbound[index] = false;
}

void ExecutionPlanBuilder::SetOutputBuffer(size_t index) { state_->output_indices = {index}; }
void ExecutionPlanBuilder::SetOutputBuffers(std::vector<size_t> indices) {
  state_->output_indices = std::move(indices);
}

void ExecutionPlanBuilder::AddOp(PreparedOp op) {
  AddOpWithInstanceDependencies(std::move(op), {});
}
void ExecutionPlanBuilder::AddOpWithInstanceDependencies(
    PreparedOp op, std::vector<size_t> instance_dependencies) {
  state_->ops.push_back(std::move(op));
  state_->instance_dependencies.push_back(std::move(instance_dependencies));
}

void ExecutionPlanBuilder::AddAliasIds(absl::Span<const uint64_t> ids) {
  state_->alias_ids.insert(state_->alias_ids.end(), ids.begin(), ids.end());
}
void ExecutionPlanBuilder::KeepProgramOrder() { state_->keeps_program_order = true; }
void ExecutionPlanBuilder::AddParameter(PlanTensorSpec spec) {
  parameters_.push_back(std::move(spec));
}
void ExecutionPlanBuilder::AddOutput(PlanTensorSpec spec) { outputs_.push_back(std::move(spec)); }
void ExecutionPlanBuilder::AddVariable(RuntimeVar variable) {
  state_->declared_variables.push_back(std::move(variable));
}
void ExecutionPlanBuilder::SetCustomFunctions(
    std::shared_ptr<const CustomFunctionRegistry> registry) {
  registry_ = std::move(registry);
}
void ExecutionPlanBuilder::SetMaxScratchThreads(int num_threads) {
  state_->max_scratch_threads = num_threads;
}
void ExecutionPlanBuilder::SetAllocator(std::shared_ptr<BufferAllocator> allocator) {
  state_->allocator = std::move(allocator);
}

absl::StatusOr<ExecutionPlan> ExecutionPlanBuilder::Build() && {
  PlanState& state = *state_;
  SVOD_RETURN_IF_ERROR(misuse_);
  SVOD_RETURN_IF_ERROR(CheckOps(state.ops, state.buffers.size()));
  SVOD_RETURN_IF_ERROR(CheckIndices(state));
  state.customs.resize(state.ops.size());
  for (size_t i = 0; i < state.ops.size(); ++i) {
    const auto* custom = std::get_if<PreparedCustomFunction>(&state.ops[i]);
    if (custom == nullptr) continue;
    state.customs[i] = std::make_unique<CustomState>();
    SVOD_ASSIGN_OR_RETURN(state.customs[i]->function, registry_->Find(custom->kind));
    state.customs[i]->buffers.resize(custom->buffer_indices.size());
    state.customs[i]->variables = custom->fixed_variables;
  }
  CollectVariables(state);
  SVOD_RETURN_IF_ERROR(CreateLaunches(state));
  state.IndexBuffers();
  SVOD_RETURN_IF_ERROR(CreateTensors(state, parameters_, state.parameters));
  SVOD_RETURN_IF_ERROR(CreateTensors(state, outputs_, state.outputs));
  SVOD_RETURN_IF_ERROR(state.Finish());
  return ExecutionPlan(std::move(state_));
}

}  // namespace svod
