// svod-bench THREADS [ROW]: measures Svod and prints one JSON object a line:
//   {"row": ..., "peer": ..., "threads": ..., "ns": ..., further counters}
// ROW picks the rows whose names contain it. "ns" is the median over repetitions.
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/bench/rows.h"

namespace svod::bench {

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total_pages = 0, resident_pages = 0;
  statm >> total_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

int64_t NumMappings() {
  std::ifstream maps("/proc/self/maps");
  return std::count(std::istreambuf_iterator<char>(maps), std::istreambuf_iterator<char>(), '\n');
}

namespace {

// Names are row/peer; repetitions give a median, single runs stand for themselves.
class JsonLines : public benchmark::BenchmarkReporter {
 public:
  explicit JsonLines(int threads) : threads_(threads) {}
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      bool single = run.repetitions <= 1 && run.run_type == Run::RT_Iteration;
      bool median = run.run_type == Run::RT_Aggregate && run.aggregate_name == "median";
      if (!single && !median) continue;
      std::vector<std::string> parts = absl::StrSplit(run.run_name.function_name, '/');
      std::string line =
          absl::StrCat("{\"row\":\"", parts[0], "\",\"peer\":\"",
                       parts.size() > 1 ? parts[1] : "svod", "\",\"threads\":", threads_);
      if (run.error_occurred) {
        absl::StrAppend(&line, ",\"error\":\"", run.error_message, "\"}");
        std::puts(line.c_str());
        continue;
      }
      auto items = run.counters.find("ops");
      double ops = items == run.counters.end() ? 1 : items->second.value;
      char number[32];
      std::snprintf(number, sizeof(number), "%.1f", run.GetAdjustedRealTime() / ops);
      absl::StrAppend(&line, ",\"ns\":", number);
      for (const auto& [name, counter] : run.counters) {
        std::snprintf(number, sizeof(number), "%.6g", counter.value);
        absl::StrAppend(&line, ",\"", name, "\":", number);
      }
      std::puts(absl::StrCat(line, "}").c_str());
      std::fflush(stdout);
    }
  }

 private:
  int threads_;
};

int Main(int argc, char** argv) {
  int threads = 0;
  if (argc < 2 || argc > 3 || !absl::SimpleAtoi(argv[1], &threads) || threads < 1 ||
      threads > 1024) {
    std::fprintf(stderr, "usage: svod-bench THREADS [ROW]\n");
    return 2;
  }
  RegisterCompileRows(threads);
  RegisterDispatchRows(threads);
  RegisterGraphRows();
  RegisterPrepareRows(threads);

  std::string filter = "--benchmark_filter=";
  for (char c : std::string(argc > 2 ? argv[2] : "")) {
    if (absl::StrContains("\\^$.|?*+()[]{}", c)) filter += '\\';
    filter += c;
  }
  if (argc < 3) filter += ".";
  std::string program = argv[0];
  char* arguments[] = {program.data(), filter.data()};
  int count = 2;
  benchmark::Initialize(&count, arguments);
  JsonLines reporter(threads);
  return benchmark::RunSpecifiedBenchmarks(&reporter) > 0 ? 0 : 1;
}

}  // namespace
}  // namespace svod::bench

int main(int argc, char** argv) { return svod::bench::Main(argc, argv); }
