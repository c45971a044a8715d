#include "jit/choose_rows.h"

#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_map.h"

namespace svod {
namespace {

// So many rows are enough when they have more steps than a few.
constexpr int64_t kFewSteps = 4, kRows = 4, kMostRows = 8;
// Rows of more steps than this are bound by memory where they come from there: waiting is hidden
// behind it, and several streams of stores that miss every cache get in each other's way.
constexpr int64_t kStepsFromMemory = 8;

class RowChoice {
 public:
  RowChoice(LoopAnalysis& analysis, const Target& target, RangeAnalysis& ranges,
            const std::vector<LoopAction>& chosen)
      : analysis_(analysis), target_(target), ranges_(ranges), chosen_(chosen) {}

  // How many iterations of `rows` go side by side; 1: as it is.
  int64_t Of(const LoopUse& rows) {
    int64_t longest = 0;
    for (const UOp* node : analysis_.order()) {
      if (node->op() != Op::kReduce || !analysis_.DependsOn(node, rows.range)) continue;
      for (const UOp* range : node->sources().subspan(1)) {
        int64_t bytes = BytesOfStep(range);
        if (bytes == 0 || IsChosen(range)) return 1;
        bytes *= std::min(ranges_.Of(range->source(0)).max, target_.l1_bytes);
        longest = std::max(longest, (bytes + target_.vector_bytes - 1) / target_.vector_bytes);
      }
    }
    if (longest == 0 || IsChosen(rows.range) || HasFoldsFurtherIn(rows)) return 1;
    if (longest > kStepsFromMemory && BytesOfAll() > target_.last_level_bytes / 2) return 1;
    int64_t bytes = BytesOfOne(rows);
    if (bytes == 0) return 1;
    int64_t fit = std::min(target_.l1_bytes / 2 / bytes, ranges_.Of(rows.range->source(0)).min);
    return PowerOfTwoAtMost(std::clamp<int64_t>(fit, 1, longest > kFewSteps ? kRows : kMostRows));
  }

 private:
  bool IsChosen(const UOp* range) {
    return std::any_of(chosen_.begin(), chosen_.end(), [&](const LoopAction& action) {
      return action.axis == range->arg<AxisArgument>().axis;
    });
  }

  // What each step of a fold reads, one load after the other's end; 0 for other ways.
  int64_t BytesOfStep(const UOp* range) {
    int64_t bytes = 0;
    for (const UOp* node : analysis_.order()) {
      if (node->op() != Op::kLoad || !analysis_.DependsOn(node->source(0), range)) continue;
      int64_t stride = 0;
      if (!analysis_.StrideOf(node->source(0)->source(1), range, &stride)) return 0;
      if (stride != ConsecutiveElements(node)) return 0;
      bytes = std::max<int64_t>(bytes, node->dtype().size_bytes());
    }
    return bytes;
  }

  bool HasFoldsFurtherIn(const LoopUse& rows) {
    for (const LoopUse& loop : analysis_.loops()) {
      bool is_inside = loop.end != nullptr && analysis_.DependsOn(loop.end, rows.range);
      if (!is_inside) continue;
      if (IsChosen(loop.range)) return true;
      for (const UOp* node : analysis_.order()) {
        if (node->op() == Op::kReduce && analysis_.DependsOn(node, loop.range)) return true;
      }
    }
    return false;
  }

  // What one iteration reads and writes that others do not; 0 if that is not known.
  int64_t BytesOfOne(const LoopUse& rows) {
    absl::flat_hash_map<const UOp*, int64_t> sizes;
    for (const UOp* node : analysis_.order()) {
      if ((node->op() != Op::kLoad && node->op() != Op::kStore) ||
          !analysis_.DependsOn(node->source(0), rows.range)) {
        continue;
      }
      int64_t size = BaseBuffer(node->source(0))->dtype().size_bytes();
      for (const LoopUse& loop : analysis_.loops()) {
        bool is_inside = loop.range != rows.range &&
                         analysis_.DependsOn(node->source(0), loop.range) &&
                         !analysis_.DependsOn(rows.end, loop.range);
        int64_t extent = ranges_.Of(loop.range->source(0)).max;
        if (is_inside && __builtin_mul_overflow(size, extent, &size)) return 0;
      }
      int64_t& known = sizes[BaseBuffer(node->source(0))];
      known = std::max(known, size);
    }
    int64_t bytes = 0;
    for (const auto& [buffer, size] : sizes) {
      if (__builtin_add_overflow(bytes, size, &bytes)) return 0;
    }
    return bytes;
  }

  int64_t BytesOfAll() {
    int64_t bytes = 0;
    for (const UOp* node : analysis_.order()) {
      if (node->op() != Op::kParam) continue;
      int64_t size = MaxElements(node, ranges_).value_or(target_.last_level_bytes);
      if (__builtin_mul_overflow(size, node->dtype().size_bytes(), &size) ||
          __builtin_add_overflow(bytes, size, &bytes)) {
        return std::numeric_limits<int64_t>::max();
      }
    }
    return bytes;
  }

  LoopAnalysis& analysis_;
  const Target& target_;
  RangeAnalysis& ranges_;
  const std::vector<LoopAction>& chosen_;
};

}  // namespace

std::vector<LoopAction> ChooseRows(LoopAnalysis& analysis, const Target& target,
                                   RangeAnalysis& ranges, const std::vector<LoopAction>& chosen) {
  std::vector<LoopAction> actions;
  RowChoice choice(analysis, target, ranges, chosen);
  for (const LoopUse& loop : analysis.loops()) {
    int64_t rows = loop.end == nullptr ? 1 : choice.Of(loop);
    if (rows > 1) {
      actions.push_back({LoopAction::Kind::kUnroll, loop.range->arg<AxisArgument>().axis, rows});
    }
  }
  return actions;
}

}  // namespace svod
