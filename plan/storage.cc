#include "plan/storage.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <limits>

#include "absl/strings/str_cat.h"

namespace svod {
namespace {

// Pages of 2 MiB: a fault for each of 4 KiB takes longer than most kernels that fill it, and stores
// past the caches are no faster than others where every page needs a walk of its own.
constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kMinMapped = kHugePage;

// Both leave fresh pages untouched, so memory that is rebound before its first use costs nothing.
// Null when the system refuses.
void* AllocateSmall(int64_t size_bytes) {
  // Room for moving the start up to the alignment, and for size 0.
  int64_t rounded = (size_bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  return std::calloc(static_cast<size_t>(rounded + kBufferAlignment), 1);
}

// Mapped at a multiple of a huge page, so that the system can use them from the first byte on.
void* MapHuge(int64_t size_bytes) {
  if (size_bytes > std::numeric_limits<int64_t>::max() - 2 * kHugePage) return nullptr;
  auto size = static_cast<size_t>(size_bytes);
  size_t mapped = size + static_cast<size_t>(kHugePage);
  void* start = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  auto first = reinterpret_cast<uintptr_t>(start);
  uintptr_t block = (first + kHugePage - 1) & ~uintptr_t{kHugePage - 1};
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  uintptr_t end = (block + size + page - 1) & ~(page - 1);
  uintptr_t mapped_end = (first + mapped + page - 1) & ~(page - 1);
  if (block > first) munmap(start, block - first);
  if (mapped_end > end) munmap(reinterpret_cast<void*>(end), mapped_end - end);
  // Advice only: where it is not taken, pages are small.
  madvise(reinterpret_cast<void*>(block), size, MADV_HUGEPAGE);
  return reinterpret_cast<void*>(block);
}

}  // namespace

const std::shared_ptr<BufferAllocator>& BufferAllocator::Default() {
  // Leaked on purpose: buffers may be freed while the process exits.
  static const auto* allocator =
      new std::shared_ptr<BufferAllocator>(std::make_shared<BufferAllocator>());
  return *allocator;
}

absl::StatusOr<std::byte*> BufferAllocator::Allocate(int64_t size_bytes, void** block) {
  int64_t live = live_bytes_.load(std::memory_order_relaxed);
  do {
    if (size_bytes > limit_bytes_ - live) {
      return absl::ResourceExhaustedError(absl::StrCat("buffer: allocating ", size_bytes,
                                                       " bytes beside ", live, " live ones, limit ",
                                                       limit_bytes_));
    }
  } while (!live_bytes_.compare_exchange_weak(live, live + size_bytes));

  *block = size_bytes >= kMinMapped ? MapHuge(size_bytes) : AllocateSmall(size_bytes);
  if (*block == nullptr) {
    live_bytes_.fetch_sub(size_bytes);
    return absl::ResourceExhaustedError(
        absl::StrCat("buffer: the system has no ", size_bytes, " bytes left"));
  }
  int64_t now = live + size_bytes;
  int64_t peak = peak_bytes_.load(std::memory_order_relaxed);
  while (now > peak && !peak_bytes_.compare_exchange_weak(peak, now)) {
  }
  auto address = reinterpret_cast<uintptr_t>(*block);
  uintptr_t aligned = (address + kBufferAlignment - 1) & ~uintptr_t{kBufferAlignment - 1};
  return static_cast<std::byte*>(*block) + (aligned - address);
}

void BufferAllocator::Free(void* block, int64_t size_bytes) {
  if (size_bytes >= kMinMapped) {
    munmap(block, static_cast<size_t>(size_bytes));
  } else {
    std::free(block);
  }
  live_bytes_.fetch_sub(size_bytes);
}

Storage::Storage(int64_t size_bytes, std::shared_ptr<BufferAllocator> allocator)
    : id_(NextUniqueId()), size_bytes_(size_bytes), allocator_(std::move(allocator)) {}

Storage::Storage(std::byte* data, int64_t size_bytes, bool read_only,
                 std::shared_ptr<const void> owner)
    : id_(NextUniqueId()),
      size_bytes_(size_bytes),
      read_only_(read_only),
      owner_(std::move(owner)),
      data_(data) {}

Storage::~Storage() {
  if (block_ != nullptr) allocator_->Free(block_, size_bytes_);
}

absl::StatusOr<std::byte*> Storage::Data() {
  if (std::byte* data = this->data()) return data;
  std::lock_guard<std::mutex> lock(mutex_);
  if (std::byte* data = this->data()) return data;
  absl::StatusOr<std::byte*> data = allocator_->Allocate(size_bytes_, &block_);
  if (data.ok()) data_.store(*data, std::memory_order_release);
  return data;
}

uint64_t NextUniqueId() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace svod
