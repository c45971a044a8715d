// FormatTensor: arrays as NumPy prints them with its default print options.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/float_formats.h"
#include "ir/uop.h"
#include "tools/tensor.h"

namespace svod {
namespace {

constexpr int64_t kThreshold = 1000;  // more elements are summarised
constexpr int64_t kEdgeItems = 3;     // at each end of a summarised axis
constexpr size_t kLineWidth = 75;     // of which every bracket at the end takes one
constexpr int kPrecision = 8;

int64_t SignedValue(DType dtype, uint64_t bits) {
  int width = dtype.bits();
  if (width == 64) return static_cast<int64_t>(bits);
  return static_cast<int64_t>(bits << (64 - width)) >> (64 - width);
}

// The shortest digits that give the value back in its own format.
std::string Shortest(DType dtype, double value, std::chars_format format) {
  char text[512];
  char* const end = text + sizeof(text);
  if (dtype == Scalar::kF64) return {text, std::to_chars(text, end, value, format).ptr};
  if (dtype == Scalar::kF32) {
    return {text, std::to_chars(text, end, static_cast<float>(value), format).ptr};
  }
  uint64_t bits = DoubleToBits(dtype.scalar, value);
  for (int precision = 0; precision < 12; ++precision) {
    std::string digits(text, std::to_chars(text, end, value, format, precision).ptr);
    double back = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), back);
    if (DoubleToBits(dtype.scalar, back) == bits) return digits;
  }
  return {text, std::to_chars(text, end, value, format).ptr};
}

// Splits "1.25" into "1." and "25"; an integer gets its dot.
struct Parts {
  std::string left, right, exponent;
};

Parts Split(std::string text, bool exponential) {
  Parts parts;
  size_t e = exponential ? text.find('e') : std::string::npos;
  if (e != std::string::npos) {
    parts.exponent = text.substr(e);
    text.resize(e);
  }
  size_t dot = text.find('.');
  parts.left = text.substr(0, dot) + ".";
  if (dot != std::string::npos) parts.right = text.substr(dot + 1);
  return parts;
}

// At most kPrecision digits after the dot, trailing zeros dropped.
Parts FloatParts(DType dtype, double value, bool exponential) {
  auto format = exponential ? std::chars_format::scientific : std::chars_format::fixed;
  Parts parts = Split(Shortest(dtype, value, format), exponential);
  if (parts.right.size() > kPrecision) {
    char text[512];
    auto end = std::to_chars(text, text + sizeof(text), value, format, kPrecision).ptr;
    parts = Split(std::string(text, end), exponential);
  }
  while (!parts.right.empty() && parts.right.back() == '0') parts.right.pop_back();
  return parts;
}

// Formats elements of one tensor alike: one width, one number of decimals, one notation.
class ElementFormatter {
 public:
  ElementFormatter(const Tensor& tensor, const std::vector<int64_t>& shown) : tensor_(tensor) {
    DType dtype = tensor.dtype();
    if (!dtype.is_float()) {
      for (int64_t i : shown) width_ = std::max(width_, Plain(i).size());
      return;
    }
    double smallest = std::numeric_limits<double>::infinity(), largest = 0;
    for (int64_t i : shown) {
      double value = std::fabs(BitsToDouble(dtype.scalar, tensor.Bits(i)));
      if (!std::isfinite(value) || value == 0) continue;
      smallest = std::min(smallest, value);
      largest = std::max(largest, value);
    }
    exponential_ = largest >= 1e8 || (largest > 0 && (smallest < 1e-4 || largest > 1e3 * smallest));
    for (int64_t i : shown) {
      double value = BitsToDouble(dtype.scalar, tensor.Bits(i));
      if (!std::isfinite(value)) {
        width_ = std::max(width_, NonFinite(value).size());
        continue;
      }
      Parts parts = FloatParts(dtype, value, exponential_);
      left_ = std::max(left_, parts.left.size());
      right_ = std::max(right_, parts.right.size());
      exponent_ = std::max(exponent_, parts.exponent.size());
    }
    width_ = std::max(width_, left_ + right_ + exponent_);
  }

  std::string operator()(int64_t element) const {
    DType dtype = tensor_.dtype();
    if (!dtype.is_float()) return Pad(Plain(element));
    double value = BitsToDouble(dtype.scalar, tensor_.Bits(element));
    if (!std::isfinite(value)) return Pad(NonFinite(value));
    Parts parts = FloatParts(dtype, value, exponential_);
    parts.right.append(right_ - parts.right.size(), exponential_ ? '0' : ' ');
    return Pad(parts.left + parts.right + parts.exponent);
  }

 private:
  std::string Plain(int64_t element) const {
    DType dtype = tensor_.dtype();
    uint64_t bits = tensor_.Bits(element);
    if (dtype.is_bool()) return bits != 0 ? "True" : "False";
    if (dtype.is_signed()) return absl::StrCat(SignedValue(dtype, bits));
    return absl::StrCat(bits);
  }
  static std::string NonFinite(double value) {
    if (std::isnan(value)) return "nan";
    return value < 0 ? "-inf" : "inf";
  }
  std::string Pad(std::string text) const {
    if (text.size() < width_) text.insert(0, width_ - text.size(), ' ');
    return text;
  }

  const Tensor& tensor_;
  bool exponential_ = false;
  size_t width_ = 0, left_ = 0, right_ = 0, exponent_ = 0;
};

class Formatter {
 public:
  explicit Formatter(const Tensor& tensor)
      : tensor_(tensor),
        summarise_(tensor.num_elements() > kThreshold),
        element_(tensor, Shown()) {}

  std::string Format() {
    if (tensor_.num_elements() == 0) return "[]";
    if (tensor_.shape().empty()) return element_(0);
    return Axis(0, 0);
  }

 private:
  // Positions of an axis that are printed; -1 is the ellipsis.
  std::vector<int64_t> Positions(size_t axis) const {
    int64_t size = tensor_.shape()[axis];
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < size; ++i) {
      if (summarise_ && size > 2 * kEdgeItems && i == kEdgeItems) {
        positions.push_back(-1);
        i = size - kEdgeItems;
      }
      positions.push_back(i);
    }
    return positions;
  }

  std::vector<int64_t> Shown() const {
    std::vector<int64_t> elements = {0};
    if (tensor_.num_elements() == 0) return {};
    for (size_t axis = 0; axis < tensor_.shape().size(); ++axis) {
      std::vector<int64_t> next;
      for (int64_t base : elements) {
        for (int64_t i : Positions(axis)) {
          if (i >= 0) next.push_back(base * tensor_.shape()[axis] + i);
        }
      }
      elements = std::move(next);
    }
    return elements;
  }

  // Rank is at most kMaxTensorRank, so the recursion is shallow.
  std::string Axis(size_t axis, int64_t base) const {
    size_t rank = tensor_.shape().size();
    std::string indent(axis + 1, ' ');
    std::string text = "[";
    size_t column = axis + 1;
    bool first = true;
    for (int64_t i : Positions(axis)) {
      std::string item;
      if (i < 0) {
        item = "...";
      } else if (axis + 1 == rank) {
        item = element_(base * tensor_.shape()[axis] + i);
      } else {
        item = Axis(axis + 1, base * tensor_.shape()[axis] + i);
      }
      if (!first) {
        bool wrap = column + 1 + item.size() > kLineWidth - rank;
        if (axis + 1 < rank) {
          absl::StrAppend(&text, std::string(rank - axis - 1, '\n'), indent);
        } else if (wrap) {
          absl::StrAppend(&text, "\n", indent);
          column = axis + 1;
        } else {
          text += ' ';
          ++column;
        }
      }
      text += item;
      column += item.size();
      first = false;
    }
    return text + "]";
  }

  const Tensor& tensor_;
  bool summarise_;
  ElementFormatter element_;
};

}  // namespace

std::string FormatTensor(const Tensor& tensor) { return Formatter(tensor).Format(); }

}  // namespace svod
