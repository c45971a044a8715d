// IndexMap: movement ops as arithmetic on positions.
// Included by the scheduler's sources only. Must not know kernels.
#ifndef SVOD_PLAN_INDEX_MAP_H_
#define SVOD_PLAN_INDEX_MAP_H_

#include "ir/shape.h"
#include "ir/uop.h"

namespace svod {

// Where an element of a value comes from: coordinates, one a dimension, that mean something where
// `gate`, a bool, holds; null: everywhere.
struct Position {
  Shape index;
  const UOp* gate = nullptr;
  bool operator==(const Position&) const = default;
};

// Whether an op only moves elements: RESHAPE, EXPAND, PERMUTE, PAD, SHRINK and FLIP.
bool IsMovement(Op op);

// Makes bool and index arithmetic in normal form.
class IndexMap {
 public:
  explicit IndexMap(ShapeAnalysis& shapes, Context& context)
      : shapes_(shapes), dims_(shapes.dims()), context_(context) {}

  // Where the element of `movement` at `index` lies in source 0. The gate, for a PAD, is where it
  // is an element of source 0 at all. Errors: those of ShapeAnalysis.
  absl::StatusOr<Position> Through(const UOp* movement, ShapeSpan index);

  // The element of an operand of shape `from` that broadcasting puts at `index` of the result.
  Shape Broadcast(ShapeSpan index, ShapeSpan from);

  // Row-major position of coordinates.
  const UOp* Linear(ShapeSpan index, ShapeSpan shape);

  // a and b; null is true.
  const UOp* And(const UOp* a, const UOp* b);
  // 0 <= value < end, as far as it is not known; null when it is known to hold.
  const UOp* InRange(const UOp* value, const UOp* end);

 private:
  Position Reshape(ShapeSpan index, ShapeSpan to, ShapeSpan from);

  ShapeAnalysis& shapes_;
  Dims& dims_;
  Context& context_;
};

}  // namespace svod

#endif  // SVOD_PLAN_INDEX_MAP_H_
