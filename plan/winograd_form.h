// WinogradForm: the bilinear forms that compute a tile of a convolution, their error and their
// cost. Included by winograd.cc and tests. Must not know graphs.
#ifndef SVOD_PLAN_WINOGRAD_FORM_H_
#define SVOD_PLAN_WINOGRAD_FORM_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace svod {

// F(m x m, 3 x 3): m x m results of a 3 x 3 window from a patch of n x n elements, n = m + 2, with
// n * n products instead of 9 * m * m:
//   output [ (weights g weights^T) * (input d input^T) ] output^T, * element by element.
// Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (CVPR 2016), section
// 4; points 0, 1, -1 and, for m = 4, 2, -2.
struct WinogradForm {
  using Matrix = std::vector<std::vector<double>>;
  int64_t tile;    // m
  Matrix input;    // n x n
  Matrix weights;  // n x 3
  Matrix output;   // m x n

  int64_t patch() const { return tile + 2; }
};

// m = 4 and m = 2, the one with fewer products first.
absl::Span<const WinogradForm> WinogradForms();

// A bound of the error of a result in f32, relative to 9 * channels * max|x| * max|w|, the most
// that its products can sum up to; overflow and underflow aside. An infinity or a NaN spreads over
// the results of its tile.
// Source: each result is a sum whose terms pass through at most k roundings, so that it is the
// exact one of terms changed by a factor of at most 1 + gamma_k, gamma_k = k u / (1 - k u), u =
// 2^-24 (Higham, "Accuracy and Stability of Numerical Algorithms", 3.1); the magnitudes of the
// terms add up to at most the same form with |input|, |weights| and |output|. Barabasz, Anderson,
// Soodhalter and Gregg (ACM TOMS 46, 2020) have the same bound with other norms.
double WinogradError(const WinogradForm& form, int64_t channels);

// What decides whether a convolution gains.
struct ConvolutionSize {
  double pictures;                    // how many
  int64_t height, width;              // of results
  int64_t inputs, outputs;            // channels
  bool weights_are_constant = false;  // their transform is done beforehand
};

// Time of the direct sum, and by a form with its transforms [products of a register tile].
double DirectWork(const ConvolutionSize& size);
double WinogradWork(const WinogradForm& form, const ConvolutionSize& size);

// The cheapest form whose error is at most `max_error`; null if the direct sum is not clearly
// dearer than it.
const WinogradForm* ChooseWinogradForm(const ConvolutionSize& size, double max_error);

}  // namespace svod

#endif  // SVOD_PLAN_WINOGRAD_FORM_H_
