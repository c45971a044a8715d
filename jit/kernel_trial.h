// KernelTrial: memory to run forms of one kernel on, and what the first of them computed.
// Included by the search and tests. Names nothing of LLVM; starts no thread.
#ifndef SVOD_JIT_KERNEL_TRIAL_H_
#define SVOD_JIT_KERNEL_TRIAL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ir/uop.h"
#include "jit/kernel.h"

namespace svod {

// One thread at a time.
class KernelTrial {
 public:
  // Buffers for the parameters of a kernel, variables and sizes at their largest. What they hold
  // follows from their numbers alone: floats in [-1, 1), small integers.
  // Errors: ResourceExhausted for more than `max_bytes` of them; InvalidArgument for sizes that
  // are none.
  static absl::StatusOr<std::unique_ptr<KernelTrial>> Create(const UOp* sink, int64_t max_bytes);

  // Goes through all cores of a launch, one after the other.
  // Errors: Internal when the kernel fails.
  absl::Status Run(const CompiledKernel& kernel);
  // Puts back what runs change of memory that the kernel also reads.
  void Restore();
  // Whether runs change memory that the kernel also reads, so that a run finds it otherwise than
  // the one before.
  bool must_restore() const { return must_restore_; }

  // Restores, runs, and keeps the results.
  absl::Status KeepResults(const CompiledKernel& kernel);
  // Restores, runs, and compares: every bit, but that any NaN equals any other.
  absl::StatusOr<bool> GivesKeptResults(const CompiledKernel& kernel);

 private:
  struct Memory {
    DType dtype;
    bool is_read = false, is_written = false;
    size_t size_bytes = 0;
    std::unique_ptr<std::byte[], void (*)(std::byte*)> bytes{nullptr, nullptr};
    std::vector<std::byte> initial;  // of those that are read and written
    std::vector<std::byte> kept;     // of those that are written
  };
  KernelTrial() = default;
  absl::Status AddMemory(const UOp* param, int64_t max_bytes);

  std::vector<Memory> memories_;  // by slot
  std::vector<void*> pointers_;
  absl::flat_hash_map<std::string, int64_t> variables_;
  int64_t total_bytes_ = 0;
  bool must_restore_ = false;
};

}  // namespace svod

#endif  // SVOD_JIT_KERNEL_TRIAL_H_
