#include "ir/operators/normalization.h"

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/reductions.h"

namespace svod {
namespace {

// Whether the operand, if there is one, has the float dtype of x and the given dimensions.
bool HasShape(TensorBuilder& builder, absl::string_view op, absl::string_view what,
              const UOp* operand, DType dtype, ShapeSpan expected) {
  if (operand == nullptr) return builder.ok();
  ShapeSpan given = builder.ShapeOf(operand);
  if (!builder.ok()) return false;
  bool fits = operand->dtype() == dtype && given.size() == expected.size();
  for (size_t i = 0; fits && i < given.size(); ++i) {
    fits = builder.dims().Same(given[i], expected[i]);
  }
  if (fits) return true;
  FailOperator(builder, op, what, ShapeToString(operand->dtype(), given),
               ShapeToString(dtype, expected));
  return false;
}

// Statistics of x's axes from `first` on, kept.
Expression MeanOf(Expression x, int64_t first) {
  ReduceOptions options = {{}, true};
  for (int64_t i = first; i < x.builder().RankOf(x); ++i) options.axes.push_back(i);
  return {x.builder(), Mean(x.builder(), x, options)};
}

Expression Normalized(Expression x, int64_t first, double epsilon) {
  Expression distance = x - MeanOf(x, first);
  return distance * Recip(Sqrt(MeanOf(distance * distance, first) + epsilon));
}

// y * weight + bias, whose dimensions stand at `axis` of y and behind.
Expression Scaled(Expression y, const UOp* weight, const UOp* bias, int64_t axis) {
  TensorBuilder& builder = y.builder();
  auto placed = [&](const UOp* operand) {
    Shape shape = DimsBetween(builder, operand, 0, builder.RankOf(operand));
    while (builder.ok() && static_cast<int64_t>(shape.size()) + axis < builder.RankOf(y)) {
      shape.push_back(builder.Index(1));
    }
    return Widen(builder, builder.Reshape(operand, shape));
  };
  if (weight != nullptr) y = y * placed(weight);
  if (bias != nullptr) y = y + placed(bias);
  return y;
}

// Whether x has channels in dimension 1, in `channels`.
bool FindChannels(TensorBuilder& builder, absl::string_view op, const UOp* x, Shape* channels) {
  if (!IsFloating(builder, op, {x})) return false;
  if (builder.RankOf(x) < 2) {
    FailOperator(builder, op, "shape", ShapeToString(builder.ShapeOf(x)), "[N, C, ...]");
    return false;
  }
  *channels = DimsBetween(builder, x, 1, 2);
  return true;
}

}  // namespace

const UOp* LayerNorm(TensorBuilder& builder, const UOp* x, const UOp* weight, const UOp* bias,
                     int64_t axis, double epsilon) {
  if (!IsFloating(builder, "layer_norm", {x})) return nullptr;
  axis = builder.Axis(x, axis, "layer_norm");
  if (axis < 0) return nullptr;
  Shape shape = DimsBetween(builder, x, axis, builder.RankOf(x));
  if (!HasShape(builder, "layer_norm", "weight", weight, x->dtype(), shape) ||
      !HasShape(builder, "layer_norm", "bias", bias, x->dtype(), shape)) {
    return nullptr;
  }
  Expression y = Normalized(Widen(builder, x), axis, epsilon);
  return builder.Cast(Scaled(y, weight, bias, axis), x->dtype());
}

const UOp* RmsNorm(TensorBuilder& builder, const UOp* x, const UOp* weight, int64_t axis,
                   double epsilon) {
  if (!IsFloating(builder, "rms_norm", {x})) return nullptr;
  axis = builder.Axis(x, axis, "rms_norm");
  if (axis < 0) return nullptr;
  Shape shape = DimsBetween(builder, x, axis, builder.RankOf(x));
  if (!HasShape(builder, "rms_norm", "weight", weight, x->dtype(), shape)) return nullptr;
  Expression wide = Widen(builder, x);
  Expression y = wide * Recip(Sqrt(MeanOf(wide * wide, axis) + epsilon));
  return builder.Cast(Scaled(y, weight, nullptr, axis), x->dtype());
}

const UOp* BatchNorm(TensorBuilder& builder, const UOp* x, const UOp* mean, const UOp* variance,
                     const UOp* weight, const UOp* bias, int64_t axis, double epsilon) {
  if (!IsFloating(builder, "batch_norm", {x, mean, variance})) return nullptr;
  axis = builder.Axis(x, axis, "batch_norm");
  if (axis < 0) return nullptr;
  Shape channels = DimsBetween(builder, x, axis, axis + 1);
  for (auto [what, operand] : {std::pair{"mean", mean}, std::pair{"variance", variance},
                               std::pair{"weight", weight}, std::pair{"bias", bias}}) {
    if (!HasShape(builder, "batch_norm", what, operand, x->dtype(), channels)) return nullptr;
  }
  Expression scale = Recip(Sqrt(Widen(builder, variance) + epsilon));
  const UOp* negative_mean = -Widen(builder, mean);
  Expression y = Scaled(Widen(builder, x), nullptr, negative_mean, axis);
  return builder.Cast(Scaled(Scaled(y, scale, nullptr, axis), weight, bias, axis), x->dtype());
}

const UOp* GroupNorm(TensorBuilder& builder, const UOp* x, const UOp* weight, const UOp* bias,
                     int64_t num_groups, double epsilon) {
  Shape channels;
  if (!FindChannels(builder, "group_norm", x, &channels)) return nullptr;
  int64_t num_channels = builder.ConstDim(x, 1, "group_norm: channels");
  if (num_channels < 0) return nullptr;
  if (num_groups < 1 || num_channels % num_groups != 0) {
    return FailOperator(
        builder, "group_norm", "groups", absl::StrCat(num_groups),
        absl::StrCat("a divisor of dimension 1 of ", ShapeToString(builder.ShapeOf(x))));
  }
  if (!HasShape(builder, "group_norm", "weight", weight, x->dtype(), channels) ||
      !HasShape(builder, "group_norm", "bias", bias, x->dtype(), channels)) {
    return nullptr;
  }
  Shape shape = DimsBetween(builder, x, 0, builder.RankOf(x)), grouped = shape;
  grouped[1] = builder.Index(num_groups);
  grouped.insert(grouped.begin() + 2, builder.Index(num_channels / num_groups));
  Expression y = Normalized(Widen(builder, builder.Reshape(x, grouped)), 2, epsilon);
  y = Expression(builder, builder.Reshape(y, shape));
  return builder.Cast(Scaled(y, weight, bias, 1), x->dtype());
}

const UOp* InstanceNorm(TensorBuilder& builder, const UOp* x, const UOp* weight, const UOp* bias,
                        double epsilon) {
  Shape channels;
  if (!FindChannels(builder, "instance_norm", x, &channels) ||
      !HasShape(builder, "instance_norm", "weight", weight, x->dtype(), channels) ||
      !HasShape(builder, "instance_norm", "bias", bias, x->dtype(), channels)) {
    return nullptr;
  }
  Expression y = Normalized(Widen(builder, x), 2, epsilon);
  return builder.Cast(Scaled(y, weight, bias, 1), x->dtype());
}

}  // namespace svod
