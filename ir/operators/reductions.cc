#include "ir/operators/reductions.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"

namespace svod {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Expression Reduced(Expression x, ReduceKind kind, const ReduceOptions& options) {
  return {x.builder(), x.builder().ReduceAxis(kind, x, options.axes, options.keep)};
}

// Reduces in a dtype that may be another than x's.
const UOp* ReduceIn(TensorBuilder& builder, absl::string_view op, ReduceKind kind, const UOp* x,
                    const ReduceOptions& options, std::optional<DType> dtype) {
  if (!IsReady(builder, op, {x})) return nullptr;
  const UOp* converted = builder.Cast(x, dtype.value_or(SumDType(x->dtype())));
  return Reduced(Expression(builder, converted), kind, options);
}

// The mean in the wide dtype of floats, with the axes kept.
Expression WideMean(Expression x, absl::Span<const int64_t> axes) {
  TensorBuilder& builder = x.builder();
  if (x.node() == nullptr) return x;
  Expression sum(builder, builder.ReduceAxis(ReduceKind::kAdd, x, axes, true));
  return sum / DimensionValue(builder, NumElements(builder, x, axes), x.node()->dtype());
}

// Without the axes, unless they are kept; of the dtype.
const UOp* Ended(Expression x, absl::Span<const int64_t> axes, bool keep, DType dtype) {
  TensorBuilder& builder = x.builder();
  const UOp* result = x;
  for (size_t i = axes.size(); !keep && i-- > 0;) result = builder.Squeeze(result, axes[i]);
  return builder.Cast(result, dtype);
}

// The squared distances' sum over the count less `correction`, in the wide dtype, axes kept.
Expression WideVariance(Expression x, absl::Span<const int64_t> axes, int64_t correction) {
  TensorBuilder& builder = x.builder();
  if (x.node() == nullptr) return x;
  Expression distance = x - WideMean(x, axes);
  Expression sum(builder, builder.ReduceAxis(ReduceKind::kAdd, distance * distance, axes, true));
  DType dtype = x.node()->dtype();
  Expression count = DimensionValue(builder, NumElements(builder, x, axes), dtype);
  // As NumPy: no fewer than 0, so that the quotient is inf or NaN.
  if (correction != 0) count = Max(count - static_cast<double>(correction), 0);
  return sum / count;
}

// What all statistics begin with: axes, and x as a wide float.
struct Statistic {
  std::vector<int64_t> axes;
  DType dtype;
  Expression wide;
};
std::optional<Statistic> BeginStatistic(TensorBuilder& builder, absl::string_view op, const UOp* x,
                                        const ReduceOptions& options) {
  std::optional<std::vector<int64_t>> axes = ReducedAxes(builder, x, options.axes, op);
  if (!axes.has_value()) return std::nullopt;
  const UOp* number = ToFloat(builder, x);
  return Statistic{*std::move(axes), number->dtype(), Widen(builder, number)};
}

}  // namespace

DType SumDType(DType dtype) {
  if (dtype.is_float() || dtype == Scalar::kIndex) return dtype;
  return dtype.is_unsigned() ? Scalar::kU64 : Scalar::kI64;
}

const UOp* Sum(TensorBuilder& builder, const UOp* x, const ReduceOptions& options,
               std::optional<DType> dtype) {
  return ReduceIn(builder, "sum", ReduceKind::kAdd, x, options, dtype);
}

const UOp* Prod(TensorBuilder& builder, const UOp* x, const ReduceOptions& options,
                std::optional<DType> dtype) {
  return ReduceIn(builder, "prod", ReduceKind::kMul, x, options, dtype);
}

const UOp* Amax(TensorBuilder& builder, const UOp* x, const ReduceOptions& options) {
  return builder.ReduceAxis(ReduceKind::kMax, x, options.axes, options.keep);
}

const UOp* Amin(TensorBuilder& builder, const UOp* x, const ReduceOptions& options) {
  return builder.ReduceAxis(ReduceKind::kMin, x, options.axes, options.keep);
}

const UOp* All(TensorBuilder& builder, const UOp* x, const ReduceOptions& options) {
  return ReduceIn(builder, "all", ReduceKind::kAnd, x, options, Scalar::kBool);
}

const UOp* Any(TensorBuilder& builder, const UOp* x, const ReduceOptions& options) {
  return ReduceIn(builder, "any", ReduceKind::kOr, x, options, Scalar::kBool);
}

const UOp* Mean(TensorBuilder& builder, const UOp* x, const ReduceOptions& options) {
  std::optional<Statistic> s = BeginStatistic(builder, "mean", x, options);
  if (!s.has_value()) return nullptr;
  return Ended(WideMean(s->wide, s->axes), s->axes, options.keep, s->dtype);
}

const UOp* Variance(TensorBuilder& builder, const UOp* x, const ReduceOptions& options,
                    int64_t correction) {
  std::optional<Statistic> s = BeginStatistic(builder, "variance", x, options);
  if (!s.has_value()) return nullptr;
  return Ended(WideVariance(s->wide, s->axes, correction), s->axes, options.keep, s->dtype);
}

const UOp* StandardDeviation(TensorBuilder& builder, const UOp* x, const ReduceOptions& options,
                             int64_t correction) {
  std::optional<Statistic> s = BeginStatistic(builder, "std", x, options);
  if (!s.has_value()) return nullptr;
  return Ended(Sqrt(WideVariance(s->wide, s->axes, correction)), s->axes, options.keep, s->dtype);
}

const UOp* Norm(TensorBuilder& builder, const UOp* x, double order, const ReduceOptions& options) {
  if (builder.ok() && std::isnan(order)) {
    return FailOperator(builder, "norm", "order", "nan", "a number");
  }
  std::optional<Statistic> s = BeginStatistic(builder, "norm", x, options);
  if (!s.has_value()) return nullptr;
  ReduceOptions kept = {s->axes, true};
  Expression magnitude = Abs(s->wide), result = magnitude;
  if (std::isinf(order)) {
    result = Reduced(magnitude, order > 0 ? ReduceKind::kMax : ReduceKind::kMin, kept);
  } else if (order == 0) {
    Expression is_counted(builder, builder.Cast(NotEqual(magnitude, 0), s->wide.node()->dtype()));
    result = Reduced(is_counted, ReduceKind::kAdd, kept);
  } else if (order == 1) {
    result = Reduced(magnitude, ReduceKind::kAdd, kept);
  } else if (order == 2) {
    result = Sqrt(Reduced(s->wide * s->wide, ReduceKind::kAdd, kept));
  } else {
    Expression sum = Reduced(magnitude.Of(Op::kPow, order), ReduceKind::kAdd, kept);
    result = sum.Of(Op::kPow, 1 / order);
  }
  return Ended(result, s->axes, options.keep, s->dtype);
}

const UOp* LogSumExp(TensorBuilder& builder, const UOp* x, const ReduceOptions& options) {
  if (!IsFloating(builder, "logsumexp", {x})) return nullptr;
  std::optional<Statistic> s = BeginStatistic(builder, "logsumexp", x, options);
  if (!s.has_value()) return nullptr;
  ReduceOptions kept = {s->axes, true};
  Expression largest = Reduced(s->wide, ReduceKind::kMax, kept);
  // Infinities are not taken off: inf - inf is NaN.
  Expression shift = Select(Abs(largest) < kInfinity, largest, 0);
  Expression sum = Reduced(Exp(s->wide - shift), ReduceKind::kAdd, kept);
  return Ended(Log(sum) + shift, s->axes, options.keep, s->dtype);
}

const UOp* Softmax(TensorBuilder& builder, const UOp* x, int64_t axis) {
  if (builder.ok() && x != nullptr) axis = builder.Axis(x, axis, "softmax");
  return InWide(builder, "softmax", x, [&](Expression v) {
    ReduceOptions along = {{axis}, true};
    Expression e = Exp(v - Reduced(v, ReduceKind::kMax, along));
    return e / Reduced(e, ReduceKind::kAdd, along);
  });
}

const UOp* LogSoftmax(TensorBuilder& builder, const UOp* x, int64_t axis) {
  if (builder.ok() && x != nullptr) axis = builder.Axis(x, axis, "log_softmax");
  return InWide(builder, "log_softmax", x, [&](Expression v) {
    ReduceOptions along = {{axis}, true};
    Expression shifted = v - Reduced(v, ReduceKind::kMax, along);
    return shifted - Log(Reduced(Exp(shifted), ReduceKind::kAdd, along));
  });
}

}  // namespace svod
