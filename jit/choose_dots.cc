#include "jit/choose_dots.h"

#include "ir/passes/dot_products.h"
#include "jit/choose_tiles.h"
#include "jit/loop_analysis.h"

namespace svod {
namespace {

// How well four of a counter's products make one; below 0: not at all.
int64_t Worth(LoopAnalysis& analysis, const UOp* range, const UOp* row, RangeAnalysis& ranges) {
  constexpr int64_t kLeast = 8, kDivides = int64_t{1} << 40, kNeighbours = int64_t{1} << 41;
  IntRange extent = ranges.Of(range->source(0));
  if (extent.min < kLeast) return -1;
  int64_t worth = extent.min;
  if (IsConst(range->source(0)) && extent.min % 4 == 0) worth += kDivides;
  for (const UOp* node : Toposort(row)) {
    int64_t stride = 0;
    bool is_next = node->op() == Op::kLoad &&
                   analysis.StrideOf(node->source(0)->source(1), range, &stride) && stride == 1;
    if (is_next) worth += kNeighbours;
  }
  return worth;
}

}  // namespace

std::vector<LoopAction> ChooseDots(const UOp* sink, const Target& target, PassContext& context) {
  std::vector<LoopAction> dots;
  if (!HasFeature(target, "sse2")) return dots;
  LoopAnalysis analysis(sink, context.ranges);
  for (const LoopUse& columns : analysis.loops()) {
    if (columns.end == nullptr || !columns.is_innermost) continue;
    if (ChooseLanes(analysis, columns, target, context.ranges) < 4) continue;
    for (const UOp* sum : analysis.order()) {
      if (sum->op() != Op::kReduce || !analysis.DependsOn(sum, columns.range)) continue;
      const UOp* product = sum->source(0);
      if (product->op() != Op::kMul || product->dtype() != Scalar::kI32) continue;
      const UOp *row = product->source(0), *column = product->source(1);
      if (analysis.DependsOn(row, columns.range)) std::swap(row, column);
      if (analysis.DependsOn(row, columns.range) || ByteUnder(row, context.context) == nullptr ||
          ByteUnder(column, context.context) == nullptr) {
        continue;
      }
      const UOp* best = nullptr;
      int64_t most = -1;
      for (const UOp* range : sum->sources().subspan(1)) {
        int64_t worth = Worth(analysis, range, row, context.ranges);
        if (worth > most) {
          most = worth;
          best = range;
        }
      }
      if (best == nullptr) continue;
      dots.push_back({LoopAction::Kind::kDot, best->arg<AxisArgument>().axis, 1});
    }
  }
  return dots;
}

}  // namespace svod
