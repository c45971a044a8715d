#include "tools/bench/measure.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace svod::bench {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr double kSampleSeconds = 1e-3;

}  // namespace

std::vector<Timing> MeasureSideBySide(absl::Span<const Contender> contenders, int num_turns) {
  std::vector<std::vector<double>> samples(contenders.size());
  std::vector<int> calls(contenders.size(), 0);  // in a sample
  for (int turn = 0; turn < num_turns; ++turn) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      const Contender& contender = contenders[i];
      contender.run();
      if (calls[i] == 0) {
        double begin = Now();
        contender.run();
        double one = std::max(Now() - begin, 1e-8);
        calls[i] = static_cast<int>(std::max(1.0, kSampleSeconds / one));
      }
      const double end = Now() + contender.seconds / num_turns;
      double begin = Now();
      do {
        for (int call = 0; call < calls[i]; ++call) contender.run();
        double now = Now();
        samples[i].push_back((now - begin) / calls[i]);
        begin = now;
      } while (begin < end);
      if (contender.quiet) contender.quiet();
    }
  }
  std::vector<Timing> timings;
  for (std::vector<double>& of_one : samples) {
    std::sort(of_one.begin(), of_one.end());
    timings.push_back(
        {of_one[of_one.size() / 2] * 1e9, of_one[0] * 1e9, static_cast<int>(of_one.size())});
  }
  return timings;
}

std::string JsonLine(const Record& record) {
  std::string line = absl::StrFormat(
      "{\"row\":\"%s\",\"peer\":\"%s\",\"threads\":%d,\"ns\":%.1f,\"best\":%.1f", record.row,
      record.peer, record.threads, record.timing.median_ns, record.timing.best_ns);
  if (!record.samples.empty()) {
    absl::StrAppend(&line, ",\"chk\":[",
                    absl::StrJoin(record.samples, ",",
                                  [](std::string* out, double value) {
                                    absl::StrAppendFormat(out, "%.9g", value);
                                  }),
                    "]");
  }
  for (const auto& [name, value] : record.more) {
    absl::StrAppendFormat(&line, ",\"%s\":%.6g", name, value);
  }
  return absl::StrCat(line, "}");
}

}  // namespace svod::bench
