// NeighboursOf: lists of loop actions that differ little from one, for a search to try.
// Included by the search and tests. Must not change nodes, run kernels or name LLVM.
#ifndef SVOD_JIT_ACTION_NEIGHBOURS_H_
#define SVOD_JIT_ACTION_NEIGHBOURS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/pass.h"
#include "ir/passes/loop_actions.h"

namespace svod {

using ActionList = std::vector<LoopAction>;

// Lists with one amount changed, two amounts traded (wider vectors for fewer rows), one action
// less, or one more on one of `axes`; in that order, nothing twice. Which of them are legal, only
// doing them shows.
std::vector<ActionList> NeighboursOf(absl::Span<const LoopAction> actions,
                                     absl::Span<const int64_t> axes);

// A kernel with those of a list's actions that are legal and keep every bit, and what these are:
// where an action is gone that others built on, the others go as well.
struct ShapedByList {
  const UOp* sink;  // its opts are those of `simplified`
  ActionList done;
};
ShapedByList DoLegalActions(const UOp* simplified, absl::Span<const LoopAction> actions,
                            PassContext& context);

// The axes of all loops of a kernel, in order.
std::vector<int64_t> AxesOf(const UOp* sink);

}  // namespace svod

#endif  // SVOD_JIT_ACTION_NEIGHBOURS_H_
