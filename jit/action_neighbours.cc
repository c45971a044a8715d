#include "jit/action_neighbours.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "ir/op.h"
#include "ir/passes/apply_actions.h"

namespace svod {
namespace {

using Kind = LoopAction::Kind;

// In which order kinds of actions are done: loops are arranged before they become vectors, and
// vectors before there are several of them.
int StepOf(Kind kind) {
  switch (kind) {
    case Kind::kExchange:
      return 0;
    case Kind::kMerge:
    case Kind::kDot:
      return 1;
    case Kind::kSplit:
      return 2;
    case Kind::kSwap:
    case Kind::kExpand:
      return 3;
    case Kind::kPack:
      return 4;
    case Kind::kUpcast:
    case Kind::kGroup:
      return 5;
    case Kind::kUnroll:
      return 6;
    case Kind::kStream:
      return 7;
  }
  return 0;
}

// The list with an action where its kind belongs, behind others of the same step.
ActionList WithAction(ActionList list, const LoopAction& action) {
  auto place = std::find_if(list.rbegin(), list.rend(), [&](const LoopAction& other) {
    return StepOf(other.kind) <= StepOf(action.kind);
  });
  list.insert(place.base(), action);
  return list;
}

class Neighbours {
 public:
  explicit Neighbours(absl::Span<const LoopAction> actions)
      : start_(actions.begin(), actions.end()) {}

  std::vector<ActionList> Make(absl::Span<const int64_t> axes) {
    for (size_t i = 0; i < start_.size(); ++i) ScaleOne(i);
    for (size_t i = 0; i < start_.size(); ++i) {
      for (size_t j = 0; j < start_.size(); ++j) Trade(i, j);
    }
    for (size_t i = 0; i < start_.size(); ++i) Step(i);
    for (size_t i = 0; i < start_.size(); ++i) {
      ActionList less = start_;
      less.erase(less.begin() + static_cast<std::ptrdiff_t>(i));
      Add(std::move(less));
    }
    // One more of each kind on every axis before the next amount.
    for (const LoopAction& more :
         {LoopAction{Kind::kUnroll, 0, 4}, LoopAction{Kind::kPack, 0, 1},
          LoopAction{Kind::kUpcast, 0, 16}, LoopAction{Kind::kStream, 0, 1},
          LoopAction{Kind::kExchange, 0, 8}, LoopAction{Kind::kMerge, 0, 1},
          LoopAction{Kind::kSwap, 0, 1}, LoopAction{Kind::kExpand, 0, 1},
          LoopAction{Kind::kUnroll, 0, 2}, LoopAction{Kind::kUnroll, 0, 8},
          LoopAction{Kind::kSplit, 0, 64}, LoopAction{Kind::kUpcast, 0, 32},
          LoopAction{Kind::kUpcast, 0, 8}, LoopAction{Kind::kSplit, 0, 16},
          LoopAction{Kind::kSplit, 0, 256}, LoopAction{Kind::kGroup, 0, 32}}) {
      for (int64_t axis : axes) AddOneMore({more.kind, axis, more.amount});
    }
    return std::move(lists_);
  }

 private:
  void Add(ActionList list) {
    if (list == start_ || std::find(lists_.begin(), lists_.end(), list) != lists_.end()) return;
    lists_.push_back(std::move(list));
  }

  // Amounts that no kernel could have are left out here.
  void AddIfWellFormed(ActionList list) {
    for (const LoopAction& action : list) {
      if (!ParseLoopAction(ToString(action)).ok()) return;
    }
    Add(std::move(list));
  }

  void ScaleOne(size_t i) {
    if (!HasAmount(start_[i].kind)) return;
    ActionList twice = start_, half = start_;
    twice[i].amount *= 2;
    half[i].amount /= 2;
    AddIfWellFormed(std::move(twice));
    AddIfWellFormed(std::move(half));
  }

  void Trade(size_t i, size_t j) {
    if (i == j || !HasAmount(start_[i].kind) || !HasAmount(start_[j].kind)) return;
    ActionList traded = start_;
    traded[i].amount *= 2;
    traded[j].amount /= 2;
    AddIfWellFormed(std::move(traded));
  }

  void Step(size_t i) {
    if (start_[i].kind != Kind::kUnroll && start_[i].kind != Kind::kExchange) return;
    for (int64_t step : {2, -2, 1, -1}) {
      ActionList other = start_;
      other[i].amount += step;
      AddIfWellFormed(std::move(other));
    }
  }

  void AddOneMore(const LoopAction& action) {
    for (const LoopAction& other : start_) {
      if (other.kind == action.kind && other.axis == action.axis) return;
    }
    Add(WithAction(start_, action));
    // A loop over pieces that goes outside, so that a piece stays in a cache.
    if (action.kind == Kind::kSplit) {
      Add(WithAction(WithAction(start_, action), {Kind::kSwap, action.axis, 1}));
    }
  }

  ActionList start_;
  std::vector<ActionList> lists_;
};

// Lanes fold float sums and products in another order.
bool KeepsBits(const UOp* sink, const LoopAction& action) {
  if (action.kind != Kind::kGroup) return true;
  for (const UOp* node : Toposort(sink)) {
    if (node->op() != Op::kReduce || !node->dtype().is_float()) continue;
    const ReduceKind kind = node->arg<ReduceArgument>().kind;
    if (kind != ReduceKind::kAdd && kind != ReduceKind::kMul) continue;
    for (const UOp* range : node->sources().subspan(1)) {
      if (range->arg<AxisArgument>().axis == action.axis) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<ActionList> NeighboursOf(absl::Span<const LoopAction> actions,
                                     absl::Span<const int64_t> axes) {
  return Neighbours(actions).Make(axes);
}

ShapedByList DoLegalActions(const UOp* simplified, absl::Span<const LoopAction> actions,
                            PassContext& context) {
  ShapedByList shaped{simplified, {}};
  for (const LoopAction& action : actions) {
    if (!KeepsBits(shaped.sink, action)) continue;
    absl::StatusOr<const UOp*> done = ApplyLoopAction(shaped.sink, action, context);
    if (!done.ok()) continue;
    shaped.sink = *done;
    shaped.done.push_back(action);
  }
  return shaped;
}

std::vector<int64_t> AxesOf(const UOp* sink) {
  std::vector<int64_t> axes;
  for (const UOp* node : Toposort(sink)) {
    if (node->op() == Op::kRange) axes.push_back(node->arg<AxisArgument>().axis);
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

}  // namespace svod
