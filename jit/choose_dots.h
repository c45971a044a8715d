// ChooseDots: which sums of products take bytes four at a time.
// Included by choose_actions.cc only. Must not change nodes or name LLVM.
#ifndef SVOD_JIT_CHOOSE_DOTS_H_
#define SVOD_JIT_CHOOSE_DOTS_H_

#include <vector>

#include "ir/pass.h"
#include "ir/passes/loop_actions.h"
#include "jit/target.h"

namespace svod {

// Sums of products of bytes, around which a loop can become vectors that share one factor, on
// targets with an instruction for dot products of bytes or for sums of pairs of products. Of a
// sum's counters the one along which that factor's bytes lie side by side, if it is long enough,
// else the longest; one that four divides goes before others.
std::vector<LoopAction> ChooseDots(const UOp* sink, const Target& target, PassContext& context);

}  // namespace svod

#endif  // SVOD_JIT_CHOOSE_DOTS_H_
