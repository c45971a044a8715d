// Linearisation: the one order in which a kernel's nodes run. Printer, evaluator and lowering all
// read it. Included by them and by the verifier. Must not change nodes.
#ifndef SVOD_IR_LINEARIZE_H_
#define SVOD_IR_LINEARIZE_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ir/uop.h"

namespace svod {

struct Step {
  enum class Kind : uint8_t { kCompute, kLoopBegin, kLoopEnd };
  Kind kind;
  // kCompute: the node to evaluate or perform (an END or REDUCE comes right after its loop);
  // kLoopBegin, kLoopEnd: the RANGE.
  const UOp* node;
};

// Most loops that may stand in one another.
inline constexpr int kMaxLoopDepth = 128;

struct LinearKernel {
  std::vector<Step> steps;
  // The innermost loop that a node runs in, as its RANGE; absent for nodes outside every loop. A
  // RANGE, whose value lives in its own loop, maps to itself.
  absl::flat_hash_map<const UOp*, const UOp*> loop_of;
  // The loop around a loop; absent at the top.
  absl::flat_hash_map<const UOp*, const UOp*> parent_loop;
  // The END or REDUCE nodes that close a RANGE: one END, or REDUCEs over equal ranges.
  absl::flat_hash_map<const UOp*, std::vector<const UOp*>> closers;
};

// Orders the nodes under a kernel's SINK, which is no step itself. The order depends on content
// only: a node is placed in the outermost loop that its sources allow, effects of one loop body in
// the order in which END and SINK list them, everything else right before its first user. CONST and
// INDEX nodes are steps too; RANGEs are the steps kLoopBegin and kLoopEnd. REDUCEs over the same
// ranges share one loop and follow it together.
// For a graph's SINK (no loops) it is the topological order, without the kernels that it calls.
// Errors: InvalidArgument for a range that is never closed, closed twice or used after its end, for
// loops that would have to interleave, and beyond kMaxLoopDepth; the message prints the ops and
// axes concerned, and `culprit`, if not null, is set to the node to blame.
// Cost: linear in nodes and sources, with sets of at most the nesting depth.
absl::StatusOr<LinearKernel> Linearize(const UOp* sink, const UOp** culprit = nullptr);

}  // namespace svod

#endif  // SVOD_IR_LINEARIZE_H_
