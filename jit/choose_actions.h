// ChooseActions: which loop actions make a kernel fast on a target.
// Included by the kernel cache and tools. Must not change nodes or name LLVM.
#ifndef SVOD_JIT_CHOOSE_ACTIONS_H_
#define SVOD_JIT_CHOOSE_ACTIONS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "ir/passes/loop_actions.h"
#include "jit/target.h"

namespace svod {

// Takes a kernel with kAutoOpt among its opts to one whose opts are the actions that were done to
// it, as text; one with kApplyOpt as RunApplyActions does; others come back as they are. Loops
// whose stores are next to each other become vectors; the loop around a contraction is unrolled so
// that its sums share what they load; the largest, smallest and other exact folds run in lanes. No
// choice changes a bit. Actions that turn out not to be legal are left out. Errors: of a kernel
// that verifies none but those of RunApplyActions.
absl::StatusOr<const UOp*> OptimizeLoops(const UOp* sink, const Target& target,
                                         PassContext& context);

}  // namespace svod

#endif  // SVOD_JIT_CHOOSE_ACTIONS_H_
