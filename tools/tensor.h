// Tensor: a dense row-major array on the host, as programs read and print it.
// Included by the tool's I/O, session and REPL. Must not know plans or kernels.
#ifndef SVOD_TOOLS_TENSOR_H_
#define SVOD_TOOLS_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/dtype.h"

namespace svod {

// Most bytes that a tensor of the tool may take: 2^40.
inline constexpr int64_t kMaxHostTensorBytes = int64_t{1} << 40;
inline constexpr size_t kMaxTensorRank = 64;

// Copies share their data; Create gives zeros of its own. Data is 64-byte aligned.
class Tensor {
 public:
  Tensor() = default;
  // Errors: InvalidArgument for a negative dimension, a rank above kMaxTensorRank, void or a vector
  // dtype; ResourceExhausted beyond kMaxHostTensorBytes or when the memory cannot be had.
  static absl::StatusOr<Tensor> Create(DType dtype, std::vector<int64_t> shape);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t num_elements() const { return num_elements_; }
  int64_t size_bytes() const { return num_elements_ * dtype_.size_bytes(); }
  absl::Span<std::byte> bytes() const { return {data_.get(), static_cast<size_t>(size_bytes())}; }

  // One element as the bits of its scalar, zero-extended (see ConstArgument).
  uint64_t Bits(int64_t element) const;
  void SetBits(int64_t element, uint64_t bits);

 private:
  DType dtype_;
  std::vector<int64_t> shape_;
  int64_t num_elements_ = 0;
  std::shared_ptr<std::byte[]> data_;
};

// "f32[2, 3]".
std::string TypeString(DType dtype, absl::Span<const int64_t> shape);

// A tensor as it is written on a command line or in the REPL:
//   2x3xf32=1,2,3,4,5,6     row by row; one value fills all; `f32=1.5` has no dimensions
//   4xf32=iota              0, 1, 2, ...
//   4xf32=random(7)         seed 7: floats uniform in [-1, 1), integers in the dtype's range
//   @path.npy               a NumPy file
// Values: decimal or 0x integers, floats, inf, nan, true, false; white space is free.
// Errors: InvalidArgument with the position in `spec`, or NotFound for a missing file.
absl::StatusOr<Tensor> ParseTensor(absl::string_view spec);

// As NumPy prints arrays: aligned columns, eight digits, "..." beyond 1000 elements.
std::string FormatTensor(const Tensor& tensor);

}  // namespace svod

#endif  // SVOD_TOOLS_TENSOR_H_
