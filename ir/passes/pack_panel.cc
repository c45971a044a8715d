#include "ir/passes/pack_panel.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "ir/linearize.h"
#include "ir/open_loops.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

class Packer {
 public:
  Packer(const UOp* sink, int64_t axis, Context& context)
      : sink_(sink), axis_(axis), context_(context) {}

  absl::StatusOr<const UOp*> Run() {
    order_ = Toposort(sink_);
    SVOD_ASSIGN_OR_RETURN(linear_, Linearize(sink_));
    SVOD_RETURN_IF_ERROR(FindLoops());
    open_.emplace(order_);
    SVOD_RETURN_IF_ERROR(FindShared());
    for (const UOp* load : shared_) SVOD_RETURN_IF_ERROR(Pack(load));
    return Rebuild();
  }

 private:
  absl::Status Illegal(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("pack(", axis_, "): ", what));
  }

  absl::Status FindLoops() {
    for (const UOp* node : order_) {
      const auto* scratch = std::get_if<ScratchArgument>(&node->argument());
      if (scratch != nullptr) next_scratch_ = std::max(next_scratch_, scratch->id + 1);
      const auto* axis = std::get_if<AxisArgument>(&node->argument());
      if (axis != nullptr) next_axis_ = std::max(next_axis_, axis->axis + 1);
      if (node->op() != Op::kEnd || node->source(0)->arg<AxisArgument>().axis != axis_) continue;
      outer_end_ = node;
    }
    if (outer_end_ == nullptr) return Illegal("axis, got none of the kernel's loops");
    inner_end_ = outer_end_->num_sources() == 2 ? outer_end_->source(1) : nullptr;
    if (inner_end_ == nullptr || inner_end_->op() != Op::kEnd) {
      return Illegal("expected one loop directly inside it");
    }
    for (const UOp* effect : inner_end_->sources().subspan(1)) {
      if (effect->op() != Op::kStore) return Illegal("expected stores in the loop inside");
    }
    return absl::OkStatus();
  }

  bool DependsOn(const UOp* node, const UOp* range) const { return open_->DependsOn(node, range); }

  absl::Status FindShared() {
    const UOp *i = outer_end_->source(0), *j = inner_end_->source(0);
    if (DependsOn(j->source(0), i)) return Illegal("the loop inside depends on its counter");
    for (const UOp* node : order_) {
      if (node->op() == Op::kAfter && (DependsOn(node, i) || DependsOn(node, j))) {
        return Illegal("accesses of memory have an order inside it");
      }
      if (node->op() != Op::kLoad || !node->dtype().is_vector()) continue;
      const UOp* index = node->source(0);
      bool is_input = index->source(0)->op() == Op::kParam &&
                      index->source(0)->arg<ParamArgument>().access == Access::kIn;
      if (!is_input || index->num_sources() == 3 || node->num_sources() == 2) continue;
      if (DependsOn(node, i) || !DependsOn(node, j)) continue;
      bool is_folded = false;
      for (const UOp* range : open_->At(node)) {
        is_folded = is_folded || range->arg<AxisArgument>().kind == AxisKind::kReduce;
      }
      if (is_folded) shared_.push_back(node);
    }
    return shared_.empty() ? Illegal("nothing that is read is shared") : absl::OkStatus();
  }

  const UOp* Make(Op op, DType dtype, absl::Span<const UOp* const> sources,
                  const Argument& argument = {}) {
    absl::StatusOr<const UOp*> node = context_.Make(op, dtype, sources, argument);
    if (node.ok()) return *node;
    if (error_.ok()) error_ = node.status();
    return context_.Index(0);
  }

  const UOp* Substitute(const UOp* root, const absl::flat_hash_map<const UOp*, const UOp*>& by) {
    absl::flat_hash_map<const UOp*, const UOp*> copies(by.begin(), by.end());
    for (const UOp* node : Toposort(root)) {
      if (copies.contains(node)) continue;
      std::vector<const UOp*> sources;
      for (const UOp* source : node->sources()) sources.push_back(copies.at(source));
      copies[node] = sources == node->sources()
                         ? node
                         : Make(node->op(), node->dtype(), sources, node->argument());
    }
    return copies.at(root);
  }

  absl::Status Pack(const UOp* load) {
    const UOp *i = outer_end_->source(0), *j = inner_end_->source(0);
    // The loops of the sum, in the order in which they nest.
    std::vector<const UOp*> folded;
    for (const Step& step : linear_.steps) {
      if (step.kind != Step::Kind::kLoopBegin || !DependsOn(load, step.node)) continue;
      if (step.node->arg<AxisArgument>().kind == AxisKind::kReduce) folded.push_back(step.node);
    }
    int64_t lanes = load->dtype().lanes, size = lanes;
    const UOp *position = context_.Index(0), *filling = context_.Index(0);
    std::vector<const UOp*> loops;
    absl::flat_hash_map<const UOp*, const UOp*> counters;
    auto linear = [&](const UOp* sum, const UOp* extent, const UOp* counter) {
      if (IsConstInt(sum, 0)) return counter;
      return Make(Op::kAdd, DType(), {Make(Op::kMul, DType(), {sum, extent}), counter});
    };
    for (const UOp* range : folded) {
      const UOp* extent = range->source(0);
      if (!IsConst(extent)) return Illegal("expected sums of constant extent");
      if (__builtin_mul_overflow(size, ConstInt(extent), &size) || size > kMaxPanelBytes) {
        return Illegal("the panel is too large");
      }
      loops.push_back(
          Make(Op::kRange, DType(), {extent}, AxisArgument{next_axis_++, AxisKind::kLoop}));
      counters[range] = loops.back();
      position = linear(position, extent, range);
      filling = linear(filling, extent, loops.back());
    }
    if (size * load->dtype().element().size_bytes() > kMaxPanelBytes) {
      return Illegal("the panel is too large");
    }
    const UOp* lane_count = context_.Index(lanes);
    position = Make(Op::kMul, DType(), {position, lane_count});
    filling = Make(Op::kMul, DType(), {filling, lane_count});

    const UOp* local =
        Make(Op::kLocal, load->dtype().element(), {}, ScratchArgument{next_scratch_++, size});
    // Filled anew in each iteration of j and of the loops around both.
    std::vector<const UOp*> inside = {local};
    for (auto it = linear_.parent_loop.find(i); it != linear_.parent_loop.end();
         it = linear_.parent_loop.find(it->second)) {
      inside.insert(inside.begin() + 1, it->second);
    }
    inside.push_back(j);
    const UOp* state = Make(Op::kAfter, DType(), inside);
    const UOp* to = Make(Op::kIndex, DType(), {state, filling});
    const UOp* end =
        Make(Op::kStore, DType(), {to, Substitute(load, counters)}, AlignmentArgument{});
    for (size_t k = loops.size(); k-- > 0;) end = Make(Op::kEnd, DType(), {loops[k], end});
    const UOp* filled = Make(Op::kAfter, DType(), {local, end});
    const UOp* from = Make(Op::kIndex, DType(), {filled, position});
    packed_[load] = Make(Op::kLoad, load->dtype(), {from}, AlignmentArgument{});
    return error_;
  }

  absl::StatusOr<const UOp*> Rebuild() {
    absl::flat_hash_map<const UOp*, const UOp*> copies(packed_.begin(), packed_.end());
    for (const UOp* node : order_) {
      if (copies.contains(node)) continue;
      std::vector<const UOp*> sources;
      // The loops change places: what the inner one performs, the outer one does now.
      if (node == inner_end_) {
        sources.push_back(copies.at(outer_end_->source(0)));
      } else if (node == outer_end_) {
        sources.push_back(copies.at(inner_end_->source(0)));
      }
      absl::Span<const UOp* const> others = node->sources();
      if (!sources.empty()) others = others.subspan(1);
      for (const UOp* source : others) sources.push_back(copies.at(source));
      copies[node] = Make(node->op(), node->dtype(), sources, node->argument());
    }
    SVOD_RETURN_IF_ERROR(error_);
    return copies.at(sink_);
  }

  const UOp* sink_;
  int64_t axis_;
  Context& context_;
  std::vector<const UOp*> order_;
  LinearKernel linear_;
  std::optional<OpenLoops> open_;
  const UOp* outer_end_ = nullptr;
  const UOp* inner_end_ = nullptr;
  std::vector<const UOp*> shared_;
  absl::flat_hash_map<const UOp*, const UOp*> packed_;
  int64_t next_scratch_ = 0, next_axis_ = 0;
  absl::Status error_;
};

}  // namespace

absl::StatusOr<const UOp*> PackPanel(const UOp* sink, int64_t axis, PassContext& context) {
  return Packer(sink, axis, context.context).Run();
}

}  // namespace svod
