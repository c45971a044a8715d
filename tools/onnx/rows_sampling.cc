// Rows of the operator table: images that are read at computed places.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/indexing.h"
#include "ir/operators/matmul.h"
#include "ir/operators/reductions.h"
#include "ir/operators/shaping.h"
#include "tools/onnx/onnx_operators.h"
#include "tools/onnx/sampler.h"
#include "tools/onnx/windows.h"

namespace svod {
namespace {

// Element i of the last dimension, without it.
Expression LastElement(TensorBuilder& builder, const UOp* x, int64_t i) {
  const UOp* part = builder.ShrinkAxis(x, -1, builder.Index(i), builder.Index(1));
  return {builder, builder.Squeeze(part, -1)};
}

OnnxResults ImportGridSample(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  bool is_old = node.version() < 20;
  int mode = is_old ? node.Choice("mode", "bilinear", {"bilinear", "nearest", "bicubic"})
                    : node.Choice("mode", "linear", {"linear", "nearest", "cubic"});
  int padding = node.Choice("padding_mode", "zeros", {"zeros", "border", "reflection"});
  bool align_corners = node.Bool("align_corners", false);
  if (!node.ok()) return {};
  int64_t rank = node.rank(0), num_dims = rank - 2;
  if (rank < 4 || rank > 5 || node.rank(1) != rank) {
    return node.Fail(absl::StrCat("ranks of X and grid, got ", rank, " and ", node.rank(1),
                                  ", expected both 4 or both 5"));
  }
  if (mode == 2 && rank != 4) return node.Fail("mode, got cubic, expected another for rank 5");
  const UOp *x = node.input(0), *grid = node.input(1);
  if (!IsConstInt(builder.Dim(grid, -1), num_dims)) {
    return node.Fail(absl::StrCat("grid, got ", ShapeToString(builder.ShapeOf(grid)),
                                  ", expected a last dimension of ", num_dims));
  }
  Sampler sampler(builder, x, static_cast<SamplePadding>(padding), align_corners);
  const UOp* flat = Flatten(builder, grid, 1, num_dims);  // [N, P, dims]
  std::vector<Expression> places;
  for (int64_t i = 0; i < num_dims; ++i) {
    // The grid has the last dimension first, from -1 to 1.
    Expression at = LastElement(builder, flat, num_dims - 1 - i);
    auto axis = static_cast<size_t>(i);
    Expression size = sampler.Size(axis, at);
    Expression pixel =
        align_corners ? (at + 1.0) * 0.5 * (size - 1.0) : ((at + 1.0) * size - 1.0) * 0.5;
    pixel = sampler.Inside(pixel, axis);
    places.push_back(mode == 1 ? pixel.Of(Op::kRound) : pixel);
  }
  Expression result = mode == 1   ? sampler.At(places)
                      : mode == 0 ? sampler.Linear(places)
                                  : sampler.Cubic(places);
  if (!node.ok()) return {};
  Shape shape = {builder.Dim(x, 0), builder.Dim(x, 1)};
  for (int64_t i = 1; i <= num_dims; ++i) shape.push_back(builder.Dim(grid, i));
  return {builder.Reshape(result, shape)};
}

// Places from -1 to 1 along a dimension: of the outer pixels' centres or of their edges. One alone
// is at 0.
Expression GridLine(TensorBuilder& builder, const UOp* size, DType dtype, bool align_corners) {
  Expression count = DimensionValue(builder, size, dtype);
  Expression steps(builder, builder.Arange(size, dtype));
  if (align_corners) return (steps * 2.0 - (count - 1.0)) / Max(count - 1.0, 1.0);
  return (steps * 2.0 + 1.0 - count) / count;
}

// theta [N, d, d + 1] times each place of a grid of d dimensions: [N, i..., d], the last dimension
// first.
OnnxResults ImportAffineGrid(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  bool align_corners = node.Bool("align_corners", false);
  const UOp* theta = node.input(0);
  std::optional<Shape> size = node.KnownDims(1);
  if (!size.has_value()) return {};
  auto num_dims = static_cast<int64_t>(size->size()) - 2;
  if (num_dims < 2 || num_dims > 3) {
    return node.Fail(absl::StrCat("size, got ", size->size(), " numbers, expected 4 or 5"));
  }
  if (node.rank(0) != 3 || !IsConstInt(builder.Dim(theta, 1), num_dims) ||
      !IsConstInt(builder.Dim(theta, 2), num_dims + 1)) {
    return node.Fail(absl::StrCat("theta, got ", ShapeToString(builder.ShapeOf(theta)),
                                  ", expected [N, ", num_dims, ", ", num_dims + 1, "]"));
  }
  DType dtype = theta->dtype();
  Expression wide = Widen(builder, theta);
  std::vector<const UOp*> parts;
  for (int64_t row = 0; row < num_dims; ++row) {
    auto weight = [&](int64_t column) {  // [N, 1, ...]
      const UOp* of_row = builder.ShrinkAxis(wide, 1, builder.Index(row), builder.Index(1));
      const UOp* one = builder.ShrinkAxis(of_row, 2, builder.Index(column), builder.Index(1));
      Shape shape(static_cast<size_t>(num_dims) + 1, builder.Index(1));
      shape[0] = (*size)[0];
      return Expression(builder, builder.Reshape(one, shape));
    };
    Expression sum = weight(num_dims);
    for (int64_t i = 0; i < num_dims; ++i) {
      auto at = static_cast<size_t>(num_dims - 1 - i);  // dimension of the i-th coordinate
      Expression line = GridLine(builder, (*size)[2 + at], wide.node()->dtype(), align_corners);
      Shape spread(static_cast<size_t>(num_dims), builder.Index(1));
      spread[at] = (*size)[2 + at];
      sum = sum + weight(i) * Expression(builder, builder.Reshape(line, spread));
    }
    parts.push_back(sum);
  }
  return {builder.Cast(StackTensors(builder, parts, -1), dtype)};
}

// --- Deformable convolution ----------------------------------------------------------------------

// What a deformable convolution works with: images [N, C, H, W], offsets
// [N, groups * kh * kw * 2, oh, ow] and masks [N, groups * kh * kw, oh, ow].
struct Deformation {
  OnnxWindows windows;
  int64_t groups;  // of channels with offsets of their own
  const UOp *batch, *oh, *ow;
};

// Where the taps read along one axis: [N * groups, kh * kw * oh * ow].
Expression TapPlaces(TensorBuilder& builder, const UOp* offsets, const Deformation& d,
                     size_t axis) {
  const OnnxWindows& w = d.windows;
  DType dtype = offsets->dtype();
  const UOp *kh = builder.Index(w.kernel[0]), *kw = builder.Index(w.kernel[1]);
  Dims& dims = builder.dims();
  const UOp* images = dims.Mul(d.batch, builder.Index(d.groups));
  const UOp* apart = builder.Reshape(offsets, Shape{images, kh, kw, builder.Index(2), d.oh, d.ow});
  Expression own(
      builder,
      builder.Squeeze(
          builder.ShrinkAxis(apart, 3, builder.Index(static_cast<int64_t>(axis)), builder.Index(1)),
          3));  // [images, kh, kw, oh, ow]
  Expression window =
      PositionsAlong(builder, 5, 3 + static_cast<int64_t>(axis), axis == 0 ? d.oh : d.ow, dtype);
  Expression tap =
      PositionsAlong(builder, 5, 1 + static_cast<int64_t>(axis), axis == 0 ? kh : kw, dtype);
  Expression place = window * static_cast<double>(w.strides[axis]) +
                     tap * static_cast<double>(w.dilations[axis]) -
                     static_cast<double>(w.pads[axis]);
  return {builder, Flatten(builder, place + own, 1, 4)};
}

OnnxResults ImportDeformConv(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  Dims& dims = builder.dims();
  int64_t groups = node.Int("group", 1), offset_groups = node.Int("offset_group", 1);
  const UOp *x = node.input(0), *weight = node.input(1), *offsets = node.input(2);
  std::optional<OnnxWindows> windows = ReadWindows(node, KernelOf(node, weight, 2));
  if (!windows.has_value()) return {};
  if (node.rank(0) != 4) return node.FailUnsupported("a rank other than 4");
  int64_t channels = builder.ConstDim(x, 1, "deform_conv");
  int64_t num_outputs = builder.ConstDim(weight, 0, "deform_conv");
  if (!node.ok()) return {};
  bool divides = groups >= 1 && offset_groups >= 1 && channels % groups == 0 &&
                 channels % offset_groups == 0 && num_outputs % groups == 0 &&
                 IsConstInt(builder.Dim(weight, 1), channels / groups);
  if (!divides) {
    return node.Fail(absl::StrCat("group and offset_group, got ", groups, " and ", offset_groups,
                                  ", expected divisors of the channels of X, ",
                                  ShapeToString(builder.ShapeOf(x)), ", and W, ",
                                  ShapeToString(builder.ShapeOf(weight))));
  }
  int64_t taps = windows->kernel[0] * windows->kernel[1];
  if (node.rank(2) != 4 || !IsConstInt(builder.Dim(offsets, 1), 2 * taps * offset_groups)) {
    return node.Fail(absl::StrCat("offset, got ", ShapeToString(builder.ShapeOf(offsets)),
                                  ", expected [N, ", 2 * taps * offset_groups, ", ...]"));
  }
  Deformation d{*windows, offset_groups, builder.Dim(x, 0), builder.Dim(offsets, 2),
                builder.Dim(offsets, 3)};
  Expression wide = Widen(builder, x);
  const UOp* images = dims.Mul(d.batch, builder.Index(offset_groups));
  const UOp* apart = builder.Reshape(wide, Shape{images, builder.Index(channels / offset_groups),
                                                 builder.Dim(x, 2), builder.Dim(x, 3)});
  Sampler sampler(builder, apart, SamplePadding::kZeros, true);
  Expression wide_offsets = Widen(builder, offsets);
  // [N * offset groups, channels of one, kh * kw * oh * ow]
  Expression columns = sampler.Linear(
      {TapPlaces(builder, wide_offsets, d, 0), TapPlaces(builder, wide_offsets, d, 1)});
  const UOp* places = dims.Mul(dims.Mul(d.oh, d.ow), builder.Index(taps));
  if (node.has_input(4)) {
    Expression mask = Widen(builder, node.input(4));
    columns = columns *
              Expression(builder, builder.Reshape(mask, Shape{images, builder.Index(1), places}));
  }
  if (!node.ok()) return {};
  // A product of W [groups, outputs, channels * kh * kw] and what the taps read, for each group.
  const UOp *by_group = builder.Index(groups), *outputs = builder.Index(num_outputs / groups);
  const UOp* depth = builder.Index(channels / groups * taps);
  columns =
      Expression(builder, builder.Contiguous(builder.Reshape(
                              columns, Shape{d.batch, by_group, depth, dims.Mul(d.oh, d.ow)})));
  const UOp* matrix =
      builder.Reshape(Widen(builder, weight), Shape{builder.Index(1), by_group, outputs, depth});
  Expression y(builder, Matmul(builder, matrix, columns));
  y = Expression(builder,
                 builder.Reshape(y, Shape{d.batch, builder.Index(num_outputs), d.oh, d.ow}));
  if (node.has_input(3)) {
    Shape along = {builder.Index(num_outputs), builder.Index(1), builder.Index(1)};
    y = y + Expression(builder, builder.Reshape(Widen(builder, node.input(3)), along));
  }
  return {builder.Cast(y, x->dtype())};
}

// --- Regions of interest -------------------------------------------------------------------------

OnnxResults ImportRoiAlign(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  int64_t height = node.Int("output_height", 1), width = node.Int("output_width", 1);
  int64_t ratio = node.Int("sampling_ratio", 0);
  double scale = node.Float("spatial_scale", 1);
  int mode = node.Choice("mode", "avg", {"avg", "max"});
  bool is_aligned =
      node.version() >= 16 && node.Choice("coordinate_transformation_mode", "half_pixel",
                                          {"half_pixel", "output_half_pixel"}) == 0;
  if (ratio <= 0) return node.FailUnsupported("sampling_ratio=0");
  if (node.rank(0) != 4 || node.rank(1) != 2 || height < 1 || width < 1) {
    return node.Fail("ranks of X and rois, expected 4 and 2");
  }
  const UOp *x = node.input(0), *rois = node.input(1);
  const UOp* images = Take(builder, x, node.input(2), 0);  // [R, C, H, W]
  Sampler sampler(builder, images, SamplePadding::kZeros, true);
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
  Expression h = sampler.Size(0, y), w = sampler.Size(1, y);
  Expression is_near = And(And(y >= -1.0, y <= h), And(at >= -1.0, at <= w));
  y = Min(Max(y, 0.0), h - 1.0);
  at = Min(Max(at, 0.0), w - 1.0);
  Expression top = y.Of(Op::kFloor), left = at.Of(Op::kFloor), value(builder, nullptr);
  for (int i = 0; i < 4; ++i) {
    Expression row = i < 2 ? top : Min(top + 1.0, h - 1.0);
    Expression column = i % 2 == 0 ? left : Min(left + 1.0, w - 1.0);
    Expression weight_y = i < 2 ? 1.0 - (y - top) : y - top;
    Expression weight_x = i % 2 == 0 ? 1.0 - (at - left) : at - left;
    Expression weight(builder, builder.Unsqueeze(weight_y * weight_x, 1));
    Expression part = sampler.At({row, column}) * weight;
    // Of a maximum, the largest weighted pixel counts, as the operator says.
    value = i == 0 ? part : mode == 0 ? value + part : Max(value, part);
  }
  value = Select({builder, builder.Unsqueeze(is_near, 1)}, value, 0.0);
  if (!node.ok()) return {};
  const UOp* ratio_dim = builder.Index(ratio);
  Shape apart = {num_rois,  builder.Dim(x, 1),    builder.Index(height),
                 ratio_dim, builder.Index(width), ratio_dim};
  const UOp* samples = builder.Reshape(value, apart);
  return {mode == 0 ? Mean(builder, samples, {{3, 5}, false})
                    : Amax(builder, samples, {{3, 5}, false})};
}

// To the nearest whole number, halves away from 0.
Expression RoundAway(Expression x) {
  Expression whole = x.Of(Op::kTrunc);
  Expression step = Select(x < 0.0, whole - 1.0, whole + 1.0);
  return Select(Abs(x - whole) >= 0.5, step, whole);
}

// Whether an element is in a bin: bool [R, bins, size], along one side of the regions.
Expression BinMask(TensorBuilder& builder, Expression begin, Expression end, int64_t num_bins,
                   const UOp* size) {
  DType dtype = begin.node()->dtype();
  Expression length = Max(end - begin + 1.0, 1.0);  // [R, 1, 1]
  Expression step = length / static_cast<double>(num_bins);
  Expression bin = PositionsAlong(builder, 3, 1, builder.Index(num_bins), dtype);
  Expression at = PositionsAlong(builder, 3, 2, size, dtype);
  Expression first = (bin * step).Of(Op::kFloor) + begin;
  Expression last = ((bin + 1.0) * step).Of(Op::kCeil) + begin;
  return And(at >= first, at < last);
}

// The largest element of each bin of each region, found along rows and then along columns.
OnnxResults ImportMaxRoiPool(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  node.Require("pooled_shape");
  std::vector<int64_t> pooled = node.Ints("pooled_shape");
  double scale = node.Float("spatial_scale", 1);
  if (!node.ok()) return {};
  const UOp *x = node.input(0), *rois = node.input(1);
  if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1) {
    return node.Fail("attribute 'pooled_shape', expected two numbers of at least 1");
  }
  if (node.rank(0) != 4 || node.rank(1) != 2 || !IsConstInt(builder.Dim(rois, 1), 5)) {
    return node.Fail(absl::StrCat("shapes of X and rois, got ", ShapeToString(builder.ShapeOf(x)),
                                  " and ", ShapeToString(builder.ShapeOf(rois)),
                                  ", expected [N, C, H, W] and [R, 5]"));
  }
  Expression wide = Widen(builder, rois);
  auto column = [&](int64_t i) {  // [R, 1, 1]
    const UOp* part = builder.ShrinkAxis(wide, 1, builder.Index(i), builder.Index(1));
    return Expression(builder, builder.Unsqueeze(part, 2));
  };
  auto edge = [&](int64_t i) { return RoundAway(column(i) * scale); };
  Expression rows = BinMask(builder, edge(2), edge(4), pooled[0], builder.Dim(x, 2));
  Expression columns = BinMask(builder, edge(1), edge(3), pooled[1], builder.Dim(x, 3));
  const UOp* batch = builder.Squeeze(LastElement(builder, column(0), 0), -1);  // [R]
  const UOp* images = Take(builder, x, builder.Cast(batch, Scalar::kI64), 0);  // [R, C, H, W]
  if (!node.ok()) return {};
  // mask [R, bins, size] beside values [R, C, size, ...]: [R, 1, bins, size].
  auto beside = [&](Expression mask) { return builder.Unsqueeze(mask, 1); };
  Expression lowest = Expression(builder, images).Number(-std::numeric_limits<double>::infinity());
  // [R, C, H, 1, W] where [R, 1, 1, bins, W]: [R, C, H, bins].
  const UOp* by_column =
      builder.Where(builder.Unsqueeze(beside(columns), 2), builder.Unsqueeze(images, 3), lowest);
  by_column = builder.Contiguous(Amax(builder, by_column, {{-1}, false}));
  // [R, C, 1, bins, H] where [R, 1, bins, 1, H]: [R, C, bins, bins].
  const UOp* turned = builder.Unsqueeze(builder.Transpose(by_column, 2, 3), 2);
  const UOp* by_bin = builder.Where(builder.Unsqueeze(beside(rows), 3), turned, lowest);
  Expression largest(builder, Amax(builder, by_bin, {{-1}, false}));
  // Bins without elements are 0.
  Expression any_row(builder, builder.Unsqueeze(Any(builder, rows, {{-1}, true}), 1));
  Expression any_column(builder, Any(builder, columns, {{-1}, false}));
  any_column = Expression(builder, builder.Unsqueeze(builder.Unsqueeze(any_column, 1), 1));
  return {Select(And(any_row, any_column), largest, 0.0)};
}

}  // namespace

OnnxRows OnnxSamplingRows() {
  return {
      {"AffineGrid", {20}, 2, 2, ImportAffineGrid},
      {"DeformConv", {19, 22}, 3, 5, ImportDeformConv, "", "images of two dimensions"},
      {"GridSample", {16, 20, 22}, 2, 2, ImportGridSample},
      {"MaxRoiPool", {1, 22}, 2, 2, ImportMaxRoiPool},
      {"RoiAlign", {10, 16, 22}, 3, 3, ImportRoiAlign, "", "a sampling_ratio above 0"},
  };
}

}  // namespace svod
