#include "tests/unit/ir/operator_tester.h"

namespace svod {
namespace {

using OperatorsShapingTest = OperatorTest;

TEST_F(OperatorsShapingTest, ConcatenationKeepsBits) {
  const UOp* x = Row({-0.0, 1}, Scalar::kF16);
  const UOp* y = Row({kNan, -0.0, -kInf}, Scalar::kF16);
  Expect(Call("concatenate", {x, y, x}, {{"axis", int64_t{0}}}), {7},
         {-0.0, 1, kNan, -0.0, -kInf, -0.0, 1});
  for (int i = 1; i < kNumScalars - 1; ++i) {
    const UOp *a = Row({1, 0}, static_cast<Scalar>(i)), *c = Row({1}, static_cast<Scalar>(i));
    Expect(Call("concatenate", {a, c}, {{"axis", int64_t{-1}}}), {3}, {1, 0, 1});
  }
}

TEST_F(OperatorsShapingTest, ConcatenationOfEmptyAndSymbolicParts) {
  const UOp *n = b.Variable("n", 0, 5), *m = b.Variable("m", 0, 5);
  const UOp* x = Given(Scalar::kI32, Shape{n, b.Index(2)}, {2, 2}, {1, 2, 3, 4});
  const UOp* y = Given(Scalar::kI32, Shape{m, b.Index(2)}, {0, 2}, {});
  const UOp* z = Given(Scalar::kI32, {1, 2}, {8, 9});
  variables = {{"n", 2}, {"m", 0}};
  const UOp* all = Call("concatenate", {x, y, z}, {{"axis", int64_t{0}}});
  EXPECT_EQ(b.RankOf(all), 2);
  Expect(all, {3, 2}, {1, 2, 3, 4, 8, 9});
  const UOp* none = Given(Scalar::kI32, {0, 2}, {});
  Expect(Call("concatenate", {none, none}, {{"axis", int64_t{0}}}), {0, 2}, {});
  Expect(Call("concatenate", {none, z, none}, {{"axis", int64_t{0}}}), {1, 2}, {8, 9});
  Call("concatenate", {x, Row({1}, Scalar::kI32)}, {{"axis", int64_t{0}}});
  ExpectFailure(
      "concatenate: shapes, got i32[n, 2] and i32[1], expected one dtype, and equal dimensions "
      "but along axis 0");
}

TEST_F(OperatorsShapingTest, SplitFillsTheAxis) {
  const UOp* x = Given(Scalar::kF32, {2, 3}, {1, 2, 3, 4, 5, 6});
  Nodes parts = CallAll("split", {x}, {{"axis", int64_t{1}}, {"sizes", Ints{1, 0, 2}}});
  ASSERT_EQ(parts.size(), 3u);
  Expect(parts[0], {2, 1}, {1, 4});
  Expect(parts[1], {2, 0}, {});
  Expect(parts[2], {2, 2}, {2, 3, 5, 6});
  EXPECT_EQ(CallAll("split", {x}, {{"axis", int64_t{1}}, {"parts", int64_t{3}}}).size(), 3u);
  const UOp* n = b.Variable("n", 0, 2);
  variables = {{"n", 1}};
  Nodes symbolic = CallAll(
      "split", {x}, {{"axis", int64_t{0}}, {"sizes", Shape{n, b.dims().Sub(b.Index(2), n)}}});
  ASSERT_EQ(symbolic.size(), 2u);
  Expect(symbolic[1], {1, 3}, {4, 5, 6});
  CallAll("split", {x}, {{"axis", int64_t{1}}, {"sizes", Ints{1, 1}}});
  ExpectFailure("split: sizes [1, 1] along axis 1 of [2, 3], got 2, expected 3");
  CallAll("split", {x}, {{"axis", int64_t{1}}, {"parts", int64_t{2}}});
  ExpectFailure("split: parts, got 2, expected a divisor of dimension 1 of [2, 3]");
  CallAll("split", {x});
  ExpectFailure("split: attributes, got both or neither of sizes and parts, expected one");
}

TEST_F(OperatorsShapingTest, SlicesStepEitherWay) {
  const UOp* x = Row({0, 1, 2, 3, 4, 5, 6});
  auto slice = [&](int64_t begin, int64_t end, int64_t step) {
    return Call("slice", {x},
                {{"axis", int64_t{0}}, {"begin", begin}, {"end", end}, {"step", step}});
  };
  Expect(slice(1, 6, 1), {5}, {1, 2, 3, 4, 5});
  Expect(slice(1, 6, 2), {3}, {1, 3, 5});
  Expect(slice(0, 7, 3), {3}, {0, 3, 6});
  Expect(slice(0, 7, -1), {7}, {6, 5, 4, 3, 2, 1, 0});
  Expect(slice(1, 6, -2), {3}, {5, 3, 1});
  Expect(slice(2, 4, INT64_MAX), {1}, {2});
  Expect(slice(2, 4, INT64_MIN), {1}, {3});
  Expect(slice(3, 3, 2), {0}, {});
  const UOp* n = b.Variable("n", 0, 4);
  variables = {{"n", 4}};
  // A window that a variable moves.
  Expect(Call("slice", {x},
              {{"axis", int64_t{0}},
               {"begin", Shape{n}},
               {"end", Shape{b.dims().Add(n, b.Index(3))}},
               {"step", int64_t{2}}}),
         {2}, {4, 6});
  slice(3, 8, 1);
  ExpectFailure("slice: shrink: part, got 5 from 3 on of dimension 0 of [7], expected it inside");
  slice(0, 7, 0);
  ExpectFailure("slice: step, got 0, expected another number");
}

TEST_F(OperatorsShapingTest, PaddingOfEveryMode) {
  const UOp* x = Given(Scalar::kI16, {2, 3}, {1, 2, 3, 4, 5, 6});
  auto pad = [&](const char* mode) {
    return Call(
        "pad_mode", {x},
        {{"low", Ints{0, 2}}, {"high", Ints{1, 1}}, {"mode", std::string(mode)}, {"value", 7.0}});
  };
  Expect(pad("constant"), {3, 6}, {7, 7, 1, 2, 3, 7, 7, 7, 4, 5, 6, 7, 7, 7, 7, 7, 7, 7});
  Expect(pad("reflect"), {3, 6}, {3, 2, 1, 2, 3, 2, 6, 5, 4, 5, 6, 5, 3, 2, 1, 2, 3, 2});
  Expect(pad("symmetric"), {3, 6}, {2, 1, 1, 2, 3, 3, 5, 4, 4, 5, 6, 6, 5, 4, 4, 5, 6, 6});
  Expect(pad("edge"), {3, 6}, {1, 1, 1, 2, 3, 3, 4, 4, 4, 5, 6, 6, 4, 4, 4, 5, 6, 6});
  Expect(pad("wrap"), {3, 6}, {2, 3, 1, 2, 3, 1, 5, 6, 4, 5, 6, 4, 2, 3, 1, 2, 3, 1});
  Call("pad_mode", {x}, {{"low", Ints{2, 0}}, {"mode", std::string("reflect")}});
  ExpectFailure(
      "pad_mode: amounts 2 and 0, got dimension 0 of [2, 3], expected at least 3 elements");
  Call("pad_mode", {x}, {{"mode", std::string("mirror")}});
  ExpectFailure(
      "pad_mode: mode, got mirror, expected one of constant, reflect, symmetric, edge, wrap");
}

TEST_F(OperatorsShapingTest, PaddingOfSymbolicDimensions) {
  const UOp* n = b.Variable("n", 3, 8);
  const UOp* x = Given(Scalar::kF32, Shape{n}, {4}, {1, 2, 3, 4});
  variables = {{"n", 4}};
  for (const auto& [mode, expected] : {std::pair{"reflect", Numbers{3, 2, 1, 2, 3, 4, 3}},
                                       std::pair{"edge", Numbers{1, 1, 1, 2, 3, 4, 4}},
                                       std::pair{"wrap", Numbers{3, 4, 1, 2, 3, 4, 1}}}) {
    const UOp* y = Call("pad_mode", {x},
                        {{"low", int64_t{2}}, {"high", int64_t{1}}, {"mode", std::string(mode)}});
    EXPECT_EQ(ShapeOf(y), "f32[n + 3]");
    Expect(y, {7}, expected);
  }
}

TEST_F(OperatorsShapingTest, RepetitionAndRotation) {
  const UOp* x = Given(Scalar::kU8, {2, 2}, {1, 2, 3, 4});
  Expect(Call("tile", {x}, {{"repeats", Ints{2}}}), {2, 4}, {1, 2, 1, 2, 3, 4, 3, 4});
  Expect(Call("tile", {x}, {{"repeats", Ints{2, 1, 1}}}), {2, 2, 2}, {1, 2, 3, 4, 1, 2, 3, 4});
  Expect(Call("tile", {x}, {{"repeats", Ints{0, 1}}}), {0, 2}, {});
  Expect(Call("repeat", {x}, {{"count", int64_t{2}}}), {8}, {1, 1, 2, 2, 3, 3, 4, 4});
  Expect(Call("repeat", {x}, {{"count", int64_t{2}}, {"axis", int64_t{0}}}), {4, 2},
         {1, 2, 1, 2, 3, 4, 3, 4});
  const UOp* line = Row({1, 2, 3, 4, 5});
  auto roll = [&](int64_t shift) {
    return Call("roll", {line}, {{"shift", shift}, {"axis", int64_t{0}}});
  };
  Expect(roll(2), {5}, {4, 5, 1, 2, 3});
  Expect(roll(-1), {5}, {2, 3, 4, 5, 1});
  Expect(roll(12), {5}, {4, 5, 1, 2, 3});
  Expect(roll(0), {5}, {1, 2, 3, 4, 5});
  Expect(Call("roll", {Row({})}, {{"shift", int64_t{3}}, {"axis", int64_t{0}}}), {0}, {});
  const UOp* n = b.Variable("n", 2, 8);
  const UOp* symbolic = Given(Scalar::kF32, Shape{n}, {3}, {1, 2, 3});
  variables = {{"n", 3}};
  Expect(Call("roll", {symbolic}, {{"shift", int64_t{2}}, {"axis", int64_t{0}}}), {3}, {2, 3, 1});
  Expect(Call("roll", {symbolic}, {{"shift", int64_t{-2}}, {"axis", int64_t{0}}}), {3}, {3, 1, 2});
  Call("roll", {symbolic}, {{"shift", int64_t{3}}, {"axis", int64_t{0}}});
  ExpectFailure("roll: shift of dimension 0 of [n], got 3, expected -2 to 2");
}

TEST_F(OperatorsShapingTest, DimensionsComeAndGo) {
  const UOp* n = b.Variable("n", 0, 4);
  const UOp* x = b.Param("x", Scalar::kF32, Shape{n, b.Index(1), b.Index(3), b.Index(1)});
  EXPECT_EQ(ShapeOf(Call("squeeze", {x})), "f32[n, 3]");
  EXPECT_EQ(ShapeOf(Call("squeeze", {x}, {{"axes", Ints{-1}}})), "f32[n, 1, 3]");
  EXPECT_EQ(ShapeOf(Call("unsqueeze", {x}, {{"axes", Ints{0, -1}}})), "f32[1, n, 1, 3, 1, 1]");
  EXPECT_EQ(ShapeOf(Call("flatten", {x}, {{"begin", int64_t{1}}, {"end", int64_t{2}}})),
            "f32[n, 3, 1]");
  EXPECT_EQ(ShapeOf(Call("flatten", {x})), "f32[n * 3]");
  EXPECT_EQ(ShapeOf(Call("transpose", {x})), "f32[1, 3, 1, n]");
  EXPECT_EQ(ShapeOf(Call("transpose", {x}, {{"axes", Ints{1, 0, 2, -1}}})), "f32[1, n, 3, 1]");
  Call("squeeze", {x}, {{"axes", Ints{2}}});
  ExpectFailure("squeeze: dimension 2 of [n, 1, 3, 1], got 3, expected 1");
  Call("flatten", {x}, {{"begin", int64_t{2}}, {"end", int64_t{1}}});
  ExpectFailure("flatten: axes, got 2 to 1, expected the first not behind the last");
}

TEST_F(OperatorsShapingTest, TrianglesAndConstants) {
  const UOp* x = Given(Scalar::kF32, {2, 3}, {1, kNan, 3, 4, 5, -0.0});
  Expect(Call("tril", {x}), {2, 3}, {1, 0, 0, 4, 5, 0});
  Expect(Call("triu", {x}), {2, 3}, {1, kNan, 3, 0, 5, -0.0});
  Expect(Call("tril", {x}, {{"diagonal", int64_t{-1}}}), {2, 3}, {0, 0, 0, 4, 0, 0});
  Expect(Call("triu", {x}, {{"diagonal", int64_t{5}}}), {2, 3}, {0, 0, 0, 0, 0, 0});
  Expect(Call("tri", {}, {{"shape", Ints{2, 3}}, {"diagonal", int64_t{1}}}), {2, 3},
         {1, 1, 0, 1, 1, 1});
  Expect(Call("eye", {}, {{"shape", Ints{2, 3}}}), {2, 3}, {1, 0, 0, 0, 1, 0});
  const UOp* n = b.Variable("n", 0, 4);
  variables = {{"n", 2}};
  const UOp* full = Call("full", {}, {{"shape", Shape{n, b.Index(1)}}, {"value", -0.0}});
  EXPECT_EQ(ShapeOf(full), "f32[n, 1]");
  Expect(full, {2, 1}, {-0.0, -0.0});
  Call("tri", {}, {{"shape", Ints{3}}});
  ExpectFailure("tri: shape, got [3], expected 2 dimensions");
  Call("tril", {Row({1})});
  ExpectFailure("tril: shape, got [1], expected at least 2 dimensions");
}

TEST_F(OperatorsShapingTest, PositionsCountFromTheEndAndOutsideIsZero) {
  const UOp* x = Given(Scalar::kF32, {3, 2}, {1, 2, 3, 4, 5, 6});
  for (Scalar scalar : {Scalar::kI8, Scalar::kI32, Scalar::kI64}) {
    const UOp* at = Given(scalar, {2, 2}, {0, -1, 3, -4});
    Expect(Call("take", {x, at}), {2, 2, 2}, {1, 2, 5, 6, 0, 0, 0, 0});
    Expect(Call("take", {x, at}, {{"axis", int64_t{1}}}), {3, 2, 2},
           {1, 2, 0, 0, 3, 4, 0, 0, 5, 6, 0, 0});
    Expect(Call("take_along_axis", {x, at}, {{"axis", int64_t{0}}}), {2, 2}, {1, 6, 0, 0});
  }
  Expect(Call("embedding", {x, Row({2, 255, 0}, Scalar::kU8)}), {3, 2}, {5, 6, 0, 0, 1, 2});
  Expect(Call("take", {x, b.ConstInt(Scalar::kI32, 1)}), {2}, {3, 4});
  // 200 rows: -1 in i8 is the last one, which i8 cannot count.
  const UOp* tall = Given(Scalar::kI32, {200}, [] {
    Numbers numbers(200);
    for (size_t i = 0; i < 200; ++i) numbers[i] = static_cast<double>(i);
    return numbers;
  }());
  Expect(Call("take", {tall, Row({-1, -128, 127}, Scalar::kI8)}), {3}, {199, 72, 127});
  Call("take", {x, Row({0.0})});
  ExpectFailure("take: positions, got f32, expected integers");
}

TEST_F(OperatorsShapingTest, OneHotAlongAnyAxis) {
  const UOp* ids = Row({1, -1, 5}, Scalar::kI32);
  Expect(Call("one_hot", {ids}, {{"depth", int64_t{3}}}), {3, 3}, {0, 1, 0, 0, 0, 1, 0, 0, 0});
  Expect(Call("one_hot", {ids},
              {{"depth", int64_t{2}}, {"axis", int64_t{0}}, {"dtype", DType(Scalar::kBool)}}),
         {2, 3}, {0, 0, 0, 1, 1, 0});
}

TEST_F(OperatorsShapingTest, GatherAndScatterOfSeveralCoordinates) {
  const UOp* x = Given(Scalar::kI32, {2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const UOp* at = Given(Scalar::kI64, {3, 2}, {1, 2, 0, -1, 0, 3});
  Expect(Call("gather_nd", {x, at}), {3, 2}, {10, 11, 4, 5, 0, 0});
  const UOp* points = Given(Scalar::kI32, {1, 3}, {1, 0, 1});
  Expect(Call("gather_nd", {x, points}), {1}, {7});
  const UOp* updates = Given(Scalar::kI32, {3, 2}, {100, 101, 102, 103, 104, 105});
  Expect(Call("scatter_nd", {x, at, updates}), {2, 3, 2},
         {0, 1, 2, 3, 102, 103, 6, 7, 8, 9, 100, 101});
  const UOp* line = Row({1, 1, 1}, Scalar::kI32);
  const UOp* twice = Given(Scalar::kI32, {3, 1}, {1, 1, -1});
  const UOp* few = Row({5, 6, 7}, Scalar::kI32);
  auto scatter = [&](const char* mode) {
    return Call("scatter_nd", {line, twice, few}, {{"mode", std::string(mode)}});
  };
  Expect(scatter("set"), {3}, {1, 6, 7});  // the last one wins
  Expect(scatter("add"), {3}, {1, 12, 8});
  Expect(scatter("mul"), {3}, {1, 30, 7});
  Expect(scatter("max"), {3}, {1, 6, 7});
  Expect(scatter("min"), {3}, {1, 1, 1});
  Expect(Call("scatter_elements", {line, Row({2, 0}, Scalar::kU8), Row({8, 9}, Scalar::kI32)},
              {{"axis", int64_t{0}}}),
         {3}, {9, 1, 8});
  Call("gather_nd", {x, Given(Scalar::kI32, {1, 4}, {0, 0, 0, 0})});
  ExpectFailure("gather_nd: coordinates, got 4 for [2, 3, 2], expected 1 to 3");
  Call("scatter_nd", {x, at, few});
  ExpectFailure("scatter_nd: updates, got [3], expected [3, 2]");
}

TEST_F(OperatorsShapingTest, GatherOfRowsWithSymbolicDimensions) {
  const UOp *n = b.Variable("n", 1, 8), *p = b.Variable("p", 0, 8);
  const UOp* x = Given(Scalar::kF32, Shape{n, b.Index(2)}, {3, 2}, {1, 2, 3, 4, 5, 6});
  const UOp* at = Given(Scalar::kI32, Shape{p}, {2}, {-1, 3});
  variables = {{"n", 3}, {"p", 2}};
  EXPECT_EQ(ShapeOf(Call("take", {x, at})), "f32[p, 2]");
  Expect(Call("take", {x, at}), {2, 2}, {5, 6, 0, 0});
  const UOp* column = b.Reshape(at, Shape{p, b.Index(1)});
  Expect(Call("gather_nd", {x, column}), {2, 2}, {5, 6, 0, 0});
}

}  // namespace
}  // namespace svod
