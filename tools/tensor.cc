#include "tools/tensor.h"

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace svod {

absl::StatusOr<Tensor> Tensor::Create(DType dtype, std::vector<int64_t> shape) {
  std::string type = TypeString(dtype, shape);
  if (dtype.is_void() || dtype.is_vector()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", type, ": dtype, got ", ToString(dtype), ", expected a scalar"));
  }
  if (shape.size() > kMaxTensorRank) {
    return absl::InvalidArgumentError(absl::StrCat("tensor of ", ToString(dtype), ": rank, got ",
                                                   shape.size(), ", expected at most ",
                                                   kMaxTensorRank));
  }
  bool empty = false;
  int64_t elements = 1, limit = kMaxHostTensorBytes / dtype.size_bytes();
  for (int64_t dim : shape) {
    if (dim < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", type, ": dimension, got ", dim, ", expected at least 0"));
    }
    if (dim == 0) empty = true;
    if (dim > 0 && elements > limit / dim) elements = limit + 1;
    if (dim > 0 && elements <= limit) elements *= dim;
  }
  if (empty) elements = 0;
  if (elements > limit) {
    return absl::ResourceExhaustedError(
        absl::StrCat("tensor ", type, ": size, expected at most ", kMaxHostTensorBytes, " bytes"));
  }
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.shape_ = std::move(shape);
  tensor.num_elements_ = elements;
  size_t size = (static_cast<size_t>(tensor.size_bytes()) + 63) / 64 * 64;
  size = std::max<size_t>(size, 64);
  void* memory = std::aligned_alloc(64, size);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("tensor ", type, ": no memory for ", size, " bytes"));
  }
  std::memset(memory, 0, size);
  tensor.data_ = std::shared_ptr<std::byte[]>(static_cast<std::byte*>(memory), std::free);
  return tensor;
}

uint64_t Tensor::Bits(int64_t element) const {
  uint64_t bits = 0;
  std::memcpy(&bits, data_.get() + element * dtype_.size_bytes(), dtype_.size_bytes());
  return bits;
}

void Tensor::SetBits(int64_t element, uint64_t bits) {
  std::memcpy(data_.get() + element * dtype_.size_bytes(), &bits, dtype_.size_bytes());
}

std::string TypeString(DType dtype, absl::Span<const int64_t> shape) {
  return absl::StrCat(ToString(dtype), "[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace svod
