#include "ir/operators/convolution.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/windows.h"

namespace svod {
namespace {

std::string ShapesOf(TensorBuilder& builder, const UOp* x, const UOp* weight) {
  return absl::StrCat("x ", ShapeToString(x->dtype(), builder.ShapeOf(x)), " and weight ",
                      ShapeToString(weight->dtype(), builder.ShapeOf(weight)));
}

// Whether the operands are of one dtype and of equal ranks 3 to 5, and the channels fit `groups`:
// dimension 1 of x is C, dimension `channels_axis` of the weight C or C / groups.
bool CheckOperands(TensorBuilder& builder, absl::string_view op, const UOp* x, const UOp* weight,
                   int64_t groups, bool is_transposed) {
  if (!IsReady(builder, op, {x, weight})) return false;
  int rank = builder.RankOf(x);
  if (x->dtype() != weight->dtype() || rank != builder.RankOf(weight) || rank < 3 || rank > 5) {
    FailOperator(builder, op, "operands", ShapesOf(builder, x, weight),
                 "one dtype and 3 to 5 dimensions each");
    return false;
  }
  int64_t channels = builder.ConstDim(x, 1, absl::StrCat(op, ": channels of x"));
  int64_t first = builder.ConstDim(weight, 0, absl::StrCat(op, ": dimension 0 of weight"));
  int64_t second = builder.ConstDim(weight, 1, absl::StrCat(op, ": dimension 1 of weight"));
  if (!builder.ok()) return false;
  bool fits = groups >= 1 && channels % groups == 0 && first % groups == 0;
  fits = fits && (is_transposed ? first == channels : second == channels / groups);
  if (fits) return true;
  FailOperator(builder, op, absl::StrCat("channels in ", groups, " groups"),
               ShapesOf(builder, x, weight),
               is_transposed ? "x [N, C, ...], weight [C, O / groups, ...]"
                             : "x [N, C, ...], weight [O, C / groups, ...]");
  return false;
}

std::optional<std::vector<int64_t>> KernelSize(TensorBuilder& builder, absl::string_view op,
                                               const UOp* weight) {
  std::vector<int64_t> size;
  for (int64_t i = 2; i < builder.RankOf(weight); ++i) {
    size.push_back(builder.ConstDim(weight, i, absl::StrCat(op, ": dimension of the kernel")));
  }
  if (!builder.ok()) return std::nullopt;
  return size;
}

// x, already padded, with checked operands.
const UOp* Convolved(TensorBuilder& builder, absl::string_view op, const UOp* x, const UOp* weight,
                     const UOp* bias, int64_t groups, const WindowOptions& options, DType dtype) {
  const UOp* windows = Windows(builder, op, x, options);
  if (windows == nullptr) return nullptr;
  int64_t n = static_cast<int64_t>(options.size.size());
  int64_t num_channels = ConstInt(builder.Dim(x, 1));
  int64_t num_outputs = ConstInt(builder.Dim(weight, 0));
  Shape out = DimsBetween(builder, windows, 2, 2 + n);
  const UOp *batch = builder.Dim(windows, 0), *one = builder.Index(1);
  const UOp* group = builder.Index(groups);
  const UOp* outputs = builder.Index(num_outputs / groups);
  // Both as [N, group, output, o..., channel, k...].
  Shape shape = {batch, group, one, builder.Index(num_channels / groups)};
  for (const UOp* d : DimsBetween(builder, windows, 2, 2 + 2 * n)) shape.push_back(d);
  std::vector<int64_t> axes = {0, 1, 2};
  for (int64_t i = 0; i < n; ++i) axes.push_back(4 + i);
  axes.push_back(3);
  for (int64_t i = 0; i < n; ++i) axes.push_back(4 + n + i);
  Expression left(builder, builder.Permute(builder.Reshape(windows, shape), axes));
  Shape weight_shape = {group, outputs};
  for (int64_t i = 0; i < n; ++i) weight_shape.push_back(one);
  for (const UOp* d : DimsBetween(builder, weight, 1, 2 + n)) weight_shape.push_back(d);
  Expression right(builder, builder.Reshape(weight, weight_shape));
  std::vector<int64_t> summed;
  for (int64_t i = 0; i <= n; ++i) summed.push_back(3 + n + i);
  Shape result = {batch, builder.Index(num_outputs)};
  result.insert(result.end(), out.begin(), out.end());
  Expression y(
      builder,
      builder.Reshape(builder.ReduceAxis(ReduceKind::kAdd, left * right, summed, false), result));
  if (bias != nullptr) {
    Shape column = {builder.Index(num_outputs)};
    for (int64_t i = 0; i < n; ++i) column.push_back(one);
    y = y + Expression(builder, builder.Reshape(builder.Cast(bias, WideDType(dtype)), column));
  }
  return builder.Cast(y, dtype);
}

bool CheckBias(TensorBuilder& builder, absl::string_view op, const UOp* bias, DType dtype,
               int64_t num_outputs) {
  if (bias == nullptr) return builder.ok();
  ShapeSpan shape = builder.ShapeOf(bias);
  if (!builder.ok()) return false;
  if (bias->dtype() == dtype && shape.size() == 1 && IsConstInt(shape[0], num_outputs)) return true;
  FailOperator(builder, op, "bias", ShapeToString(bias->dtype(), shape),
               absl::StrCat(ToString(dtype), "[", num_outputs, "]"));
  return false;
}

}  // namespace

const UOp* Convolution(TensorBuilder& builder, const UOp* x, const UOp* weight, const UOp* bias,
                       const ConvolutionOptions& options) {
  if (!CheckOperands(builder, "conv", x, weight, options.groups, false)) return nullptr;
  auto size = KernelSize(builder, "conv", weight);
  if (!size.has_value()) return nullptr;
  if (!CheckBias(builder, "conv", bias, x->dtype(), ConstInt(builder.Dim(weight, 0)))) {
    return nullptr;
  }
  auto windows = CheckWindows(builder, "conv", builder.RankOf(x) - 2, *size, options.stride,
                              options.padding, options.dilation);
  if (!windows.has_value()) return nullptr;
  DType dtype = options.dtype.value_or(x->dtype());
  const UOp* wide = builder.Cast(builder.Cast(x, dtype), WideDType(dtype));
  const UOp* wide_weight = builder.Cast(builder.Cast(weight, dtype), WideDType(dtype));
  wide =
      PadSpatial(builder, wide, builder.ConstInt(WideDType(dtype), 0), windows->low, windows->high);
  return Convolved(builder, "conv", wide, wide_weight, bias, options.groups, *windows, dtype);
}

const UOp* TransposedConvolution(TensorBuilder& builder, const UOp* x, const UOp* weight,
                                 const UOp* bias, const ConvolutionOptions& options) {
  constexpr absl::string_view kName = "conv_transpose";
  if (!CheckOperands(builder, kName, x, weight, options.groups, true)) return nullptr;
  auto size = KernelSize(builder, kName, weight);
  if (!size.has_value()) return nullptr;
  int64_t n = builder.RankOf(x) - 2, groups = options.groups;
  int64_t num_channels = ConstInt(builder.Dim(weight, 0));
  int64_t num_shared = ConstInt(builder.Dim(weight, 1));
  auto windows =
      CheckWindows(builder, kName, n, *size, options.stride, options.padding, options.dilation);
  auto extra = PerDimension(builder, kName, "output_padding", options.output_padding, n, 0, 0);
  if (!windows.has_value() || !extra.has_value() ||
      !CheckBias(builder, kName, bias, x->dtype(), num_shared * groups)) {
    return nullptr;
  }
  DType dtype = options.dtype.value_or(x->dtype());
  const UOp* wide = builder.Cast(builder.Cast(x, dtype), WideDType(dtype));
  const UOp* zero = builder.ConstInt(WideDType(dtype), 0);
  for (int64_t i = 0; i < n; ++i) {
    size_t at = static_cast<size_t>(i);
    int64_t stride = windows->stride[at], axis = 2 + i;
    if ((*extra)[at] >= std::max(stride, windows->dilation[at])) {
      return FailOperator(builder, kName, "output_padding", absl::StrCat((*extra)[at]),
                          "less than stride or dilation");
    }
    const UOp* length = builder.Dim(wide, axis);
    if (length == nullptr) return nullptr;
    if (builder.dims().RangeOf(length).min < 1) {
      return FailOperator(builder, kName, absl::StrCat("dimension ", axis), ToString(length),
                          "at least 1");
    }
    // stride - 1 zeros between elements: after each, but the last.
    if (stride > 1) {
      Dims& dims = builder.dims();
      wide = builder.Unsqueeze(wide, axis + 1);
      wide = builder.PadAxis(wide, axis + 1, zero, builder.Index(0), builder.Index(stride - 1));
      Shape shape = DimsBetween(builder, wide, 0, builder.RankOf(wide));
      if (!builder.ok()) return nullptr;
      shape.erase(shape.begin() + axis + 1);
      shape[static_cast<size_t>(axis)] = dims.Mul(length, builder.Index(stride));
      wide = builder.Reshape(wide, shape);
      wide =
          builder.ShrinkAxis(wide, axis, builder.Index(0),
                             dims.Sub(shape[static_cast<size_t>(axis)], builder.Index(stride - 1)));
    }
    // Every place that a window may reach from; what padding takes off may be part of x itself.
    int64_t reach = windows->dilation[at] * (windows->size[at] - 1);
    int64_t low = reach - windows->low[at], high = reach - windows->high[at] + (*extra)[at];
    wide = builder.PadAxis(wide, axis, zero, builder.Index(std::max<int64_t>(low, 0)),
                           builder.Index(std::max<int64_t>(high, 0)));
    int64_t cut_low = std::max<int64_t>(-low, 0), cut_high = std::max<int64_t>(-high, 0);
    const UOp* padded = wide == nullptr ? nullptr : builder.Dim(wide, axis);
    if (padded == nullptr) return nullptr;
    int64_t most_cut = builder.dims().RangeOf(padded).min;
    if (cut_low + cut_high > most_cut) {
      return FailOperator(builder, kName, "padding",
                          absl::StrCat(windows->low[at], " and ", windows->high[at]),
                          "no more than the result has");
    }
    wide = builder.ShrinkAxis(wide, axis, builder.Index(cut_low),
                              builder.dims().Sub(padded, builder.Index(cut_low + cut_high)));
    windows->stride[at] = 1;
  }
  // The weights mirrored, as [O, C / groups, k...].
  const UOp* mirrored = builder.Cast(builder.Cast(weight, dtype), WideDType(dtype));
  Shape kernel = DimsBetween(builder, weight, 2, 2 + n);
  Shape grouped = {builder.Index(groups), builder.Index(num_channels / groups),
                   builder.Index(num_shared)};
  Shape regrouped = {builder.Index(groups * num_shared), builder.Index(num_channels / groups)};
  grouped.insert(grouped.end(), kernel.begin(), kernel.end());
  regrouped.insert(regrouped.end(), kernel.begin(), kernel.end());
  mirrored =
      builder.Reshape(builder.Transpose(builder.Reshape(mirrored, grouped), 1, 2), regrouped);
  std::vector<int64_t> spatial;
  for (int64_t i = 0; i < n; ++i) spatial.push_back(2 + i);
  mirrored = builder.Flip(mirrored, spatial);
  return Convolved(builder, kName, wide, mirrored, bias, groups, *windows, dtype);
}

}  // namespace svod
