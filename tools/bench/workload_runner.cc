#include "tools/bench/workload_runner.h"

#include <algorithm>

#include "ir/status_macros.h"
#include "plan/prepare.h"
#include "tools/bench/check.h"
#include "tools/bench/limits.h"
#include "tools/bench/peers.h"

namespace svod::bench {

std::vector<double> PreparedWorkload::samples() const {
  const PlanTensor& output = plan->outputs()[0];
  return Samples(plan->buffers()[output.buffer_index].data(), output.dtype, output.num_elements());
}

absl::StatusOr<PreparedWorkload> PrepareWorkload(const Workload& workload,
                                                 absl::Span<const Buffer> inputs,
                                                 Executor& executor, KernelCache& kernels) {
  PrepareOptions options;
  options.compiler = "host";
  options.task_runner = MakeTbbTaskRunner(&executor);
  options.allocate_parameters = false;
  options.schedule_cache = nullptr;
  options.schedule.winograd_error = workload.winograd_error;
  const Module graph = BuildGraph(workload);
  SVOD_ASSIGN_OR_RETURN(
      ExecutionPlan plan,
      Prepare(graph, "", [&](const UOp* sink) { return kernels.GetOrCompile(sink); }, options));
  for (size_t i = 0; i < inputs.size(); ++i) {
    SVOD_RETURN_IF_ERROR(plan.Bind(workload.operands[i].name, inputs[i]));
  }
  return PreparedWorkload{std::make_unique<ExecutionPlan>(std::move(plan))};
}

namespace {

// Below this many operations a byte, memory may be what limits a row.
constexpr double kBalancedFlopsPerByte = 60;

// The time that the row takes at the best rate of `limits`, of which timings[i] was measured.
double LimitNs(double amount, absl::Span<const Limit> limits, absl::Span<const Timing> timings) {
  double rate = 0;
  for (size_t i = 0; i < limits.size(); ++i) {
    rate = std::max(rate, limits[i].amount / timings[i].best_ns);
  }
  return rate > 0 ? amount / rate : 0;
}

}  // namespace

absl::StatusOr<std::vector<Record>> RunWorkload(const Workload& workload, Executor& executor,
                                                bool compare) {
  const std::vector<Buffer> inputs = MakeInputs(workload.operands);
  SVOD_ASSIGN_OR_RETURN(std::shared_ptr<KernelCache> kernels, KernelCache::Create());
  SVOD_ASSIGN_OR_RETURN(PreparedWorkload prepared,
                        PrepareWorkload(workload, inputs, executor, *kernels));
  ExecuteOptions options;
  options.executor = &executor;
  SVOD_RETURN_IF_ERROR(Execute(*prepared.plan, options));

  std::vector<Contender> contenders = {{.peer = "svod",
                                        .run = [&] { CheckOk(Execute(*prepared.plan, options)); },
                                        .samples = [&] { return prepared.samples(); }}};
  const int threads = executor.num_threads();
  std::vector<Limit> memory, arithmetic;
  const double bytes = workload.read_bytes + workload.written_bytes;
  if (compare) {
#ifdef SVOD_BENCH_OPENBLAS
    AddOpenBlasPeers(workload, inputs, threads, &contenders);
#endif
#ifdef SVOD_BENCH_ONEDNN
    AddOneDnnPeers(workload, inputs, threads, &contenders);
#endif
    const TaskRunner runner = MakeTbbTaskRunner(&executor);
    if (workload.flops > 0) {
      const DType dtype = workload.operands[0].dtype;
      if (auto limit = ArithmeticLimit(dtype, threads, runner)) arithmetic.push_back(*limit);
    }
    if (workload.flops < kBalancedFlopsPerByte * bytes) {
      memory = MemoryLimits(workload.read_bytes, workload.written_bytes, threads, runner);
    }
  }
  const size_t num_peers = contenders.size();
  for (const std::vector<Limit>* limits : {&arithmetic, &memory}) {
    for (const Limit& limit : *limits) {
      contenders.push_back({.peer = limit.name, .run = limit.run, .seconds = 0.12});
    }
  }
  const std::vector<Timing> timings = MeasureSideBySide(contenders);

  std::vector<Record> records;
  for (size_t i = 0; i < num_peers; ++i) {
    Record record{workload.row, contenders[i].peer, threads, timings[i]};
    record.samples = contenders[i].samples();
    if (workload.flops > 0) record.more.emplace_back("flops", workload.flops);
    record.more.emplace_back("bytes", bytes);
    records.push_back(std::move(record));
  }
  if (compare) {
    const auto rest = absl::MakeConstSpan(timings).subspan(num_peers);
    const double at_peak = LimitNs(workload.flops, arithmetic, rest);
    const double at_bandwidth = LimitNs(bytes, memory, rest.subspan(arithmetic.size()));
    auto& more = records[0].more;
    more.emplace_back("limit_ns", std::max(at_peak, at_bandwidth));
    if (at_peak > 0) more.emplace_back("peak_gflops", workload.flops / at_peak);
    if (at_bandwidth > 0) more.emplace_back("peak_gbs", bytes / at_bandwidth);
    more.emplace_back("kernels", prepared.plan->report().num_kernels);
  }
  return records;
}

}  // namespace svod::bench
