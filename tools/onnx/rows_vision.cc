// Rows of the operator table: what undoes windows of an image, determinants.
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

// --- Back from windows ---------------------------------------------------------------------------

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

// The sum of overlapping windows along one axis: x [..., k, o, ...], with k at `axis`, gives
// [..., size, ...], where element (k, o) is added to place o * stride + k * dilation - low.
const UOp* OverlapAdd(OnnxNode& node, Expression x, int64_t axis, const OnnxWindows& windows,
                      size_t i, const UOp* size) {
  TensorBuilder& builder = node.builder();
  Dims& dims = builder.dims();
  const UOp* count = builder.Dim(x, axis + 1);
  const UOp *zero = builder.Index(0), *stride = builder.Index(windows.strides[i]);
  // Zeros between the windows: stride - 1 after each element, less those after the last.
  x = {builder, builder.Unsqueeze(x, axis + 2)};
  const UOp* gap = builder.Index(windows.strides[i] - 1);
  x = {builder, builder.PadAxis(x, axis + 2, x.Number(0), zero, gap)};
  x = {builder, Flatten(builder, x, axis + 1, axis + 2)};
  const UOp* reach =
      dims.Add(dims.Mul(dims.Sub(count, builder.Index(1)), stride), builder.Index(1));
  x = {builder, builder.ShrinkAxis(x, axis + 1, zero, reach)};
  const UOp* padded =
      dims.Add(size, builder.Index(windows.pads[i] + windows.pads[i + windows.kernel.size()]));
  Expression sum(builder, nullptr);
  for (int64_t k = 0; k < windows.kernel[i] && node.ok(); ++k) {
    const UOp* low = builder.Index(k * windows.dilations[i]);
    const UOp* part =
        builder.Squeeze(builder.ShrinkAxis(x, axis, builder.Index(k), builder.Index(1)), axis);
    const UOp* high = dims.Sub(dims.Sub(padded, reach), low);
    Expression placed(builder, builder.PadAxis(part, axis, x.Number(0), low, high));
    sum = k == 0 ? placed : sum + placed;
  }
  return builder.ShrinkAxis(sum, axis, builder.Index(windows.pads[i]), size);
}

// x [N, C * k..., L] with windows as columns: [N, C, image...], where they overlap added up.
OnnxResults ImportCol2Im(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  Dims& dims = builder.dims();
  constexpr int64_t kMaxKernel = 4096;  // of one dimension: a sum is unrolled over it
  const UOp* x = node.input(0);
  std::optional<Shape> image = node.KnownDims(1);
  std::optional<std::vector<int64_t>> block = node.KnownInts(2);
  if (!image.has_value() || !block.has_value()) return {};
  std::optional<OnnxWindows> windows = ReadWindowsOf(node, *block);
  if (!windows.has_value()) return {};
  size_t count = block->size();
  if (node.rank(0) != 3 || image->size() != count || count < 1) {
    return node.Fail(absl::StrCat("ranks, got data of ", node.rank(0), ", image_shape of ",
                                  image->size(), " and block_shape of ", count,
                                  " numbers, expected 3 and as many of each"));
  }
  const UOp *elements = builder.Index(1), *columns = builder.Index(1);
  Shape apart = {builder.Dim(x, 0), nullptr}, places;
  for (size_t i = 0; i < count; ++i) {
    if ((*block)[i] > kMaxKernel)
      return node.FailUnsupported(absl::StrCat("a block of ", (*block)[i]));
    int64_t more =
        windows->pads[i] + windows->pads[i + count] - windows->dilations[i] * ((*block)[i] - 1) - 1;
    const UOp* steps = dims.Floordiv(dims.Add((*image)[i], builder.Index(more)),
                                     builder.Index(windows->strides[i]));
    places.push_back(dims.Add(steps, builder.Index(1)));
    columns = dims.Mul(columns, places.back());
    elements = dims.Mul(elements, builder.Index((*block)[i]));
  }
  if (!dims.Same(builder.Dim(x, 2), columns) ||
      !IsConstInt(dims.Floormod(builder.Dim(x, 1), elements), 0)) {
    return node.Fail(absl::StrCat("data, got ", ShapeToString(builder.ShapeOf(x)),
                                  ", expected [N, C * ", ToString(elements), ", ",
                                  ToString(columns), "]"));
  }
  apart[1] = dims.Floordiv(builder.Dim(x, 1), elements);
  // Each dimension's taps beside its places: [N, C, k, o, k, o, ...].
  std::vector<int64_t> order = {0, 1};
  for (size_t i = 0; i < count; ++i) {
    apart.push_back(builder.Index((*block)[i]));
    order.push_back(static_cast<int64_t>(2 + i));
    order.push_back(static_cast<int64_t>(2 + count + i));
  }
  apart.insert(apart.end(), places.begin(), places.end());
  Expression y = Widen(builder, x);
  y = {builder, builder.Permute(builder.Reshape(y, apart), order)};
  for (size_t i = 0; i < count; ++i) {
    y = {builder, OverlapAdd(node, y, static_cast<int64_t>(2 + i), *windows, i, (*image)[i])};
    if (!node.ok()) return {};
  }
  return {builder.Cast(y, x->dtype())};
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
      {"Col2Im", {18}, 3, 3, ImportCol2Im},
      {"Det", {11, 22}, 1, 1, ImportDet, "", "at most 32 rows"},
      {"MaxUnpool", {9, 11, 22}, 2, 3, ImportMaxUnpool},
  };
}

}  // namespace svod
