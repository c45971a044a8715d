// What the rows of svod-bench are given: tensors of numbers that every harness can make again.
// Included by the bench's sources only. Must not know graphs or peers.
#ifndef SVOD_TOOLS_BENCH_INPUTS_H_
#define SVOD_TOOLS_BENCH_INPUTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "ir/dtype.h"
#include "plan/buffer.h"

namespace svod::bench {

// Element i of sequence `seed`, in [-1, 1): a 32-bit hash of the index.
float HashValue(int64_t i, uint32_t seed);

// How a tensor's elements are chosen.
struct Filling {
  uint32_t seed = 0;  // of HashValue, when stream_begin is -1

  // Weights of a model: numbers [stream_begin, stream_begin + elements) of NumPy's
  // RandomState(0).uniform(-1, 1), times `scale` in f64, rounded to f32; then base + factor * that.
  int64_t stream_begin = -1;
  double scale = 1;
  float base = 0, factor = 1;
};

struct Operand {
  std::string name;
  DType dtype = Scalar::kF32;
  std::vector<int64_t> dims;
  Filling filling = {};

  int64_t num_elements() const;
  int64_t size_bytes() const { return num_elements() * dtype.size_bytes(); }
};

// A buffer for each operand, 64-byte aligned. The values are made as f32; f64 holds them exactly,
// bf16 and f16 round them to nearest, i8 is round(127 * value).
std::vector<Buffer> MakeInputs(absl::Span<const Operand> operands);

// Every num_elements/16-th element of a tensor, at most 16, as f64; integers converted.
std::vector<double> Samples(const void* data, DType dtype, int64_t num_elements);

}  // namespace svod::bench

#endif  // SVOD_TOOLS_BENCH_INPUTS_H_
