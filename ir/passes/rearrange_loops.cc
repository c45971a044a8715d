#include "ir/passes/rearrange_loops.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/open_loops.h"
#include "ir/passes/loop_memory.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

// One loop of a kernel and what is known about it.
class Rearranger {
 public:
  Rearranger(const UOp* sink, int64_t axis, std::string action, PassContext& pass)
      : sink_(sink),
        axis_(axis),
        action_(std::move(action)),
        pass_(pass),
        order_(Toposort(sink)),
        open_(order_) {}

  absl::StatusOr<const UOp*> Split(int64_t amount) {
    SVOD_RETURN_IF_ERROR(FindLoop());
    Context& context = pass_.context;
    const UOp *loop = end_->source(0), *extent = loop->source(0), *size = context.Index(amount);
    bool divides = IsConst(extent) && ConstInt(extent) % amount == 0;
    if (!divides) {
      if (pass_.ranges.Of(extent).min < amount)
        return Illegal("the extent may be below the amount");
      if (LoadsWhatItStores(loop) || HasOrder(loop)) {
        return Illegal("an iteration may not be repeated");
      }
    }
    const UOp* pieces = context.Index(0);
    if (IsConst(extent)) {
      pieces = context.Index((ConstInt(extent) + amount - 1) / amount);
    } else {
      pieces = Make(Op::kFloordiv, {Make(Op::kAdd, {extent, context.Index(amount - 1)}), size});
    }
    const UOp* outer = Make(Op::kRange, {pieces}, loop->argument());
    const UOp* inner = Make(Op::kRange, {size}, AxisArgument{next_axis_, AxisKind::kLoop});
    const UOp* first = Make(Op::kMul, {outer, size});
    if (!divides) {
      const UOp* last = IsConst(extent) ? context.Index(ConstInt(extent) - amount)
                                        : Make(Op::kSub, {extent, size});
      first = Make(Op::kMin, {first, last});
    }
    copies_[loop] = Make(Op::kAdd, {first, inner});
    SVOD_RETURN_IF_ERROR(error_);
    return Rebuild([&](const UOp* node, std::vector<const UOp*>& sources) -> const UOp* {
      if (node == end_) {
        sources[0] = inner;
        return Make(Op::kEnd, {outer, Make(Op::kEnd, sources)});
      }
      // Memory that is new in each iteration is new in each of both loops'.
      for (int i = node->num_sources() - 1; node->op() == Op::kAfter && i >= 1; --i) {
        if (node->source(i) != loop) continue;
        sources[static_cast<size_t>(i)] = outer;
        sources.insert(sources.begin() + i + 1, inner);
      }
      return nullptr;
    });
  }

  absl::StatusOr<const UOp*> Swap() {
    SVOD_RETURN_IF_ERROR(FindLoop());
    const UOp* inner = end_->num_sources() == 2 ? end_->source(1) : nullptr;
    if (inner == nullptr || inner->op() != Op::kEnd) {
      return Illegal("expected one loop directly inside it");
    }
    for (const UOp* effect : inner->sources().subspan(1)) {
      if (effect->op() != Op::kStore && effect->op() != Op::kEnd) {
        return Illegal("expected stores in the loop inside");
      }
    }
    const UOp *i = end_->source(0), *j = inner->source(0);
    if (open_.DependsOn(j->source(0), i)) return Illegal("the loop inside depends on its counter");
    if (HasOrder(i) || HasOrder(j)) return Illegal("accesses of memory have an order inside it");
    if (LoadsWhatItStores(i)) return Illegal("it loads what it stores");
    absl::flat_hash_set<const UOp*> inside;
    for (const UOp* node : order_) {
      if (node->op() == Op::kEnd && open_.DependsOn(node, i)) inside.insert(node->source(0));
    }
    for (const UOp* node : order_) {
      bool is_inside = node->op() == Op::kStore && open_.DependsOn(node, i);
      if (is_inside && !StoresApart(node, i, inside, pass_.ranges)) {
        return Illegal("iterations may store to the same place");
      }
    }
    return Rebuild([&](const UOp* node, std::vector<const UOp*>& sources) -> const UOp* {
      if (node == inner) sources[0] = copies_.at(i);
      if (node == end_) sources[0] = copies_.at(j);
      return nullptr;
    });
  }

  absl::StatusOr<const UOp*> Merge() {
    if (IsFold()) return MergeFolds();
    SVOD_RETURN_IF_ERROR(FindLoop());
    const UOp* inner = end_->num_sources() == 2 ? end_->source(1) : nullptr;
    if (inner == nullptr || inner->op() != Op::kEnd) {
      return Illegal("expected one loop directly inside it");
    }
    const UOp *i = end_->source(0), *j = inner->source(0), *extent = j->source(0);
    if (!IsConst(extent)) return Illegal("the extent of the loop inside is not constant");
    SVOD_RETURN_IF_ERROR(ReplaceByOne(i, j));
    return Rebuild([&](const UOp* node, std::vector<const UOp*>& sources) -> const UOp* {
      if (node == end_) return copies_.at(inner);
      if (node->op() == Op::kAfter) DropSource(node, i, sources);
      return nullptr;
    });
  }

 private:
  bool IsFold() const {
    return std::any_of(order_.begin(), order_.end(), [&](const UOp* node) {
      if (node->op() != Op::kRange) return false;
      const auto& axis = node->arg<AxisArgument>();
      return axis.axis == axis_ && axis.kind == AxisKind::kReduce;
    });
  }

  // Two counters that every reduction with one of them folds over one right after the other.
  absl::StatusOr<const UOp*> MergeFolds() {
    const UOp *i = nullptr, *j = nullptr;
    for (const UOp* node : order_) {
      if (node->op() != Op::kReduce) continue;
      for (int k = 1; k < node->num_sources(); ++k) {
        if (node->source(k)->arg<AxisArgument>().axis != axis_) continue;
        i = node->source(k);
        j = k + 1 < node->num_sources() ? node->source(k + 1) : nullptr;
      }
    }
    if (i == nullptr || j == nullptr) return Illegal("expected another counter folded inside it");
    for (const UOp* node : order_) {
      if (node->op() != Op::kReduce) continue;
      absl::Span<const UOp* const> folded = node->sources().subspan(1);
      auto at = std::find(folded.begin(), folded.end(), i);
      bool has_j = std::find(folded.begin(), folded.end(), j) != folded.end();
      bool is_pair = at != folded.end() && at + 1 != folded.end() && *(at + 1) == j;
      if (!is_pair && (has_j || at != folded.end())) {
        return Illegal("a reduction folds over one of them alone");
      }
    }
    if (!IsConst(j->source(0))) return Illegal("the extent of the loop inside is not constant");
    SVOD_RETURN_IF_ERROR(ReplaceByOne(i, j));
    return Rebuild([&](const UOp* node, std::vector<const UOp*>& sources) -> const UOp* {
      if (node->op() == Op::kAfter || node->op() == Op::kReduce) DropSource(node, i, sources);
      return nullptr;
    });
  }

  static void DropSource(const UOp* node, const UOp* dropped, std::vector<const UOp*>& sources) {
    for (size_t k = sources.size(); k-- > 1;) {
      if (node->source(static_cast<int>(k)) == dropped) {
        sources.erase(sources.begin() + static_cast<ptrdiff_t>(k));
      }
    }
  }

  // Positions are sums: one counter's share is the other's times the extent.
  absl::Status ReplaceByOne(const UOp* i, const UOp* j) {
    SVOD_RETURN_IF_ERROR(CheckMovesAsOne(i, j));
    const UOp* extent = j->source(0);
    const UOp* count = IsConst(i->source(0))
                           ? pass_.context.Index(ConstInt(i->source(0)) * ConstInt(extent))
                           : Make(Op::kMul, {i->source(0), extent});
    copies_[i] = pass_.context.Index(0);
    copies_[j] = Make(Op::kRange, {count}, i->argument());
    return error_;
  }

  // Counters may only be parts of positions, and there only in one proportion.
  absl::Status CheckMovesAsOne(const UOp* i, const UOp* j) {
    int64_t extent = ConstInt(j->source(0));
    absl::flat_hash_set<const UOp*> moving = {i, j};  // parts of positions
    for (const UOp* node : order_) {
      if (node == i || node == j || node->op() == Op::kAfter || node->op() == Op::kEnd) continue;
      bool moves = false, is_part = node->dtype() == Scalar::kIndex && IsElementwise(node->op());
      for (int k = 0; k < node->num_sources(); ++k) {
        if (!moving.contains(node->source(k))) continue;
        moves = true;
        if (node->op() == Op::kIndex && k == 1) continue;
        if (node->op() == Op::kReduce && k > 0) continue;
        if (!is_part) return Illegal("a counter is more than a part of positions");
      }
      if (!moves || node->op() == Op::kReduce) continue;
      if (node->op() != Op::kIndex) {
        moving.insert(node);
        continue;
      }
      if (node->source(1)->dtype().is_vector()) return Illegal("positions are vectors");
      Affine affine = pass_.ranges.AffineOf(node->source(1));
      __int128 outer = 0, step = 0;
      for (const Term& term : affine.terms) {
        for (const Atom& atom : term.atoms) {
          if (atom.node != i && atom.node != j && moving.contains(atom.node)) {
            return Illegal("a position is no sum of counters");
          }
          if (atom.node != i && atom.node != j) continue;
          if (term.atoms.size() > 1) return Illegal("a position is no sum of counters");
          (atom.node == i ? outer : step) += term.coefficient;
        }
      }
      if (!affine.exact || outer != step * extent) return Illegal("an access moves otherwise");
    }
    return absl::OkStatus();
  }

  absl::Status Illegal(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(action_, ": ", what));
  }

  absl::Status FindLoop() {
    for (const UOp* node : order_) {
      const auto* axis = std::get_if<AxisArgument>(&node->argument());
      if (axis != nullptr) next_axis_ = std::max(next_axis_, axis->axis + 1);
      bool is_it = node->op() == Op::kEnd && node->source(0)->arg<AxisArgument>().axis == axis_;
      if (is_it) end_ = node;
    }
    return end_ == nullptr ? Illegal("axis, got none of the kernel's loops") : absl::OkStatus();
  }

  bool HasOrder(const UOp* loop) const {
    return std::any_of(order_.begin(), order_.end(), [&](const UOp* node) {
      return node->op() == Op::kAfter && open_.DependsOn(node, loop);
    });
  }

  bool LoadsWhatItStores(const UOp* loop) const {
    absl::flat_hash_set<const UOp*> stored;
    for (const UOp* node : order_) {
      if (node->op() == Op::kStore && open_.DependsOn(node, loop)) {
        stored.insert(BaseBuffer(node->source(0)));
      }
    }
    return std::any_of(order_.begin(), order_.end(), [&](const UOp* node) {
      return node->op() == Op::kLoad && open_.DependsOn(node, loop) &&
             stored.contains(BaseBuffer(node->source(0)));
    });
  }

  const UOp* Make(Op op, absl::Span<const UOp* const> sources, const Argument& argument = {}) {
    absl::StatusOr<const UOp*> node = pass_.context.Make(op, DType(), sources, argument);
    if (node.ok()) return *node;
    if (error_.ok()) error_ = node.status();
    return pass_.context.Index(0);
  }
  const UOp* Make(Op op, std::initializer_list<const UOp*> sources, const Argument& argument = {}) {
    return Make(op, absl::MakeConstSpan(sources.begin(), sources.size()), argument);
  }

  // All nodes again, where `change` may change sources or give the node itself.
  template <typename Change>
  absl::StatusOr<const UOp*> Rebuild(Change change) {
    for (const UOp* node : order_) {
      if (copies_.contains(node)) continue;
      std::vector<const UOp*> sources;
      for (const UOp* source : node->sources()) sources.push_back(copies_.at(source));
      const UOp* copy = change(node, sources);
      if (copy == nullptr && std::equal(sources.begin(), sources.end(), node->sources().begin(),
                                        node->sources().end())) {
        copy = node;
      }
      if (copy == nullptr) {
        SVOD_ASSIGN_OR_RETURN(
            copy, pass_.context.Make(node->op(), node->dtype(), sources, node->argument()));
      }
      copies_[node] = copy;
    }
    SVOD_RETURN_IF_ERROR(error_);
    return copies_.at(sink_);
  }

  const UOp* sink_;
  int64_t axis_;
  std::string action_;
  PassContext& pass_;
  std::vector<const UOp*> order_;
  OpenLoops open_;
  const UOp* end_ = nullptr;
  int64_t next_axis_ = 0;
  absl::flat_hash_map<const UOp*, const UOp*> copies_;
  absl::Status error_;
};

}  // namespace

absl::StatusOr<const UOp*> SplitLoop(const UOp* sink, int64_t axis, int64_t amount,
                                     PassContext& context) {
  return Rearranger(sink, axis, absl::StrCat("split(", axis, ", ", amount, ")"), context)
      .Split(amount);
}

absl::StatusOr<const UOp*> SwapLoops(const UOp* sink, int64_t axis, PassContext& context) {
  return Rearranger(sink, axis, absl::StrCat("swap(", axis, ")"), context).Swap();
}

absl::StatusOr<const UOp*> MergeLoops(const UOp* sink, int64_t axis, PassContext& context) {
  return Rearranger(sink, axis, absl::StrCat("merge(", axis, ")"), context).Merge();
}

}  // namespace svod
