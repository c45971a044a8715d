// Tensor ops on values, one op at a time: what evaluate_graph.cc runs over a graph.
// Included by evaluate_graph.cc alone. Knows no graph: sources come as values.
#ifndef SVOD_IR_EVALUATE_TENSOR_H_
#define SVOD_IR_EVALUATE_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/uop.h"

namespace svod {

using Bytes = std::vector<std::byte>;

// Elements in row-major order, from byte `offset` of shared bytes on. A plain value; copies share.
struct SharedTensor {
  DType dtype;
  std::vector<int64_t> shape;
  std::shared_ptr<Bytes> bytes;
  int64_t offset = 0;

  const std::byte* data() const { return bytes->data() + offset; }
  int64_t num_elements() const;
  int64_t size_bytes() const { return num_elements() * dtype.size_bytes(); }
};

// The product of dimensions, none of them negative; INT64_MAX where it does not fit.
int64_t CountElements(absl::Span<const int64_t> shape);

// One element of `size` bytes, zero-extended; a bool is 0 or 1.
uint64_t ReadElement(const std::byte* data, DType dtype, int64_t i);
void WriteElement(std::byte* data, DType dtype, int64_t i, uint64_t bits);

// Makes tensors until the elements of all of them together reach a limit.
class TensorMaker {
 public:
  explicit TensorMaker(int64_t max_elements) : max_elements_(max_elements), left_(max_elements) {}

  // Zeros. Errors: InvalidArgument for a negative dimension; ResourceExhausted beyond the limit.
  absl::StatusOr<SharedTensor> Make(Op op, DType dtype, std::vector<int64_t> shape);

 private:
  int64_t max_elements_, left_;
};

// The value of an elementwise op or of a tensor op other than ASSIGN. `tensors` are the sources
// that are tensors, in order, and `numbers` the values of the index expressions that follow them.
// Errors: InvalidArgument for shapes that do not fit, and the maker's.
// Cost: a few nanoseconds an element; RESHAPE and CONTIGUOUS share their source's bytes.
absl::StatusOr<SharedTensor> EvaluateTensorOp(const UOp* node,
                                              absl::Span<const SharedTensor> tensors,
                                              absl::Span<const int64_t> numbers,
                                              TensorMaker& maker);

// `x` under a shape that it broadcasts to; `op` starts messages.
absl::StatusOr<SharedTensor> BroadcastTo(Op op, const SharedTensor& x,
                                         absl::Span<const int64_t> shape, TensorMaker& maker);

}  // namespace svod

#endif  // SVOD_IR_EVALUATE_TENSOR_H_
