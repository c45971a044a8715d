// From a graph to its first result: in a process that has compiled before, with nothing known and
// with a full disk tier; and in a process of its own, which is svod-jit.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "ir/status_macros.h"
#include "ir/text.h"
#include "jit/kernel_cache.h"
#include "tools/bench/rows.h"
#include "tools/bench/workload_runner.h"
#include "tools/npy.h"
#include "tools/tensor.h"

extern char** environ;

namespace svod::bench {
namespace {

namespace fs = std::filesystem;

struct FirstResult {
  const char* row;
  const char* workload;
};
constexpr FirstResult kFirstResults[] = {
    {"compile_ew", "chain_4k"}, {"compile_mm512", "mm512"}, {"compile_encoder", "m_encoder"}};
constexpr int kRounds = 9;

// A directory for this process, gone at the end.
class ScratchDirectory {
 public:
  ScratchDirectory() : path_(fs::temp_directory_path() / absl::StrCat("svod-bench-", getpid())) {
    fs::create_directories(path_);
  }
  ~ScratchDirectory() { fs::remove_all(path_); }
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

double Now() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Timing TimingOf(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() / 2], samples[0], static_cast<int>(samples.size())};
}

// `disk`: empty, or a directory that is full after the first round, which is not counted.
absl::StatusOr<Record> InProcess(const std::string& row, const Workload& workload,
                                 Executor& executor, const std::string& disk) {
  const std::vector<Buffer> inputs = MakeInputs(workload.operands);
  Record record{row, "svod", executor.num_threads(), {}};
  std::vector<double> samples, prepare;
  double schedule_ms = 0, compile_ms = 0, optimize_ms = 0, code_gen_ms = 0;
  for (int round = 0; round <= kRounds; ++round) {
    KernelCacheOptions options;
    options.disk_directory = disk;
    SVOD_ASSIGN_OR_RETURN(std::shared_ptr<KernelCache> kernels, KernelCache::Create(options));
    const double begin = Now();
    SVOD_ASSIGN_OR_RETURN(PreparedWorkload prepared,
                          PrepareWorkload(workload, inputs, executor, *kernels));
    const double prepared_at = Now();
    SVOD_RETURN_IF_ERROR(Execute(*prepared.plan, {.executor = &executor}));
    if (round == 0) continue;
    samples.push_back(Now() - begin);
    prepare.push_back(prepared_at - begin);
    record.samples = prepared.samples();
    const PrepareReport& report = prepared.plan->report();
    schedule_ms = report.schedule_ms;
    compile_ms = report.compile_ms;
    optimize_ms = kernels->stats().optimize_ms;
    code_gen_ms = kernels->stats().compile_ms;
  }
  record.timing = TimingOf(std::move(samples));
  const Timing until_execute = TimingOf(std::move(prepare));
  record.more = {{"prepare_ns", until_execute.median_ns},
                 {"prepare_best_ns", until_execute.best_ns},
                 {"schedule_ms", schedule_ms},
                 {"compile_ms", compile_ms},
                 {"optimize_ms", optimize_ms},
                 {"code_gen_ms", code_gen_ms}};
  return record;
}

// Wall time of a process [ns]. Errors: Internal when it cannot be started or fails.
absl::StatusOr<double> TimeProcess(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const double begin = Now();
  pid_t process = 0;
  if (posix_spawn(&process, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) {
    return absl::InternalError(absl::StrCat(words[0], ": cannot be started"));
  }
  int status = 0;
  waitpid(process, &status, 0);
  const double elapsed = Now() - begin;
  if (status != 0) return absl::InternalError(absl::StrCat(words[0], ": failed"));
  return elapsed;
}

absl::StatusOr<Record> InProcessOfItsOwn(const std::string& row, const Workload& workload,
                                         int threads, bool is_warm) {
  const ScratchDirectory scratch;
  const Module graph = BuildGraph(workload);
  SVOD_ASSIGN_OR_RETURN(std::string text, Print(graph.functions[0]));
  std::ofstream(scratch / "graph.uop") << text;
  std::vector<std::string> words = {fs::read_symlink("/proc/self/exe").parent_path() / "svod-jit",
                                    "run",
                                    scratch / "graph.uop",
                                    absl::StrCat("--threads=", threads),
                                    absl::StrCat("--output=@", (scratch / "y.npy").string()),
                                    absl::StrCat("--cache_dir=", (scratch / "cache").string())};
  const std::vector<Buffer> inputs = MakeInputs(workload.operands);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Operand& operand = workload.operands[i];
    SVOD_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(operand.dtype, operand.dims));
    std::copy_n(inputs[i].data(), inputs[i].size_bytes(), tensor.bytes().data());
    const fs::path path = scratch / absl::StrCat(operand.name, ".npy");
    SVOD_RETURN_IF_ERROR(WriteNpy(tensor, path));
    words.push_back(absl::StrCat("--input=@", path.string()));
  }
  std::vector<double> samples;
  for (int round = 0; round <= kRounds; ++round) {
    if (!is_warm) fs::remove_all(scratch / "cache");
    SVOD_ASSIGN_OR_RETURN(double elapsed, TimeProcess(words));
    if (round > 0) samples.push_back(elapsed);
  }
  return Record{row, "svod", threads, TimingOf(std::move(samples))};
}

const Workload& Find(absl::string_view row) {
  return *std::ranges::find(Workloads(), row, &Workload::row);
}

}  // namespace

std::vector<std::string> FirstResultRows() {
  std::vector<std::string> rows;
  for (const char* prefix : {"", "cold_"}) {
    for (const char* suffix : {"", "_disk"}) {
      for (const FirstResult& each : kFirstResults) {
        rows.push_back(absl::StrCat(prefix, each.row, suffix));
      }
    }
  }
  return rows;
}

absl::StatusOr<std::vector<Record>> RunFirstResult(const std::string& row, Executor& executor) {
  for (const FirstResult& each : kFirstResults) {
    for (bool is_cold : {false, true}) {
      for (bool is_warm : {false, true}) {
        const std::string name =
            absl::StrCat(is_cold ? "cold_" : "", each.row, is_warm ? "_disk" : "");
        if (name != row) continue;
        const Workload& workload = Find(each.workload);
        absl::StatusOr<Record> record = absl::UnknownError("");
        if (is_cold) {
          record = InProcessOfItsOwn(row, workload, executor.num_threads(), is_warm);
        } else {
          const ScratchDirectory scratch;
          record = InProcess(row, workload, executor,
                             is_warm ? (scratch / "cache").string() : std::string());
        }
        if (!record.ok()) return record.status();
        return std::vector<Record>{*std::move(record)};
      }
    }
  }
  return absl::NotFoundError(absl::StrCat("no row ", row));
}

}  // namespace svod::bench
