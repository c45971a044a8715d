#include "ir/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/ir/raw_graph.h"

namespace svod {
namespace {

using ::testing::ElementsAre;

TEST(ProgramTest, DescribeGivesPlaceAndNameAsFarAsKnown) {
  RawGraph g;
  const UOp* sum = g.Add(g.Int(1), g.Variable("n", 0, 9));
  Function function;
  function.root = g.Kernel({});
  EXPECT_EQ(function.Describe(sum), "add");
  EXPECT_EQ(function.Describe(sum->source(1)), "%n");
  function.notes[sum] = {"total", 0, 0};
  EXPECT_EQ(function.Describe(sum), "%total");
  function.notes[sum] = {"total", 3, 5};
  EXPECT_EQ(function.Describe(sum), "3:5: %total");
  function.file = "a.uop";
  EXPECT_EQ(function.Describe(sum), "a.uop:3:5: %total");
  function.notes[sum] = {"", 3, 5};
  EXPECT_EQ(function.Describe(sum), "a.uop:3:5: add");
  const UOp* param = g.Make(Op::kParam, Scalar::kF32, {}, ParamArgument{0, Access::kIn, "x"});
  EXPECT_EQ(function.Describe(param), "%x");
}

TEST(ProgramTest, FindLooksUpByName) {
  RawGraph g;
  Module module;
  EXPECT_EQ(module.Find("k"), nullptr);
  module.functions.resize(2);
  module.functions[0].root = g.Kernel({}, "k");
  module.functions[1].root = g.Plan({}, "main");
  EXPECT_EQ(module.Find("k"), &module.functions[0]);
  EXPECT_EQ(module.Find("main"), &module.functions[1]);
  EXPECT_FALSE(module.Find("main")->is_kernel());
  EXPECT_EQ(module.Find("other"), nullptr);
}

TEST(ProgramTest, ParamsComeInTheOrderOfTheirSlots) {
  RawGraph g;
  const UOp *x = g.Param(1, 4), *y = g.Param(0, 4), *at = g.Int(0);
  absl::StatusOr<std::vector<const UOp*>> params =
      ParamsOf(g.Kernel({g.Store(y, at, g.Load(x, at))}));
  ASSERT_TRUE(params.ok());
  EXPECT_THAT(*params, ElementsAre(y, x));
  EXPECT_TRUE(ParamsOf(g.Kernel({}))->empty());
}

TEST(ProgramTest, ParamsOfAGraphAreNotThoseOfItsKernels) {
  RawGraph g;
  const UOp* kernel = g.Kernel({g.Store(g.Param(0, 4), g.Int(0), g.Float(1))});
  const UOp* own = g.Param(0, 8);
  const UOp* call = g.Make(Op::kCall, {kernel, own});
  EXPECT_THAT(*ParamsOf(g.Plan({g.After(own, {call})})), ElementsAre(own));
}

TEST(ProgramTest, ParamsWithGapsOrTwiceTheSameSlotAreRefused) {
  RawGraph g;
  auto error = [&](int64_t first, int64_t second) {
    const UOp* at = g.Int(0);
    auto params =
        ParamsOf(g.Kernel({g.Store(g.Param(first, 4), at, g.Load(g.Param(second, 8), at))}));
    EXPECT_EQ(params.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(params.status().message());
  };
  EXPECT_EQ(error(0, 2), "param: slot, got 2 of 2 parameters, expected 0 to 1");
  EXPECT_EQ(error(0, -1), "param: slot, got -1 of 2 parameters, expected 0 to 1");
  EXPECT_EQ(error(0, 0), "param: slot, got 0 twice, expected each parameter its own");
}

// Seed row T13: topological order, the first of each name.
TEST(ProgramTest, VariablesAreCollectedOncePerName) {
  RawGraph g;
  const UOp *m = g.Variable("m", 1, 4), *n = g.Variable("n", 1, 4), *other = g.Variable("n", 1, 8);
  const UOp* at = g.Add(g.Add(n, m), other);
  EXPECT_THAT(VariablesOf(g.Kernel({g.Store(g.Param(0, 64), at, g.Float(1))})), ElementsAre(n, m));
  EXPECT_TRUE(VariablesOf(g.Kernel({})).empty());
}

}  // namespace
}  // namespace svod
