// The one call convention of every kernel, compiled or hand-written.
// Included by jit/, plan/, executor/ and tests with fake kernels. Must not include anything heavy.
#ifndef SVOD_JIT_KERNEL_ABI_H_
#define SVOD_JIT_KERNEL_ABI_H_

#include <cstdint>

namespace svod {

// buffers[slot]: first byte of the PARAM of that slot, aligned to its element at least.
// variables[i]:  value of the kernel's i-th variable (CompiledKernel::variable_names order).
// core_id:       which core of the launch this call is, in [0, global size).
// scratch:       CompiledKernel::scratch_bytes of memory, 64-byte aligned, for this call alone;
//                may be null when that is 0. Its contents need not be kept or cleared.
// Gives 0, or a value other than 0 when the kernel failed; compiled kernels always give 0.
// Calls with different core_id may run at the same time.
using KernelFunction = int32_t (*)(void* const* buffers, const int64_t* variables, int64_t core_id,
                                   void* scratch);

// Part of every cache key: a change of the convention above makes old object files misses.
inline constexpr int kKernelAbiVersion = 1;

}  // namespace svod

#endif  // SVOD_JIT_KERNEL_ABI_H_
