// ToStatus: the one way from llvm::Error to absl::Status.
// Included by jit/'s .cc files. Not part of the face.
#ifndef SVOD_JIT_LLVM_STATUS_H_
#define SVOD_JIT_LLVM_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "llvm/Support/Error.h"

namespace svod {

// "context: reason; reason" for a failure, OK for success; the error is taken up either way.
// Memory that ran out is ResourceExhausted, everything else Internal.
absl::Status ToStatus(llvm::Error error, absl::string_view context);

}  // namespace svod

#endif  // SVOD_JIT_LLVM_STATUS_H_
