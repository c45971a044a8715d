#include <set>

#include "gtest/gtest-spi.h"
#include "tests/unit/ir/operator_tester.h"
#include "tests/unit/operator_cases.h"

namespace svod {
namespace {

using OperatorCasesTest = OperatorTest;

TEST_F(OperatorCasesTest, EveryOperatorHasACase) {
  std::set<std::string> tested;
  for (const OperatorCase& one : AllOperatorCases()) tested.insert(one.name);
  for (const OperatorInfo& info : Operators()) {
    EXPECT_EQ(tested.count(info.name), 1u) << info.name << " has no case in operator_cases_*.cc";
  }
}

TEST_F(OperatorCasesTest, ResultsAreThoseOfNumPy) {
  for (const OperatorCase& one : AllOperatorCases()) {
    SCOPED_TRACE(one.name);
    Nodes operands;
    for (const TensorValue& operand : one.operands) operands.push_back(Given(operand));
    Nodes results = CallAll(one.name, operands, one.attributes);
    ASSERT_TRUE(b.ok()) << b.status();
    ASSERT_EQ(results.size(), one.results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(ToString(results[i]->dtype()), ToString(one.results[i].dtype));
      Expect(results[i], one.results[i].shape, NumbersOf(one.results[i]), one.tolerance);
    }
  }
}

// A case with one of its numbers changed does not pass: the comparison looks at every one.
TEST_F(OperatorCasesTest, AWrongNumberIsFound) {
  const UOp* x = Row({1, 2, 3});
  EXPECT_NONFATAL_FAILURE(ExpectNumbers({1, 2, 3}, {1, 2, 4}, 1e-6), "element 2");
  EXPECT_NONFATAL_FAILURE(ExpectNumbers({0.0}, {-0.0}, 0), "element 0");
  Expect(x, {3}, {1, 2, 3});
}

}  // namespace
}  // namespace svod
