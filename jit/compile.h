// CompileToObject: a kernel's final UOps become an object file, or text to look at.
// Included by the kernel cache and tools. Names nothing of LLVM.
#ifndef SVOD_JIT_COMPILE_H_
#define SVOD_JIT_COMPILE_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ir/program.h"
#include "ir/uop.h"
#include "jit/target.h"

namespace svod {

struct CompileOptions {
  Target target;  // an empty triple: the host
  // LLVM's effort: 0 compiles in half the time, and runs 1.2 to 7 times slower; 1 is the default;
  // 2 and 3 gained nothing in measurements.
  int code_gen_level = 1;
  // Checks the UOps first. Without it, UOps that Verify would refuse may crash the process.
  bool verify = true;
  // For the passes of KernelCache::GetOrCompile: fuses float x * y + z, which changes bits.
  bool contract_mulacc = false;
  // No two buffers of a launch share a byte; see LowerOptions.
  bool noalias = false;
  // Line tables that point at the kernel's text in dump_directory, for debuggers.
  bool line_tables = false;
  // Each stage is written there as kernel-<hash>.{uop,ll,s,o} before the next begins. Empty: to the
  // environment's SVOD_DUMP, if that is set.
  std::string dump_directory;
};

struct ObjectCode {
  std::string bytes;          // an ELF relocatable
  std::string entry;          // its one function: svod_<kernel>_<hash>
  int64_t scratch_bytes = 0;  // see CompiledKernel
  double lower_ms = 0;        // UOps to LLVM IR
  double code_gen_ms = 0;     // LLVM IR to object
};

// Compiles a kernel for which Verify with `lowerable` holds. The bytes depend on the kernel, the
// target and the options only.
// Errors: what Verify and LowerToLlvm say, their code kept; Internal for a failure in the code
// generator, with its message, the kernel's name and its text or the file that holds it.
// Threads: any number of calls at a time. Code generators are kept for the next call, on whatever
// thread, with the constants of up to 64 kernels.
// Cost: 0.5 ms, and 1 to 5 ms for a hundred instructions; the first of a target and level 1.5 ms
// more, the first of a process 15 ms more.
absl::StatusOr<ObjectCode> CompileToObject(const UOp* sink, const CompileOptions& options);

// The stages between, for any target: LLVM IR with the notes' names, and assembly.
absl::StatusOr<std::string> PrintLlvm(const Function& kernel, const CompileOptions& options);
absl::StatusOr<std::string> PrintAssembly(const Function& kernel, const CompileOptions& options);

// The entry point's name: "svod_softmax_1f0c...". It depends on content only.
std::string EntrySymbol(const UOp* sink);

// LLVM's version, "22.1.8".
const char* LlvmVersion();

// Turns LLVM's fatal errors (an operation that the target cannot select, which Verify and lowering
// should have refused) during a compilation into Status Internal, where the process would end
// otherwise. Memory of that compilation is lost. For programs only: the handler is the whole
// process's and embedders may have their own.
void InstallFatalErrorHandler();

}  // namespace svod

#endif  // SVOD_JIT_COMPILE_H_
