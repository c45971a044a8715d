// y = a * x + y in two ways, from text and from code, on memory of our own.
#include <array>
#include <cstdio>
#include <memory>

#include "svod/svod.h"

namespace {

constexpr int kSize = 4;

constexpr char kText[] = R"(
kernel @saxpy(%y: inout f32[4], %x: f32[4], %a: f32[1]) {
  %s = load %a[0]
  %i = range 4 loop
  %v = load %x[%i]
  %w = load %y[%i]
  %r = mulacc %s, %v, %w
  store %y[%i], %r
  end %i
}
)";

absl::StatusOr<svod::Module> FromText() {
  return svod::ParseModule(kText, "saxpy.uop", std::make_shared<svod::Context>());
}

// The same statements, one call each. A call that fails is reported by Finish.
absl::StatusOr<svod::Module> FromCode() {
  auto context = std::make_shared<svod::Context>();
  svod::KernelBuilder k(context, "saxpy");
  const svod::UOp* y = k.Param("y", svod::Scalar::kF32, {kSize}, svod::Access::kInOut);
  const svod::UOp* x = k.Param("x", svod::Scalar::kF32, {kSize}, svod::Access::kIn);
  const svod::UOp* a = k.Param("a", svod::Scalar::kF32, {1}, svod::Access::kIn);
  const svod::UOp* s = k.Load(a, context->Index(0));
  const svod::UOp* i = k.Range(kSize);
  const svod::UOp* v = k.Load(x, i);
  const svod::UOp* w = k.Load(y, i);
  k.Store(y, i, k.Make(svod::Op::kMulAcc, {s, v, w}));
  k.End(i);
  auto sink = k.Finish();
  if (!sink.ok()) return sink.status();
  return svod::Module{context, {svod::Function{*sink}}};
}

absl::StatusOr<std::shared_ptr<const svod::CompiledKernel>> Run(
    const char* title, const absl::StatusOr<svod::Module>& module) {
  if (!module.ok()) return module.status();
  auto cache = svod::KernelCache::Default();
  if (!cache.ok()) return cache.status();

  // Once: verify, optimise, compile (or find the kernel in the cache), and lay out the plan.
  svod::PrepareOptions options;
  options.allocate_parameters = false;  // we bring the memory
  auto plan = svod::Prepare(
      *module, "saxpy", [&](const svod::UOp* sink) { return (*cache)->GetOrCompile(sink); },
      options);
  if (!plan.ok()) return plan.status();

  // Zero copy: the plan works on these arrays.
  alignas(64) std::array<float, kSize> y = {1, 1, 1, 1};
  alignas(64) const std::array<float, kSize> x = {0, 1, 2, 3};
  alignas(64) const std::array<float, 1> a = {2};
  auto y_buffer = svod::Buffer::Wrap(y.data(), sizeof(y));
  auto x_buffer = svod::Buffer::WrapConst(x.data(), sizeof(x));
  auto a_buffer = svod::Buffer::WrapConst(a.data(), sizeof(a));
  for (const auto& [name, buffer] :
       {std::pair{"y", &y_buffer}, {"x", &x_buffer}, {"a", &a_buffer}}) {
    if (!buffer->ok()) return buffer->status();
    if (absl::Status bound = plan->Bind(name, **buffer); !bound.ok()) return bound;
  }

  // Many times.
  if (absl::Status done = svod::Execute(*plan); !done.ok()) return done;
  std::printf("%s: %g %g %g %g\n", title, y[0], y[1], y[2], y[3]);
  return plan->prepared_kernels().front()->kernel;
}

}  // namespace

int main() {
  auto from_text = Run("from text", FromText());
  auto from_code = Run("from code", FromCode());
  for (const auto& kernel : {from_text, from_code}) {
    if (!kernel.ok()) {
      std::fprintf(stderr, "%s\n", kernel.status().ToString().c_str());
      return 1;
    }
  }
  std::printf("the same kernel: %s\n", *from_text == *from_code ? "yes" : "no");
  return 0;
}
