// Scheduling: every operator's cases, cut into kernels.
#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "ir/evaluate_graph.h"
#include "ir/operators/operator_table.h"
#include "ir/tensor_builder.h"
#include "ir/verify.h"
#include "plan/schedule.h"
#include "tests/unit/operator_cases.h"

namespace svod {
namespace {

TEST(OperatorsScheduleTest, KernelsOfEveryOperatorGiveItsResults) {
  for (const OperatorCase& one : AllOperatorCases()) {
    SCOPED_TRACE(one.name);
    TensorBuilder b(std::make_shared<Context>());
    std::vector<const UOp*> operands;
    for (const TensorValue& operand : one.operands) {
      operands.push_back(b.Param("", operand.dtype, b.ConstShape(operand.shape)));
    }
    std::vector<const UOp*> results =
        BuildOperator(b, *FindOperator(one.name), OperatorCall(operands, one.attributes));
    absl::StatusOr<Function> graph = b.Finish("g", results);
    ASSERT_TRUE(graph.ok()) << graph.status();
    absl::StatusOr<Schedule> schedule = ScheduleGraph(*graph);
    if (!schedule.ok()) {
      ADD_FAILURE() << schedule.status();
      continue;
    }
    for (const Function& function : schedule->module.functions) {
      EXPECT_TRUE(Verify(function).ok()) << Verify(function);
    }
    std::vector<TensorValue> params = one.operands;
    absl::StatusOr<std::vector<TensorValue>> got =
        EvaluateGraph(schedule->module.functions.back(), params);
    if (!got.ok() || got->size() != one.results.size()) {
      ADD_FAILURE() << got.status();
      continue;
    }
    for (size_t i = 0; i < got->size(); ++i) {
      const TensorValue& expected = one.results[i];
      EXPECT_EQ((*got)[i].shape, expected.shape);
      if (one.tolerance == 0) {
        EXPECT_TRUE(SameBits((*got)[i], expected));
        continue;
      }
      for (int64_t j = 0; j < expected.num_elements(); ++j) {
        double number = NumberAt(expected, j), mine = NumberAt((*got)[i], j);
        bool same = mine == number || (std::isnan(mine) && std::isnan(number));
        if (same) continue;
        EXPECT_TRUE(std::isfinite(number) &&
                    std::fabs(mine - number) <= one.tolerance * std::max(1.0, std::fabs(number)))
            << mine << " for " << number;
      }
    }
  }
}

}  // namespace
}  // namespace svod
