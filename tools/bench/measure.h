// Timing of functions that do the same work, side by side, and where results go.
// Included by the bench's sources only. Must not know graphs.
#ifndef SVOD_TOOLS_BENCH_MEASURE_H_
#define SVOD_TOOLS_BENCH_MEASURE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace svod::bench {

// Nanoseconds of one call.
struct Timing {
  double median_ns = 0;
  double best_ns = 0;
  int num_samples = 0;
};

// Someone who does a row's work.
struct Contender {
  std::string peer;
  std::function<void()> run;                          // once; called very often
  std::function<std::vector<double>()> samples = {};  // of the result of the last run; may be empty
  std::function<void()> quiet = {};                   // after a turn: lets its threads come to rest
  double seconds = 0.2;                               // of calls, in all
};

// Runs each contender in turns, `num_turns` times, so that what else goes on in the machine meets
// all of them. A sample is the mean over calls of 1 ms together, or of one longer call; a turn has
// at least one sample. The first call of each turn is not counted.
std::vector<Timing> MeasureSideBySide(absl::Span<const Contender> contenders, int num_turns = 4);

// What a row gave.
struct Record {
  std::string row, peer;
  int threads = 1;
  Timing timing;
  std::vector<double> samples = {};
  std::vector<std::pair<std::string, double>> more = {};  // further numbers, by name
};

// {"row":...,"peer":...,"threads":...,"ns":...,"best":...,"chk":[...],...}; "ns" is the median.
std::string JsonLine(const Record& record);

}  // namespace svod::bench

#endif  // SVOD_TOOLS_BENCH_MEASURE_H_
