#include "jit/choose_selections.h"

#include <algorithm>

#include "ir/evaluate.h"
#include "ir/selections.h"

namespace svod {

std::vector<LoopAction> ChooseSelections(const UOp* sink) {
  constexpr int64_t kMostTogether = 64;
  std::vector<const UOp*> order = Toposort(sink);
  std::vector<const UOp*> counters = SelectingCounters(order);
  std::vector<LoopAction> actions;
  int64_t together = 1;
  // An END comes after those inside it.
  for (const UOp* node : order) {
    if (node->op() != Op::kEnd) continue;
    const UOp* range = node->source(0);
    if (std::find(counters.begin(), counters.end(), range) == counters.end()) continue;
    const int64_t extent = ConstInt(range->source(0));
    if (together * extent > kMostTogether) break;
    together *= extent;
    actions.push_back({LoopAction::Kind::kUnroll, range->arg<AxisArgument>().axis, extent});
  }
  std::reverse(actions.begin(), actions.end());
  return actions;
}

}  // namespace svod
