#include "ir/operators/compose.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace svod {

const UOp* FailOperator(TensorBuilder& builder, absl::string_view op, absl::string_view what,
                        absl::string_view got, absl::string_view expected) {
  return builder.FailInvalid(absl::StrCat(op, ": ", what, ", got ", got, ", expected ", expected));
}

bool IsReady(TensorBuilder& builder, absl::string_view op, absl::Span<const UOp* const> nodes) {
  if (!builder.ok()) return false;
  for (const UOp* node : nodes) {
    if (node == nullptr) {
      FailOperator(builder, op, "operand", "null", "a tensor");
      return false;
    }
    builder.ShapeOf(node);  // of no tensor: a failure
  }
  return builder.ok();
}

bool IsReady(TensorBuilder& builder, absl::string_view op,
             std::initializer_list<const UOp*> nodes) {
  return IsReady(builder, op, absl::Span<const UOp* const>(nodes.begin(), nodes.size()));
}

bool IsFloating(TensorBuilder& builder, absl::string_view op,
                std::initializer_list<const UOp*> nodes) {
  if (!IsReady(builder, op, nodes)) return false;
  DType first = (*nodes.begin())->dtype();
  for (const UOp* node : nodes) {
    if (!node->dtype().is_float()) {
      FailOperator(builder, op, "operand dtype", ToString(node->dtype()), "a float");
      return false;
    }
    if (node->dtype() != first) {
      FailOperator(builder, op, "operand dtypes",
                   absl::StrCat(ToString(first), " and ", ToString(node->dtype())), "them equal");
      return false;
    }
  }
  return true;
}

DType WideDType(DType dtype) {
  return dtype == Scalar::kF16 || dtype == Scalar::kBF16 ? DType(Scalar::kF32) : dtype;
}

Expression Widen(TensorBuilder& builder, const UOp* x) {
  return {builder, x == nullptr ? nullptr : builder.Cast(x, WideDType(x->dtype()))};
}

const UOp* ToFloat(TensorBuilder& builder, const UOp* x) {
  if (x == nullptr || x->dtype().is_float()) return x;
  return builder.Cast(x, Scalar::kF64);
}

Expression DimensionValue(TensorBuilder& builder, const UOp* dimension, DType dtype) {
  if (!builder.ok() || dimension == nullptr) return {builder, nullptr};
  if (IsConst(dimension)) return {builder, builder.ConstInt(dtype, ConstInt(dimension))};
  return {builder, builder.Cast(dimension, dtype)};
}

Expression PositionsAlong(TensorBuilder& builder, int rank, int64_t axis, const UOp* size,
                          DType dtype) {
  if (!builder.ok() || size == nullptr) return {builder, nullptr};
  Shape shape(static_cast<size_t>(rank), builder.Index(1));
  shape[static_cast<size_t>(axis)] = size;
  return {builder, builder.Reshape(builder.Arange(size, dtype), shape)};
}

DType PositionDType(TensorBuilder& builder, const UOp* dimension) {
  if (dimension == nullptr) return Scalar::kI64;
  bool is_small = builder.dims().RangeOf(dimension).max <= MaxValue(Scalar::kI32);
  return is_small ? Scalar::kI32 : Scalar::kI64;
}

std::optional<std::vector<int64_t>> ReducedAxes(TensorBuilder& builder, const UOp* x,
                                                absl::Span<const int64_t> axes,
                                                absl::string_view op) {
  if (!IsReady(builder, op, {x})) return std::nullopt;
  std::vector<int64_t> result;
  for (int64_t axis : axes) {
    axis = builder.Axis(x, axis, op);
    if (axis < 0) return std::nullopt;
    result.push_back(axis);
  }
  if (axes.empty()) {
    for (int64_t i = 0; i < builder.RankOf(x); ++i) result.push_back(i);
  }
  std::sort(result.begin(), result.end());
  auto twice = std::adjacent_find(result.begin(), result.end());
  if (twice != result.end()) {
    FailOperator(builder, op, "axes", absl::StrCat(*twice, " twice"), "every axis once");
    return std::nullopt;
  }
  return result;
}

const UOp* NumElements(TensorBuilder& builder, const UOp* x, absl::Span<const int64_t> axes) {
  ShapeSpan shape = builder.ShapeOf(x);
  if (!builder.ok()) return nullptr;
  const UOp* count = builder.Index(1);
  for (int64_t axis : axes) count = builder.dims().Mul(count, shape[static_cast<size_t>(axis)]);
  return count;
}

std::optional<std::vector<int64_t>> PerDimension(TensorBuilder& builder, absl::string_view op,
                                                 absl::string_view what,
                                                 absl::Span<const int64_t> given, int64_t count,
                                                 int64_t fallback, int64_t least) {
  if (!builder.ok()) return std::nullopt;
  size_t size = static_cast<size_t>(count);
  std::vector<int64_t> result(size, given.size() == 1 ? given[0] : fallback);
  if (given.size() > 1) {
    if (given.size() != size) {
      FailOperator(builder, op, what, absl::StrCat(given.size(), " numbers"),
                   absl::StrCat("1 or ", count));
      return std::nullopt;
    }
    result.assign(given.begin(), given.end());
  }
  // 2^31 keeps sums and products of attributes from overflowing.
  constexpr int64_t kMost = int64_t{1} << 31;
  for (int64_t number : result) {
    if (number >= least && number <= kMost) continue;
    FailOperator(builder, op, what, absl::StrCat(number), absl::StrCat(least, " to 2^31"));
    return std::nullopt;
  }
  return result;
}

Shape DimsBetween(TensorBuilder& builder, const UOp* x, int64_t begin, int64_t end) {
  ShapeSpan shape = builder.ShapeOf(x);
  Shape result;
  for (int64_t i = begin; builder.ok() && i < end; ++i) {
    result.push_back(shape[static_cast<size_t>(i)]);
  }
  return result;
}

}  // namespace svod
