// OpenLoops: the loops that each node of a kernel depends on and that are open there.
// Included by what changes loops and by the choice of it. Must not change nodes.
#ifndef SVOD_IR_OPEN_LOOPS_H_
#define SVOD_IR_OPEN_LOOPS_H_

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "ir/uop.h"

namespace svod {

// Unlike Linearize it needs no order, and so takes kernels whose loops are about to change.
class OpenLoops {
 public:
  // `order`: all nodes, sources first.
  explicit OpenLoops(absl::Span<const UOp* const> order) {
    for (const UOp* node : order) Add(node);
  }

  // RANGE nodes; those that an END or REDUCE closes are open below it, not at it.
  const std::vector<const UOp*>& At(const UOp* node) const { return loops_.at(node); }
  bool DependsOn(const UOp* node, const UOp* range) const {
    const std::vector<const UOp*>& set = At(node);
    return std::find(set.begin(), set.end(), range) != set.end();
  }

 private:
  void Add(const UOp* node) {
    std::vector<const UOp*> set;
    if (node->op() == Op::kRange) set.push_back(node);
    for (const UOp* source : node->sources()) {
      for (const UOp* range : loops_.at(source)) {
        if (std::find(set.begin(), set.end(), range) == set.end()) set.push_back(range);
      }
    }
    if (node->op() == Op::kEnd) std::erase(set, node->source(0));
    if (node->op() == Op::kReduce) {
      for (const UOp* range : node->sources().subspan(1)) std::erase(set, range);
    }
    loops_[node] = std::move(set);
  }

  absl::flat_hash_map<const UOp*, std::vector<const UOp*>> loops_;
};

}  // namespace svod

#endif  // SVOD_IR_OPEN_LOOPS_H_
