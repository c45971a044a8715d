#include "tools/compare.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ir/uop.h"

namespace svod {
namespace {

bool IsClose(DType dtype, uint64_t actual, uint64_t expected, const Tolerance& tolerance) {
  if (actual == expected) return true;
  if (!dtype.is_float()) return false;
  double a = BitsToDouble(dtype.scalar, actual), b = BitsToDouble(dtype.scalar, expected);
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (tolerance.atol == 0 && tolerance.rtol == 0) return false;
  return a == b || std::fabs(a - b) <= tolerance.atol + tolerance.rtol * std::fabs(b);
}

std::string Value(DType dtype, uint64_t bits) {
  if (dtype.is_float()) return absl::StrFormat("%.9g", BitsToDouble(dtype.scalar, bits));
  if (dtype.is_bool()) return bits != 0 ? "true" : "false";
  if (dtype.is_unsigned()) return absl::StrCat(bits);
  int shift = 64 - dtype.bits();
  return absl::StrCat(static_cast<int64_t>(bits << shift) >> shift);
}

std::string Place(const Tensor& tensor, int64_t element) {
  std::vector<int64_t> at(tensor.shape().size());
  for (size_t d = at.size(); d-- > 0;) {
    at[d] = element % tensor.shape()[d];
    element /= tensor.shape()[d];
  }
  return absl::StrCat("[", absl::StrJoin(at, ", "), "]");
}

}  // namespace

absl::Status CompareTensors(const Tensor& actual, const Tensor& expected,
                            const Tolerance& tolerance) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape()) {
    return absl::InvalidArgumentError(
        absl::StrCat("type, got ", TypeString(actual.dtype(), actual.shape()), ", expected ",
                     TypeString(expected.dtype(), expected.shape())));
  }
  int64_t num_different = 0, first = -1;
  for (int64_t i = 0; i < actual.num_elements(); ++i) {
    if (IsClose(actual.dtype(), actual.Bits(i), expected.Bits(i), tolerance)) continue;
    if (num_different++ == 0) first = i;
  }
  if (num_different == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(num_different, " of ", actual.num_elements(), " elements differ, first at ",
                   Place(actual, first), ": got ", Value(actual.dtype(), actual.Bits(first)),
                   ", expected ", Value(expected.dtype(), expected.Bits(first))));
}

}  // namespace svod
