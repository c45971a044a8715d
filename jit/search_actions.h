// SearchActions: timed search for loop actions that make a kernel faster than the chosen ones do.
// Included by plan/, tools, embedders and tests. Names nothing of LLVM; starts no thread.
#ifndef SVOD_JIT_SEARCH_ACTIONS_H_
#define SVOD_JIT_SEARCH_ACTIONS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/passes/loop_actions.h"
#include "jit/kernel_cache.h"

namespace svod {

// What whoever started a search hears of it, and how it is stopped.
struct SearchControl {
  const std::atomic<bool>* cancelled = nullptr;  // looked at before each measurement
  // After each measurement, on the thread that searches. May be empty.
  std::function<void(int done, int total)> progress;
};

struct SearchOptions {
  int measurements = 0;  // forms of a kernel that are compiled and timed, at most; 0: no search
  // By how much the median of alternating runs must be beaten.
  double least_gain = 0.04;
  // Kernels whose buffers are larger are left out [bytes].
  int64_t max_bytes = int64_t{1} << 31;
  // The time of one run of a form with these actions [ns], `run` being one. Empty: by the clock,
  // the best of several.
  std::function<double(absl::Span<const LoopAction> actions, absl::FunctionRef<void()> run)> timer;
};

struct SearchReport {
  std::string left_out;                   // why the kernel was not searched; "" when it was
  std::vector<LoopAction> chosen, found;  // equal where the chosen ones were not beaten
  double chosen_ns = 0, found_ns = 0;     // of the last comparison
  int measured = 0;
  // Forms that gave other bits than the chosen one, as text. None, unless Svod has a bug.
  std::vector<std::string> different;
};

// Climbs from the actions that OptimizeLoops chooses for a kernel with kAutoOpt, or from those that
// an earlier search found, to lists near them (action_neighbours.h) that are faster on this
// machine, with one thread, variables at their largest and buffers that are warm. Every form's
// results are compared with the chosen one's. A list that beats the chosen one again and again, in
// turns, goes into the cache (KernelCache::Prefer), where GetOrCompile finds it from then on, and
// so does the fact that none did: the same search is not done twice. A kernel without kAutoOpt is
// left out. Errors: Cancelled, after which the cache is as before; those of compiling the chosen
// form. Threads: any, but whatever else runs disturbs the clock. Cost: some 5 ms a measurement
// beyond 10 runs of the kernel; memory for its buffers, and three times those that it writes.
absl::StatusOr<SearchReport> SearchActions(const UOp* sink, KernelCache& cache,
                                           const CompileOptions& options,
                                           const SearchOptions& search,
                                           const SearchControl& control = {});

}  // namespace svod

#endif  // SVOD_JIT_SEARCH_ACTIONS_H_
