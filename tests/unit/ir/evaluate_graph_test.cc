#include "ir/evaluate_graph.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/tensor_builder.h"
#include "ir/text.h"
#include "tests/unit/ir/tensor_values.h"

namespace svod {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Numbers = std::vector<double>;
using Variables = std::vector<std::pair<std::string, int64_t>>;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

std::vector<double> Iota(int64_t count) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<double>(i));
  return numbers;
}

class EvaluateGraphTest : public ::testing::Test {
 protected:
  TensorBuilder b{std::make_shared<Context>()};
  std::vector<TensorValue> params;
  Variables variables;

  // A parameter with its value.
  const UOp* Given(DType dtype, const std::vector<int64_t>& shape, const Numbers& numbers,
                   Access access = Access::kIn) {
    params.push_back(TensorOf(dtype, shape, numbers));
    return b.Param("", dtype, b.ConstShape(shape), access);
  }

  absl::StatusOr<std::vector<TensorValue>> Run(const std::vector<const UOp*>& results,
                                               int64_t max_elements = int64_t{1} << 32) {
    absl::StatusOr<Function> graph = b.Finish("g", results);
    if (!graph.ok()) return graph.status();
    EvaluateGraphOptions options;
    options.variables = variables;
    options.max_elements = max_elements;
    return EvaluateGraph(*graph, params, options);
  }

  TensorValue ValueOf(const UOp* result) {
    absl::StatusOr<std::vector<TensorValue>> values = Run({result});
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? (*values)[0] : TensorValue();
  }
  Numbers NumbersOfResult(const UOp* result) { return NumbersOf(ValueOf(result)); }
};

// --- Elementwise --------------------------------------------------------------------------------

TEST_F(EvaluateGraphTest, ElementwiseOpsAreScalarArithmeticOnEachElement) {
  for (int i = 0; i < kNumOps; ++i) {
    Op op = static_cast<Op>(i);
    if (!IsElementwise(op) || InfoOf(op).op_class == OpClass::kConversion) continue;
    for (Scalar scalar : {Scalar::kBool, Scalar::kI8, Scalar::kU32, Scalar::kF16, Scalar::kF64}) {
      params.clear();
      TensorBuilder builder(std::make_shared<Context>());
      std::vector<const UOp*> sources;
      for (int k = 0; k < InfoOf(op).min_sources; ++k) {
        DType dtype = op == Op::kWhere && k == 0 ? DType(Scalar::kBool) : DType(scalar);
        sources.push_back(builder.Param("", dtype, {2, 3}));
        Numbers numbers;
        for (int j = 0; j < 6; ++j) numbers.push_back((j * 7 + k * 5) % 11 - 4);
        params.push_back(TensorOf(dtype, {2, 3}, numbers));
      }
      const UOp* result = builder.Make(op, sources);
      if (!builder.Take().ok()) continue;  // the op has no rule for that dtype
      absl::StatusOr<Function> graph = builder.Finish("g", {result});
      ASSERT_TRUE(graph.ok());
      absl::StatusOr<std::vector<TensorValue>> values = EvaluateGraph(*graph, params);
      ASSERT_TRUE(values.ok()) << values.status();
      for (int64_t j = 0; j < 6; ++j) {
        std::vector<uint64_t> operands;
        for (const TensorValue& param : params) operands.push_back(param.BitsAt(j));
        EXPECT_EQ((*values)[0].BitsAt(j),
                  EvaluateScalar(op, result->dtype(), params.back().dtype, operands))
            << InfoOf(op).text << " of " << ToString(DType(scalar)) << " at " << j;
      }
    }
  }
}

TEST_F(EvaluateGraphTest, OperandsBroadcastAsInNumPy) {
  const UOp* column = Given(Scalar::kI32, {3, 1}, {10, 20, 30});
  const UOp* row = Given(Scalar::kI32, {2}, {1, 2});
  EXPECT_THAT(NumbersOfResult(b.Add(column, row)), ElementsAre(11, 12, 21, 22, 31, 32));
  EXPECT_THAT(NumbersOfResult(b.Add(row, b.ConstInt(Scalar::kI32, 5))), ElementsAre(6, 7));
  const UOp* none = Given(Scalar::kI32, {0, 1}, {});
  TensorValue empty = ValueOf(b.Add(none, row));
  EXPECT_THAT(empty.shape, ElementsAre(0, 2));
  EXPECT_TRUE(empty.bytes.empty());
}

TEST_F(EvaluateGraphTest, CastsRoundAndSaturateAndBitcastsKeepBits) {
  const UOp* x = Given(Scalar::kF32, {4}, {1.75, -300, kNan, kInf});
  EXPECT_THAT(NumbersOfResult(b.Cast(x, Scalar::kI8)), ElementsAre(1, -128, 0, 127));
  EXPECT_THAT(NumbersOfResult(b.Cast(x, Scalar::kBool)), ElementsAre(1, 1, 1, 1));
  TensorValue bits = ValueOf(b.Bitcast(x, Scalar::kU32));
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(bits.BitsAt(i), params[0].BitsAt(i));
}

TEST_F(EvaluateGraphTest, AnyByteThatIsNotZeroIsTrue) {
  const UOp* x = Given(Scalar::kBool, {2}, {0, 1});
  params[0].bytes[1] = std::byte{0x40};
  EXPECT_THAT(NumbersOfResult(b.Make(Op::kNot, {x})), ElementsAre(1, 0));
  EXPECT_EQ(ValueOf(b.Permute(b.Reshape(x, {1, 2}), {1, 0})).BitsAt(1), 1u);
}

// --- Movement -----------------------------------------------------------------------------------

TEST_F(EvaluateGraphTest, ReshapeKeepsRowMajorOrder) {
  const UOp* x = Given(Scalar::kI16, {2, 3}, Iota(6));
  TensorValue value = ValueOf(b.Reshape(b.Permute(x, {1, 0}), {2, 3}));
  EXPECT_THAT(value.shape, ElementsAre(2, 3));
  EXPECT_THAT(NumbersOf(value), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST_F(EvaluateGraphTest, ReshapeOfNothingMayHaveDimensionsOfAnySize) {
  const UOp* x = Given(Scalar::kI16, {0, 7}, {});
  constexpr int64_t kHuge = int64_t{1} << 40;
  EXPECT_THAT(ValueOf(b.Reshape(x, {0, kHuge, kHuge})).shape, ElementsAre(0, kHuge, kHuge));
  const UOp* moved = b.Flip(b.Permute(b.Reshape(x, {kHuge, 0, kHuge}), {2, 0, 1}), {0, 2});
  EXPECT_THAT(ValueOf(moved).shape, ElementsAre(kHuge, kHuge, 0));
}

TEST_F(EvaluateGraphTest, ExpandRepeatsDimensionsOfOneAndNewOnes) {
  const UOp* x = Given(Scalar::kI16, {2, 1}, {3, 4});
  EXPECT_THAT(NumbersOfResult(b.Expand(x, b.ConstShape({2, 2, 3}))),
              ElementsAre(3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4));
  EXPECT_THAT(ValueOf(b.Expand(x, b.ConstShape({2, 0}))).shape, ElementsAre(2, 0));
}

TEST_F(EvaluateGraphTest, PermuteGathersDimensions) {
  const UOp* x = Given(Scalar::kI16, {1, 2, 3}, Iota(6));
  TensorValue value = ValueOf(b.Permute(x, {2, 0, 1}));
  EXPECT_THAT(value.shape, ElementsAre(3, 1, 2));
  EXPECT_THAT(NumbersOf(value), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST_F(EvaluateGraphTest, PadKeepsTheBitsOfItsValue) {
  const UOp* x = Given(Scalar::kF32, {2}, {1, 2});
  const UOp* minus_zero = b.Const(Scalar::kF32, -0.0);
  TensorValue value = ValueOf(b.PadAxis(x, 0, minus_zero, b.Index(1), b.Index(2)));
  EXPECT_THAT(NumbersOf(value), ElementsAre(0, 1, 2, 0, 0));
  EXPECT_EQ(value.BitsAt(0), 0x80000000u);
  EXPECT_EQ(value.BitsAt(4), 0x80000000u);
  const UOp* nan = b.context().Bits(Scalar::kF32, 0xffc12345u);
  EXPECT_EQ(ValueOf(b.PadAxis(x, 0, nan, b.Index(0), b.Index(1))).BitsAt(2), 0xffc12345u);
}

TEST_F(EvaluateGraphTest, PadOfNothingIsAllValue) {
  const UOp* x = Given(Scalar::kI8, {0, 3}, {});
  const UOp* value = Given(Scalar::kI8, {}, {7});
  const UOp* padded = b.Pad(x, value, b.ConstShape({1, 0}), b.ConstShape({1, 1}));
  EXPECT_THAT(NumbersOfResult(padded), ElementsAre(7, 7, 7, 7, 7, 7, 7, 7));
}

TEST_F(EvaluateGraphTest, ShrinkTakesAPart) {
  const UOp* x = Given(Scalar::kI8, {3, 5}, Iota(15));
  EXPECT_THAT(NumbersOfResult(b.Shrink(x, b.ConstShape({1, 2}), b.ConstShape({2, 3}))),
              ElementsAre(7, 8, 9, 12, 13, 14));
  EXPECT_THAT(ValueOf(b.Shrink(x, b.ConstShape({3, 0}), b.ConstShape({0, 5}))).shape,
              ElementsAre(0, 5));
}

TEST_F(EvaluateGraphTest, FlipReversesAxes) {
  const UOp* x = Given(Scalar::kI8, {2, 3}, Iota(6));
  EXPECT_THAT(NumbersOfResult(b.Flip(x, {1})), ElementsAre(2, 1, 0, 5, 4, 3));
  EXPECT_THAT(NumbersOfResult(b.Flip(x, {-1, 0})), ElementsAre(5, 4, 3, 2, 1, 0));
}

// --- Reductions ---------------------------------------------------------------------------------

TEST_F(EvaluateGraphTest, ReduceFoldsItsAxesInRowMajorOrder) {
  const UOp* x = Given(Scalar::kF32, {2, 2, 2}, {1e8, 1, -1e8, 1, 3, 4, 5, 6});
  EXPECT_THAT(NumbersOfResult(b.ReduceAxis(ReduceKind::kAdd, x, {1, 2}, false)),
              ElementsAre(((1e8f + 1) - 1e8f) + 1, 18));
  EXPECT_THAT(NumbersOfResult(b.ReduceAxis(ReduceKind::kMax, x, {0, 2}, true)),
              ElementsAre(1e8, 6));
  EXPECT_THAT(NumbersOfResult(b.ReduceAxis(ReduceKind::kMin, x, {}, false)), ElementsAre(-1e8));
  const UOp* i = Given(Scalar::kI8, {2, 3}, {7, 6, 5, 100, 100, 100});
  EXPECT_THAT(NumbersOfResult(b.ReduceAxis(ReduceKind::kAnd, i, {1}, false)), ElementsAre(4, 100));
  EXPECT_THAT(NumbersOfResult(b.ReduceAxis(ReduceKind::kOr, i, {1}, false)), ElementsAre(7, 100));
  EXPECT_THAT(NumbersOfResult(b.ReduceAxis(ReduceKind::kMul, i, {0}, false)),
              ElementsAre(-68, 88, -12));  // 700, 600 and 500 wrap
}

TEST_F(EvaluateGraphTest, ReduceOfNothingIsTheIdentity) {
  const UOp* x = Given(Scalar::kF32, {2, 0}, {});
  auto of = [&](ReduceKind kind, const UOp* value) {
    return NumbersOfResult(b.ReduceAxis(kind, value, {1}, false));
  };
  EXPECT_THAT(of(ReduceKind::kAdd, x), ElementsAre(0, 0));
  EXPECT_THAT(of(ReduceKind::kMul, x), ElementsAre(1, 1));
  EXPECT_THAT(of(ReduceKind::kMax, x), ElementsAre(-kInf, -kInf));
  EXPECT_THAT(of(ReduceKind::kMin, x), ElementsAre(kInf, kInf));
  const UOp* i = Given(Scalar::kI8, {1, 0}, {});
  EXPECT_THAT(of(ReduceKind::kMax, i), ElementsAre(-128));
  EXPECT_THAT(of(ReduceKind::kAnd, i), ElementsAre(-1));
  const UOp* wide = Given(Scalar::kU64, {1, 0}, {});
  EXPECT_EQ(ValueOf(b.ReduceAxis(ReduceKind::kMin, wide, {1}, false)).BitsAt(0), ~uint64_t{0});
}

TEST_F(EvaluateGraphTest, HalfFloatsAddUpInF32AndRoundOnce) {
  // 2048 + 1 rounds back to 2048 in f16, and 256 + 1 to 256 in bf16.
  const UOp* x = Given(Scalar::kF16, {5}, {2048, 1, 1, 1, 1});
  EXPECT_THAT(NumbersOfResult(b.ReduceAxis(ReduceKind::kAdd, x, {0}, false)), ElementsAre(2052));
  const UOp* y = Given(Scalar::kBF16, {5}, {256, 1, 1, 1, 1});
  EXPECT_THAT(NumbersOfResult(b.ReduceAxis(ReduceKind::kAdd, y, {0}, false)), ElementsAre(260));
  const UOp* z = Given(Scalar::kF16, {3}, {300, 300, 1.0 / 512});
  EXPECT_THAT(NumbersOfResult(b.ReduceAxis(ReduceKind::kMul, z, {0}, false)), ElementsAre(175.75));
}

TEST_F(EvaluateGraphTest, MaxAndMinPropagateNanAndOrderZeros) {
  const UOp* x = Given(Scalar::kF64, {3, 2}, {1, -0.0, kNan, 0.0, 2, -0.0});
  TensorValue max = ValueOf(b.ReduceAxis(ReduceKind::kMax, x, {0}, false));
  EXPECT_TRUE(std::isnan(NumberAt(max, 0)));
  EXPECT_FALSE(std::signbit(NumberAt(max, 1)));
  EXPECT_TRUE(std::signbit(NumberAt(ValueOf(b.ReduceAxis(ReduceKind::kMin, x, {0}, false)), 1)));
}

TEST_F(EvaluateGraphTest, BoolsAddAsOrAndMultiplyAsAnd) {
  const UOp* x = Given(Scalar::kBool, {2, 2}, {1, 1, 0, 1});
  EXPECT_THAT(NumbersOfResult(b.ReduceAxis(ReduceKind::kAdd, x, {1}, false)), ElementsAre(1, 1));
  EXPECT_THAT(NumbersOfResult(b.ReduceAxis(ReduceKind::kMul, x, {1}, false)), ElementsAre(1, 0));
}

// --- Positions ----------------------------------------------------------------------------------

TEST_F(EvaluateGraphTest, ArangeCountsInItsDType) {
  EXPECT_THAT(NumbersOfResult(b.Arange(b.Index(3), Scalar::kF16)), ElementsAre(0, 1, 2));
  TensorValue wrapped = ValueOf(b.Arange(b.Index(258), Scalar::kU8));
  EXPECT_EQ(wrapped.BitsAt(257), 1u);
  EXPECT_TRUE(ValueOf(b.Arange(b.Index(0), Scalar::kI64)).bytes.empty());
}

TEST_F(EvaluateGraphTest, GatherReadsAlongOneAxisAndGivesZeroOutside) {
  const UOp* x = Given(Scalar::kF32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const UOp* columns = Given(Scalar::kI8, {2, 4}, {2, -1, 0, 3, 1, 1, -128, 2});
  EXPECT_THAT(NumbersOfResult(b.Gather(x, columns, 1)), ElementsAre(3, 0, 1, 0, 5, 5, 0, 6));
  const UOp* rows = Given(Scalar::kU64, {1, 2}, {1, 0});
  params[2].SetBitsAt(1, ~uint64_t{0});
  EXPECT_THAT(NumbersOfResult(b.Gather(x, rows, 0)), ElementsAre(4, 0));
}

TEST_F(EvaluateGraphTest, GatherOfNothingIsZero) {
  const UOp* x = Given(Scalar::kF32, {0}, {});
  const UOp* at = Given(Scalar::kI32, {2}, {0, -1});
  EXPECT_THAT(NumbersOfResult(b.Gather(x, at, 0)), ElementsAre(0, 0));
}

TEST_F(EvaluateGraphTest, ScatterGoesInRowMajorOrderAndLeavesOutWhatIsOutside) {
  const UOp* x = Given(Scalar::kI32, {4}, {10, 20, 30, 40});
  const UOp* at = Given(Scalar::kI32, {5}, {1, 3, 1, -1, 4});
  const UOp* updates = Given(Scalar::kI32, {5}, {1, 2, 3, 4, 5});
  auto by = [&](ScatterKind kind) { return NumbersOfResult(b.Scatter(kind, x, at, updates, 0)); };
  EXPECT_THAT(by(ScatterKind::kSet), ElementsAre(10, 3, 30, 2));
  EXPECT_THAT(by(ScatterKind::kAdd), ElementsAre(10, 24, 30, 42));
  EXPECT_THAT(by(ScatterKind::kMul), ElementsAre(10, 60, 30, 80));
  EXPECT_THAT(by(ScatterKind::kMax), ElementsAre(10, 20, 30, 40));
  EXPECT_THAT(by(ScatterKind::kMin), ElementsAre(10, 1, 30, 2));
}

TEST_F(EvaluateGraphTest, ScatterMayCoverPartOfTheOtherAxes) {
  const UOp* x = Given(Scalar::kI32, {2, 3}, Iota(6));
  const UOp* at = Given(Scalar::kI32, {1, 2}, {2, 0});
  const UOp* updates = Given(Scalar::kI32, {1, 2}, {70, 80});
  EXPECT_THAT(NumbersOfResult(b.Scatter(ScatterKind::kSet, x, at, updates, 1)),
              ElementsAre(80, 1, 70, 3, 4, 5));
  const UOp* rows = Given(Scalar::kI32, {3, 1}, {1, 1, 0});
  const UOp* more = Given(Scalar::kI32, {3, 1}, {7, 8, 9});
  EXPECT_THAT(NumbersOfResult(b.Scatter(ScatterKind::kAdd, x, rows, more, 0)),
              ElementsAre(9, 1, 2, 18, 4, 5));
}

// --- Buffers ------------------------------------------------------------------------------------

TEST_F(EvaluateGraphTest, BuffersStartAsZerosAndContiguousKeepsValues) {
  EXPECT_THAT(NumbersOfResult(b.Buffer(Scalar::kF32, b.ConstShape({2}))), ElementsAre(0, 0));
  const UOp* x = Given(Scalar::kF32, {2}, {1, 2});
  EXPECT_THAT(NumbersOfResult(b.Contiguous(x)), ElementsAre(1, 2));
}

TEST_F(EvaluateGraphTest, ReadsSeeTheStateThatTheyName) {
  const UOp* x = Given(Scalar::kI32, {2}, {1, 2}, Access::kInOut);
  const UOp* doubled = b.After(x, {b.Assign(x, b.Add(x, x))});
  const UOp* again = b.After(doubled, {b.Assign(doubled, b.Add(doubled, doubled))});
  absl::StatusOr<std::vector<TensorValue>> values =
      Run({again, b.Contiguous(x), b.Add(x, doubled)});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(NumbersOf((*values)[0]), ElementsAre(4, 8));
  EXPECT_THAT(NumbersOf((*values)[1]), ElementsAre(1, 2));
  EXPECT_THAT(NumbersOf((*values)[2]), ElementsAre(3, 6));
  EXPECT_THAT(NumbersOf(params[0]), ElementsAre(4, 8));
}

TEST_F(EvaluateGraphTest, AssignsReachPartsThroughMovement) {
  const UOp* x = Given(Scalar::kI32, {2, 3}, Iota(6), Access::kInOut);
  // The last column, from the bottom up.
  const UOp* column = b.Flip(b.Reshape(b.ShrinkAxis(x, 1, b.Index(2), b.Index(1)), {2}), {0});
  const UOp* after = b.After(x, {b.Assign(column, Given(Scalar::kI32, {2}, {70, 80}))});
  EXPECT_THAT(NumbersOfResult(after), ElementsAre(0, 1, 80, 3, 4, 70));
  params[0] = TensorOf(Scalar::kI32, {2, 3}, Iota(6));
  const UOp* flat = b.ShrinkAxis(b.Reshape(b.Permute(x, {1, 0}), {6}), 0, b.Index(1), b.Index(3));
  const UOp* spread = b.After(x, {b.Assign(flat, b.ConstInt(Scalar::kI32, 9))});
  EXPECT_THAT(NumbersOfResult(spread), ElementsAre(0, 9, 2, 9, 9, 5));
}

TEST_F(EvaluateGraphTest, PartsOfOneStateAreWrittenSideBySide) {
  const UOp* x = Given(Scalar::kI32, {4}, {1, 2, 3, 4}, Access::kInOut);
  auto part = [&](int64_t begin, int64_t size) {
    return b.ShrinkAxis(x, 0, b.Index(begin), b.Index(size));
  };
  // The halves change places: both read the state before either is written.
  const UOp* low = b.Assign(part(0, 2), part(2, 2));
  const UOp* high = b.Assign(part(2, 2), part(0, 2));
  EXPECT_THAT(NumbersOfResult(b.After(x, {low, high})), ElementsAre(3, 4, 1, 2));
  EXPECT_THAT(NumbersOf(params[0]), ElementsAre(3, 4, 1, 2));
}

TEST_F(EvaluateGraphTest, AStateKnowsWhatItsEffectsBuiltUpon) {
  const UOp* x = Given(Scalar::kI32, {3}, {1, 2, 3}, Access::kInOut);
  auto part = [&](const UOp* of, int64_t at) {
    return b.ShrinkAxis(of, 0, b.Index(at), b.Index(1));
  };
  auto number = [&](int64_t value) { return b.ConstInt(Scalar::kI32, value); };
  const UOp* first = b.Assign(part(x, 0), number(10));
  const UOp* one = b.After(x, {first});
  const UOp* second = b.Assign(part(one, 1), number(20));
  const UOp* side = b.Assign(part(x, 2), number(30));
  absl::StatusOr<std::vector<TensorValue>> values = Run(
      {b.After(x, {second}), b.After(one, {side}), b.After(x, {side, second}), b.Contiguous(x)});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(NumbersOf((*values)[0]), ElementsAre(10, 20, 3));
  EXPECT_THAT(NumbersOf((*values)[1]), ElementsAre(10, 2, 30));
  EXPECT_THAT(NumbersOf((*values)[2]), ElementsAre(10, 20, 30));
  EXPECT_THAT(NumbersOf((*values)[3]), ElementsAre(1, 2, 3));
  EXPECT_THAT(NumbersOf(params[0]), ElementsAre(10, 20, 30));
}

// Memory that was used before: an order alone does not bring back what was there.
TEST_F(EvaluateGraphTest, AStateIsWhatTheLastOfAllWritesBeforeItLeft) {
  constexpr absl::string_view kText = R"(
kernel @one(%y: out i32[1]) { store %y[0], 1 }
kernel @two(%y: out i32[1]) { store %y[0], 2 }
kernel @take(%y: out i32[1], %x: i32[1]) {
  %v = load %x[0]
  store %y[0], %v
}
graph @g(%o: out i32[1]) {
  %a = buffer i32[1]
  %c1 = call @one, %a
  %a1 = after %a, %c1
  %c2 = call @take, %o, %a1
  %o1 = after %o, %c2
  %a2 = after %a, %c2
  %c3 = call @two, %a2
  %a3 = after %a, %c3
  %a4 = after %a3, %a1
  return %o1, %a4
}
)";
  absl::StatusOr<Module> module = ParseModule(kText, "t.uop", b.shared_context());
  ASSERT_TRUE(module.ok()) << module.status();
  params = {TensorOf(Scalar::kI32, {1}, {0})};
  absl::StatusOr<std::vector<TensorValue>> values = EvaluateGraph(module->functions.back(), params);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(NumbersOf((*values)[0]), ElementsAre(1));
  EXPECT_THAT(NumbersOf((*values)[1]), ElementsAre(2));
}

TEST_F(EvaluateGraphTest, AssignmentsToOneStateThatMeetAreRefused) {
  const UOp* x = Given(Scalar::kI32, {4}, {1, 2, 3, 4}, Access::kInOut);
  const UOp* low =
      b.Assign(b.ShrinkAxis(x, 0, b.Index(0), b.Index(3)), b.ConstInt(Scalar::kI32, 1));
  const UOp* high =
      b.Assign(b.ShrinkAxis(x, 0, b.Index(2), b.Index(2)), b.ConstInt(Scalar::kI32, 2));
  absl::StatusOr<std::vector<TensorValue>> values = Run({b.After(x, {low, high})});
  EXPECT_EQ(values.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(values.status().message(), HasSubstr("two assignments to one state"));
  EXPECT_THAT(NumbersOf(params[0]), ElementsAre(1, 2, 3, 4)) << "a failure changes nothing";
}

TEST_F(EvaluateGraphTest, LongChainsOfAssignmentsAreLinear) {
  const UOp* state = Given(Scalar::kI32, {2}, {0, 0}, Access::kInOut);
  const UOp* one = b.ConstInt(Scalar::kI32, 1);
  for (int i = 0; i < 100000; ++i) {
    state = b.After(state, {b.Assign(state, b.Add(state, one))});
  }
  EXPECT_THAT(NumbersOfResult(state), ElementsAre(100000, 100000));
}

TEST_F(EvaluateGraphTest, LongChainsOfValuesDoNotRecurse) {
  const UOp* x = Given(Scalar::kI32, {1}, {0});
  const UOp* one = b.ConstInt(Scalar::kI32, 1);
  for (int i = 0; i < 100000; ++i) x = b.Add(x, one);
  EXPECT_THAT(NumbersOfResult(x), ElementsAre(100000));
}

// --- Dynamic shapes -----------------------------------------------------------------------------

TEST_F(EvaluateGraphTest, VariablesGiveSizesAtTheirEdges) {
  const UOp* n = b.Variable("n", 0, 5);
  const UOp* x = b.Param("x", Scalar::kF32, Shape{n, b.Index(2)});
  const UOp* sum = b.ReduceAxis(ReduceKind::kAdd, x, {0}, false);
  const UOp* padded =
      b.PadAxis(x, 0, b.Const(Scalar::kF32, -1), b.Index(0), b.dims().Sub(b.Index(5), n));
  for (int64_t size : {0, 1, 3, 5}) {
    variables = {{"n", size}};
    params = {TensorOf(Scalar::kF32, {size, 2}, Iota(2 * size))};
    absl::StatusOr<std::vector<TensorValue>> values = Run({sum, padded, b.Arange(n, Scalar::kI32)});
    ASSERT_TRUE(values.ok()) << values.status();
    double count = static_cast<double>(size);
    EXPECT_THAT(NumbersOf((*values)[0]), ElementsAre(count * (count - 1), count * count));
    EXPECT_THAT((*values)[1].shape, ElementsAre(5, 2));
    EXPECT_EQ(NumberAt((*values)[1], 9), size == 5 ? 9 : -1);
    EXPECT_THAT((*values)[2].shape, ElementsAre(size));
  }
}

TEST_F(EvaluateGraphTest, AVariableOfOneValueIsThatValueInProductsToo) {
  const UOp* n = b.Variable("n", 1, 5);
  const UOp* m = b.Variable("m", 3, 3);
  const UOp* x = b.Param("x", Scalar::kI32, Shape{n, m, b.Index(8)});
  variables = {{"n", 2}, {"m", 3}};
  params = {TensorOf(Scalar::kI32, {2, 3, 8}, Iota(48))};
  EXPECT_THAT(ValueOf(b.Reshape(x, Shape{n, b.Index(24)})).shape, ElementsAre(2, 24));
  EXPECT_THAT(ValueOf(b.Reshape(x, Shape{b.dims().Mul(n, m), b.Index(8)})).shape,
              ElementsAre(6, 8));
}

TEST_F(EvaluateGraphTest, VariablesAreValuesToo) {
  const UOp* n = b.Variable("n", 1, 9);
  const UOp* row = b.Cast(b.Add(b.Arange(n, Scalar::kIndex), n), Scalar::kI32);
  variables = {{"n", 3}};
  EXPECT_THAT(NumbersOfResult(row), ElementsAre(3, 4, 5));
}

TEST_F(EvaluateGraphTest, VariablesOutsideTheirBoundsAndMissingOnesAreErrors) {
  const UOp* n = b.Variable("n", 1, 9);
  const UOp* row = b.Arange(n, Scalar::kI32);
  variables = {{"n", 10}};
  EXPECT_EQ(Run({row}).status().code(), absl::StatusCode::kOutOfRange);
  variables = {};
  absl::Status missing = Run({row}).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(missing.message(), HasSubstr("variable 'n' has no value"));
}

// --- Errors and limits --------------------------------------------------------------------------

TEST_F(EvaluateGraphTest, ParametersMustHaveTheirShapeAndType) {
  const UOp* x = b.Param("x", Scalar::kF32, {2});
  const UOp* y = b.Add(x, x);
  EXPECT_THAT(Run({y}).status().message(), HasSubstr("number of parameters, got 0"));
  params = {TensorOf(Scalar::kF32, {3}, {})};
  EXPECT_THAT(Run({y}).status().message(), HasSubstr("('x'), got f32[3]"));
  params = {TensorOf(Scalar::kI32, {2}, {})};
  EXPECT_EQ(Run({y}).status().code(), absl::StatusCode::kInvalidArgument);
  params = {TensorOf(Scalar::kF32, {2}, {})};
  params[0].bytes.pop_back();
  EXPECT_THAT(Run({y}).status().message(), HasSubstr("of 7 bytes"));
}

TEST_F(EvaluateGraphTest, ElementsOfAllValuesAreLimited) {
  const UOp* x = Given(Scalar::kF32, {10}, {});
  // The parameter, the dimension and the sum.
  EXPECT_TRUE(Run({b.Add(x, x)}, 21).ok());
  absl::Status status = Run({b.Add(x, x)}, 20).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("add: elements of all values together"));
  const UOp* huge = b.Expand(b.Reshape(x, {10, 1}), b.ConstShape({10, int64_t{1} << 50}));
  EXPECT_EQ(Run({huge}).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(EvaluateGraphTest, SlowlyGrowingWorkIsQuickEnoughForTests) {
  const UOp* x = b.Param("x", Scalar::kF32, {1000, 1000});
  params = {TensorOf(Scalar::kF32, {1000, 1000}, {})};
  const UOp* y = x;
  for (int i = 0; i < 4; ++i) y = b.Add(b.Mul(y, x), b.Permute(x, {1, 0}));
  auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(Run({b.ReduceAxis(ReduceKind::kAdd, y, {1}, false)}).ok());
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  RecordProperty("element_ops_per_second", static_cast<int>(14e6 / seconds));
#ifdef NDEBUG
  EXPECT_LT(seconds, 10) << "14 million element-ops, allowing for a busy machine";
#endif
}

}  // namespace
}  // namespace svod
