// What preparing tensor graphs costs: a transformer block, from nothing and with a warm schedule
// cache; networks of more and more layers; a long chain of elementwise ops. Counters split the
// time.
#include <string>

#include "absl/strings/str_cat.h"
#include "executor/executor.h"
#include "ir/operators/activation.h"
#include "ir/operators/attention.h"
#include "ir/operators/matmul.h"
#include "ir/operators/normalization.h"
#include "ir/tensor_builder.h"
#include "jit/kernel_cache.h"
#include "plan/prepare.h"
#include "tools/bench/rows.h"

namespace svod::bench {
namespace {

constexpr int64_t kTokens = 32, kWidth = 64, kHeads = 4;

// A pre-norm encoder block of attention and a feed-forward part.
const UOp* Block(TensorBuilder& b, const UOp* x, int layer) {
  auto weight = [&](absl::string_view name, std::initializer_list<int64_t> shape) {
    return b.Param(absl::StrCat(name, layer), Scalar::kF32, shape);
  };
  auto heads = [&](const UOp* y) {
    return b.Permute(b.Reshape(y, {1, kTokens, kHeads, kWidth / kHeads}), {0, 2, 1, 3});
  };
  const UOp* h = LayerNorm(b, x, weight("g", {kWidth}), weight("h", {kWidth}));
  const UOp* q = heads(Linear(b, h, weight("q", {kWidth, kWidth}), weight("qb", {kWidth})));
  const UOp* k = heads(Linear(b, h, weight("k", {kWidth, kWidth}), weight("kb", {kWidth})));
  const UOp* v = heads(Linear(b, h, weight("v", {kWidth, kWidth}), weight("vb", {kWidth})));
  const UOp* a = b.Reshape(b.Permute(Attention(b, q, k, v), {0, 2, 1, 3}), {kTokens, kWidth});
  x = b.Add(x, Linear(b, a, weight("o", {kWidth, kWidth}), weight("ob", {kWidth})));
  h = LayerNorm(b, x, weight("i", {kWidth}), weight("j", {kWidth}));
  h = Gelu(b, Linear(b, h, weight("u", {4 * kWidth, kWidth}), weight("ub", {4 * kWidth})));
  return b.Add(x, Linear(b, h, weight("d", {kWidth, 4 * kWidth}), weight("db", {kWidth})));
}

Module Network(int num_layers) {
  TensorBuilder builder(std::make_shared<Context>());
  const UOp* x = builder.Param("x", Scalar::kF32, {kTokens, kWidth});
  for (int layer = 0; layer < num_layers; ++layer) x = Block(builder, x, layer);
  Function graph = ValueOrDie(builder.Finish("network", {x}));
  return {builder.shared_context(), {graph}};
}

void Prepare(benchmark::State& state, int num_layers, bool is_warm, int threads) {
  std::unique_ptr<Executor> executor = ValueOrDie(Executor::Create(threads));
  Module module = Network(num_layers);
  PrepareReport sum;
  double optimize_ms = 0;
  std::shared_ptr<KernelCache> kernels;
  PrepareOptions options;
  options.compiler = "host";
  options.task_runner = MakeTbbTaskRunner(executor.get());
  auto prepare = [&] {
    return ValueOrDie(svod::Prepare(
        module, "", [&](const UOp* sink) { return kernels->GetOrCompile(sink); }, options));
  };
  auto forget = [&] {
    kernels = ValueOrDie(KernelCache::Create({}));
    options.schedule_cache = std::make_shared<ScheduleCache>();
  };
  forget();
  prepare();
  for (auto _ : state) {
    if (!is_warm) {
      state.PauseTiming();
      forget();
      state.ResumeTiming();
    }
    ExecutionPlan plan = prepare();
    sum.schedule_ms += plan.report().schedule_ms;
    sum.compile_ms += plan.report().compile_ms;
    if (!is_warm) optimize_ms += kernels->stats().optimize_ms;
    sum.build_ms += plan.report().build_ms;
    sum.num_kernels = plan.report().num_kernels;
    sum.peak_bytes = plan.report().peak_bytes;
    sum.sum_bytes = plan.report().sum_bytes;
  }
  auto rounds = static_cast<double>(state.iterations());
  state.counters["schedule_ms"] = sum.schedule_ms / rounds;
  // Of all threads together, and part of the next.
  state.counters["optimize_ms"] = optimize_ms / rounds;
  state.counters["compile_ms"] = sum.compile_ms / rounds;
  state.counters["build_ms"] = sum.build_ms / rounds;
  state.counters["kernels"] = sum.num_kernels;
  state.counters["peak_bytes"] = static_cast<double>(sum.peak_bytes);
  state.counters["sum_bytes"] = static_cast<double>(sum.sum_bytes);
}

void ScheduleChain(benchmark::State& state) {
  TensorBuilder builder(std::make_shared<Context>());
  const UOp* x = builder.Param("x", Scalar::kF32, {1024});
  for (int i = 0; i < 10000; ++i) x = builder.Add(x, builder.Like(x, 1 + i % 3));
  Function graph = ValueOrDie(builder.Finish("chain", {x}));
  for (auto _ : state) benchmark::DoNotOptimize(ValueOrDie(ScheduleAndPlan(graph, {})));
}

}  // namespace

void RegisterPrepareRows(int threads) {
  auto add = [&](const std::string& name, int num_layers, bool is_warm) {
    Register(name, Prepare, num_layers, is_warm, threads)->UseRealTime();
  };
  add("prepare_block", 1, false);
  add("prepare_block_warm", 1, true);
  for (int layers : {1, 8, 64}) add(absl::StrCat("prepare_layers_", layers), layers, false);
  Register("schedule_chain10k", ScheduleChain)->UseRealTime();
}

}  // namespace svod::bench
