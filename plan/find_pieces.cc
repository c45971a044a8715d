#include "plan/find_pieces.h"

namespace svod {
namespace {

bool AreConst(ShapeSpan shape) {
  for (const UOp* dimension : shape) {
    if (!IsConst(dimension)) return false;
  }
  return true;
}

// Whether `condition` is `position along axis < end` for a whole of this shape.
bool IsBefore(const UOp* condition, ShapeSpan shape, size_t axis, int64_t end) {
  if (condition->op() != Op::kCmpLt) return false;
  const UOp *position = condition->source(0), *bound = condition->source(1);
  if (!IsConst(bound) || !bound->dtype().is_integer() || ConstInt(bound) != end) return false;
  ShapeSpan dims;
  if (position->op() == Op::kReshape) {
    dims = position->sources().subspan(1);
    position = position->source(0);
  }
  if (position->op() != Op::kArange || position->source(0) != shape[axis]) return false;
  if (dims.empty()) return shape.size() == 1;
  if (dims.size() != shape.size()) return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i == axis ? dims[i] != shape[i] : !IsConstInt(dims[i], 1)) return false;
  }
  return true;
}

// Where a PAD, whose sources follow value and fill, puts something before or after its operand;
// the rank for nowhere, or in more than one dimension.
size_t PaddedAxis(const UOp* pad, size_t rank) {
  ShapeSpan amounts = pad->sources().subspan(2);
  size_t axis = rank;
  for (size_t i = 0; i < rank; ++i) {
    if (IsConstInt(amounts[i], 0) && IsConstInt(amounts[rank + i], 0)) continue;
    if (axis != rank) return rank;
    axis = i;
  }
  return axis;
}

}  // namespace

std::vector<Piece> FindPieces(const UOp* node, ShapeAnalysis& shapes) {
  while (node->op() == Op::kContiguous) node = node->source(0);
  if (node->op() != Op::kWhere) return {};
  absl::StatusOr<ShapeSpan> known = shapes.Of(node);
  if (!known.ok() || !AreConst(*known)) return {};
  const Shape shape(known->begin(), known->end());
  std::vector<Piece> pieces;
  int64_t position = 0;  // along the axis
  // Each WHERE takes what is before the end of one piece from it, the rest from the next.
  while (true) {
    const bool is_last = node->op() != Op::kWhere;
    const UOp* placed = is_last ? node : node->source(1);
    if (placed->op() != Op::kPad) return {};
    const size_t axis = PaddedAxis(placed, shape.size());
    if (axis == shape.size()) return {};
    const UOp* value = placed->source(0);
    absl::StatusOr<ShapeSpan> part = shapes.Of(value);
    if (value->op() != Op::kContiguous || !part.ok() || !AreConst(*part)) return {};
    ShapeSpan amounts = placed->sources().subspan(2);
    if (!IsConstInt(amounts[axis], position)) return {};
    int64_t inner = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
      // Rows of more than one dimension would take turns.
      if (i < axis && !IsConstInt(shape[i], 1)) return {};
      if (i > axis) inner *= ConstInt(shape[i]);
    }
    pieces.push_back({value, position * inner});
    position += ConstInt((*part)[axis]);
    if (is_last) break;
    if (!IsBefore(node->source(0), shape, axis, position)) return {};
    node = node->source(2);
  }
  return pieces;
}

}  // namespace svod
