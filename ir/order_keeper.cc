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

}  // namespace

absl::Status OrderKeeper::Prepare() {
  if (linear_.has_value()) return absl::OkStatus();
  SVOD_ASSIGN_OR_RETURN(linear_, Linearize(root_));
  absl::flat_hash_set<const UOp*> reads;  // nodes above a read of memory that changes
  for (const UOp* node : Toposort(root_)) {
    bool read = IsOrderedAccess(node);
    for (const UOp* source : node->sources()) read = read || reads.contains(source);
    if (read) reads.insert(node);
    if (read && node->op() == Op::kReduce) ordered_reduces_.insert(node);
    if (node->op() != Op::kEnd) continue;
    for (const UOp* effect : node->sources().subspan(1)) listed_in_[effect] = node;
  }
  return absl::OkStatus();
}

// What `access` comes after, not by way of another such thing: effects, accesses of memory that
// changes, reductions of those, and the loops around it.
std::vector<const UOp*> OrderKeeper::Dependences(const UOp* access) const {
  absl::flat_hash_set<const UOp*> around;
  auto loop = linear_->loop_of.find(access);
  if (loop != linear_->loop_of.end()) {
    const UOp* range = loop->second;
    while (around.insert(range).second) {
      auto parent = linear_->parent_loop.find(range);
      if (parent == linear_->parent_loop.end()) break;
      range = parent->second;
    }
  }
  // An END keeps what it lists, and is kept by what lists it, in their loops.
  for (auto it = listed_in_.find(access); it != listed_in_.end();
       it = listed_in_.find(it->second)) {
    around.erase(it->second->source(0));
  }

  std::vector<const UOp*> found;
  absl::flat_hash_set<const UOp*> seen;
  std::vector<const UOp*> stack(access->sources().rbegin(), access->sources().rend());
  while (!stack.empty()) {
    const UOp* node = stack.back();
    stack.pop_back();
    if (!seen.insert(node).second) continue;
    bool stops = IsEffect(node->op()) || IsOrderedAccess(node) || ordered_reduces_.contains(node) ||
                 node->op() == Op::kRange;
    if (!stops) {
      stack.insert(stack.end(), node->sources().rbegin(), node->sources().rend());
    } else if (node->op() != Op::kRange || around.contains(node)) {
      found.push_back(node);
    }
  }
  return found;
}

absl::StatusOr<const UOp*> OrderKeeper::Keep(
    const UOp* old, const UOp* rebuilt,
    const absl::flat_hash_map<const UOp*, const UOp*>& renewed) {
  if (old == rebuilt || !IsOrderedAccess(old)) return rebuilt;
  SVOD_RETURN_IF_ERROR(Prepare());
  std::vector<const UOp*> needed = Dependences(old);
  if (needed.empty()) return rebuilt;

  // All that the new access comes after, as far as the next accesses.
  absl::flat_hash_set<const UOp*> seen;
  std::vector<const UOp*> stack(rebuilt->sources().begin(), rebuilt->sources().end());
  while (!stack.empty()) {
    const UOp* node = stack.back();
    stack.pop_back();
    if (!seen.insert(node).second || IsEffect(node->op()) || IsOrderedAccess(node)) continue;
    stack.insert(stack.end(), node->sources().begin(), node->sources().end());
  }
  const UOp* index = rebuilt->source(0);
  const UOp* state = index->source(0);
  std::vector<const UOp*> after(state->sources().begin(), state->sources().end());
  if (state->op() != Op::kAfter) after = {state};
  const size_t before = after.size();
  for (const UOp* node : needed) {
    auto it = renewed.find(node);
    const UOp* now = it == renewed.end() ? node : it->second;
    if (!seen.contains(now)) after.push_back(now);
  }
  if (after.size() == before) return rebuilt;

  std::vector<const UOp*> sources(index->sources().begin(), index->sources().end());
  SVOD_ASSIGN_OR_RETURN(sources[0], context_.Make(Op::kAfter, after));
  SVOD_ASSIGN_OR_RETURN(const UOp* kept_index, context_.Make(Op::kIndex, sources));
  sources.assign(rebuilt->sources().begin(), rebuilt->sources().end());
  sources[0] = kept_index;
  return context_.Make(rebuilt->op(), rebuilt->dtype(), sources, rebuilt->argument());
}

}  // namespace svod
