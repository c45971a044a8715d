// OperatorCases: every operator of the table on small operands, with the expected results.
// Included by tests of interpreters, schedules and compiled code alike.
#ifndef SVOD_TESTS_UNIT_OPERATOR_CASES_H_
#define SVOD_TESTS_UNIT_OPERATOR_CASES_H_

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ir/operators/operator_table.h"
#include "tests/unit/ir/tensor_values.h"

namespace svod {

struct OperatorCase {
  const char* name;
  std::vector<TensorValue> operands;
  std::vector<std::pair<std::string, AttributeValue>> attributes;
  std::vector<TensorValue> results;
  double tolerance;  // of each number, times its size if that is more than 1; 0: the bits
};
using OperatorCases = std::vector<OperatorCase>;

void AddElementwiseCases(OperatorCases* cases);
void AddReductionCases(OperatorCases* cases);
void AddShapeCases(OperatorCases* cases);
void AddNetworkCases(OperatorCases* cases);

inline OperatorCases AllOperatorCases() {
  OperatorCases cases;
  AddElementwiseCases(&cases);
  AddReductionCases(&cases);
  AddShapeCases(&cases);
  AddNetworkCases(&cases);
  return cases;
}

// --- What cases are written with -------------------------------------------------------------

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using Ints = std::vector<int64_t>;
inline int64_t Int(int64_t value) { return value; }
inline std::string Word(const char* text) { return text; }

inline TensorValue Bool(const Ints& shape, const std::vector<double>& numbers) {
  return TensorOf(Scalar::kBool, shape, numbers);
}
inline TensorValue I8(const Ints& shape, const std::vector<double>& numbers) {
  return TensorOf(Scalar::kI8, shape, numbers);
}
inline TensorValue I16(const Ints& shape, const std::vector<double>& numbers) {
  return TensorOf(Scalar::kI16, shape, numbers);
}
inline TensorValue I32(const Ints& shape, const std::vector<double>& numbers) {
  return TensorOf(Scalar::kI32, shape, numbers);
}
inline TensorValue I64(const Ints& shape, const std::vector<double>& numbers) {
  return TensorOf(Scalar::kI64, shape, numbers);
}
inline TensorValue U8(const Ints& shape, const std::vector<double>& numbers) {
  return TensorOf(Scalar::kU8, shape, numbers);
}
inline TensorValue U32(const Ints& shape, const std::vector<double>& numbers) {
  return TensorOf(Scalar::kU32, shape, numbers);
}
inline TensorValue F32(const Ints& shape, const std::vector<double>& numbers) {
  return TensorOf(Scalar::kF32, shape, numbers);
}
inline TensorValue F64(const Ints& shape, const std::vector<double>& numbers) {
  return TensorOf(Scalar::kF64, shape, numbers);
}

}  // namespace svod

#endif  // SVOD_TESTS_UNIT_OPERATOR_CASES_H_
