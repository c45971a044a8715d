#include "tools/npy.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

constexpr absl::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeaderBytes = 1 << 20;

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Reads the header's Python dict literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2,)}.
class HeaderParser {
 public:
  explicit HeaderParser(absl::string_view text) : rest_(text) {}

  absl::StatusOr<Header> Parse() {
    Header header;
    bool has_order = false, has_shape = false;
    SVOD_RETURN_IF_ERROR(Expect("{"));
    while (!Accept("}")) {
      SVOD_ASSIGN_OR_RETURN(std::string key, String());
      SVOD_RETURN_IF_ERROR(Expect(":"));
      if (key == "descr") {
        SVOD_ASSIGN_OR_RETURN(header.descr, String());
      } else if (key == "fortran_order") {
        has_order = true;
        header.fortran_order = Accept("True");
        if (!header.fortran_order) SVOD_RETURN_IF_ERROR(Expect("False"));
      } else if (key == "shape") {
        has_shape = true;
        SVOD_ASSIGN_OR_RETURN(header.shape, Tuple());
      } else {
        return absl::InvalidArgumentError(absl::StrCat("unknown header key '", key, "'"));
      }
      if (!Accept(",")) {
        SVOD_RETURN_IF_ERROR(Expect("}"));
        break;
      }
    }
    if (header.descr.empty() || !has_order || !has_shape) {
      return absl::InvalidArgumentError("header, expected 'descr', 'fortran_order' and 'shape'");
    }
    return header;
  }

 private:
  bool Accept(absl::string_view token) {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    return absl::ConsumePrefix(&rest_, token);
  }
  absl::Status Expect(absl::string_view token) {
    if (Accept(token)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "header, got '", absl::CHexEscape(rest_.substr(0, 12)), "', expected '", token, "'"));
  }
  absl::StatusOr<std::string> String() {
    if (Accept("[")) return absl::InvalidArgumentError("structured dtypes are not supported");
    char quote = Accept("'") ? '\'' : '"';
    if (quote == '"') SVOD_RETURN_IF_ERROR(Expect("\""));
    size_t end = rest_.find(quote);
    if (end == absl::string_view::npos) {
      return absl::InvalidArgumentError("header string is not closed");
    }
    std::string result(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return result;
  }
  absl::StatusOr<std::vector<int64_t>> Tuple() {
    std::vector<int64_t> dims;
    SVOD_RETURN_IF_ERROR(Expect("("));
    while (!Accept(")")) {
      rest_ = absl::StripLeadingAsciiWhitespace(rest_);
      size_t digits = 0;
      while (digits < rest_.size() && absl::ascii_isdigit(rest_[digits])) ++digits;
      int64_t dim;
      if (!absl::SimpleAtoi(rest_.substr(0, digits), &dim)) {
        return absl::InvalidArgumentError("shape, expected numbers up to 2^63 - 1");
      }
      dims.push_back(dim);
      rest_.remove_prefix(digits);
      if (!Accept(",")) {
        SVOD_RETURN_IF_ERROR(Expect(")"));
        break;
      }
    }
    return dims;
  }

  absl::string_view rest_;
};

struct NpyType {
  absl::string_view code;
  Scalar scalar;
};
constexpr NpyType kTypes[] = {
    {"b1", Scalar::kBool}, {"i1", Scalar::kI8},  {"i2", Scalar::kI16}, {"i4", Scalar::kI32},
    {"i8", Scalar::kI64},  {"u1", Scalar::kU8},  {"u2", Scalar::kU16}, {"u4", Scalar::kU32},
    {"u8", Scalar::kU64},  {"f2", Scalar::kF16}, {"f4", Scalar::kF32}, {"f8", Scalar::kF64},
    {"V2", Scalar::kBF16},
};

absl::StatusOr<DType> DTypeOf(absl::string_view descr) {
  for (const NpyType& type : kTypes) {
    if (descr.size() == 3 && descr.substr(1) == type.code) return DType(type.scalar);
  }
  return absl::InvalidArgumentError(absl::StrCat("dtype, got '", descr,
                                                 "', expected bool, an integer of up to 64 bits, "
                                                 "float16, float32, float64 or V2 (bf16)"));
}

absl::Status SystemError(absl::string_view path, absl::string_view doing) {
  int error = errno;
  std::string message = absl::StrCat(path, ": cannot ", doing, ": ", std::strerror(error));
  if (error == ENOENT) return absl::NotFoundError(message);
  if (error == EACCES || error == EPERM || error == EROFS) {
    return absl::PermissionDeniedError(message);
  }
  if (error == ENOSPC) return absl::ResourceExhaustedError(message);
  return absl::InvalidArgumentError(message);
}

// Column-major `from` into row-major `to`.
void FromFortran(const Tensor& from, Tensor& to) {
  size_t rank = from.shape().size();
  std::vector<int64_t> at(rank, 0);
  for (int64_t i = 0; i < from.num_elements(); ++i) {
    int64_t offset = 0;
    for (size_t d = 0; d < rank; ++d) offset = offset * from.shape()[d] + at[d];
    to.SetBits(offset, from.Bits(i));
    for (size_t d = 0; d < rank && ++at[d] == from.shape()[d]; ++d) at[d] = 0;
  }
}

absl::StatusOr<Tensor> Read(std::istream& file) {
  char start[12];
  if (!file.read(start, 10) || absl::string_view(start, 6) != kMagic) {
    return absl::InvalidArgumentError("is not a .npy file");
  }
  int version = static_cast<unsigned char>(start[6]);
  if (version < 1 || version > 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("format version, got ", version, ", expected 1 to 3"));
  }
  auto byte = [&](int i) { return static_cast<size_t>(static_cast<unsigned char>(start[i])); };
  size_t length = byte(8) | byte(9) << 8;
  if (version > 1) {
    if (!file.read(start + 10, 2)) return absl::InvalidArgumentError("header is cut short");
    length |= byte(10) << 16 | byte(11) << 24;
  }
  if (length > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("header length, got ", length, ", expected at most ", kMaxHeaderBytes));
  }
  std::string text(length, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(length))) {
    return absl::InvalidArgumentError("header is cut short");
  }
  SVOD_ASSIGN_OR_RETURN(Header header, HeaderParser(text).Parse());
  SVOD_ASSIGN_OR_RETURN(DType dtype, DTypeOf(header.descr));

  // A declared shape is believed only as far as the file has bytes for it.
  std::streamoff data_at = file.tellg();
  file.seekg(0, std::ios::end);
  int64_t available = file.tellg() - data_at;
  file.seekg(data_at);
  int64_t needed = dtype.size_bytes();
  for (int64_t dim : header.shape) {
    if (dim != 0 && needed > kMaxHostTensorBytes / dim) {
      return absl::ResourceExhaustedError(absl::StrCat(
          TypeString(dtype, header.shape), " is larger than ", kMaxHostTensorBytes, " bytes"));
    }
    needed *= dim;
  }
  if (needed != available) {
    return absl::InvalidArgumentError(absl::StrCat("data of ", TypeString(dtype, header.shape),
                                                   ", got ", available, " bytes, expected ",
                                                   needed));
  }
  SVOD_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(dtype, header.shape));
  if (!file.read(reinterpret_cast<char*>(tensor.bytes().data()), needed)) {
    return absl::InvalidArgumentError("data cannot be read");
  }
  if (header.descr[0] == '>') {
    char* bytes = reinterpret_cast<char*>(tensor.bytes().data());
    for (int64_t at = 0; at < needed; at += dtype.size_bytes()) {
      std::reverse(bytes + at, bytes + at + dtype.size_bytes());
    }
  }
  if (dtype.is_bool()) {  // any other byte than 0 is true
    for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.SetBits(i, tensor.Bits(i) != 0);
  }
  if (!header.fortran_order || header.shape.size() < 2) return tensor;
  SVOD_ASSIGN_OR_RETURN(Tensor ordered, Tensor::Create(dtype, header.shape));
  FromFortran(tensor, ordered);
  return ordered;
}

}  // namespace

absl::StatusOr<Tensor> ReadNpy(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return SystemError(path, "open");
  absl::StatusOr<Tensor> tensor = Read(file);
  if (!tensor.ok()) return Annotate(tensor.status(), path);
  return tensor;
}

absl::Status WriteNpy(const Tensor& tensor, const std::string& path) {
  std::string code;
  for (const NpyType& type : kTypes) {
    if (type.scalar == tensor.dtype().scalar) code = std::string(type.code);
  }
  if (tensor.dtype() == Scalar::kIndex) code = "i8";
  std::string dims = absl::StrJoin(tensor.shape(), ", ");
  if (tensor.shape().size() == 1) dims += ",";
  std::string header = absl::StrCat("{'descr': '", tensor.dtype().size_bytes() == 1 ? "|" : "<",
                                    code, "', 'fortran_order': False, 'shape': (", dims, "), }");
  while ((kMagic.size() + 4 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';

  // A device or pipe is written as it stands; only a file can be replaced.
  std::error_code no_such_file;
  bool in_place = std::filesystem::exists(path, no_such_file) &&
                  !std::filesystem::is_regular_file(path, no_such_file);
  std::string temporary = in_place ? path : absl::StrCat(path, ".", getpid(), ".tmp");
  errno = 0;
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  if (!file) return SystemError(path, "write");
  absl::Cleanup remove = [&] {
    if (!in_place) std::remove(temporary.c_str());
  };
  const char version_and_length[] = {1, 0, static_cast<char>(header.size() & 0xff),
                                     static_cast<char>(header.size() >> 8)};
  file << kMagic;
  file.write(version_and_length, sizeof(version_and_length));
  file << header;
  file.write(reinterpret_cast<const char*>(tensor.bytes().data()), tensor.size_bytes());
  file.close();
  if (!file) return SystemError(path, "write");
  if (in_place) return absl::OkStatus();
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return SystemError(path, "write");
  std::move(remove).Cancel();
  return absl::OkStatus();
}

}  // namespace svod
