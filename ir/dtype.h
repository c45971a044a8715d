// DType: the scalar types of Svod and vectors of them, with their names, sizes and limits.
// Included by everyone. Knows nothing of nodes, buffers or LLVM types.
#ifndef SVOD_IR_DTYPE_H_
#define SVOD_IR_DTYPE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace svod {

enum class Scalar : uint8_t {
#define SVOD_SCALAR(Enum, text, size, kind) k##Enum,
#include "ir/dtype.def"
#undef SVOD_SCALAR
};

enum class ScalarKind : uint8_t { kNone, kBoolean, kSigned, kUnsigned, kFloat };

// Most lanes that a vector may have. Vectors wider than the target's are split by the code
// generator; far wider ones only cost compile time (a 4096-lane add takes 27 ms to compile).
inline constexpr int kMaxLanes = 1024;

struct ScalarInfo {
  const char* name;
  int size_bytes;
  ScalarKind kind;
};

inline constexpr ScalarInfo kScalarInfos[] = {
#define SVOD_SCALAR(Enum, text, size, kind) {text, size, ScalarKind::kind},
#include "ir/dtype.def"
#undef SVOD_SCALAR
};

inline constexpr int kNumScalars = sizeof(kScalarInfos) / sizeof(kScalarInfos[0]);

constexpr const ScalarInfo& InfoOf(Scalar scalar) { return kScalarInfos[static_cast<int>(scalar)]; }

// A scalar type and a number of lanes. Lanes == 1 is the scalar itself. A plain value.
struct DType {
  Scalar scalar = Scalar::kVoid;
  uint16_t lanes = 1;

  constexpr DType() = default;
  constexpr DType(Scalar s, int n = 1) : scalar(s), lanes(static_cast<uint16_t>(n)) {}  // NOLINT

  constexpr bool operator==(const DType& other) const = default;

  constexpr bool is_void() const { return scalar == Scalar::kVoid; }
  constexpr bool is_bool() const { return scalar == Scalar::kBool; }
  constexpr bool is_vector() const { return lanes > 1; }
  constexpr bool is_float() const { return InfoOf(scalar).kind == ScalarKind::kFloat; }
  constexpr bool is_signed() const { return InfoOf(scalar).kind == ScalarKind::kSigned; }
  constexpr bool is_unsigned() const { return InfoOf(scalar).kind == ScalarKind::kUnsigned; }
  // An integer of any width, index included, bool not.
  constexpr bool is_integer() const { return is_signed() || is_unsigned(); }

  constexpr DType element() const { return DType(scalar); }
  constexpr DType with_lanes(int n) const { return DType(scalar, n); }
  // Size in memory [bytes]; a vector's lanes lie side by side.
  constexpr int64_t size_bytes() const {
    return static_cast<int64_t>(InfoOf(scalar).size_bytes) * lanes;
  }
  // Width of one lane in a register [bits]; bool has one.
  constexpr int bits() const { return is_bool() ? 1 : InfoOf(scalar).size_bytes * 8; }
};

// "f32", "f32x16", "index".
std::string ToString(DType dtype);

// The dtype that `text` spells. Errors: InvalidArgument, which lists the scalar names.
absl::StatusOr<DType> ParseDType(absl::string_view text);

// Smallest and largest value of an integer dtype, as int64; u64's largest is clamped to INT64_MAX.
// bool is 0 and 1. Floats and void give the whole int64 range.
int64_t MinValue(DType dtype);
int64_t MaxValue(DType dtype);

}  // namespace svod

#endif  // SVOD_IR_DTYPE_H_
