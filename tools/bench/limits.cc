#include "tools/bench/limits.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "ir/kernel_builder.h"
#include "jit/kernel_cache.h"
#include "jit/target.h"
#include "plan/buffer.h"
#include "tools/bench/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace svod::bench {
namespace {

// --- Fused multiply-adds: a kernel of Svod's, whose loop touches registers only.

constexpr int64_t kRounds = 100'000;

// y[k] = sum over rounds of x[k] * w[k], k vectors side by side, enough to hide the latency.
KernelPtr MultiplyAddKernel(Scalar scalar, int lanes, int num_sums) {
  auto context = std::make_shared<Context>();
  KernelBuilder builder(context, "limit");
  const int64_t size = int64_t{lanes} * num_sums;
  const UOp* y = builder.Param("y", scalar, {size}, Access::kOut);
  const UOp* x = builder.Param("x", scalar, {size}, Access::kIn);
  const UOp* w = builder.Param("w", scalar, {int64_t{lanes}}, Access::kIn);
  KernelBuilder::AccessOptions vector;
  vector.lanes = lanes;
  std::vector<const UOp*> factors;
  for (int k = 0; k < num_sums; ++k) {
    factors.push_back(builder.Load(x, {context->Index(k * lanes)}, vector));
  }
  const UOp* factor = builder.Load(w, {context->Index(0)}, vector);
  const UOp* round = builder.Range(kRounds, AxisKind::kReduce);
  std::vector<const UOp*> products, sums;
  products.reserve(factors.size());
  for (const UOp* each : factors) products.push_back(builder.Make(Op::kMul, {each, factor}));
  for (const UOp* product : products) {
    sums.push_back(builder.Reduce(ReduceKind::kAdd, product, {round}));
  }
  for (int k = 0; k < num_sums; ++k) {
    builder.Store(y, {context->Index(k * lanes)}, sums[static_cast<size_t>(k)], {});
  }
  const absl::string_view opts[] = {"mulacc"};
  const UOp* sink = ValueOrDie(builder.Finish({}, opts));
  return ValueOrDie(ValueOrDie(KernelCache::Default())->GetOrCompile(sink));
}

#if defined(__x86_64__)

using DotLoop = void (*)(int64_t rounds);
constexpr int kDotSums = 12;

__attribute__((target("avx512f,avx512vnni"))) void DotInt8(int64_t rounds) {
  __m512i sums[kDotSums], x = _mm512_set1_epi8(1), y = _mm512_set1_epi8(2);
#pragma GCC unroll 12
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (__m512i& sum : sums) {
      sum = _mm512_dpbusd_epi32(sum, x, y);
      asm volatile("" : "+v"(sum));  // neither the same as another sum, nor left out
    }
  }
}

__attribute__((target("avx512f,avx512bf16"))) void DotBf16(int64_t rounds) {
  __m512 sums[kDotSums];
  __m512bh x, y;
  std::memset(&x, 0x3f, sizeof(x));
  std::memset(&y, 0x3f, sizeof(y));
#pragma GCC unroll 12
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (__m512& sum : sums) {
      sum = _mm512_dpbf16_ps(sum, x, y);
      asm volatile("" : "+v"(sum));  // neither the same as another sum, nor left out
    }
  }
}

#endif

// --- Streams. A part of each array is one thread's.

struct Streams {
  void (*read)(const float* a, int64_t n, float* sum);
  void (*copy)(float* y, const float* a, int64_t n);
  void (*copy_around)(float* y, const float* a, int64_t n);
  void (*triad)(float* y, const float* a, const float* b, int64_t n);
  void (*triad_around)(float* y, const float* a, const float* b, int64_t n);
};

#if defined(__x86_64__)

// The same loops for 64, 32 and 16 bytes at a time. n is a multiple of 128.
#define SVOD_STREAMS(Suffix, features, Vector, width, prefix)                                      \
  __attribute__((target(features))) void Read##Suffix(const float* a, int64_t n, float* sum) {     \
    Vector s[8];                                                                                   \
    for (Vector& v : s) v = prefix##_setzero_ps();                                                 \
    for (int64_t i = 0; i < n; i += 8 * (width)) {                                                 \
      _Pragma("GCC unroll 8") for (int k = 0; k < 8; ++k) {                                        \
        s[k] = prefix##_add_ps(s[k], prefix##_load_ps(a + i + (width) * k));                       \
      }                                                                                            \
    }                                                                                              \
    for (int k = 1; k < 8; ++k) s[0] = prefix##_add_ps(s[0], s[k]);                                \
    prefix##_store_ps(sum, s[0]);                                                                  \
  }                                                                                                \
  __attribute__((target(features))) void Copy##Suffix(float* y, const float* a, int64_t n) {       \
    for (int64_t i = 0; i < n; i += width) prefix##_store_ps(y + i, prefix##_load_ps(a + i));      \
  }                                                                                                \
  __attribute__((target(features))) void CopyAround##Suffix(float* y, const float* a, int64_t n) { \
    for (int64_t i = 0; i < n; i += width) prefix##_stream_ps(y + i, prefix##_load_ps(a + i));     \
    _mm_sfence();                                                                                  \
  }                                                                                                \
  __attribute__((target(features))) void Triad##Suffix(float* y, const float* a, const float* b,   \
                                                       int64_t n) {                                \
    for (int64_t i = 0; i < n; i += width) {                                                       \
      prefix##_store_ps(y + i, prefix##_add_ps(prefix##_load_ps(a + i), prefix##_load_ps(b + i))); \
    }                                                                                              \
  }                                                                                                \
  __attribute__((target(features))) void TriadAround##Suffix(float* y, const float* a,             \
                                                             const float* b, int64_t n) {          \
    for (int64_t i = 0; i < n; i += width) {                                                       \
      prefix##_stream_ps(y + i,                                                                    \
                         prefix##_add_ps(prefix##_load_ps(a + i), prefix##_load_ps(b + i)));       \
    }                                                                                              \
    _mm_sfence();                                                                                  \
  }                                                                                                \
  constexpr Streams kStreams##Suffix = {Read##Suffix, Copy##Suffix, CopyAround##Suffix,            \
                                        Triad##Suffix, TriadAround##Suffix};

SVOD_STREAMS(512, "avx512f", __m512, 16, _mm512)
SVOD_STREAMS(256, "avx", __m256, 8, _mm256)
SVOD_STREAMS(128, "sse2", __m128, 4, _mm)
#undef SVOD_STREAMS

const Streams& HostStreams() {
  if (__builtin_cpu_supports("avx512f")) return kStreams512;
  if (__builtin_cpu_supports("avx")) return kStreams256;
  return kStreams128;
}

#else

void Read(const float* a, int64_t n, float* sum) {
  float s[16] = {};
  for (int64_t i = 0; i < n; i += 16) {
    for (int k = 0; k < 16; ++k) s[k] += a[i + k];
  }
  std::memcpy(sum, s, sizeof(s));
}
void Copy(float* y, const float* a, int64_t n) { std::copy_n(a, n, y); }
void Triad(float* y, const float* a, const float* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}
const Streams& HostStreams() {
  static constexpr Streams kStreams = {Read, Copy, Copy, Triad, Triad};
  return kStreams;
}

#endif

// In the same kind of memory as Svod's own.
struct Array {
  Buffer buffer;
  float* get() const { return reinterpret_cast<float*>(buffer.data()); }
};

Array MakeArray(int64_t n) {
  Array array{ValueOrDie(Buffer::Create(n * int64_t{sizeof(float)}))};
  CheckOk(array.buffer.Allocate());
  std::fill_n(array.get(), n, 1.0f);
  return array;
}

}  // namespace

std::optional<Limit> ArithmeticLimit(DType dtype, int threads, const TaskRunner& runner) {
  const Target target = ValueOrDie(HostTarget());
#if defined(__x86_64__)
  DotLoop loop = nullptr;
  int lanes = 0;
  if (dtype.scalar == Scalar::kI8 && HasFeature(target, "avx512vnni")) {
    loop = DotInt8;
    lanes = 64;
  } else if (dtype.scalar == Scalar::kBF16 && HasFeature(target, "avx512bf16")) {
    loop = DotBf16;
    lanes = 32;
  }
  if (loop != nullptr) {
    return Limit{"dot", 2.0 * lanes * kDotSums * kRounds * threads,
                 [=] { runner(threads, [loop](int) { loop(kRounds); }); }};
  }
#endif
  const Scalar scalar = dtype.scalar == Scalar::kF64 ? Scalar::kF64 : Scalar::kF32;
  if (!dtype.is_float()) return std::nullopt;
  const int num_sums = 12;
  const int vector = target.vector_bytes / static_cast<int>(DType(scalar).size_bytes());
  KernelPtr kernel = MultiplyAddKernel(scalar, vector, num_sums);
  auto memory = std::make_shared<std::vector<Array>>();
  for (int i = 0; i < threads * 3; ++i)
    memory->push_back(MakeArray(target.vector_bytes * num_sums));
  return Limit{"fma", 2.0 * vector * num_sums * kRounds * threads, [=] {
                 runner(threads, [&](int thread) {
                   const size_t at = static_cast<size_t>(thread) * 3;
                   void* buffers[] = {(*memory)[at].get(), (*memory)[at + 1].get(),
                                      (*memory)[at + 2].get()};
                   kernel->function(buffers, nullptr, thread, nullptr);
                 });
               }};
}

std::vector<Limit> MemoryLimits(double read_bytes, double written_bytes, int threads,
                                const TaskRunner& runner) {
  const double footprint = read_bytes + written_bytes;
  const int num_arrays = written_bytes < 0.1 * footprint   ? 1
                         : written_bytes > 0.4 * footprint ? 2
                                                           : 3;
  const int64_t block = int64_t{128} * threads;
  const int64_t n =
      std::max<int64_t>(1, static_cast<int64_t>(footprint / 4 / num_arrays) / block) * block;
  const int64_t part = n / threads;
  std::vector<Array> arrays;
  for (int i = 0; i < num_arrays; ++i) arrays.push_back(MakeArray(n));
  const Streams& streams = HostStreams();
  const double bytes = 4.0 * static_cast<double>(n) * num_arrays;
  auto add = [&](std::vector<Limit>* limits, const char* name, auto body) {
    limits->push_back(
        {name, bytes, [=] { runner(threads, [&](int thread) { body(thread * part, thread); }); }});
  };
  std::vector<Limit> limits;
  if (num_arrays == 1) {
    Array sums = MakeArray(int64_t{16} * threads);
    add(&limits, "read", [=](int64_t at, int thread) {
      streams.read(arrays[0].get() + at, part, sums.get() + 16 * thread);
    });
  }
  for (bool around : {false, true}) {
    if (num_arrays == 2) {
      auto copy = around ? streams.copy_around : streams.copy;
      add(&limits, around ? "copy_around" : "copy",
          [=](int64_t at, int) { copy(arrays[0].get() + at, arrays[1].get() + at, part); });
    } else if (num_arrays == 3) {
      auto triad = around ? streams.triad_around : streams.triad;
      add(&limits, around ? "triad_around" : "triad", [=](int64_t at, int) {
        triad(arrays[0].get() + at, arrays[1].get() + at, arrays[2].get() + at, part);
      });
    }
  }
  return limits;
}

}  // namespace svod::bench
