// Filters of pictures as one graph: an unsharp mask (Gaussian blur, then the difference to it
// added) and the edges that Sobel's operator finds in the luminance. Bytes in, bytes out.
//
//   image_filter                     filters a drawn picture and checks the result
//   image_filter FOLDER              and writes before.ppm, sharpened.ppm and edges.ppm there
//   image_filter FOLDER PICTURE.ppm  the same of a picture of yours (P6, 8 bits)
//
// Checked against plain loops in double: no byte may differ by more than one step, and one in a
// thousand by that.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "examples/example.h"

namespace {

using svod::Op;
using svod::Scalar;
using svod::UOp;

constexpr int kRadius = 4;
constexpr double kSigma = 1.5, kAmount = 1.5;
constexpr double kLuminance[] = {0.299, 0.587, 0.114};  // of red, green, blue: ITU-R BT.601

struct Picture {
  int height = 0, width = 0;
  std::vector<uint8_t> bytes = {};  // [height, width, 3]
};

// Weights of the blur at distances -kRadius to kRadius.
std::vector<double> BlurWeights() {
  std::vector<double> weights;
  double sum = 0;
  for (int i = -kRadius; i <= kRadius; ++i) {
    weights.push_back(std::exp(-i * i / (2 * kSigma * kSigma)));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

// --- The graph.

// The sum of weights[i] * x[i:], along an axis, which becomes shorter by weights.size() - 1.
const UOp* Correlate(svod::TensorBuilder& b, const UOp* x, int64_t axis,
                     const std::vector<double>& weights) {
  const int64_t lost = static_cast<int64_t>(weights.size()) - 1;
  const UOp* size = b.dims().Sub(b.Dim(x, axis), b.Index(lost));
  const UOp* sum = b.Like(x, 0);
  for (int64_t i = 0; i <= lost; ++i) {
    if (weights[i] == 0) continue;
    const UOp* moved = b.ShrinkAxis(x, axis, b.Index(i), size);
    sum = b.Add(sum, b.Mul(moved, b.Like(moved, weights[i])));
  }
  return sum;
}

const UOp* ToBytes(svod::TensorBuilder& b, const UOp* x) {
  return b.Cast(b.Make(Op::kRound, {svod::Clip(b, x, 0, 255)}), Scalar::kU8);
}

absl::StatusOr<svod::ExecutionPlan> PrepareFilter(int64_t height, int64_t width) {
  svod::TensorBuilder b(std::make_shared<svod::Context>());
  const UOp* bytes = b.Param("picture", Scalar::kU8, {height, width, 3});

  // A plane for each colour, so that neighbours in a row are neighbours in memory; around each its
  // edge is repeated. Contiguous is what many elements of the next step read.
  const UOp* planes = b.Contiguous(b.Cast(b.Permute(bytes, {2, 0, 1}), Scalar::kF32));
  const std::vector<int64_t> border = {0, kRadius, kRadius};
  const UOp* padded = b.Contiguous(svod::PadWith(b, planes, border, border, svod::PadMode::kEdge));
  const std::vector<double> blur = BlurWeights();
  const UOp* blurred = Correlate(b, b.Contiguous(Correlate(b, padded, 1, blur)), 2, blur);
  const UOp* sharpened = b.Contiguous(
      ToBytes(b, b.Add(planes, b.Mul(b.Sub(planes, blurred), b.Like(planes, kAmount)))));

  // One pixel of the border is enough for the slopes.
  const UOp* around = b.Shrink(padded, b.ConstShape({0, kRadius - 1, kRadius - 1}),
                               b.ConstShape({3, height + 2, width + 2}));
  const UOp* luminance = b.Like(planes, 0);
  for (int64_t i = 0; i < 3; ++i) {
    const UOp* plane = b.Squeeze(b.ShrinkAxis(around, 0, b.Index(i), b.Index(1)), 0);
    luminance = b.Add(luminance, b.Mul(plane, b.Like(plane, kLuminance[i])));
  }
  luminance = b.Contiguous(luminance);
  const UOp* down = Correlate(b, Correlate(b, luminance, 0, {-1, 0, 1}), 1, {1, 2, 1});
  const UOp* across = Correlate(b, Correlate(b, luminance, 1, {-1, 0, 1}), 0, {1, 2, 1});
  const UOp* steepness = b.Make(Op::kSqrt, {b.Add(svod::Square(b, down), svod::Square(b, across))});
  return example::PrepareGraph(b, {b.Permute(sharpened, {1, 2, 0}), ToBytes(b, steepness)});
}

// --- The same in plain loops.

std::vector<double> Correlated(const std::vector<double>& x, int height, int width, bool down,
                               const std::vector<double>& weights) {
  const int radius = static_cast<int>(weights.size()) / 2;
  std::vector<double> result(x.size(), 0.0);
  for (int row = 0; row < height; ++row) {
    for (int column = 0; column < width; ++column) {
      for (int i = -radius; i <= radius; ++i) {
        const int r = down ? std::clamp(row + i, 0, height - 1) : row;
        const int c = down ? column : std::clamp(column + i, 0, width - 1);
        result[row * width + column] += weights[i + radius] * x[r * width + c];
      }
    }
  }
  return result;
}

double Byte(double value) { return std::nearbyint(std::clamp(value, 0.0, 255.0)); }

struct Filtered {
  std::vector<double> sharpened, edges;
};
Filtered FilterInLoops(const Picture& picture) {
  const int height = picture.height, width = picture.width, size = height * width;
  const std::vector<double> blur = BlurWeights();
  Filtered result{std::vector<double>(size_t{3} * size), std::vector<double>(size)};
  std::vector<double> luminance(size, 0.0), plane(size);
  for (int channel = 0; channel < 3; ++channel) {
    for (int i = 0; i < size; ++i) plane[i] = picture.bytes[3 * i + channel];
    const std::vector<double> blurred =
        Correlated(Correlated(plane, height, width, true, blur), height, width, false, blur);
    for (int i = 0; i < size; ++i) {
      result.sharpened[3 * i + channel] = Byte(plane[i] + kAmount * (plane[i] - blurred[i]));
      luminance[i] += kLuminance[channel] * plane[i];
    }
  }
  const auto slope = [&](bool down) {
    return Correlated(Correlated(luminance, height, width, down, {-1, 0, 1}), height, width, !down,
                      {1, 2, 1});
  };
  const std::vector<double> down = slope(true), across = slope(false);
  for (int i = 0; i < size; ++i) result.edges[i] = Byte(std::hypot(down[i], across[i]));
  return result;
}

// The share of the bytes that are off by one, where f32 rounds to the other side; 1 if any is off
// by more.
double Difference(absl::Span<const uint8_t> got, const std::vector<double>& expected) {
  if (got.size() != expected.size()) return 1;
  double num_off = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double difference = std::abs(got[i] - expected[i]);
    if (difference > 1) return 1;
    num_off += difference;
  }
  return num_off / static_cast<double>(got.size());
}

// --- Pictures.

// The sun above hills and a lake, all edges soft.
Picture Draw() {
  Picture picture{160, 240};
  const auto cover = [](double distance) {  // 0 outside, 1 inside, over 4 pixels between
    const double t = std::clamp(distance / 4 + 0.5, 0.0, 1.0);
    return t * t * (3 - 2 * t);
  };
  for (int row = 0; row < picture.height; ++row) {
    for (int column = 0; column < picture.width; ++column) {
      constexpr double kShore = 118;
      const double depth = row - kShore;  // what is below is mirrored, and ripples
      const double y = depth > 0 ? kShore - depth : row;
      const double x = depth > 0 ? column + 2.5 * std::sin(depth * depth / 60) : column;
      double color[] = {70 + 0.9 * y, 120 + 0.6 * y, 190 - 0.1 * y};
      const auto paint = [&](double share, double red, double green, double blue) {
        const double paints[] = {red, green, blue};
        for (int i = 0; i < 3; ++i) color[i] += share * (paints[i] - color[i]);
      };
      paint(cover(20 - std::hypot(x - 168, y - 42)), 252, 226, 130);
      for (int hill = 0; hill < 3; ++hill) {
        const double top = 62 + 18 * hill + 3 * std::sin(x / 3.1 + 2 * hill) +
                           (14 - 3 * hill) * std::sin(x / (23 - 5 * hill) + hill);
        paint(cover(y - top), 96 - 26 * hill, 104 - 16 * hill, 112 - 36 * hill);
      }
      if (depth > 0) paint(0.35, 30, 60, 110);
      for (double value : color) picture.bytes.push_back(static_cast<uint8_t>(Byte(value)));
    }
  }
  return picture;
}

absl::StatusOr<Picture> ReadPpm(const std::string& path) {
  auto text = example::ReadFile(path);
  if (!text.ok()) return text.status();
  std::istringstream file(*text);
  std::string magic;
  Picture picture;
  int largest = 0;
  file >> magic >> picture.width >> picture.height >> largest;
  constexpr int kMost = 1 << 14;  // pixels along a side
  if (!file || magic != "P6" || largest != 255 || picture.width < 1 || picture.height < 1 ||
      picture.width > kMost || picture.height > kMost) {
    return absl::InvalidArgumentError(path + ": no PPM picture of 8 bits without comments");
  }
  file.get();
  picture.bytes.resize(size_t{3} * picture.width * picture.height);
  file.read(reinterpret_cast<char*>(picture.bytes.data()),
            static_cast<std::streamsize>(picture.bytes.size()));
  if (!file) return absl::InvalidArgumentError(path + ": the picture is cut off");
  return picture;
}

// Bytes of three channels, or of one for grey.
absl::Status WritePpm(const std::string& path, int height, int width, int num_channels,
                      absl::Span<const uint8_t> bytes) {
  std::string text = "P6\n" + std::to_string(width) + " " + std::to_string(height) + "\n255\n";
  for (uint8_t byte : bytes) text.append(num_channels == 1 ? 3 : 1, static_cast<char>(byte));
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? absl::OkStatus() : absl::UnavailableError(path + ": cannot be written");
}

absl::StatusOr<bool> Run(int num_arguments, char** arguments) {
  const absl::StatusOr<Picture> picture = num_arguments > 2 ? ReadPpm(arguments[2]) : Draw();
  if (!picture.ok()) return picture.status();
  const int height = picture->height, width = picture->width;
  auto plan = PrepareFilter(height, width);
  if (!plan.ok()) return plan.status();
  absl::Status status = example::Fill(*plan, "picture", picture->bytes);
  double seconds = HUGE_VAL;
  for (int i = 0; i < 20 && status.ok(); ++i) {
    example::Clock clock;
    status.Update(svod::Execute(*plan));
    seconds = std::min(seconds, clock.seconds());
  }
  if (!status.ok()) return status;

  const auto sharpened = example::Result<uint8_t>(*plan, 0);
  const auto edges = example::Result<uint8_t>(*plan, 1);
  if (num_arguments > 1) {
    const std::string folder = std::string(arguments[1]) + "/";
    status.Update(WritePpm(folder + "before.ppm", height, width, 3, picture->bytes));
    status.Update(WritePpm(folder + "sharpened.ppm", height, width, 3, sharpened));
    status.Update(WritePpm(folder + "edges.ppm", height, width, 1, edges));
    if (!status.ok()) return status;
  }

  const Filtered expected = FilterInLoops(*picture);
  const double of_sharpened = Difference(sharpened, expected.sharpened);
  const double of_edges = Difference(edges, expected.edges);
  std::printf("%d x %d pixels, %zu kernels: %.2f ms at best\n", width, height,
              plan->prepared_kernels().size(), 1e3 * seconds);
  std::printf("off by one from plain loops: %.3f %% of the sharpened bytes, %.3f %% of the edges\n",
              100 * of_sharpened, 100 * of_edges);
  return of_sharpened < 1e-3 && of_edges < 1e-3;
}

}  // namespace

int main(int num_arguments, char** arguments) {
  return example::Report(Run(num_arguments, arguments));
}
