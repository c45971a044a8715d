#include "ir/kernel_builder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/linearize.h"
#include "ir/status_macros.h"

namespace svod {

KernelBuilder::KernelBuilder(std::shared_ptr<Context> context, absl::string_view name)
    : context_(std::move(context)), name_(name) {}

const UOp* KernelBuilder::Fail(absl::Status status, const UOp* culprit) {
  if (status_.ok()) {
    status_ = std::move(status);
    culprit_ = culprit;
  }
  return nullptr;
}

const UOp* KernelBuilder::FailInvalid(absl::string_view message, const UOp* culprit) {
  return Fail(absl::InvalidArgumentError(message), culprit);
}

const UOp* KernelBuilder::MakeNode(Op op, DType dtype, absl::Span<const UOp* const> sources,
                                   const Argument& argument) {
  absl::StatusOr<const UOp*> node = context_->Make(op, dtype, sources, argument);
  if (!node.ok()) return Fail(node.status());
  order_.Note(*node);
  return *node;
}

bool KernelBuilder::Reject(const UOp* operand, absl::string_view message) {
  if (status_.ok()) bad_operand_ = operand;
  FailInvalid(message);
  return false;
}

bool KernelBuilder::Admit(const UOp* node, bool in_reduced) {
  if (!status_.ok()) return false;
  if (node == nullptr) return Reject(nullptr, "operand, got null, expected a node");
  if (IsConst(node) && context_->Owns(node)) return true;
  if (!order_.IsNoted(node)) return AdmitForeign(node);
  if (in_reduced ? order_.IsInReducedLoops(node) : order_.IsInOpenLoops(node)) return true;
  return Reject(node, absl::StrCat(InfoOf(node->op()).text,
                                   ": used after the end of its loop, expected only inside it"));
}

bool KernelBuilder::AdmitAll(absl::Span<const UOp* const> nodes) {
  for (const UOp* node : nodes) {
    if (!Admit(node)) return false;
  }
  return true;
}

// Arithmetic that was made past the builder is as good as its own.
bool KernelBuilder::AdmitForeign(const UOp* node) {
  std::vector<std::pair<const UOp*, int>> stack = {{node, 0}};
  while (!stack.empty()) {
    auto& [user, next] = stack.back();
    if (next == 0) {
      OpClass op_class = InfoOf(user->op()).op_class;
      bool is_arithmetic = IsConst(user) || IsLanewise(user->op()) ||
                           op_class == OpClass::kVector || user->op() == Op::kDefineVar;
      if (!is_arithmetic || !context_->Owns(user)) {
        return Reject(node, absl::StrCat(InfoOf(user->op()).text,
                                         ": not made by this builder, expected its nodes, "
                                         "constants of its context or arithmetic on them"));
      }
    }
    if (next < user->num_sources()) {
      const UOp* source = user->source(next++);
      if (order_.IsNoted(source)) {
        if (!Admit(source)) return false;
      } else {
        stack.push_back({source, 0});
      }
      continue;
    }
    order_.Note(user);
    stack.pop_back();
  }
  return true;
}

bool KernelBuilder::FinishReduces() {
  if (!status_.ok()) return false;
  const UOp* lost = order_.FinishReduces();
  if (lost == nullptr) return true;
  FailInvalid(absl::StrCat(InfoOf(lost->op()).text,
                           ": stands in a loop that a reduce closes, but is not part of the "
                           "reduced value, expected an end for its loop"),
              lost);
  return false;
}

// --- Parameters, variables and scratch --------------------------------------------------------

const UOp* KernelBuilder::Param(absl::string_view name, DType element,
                                absl::Span<const UOp* const> shape, Access access, int64_t slot) {
  if (!AdmitAll(shape)) return nullptr;
  if (slot < 0) slot = static_cast<int64_t>(params_.size());
  // "p0" is how a nameless parameter prints; so that is what it means.
  if (name == absl::StrCat("p", slot)) name = "";
  for (const UOp* param : params_) {
    if (param->arg<ParamArgument>().slot == slot) {
      return FailInvalid(absl::StrCat("param: slot ", slot, " is taken, expected one of its own"));
    }
  }
  const UOp* param = MakeNode(Op::kParam, element, shape, ParamArgument{slot, access, name});
  if (param != nullptr) params_.push_back(param);
  return param;
}

const UOp* KernelBuilder::Param(absl::string_view name, DType element,
                                std::initializer_list<int64_t> shape, Access access) {
  std::vector<const UOp*> dims;
  for (int64_t dim : shape) dims.push_back(context_->Index(dim));
  return Param(name, element, dims, access);
}

const UOp* KernelBuilder::Variable(absl::string_view name, int64_t min, int64_t max) {
  if (!status_.ok()) return nullptr;
  if (name == "core_id") {
    return FailInvalid("define_var: name 'core_id' is reserved, expected another");
  }
  return MakeNode(Op::kDefineVar, DType(), {}, VariableArgument{name, min, max});
}

const UOp* KernelBuilder::CoreId(const UOp* launch_size) {
  if (!Admit(launch_size)) return nullptr;
  return MakeNode(Op::kCoreId, DType(), {launch_size}, {});
}

const UOp* KernelBuilder::Scratch(Op op, DType element, int64_t size, int64_t id) {
  if (!status_.ok()) return nullptr;
  if (id < 0) id = num_scratch_;
  ++num_scratch_;
  return MakeNode(op, element, {}, ScratchArgument{id, size});
}

const UOp* KernelBuilder::Reg(DType element, int64_t size, int64_t id) {
  return Scratch(Op::kReg, element, size, id);
}
const UOp* KernelBuilder::Local(DType element, int64_t size, int64_t id) {
  return Scratch(Op::kLocal, element, size, id);
}

// --- Loops ------------------------------------------------------------------------------------

const UOp* KernelBuilder::Range(const UOp* end, AxisKind kind, int64_t axis) {
  if (!FinishReduces() || !Admit(end)) return nullptr;
  if (order_.num_open() >= kMaxLoopDepth) {
    return FailInvalid(absl::StrCat("range: open loops, expected at most ", kMaxLoopDepth));
  }
  if (axis < 0) axis = num_axes_;
  ++num_axes_;
  const UOp* range = MakeNode(Op::kRange, DType(), {end}, AxisArgument{axis, kind});
  if (range == nullptr) return nullptr;
  if (!ranges_.insert(range).second) {
    return FailInvalid(absl::StrCat("range: axis ", axis, " is taken, expected one of its own"));
  }
  order_.Open(range);
  return range;
}

const UOp* KernelBuilder::Range(int64_t end, AxisKind kind) {
  return Range(context_->Index(end), kind);
}

bool KernelBuilder::AdmitEffects(absl::Span<const UOp* const> effects) {
  if (!AdmitAll(effects)) return false;
  for (const UOp* effect : effects) {
    if (IsEffect(effect->op()) && !order_.IsHere(effect)) {
      return Reject(effect, absl::StrCat(InfoOf(effect->op()).text,
                                         ": stands in another loop, expected an effect of this "
                                         "one"));
    }
  }
  return true;
}

// Whether `effects` is complete: all that is left over goes into it, or is an error.
bool KernelBuilder::CompleteEffects(absl::Span<const UOp* const> given,
                                    std::vector<const UOp*>* effects) {
  if (!AdmitEffects(given)) return false;
  effects->insert(effects->end(), given.begin(), given.end());
  if (!given.empty()) return true;
  for (const UOp* effect : order_.PendingEffects()) {
    if (!IsEffect(effect->op())) {
      FailInvalid("reduce: its loop stores, but nothing uses its value", effect);
      return false;
    }
    effects->push_back(effect);
  }
  return true;
}

// Takes up what `closer`, an END or SINK, performs; nothing may be left.
bool KernelBuilder::PerformAll(const UOp* closer) {
  order_.TakeUp(closer);
  std::vector<const UOp*> lost = order_.PendingEffects();
  if (lost.empty()) return true;
  FailInvalid(absl::StrCat(InfoOf(lost.front()->op()).text,
                           ": not performed, expected among the effects of the ",
                           InfoOf(closer->op()).text),
              lost.front());
  return false;
}

const UOp* KernelBuilder::End(const UOp* range, absl::Span<const UOp* const> effects) {
  if (!FinishReduces()) return nullptr;
  if (order_.num_open() == 0 || order_.open_range(order_.num_open() - 1) != range) {
    return FailInvalid("end: its range is not the innermost open loop, expected that");
  }
  std::vector<const UOp*> sources = {range};
  if (!CompleteEffects(effects, &sources)) return nullptr;
  if (sources.size() == 1) {
    return FailInvalid("end: its loop has no effect, expected a store in it");
  }
  const UOp* end = MakeNode(Op::kEnd, DType(), sources, {});
  if (end == nullptr || !PerformAll(end)) return nullptr;
  order_.Close({range}, end);
  return end;
}

const UOp* KernelBuilder::Reduce(ReduceKind kind, const UOp* value,
                                 absl::Span<const UOp* const> ranges) {
  if (!Admit(value, /*in_reduced=*/true)) return nullptr;
  if (ranges.empty()) return FailInvalid("reduce: ranges, got none, expected at least one");
  std::vector<const UOp*> sources = {value};
  for (const UOp* range : ranges) {
    if (range == nullptr || !ranges_.contains(range)) {
      return FailInvalid("reduce: reduced over a node that is no open range");
    }
    sources.push_back(range);
  }
  int outermost = order_.num_open() - static_cast<int>(ranges.size());
  bool is_innermost = outermost >= 0;
  for (size_t i = 0; i < ranges.size() && is_innermost; ++i) {
    is_innermost = order_.open_range(outermost + static_cast<int>(i)) == ranges[i];
  }
  if (is_innermost) {
    if (!FinishReduces() || !Admit(value)) return nullptr;
    const UOp* reduce = MakeNode(Op::kReduce, DType(), sources, ReduceArgument{kind});
    if (reduce != nullptr) order_.Close(ranges, reduce);
    return reduce;
  }
  const UOp* reduce = MakeNode(Op::kReduce, DType(), sources, ReduceArgument{kind});
  if (reduce == nullptr) return nullptr;
  if (!order_.AlsoCloses(reduce)) {
    return FailInvalid(
        "reduce: its ranges are not the innermost open loops, expected those, outermost first");
  }
  return reduce;
}

// --- Accesses ---------------------------------------------------------------------------------

const UOp* RowMajor(absl::Span<const UOp* const> coordinates, absl::Span<const UOp* const> dims,
                    MakeIndexOp make) {
  const UOp* position = coordinates[0];
  for (size_t i = 1; i < coordinates.size() && position != nullptr; ++i) {
    if (!IsConstInt(dims[i], 1) && !IsConstInt(position, 0)) {
      position = make(Op::kMul, position, dims[i]);
    }
    if (position == nullptr || IsConstInt(coordinates[i], 0)) continue;
    position = IsConstInt(position, 0) ? coordinates[i] : make(Op::kAdd, position, coordinates[i]);
  }
  return position;
}

const UOp* KernelBuilder::Flatten(const UOp* buffer, absl::Span<const UOp* const> position) {
  const UOp* base = BaseBuffer(buffer);
  if (base == nullptr || buffer->op() == Op::kIndex) {
    return FailInvalid(
        absl::StrCat("index: source 0, got ", InfoOf(buffer->op()).text, ", expected a buffer"));
  }
  bool is_shaped = base->op() == Op::kParam || base->op() == Op::kBuffer;
  absl::Span<const UOp* const> dims = is_shaped ? base->sources() : absl::Span<const UOp* const>();
  if (position.empty() && is_shaped && dims.empty()) return context_->Index(0);
  if (position.size() == 1) return position[0];
  if (position.empty() || position.size() != dims.size()) {
    return FailInvalid(
        absl::StrCat("index: number of coordinates, got ", position.size(), ", expected 1",
                     dims.size() > 1 ? absl::StrCat(" or ", dims.size()) : std::string()));
  }
  return RowMajor(position, dims, [&](Op op, const UOp* a, const UOp* b) {
    return MakeNode(op, DType(), {a, b}, {});
  });
}

const UOp* KernelBuilder::MakeAccess(Op op, DType dtype, const UOp* buffer, const UOp* position,
                                     const UOp* other, int lanes, const AccessOptions& options) {
  std::vector<const UOp*> address = {buffer, position};
  if (options.gate != nullptr) address.push_back(options.gate);
  absl::StatusOr<const UOp*> index = context_->Make(Op::kIndex, address);
  if (!index.ok()) return Fail(index.status());

  AccessOrder::Access access{buffer, *index, other, lanes, op == Op::kStore};
  AccessOrder::Plan plan;
  if (!options.exact) {
    plan = order_.PlanAccess(access, [&](absl::Span<const UOp* const> sources) -> const UOp* {
      absl::StatusOr<const UOp*> join = context_->Make(Op::kAfter, sources);
      return join.ok() ? *join : nullptr;
    });
    if (!plan.ok) return Fail(absl::InternalError("after: a join of buffer states failed"));
    address[0] = plan.state;
    if (!plan.after.empty()) {
      plan.after.insert(plan.after.begin(), plan.state);
      absl::StatusOr<const UOp*> state = context_->Make(Op::kAfter, plan.after);
      if (!state.ok()) return Fail(state.status());
      address[0] = *state;
    }
    index = context_->Make(Op::kIndex, address);
    if (!index.ok()) return Fail(index.status());
  }
  std::vector<const UOp*> sources = {*index};
  if (other != nullptr) sources.push_back(other);
  absl::StatusOr<const UOp*> node =
      context_->Make(op, dtype, sources, AlignmentArgument{options.alignment, options.is_stream});
  if (!node.ok()) return Fail(node.status());
  order_.Commit(*node, access, options.exact ? nullptr : &plan);
  return *node;
}

const UOp* KernelBuilder::Load(const UOp* buffer, absl::Span<const UOp* const> position,
                               const AccessOptions& options) {
  if (!FinishReduces() || !Admit(buffer) || !AdmitAll(position)) return nullptr;
  if (options.gate != nullptr && !Admit(options.gate)) return nullptr;
  if (options.alt != nullptr && !Admit(options.alt)) return nullptr;
  const UOp* flat = Flatten(buffer, position);
  if (flat == nullptr) return nullptr;
  DType element = BaseBuffer(buffer)->dtype();
  int position_lanes = flat->dtype().lanes;
  if (options.lanes < 1 || options.lanes > kMaxLanes ||
      (options.lanes > 1 && (element.is_vector() || position_lanes > 1))) {
    return FailInvalid(absl::StrCat("load: lanes, got ", options.lanes, ", expected 1",
                                    element.is_vector() || position_lanes > 1
                                        ? std::string()
                                        : absl::StrCat(" to ", kMaxLanes)));
  }
  DType dtype = element;
  if (!element.is_vector()) dtype = element.with_lanes(std::max(position_lanes, options.lanes));
  return MakeAccess(Op::kLoad, dtype, buffer, flat, options.alt, options.lanes, options);
}

const UOp* KernelBuilder::Store(const UOp* buffer, absl::Span<const UOp* const> position,
                                const UOp* value, const AccessOptions& options) {
  if (!FinishReduces() || !Admit(buffer) || !AdmitAll(position) || !Admit(value)) return nullptr;
  if (options.gate != nullptr && !Admit(options.gate)) return nullptr;
  if (options.alt != nullptr) return FailInvalid("store: an alternative value is for loads only");
  const UOp* flat = Flatten(buffer, position);
  if (flat == nullptr) return nullptr;
  bool is_wide = !BaseBuffer(buffer)->dtype().is_vector() && !flat->dtype().is_vector();
  int lanes = is_wide ? value->dtype().lanes : 1;
  return MakeAccess(Op::kStore, DType(), buffer, flat, value, lanes, options);
}

const UOp* KernelBuilder::After(const UOp* buffer, absl::Span<const UOp* const> others) {
  if (!FinishReduces() || !Admit(buffer) || !AdmitAll(others)) return nullptr;
  std::vector<const UOp*> sources = {buffer};
  sources.insert(sources.end(), others.begin(), others.end());
  return MakeNode(Op::kAfter, DType(), sources, {});
}

// --- The rest ---------------------------------------------------------------------------------

const UOp* KernelBuilder::Make(Op op, absl::Span<const UOp* const> sources,
                               const Argument& argument) {
  return Make(op, DType(), sources, argument);
}

const UOp* KernelBuilder::Make(Op op, DType dtype, absl::Span<const UOp* const> sources,
                               const Argument& argument) {
  if (!AdmitAll(sources)) return nullptr;
  if (!IsLanewise(op) && InfoOf(op).op_class != OpClass::kVector && op != Op::kConst) {
    return FailInvalid(
        absl::StrCat(InfoOf(op).text, ": not arithmetic, expected the builder's method for it"));
  }
  return MakeNode(op, dtype, sources, argument);
}

absl::StatusOr<const UOp*> KernelBuilder::Finish(absl::Span<const UOp* const> effects,
                                                 absl::Span<const absl::string_view> opts) {
  if (!FinishReduces()) return status_;
  if (order_.num_open() > 0) {
    Fail(absl::FailedPreconditionError("kernel: a loop is still open, expected its end"),
         order_.open_range(order_.num_open() - 1));
    return status_;
  }
  std::vector<const UOp*> sources;
  if (!CompleteEffects(effects, &sources)) return status_;
  const UOp* sink = MakeNode(Op::kSink, DType(), sources, FunctionArgument{true, name_, opts});
  if (sink == nullptr || !PerformAll(sink)) return status_;
  for (const UOp* param : params_) {
    if (order_.IsTakenUp(param)) continue;
    FailInvalid("param: never used, expected a load or store of it", param);
    return status_;
  }
  return sink;
}

}  // namespace svod
