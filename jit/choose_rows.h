// ChooseRows: folds of several rows side by side. Included by the choice of actions only.
#ifndef SVOD_JIT_CHOOSE_ROWS_H_
#define SVOD_JIT_CHOOSE_ROWS_H_

#include <vector>

#include "jit/loop_analysis.h"

namespace svod {

// What to unroll so that loops around folds fold several of their iterations at once. One fold ends
// in a chain of steps that wait for each other, across the lanes of a vector, and so does what
// follows from its result; those of other rows fill the waiting. Short rows are mostly waiting;
// rows that do not fit the first-level cache together are left alone, and so are the loops of
// `chosen`, in which it is settled already what runs side by side.
std::vector<LoopAction> ChooseRows(LoopAnalysis& analysis, const Target& target,
                                   RangeAnalysis& ranges, const std::vector<LoopAction>& chosen);

}  // namespace svod

#endif  // SVOD_JIT_CHOOSE_ROWS_H_
