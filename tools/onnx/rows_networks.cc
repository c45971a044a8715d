// Rows of the operator table: products, convolutions, pooling, normalization.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/convolution.h"
#include "ir/operators/matmul.h"
#include "ir/operators/normalization.h"
#include "ir/operators/pooling.h"
#include "ir/operators/reductions.h"
#include "ir/operators/shaping.h"
#include "ir/operators/windows.h"
#include "tools/onnx/onnx_operators.h"
#include "tools/onnx/windows.h"

namespace svod {
namespace {

// A known matrix with rows and columns exchanged, so that what a product adds up lies in columns,
// which vectors read as they are: the packing of a weight, once for all runs.
const UOp* TransposedConstant(OnnxNode& node, size_t input) {
  constexpr int64_t kBlock = 32;  // elements a side: both matrices' lines stay in the cache
  std::optional<SharedTensor> matrix = node.KnownTensor(input);
  if (!matrix.has_value()) return nullptr;
  const int64_t rows = matrix->shape[0], columns = matrix->shape[1];
  const auto size = static_cast<size_t>(matrix->dtype.size_bytes());
  auto bytes =
      std::make_shared<std::vector<std::byte>>(static_cast<size_t>(matrix->num_elements()) * size);
  for (int64_t i = 0; i < rows; i += kBlock) {
    for (int64_t j = 0; j < columns; j += kBlock) {
      for (int64_t r = i; r < std::min(i + kBlock, rows); ++r) {
        for (int64_t c = j; c < std::min(j + kBlock, columns); ++c) {
          std::memcpy(bytes->data() + static_cast<size_t>(c * rows + r) * size,
                      matrix->data() + static_cast<size_t>(r * columns + c) * size, size);
        }
      }
    }
  }
  absl::Span<const std::byte> span(*bytes);
  return node.Constant({matrix->dtype, {columns, rows}, span, std::move(bytes)});
}

OnnxResults ImportMatMul(OnnxNode& node) {
  return {Matmul(node.builder(), node.input(0), node.input(1))};
}

OnnxResults ImportGemm(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  double alpha = node.Float("alpha", 1), beta = node.Float("beta", 1);
  MatmulOptions options;
  options.transpose_x = node.Bool("transA", false);
  options.transpose_y = node.Bool("transB", false);
  bool broadcast = node.version() >= 7 || node.Bool("broadcast", false);
  if (node.rank(0) != 2 || node.rank(1) != 2) return node.Fail("ranks of A and B, expected 2");
  const UOp* right = node.input(1);
  if (options.transpose_y && node.IsKnown(1)) {
    right = TransposedConstant(node, 1);
    options.transpose_y = false;
    if (right == nullptr) return {};
  }
  Expression y(builder, Matmul(builder, node.input(0), right, options));
  if (alpha != 1) y = y * alpha;
  if (node.has_input(2) && beta != 0) {
    Expression c(builder, node.input(2));
    if (!broadcast && node.rank(2) != 2) return node.Fail("rank of C, expected 2");
    if (beta != 1) c = c * beta;
    y = y + c;
  }
  return {y};
}

OnnxResults ImportConv(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp *x = node.input(0), *weight = node.input(1);
  std::optional<OnnxWindows> windows = ReadWindows(node, KernelOf(node, weight, 2));
  ConvolutionOptions options;
  options.groups = node.Int("group", 1);
  if (!windows.has_value()) return {};
  options.stride = windows->strides;
  options.padding = windows->pads;
  options.dilation = windows->dilations;
  return {Convolution(builder, x, weight, node.input(2), options)};
}

OnnxResults ImportConvTranspose(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp *x = node.input(0), *weight = node.input(1);
  std::vector<int64_t> shape = node.Ints("output_shape"), extra = node.Ints("output_padding");
  int automatic =
      node.Choice("auto_pad", "NOTSET", {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"});
  std::optional<OnnxWindows> windows = ReadWindows(node, KernelOf(node, weight, 2));
  ConvolutionOptions options;
  options.groups = node.Int("group", 1);
  if (!windows.has_value()) return {};
  size_t count = windows->kernel.size();
  if (extra.empty()) extra.assign(count, 0);
  // Some exporters give all dimensions.
  if (shape.size() == count + 2) shape.erase(shape.begin(), shape.begin() + 2);
  if (extra.size() != count || (!shape.empty() && shape.size() != count)) {
    return node.Fail(absl::StrCat("attributes 'output_padding' and 'output_shape', expected ",
                                  count, " numbers"));
  }
  bool is_same = automatic == 1 || automatic == 2;
  for (size_t i = 0; i < count && (is_same || !shape.empty()); ++i) {
    int64_t size = builder.ConstDim(x, 2 + static_cast<int64_t>(i), "output_shape");
    if (size < 0) return {};
    int64_t stride = windows->strides[i];
    int64_t wanted = shape.empty() ? size * stride : shape[i];
    int64_t reach = (windows->kernel[i] - 1) * windows->dilations[i] + 1;
    int64_t total = stride * (size - 1) + extra[i] + reach - wanted;
    if (total < 0) {
      extra[i] -= total;
      total = 0;
    }
    int64_t less = total / 2, more = total - less;
    windows->pads[i] = automatic == 1 ? less : more;
    windows->pads[i + count] = automatic == 1 ? more : less;
  }
  options.stride = windows->strides;
  options.padding = windows->pads;
  options.dilation = windows->dilations;
  options.output_padding = extra;
  return {TransposedConvolution(builder, x, weight, node.input(2), options)};
}

PoolOptions PoolOf(const OnnxWindows& windows, bool ceil_mode) {
  PoolOptions options;
  options.kernel = windows.kernel;
  options.stride = windows.strides;
  options.padding = windows.pads;
  options.dilation = windows.dilations;
  options.ceil_mode = ceil_mode;
  return options;
}

// Where each window's largest element is: its place in the whole tensor, row by row, or within an
// image column by column.
const UOp* MaxPositions(OnnxNode& node, const OnnxWindows& given, bool by_columns) {
  TensorBuilder& builder = node.builder();
  const UOp* x = node.input(0);
  auto count = static_cast<int64_t>(given.kernel.size());
  std::optional<WindowOptions> options = CheckWindows(builder, "max_pool", count, given.kernel,
                                                      given.strides, given.pads, given.dilations);
  if (!options.has_value()) return nullptr;
  double least = x->dtype().is_float() ? -std::numeric_limits<double>::infinity()
                                       : static_cast<double>(MinValue(x->dtype()));
  const UOp* padded = PadSpatial(builder, x, builder.Like(x, least), options->low, options->high);
  const UOp* windows = Windows(builder, "max_pool", padded, *options);
  Expression best(builder, Argmax(builder, Flatten(builder, windows, -count, -1), -1));
  if (!node.ok()) return nullptr;
  int rank = builder.RankOf(x);
  Expression place(builder, nullptr);
  // The element's coordinates, from those of the window and its place in it.
  std::vector<Expression> coordinates;
  for (int64_t i = 0; i < 2; ++i) {
    coordinates.push_back(PositionsAlong(builder, rank, i, builder.Dim(x, i), Scalar::kI64));
  }
  double inner = 1;
  for (int64_t i = count; i-- > 0;) {
    auto at = static_cast<size_t>(i);
    Expression step =
        best.Of(Op::kFloordiv, inner).Of(Op::kFloormod, static_cast<double>(given.kernel[at]));
    inner *= static_cast<double>(given.kernel[at]);
    Expression window =
        PositionsAlong(builder, rank, 2 + i, builder.Dim(best, 2 + i), Scalar::kI64);
    Expression element = window * static_cast<double>(given.strides[at]) +
                         step * static_cast<double>(given.dilations[at]) -
                         static_cast<double>(given.pads[at]);
    coordinates.insert(coordinates.begin() + 2, element);
  }
  std::vector<int64_t> order = {0, 1};
  for (int64_t i = 0; i < count; ++i) order.push_back(by_columns ? 1 + count - i : 2 + i);
  for (int64_t axis : order) {
    Expression coordinate = coordinates[static_cast<size_t>(axis)];
    Expression size = DimensionValue(builder, builder.Dim(x, axis), Scalar::kI64);
    place = axis == 0 ? coordinate : place * size + coordinate;
  }
  return place;
}

OnnxResults ImportMaxPool(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  node.Require("kernel_shape");
  bool ceil_mode = node.Bool("ceil_mode", false);
  bool by_columns = node.Int("storage_order", 0) != 0;
  std::optional<OnnxWindows> windows = ReadWindows(node, node.Ints("kernel_shape"));
  if (!windows.has_value()) return {};
  const UOp* y = MaxPool(builder, node.input(0), PoolOf(*windows, ceil_mode));
  if (!node.wants_output(1)) return {y};
  if (ceil_mode) return node.FailUnsupported("output 1 with ceil_mode=1");
  return {y, MaxPositions(node, *windows, by_columns)};
}

OnnxResults ImportAveragePool(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  node.Require("kernel_shape");
  bool ceil_mode = node.Bool("ceil_mode", false);
  bool count_pad = node.Bool("count_include_pad", false);
  std::optional<OnnxWindows> windows = ReadWindows(node, node.Ints("kernel_shape"));
  if (!windows.has_value()) return {};
  PoolOptions options = PoolOf(*windows, ceil_mode);
  options.count_include_pad = count_pad;
  return {AveragePool(builder, node.input(0), options)};
}

OnnxResults ImportGlobalMaxPool(OnnxNode& node) {
  return {GlobalMaxPool(node.builder(), node.input(0))};
}

OnnxResults ImportGlobalAveragePool(OnnxNode& node) {
  return {GlobalAveragePool(node.builder(), node.input(0))};
}

OnnxResults ImportBatchNormalization(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  double epsilon = node.Float("epsilon", 1e-5);
  double momentum = node.Float("momentum", 0.9);
  node.Ignore({"consumed_inputs"});
  bool is_test = true;
  if (node.version() < 7) is_test = node.Bool("is_test", node.version() < 1);
  if (node.version() < 9) node.Int("spatial", 1);
  bool training = node.version() >= 14 && node.Bool("training_mode", false);
  training = training || (!is_test && node.num_outputs() > 1);
  const UOp *x = node.input(0), *mean = node.input(3), *variance = node.input(4);
  // Scale and statistics may be wider than a half.
  DType dtype = x->dtype();
  auto as = [&](const UOp* value) { return builder.Cast(value, dtype); };
  if (!training) {
    return {BatchNorm(builder, x, as(mean), as(variance), as(node.input(1)), as(node.input(2)), 1,
                      epsilon)};
  }
  // Statistics of this batch, and those given moved towards them.
  ReduceOptions all;
  for (int64_t i = 0; i < node.rank(0); ++i) {
    if (i != 1) all.axes.push_back(i);
  }
  Expression own_mean(builder, Mean(builder, x, all));
  Expression own_variance(builder, Variance(builder, x, all));
  const UOp* y = BatchNorm(builder, x, own_mean, own_variance, as(node.input(1)), as(node.input(2)),
                           1, epsilon);
  auto moved = [&](const UOp* running, Expression own) {
    Expression wide(builder, builder.Cast(running, own.node()->dtype()));
    return builder.Cast(wide * momentum + own * (1 - momentum), running->dtype());
  };
  if (!node.ok()) return {};
  return {y, moved(mean, own_mean), moved(variance, own_variance)};
}

OnnxResults ImportInstanceNormalization(OnnxNode& node) {
  node.Ignore({"consumed_inputs"});
  return {InstanceNorm(node.builder(), node.input(0), node.input(1), node.input(2),
                       node.Float("epsilon", 1e-5))};
}

OnnxResults ImportDropout(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  node.Ignore({"consumed_inputs", "ratio", "seed", "is_test"});
  if (node.has_input(2)) {
    std::optional<std::vector<int64_t>> training = node.KnownInts(2);
    if (!training.has_value()) return {};
    bool drops = !training->empty() && (*training)[0] != 0;
    if (drops && node.has_input(1)) {
      std::optional<std::vector<double>> ratio = node.KnownNumbers(1);
      if (!ratio.has_value()) return {};
      drops = ratio->empty() || (*ratio)[0] != 0;
    }
    if (drops) return node.FailUnsupported("training");
  }
  const UOp* x = node.input(0);
  // Until opset 9 the mask was of the data's type.
  DType mask = node.version() < 10 ? x->dtype() : DType(Scalar::kBool);
  return {x, builder.Expand(builder.ConstInt(mask, 1), builder.ShapeOf(x))};
}

OnnxResults ImportLrn(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  node.Require("size");
  int64_t size = node.Int("size", 1);
  double alpha = node.Float("alpha", 1e-4), beta = node.Float("beta", 0.75);
  double bias = node.Float("bias", 1);
  if (size < 1 || node.rank(0) < 2) return node.Fail("size, expected at least 1");
  // Sums over channels c - (size - 1) / 2 to c + size / 2.
  return {InWide(builder, "lrn", node.input(0), [&](Expression x) {
    const UOp* zero = builder.Like(x, 0);
    int64_t before = (size - 1) / 2, after = size - 1 - before;
    const UOp* padded =
        builder.PadAxis(x * x, 1, zero, builder.Index(before), builder.Index(after));
    Expression sum(builder, nullptr);
    for (int64_t i = 0; i < size; ++i) {
      Expression part(builder, builder.ShrinkAxis(padded, 1, builder.Index(i), builder.Dim(x, 1)));
      sum = i == 0 ? part : sum + part;
    }
    Expression base = sum * (alpha / static_cast<double>(size)) + bias;
    return x / base.Of(Op::kPow, beta);
  })};
}

OnnxResults ImportLayerNormalization(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp* x = node.input(0);
  int64_t axis = builder.Axis(x, node.Int("axis", -1), "layer_norm");
  double epsilon = node.Float("epsilon", 1e-5);
  DType stash = node.TypeAttribute("stash_type", Scalar::kF32);
  if (axis < 0) return {};
  // Scale and bias broadcast to the normalized dimensions.
  ShapeSpan shape = builder.ShapeOf(x);
  Shape tail(shape.begin() + axis, shape.end());
  auto spread = [&](const UOp* value) {
    return value == nullptr ? nullptr : builder.Expand(value, tail);
  };
  OnnxResults results = {
      LayerNorm(builder, x, spread(node.input(1)), spread(node.input(2)), axis, epsilon)};
  if (node.num_outputs() == 1) return results;
  ReduceOptions over{{}, true};
  for (int64_t i = axis; i < node.rank(0); ++i) over.axes.push_back(i);
  const UOp* wide = builder.Cast(x, stash);
  results.push_back(Mean(builder, wide, over));
  Expression variance(builder, Variance(builder, wide, over));
  results.push_back((variance + epsilon).Of(Op::kSqrt).Of(Op::kRecip));
  return results;
}

OnnxResults ImportMeanVarianceNormalization(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  ReduceOptions over{node.Ints("axes", {0, 2, 3}), true};
  return {InWide(builder, "mean_variance_normalization", node.input(0), [&](Expression x) {
    Expression deviation(builder, StandardDeviation(builder, x, over));
    return (x - Expression(builder, Mean(builder, x, over))) / (deviation + 1e-9);
  })};
}

OnnxResults ImportGroupNormalization(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  double epsilon = node.Float("epsilon", 1e-5);
  node.Require("num_groups");
  int64_t groups = node.Int("num_groups", 1);
  node.TypeAttribute("stash_type", Scalar::kF32);
  const UOp *x = node.input(0), *scale = node.input(1), *bias = node.input(2);
  int64_t channels = builder.ConstDim(x, 1, "group_norm");
  if (channels < 0) return {};
  if (node.version() < 21 && groups > 0) {  // one scale a group
    scale = Repeat(builder, scale, channels / groups, 0);
    bias = Repeat(builder, bias, channels / groups, 0);
  }
  return {GroupNorm(builder, x, scale, bias, groups, epsilon)};
}

OnnxResults ImportLpNormalization(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  int64_t axis = node.Int("axis", -1), order = node.Int("p", 2);
  if (order != 1 && order != 2) return node.Fail("attribute 'p', expected 1 or 2");
  const UOp* norm = Norm(builder, node.input(0), static_cast<double>(order), {{axis}, true});
  return {builder.Make(Op::kFdiv, {node.input(0), norm})};
}

// (sum |x|^p)^(1/p) over a window: an average without what is padded, times the window's size.
const UOp* PowerMean(TensorBuilder& builder, const UOp* x, double order, double count,
                     const PoolOptions* pool) {
  return InWide(builder, "lp_pool", x, [&](Expression value) {
    Expression power = Abs(value).Of(Op::kPow, order);
    if (pool != nullptr) {
      Expression sum = Expression(builder, AveragePool(builder, power, *pool)) * count;
      return sum.Of(Op::kPow, 1 / order);
    }
    ReduceOptions over{{}, true};
    for (int64_t i = 2; i < builder.RankOf(x); ++i) over.axes.push_back(i);
    Expression sum(builder, Sum(builder, power, over, power.node()->dtype()));
    return sum.Of(Op::kPow, 1 / order);
  });
}

OnnxResults ImportLpPool(OnnxNode& node) {
  node.Require("kernel_shape");
  double order = node.version() == 1 ? node.Float("p", 2) : static_cast<double>(node.Int("p", 2));
  bool ceil_mode = node.Bool("ceil_mode", false);
  std::optional<OnnxWindows> windows = ReadWindows(node, node.Ints("kernel_shape"));
  if (!windows.has_value()) return {};
  if (ceil_mode) return node.FailUnsupported("ceil_mode=1");
  PoolOptions pool = PoolOf(*windows, false);
  double count = 1;
  for (int64_t size : windows->kernel) count *= static_cast<double>(size);
  return {PowerMean(node.builder(), node.input(0), order, count, &pool)};
}

OnnxResults ImportGlobalLpPool(OnnxNode& node) {
  double order = node.version() == 1 ? node.Float("p", 2) : static_cast<double>(node.Int("p", 2));
  return {PowerMean(node.builder(), node.input(0), order, 1, nullptr)};
}

}  // namespace

OnnxRows OnnxNetworkRows() {
  return {
      {"AveragePool", {1, 7, 10, 11, 19, 22}, 1, 1, ImportAveragePool},
      {"BatchNormalization",
       {1, 6, 7, 9, 14, 15},
       5,
       5,
       ImportBatchNormalization,
       "",
       "no training"},
      {"Conv", {1, 11, 22}, 2, 3, ImportConv},
      {"ConvTranspose", {1, 11, 22}, 2, 3, ImportConvTranspose},
      {"Dropout", {1, 6, 7, 10, 12, 13, 22}, 1, 3, ImportDropout, "", "no training"},
      {"Gemm", {1, 6, 7, 9, 11, 13}, 2, 3, ImportGemm},
      {"GlobalAveragePool", {1, 22}, 1, 1, ImportGlobalAveragePool},
      {"GlobalLpPool", {1, 2, 22}, 1, 1, ImportGlobalLpPool},
      {"GlobalMaxPool", {1, 22}, 1, 1, ImportGlobalMaxPool},
      {"GroupNormalization", {18, 21}, 3, 3, ImportGroupNormalization},
      {"InstanceNormalization", {1, 6, 22}, 3, 3, ImportInstanceNormalization},
      {"LRN", {1, 13}, 1, 1, ImportLrn},
      {"LayerNormalization", {17}, 2, 3, ImportLayerNormalization},
      {"LpNormalization", {1, 22}, 1, 1, ImportLpNormalization},
      {"LpPool", {1, 2, 11, 18, 22}, 1, 1, ImportLpPool},
      {"MatMul", {1, 9, 13}, 2, 2, ImportMatMul},
      {"MaxPool", {1, 8, 10, 11, 12, 22}, 1, 1, ImportMaxPool},
      {"MeanVarianceNormalization", {9, 13}, 1, 1, ImportMeanVarianceNormalization},
  };
}

}  // namespace svod
