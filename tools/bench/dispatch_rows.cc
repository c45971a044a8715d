// What a plan costs per kernel: chains and sets of tiny kernels beside plain calls of the same
// code.
#include "absl/strings/str_cat.h"
#include "executor/executor.h"
#include "ir/kernel_builder.h"
#include "jit/kernel_cache.h"
#include "plan/plan_builder.h"
#include "plan/prepare.h"
#include "tools/bench/rows.h"

namespace svod::bench {
namespace {

constexpr int kNumKernels = 1000;
constexpr int64_t kElements = 256;
constexpr int kLanes = 16;

// y[i] = x[i] + 1 for 256 floats, 16 at a time.
const UOp* IncrementKernel(std::shared_ptr<Context> context) {
  KernelBuilder builder(context, "increment");
  const UOp* y = builder.Param("y", Scalar::kF32, {kElements}, Access::kOut);
  const UOp* x = builder.Param("x", Scalar::kF32, {kElements}, Access::kIn);
  const UOp* i = builder.Range(kElements / kLanes);
  const UOp* at = builder.Make(Op::kMul, {i, context->Index(kLanes)});
  KernelBuilder::AccessOptions options;
  options.lanes = kLanes;
  const UOp* value = builder.Load(x, {at}, options);
  const UOp* one = context->Float(DType(Scalar::kF32, kLanes), 1);
  builder.Store(y, {at}, builder.Make(Op::kAdd, {value, one}), {});
  builder.End(i);
  return ValueOrDie(builder.Finish());
}

// Kernel k reads buffer source(k) and writes buffer k + 1; buffer 0 is the input.
struct Dispatch {
  std::unique_ptr<Executor> executor;
  std::unique_ptr<ExecutionPlan> plan;
  KernelPtr kernel;
  std::vector<std::array<void*, 2>> pointers;

  Dispatch(int threads, bool chain) {
    executor = ValueOrDie(Executor::Create(threads));
    auto context = std::make_shared<Context>();
    const UOp* sink = IncrementKernel(context);
    kernel = ValueOrDie(ValueOrDie(KernelCache::Default())->GetOrCompile(sink));
    ExecutionPlanBuilder builder{DeviceSpec()};
    for (int k = 0; k <= kNumKernels; ++k) {
      Buffer buffer = ValueOrDie(Buffer::Create(kElements * 4));
      CheckOk(buffer.Allocate());
      builder.AddBuffer(static_cast<uint64_t>(k), buffer);
    }
    for (int k = 0; k < kNumKernels; ++k) {
      PreparedKernel op;
      op.id = static_cast<uint64_t>(k);
      op.context = context;
      op.ast = sink;
      op.kernel = kernel;
      size_t source = chain ? static_cast<size_t>(k) : 0;
      op.buffer_indices = {static_cast<size_t>(k) + 1, source};
      op.output_indices = {0};
      op.cost_ns = EstimateCostNs(sink);
      if (chain && k > 0) op.dependencies = {static_cast<uint64_t>(k) - 1};
      builder.AddOp(op);
    }
    builder.SetOutputBuffer(kNumKernels);
    plan = std::make_unique<ExecutionPlan>(ValueOrDie(std::move(builder).Build()));
    for (const PreparedKernel* op : plan->prepared_kernels()) {
      pointers.push_back({plan->buffers()[op->buffer_indices[0]].data(),
                          plan->buffers()[op->buffer_indices[1]].data()});
    }
  }
};

void RunPlan(benchmark::State& state, int threads, bool chain) {
  Dispatch dispatch(threads, chain);
  ExecuteOptions options;
  options.executor = dispatch.executor.get();
  for (auto _ : state) CheckOk(Execute(*dispatch.plan, options));
  state.counters["ops"] = kNumKernels;
}

// The floor: the same function pointers called in a loop.
void RunCalls(benchmark::State& state, bool chain) {
  Dispatch dispatch(1, chain);
  for (auto _ : state) {
    for (const std::array<void*, 2>& buffers : dispatch.pointers) {
      dispatch.kernel->function(buffers.data(), nullptr, 0, nullptr);
    }
  }
  state.counters["ops"] = kNumKernels;
}

}  // namespace

void RegisterDispatchRows(int threads) {
  for (bool chain : {true, false}) {
    std::string row = chain ? "dep1000" : "indep1000";
    benchmark::RegisterBenchmark(absl::StrCat(row, "/svod").c_str(),
                                 [=](benchmark::State& s) { RunPlan(s, threads, chain); })
        ->Repetitions(9)
        ->MinTime(0.05)
        ->UseRealTime();
    benchmark::RegisterBenchmark(absl::StrCat(row, "/calls").c_str(),
                                 [=](benchmark::State& s) { RunCalls(s, chain); })
        ->Repetitions(9)
        ->MinTime(0.05)
        ->UseRealTime();
  }
}

}  // namespace svod::bench
