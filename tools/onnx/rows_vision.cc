// Rows of the operator table: sampling of images, pooling with positions, determinants.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/indexing.h"
#include "ir/operators/pooling.h"
#include "ir/operators/reductions.h"
#include "ir/operators/shaping.h"
#include "tools/onnx/onnx_operators.h"
#include "tools/onnx/windows.h"

namespace svod {
namespace {

// --- Sampling ------------------------------------------------------------------------------------

enum Padding { kZeros, kBorder, kReflection };

// Images [N, C, H, W] that are read at places [N, P] of floats that are whole.
class Sampler {
 public:
  Sampler(TensorBuilder& builder, const UOp* images, int padding, bool align_corners)
      : builder_(builder), padding_(padding), align_corners_(align_corners) {
    flat_ = Flatten(builder, images, 2, 3);
    height_ = builder.Dim(images, 2);
    width_ = builder.Dim(images, 3);
  }

  Expression Size(bool is_x, Expression like) const {
    return DimensionValue(builder_, is_x ? width_ : height_, like.node()->dtype());
  }
  // -1 to 1 as pixels.
  Expression Pixel(Expression x, bool is_x) const {
    Expression size = Size(is_x, x);
    if (align_corners_) return (x + 1.0) * 0.5 * (size - 1.0);
    return ((x + 1.0) * size - 1.0) * 0.5;
  }
  // What lies outside brought inside, as the padding says.
  Expression Inside(Expression x, bool is_x) const {
    Expression size = Size(is_x, x);
    if (padding_ == kBorder) return Max(Min(x, size - 1.0), 0.0);
    if (padding_ != kReflection) return x;
    double low = align_corners_ ? 0 : -0.5;
    Expression span = align_corners_ ? Max(size - 1.0, 1.0) : size;
    Expression distance = Abs(x - low);
    Expression flips = (distance / span).Of(Op::kFloor);
    Expression rest = distance - flips * span;
    Expression is_even = Equal((flips * 0.5).Of(Op::kFloor) * 2.0, flips);
    Expression reflected = Select(is_even, rest, span - rest) + low;
    return Max(Min(reflected, size - 1.0), 0.0);
  }
  // [N, C, P]: the elements at whole places; 0 outside.
  Expression At(Expression y, Expression x) const {
    Expression inner_y = Inside(y, false), inner_x = Inside(x, true);
    Expression width = Size(true, x), height = Size(false, y);
    Expression is_inside = And(And(inner_x >= 0.0, inner_x <= width - 1.0),
                               And(inner_y >= 0.0, inner_y <= height - 1.0));
    Expression row(builder_, builder_.Cast(inner_y, Scalar::kI64));
    Expression column(builder_, builder_.Cast(inner_x, Scalar::kI64));
    Expression place = row * DimensionValue(builder_, width_, Scalar::kI64) + column;
    place = Select(is_inside, place, 0.0);
    Expression value(builder_, TakeAlongAxis(builder_, flat_, builder_.Unsqueeze(place, 1), 2));
    return Select({builder_, builder_.Unsqueeze(is_inside, 1)}, value, 0.0);
  }

 private:
  TensorBuilder& builder_;
  const int padding_;
  const bool align_corners_;
  const UOp *flat_, *height_, *width_;
};

Expression CubicWeight(Expression x, double a) {
  Expression near = ((x * (a + 2) - (a + 3)) * x * x) + 1.0;
  Expression far = ((x * a - 5 * a) * x + 8 * a) * x - 4 * a;
  return Select(x <= 1.0, near, far);
}

OnnxResults ImportGridSample(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  bool is_old = node.version() < 20;
  int mode = is_old ? node.Choice("mode", "bilinear", {"bilinear", "nearest", "bicubic"})
                    : node.Choice("mode", "linear", {"linear", "nearest", "cubic"});
  int padding = node.Choice("padding_mode", "zeros", {"zeros", "border", "reflection"});
  bool align_corners = node.Bool("align_corners", false);
  if (!node.ok()) return {};
  if (node.rank(0) != 4 || node.rank(1) != 4) return node.FailUnsupported("a rank other than 4");
  const UOp *x = node.input(0), *grid = node.input(1);
  Sampler sampler(builder, x, padding, align_corners);
  auto coordinate = [&](int64_t i) {  // [N, Ho * Wo]
    const UOp* part = builder.ShrinkAxis(grid, 3, builder.Index(i), builder.Index(1));
    Expression flat(builder, Flatten(builder, part, 1, 3));
    return sampler.Inside(sampler.Pixel(flat, i == 0), i == 0);
  };
  Expression column = coordinate(0), row = coordinate(1);
  auto weighted = [&](Expression value, Expression weight) {
    Expression spread(builder, builder.Unsqueeze(weight, 1));
    return value * Expression(builder, builder.Cast(spread, x->dtype()));
  };
  Expression result(builder, nullptr);
  if (mode == 1) {
    result = sampler.At(row.Of(Op::kRound), column.Of(Op::kRound));
  } else {
    int64_t taps = mode == 0 ? 2 : 4;
    Expression left = column.Of(Op::kFloor), top = row.Of(Op::kFloor);
    if (mode == 2) {
      left = left - 1.0;
      top = top - 1.0;
    }
    auto weight = [&](Expression place, Expression at) {
      Expression distance = Abs(at - place);
      return mode == 0 ? 1.0 - distance : CubicWeight(distance, -0.75);
    };
    for (int64_t i = 0; i < taps; ++i) {
      Expression y = top + static_cast<double>(i);
      for (int64_t k = 0; k < taps; ++k) {
        Expression at = left + static_cast<double>(k);
        Expression part = weighted(sampler.At(y, at), weight(row, y) * weight(column, at));
        result = i == 0 && k == 0 ? part : result + part;
      }
    }
  }
  if (!node.ok()) return {};
  Shape shape = {builder.Dim(x, 0), builder.Dim(x, 1), builder.Dim(grid, 1), builder.Dim(grid, 2)};
  return {builder.Reshape(result, shape)};
}

OnnxResults ImportRoiAlign(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  int64_t height = node.Int("output_height", 1), width = node.Int("output_width", 1);
  int64_t ratio = node.Int("sampling_ratio", 0);
  double scale = node.Float("spatial_scale", 1);
  int mode = node.Choice("mode", "avg", {"avg", "max"});
  bool is_aligned =
      node.version() >= 16 && node.Choice("coordinate_transformation_mode", "half_pixel",
                                          {"half_pixel", "output_half_pixel"}) == 0;
  if (mode != 0) return node.FailUnsupported("mode=max");
  if (ratio <= 0) return node.FailUnsupported("sampling_ratio=0");
  if (node.rank(0) != 4 || node.rank(1) != 2 || height < 1 || width < 1) {
    return node.Fail("ranks of X and rois, expected 4 and 2");
  }
  const UOp *x = node.input(0), *rois = node.input(1);
  const UOp* images = Take(builder, x, node.input(2), 0);  // [R, C, H, W]
  Sampler sampler(builder, images, kZeros, true);
  double shift = is_aligned ? 0.5 : 0;
  auto edge = [&](int64_t i) {  // [R, 1]
    Expression at(builder, builder.ShrinkAxis(rois, 1, builder.Index(i), builder.Index(1)));
    return at * scale - shift;
  };
  // The places of all samples along one side: [R, count * ratio].
  auto places = [&](int64_t begin_at, int64_t end_at, int64_t count) {
    Expression begin = edge(begin_at), length = edge(end_at) - begin;
    if (!is_aligned) length = Max(length, 1.0);
    Expression steps(builder, builder.Arange(builder.Index(count * ratio), rois->dtype()));
    Expression fraction = (steps + 0.5) / static_cast<double>(count * ratio);
    return begin + length * Expression(builder, builder.Unsqueeze(fraction, 0));
  };
  int64_t rows = height * ratio, columns = width * ratio;
  const UOp* num_rois = builder.Dim(rois, 0);
  if (!node.ok()) return {};
  Shape all = {num_rois, builder.Index(rows), builder.Index(columns)};
  auto spread = [&](Expression at, int64_t axis) {  // [R, rows * columns]
    return Expression(builder,
                      Flatten(builder, builder.Expand(builder.Unsqueeze(at, axis), all), 1, 2));
  };
  Expression y = spread(places(1, 3, height), 2), at = spread(places(0, 2, width), 1);
  Expression h = sampler.Size(false, y), w = sampler.Size(true, y);
  Expression is_near = And(And(y >= -1.0, y <= h), And(at >= -1.0, at <= w));
  y = Min(Max(y, 0.0), h - 1.0);
  at = Min(Max(at, 0.0), w - 1.0);
  Expression top = y.Of(Op::kFloor), left = at.Of(Op::kFloor), sum(builder, nullptr);
  for (int i = 0; i < 4; ++i) {
    Expression row = i < 2 ? top : Min(top + 1.0, h - 1.0);
    Expression column = i % 2 == 0 ? left : Min(left + 1.0, w - 1.0);
    Expression weight_y = i < 2 ? 1.0 - (y - top) : y - top;
    Expression weight_x = i % 2 == 0 ? 1.0 - (at - left) : at - left;
    Expression weight(builder, builder.Unsqueeze(weight_y * weight_x, 1));
    Expression part = sampler.At(row, column) * weight;
    sum = i == 0 ? part : sum + part;
  }
  sum = Select({builder, builder.Unsqueeze(is_near, 1)}, sum, 0.0);
  if (!node.ok()) return {};
  const UOp* ratio_dim = builder.Index(ratio);
  Shape apart = {num_rois,  builder.Dim(x, 1),    builder.Index(height),
                 ratio_dim, builder.Index(width), ratio_dim};
  return {Mean(builder, builder.Reshape(sum, apart), {{3, 5}, false})};
}

// --- Pooling with positions ----------------------------------------------------------------------

OnnxResults ImportMaxUnpool(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  node.Require("kernel_shape");
  std::optional<OnnxWindows> windows = ReadWindows(node, node.Ints("kernel_shape"));
  if (!windows.has_value()) return {};
  const UOp* x = node.input(0);
  ShapeSpan from = builder.ShapeOf(x);
  Shape shape(from.begin(), from.end());
  size_t count = windows->kernel.size();
  Dims& dims = builder.dims();
  for (size_t i = 0; i < count; ++i) {
    const UOp* steps = dims.Sub(shape[2 + i], builder.Index(1));
    int64_t more = windows->kernel[i] - windows->pads[i] - windows->pads[i + count];
    shape[2 + i] =
        dims.Add(dims.Mul(steps, builder.Index(windows->strides[i])), builder.Index(more));
  }
  const UOp* empty = builder.Expand(builder.Like(x, 0), Shape{dims.Product(shape)});
  const UOp* filled =
      ScatterElements(builder, empty, Flatten(builder, node.input(1)), Flatten(builder, x), 0);
  const UOp* y = builder.Reshape(filled, shape);
  if (!node.has_input(2)) return {y};
  // A larger result has zeros behind.
  std::optional<Shape> wanted = node.KnownDims(2);
  if (!wanted.has_value()) return {};
  if (wanted->size() != shape.size()) return node.Fail("output_shape, expected X's rank");
  for (size_t i = 0; i < shape.size(); ++i) {
    y = builder.PadAxis(y, static_cast<int64_t>(i), builder.Like(x, 0), builder.Index(0),
                        dims.Sub((*wanted)[i], shape[i]));
  }
  return {y};
}

// --- Determinants --------------------------------------------------------------------------------

// Gaussian elimination with the largest pivot of each column.
OnnxResults ImportDet(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  constexpr int64_t kMaxSize = 32;
  const UOp* x = node.input(0);
  if (node.rank(0) < 2) return node.Fail("rank, expected at least 2");
  int64_t size = builder.ConstDim(x, -1, "det"), rows = builder.ConstDim(x, -2, "det");
  if (size < 1 || rows != size) return node.Fail("matrices, expected square ones");
  if (size > kMaxSize) return node.FailUnsupported(absl::StrCat("a matrix of ", size, " rows"));
  Expression a = Widen(builder, x);
  int rank = builder.RankOf(x);
  Expression result(builder, nullptr);
  auto at = [&](Expression matrix, int64_t axis, int64_t i, int64_t count) {
    return Expression(builder,
                      builder.ShrinkAxis(matrix, axis, builder.Index(i), builder.Index(count)));
  };
  for (int64_t k = 0; k < size && node.ok(); ++k) {
    int64_t left = size - k;  // a is [..., left, left]
    Expression column = at(a, -1, 0, 1);
    Expression pivot(builder, Argmax(builder, Abs(column), -2, true));  // [..., 1, 1]
    Expression row = PositionsAlong(builder, rank, rank - 2, builder.Index(left), Scalar::kI64);
    // The first row and that of the pivot change places.
    Expression order = Select(Equal(row, pivot), row.Of(Op::kMul, 0), row);
    order = Select(Equal(row, 0), pivot, order);
    a = Expression(builder, builder.Contiguous(TakeAlongAxis(builder, a, order, -2)));
    Expression corner = at(at(a, -1, 0, 1), -2, 0, 1);
    Expression factor = Select(Equal(pivot, 0), corner, -corner);
    result = k == 0 ? factor : result * factor;
    if (left == 1) break;
    Expression below = at(a, -2, 1, left - 1);
    Expression share = at(below, -1, 0, 1) / Select(Equal(corner, 0.0), 1.0, corner);
    a = at(below, -1, 1, left - 1) - share * at(at(a, -2, 0, 1), -1, 1, left - 1);
    a = Expression(builder, builder.Contiguous(a));
  }
  const UOp* scalar = builder.Squeeze(builder.Squeeze(result, -1), -1);
  return {builder.Cast(scalar, x->dtype())};
}

}  // namespace

OnnxRows OnnxVisionRows() {
  return {
      {"Det", {11, 22}, 1, 1, ImportDet, "", "at most 32 rows"},
      {"GridSample", {16, 20, 22}, 2, 2, ImportGridSample, "", "images of two dimensions"},
      {"MaxUnpool", {9, 11, 22}, 2, 3, ImportMaxUnpool},
      {"RoiAlign", {10, 16, 22}, 3, 3, ImportRoiAlign, "", "mode avg, a sampling_ratio above 0"},
  };
}

}  // namespace svod
