#include "tools/onnx/known_values.h"

#include <gtest/gtest.h>

#include "ir/operators/compose.h"
#include "ir/operators/indexing.h"
#include "ir/operators/reductions.h"
#include "ir/operators/shaping.h"

namespace svod {
namespace {

class KnownValuesTest : public testing::Test {
 protected:
  // "n + 1, 3" of what is known, "" of what is not.
  std::string Text(const UOp* tensor) {
    EXPECT_TRUE(builder_.ok()) << builder_.status();
    const KnownValue* value = known_.Of(tensor);
    if (value == nullptr) return "";
    std::string text;
    auto add = [&](const std::string& element) { text += text.empty() ? element : ", " + element; };
    for (const UOp* element : value->elements) add(ToString(element));
    if (!value->constant.has_value()) return text;
    for (int64_t i = 0; i < value->constant->num_elements(); ++i) {
      uint64_t bits = ReadElement(value->constant->data(), value->constant->dtype, i);
      add(std::to_string(ConstInt(builder_.context().Bits(value->constant->dtype, bits))));
    }
    return text;
  }
  const UOp* Number(const UOp* dimension, DType dtype = Scalar::kI64) {
    return DimensionValue(builder_, dimension, dtype);
  }
  const UOp* Vector(std::vector<const UOp*> numbers) { return StackTensors(builder_, numbers, 0); }

  TensorBuilder builder_{std::make_shared<Context>()};
  KnownValues known_{builder_};
  const UOp* n_ = builder_.Variable("n", 1, 64);
  const UOp* two_ = builder_.ConstInt(Scalar::kI64, 2);
};

TEST_F(KnownValuesTest, ConstantsAreWorkedOutByTheInterpreter) {
  const UOp* x = builder_.Arange(builder_.Index(5), Scalar::kI64);
  EXPECT_EQ(Text(builder_.Mul(x, x)), "0, 1, 4, 9, 16");
  EXPECT_EQ(Text(Sum(builder_, x)), "10");
  EXPECT_EQ(Text(builder_.Flip(x, {0})), "4, 3, 2, 1, 0");
}

TEST_F(KnownValuesTest, DimensionsKeepTheirVariablesThroughArithmetic) {
  const UOp* n = Number(n_);
  EXPECT_EQ(Text(builder_.Add(builder_.Mul(n, two_), two_)), "n * 2 + 2");
  EXPECT_EQ(Text(builder_.Make(Op::kCdiv, {builder_.Mul(n, two_), two_})), "n");
  EXPECT_EQ(Text(builder_.Sub(n, n)), "0");
  EXPECT_EQ(Text(builder_.Cast(builder_.Cast(n, Scalar::kI32), Scalar::kI64)), "n");
}

TEST_F(KnownValuesTest, ElementsFollowMovement) {
  const UOp* shape = Vector({Number(n_), two_, builder_.ConstInt(Scalar::kI64, 7)});
  EXPECT_EQ(Text(shape), "n, 2, 7");
  EXPECT_EQ(Text(builder_.Flip(shape, {0})), "7, 2, n");
  EXPECT_EQ(Text(builder_.ShrinkAxis(shape, 0, builder_.Index(1), builder_.Index(2))), "2, 7");
  EXPECT_EQ(Text(Take(builder_, shape, builder_.ConstInt(Scalar::kI64, -3), 0)), "n");
  EXPECT_EQ(Text(Concatenate(builder_, {shape, shape}, 0)), "n, 2, 7, n, 2, 7");
  EXPECT_EQ(Text(Prod(builder_, shape)), "n * 14");
}

TEST_F(KnownValuesTest, ComparisonsAreDecidedWhereBoundsDecideThem) {
  const UOp* n = Number(n_);
  auto chosen = [&](const UOp* condition) {
    return Text(builder_.Where(condition, two_, builder_.ConstInt(Scalar::kI64, 3)));
  };
  EXPECT_EQ(chosen(builder_.Make(Op::kCmpEq, {n, builder_.ConstInt(Scalar::kI64, -1)})), "3");
  EXPECT_EQ(chosen(builder_.Make(Op::kCmpLt, {n, builder_.ConstInt(Scalar::kI64, 65)})), "2");
  EXPECT_EQ(chosen(builder_.Make(Op::kCmpLe, {n, builder_.ConstInt(Scalar::kI64, 0)})), "3");
  EXPECT_EQ(chosen(builder_.Make(Op::kCmpNe, {n, n})), "3");
  EXPECT_EQ(chosen(builder_.Make(Op::kCmpLt, {n, two_})), "");  // 1 or more
}

TEST_F(KnownValuesTest, ParametersAreKnownWhenTheyAreGiven) {
  const UOp* x = builder_.Param("x", Scalar::kI64, {2});
  EXPECT_EQ(Text(x), "");
  const UOp* doubled = builder_.Add(x, x);
  EXPECT_EQ(known_.UnknownParams(doubled), std::vector<const UOp*>{x});
  const UOp* y = builder_.Param("y", Scalar::kI64, {2});
  auto values = std::make_shared<std::vector<int64_t>>(std::vector<int64_t>{4, 5});
  absl::Span<const std::byte> bytes(reinterpret_cast<const std::byte*>(values->data()), 16);
  known_.SetConstant(y, {Scalar::kI64, {2}, bytes, values});
  EXPECT_EQ(Text(builder_.Add(y, y)), "8, 10");
  EXPECT_TRUE(known_.UnknownParams(y).empty());
}

TEST_F(KnownValuesTest, LargeTensorsAreNotWorkedOut) {
  const UOp* x = builder_.Arange(builder_.Index(KnownValues::kMaxElements + 1), Scalar::kI64);
  EXPECT_EQ(known_.Of(x), nullptr);
}

}  // namespace
}  // namespace svod
