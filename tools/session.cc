#include "tools/session.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "ir/debug_options.h"
#include "ir/evaluate.h"
#include "ir/passes/apply_actions.h"
#include "ir/pipeline.h"
#include "ir/status_macros.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "jit/choose_actions.h"
#include "jit/compile.h"
#include "plan/describe_schedule.h"
#include "plan/prepare.h"
#include "plan/schedule.h"
#include "tools/interpret_graph.h"

namespace svod {
namespace {

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Largest program text [bytes].
constexpr std::streamsize kMaxTextBytes = std::streamsize{1} << 30;

absl::StatusOr<std::string> ReadText(std::istream& in, absl::string_view name) {
  std::string text;
  char block[1 << 16];
  while (in.read(block, sizeof(block)) || in.gcount() > 0) {
    text.append(block, static_cast<size_t>(in.gcount()));
    if (static_cast<std::streamsize>(text.size()) > kMaxTextBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat(name, ": text is larger than ", kMaxTextBytes, " bytes"));
    }
  }
  if (in.bad()) return absl::InvalidArgumentError(absl::StrCat(name, ": cannot be read"));
  return text;
}

struct OpNameOf {
  std::string operator()(const PreparedKernel& op) const {
    return std::string(op.ast->arg<FunctionArgument>().name);
  }
  std::string operator()(const PreparedCopy&) const { return "copy"; }
  std::string operator()(const PreparedBufferView&) const { return "view"; }
  std::string operator()(const PreparedCustomFunction& op) const { return op.kind; }
};

absl::Status CopyInputs(const ExecutionPlan& plan, const std::vector<NamedTensor>& inputs) {
  SVOD_ASSIGN_OR_RETURN(std::vector<const PlanTensor*> parameters,
                        MatchInputs(plan.parameters(), inputs));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& tensor = inputs[i].tensor;
    const Buffer& buffer = plan.buffers()[parameters[i]->buffer_index];
    SVOD_ASSIGN_OR_RETURN(Buffer part, buffer.View(0, tensor.size_bytes()));
    SVOD_RETURN_IF_ERROR(part.CopyFrom(absl::Span<const std::byte>(tensor.bytes())));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<NamedTensor>> CopyOutputs(const ExecutionPlan& plan) {
  std::vector<NamedTensor> outputs;
  for (const PlanTensor& output : plan.outputs()) {
    DType dtype = output.dtype == Scalar::kIndex ? DType(Scalar::kI64) : output.dtype;
    SVOD_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(dtype, output.shape));
    absl::Span<const std::byte> bytes = plan.buffers()[output.buffer_index].Read();
    if (tensor.size_bytes() > 0) {
      std::memcpy(tensor.bytes().data(), bytes.data(), static_cast<size_t>(tensor.size_bytes()));
    }
    outputs.push_back({output.name, tensor});
  }
  return outputs;
}

// Stands in for a compiled kernel where the interpreter does the work.
int32_t NeverCalled(void* const*, const int64_t*, int64_t, void*) { return 1; }

absl::StatusOr<std::shared_ptr<const CompiledKernel>> Uncompiled(const UOp* sink) {
  auto kernel = std::make_shared<CompiledKernel>();
  kernel->name = std::string(sink->arg<FunctionArgument>().name);
  kernel->function = &NeverCalled;
  for (const UOp* variable : VariablesOf(sink)) {
    kernel->variable_names.emplace_back(variable->arg<VariableArgument>().name);
  }
  return kernel;
}

absl::Status InterpretKernel(const ExecutionPlan& plan, const PreparedKernel& op) {
  std::vector<absl::Span<std::byte>> buffers;
  for (size_t index : op.buffer_indices) {
    SVOD_RETURN_IF_ERROR(plan.buffers()[index].Allocate());
    const Buffer& buffer = plan.buffers()[index];
    buffers.push_back({buffer.data(), static_cast<size_t>(buffer.size_bytes())});
  }
  std::vector<std::pair<std::string, int64_t>> variables;
  for (size_t i = 0; i < op.values.size(); ++i) {
    variables.push_back({op.kernel->variable_names[i], op.values[i]});
  }
  EvaluateOptions options;
  options.variables = variables;
  return Annotate(Evaluate(op.ast, buffers, options), absl::StrCat("kernel ", op.kernel->name));
}

struct InterpretOp {
  const ExecutionPlan& plan;
  absl::Status operator()(const PreparedKernel& op) const { return InterpretKernel(plan, op); }
  absl::Status operator()(const PreparedCopy& op) const {
    return plan.buffers()[op.buffer_indices[0]].CopyFrom(plan.buffers()[op.buffer_indices[1]]);
  }
  absl::Status operator()(const PreparedBufferView&) const { return absl::OkStatus(); }
  absl::Status operator()(const PreparedCustomFunction& op) const {
    return absl::UnimplementedError(
        absl::StrCat("custom function '", op.kind, "' has no interpreter"));
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Create(const SessionSettings& settings) {
  std::unique_ptr<Session> session(new Session());
  session->module_.context = std::make_shared<Context>();
  SVOD_RETURN_IF_ERROR(session->SetSettings(settings));
  return session;
}

absl::Status Session::SetSettings(const SessionSettings& settings) {
  SVOD_ASSIGN_OR_RETURN(DebugOptions debug, EnvironmentDebugOptions());
  SVOD_ASSIGN_OR_RETURN(Target target,
                        MakeTarget(settings.triple, settings.cpu, settings.features));
  int threads = settings.threads;
  if (threads == 0) threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  SVOD_ASSIGN_OR_RETURN(KernelOpts opts, KernelOpts::Parse(settings.opts));
  std::unique_ptr<Executor> executor;
  if (executor_ == nullptr || executor_->num_threads() != threads) {
    SVOD_ASSIGN_OR_RETURN(executor, Executor::Create(threads));
  }
  if (cache_ == nullptr || settings.cache_dir != settings_.cache_dir) {
    KernelCacheOptions options;
    options.session.gdb = debug.gdb_events;
    options.session.perf = debug.perfmap_events;
    if (settings.cache_dir != "off") {
      options.disk_directory =
          settings.cache_dir.empty() ? DefaultCacheDirectory() : settings.cache_dir;
    }
    SVOD_ASSIGN_OR_RETURN(cache_, KernelCache::Create(options));
  }
  if (executor != nullptr) executor_ = std::move(executor);
  target_ = std::move(target);
  opts_ = std::make_shared<KernelOpts>(std::move(opts));
  settings_ = settings;
  return absl::OkStatus();
}

absl::Status Session::Load(absl::string_view text, absl::string_view file) {
  SVOD_ASSIGN_OR_RETURN(Module parsed, ParseModule(text, file, module_.context, &module_));
  for (const Function& function : parsed.functions) {
    SVOD_RETURN_IF_ERROR(Verify(function));
    SVOD_RETURN_IF_ERROR(CheckActions(function));
  }
  for (Function& function : parsed.functions) {
    auto same_name = [&](const Function& other) { return other.name() == function.name(); };
    auto& functions = module_.functions;
    functions.erase(std::remove_if(functions.begin(), functions.end(), same_name), functions.end());
    functions.push_back(std::move(function));
  }
  return absl::OkStatus();
}

absl::Status Session::LoadFile(const std::string& path, std::istream* standard_input) {
  if (path == "-") {
    if (standard_input == nullptr) return absl::InvalidArgumentError("there is no standard input");
    SVOD_ASSIGN_OR_RETURN(std::string text, ReadText(*standard_input, "<stdin>"));
    return Load(text, "<stdin>");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be opened"));
  SVOD_ASSIGN_OR_RETURN(std::string text, ReadText(file, path));
  return Load(text, path);
}

absl::StatusOr<const Function*> Session::Find(absl::string_view name) const {
  absl::ConsumePrefix(&name, "@");
  if (module_.functions.empty()) {
    return absl::FailedPreconditionError("the program has no functions");
  }
  if (name.empty()) {
    for (size_t i = module_.functions.size(); i-- > 0;) {
      if (!module_.functions[i].is_kernel()) return &module_.functions[i];
    }
    return &module_.functions.back();
  }
  const Function* function = module_.Find(name);
  if (function != nullptr) return function;
  std::string known =
      absl::StrJoin(module_.functions, ", @",
                    [](std::string* out, const Function& f) { absl::StrAppend(out, f.name()); });
  return absl::NotFoundError(absl::StrCat("function, got @", name, ", expected one of @", known));
}

absl::StatusOr<CompileOptions> Session::Compilation() const {
  SVOD_ASSIGN_OR_RETURN(DebugOptions debug, EnvironmentDebugOptions());
  CompileOptions compile;
  compile.target = target_;
  compile.dump_directory = debug.dump_directory;
  // Line tables point at the dumped text; without it there is nothing to show.
  compile.line_tables = !debug.dump_directory.empty() && (debug.gdb_events || debug.perfmap_events);
  return compile;
}

absl::StatusOr<RunResult> Session::Run(const RunRequest& request) {
  SVOD_ASSIGN_OR_RETURN(const Function* function, Find(request.function));
  return RunIn(module_, *function, request);
}

absl::StatusOr<RunResult> Session::RunLine(absl::string_view line, absl::string_view file,
                                           absl::Span<const NamedTensor> tensors, bool serial) {
  std::vector<GivenTensor> given;
  for (const NamedTensor& tensor : tensors) {
    given.push_back({tensor.name, tensor.tensor.dtype(), tensor.tensor.shape()});
  }
  auto context = std::make_shared<Context>();
  SVOD_ASSIGN_OR_RETURN(GraphLine parsed, ParseGraphLine(line, file, context, given));
  SVOD_RETURN_IF_ERROR(Verify(parsed.graph));
  RunRequest request;
  request.serial = serial;
  request.is_only_run = true;
  SVOD_ASSIGN_OR_RETURN(std::vector<const UOp*> params, ParamsOf(parsed.graph.root));
  for (const UOp* param : params) {
    for (const NamedTensor& tensor : tensors) {
      if (tensor.name == param->arg<ParamArgument>().name) request.inputs.push_back(tensor);
    }
  }
  SVOD_ASSIGN_OR_RETURN(RunResult result,
                        RunIn(Module{context, {parsed.graph}}, parsed.graph, request));
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    result.outputs[i].name = i < parsed.names.size() ? parsed.names[i] : "";
  }
  return result;
}

std::string Session::DescribeLevels(const ExecutionPlan& plan) {
  std::string text;
  for (size_t level = 0; level < plan.op_groups().size(); ++level) {
    absl::StrAppend(&text, "level ", level, ":");
    bool first = true;
    for (const std::vector<size_t>& group : plan.op_groups()[level]) {
      if (!first) absl::StrAppend(&text, " |");
      first = false;
      for (size_t op : group)
        absl::StrAppend(&text, " ", std::visit(OpNameOf{}, plan.prepared_ops()[op]));
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

absl::StatusOr<KernelProvider> Session::Provider() const {
  SVOD_ASSIGN_OR_RETURN(CompileOptions compile, Compilation());
  return ProviderOf(compile);
}

absl::StatusOr<KernelProvider> Session::QuickProvider() const {
  SVOD_ASSIGN_OR_RETURN(DebugOptions debug, EnvironmentDebugOptions());
  if (!debug.dump_directory.empty() || debug.gdb_events || debug.perfmap_events) {
    return KernelProvider();
  }
  SVOD_ASSIGN_OR_RETURN(CompileOptions compile, Compilation());
  compile.code_gen_level = 0;
  return ProviderOf(compile);
}

absl::StatusOr<KernelProvider> Session::ProviderOf(const CompileOptions& compile) const {
  if (!target_.is_host) {
    return absl::FailedPreconditionError(
        absl::StrCat("code for CPU ", target_.cpu, " cannot run on this machine"));
  }
  return KernelProvider([cache = cache_, opts = opts_, compile](const UOp* sink) {
    Context context;
    return cache->GetOrCompile(opts->Apply(sink, context), compile);
  });
}

absl::StatusOr<KernelSearch> Session::Search(int measurements,
                                             std::vector<SearchedKernel>* searched) const {
  if (measurements == 0) return KernelSearch();
  SVOD_ASSIGN_OR_RETURN(CompileOptions compile, Compilation());
  SearchOptions search;
  search.measurements = measurements;
  return KernelSearch([cache = cache_, opts = opts_, compile, search, searched](
                          const UOp* sink, const SearchControl& control) -> absl::Status {
    Context context;
    const UOp* wanted = opts->Apply(sink, context);
    SVOD_ASSIGN_OR_RETURN(SearchReport report,
                          SearchActions(wanted, *cache, compile, search, control));
    searched->push_back({std::string(sink->arg<FunctionArgument>().name), std::move(report)});
    return absl::OkStatus();
  });
}

absl::StatusOr<RunResult> Session::RunIn(const Module& module, const Function& function,
                                         const RunRequest& request) {
  RunResult result;
  int64_t start = NowNs();
  SVOD_ASSIGN_OR_RETURN(KernelProvider provider, Provider());
  PrepareOptions options;
  options.task_runner = MakeTbbTaskRunner(executor_.get());
  options.variables = request.variables;
  options.progress = request.progress;
  options.schedule = settings_.schedule;
  if (request.is_only_run) {
    options.expected_runs = 1;
    SVOD_ASSIGN_OR_RETURN(options.quick_provider, QuickProvider());
  }
  SVOD_ASSIGN_OR_RETURN(options.search, Search(request.search, &result.searched));
  SVOD_ASSIGN_OR_RETURN(ExecutionPlan plan, Prepare(module, function.name(), provider, options));
  SVOD_RETURN_IF_ERROR(opts_->CheckUsed());
  result.prepare_ms = static_cast<double>(NowNs() - start) * 1e-6;
  result.schedule = DescribeLevels(plan);
  SVOD_RETURN_IF_ERROR(CopyInputs(plan, request.inputs));

  ExecuteOptions execute;
  execute.serial = request.serial;
  execute.executor = executor_.get();
  result.execute_ns.reserve(static_cast<size_t>(request.repeat));
  for (int i = 0; i + 1 < request.repeat; ++i) {
    start = NowNs();
    SVOD_RETURN_IF_ERROR(Execute(plan, execute));
    result.execute_ns.push_back(NowNs() - start);
  }
  start = NowNs();
  SVOD_ASSIGN_OR_RETURN(result.profiles, ExecuteProfiled(plan, execute));
  result.execute_ns.push_back(NowNs() - start);
  SVOD_ASSIGN_OR_RETURN(result.outputs, CopyOutputs(plan));
  return result;
}

absl::StatusOr<RunResult> Session::Interpret(const RunRequest& request) {
  SVOD_ASSIGN_OR_RETURN(const Function* function, Find(request.function));
  if (!function->is_kernel() && IsTensorGraph(function->root)) {
    return InterpretTensorGraph(*function, request);
  }
  RunResult result;
  PrepareOptions options;
  options.variables = request.variables;
  SVOD_ASSIGN_OR_RETURN(ExecutionPlan plan,
                        Prepare(module_, function->name(), &Uncompiled, options));
  SVOD_RETURN_IF_ERROR(CopyInputs(plan, request.inputs));
  SVOD_RETURN_IF_ERROR(plan.BeginRun());  // asks for every variable's value, as a run does
  plan.EndRun();
  for (int i = 0; i < request.repeat; ++i) {
    int64_t start = NowNs();
    for (size_t op : plan.op_order()) {
      SVOD_RETURN_IF_ERROR(std::visit(InterpretOp{plan}, plan.prepared_ops()[op]));
    }
    result.execute_ns.push_back(NowNs() - start);
  }
  SVOD_ASSIGN_OR_RETURN(result.outputs, CopyOutputs(plan));
  return result;
}

absl::StatusOr<std::string> Session::Written(const Function& function) const {
  Module shown{module_.context, CalledKernels(function)};
  if (!function.is_kernel()) shown.functions.push_back(function);
  return Print(shown);
}

absl::StatusOr<std::string> Session::DescribePlan(const Function& function) const {
  if (function.is_kernel()) {
    SVOD_ASSIGN_OR_RETURN(std::string loops, DescribeLoops(function.root));
    return absl::StrCat("kernel @", function.name(), ": ", loops, "\n");
  }
  if (IsTensorGraph(function.root)) {
    SVOD_ASSIGN_OR_RETURN(ScheduledGraphPtr scheduled,
                          ScheduleAndPlan(function, {.schedule = settings_.schedule}));
    return DescribeSchedule(scheduled->schedule, function.name(), scheduled->memory,
                            &scheduled->graph());
  }
  SVOD_ASSIGN_OR_RETURN(MemoryPlan memory, PlanMemory(module_, function.name(), MemoryMode::kOff));
  return DescribeSchedule({module_, {}}, function.name(), memory, nullptr);
}

std::vector<Function> Session::CalledKernels(const Function& function) const {
  if (function.is_kernel()) return {function};
  std::vector<Function> kernels;
  for (const UOp* node : Toposort(function.root)) {
    if (node->op() != Op::kSink || node == function.root) continue;
    Function kernel;
    kernel.root = node;
    for (const Function& known : module_.functions) {
      if (known.root == node) kernel = known;
    }
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

absl::StatusOr<std::string> Session::Emit(const Function& function, Stage stage) {
  SVOD_ASSIGN_OR_RETURN(CompileOptions options, Compilation());
  std::string text;
  Schedule schedule;
  std::vector<Function> kernels;
  std::shared_ptr<Context> owner = module_.context;
  if (IsTensorGraph(function.root)) {
    SVOD_ASSIGN_OR_RETURN(schedule, ScheduleGraph(function, settings_.schedule));
    if (stage == Stage::kScheduled) return Print(schedule.module);
    owner = schedule.module.context;
    for (const Function& scheduled : schedule.module.functions) {
      if (scheduled.is_kernel()) kernels.push_back(scheduled);
    }
  } else {
    if (stage == Stage::kScheduled) return Written(function);
    kernels = CalledKernels(function);
  }
  for (Function& kernel : kernels) {
    PassContext context(*owner);
    kernel.root = opts_->Apply(kernel.root, *owner);
    SVOD_ASSIGN_OR_RETURN(kernel.root, OptimizeLoops(kernel.root, options.target, context));
    SVOD_ASSIGN_OR_RETURN(kernel.root, OptimizeKernel(kernel.root, context));
    std::string one;
    switch (stage) {
      case Stage::kScheduled:
      case Stage::kUOps: {
        SVOD_ASSIGN_OR_RETURN(one, Print(kernel));
        break;
      }
      case Stage::kLlvm: {
        SVOD_ASSIGN_OR_RETURN(one, PrintLlvm(kernel, options));
        break;
      }
      case Stage::kAssembly: {
        SVOD_ASSIGN_OR_RETURN(one, PrintAssembly(kernel, options));
        break;
      }
    }
    text += one;
  }
  SVOD_RETURN_IF_ERROR(opts_->CheckUsed());
  return text;
}

std::string DefaultCacheDirectory() {
  const absl::StatusOr<DebugOptions>& environment = EnvironmentDebugOptions();
  if (!environment.ok() || environment->cache_directory.empty()) return "";
  return environment->cache_directory + "/svod";
}

}  // namespace svod
