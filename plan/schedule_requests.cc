// Requests: which elements of which values a kernel needs, found from its result backwards.
#include <algorithm>

#include "ir/status_macros.h"
#include "plan/scheduler.h"

namespace svod {

const Scheduler::RangeSet& Scheduler::RangesIn(const UOp* index) {
  auto known = ranges_in_.find(index);
  if (known != ranges_in_.end()) return known->second;
  for (const UOp* node : Toposort(index)) {
    if (ranges_in_.contains(node)) continue;
    RangeSet set;
    if (node->op() == Op::kRange) set.push_back(node);
    for (const UOp* source : node->sources()) {
      for (const UOp* range : ranges_in_[source]) {
        if (std::find(set.begin(), set.end(), range) == set.end()) set.push_back(range);
      }
    }
    ranges_in_[node] = std::move(set);
  }
  return ranges_in_[index];
}

Scheduler::RangeSet Scheduler::RangesOf(const Position& at) {
  RangeSet set;
  auto add = [&](const UOp* index) {
    for (const UOp* range : RangesIn(index)) {
      if (std::find(set.begin(), set.end(), range) == set.end()) set.push_back(range);
    }
  };
  for (const UOp* index : at.index) add(index);
  if (at.gate != nullptr) add(at.gate);
  return set;
}

const UOp* Scheduler::NewRange(const UOp* extent, bool is_reduce) {
  return Make(Op::kRange, DType(), {extent},
              AxisArgument{num_axes_++, is_reduce ? AxisKind::kReduce : AxisKind::kLoop});
}

int Scheduler::Open(int scope, const UOp* range) {
  double trips = static_cast<double>(std::max<int64_t>(dims_.RangeOf(range->source(0)).max, 1));
  Scope inner{scope, range, trips, 1};
  if (scope >= 0) {
    inner.trips *= scopes_[scope].trips;
    inner.depth = scopes_[scope].depth + 1;
  }
  scopes_.push_back(inner);
  return static_cast<int>(scopes_.size()) - 1;
}

std::vector<int> Scheduler::ChainOf(int scope) const {
  std::vector<int> chain;
  for (; scope >= 0; scope = scopes_[scope].parent) chain.push_back(scope);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

// What of a GATHER's first operand has to be in memory. Constants are shared and stay out of it; a
// pad by a computed value is filled where it is needed, and so has to be in memory itself.
const UOp* Scheduler::GatheredFrom(const UOp* gather) {
  const UOp* base = gather->source(0);
  while (IsMovement(base->op()) && !IsConst(base->source(0))) {
    if (base->op() == Op::kPad && !IsConst(base->source(1))) break;
    base = base->source(0);
  }
  return base;
}

absl::StatusOr<int> Scheduler::Ask(const UOp* value, int kernel, Position at, int scope) {
  std::vector<const void*> key(at.index.begin(), at.index.end());
  key.push_back(at.gate);
  key.push_back(reinterpret_cast<const void*>(static_cast<uintptr_t>(kernel)));
  auto [it, is_new] =
      request_of_.try_emplace({value, std::move(key)}, static_cast<int>(requests_.size()));
  if (!is_new) return it->second;
  RangeSet set = RangesOf(at);
  while (scope >= 0 && std::find(set.begin(), set.end(), scopes_[scope].range) == set.end()) {
    scope = scopes_[scope].parent;
  }
  values_[value].requests.push_back(it->second);
  Request request;
  request.value = value;
  request.kernel = kernel;
  request.at = std::move(at);
  request.scope = scope;
  requests_.push_back(std::move(request));
  if (IsState(value)) kernels_[static_cast<size_t>(kernel)].state_loads.push_back(it->second);
  return it->second;
}

// Asks for what an element is computed from.
absl::Status Scheduler::Expand(int index) {
  // Asking moves requests_ about; what is needed is copied first.
  const UOp* node = requests_[index].value;
  int kernel = requests_[index].kernel, scope = requests_[index].scope;
  Position at = requests_[index].at;
  Op op = node->op();
  if (op == Op::kReduceAxis) return ExpandReduce(index);
  if (op == Op::kGather) return ExpandGather(index);
  if (IsMovement(op)) {
    SVOD_ASSIGN_OR_RETURN(Position from, map_.Through(node, at.index));
    const UOp* select = from.gate;
    from.gate = map_.And(at.gate, from.gate);
    SVOD_ASSIGN_OR_RETURN(int source, Ask(node->source(0), kernel, from, scope));
    requests_[index].sources.push_back(source);
    requests_[source].is_fused = requests_[source].is_fused || requests_[index].is_fused;
    if (select != nullptr) {
      SVOD_ASSIGN_OR_RETURN(int fill, Ask(node->source(1), kernel, {{}, at.gate}, scope));
      requests_[index].sources.push_back(fill);
      requests_[index].select = select;
    }
    return absl::OkStatus();
  }
  if (op == Op::kContiguous) {
    SVOD_ASSIGN_OR_RETURN(int source, Ask(node->source(0), kernel, at, scope));
    requests_[index].sources.push_back(source);
    return absl::OkStatus();
  }
  if (!IsElementwise(op)) return absl::OkStatus();  // ARANGE, constants, variables
  for (const UOp* source : node->sources()) {
    SVOD_ASSIGN_OR_RETURN(ShapeSpan shape, shapes_.Of(source));
    SVOD_ASSIGN_OR_RETURN(int request,
                          Ask(source, kernel, {map_.Broadcast(at.index, shape), at.gate}, scope));
    requests_[index].sources.push_back(request);
  }
  return absl::OkStatus();
}

// Whether a sum is one of float products, which are folded with one rounding. It follows from the
// graph alone, so that no option changes a bit.
bool Scheduler::FoldsProducts(const UOp* reduce) {
  const UOp* product = reduce->source(0);
  while (IsMovement(product->op()) && product->op() != Op::kPad) product = product->source(0);
  Scalar scalar = reduce->dtype().scalar;
  return reduce->arg<ReduceAxesArgument>().kind == ReduceKind::kAdd && product->op() == Op::kMul &&
         (scalar == Scalar::kF32 || scalar == Scalar::kF64);
}

// Whether a float sum or product along the last dimension folds in lanes: always the same ones for
// the same shape. A sum of products in which both operands are used again and again does not: its
// results are computed side by side instead.
bool Scheduler::GroupsLanes(const UOp* reduce) {
  const auto& argument = reduce->arg<ReduceAxesArgument>();
  Scalar scalar = reduce->dtype().scalar;
  bool rounds = argument.kind == ReduceKind::kAdd || argument.kind == ReduceKind::kMul;
  if (!rounds || (scalar != Scalar::kF32 && scalar != Scalar::kF64)) return false;
  absl::StatusOr<ShapeSpan> shape = shapes_.Of(reduce->source(0));
  if (!shape.ok()) return false;
  size_t last = shape->size();
  while (last > 0 && IsConstInt((*shape)[last - 1], 1)) --last;
  if (last == 0 || !std::binary_search(argument.axes.begin(), argument.axes.end(),
                                       static_cast<int64_t>(last) - 1)) {
    return false;
  }
  int64_t longest = dims_.RangeOf((*shape)[last - 1]).max;
  if (longest < kMinGroup) return false;
  if (!IsContraction(reduce)) return !FoldsGroups(reduce->source(0));
  return IsMatrixVector(reduce) && FoldsNeighbours(reduce, last - 1);
}

// Whether some of what a value is computed from, element by element, are sums that fold in lanes
// themselves: theirs lie side by side in memory, those of a sum of such sums do not.
bool Scheduler::FoldsGroups(const UOp* value) {
  absl::flat_hash_set<const UOp*> seen = {value};
  std::vector<const UOp*> todo = {value};
  while (!todo.empty()) {
    const UOp* node = todo.back();
    todo.pop_back();
    if (node->op() == Op::kReduceAxis && GroupsLanes(node)) return true;
    if (!IsElementwise(node->op()) && !IsMovement(node->op())) continue;
    for (const UOp* source : node->sources()) {
      bool is_whole = values_[source].elements >= values_[value].elements;
      if (is_whole && seen.insert(source).second) todo.push_back(source);
    }
  }
  return false;
}

// Whether both operands of a sum of products have what is folded along `axis` side by side in
// memory; else its results are computed side by side, each folded in order.
bool Scheduler::FoldsNeighbours(const UOp* reduce, size_t axis) {
  const UOp* product = reduce->source(0);
  absl::StatusOr<ShapeSpan> shape = shapes_.Of(product);
  if (!shape.ok()) return false;
  Shape counters;
  for (const UOp* extent : *shape) counters.push_back(NewRange(extent, false));
  Shape index = counters;
  auto through = [&](const UOp*& node) {
    while (IsMovement(node->op()) || node->op() == Op::kCast) {
      if (node->op() != Op::kCast) {
        absl::StatusOr<Position> at = map_.Through(node, index);
        if (!at.ok()) return false;
        index = at->index;
      }
      node = node->source(0);
    }
    return true;
  };
  if (!through(product) || product->op() != Op::kMul) return false;
  const Shape of_product = index;
  for (const UOp* operand : product->sources()) {
    absl::StatusOr<ShapeSpan> from = shapes_.Of(operand);
    if (!from.ok()) return false;
    index = map_.Broadcast(of_product, *from);
    if (!through(operand)) return false;
    from = shapes_.Of(operand);
    if (!from.ok()) return false;
    Affine position = RangeAnalysis().AffineOf(map_.Linear(index, *from));
    for (const Term& term : position.terms) {
      bool is_counter = term.atoms.size() == 1 && term.atoms[0].node == counters[axis];
      bool names = std::any_of(term.atoms.begin(), term.atoms.end(),
                               [&](const Atom& atom) { return atom.node == counters[axis]; });
      if (names && !(is_counter && term.coefficient == 1)) return false;
    }
  }
  return true;
}

// A contraction in which one operand has an element for each product: every element is read once.
bool Scheduler::IsMatrixVector(const UOp* reduce) {
  const UOp* product = reduce->source(0);
  while (product->op() == Op::kCast || (IsMovement(product->op()) && product->op() != Op::kPad)) {
    product = product->source(0);
  }
  for (const UOp* operand : product->sources()) {
    while (IsMovement(operand->op()) || operand->op() == Op::kCast) operand = operand->source(0);
    if (values_[operand].elements >= values_[product].elements) return true;
  }
  return false;
}

absl::Status Scheduler::ExpandReduce(int index) {
  const UOp* node = requests_[index].value;
  Position at = requests_[index].at;
  int scope = requests_[index].scope;
  Kernel& kernel = kernels_[static_cast<size_t>(requests_[index].kernel)];
  kernel.has_reduce = true;
  kernel.has_contraction = kernel.has_contraction || IsContraction(node);
  kernel.hoisted_depth = std::min(kernel.hoisted_depth, scope < 0 ? 0 : scopes_[scope].depth);
  SVOD_ASSIGN_OR_RETURN(ShapeSpan shape, shapes_.Of(node->source(0)));
  for (int64_t axis : node->arg<ReduceAxesArgument>().axes) {
    const UOp* extent = shape[static_cast<size_t>(axis)];
    const UOp*& to = at.index[static_cast<size_t>(axis)];
    if (IsConstInt(extent, 1)) {
      to = context_->Index(0);
      continue;
    }
    to = NewRange(extent, true);
    requests_[index].ranges.push_back(to);
    scope = Open(scope, to);
  }
  if (GroupsLanes(node) && !requests_[index].ranges.empty()) {
    kernels_[static_cast<size_t>(requests_[index].kernel)].grouped.push_back(
        requests_[index].ranges.back());
  }
  SVOD_ASSIGN_OR_RETURN(int source, Ask(node->source(0), requests_[index].kernel, at, scope));
  requests_[index].sources.push_back(source);
  if (FoldsProducts(node)) {
    requests_[source].is_fused = true;
    kernels_[static_cast<size_t>(requests_[index].kernel)].fuses_products = true;
  }
  return absl::OkStatus();
}

// What is gathered from has to be in memory, since positions are known at run time only.
absl::Status Scheduler::ExpandGather(int index) {
  const UOp* node = requests_[index].value;
  Value& base = values_[GatheredFrom(node)];
  base.is_forced = true;
  base.force_reason = "a gather reads it";
  kernels_[static_cast<size_t>(requests_[index].kernel)].gathered.push_back(GatheredFrom(node));
  SVOD_ASSIGN_OR_RETURN(int positions, Ask(node->source(1), requests_[index].kernel,
                                           requests_[index].at, requests_[index].scope));
  requests_[index].sources.push_back(positions);
  return absl::OkStatus();
}

}  // namespace svod
