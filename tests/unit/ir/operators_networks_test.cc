#include "ir/operators/random.h"
#include "tests/unit/ir/operator_tester.h"

namespace svod {
namespace {

using OperatorsNetworksTest = OperatorTest;

TEST_F(OperatorsNetworksTest, MatmulTakesVectorsBatchesAndTransposedOperands) {
  const UOp* x = Given(Scalar::kF32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const UOp* y = Given(Scalar::kF32, {3, 2}, {1, 0, 0, 1, 2, -1});
  const UOp *v = Row({1, 1, 1}), *u = Row({1, -1});
  Expect(Call("matmul", {x, y}), {2, 2}, {7, -1, 16, -1});
  Expect(Call("matmul", {x, v}), {2}, {6, 15});
  Expect(Call("matmul", {u, x}), {3}, {-3, -3, -3});
  Expect(Call("matmul", {v, v}), {}, {3});
  Expect(Call("matmul", {y, x}, {{"transpose_x", true}, {"transpose_y", true}}), {2, 2},
         {7, 16, -1, -1});
  const UOp* batch = Given(Scalar::kF32, {2, 1, 1, 3}, {1, 0, 0, 0, 0, 1});
  Expect(Call("matmul", {batch, Given(Scalar::kF32, {2, 3, 1}, {1, 2, 3, 4, 5, 6})}), {2, 2, 1, 1},
         {1, 4, 3, 6});
  Expect(Call("matmul", {Given(Scalar::kF32, {2, 0}, {}), Given(Scalar::kF32, {0, 2}, {})}), {2, 2},
         {0, 0, 0, 0});
}

TEST_F(OperatorsNetworksTest, MatmulOfEveryDtype) {
  for (int i = 1; i < kNumScalars; ++i) {
    Scalar scalar = static_cast<Scalar>(i);
    if (scalar == Scalar::kIndex) continue;
    const UOp* x = Given(scalar, {1, 2}, {1, 1});
    const UOp* y = Given(scalar, {2, 2}, {1, 0, 1, 0});
    double two = scalar == Scalar::kBool ? 1 : 2;
    EXPECT_EQ(ShapeOf(Call("matmul", {x, y})), ToString(DType(scalar)) + "[1, 2]");
    Expect(Call("matmul", {x, y}), {1, 2}, {two, 0});
  }
  const UOp* bytes = Row({100, 100}, Scalar::kI8);
  Expect(Call("matmul", {bytes, bytes}), {}, {32});  // 20000 modulo 256
  Expect(Call("matmul", {bytes, bytes}, {{"dtype", DType(Scalar::kI32)}}), {}, {20000});
  // In f16 the products round to multiples of 2, and their sum sticks at 2048.
  const UOp* halves = Given(Scalar::kF16, {3000}, Numbers(3000, 1));
  Expect(Call("matmul", {halves, halves}), {}, {3000});
}

TEST_F(OperatorsNetworksTest, MatmulWithSymbolicDimensions) {
  const UOp *m = b.Variable("m", 0, 8), *k = b.Variable("k", 0, 8);
  const UOp* x = Given(Scalar::kF32, Shape{m, k}, {1, 2}, {3, 4});
  const UOp* y = Given(Scalar::kF32, Shape{k, m}, {2, 1}, {5, 6});
  variables = {{"m", 1}, {"k", 2}};
  EXPECT_EQ(ShapeOf(Call("matmul", {y, x})), "f32[k, k]");
  Expect(Call("matmul", {x, y}), {1, 1}, {39});
  Call("matmul", {x, x});
  ExpectFailure(
      "matmul: shapes, got [m, k] and [m, k], expected inner dimensions k and m to be equal");
}

TEST_F(OperatorsNetworksTest, MatmulNamesWhatDoesNotFit) {
  const UOp* x = b.Param("x", Scalar::kF32, {2, 5, 3});
  Call("matmul", {x, b.Param("y", Scalar::kF32, {4, 2})});
  ExpectFailure(
      "matmul: shapes, got [2, 5, 3] and [4, 2], expected inner dimensions 3 and 4 to be equal");
  Call("matmul", {x, b.Param("z", Scalar::kF64, {3, 2})});
  ExpectFailure("matmul: operand dtypes, got f32 and f64, expected them equal");
  Call("matmul", {x, b.Param("w", Scalar::kF32, {3, 3, 2})});
  EXPECT_THAT(std::string(b.Take().message()),
              ::testing::StartsWith("matmul: shapes, got [2, 5, 3] and [3, 3, 2], expected "
                                    "leading dimensions that broadcast"));
  Call("linear", {x, b.Param("v", Scalar::kF32, {4, 3}), b.Param("c", Scalar::kF32, {4, 1})});
  ExpectFailure("linear: bias, got f32[4, 1], expected f32 of 1 dimension");
}

TEST_F(OperatorsNetworksTest, AttentionSharesKeysAmongQueriesOfAGroup) {
  // 4 query heads on 2 key heads, against heads repeated by hand.
  const UOp* q = Given(Scalar::kF64, {2, 4, 3, 2}, Noise(48, 1));
  const UOp* k = Given(Scalar::kF64, {2, 2, 5, 2}, Noise(40, 2));
  const UOp* v = Given(Scalar::kF64, {2, 2, 5, 3}, Noise(60, 3));
  auto twice = [&](const UOp* x) {
    return Call("repeat", {x}, {{"count", int64_t{2}}, {"axis", int64_t{1}}});
  };
  Expect(Call("attention", {q, k, v}), {2, 4, 3, 3},
         NumbersIn(Call("attention", {q, twice(k), twice(v)})), 1e-15);
  // And against its formula.
  const UOp* scores = Call("matmul", {q, twice(k)}, {{"transpose_y", true}});
  const UOp* weights = Call("softmax", {b.Mul(scores, b.Const(Scalar::kF64, std::sqrt(0.5)))});
  Expect(Call("attention", {q, k, v}), {2, 4, 3, 3}, NumbersIn(Call("matmul", {weights, twice(v)})),
         1e-14);
}

TEST_F(OperatorsNetworksTest, MasksOfAttentionSayTheSame) {
  const UOp* q = Given(Scalar::kF64, {1, 2, 3, 2}, Noise(12, 1));
  const UOp* k = Given(Scalar::kF64, {1, 2, 5, 2}, Noise(20, 2));
  const UOp* v = Given(Scalar::kF64, {1, 2, 5, 2}, Noise(20, 3));
  const UOp* seen = Call("tri", {}, {{"shape", Ints{3, 5}}, {"diagonal", int64_t{2}}});
  const UOp* added = b.Where(seen, b.Const(Scalar::kF64, 0), b.Const(Scalar::kF64, -kInf));
  Numbers causal =
      NumbersIn(Call("attention", {q, k, v}, {{"causal", true}, {"offset", b.ConstShape({2})}}));
  Expect(Call("attention", {q, k, v}, {{"mask", seen}}), {1, 2, 3, 2}, causal);
  Expect(Call("attention", {q, k, v}, {{"mask", added}}), {1, 2, 3, 2}, causal);
  const UOp* by_head = b.Expand(seen, b.ConstShape({1, 2, 3, 5}));
  Expect(Call("attention", {q, k, v}, {{"mask", by_head}}), {1, 2, 3, 2}, causal);
  // The first query of a causal mask sees the first key alone.
  Numbers first = NumbersIn(Call("attention", {q, k, v}, {{"causal", true}}));
  Numbers values = NumbersOf(params[2]);
  EXPECT_EQ(first[0], values[0]);
  EXPECT_EQ(first[1], values[1]);
  Call("attention", {q, k, v}, {{"mask", b.Param("m", Scalar::kBool, {3, 4})}});
  EXPECT_THAT(std::string(b.Take().message()), ::testing::StartsWith("attention: mask"));
  Call("attention", {q, k, v}, {{"mask", b.Param("m", Scalar::kI32, {3, 5})}});
  ExpectFailure("attention: mask, got i32, expected bool or a float");
  Call("attention", {q, k, b.Param("w", Scalar::kF64, {1, 2, 4, 2})});
  ExpectFailure(
      "attention: shapes, got q [1, 2, 3, 2], k [1, 2, 5, 2], v [1, 2, 4, 2], expected q [B, H, S, "
      "D], k [B, G, T, D], v [B, G, T, E]");
}

TEST_F(OperatorsNetworksTest, AttentionWithSymbolicLengths) {
  const UOp *s = b.Variable("s", 1, 16), *t = b.Variable("t", 1, 16);
  const UOp* q =
      Given(Scalar::kF32, Shape{b.Index(1), b.Index(1), s, b.Index(1)}, {1, 1, 2, 1}, {0, 0});
  Shape keys = {b.Index(1), b.Index(1), t, b.Index(1)};
  const UOp* k = Given(Scalar::kF32, keys, {1, 1, 3, 1}, {1, 2, 3});
  const UOp* v = Given(Scalar::kF32, keys, {1, 1, 3, 1}, {3, 6, 9});
  variables = {{"s", 2}, {"t", 3}};
  const UOp* last = b.dims().Sub(t, s);
  Expect(Call("attention", {q, k, v}, {{"causal", true}, {"offset", Shape{last}}}), {1, 1, 2, 1},
         {4.5, 6}, 1e-6);
}

TEST_F(OperatorsNetworksTest, RotaryEmbeddingTurnsPairs) {
  const UOp* x = Given(Scalar::kF32, {1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const UOp* c = Given(Scalar::kF32, {2, 2}, {1, 0, 0, -1});
  const UOp* s = Given(Scalar::kF32, {2, 2}, {0, 1, 1, 0});
  Expect(Call("rotary_embedding", {x, c, s}), {1, 2, 4}, {1, -4, 3, 2, -7, -6, 5, -8});
  Expect(Call("rotary_embedding", {x, c, s}, {{"interleaved", true}}), {1, 2, 4},
         {1, 2, -4, 3, -6, 5, -7, -8});
  Call("rotary_embedding", {Given(Scalar::kF32, {2, 3}, Numbers(6, 0)), c, s});
  ExpectFailure("rotary_embedding: features, got [2, 3], expected an even last dimension");
}

TEST_F(OperatorsNetworksTest, NormalizationsNameShapesThatDoNotFit) {
  const UOp* x = b.Param("x", Scalar::kF32, {2, 6, 4});
  Call("layer_norm", {x, Row({1, 2})});
  ExpectFailure("layer_norm: weight, got f32[2], expected f32[4]");
  Call("group_norm", {x}, {{"groups", int64_t{4}}});
  ExpectFailure("group_norm: groups, got 4, expected a divisor of dimension 1 of [2, 6, 4]");
  Call("batch_norm", {x, Row({1, 2}), Row({1, 2})});
  ExpectFailure("batch_norm: mean, got f32[2], expected f32[6]");
  Call("instance_norm", {Row({1, 2})});
  ExpectFailure("instance_norm: shape, got [2], expected [N, C, ...]");
}

TEST_F(OperatorsNetworksTest, NormalizationsWithSymbolicDimensions) {
  const UOp* n = b.Variable("n", 1, 9);
  const UOp* x = Given(Scalar::kF64, Shape{b.Index(2), n}, {2, 2}, {1, 3, 10, 30});
  const UOp* weight = Given(Scalar::kF64, Shape{n}, {2}, {1, 2});
  variables = {{"n", 2}};
  Expect(Call("layer_norm", {x, weight}, {{"epsilon", 0.0}}), {2, 2}, {-1, 2, -1, 2}, 1e-15);
  Expect(Call("rms_norm", {x}, {{"epsilon", 0.0}}), {2, 2},
         {1 / std::sqrt(5.0), 3 / std::sqrt(5.0), 1 / std::sqrt(5.0), 3 / std::sqrt(5.0)}, 1e-15);
}

TEST_F(OperatorsNetworksTest, ResizeToTheNearest) {
  const UOp* x = Given(Scalar::kU8, {1, 1, 4}, {10, 20, 30, 40});
  auto nearest = [&](int64_t size, const char* alignment) {
    return Call("resize", {x}, {{"sizes", Ints{size}}, {"alignment", std::string(alignment)}});
  };
  Expect(nearest(8, "half_pixel"), {1, 1, 8}, {10, 10, 20, 20, 30, 30, 40, 40});
  Expect(nearest(8, "asymmetric"), {1, 1, 8}, {10, 10, 20, 20, 30, 30, 40, 40});
  Expect(nearest(3, "half_pixel"), {1, 1, 3}, {10, 30, 40});  // 0.67, 2, 3.33 of the cells
  Expect(nearest(3, "asymmetric"), {1, 1, 3}, {10, 20, 30});
  Expect(nearest(7, "align_corners"), {1, 1, 7}, {10, 20, 20, 30, 30, 40, 40});
  Expect(nearest(1, "align_corners"), {1, 1, 1}, {10});
  Expect(nearest(4, "align_corners"), {1, 1, 4}, {10, 20, 30, 40});
  Call("resize", {x}, {{"sizes", Ints{0}}});
  ExpectFailure("resize: size of dimension 2, got 4 to 0, expected 1 to 2^28");
  Call("resize", {x}, {{"sizes", Ints{4}}, {"mode", std::string("linear")}});
  ExpectFailure("resize: operand dtype, got u8, expected a float");
}

TEST_F(OperatorsNetworksTest, ResizeLinearly) {
  const UOp* x = Given(Scalar::kF32, {1, 1, 3}, {0, 6, 12});
  auto linear = [&](int64_t size, const char* alignment) {
    return Call("resize", {x},
                {{"sizes", Ints{size}},
                 {"mode", std::string("linear")},
                 {"alignment", std::string(alignment)}});
  };
  Expect(linear(6, "half_pixel"), {1, 1, 6}, {0, 1.5, 4.5, 7.5, 10.5, 12}, 1e-6);
  Expect(linear(5, "align_corners"), {1, 1, 5}, {0, 3, 6, 9, 12}, 1e-6);
  Expect(linear(6, "asymmetric"), {1, 1, 6}, {0, 3, 6, 9, 12, 12}, 1e-6);
  Expect(linear(2, "half_pixel"), {1, 1, 2}, {1.5, 10.5}, 1e-6);
  Expect(linear(1, "align_corners"), {1, 1, 1}, {0});
  const UOp* image = Given(Scalar::kF16, {1, 1, 2, 1, 2}, {0, 1, 2, 3});
  Expect(Call("resize", {image},
              {{"sizes", Ints{3, 1, 3}},
               {"mode", std::string("linear")},
               {"alignment", std::string("align_corners")}}),
         {1, 1, 3, 1, 3}, {0, 0.5, 1, 1, 1.5, 2, 2, 2.5, 3});
}

// The known answers that come with the authors' library for 20 rounds.
TEST_F(OperatorsNetworksTest, ThreefryGivesTheKnownAnswers) {
  auto word = [&](int64_t value) { return b.ConstInt(Scalar::kU32, value); };
  auto expect = [&](Ints key, Ints counter, Ints answer) {
    auto [first, second] =
        Threefry2x32(b, word(key[0]), word(key[1]), word(counter[0]), word(counter[1]));
    Expect(first, {}, {static_cast<double>(answer[0])});
    Expect(second, {}, {static_cast<double>(answer[1])});
  };
  expect({0, 0}, {0, 0}, {0x6b200159, 0x99ba4efe});
  expect({0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}, {0x1cb996fc, 0xbb002be7});
  expect({0x13198a2e, 0x03707344}, {0x243f6a88, 0x85a308d3}, {0xc4923a9c, 0x483df7a0});
}

TEST_F(OperatorsNetworksTest, RandomBitsCountElementsInRowMajorOrder) {
  const UOp* key = Row({0, 0}, Scalar::kU32);
  Numbers line = NumbersIn(Call("random_bits", {key}, {{"shape", Ints{6}}}));
  EXPECT_EQ(line[0], 0x6b200159);
  Expect(Call("random_bits", {key}, {{"shape", Ints{2, 3}}}), {2, 3}, line);
  Numbers bytes;
  for (double number : line) bytes.push_back(std::fmod(number, 256));
  Expect(Call("random_bits", {key}, {{"shape", Ints{6}}, {"dtype", DType(Scalar::kU8)}}), {6},
         bytes);
  const UOp* wide =
      Call("random_bits", {key}, {{"shape", Ints{1}}, {"dtype", DType(Scalar::kU64)}});
  EXPECT_EQ(ValueOf(wide).BitsAt(0), 0x99ba4efe6b200159u);
  Expect(Call("random_bits", {key}, {{"shape", Ints{}}}), {}, {line[0]});
  Expect(Call("random_bits", {key}, {{"shape", Ints{0, 3}}}), {0, 3}, {});
  const UOp* n = b.Variable("n", 0, 9);
  variables = {{"n", 3}};
  Expect(Call("random_bits", {key}, {{"shape", Shape{b.Index(2), n}}}), {2, 3}, line);
  Call("random_bits", {Row({1, 2}, Scalar::kI32)}, {{"shape", Ints{1}}});
  ExpectFailure("random_bits: key, got i32[2], expected u32[2]");
}

TEST_F(OperatorsNetworksTest, RandomNumbersHaveTheirDistributions) {
  const UOp* key = Row({42, 7}, Scalar::kU32);
  constexpr int64_t kCount = 20000;
  for (Scalar scalar : {Scalar::kF16, Scalar::kF32, Scalar::kF64}) {
    Numbers u = NumbersIn(
        Call("random_uniform", {key},
             {{"shape", Ints{kCount}}, {"low", -1.0}, {"high", 3.0}, {"dtype", DType(scalar)}}));
    Numbers z = NumbersIn(Call(
        "random_normal", {key},
        {{"shape", Ints{kCount}}, {"mean", 5.0}, {"deviation", 2.0}, {"dtype", DType(scalar)}}));
    double u_sum = 0, z_sum = 0, z_squares = 0;
    int num_low = 0, num_beyond = 0;
    for (size_t i = 0; i < u.size(); ++i) {
      EXPECT_GE(u[i], -1);
      EXPECT_LE(u[i], 3);
      EXPECT_TRUE(u[i] < 3 || scalar == Scalar::kF16);
      u_sum += u[i];
      z_sum += z[i];
      z_squares += (z[i] - 5) * (z[i] - 5);
      num_low += u[i] < 0;
      num_beyond += std::fabs(z[i] - 5) > 2;
    }
    // Within 5 standard deviations of what is expected.
    EXPECT_NEAR(u_sum / kCount, 1, 5 * 1.155 / std::sqrt(kCount));
    EXPECT_NEAR(num_low / double{kCount}, 0.25, 5 * 0.433 / std::sqrt(kCount));
    EXPECT_NEAR(z_sum / kCount, 5, 5 * 2 / std::sqrt(kCount));
    EXPECT_NEAR(z_squares / kCount, 4, 5 * 4 * 1.414 / std::sqrt(kCount));
    EXPECT_NEAR(num_beyond / double{kCount}, 0.3173, 5 * 0.465 / std::sqrt(kCount));
  }
  Call("random_uniform", {key}, {{"shape", Ints{1}}, {"low", 1.0}});
  ExpectFailure("random_uniform: low and high, got 1 and 1, expected low < high");
}

}  // namespace
}  // namespace svod
