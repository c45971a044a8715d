// svod-bench THREADS [ROW] [--all] [--compare] [--table]: measures Svod and prints one JSON object
// a line:
//   {"row": ..., "peer": ..., "threads": ..., "ns": ..., further counters}
// ROW picks the rows whose names contain it. "ns" is the median over repetitions. docs/tool.md has
// the rest.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "executor/executor.h"
#include "jit/compile.h"
#include "jit/target.h"
#include "tools/bench/peers.h"
#include "tools/bench/report.h"
#include "tools/bench/rows.h"
#include "tools/bench/workload.h"
#include "tools/bench/workload_runner.h"

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

std::vector<std::string>& RegisteredRows() {
  static auto* rows = new std::vector<std::string>;
  return *rows;
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

// What the command line says.
struct Arguments {
  int threads = 0;
  std::string row;
  bool odd = false, all = false, compare = false, table = false;
};

std::optional<Arguments> ParseArguments(absl::Span<char* const> given) {
  Arguments arguments;
  int num_words = 0;
  for (absl::string_view word : given) {
    if (word == "--all") {
      arguments.all = arguments.odd = true;
    } else if (word == "--odd") {
      arguments.odd = true;
    } else if (word == "--compare") {
      arguments.compare = true;
    } else if (word == "--table") {
      arguments.compare = arguments.table = true;
    } else if (num_words == 0 && absl::SimpleAtoi(word, &arguments.threads)) {
      ++num_words;
    } else if (num_words == 1 && !absl::StartsWith(word, "--")) {
      arguments.row = std::string(word);
      ++num_words;
    } else {
      return std::nullopt;
    }
  }
  if (arguments.threads < 1 || arguments.threads > 1024) return std::nullopt;
  return arguments;
}

// The first line of JSON when Svod is compared: on what, and with whom.
void PrintMachine(int threads) {
  std::string peers;
#ifdef SVOD_BENCH_OPENBLAS
  absl::StrAppend(&peers, OpenBlasVersion());
#endif
#ifdef SVOD_BENCH_ONEDNN
  absl::StrAppend(&peers, peers.empty() ? "" : ", ", OneDnnVersion());
#endif
  const Target target = ValueOrDie(HostTarget());
  double load = 0;  // what else runs shows in every figure
  if (getloadavg(&load, 1) != 1) load = 0;
  std::puts(absl::StrCat("{\"row\":\"machine\",\"peer\":\"machine\",\"threads\":", threads,
                         ",\"ns\":0,\"cpu\":\"", target.cpu,
                         "\",\"vector_bits\":", target.vector_bytes * 8, ",\"load\":", load,
                         ",\"llvm\":\"", LlvmVersion(), "\",\"peers\":\"", peers, "\"}")
                .c_str());
}

// Rows with timing of their own. How many there were.
int RunOwnRows(const Arguments& arguments) {
  std::unique_ptr<Executor> executor = ValueOrDie(Executor::Create(arguments.threads));
  if (arguments.compare && !arguments.table) PrintMachine(arguments.threads);
  int num_rows = 0;
  auto run = [&](absl::string_view row, auto measure) {
    if (!absl::StrContains(row, arguments.row)) return;
    absl::StatusOr<std::vector<Record>> records = measure();
    if (!records.ok()) {
      std::fprintf(stderr, "svod-bench: %s: %s\n", std::string(row).c_str(),
                   std::string(records.status().message()).c_str());
      return;
    }
    if (arguments.table) {
      if (num_rows == 0) std::puts(TableHeading().c_str());
      std::puts(TableLine(*records).c_str());
    } else {
      for (const Record& record : *records) std::puts(JsonLine(record).c_str());
    }
    std::fflush(stdout);
    ++num_rows;
  };
  auto run_workloads = [&](bool extra) {
    for (const Workload& workload : Workloads()) {
      if (workload.is_extra != extra) continue;
      run(workload.row, [&] { return RunWorkload(workload, *executor, arguments.compare); });
    }
  };
  run_workloads(false);
  for (bool is_chain : {true, false}) {
    run(is_chain ? "dep1000" : "indep1000",
        [&]() -> absl::StatusOr<std::vector<Record>> { return RunDispatch(is_chain, *executor); });
  }
  for (const std::string& row : FirstResultRows()) {
    run(row, [&] { return RunFirstResult(row, *executor); });
  }
  if (arguments.odd || !arguments.row.empty()) run_workloads(true);
  return num_rows;
}

int RunBenchmarkRows(const Arguments& arguments, char* program) {
  RegisterCompileRows(arguments.threads);
  RegisterGraphRows();
  RegisterPrepareRows(arguments.threads);
  // Google Benchmark complains when nothing fits.
  const bool any = std::ranges::any_of(RegisteredRows(), [&](const std::string& name) {
    return absl::StrContains(name, arguments.row);
  });
  if (!any) return 0;
  std::string filter = "--benchmark_filter=";
  for (char c : arguments.row) {
    if (absl::StrContains("\\^$.|?*+()[]{}", c)) filter += '\\';
    filter += c;
  }
  if (arguments.row.empty()) filter += ".";
  char* words[] = {program, filter.data()};
  int count = 2;
  benchmark::Initialize(&count, words);
  JsonLines reporter(arguments.threads);
  return static_cast<int>(benchmark::RunSpecifiedBenchmarks(&reporter));
}

int Main(int argc, char** argv) {
  std::optional<Arguments> arguments =
      ParseArguments({argv + 1, static_cast<size_t>(std::max(argc - 1, 0))});
  if (!arguments.has_value()) {
    std::fprintf(stderr, "usage: svod-bench THREADS [ROW] [--odd] [--all] [--compare] [--table]\n");
    return 2;
  }
  int num_rows = RunOwnRows(*arguments);
  if (arguments->all || !arguments->row.empty()) num_rows += RunBenchmarkRows(*arguments, argv[0]);
  return num_rows > 0 ? 0 : 1;
}

}  // namespace
}  // namespace svod::bench

int main(int argc, char** argv) { return svod::bench::Main(argc, argv); }
