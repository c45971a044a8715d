#include "tools/onnx/windows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace svod {
namespace {

// One number for each dimension, `fallback` where there are none.
std::vector<int64_t> PerDimension(OnnxNode& node, absl::string_view name, size_t count,
                                  int64_t fallback, int64_t least) {
  std::vector<int64_t> values = node.Ints(name);
  if (values.empty()) values.assign(count, fallback);
  bool fits = values.size() == count;
  for (int64_t value : values) fits = fits && value >= least && value <= (int64_t{1} << 31);
  if (!fits) {
    node.Fail(absl::StrCat("attribute '", name, "', got [", absl::StrJoin(values, ", "),
                           "], expected ", count, " numbers of at least ", least));
  }
  return values;
}

}  // namespace

std::vector<int64_t> KernelOf(OnnxNode& node, const UOp* weight, int64_t first) {
  TensorBuilder& builder = node.builder();
  std::vector<int64_t> given = node.Ints("kernel_shape"), kernel;
  for (int64_t i = first; i < builder.RankOf(weight); ++i) {
    kernel.push_back(builder.ConstDim(weight, i, "weight"));
  }
  if (!given.empty() && given != kernel && node.ok()) {
    node.Fail(absl::StrCat("attribute 'kernel_shape', got [", absl::StrJoin(given, ", "),
                           "], expected the weight's [", absl::StrJoin(kernel, ", "), "]"));
  }
  return kernel;
}

std::optional<OnnxWindows> ReadWindowsOf(OnnxNode& node, const std::vector<int64_t>& kernel) {
  size_t count = kernel.size();
  OnnxWindows windows;
  windows.kernel = kernel;
  windows.strides = PerDimension(node, "strides", count, 1, 1);
  windows.dilations = PerDimension(node, "dilations", count, 1, 1);
  windows.pads = PerDimension(node, "pads", 2 * count, 0, 0);
  for (int64_t size : kernel) {
    if (node.ok() && (size < 1 || size > (int64_t{1} << 31))) {
      node.Fail(absl::StrCat("kernel, got [", absl::StrJoin(kernel, ", "),
                             "], expected numbers of at least 1"));
    }
  }
  if (!node.ok()) return std::nullopt;
  return windows;
}

std::optional<OnnxWindows> ReadWindows(OnnxNode& node, const std::vector<int64_t>& kernel) {
  TensorBuilder& builder = node.builder();
  size_t count = kernel.size();
  int automatic =
      node.Choice("auto_pad", "NOTSET", {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"});
  if (node.ok() && static_cast<int64_t>(count) + 2 != node.rank(0)) {
    node.Fail(absl::StrCat("kernel, got ", count, " dimensions, expected ", node.rank(0) - 2));
  }
  std::optional<OnnxWindows> read = ReadWindowsOf(node, kernel);
  if (!read.has_value() || automatic == 0) return read;
  OnnxWindows& windows = *read;
  windows.pads.assign(2 * count, 0);
  if (automatic == 3) return read;
  // As many windows as the stride goes into the dimension; an odd element is put behind
  // (SAME_UPPER) or in front.
  for (size_t i = 0; i < count; ++i) {
    int64_t reach = windows.dilations[i] * (kernel[i] - 1) + 1, all = reach - 1;
    if (windows.strides[i] != 1) {
      int64_t size = builder.ConstDim(node.input(0), 2 + static_cast<int64_t>(i), "auto_pad");
      if (size < 0) return std::nullopt;
      int64_t steps = (size + windows.strides[i] - 1) / windows.strides[i] - 1;
      all = std::max<int64_t>(steps * windows.strides[i] + reach - size, 0);
    }
    int64_t less = all / 2, more = all - less;
    windows.pads[i] = automatic == 1 ? less : more;
    windows.pads[i + count] = automatic == 1 ? more : less;
  }
  return read;
}

}  // namespace svod
