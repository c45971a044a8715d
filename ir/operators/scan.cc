#include "ir/operators/scan.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/reductions.h"

namespace svod {
namespace {

// Longer axes are cut into blocks of this many elements.
constexpr int64_t kBlock = 512;

const UOp* Identity(TensorBuilder& builder, ReduceKind kind, DType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (kind) {
    case ReduceKind::kAdd:
    case ReduceKind::kOr:
      return builder.ConstInt(dtype, 0);
    case ReduceKind::kMul:
      return builder.ConstInt(dtype, 1);
    case ReduceKind::kAnd:
      return builder.ConstInt(dtype, dtype.is_bool() ? 1 : -1);
    case ReduceKind::kMax:
      return dtype.is_float() ? builder.Const(dtype, -kInfinity)
                              : builder.ConstInt(dtype, MinValue(dtype));
    case ReduceKind::kMin:
      if (dtype.is_float()) return builder.Const(dtype, kInfinity);
      return builder.ConstInt(dtype, dtype.is_unsigned() ? -1 : MaxValue(dtype));
  }
  return nullptr;
}

Expression Combined(ReduceKind kind, Expression x, Expression y) {
  switch (kind) {
    case ReduceKind::kAdd:
      return x + y;
    case ReduceKind::kMul:
      return x * y;
    case ReduceKind::kMax:
      return Max(x, y);
    case ReduceKind::kMin:
      return Min(x, y);
    case ReduceKind::kAnd:
      return And(x, y);
    case ReduceKind::kOr:
      return Or(x, y);
  }
  return x;
}

// Along the last axis, in one step: a reduction over those j that i sees.
Expression ScanShort(TensorBuilder& builder, ReduceKind kind, const UOp* x, bool exclusive) {
  int rank = builder.RankOf(x);
  const UOp* size = builder.Dim(x, -1);
  if (size == nullptr) return {builder, nullptr};
  DType dtype = PositionDType(builder, size);
  Expression i = PositionsAlong(builder, rank + 1, rank - 1, size, dtype);
  Expression j = PositionsAlong(builder, rank + 1, rank, size, dtype);
  Expression seen = exclusive ? j < i : j <= i;
  Expression row(builder, builder.Unsqueeze(x, rank - 1));
  Expression identity(builder, Identity(builder, kind, x->dtype()));
  return {builder, builder.ReduceAxis(kind, Select(seen, row, identity), {-1}, false)};
}

// Along the last axis: blocks by themselves, to each the fold of those before it.
Expression ScanLast(TensorBuilder& builder, ReduceKind kind, const UOp* x, bool exclusive) {
  const UOp* size = x == nullptr ? nullptr : builder.Dim(x, -1);
  if (size == nullptr) return {builder, nullptr};
  int64_t most = builder.dims().RangeOf(size).max;
  if (most <= kBlock) return ScanShort(builder, kind, x, exclusive);
  if (most > (int64_t{1} << 40)) {
    FailOperator(builder, "scan", "dimension", absl::StrCat(ToString(size), " of up to ", most),
                 "at most 2^40");
    return {builder, nullptr};
  }
  int64_t num_blocks = (most + kBlock - 1) / kBlock;
  const UOp* padded_size = builder.Index(num_blocks * kBlock);
  const UOp* rest = builder.dims().Sub(padded_size, size);
  const UOp* padded =
      builder.PadAxis(x, -1, Identity(builder, kind, x->dtype()), builder.Index(0), rest);
  int64_t last = builder.RankOf(x) - 1;
  Shape shape = DimsBetween(builder, x, 0, last);
  Shape blocked = shape;
  blocked.push_back(builder.Index(num_blocks));
  blocked.push_back(builder.Index(kBlock));
  shape.push_back(padded_size);
  const UOp* blocks = builder.Reshape(padded, blocked);
  Expression inside = ScanShort(builder, kind, blocks, exclusive);
  const UOp* totals = builder.ReduceAxis(kind, blocks, {-1}, false);
  // As deep as log512 of the size, so at most 5.
  Expression before(builder, builder.Unsqueeze(ScanLast(builder, kind, totals, true), -1));
  const UOp* result = builder.Reshape(Combined(kind, before, inside), shape);
  return {builder, builder.ShrinkAxis(result, -1, builder.Index(0), size)};
}

const UOp* Scan(TensorBuilder& builder, absl::string_view op, ReduceKind kind, const UOp* x,
                int64_t axis, const ScanOptions& options, std::optional<DType> dtype) {
  if (!IsReady(builder, op, {x})) return nullptr;
  axis = builder.Axis(x, axis, op);
  if (axis < 0) return nullptr;
  DType result_dtype = dtype.value_or(x->dtype());
  const UOp* row = builder.Cast(builder.Cast(x, result_dtype), WideDType(result_dtype));
  row = builder.Transpose(row, axis, -1);
  if (options.reverse) row = builder.Flip(row, {-1});
  row = ScanLast(builder, kind, row, options.exclusive);
  if (options.reverse) row = builder.Flip(row, {-1});
  return builder.Cast(builder.Transpose(row, axis, -1), result_dtype);
}

}  // namespace

const UOp* CumulativeSum(TensorBuilder& builder, const UOp* x, int64_t axis,
                         const ScanOptions& options, std::optional<DType> dtype) {
  if (x != nullptr) dtype = dtype.value_or(SumDType(x->dtype()));
  return Scan(builder, "cumsum", ReduceKind::kAdd, x, axis, options, dtype);
}

const UOp* CumulativeProduct(TensorBuilder& builder, const UOp* x, int64_t axis,
                             const ScanOptions& options, std::optional<DType> dtype) {
  if (x != nullptr) dtype = dtype.value_or(SumDType(x->dtype()));
  return Scan(builder, "cumprod", ReduceKind::kMul, x, axis, options, dtype);
}

const UOp* CumulativeMax(TensorBuilder& builder, const UOp* x, int64_t axis,
                         const ScanOptions& options) {
  return Scan(builder, "cummax", ReduceKind::kMax, x, axis, options, std::nullopt);
}

const UOp* CumulativeMin(TensorBuilder& builder, const UOp* x, int64_t axis,
                         const ScanOptions& options) {
  return Scan(builder, "cummin", ReduceKind::kMin, x, axis, options, std::nullopt);
}

}  // namespace svod
