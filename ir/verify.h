// Verifier: what a whole kernel or graph must satisfy beyond each node's own row of the op table.
// Included by passes, compilation and tools; runs between stages. Must not change nodes.
#ifndef SVOD_IR_VERIFY_H_
#define SVOD_IR_VERIFY_H_

#include "absl/status/status.h"
#include "ir/program.h"

namespace svod {

struct VerifyOptions {
  // The property that lowering needs: every access is proved inside its buffer or gated so, no
  // REDUCE and no transcendental op is left.
  bool lowerable = false;
};

// Checks structure (one SINK, slots, axes and scratch ids unique, loops well nested), access modes,
// bounds of constants and extents, one CORE_ID, and that accesses of one buffer which may touch the
// same element are ordered.
// Errors: InvalidArgument "verify: file:line:column: %name op: what, got X, expected Y";
// ResourceExhausted for more than 2^31 nodes or scratch beyond the limits of docs/text.md.
absl::Status Verify(const Function& function, const VerifyOptions& options = {});

}  // namespace svod

#endif  // SVOD_IR_VERIFY_H_
