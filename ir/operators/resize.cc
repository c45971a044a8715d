#include "ir/operators/resize.h"

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/indexing.h"
#include "ir/operators/shaping.h"

namespace svod {
namespace {

// A place in the old dimension: numerator / denominator, the denominator more than 0.
struct Place {
  Expression numerator;
  int64_t denominator;
};

Place PlaceOf(Expression i, int64_t n, int64_t m, ResizeAlignment alignment) {
  double from = static_cast<double>(n), to = static_cast<double>(m);
  switch (alignment) {
    case ResizeAlignment::kHalfPixel:
      return {(i * 2 + 1) * from - to, 2 * m};
    case ResizeAlignment::kAlignCorners:
      if (m == 1) return {i * 0, 1};
      return {i * (from - 1), m - 1};
    case ResizeAlignment::kAsymmetric:
      return {i * from, m};
  }
  return {i, 1};
}

const UOp* NearestAlong(TensorBuilder& builder, const UOp* x, int64_t axis, int64_t n, int64_t m,
                        ResizeAlignment alignment) {
  // Whole multiples repeat elements, which needs no positions.
  if (m % n == 0 && alignment != ResizeAlignment::kAlignCorners) {
    return Repeat(builder, x, m / n, axis);
  }
  Expression i(builder, builder.Arange(builder.Index(m), Scalar::kI64));
  Place place = PlaceOf(i, n, m, alignment);
  // To the nearest, halves up: floor((2 * numerator + denominator) / (2 * denominator)).
  Expression numerator = place.numerator;
  double divisor = static_cast<double>(place.denominator);
  if (alignment != ResizeAlignment::kAsymmetric) {
    numerator = numerator * 2 + divisor;
    divisor *= 2;
  }
  Expression at = numerator.Of(Op::kFloordiv, divisor);
  return Take(builder, x, at, axis);
}

const UOp* LinearAlong(TensorBuilder& builder, const UOp* x, int64_t axis, int64_t n, int64_t m,
                       ResizeAlignment alignment) {
  if (x == nullptr) return nullptr;
  Expression i(builder, builder.Arange(builder.Index(m), Scalar::kI64));
  Place place = PlaceOf(i, n, m, alignment);
  double divisor = static_cast<double>(place.denominator);
  Expression numerator = Min(Max(place.numerator, 0), divisor * static_cast<double>(n - 1));
  Expression low = numerator.Of(Op::kFloordiv, divisor);
  Expression high = Min(low + 1, static_cast<double>(n - 1));
  Expression rest = numerator.Of(Op::kFloormod, divisor);
  Expression part(builder, builder.Cast(rest, x->dtype()));
  Shape line(static_cast<size_t>(builder.RankOf(x)), builder.Index(1));
  line[static_cast<size_t>(axis)] = builder.Index(m);
  Expression weight(builder, builder.Reshape(part / divisor, line));
  Expression a(builder, Take(builder, x, low, axis)), b(builder, Take(builder, x, high, axis));
  return a * (1 - weight) + b * weight;
}

}  // namespace

const UOp* Resize(TensorBuilder& builder, const UOp* x, absl::Span<const int64_t> sizes,
                  ResizeMode mode, ResizeAlignment alignment) {
  if (!IsReady(builder, "resize", {x})) return nullptr;
  if (mode == ResizeMode::kLinear && !IsFloating(builder, "resize", {x})) return nullptr;
  int64_t n = builder.RankOf(x) - 2;
  if (n < 1 || n > 3 || static_cast<int64_t>(sizes.size()) != n) {
    return FailOperator(
        builder, "resize", "shape and sizes",
        absl::StrCat(ShapeToString(builder.ShapeOf(x)), " and ", sizes.size(), " sizes"),
        "[N, C, i...] and a size for each of 1 to 3 spatial dimensions");
  }
  DType dtype = x->dtype();
  const UOp* result = mode == ResizeMode::kLinear ? Widen(builder, x).node() : x;
  for (int64_t axis = 2; axis < n + 2; ++axis) {
    int64_t from = builder.ConstDim(x, axis, "resize: dimension");
    int64_t to = sizes[static_cast<size_t>(axis - 2)];
    if (!builder.ok()) return nullptr;
    // 2^28: numerators fit 53 bits and f32 holds their differences' quotients.
    constexpr int64_t kMost = int64_t{1} << 28;
    if (from < 1 || from > kMost || to < 1 || to > kMost) {
      return FailOperator(builder, "resize", absl::StrCat("size of dimension ", axis),
                          absl::StrCat(from, " to ", to), "1 to 2^28");
    }
    if (from == to) continue;
    result = mode == ResizeMode::kNearest ? NearestAlong(builder, result, axis, from, to, alignment)
                                          : LinearAlong(builder, result, axis, from, to, alignment);
  }
  return builder.Cast(result, dtype);
}

}  // namespace svod
