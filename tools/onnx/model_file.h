// Reading ONNX files: the model, and the tensors in it or in files beside it.
// Included by the importer's sources and tests. Must not know tensor graphs.
#ifndef SVOD_TOOLS_ONNX_MODEL_FILE_H_
#define SVOD_TOOLS_ONNX_MODEL_FILE_H_

#include <memory>
#include <set>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "onnx.pb.h"
#include "tools/onnx/constant_tensor.h"

namespace svod {

// A file mapped into memory, read-only; unmapped when the last owner goes.
class MappedFile {
 public:
  // Errors: NotFound; InvalidArgument for what is no regular file.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  absl::Span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(absl::Span<const std::byte> bytes) : bytes_(bytes) {}
  absl::Span<const std::byte> bytes_;
};

// A model as it was parsed. Errors of both: InvalidArgument "path: ..." for bytes that are no
// model, hold no graph or are more than protobuf takes (2 GiB).
absl::StatusOr<std::shared_ptr<const onnx::ModelProto>> ParseModel(absl::string_view bytes,
                                                                   absl::string_view name);
absl::StatusOr<std::shared_ptr<const onnx::ModelProto>> ReadModel(const std::string& path);

// The names of values that have an initializer, dense or sparse: a model lists them among its
// inputs or not.
std::set<std::string> InitializedNames(const onnx::GraphProto& graph);

// The dtype of a TensorProto::DataType. Errors: Unimplemented for those that Svod lacks (strings,
// complex numbers, the 8- and 4-bit formats of later versions).
absl::StatusOr<DType> DTypeOfOnnx(int64_t data_type);

// Turns TensorProtos into tensors. Data is used where it lies, in the protobuf or a mapped file,
// unless its elements have to be put together or aligned. One thread at a time.
class TensorReader {
 public:
  // `owner` keeps the protobufs; files beside the model are looked for in `folder`.
  TensorReader(std::shared_ptr<const void> owner, std::string folder)
      : owner_(std::move(owner)), folder_(std::move(folder)) {}

  // Errors: InvalidArgument for negative or huge dimensions, data of another size than they say,
  // and external data with an absolute path, a path that leaves the folder, by ".." or by a link,
  // or a range beyond the file; NotFound; Unimplemented as DTypeOfOnnx.
  absl::StatusOr<ConstantTensor> Read(const onnx::TensorProto& tensor);
  // A tensor that is 0 but at some places, with all its elements. Places are numbers in row-major
  // order or rows of coordinates, ascending.
  // Errors: those of Read; InvalidArgument for places outside, not ascending or not as many as
  // values; ResourceExhausted for more than kMaxSparseBytes.
  static constexpr int64_t kMaxSparseBytes = int64_t{1} << 30;
  absl::StatusOr<ConstantTensor> ReadSparse(const onnx::SparseTensorProto& sparse);

 private:
  absl::StatusOr<ConstantTensor> ReadExternal(const onnx::TensorProto& tensor,
                                              ConstantTensor result, int64_t size_bytes);
  std::shared_ptr<const void> owner_;
  std::string folder_;
  absl::flat_hash_map<std::string, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace svod

#endif  // SVOD_TOOLS_ONNX_MODEL_FILE_H_
