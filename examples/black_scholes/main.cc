// A sweep of European option prices in f64: examples/black_scholes.uop on 1,024 spot prices times
// 1,024 volatilities, 2,097,152 prices in one run.
//
// Checked: two published prices; every price against the C library's erfc and log; put-call parity,
// C - P = S - K exp(-r T), everywhere.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "examples/example.h"

namespace {

constexpr int kSpots = 1024, kVolatilities = 1024;

struct Prices {
  double call, put;
};

double NormalDistribution(double x) { return std::erfc(-x * std::sqrt(0.5)) / 2; }

Prices Reference(double s, double v, double k, double r, double t) {
  const double d1 = (std::log(s / k) + (r + v * v / 2) * t) / (v * std::sqrt(t));
  const double d2 = d1 - v * std::sqrt(t);
  const double discounted = k * std::exp(-r * t);
  return {s * NormalDistribution(d1) - discounted * NormalDistribution(d2),
          discounted * NormalDistribution(-d2) - s * NormalDistribution(-d1)};
}

class Sweep {
 public:
  static absl::StatusOr<Sweep> Create() {
    const std::string path = "examples/black_scholes.uop";
    auto text = example::ReadFile(path);
    if (!text.ok()) return text.status();
    auto module = svod::ParseModule(*text, path, std::make_shared<svod::Context>());
    if (!module.ok()) return module.status();
    auto plan = example::PrepareGraph(*module, "black_scholes");
    if (!plan.ok()) return plan.status();
    return Sweep(*std::move(plan));
  }

  // Prices for every pair of a spot and a volatility, in the order of spots; `seconds`: what one
  // more run took.
  absl::Status Run(const std::vector<double>& spots, const std::vector<double>& volatilities,
                   double strike, double rate, double time, std::vector<Prices>* prices,
                   double* seconds = nullptr) {
    absl::Status status = plan_.SetVariables({{"m", static_cast<int64_t>(spots.size())},
                                              {"n", static_cast<int64_t>(volatilities.size())}});
    status.Update(example::Fill(plan_, "spot", spots));
    status.Update(example::Fill(plan_, "volatility", volatilities));
    status.Update(example::Fill(plan_, "strike", std::vector<double>{strike}));
    status.Update(example::Fill(plan_, "rate", std::vector<double>{rate}));
    status.Update(example::Fill(plan_, "time", std::vector<double>{time}));
    if (!status.ok()) return status;

    status.Update(svod::Execute(plan_));  // the first touches new memory
    example::Clock clock;
    status.Update(svod::Execute(plan_));
    if (seconds != nullptr) *seconds = clock.seconds();
    if (!status.ok()) return status;

    const auto calls = example::Result<double>(plan_, 0), puts = example::Result<double>(plan_, 1);
    prices->resize(spots.size() * volatilities.size());
    for (size_t i = 0; i < prices->size(); ++i) (*prices)[i] = {calls[i], puts[i]};
    return status;
  }

 private:
  explicit Sweep(svod::ExecutionPlan plan) : plan_(std::move(plan)) {}
  svod::ExecutionPlan plan_;
};

// S 100, K 100, r 5 %, v 20 %, one year; and the example of Hull, "Options, Futures, and Other
// Derivatives", on Black-Scholes-Merton: S 42, K 40, r 10 %, v 20 %, half a year, 4.76 and 0.81.
absl::StatusOr<double> ErrorOfKnownPrices(Sweep& sweep) {
  struct Known {
    double s, k, r, v, t;
    Prices prices;
  };
  const Known known[] = {{100, 100, 0.05, 0.2, 1, {10.450583572185565, 5.573526022256971}},
                         {42, 40, 0.1, 0.2, 0.5, {4.759422392871532, 0.8085993729000958}}};
  double error = 0;
  for (const Known& row : known) {
    std::vector<Prices> prices;
    absl::Status done = sweep.Run({row.s}, {row.v}, row.k, row.r, row.t, &prices);
    if (!done.ok()) return done;
    error = std::max({error, std::abs(prices[0].call - row.prices.call),
                      std::abs(prices[0].put - row.prices.put)});
  }
  return error;
}

absl::StatusOr<bool> Run() {
  auto sweep = Sweep::Create();
  if (!sweep.ok()) return sweep.status();
  auto known = ErrorOfKnownPrices(*sweep);
  if (!known.ok()) return known.status();

  const double strike = 100, rate = 0.05, time = 0.75;
  std::vector<double> spots, volatilities;
  for (int i = 0; i < kSpots; ++i) spots.push_back(50 + 100.0 * i / kSpots);
  for (int i = 0; i < kVolatilities; ++i) volatilities.push_back(0.05 + 0.75 * i / kVolatilities);
  std::vector<Prices> prices;
  double seconds = 0;
  absl::Status done = sweep->Run(spots, volatilities, strike, rate, time, &prices, &seconds);
  if (!done.ok()) return done;

  double error = 0, parity = 0;
  bool numbers = true;
  for (size_t i = 0; i < prices.size(); ++i) {
    const double s = spots[i / kVolatilities], v = volatilities[i % kVolatilities];
    const Prices expected = Reference(s, v, strike, rate, time), got = prices[i];
    numbers = numbers && std::isfinite(got.call) && std::isfinite(got.put);
    error = std::max({error, std::abs(got.call - expected.call), std::abs(got.put - expected.put)});
    parity = std::max(parity, std::abs(got.call - got.put - (s - strike * std::exp(-rate * time))));
  }
  std::printf("%zu options: %.1f ms, %.1f ns an option\n", prices.size(), 1e3 * seconds,
              1e9 * seconds / static_cast<double>(prices.size()));
  std::printf("largest error: %.1e of known prices, %.1e of the C library's, %.1e of parity\n",
              *known, error, parity);
  return numbers && *known < 1e-12 && error < 1e-12 && parity < 1e-12;
}

}  // namespace

int main() { return example::Report(Run()); }
