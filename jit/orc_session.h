// OrcSession: turns object files into callable code, in this process.
// Included by the kernel cache, tools and tests. Names nothing of LLVM.
#ifndef SVOD_JIT_ORC_SESSION_H_
#define SVOD_JIT_ORC_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "jit/kernel_abi.h"

namespace svod {

struct SessionOptions {
  bool gdb = false;   // tell gdb each kernel's name and lines
  bool perf = false;  // write a jitdump file, for `perf inject --jit`; follows JITDUMPDIR
  // false, or gdb, or a system that refuses it: LLVM's own memory manager, with two mappings a
  // kernel.
  bool packed_memory = true;
  int64_t code_memory_limit_bytes = int64_t{1} << 30;  // packed memory only
};

// Code that is mapped as long as `owner` or a copy of it lives; the session lives with it.
struct LinkedCode {
  KernelFunction function = nullptr;
  int64_t size_bytes = 0;  // of code memory
  std::shared_ptr<const void> owner;
};

// One LLJIT whose kernels can call and read nothing of the process but their arguments. Threads:
// all methods may be called at any time.
class OrcSession {
 public:
  // Errors: Internal when LLVM cannot set up a session for this machine.
  static absl::StatusOr<std::shared_ptr<OrcSession>> Create(const SessionOptions& options = {});
  ~OrcSession();
  OrcSession(const OrcSession&) = delete;
  OrcSession& operator=(const OrcSession&) = delete;

  // Loads `object`, an ELF relocatable for this machine, and finds the function `entry` in it.
  // Several objects may define the same entry. A failure leaves the session as it was.
  // Errors: Internal with LLVM's reason: no ELF file, no such entry, references to symbols that it
  // does not define, writable data, relocations that do not fit. ResourceExhausted when code memory
  // is used up. Cost: about 15 us a small kernel; another microsecond when `owner` goes.
  absl::StatusOr<LinkedCode> Link(absl::string_view object, absl::string_view entry);

  struct Usage {
    int64_t num_kernels = 0;         // linked now
    int64_t live_code_bytes = 0;     // of packed memory, in kernels
    int64_t mapped_code_bytes = 0;   // of packed memory, in slabs
    bool uses_packed_memory = true;  // false: the two byte counts are 0
  };
  Usage usage() const;

 private:
  struct State;
  explicit OrcSession(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace svod

#endif  // SVOD_JIT_ORC_SESSION_H_
