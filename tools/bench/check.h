// What svod-bench does with a Status: it ends.
// Included by the bench's sources only.
#ifndef SVOD_TOOLS_BENCH_CHECK_H_
#define SVOD_TOOLS_BENCH_CHECK_H_

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace svod::bench {

// A benchmark that cannot do its work ends the program: a time without the work is no result.
inline void CheckOk(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "svod-bench: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}
template <typename T>
T ValueOrDie(absl::StatusOr<T> value) {
  CheckOk(value.status());
  return *std::move(value);
}

}  // namespace svod::bench

#endif  // SVOD_TOOLS_BENCH_CHECK_H_
