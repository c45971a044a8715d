#include "ir/dtype.h"

#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace svod {

std::string ToString(DType dtype) {
  std::string text = InfoOf(dtype.scalar).name;
  if (dtype.is_vector()) absl::StrAppend(&text, "x", dtype.lanes);
  return text;
}

absl::StatusOr<DType> ParseDType(absl::string_view text) {
  absl::string_view name = text;
  int lanes = 1;
  // No scalar name holds an 'x' but index, which ends in one.
  size_t split = text.rfind('x');
  if (split != absl::string_view::npos && split + 1 < text.size()) {
    if (absl::SimpleAtoi(text.substr(split + 1), &lanes)) {
      name = text.substr(0, split);
    } else {
      lanes = 1;  // the failed conversion has set it
    }
    if (lanes < 1 || lanes > kMaxLanes) {
      return absl::InvalidArgumentError(absl::StrCat("dtype '", text, "': lanes out of range, got ",
                                                     lanes, ", expected 1 to ", kMaxLanes));
    }
  }
  for (int i = 0; i < kNumScalars; ++i) {
    if (name == kScalarInfos[i].name) return DType(static_cast<Scalar>(i), lanes);
  }
  std::string known;
  for (const ScalarInfo& info : kScalarInfos) {
    if (info.size_bytes > 0) absl::StrAppend(&known, known.empty() ? "" : ", ", info.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown dtype '", text, "', expected one of ",
                                                 known, ", or a vector such as f32x8"));
}

int64_t MinValue(DType dtype) {
  if (dtype.is_bool() || dtype.is_unsigned()) return 0;
  if (!dtype.is_signed() || dtype.bits() == 64) return std::numeric_limits<int64_t>::min();
  return -(int64_t{1} << (dtype.bits() - 1));
}

int64_t MaxValue(DType dtype) {
  if (dtype.is_bool()) return 1;
  if (!dtype.is_integer() || dtype.bits() == 64) return std::numeric_limits<int64_t>::max();
  return (int64_t{1} << (dtype.bits() - (dtype.is_signed() ? 1 : 0))) - 1;
}

}  // namespace svod
