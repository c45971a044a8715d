#include "ir/access_order.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"

namespace svod {
namespace {

// What each access may do on average: conflict tests and steps of path search.
constexpr int64_t kTestsPerAccess = 32;
constexpr int64_t kVisitsPerAccess = 64;
constexpr size_t kMaxAfter = 64;      // more than this many: a join
constexpr size_t kMaxLocations = 64;  // of one closed loop, before it may touch anything
constexpr int64_t kMaxOffset = int64_t{1} << 40;  // far from where sums of positions wrap

bool ClosesLoops(const UOp* node) { return node->op() == Op::kEnd || node->op() == Op::kReduce; }

absl::Span<const UOp* const> ClosedRanges(const UOp* closer) {
  return closer->op() == Op::kEnd ? closer->sources().subspan(0, 1) : closer->sources().subspan(1);
}

absl::uint128 Bit(int depth) { return absl::uint128(1) << depth; }

int HighestBit(absl::uint128 bits) {
  uint64_t high = absl::Uint128High64(bits);
  if (high != 0) return 127 - __builtin_clzll(high);
  return 63 - __builtin_clzll(absl::Uint128Low64(bits));
}

// A buffer whose contents stay the same needs no order.
bool NeverChanges(const UOp* base) {
  return base->op() == Op::kParam && base->arg<ParamArgument>().access == Access::kIn;
}

struct Position {
  const UOp* base;  // null: the offset alone
  int64_t offset;
};

Position Decompose(const UOp* position) {
  auto is_offset = [](const UOp* node) {
    return IsConst(node) && !node->dtype().is_vector() && ConstInt(node) > -kMaxOffset &&
           ConstInt(node) < kMaxOffset;
  };
  if (is_offset(position)) return {nullptr, ConstInt(position)};
  if (position->op() == Op::kAdd) {
    if (is_offset(position->source(1))) return {position->source(0), ConstInt(position->source(1))};
    if (is_offset(position->source(0))) return {position->source(1), ConstInt(position->source(0))};
  }
  return {position, 0};
}

bool SamePlace(const UOp* index_a, const UOp* index_b) {
  return index_a->source(1) == index_b->source(1) &&
         index_a->num_sources() == index_b->num_sources() &&
         (index_a->num_sources() < 3 || index_a->source(2) == index_b->source(2));
}

}  // namespace

AccessOrder::AccessOrder() : infos_(1), frames_(1), is_open_(1, true) {}

uint32_t AccessOrder::NumberOf(const UOp* node) const {
  auto it = numbers_.find(node);
  return it == numbers_.end() ? 0 : it->second;
}

const AccessOrder::Info* AccessOrder::Find(const UOp* node) const {
  uint32_t number = NumberOf(node);
  return number == 0 ? nullptr : &infos_[number];
}

absl::uint128 AccessOrder::LoopsOf(const UOp* node) const {
  const Info* info = node == nullptr ? nullptr : Find(node);
  return info == nullptr ? 0 : info->loops;
}

void AccessOrder::Note(const UOp* node) {
  if (IsConst(node)) return;
  uint32_t number = static_cast<uint32_t>(infos_.size());
  if (!numbers_.try_emplace(node, number).second) return;
  Info info{node};
  for (const UOp* source : node->sources()) {
    const Info* of_source = Find(source);
    if (of_source == nullptr) continue;
    info.loops |= of_source->loops;
    info.last_access = std::max(info.last_access, of_source->last_access);
  }
  Op op = node->op();
  if (ClosesLoops(node)) {
    for (const UOp* range : ClosedRanges(node)) info.loops &= ~Bit(Find(range)->home);
  }
  if (ClosesLoops(node) || op == Op::kLoad || op == Op::kStore || op == Op::kAfter) {
    info.last_access = number;
  }
  if (info.loops != 0) info.loop = frames_[HighestBit(info.loops) + 1].serial;
  infos_.push_back(info);
}

bool AccessOrder::IsInOpenLoops(const UOp* node) const {
  const Info* info = Find(node);
  return info == nullptr || info->loop < 0 || is_open_[info->loop];
}

bool AccessOrder::IsInReducedLoops(const UOp* node) const {
  if (IsInOpenLoops(node)) return true;
  int32_t loop = Find(node)->loop;
  return std::any_of(reduced_.begin(), reduced_.end(),
                     [&](const Frame& frame) { return frame.serial == loop; });
}

bool AccessOrder::IsTakenUp(const UOp* node) const {
  const Info* info = Find(node);
  return info != nullptr && info->taken_up;
}

// --- Loops ------------------------------------------------------------------------------------

void AccessOrder::Open(const UOp* range) {
  FinishReduces();
  Info* info = Find(range);
  info->home = num_open();
  info->loops |= Bit(info->home);
  info->loop = static_cast<int32_t>(is_open_.size());
  is_open_.push_back(true);
  Frame frame;
  frame.range = range;
  frame.serial = info->loop;
  frames_.push_back(std::move(frame));
}

void AccessOrder::Close(absl::Span<const UOp* const> ranges, const UOp* closer) {
  FinishReduces();
  for (size_t i = 0; i < ranges.size(); ++i) {
    is_open_[frames_.back().serial] = false;
    reduced_.push_back(std::move(frames_.back()));
    frames_.pop_back();
  }
  reduces_.push_back(closer);
  if (closer->op() == Op::kEnd) {
    FinishReduces();
    AddEffect(closer);
  }
}

bool AccessOrder::AlsoCloses(const UOp* reduce) {
  if (reduces_.empty() || ClosedRanges(reduces_.front()) != ClosedRanges(reduce)) return false;
  if (std::find(reduces_.begin(), reduces_.end(), reduce) == reduces_.end()) {
    reduces_.push_back(reduce);
  }
  return true;
}

const UOp* AccessOrder::FinishReduces() {
  if (reduces_.empty()) return nullptr;
  std::vector<const UOp*> closers = std::move(reduces_);
  std::vector<Frame> closed = std::move(reduced_);
  reduces_.clear();
  reduced_.clear();

  const UOp* lost = nullptr;
  auto first_pending = [&]() -> const UOp* {
    for (const Frame& frame : closed) {
      for (const UOp* effect : frame.effects) {
        if (!IsTakenUp(effect)) return effect;
      }
    }
    return nullptr;
  };
  for (const UOp* closer : closers) {
    const UOp* before = first_pending();
    if (before == nullptr) break;
    TakeUp(closer);
    lost = first_pending();
    // A reduce that performs stores is an effect itself: it must not get lost.
    if (lost != before && closer->op() == Op::kReduce) AddEffect(closer);
  }

  if (closers.size() == 1) {
    for (Frame& frame : closed) {
      Merge(frame.histories, [&](const UOp*) { return closers.front(); }, {});
    }
    return lost;
  }
  // Each access is known by the first reduce that depends on it; one without is never performed.
  absl::flat_hash_map<const UOp*, const UOp*> closer_of;
  uint32_t oldest = NumberOf(closed.back().range);
  std::vector<const UOp*> stack;
  for (const UOp* closer : closers) {
    stack.push_back(closer);
    while (!stack.empty()) {
      const UOp* node = stack.back();
      stack.pop_back();
      for (const UOp* source : node->sources()) {
        if (NumberOf(source) > oldest && closer_of.try_emplace(source, closer).second) {
          stack.push_back(source);
        }
      }
    }
  }
  for (Frame& frame : closed) {
    Merge(
        frame.histories,
        [&](const UOp* node) -> const UOp* {
          auto it = closer_of.find(node);
          return it == closer_of.end() ? nullptr : it->second;
        },
        closers);
  }
  return lost;
}

void AccessOrder::Merge(Histories& from, absl::FunctionRef<const UOp*(const UOp*)> closer_of,
                        absl::Span<const UOp* const> group) {
  for (auto& [base, history] : from) {
    std::vector<Entry> merged;  // by closer, of which there are few
    auto entry_of = [&](const UOp* node, absl::Span<const UOp* const> others) -> Entry* {
      const UOp* closer = closer_of(node);
      for (size_t i = 0; closer == nullptr && i < others.size(); ++i) closer = closer_of(others[i]);
      if (closer == nullptr) return nullptr;
      for (Entry& entry : merged) {
        if (entry.node == closer) return &entry;
      }
      merged.push_back({});
      merged.back().node = closer;
      merged.back().group.assign(group.begin(), group.end());
      return &merged.back();
    };
    if (history.has_forgotten) {
      if (Entry* entry = entry_of(history.join, {})) {
        entry->loads_anything = entry->stores_anything = true;
      }
    }
    for (const Entry& old : history.entries) {
      Entry* entry = old.node == nullptr ? nullptr : entry_of(old.node, old.group);
      if (entry == nullptr) continue;
      entry->loads_anything |= old.loads_anything;
      entry->stores_anything |= old.stores_anything;
      for (const Location& location : old.locations) {
        bool& anything = location.is_store ? entry->stores_anything : entry->loads_anything;
        if (anything) continue;
        if (entry->locations.size() < kMaxLocations) {
          entry->locations.push_back(location);
        } else {
          anything = true;
        }
      }
    }
    History& target = frames_.back().histories[base];
    for (Entry& entry : merged) {
      target.closed_loops.push_back(static_cast<uint32_t>(target.entries.size()));
      target.entries.push_back(std::move(entry));
    }
  }
}

// --- Effects ----------------------------------------------------------------------------------

void AccessOrder::AddEffect(const UOp* effect) {
  TakeUp(effect);
  Find(effect)->home = frames_.back().serial;
  frames_.back().effects.push_back(effect);
}

// Everything under an effect was taken up when it came, so each node is walked over once in all.
void AccessOrder::TakeUp(const UOp* node) {
  std::vector<const UOp*> stack = {node};
  while (!stack.empty()) {
    const UOp* user = stack.back();
    stack.pop_back();
    for (const UOp* source : user->sources()) {
      Info* info = Find(source);
      if (info == nullptr || info->taken_up) continue;
      info->taken_up = true;
      if (!IsEffect(source->op())) stack.push_back(source);
    }
  }
}

std::vector<const UOp*> AccessOrder::PendingEffects() const {
  std::vector<const UOp*> pending;
  for (const UOp* effect : frames_.back().effects) {
    if (!IsTakenUp(effect)) pending.push_back(effect);
  }
  return pending;
}

bool AccessOrder::IsHere(const UOp* effect) const {
  const Info* info = Find(effect);
  return info != nullptr && IsEffect(effect->op()) && info->home == frames_.back().serial;
}

// --- Accesses ---------------------------------------------------------------------------------

AccessOrder::Plan AccessOrder::PlanAccess(const Access& access, AfterOf after_of) {
  FinishReduces();
  Plan plan;
  plan.state = access.state;
  const UOp* base = BaseBuffer(access.state);
  if (NeverChanges(base) && !access.is_store) return plan;
  credits_.tests += kTestsPerAccess;
  credits_.visits += kVisitsPerAccess;

  StartSearch();
  absl::uint128 loops = 0;
  auto depend = [&](const UOp* node) {
    Visit(node);
    loops |= LoopsOf(node);
  };
  depend(access.state);
  for (const UOp* source : access.index->sources().subspan(1)) depend(source);
  if (access.other != nullptr) depend(access.other);

  bool is_exact = true;
  std::vector<uint32_t> found;
  for (size_t f = frames_.size(); f-- > 0 && is_exact;) {
    auto it = frames_[f].histories.find(base);
    if (it == frames_[f].histories.end()) continue;
    const History& history = it->second;
    found.clear();
    is_exact = FindConflicts(access, history, &found);
    if (!is_exact) break;
    std::sort(found.begin(), found.end(), std::greater<uint32_t>());
    for (uint32_t i : found) {
      const UOp* earlier = history.entries[i].node;
      if (IsReached(earlier)) continue;
      plan.after.push_back(earlier);
      depend(earlier);
    }
    if (history.join != nullptr) {
      if (!IsReached(history.join)) {
        depend(history.join);
        // The join is itself a state of the buffer.
        if (plan.state == base) {
          plan.state = history.join;
        } else {
          plan.after.push_back(history.join);
        }
      }
      break;
    }
    is_exact = plan.after.size() <= kMaxAfter;
  }
  std::reverse(plan.after.begin(), plan.after.end());
  if (!is_exact || plan.after.size() > kMaxAfter) {
    if (!JoinAll(access, after_of, &plan)) return plan;
    for (const auto& [frame, join] : plan.joins) {
      for (const UOp* source : join->sources()) loops |= LoopsOf(source);
    }
    loops |= LoopsOf(plan.state);
    for (const UOp* node : plan.after) loops |= LoopsOf(node);
  }
  for (int depth = 0; depth < num_open(); ++depth) {
    if ((loops & Bit(depth)) == 0) plan.after.push_back(open_range(depth));
  }
  return plan;
}

// Lets one AFTER a loop stand for everything that has happened to the buffer so far.
bool AccessOrder::JoinAll(const Access& access, AfterOf after_of, Plan* plan) {
  const UOp* base = BaseBuffer(access.state);
  const UOp* join = nullptr;
  for (size_t f = 0; f < frames_.size(); ++f) {
    auto it = frames_[f].histories.find(base);
    if (it == frames_[f].histories.end()) continue;
    const History& history = it->second;
    // A loop's own join comes after those of the loops around it.
    if (history.join != nullptr) join = history.join;
    std::vector<const UOp*> sources = {join != nullptr ? join : base};
    absl::flat_hash_set<const UOp*> seen;
    for (const Entry& entry : history.entries) {
      if (entry.node != nullptr && seen.insert(entry.node).second) sources.push_back(entry.node);
    }
    if (sources.size() == 1) continue;
    join = after_of(sources);
    if (join == nullptr) {
      plan->ok = false;
      return false;
    }
    plan->joins.push_back({static_cast<int>(f), join});
  }
  plan->after.clear();
  plan->state = access.state;
  if (join == nullptr) return true;
  if (access.state == base) {
    plan->state = join;
  } else {
    plan->after.push_back(join);
  }
  return true;
}

void AccessOrder::Commit(const UOp* node, const Access& access, const Plan* plan) {
  FinishReduces();
  const UOp* base = BaseBuffer(access.state);
  if (plan != nullptr) {
    for (const auto& [frame, join] : plan->joins) {
      Note(join);
      History& history = frames_[frame].histories[base];
      history = {};
      history.join = join;
      history.has_forgotten = true;
    }
  }
  bool is_new = !IsNoted(node);
  Note(node->source(0)->source(0));
  Note(node->source(0));
  Note(node);
  if (!is_new) return;
  if (!NeverChanges(base) || access.is_store) Record(node, access, plan != nullptr);
  if (access.is_store) AddEffect(node);
}

void AccessOrder::Record(const UOp* node, const Access& access, bool is_ordered) {
  History& history = frames_.back().histories[BaseBuffer(access.state)];
  Position position = Decompose(access.index->source(1));
  auto [it, is_new] =
      history.group_of.try_emplace(position.base, static_cast<uint32_t>(history.groups.size()));
  if (is_new) {
    history.groups.push_back({});
    history.groups.back().base = position.base;
  }
  Group& group = history.groups[it->second];
  group.widest = std::max<int64_t>(group.widest, access.lanes);
  std::vector<uint32_t>& here = group.entries[position.offset];
  if (access.is_store && is_ordered) {
    // Whoever must come after an earlier access of this very place, must come after this one.
    auto is_replaced = [&](uint32_t i) {
      const Location& earlier = history.entries[i].locations.front();
      if (!SamePlace(earlier.index, access.index) || earlier.lanes > access.lanes) return false;
      history.entries[i].node = nullptr;
      return true;
    };
    here.erase(std::remove_if(here.begin(), here.end(), is_replaced), here.end());
  }
  here.push_back(static_cast<uint32_t>(history.entries.size()));
  Entry entry;
  entry.node = node;
  entry.locations.push_back({access.index, access.lanes, access.is_store});
  history.entries.push_back(std::move(entry));
}

// False when the credits are used up.
bool AccessOrder::FindConflicts(const Access& access, const History& history,
                                std::vector<uint32_t>* found) {
  Position position = Decompose(access.index->source(1));
  auto test = [&](uint32_t i) {
    if (EntryConflicts(access, history.entries[i])) found->push_back(i);
    return credits_.tests > 0;
  };
  for (const Group& group : history.groups) {
    auto from = group.entries.begin(), to = group.entries.end();
    if (group.base == position.base) {
      from = group.entries.upper_bound(position.offset - group.widest);
      to = group.entries.lower_bound(position.offset + access.lanes);
    }
    --credits_.tests;
    for (; from != to; ++from) {
      for (uint32_t i : from->second) {
        if (!test(i)) return false;
      }
    }
  }
  for (uint32_t i : history.closed_loops) {
    if (!test(i)) return false;
  }
  return true;
}

bool AccessOrder::EntryConflicts(const Access& access, const Entry& entry) {
  if (entry.stores_anything || (entry.loads_anything && access.is_store)) return true;
  for (const Location& location : entry.locations) {
    if (!access.is_store && !location.is_store) continue;
    --credits_.tests;
    if (MayOverlap(location.index, location.lanes, access.index, access.lanes, ranges_)) {
      return true;
    }
  }
  return false;
}

// --- Paths ------------------------------------------------------------------------------------

// The search goes on from the latest access to ever earlier ones: what is reached stays reached,
// and nothing is looked at twice for one access.
void AccessOrder::StartSearch() {
  ++search_;
  heap_.clear();
}

void AccessOrder::Visit(const UOp* node) {
  uint32_t number = NumberOf(node);
  if (number == 0 || infos_[number].visited == search_) return;
  infos_[number].visited = search_;
  heap_.push_back({infos_[number].last_access, number});
  std::push_heap(heap_.begin(), heap_.end());
}

bool AccessOrder::IsReached(const UOp* target) {
  uint32_t number = NumberOf(target);
  while (infos_[number].visited != search_ && !heap_.empty() && heap_.front().first >= number &&
         credits_.visits > 0) {
    const UOp* node = infos_[heap_.front().second].node;
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    credits_.visits -= node->num_sources() + 1;
    for (const UOp* source : node->sources()) Visit(source);
  }
  return infos_[number].visited == search_;
}

}  // namespace svod
