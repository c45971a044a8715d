// Argmax and Argmin of reductions.h.
#include "absl/strings/str_cat.h"
#include "ir/evaluate.h"
#include "ir/operators/compose.h"
#include "ir/operators/indexing.h"
#include "ir/operators/reductions.h"

namespace svod {
namespace {

// Rows of so many blocks or more are searched by blocks of so many elements.
constexpr int64_t kBlock = 512, kMinBlocks = 4;

Expression Extreme(Expression x, ReduceKind kind, int64_t axis, bool keep) {
  return {x.builder(), x.builder().ReduceAxis(kind, x, {axis}, keep)};
}

// The first position along the axis where x is `extreme` or NaN.
Expression FirstOf(Expression x, Expression extreme, int64_t axis, bool keep) {
  TensorBuilder& builder = x.builder();
  if (x.node() == nullptr || extreme.node() == nullptr) return {builder, nullptr};
  Expression is_extreme = Equal(x, extreme);
  if (x.node()->dtype().is_float()) is_extreme = Or(is_extreme, IsNan(x));
  // Of the positions of extremes the least; others stand behind all of them.
  const UOp* size = builder.Dim(x, axis);
  DType dtype = PositionDType(builder, size);
  Expression positions = PositionsAlong(builder, builder.RankOf(x), axis, size, dtype);
  Expression behind = DimensionValue(builder, size, dtype);
  return Extreme(Select(is_extreme, positions, behind), ReduceKind::kMin, axis, keep);
}

// Whether each row, along the last axis, lies side by side in memory.
bool IsInMemory(const UOp* x) {
  while (x->op() == Op::kReshape) x = x->source(0);
  return x->op() == Op::kParam || x->op() == Op::kBuffer;
}

// The same along the last axis, in rows of `blocks` blocks: each element is read once, to find the
// extreme of its block; then the first block that has the row's extreme is searched.
Expression FirstInBlocks(Expression x, ReduceKind kind, int64_t blocks) {
  TensorBuilder& builder = x.builder();
  const int last = builder.RankOf(x) - 1;
  const DType dtype = x.node()->dtype();
  Shape rows = DimsBetween(builder, x, 0, last);
  const UOp* size = builder.Index(kBlock);
  if (const int64_t rest = blocks * kBlock - ConstInt(builder.Dim(x, last)); rest > 0) {
    const UOp* never = builder.context().Bits(dtype, ReduceIdentity(kind, dtype));
    x = {builder, builder.PadAxis(x, last, never, builder.Index(0), builder.Index(rest))};
  }
  Shape shape = rows;
  shape.insert(shape.end(), {builder.Index(blocks), size});
  Expression of_blocks = Extreme({builder, builder.Reshape(x, shape)}, kind, last + 1, false);
  Expression of_row = Extreme(of_blocks, kind, last, true);
  Expression block = FirstOf(of_blocks, of_row, last, false);

  // Among the blocks of all rows.
  const UOp* num_rows = builder.dims().Product(rows);
  const UOp* num_blocks = builder.dims().Mul(num_rows, builder.Index(blocks));
  Expression row(builder, builder.Reshape(builder.Arange(num_rows, Scalar::kI64), rows));
  Expression number(builder, builder.Cast(block, Scalar::kI64));
  Expression at = row * static_cast<double>(blocks) + number;
  Expression found(builder, Take(builder, builder.Reshape(x, Shape{num_blocks, size}), at, 0));
  Expression within = FirstOf(found, of_row, last, false);
  return number * static_cast<double>(kBlock) +
         Expression(builder, builder.Cast(within, Scalar::kI64));
}

const UOp* ArgExtreme(TensorBuilder& builder, absl::string_view op, ReduceKind kind, const UOp* x,
                      std::optional<int64_t> axis, bool keep, DType dtype) {
  if (!IsReady(builder, op, {x})) return nullptr;
  if (!dtype.is_integer()) {
    return FailOperator(builder, op, "dtype", ToString(dtype), "an integer");
  }
  int rank = builder.RankOf(x);
  const UOp* searched = x;
  if (!axis.has_value()) searched = builder.Reshape(x, {-1});
  int64_t along = builder.Axis(searched, axis.value_or(0), op);
  const UOp* size = along < 0 ? nullptr : builder.Dim(searched, along);
  if (size == nullptr) return nullptr;
  if (builder.dims().RangeOf(size).min < 1) {
    return FailOperator(
        builder, op,
        absl::StrCat("dimension ", along, " of ", ShapeToString(builder.ShapeOf(searched))),
        ToString(size), "at least 1 element");
  }
  Expression v(builder, searched);
  const bool is_long = IsConst(size) && ConstInt(size) >= kBlock * kMinBlocks &&
                       along == builder.RankOf(searched) - 1 && IsInMemory(searched);
  const UOp* first = is_long ? FirstInBlocks(v, kind, (ConstInt(size) + kBlock - 1) / kBlock).node()
                             : FirstOf(v, Extreme(v, kind, along, true), along, false).node();
  const UOp* result = builder.Cast(first, dtype);
  if (keep && axis.has_value()) return builder.Unsqueeze(result, along);
  if (keep) return builder.Reshape(result, Shape(static_cast<size_t>(rank), builder.Index(1)));
  return result;
}

}  // namespace

const UOp* Argmax(TensorBuilder& builder, const UOp* x, std::optional<int64_t> axis, bool keep,
                  DType dtype) {
  return ArgExtreme(builder, "argmax", ReduceKind::kMax, x, axis, keep, dtype);
}

const UOp* Argmin(TensorBuilder& builder, const UOp* x, std::optional<int64_t> axis, bool keep,
                  DType dtype) {
  return ArgExtreme(builder, "argmin", ReduceKind::kMin, x, axis, keep, dtype);
}

}  // namespace svod
