#include "ir/operators/windows.h"

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"

namespace svod {
namespace {

// Replaces dimension `axis` by the dimensions `by`.
const UOp* ReshapeAxis(TensorBuilder& builder, const UOp* x, int64_t axis, const Shape& by) {
  if (x == nullptr) return nullptr;
  Shape shape = DimsBetween(builder, x, 0, axis);
  shape.insert(shape.end(), by.begin(), by.end());
  for (const UOp* d : DimsBetween(builder, x, axis + 1, builder.RankOf(x))) shape.push_back(d);
  return builder.Reshape(x, shape);
}

// x with dimension `axis` as `count` steps of `step`, of which the first element stays.
const UOp* FirstOfSteps(TensorBuilder& builder, const UOp* x, int64_t axis, const UOp* count,
                        int64_t step) {
  if (step == 1) return x;
  x = ReshapeAxis(builder, x, axis, {count, builder.Index(step)});
  x = builder.ShrinkAxis(x, axis + 1, builder.Index(0), builder.Index(1));
  return builder.Squeeze(x, axis + 1);
}

// Windows along one dimension, which becomes two: [k, o].
const UOp* WindowAxis(TensorBuilder& builder, absl::string_view op, const UOp* x, int64_t axis,
                      int64_t size, int64_t stride, int64_t dilation) {
  const UOp* length = builder.Dim(x, axis);
  if (length == nullptr) return nullptr;
  Dims& dims = builder.dims();
  int64_t reach = dilation * (size - 1) + 1;
  int64_t least = dims.RangeOf(length).min;
  if (least < reach) {
    return FailOperator(builder, op,
                        absl::StrCat("window over ", reach, " elements of dimension ", axis, " of ",
                                     ShapeToString(builder.ShapeOf(x)), " (padded)"),
                        ToString(length), absl::StrCat("at least ", reach));
  }
  const UOp *zero = builder.Index(0), *k = builder.Index(size), *step = builder.Index(stride);
  const UOp* rest = dims.Sub(length, builder.Index(reach));
  const UOp* count = dims.Add(dims.Floordiv(rest, step), builder.Index(1));
  const UOp* whole = dims.Mul(count, step);
  if (stride >= reach) {
    if (stride == 1) return builder.Unsqueeze(x, axis);  // one element each
    // Windows apart: each is the beginning of a step.
    const UOp* missing = dims.Sub(whole, length);
    if (dims.RangeOf(missing).max > 0) {  // up to a whole step, if the last one may be cut short
      bool is_sure = IsConst(missing);
      const UOp* more = is_sure ? missing : builder.Index(stride - reach);
      x = builder.PadAxis(x, axis, builder.ConstInt(x->dtype(), 0), zero, more);
    }
    x = builder.ShrinkAxis(x, axis, zero, whole);
    x = ReshapeAxis(builder, x, axis, {count, step});
    // reach elements, then dilation - 1 more so that they are `size` whole steps.
    int64_t span = size * dilation;
    if (span > stride) {
      x = builder.PadAxis(x, axis + 1, builder.ConstInt(x->dtype(), 0), zero,
                          builder.Index(span - stride));
    } else {
      x = builder.ShrinkAxis(x, axis + 1, zero, builder.Index(span));
    }
    x = FirstOfSteps(builder, x, axis + 1, k, dilation);
    return builder.Transpose(x, axis, axis + 1);
  }
  // Copies of the dimension end to end, cut into rows of length + dilation: row j begins j *
  // dilation elements into a copy, and its elements at multiples of the stride are those of k = j.
  const UOp* row = dims.Add(length, builder.Index(dilation));
  int64_t num_copies = size + (size * dilation + least - 1) / least;
  const UOp* copies = builder.Index(num_copies);
  x = builder.Unsqueeze(x, axis);
  if (x == nullptr) return nullptr;
  Shape wide = DimsBetween(builder, x, 0, builder.RankOf(x));
  wide[static_cast<size_t>(axis)] = copies;
  x = builder.Expand(x, wide);
  Shape flat = DimsBetween(builder, x, 0, axis);
  flat.push_back(dims.Mul(copies, length));
  for (const UOp* d : DimsBetween(builder, x, axis + 2, builder.RankOf(x))) flat.push_back(d);
  x = builder.Reshape(x, flat);
  x = builder.ShrinkAxis(x, axis, zero, dims.Mul(k, row));
  x = ReshapeAxis(builder, x, axis, {k, row});
  x = builder.ShrinkAxis(x, axis + 1, zero, whole);
  return FirstOfSteps(builder, x, axis + 1, count, stride);
}

}  // namespace

std::optional<WindowOptions> CheckWindows(TensorBuilder& builder, absl::string_view op,
                                          int64_t num_dims, absl::Span<const int64_t> size,
                                          absl::Span<const int64_t> stride,
                                          absl::Span<const int64_t> padding,
                                          absl::Span<const int64_t> dilation) {
  auto sizes = PerDimension(builder, op, "kernel", size, num_dims, 1, 1);
  auto strides = PerDimension(builder, op, "stride", stride, num_dims, 1, 1);
  auto dilations = PerDimension(builder, op, "dilation", dilation, num_dims, 1, 1);
  size_t half = static_cast<size_t>(num_dims);
  bool has_both = num_dims > 0 && padding.size() == 2 * half;
  auto lows = PerDimension(builder, op, "padding", has_both ? padding.subspan(0, half) : padding,
                           num_dims, 0, 0);
  auto highs = PerDimension(builder, op, "padding", has_both ? padding.subspan(half) : padding,
                            num_dims, 0, 0);
  if (!builder.ok()) return std::nullopt;
  for (size_t i = 0; i < half; ++i) {
    // Keeps sizes of windows from overflowing.
    constexpr int64_t kMost = int64_t{1} << 31;
    if ((*sizes)[i] > kMost / (*dilations)[i]) {
      FailOperator(builder, op, "kernel and dilation",
                   absl::StrCat((*sizes)[i], " and ", (*dilations)[i]), "a product below 2^31");
      return std::nullopt;
    }
  }
  return WindowOptions{*sizes, *strides, *dilations, *lows, *highs};
}

const UOp* PadSpatial(TensorBuilder& builder, const UOp* x, const UOp* value,
                      absl::Span<const int64_t> low, absl::Span<const int64_t> high) {
  size_t lead = static_cast<size_t>(builder.RankOf(x)) - low.size();
  if (!builder.ok()) return nullptr;
  Shape lows(lead, builder.Index(0)), highs = lows;
  for (size_t i = 0; i < low.size(); ++i) {
    lows.push_back(builder.Index(low[i]));
    highs.push_back(builder.Index(high[i]));
  }
  return builder.Pad(x, value, lows, highs);
}

const UOp* Windows(TensorBuilder& builder, absl::string_view op, const UOp* x,
                   const WindowOptions& options) {
  int64_t num_dims = static_cast<int64_t>(options.size.size());
  int64_t lead = builder.RankOf(x) - num_dims;
  // From the last dimension on, so that those before keep their places.
  for (int64_t i = num_dims; builder.ok() && i-- > 0;) {
    size_t at = static_cast<size_t>(i);
    x = WindowAxis(builder, op, x, lead + i, options.size[at], options.stride[at],
                   options.dilation[at]);
  }
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < lead; ++i) axes.push_back(i);
  for (int64_t i = 0; i < num_dims; ++i) axes.push_back(lead + 2 * i + 1);
  for (int64_t i = 0; i < num_dims; ++i) axes.push_back(lead + 2 * i);
  return builder.Permute(x, axes);
}

}  // namespace svod
