// OperatorTest: builds operators on given tensors and reads what the interpreter makes of them.
// Included by tests only.
#ifndef SVOD_TESTS_UNIT_IR_OPERATOR_TESTER_H_
#define SVOD_TESTS_UNIT_IR_OPERATOR_TESTER_H_

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/evaluate_graph.h"
#include "ir/operators/operator_table.h"
#include "ir/tensor_builder.h"
#include "tests/unit/ir/tensor_values.h"
#include "tests/unit/operator_cases.h"

namespace svod {

class OperatorTest : public ::testing::Test {
 protected:
  using Nodes = std::vector<const UOp*>;
  using Numbers = std::vector<double>;
  using Ints = std::vector<int64_t>;
  using Attributes = std::vector<std::pair<std::string, AttributeValue>>;

  TensorBuilder b{std::make_shared<Context>()};
  std::vector<TensorValue> params;
  std::vector<std::pair<std::string, int64_t>> variables;

  // Parameters with their values; of a symbolic shape, with that which it has in the run.
  const UOp* Given(const TensorValue& value) {
    params.push_back(value);
    return b.Param("", value.dtype, b.ConstShape(value.shape));
  }
  const UOp* Given(DType dtype, const Ints& shape, const Numbers& numbers) {
    return Given(TensorOf(dtype, shape, numbers));
  }
  const UOp* Given(DType dtype, ShapeSpan shape, const Ints& in_run, const Numbers& numbers) {
    params.push_back(TensorOf(dtype, in_run, numbers));
    return b.Param("", dtype, shape);
  }
  const UOp* Row(const Numbers& numbers, DType dtype = Scalar::kF32) {
    return Given(dtype, {static_cast<int64_t>(numbers.size())}, numbers);
  }

  // All results, or the first, of an operator of the table.
  Nodes CallAll(const std::string& name, const Nodes& operands, const Attributes& attributes = {}) {
    const OperatorInfo* info = FindOperator(name);
    EXPECT_NE(info, nullptr) << name;
    return info == nullptr ? Nodes() : BuildOperator(b, *info, OperatorCall(operands, attributes));
  }
  const UOp* Call(const std::string& name, const Nodes& operands,
                  const Attributes& attributes = {}) {
    Nodes results = CallAll(name, operands, attributes);
    return results.empty() ? nullptr : results[0];
  }

  std::string ShapeOf(const UOp* y) {
    EXPECT_TRUE(b.ok()) << b.status();
    return y == nullptr ? "null" : ShapeToString(y->dtype(), b.ShapeOf(y));
  }

  TensorValue ValueOf(const UOp* y) {
    absl::StatusOr<Function> graph = b.Finish("g", {y});
    EXPECT_TRUE(graph.ok()) << graph.status();
    if (!graph.ok()) return TensorValue();
    EvaluateGraphOptions options;
    options.variables = variables;
    absl::StatusOr<std::vector<TensorValue>> values = EvaluateGraph(*graph, params, options);
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? (*values)[0] : TensorValue();
  }
  Numbers NumbersIn(const UOp* y) { return NumbersOf(ValueOf(y)); }

  // Numbers within `tolerance` of the expected, times their size; NaN, infinities and the sign of
  // zeros exactly.
  void Expect(const UOp* y, const Ints& shape, const Numbers& expected, double tolerance = 0) {
    TensorValue value = ValueOf(y);
    EXPECT_EQ(value.shape, shape);
    ExpectNumbers(NumbersOf(value), expected, tolerance);
  }
  static void ExpectNumbers(const Numbers& got, const Numbers& expected, double tolerance) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(expected[i])) {
        EXPECT_TRUE(std::isnan(got[i])) << "element " << i << " is " << got[i];
      } else if (std::isinf(expected[i]) || tolerance == 0) {
        EXPECT_EQ(got[i], expected[i]) << "element " << i;
        EXPECT_EQ(std::signbit(got[i]), std::signbit(expected[i])) << "element " << i;
      } else {
        EXPECT_NEAR(got[i], expected[i], tolerance * std::max(1.0, std::fabs(expected[i])))
            << "element " << i;
      }
    }
  }

  // That the last calls failed with this message; the builder goes on.
  void ExpectFailure(const std::string& message) {
    absl::Status status = b.Take();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), message);
  }
};

// Numbers that look random but are the same everywhere: multiples of 1/8 in [-4, 4).
inline std::vector<double> Noise(int64_t count, uint32_t seed) {
  std::vector<double> numbers;
  uint32_t state = seed * 2654435761u + 12345;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    numbers.push_back(static_cast<double>(state >> 26) / 8 - 4);
  }
  return numbers;
}

}  // namespace svod

#endif  // SVOD_TESTS_UNIT_IR_OPERATOR_TESTER_H_
