// Verifier: what a whole kernel or graph must satisfy beyond each node's own row of the op table.
// Included by passes, compilation and tools; runs between stages. Must not change nodes.
#ifndef SVOD_IR_VERIFY_H_
#define SVOD_IR_VERIFY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ir/program.h"

namespace svod {

// Most scratch that the REG nodes and the LOCAL nodes of one kernel may take together [bytes]. REG
// lies on the stack of the thread that runs the kernel.
inline constexpr int64_t kMaxRegBytes = int64_t{1} << 16;
inline constexpr int64_t kMaxLocalBytes = int64_t{1} << 30;

struct VerifyOptions {
  // The property that lowering needs: every access is proved inside its buffer or gated so, no
  // REDUCE and no transcendental op is left.
  bool lowerable = false;
};

// Checks a kernel: only ops of kernels, operands of the right kind, slots, axes, scratch ids and
// variables unique, sizes of buffers and scratch bounded, at most one CORE_ID, loops well nested
// (see Linearize), each effect performed once, parameters accessed as they say, and that of any two
// accesses of one buffer which may touch the same element, one a store, one comes after the other.
// Checks a graph: only ops of graphs, buffers unique and bounded, calls that fit their kernels, and
// that of any two uses of one buffer, one of them writing, one comes after the other; the returned
// states come after all writes. The kernels that a graph calls are not entered.
// Errors: InvalidArgument "verify: file:line:column: %name op: what, got X, expected Y"; OutOfRange
// for a bind outside the variable's bounds; ResourceExhausted for scratch beyond the limits above,
// or for millions of accesses of one buffer whose order cannot be seen in bounded time.
// Cost: linear in nodes for programs whose accesses are far apart or in sequence.
absl::Status Verify(const Function& function, const VerifyOptions& options = {});

}  // namespace svod

#endif  // SVOD_IR_VERIFY_H_
