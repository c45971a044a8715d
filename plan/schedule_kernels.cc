// Kernels: the UOps of a kernel from the requests of its result.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/evaluate.h"
#include "ir/status_macros.h"
#include "plan/scheduler.h"

namespace svod {

const UOp* Scheduler::Make(Op op, DType dtype, absl::Span<const UOp* const> sources,
                           const Argument& argument) {
  absl::StatusOr<const UOp*> node = context_->Make(op, dtype, sources, argument);
  if (node.ok()) return *node;
  if (build_error_.ok()) build_error_ = absl::InternalError(node.status().message());
  return context_->Index(0);
}

// Where the dimensions of a kernel's result are best cut, as products of the dimensions after a
// cut, for values that are reduced under another shape: a group normalisation is, per group, over
// dimensions that the result has merged. Found through elementwise ops from the result on.
std::vector<int64_t> Scheduler::CutsOf(const UOp* root) {
  constexpr size_t kMaxVisited = 64;
  std::vector<int64_t> cuts;
  absl::StatusOr<ShapeSpan> shape = shapes_.Of(root);
  if (!shape.ok()) return cuts;
  std::vector<const UOp*> stack = {root};
  absl::flat_hash_set<const UOp*> seen;
  while (!stack.empty() && seen.size() < kMaxVisited) {
    const UOp* node = stack.back();
    stack.pop_back();
    if (!seen.insert(node).second || values_[node].elements != values_[root].elements) continue;
    if (IsElementwise(node->op()) || node->op() == Op::kContiguous) {
      for (const UOp* source : node->sources()) stack.push_back(source);
      continue;
    }
    const Value& value = values_[node];
    if (node->op() != Op::kReshape || !value.has_reduce || value.kind != Kind::kPlain) continue;
    absl::StatusOr<ShapeSpan> from = shapes_.Of(node->source(0));
    if (!from.ok()) continue;
    int64_t after = 1;
    for (size_t i = from->size(); i-- > 0;) {
      if (!IsConst((*from)[i]) || __builtin_mul_overflow(after, ConstInt((*from)[i]), &after))
        break;
      cuts.push_back(after);
    }
  }
  std::sort(cuts.begin(), cuts.end(), std::greater<>());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

// One loop a dimension, or several where a cut lies inside it; `index` gets a coordinate a
// dimension.
int Scheduler::AddLoops(ShapeSpan shape, absl::Span<const int64_t> cuts, Region* region,
                        Shape* index) {
  int scope = -1;
  auto add = [&](const UOp* extent) {
    region->loops.push_back(NewRange(extent, false));
    scope = Open(scope, region->loops.back());
    return region->loops.back();
  };
  // Elements after each dimension, as far as they are known.
  std::vector<int64_t> after(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) {
    bool known = IsConst(shape[i]) && after[i] > 0;
    if (!known || __builtin_mul_overflow(after[i], ConstInt(shape[i]), &after[i - 1])) {
      after[i - 1] = 0;
    }
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if (IsConstInt(shape[i], 1)) {
      index->push_back(context_->Index(0));
      continue;
    }
    const UOp* coordinate = nullptr;
    int64_t left = IsConst(shape[i]) && after[i] > 0 ? ConstInt(shape[i]) : 0;
    for (int64_t cut : cuts) {
      if (left == 0 || cut % after[i] != 0) continue;
      int64_t inner = cut / after[i];  // elements of this dimension after the cut
      if (inner <= 1 || inner >= left || left % inner != 0) continue;
      const UOp* outer = add(context_->Index(left / inner));
      const UOp* scaled = dims_.Mul(outer, context_->Index(inner));
      coordinate = coordinate == nullptr ? scaled : dims_.Add(coordinate, scaled);
      left = inner;
    }
    const UOp* last = add(left == 0 ? shape[i] : context_->Index(left));
    index->push_back(coordinate == nullptr ? last : dims_.Add(coordinate, last));
  }
  return scope;
}

// A kernel that computes a value into a buffer of its own.
absl::Status Scheduler::AddKernel(const UOp* node) {
  int number = static_cast<int>(kernels_.size());
  values_[node].kernel = number;
  kernels_.emplace_back();
  kernels_.back().root = node;
  bool is_scatter = node->op() == Op::kScatter;
  SVOD_ASSIGN_OR_RETURN(ShapeSpan shape, shapes_.Of(node));
  Region region;
  Shape index;
  int scope = AddLoops(shape, CutsOf(node), &region, &index);
  region.target = {index, nullptr};
  if (is_scatter) {
    SVOD_ASSIGN_OR_RETURN(region.value, Ask(node->source(0), number, {index, nullptr}, scope));
    kernels_[number].regions.push_back(std::move(region));
    SVOD_ASSIGN_OR_RETURN(ShapeSpan updates, shapes_.Of(node->source(2)));
    Region second;
    Shape at;
    scope = AddLoops(updates, {}, &second, &at);
    SVOD_ASSIGN_OR_RETURN(second.positions, Ask(node->source(1), number, {at, nullptr}, scope));
    SVOD_ASSIGN_OR_RETURN(second.value, Ask(node->source(2), number, {at, nullptr}, scope));
    kernels_[number].regions.push_back(std::move(second));
    return absl::OkStatus();
  }
  // The value's own element, which is computed here and loaded elsewhere.
  region.value = static_cast<int>(requests_.size());
  Request request;
  request.value = node;
  request.kernel = number;
  request.at = {std::move(index), nullptr};
  request.scope = scope;
  requests_.push_back(std::move(request));
  int own = region.value;
  kernels_[number].regions.push_back(std::move(region));
  if (IsState(node)) {
    requests_[own].is_load = true;  // a snapshot
    return absl::OkStatus();
  }
  return Expand(own);
}

absl::Status Scheduler::AddAssign(const UOp* assign) {
  int number = static_cast<int>(kernels_.size());
  kernel_of_effect_[assign] = number;
  kernels_.emplace_back();
  kernels_.back().root = assign;
  SVOD_ASSIGN_OR_RETURN(ShapeSpan target, shapes_.Of(assign->source(0)));
  SVOD_ASSIGN_OR_RETURN(ShapeSpan value, shapes_.Of(assign->source(1)));
  Region region;
  Shape index;
  int scope = AddLoops(target, {}, &region, &index);
  SVOD_ASSIGN_OR_RETURN(
      region.value, Ask(assign->source(1), number, {map_.Broadcast(index, value), nullptr}, scope));
  region.target = {std::move(index), nullptr};
  kernels_[number].regions.push_back(std::move(region));
  return absl::OkStatus();
}

// --- Elements ---------------------------------------------------------------------------------

const UOp* Scheduler::ParamOf(Kernel& kernel, const UOp* source) {
  auto [it, is_new] = kernel.operand_of.try_emplace(source, kernel.operands.size());
  if (!is_new) return kernel.operands[it->second].param;
  absl::StatusOr<ShapeSpan> shape = shapes_.Of(source);
  if (!shape.ok() && build_error_.ok()) build_error_ = shape.status();
  int64_t slot = static_cast<int64_t>(kernel.operands.size());
  const UOp* param = Make(Op::kParam, source->dtype(), shape.ok() ? *shape : ShapeSpan(),
                          ParamArgument{slot, Access::kIn, ""});
  kernel.operands.push_back({source, param});
  return param;
}

absl::StatusOr<const UOp*> Scheduler::LoadAt(Kernel& kernel, const UOp* source,
                                             const Position& at) {
  SVOD_ASSIGN_OR_RETURN(ShapeSpan shape, shapes_.Of(source));
  const UOp* param = ParamOf(kernel, source);
  std::vector<const UOp*> address = {param, map_.Linear(at.index, shape)};
  if (at.gate != nullptr) address.push_back(at.gate);
  const UOp* index = Make(Op::kIndex, DType(), address);
  return Make(Op::kLoad, source->dtype(), {index}, AlignmentArgument{});
}

// The element of a request whose sources have theirs.
absl::Status Scheduler::BuildElement(Request& request) {
  Kernel& kernel = kernels_[request.kernel];
  const UOp* node = request.value;
  if (request.is_load) {
    SVOD_ASSIGN_OR_RETURN(request.node, LoadAt(kernel, node, request.at));
    return absl::OkStatus();
  }
  if (request.stage >= 0) {
    const Stage& stage = stages_[request.stage];
    Shape index;
    for (size_t i : stage.free) index.push_back(request.at.index[i]);
    const UOp* filled = Make(Op::kAfter, DType(), {stage.local, stage.end});
    const UOp* address = Make(Op::kIndex, DType(), {filled, map_.Linear(index, stage.extents)});
    request.node = Make(Op::kLoad, node->dtype(), {address}, AlignmentArgument{});
    return absl::OkStatus();
  }
  std::vector<const UOp*> sources;
  for (int source : request.sources) sources.push_back(requests_[source].node);
  Op op = node->op();
  if (op == Op::kReduceAxis) {
    ReduceKind kind = node->arg<ReduceAxesArgument>().kind;
    if (!request.ranges.empty()) {
      sources.insert(sources.end(), request.ranges.begin(), request.ranges.end());
      request.node = Make(Op::kReduce, DType(), sources, ReduceArgument{kind});
      return absl::OkStatus();
    }
    // The fold of one element: it changes -0.0 alone, which added to 0.0 is 0.0.
    request.node = sources[0];
    if (kind == ReduceKind::kAdd && node->dtype().is_float()) {
      request.node = Make(Op::kAdd, DType(), {sources[0], context_->Bits(node->dtype(), 0)});
    }
    return absl::OkStatus();
  }
  if (op == Op::kArange) {
    const UOp* position = request.at.index[0];
    request.node =
        node->dtype() == Scalar::kIndex ? position : Make(Op::kCast, node->dtype(), {position});
    return absl::OkStatus();
  }
  if (op == Op::kGather) {
    // Positions of 64 bits without a sign are outside when they do not fit an index.
    size_t axis = static_cast<size_t>(node->arg<AxesArgument>().axes[0]);
    SVOD_ASSIGN_OR_RETURN(ShapeSpan shape, shapes_.Of(node->source(0)));
    const UOp* position = sources[0];
    if (position->dtype() != Scalar::kIndex) {
      position = Make(Op::kCast, Scalar::kIndex, {position});
    }
    Position at = request.at;
    at.index[axis] = position;
    at.gate = map_.And(at.gate, map_.InRange(position, shape[axis]));
    const UOp* outside = at.gate;
    const UOp* base = GatheredFrom(node);
    const UOp* fill = context_->Bits(node->dtype(), 0);
    // Pads on the way down to memory: where each one's fill counts.
    std::vector<std::pair<const UOp*, const UOp*>> fills;
    for (const UOp* x = node->source(0); x != base; x = x->source(0)) {
      SVOD_ASSIGN_OR_RETURN(Position from, map_.Through(x, at.index));
      if (from.gate != nullptr) {
        fills.push_back({from.gate, x->source(1)});
      }
      from.gate = map_.And(at.gate, from.gate);
      at = std::move(from);
    }
    SVOD_ASSIGN_OR_RETURN(const UOp* element, LoadAt(kernel, base, at));
    while (!fills.empty()) {
      element = Make(Op::kWhere, DType(), {fills.back().first, element, fills.back().second});
      fills.pop_back();
    }
    bool needs_zero = outside != nullptr && element->op() == Op::kWhere;
    request.node = needs_zero ? Make(Op::kWhere, DType(), {outside, element, fill}) : element;
    return absl::OkStatus();
  }
  if (request.select != nullptr) {
    request.node = Make(Op::kWhere, DType(), {request.select, sources[0], sources[1]});
  } else if (IsMovement(op) || op == Op::kContiguous) {
    request.node = sources[0];
  } else if (sources.empty()) {
    request.node = node->op() == Op::kBind ? node->source(0) : node;
  } else {
    request.node = Make(op, node->dtype(), sources, node->argument());
  }
  return absl::OkStatus();
}

absl::Status Scheduler::BuildStage(int number) {
  Stage& stage = stages_[number];
  Kernel& kernel = kernels_[stage.kernel];
  int64_t size = 1;
  for (const UOp* extent : stage.extents) {
    size *= std::max<int64_t>(dims_.RangeOf(extent).max, 1);
  }
  DType dtype = stage.value->dtype();
  stage.local = Make(Op::kLocal, dtype, {}, ScratchArgument{kernel.num_locals++, size});
  const UOp* state = stage.local;
  std::vector<const UOp*> inside = {stage.local};
  for (int scope : ChainOf(stage.scope)) inside.push_back(scopes_[scope].range);
  if (inside.size() > 1) state = Make(Op::kAfter, DType(), inside);
  Shape index;
  for (size_t i : stage.free) index.push_back(requests_[stage.request].at.index[i]);
  const UOp* address = Make(Op::kIndex, DType(), {state, map_.Linear(index, stage.extents)});
  stage.end =
      Make(Op::kStore, DType(), {address, requests_[stage.request].node}, AlignmentArgument{});
  for (size_t i = stage.ranges.size(); i-- > 0;) {
    stage.end = Make(Op::kEnd, DType(), {stage.ranges[i], stage.end});
  }
  return absl::OkStatus();
}

// The element that a request stands for, in its kernel. Iterative: chains of values are long.
absl::StatusOr<const UOp*> Scheduler::BuildRequest(int root) {
  std::vector<int> stack = {root};
  while (!stack.empty()) {
    int number = stack.back();
    if (requests_[number].node != nullptr) {
      stack.pop_back();
      continue;
    }
    size_t waiting = stack.size();
    auto need = [&](int request) {
      if (requests_[request].node == nullptr) stack.push_back(request);
    };
    Request& request = requests_[number];
    if (request.stage >= 0) {
      if (stages_[request.stage].end == nullptr) need(stages_[request.stage].request);
    } else if (!request.is_load) {
      for (size_t i = request.sources.size(); i-- > 0;) need(request.sources[i]);
    }
    if (stack.size() > waiting) continue;
    if (request.stage >= 0 && stages_[request.stage].end == nullptr) {
      SVOD_RETURN_IF_ERROR(BuildStage(request.stage));
    }
    SVOD_RETURN_IF_ERROR(BuildElement(request));
    stack.pop_back();
  }
  return requests_[root].node;
}

// --- Stores -----------------------------------------------------------------------------------

const UOp* Scheduler::EndOf(absl::Span<const UOp* const> loops, const UOp* effect) {
  for (size_t i = loops.size(); i-- > 0;) {
    effect = Make(Op::kEnd, DType(), {loops[i], effect});
  }
  return effect;
}

// Updates go in one after another, after the copy of what they are folded into.
absl::StatusOr<const UOp*> Scheduler::BuildScatter(Kernel& kernel, const UOp* copied) {
  const UOp* node = kernel.root;
  const auto& scatter = node->arg<ScatterArgument>();
  const Region& region = kernel.regions[1];
  SVOD_ASSIGN_OR_RETURN(const UOp* position, BuildRequest(region.positions));
  SVOD_ASSIGN_OR_RETURN(const UOp* update, BuildRequest(region.value));
  SVOD_ASSIGN_OR_RETURN(ShapeSpan shape, shapes_.Of(node));
  if (position->dtype() != Scalar::kIndex) {
    position = Make(Op::kCast, Scalar::kIndex, {position});
  }
  Shape index = requests_[region.positions].at.index;
  index[static_cast<size_t>(scatter.axis)] = position;
  const UOp* gate = map_.InRange(position, shape[static_cast<size_t>(scatter.axis)]);
  const UOp* state = Make(Op::kAfter, DType(), {kernel.operands[0].param, copied});
  std::vector<const UOp*> inside = {state};
  inside.insert(inside.end(), region.loops.begin(), region.loops.end());
  if (inside.size() > 1) state = Make(Op::kAfter, DType(), inside);
  std::vector<const UOp*> address = {state, map_.Linear(index, shape)};
  if (gate != nullptr) address.push_back(gate);
  const UOp* at = Make(Op::kIndex, DType(), address);
  if (scatter.kind != ScatterKind::kSet) {
    const UOp* old = Make(Op::kLoad, node->dtype(), {at}, AlignmentArgument{});
    update = Make(ScatterOp(scatter.kind), DType(), {old, update});
  }
  return EndOf(region.loops, Make(Op::kStore, DType(), {at, update}, AlignmentArgument{}));
}

// Whether a kernel reads the buffer that it writes at just the element that it then writes.
bool Scheduler::IsInPlace(const Kernel& kernel, const UOp* effect, const UOp* position) {
  for (const UOp* node : Toposort(effect)) {
    if (node->op() != Op::kLoad || BaseBuffer(node->source(0)) != kernel.operands[0].param)
      continue;
    const UOp* index = node->source(0);
    if (index->source(1) != position || index->num_sources() == 3) return false;
  }
  return true;
}

// Whether a kernel does nothing but move a whole buffer.
absl::StatusOr<bool> Scheduler::IsCopy(const Kernel& kernel, ShapeSpan shape, const UOp* value,
                                       const UOp* position) {
  if (kernel.root->op() == Op::kScatter || kernel.operands.size() != 2 ||
      value->op() != Op::kLoad) {
    return false;
  }
  const UOp* index = value->source(0);
  if (BaseBuffer(index) != kernel.operands[1].param || index->num_sources() == 3 ||
      index->source(1) != position) {
    return false;
  }
  // A part of a buffer may begin where the buffer does.
  if (kernel.root->op() == Op::kAssign && IsMovement(kernel.root->source(0)->op())) return false;
  SVOD_ASSIGN_OR_RETURN(ShapeSpan from, shapes_.Of(kernel.operands[1].source));
  return dims_.Same(dims_.Product(from), dims_.Product(shape));
}

absl::Status Scheduler::BuildKernel(int number) {
  Kernel& kernel = kernels_[number];
  const UOp* root = kernel.root;
  bool is_assign = root->op() == Op::kAssign, is_scatter = root->op() == Op::kScatter;
  const UOp* base = is_assign ? AssignedState(root) : root;
  SVOD_ASSIGN_OR_RETURN(ShapeSpan known, shapes_.Of(base));
  Shape shape(known.begin(), known.end());

  bool reads_itself = false, is_safe = true;
  if (is_assign) {
    for (int request : kernel.state_loads) {
      const UOp* state = requests_[request].value;
      if (!requests_[request].is_load || StorageOf(state) != StorageOf(base)) continue;
      // Older states are copied: the order of the kernels asks for that.
      if (demands_.snapshots.contains(state) || VersionOf(state) != VersionOf(base)) continue;
      reads_itself = true;
      is_safe = is_safe && BaseBuffer(state) == BaseBuffer(base);
      kernel.operand_of[state] = 0;
    }
    for (const UOp* state : kernel.gathered) {
      if (!IsState(state) || StorageOf(state) != StorageOf(base)) continue;
      if (demands_.snapshots.contains(state) || VersionOf(state) != VersionOf(base)) continue;
      reads_itself = true;
      is_safe = false;
    }
  }
  bool folds = is_scatter && root->arg<ScatterArgument>().kind != ScatterKind::kSet;
  Access access = folds || reads_itself ? Access::kInOut : Access::kOut;
  const UOp* out = Make(Op::kParam, base->dtype(), shape, ParamArgument{0, access, ""});
  kernel.operands.push_back({root, out});

  Position target = kernel.regions[0].target;
  if (is_assign) {
    for (const UOp* x = root->source(0); x != base; x = x->source(0)) {
      SVOD_ASSIGN_OR_RETURN(target, map_.Through(x, target.index));
    }
  }
  SVOD_ASSIGN_OR_RETURN(const UOp* value, BuildRequest(kernel.regions[0].value));
  const UOp* position = map_.Linear(target.index, shape);
  const UOp* address = Make(Op::kIndex, DType(), {out, position});
  const UOp* effect = Make(Op::kStore, DType(), {address, value}, AlignmentArgument{});
  if (reads_itself && !(is_safe && IsInPlace(kernel, effect, position))) {
    const UOp* written = root->source(1);
    (IsState(written) ? demands_.snapshots : demands_.materialised).insert(written);
  }
  SVOD_ASSIGN_OR_RETURN(kernel.is_copy, IsCopy(kernel, shape, value, position));
  Launch launch;
  if (is_scatter) {
    effect = EndOf(kernel.regions[0].loops, effect);
    SVOD_ASSIGN_OR_RETURN(effect, BuildScatter(kernel, effect));
  } else {
    launch = PlanLaunch(kernel, effect);
    effect = EndOf(launch.loops, effect);
  }
  SVOD_RETURN_IF_ERROR(build_error_);
  SVOD_ASSIGN_OR_RETURN(kernel.sink, Canonicalise(kernel, effect, launch));
  return absl::OkStatus();
}

}  // namespace svod
