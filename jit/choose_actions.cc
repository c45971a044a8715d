#include "jit/choose_actions.h"

#include <algorithm>
#include <optional>

#include "ir/open_loops.h"
#include "ir/passes/simplify.h"
#include "ir/status_macros.h"
#include "jit/choose_exchange.h"
#include "jit/choose_streams.h"
#include "jit/loop_strides.h"

namespace svod {
namespace {

using Kind = LoopAction::Kind;

// What one loop does to memory, by how far positions move with its counter.
struct LoopUse {
  const UOp* range = nullptr;
  const UOp* end = nullptr;  // null: a reduction's
  bool is_innermost = true;  // no END inside
  int neighbours = 0;        // accesses of the next element
  int strided = 0;           // accesses further away, or anywhere
  int element_bytes = 1;     // largest of what it stores or folds
};

// A kernel's loops and how its accesses move with their counters.
class LoopAnalysis {
 public:
  LoopAnalysis(const UOp* sink, RangeAnalysis& ranges)
      : ranges_(ranges), order_(Toposort(sink)), open_(order_) {
    for (const UOp* node : order_) {
      if (node->op() == Op::kRange) loops_.push_back({node});
    }
    for (const UOp* node : order_) {
      if (node->op() == Op::kEnd) Find(node->source(0))->end = node;
    }
    for (LoopUse& loop : loops_) Describe(loop);
  }

  std::vector<LoopUse>& loops() { return loops_; }
  const std::vector<const UOp*>& order() const { return order_; }

  LoopUse* Find(const UOp* range) {
    for (LoopUse& loop : loops_) {
      if (loop.range == range) return &loop;
    }
    return nullptr;
  }

  // The longest step of a load with the counter of `range`, among loads that do not depend on
  // `other` [bytes].
  int64_t FarthestStride(const UOp* range, const UOp* other) {
    int64_t farthest = 0;
    for (const UOp* node : order_) {
      if (node->op() != Op::kLoad || !DependsOn(node, range) || DependsOn(node, other)) continue;
      const UOp* position = node->source(0)->source(1);
      int64_t stride = 0;
      if (position->dtype().is_vector() || !StrideOf(position, range, &stride)) continue;
      farthest = std::max(farthest, stride * BaseBuffer(node->source(0))->dtype().size_bytes());
    }
    return farthest;
  }

  bool DependsOn(const UOp* node, const UOp* range) const { return open_.DependsOn(node, range); }

 private:
  bool StrideOf(const UOp* position, const UOp* range, int64_t* stride) {
    return svod::StrideOf(position, range, open_, ranges_, stride);
  }

  void Describe(LoopUse& loop) {
    for (const UOp* node : order_) {
      if (node->op() == Op::kEnd && node != loop.end && DependsOn(node, loop.range)) {
        loop.is_innermost = false;
      }
      if (node->op() == Op::kReduce) {
        absl::Span<const UOp* const> closed = node->sources().subspan(1);
        if (std::find(closed.begin(), closed.end(), loop.range) != closed.end()) {
          loop.element_bytes = std::max<int>(loop.element_bytes, node->dtype().size_bytes());
        }
      }
      bool is_access = node->op() == Op::kLoad || node->op() == Op::kStore;
      if (!is_access || !DependsOn(node->source(0), loop.range)) continue;
      DType dtype = BaseBuffer(node->source(0))->dtype();
      if (node->op() == Op::kStore) {
        loop.element_bytes = std::max<int>(loop.element_bytes, dtype.size_bytes());
      }
      const UOp* position = node->source(0)->source(1);
      int64_t stride = 0;
      if (position->dtype().is_vector() || !StrideOf(position, loop.range, &stride)) {
        ++loop.strided;
      } else if (stride == 1) {
        ++loop.neighbours;
      } else if (stride != 0) {
        ++loop.strided;
      }
    }
  }

  RangeAnalysis& ranges_;
  std::vector<const UOp*> order_;
  OpenLoops open_;
  std::vector<LoopUse> loops_;
};

int64_t PowerOfTwoAtMost(int64_t number) {
  int64_t power = 1;
  while (power * 2 <= number) power *= 2;
  return power;
}

class Chooser {
 public:
  Chooser(const UOp* sink, const Target& target, PassContext& pass)
      : sink_(sink), target_(target), pass_(pass) {}

  absl::StatusOr<const UOp*> Run() {
    while (std::optional<LoopAction> exchange = ChooseExchange(sink_, target_, pass_)) {
      if (!Try(*exchange)) break;
    }
    LoopAnalysis analysis(sink_, pass_.ranges);
    // Choices are made on the kernel as it is; axes keep their numbers.
    for (const LoopUse& loop : analysis.loops()) {
      if (loop.end == nullptr) {
        ConsiderGroup(analysis, loop);
      } else if (loop.is_innermost) {
        ConsiderUpcast(analysis, loop);
      }
    }
    // Vectors first: a loop whose iterations lie side by side has several stores.
    auto rank = [](Kind kind) { return kind == Kind::kUnroll ? 1 : kind == Kind::kPack ? 2 : 0; };
    std::stable_sort(
        actions_.begin(), actions_.end(),
        [&](const LoopAction& a, const LoopAction& b) { return rank(a.kind) < rank(b.kind); });
    for (const LoopAction& action : actions_) Try(action);
    for (const LoopAction& action : ChooseStreams(sink_, target_, pass_)) Try(action);
    return WithOpts();
  }

 private:
  bool Try(const LoopAction& action) {
    absl::StatusOr<const UOp*> done = ApplyLoopAction(sink_, action, pass_);
    if (!done.ok()) return false;
    sink_ = *done;
    applied_.push_back(ToString(action));
    return true;
  }

  int64_t MinExtent(const UOp* range) { return pass_.ranges.Of(range->source(0)).min; }
  int64_t MaxExtent(const UOp* range) { return pass_.ranges.Of(range->source(0)).max; }

  // Lanes that fill `registers` vector registers with elements of that size.
  int64_t LanesOf(int element_bytes, int registers) {
    return std::max<int64_t>(2, registers * target_.vector_bytes / std::max(element_bytes, 1));
  }

  static bool IsExact(const UOp* reduce) {
    ReduceKind kind = reduce->arg<ReduceArgument>().kind;
    bool rounds = kind == ReduceKind::kAdd || kind == ReduceKind::kMul;
    return !(rounds && reduce->dtype().is_float());
  }

  void ConsiderGroup(LoopAnalysis& analysis, const LoopUse& loop) {
    if (loop.neighbours == 0 || loop.strided > 0) return;
    for (const UOp* node : analysis.order()) {
      if (node->op() != Op::kReduce) continue;
      absl::Span<const UOp* const> closed = node->sources().subspan(1);
      if (std::find(closed.begin(), closed.end(), loop.range) == closed.end()) continue;
      if (!IsExact(node) || node->dtype().is_vector()) return;
    }
    int64_t lanes = std::min(LanesOf(loop.element_bytes, 4),
                             PowerOfTwoAtMost(std::max<int64_t>(MinExtent(loop.range), 1)));
    if (!IsConst(loop.range->source(0))) lanes = LanesOf(loop.element_bytes, 1);
    if (lanes < 4) return;
    actions_.push_back({Kind::kGroup, loop.range->arg<AxisArgument>().axis, lanes});
  }

  // Sums inside the loop whose products it shares with the loops around.
  std::vector<const UOp*> SumsIn(LoopAnalysis& analysis, const LoopUse& loop) {
    std::vector<const UOp*> sums;
    for (const UOp* node : analysis.order()) {
      if (node->op() == Op::kReduce && analysis.DependsOn(node, loop.range)) sums.push_back(node);
    }
    return sums;
  }

  void ConsiderUpcast(LoopAnalysis& analysis, const LoopUse& loop) {
    if (loop.neighbours == 0 || loop.strided > loop.neighbours) return;
    std::vector<const UOp*> sums = SumsIn(analysis, loop);
    bool has_sums = !sums.empty();
    bool is_long = MinExtent(loop.range) >= 8 * LanesOf(loop.element_bytes, 1);
    int64_t lanes = LanesOf(loop.element_bytes, has_sums || is_long ? 2 : 1);
    int64_t fits = PowerOfTwoAtMost(std::max<int64_t>(MinExtent(loop.range), 1));
    if (IsConst(loop.range->source(0))) {
      lanes = std::min(lanes, fits);
    } else if (fits < lanes) {
      lanes = LanesOf(loop.element_bytes, 1);  // masked
    }
    if (lanes < 2 || MaxExtent(loop.range) < 2) return;
    if (has_sums) ConsiderTile(analysis, loop, sums, lanes);
    actions_.push_back({Kind::kUpcast, loop.range->arg<AxisArgument>().axis, lanes});
  }

  // The innermost loop around `loop` that some operand of the sums does not depend on: its
  // iterations side by side load that operand once.
  void ConsiderTile(LoopAnalysis& analysis, const LoopUse& loop,
                    const std::vector<const UOp*>& sums, int64_t lanes) {
    const LoopUse* rows = nullptr;
    for (const LoopUse& outer : analysis.loops()) {
      if (outer.end == nullptr || outer.range == loop.range) continue;
      bool shares = false, all_depend = true;
      for (const UOp* sum : sums) {
        all_depend = all_depend && analysis.DependsOn(sum, outer.range);
        for (const UOp* factor : sum->source(0)->sources()) {
          shares = shares || (analysis.DependsOn(factor, loop.range) &&
                              !analysis.DependsOn(factor, outer.range));
        }
      }
      if (shares && all_depend) rows = &outer;
    }
    if (rows == nullptr) return;
    int64_t bytes = lanes * loop.element_bytes;
    int64_t registers = std::max<int64_t>(1, bytes / target_.vector_bytes);
    // Accumulators, one row of the shared operand and one of the other stay in registers.
    int64_t most = (target_.vector_registers - 2 - registers) /
                   (registers * static_cast<int64_t>(sums.size()));
    most = std::min<int64_t>(most, MinExtent(rows->range));
    if (most < 2) return;
    // The tile that computes the fewest rows twice at the end, if it still has sums enough to hide
    // the latency of a multiply-add; of equal ones the largest.
    constexpr int64_t kMinSums = 8;
    int64_t extent = MaxExtent(rows->range), best = most;
    auto computed = [&](int64_t tile) { return (extent + tile - 1) / tile * tile; };
    for (int64_t tile = most; tile >= 2 && tile * registers >= kMinSums; --tile) {
      if (computed(tile) < computed(best)) best = tile;
    }
    most = best;
    actions_.push_back({Kind::kUnroll, rows->range->arg<AxisArgument>().axis, most});
    // Rows of the shared operand that lie far apart share cache sets and pages: worth copying when
    // several tiles use the copy.
    if (MinExtent(rows->range) >= 2 * most && ReadsFarApart(analysis, sums, *rows)) {
      actions_.push_back({Kind::kPack, rows->range->arg<AxisArgument>().axis, 1});
    }
  }

  bool ReadsFarApart(LoopAnalysis& analysis, const std::vector<const UOp*>& sums,
                     const LoopUse& rows) {
    constexpr int64_t kFarBytes = 1024;
    for (const UOp* sum : sums) {
      for (const UOp* range : sum->sources().subspan(1)) {
        if (analysis.FarthestStride(range, rows.range) >= kFarBytes) return true;
      }
    }
    return false;
  }

  absl::StatusOr<const UOp*> WithOpts() {
    const auto& function = sink_->arg<FunctionArgument>();
    std::vector<absl::string_view> opts;
    for (absl::string_view opt : function.opts) {
      if (opt != kAutoOpt) opts.push_back(opt);
    }
    opts.insert(opts.end(), applied_.begin(), applied_.end());
    return pass_.context.Make(Op::kSink, sink_->sources(),
                              FunctionArgument{true, function.name, opts});
  }

  const UOp* sink_;
  const Target& target_;
  PassContext& pass_;
  std::vector<LoopAction> actions_;
  std::vector<std::string> applied_;
};

}  // namespace

absl::StatusOr<const UOp*> OptimizeLoops(const UOp* sink, const Target& target,
                                         PassContext& context) {
  absl::Span<const absl::string_view> opts = sink->arg<FunctionArgument>().opts;
  if (std::find(opts.begin(), opts.end(), kAutoOpt) == opts.end()) return sink;
  SVOD_ASSIGN_OR_RETURN(sink, RunSimplify(sink, context));
  return Chooser(sink, target, context).Run();
}

}  // namespace svod
