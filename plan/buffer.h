// Buffer: a handle to a range of bytes of a storage.
// Included by plan/, executor/ and embedders. Knows no dtypes or shapes; a plan does.
#ifndef SVOD_PLAN_BUFFER_H_
#define SVOD_PLAN_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "plan/storage.h"

namespace svod {

// A handle, as cheap to copy as a shared_ptr: copies are the same buffer and have the same id, a
// view is a buffer of its own over the same bytes. A const handle does not make the bytes const;
// read_only() does. Threads: handles may be used anywhere; who writes bytes orders that with who
// reads them.
class Buffer {
 public:
  // The null buffer: no storage, no bytes.
  Buffer() = default;

  // Memory of the library's, 64-byte aligned and zero, allocated when it is first wanted.
  // Errors: InvalidArgument for a negative size.
  static absl::StatusOr<Buffer> Create(
      int64_t size_bytes, std::shared_ptr<BufferAllocator> allocator = BufferAllocator::Default());
  // Memory of the caller's, which must stay valid as long as a handle lives; `owner`, if any, is
  // kept that long. Alignment is checked where the buffer is bound.
  // Errors: InvalidArgument for a negative size, or null with a size.
  static absl::StatusOr<Buffer> Wrap(void* data, int64_t size_bytes,
                                     std::shared_ptr<const void> owner = nullptr);
  // The same, never written: it cannot be bound where a plan writes.
  static absl::StatusOr<Buffer> WrapConst(const void* data, int64_t size_bytes,
                                          std::shared_ptr<const void> owner = nullptr);

  // Bytes [offset_bytes, offset_bytes + size_bytes) of this buffer, with an id of its own.
  // Errors: InvalidArgument beyond this buffer, FailedPrecondition of the null buffer.
  absl::StatusOr<Buffer> View(int64_t offset_bytes, int64_t size_bytes) const;
  // Bytes of a storage, which must lie inside it.
  static Buffer OfStorage(std::shared_ptr<Storage> storage, int64_t offset_bytes,
                          int64_t size_bytes) {
    return Buffer(std::move(storage), offset_bytes, size_bytes);
  }

  bool is_null() const { return storage_ == nullptr; }
  uint64_t id() const { return id_; }  // 0 for the null buffer
  uint64_t storage_id() const { return is_null() ? 0 : storage_->id(); }
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  int64_t offset_bytes() const { return offset_bytes_; }  // in its storage
  int64_t size_bytes() const { return size_bytes_; }
  bool read_only() const { return !is_null() && storage_->read_only(); }
  bool is_allocated() const { return !is_null() && storage_->data() != nullptr; }

  // Allocates now what is still lazy. Errors: ResourceExhausted; FailedPrecondition when null.
  absl::Status Allocate() const;
  // First byte; null while nothing is allocated.
  std::byte* data() const { return is_allocated() ? storage_->data() + offset_bytes_ : nullptr; }

  // The bytes, allocated if they were not; no bytes when that fails.
  absl::Span<const std::byte> Read() const;
  // Errors: those of Allocate, FailedPrecondition for a read-only buffer.
  absl::StatusOr<absl::Span<std::byte>> Write() const;
  // Elements of type T; what does not fill one is left out.
  template <typename T>
  absl::Span<const T> ReadAs() const {
    absl::Span<const std::byte> bytes = Read();
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  // Copies all bytes; overlapping memory is handled.
  // Errors: InvalidArgument when sizes differ, and those of Write.
  absl::Status CopyFrom(absl::Span<const std::byte> bytes) const;
  absl::Status CopyFrom(const Buffer& source) const;
  template <typename T>
  absl::Status CopyFrom(absl::Span<const T> elements) const {
    return CopyFrom(absl::Span<const std::byte>(reinterpret_cast<const std::byte*>(elements.data()),
                                                elements.size() * sizeof(T)));
  }

 private:
  Buffer(std::shared_ptr<Storage> storage, int64_t offset_bytes, int64_t size_bytes);

  std::shared_ptr<Storage> storage_;
  int64_t offset_bytes_ = 0;
  int64_t size_bytes_ = 0;
  uint64_t id_ = 0;
};

}  // namespace svod

#endif  // SVOD_PLAN_BUFFER_H_
