// guard-accesses: gives a gate to every access that is not proved inside its buffer.
// Included by the pipeline and tests. Must not move an access.
#ifndef SVOD_IR_PASSES_GUARD_ACCESSES_H_
#define SVOD_IR_PASSES_GUARD_ACCESSES_H_

#include "absl/status/statusor.h"
#include "ir/pass.h"

namespace svod {

// Adds `0 <= position`, `position < size`, or the half in doubt, to the access's gate, lane by
// lane, in the forms that IsInBounds reads. An access outside then does what the interpreter says
// without a gate: load 0 or the alternative, store nothing. What is proved stays as it is, so a
// second run changes nothing. Errors: Internal when the gate is no proof after all.
absl::StatusOr<const UOp*> RunGuardAccesses(const UOp* root, PassContext& context);

}  // namespace svod

#endif  // SVOD_IR_PASSES_GUARD_ACCESSES_H_
