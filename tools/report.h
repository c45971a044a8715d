// Reports: results, times and counters as text.
// Included by commands and the REPL. Must not run anything.
#ifndef SVOD_TOOLS_REPORT_H_
#define SVOD_TOOLS_REPORT_H_

#include <string>

#include "jit/kernel_cache.h"
#include "tools/session.h"

namespace svod {

// "svod-jit 0.1.0", LLVM's version, the host's CPU and features, one a line.
absl::StatusOr<std::string> VersionText();
// A function's parameters, variables, launch size, and numbers of ops, loops, loads and stores.
absl::StatusOr<std::string> DescribeFunction(const Function& function);
// The parameters that want an input, in order.
absl::StatusOr<std::vector<std::string>> InputNames(const Function& function);
// What the directory of compiled kernels holds; after ClearCache nothing.
absl::StatusOr<std::string> DescribeCache(const std::string& directory);
absl::StatusOr<std::string> ClearCache(const std::string& directory);
// "y: f32[2, 3]", or the type alone where there is no name, and the array below it.
std::string FormatNamed(const NamedTensor& named);
// Prepare time and the fastest, median and slowest execution.
std::string FormatTimes(const RunResult& result);
// One line a kernel: time, share, cores, buffers, name.
std::string FormatProfile(const RunResult& result);
// What searches found: one line a kernel, and its actions where they beat the chosen ones.
std::string FormatSearch(const RunResult& result);
// One counter a line.
std::string FormatCacheStats(const KernelCacheStats& stats);
// "1.25 ms", with three digits and the unit that fits.
std::string FormatNanoseconds(double ns);

}  // namespace svod

#endif  // SVOD_TOOLS_REPORT_H_
