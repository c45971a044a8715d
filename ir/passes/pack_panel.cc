#include "ir/passes/pack_panel.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/linearize.h"
#include "ir/open_loops.h"
#include "ir/passes/copy_nodes.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

class Packer {
 public:
  Packer(const UOp* sink, int64_t axis, int64_t num_columns, PassContext& pass)
      : sink_(sink),
        axis_(axis),
        num_columns_(num_columns),
        pass_(pass),
        context_(pass.context),
        order_(Toposort(sink)),
        open_(order_) {}

  absl::StatusOr<const UOp*> Run() {
    SVOD_ASSIGN_OR_RETURN(linear_, Linearize(sink_));
    SVOD_RETURN_IF_ERROR(FindLoop());
    FindShared();
    for (const UOp* operand : shared_) SVOD_RETURN_IF_ERROR(Pack(operand));
    if (packed_.empty()) return Illegal("nothing that its sums read is shared and out of order");
    return CopyNodes(sink_, packed_, context_);
  }

 private:
  absl::Status Illegal(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("pack(", axis_, ", ", num_columns_, "): ", what));
  }

  absl::Status FindLoop() {
    for (const UOp* node : order_) {
      const auto* scratch = std::get_if<ScratchArgument>(&node->argument());
      if (scratch != nullptr) next_scratch_ = std::max(next_scratch_, scratch->id + 1);
      const auto* axis = std::get_if<AxisArgument>(&node->argument());
      if (axis != nullptr) next_axis_ = std::max(next_axis_, axis->axis + 1);
      bool is_it = node->op() == Op::kEnd && node->source(0)->arg<AxisArgument>().axis == axis_;
      if (is_it) loop_ = node->source(0);
    }
    if (loop_ == nullptr) return Illegal("axis, got none of the kernel's loops");
    for (auto it = linear_.parent_loop.find(loop_); it != linear_.parent_loop.end();
         it = linear_.parent_loop.find(it->second)) {
      around_.insert(around_.begin(), it->second);
    }
    // What is stored to inside the loop may differ from iteration to iteration.
    for (const UOp* node : order_) {
      if (node->op() == Op::kStore && open_.DependsOn(node, loop_)) {
        stored_.insert(BaseBuffer(node->source(0)));
      }
    }
    return absl::OkStatus();
  }

  // The counters inside the loop that a node depends on.
  std::vector<const UOp*> InnerRanges(const UOp* node) const {
    std::vector<const UOp*> ranges;
    for (const UOp* range : open_.At(node)) {
      if (std::find(around_.begin(), around_.end(), range) == around_.end()) {
        ranges.push_back(range);
      }
    }
    return ranges;
  }

  // Whether it moves with a loop inside that is no sum's.
  bool HasColumns(const UOp* node) const {
    std::vector<const UOp*> ranges = InnerRanges(node);
    return std::any_of(ranges.begin(), ranges.end(), [](const UOp* range) {
      return range->arg<AxisArgument>().kind != AxisKind::kReduce;
    });
  }

  // Whether a node can be computed before the loop, from parameters and what is known there.
  bool CanMove(const UOp* root) {
    bool loads = false;
    std::vector<const UOp*> stack = {root};
    absl::flat_hash_set<const UOp*> seen;
    while (!stack.empty()) {
      const UOp* node = stack.back();
      stack.pop_back();
      if (!seen.insert(node).second || InnerRanges(node).empty()) continue;
      if (node->op() == Op::kRange) {
        if (!InnerRanges(node->source(0)).empty()) return false;
        continue;
      }
      if (node->op() == Op::kLoad) {
        if (stored_.contains(BaseBuffer(node->source(0)))) return false;
        loads = true;
      } else if (node->op() != Op::kIndex && !IsLanewise(node->op()) &&
                 !(node == root && node->op() == Op::kReduce)) {
        return false;
      }
      for (const UOp* source : node->sources()) stack.push_back(source);
    }
    return loads;
  }

  // The largest parts of sums inside the loop that are the same in all of its iterations, and whole
  // sums that are.
  void FindShared() {
    std::vector<const UOp*> stack;
    for (const UOp* node : order_) {
      if (node->op() != Op::kReduce || node->dtype().is_vector()) continue;
      if (open_.DependsOn(node, loop_)) {
        stack.push_back(node->source(0));
      } else if (HasColumns(node) && CanMove(node)) {
        shared_.push_back(node);
      }
    }
    absl::flat_hash_set<const UOp*> seen;
    while (!stack.empty()) {
      const UOp* node = stack.back();
      stack.pop_back();
      if (!seen.insert(node).second || node->dtype().is_vector()) continue;
      if (!open_.DependsOn(node, loop_)) {
        if (HasColumns(node) && node->dtype() != Scalar::kBool && CanMove(node))
          shared_.push_back(node);
      } else if (IsLanewise(node->op())) {
        for (const UOp* source : node->sources()) stack.push_back(source);
      }
    }
  }

  const UOp* Make(Op op, DType dtype, absl::Span<const UOp* const> sources,
                  const Argument& argument = {}) {
    absl::StatusOr<const UOp*> node = context_.Make(op, dtype, sources, argument);
    if (node.ok()) return *node;
    if (error_.ok()) error_ = node.status();
    return context_.Index(0);
  }

  // Whether a panel would be a copy of memory in the order that it already has.
  bool IsInOrder(const UOp* operand, absl::Span<const UOp* const> ranges) {
    if (operand->op() != Op::kLoad || operand->source(0)->num_sources() == 3) return false;
    Affine position = pass_.ranges.AffineOf(operand->source(0)->source(1));
    int64_t stride = 1;
    for (size_t i = ranges.size(); i-- > 0;) {
      const UOp* extent = ranges[i]->source(0);
      bool moves = std::any_of(position.terms.begin(), position.terms.end(), [&](const Term& term) {
        return term.atoms.size() == 1 && term.atoms[0].node == ranges[i] &&
               term.coefficient == stride;
      });
      if (!moves || !IsConst(extent)) return false;
      if (__builtin_mul_overflow(stride, ConstInt(extent), &stride)) return false;
    }
    return position.exact;
  }

  absl::Status Pack(const UOp* operand) {
    // Counters in the order in which their loops nest, the last columns behind the sums'.
    std::vector<const UOp*> ranges, columns, inner = InnerRanges(operand);
    for (const Step& step : linear_.steps) {
      if (step.kind != Step::Kind::kLoopBegin) continue;
      if (std::find(inner.begin(), inner.end(), step.node) == inner.end()) continue;
      bool is_sum = step.node->arg<AxisArgument>().kind == AxisKind::kReduce;
      (is_sum ? ranges : columns).push_back(step.node);
    }
    auto split = columns.end() - std::min<int64_t>(num_columns_, std::ssize(columns));
    ranges.insert(ranges.begin(), columns.begin(), split);
    ranges.insert(ranges.end(), split, columns.end());

    if (IsInOrder(operand, ranges)) return absl::OkStatus();

    int64_t size = 1, axis = next_axis_;
    std::vector<const UOp*> loops;
    Replaced counters;
    const UOp *position = context_.Index(0), *filling = context_.Index(0);
    auto linear = [&](const UOp* sum, int64_t extent, const UOp* counter) {
      if (IsConstInt(sum, 0)) return counter;
      return Make(Op::kAdd, DType(),
                  {Make(Op::kMul, DType(), {sum, context_.Index(extent)}), counter});
    };
    for (const UOp* range : ranges) {
      int64_t extent = std::max<int64_t>(pass_.ranges.Of(range->source(0)).max, 1);
      if (__builtin_mul_overflow(size, extent, &size) || size > kMaxPanelBytes) {
        return Illegal("a panel is too large");
      }
      loops.push_back(
          Make(Op::kRange, DType(), {range->source(0)}, AxisArgument{axis++, AxisKind::kLoop}));
      counters[range] = loops.back();
      position = linear(position, extent, range);
      filling = linear(filling, extent, loops.back());
    }
    next_axis_ = axis;
    bytes_ += size * operand->dtype().size_bytes();
    if (bytes_ > kMaxPanelBytes) return Illegal("panels are too large");

    const UOp* local =
        Make(Op::kLocal, operand->dtype(), {}, ScratchArgument{next_scratch_++, size});
    // New in each iteration of the loops around, down to the innermost that matters.
    std::vector<const UOp*> inside = {local};
    size_t depth = 0;
    for (size_t i = 0; i < around_.size(); ++i) {
      if (open_.DependsOn(operand, around_[i])) depth = i + 1;
      for (const UOp* range : ranges) {
        if (open_.DependsOn(range->source(0), around_[i])) depth = i + 1;
      }
    }
    inside.insert(inside.end(), around_.begin(), around_.begin() + static_cast<ptrdiff_t>(depth));
    const UOp* state = depth == 0 ? local : Make(Op::kAfter, DType(), inside);
    const UOp* to = Make(Op::kIndex, DType(), {state, filling});
    SVOD_ASSIGN_OR_RETURN(const UOp* value, CopyNodes(operand, counters, context_));
    const UOp* end = Make(Op::kStore, DType(), {to, value}, AlignmentArgument{});
    for (size_t k = loops.size(); k-- > 0;) end = Make(Op::kEnd, DType(), {loops[k], end});
    const UOp* filled = Make(Op::kAfter, DType(), {local, end});
    const UOp* from = Make(Op::kIndex, DType(), {filled, position});
    packed_[operand] = Make(Op::kLoad, operand->dtype(), {from}, AlignmentArgument{});
    return error_;
  }

  const UOp* sink_;
  int64_t axis_, num_columns_;
  PassContext& pass_;
  Context& context_;
  std::vector<const UOp*> order_;
  OpenLoops open_;
  LinearKernel linear_;
  const UOp* loop_ = nullptr;
  std::vector<const UOp*> around_;  // loops around it, outermost first
  absl::flat_hash_set<const UOp*> stored_;
  std::vector<const UOp*> shared_;
  Replaced packed_;
  int64_t next_scratch_ = 0, next_axis_ = 0, bytes_ = 0;
  absl::Status error_;
};

}  // namespace

absl::StatusOr<const UOp*> PackPanel(const UOp* sink, int64_t axis, int64_t num_columns,
                                     PassContext& context) {
  return Packer(sink, axis, num_columns, context).Run();
}

}  // namespace svod
