// CompiledKernel: native code with the facts that a plan needs to launch it.
// Included by plan/, executor/ and tools/. Must not include LLVM.
#ifndef SVOD_JIT_KERNEL_H_
#define SVOD_JIT_KERNEL_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/uop.h"
#include "jit/kernel_abi.h"

namespace svod {

// Three extents as index expressions of constants and DEFINE_VARs; they live in `context`.
using LaunchExpression = std::array<const UOp*, 3>;

// Immutable once made; shared between plans and threads. The code stays mapped as long as any
// shared_ptr to it lives, whatever the cache evicts. Fake kernels fill in `function` and leave
// `code` null.
struct CompiledKernel {
  std::string name;  // entry point, as debuggers show it
  KernelFunction function = nullptr;
  std::vector<std::string> variable_names;  // positions in the variables array
  std::shared_ptr<const Context> context;   // keeps the expressions below alive
  LaunchExpression global_size = {};        // null entries mean 1; [0] is the number of cores
  std::optional<LaunchExpression> local_size;
  std::string source;  // text of the kernel's final UOps
  // What its accesses ask of each buffer's address, by slot [bytes]; empty: one element's
  // alignment.
  std::vector<int64_t> param_alignment;
  bool host_parallel_safe = true;  // may run beside other kernels
  int64_t scratch_bytes = 0;       // per running core
  int64_t code_bytes = 0;
  double compile_ms = 0;             // 0 when it came from the disk tier
  std::shared_ptr<const void> code;  // owns the mapped code
};

}  // namespace svod

#endif  // SVOD_JIT_KERNEL_H_
