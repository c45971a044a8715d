#include "plan/winograd_form.h"

#include <algorithm>
#include <cmath>

namespace svod {
namespace {

using Matrix = WinogradForm::Matrix;

// What moving and transforming takes, measured in products of a full register tile.
constexpr double kTransformed = 10;  // an element of a transformed patch: computed, stored, read
constexpr double kTransposed = 12;   // an element whose channel becomes the innermost dimension
constexpr double kStreamed = 16;     // a weight that the second-level cache does not keep
constexpr double kCachedWeights = 1 << 18;
// The direct sum must cost so many times as much.
constexpr double kMargin = 1.15;

double RowSum(const std::vector<double>& row) {
  double sum = 0;
  for (double value : row) sum += std::abs(value);
  return sum;
}

// Most terms of a row: as many roundings at most, one a product and one an addition but the first.
int64_t MostTerms(const Matrix& matrix) {
  int64_t most = 0;
  for (const std::vector<double>& row : matrix) {
    auto zeros = std::count(row.begin(), row.end(), 0.0);
    most = std::max(most, static_cast<int64_t>(row.size()) - zeros);
  }
  return most;
}

double Patches(const WinogradForm& form, const ConvolutionSize& size) {
  auto tiles = [&](int64_t extent) {
    return static_cast<double>((extent + form.tile - 1) / form.tile);
  };
  return size.pictures * tiles(size.height) * tiles(size.width);
}

double Streamed(double weights) { return weights > kCachedWeights ? kStreamed * weights : 0; }

}  // namespace

absl::Span<const WinogradForm> WinogradForms() {
  static const auto* const kForms = new std::vector<WinogradForm>{
      {4,
       {{4, 0, -5, 0, 1, 0},
        {0, -4, -4, 1, 1, 0},
        {0, 4, -4, -1, 1, 0},
        {0, -2, -1, 2, 1, 0},
        {0, 2, -1, -2, 1, 0},
        {0, 4, 0, -5, 0, 1}},
       {{1.0 / 4, 0, 0},
        {-1.0 / 6, -1.0 / 6, -1.0 / 6},
        {-1.0 / 6, 1.0 / 6, -1.0 / 6},
        {1.0 / 24, 1.0 / 12, 1.0 / 6},
        {1.0 / 24, -1.0 / 12, 1.0 / 6},
        {0, 0, 1}},
       {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}}},
      {2,
       {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
       {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}},
       {{1, 1, 1, 0}, {0, 1, -1, -1}}}};
  return *kForms;
}

double WinogradError(const WinogradForm& form, int64_t channels) {
  double growth = 0;
  for (const std::vector<double>& row : form.output) {
    double sum = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      sum += std::abs(row[i]) * RowSum(form.weights[i]) * RowSum(form.input[i]);
    }
    growth = std::max(growth, sum);
  }
  // Every matrix is applied twice; those of weights may themselves be rounded.
  const int64_t roundings = 2 * MostTerms(form.input) + 2 * (MostTerms(form.weights) + 1) +
                            2 * MostTerms(form.output) + channels + 1;
  const double u = std::ldexp(1.0, -24), k = static_cast<double>(roundings);
  return k * u / (1 - k * u) * growth * growth / 9;
}

double DirectWork(const ConvolutionSize& size) {
  const double weights = 9 * static_cast<double>(size.inputs * size.outputs);
  const auto results = static_cast<double>(size.height * size.width);
  return size.pictures * results * weights + Streamed(weights);
}

double WinogradWork(const WinogradForm& form, const ConvolutionSize& size) {
  const auto elements = static_cast<double>(form.patch() * form.patch());
  const auto weights = static_cast<double>(size.inputs * size.outputs);
  const auto channels = static_cast<double>(size.inputs + size.outputs);
  const double patches = Patches(form, size);
  const double results = size.pictures * static_cast<double>(size.height * size.width);
  double work = patches * elements * (weights + kTransformed * channels);
  work += kTransposed * results * channels + Streamed(elements * weights);
  if (!size.weights_are_constant) {
    work += (9 * kTransposed + elements * kTransformed) * weights;
  }
  return work;
}

const WinogradForm* ChooseWinogradForm(const ConvolutionSize& size, double max_error) {
  const WinogradForm* best = nullptr;
  double least = DirectWork(size) / kMargin;
  for (const WinogradForm& form : WinogradForms()) {
    const double work = WinogradWork(form, size);
    if (work >= least || WinogradError(form, size.inputs) > max_error) continue;
    best = &form;
    least = work;
  }
  return best;
}

}  // namespace svod
