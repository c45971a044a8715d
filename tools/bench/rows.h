// The rows of svod-bench. Included by its sources only.
#ifndef SVOD_TOOLS_BENCH_ROWS_H_
#define SVOD_TOOLS_BENCH_ROWS_H_

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/executor.h"
#include "tools/bench/check.h"
#include "tools/bench/measure.h"

namespace svod::bench {

// Each registers its rows with Google Benchmark. A row's name is its first word; the time reported
// is that of one operation (a kernel of a chain, a compilation), not of the whole.
void RegisterCompileRows(int threads);
void RegisterGraphRows();
void RegisterPrepareRows(int threads);

// Names of all that were registered.
std::vector<std::string>& RegisteredRows();
template <typename... Arguments>
benchmark::internal::Benchmark* Register(const std::string& name, Arguments&&... arguments) {
  RegisteredRows().push_back(name);
  return benchmark::RegisterBenchmark(name.c_str(), std::forward<Arguments>(arguments)...);
}

// 1000 launches of a tiny kernel, dependent or independent ones, beside calls of the same code.
std::vector<Record> RunDispatch(bool is_chain, Executor& executor);

// compile_*, *_disk and cold_*: from a graph to its first result. Errors: those of Prepare and
// Execute; Internal when svod-jit, which lies beside this program, does not run.
std::vector<std::string> FirstResultRows();
absl::StatusOr<std::vector<Record>> RunFirstResult(const std::string& row, Executor& executor);

// Resident memory of the process [bytes], from /proc/self/statm.
int64_t ResidentBytes();
// Mappings of the process, from /proc/self/maps.
int64_t NumMappings();

}  // namespace svod::bench

#endif  // SVOD_TOOLS_BENCH_ROWS_H_
