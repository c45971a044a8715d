// CodeMemory: the pages that machine code lives in, packed, and JITLink's view of them.
// Included by the ORC session and tests. Not part of the face; names LLVM by forward declaration.
#ifndef SVOD_JIT_CODE_MEMORY_H_
#define SVOD_JIT_CODE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace llvm::jitlink {
class JITLinkMemoryManager;
}  // namespace llvm::jitlink

namespace svod {

// Hands out pieces of slabs. A slab is shared memory mapped twice: one view is written, the other
// executed, so no page is ever both and nothing calls mprotect; 50,000 kernels take some 60
// mappings, where one mapping a segment would meet the kernel's limit of 65,530.
//
// Pieces start at cache lines and are whole lines long. Freed bytes are overwritten with
// breakpoint instructions. A slab without pieces goes back to the operating system, except one
// that is kept for the next piece.
//
// Threads: all methods may be called at any time. A forked child neither writes to pieces that its
// parent made nor reuses them, since it shares their pages.
class CodeMemory {
 public:
  struct Options {
    size_t slab_bytes = size_t{1} << 20;   // larger pieces get a slab of their own
    size_t limit_bytes = size_t{1} << 30;  // of all slabs together
  };
  struct Piece {
    char* write = nullptr;    // where its bytes are put
    char* execute = nullptr;  // where they run
    size_t size_bytes = 0;
  };
  struct Usage {
    int64_t live_bytes = 0;    // in pieces
    int64_t mapped_bytes = 0;  // in slabs, each counted once
    int64_t num_pieces = 0;
    int64_t num_slabs = 0;
  };

  // Errors: Unimplemented when the system refuses shared executable memory; the caller then uses
  // LLVM's own manager.
  static absl::StatusOr<std::shared_ptr<CodeMemory>> Create(const Options& options);
  ~CodeMemory();
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;

  // A piece of at least `size_bytes`, aligned to `alignment` (at most a page). Its bytes are
  // undefined. Errors: ResourceExhausted beyond the limit or when mapping fails.
  // Cost: logarithmic in the number of gaps; a slab's first use is a handful of system calls.
  absl::StatusOr<Piece> Allocate(size_t size_bytes, size_t alignment);
  // Takes a piece back by its `execute` address.
  void Free(char* execute);
  // The size of the piece that holds `address`; 0 if none does.
  size_t PieceSizeAt(const void* address) const;
  Usage usage() const;

 private:
  struct Slab {
    char* write;
    size_t size_bytes;
    size_t live_bytes;
    uint64_t fork_generation;
  };
  using Address = uintptr_t;  // in the executable view

  explicit CodeMemory(const Options& options) : options_(options) {}
  // The callers of these hold mutex_.
  absl::Status AddSlab(size_t size_bytes);
  std::map<Address, Slab>::iterator SlabOf(Address address);
  void AddGap(Address address, size_t size_bytes);
  void RemoveGap(std::map<Address, size_t>::iterator gap);
  void DropSlab(std::map<Address, Slab>::iterator slab);

  const Options options_;
  mutable std::mutex mutex_;
  std::map<Address, Slab> slabs_;
  std::map<Address, size_t> pieces_;
  // Gaps of slabs that this process may write to, by address to merge and by size to find.
  std::map<Address, size_t> gaps_;
  std::set<std::pair<size_t, Address>> gaps_by_size_;
  size_t live_bytes_ = 0;
  size_t mapped_bytes_ = 0;
};

// A JITLink memory manager that puts each linked object into one piece of `memory`, constants
// beside code. It refuses objects with writable sections: kernels have no state.
std::unique_ptr<llvm::jitlink::JITLinkMemoryManager> MakeJitLinkMemoryManager(
    std::shared_ptr<CodeMemory> memory);

}  // namespace svod

#endif  // SVOD_JIT_CODE_MEMORY_H_
