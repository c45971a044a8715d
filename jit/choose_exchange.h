// ChooseExchange: which reduction of a kernel goes around the loop that it stands in.
// Included by choose_actions.cc only. Must not change nodes or name LLVM.
#ifndef SVOD_JIT_CHOOSE_EXCHANGE_H_
#define SVOD_JIT_CHOOSE_EXCHANGE_H_

#include <optional>

#include "ir/passes/loop_actions.h"
#include "jit/target.h"

namespace svod {

// Sums over the rows of memory, such as those of columns, one column or vector after the other read
// a little of every row and come back for the rest when it has left the caches. Where the loop
// around reads a row's elements in order, and a row is more than what registers can sum up, whole
// rows are read instead, several at a time. Nullopt when no reduction gains; otherwise to be asked
// again once the action is done.
std::optional<LoopAction> ChooseExchange(const UOp* sink, const Target& target,
                                         PassContext& context);

}  // namespace svod

#endif  // SVOD_JIT_CHOOSE_EXCHANGE_H_
