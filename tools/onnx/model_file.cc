#include "tools/onnx/model_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/shape.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

// Elements of a repeated field of protobuf, each kept in a number type of its own.
template <typename To, typename Field>
absl::StatusOr<ConstantTensor> FromField(ConstantTensor tensor, const Field& field,
                                         int64_t num_elements) {
  if (field.size() != num_elements) {
    return absl::InvalidArgumentError(
        absl::StrCat("data, got ", field.size(), " elements, expected ", num_elements));
  }
  auto bytes = std::make_shared<std::vector<std::byte>>(sizeof(To) * field.size());
  for (int i = 0; i < field.size(); ++i) {
    To element = static_cast<To>(field.Get(i));
    std::memcpy(bytes->data() + sizeof(To) * static_cast<size_t>(i), &element, sizeof(To));
  }
  tensor.bytes = *bytes;
  tensor.owner = std::move(bytes);
  return tensor;
}

// `bytes` as they lie if they are aligned, else a copy.
ConstantTensor Aligned(ConstantTensor tensor, absl::Span<const std::byte> bytes,
                       std::shared_ptr<const void> owner) {
  auto address = reinterpret_cast<uintptr_t>(bytes.data());
  if (address % static_cast<uintptr_t>(tensor.dtype.size_bytes()) == 0) {
    tensor.bytes = bytes;
    tensor.owner = std::move(owner);
    return tensor;
  }
  auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  tensor.bytes = *copy;
  tensor.owner = std::move(copy);
  return tensor;
}

absl::StatusOr<int64_t> NumElements(absl::Span<const int64_t> shape, DType dtype) {
  int64_t num_elements = 1;
  bool is_empty = false;
  for (int64_t dimension : shape) {
    if (dimension < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension, got ", dimension, ", expected at least 0"));
    }
    is_empty |= dimension == 0;
  }
  if (is_empty) return 0;
  for (int64_t dimension : shape) {
    if (dimension > kMaxTensorBytes / dtype.size_bytes() / num_elements) {
      return absl::InvalidArgumentError(absl::StrCat("shape, got [", absl::StrJoin(shape, ", "),
                                                     "], expected at most 2^62 bytes"));
    }
    num_elements *= dimension;
  }
  return num_elements;
}

bool IsBelow(const std::filesystem::path& file, const std::filesystem::path& folder) {
  auto mismatch = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return mismatch.first == folder.end() && mismatch.second != file.end();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return absl::NotFoundError(absl::StrCat(path, ": cannot be opened"));
  struct stat info;
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(file);
    return absl::InvalidArgumentError(absl::StrCat(path, ": is no regular file"));
  }
  auto size = static_cast<size_t>(info.st_size);
  void* data = size == 0 ? nullptr : mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat(path, ": cannot be mapped"));
  }
  return std::shared_ptr<const MappedFile>(
      new MappedFile({static_cast<const std::byte*>(data), size}));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

absl::StatusOr<std::shared_ptr<const onnx::ModelProto>> ParseModel(absl::string_view bytes,
                                                                   absl::string_view name) {
  auto model = std::make_shared<onnx::ModelProto>();
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": size, got ", bytes.size(),
                     " bytes, expected less than 2 GiB (larger models keep "
                     "their data in files of their own)"));
  }
  if (!model->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": is no ONNX model"));
  }
  if (!model->has_graph()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": is no ONNX model: it has no graph"));
  }
  return std::shared_ptr<const onnx::ModelProto>(std::move(model));
}

absl::StatusOr<std::shared_ptr<const onnx::ModelProto>> ReadModel(const std::string& path) {
  SVOD_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  absl::Span<const std::byte> bytes = file->bytes();
  return ParseModel({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

std::set<std::string> InitializedNames(const onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const onnx::TensorProto& tensor : graph.initializer()) names.insert(tensor.name());
  for (const onnx::SparseTensorProto& sparse : graph.sparse_initializer()) {
    names.insert(sparse.values().name());
  }
  return names;
}

absl::StatusOr<DType> DTypeOfOnnx(int64_t data_type) {
  switch (data_type) {
    case onnx::TensorProto::FLOAT:
      return Scalar::kF32;
    case onnx::TensorProto::UINT8:
      return Scalar::kU8;
    case onnx::TensorProto::INT8:
      return Scalar::kI8;
    case onnx::TensorProto::UINT16:
      return Scalar::kU16;
    case onnx::TensorProto::INT16:
      return Scalar::kI16;
    case onnx::TensorProto::INT32:
      return Scalar::kI32;
    case onnx::TensorProto::INT64:
      return Scalar::kI64;
    case onnx::TensorProto::BOOL:
      return Scalar::kBool;
    case onnx::TensorProto::FLOAT16:
      return Scalar::kF16;
    case onnx::TensorProto::DOUBLE:
      return Scalar::kF64;
    case onnx::TensorProto::UINT32:
      return Scalar::kU32;
    case onnx::TensorProto::UINT64:
      return Scalar::kU64;
    case onnx::TensorProto::BFLOAT16:
      return Scalar::kBF16;
    case onnx::TensorProto::STRING:
      return absl::UnimplementedError("strings are not supported");
    case onnx::TensorProto::COMPLEX64:
    case onnx::TensorProto::COMPLEX128:
      return absl::UnimplementedError("complex numbers are not supported");
    default:
      return absl::UnimplementedError(
          absl::StrCat("data type, got ", data_type, ", expected a number type of 8 to 64 bits"));
  }
}

absl::StatusOr<ConstantTensor> TensorReader::Read(const onnx::TensorProto& proto) {
  ConstantTensor tensor;
  SVOD_ASSIGN_OR_RETURN(tensor.dtype, DTypeOfOnnx(proto.data_type()));
  tensor.shape.assign(proto.dims().begin(), proto.dims().end());
  if (tensor.shape.size() > static_cast<size_t>(kMaxRank)) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank, got ", tensor.shape.size(), ", expected at most ", kMaxRank));
  }
  SVOD_ASSIGN_OR_RETURN(int64_t num_elements, NumElements(tensor.shape, tensor.dtype));
  int64_t size_bytes = num_elements * tensor.dtype.size_bytes();
  if (proto.has_segment()) return absl::UnimplementedError("tensors in segments");
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    return ReadExternal(proto, std::move(tensor), size_bytes);
  }
  if (proto.has_raw_data() && !(proto.raw_data().empty() && size_bytes > 0)) {
    const std::string& raw = proto.raw_data();
    if (static_cast<int64_t>(raw.size()) != size_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("raw data, got ", raw.size(), " bytes, expected ", size_bytes));
    }
    return Aligned(std::move(tensor), {reinterpret_cast<const std::byte*>(raw.data()), raw.size()},
                   owner_);
  }
  switch (tensor.dtype.scalar) {
    case Scalar::kF32:
      return FromField<float>(std::move(tensor), proto.float_data(), num_elements);
    case Scalar::kF64:
      return FromField<double>(std::move(tensor), proto.double_data(), num_elements);
    case Scalar::kI64:
      return FromField<int64_t>(std::move(tensor), proto.int64_data(), num_elements);
    case Scalar::kU64:
      return FromField<uint64_t>(std::move(tensor), proto.uint64_data(), num_elements);
    case Scalar::kU32:
      return FromField<uint32_t>(std::move(tensor), proto.uint64_data(), num_elements);
    case Scalar::kI32:
      return FromField<int32_t>(std::move(tensor), proto.int32_data(), num_elements);
    case Scalar::kBool:
      return FromField<bool>(std::move(tensor), proto.int32_data(), num_elements);
    case Scalar::kI8:
    case Scalar::kU8:
      return FromField<uint8_t>(std::move(tensor), proto.int32_data(), num_elements);
    case Scalar::kI16:
    case Scalar::kU16:
    case Scalar::kF16:
    case Scalar::kBF16:
      return FromField<uint16_t>(std::move(tensor), proto.int32_data(), num_elements);
    case Scalar::kVoid:
    case Scalar::kIndex:
      break;
  }
  return absl::InternalError("tensor of a dtype without data");
}

absl::StatusOr<ConstantTensor> TensorReader::ReadSparse(const onnx::SparseTensorProto& sparse) {
  SVOD_ASSIGN_OR_RETURN(ConstantTensor values, Read(sparse.values()));
  SVOD_ASSIGN_OR_RETURN(ConstantTensor indices, Read(sparse.indices()));
  ConstantTensor dense{values.dtype, {sparse.dims().begin(), sparse.dims().end()}, {}, nullptr};
  auto rank = static_cast<int64_t>(dense.shape.size());
  SVOD_ASSIGN_OR_RETURN(int64_t num_elements, NumElements(dense.shape, dense.dtype));
  int64_t width = dense.dtype.size_bytes();
  if (num_elements > kMaxSparseBytes / width) {
    return absl::ResourceExhaustedError(
        absl::StrCat("sparse tensor: shape, got [", absl::StrJoin(dense.shape, ", "),
                     "], expected at most ", kMaxSparseBytes, " bytes"));
  }
  int64_t count = values.shape.size() == 1 ? values.shape[0] : -1;
  bool is_flat = indices.shape == std::vector<int64_t>{count};
  bool is_coordinates = indices.shape == std::vector<int64_t>{count, rank};
  if (count < 0 || indices.dtype != Scalar::kI64 || !(is_flat || is_coordinates)) {
    return absl::InvalidArgumentError(
        absl::StrCat("sparse tensor: values and indices, got [", absl::StrJoin(values.shape, ", "),
                     "] and ", ToString(indices.dtype), "[", absl::StrJoin(indices.shape, ", "),
                     "], expected [n] and i64[n] or i64[n, ", rank, "]"));
  }
  auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(num_elements * width));
  int64_t last = -1;
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = 0;
    for (int64_t k = 0; k < (is_flat ? 1 : rank); ++k) {
      int64_t at, size = is_flat ? num_elements : dense.shape[static_cast<size_t>(k)];
      std::memcpy(&at, indices.bytes.data() + 8 * (is_flat ? i : i * rank + k), sizeof(at));
      if (at < 0 || at >= size) {
        return absl::InvalidArgumentError(
            absl::StrCat("sparse tensor: index ", i, ", got ", at, ", expected 0 to ", size - 1));
      }
      place = place * size + at;
    }
    if (place <= last) {
      return absl::InvalidArgumentError(
          absl::StrCat("sparse tensor: index ", i, ", expected one behind the index before it"));
    }
    last = place;
    std::memcpy(bytes->data() + place * width, values.bytes.data() + i * width,
                static_cast<size_t>(width));
  }
  dense.bytes = *bytes;
  dense.owner = std::move(bytes);
  return dense;
}

absl::StatusOr<ConstantTensor> TensorReader::ReadExternal(const onnx::TensorProto& proto,
                                                          ConstantTensor tensor,
                                                          int64_t size_bytes) {
  namespace fs = std::filesystem;
  std::string location;
  int64_t offset = 0, length = size_bytes;
  for (const onnx::StringStringEntryProto& entry : proto.external_data()) {
    bool is_number = entry.key() == "offset" || entry.key() == "length";
    int64_t number = 0;
    if (is_number && (!absl::SimpleAtoi(entry.value(), &number) || number < 0)) {
      return absl::InvalidArgumentError(absl::StrCat("external data: ", entry.key(), ", got '",
                                                     entry.value(), "', expected a number"));
    }
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = number;
    if (entry.key() == "length") length = number;
  }
  auto refuse = [&](absl::string_view expected) {
    return absl::InvalidArgumentError(
        absl::StrCat("external data: location, got '", location, "', expected ", expected));
  };
  if (location.empty() || location.find('\0') != std::string::npos) {
    return refuse("the name of a file");
  }
  fs::path relative(location);
  if (relative.is_absolute()) return refuse("a path relative to the model");
  for (const fs::path& part : relative) {
    if (part == "..") return refuse("a path below the model's folder");
  }
  std::error_code error;
  fs::path folder = fs::canonical(folder_.empty() ? "." : folder_, error);
  fs::path path = error ? fs::path() : fs::canonical(folder / relative, error);
  if (error) {
    return absl::NotFoundError(absl::StrCat("external data: '", location, "' cannot be opened"));
  }
  if (!IsBelow(path, folder)) return refuse("a file below the model's folder");
  std::shared_ptr<const MappedFile>& file = files_[path.string()];
  if (file == nullptr) {
    SVOD_ASSIGN_OR_RETURN(file, MappedFile::Open(path.string()));
  }
  auto available = static_cast<int64_t>(file->bytes().size());
  if (length != size_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("external data: length, got ", length, " bytes, expected ", size_bytes));
  }
  if (offset > available || length > available - offset) {
    return absl::InvalidArgumentError(absl::StrCat("external data: '", location, "' has ",
                                                   available, " bytes, expected ", offset, " + ",
                                                   length));
  }
  return Aligned(std::move(tensor),
                 file->bytes().subspan(static_cast<size_t>(offset), static_cast<size_t>(length)),
                 file);
}

}  // namespace svod
