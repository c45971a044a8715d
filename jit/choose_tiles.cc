#include "jit/choose_tiles.h"

#include <algorithm>

#include "ir/evaluate.h"
#include "ir/passes/pack_panel.h"

namespace svod {
namespace {

using Kind = LoopAction::Kind;

// Of products, if there are some: others fold little beside them.
std::vector<const UOp*> SumsIn(LoopAnalysis& analysis, const LoopUse& loop) {
  std::vector<const UOp*> sums, products;
  for (const UOp* node : analysis.order()) {
    if (node->op() != Op::kReduce || !analysis.DependsOn(node, loop.range)) continue;
    sums.push_back(node);
    if (node->source(0)->num_sources() >= 2) products.push_back(node);
  }
  return products.empty() ? sums : products;
}

// Whether a fold in the loop, whose terms may be taken in any order, reads neighbours itself and
// the loop does not.
bool FoldsAreBetterVectors(LoopAnalysis& analysis, const LoopUse& loop) {
  for (const UOp* reduce : analysis.order()) {
    if (reduce->op() != Op::kReduce || !FoldsInAnyOrder(reduce) ||
        !analysis.DependsOn(reduce, loop.range)) {
      continue;
    }
    for (const UOp* node : analysis.order()) {
      int64_t across = 0, along = 0;
      if (node->op() != Op::kLoad || !analysis.DependsOn(node, loop.range)) continue;
      const UOp* position = node->source(0)->source(1);
      bool strides = analysis.StrideOf(position, loop.range, &across) && across > 1;
      if (!strides || IsNearlyDense(across)) continue;
      for (const UOp* range : reduce->sources().subspan(1)) {
        if (analysis.StrideOf(position, range, &along) && along == 1) return true;
      }
    }
  }
  return false;
}

// One nest of loops around sums, and what is decided about it.
class Tiler {
 public:
  Tiler(ShapedKernel& kernel, const Target& target, PassContext& pass)
      : kernel_(kernel), target_(target), pass_(pass) {}

  // The innermost loops around sums that may become vectors.
  std::vector<int64_t> Columns() {
    LoopAnalysis analysis(kernel_.sink, pass_.ranges);
    std::vector<int64_t> axes;
    for (const LoopUse& loop : analysis.loops()) {
      if (loop.end == nullptr || !loop.is_innermost || SumsIn(analysis, loop).empty()) continue;
      if (ChooseLanes(analysis, loop, target_, pass_.ranges) >= 2) axes.push_back(AxisOf(loop));
    }
    return axes;
  }

  void Tile(int64_t axis, std::vector<LoopAction>* unrolls) {
    LoopAnalysis analysis(kernel_.sink, pass_.ranges);
    const LoopUse* columns = LoopOf(analysis, axis);
    if (columns == nullptr) return;
    std::vector<const UOp*> sums = SumsIn(analysis, *columns);
    int64_t lanes = ChooseLanes(analysis, *columns, target_, pass_.ranges);
    int64_t registers = RegistersOf(lanes, *columns);
    const LoopUse* rows = FindRows(analysis, *columns, sums);
    int64_t tile = rows == nullptr ? 1 : ChooseRows(*rows, registers, sums.size());
    if (tile < 2) {
      if (ExpandWindows(analysis, *columns, sums, lanes, unrolls)) return;
      // Nothing is shared between rows: more columns side by side hide the latency of folding.
      int64_t blocks = std::min<int64_t>(kMinSums / registers,
                                         MinExtent(columns->range) / std::max<int64_t>(lanes, 1));
      if (blocks >= 2) AddUnroll(axis, PowerOfTwoAtMost(blocks), unrolls);
      return;
    }
    int64_t rows_axis = AxisOf(*rows);
    int64_t bytes = PanelBytes(analysis, *columns, *rows, sums);
    if (TakeWholeRows(analysis, *columns, *rows, sums, tile, bytes)) return;
    AddUnroll(rows_axis, tile, unrolls);
    if (bytes == 0 || !NeedsPanel(analysis, *columns, *rows, sums, tile)) {
      UseTwice(rows_axis, axis, registers, tile * static_cast<int64_t>(sums.size()), unrolls);
      return;
    }
    int64_t extent = MaxExtent(columns->range);
    if (bytes > kMaxPanelBytes) {
      // As many columns at a time as fit.
      int64_t fit = kMaxPanelBytes / std::max<int64_t>(1, bytes / extent) / lanes * lanes;
      if (fit < lanes || !IsAround(*rows, *columns)) return;
      int64_t pieces = (extent + fit - 1) / fit;
      int64_t piece = ((extent + pieces - 1) / pieces + lanes - 1) / lanes * lanes;
      int64_t inner = NextAxis(analysis);
      if (!Apply({{Kind::kSplit, axis, piece}, {Kind::kSwap, rows_axis, 1}})) return;
      axis = inner;
      extent = piece;
    }
    // Columns of several loops that lie next to one another in a panel are one loop there.
    int64_t outer = OuterColumns(rows_axis, axis);
    if (outer >= 0 && Apply({{Kind::kPack, rows_axis, 2}, {Kind::kMerge, outer, 1}})) {
      FitRows(rows_axis, outer, unrolls);
      return;
    }
    if (extent > lanes) Apply({{Kind::kSplit, axis, lanes}});
    Apply({{Kind::kPack, rows_axis, 1}});
  }

 private:
  // Sums at once that hide the latency of a multiply-add, with two units of four cycles.
  static constexpr int64_t kMinSums = 8;
  // Rows of a tile where it is known at run time only how many there are.
  static constexpr int64_t kVariableRows = 8;
  // Rows at least so far apart share few cache sets, and hardly a page.
  static constexpr int64_t kFarBytes = 1024;

  static int64_t AxisOf(const LoopUse& loop) { return loop.range->arg<AxisArgument>().axis; }
  // The loop, not a reduction's, of that axis; null if there is none.
  static const LoopUse* LoopOf(LoopAnalysis& analysis, int64_t axis) {
    for (const LoopUse& loop : analysis.loops()) {
      if (loop.end != nullptr && AxisOf(loop) == axis) return &loop;
    }
    return nullptr;
  }
  // Vector registers that so many lanes of what the columns store or fold fill.
  int64_t RegistersOf(int64_t lanes, const LoopUse& columns) {
    return std::max<int64_t>(1, lanes * columns.element_bytes / target_.vector_bytes);
  }
  int64_t MinExtent(const UOp* range) { return pass_.ranges.Of(range->source(0)).min; }
  int64_t MaxExtent(const UOp* range) { return pass_.ranges.Of(range->source(0)).max; }

  static int64_t NextAxis(LoopAnalysis& analysis) {
    int64_t next = 0;
    for (const LoopUse& loop : analysis.loops()) next = std::max(next, AxisOf(loop) + 1);
    return next;
  }

  // Several sums in one loop ask for the same tile.
  static void AddUnroll(int64_t axis, int64_t amount, std::vector<LoopAction>* unrolls) {
    for (const LoopAction& action : *unrolls) {
      if (action.axis == axis) return;
    }
    unrolls->push_back({Kind::kUnroll, axis, amount});
  }

  bool Apply(std::initializer_list<LoopAction> actions) { return kernel_.Apply(actions, pass_); }

  // One tile has all rows, so that an operand too large for the cache is read once: then as it
  // lies, whole stretches of a few of its rows at a time, with the sums in scratch memory.
  bool TakeWholeRows(LoopAnalysis& analysis, const LoopUse& columns, const LoopUse& rows,
                     const std::vector<const UOp*>& sums, int64_t tile, int64_t bytes) {
    constexpr int64_t kFolded = 8;
    if (MaxExtent(rows.range) != tile || sums.size() != 1 || sums[0]->num_sources() != 2 ||
        bytes <= target_.l2_bytes || MinExtent(columns.range) * 4 < kFarBytes ||
        analysis.FarthestStride(sums[0]->source(1), rows.range) < kFarBytes) {
      return false;
    }
    int64_t folded = sums[0]->source(1)->arg<AxisArgument>().axis;
    return Apply({{Kind::kUnroll, AxisOf(rows), tile}, {Kind::kExchange, folded, kFolded}});
  }

  // Sums of a few terms, such as windows of an image, are written out. Results of a few rows are
  // computed together when windows overlap: they share what they load.
  bool ExpandWindows(LoopAnalysis& analysis, const LoopUse& columns,
                     const std::vector<const UOp*>& sums, int64_t lanes,
                     std::vector<LoopAction>* unrolls) {
    constexpr int64_t kMostTerms = 32, kMostOps = 192, kMostRows = 4;
    if (lanes < 2) return false;
    const int64_t registers = RegistersOf(lanes, columns);
    int64_t terms = 0;
    std::vector<int64_t> axes;
    for (const UOp* sum : sums) {
      int64_t of_sum = 1;
      for (const UOp* range : sum->sources().subspan(1)) {
        if (!IsConst(range->source(0))) return false;
        of_sum *= std::clamp<int64_t>(ConstInt(range->source(0)), 0, kMostTerms + 1);
        if (of_sum > kMostTerms) return false;
      }
      terms += of_sum;
      axes.push_back(sum->source(1)->arg<AxisArgument>().axis);
    }
    if (terms > kMostTerms) return false;
    const LoopUse* rows = OverlappingRows(analysis, columns, sums);
    std::sort(axes.begin(), axes.end());
    axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
    bool is_expanded = false;
    for (int64_t axis : axes) is_expanded = Apply({{Kind::kExpand, axis, 1}}) || is_expanded;
    if (!is_expanded) return false;
    if (rows != nullptr) {
      const int64_t fit =
          std::min(target_.vector_registers / 2 / registers, kMostOps / (terms * registers));
      const int64_t together = std::min({kMostRows, fit, MinExtent(rows->range)});
      if (together >= 2) {
        AddUnroll(AxisOf(*rows), together, unrolls);
      }
    }
    return true;
  }

  // The loop directly around the columns if the windows that its iterations read overlap.
  const LoopUse* OverlappingRows(LoopAnalysis& analysis, const LoopUse& columns,
                                 const std::vector<const UOp*>& sums) {
    for (const LoopUse& outer : analysis.loops()) {
      if (outer.end == nullptr || !IsAround(outer, columns)) continue;
      for (const UOp* sum : sums) {
        for (const UOp* node : Toposort(sum->source(0))) {
          int64_t step = 0, reach = 0;
          if (node->op() != Op::kLoad ||
              !analysis.StrideOf(node->source(0)->source(1), outer.range, &step) || step == 0) {
            continue;
          }
          for (const UOp* range : sum->sources().subspan(1)) {
            bool overlaps = analysis.StrideOf(node->source(0)->source(1), range, &reach) &&
                            reach != 0 && step % reach == 0 &&
                            step / reach < ConstInt(range->source(0));
            if (overlaps) return &outer;
          }
        }
      }
    }
    return nullptr;
  }

  // The innermost loop around the columns that some operand of the sums does not depend on: its
  // iterations side by side load that operand once.
  static const LoopUse* FindRows(LoopAnalysis& analysis, const LoopUse& columns,
                                 const std::vector<const UOp*>& sums) {
    const LoopUse* rows = nullptr;
    for (const LoopUse& outer : analysis.loops()) {
      if (outer.end == nullptr || outer.range == columns.range) continue;
      bool shares = false, all_depend = true;
      for (const UOp* sum : sums) {
        all_depend = all_depend && analysis.DependsOn(sum, outer.range);
        for (const UOp* factor : sum->source(0)->sources()) {
          shares = shares || (analysis.DependsOn(factor, columns.range) &&
                              !analysis.DependsOn(factor, outer.range));
        }
      }
      if (shares && all_depend) rows = &outer;
    }
    return rows;
  }

  // The tile that computes the fewest rows twice at the end, if it still has sums enough; of equal
  // ones the largest. Accumulators, one row of the shared operand and one value of the other stay
  // in registers.
  int64_t ChooseRows(const LoopUse& rows, int64_t registers, size_t num_sums) {
    int64_t most =
        (target_.vector_registers - 2 - registers) / (registers * static_cast<int64_t>(num_sums));
    if (!IsConst(rows.range->source(0)) && MinExtent(rows.range) >= 1) {
      // However few there are, so many are computed.
      return std::max<int64_t>(1, std::min({most, kVariableRows, MaxExtent(rows.range)}));
    }
    most = std::min<int64_t>(most, MinExtent(rows.range));
    if (most < 2) return 1;
    int64_t extent = MaxExtent(rows.range), best = most;
    auto computed = [&](int64_t tile) { return (extent + tile - 1) / tile * tile; };
    for (int64_t tile = most; tile >= 2 && tile * registers >= kMinSums; --tile) {
      if (computed(tile) < computed(best)) best = tile;
    }
    return best;
  }

  // Operands of sums that move with the columns and not with the rows.
  static std::vector<const UOp*> Shared(LoopAnalysis& analysis, const LoopUse& columns,
                                        const LoopUse& rows, const std::vector<const UOp*>& sums) {
    std::vector<const UOp*> shared;
    for (const UOp* sum : sums) {
      for (const UOp* factor : sum->source(0)->sources()) {
        if (analysis.DependsOn(factor, columns.range) && !analysis.DependsOn(factor, rows.range)) {
          shared.push_back(factor);
        }
      }
    }
    return shared;
  }

  // The axis of a loop in `rows` that has just the loop of `columns` in it; -1 if there is none.
  int64_t OuterColumns(int64_t rows, int64_t columns) {
    LoopAnalysis analysis(kernel_.sink, pass_.ranges);
    for (const LoopUse& loop : analysis.loops()) {
      if (loop.end == nullptr || AxisOf(loop) == rows || loop.end->num_sources() != 2) continue;
      const UOp* inner = loop.end->source(1);
      if (inner->op() != Op::kEnd || inner->source(0)->arg<AxisArgument>().axis != columns)
        continue;
      if (IsConst(loop.range->source(0)) && IsConst(inner->source(0)->source(0))) {
        return AxisOf(loop);
      }
    }
    return -1;
  }

  static bool IsAround(const LoopUse& outer, const LoopUse& inner) {
    return outer.end->num_sources() == 2 && outer.end->source(1) == inner.end;
  }

  // Columns in one register use a value that is the same in all lanes once: two iterations of the
  // loop around them, where it is the same as well, use it twice.
  void UseTwice(int64_t rows, int64_t columns, int64_t registers, int64_t accumulators,
                std::vector<LoopAction>* unrolls) {
    int64_t around = registers == 1 ? OuterColumns(rows, columns) : -1;
    if (around < 0 || 2 * accumulators + 4 > target_.vector_registers) return;
    AddUnroll(around, 2, unrolls);
  }

  // Merged columns may fill more registers than those that the tile was chosen for.
  void FitRows(int64_t rows_axis, int64_t columns_axis, std::vector<LoopAction>* unrolls) {
    LoopAnalysis analysis(kernel_.sink, pass_.ranges);
    const LoopUse *rows = LoopOf(analysis, rows_axis), *columns = LoopOf(analysis, columns_axis);
    if (rows == nullptr || columns == nullptr) return;
    int64_t lanes = ChooseLanes(analysis, *columns, target_, pass_.ranges);
    int64_t registers = RegistersOf(lanes, *columns);
    int64_t tile = ChooseRows(*rows, registers, SumsIn(analysis, *columns).size());
    for (LoopAction& unroll : *unrolls) {
      if (unroll.axis == rows_axis) unroll.amount = tile;
    }
  }

  // What the shared operands would take in scratch memory; 0 if that is not known.
  int64_t PanelBytes(LoopAnalysis& analysis, const LoopUse& columns, const LoopUse& rows,
                     const std::vector<const UOp*>& sums) {
    int64_t bytes = 0;
    std::vector<const UOp*> inside = Toposort(rows.end);
    for (const UOp* operand : Shared(analysis, columns, rows, sums)) {
      int64_t size = operand->dtype().size_bytes();
      for (const LoopUse& loop : analysis.loops()) {
        bool is_inside = loop.end == nullptr ||
                         std::find(inside.begin(), inside.end(), loop.end) != inside.end();
        if (!is_inside || !analysis.DependsOn(operand, loop.range)) continue;
        if (__builtin_mul_overflow(size, MaxExtent(loop.range), &size)) return 0;
      }
      bytes += size;
    }
    return bytes;
  }

  bool NeedsPanel(LoopAnalysis& analysis, const LoopUse& columns, const LoopUse& rows,
                  const std::vector<const UOp*>& sums, int64_t tile) {
    constexpr int64_t kFewRows = 4;
    int64_t reuse = MinExtent(rows.range);
    for (const UOp* operand : Shared(analysis, columns, rows, sums)) {
      bool is_plain = operand->op() == Op::kLoad && operand->source(0)->num_sources() == 2;
      int64_t stride = 0;
      bool is_next = is_plain &&
                     analysis.StrideOf(operand->source(0)->source(1), columns.range, &stride) &&
                     stride == 1;
      if (!is_next && MaxExtent(rows.range) >= kFewRows) return true;
    }
    // Putting rows that lie as they are read into a panel costs about as much as reading them from
    // afar for so many tiles: 28 x 1024 x 1024 takes 280 us without, 399 us with.
    constexpr int64_t kFewTiles = 2;
    if (reuse <= kFewTiles * tile) return false;
    for (const UOp* sum : sums) {
      for (const UOp* range : sum->sources().subspan(1)) {
        if (analysis.FarthestStride(range, rows.range) >= kFarBytes) return true;
      }
    }
    return false;
  }

  ShapedKernel& kernel_;
  const Target& target_;
  PassContext& pass_;
};

}  // namespace

int64_t ChooseLanes(LoopAnalysis& analysis, const LoopUse& loop, const Target& target,
                    RangeAnalysis& ranges) {
  if (loop.neighbours == 0 || loop.strided > loop.neighbours) return 0;
  IntRange extent = ranges.Of(loop.range->source(0));
  if (extent.max < 2 || FoldsAreBetterVectors(analysis, loop)) return 0;
  // Two registers of everything must fit, and not compute more than one register at a time would.
  int64_t one = LanesOf(loop.element_bytes, 1, target);
  bool wastes = (extent.min + 2 * one - 1) / (2 * one) * 2 > (extent.min + one - 1) / one;
  bool is_long = extent.min >= 2 * one && (extent.min >= 8 * one || !wastes) &&
                 loop.neighbours * 2 < target.vector_registers;
  bool has_sums = !SumsIn(analysis, loop).empty();
  int64_t lanes = LanesOf(loop.element_bytes, has_sums || is_long ? 2 : 1, target);
  int64_t fits = PowerOfTwoAtMost(std::max<int64_t>(extent.min, 1));
  if (IsConst(loop.range->source(0))) return std::min(lanes, fits);
  return fits < lanes ? LanesOf(loop.element_bytes, 1, target)
                      : lanes;  // masked when it may not fit
}

void TileSums(ShapedKernel& kernel, const Target& target, PassContext& context,
              std::vector<LoopAction>* unrolls) {
  Tiler tiler(kernel, target, context);
  for (int64_t axis : tiler.Columns()) tiler.Tile(axis, unrolls);
}

}  // namespace svod
