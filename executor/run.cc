// The run of a plan: the hot loop, chunks handed to threads, profiles. No TBB here: see
// fork_join.h.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>

#include "executor/executor.h"
#include "executor/fork_join.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

struct Failure {
  uint32_t record = 0;
  int32_t code = 0;  // 0: none
  int64_t core = 0;
};

struct Timing {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int thread = 0;
};

// Filled where a run is profiled: one entry a record, and one a chunk for chunks of cores.
struct Timings {
  std::chrono::steady_clock::time_point origin = std::chrono::steady_clock::now();
  std::vector<Timing> records;
  std::vector<Timing> chunks;

  int64_t Now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                                origin)
        .count();
  }
};

// Some cores of one record; gives false on failure.
inline bool RunCores(const RunRecord& record, uint32_t index, int64_t first, int64_t last,
                     void* scratch, Failure& failure) {
  for (int64_t core = first; core < last; ++core) {
    int32_t code = record.function(record.buffers, record.variables, core, scratch);
    if (code != 0) [[unlikely]] {
      failure = {index, code, core};
      return false;
    }
  }
  return true;
}

// Records [first, last) in order, up to the first failure.
template <bool kTimed>
bool RunRecords(const RunProgram& program, uint32_t first, uint32_t last, void* scratch,
                Failure& failure, Timings* timings, int thread) {
  for (uint32_t r = first; r < last; ++r) {
    const RunRecord& record = program.records[r];
    if constexpr (kTimed) timings->records[r] = {timings->Now(), 0, thread};
    if (!RunCores(record, r, 0, record.cores, scratch, failure)) return false;
    if constexpr (kTimed) timings->records[r].end_ns = timings->Now();
  }
  return true;
}

// One parallel segment while it runs. The threads take chunks in order; all chunks run, whatever
// fails, so that the failure of the lowest record is always met.
template <bool kTimed>
struct SegmentRun {
  const RunProgram& program;
  Timings* timings;
  uint32_t last_chunk;
  std::atomic<uint32_t> next_chunk;
  // What the caller wrote before the fork is seen behind `forked`, what workers wrote is seen
  // behind `joined`. oneTBB orders both as well, where the thread sanitizer cannot see it.
  std::atomic<int> forked{0};
  std::atomic<int> joined{0};
  std::mutex failure_mutex;  // taken by failures only
  Failure failure;

  SegmentRun(const RunProgram& p, const RunSegment& segment, Timings* t)
      : program(p), timings(t), last_chunk(segment.last_chunk), next_chunk(segment.first_chunk) {}

  void RunChunk(uint32_t index, void* scratch, int thread) {
    const svod::RunChunk& chunk = program.chunks[index];
    Failure found;
    if (chunk.last_core < 0) {
      RunRecords<kTimed>(program, chunk.first_record, chunk.last_record, scratch, found, timings,
                         thread);
    } else {
      if constexpr (kTimed) timings->chunks[index] = {timings->Now(), 0, thread};
      RunCores(program.records[chunk.first_record], chunk.first_record, chunk.first_core,
               chunk.last_core, scratch, found);
      if constexpr (kTimed) timings->chunks[index].end_ns = timings->Now();
    }
    if (found.code == 0) [[likely]]
      return;
    std::lock_guard<std::mutex> lock(failure_mutex);
    if (failure.code == 0 || found.record < failure.record ||
        (found.record == failure.record && found.core < failure.core)) {
      failure = found;
    }
  }

  static void Work(void* context, int worker) {
    auto& run = *static_cast<SegmentRun*>(context);
    run.forked.load(std::memory_order_acquire);
    void* scratch = run.program.scratch == nullptr
                        ? nullptr
                        : run.program.scratch + worker * run.program.scratch_stride;
    // Relaxed: chunks are independent, and an order here would hide races between them.
    for (uint32_t chunk = run.next_chunk.fetch_add(1, std::memory_order_relaxed);
         chunk < run.last_chunk; chunk = run.next_chunk.fetch_add(1, std::memory_order_relaxed)) {
      run.RunChunk(chunk, scratch, worker);
    }
    run.joined.fetch_add(1, std::memory_order_release);
  }

  Failure Run(Executor* executor, int num_workers) {
    forked.store(1, std::memory_order_release);
    ForkJoin(executor, num_workers, &Work, this);
    joined.load(std::memory_order_acquire);
    return failure;
  }
};

template <bool kTimed>
Failure RunProgramOnce(const RunProgram& program, const ExecuteOptions& options, Timings* timings) {
  Failure failure;
  auto num_records = static_cast<uint32_t>(program.records.size());
  int max_threads = 1;
  if (program.has_parallel_segments && !options.serial) {
    max_threads = MaxThreads(options.executor);
    if (program.scratch != nullptr) {
      max_threads = std::min(max_threads, program.num_scratch_blocks);
    }
  }
  if (max_threads == 1) {
    RunRecords<kTimed>(program, 0, num_records, program.scratch, failure, timings, 0);
    return failure;
  }
  for (const RunSegment& segment : program.segments) {
    uint32_t num_chunks = segment.last_chunk - segment.first_chunk;
    if (num_chunks == 0) {
      RunRecords<kTimed>(program, segment.first_record, segment.last_record, program.scratch,
                         failure, timings, 0);
    } else {
      SegmentRun<kTimed> run(program, segment, timings);
      int num_workers = static_cast<int>(std::min(num_chunks, static_cast<uint32_t>(max_threads)));
      failure = run.Run(options.executor, num_workers);
    }
    if (failure.code != 0) [[unlikely]]
      return failure;
  }
  return failure;
}

template <bool kTimed>
absl::Status Run(ExecutionPlan& plan, const ExecuteOptions& options, Timings* timings) {
  Failure failure = RunProgramOnce<kTimed>(plan.program(), options, timings);
  if (failure.code == 0) [[likely]]
    return absl::OkStatus();
  return plan.FailureOf(failure.record, failure.core, failure.code);
}

// Folds the chunks of cores into their records.
void MergeChunks(const RunProgram& program, Timings& timings) {
  for (size_t i = 0; i < program.chunks.size(); ++i) {
    const RunChunk& chunk = program.chunks[i];
    const Timing& timing = timings.chunks[i];
    if (chunk.last_core < 0 || timing.end_ns == 0) continue;
    Timing& record = timings.records[chunk.first_record];
    if (record.end_ns == 0) record = timing;
    record.start_ns = std::min(record.start_ns, timing.start_ns);
    record.end_ns = std::max(record.end_ns, timing.end_ns);
  }
}

std::vector<KernelProfile> MakeProfiles(const ExecutionPlan& plan, const Timings& timings) {
  std::vector<KernelProfile> profiles;
  for (size_t r = 0; r < timings.records.size(); ++r) {
    size_t op_index = plan.program().records[r].op_index;
    const auto* kernel = std::get_if<PreparedKernel>(&plan.prepared_ops()[op_index]);
    if (kernel == nullptr) continue;
    KernelProfile profile;
    profile.kernel = kernel->kernel;
    profile.device = kernel->device;
    profile.id = kernel->id;
    profile.op_index = op_index;
    profile.num_buffers = kernel->buffer_indices.size();
    profile.global_size = plan.launch_sizes(op_index)->global_size();
    profile.start_ns = timings.records[r].start_ns;
    profile.elapsed_ns = timings.records[r].end_ns - timings.records[r].start_ns;
    profile.thread = timings.records[r].thread;
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

}  // namespace

absl::Status Execute(ExecutionPlan& plan, const ExecuteOptions& options) {
  SVOD_RETURN_IF_ERROR(plan.BeginRun());
  absl::Status status = Run<false>(plan, options, nullptr);
  plan.EndRun();
  return status;
}

absl::StatusOr<std::vector<KernelProfile>> ExecuteProfiled(ExecutionPlan& plan,
                                                           const ExecuteOptions& options) {
  SVOD_RETURN_IF_ERROR(plan.BeginRun());
  Timings timings;
  timings.records.resize(plan.program().records.size());
  timings.chunks.resize(plan.program().chunks.size());
  absl::Status status = Run<true>(plan, options, &timings);
  std::vector<KernelProfile> profiles;
  if (status.ok()) {
    MergeChunks(plan.program(), timings);
    profiles = MakeProfiles(plan, timings);
  }
  plan.EndRun();
  if (!status.ok()) return status;
  return profiles;
}

absl::Status ExecuteWithVariables(ExecutionPlan& plan, VariableValues values,
                                  const ExecuteOptions& options) {
  SVOD_RETURN_IF_ERROR(plan.SetVariables(values));
  return Execute(plan, options);
}

absl::StatusOr<std::vector<KernelProfile>> ExecuteWithVariablesProfiled(
    ExecutionPlan& plan, VariableValues values, const ExecuteOptions& options) {
  SVOD_RETURN_IF_ERROR(plan.SetVariables(values));
  return ExecuteProfiled(plan, options);
}

namespace {

struct TaskRun {
  const std::function<void(int)>& task;
  int num_tasks;
  std::atomic<int> next_task{0};
  std::atomic<int> forked{0};
  std::atomic<int> joined{0};

  static void Work(void* context, int) {
    auto& run = *static_cast<TaskRun*>(context);
    run.forked.load(std::memory_order_acquire);
    for (int task = run.next_task.fetch_add(1, std::memory_order_relaxed); task < run.num_tasks;
         task = run.next_task.fetch_add(1, std::memory_order_relaxed)) {
      run.task(task);
    }
    run.joined.fetch_add(1, std::memory_order_release);
  }
};

}  // namespace

TaskRunner MakeTbbTaskRunner(Executor* executor) {
  return [executor](int num_tasks, const std::function<void(int)>& task) {
    if (num_tasks <= 1) return RunSerially(num_tasks, task);
    TaskRun run{task, num_tasks};
    run.forked.store(1, std::memory_order_release);
    ForkJoin(executor, std::min(num_tasks, MaxThreads(executor)), &TaskRun::Work, &run);
    run.joined.load(std::memory_order_acquire);
  };
}

}  // namespace svod
