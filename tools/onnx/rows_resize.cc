// Rows of the operator table: resizing of images.
//
// Along each axis the result is a product with a matrix [out, in] of few weights a row, which is
// worked out when the model is loaded: two positions and weights for linear, four for cubic, one
// for nearest. The product is written as a sum over the positions, so that nothing is multiplied
// by the zeros.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/indexing.h"
#include "ir/operators/shaping.h"
#include "tools/onnx/onnx_operators.h"

namespace svod {
namespace {

enum Mode { kNearest, kLinear, kCubic };
enum Coordinates {
  kHalfPixel,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kHalfPixelForNearest,
  kCropAndResize,
  kHalfPixelSymmetric
};

struct ResizeOptions {
  int mode = kNearest, coordinates = kAsymmetric, nearest = 0;
  double cubic_coefficient = -0.75, extrapolation = 0;
  bool excludes_outside = false, antialias = false;
};

// One axis: from `in` elements to `out`, `scale` times as many; crop: the part that is resized.
struct Axis {
  int64_t in = 1, out = 1;
  double scale = 1, crop_begin = 0, crop_end = 1;
  int64_t repeat = 1;  // of a symbolic dimension: how often each element stands in a row
};

double PlaceOf(const ResizeOptions& options, const Axis& axis, int64_t i) {
  double x = static_cast<double>(i);
  double in = static_cast<double>(axis.in), out = static_cast<double>(axis.out);
  switch (options.coordinates) {
    case kPytorchHalfPixel:
      return axis.out > 1 ? (x + 0.5) / axis.scale - 0.5 : 0;
    case kAlignCorners:
      // As the tests have it, of the size before it is rounded down.
      return axis.out > 1 ? x * (in - 1) / (axis.scale * in - 1) : 0;
    case kAsymmetric:
      return x / axis.scale;
    case kHalfPixelForNearest:
      return (x + 0.5) / axis.scale;
    case kCropAndResize:
      if (axis.out > 1) {
        return axis.crop_begin * (in - 1) +
               x * (axis.crop_end - axis.crop_begin) * (in - 1) / (out - 1);
      }
      return 0.5 * (axis.crop_begin + axis.crop_end) * (in - 1);
    case kHalfPixelSymmetric: {
      double adjustment = out / (axis.scale * in);
      double centre = in / 2, offset = centre * (1 - adjustment);
      return offset + (x + 0.5) / axis.scale - 0.5;
    }
    default:
      return (x + 0.5) / axis.scale - 0.5;
  }
}

double Nearest(int rounding, double place) {
  switch (rounding) {
    case 1:
      return std::floor(place + 0.5);  // round_prefer_ceil
    case 2:
      return std::floor(place);
    case 3:
      return std::ceil(place);
    default:
      return std::ceil(place - 0.5);  // round_prefer_floor
  }
}

double CubicWeight(double distance, double a) {
  double x = std::fabs(distance);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

double Weight(const ResizeOptions& options, double distance) {
  if (options.mode == kCubic) return CubicWeight(distance, options.cubic_coefficient);
  return std::max(0.0, 1 - std::fabs(distance));
}

// For each result the elements it takes and their weights; of every result as many.
struct Taps {
  int64_t count = 0;
  std::vector<int64_t> positions;  // [count, out]
  std::vector<double> weights;
  std::vector<int64_t> is_outside;  // [out]: of a crop, beyond the tensor
  bool any_outside = false;
};

Taps TapsOf(const ResizeOptions& options, const Axis& axis) {
  Taps taps;
  auto out = static_cast<size_t>(axis.out);
  double stretch = options.antialias && axis.scale < 1 ? 1 / axis.scale : 1;
  auto reach = static_cast<int64_t>(std::ceil((options.mode == kCubic ? 2 : 1) * stretch));
  taps.count = options.mode == kNearest ? 1 : 2 * reach;
  taps.positions.resize(static_cast<size_t>(taps.count) * out);
  taps.weights.resize(taps.positions.size(), 1);
  taps.is_outside.resize(out, 0);
  for (size_t i = 0; i < out; ++i) {
    double place = PlaceOf(options, axis, static_cast<int64_t>(i));
    if (options.coordinates == kCropAndResize &&
        (place < 0 || place > static_cast<double>(axis.in - 1))) {
      taps.is_outside[i] = 1;
      taps.any_outside = true;
    }
    double first = std::floor(place) - static_cast<double>(reach - 1), sum = 0;
    if (options.mode == kNearest) first = Nearest(options.nearest, place);
    for (int64_t k = 0; k < taps.count; ++k) {
      double at = first + static_cast<double>(k);
      size_t index = static_cast<size_t>(k) * out + i;
      if (options.mode != kNearest) {
        double weight = Weight(options, (at - place) / stretch);
        bool outside = at < 0 || at > static_cast<double>(axis.in - 1);
        if (outside && options.excludes_outside) weight = 0;
        taps.weights[index] = weight;
        sum += weight;
      }
      taps.positions[index] = static_cast<int64_t>(
          std::clamp(at, 0.0, static_cast<double>(std::max<int64_t>(axis.in - 1, 0))));
    }
    bool normalizes =
        options.mode != kNearest && sum != 0 && (options.excludes_outside || options.antialias);
    for (int64_t k = 0; normalizes && k < taps.count; ++k) {
      taps.weights[static_cast<size_t>(k) * out + i] /= sum;
    }
  }
  return taps;
}

// x resized along one axis; `outside` gathers where the result is beyond the tensor.
const UOp* ResizeAxis(OnnxNode& node, const UOp* x, int64_t axis, const Taps& taps, int64_t out,
                      const UOp** outside) {
  TensorBuilder& builder = node.builder();
  int rank = builder.RankOf(x);
  Shape spread(static_cast<size_t>(rank), builder.Index(1));
  spread[static_cast<size_t>(axis)] = builder.Index(out);
  auto size = static_cast<size_t>(out);
  Expression sum(builder, nullptr);
  for (int64_t k = 0; k < taps.count; ++k) {
    size_t begin = static_cast<size_t>(k) * size;
    const UOp* positions =
        node.IntsConstant(absl::MakeConstSpan(taps.positions).subspan(begin, size));
    Expression part(builder, Take(builder, x, positions, axis));
    if (taps.count > 1) {
      const UOp* weights =
          node.FloatsConstant(absl::MakeConstSpan(taps.weights).subspan(begin, size), x->dtype());
      part = part * Expression(builder, builder.Reshape(weights, spread));
    }
    sum = k == 0 ? part : sum + part;
  }
  if (taps.any_outside) {
    const UOp* mask = builder.Reshape(node.IntsConstant(taps.is_outside, Scalar::kBool), spread);
    *outside = *outside == nullptr ? mask : builder.Make(Op::kOr, {*outside, mask});
  }
  return sum;
}

OnnxResults ResizeBy(OnnxNode& node, const ResizeOptions& options, const std::vector<Axis>& axes) {
  TensorBuilder& builder = node.builder();
  const UOp* x = node.input(0);
  DType dtype = x->dtype();
  DType wide = options.mode == kNearest ? dtype
               : dtype.is_float()       ? WideDType(dtype)
                                        : DType(Scalar::kF32);
  const UOp* result = builder.Cast(x, wide);
  const UOp* outside = nullptr;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Axis& axis = axes[i];
    if (axis.in < 0) {
      if (axis.repeat > 1) {
        result = Repeat(builder, result, axis.repeat, static_cast<int64_t>(i));
      }
      continue;
    }
    bool is_whole = axis.in == axis.out && axis.scale == 1 && options.coordinates != kCropAndResize;
    if (is_whole) continue;
    if (axis.in < 1 || axis.out < 0 || axis.out > (int64_t{1} << 28)) {
      return node.Fail(absl::StrCat("size of axis ", i, ", got ", axis.in, " to ", axis.out));
    }
    result = ResizeAxis(node, result, static_cast<int64_t>(i), TapsOf(options, axis), axis.out,
                        &outside);
    if (!node.ok()) return {};
  }
  if (outside != nullptr) {
    result = builder.Where(outside, builder.Like(result, options.extrapolation), result);
  }
  if (!dtype.is_float() && options.mode != kNearest) {
    result = builder.Make(Op::kRound, {result});
  }
  return {builder.Cast(result, dtype)};
}

// The tensor's dimensions, all constant.
std::vector<Axis> AxesOf(OnnxNode& node) {
  std::vector<Axis> axes(static_cast<size_t>(node.rank(0)));
  ShapeSpan shape = node.builder().ShapeOf(node.input(0));
  for (size_t i = 0; i < axes.size(); ++i) {
    if (IsConst(shape[i])) {
      axes[i].in = axes[i].out = ConstInt(shape[i]);
    } else {
      axes[i].in = axes[i].out = -1;  // symbolic: may stay as it is
    }
  }
  return axes;
}

// Whether resizing to `times` the size is to repeat each element, whatever the size: places are
// then the same in every cell, so that some cells stand for all.
bool Repeats(const ResizeOptions& options, int64_t times) {
  if (options.mode != kNearest || options.coordinates == kAlignCorners ||
      options.coordinates == kCropAndResize) {
    return false;
  }
  Axis sample{4, 4 * times, static_cast<double>(times)};
  Taps taps = TapsOf(options, sample);
  for (int64_t i = 0; i < sample.out; ++i) {
    if (taps.positions[static_cast<size_t>(i)] != i / times) return false;
  }
  return true;
}

bool Scale(OnnxNode& node, const ResizeOptions& options, Axis* axis, double scale) {
  if (!(scale > 0) || !std::isfinite(scale)) {
    node.Fail(absl::StrCat("scale, got ", scale, ", expected a number above 0"));
    return false;
  }
  if (axis->in < 0) {
    bool is_whole = scale == std::floor(scale) && scale <= 4096;
    if (is_whole && Repeats(options, static_cast<int64_t>(scale))) {
      axis->repeat = static_cast<int64_t>(scale);
      return true;
    }
    if (scale != 1) node.FailUnsupported("a symbolic dimension that is resized");
    return scale == 1;
  }
  axis->scale = scale;
  axis->out = static_cast<int64_t>(std::floor(static_cast<double>(axis->in) * scale));
  return true;
}

OnnxResults ImportUpsample(OnnxNode& node) {
  ResizeOptions options;
  options.mode = node.Choice("mode", "nearest", {"nearest", "linear", "cubic"});
  options.nearest = 2;
  std::vector<double> scales;
  if (node.version() < 9) {
    scales = node.Floats("scales");
  } else {
    scales = node.KnownNumbers(1).value_or(scales);
  }
  if (!node.ok()) return {};
  std::vector<Axis> axes = AxesOf(node);
  if (scales.size() != axes.size()) return node.Fail("scales, expected one for each dimension");
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!Scale(node, options, &axes[i], scales[i])) return {};
  }
  return ResizeBy(node, options, axes);
}

// Sizes that keep the aspect ratio: all axes are scaled as the one that changes least
// (`not_larger` than wanted) or most.
bool KeepAspectRatio(OnnxNode& node, bool not_larger, const std::vector<int64_t>& chosen,
                     ShapeSpan sizes, std::vector<Axis>& axes) {
  std::optional<double> scale;
  for (size_t i = 0; i < chosen.size(); ++i) {
    int64_t at = node.builder().Axis(node.input(0), chosen[i], "resize");
    if (at < 0) return false;
    const Axis& axis = axes[static_cast<size_t>(at)];
    if (!IsConst(sizes[i]) || axis.in < 1) {
      node.FailUnsupported("a symbolic dimension that is resized");
      return false;
    }
    double own = static_cast<double>(ConstInt(sizes[i])) / static_cast<double>(axis.in);
    scale = !scale.has_value() ? own : not_larger ? std::min(*scale, own) : std::max(*scale, own);
  }
  for (int64_t at : chosen) {
    Axis& axis = axes[static_cast<size_t>(node.builder().Axis(node.input(0), at, "resize"))];
    axis.scale = *scale;
    axis.out = static_cast<int64_t>(std::floor(static_cast<double>(axis.in) * *scale + 0.5));
  }
  return true;
}

OnnxResults ImportResize(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  ResizeOptions options;
  options.mode = node.Choice("mode", "nearest", {"nearest", "linear", "cubic"});
  if (node.version() < 11) {
    options.nearest = 2;
  } else {
    options.coordinates =
        node.Choice("coordinate_transformation_mode", "half_pixel",
                    {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                     "tf_half_pixel_for_nn", "tf_crop_and_resize", "half_pixel_symmetric"});
    options.nearest = node.Choice("nearest_mode", "round_prefer_floor",
                                  {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
    options.cubic_coefficient = node.Float("cubic_coeff_a", -0.75);
    options.excludes_outside = node.Bool("exclude_outside", false);
    options.extrapolation = node.Float("extrapolation_value", 0);
  }
  options.antialias = node.Bool("antialias", false);
  int policy =
      node.Choice("keep_aspect_ratio_policy", "stretch", {"stretch", "not_larger", "not_smaller"});
  std::vector<int64_t> chosen = node.Ints("axes");
  size_t scales_at = node.version() < 11 ? 1 : 2, sizes_at = 3;
  // Both may be there, one of them empty.
  std::optional<std::vector<double>> scales;
  if (node.has_input(scales_at)) scales = node.KnownNumbers(scales_at);
  bool by_scales = scales.has_value() && !scales->empty();
  std::optional<Shape> sizes;
  if (!by_scales && node.has_input(sizes_at)) sizes = node.KnownDims(sizes_at);
  if (!node.ok()) return {};
  if (!by_scales && !sizes.has_value()) return node.Fail("scales and sizes, expected one of them");
  std::vector<Axis> axes = AxesOf(node);
  if (chosen.empty()) {
    for (size_t i = 0; i < axes.size(); ++i) chosen.push_back(static_cast<int64_t>(i));
  }
  size_t count = by_scales ? scales->size() : sizes->size();
  if (count != chosen.size()) {
    return node.Fail(absl::StrCat("scales or sizes, got ", count, ", expected ", chosen.size()));
  }
  if (policy > 0 && !by_scales && !chosen.empty()) {
    if (!KeepAspectRatio(node, policy == 1, chosen, *sizes, axes)) return {};
    return ResizeBy(node, options, axes);
  }
  std::vector<double> crop;
  if (options.coordinates == kCropAndResize) {
    crop = node.KnownNumbers(1).value_or(crop);
    if (crop.size() != 2 * chosen.size()) {
      return node.Fail("roi, expected a begin and an end for each axis");
    }
  }
  for (size_t i = 0; i < chosen.size(); ++i) {
    int64_t at = builder.Axis(node.input(0), chosen[i], "resize");
    if (at < 0) return {};
    Axis& axis = axes[static_cast<size_t>(at)];
    if (!crop.empty()) {
      axis.crop_begin = crop[i];
      axis.crop_end = crop[i + chosen.size()];
    }
    if (by_scales) {
      if (!Scale(node, options, &axis, (*scales)[i])) return {};
      continue;
    }
    const UOp* size = (*sizes)[i];
    const UOp* own = builder.Dim(node.input(0), at);
    if (builder.dims().Same(size, own)) continue;
    if (!IsConst(size) || axis.in < 1) {
      return node.FailUnsupported("a symbolic dimension that is resized");
    }
    axis.out = ConstInt(size);
    axis.scale = static_cast<double>(axis.out) / static_cast<double>(axis.in);
  }
  return ResizeBy(node, options, axes);
}

}  // namespace

OnnxRows OnnxResizeRows() {
  return {
      {"Resize",
       {10, 11, 13, 18, 19},
       1,
       4,
       ImportResize,
       "",
       "resized dimensions are constant, or nearest by whole scales"},
      {"Upsample",
       {7, 9},
       1,
       2,
       ImportUpsample,
       "",
       "resized dimensions are constant, or nearest by whole scales",
       10},
  };
}

}  // namespace svod
