#include "ir/reachability.h"

#include <algorithm>
#include <numeric>

#include "absl/container/flat_hash_map.h"

namespace svod {
namespace {

constexpr int kQuickVisits = 256;

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

bool Reachability::Walk(absl::Span<const uint32_t> sources, uint32_t last_user) {
  origin_ = sources.front();
  steps_left_ -= int64_t{first_source_[last_user + 1]} - first_source_[origin_] + 1;
  if (steps_left_ < 0) return false;
  reached_.assign(last_user - origin_ + 1, Bits{});
  size_t next_bit = 0;
  for (uint32_t at = origin_; at <= last_user; ++at) {
    Bits& bits = reached_[at - origin_];
    for (uint32_t i = first_source_[at]; i < first_source_[at + 1]; ++i) {
      if (sources_[i] < origin_) continue;
      const Bits& of_source = reached_[sources_[i] - origin_];
      for (size_t word = 0; word < kWords; ++word) bits[word] |= of_source[word];
    }
    for (; next_bit < sources.size() && sources[next_bit] == at; ++next_bit) {
      bits[next_bit / 64] |= uint64_t{1} << (next_bit % 64);
    }
  }
  return true;
}

Reachability::Answer Reachability::FirstApart(
    absl::Span<const std::pair<uint32_t, uint32_t>> pairs) {
  std::vector<size_t> by_source(pairs.size());
  std::iota(by_source.begin(), by_source.end(), size_t{0});
  std::sort(by_source.begin(), by_source.end(), [&](size_t a, size_t b) {
    return pairs[a].first != pairs[b].first ? pairs[a].first < pairs[b].first : a < b;
  });
  for (size_t begin = 0, end = 0; begin < pairs.size(); begin = end) {
    std::vector<uint32_t> sources;
    uint32_t last_user = 0;
    for (; end < pairs.size(); ++end) {
      auto [source, user] = pairs[by_source[end]];
      if (sources.empty() || sources.back() != source) {
        if (sources.size() == kMaxSources) break;
        sources.push_back(source);
      }
      last_user = std::max(last_user, user);
    }
    if (!Walk(sources, last_user)) return {Answer::Kind::kExhausted};
    for (size_t i = begin, bit = 0; i < end; ++i) {
      auto [source, user] = pairs[by_source[i]];
      while (sources[bit] != source) ++bit;
      if (!IsReached(bit, user)) return {Answer::Kind::kApart, by_source[i], by_source[i]};
    }
  }
  return {};
}

Reachability::Answer Reachability::FirstApart(
    absl::Span<const uint32_t> places, absl::FunctionRef<bool(size_t, size_t)> must_be_ordered) {
  for (size_t begin = 0; begin < places.size(); begin += kMaxSources) {
    absl::Span<const uint32_t> sources = places.subspan(begin, kMaxSources);
    if (!Walk(sources, places.back())) return {Answer::Kind::kExhausted};
    for (size_t i = begin; i < begin + sources.size(); ++i) {
      for (size_t j = i + 1; j < places.size(); ++j) {
        if (!IsReached(i - begin, places[j]) && must_be_ordered(i, j))
          return {Answer::Kind::kApart, i, j};
      }
    }
  }
  return {};
}

}  // namespace svod
