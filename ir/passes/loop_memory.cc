#include "ir/passes/loop_memory.h"

#include <algorithm>
#include <vector>

#include "ir/evaluate.h"

namespace svod {
namespace {

// Positions below this can be added to without care.
constexpr int64_t kMaxSpan = int64_t{1} << 60;

// One part of a position: it moves in steps of `stride`, by `span` at most.
struct Move {
  __int128 stride, span;
  bool is_loop = false;
};

void SortByStride(std::vector<Move>& moves) {
  std::sort(moves.begin(), moves.end(),
            [](const Move& a, const Move& b) { return a.stride < b.stride; });
}

// min(r * step, last): pieces of a loop, of which the last begins earlier. Its counter and step.
bool IsLastPieceEarlier(const UOp* node, RangeAnalysis& ranges, const UOp** counter, int64_t* step,
                        int64_t* last) {
  if (node->op() != Op::kMin || !IsConst(node->source(1))) return false;
  Affine first = ranges.AffineOf(node->source(0));
  if (!first.exact || first.constant != 0 || first.terms.size() != 1) return false;
  if (first.terms[0].atoms.size() != 1) return false;
  *counter = first.terms[0].atoms[0].node;
  *step = first.terms[0].coefficient;
  *last = ConstInt(node->source(1));
  return (*counter)->op() == Op::kRange && *step > 0 && *last >= 0;
}

// A gate of lanes that stop at a loop's end, splat(base) + (0, 1, ...) < splat(end), maybe among
// others that must hold.
bool StopsAtEnd(const UOp* gate, const UOp** base, const UOp** end) {
  if (gate->op() == Op::kAnd) {
    return StopsAtEnd(gate->source(0), base, end) || StopsAtEnd(gate->source(1), base, end);
  }
  if (gate->op() != Op::kCmpLt || gate->source(0)->op() != Op::kAdd) return false;
  const UOp *first = gate->source(0)->source(0), *lanes = gate->source(0)->source(1);
  if (first->op() != Op::kSplat || lanes->op() != Op::kStack) return false;
  if (gate->source(1)->op() != Op::kSplat) return false;
  for (int lane = 0; lane < lanes->num_sources(); ++lane) {
    if (!IsConstInt(lanes->source(lane), lane)) return false;
  }
  *base = first->source(0);
  *end = gate->source(1)->source(0);
  return true;
}

// The same for strides that are no constants, as of rows of symbolic widths: whether what moves in
// one iteration stays below the loop's stride.
bool StaysWithinStride(const UOp* store, const Affine& position, const UOp* loop,
                       const absl::flat_hash_set<const UOp*>& inside, RangeAnalysis& ranges) {
  Affine stride, moved;
  for (const Term& term : position.terms) {
    bool varies = false;
    int with_loop = 0, names_loop = 0;
    for (const Atom& atom : term.atoms) {
      with_loop += atom.node == loop;
      for (const UOp* part : Toposort(atom.node)) {
        names_loop += part == loop;
        varies = varies || inside.contains(part);
      }
    }
    Affine part;
    part.terms.push_back(term);
    if (names_loop == 0) {
      if (varies) moved = moved + part;
      continue;
    }
    if (with_loop != 1 || names_loop != 1 || varies) return false;
    auto& atoms = part.terms[0].atoms;
    atoms.erase(std::find_if(atoms.begin(), atoms.end(),
                             [&](const Atom& atom) { return atom.node == loop; }));
    stride = stride + (atoms.empty() ? Affine::Constant(term.coefficient) : part);
  }
  const int64_t least = BoundsOf(moved, ranges).min;
  if (!stride.exact || !moved.exact || least < -kMaxSpan || least > kMaxSpan) return false;
  // The last element, where lanes do not reach it, is that of the loop's end.
  Affine last = moved + Affine::Constant(ConsecutiveElements(store) - 1);
  const UOp *base = nullptr, *end = nullptr;
  const UOp* index = store->source(0);
  if (index->num_sources() == 3 && StopsAtEnd(index->source(2), &base, &end)) {
    last = moved - ranges.AffineOf(base) + ranges.AffineOf(end) - Affine::Constant(1);
  }
  return last.exact && BoundsOf(last - Affine::Constant(least) - stride, ranges).max < 0;
}

// Whether two positions differ by the same amount wherever their counters stand.
bool AreApartByConstant(const Affine& position, const UOp* other, RangeAnalysis& ranges,
                        __int128* distance) {
  if (other->dtype().is_vector()) return false;
  Affine affine = ranges.AffineOf(other);
  if (!affine.exact || affine.terms != position.terms) return false;
  *distance = static_cast<__int128>(position.constant) - affine.constant;
  if (*distance < 0) *distance = -*distance;
  return true;
}

}  // namespace

bool StoresApart(const UOp* store, const UOp* loop, const absl::flat_hash_set<const UOp*>& inside,
                 RangeAnalysis& ranges, const UOp* other) {
  const UOp* position = store->source(0)->source(1);
  if (position->dtype().is_vector()) return false;
  Affine affine = ranges.AffineOf(position);
  if (!affine.exact) return false;
  // What moves by less than the loop must stay within its stride; larger strides are mixed radices
  // on top.
  std::vector<Move> moves;
  __int128 width = ConsecutiveElements(store);
  if (other != nullptr) {
    // The choice between the two stores is one more digit.
    __int128 distance = 0;
    if (!AreApartByConstant(affine, other->source(0)->source(1), ranges, &distance)) return false;
    width = std::max<__int128>(width, ConsecutiveElements(other));
    moves.push_back({distance, distance});
  }
  for (const Term& term : affine.terms) {
    bool varies = false, names_loop = false;
    for (const Atom& atom : term.atoms) {
      for (const UOp* part : Toposort(atom.node)) {
        names_loop = names_loop || part == loop;
        varies = varies || part == loop || inside.contains(part);
      }
    }
    if (!varies) continue;
    // One counter, or an expression of counters of which only the bounds are known.
    const UOp* counter = term.atoms[0].node;
    if (term.atoms.size() > 1) {
      return other == nullptr && StaysWithinStride(store, affine, loop, inside, ranges);
    }
    if (names_loop && counter != loop) return false;
    IntRange range = ranges.Of(counter);
    __int128 stride = term.coefficient;
    if (stride < 0) stride = -stride;
    __int128 steps = static_cast<__int128>(range.max) - range.min, span = 0;
    if (__builtin_mul_overflow(stride, std::max<__int128>(steps, 0), &span)) return false;
    moves.push_back({stride, span, counter == loop});
  }
  SortByStride(moves);
  __int128 reach = width - 1;
  bool moves_with_loop = false;
  for (const Move& move : moves) {
    if (moves_with_loop || move.is_loop) {
      if (move.stride <= reach) return false;
      moves_with_loop = true;
    }
    reach += move.span;
  }
  return moves_with_loop;
}

bool FillsScratch(const UOp* end, const UOp* scratch, RangeAnalysis& ranges) {
  std::vector<const UOp*> loops;
  while (end->op() == Op::kEnd) {
    const UOp* extent = end->source(0)->source(0);
    if (!IsConst(extent) || ConstInt(extent) < 1) return false;
    loops.push_back(end->source(0));
    // Of several effects any store will do, but only the first nest is looked into.
    const UOp* next = nullptr;
    for (const UOp* effect : end->sources().subspan(1)) {
      bool is_store = effect->op() == Op::kStore && BaseBuffer(effect->source(0)) == scratch;
      if (is_store || (next == nullptr && effect->op() == Op::kEnd)) next = effect;
      if (is_store) break;
    }
    if (next == nullptr) return false;
    end = next;
  }
  if (end->op() != Op::kStore || BaseBuffer(end->source(0)) != scratch) return false;
  const UOp* index = end->source(0);
  if (index->num_sources() == 3 || index->source(1)->dtype().is_vector()) return false;
  Affine affine = ranges.AffineOf(index->source(1));
  if (!affine.exact || affine.constant != 0) return false;
  std::vector<Move> moves;
  for (const Term& term : affine.terms) {
    if (term.atoms.size() != 1 || term.coefficient < 1) return false;
    const UOp* counter = term.atoms[0].node;
    int64_t step = 1, last = 0;
    bool is_piece = IsLastPieceEarlier(counter, ranges, &counter, &step, &last);
    auto loop = std::find(loops.begin(), loops.end(), counter);
    if (loop == loops.end()) return false;
    int64_t steps = ConstInt(counter->source(0)) - 1;
    __int128 coefficient = term.coefficient, span = coefficient * step * steps;
    if (is_piece && span < coefficient * last) return false;
    moves.push_back({coefficient * step, is_piece ? coefficient * last : span});
    loops.erase(loop);
  }
  SortByStride(moves);
  __int128 filled = ConsecutiveElements(end);  // elements without a gap
  for (const Move& move : moves) {
    if (move.stride > filled) return false;
    filled += move.span;
  }
  return filled >= scratch->arg<ScratchArgument>().size;
}

bool LoadsFilledScratch(const UOp* load, RangeAnalysis& ranges, const UOp** fill) {
  const UOp* scratch = BaseBuffer(load->source(0));
  for (const UOp* state = load->source(0)->source(0); state->op() == Op::kAfter;
       state = state->source(0)) {
    for (const UOp* effect : state->sources().subspan(1)) {
      if (effect->op() != Op::kEnd || !FillsScratch(effect, scratch, ranges)) continue;
      if (fill != nullptr) *fill = effect;
      return true;
    }
  }
  return false;
}

}  // namespace svod
