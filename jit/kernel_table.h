// KernelTable: a concurrent map from key to kernel in which a missing kernel is made once.
// Included by kernel_cache.cc and its test. Not part of the face.
#ifndef SVOD_JIT_KERNEL_TABLE_H_
#define SVOD_JIT_KERNEL_TABLE_H_

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "jit/kernel.h"
#include "jit/kernel_key.h"

namespace svod {

// A place for one kernel, found under one or more keys of one or more tables. Evicting the kernel
// empties the place for all of them.
class KernelEntry {
 public:
  using KernelPtr = std::shared_ptr<const CompiledKernel>;

  explicit KernelEntry(KernelPtr kernel) : kernel_(std::move(kernel)) {}

  // The kernel, marked as used at `time`; null once it is gone.
  KernelPtr Take(int64_t time) {
    last_used_.store(time, std::memory_order_relaxed);
    std::lock_guard<std::mutex> lock(mutex_);
    return kernel_;
  }
  // Empties the place and gives what was there. With `only_unused`, a kernel that others hold
  // stays, and null is given.
  KernelPtr Remove(bool only_unused) {
    std::lock_guard<std::mutex> lock(mutex_);
    // Copies are made under the lock or from other copies: a sole owner stays one.
    if (only_unused && kernel_.use_count() != 1) return nullptr;
    return std::move(kernel_);
  }
  bool is_empty() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return kernel_ == nullptr;
  }
  int64_t last_used() const { return last_used_.load(std::memory_order_relaxed); }

 private:
  mutable std::mutex mutex_;
  KernelPtr kernel_;
  std::atomic<int64_t> last_used_ = 0;
};

// Threads: all methods may be called at any time. std::mutex, since the thread sanitizer does not
// see into a packaged absl::Mutex.
class KernelTable {
 public:
  struct Found {
    std::shared_ptr<KernelEntry> entry;
    std::shared_ptr<const CompiledKernel> kernel;
  };
  enum class Outcome { kHit, kWaited, kMade };

  // The kernel under `key`, if there is one.
  std::shared_ptr<const CompiledKernel> Find(const KernelKey& key, int64_t time);

  // The kernel under `key`; if there is none, what `make` gives, which is kept unless it failed.
  // Calls for a key whose `make` runs wait for it and share its result. `make` runs without any
  // lock; what it throws comes out as a Status.
  absl::StatusOr<Found> GetOrMake(const KernelKey& key, int64_t time, Outcome* outcome,
                                  absl::FunctionRef<absl::StatusOr<Found>()> make);

  // All entries, empty ones too.
  std::vector<std::shared_ptr<KernelEntry>> Entries() const;
  // Forgets a key, whose kernel other keys may still find, unless its `make` runs.
  void Forget(const KernelKey& key);
  // Forgets the keys of empty entries.
  void RemoveEmpty();
  // How often Find and GetOrMake found a kernel.
  int64_t hits() const;

 private:
  // One running `make` and those who wait for it.
  struct Flight {
    std::mutex mutex;
    std::condition_variable landed;
    bool has_landed = false;
    absl::StatusOr<Found> result = absl::UnknownError("");
  };
  struct Slot {
    std::shared_ptr<KernelEntry> entry;
    std::shared_ptr<Flight> flight;  // not null while `make` runs
  };
  struct Shard {
    mutable std::mutex mutex;
    absl::flat_hash_map<KernelKey, Slot> slots;
    int64_t hits = 0;
  };
  static constexpr int kNumShards = 16;

  Shard& ShardOf(const KernelKey& key) { return shards_[key.hash.high % kNumShards]; }

  std::array<Shard, kNumShards> shards_;
};

}  // namespace svod

#endif  // SVOD_JIT_KERNEL_TABLE_H_
