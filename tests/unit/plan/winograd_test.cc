// Winograd's forms: that they compute convolutions, within their bound, and which sums they take.
#include "plan/winograd.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "gmock/gmock.h"
#include "ir/evaluate_graph.h"
#include "ir/operators/convolution.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "plan/schedule.h"
#include "plan/winograd_form.h"
#include "tests/unit/ir/tensor_values.h"

namespace svod {
namespace {

constexpr double kAnyError = 1;

TEST(WinogradFormTest, TilesAreConvolutions) {
  for (const WinogradForm& form : WinogradForms()) {
    const auto n = static_cast<size_t>(form.patch()), m = static_cast<size_t>(form.tile);
    auto element = [](size_t i, size_t j) { return static_cast<double>((i * 5 + j * 3) % 7) - 3; };
    for (size_t y = 0; y < m; ++y) {
      for (size_t x = 0; x < m; ++x) {
        double direct = 0, sum = 0;
        for (size_t a = 0; a < 3; ++a) {
          for (size_t b = 0; b < 3; ++b) direct += element(y + a, x + b) * element(a, b + 1);
        }
        for (size_t i = 0; i < n; ++i) {
          for (size_t j = 0; j < n; ++j) {
            double d = 0, g = 0;
            for (size_t a = 0; a < n; ++a) {
              for (size_t b = 0; b < n; ++b) {
                d += form.input[i][a] * element(a, b) * form.input[j][b];
                if (a < 3 && b < 3)
                  g += form.weights[i][a] * element(a, b + 1) * form.weights[j][b];
              }
            }
            sum += form.output[y][i] * d * g * form.output[x][j];
          }
        }
        EXPECT_NEAR(sum, direct, 1e-12) << form.tile;
      }
    }
  }
}

TEST(WinogradFormTest, ErrorsAreTheFormsNorms) {
  const double u = std::ldexp(1.0, -24);
  absl::Span<const WinogradForm> forms = WinogradForms();
  // (1 + 1 + 1 + 1 + 1) * 4.8 = 48 along each of two dimensions, 91 roundings.
  EXPECT_NEAR(WinogradError(forms[0], 64), 91 * u * 48 * 48 / 9, 1e-7);
  EXPECT_NEAR(WinogradError(forms[1], 64), 83 * u * 8 * 8 / 9, 1e-9);
  EXPECT_GT(WinogradError(forms[0], 512), WinogradError(forms[0], 64));
}

TEST(WinogradFormTest, FewerProductsAreChosenWhereTheyPayAndAreExactEnough) {
  const ConvolutionSize layer = {1, 56, 56, 64, 64};
  auto tile = [](const ConvolutionSize& size, double error) {
    const WinogradForm* form = ChooseWinogradForm(size, error);
    return form == nullptr ? 0 : form->tile;
  };
  EXPECT_EQ(tile(layer, kAnyError), 4);
  EXPECT_EQ(tile(layer, 1e-4), 2);
  EXPECT_EQ(tile(layer, 1e-5), 0);
  EXPECT_EQ(tile({1, 224, 224, 3, 64}, kAnyError), 0);  // transforms cost more than they save
  EXPECT_EQ(tile({1, 7, 7, 64, 64}, kAnyError), 0);     // so do those of weights, unless they are
  EXPECT_EQ(tile({1, 7, 7, 64, 64, true}, kAnyError), 4);  // done beforehand
}

// Rounded to a multiple of 2^-10 in [-1, 1].
TensorValue Noise(std::vector<int64_t> shape, uint64_t seed) {
  TensorValue value = ZeroTensor(Scalar::kF32, std::move(shape));
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const double number = static_cast<double>(static_cast<int64_t>(seed >> 53) - 1024) / 1024;
    value.SetBitsAt(i, DoubleToBits(Scalar::kF32, number));
  }
  return value;
}

class WinogradTest : public ::testing::Test {
 protected:
  const UOp* Given(TensorValue value, ShapeSpan shape) {
    params_.push_back(std::move(value));
    return b_.Param("", Scalar::kF32, shape);
  }
  const UOp* Given(std::vector<int64_t> shape) {
    TensorValue value = Noise(shape, params_.size() + 1);
    return Given(std::move(value), b_.ConstShape(shape));
  }

  // How many convolutions of the graph are rewritten. Where any are, the results have the direct
  // ones' shape and are as near to them as both bounds say, of sums over `channels`.
  int Rewritten(const UOp* result, int64_t channels, double max_error = kAnyError,
                std::vector<std::pair<std::string, int64_t>> variables = {},
                std::vector<const UOp*> constants = {}) {
    absl::StatusOr<Function> graph = b_.Finish("g", {result});
    EXPECT_TRUE(graph.ok()) << graph.status();
    if (!graph.ok()) return -1;
    Function other = *graph;
    absl::StatusOr<int> count =
        RewriteConvolutions(&other, b_.shared_context(), max_error, constants);
    EXPECT_TRUE(count.ok()) << count.status();
    if (!count.ok()) return -1;
    if (*count == 0) {
      EXPECT_EQ(other.root, graph->root);
      return 0;
    }
    EXPECT_TRUE(Verify(other).ok()) << Verify(other);
    const EvaluateGraphOptions options{variables, int64_t{1} << 32};
    auto direct = EvaluateGraph(*graph, params_, options);
    auto got = EvaluateGraph(other, params_, options);
    EXPECT_TRUE(direct.ok()) << direct.status();
    EXPECT_TRUE(got.ok()) << got.status();
    if (!direct.ok() || !got.ok()) return -1;
    EXPECT_EQ((*direct)[0].shape, (*got)[0].shape);
    // Operands are at most 1. The direct sum rounds each of its products and additions.
    const double terms = 9 * static_cast<double>(channels);
    double bound = 0, furthest = 0;
    for (const WinogradForm& form : WinogradForms()) {
      const double error = WinogradError(form, channels);
      if (error <= max_error) bound = std::max(bound, (error + terms * 0x1p-23) * terms);
    }
    for (int64_t i = 0; i < (*direct)[0].num_elements(); ++i) {
      furthest = std::max(furthest, std::fabs(NumberAt((*direct)[0], i) - NumberAt((*got)[0], i)));
    }
    EXPECT_LE(furthest, bound);
    EXPECT_GT(furthest, 0);  // or nothing was computed otherwise
    return *count;
  }

  const UOp* Conv(const UOp* x, const UOp* w, const ConvolutionOptions& options = {}) {
    return Convolution(b_, x, w, nullptr, options);
  }

  TensorBuilder b_{std::make_shared<Context>()};
  std::vector<TensorValue> params_;
};

struct SizedConvolution {
  std::vector<int64_t> x;
  int64_t outputs;
  std::vector<int64_t> padding;
};

class WinogradSizesTest : public WinogradTest,
                          public ::testing::WithParamInterface<SizedConvolution> {};

TEST_P(WinogradSizesTest, IsTheConvolution) {
  const auto& [shape, outputs, padding] = GetParam();
  const UOp* x = Given(shape);
  const UOp* w = Given({outputs, shape[1], 3, 3});
  EXPECT_EQ(Rewritten(Conv(x, w, {.padding = padding}), shape[1], kAnyError, {}, {w}), 1);
}

INSTANTIATE_TEST_SUITE_P(Sizes, WinogradSizesTest,
                         ::testing::Values(SizedConvolution{{1, 24, 16, 16}, 24, {1}},
                                           SizedConvolution{{1, 25, 17, 13}, 31, {}},
                                           SizedConvolution{{2, 33, 9, 10}, 37, {2, 1}},
                                           SizedConvolution{{3, 40, 8, 7}, 48, {0, 2, 3, 5}}));

TEST_F(WinogradTest, TheFormWithTheSmallerErrorWhereOnlyThatIsAllowed) {
  const UOp* x = Given({1, 64, 12, 12});
  const UOp* w = Given({64, 64, 3, 3});
  EXPECT_EQ(Rewritten(Conv(x, w, {.padding = {1}}), 64, 1e-4, {}, {w}), 1);
  EXPECT_EQ(Rewritten(Conv(x, w, {.padding = {1}}), 64, 1e-6, {}, {w}), 0);
}

TEST_F(WinogradTest, AsManyPicturesAsAVariableSays) {
  const UOp* n = b_.Variable("n", 1, 4);
  const UOp* x = Given(Noise({3, 24, 12, 12}, 5), {n, b_.Index(24), b_.Index(12), b_.Index(12)});
  const UOp* w = Given({24, 24, 3, 3});
  EXPECT_EQ(Rewritten(Conv(x, w, {.padding = {1}}), 24, kAnyError, {{"n", 3}}, {w}), 1);
}

// Channels last, the window of weights first and as nine products of shifted pictures side by side.
TEST_F(WinogradTest, HoweverTheSumIsWritten) {
  const UOp* x = Given({1, 14, 14, 24});
  const UOp* w = Given({3, 3, 24, 24});
  std::vector<const UOp*> rows;
  const UOp* wide = b_.Unsqueeze(b_.Unsqueeze(x, 1), 3);  // [1, 1, 14, 1, 14, 24]
  wide = b_.Expand(wide, b_.ConstShape({1, 4, 14, 4, 14, 24}));
  wide = b_.Reshape(wide, {1, 56, 56, 24});
  wide = b_.Shrink(wide, b_.ConstShape({0, 0, 0, 0}), b_.ConstShape({1, 45, 45, 24}));
  wide = b_.Reshape(wide, {1, 3, 15, 3, 15, 24});
  wide = b_.Shrink(wide, b_.ConstShape({0, 0, 0, 0, 0, 0}), b_.ConstShape({1, 3, 12, 3, 12, 24}));
  wide = b_.Unsqueeze(b_.Permute(wide, {0, 2, 4, 1, 3, 5}), -1);  // [1, 12, 12, 3, 3, 24, 1]
  EXPECT_EQ(Rewritten(b_.ReduceAxis(ReduceKind::kAdd, b_.Mul(w, wide), {3, 4, 5}, true), 24,
                      kAnyError, {}, {w}),
            1);
}

TEST_F(WinogradTest, MirroredWeights) {
  const UOp* x = Given({1, 48, 12, 12});
  const UOp* w = Given({48, 48, 3, 3});
  EXPECT_EQ(Rewritten(TransposedConvolution(b_, x, w, nullptr), 48, kAnyError, {}, {w}), 1);
}

TEST_F(WinogradTest, OneAfterAnotherWithWhatStandsBetween) {
  const UOp* x = Given({1, 24, 12, 12});
  const UOp* w = Given({24, 24, 3, 3});
  const UOp* y = Conv(x, w, {.padding = {1}});
  y = b_.Make(Op::kMax, {b_.Mul(y, b_.Like(y, 1.0 / 256)), b_.Like(y, 0)});
  // What the first is off by, at most doubled by the second.
  EXPECT_EQ(Rewritten(b_.Add(Conv(y, w, {.padding = {1}}), y), 3 * 24, kAnyError, {}, {w}), 2);
}

TEST_F(WinogradTest, OtherSumsStayAsTheyAre) {
  const UOp* x = Given({1, 64, 24, 24});
  const UOp* w = Given({64, 64, 3, 3});
  EXPECT_EQ(Rewritten(Conv(x, w), 64, 0), 0);
  EXPECT_EQ(Rewritten(Conv(x, w, {.stride = {2}}), 64), 0);
  EXPECT_EQ(Rewritten(Conv(x, w, {.dilation = {2}}), 64), 0);
  EXPECT_EQ(Rewritten(Conv(x, Given({64, 32, 3, 3}), {.groups = 2}), 64), 0);
  EXPECT_EQ(Rewritten(Conv(x, Given({64, 1, 3, 3}), {.groups = 64}), 64), 0);
  EXPECT_EQ(Rewritten(Conv(x, Given({64, 64, 5, 5})), 64), 0);
  EXPECT_EQ(Rewritten(Conv(x, Given({64, 64, 3, 1})), 64), 0);
  EXPECT_EQ(Rewritten(Conv(x, w, {.dtype = Scalar::kF64}), 64), 0);
  EXPECT_EQ(Rewritten(b_.ReduceAxis(ReduceKind::kMax, x, {1}, false), 64), 0);
  const UOp* high = b_.Variable("h", 16, 64);
  const UOp* tall = b_.Param("tall", Scalar::kF32, {b_.Index(1), b_.Index(64), high, b_.Index(24)});
  EXPECT_EQ(Rewritten(Conv(tall, w), 64), 0);
}

TEST_F(WinogradTest, SchedulesTakeItWhereTheyAreAsked) {
  const UOp* x = Given({1, 32, 24, 24});
  const UOp* w = Given({48, 32, 3, 3});
  const UOp* bias = Given({48, 1, 1});
  const UOp* y = b_.Add(Conv(x, w, {.padding = {1}}), bias);
  absl::StatusOr<Function> graph = b_.Finish("g", {b_.Make(Op::kMax, {y, b_.Like(y, 0)})});
  ASSERT_TRUE(graph.ok()) << graph.status();
  absl::StatusOr<Schedule> as_written = ScheduleGraph(*graph);
  ASSERT_TRUE(as_written.ok()) << as_written.status();
  EXPECT_EQ(as_written->module.functions.size(), 2u);
  absl::StatusOr<Schedule> schedule = ScheduleGraph(*graph, {.winograd_error = kAnyError});
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  // Pictures, patches, two of weights, products, tiles, and results with bias and activation.
  EXPECT_EQ(schedule->module.functions.size(), 7u + 1u);
  auto direct = EvaluateGraph(*graph, params_);
  auto got = EvaluateGraph(schedule->module.functions.back(), params_);
  ASSERT_TRUE(direct.ok()) << direct.status();
  ASSERT_TRUE(got.ok()) << got.status();
  for (int64_t i = 0; i < (*got)[0].num_elements(); ++i) {
    ASSERT_NEAR(NumberAt((*got)[0], i), NumberAt((*direct)[0], i), 1e-3);
  }
}

}  // namespace
}  // namespace svod
