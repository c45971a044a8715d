#include "tools/bench/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "ir/float_formats.h"
#include "tools/bench/check.h"

namespace svod::bench {
namespace {

// NumPy's RandomState(0).random_sample() from number `next` on. Source: NumPy's legacy seeding and
// 53-bit doubles, which are those of the reference code of Matsumoto and Nishimura 1998.
class NumpyStream {
 public:
  void Seek(int64_t position) {
    if (position < next_) {
      generator_.seed(0);
      next_ = 0;
    }
    generator_.discard(static_cast<uint64_t>(position - next_) * 2);
    next_ = position;
  }
  double Next() {
    ++next_;
    double high = static_cast<double>(generator_() >> 5);
    double low = static_cast<double>(generator_() >> 6);
    return (high * 0x1p26 + low) / 0x1p53;
  }

 private:
  std::mt19937 generator_{0};
  int64_t next_ = 0;
};

// Stores `value` as element i of `dtype`.
void Store(void* data, DType dtype, int64_t i, float value) {
  auto put = [&](auto element) {
    std::memcpy(static_cast<char*>(data) + i * dtype.size_bytes(), &element, sizeof(element));
  };
  if (dtype.scalar == Scalar::kF64) {
    put(static_cast<double>(value));
  } else if (dtype.scalar == Scalar::kBF16) {
    put(F32ToBF16(value));
  } else if (dtype.scalar == Scalar::kF16) {
    put(F32ToF16(value));
  } else if (dtype.scalar == Scalar::kI8) {
    put(static_cast<int8_t>(std::lround(127 * value)));
  } else {
    put(value);
  }
}

double LoadAsDouble(const void* data, DType dtype, int64_t i) {
  auto get = [&](auto element) {
    std::memcpy(&element, static_cast<const char*>(data) + i * dtype.size_bytes(), sizeof(element));
    return element;
  };
  if (dtype.scalar == Scalar::kF64) return get(double{});
  if (dtype.scalar == Scalar::kBF16) return BF16ToF32(get(uint16_t{}));
  if (dtype.scalar == Scalar::kF16) return F16ToF32(get(uint16_t{}));
  if (dtype.scalar == Scalar::kI64) return static_cast<double>(get(int64_t{}));
  if (dtype.scalar == Scalar::kI32) return get(int32_t{});
  if (dtype.scalar == Scalar::kI8) return get(int8_t{});
  return get(float{});
}

}  // namespace

float HashValue(int64_t i, uint32_t seed) {
  uint32_t h = static_cast<uint32_t>(i) * 2654435761u + (seed * 40503u + 12345u);
  h ^= h >> 15;
  h *= 2246822519u;
  h ^= h >> 13;
  return static_cast<float>(h / 2147483648.0 - 1.0);
}

int64_t Operand::num_elements() const {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

std::vector<Buffer> MakeInputs(absl::Span<const Operand> operands) {
  std::vector<Buffer> buffers;
  NumpyStream stream;
  for (const Operand& operand : operands) {
    Buffer buffer = ValueOrDie(Buffer::Create(operand.size_bytes()));
    void* data = ValueOrDie(buffer.Write()).data();
    const Filling& filling = operand.filling;
    if (filling.stream_begin >= 0) stream.Seek(filling.stream_begin);
    for (int64_t i = 0; i < operand.num_elements(); ++i) {
      float value = 0;
      if (filling.stream_begin >= 0) {
        value = static_cast<float>((-1 + 2 * stream.Next()) * filling.scale);
        value = filling.base + filling.factor * value;
      } else {
        value = HashValue(i, filling.seed);
      }
      Store(data, operand.dtype, i, value);
    }
    buffers.push_back(buffer);
  }
  return buffers;
}

std::vector<double> Samples(const void* data, DType dtype, int64_t num_elements) {
  std::vector<double> samples;
  const int64_t count = std::min<int64_t>(16, num_elements);
  for (int64_t i = 0; i < count; ++i) {
    samples.push_back(LoadAsDouble(data, dtype, i * num_elements / count));
  }
  return samples;
}

}  // namespace svod::bench
