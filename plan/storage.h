// BufferAllocator and Storage: the memory under buffers, counted and limited.
// Included by buffer.h and by whoever wants a limit of its own. Knows nothing of plans.
#ifndef SVOD_PLAN_STORAGE_H_
#define SVOD_PLAN_STORAGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace svod {

// Every allocation starts at a multiple of this [bytes], so that any vector access is aligned.
inline constexpr int64_t kBufferAlignment = 64;

// Counts the bytes of the storages made with it and refuses those beyond its limit. Safe to use
// from any thread. Outlives its storages, which hold it.
class BufferAllocator {
 public:
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  explicit BufferAllocator(int64_t limit_bytes = kNoLimit) : limit_bytes_(limit_bytes) {}
  // The process-wide one, without a limit.
  static const std::shared_ptr<BufferAllocator>& Default();

  int64_t limit_bytes() const { return limit_bytes_; }
  int64_t live_bytes() const { return live_bytes_.load(std::memory_order_relaxed); }
  int64_t peak_bytes() const { return peak_bytes_.load(std::memory_order_relaxed); }

 private:
  friend class Storage;
  // Zeroed memory of at least `size_bytes`, aligned; `*block` is what Free takes.
  // Errors: ResourceExhausted beyond the limit or when the system refuses.
  absl::StatusOr<std::byte*> Allocate(int64_t size_bytes, void** block);
  void Free(void* block, int64_t size_bytes);

  const int64_t limit_bytes_;
  std::atomic<int64_t> live_bytes_{0};
  std::atomic<int64_t> peak_bytes_{0};
};

// One stretch of memory that buffers are handles to: allocated when first wanted, or foreign.
class Storage {
 public:
  // Memory that `allocator` gives when Data is first called.
  Storage(int64_t size_bytes, std::shared_ptr<BufferAllocator> allocator);
  // Memory of the caller's; `owner`, if any, is kept as long as this lives.
  Storage(std::byte* data, int64_t size_bytes, bool read_only, std::shared_ptr<const void> owner);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  uint64_t id() const { return id_; }  // unique in the process, never 0
  int64_t size_bytes() const { return size_bytes_; }
  bool read_only() const { return read_only_; }
  bool is_foreign() const { return allocator_ == nullptr; }
  const std::shared_ptr<BufferAllocator>& allocator() const { return allocator_; }

  // First byte; null as long as nothing is allocated.
  std::byte* data() const { return data_.load(std::memory_order_acquire); }
  // First byte, allocated now if it was not. Errors: ResourceExhausted.
  absl::StatusOr<std::byte*> Data();

 private:
  const uint64_t id_;
  const int64_t size_bytes_;
  const bool read_only_ = false;
  const std::shared_ptr<BufferAllocator> allocator_;
  const std::shared_ptr<const void> owner_;
  std::mutex mutex_;  // held while allocating
  void* block_ = nullptr;
  std::atomic<std::byte*> data_{nullptr};
};

// A number that no other call in this process has given; from 1.
uint64_t NextUniqueId();

}  // namespace svod

#endif  // SVOD_PLAN_STORAGE_H_
