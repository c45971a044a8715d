// The heat equation du/dt = d2u/dx2 + d2u/dy2 on the unit square, cold at its edges, stepped in
// place: one plan that adds to the inner points of a grid, executed thousands of times.
//
// The grid starts as a sum of two sine modes. Mode (a, b) is an eigenvector of the five-point
// stencil, so after n steps of explicit Euler it has shrunk by exactly
//   (1 - 4 r (sin^2(a pi h / 2) + sin^2(b pi h / 2)))^n,   r = dt / h^2,
// and by exp(-(a^2 + b^2) pi^2 n dt) in the equation itself. Both are checked.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "examples/example.h"

namespace {

using svod::UOp;

constexpr int kPoints = 129;  // along each side, edges included
constexpr int kSteps = 4000;
constexpr double kStep = 1.0 / (kPoints - 1);  // h
constexpr double kRatio = 0.2;                 // r; explicit Euler is stable up to 1/4
constexpr double kPi = 3.14159265358979323846;

struct Mode {
  int a, b;
  double amplitude;
};
constexpr Mode kModes[] = {{1, 1, 1.0}, {3, 2, 0.5}};

double SinSquared(double x) { return std::sin(x) * std::sin(x); }

// How much of a mode is left after all steps: of the stencil, and of the equation.
double DiscreteDecay(const Mode& mode) {
  const double half = kPi * kStep / 2;
  return std::pow(1 - 4 * kRatio * (SinSquared(mode.a * half) + SinSquared(mode.b * half)), kSteps);
}
double AnalyticDecay(const Mode& mode) {
  const double time = kRatio * kStep * kStep * kSteps;
  return std::exp(-(mode.a * mode.a + mode.b * mode.b) * kPi * kPi * time);
}

// The grid at the start, or with each mode shrunk by its decay.
template <typename Decay>
std::vector<double> Grid(Decay decay) {
  std::vector<double> grid(size_t{kPoints} * kPoints, 0.0);
  for (int y = 1; y < kPoints - 1; ++y) {
    for (int x = 1; x < kPoints - 1; ++x) {
      for (const Mode& mode : kModes) {
        grid[y * kPoints + x] += mode.amplitude * decay(mode) * std::sin(mode.a * kPi * kStep * x) *
                                 std::sin(mode.b * kPi * kStep * y);
      }
    }
  }
  return grid;
}

double LargestDifference(absl::Span<const double> a, absl::Span<const double> b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (!(difference <= largest)) largest = difference;  // a NaN counts
  }
  return largest;
}

// u[1:-1, 1:-1] += r * (up + down + left + right - 4 * u[1:-1, 1:-1]). All of the right-hand side
// is read before any of it is written: a value sees the state of the buffer that it names.
absl::StatusOr<svod::ExecutionPlan> PrepareStep() {
  svod::TensorBuilder b(std::make_shared<svod::Context>());
  const UOp* u = b.Param("u", svod::Scalar::kF64, {kPoints, kPoints}, svod::Access::kInOut);
  const svod::Shape inside = b.ConstShape({kPoints - 2, kPoints - 2});
  const auto part = [&](int64_t y, int64_t x) { return b.Shrink(u, b.ConstShape({y, x}), inside); };
  const UOp* centre = part(1, 1);
  const UOp* around = b.Add(b.Add(part(0, 1), part(2, 1)), b.Add(part(1, 0), part(1, 2)));
  const UOp* laplacian = b.Sub(around, b.Mul(centre, b.Like(u, 4)));
  const UOp* next = b.Add(centre, b.Mul(laplacian, b.Like(u, kRatio)));
  return example::PrepareGraph(b, {b.After(u, {b.Assign(centre, next)})});
}

absl::StatusOr<bool> Run() {
  auto plan = PrepareStep();
  if (!plan.ok()) return plan.status();
  if (auto filled = example::Fill(*plan, "u", Grid([](const Mode&) { return 1.0; }));
      !filled.ok()) {
    return filled;
  }

  example::Clock clock;
  for (int i = 0; i < kSteps; ++i) {
    if (absl::Status done = svod::Execute(*plan); !done.ok()) return done;
  }
  const double seconds = clock.seconds();

  const absl::Span<const double> u = example::Values<double>(*plan, "u");
  const double discrete = LargestDifference(u, Grid(DiscreteDecay));
  const double analytic = LargestDifference(u, Grid(AnalyticDecay));
  std::printf("%d steps of %d x %d points: %.2f s, %.0f million points a second\n", kSteps, kPoints,
              kPoints, seconds, 1e-6 * kSteps * (kPoints - 2) * (kPoints - 2) / seconds);
  std::printf("hottest point %.6f\n", *std::max_element(u.begin(), u.end()));
  std::printf("largest error: %.1e of the stencil's decay, %.1e of the equation's\n", discrete,
              analytic);
  return discrete < 1e-12 && analytic < 1e-3;
}

}  // namespace

int main() { return example::Report(Run()); }
