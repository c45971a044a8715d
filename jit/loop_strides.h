// StrideOf: how positions move with a loop's counter. Included by the choices of loop actions.
#ifndef SVOD_JIT_LOOP_STRIDES_H_
#define SVOD_JIT_LOOP_STRIDES_H_

#include <cstdint>

#include "ir/open_loops.h"
#include "ir/ranges.h"

namespace svod {

// By how many elements `position` moves with the counter of `range`, 0 also where it does not move
// at all. False where that is no constant, and for vectors of positions.
inline bool StrideOf(const UOp* position, const UOp* range, const OpenLoops& open,
                     RangeAnalysis& ranges, int64_t* stride) {
  *stride = 0;
  if (position->dtype().is_vector()) return false;
  Affine affine = ranges.AffineOf(position);
  for (const Term& term : affine.terms) {
    for (const Atom& atom : term.atoms) {
      if (atom.node == range) {
        if (term.atoms.size() > 1) return false;
        *stride += term.coefficient;
      } else if (open.DependsOn(atom.node, range)) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace svod

#endif  // SVOD_JIT_LOOP_STRIDES_H_
