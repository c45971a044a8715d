// Verifier: what the parts of the verifier share. Included by verify*.cc only.
#ifndef SVOD_IR_VERIFIER_H_
#define SVOD_IR_VERIFIER_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "ir/program.h"
#include "ir/ranges.h"

namespace svod {

// One function, its nodes and what is known of them.
struct Verifier {
  explicit Verifier(const Function& f) : function(f) {}

  const Function& function;
  RangeAnalysis ranges;
  // Sources before users, the root last; kernels that a graph calls are left out.
  std::vector<const UOp*> nodes;

  // "verify: <place> <op>: <what>".
  absl::Status Error(const UOp* node, absl::string_view what,
                     absl::StatusCode code = absl::StatusCode::kInvalidArgument) const;
  // A node for the middle of a message: "%x load (file:3:5)".
  std::string Mention(const UOp* node) const;
};

// Whether a node has a value that arithmetic can take: a bare buffer or an address has none.
bool IsValue(const UOp* node);
// Whether a node is a buffer or a state of one.
bool IsBufferState(const UOp* node);
// Whether a node of a graph has elements that tensor ops can take: a buffer's state or a value.
bool IsTensor(const UOp* node);

// The checks that kernels and graphs share: PARAM slots, sizes of buffers, names of variables.
absl::Status VerifyDeclarations(Verifier& verifier);
absl::Status VerifyGraph(Verifier& verifier);
// The shapes of a graph's tensors, and that parameters which are only written are not read before.
absl::Status VerifyTensors(Verifier& verifier);

// The order of accesses to each buffer of a kernel.
absl::Status VerifyAccessOrder(Verifier& verifier);

}  // namespace svod

#endif  // SVOD_IR_VERIFIER_H_
