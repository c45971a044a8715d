#include "plan/buffer.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "ir/status_macros.h"

namespace svod {

Buffer::Buffer(std::shared_ptr<Storage> storage, int64_t offset_bytes, int64_t size_bytes)
    : storage_(std::move(storage)),
      offset_bytes_(offset_bytes),
      size_bytes_(size_bytes),
      id_(NextUniqueId()) {}

absl::StatusOr<Buffer> Buffer::Create(int64_t size_bytes,
                                      std::shared_ptr<BufferAllocator> allocator) {
  if (size_bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("buffer: size, got ", size_bytes, " bytes, expected at least 0"));
  }
  if (allocator == nullptr) allocator = BufferAllocator::Default();
  return Buffer(std::make_shared<Storage>(size_bytes, std::move(allocator)), 0, size_bytes);
}

namespace {

absl::Status CheckForeign(const void* data, int64_t size_bytes) {
  if (size_bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("buffer: size, got ", size_bytes, " bytes, expected at least 0"));
  }
  if (data == nullptr && size_bytes > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("buffer: null memory of ", size_bytes, " bytes"));
  }
  if (reinterpret_cast<uintptr_t>(data) >
      std::numeric_limits<uintptr_t>::max() - static_cast<uintptr_t>(size_bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("buffer: ", size_bytes, " bytes from there on leave the address space"));
  }
  return absl::OkStatus();
}

// Stands for the memory of an empty foreign buffer, so that every bound buffer has an address.
alignas(kBufferAlignment) std::byte empty_memory[kBufferAlignment];

}  // namespace

absl::StatusOr<Buffer> Buffer::Wrap(void* data, int64_t size_bytes,
                                    std::shared_ptr<const void> owner) {
  SVOD_RETURN_IF_ERROR(CheckForeign(data, size_bytes));
  auto* bytes = data == nullptr ? empty_memory : static_cast<std::byte*>(data);
  return Buffer(std::make_shared<Storage>(bytes, size_bytes, false, std::move(owner)), 0,
                size_bytes);
}

absl::StatusOr<Buffer> Buffer::WrapConst(const void* data, int64_t size_bytes,
                                         std::shared_ptr<const void> owner) {
  SVOD_RETURN_IF_ERROR(CheckForeign(data, size_bytes));
  auto* bytes =
      data == nullptr ? empty_memory : const_cast<std::byte*>(static_cast<const std::byte*>(data));
  return Buffer(std::make_shared<Storage>(bytes, size_bytes, true, std::move(owner)), 0,
                size_bytes);
}

absl::StatusOr<Buffer> Buffer::View(int64_t offset_bytes, int64_t size_bytes) const {
  if (is_null()) return absl::FailedPreconditionError("buffer: view of the null buffer");
  if (offset_bytes < 0 || size_bytes < 0 || offset_bytes > size_bytes_ ||
      size_bytes > size_bytes_ - offset_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("buffer: view of ", size_bytes,
                                                   " bytes at offset ", offset_bytes,
                                                   " leaves a buffer of ", size_bytes_, " bytes"));
  }
  return Buffer(storage_, offset_bytes_ + offset_bytes, size_bytes);
}

absl::Status Buffer::Allocate() const {
  if (is_null()) return absl::FailedPreconditionError("buffer: the null buffer has no memory");
  return storage_->Data().status();
}

absl::Span<const std::byte> Buffer::Read() const {
  if (!Allocate().ok()) return {};
  return {data(), static_cast<size_t>(size_bytes_)};
}

absl::StatusOr<absl::Span<std::byte>> Buffer::Write() const {
  if (read_only()) return absl::FailedPreconditionError("buffer: memory is read-only");
  SVOD_RETURN_IF_ERROR(Allocate());
  return absl::Span<std::byte>(data(), static_cast<size_t>(size_bytes_));
}

absl::Status Buffer::CopyFrom(absl::Span<const std::byte> bytes) const {
  if (static_cast<int64_t>(bytes.size()) != size_bytes_) {
    return absl::InvalidArgumentError(
        absl::StrCat("buffer: copy, got ", bytes.size(), " bytes, expected ", size_bytes_));
  }
  SVOD_ASSIGN_OR_RETURN(absl::Span<std::byte> to, Write());
  if (!to.empty()) std::memmove(to.data(), bytes.data(), to.size());
  return absl::OkStatus();
}

absl::Status Buffer::CopyFrom(const Buffer& source) const {
  SVOD_RETURN_IF_ERROR(source.Allocate());
  return CopyFrom(source.Read());
}

}  // namespace svod
