// ParseTensor: tensors as the command line and the REPL spell them.
#include <charconv>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ir/status_macros.h"
#include "ir/uop.h"
#include "tools/npy.h"
#include "tools/tensor.h"

namespace svod {
namespace {

absl::Status Error(absl::string_view spec, absl::string_view what) {
  constexpr size_t kShown = 60;
  std::string shown(spec.substr(0, kShown));
  if (spec.size() > kShown) shown += "...";
  return absl::InvalidArgumentError(absl::StrCat("tensor '", shown, "': ", what));
}

bool ParseUnsigned(absl::string_view text, uint64_t* value) {
  int base = 10;
  if (absl::ConsumePrefix(&text, "0x")) base = 16;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// The value's bits, or an error that says which values the dtype takes.
absl::StatusOr<uint64_t> ParseValue(DType dtype, absl::string_view text) {
  std::string expected = absl::StrCat("expected a value of ", ToString(dtype));
  if (dtype.is_bool()) {
    if (text == "true" || text == "1") return 1;
    if (text == "false" || text == "0") return 0;
    return absl::InvalidArgumentError(absl::StrCat("got '", text, "', ", expected));
  }
  if (dtype.is_float()) {
    double value;
    if (!absl::SimpleAtod(text, &value)) {
      return absl::InvalidArgumentError(absl::StrCat("got '", text, "', ", expected));
    }
    return DoubleToBits(dtype.scalar, value);
  }
  bool negative = absl::ConsumePrefix(&text, "-");
  uint64_t magnitude;
  if (!ParseUnsigned(text, &magnitude)) {
    return absl::InvalidArgumentError(
        absl::StrCat("got '", negative ? "-" : "", text, "', ", expected));
  }
  uint64_t largest = dtype == Scalar::kU64 ? ~uint64_t{0} : static_cast<uint64_t>(MaxValue(dtype));
  uint64_t limit = negative ? uint64_t{0} - static_cast<uint64_t>(MinValue(dtype)) : largest;
  if (magnitude > limit) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got ", negative ? "-" : "", text, ", ", expected, ", ", MinValue(dtype), " to ", largest));
  }
  uint64_t bits = negative ? uint64_t{0} - magnitude : magnitude;
  int width = InfoOf(dtype.scalar).size_bytes * 8;
  return width == 64 ? bits : bits & ((uint64_t{1} << width) - 1);
}

void FillRandom(Tensor& tensor, uint64_t seed) {
  std::mt19937_64 generator(seed);  // its sequence is fixed by the C++ standard
  DType dtype = tensor.dtype();
  uint64_t mask = dtype.bits() == 64 ? ~uint64_t{0} : (uint64_t{1} << dtype.bits()) - 1;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    uint64_t word = generator();
    if (dtype.is_float()) {
      double unit = static_cast<double>(word >> 11) * 0x1p-53;
      tensor.SetBits(i, DoubleToBits(dtype.scalar, unit * 2 - 1));
    } else {
      tensor.SetBits(i, word & mask);
    }
  }
}

void FillIota(Tensor& tensor) {
  DType dtype = tensor.dtype();
  uint64_t mask = dtype.bits() == 64 ? ~uint64_t{0} : (uint64_t{1} << dtype.bits()) - 1;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.SetBits(i, dtype.is_float() ? DoubleToBits(dtype.scalar, static_cast<double>(i))
                                       : static_cast<uint64_t>(i) & mask);
  }
}

absl::Status FillValues(Tensor& tensor, absl::string_view spec, absl::string_view values) {
  std::vector<absl::string_view> items;
  if (!absl::StripAsciiWhitespace(values).empty()) items = absl::StrSplit(values, ',');
  int64_t count = static_cast<int64_t>(items.size());
  if (count != tensor.num_elements() && count != 1) {
    return Error(spec, absl::StrCat("number of values, got ", count, ", expected ",
                                    tensor.num_elements(), " or 1"));
  }
  for (int64_t i = 0; i < count; ++i) {
    absl::string_view item = absl::StripAsciiWhitespace(items[i]);
    absl::StatusOr<uint64_t> bits = ParseValue(tensor.dtype(), item);
    if (!bits.ok()) {
      return Error(spec, absl::StrCat("value ", i, ", ", bits.status().message()));
    }
    if (count == tensor.num_elements()) {
      tensor.SetBits(i, *bits);
    } else {
      for (int64_t k = 0; k < tensor.num_elements(); ++k) tensor.SetBits(k, *bits);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Tensor> ParseTensor(absl::string_view spec) {
  spec = absl::StripAsciiWhitespace(spec);
  if (absl::StartsWith(spec, "@")) return ReadNpy(std::string(spec.substr(1)));

  size_t equals = spec.find('=');
  if (equals == absl::string_view::npos) {
    return Error(spec, "expected TYPE=VALUES such as 2x3xf32=1,2,3,4,5,6, or @file.npy");
  }
  absl::string_view type = absl::StripAsciiWhitespace(spec.substr(0, equals));
  absl::string_view values = absl::StripAsciiWhitespace(spec.substr(equals + 1));

  // Dimensions come first and are digits; the dtype is what follows the last of them.
  std::vector<int64_t> shape;
  size_t split;
  while ((split = type.find('x')) != absl::string_view::npos && absl::ascii_isdigit(type[0])) {
    int64_t dim;
    if (!absl::SimpleAtoi(type.substr(0, split), &dim)) {
      return Error(spec, absl::StrCat("dimension, got '", type.substr(0, split),
                                      "', expected a number up to 2^63 - 1"));
    }
    shape.push_back(dim);
    type.remove_prefix(split + 1);
  }
  absl::StatusOr<DType> dtype = ParseDType(type);
  if (!dtype.ok()) return Error(spec, dtype.status().message());
  SVOD_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(*dtype, shape));

  if (values == "iota") {
    FillIota(tensor);
    return tensor;
  }
  if (absl::ConsumePrefix(&values, "random")) {
    uint64_t seed = 0;
    bool seeded = absl::ConsumePrefix(&values, "(");
    if ((seeded && (!absl::ConsumeSuffix(&values, ")") || !ParseUnsigned(values, &seed))) ||
        (!seeded && !values.empty())) {
      return Error(spec, "seed, expected random or random(NUMBER)");
    }
    FillRandom(tensor, seed);
    return tensor;
  }
  SVOD_RETURN_IF_ERROR(FillValues(tensor, spec, values));
  return tensor;
}

}  // namespace svod
