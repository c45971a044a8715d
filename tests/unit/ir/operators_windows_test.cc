#include "tests/unit/ir/operator_tester.h"

namespace svod {
namespace {

// Convolution and pooling against plain loops over any number of spatial dimensions.
class OperatorsWindowsTest : public OperatorTest {
 protected:
  struct Case {
    Ints image, kernel, stride, padding, dilation;  // padding: low of each, then high
    int64_t groups = 1;
  };

  static int64_t Product(const Ints& dims) {
    int64_t product = 1;
    for (int64_t d : dims) product *= d;
    return product;
  }
  static Ints Places(int64_t flat, const Ints& dims) {
    Ints places(dims.size());
    for (size_t i = dims.size(); i-- > 0;) {
      places[i] = flat % dims[i];
      flat /= dims[i];
    }
    return places;
  }
  static Ints OutputOf(const Case& c) {
    Ints out;
    size_t n = c.image.size();
    for (size_t i = 0; i < n; ++i) {
      int64_t padded = c.image[i] + c.padding[i] + c.padding[n + i];
      out.push_back((padded - c.dilation[i] * (c.kernel[i] - 1) - 1) / c.stride[i] + 1);
    }
    return out;
  }
  // The place in the image that kernel element k of window o reads; -1 in the padding.
  static int64_t Read(const Case& c, const Ints& o, const Ints& k) {
    int64_t flat = 0;
    for (size_t i = 0; i < o.size(); ++i) {
      int64_t at = o[i] * c.stride[i] + k[i] * c.dilation[i] - c.padding[i];
      if (at < 0 || at >= c.image[i]) return -1;
      flat = flat * c.image[i] + at;
    }
    return flat;
  }
  static Ints Joined(Ints a, const Ints& with) {
    a.insert(a.end(), with.begin(), with.end());
    return a;
  }

  static std::vector<Case> Cases() {
    return {{{7}, {3}, {1}, {0, 0}, {1}, 1},
            {{7}, {3}, {2}, {1, 1}, {1}, 2},
            {{11}, {3}, {3}, {2, 0}, {2}, 1},
            {{5}, {1}, {2}, {0, 0}, {1}, 1},
            {{9}, {2}, {5}, {0, 1}, {3}, 4},
            {{8}, {3}, {3}, {0, 0}, {1}, 1},
            {{13}, {2}, {7}, {1, 1}, {4}, 1},
            {{5, 7}, {3, 2}, {1, 2}, {1, 0, 1, 1}, {1, 2}, 2},
            {{1, 4}, {1, 4}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},
            {{6, 5}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 4},
            {{3, 4, 5}, {2, 3, 2}, {1, 2, 1}, {1, 1, 0, 0, 1, 1}, {1, 1, 2}, 1}};
  }
};

TEST_F(OperatorsWindowsTest, ConvolutionIsItsDefinition) {
  int64_t batch = 2, channels = 4, outputs = 8;
  for (const Case& c : Cases()) {
    int64_t size = Product(c.image), kernel = Product(c.kernel), in_group = channels / c.groups;
    Numbers xs = Noise(batch * channels * size, 1), ws = Noise(outputs * in_group * kernel, 2);
    Numbers bias = Noise(outputs, 3), expected;
    Ints out = OutputOf(c);
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t o = 0; o < outputs; ++o) {
        for (int64_t p = 0; p < Product(out); ++p) {
          double sum = bias[static_cast<size_t>(o)];
          for (int64_t i = 0; i < in_group; ++i) {
            int64_t channel = o / (outputs / c.groups) * in_group + i;
            for (int64_t k = 0; k < kernel; ++k) {
              int64_t at = Read(c, Places(p, out), Places(k, c.kernel));
              if (at < 0) continue;
              sum += xs[static_cast<size_t>((n * channels + channel) * size + at)] *
                     ws[static_cast<size_t>((o * in_group + i) * kernel + k)];
            }
          }
          expected.push_back(sum);
        }
      }
    }
    const UOp* x = Given(Scalar::kF64, Joined({batch, channels}, c.image), xs);
    const UOp* w = Given(Scalar::kF64, Joined({outputs, in_group}, c.kernel), ws);
    const UOp* y = Call("conv", {x, w, Row(bias, Scalar::kF64)},
                        {{"stride", c.stride},
                         {"padding", c.padding},
                         {"dilation", c.dilation},
                         {"groups", c.groups}});
    Expect(y, Joined({batch, outputs}, out), expected, 1e-12);
  }
}

// The transpose: sum(conv(x) * y) is sum(x * conv_transpose(y)) for all x and y.
TEST_F(OperatorsWindowsTest, TransposedConvolutionIsTheTranspose) {
  int64_t batch = 2, channels = 4, outputs = 8;
  for (const Case& c : Cases()) {
    int64_t size = Product(c.image), kernel = Product(c.kernel), in_group = channels / c.groups;
    Ints out = OutputOf(c), extra;
    for (size_t i = 0; i < out.size(); ++i) {
      int64_t padded = c.image[i] + c.padding[i] + c.padding[out.size() + i];
      extra.push_back((padded - c.dilation[i] * (c.kernel[i] - 1) - 1) % c.stride[i]);
    }
    Numbers ys = Noise(batch * outputs * Product(out), 1);
    Numbers ws = Noise(outputs * in_group * kernel, 2);
    Numbers expected(static_cast<size_t>(batch * channels * size), 0);
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t o = 0; o < outputs; ++o) {
        for (int64_t p = 0; p < Product(out); ++p) {
          for (int64_t i = 0; i < in_group; ++i) {
            int64_t channel = o / (outputs / c.groups) * in_group + i;
            for (int64_t k = 0; k < kernel; ++k) {
              int64_t at = Read(c, Places(p, out), Places(k, c.kernel));
              if (at < 0) continue;
              expected[static_cast<size_t>((n * channels + channel) * size + at)] +=
                  ys[static_cast<size_t>((n * outputs + o) * Product(out) + p)] *
                  ws[static_cast<size_t>((o * in_group + i) * kernel + k)];
            }
          }
        }
      }
    }
    const UOp* y = Given(Scalar::kF64, Joined({batch, outputs}, out), ys);
    const UOp* w = Given(Scalar::kF64, Joined({outputs, in_group}, c.kernel), ws);
    const UOp* x = Call("conv_transpose", {y, w},
                        {{"stride", c.stride},
                         {"padding", c.padding},
                         {"dilation", c.dilation},
                         {"groups", c.groups},
                         {"output_padding", extra}});
    Expect(x, Joined({batch, channels}, c.image), expected, 1e-12);
  }
}

TEST_F(OperatorsWindowsTest, PoolingIsItsDefinition) {
  for (const Case& c : Cases()) {
    int64_t size = Product(c.image), kernel = Product(c.kernel);
    bool fits = true;
    for (size_t i = 0; i < c.image.size(); ++i) {
      int64_t most = std::max(c.padding[i], c.padding[c.image.size() + i]);
      fits = fits && most < c.dilation[i] * (c.kernel[i] - 1) + 1;
    }
    if (!fits) continue;
    Numbers xs = Noise(3 * size, 4), largest, mean, mean_inside;
    Ints out = OutputOf(c);
    for (int64_t channel = 0; channel < 3; ++channel) {
      for (int64_t p = 0; p < Product(out); ++p) {
        double sum = 0, most = -kInf, count = 0;
        for (int64_t k = 0; k < kernel; ++k) {
          int64_t at = Read(c, Places(p, out), Places(k, c.kernel));
          if (at < 0) continue;
          double number = xs[static_cast<size_t>(channel * size + at)];
          sum += number;
          most = std::max(most, number);
          ++count;
        }
        largest.push_back(most);
        mean.push_back(sum / static_cast<double>(kernel));
        mean_inside.push_back(sum / count);
      }
    }
    const UOp* x = Given(Scalar::kF64, Joined({1, 3}, c.image), xs);
    Attributes attributes = {{"kernel", c.kernel},
                             {"stride", c.stride},
                             {"padding", c.padding},
                             {"dilation", c.dilation}};
    Ints shape = Joined({1, 3}, out);
    Expect(Call("max_pool", {x}, attributes), shape, largest);
    Expect(Call("avg_pool", {x}, attributes), shape, mean, 1e-15);
    attributes.emplace_back("count_include_pad", false);
    Expect(Call("avg_pool", {x}, attributes), shape, mean_inside, 1e-15);
  }
}

TEST_F(OperatorsWindowsTest, CeilModeCountsOnlyWhatIsThere) {
  const UOp* x = Given(Scalar::kF32, {1, 1, 6}, {1, 2, 3, 4, 5, 9});
  Attributes plain = {{"kernel", Ints{3}}, {"stride", Ints{2}}};
  Expect(Call("max_pool", {x}, plain), {1, 1, 2}, {3, 5});
  Attributes ceil = plain;
  ceil.emplace_back("ceil_mode", true);
  Expect(Call("max_pool", {x}, ceil), {1, 1, 3}, {3, 5, 9});
  Expect(Call("avg_pool", {x}, ceil), {1, 1, 3}, {2, 4, 7});
  // Padding counts, what lies beyond it does not; a window that begins in the padding is left out.
  ceil.emplace_back("padding", Ints{1});
  Expect(Call("avg_pool", {x}, ceil), {1, 1, 4}, {1, 3, 6, 9.0 / 2}, 1e-7);
  Attributes apart = {
      {"kernel", Ints{2}}, {"stride", Ints{3}}, {"padding", Ints{1}}, {"ceil_mode", true}};
  const UOp* short_x = Given(Scalar::kF32, {1, 1, 5}, {1, 2, 3, 4, 5});
  Expect(Call("max_pool", {short_x}, apart), {1, 1, 2}, {1, 4});
}

TEST_F(OperatorsWindowsTest, MaximaOfIntegersAndNan) {
  const UOp* bytes = Given(Scalar::kI8, {1, 1, 3}, {-128, -5, -7});
  Attributes attributes = {{"kernel", Ints{2}}, {"stride", Ints{1}}, {"padding", Ints{1}}};
  Expect(Call("max_pool", {bytes}, attributes), {1, 1, 4}, {-128, -5, -5, -7});
  Expect(Call("avg_pool", {bytes}, {{"kernel", Ints{3}}}), {1, 1, 1}, {-140.0 / 3}, 1e-15);
  const UOp* x = Given(Scalar::kF32, {1, 1, 4}, {1, kNan, 0, -kInf});
  Expect(Call("max_pool", {x}, {{"kernel", Ints{2}}, {"stride", Ints{1}}}), {1, 1, 3},
         {kNan, kNan, 0});
  const UOp* image = Given(Scalar::kF32, {1, 2, 2, 2}, {1, 2, 3, 4, -1, -2, -3, -4});
  Expect(Call("global_max_pool", {image}), {1, 2, 1, 1}, {4, -1});
  Expect(Call("global_avg_pool", {image}), {1, 2, 1, 1}, {2.5, -2.5});
}

TEST_F(OperatorsWindowsTest, SumsOfConvolutionsInWiderIntegers) {
  const UOp* x = Given(Scalar::kI8, {1, 1, 3}, {100, 100, 100});
  const UOp* w = Given(Scalar::kI8, {1, 1, 3}, {100, 100, 100});
  Expect(Call("conv", {x, w}), {1, 1, 1}, {48});  // 30000 modulo 256, signed
  Expect(Call("conv", {x, w}, {{"dtype", DType(Scalar::kI32)}}), {1, 1, 1}, {30000});
  // 4096 products of 1 in bf16 would stick at 256.
  const UOp* ones = Given(Scalar::kBF16, {1, 4096, 1}, Numbers(4096, 1));
  const UOp* weights = Given(Scalar::kBF16, {1, 4096, 1}, Numbers(4096, 1));
  Expect(Call("conv", {ones, weights}), {1, 1, 1}, {4096});
}

TEST_F(OperatorsWindowsTest, BatchAndLengthMayBeSymbolic) {
  const UOp *n = b.Variable("n", 1, 9), *length = b.Variable("t", 3, 50);
  const UOp* x =
      Given(Scalar::kF32, Shape{n, b.Index(1), length}, {2, 1, 4}, {1, 2, 3, 4, 10, 20, 30, 40});
  const UOp* w = Given(Scalar::kF32, {1, 1, 3}, {1, 0, -1});
  variables = {{"n", 2}, {"t", 4}};
  const UOp* y = Call("conv", {x, w});
  EXPECT_EQ(ShapeOf(y), "f32[n, 1, t + -2]");
  Expect(y, {2, 1, 2}, {-2, -2, -20, -20});
  Expect(Call("conv_transpose", {y, w}), {2, 1, 4}, {-2, -2, 2, 2, -20, -20, 20, 20});
  Expect(Call("max_pool", {x}, {{"kernel", Ints{2}}, {"stride", Ints{1}}}), {2, 1, 3},
         {2, 3, 4, 20, 30, 40});
  // With strides, whether windows overlap, touch or lie apart.
  const UOp* strided = Call("conv", {x, w}, {{"stride", Ints{2}}, {"padding", Ints{1}}});
  EXPECT_EQ(ShapeOf(strided), "f32[n, 1, floordiv(t + 1, 2)]");
  Expect(strided, {2, 1, 2}, {-2, -2, -20, -20});
  Expect(Call("max_pool", {x}, {{"kernel", Ints{2}}}), {2, 1, 2}, {2, 4, 20, 40});
  Expect(Call("max_pool", {x}, {{"kernel", Ints{2}}, {"stride", Ints{3}}}), {2, 1, 1}, {2, 20});
  const UOp* point = Given(Scalar::kF32, {1, 1, 1}, {1});
  Expect(Call("conv", {x, point}, {{"stride", Ints{3}}}), {2, 1, 2}, {1, 4, 10, 40});
}

TEST_F(OperatorsWindowsTest, WhatDoesNotFitIsNamed) {
  const UOp* x = b.Param("x", Scalar::kF32, {1, 4, 5, 5});
  const UOp* w = b.Param("w", Scalar::kF32, {6, 2, 3, 3});
  Call("conv", {x, w});
  ExpectFailure(
      "conv: channels in 1 groups, got x f32[1, 4, 5, 5] and weight f32[6, 2, 3, 3], expected x "
      "[N, C, ...], weight [O, C / groups, ...]");
  Call("conv", {x, w}, {{"groups", int64_t{2}}, {"stride", Ints{1, 2, 3}}});
  ExpectFailure("conv: stride, got 3 numbers, expected 1 or 2");
  Call("conv", {x, w}, {{"groups", int64_t{2}}, {"dilation", Ints{3}}});
  ExpectFailure(
      "conv: window over 7 elements of dimension 3 of [1, 4, 5, 5] (padded), got 5, expected at "
      "least 7");
  Call("conv", {x, w, Row({1, 2})}, {{"groups", int64_t{2}}});
  ExpectFailure("conv: bias, got f32[2], expected f32[6]");
  Call("conv", {x, w}, {{"groups", int64_t{2}}, {"padding", Ints{-1}}});
  ExpectFailure("conv: padding, got -1, expected 0 to 2^31");
  Call("conv", {x, b.Param("i", Scalar::kI32, {6, 4, 3, 3})});
  EXPECT_THAT(std::string(b.Take().message()), ::testing::HasSubstr("weight i32[6, 4, 3, 3]"));
  Call("conv_transpose", {x, b.Param("v", Scalar::kF32, {4, 2, 3, 3})},
       {{"output_padding", Ints{1}}});
  ExpectFailure("conv_transpose: output_padding, got 1, expected less than stride or dilation");
  Call("max_pool", {x}, {{"kernel", Ints{2}}, {"padding", Ints{2}}});
  ExpectFailure("max_pool: padding, got 2 and 2, expected less than the window's 2");
  Call("avg_pool", {Row({1})}, {{"kernel", Ints{1}}});
  ExpectFailure("avg_pool: shape, got [1], expected [N, C, i...] with 1 to 3 spatial dimensions");
}

}  // namespace
}  // namespace svod
