#include "ir/operators/sorting.h"

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"

namespace svod {
namespace {

// The first `count` elements in their order and where they came from.
std::pair<const UOp*, const UOp*> Placed(TensorBuilder& builder, const UOp* x, int64_t axis,
                                         const UOp* count, const UOp* rank_of_element) {
  ShapeSpan from = builder.ShapeOf(x);
  if (!builder.ok() || count == nullptr) return {nullptr, nullptr};
  Shape shape(from.begin(), from.end());
  shape[static_cast<size_t>(axis)] = count;
  const UOp* size = from[static_cast<size_t>(axis)];
  const UOp* positions =
      builder.Expand(PositionsAlong(builder, builder.RankOf(x), axis, size, Scalar::kI64), from);
  auto place = [&](const UOp* values) {
    const UOp* empty =
        values == nullptr ? nullptr : builder.Expand(builder.ConstInt(values->dtype(), 0), shape);
    return builder.Scatter(ScatterKind::kSet, empty, rank_of_element, values, axis);
  };
  const UOp* values = place(x);
  return {values, place(positions)};
}

}  // namespace

const UOp* SortRank(TensorBuilder& builder, const UOp* x, int64_t axis, bool descending) {
  if (!IsReady(builder, "sort", {x})) return nullptr;
  axis = builder.Axis(x, axis, "sort");
  if (axis < 0) return nullptr;
  int rank = builder.RankOf(x);
  const UOp* size = builder.Dim(x, axis);
  DType dtype = PositionDType(builder, size);
  // Element i along the axis beside every other, j, on an axis behind it.
  Expression mine(builder, builder.Unsqueeze(x, axis + 1));
  Expression other(builder, builder.Unsqueeze(x, axis));
  Expression i = PositionsAlong(builder, rank + 1, axis, size, dtype);
  Expression j = PositionsAlong(builder, rank + 1, axis + 1, size, dtype);
  Expression before = descending ? mine < other : other < mine;
  Expression equal = Equal(other, mine);
  if (x->dtype().is_float()) {
    Expression mine_is_nan = IsNan(mine), other_is_nan = IsNan(other);
    Expression not_mine = mine_is_nan.Of(Op::kNot), not_other = other_is_nan.Of(Op::kNot);
    before = Or(before, descending ? And(other_is_nan, not_mine) : And(mine_is_nan, not_other));
    equal = Or(equal, And(mine_is_nan, other_is_nan));
  }
  before = Or(before, And(equal, j < i));
  return builder.ReduceAxis(ReduceKind::kAdd, builder.Cast(before, dtype), {axis + 1}, false);
}

std::pair<const UOp*, const UOp*> Sort(TensorBuilder& builder, const UOp* x, int64_t axis,
                                       bool descending) {
  const UOp* rank = SortRank(builder, x, axis, descending);
  if (rank == nullptr) return {nullptr, nullptr};
  return Placed(builder, x, builder.Axis(x, axis, "sort"), builder.Dim(x, axis), rank);
}

std::pair<const UOp*, const UOp*> TopK(TensorBuilder& builder, const UOp* x, int64_t count,
                                       int64_t axis, bool largest) {
  if (!IsReady(builder, "top_k", {x})) return {nullptr, nullptr};
  axis = builder.Axis(x, axis, "top_k");
  const UOp* size = axis < 0 ? nullptr : builder.Dim(x, axis);
  if (size == nullptr) return {nullptr, nullptr};
  if (count < 0 || count > builder.dims().RangeOf(size).min) {
    FailOperator(builder, "top_k", "count", absl::StrCat(count),
                 absl::StrCat("0 to dimension ", axis, " of ", ShapeToString(builder.ShapeOf(x))));
    return {nullptr, nullptr};
  }
  return Placed(builder, x, axis, builder.Index(count), SortRank(builder, x, axis, largest));
}

}  // namespace svod
