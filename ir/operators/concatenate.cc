// Putting tensors together and taking them apart: Concatenate, StackTensors, Split.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/shaping.h"

namespace svod {
namespace {

// Whether the tensors differ in nothing but their size along `axis`.
bool Fit(TensorBuilder& builder, absl::string_view op, absl::Span<const UOp* const> tensors,
         int64_t axis) {
  const UOp* first = tensors[0];
  for (const UOp* tensor : tensors) {
    ShapeSpan a = builder.ShapeOf(first), b = builder.ShapeOf(tensor);
    bool fits = tensor->dtype() == first->dtype() && a.size() == b.size();
    for (size_t i = 0; fits && i < a.size(); ++i) {
      fits = static_cast<int64_t>(i) == axis || builder.dims().Same(a[i], b[i]);
    }
    if (fits) continue;
    FailOperator(
        builder, op, "shapes",
        absl::StrCat(ShapeToString(first->dtype(), a), " and ", ShapeToString(tensor->dtype(), b)),
        axis < 0 ? std::string("them equal")
                 : absl::StrCat("one dtype, and equal dimensions but along axis ", axis));
    return false;
  }
  return true;
}

}  // namespace

const UOp* Concatenate(TensorBuilder& builder, absl::Span<const UOp* const> tensors, int64_t axis) {
  if (!IsReady(builder, "concatenate", tensors)) return nullptr;
  if (tensors.empty()) {
    return FailOperator(builder, "concatenate", "number of tensors", "0", "at least 1");
  }
  axis = builder.Axis(tensors[0], axis, "concatenate");
  if (axis < 0 || !Fit(builder, "concatenate", tensors, axis)) return nullptr;
  std::vector<const UOp*> pieces;
  for (const UOp* tensor : tensors) {
    if (!IsConstInt(builder.Dim(tensor, axis), 0)) pieces.push_back(tensor);
  }
  if (pieces.empty()) return tensors[0];
  // Of very many tensors, groups are put together first, in memory: an element that is chosen from
  // hundreds of pieces takes the code generator seconds. Pieces that lie one after the other in the
  // result are kept in memory by themselves, where the scheduler computes them in their places.
  constexpr size_t kMaxPieces = 16;
  bool are_runs = true;
  for (int64_t i = 0; i < axis; ++i) are_runs &= IsConstInt(builder.Dim(pieces[0], i), 1);
  if (pieces.size() > kMaxPieces && are_runs) {
    for (const UOp*& piece : pieces) piece = builder.Contiguous(piece);
  }
  while (pieces.size() > kMaxPieces) {
    std::vector<const UOp*> groups;
    for (size_t i = 0; i < pieces.size(); i += kMaxPieces) {
      size_t count = std::min(kMaxPieces, pieces.size() - i);
      const UOp* group = Concatenate(builder, absl::MakeConstSpan(pieces).subspan(i, count), axis);
      groups.push_back(count == 1 ? group : builder.Contiguous(group));
    }
    if (!builder.ok()) return nullptr;
    pieces = std::move(groups);
  }
  std::vector<const UOp*> begins = {builder.Index(0)};
  for (const UOp* piece : pieces) {
    begins.push_back(builder.dims().Add(begins.back(), builder.Dim(piece, axis)));
  }
  const UOp* total = begins.back();
  if (!builder.ok() || pieces.size() == 1) return builder.ok() ? pieces[0] : nullptr;
  DType dtype = PositionDType(builder, total);
  Expression position = PositionsAlong(builder, builder.RankOf(pieces[0]), axis, total, dtype);
  const UOp* zero = builder.ConstInt(pieces[0]->dtype(), 0);
  // Every piece at its place among zeros; then the right one is chosen, so that bits are kept.
  const UOp* result = nullptr;
  for (size_t i = pieces.size(); i-- > 0;) {
    const UOp* placed =
        builder.PadAxis(pieces[i], axis, zero, begins[i], builder.dims().Sub(total, begins[i + 1]));
    if (result == nullptr) {
      result = placed;
    } else {
      Expression is_before = position < DimensionValue(builder, begins[i + 1], dtype);
      result = builder.Where(is_before, placed, result);
    }
  }
  return result;
}

const UOp* StackTensors(TensorBuilder& builder, absl::Span<const UOp* const> tensors,
                        int64_t axis) {
  if (!IsReady(builder, "stack_tensors", tensors)) return nullptr;
  if (tensors.empty()) {
    return FailOperator(builder, "stack_tensors", "number of tensors", "0", "at least 1");
  }
  axis = builder.Axis(tensors[0], axis, "stack_tensors", 1);
  if (axis < 0 || !Fit(builder, "stack_tensors", tensors, -1)) return nullptr;
  std::vector<const UOp*> layers;
  for (const UOp* tensor : tensors) layers.push_back(builder.Unsqueeze(tensor, axis));
  return Concatenate(builder, layers, axis);
}

std::vector<const UOp*> Split(TensorBuilder& builder, const UOp* x, ShapeSpan sizes, int64_t axis) {
  if (!IsReady(builder, "split", {x})) return {};
  axis = builder.Axis(x, axis, "split");
  if (axis < 0) return {};
  const UOp* whole = builder.Dim(x, axis);
  const UOp* total = builder.Index(0);
  for (const UOp* size : sizes) total = builder.dims().Add(total, size);
  if (total == nullptr || !builder.dims().Same(total, whole)) {
    FailOperator(builder, "split",
                 absl::StrCat("sizes ", ShapeToString(sizes), " along axis ", axis, " of ",
                              ShapeToString(builder.ShapeOf(x))),
                 total == nullptr ? "null" : ToString(total), ToString(whole));
    return {};
  }
  std::vector<const UOp*> parts;
  const UOp* begin = builder.Index(0);
  for (const UOp* size : sizes) {
    parts.push_back(builder.ShrinkAxis(x, axis, begin, size));
    begin = builder.dims().Add(begin, size);
  }
  return builder.ok() ? parts : std::vector<const UOp*>();
}

std::vector<const UOp*> SplitEvenly(TensorBuilder& builder, const UOp* x, int64_t num_parts,
                                    int64_t axis) {
  if (!IsReady(builder, "split", {x})) return {};
  int64_t size = builder.ConstDim(x, axis, "split: dimension");
  if (size < 0) return {};
  if (num_parts < 1 || num_parts > std::max<int64_t>(size, 1) || size % num_parts != 0) {
    FailOperator(
        builder, "split", "parts", absl::StrCat(num_parts),
        absl::StrCat("a divisor of dimension ", axis, " of ", ShapeToString(builder.ShapeOf(x))));
    return {};
  }
  Shape sizes(static_cast<size_t>(num_parts), builder.Index(size / num_parts));
  return Split(builder, x, sizes, axis);
}

}  // namespace svod
