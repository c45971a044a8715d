// ChooseSelections: which loops of a kernel are written out because they choose between values.
// Included by choose_actions.cc only. Must not change nodes or name LLVM.
#ifndef SVOD_JIT_CHOOSE_SELECTIONS_H_
#define SVOD_JIT_CHOOSE_SELECTIONS_H_

#include <vector>

#include "ir/passes/loop_actions.h"

namespace svod {

// Loops whose counters select (ir/selections.h), the outermost first: as loops they would compute
// every value in every iteration. The innermost of them, as far as their iterations together are
// few.
std::vector<LoopAction> ChooseSelections(const UOp* sink);

}  // namespace svod

#endif  // SVOD_JIT_CHOOSE_SELECTIONS_H_
