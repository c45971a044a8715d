#include "ir/operators/indexing.h"

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"

namespace svod {
namespace {

// Positions counted from 0 in an integer that holds them and the size.
Expression FromStart(TensorBuilder& builder, absl::string_view op, const UOp* positions,
                     const UOp* size) {
  if (!IsReady(builder, op, {positions, size})) return {builder, nullptr};
  DType dtype = positions->dtype();
  if (!dtype.is_integer()) {
    FailOperator(builder, op, "positions", ToString(dtype), "integers");
    return {builder, nullptr};
  }
  if (dtype.is_unsigned()) return {builder, positions};
  bool holds_size = dtype == Scalar::kI64 || dtype == Scalar::kIndex ||
                    (dtype == Scalar::kI32 && PositionDType(builder, size) == dtype);
  Expression at(builder, holds_size ? positions : builder.Cast(positions, Scalar::kI64));
  return Select(at < 0, at + DimensionValue(builder, size, at.node()->dtype()), at);
}

// How x and positions [P..., K] meet: x as rows, and positions as their numbers.
struct Rows {
  Shape head, tail, places;      // dimensions that positions name, others of x, P...
  const UOp* rows = nullptr;     // x as [product of head, product of tail]
  const UOp* numbers = nullptr;  // [product of places, 1], i64; -1 outside
};

bool FindRows(TensorBuilder& builder, absl::string_view op, const UOp* x, const UOp* positions,
              Rows* out) {
  if (!IsReady(builder, op, {x, positions})) return false;
  int64_t rank = builder.RankOf(x), num_places = builder.RankOf(positions) - 1;
  int64_t count = builder.ConstDim(positions, -1, absl::StrCat(op, ": coordinates"));
  if (count < 0) return false;
  if (count < 1 || count > rank) {
    FailOperator(builder, op, "coordinates",
                 absl::StrCat(count, " for ", ShapeToString(builder.ShapeOf(x))),
                 absl::StrCat("1 to ", rank));
    return false;
  }
  out->head = DimsBetween(builder, x, 0, count);
  out->tail = DimsBetween(builder, x, count, rank);
  out->places = DimsBetween(builder, positions, 0, num_places);
  Expression number(builder, builder.ConstInt(Scalar::kI64, 0));
  Expression inside(builder, builder.context().Bool(true));
  for (int64_t i = 0; i < count; ++i) {
    const UOp* size = out->head[static_cast<size_t>(i)];
    const UOp* one = builder.ShrinkAxis(positions, -1, builder.Index(i), builder.Index(1));
    Expression at(builder, builder.Cast(FromStart(builder, op, one, size), Scalar::kI64));
    if (at.node() == nullptr) return false;
    Expression length = DimensionValue(builder, size, Scalar::kI64);
    inside = And(inside, And(at >= 0, at < length));
    number = number * length + at;
  }
  const UOp* num_rows = builder.dims().Product(out->head);
  out->rows = builder.Reshape(x, {num_rows, builder.dims().Product(out->tail)});
  out->numbers = builder.Reshape(Select(inside, number, -1),
                                 {builder.dims().Product(out->places), builder.Index(1)});
  return builder.ok();
}

Shape Joined(const Shape& a, const Shape& b) {
  Shape result = a;
  result.insert(result.end(), b.begin(), b.end());
  return result;
}

}  // namespace

const UOp* Take(TensorBuilder& builder, const UOp* x, const UOp* positions, int64_t axis) {
  if (!IsReady(builder, "take", {x, positions})) return nullptr;
  axis = builder.Axis(x, axis, "take");
  if (axis < 0) return nullptr;
  Expression at = FromStart(builder, "take", positions, builder.Dim(x, axis));
  if (at.node() == nullptr) return nullptr;
  Shape before = DimsBetween(builder, x, 0, axis);
  Shape behind = DimsBetween(builder, x, axis + 1, builder.RankOf(x));
  Shape places = DimsBetween(builder, positions, 0, builder.RankOf(positions));
  const UOp* num_places = builder.dims().Product(places);
  Shape line(static_cast<size_t>(builder.RankOf(x)), builder.Index(1));
  line[static_cast<size_t>(axis)] = num_places;
  Shape wide = Joined(Joined(before, {num_places}), behind);
  const UOp* taken = builder.Gather(x, builder.Expand(builder.Reshape(at, line), wide), axis);
  return builder.Reshape(taken, Joined(Joined(before, places), behind));
}

const UOp* TakeAlongAxis(TensorBuilder& builder, const UOp* x, const UOp* positions, int64_t axis) {
  if (!IsReady(builder, "take_along_axis", {x, positions})) return nullptr;
  axis = builder.Axis(x, axis, "take_along_axis");
  if (axis < 0) return nullptr;
  ShapeSpan a = builder.ShapeOf(x), b = builder.ShapeOf(positions);
  if (a.size() != b.size()) {
    return FailOperator(builder, "take_along_axis", "shapes",
                        absl::StrCat(ShapeToString(a), " and ", ShapeToString(b)),
                        "as many dimensions");
  }
  Shape from(a.begin(), a.end()), to(b.begin(), b.end());
  size_t along = static_cast<size_t>(axis);
  from[along] = to[along] = builder.Index(1);
  absl::StatusOr<Shape> joined = BroadcastShapes({from, to}, builder.dims(), "take_along_axis");
  if (!joined.ok()) return builder.Fail(joined.status());
  const UOp *size = a[along], *num_positions = b[along];
  Expression at = FromStart(builder, "take_along_axis", positions, size);
  (*joined)[along] = size;
  x = builder.Expand(x, *joined);
  (*joined)[along] = num_positions;
  return builder.Gather(x, builder.Expand(at, *joined), axis);
}

const UOp* Embedding(TensorBuilder& builder, const UOp* table, const UOp* ids) {
  return Take(builder, table, ids, 0);
}

const UOp* OneHot(TensorBuilder& builder, const UOp* ids, const UOp* depth, DType dtype,
                  int64_t axis) {
  if (!IsReady(builder, "one_hot", {ids, depth})) return nullptr;
  axis = builder.Axis(ids, axis, "one_hot", 1);
  if (axis < 0) return nullptr;
  Expression at = FromStart(builder, "one_hot", ids, depth);
  Expression mine(builder, builder.Unsqueeze(builder.Cast(at, Scalar::kI64), axis));
  Expression each = PositionsAlong(builder, builder.RankOf(ids) + 1, axis, depth, Scalar::kI64);
  return builder.Cast(Equal(mine, each), dtype);
}

const UOp* GatherNd(TensorBuilder& builder, const UOp* x, const UOp* positions) {
  Rows found;
  if (!FindRows(builder, "gather_nd", x, positions, &found)) return nullptr;
  Shape wide = {builder.Dim(found.numbers, 0), builder.Dim(found.rows, 1)};
  const UOp* taken = builder.Gather(found.rows, builder.Expand(found.numbers, wide), 0);
  return builder.Reshape(taken, Joined(found.places, found.tail));
}

const UOp* ScatterNd(TensorBuilder& builder, const UOp* x, const UOp* positions, const UOp* updates,
                     ScatterKind kind) {
  Rows found;
  if (!FindRows(builder, "scatter_nd", x, positions, &found)) return nullptr;
  if (!IsReady(builder, "scatter_nd", {updates})) return nullptr;
  Shape expected = Joined(found.places, found.tail);
  ShapeSpan shape = builder.ShapeOf(x), given = builder.ShapeOf(updates);
  bool fits = given.size() == expected.size();
  for (size_t i = 0; fits && i < given.size(); ++i) {
    fits = builder.dims().Same(given[i], expected[i]);
  }
  if (!fits) {
    return FailOperator(builder, "scatter_nd", "updates", ShapeToString(given),
                        ShapeToString(expected));
  }
  Shape wide = {builder.Dim(found.numbers, 0), builder.Dim(found.rows, 1)};
  const UOp* result = builder.Scatter(kind, found.rows, builder.Expand(found.numbers, wide),
                                      builder.Reshape(updates, wide), 0);
  return builder.Reshape(result, shape);
}

const UOp* ScatterElements(TensorBuilder& builder, const UOp* x, const UOp* positions,
                           const UOp* updates, int64_t axis, ScatterKind kind) {
  if (!IsReady(builder, "scatter_elements", {x, positions, updates})) return nullptr;
  axis = builder.Axis(x, axis, "scatter_elements");
  if (axis < 0) return nullptr;
  Expression at = FromStart(builder, "scatter_elements", positions, builder.Dim(x, axis));
  return builder.Scatter(kind, x, at, updates, axis);
}

}  // namespace svod
