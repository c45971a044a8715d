#include "ir/literal.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

int WidthOf(Scalar scalar) { return DType(scalar).bits(); }

absl::Status Error(absl::string_view text, Scalar scalar, absl::string_view expected) {
  constexpr size_t kMaxShown = 40;
  return absl::InvalidArgumentError(absl::StrCat(
      "literal, got '", text.substr(0, kMaxShown), text.size() > kMaxShown ? "..." : "",
      "', expected ", expected, " for ", InfoOf(scalar).name));
}

// The quiet NaN without payload or sign.
uint64_t DefaultNan(Scalar scalar) {
  return DoubleToBits(scalar, std::numeric_limits<double>::quiet_NaN());
}

template <typename T>
bool FromChars(absl::string_view text, T* value, std::errc* error) {
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *value);
  *error = code;
  return end == text.data() + text.size() && code != std::errc::invalid_argument;
}

absl::StatusOr<uint64_t> ParseBits(absl::string_view text, Scalar scalar) {
  uint64_t bits = 0;
  absl::string_view digits = text.substr(2);
  auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
  if (digits.empty() || end != digits.data() + digits.size()) {
    return Error(text, scalar, "hexadecimal bits");
  }
  int width = WidthOf(scalar);
  if (code != std::errc() || (width < 64 && (bits >> width) != 0)) {
    return Error(text, scalar, absl::StrCat("at most ", width, " bits"));
  }
  return bits;
}

// Whether a decimal that does not fit a double is too large rather than too small: the power of
// ten of its first digit that is not 0.
bool IsHuge(absl::string_view text) {
  int64_t exponent = 0;
  size_t e = text.find_first_of("eE");
  if (e != absl::string_view::npos) {
    absl::string_view digits = text.substr(e + 1);
    if (!digits.empty() && digits[0] == '+') digits.remove_prefix(1);
    std::errc error;
    if (!FromChars(digits, &exponent, &error) || error != std::errc()) {
      return digits.empty() || digits[0] != '-';
    }
  }
  absl::string_view mantissa = text.substr(0, e);
  size_t point = std::min(mantissa.find('.'), mantissa.size());
  size_t first = mantissa.find_first_of("123456789");
  if (first == absl::string_view::npos) return false;
  return static_cast<int64_t>(point) - static_cast<int64_t>(first) + exponent > 0;
}

absl::StatusOr<uint64_t> ParseFloat(absl::string_view text, Scalar scalar) {
  if (text == "nan") return DefaultNan(scalar);
  if (text == "inf" || text == "-inf") {
    double infinity = std::numeric_limits<double>::infinity();
    return DoubleToBits(scalar, text[0] == '-' ? -infinity : infinity);
  }
  bool is_digits =
      !text.empty() && (absl::ascii_isdigit(text[0]) ||
                        (text.size() > 1 && text[0] == '-' && absl::ascii_isdigit(text[1])));
  double value = 0;
  std::errc error;
  if (!is_digits || text.back() == '.' || !FromChars(text, &value, &error)) {
    return Error(text, scalar, "a decimal number, inf, nan or 0x bits");
  }
  if (error == std::errc::result_out_of_range) {
    if (IsHuge(text)) return Error(text, scalar, "a finite value, or inf");
    value = text[0] == '-' ? -0.0 : 0.0;
  }
  // f32 straight from the decimal: through f64 it would be rounded twice.
  float narrow = 0;
  if (scalar == Scalar::kF32 && FromChars(text, &narrow, &error) && error == std::errc()) {
    return DoubleToBits(scalar, narrow);
  }
  uint64_t bits = DoubleToBits(scalar, value);
  if (!std::isfinite(BitsToDouble(scalar, bits))) {
    return Error(text, scalar, "a finite value, or inf");
  }
  return bits;
}

absl::StatusOr<uint64_t> ParseInteger(absl::string_view text, Scalar scalar) {
  std::errc error;
  DType dtype(scalar);
  auto range_error = [&] {
    std::string max = scalar == Scalar::kU64 ? absl::StrCat(std::numeric_limits<uint64_t>::max())
                                             : absl::StrCat(MaxValue(dtype));
    return Error(text, scalar, absl::StrCat(MinValue(dtype), " to ", max));
  };
  uint64_t bits = 0;
  if (text[0] == '-') {
    int64_t value = 0;
    if (!FromChars(text, &value, &error)) return Error(text, scalar, "an integer");
    if (error != std::errc() || value < MinValue(dtype)) return range_error();
    bits = static_cast<uint64_t>(value);
  } else {
    if (!FromChars(text, &bits, &error)) return Error(text, scalar, "an integer");
    bool fits = scalar == Scalar::kU64 || bits <= static_cast<uint64_t>(MaxValue(dtype));
    if (error != std::errc() || !fits) return range_error();
  }
  int width = WidthOf(scalar);
  return width == 64 ? bits : bits & ((uint64_t{1} << width) - 1);
}

template <typename T>
std::string Shortest(T value) {
  char buffer[64];
  auto [end, code] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, end);
}

std::string FormatFloat(Scalar scalar, uint64_t bits) {
  double value = BitsToDouble(scalar, bits);
  if (std::isnan(value)) {
    return bits == DefaultNan(scalar)
               ? "nan"
               : absl::StrFormat("0x%0*x", InfoOf(scalar).size_bytes * 2, bits);
  }
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text;
  if (scalar == Scalar::kF64) {
    text = Shortest(value);
  } else if (scalar == Scalar::kF32) {
    text = Shortest(static_cast<float>(value));
  } else {
    // Five digits tell any two f16 or bf16 values apart.
    for (int digits = 1; digits <= 5; ++digits) {
      text = absl::StrFormat("%.*g", digits, value);
      absl::StatusOr<uint64_t> parsed = ParseFloat(text, scalar);
      if (parsed.ok() && *parsed == bits) break;
    }
  }
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

absl::StatusOr<uint64_t> ParseLiteral(absl::string_view text, Scalar scalar) {
  DType dtype(scalar);
  if (dtype.is_void() || text.empty()) return Error(text, scalar, "no literal");
  if (dtype.is_bool()) {
    if (text == "true") return uint64_t{1};
    if (text == "false") return uint64_t{0};
    return Error(text, scalar, "true or false");
  }
  if (text.size() > 1 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    return ParseBits(text, scalar);
  }
  return dtype.is_float() ? ParseFloat(text, scalar) : ParseInteger(text, scalar);
}

std::string FormatLiteral(Scalar scalar, uint64_t bits) {
  DType dtype(scalar);
  if (dtype.is_bool()) return bits != 0 ? "true" : "false";
  if (dtype.is_float()) return FormatFloat(scalar, bits);
  if (dtype.is_unsigned()) return absl::StrCat(bits);
  int width = WidthOf(scalar);
  return absl::StrCat(static_cast<int64_t>(bits << (64 - width)) >> (64 - width));
}

}  // namespace svod
