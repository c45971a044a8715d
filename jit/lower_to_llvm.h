// LowerToLlvm: a kernel's final UOps become one LLVM function with the kernel ABI.
// Included by jit/'s own sources and tests. Not part of the folder's face: it names LLVM.
#ifndef SVOD_JIT_LOWER_TO_LLVM_H_
#define SVOD_JIT_LOWER_TO_LLVM_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ir/program.h"
#include "ir/uop.h"
#include "jit/target.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace svod {

struct LowerOptions {
  // The entry point's name; empty: the kernel's. Characters that no assembler takes become '_'.
  std::string symbol;
  // The caller promises that no two PARAMs of a launch share a byte.
  bool noalias = false;
  // Names and lines of nodes, as text gave them; null: values are named after their ops. Only read
  // during the call.
  const absl::flat_hash_map<const UOp*, NodeNote>* notes = nullptr;
  // Not empty: line tables that point at the notes' lines of this file. For a kernel's printed
  // text, lower what parsing that text gives, with its notes.
  std::string debug_path;
};

struct LoweredKernel {
  std::unique_ptr<llvm::Module> module;  // verified; triple and data layout are set
  std::string symbol;                    // of the one function with external linkage
  int64_t scratch_bytes = 0;             // what the ABI's scratch pointer must offer
};

// Lowers a kernel for which Verify with `lowerable` holds. What runs equals the interpreter bit for
// bit (NaN payloads apart) on every target, without any call out of the module. Variables take the
// positions of VariablesOf(sink).
// Errors: Unimplemented for REDUCE and transcendental ops, which passes replace before; what
// Linearize says; ResourceExhausted for more scratch than 2^31 bytes; Internal, with LLVM's
// message, for a module that its verifier refuses.
// Threads: one call at a time per LLVMContext.
absl::StatusOr<LoweredKernel> LowerToLlvm(const UOp* sink, const Target& target,
                                          llvm::LLVMContext& llvm_context,
                                          const LowerOptions& options = {});

}  // namespace svod

#endif  // SVOD_JIT_LOWER_TO_LLVM_H_
