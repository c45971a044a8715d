// Rows of the operator table: Fourier transforms, windows of signals, mel filters.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/indexing.h"
#include "ir/operators/matmul.h"
#include "ir/operators/shaping.h"
#include "tools/onnx/onnx_operators.h"

namespace svod {
namespace {

// Longest transform: its matrices are kept as constants.
constexpr int64_t kMaxLength = 4096;
constexpr double kTau = 2 * std::numbers::pi;

struct Transform {
  int64_t length, bins;
  bool is_inverse;
};

// x [..., length, 1 or 2], the last dimension real and imaginary, as [..., bins, 2].
const UOp* Fourier(OnnxNode& node, const UOp* x, const Transform& transform) {
  TensorBuilder& builder = node.builder();
  if (!node.ok()) return nullptr;
  auto [length, bins, is_inverse] = transform;
  std::vector<double> cosines, sines;
  for (int64_t n = 0; n < length; ++n) {
    for (int64_t k = 0; k < bins; ++k) {
      double angle = kTau * static_cast<double>(n * k % length) / static_cast<double>(length);
      double scale = is_inverse ? 1.0 / static_cast<double>(length) : 1;
      cosines.push_back(std::cos(angle) * scale);
      sines.push_back((is_inverse ? 1 : -1) * std::sin(angle) * scale);
    }
  }
  Shape matrix = {builder.Index(length), builder.Index(bins)};
  const UOp* c = builder.Reshape(node.FloatsConstant(cosines, x->dtype()), matrix);
  const UOp* s = builder.Reshape(node.FloatsConstant(sines, x->dtype()), matrix);
  auto part = [&](int64_t i) {
    return builder.Squeeze(builder.ShrinkAxis(x, -1, builder.Index(i), builder.Index(1)), -1);
  };
  auto times = [&](const UOp* value, const UOp* by) {
    return Expression(builder, Matmul(builder, value, by));
  };
  const UOp* real = part(0);
  Expression y_real = times(real, c), y_imaginary = times(real, s);
  if (IsConstInt(builder.Dim(x, -1), 2)) {
    const UOp* imaginary = part(1);
    y_real = y_real - times(imaginary, s);
    y_imaginary = y_imaginary + times(imaginary, c);
  }
  return StackTensors(builder, {y_real, y_imaginary}, -1);
}

bool CheckComplex(OnnxNode& node) {
  int64_t last = node.builder().ConstDim(node.input(0), -1, "signal");
  if (last == 1 || last == 2) return true;
  node.Fail(absl::StrCat("last dimension, got ", last, ", expected 1 or 2"));
  return false;
}

bool CheckLength(OnnxNode& node, int64_t length) {
  if (length >= 1 && length <= kMaxLength) return true;
  node.FailUnsupported(absl::StrCat("a transform of ", length, " elements"));
  return false;
}

OnnxResults ImportDft(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp* x = node.input(0);
  bool is_inverse = node.Bool("inverse", false), onesided = node.Bool("onesided", false);
  int64_t axis = node.version() < 20 ? node.Int("axis", 1) : -2;
  if (node.version() >= 20 && node.has_input(2)) {
    std::optional<std::vector<int64_t>> given = node.KnownInts(2);
    if (!given.has_value() || given->size() != 1) return node.Fail("axis, expected one number");
    axis = (*given)[0];
  }
  axis = builder.Axis(x, axis, "dft");
  if (axis < 0 || !CheckComplex(node)) return {};
  if (axis == node.rank(0) - 1) return node.Fail("axis, got that of the complex parts");
  int64_t size = builder.ConstDim(x, axis, "dft"), length = size;
  if (node.has_input(1)) {
    std::optional<std::vector<int64_t>> given = node.KnownInts(1);
    if (!given.has_value() || given->size() != 1) return node.Fail("length, expected one number");
    length = (*given)[0];
  }
  if (size < 0 || !CheckLength(node, length)) return {};
  if (length < size) x = builder.ShrinkAxis(x, axis, builder.Index(0), builder.Index(length));
  if (length > size) {
    x = builder.PadAxis(x, axis, builder.Like(x, 0), builder.Index(0),
                        builder.Index(length - size));
  }
  int64_t before_last = node.rank(0) - 2;
  x = builder.Transpose(x, axis, before_last);
  const UOp* y = Fourier(node, x, {length, onesided ? length / 2 + 1 : length, is_inverse});
  return {builder.Transpose(y, axis, before_last)};
}

OnnxResults ImportStft(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp* x = node.input(0);
  bool onesided = node.Bool("onesided", true);
  std::optional<std::vector<int64_t>> step = node.KnownInts(1);
  if (!step.has_value() || step->size() != 1 || (*step)[0] < 1) {
    return node.Fail("frame_step, expected one number above 0");
  }
  if (node.rank(0) != 3 || !CheckComplex(node)) return node.Fail("signal, expected rank 3");
  int64_t size = builder.ConstDim(x, 1, "signal"), length = 0;
  if (node.has_input(3)) {
    std::optional<std::vector<int64_t>> given = node.KnownInts(3);
    if (!given.has_value() || given->size() != 1) return node.Fail("frame_length");
    length = (*given)[0];
  } else if (node.has_input(2)) {
    length = builder.ConstDim(node.input(2), 0, "window");
  }
  if (size < 0 || !CheckLength(node, length)) return {};
  int64_t frames = size < length ? 0 : (size - length) / (*step)[0] + 1;
  std::vector<int64_t> positions;
  for (int64_t f = 0; f < frames; ++f) {
    for (int64_t i = 0; i < length; ++i) positions.push_back(f * (*step)[0] + i);
  }
  const UOp* places =
      builder.Reshape(node.IntsConstant(positions), builder.ConstShape({frames, length}));
  Expression framed(builder, Take(builder, x, places, 1));  // [B, frames, length, parts]
  if (node.has_input(2)) {
    framed = framed * Expression(builder, builder.Unsqueeze(node.input(2), 1));
  }
  return {Fourier(node, framed, {length, onesided ? length / 2 + 1 : length, false})};
}

// a0 - a1 cos(x) + a2 cos(2 x) over one period, or up to its end.
OnnxResults Window(OnnxNode& node, double a0, double a1, double a2) {
  DType dtype = node.TypeAttribute("output_datatype", Scalar::kF32);
  bool periodic = node.Bool("periodic", true);
  std::optional<std::vector<int64_t>> size = node.KnownInts(0);
  if (!size.has_value()) return {};
  if (size->size() != 1 || (*size)[0] < 0 || (*size)[0] > (1 << 24)) {
    return node.Fail("size, expected one number");
  }
  int64_t count = (*size)[0];
  double period = static_cast<double>(periodic ? count : std::max<int64_t>(count - 1, 1));
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    double x = kTau * static_cast<double>(i) / period;
    values.push_back(a0 - a1 * std::cos(x) + a2 * std::cos(2 * x));
  }
  if (dtype.is_float()) return {node.FloatsConstant(values, dtype)};
  return {node.builder().Cast(node.FloatsConstant(values, Scalar::kF64), dtype)};
}

OnnxResults ImportHannWindow(OnnxNode& node) { return Window(node, 0.5, 0.5, 0); }
OnnxResults ImportHammingWindow(OnnxNode& node) {
  return Window(node, 25.0 / 46, 1 - 25.0 / 46, 0);
}
OnnxResults ImportBlackmanWindow(OnnxNode& node) { return Window(node, 0.42, 0.5, 0.08); }

OnnxResults ImportMelWeightMatrix(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  DType dtype = node.TypeAttribute("output_datatype", Scalar::kF32);
  double numbers[5];
  for (size_t i = 0; i < 5; ++i) {
    std::optional<std::vector<double>> given = node.KnownNumbers(i);
    if (!given.has_value()) return {};
    if (given->size() != 1) return node.Fail(absl::StrCat("input ", i, ", expected one number"));
    numbers[i] = (*given)[0];
  }
  auto num_mels = static_cast<int64_t>(numbers[0]), length = static_cast<int64_t>(numbers[1]);
  double rate = numbers[2];
  if (num_mels < 1 || num_mels > 65536 || length < 1 || length > (1 << 24) || !(rate > 0)) {
    return node.Fail("numbers of bins, length and rate, expected them above 0");
  }
  auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  double low = mel(numbers[3]), step = (mel(numbers[4]) - low) / static_cast<double>(num_mels + 2);
  int64_t num_bins = length / 2 + 1;
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < num_mels + 2; ++i) {
    double hertz = 700 * (std::pow(10.0, (static_cast<double>(i) * step + low) / 2595) - 1);
    double bin = std::floor(static_cast<double>(length + 1) * hertz / rate);
    if (!(bin >= 0) || bin > static_cast<double>(num_bins)) {
      return node.Fail("edges, expected them within the spectrum");
    }
    edges.push_back(static_cast<int64_t>(bin));
  }
  std::vector<double> weights(static_cast<size_t>(num_bins * num_mels), 0);
  auto set = [&](int64_t bin, int64_t i, double value) {
    if (bin < num_bins) weights[static_cast<size_t>(bin * num_mels + i)] = value;
  };
  for (int64_t i = 0; i < num_mels; ++i) {
    auto at = static_cast<size_t>(i);
    int64_t lower = edges[at], centre = edges[at + 1], higher = edges[at + 2];
    if (lower == centre) set(centre, i, 1);
    for (int64_t j = lower; lower < centre && j <= centre; ++j) {
      set(j, i, static_cast<double>(j - lower) / static_cast<double>(centre - lower));
    }
    for (int64_t j = centre; j < higher; ++j) {
      set(j, i, static_cast<double>(higher - j) / static_cast<double>(higher - centre));
    }
  }
  const UOp* flat = node.FloatsConstant(weights, dtype.is_float() ? dtype : DType(Scalar::kF64));
  return {builder.Cast(builder.Reshape(flat, builder.ConstShape({num_bins, num_mels})), dtype)};
}

}  // namespace

OnnxRows OnnxSignalRows() {
  constexpr absl::string_view kLimits = "at most 4096 elements, their number constant";
  return {
      {"BlackmanWindow", {17}, 1, 1, ImportBlackmanWindow},
      {"DFT", {17, 20}, 1, 3, ImportDft, "", kLimits},
      {"HammingWindow", {17}, 1, 1, ImportHammingWindow},
      {"HannWindow", {17}, 1, 1, ImportHannWindow},
      {"MelWeightMatrix", {17}, 5, 5, ImportMelWeightMatrix},
      {"STFT", {17}, 2, 4, ImportStft, "", kLimits},
  };
}

}  // namespace svod
