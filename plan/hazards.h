// Hazards: which ops of a plan touch the same bytes, and what follows from that.
// Included by the plan builder and tests. Works on byte ranges; knows no ops.
#ifndef SVOD_PLAN_HAZARDS_H_
#define SVOD_PLAN_HAZARDS_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "plan/buffer.h"

namespace svod {

// Bytes [begin, end) of one address space: space 0 is the memory of the host, so that two wrappings
// of the same foreign memory meet; storage that has no memory yet is a space of its own.
struct ByteRange {
  uint64_t space = 0;
  uint64_t begin = 0;
  uint64_t end = 0;

  bool empty() const { return begin >= end; }
  bool operator==(const ByteRange&) const = default;
};

ByteRange RangeOf(const Buffer& buffer);
// Empty ranges overlap nothing.
bool Overlap(const ByteRange& a, const ByteRange& b);

// What one op reads and writes. Bytes that it does both to need only stand under writes.
struct OpAccess {
  std::vector<ByteRange> reads;
  std::vector<ByteRange> writes;
};

// Two ops may not run side by side: one writes what the other touches.
bool Conflict(const OpAccess& a, const OpAccess& b);

// A union of ranges. Cost: logarithmic in the number of separate ranges.
class ByteRangeSet {
 public:
  bool Overlaps(const ByteRange& range) const;
  void Add(const ByteRange& range);

 private:
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> ends_;  // {space, begin} -> end, disjoint
};

// Packs ops into groups without conflicts: in order, each into the first group that has none with
// it. `ops` are indices into `accesses`.
std::vector<std::vector<size_t>> PartitionGroups(absl::Span<const size_t> ops,
                                                 absl::Span<const OpAccess> accesses);

// For each op the earlier ops that it must come after so that conflicting accesses keep the order
// of the list; ascending, without those that follow from others on the same bytes.
std::vector<std::vector<size_t>> ProgramOrderDependencies(absl::Span<const OpAccess> accesses);

}  // namespace svod

#endif  // SVOD_PLAN_HAZARDS_H_
