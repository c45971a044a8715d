// Compiles a kernel's UOps for a target and runs them, for tests of lowering.
#ifndef SVOD_TESTS_UNIT_JIT_KERNEL_RUNNER_H_
#define SVOD_TESTS_UNIT_JIT_KERNEL_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/uop.h"
#include "jit/lower_to_llvm.h"
#include "jit/orc_session.h"
#include "jit/target.h"

namespace svod {

struct RunnableKernel {
  LinkedCode code;
  int64_t scratch_bytes = 0;

  // Calls it with fresh scratch full of garbage, which kernels must not see.
  void Run(absl::Span<void* const> buffers, absl::Span<const int64_t> variables = {},
           int64_t core_id = 0) const;
};

// LLVM IR as text, assembly as text, an object's bytes.
absl::StatusOr<std::string> LowerToText(const UOp* sink, const Target& target,
                                        const LowerOptions& options = {});
absl::StatusOr<std::string> CompileToAssembly(const UOp* sink, const Target& target,
                                              const LowerOptions& options = {});
absl::StatusOr<std::string> CompileForTest(const UOp* sink, const Target& target,
                                           const LowerOptions& options = {});
// Compiled for `target`, which this process can run.
absl::StatusOr<RunnableKernel> Load(const UOp* sink, const Target& target,
                                    const LowerOptions& options = {});

// Names that the object refers to without defining them.
std::vector<std::string> UndefinedSymbols(const std::string& object);

// The host, then older CPUs that it can run, down to plain SSE2; with names for tests.
const std::vector<std::pair<std::string, Target>>& RunnableTargets();

}  // namespace svod

#endif  // SVOD_TESTS_UNIT_JIT_KERNEL_RUNNER_H_
