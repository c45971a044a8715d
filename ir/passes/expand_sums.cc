#include "ir/passes/expand_sums.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/evaluate.h"
#include "ir/open_loops.h"
#include "ir/passes/copy_nodes.h"
#include "ir/passes/lower_reduce.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

class Expander {
 public:
  Expander(const UOp* sink, int64_t axis, Context& context)
      : sink_(sink), axis_(axis), context_(context), order_(Toposort(sink)), open_(order_) {}

  absl::StatusOr<const UOp*> Run() {
    SVOD_RETURN_IF_ERROR(FindReduces());
    Replaced expanded;
    for (const UOp* reduce : reduces_) {
      SVOD_RETURN_IF_ERROR(Check(reduce));
      SVOD_ASSIGN_OR_RETURN(expanded[reduce], Expand(reduce));
    }
    return CopyNodes(sink_, expanded, context_);
  }

 private:
  absl::Status Illegal(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("expand(", axis_, "): ", what));
  }

  static absl::Span<const UOp* const> LoopsOf(const UOp* reduce) {
    return reduce->sources().subspan(1);
  }

  absl::Status FindReduces() {
    bool is_there = false, is_loop = false;
    for (const UOp* node : order_) {
      auto is_it = [&](const UOp* range) { return range->arg<AxisArgument>().axis == axis_; };
      if (node->op() == Op::kRange) is_there = is_there || is_it(node);
      if (node->op() == Op::kEnd) is_loop = is_loop || is_it(node->source(0));
      if (node->op() != Op::kReduce) continue;
      absl::Span<const UOp* const> loops = LoopsOf(node);
      if (std::any_of(loops.begin(), loops.end(), is_it)) reduces_.push_back(node);
    }
    if (!is_there) return Illegal("axis, got none of the kernel's loops");
    if (is_loop || reduces_.empty()) return Illegal("axis, got a loop, expected a reduction's");
    return absl::OkStatus();
  }

  absl::Status Check(const UOp* reduce) {
    int64_t terms = 1;
    for (const UOp* range : LoopsOf(reduce)) {
      if (!IsConst(range->source(0))) return Illegal("extents, expected constants");
      terms *= std::clamp<int64_t>(ConstInt(range->source(0)), 0, kMaxExpandedTerms + 1);
      if (terms > kMaxExpandedTerms) {
        return Illegal(absl::StrCat("expected at most ", kMaxExpandedTerms, " terms"));
      }
    }
    for (const UOp* node : Toposort(reduce->source(0))) {
      bool is_inside = std::any_of(LoopsOf(reduce).begin(), LoopsOf(reduce).end(),
                                   [&](const UOp* range) { return open_.DependsOn(node, range); });
      if (!is_inside) continue;
      if (node->op() == Op::kReduce || node->op() == Op::kEnd) return Illegal("a loop inside it");
      if (node->op() == Op::kAfter) return Illegal("accesses of memory have an order inside it");
    }
    return absl::OkStatus();
  }

  // Counts through the loops, the last one fastest.
  absl::StatusOr<const UOp*> Expand(const UOp* reduce) {
    const ReduceKind kind = reduce->arg<ReduceArgument>().kind;
    const DType dtype = FoldType(reduce->dtype());
    const bool fuses_products = FusesProducts(sink_);
    int64_t terms = 1;
    for (const UOp* range : LoopsOf(reduce)) terms *= ConstInt(range->source(0));
    const UOp* folded = context_.Bits(dtype, ReduceIdentity(kind, dtype));
    for (int64_t term = 0; term < terms; ++term) {
      Replaced counters;
      int64_t left = term;
      for (int i = reduce->num_sources() - 1; i >= 1; --i) {
        const int64_t extent = ConstInt(reduce->source(i)->source(0));
        counters[reduce->source(i)] = context_.Index(left % extent);
        left /= extent;
      }
      SVOD_ASSIGN_OR_RETURN(const UOp* value, CopyNodes(reduce->source(0), counters, context_));
      SVOD_ASSIGN_OR_RETURN(folded, FoldOnce(context_, kind, folded, value, fuses_products));
    }
    if (dtype == reduce->dtype()) return folded;
    return context_.Make(Op::kCast, reduce->dtype(), {folded});
  }

  const UOp* sink_;
  const int64_t axis_;
  Context& context_;
  std::vector<const UOp*> order_;
  OpenLoops open_;
  std::vector<const UOp*> reduces_;
};

}  // namespace

absl::StatusOr<const UOp*> ExpandSums(const UOp* sink, int64_t axis, PassContext& context) {
  return Expander(sink, axis, context.context).Run();
}

}  // namespace svod
