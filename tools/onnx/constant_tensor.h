// ConstantTensor: the value of an initialiser, an attribute or an input that is fixed.
// Included by the importer and its users. Must not know protobuf.
#ifndef SVOD_TOOLS_ONNX_CONSTANT_TENSOR_H_
#define SVOD_TOOLS_ONNX_CONSTANT_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "ir/dtype.h"

namespace svod {

// Elements in row-major order in memory that `owner` keeps. Immutable; copies share.
struct ConstantTensor {
  DType dtype;
  std::vector<int64_t> shape;
  absl::Span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

}  // namespace svod

#endif  // SVOD_TOOLS_ONNX_CONSTANT_TENSOR_H_
