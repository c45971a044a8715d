// LoopAnalysis: how a kernel's accesses move with the counters of its loops; and what the choices
// of loop actions share. Included by the choice of actions only. Must not change nodes.
#ifndef SVOD_JIT_LOOP_ANALYSIS_H_
#define SVOD_JIT_LOOP_ANALYSIS_H_

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "ir/open_loops.h"
#include "ir/pass.h"
#include "ir/passes/loop_actions.h"
#include "ir/passes/lower_reduce.h"
#include "jit/loop_strides.h"
#include "jit/target.h"

namespace svod {

inline int64_t PowerOfTwoAtMost(int64_t number) {
  int64_t power = 1;
  while (power * 2 <= number) power *= 2;
  return power;
}

// Lanes that fill `registers` vector registers with elements of that size.
inline int64_t LanesOf(int element_bytes, int registers, const Target& target) {
  return std::max<int64_t>(2, registers * target.vector_bytes / std::max(element_bytes, 1));
}

// A kernel and what was done to it, as text, for its opts.
struct ShapedKernel {
  const UOp* sink;
  std::vector<std::string> applied;

  // Does all of these actions, or, when one of them is not legal, none. Whether it did.
  bool Apply(std::initializer_list<LoopAction> actions, PassContext& context) {
    const UOp* result = sink;
    for (const LoopAction& action : actions) {
      absl::StatusOr<const UOp*> done = ApplyLoopAction(result, action, context);
      if (!done.ok()) return false;
      result = *done;
    }
    sink = result;
    for (const LoopAction& action : actions) applied.push_back(ToString(action));
    return true;
  }
};

// Whether the result of a REDUCE is the same bits in whatever order its terms are taken.
inline bool FoldsInAnyOrder(const UOp* reduce) {
  ReduceKind kind = reduce->arg<ReduceArgument>().kind;
  bool rounds = kind == ReduceKind::kAdd || kind == ReduceKind::kMul;
  return !(rounds && reduce->dtype().is_float());
}

// Whether lanes that load elements so far apart load all between them as well, in whole vectors.
inline bool IsNearlyDense(int64_t stride) { return stride == 2 || stride == 3; }

// What one loop does to memory, by how far positions move with its counter.
struct LoopUse {
  const UOp* range = nullptr;
  const UOp* end = nullptr;  // null: a reduction's
  bool is_innermost = true;  // no END inside
  int neighbours = 0;        // accesses of the next element
  int strided = 0;           // accesses further away, or anywhere; loads of nearly all are neither
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

  // See StrideOf of loop_strides.h.
  bool StrideOf(const UOp* position, const UOp* range, int64_t* stride) {
    return svod::StrideOf(position, range, open_, ranges_, stride);
  }

 private:
  void Describe(LoopUse& loop) {
    std::vector<std::pair<const UOp*, int64_t>> moves;  // buffers and strides
    for (const UOp* node : order_) {
      if (node->op() == Op::kEnd && node != loop.end && DependsOn(node, loop.range)) {
        loop.is_innermost = false;
      }
      if (node->op() == Op::kReduce) {
        absl::Span<const UOp* const> closed = node->sources().subspan(1);
        if (std::find(closed.begin(), closed.end(), loop.range) != closed.end() ||
            DependsOn(node, loop.range)) {
          const auto bytes = static_cast<int>(FoldType(node->dtype()).size_bytes());
          loop.element_bytes = std::max(loop.element_bytes, bytes);
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
      } else if (stride != 0 && !(node->op() == Op::kLoad && IsNearlyDense(stride))) {
        // The bytes of a word that a dot product takes come from one place.
        auto access = std::pair(BaseBuffer(node->source(0)), stride);
        bool is_known = std::find(moves.begin(), moves.end(), access) != moves.end();
        if (!is_known || dtype.size_bytes() > 1) ++loop.strided;
        moves.push_back(access);
      }
    }
  }

  RangeAnalysis& ranges_;
  std::vector<const UOp*> order_;
  OpenLoops open_;
  std::vector<LoopUse> loops_;
};

}  // namespace svod

#endif  // SVOD_JIT_LOOP_ANALYSIS_H_
