// Integer range analysis: the smallest and largest value that an integer node can have.
// Included by the verifier, simplification, guards and launch sizes. Must not change nodes.
#ifndef SVOD_IR_RANGES_H_
#define SVOD_IR_RANGES_H_

#include <cstdint>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ir/uop.h"

namespace svod {

// An inclusive interval of int64. For u64 nodes whose values may pass INT64_MAX it is Full().
struct IntRange {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();

  static IntRange Full() { return {}; }
  bool is_single() const { return min == max; }
  bool Contains(int64_t value) const { return min <= value && value <= max; }
  bool operator==(const IntRange&) const = default;
};

// Ranges of nodes, remembered per node (of any context, as long as those nodes live). Vectors get
// the union over their lanes. Not thread-safe. An op that may wrap has its dtype's whole range.
class RangeAnalysis {
 public:
  // Range of an integer or bool node; Full() for floats, and the dtype's range for loads.
  IntRange Of(const UOp* node);
  // The range of `node` where the bool node `condition` holds: comparisons joined by `and` narrow
  // the nodes that they name, `node` itself included. Of(node) where nothing is known.
  IntRange OfWhere(const UOp* node, const UOp* condition);

 private:
  absl::flat_hash_map<const UOp*, IntRange> known_;
};

// Elements of a buffer node (PARAM, BUFFER, BUFFER_VIEW, REG, LOCAL) at its largest: the product of
// the dimensions' largest values, or the size of a scratch array.
// Errors: InvalidArgument for a dimension without an upper bound or below 0, or beyond 2^62 bytes.
absl::StatusOr<int64_t> MaxElements(const UOp* buffer);

// True when INDEX node `index`, accessed with `lanes` consecutive elements, is inside its buffer
// wherever its gate holds; then the access needs no guard.
bool IsInBounds(const UOp* index, int lanes, RangeAnalysis& ranges);

}  // namespace svod

#endif  // SVOD_IR_RANGES_H_
