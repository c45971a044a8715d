// Session: what the commands and the REPL share: functions by name, compiling, preparing, running.
// Included by commands_*.cc and repl.cc. Must not print or read flags.
#ifndef SVOD_TOOLS_SESSION_H_
#define SVOD_TOOLS_SESSION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "executor/executor.h"
#include "ir/program.h"
#include "jit/kernel_cache.h"
#include "jit/search_actions.h"
#include "plan/execution_plan.h"
#include "plan/prepare.h"
#include "tools/kernel_opts.h"
#include "tools/tensor.h"

namespace svod {

struct SessionSettings {
  std::string triple;             // "": the host's; another one is for printing code only
  std::string cpu;                // "": the host's
  std::string features;           // added to the CPU's
  std::string cache_dir;          // "off": no disk tier; "": the user's cache directory
  std::vector<std::string> opts;  // see KernelOpts
  int threads = 0;                // 0: one a core
  ScheduleOptions schedule;       // of graphs of tensors
};

struct NamedTensor {
  std::string name;  // of a parameter; "" stands for the next one in order
  Tensor tensor;
};

struct RunRequest {
  std::string function;             // "": the main program
  std::vector<NamedTensor> inputs;  // one for each in and inout parameter
  std::vector<std::pair<std::string, int64_t>> variables;
  bool serial = false;
  int repeat = 1;
  // Nobody looks at its time: where that is short, code is made quickly rather than well.
  bool is_only_run = false;
  int search = 0;  // forms of each kernel that a timed search may measure; 0: none
  std::function<void(const PrepareProgress&)> progress;  // of preparing; may be empty
};

// What a search said of one kernel.
struct SearchedKernel {
  std::string name;
  SearchReport report;
};

struct RunResult {
  std::vector<NamedTensor> outputs;     // out and inout parameters or a graph's results, in order
  std::vector<KernelProfile> profiles;  // of the last execution
  std::vector<int64_t> execute_ns;      // one for each execution
  std::string schedule;                 // the plan's levels and groups, one level a line
  std::vector<SearchedKernel> searched;
  double prepare_ms = 0;  // parse excluded: optimise, compile or load, build the plan
};

enum class Stage { kScheduled, kUOps, kLlvm, kAssembly };

// One thread at a time. Keeps compiled kernels between runs.
class Session {
 public:
  // Errors: InvalidArgument for an unknown CPU or feature.
  static absl::StatusOr<std::unique_ptr<Session>> Create(const SessionSettings& options);

  // Parses and verifies `text`; its functions join the session and replace those of equal names. A
  // graph may call kernels that the session has.
  // Errors: the parser's and verifier's; then the session is as before.
  absl::Status Load(absl::string_view text, absl::string_view file);
  // The same for a file, "-" being `standard_input`, which may be null.
  absl::Status LoadFile(const std::string& path, std::istream* standard_input);

  const Module& module() const { return module_; }
  // The function of that name ('@' allowed); for "" the last graph, or else the last kernel.
  // Errors: NotFound, which lists the names; FailedPrecondition when there are no functions.
  absl::StatusOr<const Function*> Find(absl::string_view name) const;

  // Compiles what is new, builds a plan, binds copies of the inputs and executes `repeat` times.
  // Errors: InvalidArgument for inputs that are missing, too many or of another type, naming the
  // parameter; whatever preparing and executing say.
  absl::StatusOr<RunResult> Run(const RunRequest& request);
  // The same kernels in the reference interpreter, in program order.
  absl::StatusOr<RunResult> Interpret(const RunRequest& request);
  // Runs one line of a graph on tensors that it may name, `y = relu(x * 2)` (see ParseGraphLine).
  // Outputs have the names that the line gives, "" for an expression alone.
  absl::StatusOr<RunResult> RunLine(absl::string_view line, absl::string_view file,
                                    absl::Span<const NamedTensor> tensors, bool serial);

  // The canonical text of a function as it was loaded; for a graph with the kernels that it calls.
  absl::StatusOr<std::string> Written(const Function& function) const;
  // What a kernel, or each kernel of a graph, becomes on the session's target. A graph of tensors
  // is scheduled into kernels first; as scheduled, they come with the graph that calls them, as a
  // program that can be run.
  absl::StatusOr<std::string> Emit(const Function& function, Stage stage);
  // The schedule that running the function follows: kernels with their loops, ops by level, buffers
  // and places of values; of a kernel its loops.
  absl::StatusOr<std::string> DescribePlan(const Function& function) const;
  // A kernel itself, or the kernels that a graph calls, each once.
  std::vector<Function> CalledKernels(const Function& function) const;

  KernelCache& cache() { return *cache_; }
  Executor& executor() { return *executor_; }
  // Compiles for the session's target, through its cache, with the opts of the settings.
  // Errors: FailedPrecondition when the target is not this machine.
  absl::StatusOr<KernelProvider> Provider() const;
  // The same with the least effort; empty where the environment asks to see code.
  absl::StatusOr<KernelProvider> QuickProvider() const;
  // A search that appends what it finds to `searched`; empty for no measurements. Forms are
  // compiled and kept as those of Provider.
  absl::StatusOr<KernelSearch> Search(int measurements,
                                      std::vector<SearchedKernel>* searched) const;
  // Kernels as the settings' opts want them.
  KernelOpts& opts() const { return *opts_; }
  // The levels of a plan, "level 0: a b | c", groups apart by '|'.
  static std::string DescribeLevels(const ExecutionPlan& plan);
  const Target& target() const { return target_; }
  int threads() const { return executor_->num_threads(); }
  // Changes the target or the threads; compiled kernels of other targets stay cached.
  absl::Status SetSettings(const SessionSettings& options);
  const SessionSettings& settings() const { return settings_; }

 private:
  Session() = default;
  absl::StatusOr<CompileOptions> Compilation() const;
  absl::StatusOr<KernelProvider> ProviderOf(const CompileOptions& compile) const;
  absl::StatusOr<RunResult> RunIn(const Module& module, const Function& function,
                                  const RunRequest& request);

  SessionSettings settings_;
  Target target_;
  std::shared_ptr<KernelOpts> opts_;
  std::shared_ptr<KernelCache> cache_;
  std::unique_ptr<Executor> executor_;
  Module module_;
};

// Where compiled kernels are kept unless a flag says otherwise: svod in the user's cache folder; ""
// when there is none.
std::string DefaultCacheDirectory();

}  // namespace svod

#endif  // SVOD_TOOLS_SESSION_H_
