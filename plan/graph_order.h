// GraphOrder: the ops of a graph block in the order in which a plan lists them.
// Included by prepare.cc and tests. Knows nodes only; no buffers of bytes, no kernels' insides.
#ifndef SVOD_PLAN_GRAPH_ORDER_H_
#define SVOD_PLAN_GRAPH_ORDER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/program.h"

namespace svod {

// A CALL, COPY or CUSTOM_FUNCTION with its buffer operands.
struct GraphOp {
  struct Operand {
    const UOp* buffer;  // the PARAM, BUFFER or BUFFER_VIEW below any AFTERs
    bool writes = true;
  };
  const UOp* node;
  std::vector<Operand> operands;
  std::vector<size_t> after;  // positions in GraphOps::ops that AFTERs put before it
};

struct GraphOps {
  std::vector<GraphOp> ops;           // in program order
  std::vector<const UOp*> buffers;    // PARAMs, BUFFERs and BUFFER_VIEWs, bases before views
  std::vector<const UOp*> variables;  // DEFINE_VARs outside the kernels, first of each name
};

// Every node that `sink` reaches without entering a kernel, sources before users. A called kernel's
// SINK is not among them. Iterative.
std::vector<const UOp*> GraphToposort(const UOp* sink);

// Bytes of `buffer` at its largest. Errors: InvalidArgument where MaxElements has one.
absl::StatusOr<int64_t> MaxBytes(const UOp* buffer);

// The ops of a verified graph in topological order. Verification has made sure that AFTERs order
// whatever conflicts.
// Errors: InvalidArgument for a view whose largest size leaves its base, or a size beyond measure.
absl::StatusOr<GraphOps> OrderGraph(const Function& graph);

}  // namespace svod

#endif  // SVOD_PLAN_GRAPH_ORDER_H_
