#include "ir/reachability.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "absl/container/flat_hash_map.h"

namespace svod {
namespace {

constexpr int kQuickVisits = 256;
// Sources that one walk follows: wide enough to pay for the walk, small enough for the cache.
constexpr size_t kWords = 4;
using Bits = std::array<uint64_t, kWords>;

}  // namespace

Reachability::Reachability(const std::vector<const UOp*>& nodes) {
  absl::flat_hash_map<const UOp*, uint32_t> places;
  places.reserve(nodes.size());
  first_source_.reserve(nodes.size() + 1);
  for (const UOp* node : nodes) {
    first_source_.push_back(static_cast<uint32_t>(sources_.size()));
    for (const UOp* source : node->sources()) {
      auto it = places.find(source);
      if (it != places.end()) sources_.push_back(it->second);
    }
    places.emplace(node, static_cast<uint32_t>(first_source_.size() - 1));
  }
  first_source_.push_back(static_cast<uint32_t>(sources_.size()));
  visited_.assign(nodes.size(), 0);
}

std::optional<bool> Reachability::Quick(uint32_t source, uint32_t user) {
  ++search_;
  stack_.assign(1, user);
  int left = kQuickVisits;
  while (!stack_.empty()) {
    uint32_t at = stack_.back();
    stack_.pop_back();
    // Backwards, so that source 0, which leads along the states of a buffer, comes first.
    for (uint32_t i = first_source_[at + 1]; i-- > first_source_[at];) {
      uint32_t next = sources_[i];
      if (next == source) return true;
      if (next < source || visited_[next] == search_) continue;  // what is before cannot need it
      if (--left == 0) return std::nullopt;
      visited_[next] = search_;
      stack_.push_back(next);
    }
  }
  return false;
}

std::optional<size_t> Reachability::FirstApart(
    const std::vector<std::pair<uint32_t, uint32_t>>& pairs, bool* is_exhausted) {
  std::vector<size_t> by_source(pairs.size());
  std::iota(by_source.begin(), by_source.end(), size_t{0});
  std::stable_sort(by_source.begin(), by_source.end(),
                   [&](size_t a, size_t b) { return pairs[a].first < pairs[b].first; });
  std::optional<size_t> first_apart;
  std::vector<Bits> reached;
  for (size_t begin = 0; begin < pairs.size();) {
    // As many different sources as there are bits.
    std::vector<uint32_t> sources;
    size_t end = begin;
    uint32_t last_user = 0;
    for (; end < pairs.size(); ++end) {
      auto [source, user] = pairs[by_source[end]];
      if (sources.empty() || sources.back() != source) {
        if (sources.size() == kWords * 64) break;
        sources.push_back(source);
      }
      last_user = std::max(last_user, user);
    }
    uint32_t origin = sources.front();
    steps_left_ -= int64_t{first_source_[last_user + 1]} - first_source_[origin] + 1;
    if (steps_left_ < 0) {
      *is_exhausted = true;
      return std::nullopt;
    }
    reached.assign(last_user - origin + 1, Bits{});
    size_t next_bit = 0;
    for (uint32_t at = origin; at <= last_user; ++at) {
      Bits& bits = reached[at - origin];
      for (uint32_t i = first_source_[at]; i < first_source_[at + 1]; ++i) {
        if (sources_[i] < origin) continue;
        for (size_t word = 0; word < kWords; ++word)
          bits[word] |= reached[sources_[i] - origin][word];
      }
      if (next_bit < sources.size() && sources[next_bit] == at) {
        bits[next_bit / 64] |= uint64_t{1} << (next_bit % 64);
        ++next_bit;
      }
    }
    size_t bit = 0;
    for (; begin < end; ++begin) {
      auto [source, user] = pairs[by_source[begin]];
      while (sources[bit] != source) ++bit;
      bool is_reached = (reached[user - origin][bit / 64] >> (bit % 64) & 1) != 0;
      if (!is_reached && (!first_apart.has_value() || by_source[begin] < *first_apart)) {
        first_apart = by_source[begin];
      }
    }
  }
  return first_apart;
}

}  // namespace svod
