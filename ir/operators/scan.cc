#include "ir/operators/scan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/evaluate.h"
#include "ir/operators/compose.h"
#include "ir/operators/reductions.h"

namespace svod {
namespace {

// Longer axes are cut into blocks: of so many elements first, which is as many steps for each, and
// of four times as many at each level above, where there are that much fewer.
constexpr int64_t kFirstBlock = 16, kLastBlock = 1024;

const UOp* Identity(TensorBuilder& builder, ReduceKind kind, DType dtype) {
  return builder.context().Bits(dtype, ReduceIdentity(kind, dtype));
}

// In one step: a reduction over those j that i sees.
Expression ScanShort(TensorBuilder& builder, ReduceKind kind, const UOp* x, int64_t axis,
                     bool exclusive) {
  int rank = builder.RankOf(x);
  const UOp* size = builder.Dim(x, axis);
  if (size == nullptr) return {builder, nullptr};
  DType dtype = PositionDType(builder, size);
  Expression i = PositionsAlong(builder, rank + 1, axis, size, dtype);
  Expression j = PositionsAlong(builder, rank + 1, axis + 1, size, dtype);
  Expression seen = exclusive ? j < i : j <= i;
  Expression row(builder, builder.Unsqueeze(x, axis));
  Expression identity(builder, Identity(builder, kind, x->dtype()));
  return {builder, builder.ReduceAxis(kind, Select(seen, row, identity), {axis + 1}, false)};
}

// Blocks by themselves, to each the fold of those before it.
Expression ScanBlocks(TensorBuilder& builder, ReduceKind kind, const UOp* x, int64_t axis,
                      bool exclusive, int64_t block) {
  const UOp* size = x == nullptr ? nullptr : builder.Dim(x, axis);
  if (size == nullptr) return {builder, nullptr};
  int64_t most = builder.dims().RangeOf(size).max;
  if (most <= block) return ScanShort(builder, kind, x, axis, exclusive);
  if (most > (int64_t{1} << 40)) {
    FailOperator(builder, "scan", "dimension", absl::StrCat(ToString(size), " of up to ", most),
                 "at most 2^40");
    return {builder, nullptr};
  }
  int64_t num_blocks = (most + block - 1) / block;
  const UOp* padded_size = builder.Index(num_blocks * block);
  const UOp* rest = builder.dims().Sub(padded_size, size);
  const UOp* padded =
      builder.PadAxis(x, axis, Identity(builder, kind, x->dtype()), builder.Index(0), rest);
  Shape shape = DimsBetween(builder, x, 0, axis), blocked = shape;
  shape.push_back(padded_size);
  blocked.insert(blocked.end(), {builder.Index(num_blocks), builder.Index(block)});
  for (const UOp* dimension : DimsBetween(builder, x, axis + 1, builder.RankOf(x))) {
    shape.push_back(dimension);
    blocked.push_back(dimension);
  }
  const UOp* blocks = builder.Reshape(padded, blocked);
  Expression inside = ScanShort(builder, kind, blocks, axis + 1, exclusive);
  const UOp* totals = builder.ReduceAxis(kind, blocks, {axis + 1}, false);
  // At most 6 levels deep.
  const int64_t next = std::min(4 * block, kLastBlock);
  Expression scanned = ScanBlocks(builder, kind, totals, axis, true, next);
  Expression before(builder, builder.Unsqueeze(scanned, axis + 1));
  const UOp* result = builder.Reshape(before.Of(ReduceOp(kind), inside), shape);
  // Whole blocks are computed, also where the last one sticks out: of a part of them an element's
  // block would be a division.
  if (!IsConstInt(rest, 0)) result = builder.Contiguous(result);
  return {builder, builder.ShrinkAxis(result, axis, builder.Index(0), size)};
}

const UOp* Scan(TensorBuilder& builder, absl::string_view op, ReduceKind kind, const UOp* x,
                int64_t axis, const ScanOptions& options, std::optional<DType> dtype) {
  if (!IsReady(builder, op, {x})) return nullptr;
  axis = builder.Axis(x, axis, op);
  if (axis < 0) return nullptr;
  DType result_dtype = dtype.value_or(x->dtype());
  const UOp* row = builder.Cast(builder.Cast(x, result_dtype), WideDType(result_dtype));
  if (options.reverse) row = builder.Flip(row, {axis});
  row = ScanBlocks(builder, kind, row, axis, options.exclusive, kFirstBlock);
  if (options.reverse) row = builder.Flip(row, {axis});
  return builder.Cast(row, result_dtype);
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
