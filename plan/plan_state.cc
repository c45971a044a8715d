#include "plan/plan_state.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <thread>
#include <type_traits>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/status_macros.h"
#include "plan/levels.h"

namespace svod {
namespace {

// The function of a copy's record: variables[0] is the number of bytes.
int32_t RunCopy(void* const* buffers, const int64_t* variables, int64_t, void*) {
  std::memmove(buffers[0], buffers[1], static_cast<size_t>(variables[0]));
  return 0;
}

// The function of a custom function's record: buffers[0] is its CustomState, variables[0] holds
// the address of its PreparedCustomFunction.
int32_t RunCustom(void* const* buffers, const int64_t* variables, int64_t, void*) {
  auto* state = static_cast<CustomState*>(buffers[0]);
  const auto* op = reinterpret_cast<const PreparedCustomFunction*>(variables[0]);
  try {
    absl::Status status = (*state->function)({state->buffers, op->attributes, state->variables});
    if (status.ok()) return 0;
    state->status = std::move(status);
  } catch (const std::exception& error) {
    state->status = absl::InternalError(absl::StrCat("exception: ", error.what()));
  } catch (...) {
    state->status = absl::InternalError("unknown exception");
  }
  return 1;
}

struct RecordShape {
  size_t num_pointers = 0;
  size_t num_values = 0;
};

RecordShape ShapeOf(const PreparedOp& op) {
  if (const auto* kernel = std::get_if<PreparedKernel>(&op)) {
    return {kernel->buffer_indices.size(), kernel->values.size()};
  }
  return {std::holds_alternative<PreparedCopy>(op) ? size_t{2} : size_t{1}, 1};
}

bool IsView(const PreparedOp& op) { return std::holds_alternative<PreparedBufferView>(op); }

// Rough cost of one launch that nobody has estimated [ns]: a call, and bytes at 20 a ns.
double GuessCostNs(const PreparedKernel& kernel, absl::Span<const Buffer> buffers, int64_t cores) {
  double bytes = 0;
  for (size_t index : kernel.buffer_indices) {
    bytes += static_cast<double>(buffers[index].size_bytes());
  }
  double cost_ns = 5 + bytes / 20;
  // Whoever made an axis parallel found that each core is worth a fork.
  if (cores > 1) cost_ns = std::max(cost_ns, static_cast<double>(cores) * kMinParallelNs / 2);
  return cost_ns;
}

// Cuts records [first, last) into pieces of at least `grain_ns`.
void CutChunks(absl::Span<const RunRecord> records, uint32_t first, uint32_t last, double grain_ns,
               std::vector<RunChunk>& chunks) {
  uint32_t begin = first;
  double pending_ns = 0;
  auto flush = [&](uint32_t end) {
    if (begin < end) chunks.push_back({begin, end, 0, -1});
    begin = end;
    pending_ns = 0;
  };
  for (uint32_t r = first; r < last; ++r) {
    const RunRecord& record = records[r];
    if (record.cores > 1 && record.cost_ns > grain_ns) {
      flush(r);
      double core_ns = record.cost_ns / static_cast<double>(record.cores);
      auto step = std::max<int64_t>(1, static_cast<int64_t>(std::min(grain_ns / core_ns, 1e15)));
      for (int64_t core = 0; core < record.cores; core += std::min(step, record.cores - core)) {
        chunks.push_back({r, r + 1, core, core + std::min(step, record.cores - core)});
      }
      begin = r + 1;
      continue;
    }
    pending_ns += record.cost_ns;
    if (pending_ns >= grain_ns) flush(r + 1);
  }
  flush(last);
}

// One block of scratch for each thread that may run at once, as large as the largest need.
absl::Status AllocateScratch(PlanState& state) {
  int64_t scratch_bytes = 0;
  for (const PreparedOp& op : state.ops) {
    const auto* kernel = std::get_if<PreparedKernel>(&op);
    if (kernel != nullptr) scratch_bytes = std::max(scratch_bytes, kernel->kernel->scratch_bytes);
  }
  if (scratch_bytes == 0) return absl::OkStatus();
  int threads = state.max_scratch_threads;
  if (threads <= 0) threads = static_cast<int>(std::thread::hardware_concurrency());
  // A plan that never forks needs one block; whether it forks may change with its variables.
  size_t widest = 0;
  for (const auto& level : state.schedule.groups) {
    for (const auto& group : level) {
      size_t width = group.size();
      for (size_t op : group) {
        const auto* kernel = std::get_if<PreparedKernel>(&state.ops[op]);
        if (kernel != nullptr && kernel->kernel->global_size[0] != nullptr) width = SIZE_MAX;
      }
      widest = std::max(widest, width);
    }
  }
  threads = static_cast<int>(std::min<size_t>(static_cast<size_t>(std::max(threads, 1)), widest));
  // Blocks end on different cache lines.
  int64_t stride = (scratch_bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  if (stride > std::numeric_limits<int64_t>::max() / threads) {
    return absl::ResourceExhaustedError(
        absl::StrCat("plan: scratch of ", scratch_bytes, " bytes for ", threads, " threads"));
  }
  SVOD_ASSIGN_OR_RETURN(state.scratch, Buffer::Create(stride * threads, state.allocator));
  SVOD_RETURN_IF_ERROR(Annotate(state.scratch.Allocate(), "plan: scratch"));
  state.program.scratch = state.scratch.data();
  state.program.scratch_stride = stride;
  state.program.num_scratch_blocks = threads;
  return absl::OkStatus();
}

}  // namespace

RunMemory::RunMemory(size_t num_records, size_t num_pointers, size_t num_values)
    : num_records_(num_records) {
  static_assert(sizeof(RunRecord) <= 64 && std::is_trivially_destructible_v<RunRecord>);
  size_t record_bytes = num_records * sizeof(RunRecord);
  size_t pointer_bytes = num_pointers * sizeof(void*);
  size_t bytes = record_bytes + pointer_bytes + num_values * sizeof(int64_t);
  block_.reset(
      static_cast<std::byte*>(::operator new(std::max<size_t>(bytes, 1), std::align_val_t{64})));
  records_ = reinterpret_cast<RunRecord*>(block_.get());
  pointers_ = reinterpret_cast<void**>(block_.get() + record_bytes);
  values_ = reinterpret_cast<int64_t*>(block_.get() + record_bytes + pointer_bytes);
  std::uninitialized_value_construct_n(records_, num_records);
}

void RunMemory::Free::operator()(std::byte* block) const {
  ::operator delete(block, std::align_val_t{64});
}

void PlanState::IndexBuffers() {
  buffer_users.assign(buffers.size(), {});
  view_ops.assign(buffers.size(), {});
  views_of.assign(buffers.size(), {});
  custom_ops.clear();
  for (size_t op = 0; op < ops.size(); ++op) {
    const std::vector<size_t>& indices = std::visit(
        [](const auto& o) -> const std::vector<size_t>& { return o.buffer_indices; }, ops[op]);
    if (IsView(ops[op])) {
      views_of[indices[1]].push_back(op);
      for (size_t side : {0, 1}) view_ops[indices[side]].push_back(op);
      continue;
    }
    bool is_copy = std::holds_alternative<PreparedCopy>(ops[op]);
    size_t num_used = is_copy ? 2 : indices.size();
    for (size_t position = 0; position < num_used; ++position) {
      buffer_users[indices[position]].emplace_back(op, position);
    }
    if (auto* kernel = std::get_if<PreparedKernel>(&ops[op])) {
      kernel->buffer_pointers.assign(indices.size(), nullptr);
      kernel->buffer_ids.assign(indices.size(), 0);
    }
    if (customs[op] != nullptr) custom_ops.push_back(op);
  }
}

absl::Status PlanState::Finish() {
  IndexBuffers();
  // Views of what is unbound have no memory either.
  absl::flat_hash_set<uint64_t> unbound_storages;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (unbound[i]) unbound_storages.insert(buffers[i].storage_id());
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    unbound[i] = unbound_storages.contains(buffers[i].storage_id());
    if (unbound[i]) continue;
    absl::Status status = buffers[i].Allocate();
    if (!status.ok()) return Annotate(status, absl::StrCat("plan: buffer ", i));
  }
  for (const PreparedOp& op : ops) {
    SVOD_RETURN_IF_ERROR(CheckBuffersOf(op, buffers, keeps_program_order));
  }
  SVOD_ASSIGN_OR_RETURN(schedule,
                        ComputeSchedule(ops, instance_dependencies, buffers, keeps_program_order));
  SVOD_RETURN_IF_ERROR(AllocateScratch(*this));
  ranges.clear();
  for (const Buffer& buffer : buffers) ranges.push_back(RangeOf(buffer));
  Flatten();
  UpdateShapes();
  UpdateReadiness();
  return absl::OkStatus();
}

void PlanState::Flatten() {
  std::vector<size_t> run_order;
  size_t num_pointers = 0, num_values = 0;
  for (const auto& level : schedule.groups) {
    for (const auto& group : level) {
      for (size_t op : group) {
        if (IsView(ops[op])) continue;
        run_order.push_back(op);
        RecordShape shape = ShapeOf(ops[op]);
        num_pointers += shape.num_pointers;
        num_values += shape.num_values;
      }
    }
  }
  memory = RunMemory(run_order.size(), num_pointers, num_values);
  record_of_op.assign(ops.size(), kNoRecord);
  void** pointers = memory.pointers();
  int64_t* values = memory.values();
  for (size_t r = 0; r < run_order.size(); ++r) {
    size_t op = run_order[r];
    RunRecord& record = memory.records()[r];
    record_of_op[op] = static_cast<uint32_t>(r);
    record.op_index = static_cast<uint32_t>(op);
    record.buffers = pointers;
    record.variables = values;
    if (const auto* kernel = std::get_if<PreparedKernel>(&ops[op])) {
      record.function = kernel->kernel->function;
      std::copy(kernel->values.begin(), kernel->values.end(), values);
    } else if (const auto* copy = std::get_if<PreparedCopy>(&ops[op])) {
      record.function = &RunCopy;
      values[0] = buffers[copy->buffer_indices[0]].size_bytes();
    } else {
      record.function = &RunCustom;
      pointers[0] = customs[op].get();
      values[0] = static_cast<int64_t>(
          reinterpret_cast<intptr_t>(&std::get<PreparedCustomFunction>(ops[op])));
    }
    RecordShape shape = ShapeOf(ops[op]);
    pointers += shape.num_pointers;
    values += shape.num_values;
  }
  for (size_t index = 0; index < buffers.size(); ++index) RefreshBuffer(index);
  Segment();
}

void PlanState::Segment() {
  absl::Span<RunRecord> records = memory.records();
  segments.clear();
  chunks.clear();
  program.has_parallel_segments = false;
  auto is_serial = [](const RunSegment& segment) {
    return segment.first_chunk == segment.last_chunk;
  };
  uint32_t next_record = 0;
  for (const auto& level : schedule.groups) {
    for (const auto& group : level) {
      RunSegment segment{next_record, next_record, 0, 0};
      double cost_ns = 0;
      for (size_t op : group) {
        if (record_of_op[op] == kNoRecord) continue;
        RunRecord& record = records[segment.last_record++];
        if (const auto* kernel = std::get_if<PreparedKernel>(&ops[op])) {
          record.cores = CoresOf(op);
          record.cost_ns =
              kernel->cost_ns > 0 ? kernel->cost_ns : GuessCostNs(*kernel, buffers, record.cores);
        }
        cost_ns += record.cost_ns;
      }
      next_record = segment.last_record;
      if (segment.first_record == segment.last_record) continue;
      auto first_chunk = static_cast<uint32_t>(chunks.size());
      if (cost_ns >= kMinParallelNs) {
        CutChunks(records, segment.first_record, segment.last_record,
                  std::max(kMinChunkNs, cost_ns / kMaxChunks), chunks);
        if (chunks.size() - first_chunk < 2) chunks.resize(first_chunk);
      }
      segment.first_chunk = first_chunk;
      segment.last_chunk = static_cast<uint32_t>(chunks.size());
      if (is_serial(segment) && !segments.empty() && is_serial(segments.back())) {
        segments.back().last_record = segment.last_record;
        continue;
      }
      program.has_parallel_segments |= !is_serial(segment);
      segments.push_back(segment);
    }
  }
  program.records = records;
  program.segments = segments;
  program.chunks = chunks;
}

void PlanState::RefreshBuffer(size_t index) {
  std::byte* data = unbound[index] ? nullptr : buffers[index].data();
  for (auto [op, position] : buffer_users[index]) {
    if (auto* kernel = std::get_if<PreparedKernel>(&ops[op])) {
      kernel->buffer_pointers[position] = data;
      kernel->buffer_ids[position] = buffers[index].id();
    } else if (customs[op] != nullptr) {
      customs[op]->buffers[position] = buffers[index];
      continue;
    }
    if (record_of_op[op] == kNoRecord) continue;
    const RunRecord& record = memory.records()[record_of_op[op]];
    // The pointers lie in `memory`, which is ours to write.
    const_cast<void**>(record.buffers)[position] = data;
  }
}

void PlanState::UpdateReadiness() {
  is_ready = std::none_of(unbound.begin(), unbound.end(), [](bool u) { return u; }) &&
             std::all_of(variables.begin(), variables.end(),
                         [](const PlanVariable& variable) { return variable.value.has_value(); });
}

void PlanState::UpdateShapes() {
  for (std::vector<PlanTensor>* tensors : {&parameters, &outputs}) {
    for (PlanTensor& tensor : *tensors) {
      for (size_t i = 0; i < tensor.dimensions.size(); ++i) {
        tensor.shape[i] = tensor.dimensions[i].Run(variable_values);
      }
    }
  }
}

void PlanState::ResolveLaunch(size_t op_index) {
  if (launches[op_index]) {
    launches[op_index]->Resolve(std::get<PreparedKernel>(ops[op_index]).values);
  }
}

int64_t PlanState::CoresOf(size_t op_index) const {
  const std::array<int64_t, 3>& size = launches[op_index]->global_size();
  if (*std::min_element(size.begin(), size.end()) <= 0) return 0;
  return std::get<PreparedKernel>(ops[op_index]).device.is_cpu() ? size[0] : 1;
}

namespace {

OpAccess AccessOf(const PreparedOp& op, absl::Span<const Buffer> buffers) {
  OpAccess access;
  auto range = [&](size_t index) { return RangeOf(buffers[index]); };
  if (const auto* kernel = std::get_if<PreparedKernel>(&op)) {
    for (size_t i = 0; i < kernel->buffer_indices.size(); ++i) {
      const auto& written = kernel->output_indices;
      bool is_output = std::find(written.begin(), written.end(), i) != written.end();
      (is_output ? access.writes : access.reads).push_back(range(kernel->buffer_indices[i]));
    }
  } else if (const auto* copy = std::get_if<PreparedCopy>(&op)) {
    access.writes.push_back(range(copy->buffer_indices[0]));
    access.reads.push_back(range(copy->buffer_indices[1]));
  } else if (const auto* custom = std::get_if<PreparedCustomFunction>(&op)) {
    for (size_t index : custom->buffer_indices) access.writes.push_back(range(index));
  }
  return access;
}

// Alone in its level's order: everything before it in the level ends first.
bool IsSerial(const PreparedOp& op) {
  const auto* kernel = std::get_if<PreparedKernel>(&op);
  return kernel == nullptr || !kernel->kernel->host_parallel_safe;
}

}  // namespace

absl::StatusOr<PlanSchedule> ComputeSchedule(
    absl::Span<const PreparedOp> ops, absl::Span<const std::vector<size_t>> instance_dependencies,
    absl::Span<const Buffer> buffers, bool keeps_program_order) {
  PlanSchedule schedule;
  std::vector<OpNode> nodes;
  for (const PreparedOp& op : ops) {
    nodes.push_back({IdOf(op), DependenciesOf(op)});
    schedule.accesses.push_back(AccessOf(op, buffers));
  }
  std::vector<std::vector<size_t>> after(instance_dependencies.begin(),
                                         instance_dependencies.end());
  if (keeps_program_order) {
    std::vector<std::vector<size_t>> hazards = ProgramOrderDependencies(schedule.accesses);
    for (size_t i = 0; i < after.size(); ++i) {
      after[i].insert(after[i].end(), hazards[i].begin(), hazards[i].end());
    }
  }
  SVOD_ASSIGN_OR_RETURN(DependencyGraph graph, BuildDependencyGraph(nodes, after));
  SVOD_ASSIGN_OR_RETURN(schedule.order, ComputeOrder(graph));
  SVOD_ASSIGN_OR_RETURN(schedule.levels, ComputeLevels(graph));

  for (const std::vector<size_t>& level : schedule.levels) {
    std::vector<std::vector<size_t>>& groups = schedule.groups.emplace_back();
    std::vector<size_t> pending;
    auto flush = [&] {
      for (auto& group : PartitionGroups(pending, schedule.accesses)) {
        groups.push_back(std::move(group));
      }
      pending.clear();
    };
    for (size_t op : level) {
      if (!IsSerial(ops[op])) {
        pending.push_back(op);
        continue;
      }
      flush();
      groups.push_back({op});
    }
    flush();
  }
  return schedule;
}

}  // namespace svod
