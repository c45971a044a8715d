#include "ir/passes/lower_reduce.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/evaluate.h"
#include "ir/linearize.h"
#include "ir/passes/apply_actions.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

// Follows the steps of the kernel, so that all values of a group of REDUCEs are there when the
// first of them is met.
class Lowering {
 public:
  explicit Lowering(PassContext& pass) : pass_(pass), context_(pass.context) {}

  absl::StatusOr<const UOp*> Run(const UOp* root) {
    SVOD_ASSIGN_OR_RETURN(linear_, Linearize(root));
    fuses_products_ = FusesProducts(root);
    for (const Step& step : linear_.steps) {
      const auto* scratch = std::get_if<ScratchArgument>(&step.node->argument());
      if (scratch != nullptr) next_scratch_ = std::max(next_scratch_, scratch->id + 1);
    }
    for (const Step& step : linear_.steps) {
      if (step.kind == Step::Kind::kLoopEnd || lowered_.contains(step.node)) continue;
      if (step.node->op() == Op::kReduce) {
        SVOD_RETURN_IF_ERROR(LowerGroup(linear_.closers[step.node->source(1)]));
      } else {
        SVOD_RETURN_IF_ERROR(Rebuild(step.node));
      }
    }
    SVOD_RETURN_IF_ERROR(Rebuild(root));
    return lowered_[root];
  }

 private:
  struct Accumulator {
    const UOp* reg;
    const UOp* update;  // the STORE in the loops
  };

  absl::Status Rebuild(const UOp* node) {
    std::vector<const UOp*> sources;
    for (const UOp* source : node->sources()) sources.push_back(lowered_[source]);
    if (sources == node->sources()) {
      lowered_[node] = node;
      return absl::OkStatus();
    }
    SVOD_ASSIGN_OR_RETURN(lowered_[node],
                          context_.Make(node->op(), node->dtype(), sources, node->argument()));
    return absl::OkStatus();
  }

  absl::StatusOr<const UOp*> Address(const UOp* reg, const std::vector<const UOp*>& after) {
    const UOp* state = reg;
    if (!after.empty()) {
      std::vector<const UOp*> sources = {reg};
      sources.insert(sources.end(), after.begin(), after.end());
      SVOD_ASSIGN_OR_RETURN(state, context_.Make(Op::kAfter, sources));
    }
    return context_.Make(Op::kIndex, {state, context_.Index(0)});
  }

  // The loops around `range`, outermost first.
  std::vector<const UOp*> LoopsAround(const UOp* range) {
    std::vector<const UOp*> loops;
    for (auto it = linear_.parent_loop.find(range); it != linear_.parent_loop.end();
         it = linear_.parent_loop.find(it->second)) {
      loops.push_back(lowered_[it->second]);
    }
    std::reverse(loops.begin(), loops.end());
    return loops;
  }

  absl::StatusOr<Accumulator> Fold(const UOp* reduce) {
    const ReduceKind kind = reduce->arg<ReduceArgument>().kind;
    const DType dtype = FoldType(reduce->dtype());
    SVOD_ASSIGN_OR_RETURN(const UOp* reg,
                          context_.Make(Op::kReg, dtype, {}, ScratchArgument{next_scratch_++, 1}));
    SVOD_ASSIGN_OR_RETURN(const UOp* start, Address(reg, LoopsAround(reduce->source(1))));
    SVOD_ASSIGN_OR_RETURN(
        const UOp* init,
        context_.Make(Op::kStore, {start, context_.Bits(dtype, ReduceIdentity(kind, dtype))},
                      AlignmentArgument{}));
    // The counters keep the load in the innermost loop.
    std::vector<const UOp*> after = {init};
    for (const UOp* range : reduce->sources().subspan(1)) after.push_back(lowered_[range]);
    SVOD_ASSIGN_OR_RETURN(const UOp* at, Address(reg, after));
    SVOD_ASSIGN_OR_RETURN(const UOp* old,
                          context_.Make(Op::kLoad, dtype, {at}, AlignmentArgument{}));
    SVOD_ASSIGN_OR_RETURN(
        const UOp* folded,
        FoldOnce(context_, kind, old, lowered_[reduce->source(0)], fuses_products_));
    SVOD_ASSIGN_OR_RETURN(const UOp* here, Address(reg, {}));
    SVOD_ASSIGN_OR_RETURN(const UOp* update,
                          context_.Make(Op::kStore, {here, folded}, AlignmentArgument{}));
    return Accumulator{reg, update};
  }

  absl::Status LowerGroup(const std::vector<const UOp*>& reduces) {
    std::vector<Accumulator> accumulators;
    std::vector<const UOp*> body;
    for (const UOp* reduce : reduces) {
      SVOD_ASSIGN_OR_RETURN(Accumulator accumulator, Fold(reduce));
      accumulators.push_back(accumulator);
      body.push_back(accumulator.update);
      ++pass_.rule_hits["lower-reduce"];
    }
    absl::Span<const UOp* const> ranges = reduces[0]->sources().subspan(1);
    for (size_t i = ranges.size(); i-- > 0;) {
      body.insert(body.begin(), lowered_[ranges[i]]);
      SVOD_ASSIGN_OR_RETURN(const UOp* end, context_.Make(Op::kEnd, body));
      body = {end};
    }
    for (size_t i = 0; i < reduces.size(); ++i) {
      SVOD_ASSIGN_OR_RETURN(const UOp* at, Address(accumulators[i].reg, body));
      SVOD_ASSIGN_OR_RETURN(const UOp* result,
                            context_.Make(Op::kLoad, at->dtype(), {at}, AlignmentArgument{}));
      const DType dtype = reduces[i]->dtype();
      if (result->dtype() != dtype) {
        SVOD_ASSIGN_OR_RETURN(result, context_.Make(Op::kCast, dtype, {result}));
      }
      lowered_[reduces[i]] = result;
    }
    return absl::OkStatus();
  }

  PassContext& pass_;
  Context& context_;
  LinearKernel linear_;
  absl::flat_hash_map<const UOp*, const UOp*> lowered_;
  int64_t next_scratch_ = 0;
  bool fuses_products_ = false;
};

}  // namespace

DType FoldType(DType dtype) {
  if (dtype.scalar == Scalar::kF16 || dtype.scalar == Scalar::kBF16) dtype.scalar = Scalar::kF32;
  return dtype;
}

bool FusesProducts(const UOp* sink) { return HasOpt(sink, kMulaccOpt); }

absl::StatusOr<const UOp*> FoldOnce(Context& context, ReduceKind kind, const UOp* old,
                                    const UOp* value, bool fuses_products) {
  const DType dtype = old->dtype();
  if (fuses_products && kind == ReduceKind::kAdd && value->op() == Op::kMul &&
      value->dtype() == dtype && dtype.is_float()) {
    return context.Make(Op::kMulAcc, {value->source(0), value->source(1), old});
  }
  // What a dot product of bytes adds may as well be the sum so far: integers wrap.
  if (kind == ReduceKind::kAdd && value->op() == Op::kDotU8I8 && IsConstInt(value->source(2), 0)) {
    return context.Make(Op::kDotU8I8, {value->source(0), value->source(1), old});
  }
  if (value->dtype() != dtype) {
    SVOD_ASSIGN_OR_RETURN(value, context.Make(Op::kCast, dtype, {value}));
  }
  return context.Make(ReduceOp(kind), {old, value});
}

absl::StatusOr<const UOp*> RunLowerReduce(const UOp* root, PassContext& context) {
  return Lowering(context).Run(root);
}

}  // namespace svod
