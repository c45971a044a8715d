// TileSums: which loops around sums of products become tiles, and which operands panels.
// Included by choose_actions.cc only. Must not change nodes or name LLVM.
#ifndef SVOD_JIT_CHOOSE_TILES_H_
#define SVOD_JIT_CHOOSE_TILES_H_

#include <vector>

#include "jit/loop_analysis.h"
#include "jit/target.h"

namespace svod {

// How many iterations of a loop become lanes of vectors; below 2: it stays as it is. A loop whose
// iterations fold sums takes two registers, so that each value that is the same in all lanes is
// used twice.
int64_t ChooseLanes(LoopAnalysis& analysis, const LoopUse& loop, const Target& target,
                    RangeAnalysis& ranges);

// For each innermost loop around sums of products (rows times columns; the loop is over columns):
// finds the loop over rows, whose iterations share an operand, and the tile of rows that keeps the
// registers busy. An operand that tiles read again and again, from far apart or after more than a
// load, goes into a panel that fits the cache, in the order in which tiles read it. Applies what
// has to come before loops become vectors (split, swap, pack); appends what has to come after to
// `unrolls`. Actions that are not legal are left out.
void TileSums(ShapedKernel& kernel, const Target& target, PassContext& context,
              std::vector<LoopAction>* unrolls);

}  // namespace svod

#endif  // SVOD_JIT_CHOOSE_TILES_H_
