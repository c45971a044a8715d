// ChooseStreams: which loops of a kernel store past the caches.
// Included by choose_actions.cc only. Must not change nodes or name LLVM.
#ifndef SVOD_JIT_CHOOSE_STREAMS_H_
#define SVOD_JIT_CHOOSE_STREAMS_H_

#include <vector>

#include "ir/passes/loop_actions.h"
#include "jit/target.h"

namespace svod {

// Loops that write whole vectors to parameters which the last-level cache cannot hold beside what
// the kernel reads: nobody will find them there, and the lines would be read only to be
// overwritten.
std::vector<LoopAction> ChooseStreams(const UOp* sink, const Target& target, PassContext& context);

}  // namespace svod

#endif  // SVOD_JIT_CHOOSE_STREAMS_H_
