#include "jit/choose_actions.h"

#include <algorithm>
#include <optional>

#include "ir/passes/apply_actions.h"
#include "ir/passes/simplify.h"
#include "ir/status_macros.h"
#include "jit/choose_dots.h"
#include "jit/choose_exchange.h"
#include "jit/choose_rows.h"
#include "jit/choose_selections.h"
#include "jit/choose_streams.h"
#include "jit/choose_tiles.h"
#include "jit/loop_analysis.h"

namespace svod {
namespace {

using Kind = LoopAction::Kind;

class Chooser {
 public:
  Chooser(const UOp* sink, const Target& target, PassContext& pass)
      : kernel_{sink, {}}, target_(target), pass_(pass) {}

  absl::StatusOr<const UOp*> Run() {
    for (const LoopAction& selection : ChooseSelections(kernel_.sink)) Apply(selection);
    while (std::optional<LoopAction> exchange = ChooseExchange(kernel_.sink, target_, pass_)) {
      if (!Apply(*exchange)) break;
    }
    MergeLoops();
    for (const LoopAction& dot : ChooseDots(kernel_.sink, target_, pass_)) Apply(dot);
    std::vector<LoopAction> unrolls;
    TileSums(kernel_, target_, pass_, &unrolls);
    MergeFolds();
    LoopAnalysis analysis(kernel_.sink, pass_.ranges);
    std::vector<LoopAction> rows = ChooseRows(analysis, target_, pass_.ranges, unrolls);
    unrolls.insert(unrolls.end(), rows.begin(), rows.end());
    // Choices are made on the kernel as it is; axes keep their numbers.
    for (const LoopUse& loop : analysis.loops()) {
      if (loop.end == nullptr) {
        ConsiderGroup(analysis, loop, unrolls);
      } else if (loop.is_innermost) {
        ConsiderUpcast(analysis, loop);
      }
    }
    // Vectors first: a loop whose iterations lie side by side has several stores.
    actions_.insert(actions_.end(), unrolls.begin(), unrolls.end());
    for (const LoopAction& action : actions_) Apply(action);
    for (const LoopAction& action : ChooseStreams(kernel_.sink, target_, pass_)) Apply(action);
    return WithOpts();
  }

 private:
  int64_t MinExtent(const UOp* range) { return pass_.ranges.Of(range->source(0)).min; }

  // Loops that move through memory as one become one, from the inside out.
  void MergeLoops() {
    std::vector<int64_t> axes;
    for (const UOp* node : Toposort(kernel_.sink)) {
      bool is_nest =
          node->op() == Op::kEnd && node->num_sources() == 2 && node->source(1)->op() == Op::kEnd;
      if (is_nest) axes.push_back(node->source(0)->arg<AxisArgument>().axis);
    }
    for (int64_t axis : axes) Apply({Kind::kMerge, axis, 1});
  }

  // The same for the counters of reductions.
  void MergeFolds() {
    std::vector<int64_t> axes;
    for (const UOp* node : Toposort(kernel_.sink)) {
      if (node->op() != Op::kReduce) continue;
      for (int i = node->num_sources() - 2; i >= 1; --i) {
        int64_t axis = node->source(i)->arg<AxisArgument>().axis;
        if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
      }
    }
    for (int64_t axis : axes) Apply({Kind::kMerge, axis, 1});
  }

  bool Apply(const LoopAction& action) { return kernel_.Apply({action}, pass_); }

  void ConsiderGroup(LoopAnalysis& analysis, const LoopUse& loop,
                     const std::vector<LoopAction>& unrolls) {
    if (loop.neighbours == 0 || loop.strided > 0) return;
    bool is_slow = false;  // extremes of floats look after NaN in a chain of several instructions
    for (const UOp* node : analysis.order()) {
      if (node->op() != Op::kReduce) continue;
      absl::Span<const UOp* const> closed = node->sources().subspan(1);
      if (std::find(closed.begin(), closed.end(), loop.range) == closed.end()) continue;
      if (!FoldsInAnyOrder(node) || node->dtype().is_vector()) return;
      is_slow = is_slow || (node->dtype().is_float() && target_.vector_registers >= 32);
    }
    // Folds that will be side by side hide one another's latency.
    int64_t copies = 1;
    for (const LoopAction& unroll : unrolls) {
      for (const UOp* node : analysis.order()) {
        if (node->op() != Op::kReduce) continue;
        absl::Span<const UOp* const> closed = node->sources().subspan(1);
        bool is_it = std::find(closed.begin(), closed.end(), loop.range) != closed.end();
        for (const LoopUse& outer : analysis.loops()) {
          bool is_unrolled = outer.range->arg<AxisArgument>().axis == unroll.axis;
          if (is_it && is_unrolled && analysis.DependsOn(node, outer.range)) copies = unroll.amount;
        }
      }
    }
    const int registers = static_cast<int>(std::max<int64_t>(1, (is_slow ? 8 : 4) / copies));
    int64_t lanes = std::min(LanesOf(loop.element_bytes, registers, target_),
                             PowerOfTwoAtMost(std::max<int64_t>(MinExtent(loop.range), 1)));
    if (!IsConst(loop.range->source(0))) lanes = LanesOf(loop.element_bytes, 1, target_);
    if (lanes < 4) return;
    actions_.push_back({Kind::kGroup, loop.range->arg<AxisArgument>().axis, lanes});
  }

  void ConsiderUpcast(LoopAnalysis& analysis, const LoopUse& loop) {
    int64_t lanes = ChooseLanes(analysis, loop, target_, pass_.ranges);
    if (lanes < 2) return;
    std::optional<LoopAction> transpose = ConsiderTranspose(analysis, loop);
    if (transpose.has_value()) {
      lanes = std::min(transpose->amount, PowerOfTwoAtMost(MinExtent(loop.range)));
    }
    actions_.push_back({Kind::kUpcast, loop.range->arg<AxisArgument>().axis, lanes});
    if (transpose.has_value()) actions_.push_back(*transpose);
  }

  // What a loop reads with a stride, a loop around it reads side by side: squares of their
  // iterations read whole stretches of memory, which turn in registers.
  std::optional<LoopAction> ConsiderTranspose(LoopAnalysis& analysis, const LoopUse& loop) {
    constexpr int64_t kLeast = 4, kFewBytes = 64;
    if (loop.strided == 0) return std::nullopt;
    const LoopUse* around = nullptr;
    for (const UOp* node : analysis.order()) {
      if (node->op() == Op::kReduce && analysis.DependsOn(node, loop.range)) {
        return std::nullopt;
      }
      if (node->op() != Op::kLoad) continue;
      const UOp* position = node->source(0)->source(1);
      int64_t stride = 0, step = 0;
      bool strides = analysis.StrideOf(position, loop.range, &stride) &&
                     stride * node->dtype().size_bytes() >= kFewBytes;
      for (const LoopUse& outer : analysis.loops()) {
        bool is_around = outer.end != nullptr && outer.end->num_sources() == 2 &&
                         outer.end->source(1) == loop.end;
        if (strides && is_around && analysis.StrideOf(position, outer.range, &step) && step == 1) {
          around = &outer;
        }
      }
    }
    if (around == nullptr) return std::nullopt;
    int64_t side = std::min(
        {LanesOf(loop.element_bytes, 1, target_), MinExtent(around->range), MinExtent(loop.range)});
    side = PowerOfTwoAtMost(std::max<int64_t>(side, 1));
    // Of shorter stretches at least what comes into the cache together is used together.
    if (side < kLeast) side = 8;
    if (MinExtent(around->range) < side) return std::nullopt;
    return LoopAction{Kind::kUnroll, around->range->arg<AxisArgument>().axis, side};
  }

  absl::StatusOr<const UOp*> WithOpts() {
    const auto& function = kernel_.sink->arg<FunctionArgument>();
    std::vector<absl::string_view> opts;
    for (absl::string_view opt : function.opts) {
      if (opt != kAutoOpt) opts.push_back(opt);
    }
    opts.insert(opts.end(), kernel_.applied.begin(), kernel_.applied.end());
    return pass_.context.Make(Op::kSink, kernel_.sink->sources(),
                              FunctionArgument{true, function.name, opts});
  }

  ShapedKernel kernel_;
  const Target& target_;
  PassContext& pass_;
  std::vector<LoopAction> actions_;
};

}  // namespace

absl::StatusOr<const UOp*> OptimizeLoops(const UOp* sink, const Target& target,
                                         PassContext& context) {
  if (HasOpt(sink, kApplyOpt)) return RunApplyActions(sink, context);
  if (!HasOpt(sink, kAutoOpt)) return sink;
  SVOD_ASSIGN_OR_RETURN(sink, RunSimplify(sink, context));
  return Chooser(sink, target, context).Run();
}

}  // namespace svod
