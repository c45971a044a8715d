// What compiling costs: a small kernel, a lookup, many kernels on several threads, the disk tier,
// and what many kernels take in memory.
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "executor/executor.h"
#include "ir/kernel_builder.h"
#include "ir/pipeline.h"
#include "jit/kernel_cache.h"
#include "tools/bench/rows.h"

namespace svod::bench {
namespace {

constexpr int64_t kElements = 4096;

// y = max(x * a + b, 0) on vectors of 16 floats; `seed` makes each kernel a different one.
const UOp* ElementwiseKernel(std::shared_ptr<Context> context, int seed, int num_ops = 3) {
  KernelBuilder builder(context, "elementwise");
  DType type(Scalar::kF32, 16);
  const UOp* y = builder.Param("y", Scalar::kF32, {kElements}, Access::kOut);
  const UOp* x = builder.Param("x", Scalar::kF32, {kElements}, Access::kIn);
  const UOp* i = builder.Range(kElements / 16);
  const UOp* at = builder.Make(Op::kMul, {i, context->Index(16)});
  KernelBuilder::AccessOptions options;
  options.lanes = 16;
  const UOp* value = builder.Load(x, {at}, options);
  for (int k = 0; k < num_ops; ++k) {
    const UOp* constant = context->Float(type, seed + k * 0.5 + 1);
    Op op = k % 3 == 0 ? Op::kMul : k % 3 == 1 ? Op::kAdd : Op::kMax;
    value = builder.Make(op, {value, constant});
  }
  builder.Store(y, {at}, value, {});
  builder.End(i);
  return ValueOrDie(builder.Finish());
}

KernelCacheOptions NoDisk() { return {}; }

void CompileOne(benchmark::State& state) {
  std::shared_ptr<KernelCache> cache = ValueOrDie(KernelCache::Create(NoDisk()));
  int seed = 0;
  auto compile = [&] {
    auto context = std::make_shared<Context>();
    return ValueOrDie(cache->GetOrCompile(ElementwiseKernel(context, seed++)));
  };
  for (int i = 0; i < 3; ++i) compile();
  for (auto _ : state) benchmark::DoNotOptimize(compile());
  KernelCacheStats stats = cache->stats();
  state.counters["code_bytes"] =
      static_cast<double>(stats.code_bytes) / static_cast<double>(stats.kernels);
}

void Lookup(benchmark::State& state) {
  std::shared_ptr<KernelCache> cache = ValueOrDie(KernelCache::Create(NoDisk()));
  std::vector<KernelKey> keys;
  CompileOptions options;
  options.target = ValueOrDie(HostTarget());
  auto context = std::make_shared<Context>();
  for (int seed = 0; seed < 64; ++seed) {
    const UOp* sink = ElementwiseKernel(context, seed);
    ValueOrDie(cache->GetOrCompile(sink, options));
    keys.push_back(MakeSourceKey(sink, options));
  }
  size_t at = 0;
  for (auto _ : state) {
    KernelPtr kernel = cache->Find(keys[at++ % keys.size()]);
    if (kernel == nullptr) state.SkipWithError("a kernel is missing");
    benchmark::DoNotOptimize(kernel);
  }
}

// 32 kernels of 3 to 34 operations, none compiled before.
void CompileMany(benchmark::State& state, int threads) {
  std::unique_ptr<Executor> executor = ValueOrDie(Executor::Create(threads));
  TaskRunner runner = MakeTbbTaskRunner(executor.get());
  std::shared_ptr<KernelCache> cache = ValueOrDie(KernelCache::Create(NoDisk()));
  int seed = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto context = std::make_shared<Context>();
    std::vector<const UOp*> sinks;
    for (int k = 0; k < 32; ++k) sinks.push_back(ElementwiseKernel(context, seed++, 3 + k));
    state.ResumeTiming();
    for (auto& kernel : cache->CompileAll(sinks, {}, runner)) CheckOk(kernel.status());
  }
  state.counters["ops"] = 32;
}

// A process that starts with a full disk tier: a new cache each time, over one directory. Kernels
// as written are optimised first, final ones are looked up as they are.
void DiskReload(benchmark::State& state, bool final) {
  std::string directory =
      (std::filesystem::temp_directory_path() / absl::StrCat("svod-bench-", getpid())).string();
  KernelCacheOptions options;
  options.disk_directory = directory;
  constexpr int kKernels = 200;
  auto context = std::make_shared<Context>();
  std::vector<const UOp*> sinks;
  for (int seed = 0; seed < kKernels; ++seed) {
    const UOp* sink = ElementwiseKernel(context, seed);
    sinks.push_back(final ? ValueOrDie(OptimizeKernel(sink, *context)) : sink);
  }
  auto get_all = [&](KernelCache& cache) {
    for (const UOp* sink : sinks) {
      ValueOrDie(final ? cache.GetOrCompileFinal(sink) : cache.GetOrCompile(sink));
    }
  };
  get_all(*ValueOrDie(KernelCache::Create(options)));
  for (auto _ : state) {
    state.PauseTiming();
    std::shared_ptr<KernelCache> cache = ValueOrDie(KernelCache::Create(options));
    state.ResumeTiming();
    get_all(*cache);
    state.PauseTiming();
    if (cache->stats().disk.hits != kKernels) state.SkipWithError("the disk tier missed");
    cache.reset();
    state.ResumeTiming();
  }
  state.counters["ops"] = kKernels;
  std::filesystem::remove_all(directory);
}

// 10,000 kernels through a cache that has room for about 50.
void EvictionGrowth(benchmark::State& state) {
  constexpr int kCycles = 10'000, kWarmUp = 1'000;
  KernelCacheOptions options;
  options.capacity_bytes = 32 << 10;
  std::shared_ptr<KernelCache> cache = ValueOrDie(KernelCache::Create(options));
  CompileOptions compile;
  compile.code_gen_level = 0;
  for (auto _ : state) {
    int64_t before = 0;
    for (int seed = 0; seed < kWarmUp + kCycles; ++seed) {
      if (seed == kWarmUp) before = ResidentBytes();
      auto context = std::make_shared<Context>();
      ValueOrDie(cache->GetOrCompile(ElementwiseKernel(context, seed), compile));
    }
    state.counters["rss_growth_bytes"] = static_cast<double>(ResidentBytes() - before);
    state.counters["evictions"] = static_cast<double>(cache->stats().evictions);
  }
  state.counters["ops"] = kWarmUp + kCycles;
}

// 50,000 kernels, all held.
void LiveKernels(benchmark::State& state) {
  constexpr int kKernels = 50'000;
  std::shared_ptr<KernelCache> cache = ValueOrDie(KernelCache::Create(NoDisk()));
  CompileOptions compile;
  compile.code_gen_level = 0;
  for (auto _ : state) {
    int64_t bytes = ResidentBytes(), mappings = NumMappings();
    std::vector<KernelPtr> kernels;
    for (int seed = 0; seed < kKernels; ++seed) {
      auto context = std::make_shared<Context>();
      kernels.push_back(ValueOrDie(cache->GetOrCompile(ElementwiseKernel(context, seed), compile)));
    }
    state.counters["rss_bytes_each"] = static_cast<double>(ResidentBytes() - bytes) / kKernels;
    state.counters["new_mappings"] = static_cast<double>(NumMappings() - mappings);
    state.counters["code_bytes_each"] = static_cast<double>(cache->stats().code_bytes) / kKernels;
  }
  state.counters["ops"] = kKernels;
}

}  // namespace

void RegisterCompileRows(int threads) {
  Register("compile_small/svod", CompileOne)->Repetitions(5)->MinTime(0.2);
  Register("lookup/svod", Lookup)->Repetitions(5)->MinTime(0.1);
  Register("compile32/svod", [=](benchmark::State& s) { CompileMany(s, threads); })
      ->Repetitions(5)
      ->MinTime(0.2)
      ->UseRealTime();
  for (bool final : {false, true}) {
    Register(final ? "disk_reload_final/svod" : "disk_reload/svod",
             [=](benchmark::State& s) { DiskReload(s, final); })
        ->Repetitions(5)
        ->MinTime(0.1);
  }
  Register("evict10k/svod", EvictionGrowth)->Iterations(1)->UseRealTime();
  Register("live50k/svod", LiveKernels)->Iterations(1)->UseRealTime();
}

}  // namespace svod::bench
