// CreateTargetMachine: LLVM's code generator for a Target.
// Included by jit/'s own sources and tests. Not part of the folder's face: it names LLVM.
#ifndef SVOD_JIT_TARGET_MACHINE_H_
#define SVOD_JIT_TARGET_MACHINE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "jit/target.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Target/TargetMachine.h"

namespace svod {

// Position-independent, small code model, no contraction of floats. A target machine serves one
// thread at a time; keep it: making one and its first subtarget costs about 0.6 ms.
// Errors: Internal when LLVM refuses a target that MakeTarget has accepted.
absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> CreateTargetMachine(
    const Target& target, llvm::CodeGenOptLevel level = llvm::CodeGenOptLevel::Less);

}  // namespace svod

#endif  // SVOD_JIT_TARGET_MACHINE_H_
