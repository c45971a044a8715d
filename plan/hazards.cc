#include "plan/hazards.h"

#include <algorithm>
#include <optional>

namespace svod {

ByteRange RangeOf(const Buffer& buffer) {
  if (const std::byte* data = buffer.data()) {
    auto begin = reinterpret_cast<uintptr_t>(data);
    return {0, begin, begin + static_cast<uint64_t>(buffer.size_bytes())};
  }
  auto begin = static_cast<uint64_t>(buffer.offset_bytes());
  return {buffer.storage_id(), begin, begin + static_cast<uint64_t>(buffer.size_bytes())};
}

bool Overlap(const ByteRange& a, const ByteRange& b) {
  return a.space == b.space && a.begin < b.end && b.begin < a.end && !a.empty() && !b.empty();
}

bool Conflict(const OpAccess& a, const OpAccess& b) {
  auto any_overlap = [](const std::vector<ByteRange>& xs, const std::vector<ByteRange>& ys) {
    return std::any_of(xs.begin(), xs.end(), [&](const ByteRange& x) {
      return std::any_of(ys.begin(), ys.end(), [&](const ByteRange& y) { return Overlap(x, y); });
    });
  };
  return any_overlap(a.writes, b.writes) || any_overlap(a.writes, b.reads) ||
         any_overlap(a.reads, b.writes);
}

bool ByteRangeSet::Overlaps(const ByteRange& range) const {
  if (range.empty()) return false;
  // The last member that begins before range.end; members are disjoint, so no other ends later.
  auto it = ends_.lower_bound({range.space, range.end});
  if (it == ends_.begin()) return false;
  --it;
  return it->first.first == range.space && it->second > range.begin;
}

void ByteRangeSet::Add(const ByteRange& range) {
  if (range.empty()) return;
  uint64_t begin = range.begin, end = range.end;
  auto it = ends_.lower_bound({range.space, begin});
  if (it != ends_.begin()) {
    auto before = std::prev(it);
    if (before->first.first == range.space && before->second >= begin) it = before;
  }
  while (it != ends_.end() && it->first.first == range.space && it->first.second <= end) {
    begin = std::min(begin, it->first.second);
    end = std::max(end, it->second);
    it = ends_.erase(it);
  }
  ends_[{range.space, begin}] = end;
}

std::vector<std::vector<size_t>> PartitionGroups(absl::Span<const size_t> ops,
                                                 absl::Span<const OpAccess> accesses) {
  struct Group {
    std::vector<size_t> ops;
    ByteRangeSet reads, writes;
  };
  std::vector<Group> groups;
  for (size_t op : ops) {
    const OpAccess& access = accesses[op];
    auto conflicts = [&](const Group& group) {
      for (const ByteRange& range : access.writes) {
        if (group.writes.Overlaps(range) || group.reads.Overlaps(range)) return true;
      }
      for (const ByteRange& range : access.reads) {
        if (group.writes.Overlaps(range)) return true;
      }
      return false;
    };
    auto group = std::find_if_not(groups.begin(), groups.end(), conflicts);
    if (group == groups.end()) group = groups.emplace(groups.end());
    group->ops.push_back(op);
    for (const ByteRange& range : access.reads) group->reads.Add(range);
    for (const ByteRange& range : access.writes) group->writes.Add(range);
  }
  std::vector<std::vector<size_t>> result;
  result.reserve(groups.size());
  for (Group& group : groups) result.push_back(std::move(group.ops));
  return result;
}

namespace {

// Who touched a stretch of bytes last. Stretches are disjoint and split where accesses end.
struct Stretch {
  uint64_t end = 0;
  std::optional<size_t> writer;
  std::vector<size_t> readers;  // since that write, ascending
};
using StretchMap = std::map<std::pair<uint64_t, uint64_t>, Stretch>;

// Splits the stretch around {space, at}, if there is one, so that a stretch begins there.
void SplitAt(StretchMap& stretches, uint64_t space, uint64_t at) {
  auto it = stretches.upper_bound({space, at});
  if (it == stretches.begin()) return;
  --it;
  if (it->first.first != space || it->first.second == at || it->second.end <= at) return;
  Stretch tail = it->second;
  it->second.end = at;
  stretches.emplace(std::make_pair(space, at), std::move(tail));
}

// Fills the holes of `range` with stretches that nobody has touched.
void Cover(StretchMap& stretches, const ByteRange& range) {
  SplitAt(stretches, range.space, range.begin);
  SplitAt(stretches, range.space, range.end);
  uint64_t at = range.begin;
  auto it = stretches.lower_bound({range.space, range.begin});
  while (at < range.end) {
    bool at_hole = it == stretches.end() || it->first.first != range.space || it->first.second > at;
    if (!at_hole) {
      at = it->second.end;
      ++it;
      continue;
    }
    uint64_t end = range.end;
    if (it != stretches.end() && it->first.first == range.space) {
      end = std::min(end, it->first.second);
    }
    stretches.emplace_hint(it, std::make_pair(range.space, at), Stretch{end, std::nullopt, {}});
    at = end;
  }
}

}  // namespace

std::vector<std::vector<size_t>> ProgramOrderDependencies(absl::Span<const OpAccess> accesses) {
  StretchMap stretches;
  std::vector<std::vector<size_t>> dependencies(accesses.size());
  for (size_t op = 0; op < accesses.size(); ++op) {
    std::vector<size_t>& after = dependencies[op];
    auto visit = [&](const ByteRange& range, bool writes) {
      if (range.empty()) return;
      Cover(stretches, range);
      auto it = stretches.lower_bound({range.space, range.begin});
      for (;
           it != stretches.end() && it->first.first == range.space && it->first.second < range.end;
           ++it) {
        Stretch& stretch = it->second;
        // A reader between comes after the writer already, so its edge is enough.
        if (!writes || stretch.readers.empty()) {
          if (stretch.writer && *stretch.writer != op) after.push_back(*stretch.writer);
        }
        if (writes) {
          for (size_t reader : stretch.readers) {
            if (reader != op) after.push_back(reader);
          }
          stretch.writer = op;
          stretch.readers.clear();
        } else if (stretch.writer != op &&
                   (stretch.readers.empty() || stretch.readers.back() != op)) {
          stretch.readers.push_back(op);
        }
      }
    };
    for (const ByteRange& range : accesses[op].reads) visit(range, false);
    for (const ByteRange& range : accesses[op].writes) visit(range, true);
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
  }
  return dependencies;
}

}  // namespace svod
