#include "ir/access_order.h"

#include <algorithm>
#include <functional>
namespace svod {
namespace {

constexpr size_t kMaxLocations = 64;  // of one closed loop, before it may touch anything

bool ClosesLoops(const UOp* node) { return node->op() == Op::kEnd || node->op() == Op::kReduce; }

absl::Span<const UOp* const> ClosedRanges(const UOp* closer) {
  return closer->op() == Op::kEnd ? closer->sources().subspan(0, 1) : closer->sources().subspan(1);
}

int HighestBit(absl::uint128 bits) {
  uint64_t high = absl::Uint128High64(bits);
  if (high != 0) return 127 - __builtin_clzll(high);
  return 63 - __builtin_clzll(absl::Uint128Low64(bits));
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

  bool has_accesses = std::any_of(closed.begin(), closed.end(),
                                  [](const Frame& frame) { return !frame.histories.empty(); });
  if (!has_accesses) return lost;
  // What no closer depends on is never performed. An END takes up what it depends on.
  bool is_end = closers.front()->op() == Op::kEnd;
  absl::flat_hash_map<const UOp*, Closers> dependents;
  if (!is_end) dependents = DependentsOf(closed, closers);
  for (Frame& frame : closed) {
    Merge(frame.histories, closers, [&](const Entry& entry) {
      Closers of_entry;
      for (const UOp* node : entry.nodes) {
        if (is_end) {
          if (IsTakenUp(node)) return Closers{closers.front()};
          continue;
        }
        for (const UOp* closer : dependents[node]) {
          if (std::find(of_entry.begin(), of_entry.end(), closer) == of_entry.end()) {
            of_entry.push_back(closer);
          }
        }
      }
      return of_entry;
    });
  }
  return lost;
}

// Which of the closers depend on each entry of the closed loops; the closers stand in their order.
absl::flat_hash_map<const UOp*, AccessOrder::Closers> AccessOrder::DependentsOf(
    const std::vector<Frame>& closed, absl::Span<const UOp* const> closers) const {
  absl::flat_hash_map<const UOp*, Closers> dependents;
  for (const Frame& frame : closed) {
    for (const auto& [base, history] : frame.histories) {
      for (const Entry& entry : history.entries) {
        for (const UOp* node : entry.nodes) dependents[node];
      }
    }
  }
  // From the closers down, users before sources: each node hands on its set of closers. Nodes
  // older than the loops lead nowhere in them.
  uint32_t oldest = NumberOf(closed.back().range);
  constexpr size_t kSet = 64;
  for (size_t first = 0; first < closers.size(); first += kSet) {
    std::map<uint32_t, uint64_t, std::greater<uint32_t>> sets;  // by number
    for (size_t i = first; i < std::min(first + kSet, closers.size()); ++i) {
      sets[NumberOf(closers[i])] = uint64_t{1} << (i - first);
    }
    for (auto it = sets.begin(); it != sets.end(); it = sets.erase(it)) {
      const UOp* node = infos_[it->first].node;
      auto entry = dependents.find(node);
      for (size_t i = 0; i < kSet && entry != dependents.end(); ++i) {
        if (it->second >> i & 1) entry->second.push_back(closers[first + i]);
      }
      for (const UOp* source : node->sources()) {
        uint32_t number = NumberOf(source);
        if (number > oldest) sets[number] |= it->second;
      }
    }
  }
  return dependents;
}

void AccessOrder::Merge(Histories& from, absl::Span<const UOp* const> closers,
                        absl::FunctionRef<Closers(const Entry&)> closers_of) {
  for (auto& [base, history] : from) {
    std::vector<Entry> merged;  // by closers, of which there are few
    auto entry_of = [&](const Closers& nodes) -> Entry& {
      for (Entry& entry : merged) {
        if (entry.nodes == nodes) return entry;
      }
      merged.push_back({});
      merged.back().nodes = nodes;
      return merged.back();
    };
    if (history.has_forgotten) {
      for (const UOp* closer : closers) {
        Entry& entry = entry_of({closer});
        entry.loads_anything = entry.stores_anything = true;
      }
    }
    for (const Entry& old : history.entries) {
      Closers nodes = closers_of(old);
      if (nodes.empty()) continue;
      Entry& entry = entry_of(nodes);
      entry.loads_anything |= old.loads_anything;
      entry.stores_anything |= old.stores_anything;
      for (const Location& location : old.locations) {
        bool& anything = location.is_store ? entry.stores_anything : entry.loads_anything;
        if (anything) continue;
        if (entry.locations.size() < kMaxLocations) {
          entry.locations.push_back(location);
        } else {
          anything = true;
        }
      }
    }
    History& target = frames_.back().histories[base];
    size_t around = frames_.size() - 1;
    for (Entry& entry : merged) {
      uint32_t number = static_cast<uint32_t>(target.entries.size());
      // All stores of a loop are under its one closer, and so is what they come after.
      for (size_t f = 0; f < history.outer_covers.size() && closers.size() == 1; ++f) {
        uint32_t cover = history.outer_covers[f].first;
        if (f == around) entry.cover = cover;
        if (f < around) AddOuterCover(&target, f, cover, number);
      }
      target.closed_loops.push_back(number);
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

}  // namespace svod
