// What the tests of the kernel cache share: small kernels, and a compiler that lowers nothing.
#ifndef SVOD_TESTS_UNIT_JIT_FAKE_COMPILER_H_
#define SVOD_TESTS_UNIT_JIT_FAKE_COMPILER_H_

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "jit/kernel_cache.h"
#include "tests/unit/jit/test_objects.h"

namespace svod {

// kernel @name: y[0] = value
inline const UOp* Constant(Context& context, absl::string_view name, float value) {
  const UOp* y = *context.Make(Op::kParam, Scalar::kF32, {context.Index(4)},
                               ParamArgument{0, Access::kOut, "y"});
  const UOp* index = *context.Make(Op::kIndex, {y, context.Index(0)});
  const UOp* store =
      *context.Make(Op::kStore, {index, context.Float(Scalar::kF32, value)}, AlignmentArgument{});
  return *context.Make(Op::kSink, {store}, FunctionArgument{true, name, {}});
}

// Counts compilations and makes kernels that give a number, without lowering anything.
struct FakeCompiler {
  std::atomic<int> compiles = 0;
  std::atomic<int> optimisations = 0;
  std::atomic<bool> fails = false;
  std::atomic<int> delay_ms = 0;
  int padding_bytes = 0;

  KernelCacheOptions Options() {
    KernelCacheOptions options;
    options.optimize = [this](const UOp* sink, Context&,
                              const CompileOptions&) -> absl::StatusOr<const UOp*> {
      ++optimisations;
      return sink;
    };
    options.compile = [this](const UOp* sink, const CompileOptions&) -> absl::StatusOr<ObjectCode> {
      int number = ++compiles;
      std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
      if (fails) return absl::UnimplementedError("fake: not today");
      ObjectCode object;
      object.entry = EntrySymbol(sink);
      object.bytes = ObjectThatReturns(object.entry, number, padding_bytes);
      object.scratch_bytes = 128;
      return object;
    };
    return options;
  }
};

inline std::shared_ptr<KernelCache> Create(const KernelCacheOptions& options) {
  auto cache = KernelCache::Create(options);
  EXPECT_TRUE(cache.ok()) << cache.status();
  return *cache;
}

inline int Call(const KernelPtr& kernel) { return kernel->function(nullptr, nullptr, 0, nullptr); }

}  // namespace svod

#endif  // SVOD_TESTS_UNIT_JIT_FAKE_COMPILER_H_
