#include "plan/prepare.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/passes/apply_actions.h"
#include "ir/ranges.h"
#include "ir/status_macros.h"
#include "ir/verify.h"
#include "plan/graph_order.h"
#include "plan/plan_builder.h"

namespace svod {
namespace {

absl::StatusOr<const Function*> FindFunction(const Module& module, absl::string_view name) {
  if (!name.empty()) {
    if (const Function* function = module.Find(name)) return function;
    return absl::InvalidArgumentError(absl::StrCat("prepare: no function @", name));
  }
  const Function* found = nullptr;
  size_t num_kernels = 0;
  for (const Function& function : module.functions) {
    num_kernels += function.is_kernel() ? 1 : 0;
    if (!function.is_kernel()) found = &function;
  }
  if (found != nullptr) return found;
  if (num_kernels == 1) return &module.functions[0];
  return absl::InvalidArgumentError(
      absl::StrCat("prepare: ", num_kernels, " kernels and no graph, expected the name of one"));
}

// A kernel by itself is a graph of one call on its own parameters.
absl::StatusOr<GraphOps> SingleKernel(const Function& kernel) {
  GraphOps ops;
  SVOD_ASSIGN_OR_RETURN(ops.buffers, ParamsOf(kernel.root));
  GraphOp op{kernel.root, {}, {}};
  for (const UOp* param : ops.buffers) {
    Access access = param->arg<ParamArgument>().access;
    op.operands.push_back({param, access != Access::kIn});
  }
  ops.ops.push_back(std::move(op));
  ops.variables = VariablesOf(kernel.root);
  return ops;
}

// What all calls of one kernel share.
struct Callee {
  const UOp* sink = nullptr;
  std::vector<const UOp*> params;
  std::vector<int64_t> alignments;  // by parameter [bytes]
  std::vector<RuntimeVar> variables;
  double cost_ns = 0;
  int64_t num_calls = 0;
  std::shared_ptr<const CompiledKernel> compiled;
};

// Estimated time of all runs from which on good code pays. It takes LLVM 2 to 10 ms longer, and is
// some 3 times as fast; estimates are high where it is faster still, in tiles. That would allow
// twice the time, but what was made goes to a disk tier, and other processes run it then.
constexpr double kWorthGoodCodeNs = 1e6;

// The places of loop actions in the text are known here; whoever compiles the kernel only has
// nodes.
absl::Status VerifyWithActions(const Function& function) {
  SVOD_RETURN_IF_ERROR(Verify(function));
  return CheckActions(function);
}

// What a kernel's accesses say of their buffers' addresses.
std::vector<int64_t> Alignments(const UOp* sink, absl::Span<const UOp* const> params) {
  std::vector<int64_t> alignments;
  for (const UOp* param : params) alignments.push_back(param->dtype().size_bytes());
  for (const UOp* node : Toposort(sink)) {
    if (node->op() != Op::kLoad && node->op() != Op::kStore) continue;
    const UOp* buffer = BaseBuffer(node->source(0));
    if (buffer == nullptr || buffer->op() != Op::kParam) continue;
    int64_t& alignment = alignments[static_cast<size_t>(buffer->arg<ParamArgument>().slot)];
    alignment = std::max(alignment, node->arg<AlignmentArgument>().bytes);
  }
  return alignments;
}

double MillisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// Tells the caller how far things are, and hears whether to go on.
class Observer {
 public:
  explicit Observer(const PrepareOptions& options) : options_(options) {}

  absl::Status Begin(PrepareStage stage, int total) {
    std::lock_guard<std::mutex> lock(mutex_);
    now_ = {stage, 0, total};
    return Tell();
  }
  absl::Status Step() {
    std::lock_guard<std::mutex> lock(mutex_);
    ++now_.done;
    now_.measured = now_.measurements = 0;
    return Tell();
  }
  // For a search: what it asks in between.
  SearchControl Control() {
    return {options_.cancelled, [this](int measured, int measurements) {
              std::lock_guard<std::mutex> lock(mutex_);
              now_.measured = measured;
              now_.measurements = measurements;
              if (options_.progress) options_.progress(now_);
            }};
  }
  absl::Status CheckCancelled() const {
    if (options_.cancelled == nullptr || !options_.cancelled->load(std::memory_order_relaxed)) {
      return absl::OkStatus();
    }
    return absl::CancelledError("prepare: cancelled");
  }

 private:
  absl::Status Tell() {
    if (options_.progress) options_.progress(now_);
    return CheckCancelled();
  }

  const PrepareOptions& options_;
  std::mutex mutex_;  // for the callback as well
  PrepareProgress now_{PrepareStage::kSchedule};
};

// A tensor graph and what has become of it.
struct Scheduled {
  const Function* graph = nullptr;  // the caller's, whose names count
  ScheduledGraphPtr result;
  bool is_hit = false;
  double elapsed_ms = 0;
};

class Preparer {
 public:
  // `scheduled`: null, or what `module` and `function` were made of.
  Preparer(const Module& module, const Function& function, const Scheduled* scheduled,
           const KernelProvider& provider, const PrepareOptions& options, Observer& observer)
      : module_(module),
        function_(function),
        scheduled_(scheduled),
        provider_(provider),
        options_(options),
        observer_(observer),
        builder_(options.device) {}

  absl::StatusOr<ExecutionPlan> Run() {
    auto start = std::chrono::steady_clock::now();
    // What the scheduler made has been verified on the way, and is checked by whoever compiles.
    if (scheduled_ == nullptr) SVOD_RETURN_IF_ERROR(VerifyWithActions(function_));
    SVOD_ASSIGN_OR_RETURN(graph_,
                          function_.is_kernel() ? SingleKernel(function_) : OrderGraph(function_));
    builder_.KeepProgramOrder();
    builder_.SetAllocator(options_.allocator);
    builder_.SetCustomFunctions(options_.custom_functions);
    builder_.SetMaxScratchThreads(options_.max_scratch_threads);
    SVOD_RETURN_IF_ERROR(CollectCallees());
    // Buffers and operands first: they are checked before anything is compiled.
    SVOD_RETURN_IF_ERROR(AddBuffers());
    std::vector<PreparedOp> ops;
    for (const GraphOp& op : graph_.ops) {
      SVOD_ASSIGN_OR_RETURN(PreparedOp prepared, PrepareOp(op));
      ops.push_back(std::move(prepared));
    }
    auto compile_start = std::chrono::steady_clock::now();
    SVOD_RETURN_IF_ERROR(CompileCallees());
    report_.compile_ms = MillisecondsSince(compile_start);
    SVOD_RETURN_IF_ERROR(observer_.Begin(PrepareStage::kBuild, 1));
    for (size_t i = 0; i < ops.size(); ++i) {
      if (auto* kernel = std::get_if<PreparedKernel>(&ops[i])) {
        SVOD_RETURN_IF_ERROR(AttachKernel(*kernel));
      }
      std::vector<size_t> after;
      for (size_t before : graph_.ops[i].after) after.push_back(before + num_views_);
      builder_.AddOpWithInstanceDependencies(std::move(ops[i]), std::move(after));
    }
    for (const UOp* variable : graph_.variables) AddVariable(variable->arg<VariableArgument>());
    SVOD_RETURN_IF_ERROR(DescribeTensors());
    SVOD_ASSIGN_OR_RETURN(ExecutionPlan plan, std::move(builder_).Build());
    std::vector<std::pair<absl::string_view, int64_t>> values(options_.variables.begin(),
                                                              options_.variables.end());
    for (const auto& [name, value] : values) {
      bool known = std::any_of(plan.variables().begin(), plan.variables().end(),
                               [n = name](const PlanVariable& v) { return v.name == n; });
      if (!known) return absl::InvalidArgumentError(absl::StrCat("prepare: no variable ", name));
    }
    SVOD_RETURN_IF_ERROR(plan.SetVariables(values));
    SVOD_RETURN_IF_ERROR(Report());
    report_.build_ms = MillisecondsSince(start) - report_.compile_ms;
    plan.SetReport(report_);
    SVOD_RETURN_IF_ERROR(observer_.Step());
    return plan;
  }

 private:
  template <typename... Parts>
  absl::Status Error(const UOp* node, const Parts&... parts) {
    return absl::InvalidArgumentError(
        absl::StrCat("prepare: ", function_.Describe(node), ": ", parts...));
  }

  static const UOp* SinkOf(const UOp* node) {
    return node->op() == Op::kSink ? node : node->source(0);
  }

  // The kernel's own function, for messages, or one without notes.
  Function FunctionOf(const UOp* sink) {
    for (const Function& function : module_.functions) {
      if (function.root == sink) return function;
    }
    Function bare;
    bare.root = sink;
    return bare;
  }

  absl::Status CollectCallees() {
    for (const GraphOp& op : graph_.ops) {
      if (op.node->op() != Op::kCall && op.node->op() != Op::kSink) continue;
      const UOp* sink = SinkOf(op.node);
      auto [known, is_new] = callee_of_.try_emplace(sink, callees_.size());
      if (!is_new) {
        ++callees_[known->second].num_calls;
        continue;
      }
      if (sink != function_.root && scheduled_ == nullptr) {
        SVOD_RETURN_IF_ERROR(VerifyWithActions(FunctionOf(sink)));
      }
      Callee callee;
      callee.sink = sink;
      SVOD_ASSIGN_OR_RETURN(callee.params, ParamsOf(sink));
      callee.variables = CollectRuntimeVars(sink);
      callee.alignments = Alignments(sink, callee.params);
      callee.cost_ns = EstimateCostNs(sink);
      callee.num_calls = 1;
      callees_.push_back(std::move(callee));
    }
    return absl::OkStatus();
  }

  absl::Status SearchCallees() {
    if (!options_.search) return absl::OkStatus();
    SVOD_RETURN_IF_ERROR(observer_.Begin(PrepareStage::kSearch, static_cast<int>(callees_.size())));
    for (const Callee& callee : callees_) {
      absl::Status status = options_.search(callee.sink, observer_.Control());
      if (absl::IsCancelled(status)) return absl::CancelledError("prepare: cancelled");
      absl::string_view name = callee.sink->arg<FunctionArgument>().name;
      SVOD_RETURN_IF_ERROR(Annotate(status, absl::StrCat("searching for kernel ", name)));
      SVOD_RETURN_IF_ERROR(observer_.Step());
    }
    return absl::OkStatus();
  }

  bool MayBeQuick(const Callee& callee) const {
    if (!options_.quick_provider || options_.expected_runs <= 0 || options_.search) return false;
    const auto calls = static_cast<double>(callee.num_calls * options_.expected_runs);
    return callee.cost_ns * calls < kWorthGoodCodeNs;
  }

  absl::Status CompileCallees() {
    SVOD_RETURN_IF_ERROR(SearchCallees());
    int num_callees = static_cast<int>(callees_.size());
    SVOD_RETURN_IF_ERROR(observer_.Begin(PrepareStage::kCompile, num_callees));
    ScheduleCache* cache = scheduled_ != nullptr && !options_.compiler.empty()
                               ? options_.schedule_cache.get()
                               : nullptr;
    if (cache != nullptr && !options_.search) {
      ScheduleCache::Kernels kernels = cache->FindKernels(scheduled_->result, options_.compiler);
      if (kernels.size() == callees_.size() && !kernels.empty()) {
        for (size_t i = 0; i < kernels.size(); ++i) {
          callees_[i].compiled = std::move(kernels[i]);
          SVOD_RETURN_IF_ERROR(observer_.Step());
        }
        return absl::OkStatus();
      }
    }
    std::vector<absl::Status> statuses(callees_.size());
    auto compile = [&](int i) {
      statuses[i] = observer_.CheckCancelled();
      if (!statuses[i].ok()) return;
      const KernelProvider& provider =
          MayBeQuick(callees_[i]) ? options_.quick_provider : provider_;
      absl::StatusOr<std::shared_ptr<const CompiledKernel>> kernel = provider(callees_[i].sink);
      statuses[i] = kernel.status();
      if (!kernel.ok()) return;
      callees_[i].compiled = *std::move(kernel);
      statuses[i] = observer_.Step();
    };
    if (options_.task_runner != nullptr) {
      options_.task_runner(num_callees, compile);
    } else {
      RunSerially(num_callees, compile);
    }
    for (size_t i = 0; i < callees_.size(); ++i) {
      absl::string_view name = callees_[i].sink->arg<FunctionArgument>().name;
      if (absl::IsCancelled(statuses[i])) return statuses[i];
      SVOD_RETURN_IF_ERROR(Annotate(statuses[i], absl::StrCat("compiling kernel ", name)));
      if (callees_[i].compiled == nullptr) {
        return absl::InternalError(
            absl::StrCat("compiling kernel ", name, ": the provider gave no kernel"));
      }
    }
    // Other plans of the graph may run often.
    const bool are_good = std::none_of(callees_.begin(), callees_.end(),
                                       [&](const Callee& callee) { return MayBeQuick(callee); });
    if (cache != nullptr && are_good) {
      ScheduleCache::Kernels kernels;
      for (const Callee& callee : callees_) kernels.push_back(callee.compiled);
      cache->AddKernels(scheduled_->result, options_.compiler, std::move(kernels));
    }
    return absl::OkStatus();
  }

  absl::Status AddBuffers() {
    for (const UOp* node : graph_.buffers) {
      SVOD_ASSIGN_OR_RETURN(int64_t size_bytes, MaxBytes(node));
      if (node->op() == Op::kBufferView) {
        SVOD_RETURN_IF_ERROR(AddView(node, size_bytes));
        continue;
      }
      if (node->op() == Op::kParam && !options_.allocate_parameters) {
        index_of_[node] = builder_.AddUnboundBuffer(node->id(), size_bytes);
        // Views are taken of the same handle, so it is made here as well.
        handles_.push_back(builder_.buffer_at(index_of_[node]));
        continue;
      }
      SVOD_ASSIGN_OR_RETURN(Buffer buffer, Buffer::Create(size_bytes, options_.allocator));
      handles_.push_back(buffer);
      index_of_[node] = builder_.AddBuffer(node->id(), std::move(buffer));
    }
    return absl::OkStatus();
  }

  // View ops stand first and depend on nothing: they only state where bytes lie, and what is in
  // them is ordered between the ops that use them.
  absl::Status AddView(const UOp* node, int64_t size_bytes) {
    size_t base = index_of_.at(BaseBuffer(node->source(0)));
    int64_t offset = node->arg<ViewArgument>().byte_offset;
    SVOD_ASSIGN_OR_RETURN(Buffer view, handles_[base].View(offset, size_bytes));
    handles_.push_back(view);
    size_t index = builder_.AddBuffer(node->id(), std::move(view));
    index_of_[node] = index;
    builder_.AddOp(PreparedBufferView{node->id(), {index, base}, offset, size_bytes, {}});
    ++num_views_;
    return absl::OkStatus();
  }

  absl::StatusOr<PreparedOp> PrepareOp(const GraphOp& op) {
    if (op.node->op() == Op::kCopy) {
      return PreparedOp(PreparedCopy{op.node->id(), IndicesOf(op), {}});
    }
    if (op.node->op() == Op::kCustomFunction) return PrepareCustom(op);
    return PrepareCall(op);
  }

  std::vector<size_t> IndicesOf(const GraphOp& op) {
    std::vector<size_t> indices;
    for (const GraphOp::Operand& operand : op.operands) {
      indices.push_back(index_of_.at(operand.buffer));
    }
    return indices;
  }

  // The BINDs among an op's sources.
  absl::StatusOr<VariableMap> FixedOf(const UOp* node) {
    VariableMap fixed;
    if (node->op() == Op::kSink) return fixed;
    for (const UOp* source : node->sources()) {
      if (source->op() != Op::kBind) continue;
      const auto& variable = source->source(0)->arg<VariableArgument>();
      int64_t value = ConstInt(source->source(1));
      if (value < variable.min || value > variable.max) {
        return absl::OutOfRangeError(absl::StrCat("prepare: ", function_.Describe(node), ": bind ",
                                                  variable.name, ", got ", value, ", expected ",
                                                  variable.min, " to ", variable.max));
      }
      if (!fixed.emplace(std::string(variable.name), value).second) {
        return Error(node, "bind ", variable.name, ", got two, expected one");
      }
    }
    return fixed;
  }

  absl::StatusOr<PreparedOp> PrepareCustom(const GraphOp& op) {
    PreparedCustomFunction custom;
    custom.id = op.node->id();
    custom.kind = std::string(op.node->arg<CustomArgument>().kind);
    custom.context = module_.context;
    custom.buffer_indices = IndicesOf(op);
    SVOD_ASSIGN_OR_RETURN(custom.fixed_variables, FixedOf(op.node));
    for (const UOp* source : op.node->sources()) {
      if (source->op() == Op::kBind || BaseBuffer(source) != nullptr) continue;
      custom.attributes.push_back(source);
      for (RuntimeVar& variable : CollectRuntimeVars(source)) {
        custom.runtime_variables.push_back(std::move(variable));
      }
    }
    return PreparedOp(std::move(custom));
  }

  absl::StatusOr<PreparedOp> PrepareCall(const GraphOp& op) {
    const Callee& callee = callees_[callee_of_.at(SinkOf(op.node))];
    PreparedKernel kernel;
    kernel.id = op.node->id();
    kernel.context = module_.context;
    kernel.ast = callee.sink;
    kernel.device = options_.device;
    kernel.buffer_indices = IndicesOf(op);
    kernel.runtime_variables = callee.variables;
    kernel.alignments = callee.alignments;
    kernel.cost_ns = callee.cost_ns;
    SVOD_ASSIGN_OR_RETURN(kernel.fixed_variables, FixedOf(op.node));
    for (size_t i = 0; i < callee.params.size(); ++i) {
      const UOp* param = callee.params[i];
      const UOp* buffer = op.operands[i].buffer;
      SVOD_ASSIGN_OR_RETURN(int64_t needed, NeededBytes(param, kernel.fixed_variables));
      SVOD_ASSIGN_OR_RETURN(int64_t size_bytes, MaxBytes(buffer));
      if (size_bytes < needed) {
        return Error(op.node, "size of operand ", i, ", got ", size_bytes,
                     " bytes, expected at least ", needed);
      }
      kernel.min_bytes.push_back(needed);
      if (op.operands[i].writes) kernel.output_indices.push_back(i);
    }
    return PreparedOp(std::move(kernel));
  }

  // Bytes of a parameter at its largest, given fixed variables.
  absl::StatusOr<int64_t> NeededBytes(const UOp* param, const VariableMap& fixed) {
    SVOD_ASSIGN_OR_RETURN(int64_t bytes, MaxBytes(param));
    if (fixed.empty()) return bytes;
    auto lookup = [&](absl::string_view name) -> std::optional<VariableSource> {
      auto it = fixed.find(std::string(name));
      if (it == fixed.end()) return std::nullopt;
      return VariableSource{true, it->second, 0};
    };
    int64_t needed = param->dtype().size_bytes();
    for (const UOp* dimension : param->sources()) {
      absl::StatusOr<IndexProgram> program = IndexProgram::Create(dimension, lookup);
      int64_t extent = program.ok() ? program->Run({}) : ranges_.Of(dimension).max;
      // Below `bytes`, which did not overflow.
      needed *= std::clamp<int64_t>(extent, 0, bytes);
      if (needed >= bytes) return bytes;
    }
    return needed;
  }

  void AddVariable(const VariableArgument& variable) {
    if (variable.name == kCoreIdName) return;
    builder_.AddVariable({std::string(variable.name), variable.min, variable.max});
  }

  // The compiled kernel, with values for its variables: fixed ones, or the smallest until the plan
  // is given others.
  absl::Status AttachKernel(PreparedKernel& kernel) {
    const Callee& callee = callees_[callee_of_.at(kernel.ast)];
    kernel.kernel = callee.compiled;
    for (const RuntimeVar& variable : callee.variables) {
      if (variable.name == kCoreIdName || kernel.fixed_variables.contains(variable.name)) continue;
      builder_.AddVariable(variable);
    }
    for (const std::string& name : callee.compiled->variable_names) {
      auto fixed = kernel.fixed_variables.find(name);
      auto variable = std::find_if(callee.variables.begin(), callee.variables.end(),
                                   [&](const RuntimeVar& v) { return v.name == name; });
      if (fixed != kernel.fixed_variables.end()) {
        kernel.values.push_back(fixed->second);
      } else if (variable != callee.variables.end()) {
        kernel.values.push_back(variable->min);
      } else if (name == kCoreIdName) {
        kernel.values.push_back(0);
      } else {
        return absl::InternalError(absl::StrCat("compiling kernel ", callee.compiled->name,
                                                ": it wants a variable ", name,
                                                " that the program does not have"));
      }
    }
    return absl::OkStatus();
  }

  // Parameters that nothing reads, such as those of sums over no elements, are none of the
  // schedule; the plan has them all the same.
  absl::StatusOr<std::vector<const UOp*>> ParametersOf() {
    if (scheduled_ == nullptr) return ParamsOf(function_.root);
    SVOD_ASSIGN_OR_RETURN(std::vector<const UOp*> params, ParamsOf(scheduled_->graph->root));
    for (const UOp* buffer : graph_.buffers) {
      if (buffer->op() != Op::kParam) continue;
      params[static_cast<size_t>(buffer->arg<ParamArgument>().slot)] = buffer;
    }
    for (const UOp* param : params) {
      if (index_of_.contains(param)) continue;
      SVOD_ASSIGN_OR_RETURN(int64_t size_bytes, MaxBytes(param));
      // Ids of the schedule's nodes are below.
      uint64_t id = module_.context->num_nodes() + index_of_.size();
      if (options_.allocate_parameters) {
        SVOD_ASSIGN_OR_RETURN(Buffer buffer, Buffer::Create(size_bytes, options_.allocator));
        index_of_[param] = builder_.AddBuffer(id, std::move(buffer));
      } else {
        index_of_[param] = builder_.AddUnboundBuffer(id, size_bytes);
      }
      for (const UOp* dimension : param->sources()) {
        for (const UOp* variable : VariablesOf(dimension)) {
          AddVariable(variable->arg<VariableArgument>());
        }
      }
    }
    return params;
  }

  // What the caller's graph calls result `i`; "" when it has no name.
  std::string ResultName(size_t i) {
    if (i >= static_cast<size_t>(scheduled_->graph->root->num_sources())) return "";
    const UOp* result = scheduled_->graph->root->source(static_cast<int>(i));
    const UOp* buffer = BaseBuffer(result);
    for (const UOp* node : {buffer, result}) {
      if (node == nullptr) continue;
      const auto* param = std::get_if<ParamArgument>(&node->argument());
      if (param != nullptr && !param->name.empty()) return std::string(param->name);
      auto note = scheduled_->graph->notes.find(node);
      if (note != scheduled_->graph->notes.end() && !note->second.name.empty()) {
        return note->second.name;
      }
    }
    return "";
  }

  absl::Status Report() {
    report_.num_kernels = static_cast<int>(callees_.size());
    if (scheduled_ != nullptr) {
      report_.schedule_hit = scheduled_->is_hit;
      report_.schedule_ms = scheduled_->elapsed_ms;
      report_.peak_bytes = scheduled_->result->memory.peak_bytes();
      report_.sum_bytes = scheduled_->result->memory.sum_bytes;
      return absl::OkStatus();
    }
    absl::flat_hash_set<const UOp*> returned;
    for (const UOp* state : function_.root->sources()) {
      const UOp* buffer = BaseBuffer(state);
      while (buffer != nullptr && buffer->op() == Op::kBufferView) {
        buffer = BaseBuffer(buffer->source(0));
      }
      returned.insert(buffer);
    }
    for (const UOp* buffer : graph_.buffers) {
      if (buffer->op() != Op::kBuffer || returned.contains(buffer)) continue;
      SVOD_ASSIGN_OR_RETURN(int64_t size_bytes, MaxBytes(buffer));
      report_.sum_bytes += size_bytes;
    }
    report_.peak_bytes = report_.sum_bytes;
    return absl::OkStatus();
  }

  absl::StatusOr<PlanTensorSpec> Describe(const UOp* buffer) {
    PlanTensorSpec spec;
    spec.dtype = buffer->dtype();
    spec.buffer_index = index_of_.at(buffer);
    spec.access = Access::kInOut;
    if (const auto* param = std::get_if<ParamArgument>(&buffer->argument())) {
      spec.access = param->access;
      spec.name = param->name.empty() ? absl::StrCat("p", param->slot) : std::string(param->name);
    } else if (auto it = function_.notes.find(buffer); it != function_.notes.end()) {
      spec.name = it->second.name;
    }
    size_t first = buffer->op() == Op::kBufferView ? 1 : 0;
    for (const UOp* dimension : buffer->sources().subspan(first)) {
      spec.dimensions.push_back(dimension);
      spec.max_shape.push_back(ranges_.Of(dimension).max);
    }
    return spec;
  }

  absl::Status DescribeTensors() {
    SVOD_ASSIGN_OR_RETURN(std::vector<const UOp*> params, ParametersOf());
    std::vector<const UOp*> returned;
    std::vector<std::string> names;  // empty: what the buffer is called
    for (const UOp* param : params) {
      SVOD_ASSIGN_OR_RETURN(PlanTensorSpec spec, Describe(param));
      builder_.AddParameter(std::move(spec));
    }
    if (!function_.is_kernel()) {
      for (size_t i = 0; i < function_.root->sources().size(); ++i) {
        const UOp* buffer = BaseBuffer(function_.root->sources()[i]);
        if (buffer == nullptr) continue;
        returned.push_back(buffer);
        names.push_back(scheduled_ != nullptr ? ResultName(i) : "");
      }
    }
    // What nobody returns by name comes back in the parameters that are written.
    if (returned.empty()) {
      for (const UOp* param : params) {
        if (param->arg<ParamArgument>().access != Access::kIn) returned.push_back(param);
      }
    }
    std::vector<size_t> indices;
    for (const UOp* buffer : returned) {
      SVOD_ASSIGN_OR_RETURN(PlanTensorSpec spec, Describe(buffer));
      size_t number = indices.size();
      if (number < names.size() && scheduled_ != nullptr) spec.name = names[number];
      if (spec.name.empty()) spec.name = absl::StrCat("out", indices.size());
      indices.push_back(spec.buffer_index);
      builder_.AddOutput(std::move(spec));
    }
    builder_.SetOutputBuffers(std::move(indices));
    return absl::OkStatus();
  }

  const Module& module_;
  const Function& function_;
  const Scheduled* scheduled_;
  const KernelProvider& provider_;
  const PrepareOptions& options_;
  Observer& observer_;
  PrepareReport report_;
  ExecutionPlanBuilder builder_;
  GraphOps graph_;
  RangeAnalysis ranges_;
  std::vector<Callee> callees_;  // in the order of their first calls
  absl::flat_hash_map<const UOp*, size_t> callee_of_;
  absl::flat_hash_map<const UOp*, size_t> index_of_;
  std::vector<Buffer> handles_;  // by buffer index
  size_t num_views_ = 0;
};

}  // namespace

absl::StatusOr<ExecutionPlan> Prepare(const Module& module, absl::string_view name,
                                      const KernelProvider& provider,
                                      const PrepareOptions& options) {
  SVOD_ASSIGN_OR_RETURN(const Function* function, FindFunction(module, name));
  Observer observer(options);
  SVOD_RETURN_IF_ERROR(observer.CheckCancelled());
  if (function->is_kernel() || !IsTensorGraph(function->root)) {
    return Preparer(module, *function, nullptr, provider, options, observer).Run();
  }
  SVOD_RETURN_IF_ERROR(observer.Begin(PrepareStage::kSchedule, 1));
  auto start = std::chrono::steady_clock::now();
  Scheduled scheduled;
  scheduled.graph = function;
  ScheduleRequest request{options.schedule, options.memory};
  if (options.schedule_cache != nullptr) {
    SVOD_ASSIGN_OR_RETURN(scheduled.result, options.schedule_cache->GetOrSchedule(
                                                *function, request, &scheduled.is_hit));
  } else {
    SVOD_ASSIGN_OR_RETURN(scheduled.result, ScheduleAndPlan(*function, request));
  }
  scheduled.elapsed_ms = MillisecondsSince(start);
  SVOD_RETURN_IF_ERROR(observer.Step());
  return Preparer(scheduled.result->memory.module, scheduled.result->planned(), &scheduled,
                  provider, options, observer)
      .Run();
}

const char* ToString(PrepareStage stage) {
  constexpr const char* kNames[] = {"schedule", "search", "compile", "build"};
  return kNames[static_cast<int>(stage)];
}

}  // namespace svod
