#include <fstream>
#include <set>
#include <sstream>

#include "ir/op.h"
#include "ir/operators/operator_docs.h"
#include "tests/unit/ir/operator_tester.h"

namespace svod {
namespace {

using OperatorTableTest = OperatorTest;

TEST_F(OperatorTableTest, EveryRowIsWholeAndHasANameOfItsOwn) {
  std::set<std::string> names;
  for (int i = 0; i < kNumOps; ++i) names.insert(InfoOf(static_cast<Op>(i)).text);
  EXPECT_GT(Operators().size(), 100u);
  for (const OperatorInfo& info : Operators()) {
    SCOPED_TRACE(info.name);
    EXPECT_TRUE(names.insert(info.name).second) << "is an op or another operator";
    for (const char* text : {info.name, info.results, info.shapes, info.meaning, info.section}) {
      EXPECT_STRNE(text, "");
    }
    EXPECT_NE(info.operands, nullptr);
    EXPECT_NE(info.build, nullptr);
    EXPECT_EQ(FindOperator(info.name), &info);
    std::set<std::string> attributes;
    for (const AttributeInfo& attribute : info.attributes) {
      EXPECT_TRUE(attributes.insert(attribute.name).second) << attribute.name;
    }
  }
  EXPECT_EQ(FindOperator("add"), nullptr);
  EXPECT_EQ(FindOperator(""), nullptr);
}

TEST_F(OperatorTableTest, OperandsAreCounted) {
  EXPECT_EQ(NumOperands(*FindOperator("tri")), std::pair(0, 0));
  EXPECT_EQ(NumOperands(*FindOperator("softmax")), std::pair(1, 1));
  EXPECT_EQ(NumOperands(*FindOperator("conv")), std::pair(2, 3));
  EXPECT_EQ(NumOperands(*FindOperator("batch_norm")), std::pair(3, 5));
  EXPECT_EQ(NumOperands(*FindOperator("concatenate")), std::pair(1, -1));
}

// Every operator with too few operands, and with none at all, fails with its name and no crash.
TEST_F(OperatorTableTest, MissingOperandsAreErrorsOfEveryOperator) {
  for (const OperatorInfo& info : Operators()) {
    int least = NumOperands(info).first;
    if (least == 0) continue;
    EXPECT_TRUE(BuildOperator(b, info, OperatorCall({}, {})).empty());
    absl::Status status = b.Take();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << info.name;
    EXPECT_THAT(std::string(status.message()),
                ::testing::StartsWith(std::string(info.name) + ": number of operands, got 0"));
    Nodes nulls(static_cast<size_t>(least), nullptr);
    EXPECT_TRUE(BuildOperator(b, info, OperatorCall(nulls, {})).empty());
    EXPECT_EQ(b.Take().message(),
              std::string(info.name) + ": operand, got null, expected a tensor");
  }
}

// An operator whose required attributes are missing names the first of them.
TEST_F(OperatorTableTest, MissingAttributesAreErrorsOfEveryOperator) {
  int num_seen = 0;
  const UOp* x = b.Param("x", Scalar::kF32, {2, 3, 4});
  for (const OperatorInfo& info : Operators()) {
    auto required = std::find_if(
        info.attributes.begin(), info.attributes.end(),
        [](const AttributeInfo& attribute) { return attribute.default_text == nullptr; });
    if (required == info.attributes.end()) continue;
    ++num_seen;
    Nodes operands(static_cast<size_t>(NumOperands(info).first), x);
    EXPECT_TRUE(BuildOperator(b, info, OperatorCall(operands, {})).empty());
    EXPECT_THAT(std::string(b.Take().message()),
                ::testing::StartsWith(std::string(info.name) + ": attribute " + required->name +
                                      ", got none, expected "));
  }
  EXPECT_GT(num_seen, 10);
}

// Operands of every dtype, of shapes that fit nothing in particular: a result or an error.
TEST_F(OperatorTableTest, NoOperandsCrashAnyOperator) {
  int num_built = 0, num_refused = 0;
  const UOp* n = b.Variable("n", 0, 7);
  const Shape shapes[] = {{},
                          b.ConstShape({0}),
                          b.ConstShape({3}),
                          b.ConstShape({2, 3}),
                          {n, b.Index(1)},
                          b.ConstShape({1, 2, 3}),
                          b.ConstShape({2, 4, 3, 4})};
  for (const OperatorInfo& info : Operators()) {
    for (Scalar scalar : {Scalar::kBool, Scalar::kI8, Scalar::kU64, Scalar::kBF16, Scalar::kF64}) {
      for (const Shape& shape : shapes) {
        const UOp* x = b.Param("", scalar, shape);
        auto [least, most] = NumOperands(info);
        for (int count : {least, most < 0 ? 3 : most}) {
          Attributes attributes;
          for (const AttributeInfo& attribute : info.attributes) {
            if (attribute.default_text != nullptr) continue;
            AttributeValue one = int64_t{1};
            if (attribute.kind == AttributeKind::kInts) one = Ints{1};
            attributes.emplace_back(attribute.name, one);
          }
          Nodes operands(static_cast<size_t>(count), x);
          Nodes results = BuildOperator(b, info, OperatorCall(operands, attributes));
          EXPECT_EQ(results.empty(), !b.ok()) << info.name;
          for (const UOp* result : results) EXPECT_NE(result, nullptr) << info.name;
          absl::Status status = b.Take();
          ++(status.ok() ? num_built : num_refused);
          if (status.ok()) continue;
          EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
          EXPECT_THAT(std::string(status.message()),
                      ::testing::StartsWith(std::string(info.name) + ": "));
        }
      }
    }
  }
  EXPECT_GT(num_built, 1000);
  EXPECT_GT(num_refused, 1000);
}

TEST_F(OperatorTableTest, AttributesAreChecked) {
  const UOp* x = b.Param("x", Scalar::kF32, {2, 3});
  Call("softmax", {x}, {{"axes", Ints{1}}});
  ExpectFailure("softmax: attribute, got axes, expected one of axis");
  Call("relu", {x}, {{"axis", int64_t{1}}});
  ExpectFailure("relu: attribute, got axis, expected none");
  Call("softmax", {x}, {{"axis", int64_t{1}}, {"axis", int64_t{0}}});
  ExpectFailure("softmax: attribute axis, got it twice, expected it once");
  Call("softmax", {x}, {{"axis", 1.5}});
  ExpectFailure("softmax: attribute axis, got a number, expected an integer");
  Call("attention", {x, x, x}, {{"mask", static_cast<const UOp*>(nullptr)}});
  ExpectFailure("attention: attribute mask, got null, expected a tensor");
  Call("gelu", {x}, {{"approximate", std::string("tan")}});
  ExpectFailure("gelu: approximate, got tan, expected one of none, tanh");
  Call("sum", {x}, {{"axes", Ints{0, -2}}});
  ExpectFailure("sum: reduce_axis: axes, got 0 twice");
  Call("softmax", {x}, {{"axis", int64_t{2}}});
  ExpectFailure("softmax: axis, got 2 for shape [2, 3], expected -2 to 1");
}

TEST_F(OperatorTableTest, OneIntegerStandsForAListAndForANumber) {
  const UOp* x = b.Param("x", Scalar::kF32, {2, 3});
  EXPECT_EQ(Call("sum", {x}, {{"axes", int64_t{1}}}), Call("sum", {x}, {{"axes", Ints{-1}}}));
  EXPECT_EQ(Call("elu", {x}, {{"alpha", int64_t{2}}}), Call("elu", {x}, {{"alpha", 2.0}}));
  EXPECT_EQ(Call("tri", {}, {{"shape", Ints{2, 3}}}),
            Call("tri", {}, {{"shape", b.ConstShape({2, 3})}}));
  EXPECT_TRUE(b.ok()) << b.status();
}

TEST_F(OperatorTableTest, ABuilderThatHasFailedBuildsNothing) {
  const UOp* x = b.Param("x", Scalar::kF32, {2, 3});
  b.FailInvalid("first");
  EXPECT_EQ(Call("softmax", {x}), nullptr);
  ExpectFailure("first");
}

// To write the page anew, run this test with SVOD_OPERATORS_PAGE set to where it should go; see
// docs/contributing.md.
TEST_F(OperatorTableTest, ThePageOfOperatorsIsThatOfTheTable) {
  std::string data = SVOD_TEST_DATA;  // .../tests/data
  std::ifstream file(data.substr(0, data.rfind("tests/")) + "docs/operators.md");
  ASSERT_TRUE(file.good());
  std::stringstream page;
  page << file.rdbuf();
  if (const char* path = std::getenv("SVOD_OPERATORS_PAGE")) {
    std::ofstream(path) << OperatorsMarkdown();
  }
  EXPECT_TRUE(page.str() == OperatorsMarkdown())
      << "docs/operators.md is not what the operator table gives: run\n"
      << "  SVOD_OPERATORS_PAGE=docs/operators.md svod_ir_test "
         "--gtest_filter=*ThePageOfOperators*";
}

}  // namespace
}  // namespace svod
