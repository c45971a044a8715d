#include "plan/split_reductions.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "ir/evaluate.h"
#include "ir/shape.h"
#include "ir/status_macros.h"
#include "plan/rebuild_graph.h"

namespace svod {
namespace {

class Splitter {
 public:
  Splitter(Function* graph, Context& context)
      : graph_(*graph), context_(context), shapes_(context), dims_(shapes_.dims()) {}

  absl::Status Run() {
    return RebuildGraph(&graph_, context_, [&](const UOp* node) -> absl::StatusOr<const UOp*> {
      if (node->op() != Op::kReduceAxis) return node;
      return Widened(node);
    });
  }

 private:
  int64_t MaxOf(const UOp* dimension) { return std::max<int64_t>(dims_.RangeOf(dimension).max, 0); }

  // A chunk near `wanted` that divides the size, so that nothing need be padded; `wanted` when
  // there is none near.
  int64_t ChunkOf(const UOp* size, int64_t wanted) {
    if (!IsConst(size)) return wanted;
    for (int64_t chunk = wanted; chunk >= wanted / 4 && chunk > 1; --chunk) {
      if (ConstInt(size) % chunk == 0) return chunk;
    }
    return wanted;
  }

  static bool IsContraction(const UOp* reduce) {
    const UOp* product = reduce->source(0);
    while (product->op() == Op::kCast) product = product->source(0);
    return reduce->arg<ReduceAxesArgument>().kind == ReduceKind::kAdd &&
           product->op() == Op::kMul && product->source(0) != product->source(1);
  }

  static bool Rounds(const UOp* reduce) {
    ReduceKind kind = reduce->arg<ReduceAxesArgument>().kind;
    return reduce->dtype().is_float() && (kind == ReduceKind::kAdd || kind == ReduceKind::kMul);
  }

  // Halves are folded in f32 and rounded once, so that partial sums may be of it.
  absl::StatusOr<const UOp*> Widened(const UOp* reduce) {
    bool is_half = reduce->dtype() == Scalar::kF16 || reduce->dtype() == Scalar::kBF16;
    if (!is_half || !Rounds(reduce) || IsContraction(reduce)) return Split(reduce);
    const DType wide = Scalar::kF32;
    SVOD_ASSIGN_OR_RETURN(const UOp* x, context_.Make(Op::kCast, wide, {reduce->source(0)}));
    SVOD_ASSIGN_OR_RETURN(x, context_.Make(Op::kReduceAxis, {x}, reduce->argument()));
    SVOD_ASSIGN_OR_RETURN(x, Split(x));
    return context_.Make(Op::kCast, reduce->dtype(), {x});
  }

  // Whether dimensions [first, last] of `value`, counted from its end, lie side by side in all that
  // it is computed from, or are of no account there.
  bool LieAsOne(const UOp* value, size_t first, size_t last) {
    absl::flat_hash_set<const UOp*> seen = {value};
    std::vector<const UOp*> todo = {value};
    while (!todo.empty()) {
      const UOp* node = todo.back();
      todo.pop_back();
      absl::StatusOr<ShapeSpan> shape = shapes_.Of(node);
      if (!shape.ok()) return false;
      bool is_one = true;
      for (size_t i = last; i <= std::min(first, shape->size()); ++i) {
        is_one = is_one && IsConstInt((*shape)[shape->size() - i], 1);
      }
      if (is_one || IsInMemory(node)) continue;
      if (!IsElementwise(node->op()) &&
          !(node->op() == Op::kExpand && KeepsAll(node, first, last))) {
        return false;
      }
      for (const UOp* source : node->sources()) {
        if (seen.insert(source).second) todo.push_back(source);
        if (node->op() == Op::kExpand) break;
      }
    }
    return true;
  }

  static bool IsInMemory(const UOp* node) {
    while (node->op() == Op::kReshape) node = node->source(0);
    return node->op() == Op::kParam || node->op() == Op::kBuffer || node->op() == Op::kAfter ||
           node->op() == Op::kContiguous || (node->op() == Op::kReduceAxis && IsContraction(node));
  }

  // Whether an EXPAND repeats all of those dimensions or none.
  bool KeepsAll(const UOp* expand, size_t first, size_t last) {
    absl::StatusOr<ShapeSpan> to = shapes_.Of(expand), from = shapes_.Of(expand->source(0));
    if (!to.ok() || !from.ok() || from->size() != to->size()) return false;
    size_t kept = 0, ones = 0;
    for (size_t i = last; i <= first; ++i) {
      const UOp* size = (*from)[from->size() - i];
      kept += size == (*to)[to->size() - i] ? 1 : 0;
      ones += IsConstInt(size, 1) ? 1 : 0;
    }
    return kept == first - last + 1 || ones == first - last + 1;
  }

  // A float sum over neighbouring dimensions of constant sizes that lie in memory as one is over
  // that one; null for others.
  absl::StatusOr<const UOp*> Merged(const UOp* reduce) {
    const auto& argument = reduce->arg<ReduceAxesArgument>();
    if (argument.axes.size() < 2 || !Rounds(reduce) || IsContraction(reduce)) return nullptr;
    const auto first = static_cast<size_t>(argument.axes.front());
    const auto last = static_cast<size_t>(argument.axes.back());
    SVOD_ASSIGN_OR_RETURN(ShapeSpan shape, shapes_.Of(reduce->source(0)));
    bool is_constant = std::all_of(argument.axes.begin(), argument.axes.end(), [&](int64_t axis) {
      return IsConst(shape[static_cast<size_t>(axis)]);
    });
    if (!is_constant || last - first + 1 != argument.axes.size() ||
        !LieAsOne(reduce->source(0), shape.size() - first, shape.size() - last)) {
      return nullptr;
    }
    Shape one(shape.begin(), shape.begin() + static_cast<int64_t>(first) + 1);
    for (size_t i = first + 1; i <= last; ++i) one.back() = dims_.Mul(one.back(), shape[i]);
    one.insert(one.end(), shape.begin() + static_cast<int64_t>(last) + 1, shape.end());
    SVOD_ASSIGN_OR_RETURN(const UOp* x, Reshaped(reduce->source(0), one));
    SVOD_ASSIGN_OR_RETURN(x, Reduce(argument.kind, x, {argument.axes.front()}));
    SVOD_ASSIGN_OR_RETURN(x, Split(x));
    SVOD_ASSIGN_OR_RETURN(ShapeSpan to, shapes_.Of(reduce));
    return Reshaped(x, to);
  }

  absl::StatusOr<const UOp*> Reshaped(const UOp* x, ShapeSpan to) {
    std::vector<const UOp*> sources = {x};
    sources.insert(sources.end(), to.begin(), to.end());
    return context_.Make(Op::kReshape, sources);
  }

  absl::StatusOr<const UOp*> Split(const UOp* reduce) {
    SVOD_ASSIGN_OR_RETURN(const UOp* merged, Merged(reduce));
    if (merged != nullptr) return merged;
    const auto& argument = reduce->arg<ReduceAxesArgument>();
    SVOD_ASSIGN_OR_RETURN(ShapeSpan shape, shapes_.Of(reduce->source(0)));
    double results = 1, folded = 1;
    int64_t last = -1;
    for (size_t i = 0; i < shape.size(); ++i) {
      bool is_reduced =
          std::binary_search(argument.axes.begin(), argument.axes.end(), static_cast<int64_t>(i));
      (is_reduced ? folded : results) *= static_cast<double>(MaxOf(shape[i]));
      if (is_reduced && !IsConstInt(shape[i], 1)) last = static_cast<int64_t>(i);
    }
    if (last < 0 || folded > 1e18) return reduce;
    bool rounds = Rounds(reduce);
    bool is_parallel = folded >= kMinParallelFold && results <= kMaxParallelResults;
    bool is_inexact = rounds && !IsContraction(reduce) && folded > kMaxSequentialFold;
    if (!is_parallel && !is_inexact) return reduce;
    const UOp* x = reduce->source(0);
    int64_t longest = MaxOf(shape[static_cast<size_t>(last)]);
    // Several axes: the inner ones first, then the rest of the tree on their results.
    if (argument.axes.size() > 1 && longest > 1) {
      SVOD_ASSIGN_OR_RETURN(const UOp* inner, Reduce(argument.kind, x, {last}));
      SVOD_ASSIGN_OR_RETURN(inner, Split(inner));
      std::vector<int64_t> others;
      for (int64_t axis : argument.axes) {
        if (axis != last) others.push_back(axis);
      }
      SVOD_ASSIGN_OR_RETURN(const UOp* outer, Reduce(argument.kind, inner, others));
      return Split(outer);
    }
    int64_t wanted = kMaxSequentialFold;
    if (is_parallel) wanted = std::max<int64_t>(kMaxSequentialFold, longest / 64);
    if (longest <= wanted) return reduce;
    int64_t chunk = ChunkOf(shape[static_cast<size_t>(last)], wanted);
    SVOD_ASSIGN_OR_RETURN(const UOp* cut, Cut(x, last, chunk, argument.kind));
    SVOD_ASSIGN_OR_RETURN(const UOp* partial, Reduce(argument.kind, cut, {last + 1}));
    if (rounds && !IsContraction(reduce)) {
      SVOD_ASSIGN_OR_RETURN(partial, Split(partial));
    }
    if (is_parallel) {
      SVOD_ASSIGN_OR_RETURN(partial, context_.Make(Op::kContiguous, {partial}));
    }
    SVOD_ASSIGN_OR_RETURN(const UOp* whole, Reduce(argument.kind, partial, {last}));
    SVOD_ASSIGN_OR_RETURN(ShapeSpan to, shapes_.Of(reduce));
    return Reshaped(whole, to);
  }

  absl::StatusOr<const UOp*> Reduce(ReduceKind kind, const UOp* x, std::vector<int64_t> axes) {
    return context_.Make(Op::kReduceAxis, {x}, ReduceAxesArgument{kind, axes});
  }

  // Dimension `axis` as [pieces, chunk]; the last piece is filled up with the identity.
  absl::StatusOr<const UOp*> Cut(const UOp* x, int64_t axis, int64_t chunk, ReduceKind kind) {
    SVOD_ASSIGN_OR_RETURN(ShapeSpan known, shapes_.Of(x));
    Shape shape(known.begin(), known.end());
    const UOp* size = shape[static_cast<size_t>(axis)];
    const UOp* pieces =
        dims_.Floordiv(dims_.Add(size, context_.Index(chunk - 1)), context_.Index(chunk));
    const UOp* missing = dims_.Sub(dims_.Mul(pieces, context_.Index(chunk)), size);
    if (!IsConstInt(missing, 0)) {
      // missing = chunk - 1 - (size + chunk - 1) mod chunk, whose range is plain to see.
      if (!IsConst(missing)) {
        missing = dims_.Sub(
            context_.Index(chunk - 1),
            dims_.Floormod(dims_.Add(size, context_.Index(chunk - 1)), context_.Index(chunk)));
      }
      std::vector<const UOp*> sources = {
          x, context_.Bits(x->dtype(), ReduceIdentity(kind, x->dtype()))};
      std::vector<const UOp*> amounts(2 * shape.size(), context_.Index(0));
      amounts[shape.size() + static_cast<size_t>(axis)] = missing;
      sources.insert(sources.end(), amounts.begin(), amounts.end());
      SVOD_ASSIGN_OR_RETURN(x, context_.Make(Op::kPad, sources));
    }
    std::vector<const UOp*> sources = {x};
    for (size_t i = 0; i < shape.size(); ++i) {
      if (i == static_cast<size_t>(axis)) sources.push_back(pieces);
      sources.push_back(i == static_cast<size_t>(axis) ? context_.Index(chunk) : shape[i]);
    }
    return context_.Make(Op::kReshape, sources);
  }

  Function& graph_;
  Context& context_;
  ShapeAnalysis shapes_;
  Dims& dims_;
};

}  // namespace

absl::Status SplitReductions(Function* graph, Context& context) {
  return Splitter(graph, context).Run();
}

}  // namespace svod
