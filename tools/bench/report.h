// How results are shown: a JSON object a line, or a table for people.
// Included by the bench's sources only.
#ifndef SVOD_TOOLS_BENCH_REPORT_H_
#define SVOD_TOOLS_BENCH_REPORT_H_

#include <string>

#include "absl/types/span.h"
#include "tools/bench/measure.h"

namespace svod::bench {

// The table's heading, of one line.
std::string TableHeading();

// A line of the table: the first record is Svod's, the others its peers'. Times and ratios are of
// the best samples. Peers that keep operands in layouts of their own are named in brackets behind.
// "differs" shows the largest difference between Svod's samples and a peer's, in parts of the
// largest sample.
std::string TableLine(absl::Span<const Record> records);

}  // namespace svod::bench

#endif  // SVOD_TOOLS_BENCH_REPORT_H_
