#include "tools/bench/report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/report.h"

namespace svod::bench {
namespace {

double NumberOf(const Record& record, absl::string_view name) {
  for (const auto& [each, value] : record.more) {
    if (each == name) return value;
  }
  return 0;
}

// The largest difference of samples, in parts of the largest one.
double Difference(absl::Span<const double> x, absl::Span<const double> y) {
  if (x.size() != y.size()) return 0;
  double difference = 0, largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    difference = std::max(difference, std::fabs(x[i] - y[i]));
    largest = std::max(largest, std::fabs(y[i]));
  }
  return largest > 0 ? difference / largest : difference;
}

// "numpy 1.2 ms 0.98" of the best of them; "" of none.
std::string BestOf(const Record& own, absl::Span<const Record> peers, bool is_packed) {
  const Record* best = nullptr;
  for (const Record& peer : peers) {
    if (absl::EndsWith(peer.peer, "-packed") != is_packed) continue;
    if (best == nullptr || peer.timing.best_ns < best->timing.best_ns) best = &peer;
  }
  if (best == nullptr) return "";
  return absl::StrFormat("%5.2f %s %s", best->timing.best_ns / own.timing.best_ns, best->peer,
                         FormatNanoseconds(best->timing.best_ns));
}

}  // namespace

std::string TableHeading() {
  return absl::StrFormat("%-18s %2s %10s %10s %9s %7s %6s  %s", "row", "T", "best", "median",
                         "GFLOP/s", "GB/s", "limit", "best peer / svod");
}

std::string TableLine(absl::Span<const Record> records) {
  const Record& own = records[0];
  const double ns = own.timing.best_ns;
  const double flops = NumberOf(own, "flops"), bytes = NumberOf(own, "bytes");
  const double limit = NumberOf(own, "limit_ns");
  std::string line = absl::StrFormat("%-18s %2d %10s %10s %9s %7s %6s  %s", own.row, own.threads,
                                     FormatNanoseconds(ns), FormatNanoseconds(own.timing.median_ns),
                                     flops > 0 ? absl::StrFormat("%.1f", flops / ns) : "",
                                     bytes > 0 ? absl::StrFormat("%.1f", bytes / ns) : "",
                                     limit > 0 ? absl::StrFormat("%.0f%%", 100 * limit / ns) : "",
                                     BestOf(own, records.subspan(1), false));
  std::string packed = BestOf(own, records.subspan(1), true);
  if (!packed.empty()) absl::StrAppend(&line, "  [", packed, "]");
  double difference = 0;
  for (const Record& peer : records.subspan(1)) {
    difference = std::max(difference, Difference(own.samples, peer.samples));
  }
  if (difference > 1e-4) absl::StrAppendFormat(&line, "  differs %.1e", difference);
  return line;
}

}  // namespace svod::bench
