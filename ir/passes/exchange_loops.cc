#include "ir/passes/exchange_loops.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/evaluate.h"
#include "ir/linearize.h"
#include "ir/open_loops.h"
#include "ir/passes/copy_nodes.h"
#include "ir/passes/lower_reduce.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

class Exchanger {
 public:
  Exchanger(const UOp* sink, int64_t axis, int64_t amount, Context& context)
      : sink_(sink), axis_(axis), amount_(amount), context_(context) {}

  absl::StatusOr<const UOp*> Run() {
    order_ = Toposort(sink_);
    SVOD_ASSIGN_OR_RETURN(linear_, Linearize(sink_));
    SVOD_RETURN_IF_ERROR(FindLoops());
    open_.emplace(order_);
    SVOD_RETURN_IF_ERROR(CheckBody());
    SVOD_RETURN_IF_ERROR(FillSums());
    SVOD_RETURN_IF_ERROR(FoldRows());
    return Rebuild();
  }

 private:
  struct Sum {
    const UOp* reduce;
    DType dtype;         // that it folds in
    const UOp* scratch;  // one element for each iteration of j
  };

  absl::Status Illegal(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("exchange(", axis_, ", ", amount_, "): ", what));
  }

  absl::Status FindLoops() {
    for (const UOp* node : order_) {
      const auto* scratch = std::get_if<ScratchArgument>(&node->argument());
      if (scratch != nullptr) next_scratch_ = std::max(next_scratch_, scratch->id + 1);
      const auto* axis = std::get_if<AxisArgument>(&node->argument());
      if (axis == nullptr) continue;
      next_axis_ = std::max(next_axis_, axis->axis + 1);
      if (axis->axis == axis_) rows_ = node;
    }
    if (rows_ == nullptr) return Illegal("axis, got none of the kernel's loops");
    for (const UOp* closer : linear_.closers[rows_]) {
      if (closer->op() != Op::kReduce) return Illegal("axis, got a loop, expected a reduction's");
      if (closer->num_sources() != 2)
        return Illegal("its reductions fold over other loops as well");
      if (closer->dtype().is_vector()) return Illegal("its reductions fold vectors");
      sums_.push_back({closer, FoldType(closer->dtype()), nullptr});
    }
    auto parent = linear_.parent_loop.find(rows_);
    if (parent == linear_.parent_loop.end()) return Illegal("expected a loop around it");
    columns_ = parent->second;
    end_ = linear_.closers[columns_][0];
    if (end_->op() != Op::kEnd) return Illegal("expected a loop around it, got a reduction's");
    if (!IsConst(rows_->source(0)) || !IsConst(columns_->source(0))) {
      return Illegal("extents, expected constants");
    }
    if (ConstInt(rows_->source(0)) < amount_) return Illegal("the extent is below the amount");
    int64_t width = ConstInt(columns_->source(0));
    if (width < 1 || width > kMaxExchangeBytes / 8 / static_cast<int64_t>(sums_.size())) {
      return Illegal("sums, expected at most 1 MiB of them");
    }
    return absl::OkStatus();
  }

  bool DependsOn(const UOp* node, const UOp* range) const { return open_->DependsOn(node, range); }
  bool IsMoved(const UOp* node) const {
    return DependsOn(node, rows_) || DependsOn(node, columns_);
  }

  absl::Status CheckBody() {
    for (const UOp* effect : end_->sources().subspan(1)) {
      if (effect->op() != Op::kStore) return Illegal("expected stores in the loop around it");
    }
    if (DependsOn(rows_->source(0), columns_)) {
      return Illegal("its extent depends on the loop around it");
    }
    absl::flat_hash_set<const UOp*> stored;
    for (const UOp* effect : end_->sources().subspan(1)) {
      stored.insert(BaseBuffer(effect->source(0)));
    }
    absl::flat_hash_set<const UOp*> folded;
    for (const Sum& sum : sums_) {
      for (const UOp* node : Toposort(sum.reduce->source(0))) folded.insert(node);
    }
    for (const UOp* node : order_) {
      if (node->op() == Op::kAfter && IsMoved(node)) {
        return Illegal("accesses of memory have an order inside it");
      }
      if (node->op() == Op::kLoad && folded.contains(node) && IsMoved(node) &&
          stored.contains(BaseBuffer(node->source(0)))) {
        return Illegal("its reductions load what the loop around it stores");
      }
      bool has_inner = node->op() == Op::kReduce && DependsOn(node, rows_);
      if (has_inner && amount_ > 1) return Illegal("a loop inside it");
    }
    return absl::OkStatus();
  }

  const UOp* Make(Op op, std::initializer_list<const UOp*> sources, Argument argument = {}) {
    return context_.Make(op, {sources.begin(), sources.size()}, argument).value();
  }
  const UOp* NewRange(int64_t extent) {
    return Make(Op::kRange, {context_.Index(extent)}, AxisArgument{next_axis_++, AxisKind::kLoop});
  }

  // Element `at` of a sum, once `after` has happened.
  absl::StatusOr<const UOp*> Address(const Sum& sum, const std::vector<const UOp*>& after,
                                     const UOp* at) {
    const UOp* state = sum.scratch;
    if (!after.empty()) {
      std::vector<const UOp*> sources = {state};
      sources.insert(sources.end(), after.begin(), after.end());
      SVOD_ASSIGN_OR_RETURN(state, context_.Make(Op::kAfter, sources));
    }
    return context_.Make(Op::kIndex, {state, at});
  }

  absl::Status FillSums() {
    int64_t width = ConstInt(columns_->source(0));
    for (auto loop = linear_.parent_loop.find(columns_); loop != linear_.parent_loop.end();
         loop = linear_.parent_loop.find(loop->second)) {
      around_.push_back(loop->second);
    }
    std::reverse(around_.begin(), around_.end());
    const UOp* column = NewRange(width);
    std::vector<const UOp*> body = {column};
    for (Sum& sum : sums_) {
      SVOD_ASSIGN_OR_RETURN(sum.scratch, context_.Make(Op::kLocal, sum.dtype, {},
                                                       ScratchArgument{next_scratch_++, width}));
      SVOD_ASSIGN_OR_RETURN(const UOp* at, Address(sum, around_, column));
      ReduceKind kind = sum.reduce->arg<ReduceArgument>().kind;
      body.push_back(Make(Op::kStore,
                          {at, context_.Bits(sum.dtype, ReduceIdentity(kind, sum.dtype))},
                          AlignmentArgument{}));
    }
    SVOD_ASSIGN_OR_RETURN(done_, context_.Make(Op::kEnd, body));
    return absl::OkStatus();
  }

  absl::Status FoldRows() {
    int64_t extent = ConstInt(rows_->source(0));
    int64_t whole = extent / amount_, rest = extent % amount_;
    const UOp* row = NewRange(whole);
    SVOD_RETURN_IF_ERROR(FoldBlock(row, Make(Op::kMul, {row, context_.Index(amount_)}), amount_));
    if (rest == 0) return absl::OkStatus();
    return FoldBlock(nullptr, context_.Index(whole * amount_), rest);
  }

  // for row { for j { sums[j] = sums[j] fold x[first, j] fold ... x[first + count - 1, j] } }
  absl::Status FoldBlock(const UOp* row, const UOp* first, int64_t count) {
    const UOp* column = NewRange(ConstInt(columns_->source(0)));
    std::vector<const UOp*> after = {done_};
    if (row != nullptr) after.push_back(row);
    std::vector<const UOp*> folded;
    for (const Sum& sum : sums_) {
      SVOD_ASSIGN_OR_RETURN(const UOp* at, Address(sum, after, column));
      SVOD_ASSIGN_OR_RETURN(const UOp* old,
                            context_.Make(Op::kLoad, sum.dtype, {at}, AlignmentArgument{}));
      folded.push_back(old);
    }
    for (int64_t i = 0; i < count; ++i) {
      Replaced replaced;
      replaced[columns_] = column;
      replaced[rows_] = count == 1 ? first : Make(Op::kAdd, {first, context_.Index(i)});
      for (size_t k = 0; k < sums_.size(); ++k) {
        SVOD_ASSIGN_OR_RETURN(const UOp* value,
                              CopyNodes(sums_[k].reduce->source(0), replaced, context_));
        SVOD_ASSIGN_OR_RETURN(
            folded[k], FoldOnce(context_, sums_[k].reduce->arg<ReduceArgument>().kind, folded[k],
                                value, FusesProducts(sink_)));
      }
    }
    std::vector<const UOp*> body = {column};
    for (size_t k = 0; k < sums_.size(); ++k) {
      SVOD_ASSIGN_OR_RETURN(const UOp* at, Address(sums_[k], {}, column));
      body.push_back(Make(Op::kStore, {at, folded[k]}, AlignmentArgument{}));
    }
    SVOD_ASSIGN_OR_RETURN(done_, context_.Make(Op::kEnd, body));
    if (row != nullptr) done_ = Make(Op::kEnd, {row, done_});
    return absl::OkStatus();
  }

  absl::StatusOr<const UOp*> Rebuild() {
    Replaced replaced;
    for (const Sum& sum : sums_) {
      SVOD_ASSIGN_OR_RETURN(const UOp* at, Address(sum, {done_}, columns_));
      SVOD_ASSIGN_OR_RETURN(const UOp* value,
                            context_.Make(Op::kLoad, sum.dtype, {at}, AlignmentArgument{}));
      if (sum.dtype != sum.reduce->dtype()) {
        SVOD_ASSIGN_OR_RETURN(value, context_.Make(Op::kCast, sum.reduce->dtype(), {value}));
      }
      replaced[sum.reduce] = value;
    }
    return CopyNodes(sink_, replaced, context_);
  }

  const UOp* sink_;
  const int64_t axis_;
  const int64_t amount_;
  Context& context_;
  std::vector<const UOp*> order_;
  LinearKernel linear_;
  std::optional<OpenLoops> open_;
  const UOp* rows_ = nullptr;
  const UOp* columns_ = nullptr;  // the loop around
  const UOp* end_ = nullptr;      // its END
  std::vector<Sum> sums_;
  std::vector<const UOp*> around_;  // loops around columns_, outermost first
  const UOp* done_ = nullptr;       // what has happened to the sums so far
  int64_t next_axis_ = 0;
  int64_t next_scratch_ = 0;
};

}  // namespace

absl::StatusOr<const UOp*> ExchangeLoops(const UOp* sink, int64_t axis, int64_t amount,
                                         PassContext& context) {
  return Exchanger(sink, axis, amount, context.context).Run();
}

}  // namespace svod
