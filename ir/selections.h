// SelectingCounters: loops that choose between values rather than walk through memory.
// Included by the choice of loop actions and by the scheduler. Must not change nodes.
#ifndef SVOD_IR_SELECTIONS_H_
#define SVOD_IR_SELECTIONS_H_

#include <vector>

#include "absl/types/span.h"
#include "ir/uop.h"

namespace svod {

// Most iterations of a loop whose counter is said to select.
inline constexpr int64_t kMaxSelections = 8;

// The RANGEs of loops of 2 to kMaxSelections iterations whose counter, compared with a constant,
// decides which of two values a WHERE gives: a result put together from a few values, one an
// iteration. Written out, each iteration computes its own value alone, and all of them share what
// the values have in common. In the order of `order`: all nodes, sources first.
inline std::vector<const UOp*> SelectingCounters(absl::Span<const UOp* const> order) {
  std::vector<const UOp*> counters;
  for (const UOp* node : order) {
    if (node->op() != Op::kWhere || node->source(0)->op() != Op::kCmpEq) continue;
    const UOp* counter = node->source(0)->source(0);
    if (!IsConst(node->source(0)->source(1))) continue;
    while (counter->op() == Op::kCast) counter = counter->source(0);
    if (counter->op() != Op::kRange || counter->arg<AxisArgument>().kind != AxisKind::kLoop ||
        !IsConst(counter->source(0))) {
      continue;
    }
    const int64_t extent = ConstInt(counter->source(0));
    if (extent < 2 || extent > kMaxSelections) continue;
    bool is_known = false;
    for (const UOp* known : counters) is_known = is_known || known == counter;
    if (!is_known) counters.push_back(counter);
  }
  return counters;
}

}  // namespace svod

#endif  // SVOD_IR_SELECTIONS_H_
