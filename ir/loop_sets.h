// LoopSets: the loops that are alive at a node, as one number. Included by the linearizer only.
// Must not know nodes.
#ifndef SVOD_IR_LOOP_SETS_H_
#define SVOD_IR_LOOP_SETS_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace svod {

// Sets of loops, themselves known by numbers; equal sets have equal numbers and set 0 is empty.
// Almost all nodes share a few sets, so that a union is a comparison or one look-up.
class LoopSets {
 public:
  LoopSets() { (void)Intern({}); }

  const std::vector<uint32_t>& operator[](uint32_t set) const { return sets_[set]; }

  uint32_t Union(uint32_t a, uint32_t b) {
    if (a == b || b == 0) return a;
    if (a == 0) return b;
    if (a > b) std::swap(a, b);
    auto [it, is_new] = unions_.try_emplace({a, b}, 0);
    if (is_new) {
      std::vector<uint32_t> both;
      std::set_union(sets_[a].begin(), sets_[a].end(), sets_[b].begin(), sets_[b].end(),
                     std::back_inserter(both));
      it->second = Intern(std::move(both));
    }
    return it->second;
  }
  uint32_t Single(uint32_t loop) { return Intern({loop}); }
  uint32_t Without(uint32_t set, const std::vector<uint32_t>& loops) {
    std::vector<uint32_t> rest;
    for (uint32_t loop : sets_[set]) {
      if (std::find(loops.begin(), loops.end(), loop) == loops.end()) rest.push_back(loop);
    }
    return rest.size() == sets_[set].size() ? set : Intern(std::move(rest));
  }
  bool Contains(uint32_t set, uint32_t loop) const {
    return std::binary_search(sets_[set].begin(), sets_[set].end(), loop);
  }
  size_t size() const { return sets_.size(); }

 private:
  uint32_t Intern(std::vector<uint32_t> set) {
    auto [it, is_new] = numbers_.try_emplace(set, static_cast<uint32_t>(sets_.size()));
    if (is_new) sets_.push_back(std::move(set));
    return it->second;
  }

  std::vector<std::vector<uint32_t>> sets_;
  absl::flat_hash_map<std::vector<uint32_t>, uint32_t> numbers_;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> unions_;
};

}  // namespace svod

#endif  // SVOD_IR_LOOP_SETS_H_
