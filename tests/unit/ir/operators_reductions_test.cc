#include <numeric>
#include <random>

#include "tests/unit/ir/operator_tester.h"

namespace svod {
namespace {

using OperatorsReductionsTest = OperatorTest;

TEST_F(OperatorsReductionsTest, SumsOfNarrowIntegersAreWide) {
  // 5000 ones in u8 add up to 5000.
  const UOp* ones = Given(Scalar::kU8, {5000}, Numbers(5000, 1));
  EXPECT_EQ(ShapeOf(Call("sum", {ones})), "u64[]");
  Expect(Call("sum", {ones}), {}, {5000});
  Expect(Call("sum", {ones}, {{"dtype", DType(Scalar::kU8)}}), {}, {5000 % 256});
  for (Scalar scalar : {Scalar::kBool, Scalar::kI8, Scalar::kI16, Scalar::kI32, Scalar::kI64}) {
    EXPECT_EQ(ShapeOf(Call("sum", {Row({1}, scalar)})), "i64[]");
  }
  for (Scalar scalar : {Scalar::kF16, Scalar::kBF16, Scalar::kF32, Scalar::kF64}) {
    EXPECT_EQ(b.shapes().Of(Call("prod", {Row({1}, scalar)}))->size(), 0u);
    EXPECT_EQ(Call("prod", {Row({1}, scalar)})->dtype(), DType(scalar));
  }
  Expect(Call("sum", {Row({1, 1, 0, 1}, Scalar::kBool)}), {}, {3});
  Expect(Call("prod", {Row({100, 100, 100}, Scalar::kI8)}), {}, {1000000});
}

TEST_F(OperatorsReductionsTest, MeansOfLargeIntegersDoNotOverflow) {
  const UOp* x = Row({2147483647, 2147483647, 2147483645}, Scalar::kI32);
  EXPECT_EQ(ShapeOf(Call("mean", {x})), "f64[]");
  Expect(Call("mean", {x}), {}, {2147483646.0 + 1.0 / 3}, 1e-15);
  Expect(Call("mean", {Row({1, 0, 1, 1}, Scalar::kBool)}), {}, {0.75});
}

TEST_F(OperatorsReductionsTest, HalvesAccumulateInSingles) {
  // 70000 is beyond f16, their mean is not; 4096 ones in bf16 would stick at 256.
  const UOp* x = Given(Scalar::kF16, {70000}, Numbers(70000, 1));
  Expect(Call("mean", {x}), {}, {1});
  const UOp* y = Given(Scalar::kBF16, {4096}, Numbers(4096, 1));
  Expect(Call("sum", {y}), {}, {4096});
  Expect(Call("norm", {y}), {}, {64});
  Expect(Call("cumsum", {y}, {{"axis", int64_t{0}}}), {4096}, [] {
    Numbers sums;
    for (int i = 1; i <= 4096; ++i) {
      // To 8 bits, ties to even.
      double step = std::ldexp(1.0, std::max(0, std::ilogb(i) - 7));
      sums.push_back(std::nearbyint(i / step) * step);
    }
    return sums;
  }());
}

TEST_F(OperatorsReductionsTest, AxesMayBeNegativeSeveralOrNone) {
  const UOp* x = Given(Scalar::kF32, {2, 3, 1}, {1, 2, 3, 4, 5, 6});
  Expect(Call("sum", {x}), {}, {21});
  Expect(Call("sum", {x}, {{"keep", true}}), {1, 1, 1}, {21});
  Expect(Call("sum", {x}, {{"axes", Ints{-2}}}), {2, 1}, {6, 15});
  Expect(Call("amax", {x}, {{"axes", Ints{0, 2}}, {"keep", true}}), {1, 3, 1}, {4, 5, 6});
  Expect(Call("variance", {x}, {{"axes", Ints{2, 0}}}), {3}, {2.25, 2.25, 2.25});
  Expect(Call("mean", {Given(Scalar::kF32, {}, {7})}), {}, {7});
  Call("mean", {x}, {{"axes", Ints{3}}});
  ExpectFailure("mean: axis, got 3 for shape [2, 3, 1], expected -3 to 2");
  Call("variance", {x}, {{"axes", Ints{0, -3}}});
  ExpectFailure("variance: axes, got 0 twice, expected every axis once");
}

TEST_F(OperatorsReductionsTest, NothingAtAllHasADocumentedValue) {
  const UOp* x = Given(Scalar::kF32, {0, 2}, {});
  Expect(Call("sum", {x}, {{"axes", Ints{0}}}), {2}, {0, 0});
  Expect(Call("prod", {x}, {{"axes", Ints{0}}}), {2}, {1, 1});
  Expect(Call("amax", {x}, {{"axes", Ints{0}}}), {2}, {-kInf, -kInf});
  Expect(Call("mean", {x}, {{"axes", Ints{0}}}), {2}, {kNan, kNan});
  Expect(Call("all", {x}), {}, {1});
  Expect(Call("any", {x}), {}, {0});
  Expect(Call("logsumexp", {x}, {{"axes", Ints{0}}}), {2}, {-kInf, -kInf});
  Expect(Call("softmax", {x}, {{"axis", int64_t{0}}}), {0, 2}, {});
  Expect(Call("cumsum", {x}, {{"axis", int64_t{0}}}), {0, 2}, {});
  Expect(Call("sort", {x}, {{"axis", int64_t{0}}}), {0, 2}, {});
  Call("argmax", {x}, {{"axis", int64_t{0}}});
  ExpectFailure("argmax: dimension 0 of [0, 2], got 0, expected at least 1 element");
}

TEST_F(OperatorsReductionsTest, ArgmaxFindsTheFirstAndNanFirst) {
  const UOp* x =
      Given(Scalar::kF32, {3, 4}, {1, 5, 5, 2, 0, -0.0, kNan, kNan, -kInf, -kInf, -kInf, -kInf});
  Expect(Call("argmax", {x}, {{"axis", int64_t{1}}}), {3}, {1, 2, 0});
  Expect(Call("argmin", {x}, {{"axis", int64_t{-1}}, {"keep", true}}), {3, 1}, {0, 2, 0});
  Expect(Call("argmax", {x}), {}, {6});
  Expect(Call("argmin", {x}, {{"keep", true}}), {1, 1}, {6});
  EXPECT_EQ(ShapeOf(Call("argmax", {x}, {{"dtype", DType(Scalar::kI32)}})), "i32[]");
  Expect(Call("argmax", {Row({3, 250, 250}, Scalar::kU8)}), {}, {1});
  Expect(Call("argmin", {Row({1, 0, 0}, Scalar::kBool)}), {}, {1});
  Call("argmax", {x}, {{"dtype", DType(Scalar::kF32)}});
  ExpectFailure("argmax: dtype, got f32, expected an integer");
}

// Rows so long that they are searched by blocks: ties within a block, in several, and in the last,
// which is not whole.
TEST_F(OperatorsReductionsTest, ArgmaxOfLongRowsFindsTheFirstAndNanFirst) {
  constexpr int64_t kRows = 6, kSize = 2050;
  Numbers numbers(kRows * kSize, -kInf);
  auto at = [&](int64_t row, int64_t column) -> double& {
    return numbers[static_cast<size_t>(row * kSize + column)];
  };
  for (int64_t column = 0; column < kSize; ++column) at(0, column) = (column * 37) % 1024;
  at(1, 2049) = 7;
  at(2, 511) = at(2, 512) = at(2, 2048) = 1;
  at(3, 5) = kInf;
  at(3, 1700) = at(3, 1600) = kNan;
  at(4, 1024) = 0.0;
  at(4, 1025) = -0.0;
  const UOp* x = Given(Scalar::kF32, {kRows, kSize}, numbers);
  // 37 * 83 = 1023 modulo 1024.
  const Numbers expected = {83, 2049, 511, 1600, 1024, 0};
  Expect(Call("argmax", {x}, {{"axis", int64_t{1}}}), {kRows}, expected);
  Expect(Call("argmin", {b.Make(Op::kNeg, {x})}, {{"axis", int64_t{1}}}), {kRows}, expected);
  const UOp* planes = b.Reshape(x, {2, 3, kSize});
  Expect(Call("argmax", {planes}, {{"axis", int64_t{-1}}, {"keep", true}}), {2, 3, 1}, expected);
  Expect(Call("argmax", {x}), {}, {3 * kSize + 1600});
  Expect(Call("argmin", {x}, {{"axis", int64_t{1}}}), {kRows}, {0, 0, 0, 1600, 0, 0});
  const UOp* n = b.Variable("n", 1, 64);
  Numbers integers(2 * 4096, -128);
  integers[4095] = integers[4096] = 127;
  const UOp* y = Given(Scalar::kI8, Shape{n, b.Index(4096)}, {2, 4096}, integers);
  variables = {{"n", 2}};
  Expect(Call("argmax", {y}, {{"axis", int64_t{1}}}), {2}, {4095, 0});
  Expect(Call("argmin", {y}, {{"axis", int64_t{1}}}), {2}, {0, 1});
}

TEST_F(OperatorsReductionsTest, VarianceIsTwoPass) {
  // In one pass, squares of 1e4 in f32 leave nothing of differences of 1.
  const UOp* x = Row({10000, 10001, 10002, 10003});
  Expect(Call("variance", {x}), {}, {1.25});
  Expect(Call("variance", {x}, {{"correction", int64_t{1}}}), {}, {5.0 / 3}, 1e-7);
  Expect(Call("std", {x}, {{"correction", int64_t{4}}}), {}, {kInf});
  Expect(Call("variance", {Row({3})}, {{"correction", int64_t{1}}}), {}, {kNan});
}

TEST_F(OperatorsReductionsTest, ExponentialsOfLargeNumbersDoNotOverflow) {
  const UOp* x = Given(Scalar::kF32, {3, 2}, {1000, 1000, -kInf, 0, kInf, 0});
  Expect(Call("softmax", {x}), {3, 2}, {0.5, 0.5, 0, 1, kNan, kNan});
  double ln2 = std::log(2.0);
  Expect(Call("log_softmax", {x}), {3, 2}, {-ln2, -ln2, -kInf, 0, kNan, kNan}, 1e-7);
  Expect(Call("logsumexp", {x}, {{"axes", Ints{1}}}), {3}, {1000 + ln2, 0, kInf}, 1e-7);
  Expect(Call("softmax", {Row({-kInf, -kInf})}), {2}, {kNan, kNan});
  Call("softmax", {b.Const(Scalar::kF32, 1)});
  EXPECT_FALSE(b.Take().ok());
}

TEST_F(OperatorsReductionsTest, SymbolicDimensionsReduce) {
  const UOp* n = b.Variable("n", 1, 64);
  const UOp* x = Given(Scalar::kF32, Shape{b.Index(2), n}, {2, 3}, {1, 2, 3, 5, 5, 8});
  variables = {{"n", 3}};
  Expect(Call("mean", {x}, {{"axes", Ints{1}}}), {2}, {2, 6});
  Expect(Call("mean", {x}), {}, {4});
  Expect(Call("variance", {x}, {{"axes", Ints{1}}}), {2}, {2.0 / 3, 2}, 1e-6);
  Expect(Call("argmax", {x}, {{"axis", int64_t{1}}}), {2}, {2, 2});
  Expect(Call("cumsum", {x}, {{"axis", int64_t{1}}}), {2, 3}, {1, 3, 6, 5, 10, 18});
  EXPECT_EQ(ShapeOf(Call("softmax", {x})), "f32[2, n]");
  Numbers rows = NumbersIn(Call("softmax", {x}));
  EXPECT_NEAR(rows[0] + rows[1] + rows[2], 1, 1e-6);
  Nodes sorted = CallAll("sort", {x}, {{"descending", true}});
  EXPECT_EQ(ShapeOf(sorted[0]), "f32[2, n]");
  Expect(sorted[0], {2, 3}, {3, 2, 1, 8, 5, 5});
  Expect(sorted[1], {2, 3}, {2, 1, 0, 2, 0, 1});
}

TEST_F(OperatorsReductionsTest, LongScansGoByBlocks) {
  for (int64_t size : {1, 511, 512, 513, 1500, 2048}) {
    SCOPED_TRACE(size);
    Numbers numbers = Noise(size, 5);
    const UOp* x = Row(numbers, Scalar::kF64);
    for (bool exclusive : {false, true}) {
      for (bool reverse : {false, true}) {
        Numbers sums(numbers.size()), least(numbers.size());
        double sum = 0, smallest = kInf;
        for (size_t i = 0; i < numbers.size(); ++i) {
          size_t at = reverse ? numbers.size() - 1 - i : i;
          if (exclusive) sums[at] = sum, least[at] = smallest;
          sum += numbers[at];
          smallest = std::min(smallest, numbers[at]);
          if (!exclusive) sums[at] = sum, least[at] = smallest;
        }
        Attributes attributes = {
            {"axis", int64_t{0}}, {"exclusive", exclusive}, {"reverse", reverse}};
        Expect(Call("cumsum", {x}, attributes), {size}, sums, 1e-15);
        Expect(Call("cummin", {x}, attributes), {size}, least);
      }
    }
  }
}

TEST_F(OperatorsReductionsTest, LongSymbolicScansGoByBlocks) {
  const UOp* n = b.Variable("n", 0, 1500);
  Numbers ones(1300, 1), expected(1300);
  std::iota(expected.begin(), expected.end(), 1);
  const UOp* x = Given(Scalar::kI8, Shape{n}, {1300}, ones);
  variables = {{"n", 1300}};
  const UOp* y = Call("cumsum", {x}, {{"axis", int64_t{0}}});
  EXPECT_EQ(ShapeOf(y), "i64[n]");
  Expect(y, {1300}, expected);
}

TEST_F(OperatorsReductionsTest, ScansOfProductsAndNan) {
  const UOp* x = Row({2, 0.5, kNan, 3});
  Expect(Call("cumprod", {x}, {{"axis", int64_t{0}}}), {4}, {2, 1, kNan, kNan});
  Expect(Call("cummax", {x}, {{"axis", int64_t{0}}}), {4}, {2, 2, kNan, kNan});
  Expect(
      Call("cummax", {Row({5, 3, 9}, Scalar::kU16)}, {{"axis", int64_t{0}}, {"exclusive", true}}),
      {3}, {0, 5, 5});
  Expect(
      Call("cummin", {Row({5, 3, 9}, Scalar::kU16)}, {{"axis", int64_t{0}}, {"exclusive", true}}),
      {3}, {65535, 5, 3});
  Call("cumsum", {x}, {{"axis", int64_t{1}}});
  ExpectFailure("cumsum: axis, got 1 for shape [4], expected -1 to 0");
}

// Against std::stable_sort, with many ties, NaN and both zeros.
TEST_F(OperatorsReductionsTest, SortIsStableWithNanLast) {
  std::mt19937 random(7);
  const Numbers choices = {kNan, -0.0, 0.0, 1, -1, kInf, -kInf, 2};
  for (int64_t size : {1, 2, 7, 64, 131}) {
    Numbers numbers;
    for (int64_t i = 0; i < size; ++i) numbers.push_back(choices[random() % choices.size()]);
    const UOp* x = Row(numbers);
    for (bool descending : {false, true}) {
      std::vector<size_t> order(numbers.size());
      std::iota(order.begin(), order.end(), size_t{0});
      auto less = [&](double a, double c) { return std::isnan(c) ? !std::isnan(a) : a < c; };
      std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) {
        return descending ? less(numbers[j], numbers[i]) : less(numbers[i], numbers[j]);
      });
      Numbers values, positions;
      for (size_t i : order) {
        values.push_back(numbers[i]);
        positions.push_back(static_cast<double>(i));
      }
      Nodes sorted = CallAll("sort", {x}, {{"descending", descending}});
      Expect(sorted[0], {size}, values);
      Expect(sorted[1], {size}, positions);
      Expect(Call("argsort", {x}, {{"descending", descending}}), {size}, positions);
      int64_t count = std::min<int64_t>(size, 3);
      values.resize(static_cast<size_t>(count));
      positions.resize(static_cast<size_t>(count));
      Nodes top = CallAll("top_k", {x}, {{"count", count}, {"largest", descending}});
      Expect(top[0], {count}, values);
      Expect(top[1], {count}, positions);
    }
  }
}

TEST_F(OperatorsReductionsTest, SortOfIntegersAlongAnInnerAxis) {
  const UOp* x = Given(Scalar::kU8, {3, 2}, {200, 1, 3, 255, 100, 0});
  Expect(Call("sort", {x}, {{"axis", int64_t{0}}}), {3, 2}, {3, 0, 100, 1, 200, 255});
  Nodes top = CallAll("top_k", {x}, {{"count", int64_t{0}}});
  Expect(top[0], {3, 0}, {});
  Call("top_k", {x}, {{"count", int64_t{3}}});
  ExpectFailure("top_k: count, got 3, expected 0 to dimension 1 of [3, 2]");
}

TEST_F(OperatorsReductionsTest, NormsOfEveryOrder) {
  const UOp* x = Given(Scalar::kF64, {2, 3}, {3, -4, 0, 1, 1, -1});
  auto norm = [&](double order) {
    return Call("norm", {x}, {{"order", order}, {"axes", Ints{1}}});
  };
  Expect(norm(2), {2}, {5, std::sqrt(3.0)}, 1e-15);
  Expect(norm(1), {2}, {7, 3});
  Expect(norm(0), {2}, {2, 3});
  Expect(norm(3), {2}, {std::cbrt(91.0), std::cbrt(3.0)}, 1e-14);
  Expect(norm(kInf), {2}, {4, 1});
  Expect(norm(-kInf), {2}, {0, 1});
  Expect(Call("norm", {Row({3, -4}, Scalar::kI16)}), {}, {5});
  norm(kNan);
  ExpectFailure("norm: order, got nan, expected a number");
}

}  // namespace
}  // namespace svod
