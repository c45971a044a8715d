#include "plan/prepare.h"

#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
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
  std::shared_ptr<const CompiledKernel> compiled;
};

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

class Preparer {
 public:
  Preparer(const Module& module, const Function& function, const KernelProvider& provider,
           const PrepareOptions& options)
      : module_(module),
        function_(function),
        provider_(provider),
        options_(options),
        builder_(options.device) {}

  absl::StatusOr<ExecutionPlan> Run() {
    SVOD_RETURN_IF_ERROR(Verify(function_));
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
    SVOD_RETURN_IF_ERROR(CompileCallees());
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
      if (!callee_of_.try_emplace(sink, callees_.size()).second) continue;
      if (sink != function_.root) SVOD_RETURN_IF_ERROR(Verify(FunctionOf(sink)));
      Callee callee;
      callee.sink = sink;
      SVOD_ASSIGN_OR_RETURN(callee.params, ParamsOf(sink));
      callee.variables = CollectRuntimeVars(sink);
      callee.alignments = Alignments(sink, callee.params);
      callee.cost_ns = EstimateCostNs(sink);
      callees_.push_back(std::move(callee));
    }
    return absl::OkStatus();
  }

  absl::Status CompileCallees() {
    std::vector<absl::Status> statuses(callees_.size());
    auto compile = [&](int i) {
      absl::StatusOr<std::shared_ptr<const CompiledKernel>> kernel = provider_(callees_[i].sink);
      statuses[i] = kernel.status();
      if (kernel.ok()) callees_[i].compiled = *std::move(kernel);
    };
    int num_callees = static_cast<int>(callees_.size());
    if (options_.task_runner != nullptr) {
      options_.task_runner(num_callees, compile);
    } else {
      RunSerially(num_callees, compile);
    }
    for (size_t i = 0; i < callees_.size(); ++i) {
      absl::string_view name = callees_[i].sink->arg<FunctionArgument>().name;
      SVOD_RETURN_IF_ERROR(Annotate(statuses[i], absl::StrCat("compiling kernel ", name)));
      if (callees_[i].compiled == nullptr) {
        return absl::InternalError(
            absl::StrCat("compiling kernel ", name, ": the provider gave no kernel"));
      }
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
    SVOD_ASSIGN_OR_RETURN(std::vector<const UOp*> params, ParamsOf(function_.root));
    std::vector<const UOp*> returned;
    for (const UOp* param : params) {
      SVOD_ASSIGN_OR_RETURN(PlanTensorSpec spec, Describe(param));
      builder_.AddParameter(std::move(spec));
    }
    if (!function_.is_kernel()) {
      for (const UOp* source : function_.root->sources()) {
        if (const UOp* buffer = BaseBuffer(source)) returned.push_back(buffer);
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
      if (spec.name.empty()) spec.name = absl::StrCat("out", indices.size());
      indices.push_back(spec.buffer_index);
      builder_.AddOutput(std::move(spec));
    }
    builder_.SetOutputBuffers(std::move(indices));
    return absl::OkStatus();
  }

  const Module& module_;
  const Function& function_;
  const KernelProvider& provider_;
  const PrepareOptions& options_;
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
  return Preparer(module, *function, provider, options).Run();
}

}  // namespace svod
