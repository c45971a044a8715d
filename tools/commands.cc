// The commands run, opt, lower, plan, bench, info, cache and repl.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>

#include "absl/container/flat_hash_map.h"
#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "executor/trace.h"
#include "ir/debug_options.h"
#include "ir/pipeline.h"
#include "ir/status_macros.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "jit/disk_cache.h"
#include "plan/schedule.h"
#include "tools/command_table.h"
#include "tools/compare.h"
#include "tools/flags.h"
#include "tools/npy.h"
#include "tools/onnx_commands.h"
#include "tools/repl.h"
#include "tools/report.h"
#include "tools/session.h"

namespace svod {
namespace {

absl::StatusOr<std::string> OneFile(absl::Span<const std::string> files,
                                    absl::string_view command) {
  if (files.size() != 1) {
    return UsageError(absl::StrCat(command, ": files, got ", files.size(),
                                   ", expected one (- for standard input)"));
  }
  return files[0];
}

absl::StatusOr<std::unique_ptr<Session>> MakeSession() {
  SessionSettings settings;
  settings.triple = absl::GetFlag(FLAGS_triple);
  settings.cpu = absl::GetFlag(FLAGS_cpu);
  settings.features = absl::GetFlag(FLAGS_features);
  settings.cache_dir = absl::GetFlag(FLAGS_cache_dir);
  settings.opts = absl::GetFlag(FLAGS_opts).values;
  settings.threads = absl::GetFlag(FLAGS_threads);
  if (settings.threads < 0 || settings.threads > 1024) {
    return UsageError(
        absl::StrCat("flag --threads: got ", settings.threads, ", expected 0 to 1024"));
  }
  settings.schedule.winograd_error = absl::GetFlag(FLAGS_winograd_error);
  if (!(settings.schedule.winograd_error >= 0)) {
    return UsageError(absl::StrCat("flag --winograd_error: got ", settings.schedule.winograd_error,
                                   ", expected at least 0"));
  }
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(settings);
  if (absl::IsInvalidArgument(session.status()) || absl::IsUnimplemented(session.status())) {
    return UsageError(session.status().message());
  }
  return session;
}

// The function that --function names, or all.
absl::StatusOr<std::vector<Function>> ChosenFunctions(const Session& session) {
  std::string name = absl::GetFlag(FLAGS_function);
  if (name.empty()) return session.module().functions;
  SVOD_ASSIGN_OR_RETURN(const Function* function, session.Find(name));
  return std::vector<Function>{*function};
}

// Splits "NAME=SPEC" from "SPEC", which itself may hold '='. A spec starts with '@', a digit or a
// dtype.
NamedTensor SplitName(absl::string_view text, absl::string_view* spec) {
  NamedTensor named;
  size_t equals = text.find('=');
  absl::string_view left = text.substr(0, equals);
  bool is_spec = equals == absl::string_view::npos || left.empty() || left[0] == '@' ||
                 absl::ascii_isdigit(left[0]) || ParseDType(left).ok();
  if (!is_spec) {
    absl::ConsumePrefix(&left, "%");
    named.name = std::string(left);
    text.remove_prefix(equals + 1);
  }
  *spec = text;
  return named;
}

absl::StatusOr<std::vector<NamedTensor>> ReadTensors(const RepeatedFlag& flag) {
  std::vector<NamedTensor> tensors;
  for (const std::string& value : flag.values) {
    absl::string_view spec;
    NamedTensor named = SplitName(value, &spec);
    SVOD_ASSIGN_OR_RETURN(named.tensor, ParseTensor(spec));
    tensors.push_back(std::move(named));
  }
  return tensors;
}

absl::StatusOr<RunRequest> RequestFromFlags() {
  RunRequest request;
  request.function = absl::GetFlag(FLAGS_function);
  request.serial = absl::GetFlag(FLAGS_serial);
  request.repeat = absl::GetFlag(FLAGS_repeat);
  if (request.repeat < 1) {
    return UsageError(absl::StrCat("flag --repeat: got ", request.repeat, ", expected at least 1"));
  }
  request.search = absl::GetFlag(FLAGS_search);
  if (request.search < 0) {
    return UsageError(absl::StrCat("flag --search: got ", request.search, ", expected at least 0"));
  }
  SVOD_ASSIGN_OR_RETURN(request.inputs, ReadTensors(absl::GetFlag(FLAGS_input)));
  for (const std::string& value : absl::GetFlag(FLAGS_var).values) {
    std::pair<std::string, std::string> parts = absl::StrSplit(value, absl::MaxSplits('=', 1));
    int64_t number;
    if (parts.first.empty() || !absl::SimpleAtoi(parts.second, &number)) {
      return UsageError(absl::StrCat("flag --var: got '", value, "', expected NAME=NUMBER"));
    }
    request.variables.push_back({parts.first, number});
  }
  return request;
}

// A search takes its time: a line for each kernel, and every few forms of it.
void ShowSearch(RunRequest* request, std::ostream& err) {
  constexpr int kEvery = 16;
  request->progress = [&err](const PrepareProgress& now) {
    if (now.stage != PrepareStage::kSearch || now.measured % kEvery != 0) return;
    if (now.done == now.total) return;
    err << "search: kernel " << now.done + 1 << " of " << now.total;
    if (now.measured > 0) err << ", " << now.measured << " of " << now.measurements << " forms";
    err << std::endl;
  };
}

// NAME=LEAST..MOST, NAME=LEAST..MOST..STEP or NAME=SIZE.
absl::StatusOr<std::vector<NamedBounds>> DimsFromFlags() {
  std::vector<NamedBounds> dims;
  for (const std::string& value : absl::GetFlag(FLAGS_dim).values) {
    size_t equals = value.rfind('=');
    NamedBounds bounds{value.substr(0, equals)};
    std::vector<std::string> parts =
        absl::StrSplit(equals == std::string::npos ? "" : value.substr(equals + 1), "..");
    if (parts.size() == 1) parts.push_back(parts[0]);
    if (parts.size() == 2) parts.push_back("1");
    bool ok = !bounds.name.empty() && parts.size() == 3 &&
              absl::SimpleAtoi(parts[0], &bounds.min) && absl::SimpleAtoi(parts[1], &bounds.max) &&
              absl::SimpleAtoi(parts[2], &bounds.multiple) && bounds.min <= bounds.max;
    if (!ok) {
      return UsageError(absl::StrCat("flag --dim: got '", value,
                                     "', expected NAME=LEAST..MOST, NAME=LEAST..MOST..STEP or "
                                     "NAME=SIZE"));
    }
    dims.push_back(std::move(bounds));
  }
  return dims;
}

// The output that a flag's value means: by name, or the next one without a flag.
absl::StatusOr<size_t> MatchOutput(const std::vector<NamedTensor>& outputs, const std::string& name,
                                   size_t position, absl::string_view flag) {
  if (name.empty()) {
    if (position < outputs.size()) return position;
    return UsageError(absl::StrCat("flag --", flag, ": given ", position + 1,
                                   " times, but the program has ", outputs.size(), " outputs"));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].name == name) return i;
  }
  return UsageError(
      absl::StrCat("flag --", flag, ": no output '", name, "', expected one of ",
                   absl::StrJoin(outputs, ", ", [](std::string* out, const NamedTensor& output) {
                     absl::StrAppend(out, output.name);
                   })));
}

// Compares, writes and prints outputs as the flags say.
absl::Status Deliver(const std::vector<NamedTensor>& outputs, CommandStreams& streams) {
  std::vector<bool> quiet(outputs.size(), false);
  size_t position = 0;
  absl::Status different;
  for (const std::string& value : absl::GetFlag(FLAGS_expected_output).values) {
    absl::string_view spec;
    NamedTensor expected = SplitName(value, &spec);
    SVOD_ASSIGN_OR_RETURN(expected.tensor, ParseTensor(spec));
    SVOD_ASSIGN_OR_RETURN(size_t i,
                          MatchOutput(outputs, expected.name, position++, "expected_output"));
    quiet[i] = true;
    different.Update(
        Annotate(CompareTensors(outputs[i].tensor, expected.tensor,
                                {absl::GetFlag(FLAGS_atol), absl::GetFlag(FLAGS_rtol)}),
                 absl::StrCat("output ", outputs[i].name)));
  }
  SVOD_RETURN_IF_ERROR(different);
  position = 0;
  for (const std::string& value : absl::GetFlag(FLAGS_output).values) {
    absl::string_view spec;
    NamedTensor target = SplitName(value, &spec);
    if (!absl::ConsumePrefix(&spec, "@") || spec.empty()) {
      return UsageError(absl::StrCat("flag --output: got '", value, "', expected @FILE.npy"));
    }
    SVOD_ASSIGN_OR_RETURN(size_t i, MatchOutput(outputs, target.name, position++, "output"));
    quiet[i] = true;
    SVOD_RETURN_IF_ERROR(WriteNpy(outputs[i].tensor, std::string(spec)));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!quiet[i]) streams.out << FormatNamed(outputs[i]);
  }
  return absl::OkStatus();
}

// What SVOD_DEBUG asks for, each level adding to the one before.
absl::Status WriteDebug(Session& session, const RunResult& result, int level, std::ostream& err) {
  if (level >= 0) err << FormatTimes(result);
  if (level >= 1) err << FormatProfile(result);
  if (level >= 2) err << result.schedule;
  constexpr Stage kStages[] = {Stage::kUOps, Stage::kLlvm, Stage::kAssembly};
  for (int i = 0; i < 3 && level >= 3 + i; ++i) {
    SVOD_ASSIGN_OR_RETURN(const Function* function, session.Find(absl::GetFlag(FLAGS_function)));
    SVOD_ASSIGN_OR_RETURN(std::string text, session.Emit(*function, kStages[i]));
    err << text;
  }
  return absl::OkStatus();
}

// The graph with other kernels in the place of those that it calls.
absl::StatusOr<const UOp*> CallOthers(const UOp* graph,
                                      const absl::flat_hash_map<const UOp*, const UOp*>& kernels,
                                      Context& context) {
  absl::flat_hash_map<const UOp*, const UOp*> replaced(kernels);
  std::vector<const UOp*> sources;
  for (const UOp* node : Toposort(graph)) {
    if (replaced.contains(node)) continue;
    sources.clear();
    for (const UOp* source : node->sources()) sources.push_back(replaced.at(source));
    SVOD_ASSIGN_OR_RETURN(replaced[node],
                          context.Make(node->op(), node->dtype(), sources, node->argument()));
  }
  return replaced.at(graph);
}

absl::StatusOr<std::string> CacheDirectory() {
  std::string directory = absl::GetFlag(FLAGS_cache_dir);
  if (directory.empty()) directory = DefaultCacheDirectory();
  if (directory.empty() || directory == "off") {
    return absl::FailedPreconditionError("there is no cache directory");
  }
  return directory;
}

}  // namespace

absl::Status RunRun(absl::Span<const std::string> files, CommandStreams& streams) {
  SVOD_ASSIGN_OR_RETURN(std::string file, OneFile(files, "run"));
  SVOD_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, MakeSession());
  bool is_onnx = IsOnnxFile(file);
  if (!is_onnx) SVOD_RETURN_IF_ERROR(session->LoadFile(file, &streams.in));
  SVOD_ASSIGN_OR_RETURN(RunRequest request, RequestFromFlags());
  if (request.search > 0) ShowSearch(&request, streams.err);
  SVOD_ASSIGN_OR_RETURN(std::vector<NamedBounds> dims, DimsFromFlags());
  bool interpret = absl::GetFlag(FLAGS_interpret);
  if (interpret && (absl::GetFlag(FLAGS_profile) || !absl::GetFlag(FLAGS_trace).empty())) {
    return UsageError("flag --interpret: the interpreter has no kernels to profile or trace");
  }
  if (interpret && is_onnx) return UsageError("flag --interpret: not for ONNX models");
  SVOD_ASSIGN_OR_RETURN(DebugOptions debug, EnvironmentDebugOptions());
  std::string trace_path = absl::GetFlag(FLAGS_trace);
  if (trace_path.empty()) trace_path = debug.trace_file;
  const bool shows_times = absl::GetFlag(FLAGS_profile) || !trace_path.empty() || debug.level > 0;
  request.is_only_run = request.repeat == 1 && request.search == 0 && !shows_times &&
                        session->settings().opts.empty();
  SVOD_ASSIGN_OR_RETURN(RunResult result, is_onnx ? RunOnnx(*session, file, request, dims, false)
                                          : interpret ? session->Interpret(request)
                                                      : session->Run(request));
  streams.err << FormatSearch(result);
  // A model's kernels are what its plan shows; they have no text to print beyond that.
  int level = is_onnx ? std::min(debug.level, 2) : debug.level;
  SVOD_RETURN_IF_ERROR(WriteDebug(*session, result, level, streams.err));
  if (absl::GetFlag(FLAGS_profile)) streams.err << FormatProfile(result);
  if (!trace_path.empty()) {
    std::ofstream trace(trace_path);
    trace << ChromeTrace(result.profiles);
    trace.close();
    if (!trace) {
      return absl::InvalidArgumentError(absl::StrCat(trace_path, ": cannot write the trace"));
    }
  }
  return Deliver(result.outputs, streams);
}

absl::Status RunOpt(absl::Span<const std::string> files, CommandStreams& streams) {
  std::string passes = absl::GetFlag(FLAGS_passes);
  if (passes == "list") {
    for (const PassInfo& pass : Passes()) streams.out << pass.name << "\n";
    return absl::OkStatus();
  }
  SVOD_ASSIGN_OR_RETURN(std::string file, OneFile(files, "opt"));
  std::vector<std::string> names = absl::StrSplit(passes, ',', absl::SkipEmpty());
  for (const std::string& name : names) {
    if (FindPass(name) == nullptr) {
      return UsageError(
          absl::StrCat("flag --passes: no pass '", name, "', see svod-jit opt --passes=list"));
    }
  }
  SVOD_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, MakeSession());
  SVOD_RETURN_IF_ERROR(session->LoadFile(file, &streams.in));
  SVOD_ASSIGN_OR_RETURN(std::vector<Function> functions, ChosenFunctions(*session));
  Module changed{session->module().context, {}};
  absl::flat_hash_map<const UOp*, const UOp*> kernels;
  for (Function& function : functions) {
    if (function.is_kernel()) {
      const UOp*& root = kernels[function.root];
      root = function.root;
      PassContext context(*changed.context);
      root = session->opts().Apply(root, *changed.context);
      function.root = root;
      for (const std::string& name : names) {
        SVOD_ASSIGN_OR_RETURN(root, RunPass(*FindPass(name), root, context));
        function.root = root;
        SVOD_RETURN_IF_ERROR(Annotate(Verify(function), absl::StrCat("after ", name)));
      }
    } else {
      SVOD_ASSIGN_OR_RETURN(function.root, CallOthers(function.root, kernels, *changed.context));
    }
    changed.functions.push_back(std::move(function));
  }
  SVOD_RETURN_IF_ERROR(session->opts().CheckUsed());
  SVOD_ASSIGN_OR_RETURN(std::string text, Print(changed));
  streams.out << text;
  return absl::OkStatus();
}

absl::Status RunLower(absl::Span<const std::string> files, CommandStreams& streams) {
  SVOD_ASSIGN_OR_RETURN(std::string file, OneFile(files, "lower"));
  std::string emit = absl::GetFlag(FLAGS_emit);
  Stage stage = Stage::kUOps;
  if (emit == "scheduled") {
    stage = Stage::kScheduled;
  } else if (emit == "llvm") {
    stage = Stage::kLlvm;
  } else if (emit == "asm") {
    stage = Stage::kAssembly;
  } else if (emit != "uops") {
    return UsageError(
        absl::StrCat("flag --emit: got '", emit, "', expected scheduled, uops, llvm or asm"));
  }
  SVOD_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, MakeSession());
  SVOD_RETURN_IF_ERROR(session->LoadFile(file, &streams.in));
  SVOD_ASSIGN_OR_RETURN(std::vector<Function> functions, ChosenFunctions(*session));
  bool all = absl::GetFlag(FLAGS_function).empty();
  for (const Function& function : functions) {
    if (all && !function.is_kernel() && !IsTensorGraph(function.root)) continue;
    SVOD_ASSIGN_OR_RETURN(std::string text, session->Emit(function, stage));
    streams.out << text;
  }
  return absl::OkStatus();
}

absl::Status RunPlan(absl::Span<const std::string> files, CommandStreams& streams) {
  SVOD_ASSIGN_OR_RETURN(std::string file, OneFile(files, "plan"));
  SVOD_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, MakeSession());
  if (IsOnnxFile(file)) {
    SVOD_ASSIGN_OR_RETURN(std::vector<NamedBounds> dims, DimsFromFlags());
    SVOD_ASSIGN_OR_RETURN(std::vector<NamedTensor> inputs, ReadTensors(absl::GetFlag(FLAGS_input)));
    SVOD_ASSIGN_OR_RETURN(std::string text, PlanOnnx(*session, file, inputs, dims));
    streams.out << text;
    return absl::OkStatus();
  }
  SVOD_RETURN_IF_ERROR(session->LoadFile(file, &streams.in));
  SVOD_ASSIGN_OR_RETURN(const Function* function, session->Find(absl::GetFlag(FLAGS_function)));
  SVOD_ASSIGN_OR_RETURN(std::string text, session->DescribePlan(*function));
  streams.out << text;
  return absl::OkStatus();
}

absl::Status RunBench(absl::Span<const std::string> files, CommandStreams& streams) {
  SVOD_ASSIGN_OR_RETURN(std::string file, OneFile(files, "bench"));
  SVOD_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, MakeSession());
  bool is_onnx = IsOnnxFile(file);
  if (!is_onnx) SVOD_RETURN_IF_ERROR(session->LoadFile(file, &streams.in));
  SVOD_ASSIGN_OR_RETURN(RunRequest request, RequestFromFlags());
  if (request.search > 0) ShowSearch(&request, streams.err);
  SVOD_ASSIGN_OR_RETURN(std::vector<NamedBounds> dims, DimsFromFlags());
  auto run = [&] {
    return is_onnx ? RunOnnx(*session, file, request, dims, true) : session->Run(request);
  };
  int least = request.repeat;
  request.repeat = 1;
  SVOD_ASSIGN_OR_RETURN(RunResult first, run());
  streams.err << FormatSearch(first);
  request.search = 0;
  double prepare_ms = first.prepare_ms;
  int64_t one = std::max<int64_t>(first.execute_ns[0], 1);
  request.repeat =
      std::max<int>(least, static_cast<int>(std::clamp<int64_t>(500'000'000 / one, 10, 1'000'000)));
  SVOD_ASSIGN_OR_RETURN(RunResult result, run());
  result.prepare_ms = prepare_ms;
  streams.out << FormatTimes(result) << FormatProfile(result);
  return absl::OkStatus();
}

absl::Status RunInfo(absl::Span<const std::string> files, CommandStreams& streams) {
  if (files.empty()) {
    SVOD_ASSIGN_OR_RETURN(std::string version, VersionText());
    streams.out << version;
    return absl::OkStatus();
  }
  SVOD_ASSIGN_OR_RETURN(std::string file, OneFile(files, "info"));
  if (IsOnnxFile(file)) {
    SVOD_ASSIGN_OR_RETURN(std::vector<NamedBounds> dims, DimsFromFlags());
    SVOD_ASSIGN_OR_RETURN(std::string text, DescribeOnnx(file, dims));
    streams.out << text;
    return absl::OkStatus();
  }
  SVOD_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, MakeSession());
  SVOD_RETURN_IF_ERROR(session->LoadFile(file, &streams.in));
  SVOD_ASSIGN_OR_RETURN(std::vector<Function> functions, ChosenFunctions(*session));
  for (const Function& function : functions) {
    SVOD_ASSIGN_OR_RETURN(std::string text, DescribeFunction(function));
    streams.out << text;
  }
  return absl::OkStatus();
}

absl::Status RunCache(absl::Span<const std::string> files, CommandStreams& streams) {
  if (files.size() != 1 || (files[0] != "stats" && files[0] != "clear")) {
    return UsageError("cache: action, expected stats or clear");
  }
  SVOD_ASSIGN_OR_RETURN(std::string directory, CacheDirectory());
  SVOD_ASSIGN_OR_RETURN(std::string report,
                        files[0] == "clear" ? ClearCache(directory) : DescribeCache(directory));
  streams.out << report;
  return absl::OkStatus();
}

absl::Status RunRepl(absl::Span<const std::string> files, CommandStreams& streams) {
  if (files.size() > 1) {
    return UsageError(absl::StrCat("repl: files, got ", files.size(), ", expected at most one"));
  }
  SVOD_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, MakeSession());
  if (!files.empty()) {
    if (files[0] == "-") return UsageError("repl: file, got -, expected a path");
    SVOD_RETURN_IF_ERROR(session->LoadFile(files[0], nullptr));
  }
  Repl repl(std::move(session), streams.out, streams.err);
  std::unique_ptr<LineReader> reader;
  if (streams.is_terminal) {
    SVOD_ASSIGN_OR_RETURN(DebugOptions environment, EnvironmentDebugOptions());
    std::string history = environment.home_directory;
    if (!history.empty()) history += "/.svod_history";
    reader = MakeTerminalReader(history,
                                [&repl](const std::string& line) { return repl.Complete(line); });
  } else {
    reader = MakeStreamReader(streams.in);
  }
  return repl.Run(*reader);
}

}  // namespace svod
