// FindPieces: recognises a value that is put together from others, as `Concatenate` does it.
// Included by the scheduler's sources and tests. Must not know kernels.
#ifndef SVOD_PLAN_FIND_PIECES_H_
#define SVOD_PLAN_FIND_PIECES_H_

#include <cstdint>
#include <vector>

#include "ir/shape.h"
#include "ir/uop.h"

namespace svod {

struct Piece {
  const UOp* value;
  int64_t begin;  // its first element's row-major position in the whole
};

// The parts of a value that is nothing but others, one after the other in memory, each of them kept
// in a buffer of its own (CONTIGUOUS): the same bytes as one buffer in which they lie side by side.
// In order; at least two, or none for any other value. Cost: linear in parts.
std::vector<Piece> FindPieces(const UOp* node, ShapeAnalysis& shapes);

}  // namespace svod

#endif  // SVOD_PLAN_FIND_PIECES_H_
