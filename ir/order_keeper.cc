#include "ir/order_keeper.h"

#include "ir/status_macros.h"

namespace svod {
namespace {

// Loads of an `in` parameter give the same value at any time.
bool MayChange(const UOp* buffer) {
  return buffer->op() != Op::kParam || buffer->arg<ParamArgument>().access != Access::kIn;
}

bool IsOrderedAccess(const UOp* node) {
  return (node->op() == Op::kLoad || node->op() == Op::kStore) &&
         MayChange(BaseBuffer(node->source(0)));
}

bool IsOrdered(const UOp* node) { return IsOrderedAccess(node) || IsEffect(node->op()); }

}  // namespace

absl::Status OrderKeeper::Prepare() {
  if (linear_.has_value()) return absl::OkStatus();
  SVOD_ASSIGN_OR_RETURN(linear_, Linearize(root_));
  NodeSet reads;  // nodes above a read of memory that changes
  for (const Step& step : linear_->steps) {
    const UOp* node = step.node;
    if (step.kind != Step::Kind::kCompute) continue;
    bool read = IsOrderedAccess(node);
    for (const UOp* source : node->sources()) read = read || reads.contains(source);
    if (read) reads.insert(node);
    if (read && node->op() == Op::kReduce) ordered_reduces_.insert(node);
    if (node->op() == Op::kEnd) {
      for (const UOp* effect : node->sources().subspan(1)) listed_in_[effect] = node;
    }
    if (!IsOrdered(node) && !ordered_reduces_.contains(node)) continue;
    auto loop = linear_->loop_of.find(node);
    home_[node] = loop == linear_->loop_of.end() ? nullptr : loop->second;
    if (IsEffect(node->op())) effects_.push_back(node);
  }
  return absl::OkStatus();
}

OrderKeeper::NodeSet OrderKeeper::LoopsAround(const UOp* access) const {
  NodeSet around;
  for (const UOp* range = home_.find(access)->second; range != nullptr;) {
    around.insert(range);
    auto parent = linear_->parent_loop.find(range);
    range = parent == linear_->parent_loop.end() ? nullptr : parent->second;
  }
  return around;
}

// Whether an access or effect stands directly in one of the loops, or in none at all.
bool OrderKeeper::IsIn(const UOp* node, const NodeSet& loops) const {
  auto it = home_.find(node);
  return it != home_.end() && (it->second == nullptr || loops.contains(it->second));
}

absl::StatusOr<const UOp*> OrderKeeper::Keep(const UOp* old, const UOp* rebuilt,
                                             const Renewed& renewed) {
  if (old == rebuilt || !IsOrdered(old)) return rebuilt;
  SVOD_RETURN_IF_ERROR(Prepare());
  if (IsOrderedAccess(old)) {
    SVOD_ASSIGN_OR_RETURN(rebuilt, KeepAccess(old, rebuilt, renewed));
  }
  if (old->op() != Op::kSink) home_[rebuilt] = home_[old];
  return rebuilt;
}

absl::StatusOr<const UOp*> OrderKeeper::KeepAccess(const UOp* old, const UOp* rebuilt,
                                                   const Renewed& renewed) {
  const NodeSet around = LoopsAround(old);
  // An END keeps what it lists, and is kept by what lists it, in their loops.
  NodeSet tied;
  for (auto it = listed_in_.find(old); it != listed_in_.end(); it = listed_in_.find(it->second)) {
    tied.insert(it->second->source(0));
  }

  // What `old` comes after, not by way of another such thing: accesses and effects in the loops
  // around it, those loops, and reductions that read memory. Inside of the latter it goes on, as
  // their loads may be gone from the new ones.
  std::vector<const UOp*> needed, inside;
  NodeSet seen;
  std::vector<const UOp*> stack(old->sources().rbegin(), old->sources().rend());
  while (!stack.empty()) {
    const UOp* node = stack.back();
    stack.pop_back();
    if (!seen.insert(node).second) continue;
    if (node->op() == Op::kRange) {
      if (around.contains(node) && !tied.contains(node)) needed.push_back(node);
      continue;
    }
    const bool is_here = IsIn(node, around), stops = is_here && IsOrdered(node);
    if (is_here) needed.push_back(node);
    if (!is_here && IsOrderedAccess(node)) inside.push_back(node);
    if (!stops) stack.insert(stack.end(), node->sources().rbegin(), node->sources().rend());
  }
  if (needed.empty()) return rebuilt;

  // The same of the new access, where what is reached is enough.
  seen.clear();
  stack.assign(rebuilt->sources().begin(), rebuilt->sources().end());
  while (!stack.empty()) {
    const UOp* node = stack.back();
    stack.pop_back();
    if (!seen.insert(node).second || (IsOrdered(node) && IsIn(node, around))) continue;
    stack.insert(stack.end(), node->sources().begin(), node->sources().end());
  }
  const UOp* index = rebuilt->source(0);
  const UOp* state = index->source(0);
  std::vector<const UOp*> after(state->sources().begin(), state->sources().end());
  if (state->op() != Op::kAfter) after = {state};
  const size_t before = after.size();
  for (const UOp* node : needed) {
    const UOp* now = renewed.find(node)->second;
    if (seen.insert(now).second) after.push_back(now);
  }
  // A load in a loop that several reductions share may be left to another one of them.
  for (const UOp* node : inside) {
    if (seen.contains(renewed.find(node)->second)) continue;
    const UOp* loop = home_[node];
    for (auto parent = linear_->parent_loop.find(loop);
         parent != linear_->parent_loop.end() && !around.contains(parent->second);
         parent = linear_->parent_loop.find(loop)) {
      loop = parent->second;
    }
    for (const UOp* closer : linear_->closers[loop]) {
      auto now = renewed.find(closer);
      bool is_done = now != renewed.end() && now->second != nullptr;
      if (is_done && seen.insert(now->second).second) after.push_back(now->second);
    }
  }
  if (after.size() == before) return rebuilt;

  std::vector<const UOp*> sources(index->sources().begin(), index->sources().end());
  SVOD_ASSIGN_OR_RETURN(sources[0], context_.Make(Op::kAfter, after));
  SVOD_ASSIGN_OR_RETURN(const UOp* kept_index, context_.Make(Op::kIndex, sources));
  sources.assign(rebuilt->sources().begin(), rebuilt->sources().end());
  sources[0] = kept_index;
  return context_.Make(rebuilt->op(), rebuilt->dtype(), sources, rebuilt->argument());
}

bool OrderKeeper::AllPerformed(const UOp* result, const Renewed& renewed) const {
  std::vector<const UOp*> nodes = Toposort(result);
  NodeSet performed(nodes.begin(), nodes.end());
  for (const UOp* effect : effects_) {
    if (!performed.contains(renewed.find(effect)->second)) return false;
  }
  return true;
}

}  // namespace svod
