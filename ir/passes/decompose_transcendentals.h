// decompose-transcendentals: replaces exp, sin, pow, ... by arithmetic.
// Included by the pipeline and by constant folding. Must not know kernels' loops or memory.
#ifndef SVOD_IR_PASSES_DECOMPOSE_TRANSCENDENTALS_H_
#define SVOD_IR_PASSES_DECOMPOSE_TRANSCENDENTALS_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/pass.h"
#include "ir/uop.h"

namespace svod {

// Rewrites every op that the op table marks kTranscendental, on every float dtype and number of
// lanes, into adds, multiplications, fused multiply-adds, integer ops and selects: no branch, no
// table, no call. From here on the value of such an op is what these nodes compute; docs/math.md
// states its largest error. (Before, the interpreter gives the correctly rounded value.)
// Cost: linear in nodes; at most 200 new nodes an op.
absl::StatusOr<const UOp*> RunDecomposeTranscendentals(const UOp* root, PassContext& context);

// The nodes that replace one transcendental op on `sources`. To fold such an op on constants to the
// bits that the kernel would compute, evaluate these.
// Errors: Internal when `op` is not transcendental or the sources do not fit it.
absl::StatusOr<const UOp*> DecomposeTranscendental(Context& context, Op op,
                                                   absl::Span<const UOp* const> sources);

}  // namespace svod

#endif  // SVOD_IR_PASSES_DECOMPOSE_TRANSCENDENTALS_H_
