// ExecutionPlan::Replicate: the same ops over memory of their own.
#include <algorithm>
#include <tuple>

#include "ir/status_macros.h"
#include "plan/plan_state.h"

namespace svod {
namespace {

// Which buffers some op writes or a result stays in.
std::vector<bool> WrittenBuffers(const PlanState& state) {
  std::vector<bool> written(state.buffers.size());
  for (const PreparedOp& op : state.ops) {
    if (const auto* kernel = std::get_if<PreparedKernel>(&op)) {
      for (size_t position : kernel->output_indices) {
        written[kernel->buffer_indices[position]] = true;
      }
    } else if (const auto* copy = std::get_if<PreparedCopy>(&op)) {
      written[copy->buffer_indices[0]] = true;
    } else if (const auto* custom = std::get_if<PreparedCustomFunction>(&op)) {
      for (size_t index : custom->buffer_indices) written[index] = true;
    }
  }
  for (size_t index : state.output_indices) written[index] = true;
  return written;
}

// Buffers that share bytes stay together: a cluster of them moves to one new storage if any of
// them is written, with the same distances between them and the same address modulo the buffer
// alignment. Other clusters keep their memory.
std::vector<Buffer> ReplicateBuffers(const PlanState& state) {
  std::vector<bool> written = WrittenBuffers(state);
  std::vector<size_t> order(state.buffers.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  auto key = [&](size_t i) {
    const ByteRange& range = state.ranges[i];
    return std::make_tuple(range.space, range.begin, ~range.end, i);
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });

  std::vector<Buffer> result = state.buffers;
  for (size_t first = 0; first < order.size();) {
    ByteRange cluster = state.ranges[order[first]];
    bool is_written = false;
    size_t last = first;
    for (; last < order.size(); ++last) {
      const ByteRange& range = state.ranges[order[last]];
      // An empty view at the end of its base belongs to it as well.
      bool inside = range.space == cluster.space &&
                    (range.begin < cluster.end || (range.empty() && range.begin == cluster.end));
      if (last > first && !inside) break;
      cluster.end = std::max(cluster.end, range.end);
      is_written |= written[order[last]];
    }
    if (is_written) {
      const Buffer& lead = state.buffers[order[first]];
      auto phase = static_cast<int64_t>(cluster.begin % uint64_t{kBufferAlignment});
      auto size_bytes = static_cast<int64_t>(cluster.end - cluster.begin);
      auto storage = std::make_shared<Storage>(
          size_bytes + phase,
          lead.storage()->is_foreign() ? state.allocator : lead.storage()->allocator());
      for (size_t at = first; at < last; ++at) {
        auto offset = static_cast<int64_t>(state.ranges[order[at]].begin - cluster.begin);
        result[order[at]] =
            Buffer::OfStorage(storage, phase + offset, state.buffers[order[at]].size_bytes());
      }
    }
    first = last;
  }
  return result;
}

}  // namespace

absl::StatusOr<ExecutionPlan> ExecutionPlan::Replicate() const {
  PlanState& from = *state_;
  PlanClaim claim(from);
  if (!claim.held()) return PlanInUse();

  auto state = std::make_unique<PlanState>();
  state->buffers = ReplicateBuffers(from);
  state->device = from.device;
  state->ops = from.ops;
  state->instance_dependencies = from.instance_dependencies;
  state->unbound = from.unbound;
  state->ast_to_buffer = from.ast_to_buffer;
  state->output_indices = from.output_indices;
  state->alias_ids = from.alias_ids;
  state->keeps_program_order = from.keeps_program_order;
  state->parameters = from.parameters;
  state->outputs = from.outputs;
  state->declared_variables = from.declared_variables;
  state->allocator = from.allocator;
  state->max_scratch_threads = from.max_scratch_threads;
  state->report = from.report;
  state->variables = from.variables;
  state->variable_values = from.variable_values;
  state->variable_users = from.variable_users;
  state->runtime_variables = from.runtime_variables;
  state->launches = from.launches;
  state->customs.resize(from.customs.size());
  for (size_t i = 0; i < from.customs.size(); ++i) {
    if (from.customs[i] == nullptr) continue;
    state->customs[i] = std::make_unique<CustomState>();
    state->customs[i]->function = from.customs[i]->function;
    state->customs[i]->buffers = from.customs[i]->buffers;
    state->customs[i]->variables = from.customs[i]->variables;
  }
  SVOD_RETURN_IF_ERROR(state->Finish());
  return ExecutionPlan(std::move(state));
}

}  // namespace svod
