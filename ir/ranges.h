// Integer range analysis: the smallest and largest value that an integer node can have.
// Included by the verifier, simplification, guards and launch sizes. Must not change nodes.
#ifndef SVOD_IR_RANGES_H_
#define SVOD_IR_RANGES_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ir/affine.h"
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
// Iterative; each node is worked out once.
class RangeAnalysis {
 public:
  // Range of an integer or bool node; Full() for floats, and the dtype's range for loads. The
  // counter of a loop that never runs is 0.
  IntRange Of(const UOp* node);

  // The range of `node` where the bool node `condition` holds: comparisons joined by `and` narrow
  // the nodes that they name, `node` itself included, and what is computed from them nearby.
  // Of(node) where nothing is known. A vector condition speaks of the lanes where it holds.
  IntRange OfWhere(const UOp* node, const UOp* condition);

  // A scalar integer node as a sum of products. Counters, variables, loads and whatever is not a
  // sum or product are atoms.
  Affine AffineOf(const UOp* node);
  // The same for one lane of a vector; of a scalar, whatever the lane.
  Affine AffineOfLane(const UOp* node, int lane);

 private:
  absl::flat_hash_map<const UOp*, IntRange> known_;
  absl::flat_hash_map<const UOp*, Affine> affines_;
};

// A comparison of integers that holds: left < right when `strict`, else left <= right. Scalars, or
// vectors of the condition's lanes.
struct Fact {
  const UOp* left;
  const UOp* right;
  bool strict;
};
// What the `and`s of comparisons in `condition` say, through `not` and `splat`. At most 64 facts.
std::vector<Fact> FactsOf(const UOp* condition, RangeAnalysis& ranges);

// The dimensions of a buffer node (PARAM, BUFFER, BUFFER_VIEW); empty for scratch and scalars.
absl::Span<const UOp* const> DimensionsOf(const UOp* buffer);

// Elements of a buffer node (PARAM, BUFFER, BUFFER_VIEW, REG, LOCAL) at its largest: the product of
// the dimensions' largest values, or the size of a scratch array.
// Errors: InvalidArgument for a dimension without an upper bound or below 0, or beyond 2^62 bytes.
absl::StatusOr<int64_t> MaxElements(const UOp* buffer);
absl::StatusOr<int64_t> MaxElements(const UOp* buffer, RangeAnalysis& ranges);

// How many consecutive elements a LOAD or STORE reaches from a scalar position on; 1 for a vector
// position, whose lanes name one element each, and for a buffer of vectors.
int ConsecutiveElements(const UOp* access);

// True when INDEX node `index`, accessed with `lanes` consecutive elements, is inside its buffer
// wherever its gate holds; then the access needs no guard. Sizes may be symbolic. Proved by
// intervals, by the ends of loops, and by gates of these forms:
//   position p, scalar or vector: and(cmple(0, p), cmplt(p, size)), or the half that is in doubt;
//   scalar position p, n lanes: the same on the vector add(splat p, stack(0 .. n-1)).
bool IsInBounds(const UOp* index, int lanes, RangeAnalysis& ranges);

// False when two accesses of one buffer can never touch the same element in one iteration of the
// loops around both: their elements lie in disjoint intervals or their positions differ by a
// constant or a bounded amount. `lanes` as for IsInBounds. Gates are not considered.
bool MayOverlap(const UOp* index_a, int lanes_a, const UOp* index_b, int lanes_b,
                RangeAnalysis& ranges);

// Bounds of an affine expression that hold in every iteration of the loops whose counters it
// names, by their ends; the whole int64 range where nothing is known or the value is not exact.
IntRange BoundsOf(const Affine& affine, RangeAnalysis& ranges);

}  // namespace svod

#endif  // SVOD_IR_RANGES_H_
