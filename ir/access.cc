// Where accesses lie in their buffers: IsInBounds and MayOverlap of ranges.h.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "ir/ranges.h"

namespace svod {
namespace {

using Int128 = __int128;

// A loop's bound is put in place of its counter so often at most; loops nest less deep.
constexpr int kMaxSubstitutions = 64;
// Offsets from a compared value further than this are not looked at, so that sums stay exact.
constexpr int64_t kMaxOffset = int64_t{1} << 40;
constexpr int64_t kMaxPosition = int64_t{1} << 62;

bool IsCounter(const Atom& atom) {
  return atom.node->op() == Op::kRange || atom.node->op() == Op::kCoreId;
}

bool Names(const Affine& affine, const Atom& atom) {
  return std::any_of(affine.terms.begin(), affine.terms.end(), [&](const Term& term) {
    return std::find(term.atoms.begin(), term.atoms.end(), atom) != term.atoms.end();
  });
}

// The counter to replace next: one that is in no other counter's end, since replacing that other
// would bring it back.
std::optional<Atom> NextCounter(const Affine& affine, RangeAnalysis& ranges) {
  std::vector<Atom> counters;
  for (const Term& term : affine.terms) {
    for (const Atom& atom : term.atoms) {
      if (IsCounter(atom) && std::find(counters.begin(), counters.end(), atom) == counters.end()) {
        counters.push_back(atom);
      }
    }
  }
  for (const Atom& counter : counters) {
    bool is_innermost = std::none_of(counters.begin(), counters.end(), [&](const Atom& other) {
      return !(other == counter) && Names(ranges.AffineOf(other.node->source(0)), counter);
    });
    if (is_innermost) return counter;
  }
  return std::nullopt;
}

// An upper bound of a sum, 128 bits wide; nullopt if there is none that wide.
class UpperBound {
 public:
  explicit UpperBound(RangeAnalysis& ranges) : ranges_(ranges) {}

  std::optional<Int128> Of(const Affine& affine) {
    std::optional<Int128> bound = OfTerms(affine);
    // A minimum may be bounded best as a whole, by its constant say, or by what its side cancels.
    if (std::optional<Affine> sides = WithoutMinima(affine); sides.has_value()) {
      rest_ = 0;
      is_known_ = true;
      std::optional<Int128> other = OfTerms(*sides);
      if (!bound.has_value() || (other.has_value() && *other < *bound)) bound = other;
    }
    return bound;
  }

 private:
  std::optional<Int128> OfTerms(Affine affine) {
    for (int i = 0; i < kMaxSubstitutions && affine.exact && IsSmall(affine); ++i) {
      std::optional<Atom> counter = NextCounter(affine, ranges_);
      if (!counter.has_value()) break;
      affine = WithoutCounter(affine, *counter);
    }
    if (!affine.exact) return std::nullopt;
    Int128 bound = rest_ + affine.constant;
    for (const Term& term : affine.terms) {
      if (!AddTo(bound, term)) return std::nullopt;
    }
    return is_known_ ? std::optional<Int128>(bound) : std::nullopt;
  }

  // Adds the largest value of a term; false on overflow.
  bool AddTo(Int128& bound, const Term& term) {
    Int128 low = term.coefficient, high = term.coefficient;
    for (const Atom& atom : term.atoms) {
      IntRange range = ranges_.Of(atom.node);
      Int128 corners[4];
      if (__builtin_mul_overflow(low, Int128{range.min}, &corners[0]) ||
          __builtin_mul_overflow(low, Int128{range.max}, &corners[1]) ||
          __builtin_mul_overflow(high, Int128{range.min}, &corners[2]) ||
          __builtin_mul_overflow(high, Int128{range.max}, &corners[3])) {
        return false;
      }
      low = *std::min_element(corners, corners + 4);
      high = *std::max_element(corners, corners + 4);
    }
    return !__builtin_add_overflow(bound, high, &bound);
  }

  // min(a, b), of which a loop's last piece is made, is b at most where its cofactor is not
  // negative. Nullopt where there is none.
  std::optional<Affine> WithoutMinima(const Affine& affine) {
    bool has_minimum = false;
    Affine result = Affine::Constant(affine.constant);
    result.exact = affine.exact;
    for (const Term& term : affine.terms) {
      Affine part;
      part.terms.push_back(term);
      auto at = std::find_if(term.atoms.begin(), term.atoms.end(), [](const Atom& atom) {
        return atom.node->op() == Op::kMin && !atom.node->dtype().is_vector();
      });
      if (at != term.atoms.end() && term.coefficient > 0 &&
          std::all_of(term.atoms.begin(), term.atoms.end(), [&](const Atom& atom) {
            return atom == *at || ranges_.Of(atom.node).min >= 0;
          })) {
        Affine last = ranges_.AffineOf(at->node->source(1));
        if (last.exact) {
          part = Cofactor(term, at) * last;
          has_minimum = true;
        }
      }
      result = result + part;
    }
    return has_minimum ? std::optional<Affine>(std::move(result)) : std::nullopt;
  }

  // Each term with the counter gets its largest value for it: end - 1 where the cofactor is not
  // negative, 0 where it is not positive. A cofactor of unknown sign goes to rest_ by intervals.
  Affine WithoutCounter(const Affine& affine, const Atom& counter) {
    Affine result = Affine::Constant(affine.constant);
    Affine last = ranges_.AffineOf(counter.node->source(0)) - Affine::Constant(1);
    // In a loop that never runs the counter is 0, as everywhere: a bound of -1 would tell accesses
    // apart that a simpler form of the same positions does not.
    if (ranges_.Of(counter.node->source(0)).max <= 0) last = Affine::Constant(0);
    for (const Term& term : affine.terms) {
      auto at = std::find(term.atoms.begin(), term.atoms.end(), counter);
      Affine alone;
      alone.terms.push_back(term);
      if (at == term.atoms.end()) {
        result = result + alone;
        continue;
      }
      int sign = term.coefficient > 0 ? 1 : -1;
      for (auto it = term.atoms.begin(); it != term.atoms.end(); ++it) {
        IntRange range = ranges_.Of(it->node);
        if (it != at && range.min < 0) sign = range.max <= 0 ? -sign : 0;
        if (sign == 0) break;
      }
      if (sign == 0 || (sign > 0 && !last.exact)) {
        is_known_ = is_known_ && AddTo(rest_, term);
      } else if (sign > 0) {
        result = result + Cofactor(term, at) * last;
      }
    }
    return result;
  }

  RangeAnalysis& ranges_;
  Int128 rest_ = 0;
  bool is_known_ = true;
};

bool IsAtMost(const Affine& affine, int64_t limit, RangeAnalysis& ranges) {
  std::optional<Int128> bound = UpperBound(ranges).Of(affine);
  return bound.has_value() && *bound <= limit;
}

bool IsAtLeastZero(const Affine& affine, RangeAnalysis& ranges) {
  return IsAtMost(Affine::Constant(0) - affine, 0, ranges);
}

// The number of elements as a sum of products.
Affine SizeOf(const UOp* buffer, RangeAnalysis& ranges) {
  if (buffer->op() == Op::kReg || buffer->op() == Op::kLocal) {
    return Affine::Constant(buffer->arg<ScratchArgument>().size);
  }
  Affine size = Affine::Constant(1);
  for (const UOp* dimension : DimensionsOf(buffer)) {
    size = size * ranges.AffineOf(dimension);
    if (!IsSmall(size)) return Affine::Constant(0);
  }
  return size;
}

// One access, or one lane of it.
class BoundsProof {
 public:
  BoundsProof(const UOp* index, RangeAnalysis& ranges)
      : position_(index->source(1)), ranges_(ranges) {
    const UOp* buffer = BaseBuffer(index);
    size_ = SizeOf(buffer, ranges);
    min_size_ = std::max<int64_t>(BoundsOf(size_, ranges).min, 0);
    if (index->num_sources() == 3) {
      gate_ = index->source(2);
      facts_ = FactsOf(gate_, ranges);
    }
  }

  bool ByIntervals(int span) {
    IntRange range = gate_ != nullptr ? ranges_.OfWhere(position_, gate_) : ranges_.Of(position_);
    return range.min >= 0 && range.max <= min_size_ - span;
  }

  // Whether elements [position, position + span) are inside, `position` being that of `lane`.
  bool OfLane(const Affine& position, int lane, int span) {
    bool has_lower = IsAtLeastZero(position, ranges_);
    bool has_upper = IsAtMost(position + Affine::Constant(span) - size_, 0, ranges_);
    for (size_t i = 0; i < facts_.size() && !(has_lower && has_upper); ++i) {
      const Fact& fact = facts_[i];
      if (!has_lower) has_lower = IsLowered(position, fact, lane);
      if (!has_upper) has_upper = IsRaised(position, fact, lane, span);
    }
    // Parts of the position may have bounds of their own: rows and columns of a padded picture.
    if (!has_lower && facts_.size() > 1) {
      has_lower = IsAtLeastZero(Narrowed(position, lane, -1), ranges_);
    }
    if (!has_upper && facts_.size() > 1) {
      Affine last = Narrowed(position, lane, 1) + Affine::Constant(span - 1);
      has_upper = IsAtMost(last + Affine::Constant(1) - size_, 0, ranges_);
    }
    return has_lower && has_upper;
  }

 private:
  // position - value, if it is a small constant. Both are right modulo 2^64, so this is, too.
  std::optional<int64_t> Offset(const Affine& position, const UOp* value, int lane) {
    Affine difference = position - ranges_.AffineOfLane(value, lane);
    if (!difference.is_constant() || difference.constant > kMaxOffset ||
        difference.constant < -kMaxOffset) {
      return std::nullopt;
    }
    return difference.constant;
  }

  // At least (direction 1) or at most (-1) what `position` is where the facts hold: a multiple of
  // what a fact bounds is replaced by that multiple of the bound.
  Affine Narrowed(Affine position, int lane, int direction) {
    for (const Fact& fact : facts_) {
      Affine left = ranges_.AffineOfLane(fact.left, lane);
      Affine right = ranges_.AffineOfLane(fact.right, lane);
      Affine strict = Affine::Constant(fact.strict ? 1 : 0);
      position = Replaced(std::move(position), left, right - strict, direction);
      position = Replaced(std::move(position), right, left + strict, -direction);
    }
    return position;
  }

  // position - c value + c bound for the c of that sign that takes the first term of `value` out.
  static Affine Replaced(Affine position, const Affine& value, const Affine& bound, int sign) {
    if (value.terms.empty() || !value.exact || !bound.exact || !position.exact) return position;
    const Term& first = value.terms[0];
    for (const Term& term : position.terms) {
      if (term.atoms != first.atoms) continue;
      // The smallest integer has no negative.
      bool has_quotient =
          first.coefficient != -1 || term.coefficient != std::numeric_limits<int64_t>::min();
      if (!has_quotient || term.coefficient % first.coefficient != 0) continue;
      int64_t factor = term.coefficient / first.coefficient;
      if ((factor > 0) != (sign > 0)) continue;
      Affine result = position - Affine::Constant(factor) * (value - bound);
      return result.exact && IsSmall(result) ? result : position;
    }
    return position;
  }

  // left <= right, and position is right + d without wrapping: it is at least left + d.
  bool IsLowered(const Affine& position, const Fact& fact, int lane) {
    std::optional<int64_t> offset = Offset(position, fact.right, lane);
    if (!offset.has_value()) return false;
    if (*offset != 0 && ranges_.OfWhere(fact.right, gate_).max > kMaxPosition) return false;
    Affine left = ranges_.AffineOfLane(fact.left, lane);
    return IsAtLeastZero(left + Affine::Constant(*offset + (fact.strict ? 1 : 0)), ranges_);
  }

  // left <= right, and position is left + d without wrapping: it is at most right + d.
  bool IsRaised(const Affine& position, const Fact& fact, int lane, int span) {
    std::optional<int64_t> offset = Offset(position, fact.left, lane);
    if (!offset.has_value()) return false;
    // A left far below 0 plus a negative offset might come out at the top.
    if (*offset < 0 && ranges_.OfWhere(fact.left, gate_).min < -kMaxPosition) return false;
    Affine right = ranges_.AffineOfLane(fact.right, lane);
    int64_t reach = *offset + span - (fact.strict ? 1 : 0);
    return IsAtMost(right + Affine::Constant(reach) - size_, 0, ranges_);
  }

  const UOp* position_;
  const UOp* gate_ = nullptr;
  RangeAnalysis& ranges_;
  Affine size_;
  int64_t min_size_;
  std::vector<Fact> facts_;
};

// The elements that an access can reach, [min, max].
IntRange ElementsOf(const UOp* index, int span, RangeAnalysis& ranges) {
  IntRange range = ranges.Of(index->source(1));
  if (__builtin_add_overflow(range.max, span - 1, &range.max)) return IntRange::Full();
  return range;
}

int SpanOf(const UOp* index, int lanes) {
  return index->dtype().is_vector() || index->source(1)->dtype().is_vector() ? 1 : lanes;
}

}  // namespace

IntRange BoundsOf(const Affine& affine, RangeAnalysis& ranges) {
  IntRange bounds;
  std::optional<Int128> high = UpperBound(ranges).Of(affine);
  std::optional<Int128> low = UpperBound(ranges).Of(Affine::Constant(0) - affine);
  // Only in a loop that never runs; whoever asks in whatever form must get the same answer.
  if (high.has_value() && low.has_value() && -*low > *high) return IntRange::Full();
  if (high.has_value() && *high < bounds.max) {
    bounds.max = static_cast<int64_t>(std::max<Int128>(*high, bounds.min));
  }
  if (low.has_value() && -*low > bounds.min) {
    bounds.min = static_cast<int64_t>(std::min<Int128>(-*low, bounds.max));
  }
  return bounds;
}

int ConsecutiveElements(const UOp* access) {
  DType value = access->op() == Op::kStore ? access->source(1)->dtype() : access->dtype();
  return SpanOf(access->source(0), value.lanes);
}

bool IsInBounds(const UOp* index, int lanes, RangeAnalysis& ranges) {
  const UOp* gate = index->num_sources() == 3 ? index->source(2) : nullptr;
  if (gate != nullptr && ranges.Of(gate).max == 0) return true;
  if (!MaxElements(BaseBuffer(index), ranges).ok()) return false;
  int span = SpanOf(index, lanes);
  BoundsProof proof(index, ranges);
  if (proof.ByIntervals(span)) return true;
  const UOp* position = index->source(1);
  bool by_lane = position->dtype().is_vector() || (gate != nullptr && gate->dtype().is_vector());
  if (!by_lane) return proof.OfLane(ranges.AffineOf(position), 0, span);
  if (position->dtype().is_vector()) lanes = position->dtype().lanes;
  for (int lane = 0; lane < lanes; ++lane) {
    Affine element = ranges.AffineOfLane(position, lane);
    if (!position->dtype().is_vector()) {
      // A position so high that this wraps is outside, and the gate's own sum wraps alike.
      element = element + Affine::Constant(lane);
      element.exact = element.exact && ranges.Of(position).max <= kMaxPosition;
    }
    if (!proof.OfLane(element, lane, 1)) return false;
  }
  return true;
}

bool MayOverlap(const UOp* index_a, int lanes_a, const UOp* index_b, int lanes_b,
                RangeAnalysis& ranges) {
  // In a loop that never runs anything can be proved: let the answer not hang on who comes first.
  const Hash128 &hash_a = index_a->source(1)->hash(), &hash_b = index_b->source(1)->hash();
  if (std::pair(hash_b.high, hash_b.low) < std::pair(hash_a.high, hash_a.low)) {
    std::swap(index_a, index_b);
    std::swap(lanes_a, lanes_b);
  }
  int span_a = SpanOf(index_a, lanes_a), span_b = SpanOf(index_b, lanes_b);
  IntRange a = ElementsOf(index_a, span_a, ranges), b = ElementsOf(index_b, span_b, ranges);
  if (a.max < b.min || b.max < a.min) return false;
  const UOp *at_a = index_a->source(1), *at_b = index_b->source(1);
  if (at_a->dtype().is_vector() || at_b->dtype().is_vector()) return true;
  Affine difference = ranges.AffineOf(at_a) - ranges.AffineOf(at_b);
  if (difference.is_constant()) {
    return -span_a < difference.constant && difference.constant < span_b;
  }
  IntRange bounds = BoundsOf(difference, ranges);
  return -span_a < bounds.max && bounds.min < span_b;
}

}  // namespace svod
