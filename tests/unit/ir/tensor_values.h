// Tensor values for tests: made from numbers, read as numbers, filled with seeded noise.
// Included by tests only.
#ifndef SVOD_TESTS_UNIT_IR_TENSOR_VALUES_H_
#define SVOD_TESTS_UNIT_IR_TENSOR_VALUES_H_

#include <cmath>
#include <utility>
#include <vector>

#include "ir/evaluate.h"
#include "ir/evaluate_graph.h"
#include "ir/uop.h"

namespace svod {

// Zeros.
inline TensorValue ZeroTensor(DType dtype, std::vector<int64_t> shape) {
  TensorValue value{dtype, std::move(shape), {}};
  value.bytes.resize(static_cast<size_t>(value.num_elements() * dtype.size_bytes()));
  return value;
}

// The numbers, rounded or truncated to the dtype as CAST does, in row-major order.
inline TensorValue TensorOf(DType dtype, std::vector<int64_t> shape,
                            const std::vector<double>& numbers) {
  TensorValue value = ZeroTensor(dtype, std::move(shape));
  for (size_t i = 0; i < numbers.size(); ++i) {
    uint64_t bits = DoubleToBits(Scalar::kF64, numbers[i]);
    value.SetBitsAt(static_cast<int64_t>(i),
                    EvaluateScalar(Op::kCast, dtype, Scalar::kF64, {&bits, 1}));
  }
  return value;
}

// Element i as a number; u64 and i64 beyond 2^53 are rounded.
inline double NumberAt(const TensorValue& value, int64_t i) {
  uint64_t bits = value.BitsAt(i);
  if (value.dtype.is_float()) return BitsToDouble(value.dtype.scalar, bits);
  bits = EvaluateScalar(Op::kCast, Scalar::kF64, value.dtype, {&bits, 1});
  return BitsToDouble(Scalar::kF64, bits);
}

inline std::vector<double> NumbersOf(const TensorValue& value) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < value.num_elements(); ++i) numbers.push_back(NumberAt(value, i));
  return numbers;
}

// Equal bits; any NaN equals any other.
inline bool SameBits(const TensorValue& a, const TensorValue& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    uint64_t x = a.BitsAt(i), y = b.BitsAt(i);
    if (x == y) continue;
    bool both_nan = a.dtype.is_float() && std::isnan(BitsToDouble(a.dtype.scalar, x)) &&
                    std::isnan(BitsToDouble(a.dtype.scalar, y));
    if (!both_nan) return false;
  }
  return true;
}

}  // namespace svod

#endif  // SVOD_TESTS_UNIT_IR_TENSOR_VALUES_H_
