#include "plan/execution_plan.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/status_macros.h"
#include "plan/plan_state.h"

namespace svod {

int64_t PlanTensor::num_elements() const {
  int64_t elements = 1;
  for (int64_t extent : shape) elements *= std::max<int64_t>(extent, 0);
  return elements;
}

ExecutionPlan::ExecutionPlan(std::unique_ptr<PlanState> state) : state_(std::move(state)) {}
ExecutionPlan::ExecutionPlan(ExecutionPlan&&) noexcept = default;
ExecutionPlan& ExecutionPlan::operator=(ExecutionPlan&&) noexcept = default;
ExecutionPlan::~ExecutionPlan() = default;

const Buffer* ExecutionPlan::output_buffer_at(size_t position) const {
  if (position >= state_->output_indices.size()) return nullptr;
  return &state_->buffers[state_->output_indices[position]];
}

std::vector<const Buffer*> ExecutionPlan::output_buffers() const {
  std::vector<const Buffer*> outputs;
  for (size_t index : state_->output_indices) outputs.push_back(&state_->buffers[index]);
  return outputs;
}

size_t ExecutionPlan::num_outputs() const { return state_->output_indices.size(); }

std::optional<size_t> ExecutionPlan::output_buffer_index() const {
  if (state_->output_indices.empty()) return std::nullopt;
  return state_->output_indices[0];
}

const Buffer* ExecutionPlan::buffer(uint64_t ast_id) const {
  auto it = state_->ast_to_buffer.find(ast_id);
  return it == state_->ast_to_buffer.end() ? nullptr : &state_->buffers[it->second];
}

absl::Span<const Buffer> ExecutionPlan::buffers() const { return state_->buffers; }
const absl::btree_map<uint64_t, size_t>& ExecutionPlan::ast_to_buffer_map() const {
  return state_->ast_to_buffer;
}
absl::Span<const PreparedOp> ExecutionPlan::prepared_ops() const { return state_->ops; }

std::vector<const PreparedKernel*> ExecutionPlan::prepared_kernels() const {
  std::vector<const PreparedKernel*> kernels;
  for (const PreparedOp& op : state_->ops) {
    if (const auto* kernel = std::get_if<PreparedKernel>(&op)) kernels.push_back(kernel);
  }
  return kernels;
}

std::vector<const CompiledKernel*> ExecutionPlan::kernels() const {
  std::vector<const CompiledKernel*> kernels;
  for (const PreparedKernel* kernel : prepared_kernels()) kernels.push_back(kernel->kernel.get());
  return kernels;
}

const DeviceSpec& ExecutionPlan::device() const { return state_->device; }
absl::Span<const size_t> ExecutionPlan::op_order() const { return state_->schedule.order; }
absl::Span<const std::vector<size_t>> ExecutionPlan::op_levels() const {
  return state_->schedule.levels;
}
absl::Span<const std::vector<std::vector<size_t>>> ExecutionPlan::op_groups() const {
  return state_->schedule.groups;
}

const LaunchSizes* ExecutionPlan::launch_sizes(size_t op_index) const {
  if (op_index >= state_->launches.size() || !state_->launches[op_index]) return nullptr;
  return &*state_->launches[op_index];
}

absl::Span<const PlanTensor> ExecutionPlan::parameters() const { return state_->parameters; }
absl::Span<const PlanTensor> ExecutionPlan::outputs() const { return state_->outputs; }

const PlanTensor* ExecutionPlan::FindParameter(absl::string_view name) const {
  for (const PlanTensor& parameter : state_->parameters) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

absl::Span<const PlanVariable> ExecutionPlan::variables() const { return state_->variables; }
const VariableMap& ExecutionPlan::runtime_variables() const { return state_->runtime_variables; }

namespace {

// The last value of each name; core_id left out.
absl::flat_hash_map<absl::string_view, int64_t> LastValues(VariableValues values) {
  absl::flat_hash_map<absl::string_view, int64_t> last;
  for (const auto& [name, value] : values) {
    if (name != kCoreIdName) last[name] = value;
  }
  return last;
}

}  // namespace

absl::Status ExecutionPlan::SetVariables(VariableValues values) {
  PlanState& state = *state_;
  PlanClaim claim(state);
  if (!claim.held()) return PlanInUse();
  const absl::flat_hash_map<absl::string_view, int64_t> last = LastValues(values);

  // In the order given, so that the error does not depend on hashing.
  for (const auto& named : values) {
    auto users = state.variable_users.find(named.first);
    if (users == state.variable_users.end() || named.first == kCoreIdName) continue;
    int64_t value = last.at(named.first);
    for (const VariableUsers::Bound& bound : users->second.bounds) {
      if (value >= bound.min && value <= bound.max) continue;
      std::string where = bound.op_index < state.ops.size()
                              ? absl::StrCat(Describe(state.ops[bound.op_index]), ": ")
                              : "";
      return absl::OutOfRangeError(absl::StrCat("plan: ", where, "variable ", named.first, ", got ",
                                                value, ", expected ", bound.min, " to ",
                                                bound.max));
    }
  }

  std::vector<size_t> changed;  // kernels whose launch depends on a variable
  for (const auto& [name, value] : last) {
    state.runtime_variables[std::string(name)] = value;
    for (size_t op : state.custom_ops) {
      const auto& custom = std::get<PreparedCustomFunction>(state.ops[op]);
      if (!custom.fixed_variables.contains(name)) {
        state.customs[op]->variables[std::string(name)] = value;
      }
    }
    auto users = state.variable_users.find(name);
    if (users == state.variable_users.end()) continue;
    if (std::optional<size_t> index = users->second.plan_variable) {
      state.variables[*index].value = value;
      state.variable_values[*index] = value;
    }
    for (auto [op, position] : users->second.slots) {
      std::get<PreparedKernel>(state.ops[op]).values[position] = value;
      const RunRecord& record = state.memory.records()[state.record_of_op[op]];
      // The values lie in the plan's own memory.
      const_cast<int64_t*>(record.variables)[position] = value;
      if (state.launches[op]->is_symbolic()) changed.push_back(op);
    }
  }
  bool cores_changed = false;
  for (size_t op : changed) {
    int64_t before = state.CoresOf(op);
    state.ResolveLaunch(op);
    cores_changed |= state.CoresOf(op) != before;
  }
  if (cores_changed) state.Segment();
  state.UpdateShapes();
  state.UpdateReadiness();
  return absl::OkStatus();
}

absl::Status ExecutionPlan::Bind(absl::string_view parameter, const Buffer& buffer) {
  if (const PlanTensor* found = FindParameter(parameter)) {
    if (found->access != Access::kIn && buffer.read_only()) {
      return absl::InvalidArgumentError(
          absl::StrCat("binding ", parameter, ": the buffer is read-only, the plan writes"));
    }
    if (uint64_t past = RangeOf(buffer).begin % static_cast<uint64_t>(found->alignment)) {
      return absl::InvalidArgumentError(
          absl::StrCat("binding ", parameter, ": alignment, got an address ", past,
                       " bytes past a multiple of ", found->alignment, ", expected a multiple"));
    }
    return Annotate(Rebind(found->buffer_index, buffer), absl::StrCat("binding ", parameter));
  }
  std::string names = absl::StrJoin(
      state_->parameters, ", ",
      [](std::string* out, const PlanTensor& tensor) { absl::StrAppend(out, tensor.name); });
  return absl::InvalidArgumentError(
      absl::StrCat("plan: no parameter ", parameter, ", expected one of [", names, "]"));
}

namespace {

// Buffers that stand for `index` and, by view ops, for parts of it, with what they become.
absl::StatusOr<std::vector<std::pair<size_t, Buffer>>> Replacements(const PlanState& state,
                                                                    size_t index,
                                                                    const Buffer& buffer) {
  std::vector<std::pair<size_t, Buffer>> replaced = {{index, buffer}};
  for (size_t next = 0; next < replaced.size(); ++next) {
    for (size_t op : state.views_of[replaced[next].first]) {
      const auto& view = std::get<PreparedBufferView>(state.ops[op]);
      bool seen = std::any_of(replaced.begin(), replaced.end(), [&](const auto& entry) {
        return entry.first == view.buffer_indices[0];
      });
      if (seen) continue;
      SVOD_ASSIGN_OR_RETURN(Buffer part,
                            replaced[next].second.View(view.byte_offset, view.byte_size));
      replaced.emplace_back(view.buffer_indices[0], std::move(part));
    }
  }
  return replaced;
}

// Checks the ops that touch the replaced buffers, and works out the schedule anew if bytes meet.
absl::StatusOr<std::optional<PlanSchedule>> CheckReplaced(
    const PlanState& state, absl::Span<const std::pair<size_t, Buffer>> replaced) {
  auto check = [&](size_t op) {
    return CheckBuffersOf(state.ops[op], state.buffers, state.keeps_program_order);
  };
  for (const auto& entry : replaced) {
    for (auto [op, position] : state.buffer_users[entry.first]) SVOD_RETURN_IF_ERROR(check(op));
    for (size_t op : state.view_ops[entry.first]) SVOD_RETURN_IF_ERROR(check(op));
  }
  // While it overlaps nothing but its own views, before and after, no hazard has changed.
  size_t index = replaced[0].first;
  ByteRange before = state.ranges[index], after = RangeOf(state.buffers[index]);
  for (size_t i = 0; i < state.buffers.size(); ++i) {
    if (!Overlap(before, state.ranges[i]) && !Overlap(after, state.ranges[i])) continue;
    bool is_replaced = std::any_of(replaced.begin(), replaced.end(),
                                   [&](const auto& entry) { return entry.first == i; });
    if (!is_replaced) {
      return ComputeSchedule(state.ops, state.instance_dependencies, state.buffers,
                             state.keeps_program_order);
    }
  }
  return std::optional<PlanSchedule>();
}

}  // namespace

absl::Status ExecutionPlan::Rebind(size_t buffer_index, const Buffer& buffer) {
  PlanState& state = *state_;
  PlanClaim claim(state);
  if (!claim.held()) return PlanInUse();
  if (buffer_index >= state.buffers.size()) {
    return absl::InvalidArgumentError(absl::StrCat("plan: buffer index, got ", buffer_index,
                                                   ", expected less than ", state.buffers.size()));
  }
  int64_t size_bytes = state.buffers[buffer_index].size_bytes();
  if (buffer.is_null() || buffer.size_bytes() < size_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("plan: size of buffer ", buffer_index, ", got ",
                                                   buffer.size_bytes(),
                                                   " bytes, expected at least ", size_bytes));
  }
  SVOD_RETURN_IF_ERROR(buffer.Allocate());
  Buffer used = buffer;
  if (buffer.size_bytes() > size_bytes) {
    SVOD_ASSIGN_OR_RETURN(used, buffer.View(0, size_bytes));
  }
  SVOD_ASSIGN_OR_RETURN(auto replaced, Replacements(state, buffer_index, used));

  // Swapping leaves the old buffers in `replaced`, to be put back if anything is refused.
  auto swap_all = [&] {
    for (auto& [index, with] : replaced) std::swap(state.buffers[index], with);
  };
  swap_all();
  absl::StatusOr<std::optional<PlanSchedule>> schedule = CheckReplaced(state, replaced);
  if (!schedule.ok()) {
    swap_all();
    return schedule.status();
  }
  for (const auto& entry : replaced) {
    state.unbound[entry.first] = false;
    state.ranges[entry.first] = RangeOf(state.buffers[entry.first]);
  }
  if (schedule->has_value()) {
    state.schedule = **std::move(schedule);
    state.Flatten();
  } else {
    for (const auto& entry : replaced) state.RefreshBuffer(entry.first);
  }
  state.UpdateReadiness();
  return absl::OkStatus();
}

void ExecutionPlan::ReleaseIntermediateBuffers(const std::function<void(uint64_t)>& remove) const {
  absl::flat_hash_set<uint64_t> output_ids;
  for (size_t index : state_->output_indices) output_ids.insert(state_->buffers[index].id());
  for (const auto& [ast_id, index] : state_->ast_to_buffer) {
    if (!output_ids.contains(state_->buffers[index].id())) remove(ast_id);
  }
  for (uint64_t id : state_->alias_ids) remove(id);
}

void ExecutionPlan::ReleaseAllBuffers(const std::function<void(uint64_t)>& remove) const {
  for (const auto& entry : state_->ast_to_buffer) remove(entry.first);
  for (uint64_t id : state_->alias_ids) remove(id);
}

const PrepareReport& ExecutionPlan::report() const { return state_->report; }
void ExecutionPlan::SetReport(const PrepareReport& report) { state_->report = report; }

std::string ExecutionPlan::DebugString() const {
  return absl::StrCat(
      "ExecutionPlan{ops: ", state_->ops.size(),
      ", instance_dependencies: ", state_->instance_dependencies.size(),
      ", op_order: ", state_->schedule.order.size(), ", kernels: ", prepared_kernels().size(),
      ", buffers: ", state_->buffers.size(), ", device: ", ToString(state_->device), "}");
}

absl::Status ExecutionPlan::BeginRun() {
  PlanState& state = *state_;
  if (state.running.exchange(true, std::memory_order_acquire)) return PlanInUse();
  if (state.is_ready) return absl::OkStatus();
  state.running.store(false, std::memory_order_release);
  for (const PlanTensor& parameter : state.parameters) {
    if (state.unbound[parameter.buffer_index]) {
      return absl::FailedPreconditionError(
          absl::StrCat("execute: parameter ", parameter.name, " has no buffer, bind one first"));
    }
  }
  for (const PlanVariable& variable : state.variables) {
    if (!variable.value) {
      return absl::FailedPreconditionError(absl::StrCat("execute: variable ", variable.name,
                                                        " has no value, expected ", variable.min,
                                                        " to ", variable.max));
    }
  }
  auto unbound = std::find(state.unbound.begin(), state.unbound.end(), true);
  return absl::FailedPreconditionError(absl::StrCat(
      "execute: buffer ", unbound - state.unbound.begin(), " has no memory, bind one first"));
}

void ExecutionPlan::EndRun() { state_->running.store(false, std::memory_order_release); }
const RunProgram& ExecutionPlan::program() const { return state_->program; }

absl::Status ExecutionPlan::FailureOf(uint32_t record, int64_t core, int32_t code) const {
  size_t index = state_->program.records[record].op_index;
  const PreparedOp& op = state_->ops[index];
  if (state_->customs[index] == nullptr) {
    return absl::InternalError(absl::StrCat("execute: ", Describe(op), ": returned ", code,
                                            " on core ", core, ", expected 0"));
  }
  const absl::Status& status = state_->customs[index]->status;
  if (absl::IsUnimplemented(status)) return status;
  return Annotate(status, absl::StrCat("execute: ", Describe(op)));
}

}  // namespace svod
