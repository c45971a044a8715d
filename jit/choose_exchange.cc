#include "jit/choose_exchange.h"

#include <algorithm>
#include <cstdlib>

#include "ir/linearize.h"
#include "ir/open_loops.h"
#include "jit/loop_strides.h"

namespace svod {
namespace {

// Rows side by side: partial sums are then loaded and stored for every fourth row only, and no more
// streams run than hardware prefetchers follow.
constexpr int64_t kRowsAtOnce = 4;

class ExchangeChoice {
 public:
  ExchangeChoice(const UOp* sink, const Target& target, PassContext& pass)
      : target_(target), pass_(pass), order_(Toposort(sink)), open_(order_) {}

  std::optional<LoopAction> Run(const LinearKernel& linear) {
    for (const UOp* node : order_) {
      if (node->op() != Op::kReduce || node->num_sources() != 2) continue;
      const UOp* rows = node->source(1);
      auto parent = linear.parent_loop.find(rows);
      if (parent == linear.parent_loop.end() || !Gains(node, rows, parent->second)) continue;
      int64_t amount = std::min(kRowsAtOnce, ConstInt(rows->source(0)));
      if (HasLoopInside(rows)) amount = 1;
      return LoopAction{LoopAction::Kind::kExchange, rows->arg<AxisArgument>().axis, amount};
    }
    return std::nullopt;
  }

 private:
  bool HasLoopInside(const UOp* rows) {
    return std::any_of(order_.begin(), order_.end(), [&](const UOp* node) {
      return node->op() == Op::kReduce && open_.DependsOn(node, rows);
    });
  }

  bool Gains(const UOp* reduce, const UOp* rows, const UOp* columns) {
    if (!IsConst(rows->source(0)) || !IsConst(columns->source(0)) ||
        columns->arg<AxisArgument>().kind == AxisKind::kReduce) {
      return false;
    }
    const int64_t sum_bytes = reduce->dtype().size_bytes();
    const int64_t width_bytes = ConstInt(columns->source(0)) * sum_bytes;
    // A quarter of the registers holds the sums of fewer columns.
    if (width_bytes <= target_.vector_registers / 4 * target_.vector_bytes ||
        width_bytes > target_.l2_bytes / 2 || ConstInt(rows->source(0)) < 2) {
      return false;
    }
    bool reads_rows = false;
    for (const UOp* node : Toposort(reduce)) {
      if (node->op() != Op::kLoad || !open_.DependsOn(node, rows)) continue;
      const UOp* position = node->source(0)->source(1);
      int64_t down = 0, along = 0;
      if (!StrideOf(position, rows, open_, pass_.ranges, &down) ||
          !StrideOf(position, columns, open_, pass_.ranges, &along)) {
        return false;
      }
      if (!open_.DependsOn(node, columns)) continue;
      if (along != 1 || std::abs(down) < ConstInt(columns->source(0))) return false;
      // A loop further out that uses the same elements again wants a tile of them instead.
      for (const UOp* range : open_.At(reduce)) {
        if (range != columns && !open_.DependsOn(node, range)) return false;
      }
      reads_rows = true;
    }
    return reads_rows;
  }

  const Target& target_;
  PassContext& pass_;
  std::vector<const UOp*> order_;
  OpenLoops open_;
};

}  // namespace

std::optional<LoopAction> ChooseExchange(const UOp* sink, const Target& target,
                                         PassContext& context) {
  absl::StatusOr<LinearKernel> linear = Linearize(sink);
  if (!linear.ok()) return std::nullopt;
  return ExchangeChoice(sink, target, context).Run(*linear);
}

}  // namespace svod
