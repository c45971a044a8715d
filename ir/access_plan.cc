// What an access must come after: conflicts with earlier ones, paths to them, and joins.
#include <algorithm>
#include <functional>

#include "absl/container/flat_hash_set.h"
#include "ir/access_order.h"

namespace svod {
namespace {

// What each access may do on average: conflict tests and steps of path search.
constexpr int64_t kTestsPerAccess = 32;
constexpr int64_t kVisitsPerAccess = 64;
constexpr uint32_t kMaxLookedAt = 16;             // entries looked at for gaps
constexpr size_t kMaxAfter = 64;                  // more than this many: a join
constexpr int64_t kMaxOffset = int64_t{1} << 40;  // far from where sums of positions wrap

// A buffer whose contents stay the same needs no order.
bool NeverChanges(const UOp* base) {
  return base->op() == Op::kParam && base->arg<ParamArgument>().access == Access::kIn;
}

// An order that does not hang on that of the statements: printing may exchange independent ones.
template <typename Iterator>
void SortByContent(Iterator begin, Iterator end) {
  std::sort(begin, end, [](const UOp* a, const UOp* b) {
    return std::pair(a->hash().high, a->hash().low) < std::pair(b->hash().high, b->hash().low);
  });
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

// The elements from base + first to base + last, as far as the base is known.
IntRange Elements(const UOp* base, int64_t first, int64_t last, RangeAnalysis& ranges) {
  IntRange range = base == nullptr ? IntRange{0, 0} : ranges.Of(base);
  bool wraps = __builtin_add_overflow(range.min, first, &range.min) ||
               __builtin_add_overflow(range.max, last, &range.max);
  return wraps ? IntRange::Full() : range;
}

}  // namespace

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
  Visit(access.state);
  loops |= LoopsOf(access.state);
  for (const UOp* source : access.index->sources().subspan(1)) {
    Visit(source);
    loops |= LoopsOf(source);
  }
  if (access.other != nullptr) {
    Visit(access.other);
    loops |= LoopsOf(access.other);
  }
  bool is_exact = true;
  for (size_t f = frames_.size(); f-- > 0 && is_exact;) {
    auto it = frames_[f].histories.find(base);
    if (it == frames_[f].histories.end()) continue;
    is_exact = OrderAfter(access, f, &plan) && plan.after.size() <= kMaxAfter;
    // A join comes after all that happened in the loops around its own.
    if (it->second.join != nullptr) break;
  }
  if (!is_exact && !JoinAll(access, after_of, &plan)) return plan;
  for (const auto& [frame, join] : plan.joins) {
    for (const UOp* source : join->sources()) loops |= LoopsOf(source);
  }
  loops |= LoopsOf(plan.state);
  for (const UOp* node : plan.after) loops |= LoopsOf(node);
  SortByContent(plan.after.begin(), plan.after.end());
  for (int depth = 0; depth < num_open(); ++depth) {
    if ((loops & Bit(depth)) == 0) plan.after.push_back(open_range(depth));
  }
  return plan;
}

// Adds to the plan what the access must come after in one frame, from the latest entry on back to
// where an entry that it comes after has come after all before. False when the credits are used up.
bool AccessOrder::OrderAfter(const Access& access, size_t frame, Plan* plan) {
  const UOp* base = BaseBuffer(access.state);
  const History& history = frames_[frame].histories.find(base)->second;
  uint32_t cover = KnownCover(base, frame, *plan);
  auto come_after = [&](const UOp* earlier) {
    if (IsReached(earlier)) return false;
    Visit(earlier);
    return true;
  };
  std::vector<uint32_t> found;
  if (!FindConflicts(access, history, &found)) return false;
  std::sort(found.begin(), found.end(), std::greater<uint32_t>());
  auto single = found.begin();
  auto closed = history.closed_loops.rbegin();
  while (single != found.end() || closed != history.closed_loops.rend()) {
    bool is_single =
        closed == history.closed_loops.rend() || (single != found.end() && *single > *closed);
    uint32_t i = is_single ? *single++ : *closed++;
    if (i < cover) break;
    const Entry& earlier = history.entries[i];
    if (!is_single && !EntryConflicts(access, earlier)) {
      if (credits_.tests <= 0) return false;
      continue;
    }
    // Of several closers one is enough, and a later one may be known already.
    bool is_before = IsVisited(earlier);
    for (const UOp* node : earlier.nodes) is_before = is_before || IsReached(node);
    if (!is_before && come_after(earlier.nodes.front())) {
      plan->after.push_back(earlier.nodes.front());
    }
    cover = std::max(cover, earlier.cover);
  }
  if (history.join != nullptr && cover == 0 && come_after(history.join)) {
    // The join is itself a state of the buffer.
    if (plan->state == base) {
      plan->state = history.join;
    } else {
      plan->after.push_back(history.join);
    }
  }
  // Whether the few entries since then are all before the access as well.
  uint32_t end = static_cast<uint32_t>(history.entries.size());
  uint32_t next = end - cover <= kMaxLookedAt ? cover : end;
  bool is_gapless = next == cover;
  for (; next < end && is_gapless; ++next) {
    const Entry& entry = history.entries[next];
    is_gapless = entry.nodes.empty() || IsVisited(entry);
  }
  plan->covers.push_back({static_cast<uint32_t>(frame), is_gapless ? end : cover});
  return true;
}

// What the entries of inner frames that the access comes after say of a frame around them.
uint32_t AccessOrder::KnownCover(const UOp* base, size_t frame, const Plan& plan) const {
  uint32_t known = 0;
  for (const auto& [inner, cover] : plan.covers) {
    const History& history = frames_[inner].histories.find(base)->second;
    if (history.outer_covers.size() <= frame) continue;
    const auto& [outer_cover, entry] = history.outer_covers[frame];
    if (outer_cover <= known) continue;
    if (entry < cover || IsVisited(history.entries[entry])) known = outer_cover;
  }
  return known;
}

void AccessOrder::AddOuterCover(History* history, size_t frame, uint32_t cover, uint32_t entry) {
  if (history->outer_covers.size() <= frame) history->outer_covers.resize(frame + 1);
  auto& best = history->outer_covers[frame];
  if (cover >= best.first) best = {cover, entry};
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
      if (entry.nodes.empty()) continue;
      if (seen.insert(entry.nodes.front()).second) sources.push_back(entry.nodes.front());
    }
    if (sources.size() == 1) continue;
    SortByContent(sources.begin() + 1, sources.end());
    join = after_of(sources);
    if (join == nullptr) {
      plan->ok = false;
      return false;
    }
    plan->joins.push_back({static_cast<int>(f), join});
  }
  plan->after.clear();
  plan->covers.clear();
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
  if (plan != nullptr && !plan->joins.empty()) {
    for (Frame& frame : frames_) {
      auto it = frame.histories.find(base);
      if (it != frame.histories.end()) it->second.outer_covers.clear();
    }
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
  if (!NeverChanges(base) || access.is_store) Record(node, access, plan);
  if (access.is_store) AddEffect(node);
}

void AccessOrder::Record(const UOp* node, const Access& access, const Plan* plan) {
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
  if (access.is_store && plan != nullptr) {
    // Whoever must come after an earlier access of this very place, must come after this one.
    auto is_replaced = [&](uint32_t i) {
      const Location& earlier = history.entries[i].locations.front();
      if (!SamePlace(earlier.index, access.index) || earlier.lanes > access.lanes) return false;
      history.entries[i].nodes.clear();
      return true;
    };
    here.erase(std::remove_if(here.begin(), here.end(), is_replaced), here.end());
  }
  uint32_t number = static_cast<uint32_t>(history.entries.size());
  here.push_back(number);
  Entry entry;
  entry.nodes = {node};
  if (plan != nullptr) {
    for (const auto& [frame, cover] : plan->covers) {
      if (frame + 1 == frames_.size()) {
        entry.cover = cover;
      } else if (access.is_store) {
        AddOuterCover(&history, frame, cover, number);
      }
    }
  }
  entry.locations.push_back({access.index, access.lanes, access.is_store});
  history.entries.push_back(std::move(entry));
}

// The single accesses that may touch what `access` does. False when the credits are used up.
bool AccessOrder::FindConflicts(const Access& access, const History& history,
                                std::vector<uint32_t>* found) {
  Position position = Decompose(access.index->source(1));
  IntRange reach =
      Elements(position.base, position.offset, position.offset + access.lanes - 1, ranges_);
  auto test = [&](uint32_t i) {
    if (EntryConflicts(access, history.entries[i])) found->push_back(i);
    return credits_.tests > 0;
  };
  for (const Group& group : history.groups) {
    auto from = group.entries.begin(), to = group.entries.end();
    if (group.base == position.base) {
      from = group.entries.upper_bound(position.offset - group.widest);
      to = group.entries.lower_bound(position.offset + access.lanes);
    } else if (from != to) {
      IntRange range = Elements(group.base, from->first,
                                group.entries.rbegin()->first + group.widest - 1, ranges_);
      if (range.max < reach.min || reach.max < range.min) to = from;
    }
    --credits_.tests;
    for (; from != to; ++from) {
      for (uint32_t i : from->second) {
        if (!test(i)) return false;
      }
    }
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

bool AccessOrder::IsVisited(const Entry& entry) const {
  return std::any_of(entry.nodes.begin(), entry.nodes.end(),
                     [&](const UOp* node) { return IsVisited(node); });
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
