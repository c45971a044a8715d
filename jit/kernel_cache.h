// KernelCache: compiled kernels by content, in memory and on disk.
// Included by plan/, tools and embedders. Must not include LLVM; starts no thread.
#ifndef SVOD_JIT_KERNEL_CACHE_H_
#define SVOD_JIT_KERNEL_CACHE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/uop.h"
#include "jit/compile.h"
#include "jit/disk_cache.h"
#include "jit/found_actions.h"
#include "jit/kernel.h"
#include "jit/kernel_key.h"
#include "jit/orc_session.h"
#include "jit/task_runner.h"

namespace svod {

using KernelPtr = std::shared_ptr<const CompiledKernel>;

struct KernelCacheOptions {
  // Code of the kernels in the cache [bytes]. Past it, the kernels that nobody holds go, longest
  // unused first. Kernels in use stay and count, so the cache may be above it.
  int64_t capacity_bytes = int64_t{256} << 20;
  // Object files are kept in this directory between runs; empty: they are not.
  std::string disk_directory;
  int64_t disk_limit_bytes = int64_t{1} << 30;  // 0: none
  SessionOptions session;

  // The steps of a compilation; empty: Svod's own. `optimize` verifies a kernel and takes it to its
  // final form, in `context`; `compile` makes the object. Both run on many threads at a time.
  std::function<absl::StatusOr<const UOp*>(const UOp* sink, Context& context,
                                           const CompileOptions& options)>
      optimize;
  std::function<absl::StatusOr<ObjectCode>(const UOp* final_sink, const CompileOptions& options)>
      compile;
};

struct KernelCacheStats {
  int64_t hits = 0;               // answered at once, from memory
  int64_t misses = 0;             // all other requests
  int64_t waits = 0;              // misses that waited for another thread's compilation
  int64_t compiles = 0;           // compilations that succeeded
  int64_t failures = 0;           // compilations that failed
  double optimize_ms = 0;         // verification and passes, of all that were asked for by source
  double compile_ms = 0;          // of successful ones: lowering, code generation and linking
  int64_t evictions = 0;          // kernels
  int64_t kernels = 0;            // in the cache now
  int64_t code_bytes = 0;         // of those
  int64_t linked_code_bytes = 0;  // of those and of cleared ones that are still held
  int64_t mapped_code_bytes = 0;  // taken from the system for code
  DiskCache::Stats disk;
  std::string disk_problem;  // see DiskCache::problem
};

// Threads: all methods may be called at any time. Many threads that ask for one kernel compile it
// once and wait for that result, error included; a failure is not remembered. Different kernels
// compile at the same time; no lock is held meanwhile.
class KernelCache {
 public:
  // Errors: those of OrcSession::Create. A disk directory that cannot be used is no error: stats()
  // says why.
  static absl::StatusOr<std::shared_ptr<KernelCache>> Create(KernelCacheOptions options = {});
  // The process's own, made on first use and never destroyed: default options and the environment's
  // SVOD_JIT_EVENTS. Errors: Create's; InvalidArgument for a wrong SVOD_* variable.
  static absl::StatusOr<std::shared_ptr<KernelCache>> Default();
  ~KernelCache();
  KernelCache(const KernelCache&) = delete;
  KernelCache& operator=(const KernelCache&) = delete;

  // The compiled kernel of a SINK at any stage: it is verified, optimised and compiled unless the
  // cache has it. The nodes are only read, during the call.
  // Errors: what Verify, the passes and CompileToObject say, their code and message kept.
  // Cost: some 4 us for a small kernel that is there; Find is for those in a hurry.
  absl::StatusOr<KernelPtr> GetOrCompile(const UOp* sink, const CompileOptions& options = {});
  // The same for a kernel in its final form, which no pass changes any more.
  absl::StatusOr<KernelPtr> GetOrCompileFinal(const UOp* final_sink,
                                              const CompileOptions& options = {});
  // GetOrCompile for each, at the same time as far as `runner` has threads; results in order.
  std::vector<absl::StatusOr<KernelPtr>> CompileAll(absl::Span<const UOp* const> sinks,
                                                    const CompileOptions& options,
                                                    const TaskRunner& runner);

  // Compiles a small kernel that nobody gets, so that what the first compilation of a process pays
  // for once, some 15 ms of it, is paid: a host calls this on a thread of its own, early, while it
  // reads its program. Other calls need not wait for it. The cache and its statistics stay as they
  // are. Errors: as GetOrCompile's.
  absl::Status WarmUp(const CompileOptions& options = {});

  // The kernel that was compiled under a key of MakeKey or MakeSourceKey, if the cache has it; null
  // if not. The key's target must be spelt out. Cost: at most 100 ns.
  KernelPtr Find(const KernelKey& key);

  // What a search found for a kernel (see SearchActions): from now on GetOrCompile gives it with
  // these actions, in this process and, with a disk directory, in others of this build on machines
  // like this one. It computes the same bits as before.
  // Errors: those of GetOrCompile of the kernel with these actions, and then nothing is kept.
  absl::Status Prefer(const UOp* sink, const CompileOptions& options, const FoundActions& found);
  // What was last preferred; nothing where there is nothing, or what the disk has is no such note.
  std::optional<FoundActions> Preferred(const UOp* sink, const CompileOptions& options);

  // Drops every kernel, whoever holds it; those go on working. The disk is not touched.
  void Clear();
  KernelCacheStats stats() const;
  // Null without a directory.
  DiskCache* disk() const;

 private:
  struct State;
  explicit KernelCache(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace svod

#endif  // SVOD_JIT_KERNEL_CACHE_H_
