// Rows of the operator table: parts of tensors, padding, positions.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/indexing.h"
#include "ir/operators/shaping.h"
#include "tools/onnx/onnx_operators.h"

namespace svod {
namespace {

// One axis of a Slice. Ends beyond the tensor mean its end, negative ones count from there.
const UOp* SliceOne(OnnxNode& node, const UOp* x, int64_t axis, const UOp* begin, const UOp* end,
                    int64_t step) {
  TensorBuilder& builder = node.builder();
  Dims& dims = builder.dims();
  const UOp* size = builder.Dim(x, axis);
  if (size == nullptr) return nullptr;
  auto place = [&](const UOp* at, const UOp* low, const UOp* high) {
    if (dims.RangeOf(at).max < 0) at = dims.Add(at, size);
    if (dims.AtMost(at, low)) return low;
    if (dims.AtMost(high, at)) return high;
    if (dims.AtMost(low, at) && dims.AtMost(at, high)) return at;
    return dims.Max(low, dims.Min(at, high));
  };
  const UOp *zero = builder.Index(0), *last = dims.Sub(size, builder.Index(1));
  const UOp* minus_one = builder.Index(-1);
  if (step > 0) {
    begin = place(begin, zero, size);
    end = place(end, zero, size);
    if (!dims.AtMost(begin, end)) {
      end = dims.AtMost(end, begin) ? begin : dims.Max(begin, end);
    }
    return SliceAxis(builder, x, axis, begin, end, step);
  }
  // From `begin` down to above `end`: elements end + 1 to begin, the last one first.
  begin = place(begin, minus_one, last);
  bool to_front = IsConst(end) && ConstInt(end) <= std::numeric_limits<int32_t>::min();
  end = to_front ? minus_one : place(end, minus_one, last);
  const UOp *low = dims.Add(end, builder.Index(1)), *high = dims.Add(begin, builder.Index(1));
  if (!dims.AtMost(low, high)) high = dims.AtMost(high, low) ? low : dims.Max(low, high);
  return SliceAxis(builder, x, axis, low, high, step);
}

OnnxResults ImportSlice(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  std::optional<Shape> begins, ends;
  std::vector<int64_t> axes, steps;
  if (node.version() < 10) {
    begins = builder.ConstShape(node.Ints("starts"));
    ends = builder.ConstShape(node.Ints("ends"));
    axes = node.Ints("axes");
  } else {
    begins = node.KnownDims(1);
    ends = node.KnownDims(2);
    if (node.has_input(3)) axes = node.KnownInts(3).value_or(axes);
    if (node.has_input(4)) steps = node.KnownInts(4).value_or(steps);
  }
  if (!begins.has_value() || !ends.has_value() || !node.ok()) return {};
  size_t count = begins->size();
  if (axes.empty()) {
    for (size_t i = 0; i < count; ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (steps.empty()) steps.assign(count, 1);
  if (ends->size() != count || axes.size() != count || steps.size() != count) {
    return node.Fail(absl::StrCat("starts, ends, axes and steps, got ", count, ", ", ends->size(),
                                  ", ", axes.size(), " and ", steps.size(),
                                  " numbers, expected as many of each"));
  }
  const UOp* x = node.input(0);
  for (size_t i = 0; i < count; ++i) {
    if (steps[i] == 0) return node.Fail("steps, got 0, expected another number");
    int64_t axis = builder.Axis(x, axes[i], "slice");
    if (axis < 0) return {};
    x = SliceOne(node, x, axis, (*begins)[i], (*ends)[i], steps[i]);
  }
  return {x};
}

OnnxResults ImportPad(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp* x = node.input(0);
  auto rank = static_cast<size_t>(node.rank(0));
  int mode = node.Choice("mode", "constant", {"constant", "reflect", "edge", "wrap"});
  std::vector<int64_t> pads, axes;
  const UOp* value = builder.Like(x, 0);
  if (node.version() < 11) {
    pads = node.Ints(node.version() == 1 ? "paddings" : "pads");
    value = builder.Like(x, node.Float("value", 0));
  } else {
    std::optional<std::vector<int64_t>> given = node.KnownInts(1);
    if (!given.has_value()) return {};
    pads = *given;
    if (node.has_input(2)) value = builder.Reshape(node.input(2), ShapeSpan{});
    if (node.has_input(3)) axes = node.KnownInts(3).value_or(axes);
  }
  if (axes.empty()) {
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (!node.ok()) return {};
  if (pads.size() != 2 * axes.size()) {
    return node.Fail(
        absl::StrCat("pads, got ", pads.size(), " numbers, expected ", 2 * axes.size()));
  }
  std::vector<int64_t> low(rank, 0), high(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = builder.Axis(x, axes[i], "pad");
    if (axis < 0) return {};
    int64_t before = pads[i], after = pads[i + axes.size()];
    // Negative amounts cut off.
    if (before < 0 || after < 0) {
      Dims& dims = builder.dims();
      const UOp* begin = builder.Index(std::max<int64_t>(-before, 0));
      const UOp* size = dims.Sub(dims.Sub(builder.Dim(x, axis), begin),
                                 builder.Index(std::max<int64_t>(-after, 0)));
      x = builder.ShrinkAxis(x, axis, begin, size);
    }
    low[static_cast<size_t>(axis)] = std::max<int64_t>(before, 0);
    high[static_cast<size_t>(axis)] = std::max<int64_t>(after, 0);
  }
  if (mode == 0) return {builder.Pad(x, value, builder.ConstShape(low), builder.ConstShape(high))};
  constexpr PadMode kModes[] = {PadMode::kConstant, PadMode::kReflect, PadMode::kEdge,
                                PadMode::kWrap};
  if (mode < 0) return {};
  return {PadWith(builder, x, low, high, kModes[mode])};
}

// The middle of an axis that is longer than wanted; zeros on both sides of one that is shorter. An
// odd element is missing, or added, behind.
const UOp* CentreAxis(TensorBuilder& builder, const UOp* x, int64_t axis, bool crops, bool pads,
                      const UOp* target) {
  Dims& dims = builder.dims();
  const UOp *size = builder.Dim(x, axis), *two = builder.Index(2);
  if (crops) {
    return builder.ShrinkAxis(x, axis, dims.Floordiv(dims.Sub(size, target), two), target);
  }
  if (pads) {
    const UOp *more = dims.Sub(target, size), *low = dims.Floordiv(more, two);
    return builder.PadAxis(x, axis, builder.Like(x, 0), low, dims.Sub(more, low));
  }
  // Either, as the size turns out: places outside are read as 0.
  axis = builder.Axis(x, axis, "center_crop_pad");
  Expression cut = DimensionValue(builder, dims.Sub(size, target), Scalar::kI64);
  Expression begin = cut.Of(Op::kCdiv, 2);
  Expression places =
      PositionsAlong(builder, builder.RankOf(x), axis, target, Scalar::kI64) + begin;
  ShapeSpan from = builder.ShapeOf(x);
  Shape shape(from.begin(), from.end());
  shape[static_cast<size_t>(axis)] = target;
  return builder.Gather(x, builder.Expand(places, shape), axis);
}

OnnxResults ImportCenterCropPad(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  Dims& dims = builder.dims();
  const UOp* x = node.input(0);
  std::vector<int64_t> axes = node.Ints("axes");
  std::optional<Shape> wanted = node.KnownDims(1);
  if (!wanted.has_value()) return {};
  if (axes.empty()) {
    for (int64_t i = 0; i < node.rank(0); ++i) axes.push_back(i);
  }
  if (axes.size() != wanted->size()) {
    return node.Fail(
        absl::StrCat("shape, got ", wanted->size(), " numbers, expected ", axes.size()));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const UOp *size = builder.Dim(x, axes[i]), *target = (*wanted)[i];
    if (size == nullptr) return {};
    x = CentreAxis(builder, x, axes[i], dims.AtMost(target, size), dims.AtMost(size, target),
                   target);
  }
  return {x};
}

OnnxResults ImportGather(OnnxNode& node) {
  return {Take(node.builder(), node.input(0), node.input(1), node.Int("axis", 0))};
}

OnnxResults ImportGatherElements(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp *x = node.input(0), *positions = node.input(1);
  int64_t axis = builder.Axis(x, node.Int("axis", 0), "gather_elements");
  if (axis < 0 || node.rank(0) != node.rank(1)) {
    return node.Fail("ranks of data and indices, expected them equal");
  }
  // Elsewhere than along the axis positions may be fewer than elements.
  Shape begin(static_cast<size_t>(node.rank(0)), builder.Index(0));
  ShapeSpan wanted = builder.ShapeOf(positions);
  Shape size(wanted.begin(), wanted.end());
  size[static_cast<size_t>(axis)] = builder.Dim(x, axis);
  return {TakeAlongAxis(builder, builder.Shrink(x, begin, size), positions, axis)};
}

int ReductionOf(OnnxNode& node) {
  return node.Choice("reduction", "none", {"none", "add", "mul", "max", "min"});
}

constexpr ScatterKind kScatterKinds[] = {ScatterKind::kSet, ScatterKind::kAdd, ScatterKind::kMul,
                                         ScatterKind::kMax, ScatterKind::kMin};

OnnxResults ImportScatterElements(OnnxNode& node) {
  int64_t axis = node.Int("axis", 0);
  int reduction = ReductionOf(node);
  if (reduction < 0) return {};
  return {ScatterElements(node.builder(), node.input(0), node.input(1), node.input(2), axis,
                          kScatterKinds[reduction])};
}

OnnxResults ImportScatterNd(OnnxNode& node) {
  int reduction = ReductionOf(node);
  if (reduction < 0) return {};
  return {ScatterNd(node.builder(), node.input(0), node.input(1), node.input(2),
                    kScatterKinds[reduction])};
}

}  // namespace

OnnxRows OnnxSlicingRows() {
  return {
      {"CenterCropPad", {18}, 2, 2, ImportCenterCropPad},
      {"Gather", {1, 11, 13}, 2, 2, ImportGather},
      {"GatherElements", {11, 13}, 2, 2, ImportGatherElements},
      {"Pad", {1, 2, 11, 13, 18, 19, 21}, 1, 4, ImportPad},
      {"Scatter", {9}, 3, 3, ImportScatterElements, "", "", 11},
      {"ScatterElements", {11, 13, 16, 18}, 3, 3, ImportScatterElements},
      {"ScatterND", {11, 13, 16, 18}, 3, 3, ImportScatterNd},
      {"Slice", {1, 10, 11, 13}, 1, 5, ImportSlice},
  };
}

}  // namespace svod
