#include "tools/onnx/sampler.h"

#include "ir/operators/compose.h"
#include "ir/operators/indexing.h"
#include "ir/operators/shaping.h"

namespace svod {
namespace {

Expression CubicWeight(Expression x, double a) {
  Expression near = ((x * (a + 2) - (a + 3)) * x * x) + 1.0;
  Expression far = ((x * a - 5 * a) * x + 8 * a) * x - 4 * a;
  return Select(x <= 1.0, near, far);
}

}  // namespace

Sampler::Sampler(TensorBuilder& builder, const UOp* images, SamplePadding padding,
                 bool align_corners)
    : builder_(builder),
      padding_(padding),
      align_corners_(align_corners),
      flat_(Flatten(builder, images, 2, -1)),
      images_(images) {
  for (int64_t i = 2; i < builder.RankOf(images); ++i) sizes_.push_back(builder.Dim(images, i));
}

Expression Sampler::Size(size_t axis, Expression like) const {
  return DimensionValue(builder_, sizes_[axis], like.node()->dtype());
}

Expression Sampler::Inside(Expression place, size_t axis) const {
  Expression size = Size(axis, place);
  if (padding_ == SamplePadding::kBorder) return Max(Min(place, size - 1.0), 0.0);
  if (padding_ != SamplePadding::kReflection) return place;
  double low = align_corners_ ? 0 : -0.5;
  Expression span = align_corners_ ? Max(size - 1.0, 1.0) : size;
  Expression distance = Abs(place - low);
  Expression flips = (distance / span).Of(Op::kFloor);
  Expression rest = distance - flips * span;
  Expression is_even = Equal((flips * 0.5).Of(Op::kFloor) * 2.0, flips);
  Expression reflected = Select(is_even, rest, span - rest) + low;
  return Max(Min(reflected, size - 1.0), 0.0);
}

Expression Sampler::At(const std::vector<Expression>& places) const {
  Expression is_inside(builder_, nullptr), position(builder_, nullptr);
  for (size_t i = 0; i < places.size(); ++i) {
    Expression inner = Inside(places[i], i);
    Expression fits = And(inner >= 0.0, inner <= Size(i, inner) - 1.0);
    Expression own(builder_, builder_.Cast(inner, Scalar::kI64));
    is_inside = i == 0 ? fits : And(is_inside, fits);
    position = i == 0 ? own : position * Size(i, own) + own;
  }
  position = Select(is_inside, position, 0.0);
  Expression value(builder_, TakeAlongAxis(builder_, flat_, builder_.Unsqueeze(position, 1), 2));
  return Select({builder_, builder_.Unsqueeze(is_inside, 1)}, value, 0.0);
}

// Sum over all combinations of `taps` pixels along each dimension, the first of them `first` from
// the one at or before the place.
template <typename Weight>
Expression Sampler::WeightedSum(const std::vector<Expression>& places, int64_t first, int64_t taps,
                                Weight weight) const {
  size_t num_dims = places.size();
  std::vector<int64_t> tap(num_dims, 0);
  Expression sum(builder_, nullptr);
  while (true) {
    std::vector<Expression> at;
    Expression factor(builder_, nullptr);
    for (size_t i = 0; i < num_dims; ++i) {
      at.push_back(places[i].Of(Op::kFloor) + static_cast<double>(first + tap[i]));
      Expression own = weight(Abs(at[i] - places[i]));
      factor = i == 0 ? own : factor * own;
    }
    Expression spread(builder_, builder_.Unsqueeze(factor, 1));
    Expression part = At(at) * Expression(builder_, builder_.Cast(spread, images_->dtype()));
    sum = sum.node() == nullptr ? part : sum + part;
    if (!builder_.ok()) return {builder_, nullptr};
    size_t i = num_dims;
    while (i > 0 && ++tap[i - 1] == taps) tap[--i] = 0;
    if (i == 0) return sum;
  }
}

Expression Sampler::Linear(const std::vector<Expression>& places) const {
  return WeightedSum(places, 0, 2, [](Expression distance) { return 1.0 - distance; });
}

Expression Sampler::Cubic(const std::vector<Expression>& places) const {
  return WeightedSum(places, -1, 4,
                     [](Expression distance) { return CubicWeight(distance, -0.75); });
}

}  // namespace svod
