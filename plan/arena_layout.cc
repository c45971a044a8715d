#include "plan/arena_layout.h"

#include <algorithm>
#include <iterator>

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"

namespace svod {
namespace {

constexpr int64_t kMaxArenaBytes = int64_t{1} << 62;

// A union of byte ranges; ranges that touch are one.
class RangeUnion {
 public:
  void Add(int64_t begin, int64_t end) {
    auto it = ends_.upper_bound(begin);
    if (it != ends_.begin() && std::prev(it)->second >= begin) --it;
    while (it != ends_.end() && it->first <= end) {
      begin = std::min(begin, it->first);
      end = std::max(end, it->second);
      it = ends_.erase(it);
    }
    ends_.emplace(begin, end);
  }

  // The lowest offset from `offset` on where `bytes` are free.
  int64_t FirstFree(int64_t offset, int64_t bytes) const {
    auto it = ends_.upper_bound(offset);
    if (it != ends_.begin()) offset = std::max(offset, std::prev(it)->second);
    for (; it != ends_.end() && it->first - offset < bytes; ++it) offset = it->second;
    return offset;
  }

 private:
  absl::btree_map<int64_t, int64_t> ends_;  // begin -> end
};

// Which bytes are taken at which levels: a segment tree over levels. A stretch stands at the nodes
// that its levels are made of, and at those above them.
class Occupancy {
 public:
  explicit Occupancy(int num_levels) {
    while (num_leaves_ < num_levels) num_leaves_ *= 2;
    covering_.resize(static_cast<size_t>(num_leaves_) * 2);
    below_.resize(covering_.size());
  }

  void Add(const Lifetime& life, int64_t offset) {
    int64_t end = offset + life.bytes;
    ForParts(life, [&](size_t node) {
      covering_[node].Add(offset, end);
      below_[node].Add(offset, end);
    });
    // Whatever is above the first or last level meets the stretch.
    ForPaths(life, [&](size_t node) { below_[node].Add(offset, end); });
  }

  int64_t FirstFree(const Lifetime& life) const {
    std::vector<const RangeUnion*> unions;
    ForParts(life, [&](size_t node) { unions.push_back(&below_[node]); });
    ForPaths(life, [&](size_t node) { unions.push_back(&covering_[node]); });
    // Each pass only moves up, and ends where all agree.
    int64_t offset = 0;
    for (size_t agreed = 0, i = 0; agreed < unions.size(); i = (i + 1) % unions.size()) {
      int64_t free = unions[i]->FirstFree(offset, life.bytes);
      agreed = free == offset ? agreed + 1 : 1;
      offset = free;
    }
    return offset;
  }

 private:
  template <typename Visit>
  void ForParts(const Lifetime& life, Visit visit) const {
    int first = life.first_level + num_leaves_, end = life.last_level + num_leaves_ + 1;
    for (; first < end; first /= 2, end /= 2) {
      if (first % 2 == 1) visit(static_cast<size_t>(first++));
      if (end % 2 == 1) visit(static_cast<size_t>(--end));
    }
  }
  template <typename Visit>
  void ForPaths(const Lifetime& life, Visit visit) const {
    for (int leaf : {life.first_level, life.last_level}) {
      for (int node = leaf + num_leaves_; node > 0; node /= 2) visit(static_cast<size_t>(node));
    }
  }

  int num_leaves_ = 1;
  std::vector<RangeUnion> covering_;  // by node: what is taken at all of its levels
  std::vector<RangeUnion> below_;     // by node: what is taken at some of its levels
};

}  // namespace

absl::StatusOr<ArenaLayout> LayOutArena(absl::Span<const Lifetime> lifetimes, int64_t alignment) {
  ArenaLayout layout;
  layout.offsets.resize(lifetimes.size());
  std::vector<size_t> order(lifetimes.size());
  int num_levels = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
    num_levels = std::max(num_levels, lifetimes[i].last_level + 1);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const Lifetime &x = lifetimes[a], &y = lifetimes[b];
    return x.bytes != y.bytes ? x.bytes > y.bytes : x.first_level < y.first_level;
  });
  Occupancy occupancy(num_levels);
  for (size_t i : order) {
    Lifetime life = lifetimes[i];
    int64_t offset = 0;
    if (life.bytes <= kMaxArenaBytes - alignment) {
      life.bytes = (life.bytes + alignment - 1) / alignment * alignment;
      offset = occupancy.FirstFree(life);
    }
    if (life.bytes > kMaxArenaBytes - offset) {
      return absl::ResourceExhaustedError(absl::StrCat("memory: arena, got ", lifetimes[i].bytes,
                                                       " bytes at offset ", offset,
                                                       ", expected at most 2^62 in all"));
    }
    occupancy.Add(life, offset);
    layout.offsets[i] = offset;
    layout.bytes = std::max(layout.bytes, offset + life.bytes);
  }
  return layout;
}

}  // namespace svod
