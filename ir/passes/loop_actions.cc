#include "ir/passes/loop_actions.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ir/evaluate.h"
#include "ir/passes/copy_nodes.h"
#include "ir/passes/dot_products.h"
#include "ir/passes/exchange_loops.h"
#include "ir/passes/expand_sums.h"
#include "ir/passes/lane_rewriter.h"
#include "ir/passes/loop_memory.h"
#include "ir/passes/pack_panel.h"
#include "ir/passes/rearrange_loops.h"
#include "ir/passes/stream_stores.h"
#include "ir/status_macros.h"
#include "ir/verify.h"

namespace svod {
namespace {

using Kind = LoopAction::Kind;

constexpr const char* kNames[] = {"upcast", "unroll",   "group",  "split",  "swap", "merge",
                                  "pack",   "exchange", "stream", "expand", "dot"};
constexpr int64_t kMaxUnroll = 64, kMaxPackedColumns = 8, kMaxSplit = int64_t{1} << 20;

bool IsPowerOfTwo(int64_t number) { return number > 0 && (number & (number - 1)) == 0; }

// The loops of a kernel, and one action on one of them.
class Actor {
 public:
  Actor(const UOp* sink, const LoopAction& action, PassContext& pass)
      : sink_(sink), action_(action), pass_(pass), context_(pass.context) {}

  absl::StatusOr<const UOp*> Run() {
    order_ = Toposort(sink_);
    SVOD_RETURN_IF_ERROR(FindLoop());
    SVOD_RETURN_IF_ERROR(CheckMemory());
    if (action_.kind == Kind::kGroup) return Group();
    SVOD_RETURN_IF_ERROR(Cut());
    return action_.kind == Kind::kUpcast ? Upcast() : Unroll();
  }

 private:
  absl::Status Illegal(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(ToString(action_), ": ", what));
  }

  absl::Status FindLoop() {
    for (const UOp* node : order_) {
      if (node->op() == Op::kRange && node->arg<AxisArgument>().axis == action_.axis) loop_ = node;
    }
    if (loop_ == nullptr) return Illegal("axis, got none of the kernel's loops");
    depends_.insert(loop_);
    for (const UOp* node : order_) {
      bool is_closer = false;
      if (node->op() == Op::kEnd && node->source(0) == loop_) {
        end_ = node;
        is_closer = true;
      }
      if (node->op() == Op::kReduce) {
        absl::Span<const UOp* const> ranges = node->sources().subspan(1);
        is_closer = std::find(ranges.begin(), ranges.end(), loop_) != ranges.end();
        if (is_closer) reduces_.push_back(node);
      }
      if (is_closer) continue;
      for (const UOp* source : node->sources()) {
        if (!depends_.contains(source)) continue;
        depends_.insert(node);
        if (node->op() == Op::kEnd) inside_.insert(node->source(0));
        if (node->op() == Op::kRange) return Illegal("a loop inside it depends on its counter");
        break;
      }
    }
    bool fits =
        action_.kind == Kind::kGroup ? end_ == nullptr && !reduces_.empty() : end_ != nullptr;
    if (!fits) {
      return Illegal(action_.kind == Kind::kGroup ? "axis, got a loop, expected a reduction's"
                                                  : "axis, got a reduction's, expected a loop");
    }
    return absl::OkStatus();
  }

  // Scratch memory that every iteration fills before it reads it, so that each of several can have
  // its own. What is done to it belongs to the iteration.
  void FindPrivate() {
    for (const UOp* node : order_) {
      if (node->op() == Op::kLocal) private_.insert(node);
    }
    for (const UOp* node : order_) {
      bool is_access = node->op() == Op::kLoad || node->op() == Op::kStore;
      if (!is_access || !private_.contains(BaseBuffer(node->source(0)))) continue;
      const UOp* fill = nullptr;
      bool is_own = depends_.contains(node) &&
                    (node->op() == Op::kStore ||
                     (LoadsFilledScratch(node, pass_.ranges, &fill) && depends_.contains(fill)));
      if (!is_own) private_.erase(BaseBuffer(node->source(0)));
    }
    for (const UOp* node : order_) {
      bool is_address = node->op() == Op::kIndex || node->op() == Op::kAfter;
      if (is_address && private_.contains(BaseBuffer(node))) depends_.insert(node);
    }
  }

  // Iterations that run side by side may not pass values to one another through memory.
  absl::Status CheckMemory() {
    absl::flat_hash_map<const UOp*, std::vector<const UOp*>> stores_to;
    if (action_.kind == Kind::kUnroll) FindPrivate();
    for (const UOp* node : order_) {
      bool has_order = node->op() == Op::kAfter && depends_.contains(node);
      if (has_order && !private_.contains(BaseBuffer(node))) {
        return Illegal("accesses of memory have an order inside it");
      }
    }
    for (const UOp* node : order_) {
      if (node->op() != Op::kStore) continue;
      const UOp* buffer = BaseBuffer(node->source(0));
      if (!depends_.contains(node) || private_.contains(buffer)) {
        continue;
      }
      const UOp* position = node->source(0)->source(1);
      if (!depends_.contains(position)) {
        return Illegal("a store goes to one place in every iteration");
      }
      if (!StoresApart(node, loop_, inside_, pass_.ranges)) {
        return Illegal("iterations may store to the same place");
      }
      for (const UOp* other : stores_to[buffer]) {
        if (other->source(0)->source(1) != position &&
            !StoresApart(node, loop_, inside_, pass_.ranges, other)) {
          return Illegal("two stores to one buffer, which iterations may store to the same place");
        }
      }
      stores_to[buffer].push_back(node);
    }
    for (const UOp* node : order_) {
      if (node->op() != Op::kLoad || !depends_.contains(node)) continue;
      auto it = stores_to.find(BaseBuffer(node->source(0)));
      if (it == stores_to.end()) continue;
      updates_ = true;
      for (const UOp* store : it->second) {
        if (node->source(0)->source(1) != store->source(0)->source(1)) {
          return Illegal("an iteration loads what another one may store");
        }
      }
    }
    if (end_ == nullptr) return absl::OkStatus();
    for (const UOp* effect : end_->sources().subspan(1)) {
      if (!depends_.contains(effect)) return Illegal("an effect is the same in every iteration");
    }
    return absl::OkStatus();
  }

  const UOp* Make(Op op, std::initializer_list<const UOp*> sources, Argument argument = {}) {
    return context_.Make(op, {sources.begin(), sources.size()}, argument).value();
  }

  // The outer loop of `amount` iterations at a time, and the counter that the first of them has.
  absl::Status Cut() {
    const UOp* extent = loop_->source(0);
    const UOp* amount = context_.Index(action_.amount);
    bool divides = IsConst(extent) && ConstInt(extent) % action_.amount == 0;
    int64_t smallest = pass_.ranges.Of(extent).min;
    const UOp* pieces =
        Make(Op::kFloordiv, {Make(Op::kAdd, {extent, context_.Index(action_.amount - 1)}), amount});
    if (IsConst(extent)) {
      pieces = context_.Index((ConstInt(extent) + action_.amount - 1) / action_.amount);
    }
    outer_ = Make(Op::kRange, {pieces}, loop_->argument());
    base_ = Make(Op::kMul, {outer_, amount});
    if (divides) return absl::OkStatus();
    if (!updates_ && smallest >= action_.amount) {
      const UOp* last = IsConst(extent) ? context_.Index(ConstInt(extent) - action_.amount)
                                        : Make(Op::kSub, {extent, amount});
      base_ = Make(Op::kMin, {base_, last});
      return absl::OkStatus();
    }
    if (action_.kind == Kind::kUnroll && (updates_ || IsConst(extent) || smallest < 1)) {
      return Illegal("the extent may be below the amount, or is updated in place");
    }
    is_masked_ = true;
    return absl::OkStatus();
  }

  const UOp* LaneNumbers(int lanes) {
    std::vector<const UOp*> numbers;
    for (int lane = 0; lane < lanes; ++lane) numbers.push_back(context_.Index(lane));
    return context_.Make(Op::kStack, numbers).value();
  }

  const UOp* SplatOf(const UOp* scalar, int lanes) {
    DType dtype = scalar->dtype().with_lanes(lanes);
    if (IsConst(scalar)) return context_.Bits(dtype, scalar->arg<ConstArgument>().bits);
    return context_.Make(Op::kSplat, dtype, {scalar}).value();
  }

  absl::StatusOr<const UOp*> Upcast() {
    int lanes = static_cast<int>(action_.amount);
    const UOp* mask = nullptr;
    if (is_masked_) {
      const UOp* counters = Make(Op::kAdd, {SplatOf(base_, lanes), LaneNumbers(lanes)});
      mask = Make(Op::kCmpLt, {counters, SplatOf(loop_->source(0), lanes)});
    }
    LaneRewriter lane(loop_, base_, lanes, mask, context_);
    Replaced replaced;
    for (const UOp* node : order_) {
      if (node != end_) {
        SVOD_RETURN_IF_ERROR(InContext(lane.Rewrite(node, replaced)));
        continue;
      }
      std::vector<const UOp*> sources = {outer_};
      for (const UOp* effect : end_->sources().subspan(1)) {
        SVOD_ASSIGN_OR_RETURN(const UOp* copy, lane.Get(effect, replaced));
        sources.push_back(copy);
      }
      SVOD_ASSIGN_OR_RETURN(replaced[end_], context_.Make(Op::kEnd, sources));
    }
    return lane.Get(sink_, replaced);
  }

  absl::Status InContext(absl::Status status) const {
    return status.ok() ? status : Illegal(status.message());
  }

  absl::StatusOr<const UOp*> Unroll() {
    size_t copies = static_cast<size_t>(action_.amount);
    std::vector<Replaced> of(copies);
    Replaced shared;  // what is the same in all copies
    int64_t next_scratch = 0;
    for (const UOp* node : order_) {
      const auto* scratch = std::get_if<ScratchArgument>(&node->argument());
      if (scratch != nullptr) next_scratch = std::max(next_scratch, scratch->id + 1);
    }
    auto find = [&](const UOp* node, size_t copy) {
      auto own = of[copy].find(node);
      if (own != of[copy].end()) return own->second;
      auto other = shared.find(node);
      return other == shared.end() ? node : other->second;
    };
    std::vector<const UOp*> counters(copies, base_);
    for (size_t copy = 0; copy < copies; ++copy) {
      if (copy > 0) {
        counters[copy] = Make(Op::kAdd, {base_, context_.Index(static_cast<int64_t>(copy))});
      }
      of[copy][loop_] = counters[copy];
      if (!is_masked_) continue;
      // Beyond the end the last iteration is computed again, and not stored.
      const UOp* last = Make(Op::kAdd, {loop_->source(0), context_.Index(-1)});
      of[copy][loop_] = Make(Op::kMin, {counters[copy], last});
    }
    for (const UOp* node : order_) {
      if (node == loop_) continue;
      if (node->op() == Op::kEnd && (node == end_ || depends_.contains(node))) {
        // The loops inside hold all copies of what they perform.
        std::vector<const UOp*> sources = {node == end_ ? outer_ : find(node->source(0), 0)};
        for (const UOp* effect : node->sources().subspan(1)) {
          for (size_t copy = 0; copy < copies; ++copy) {
            const UOp* performed = find(effect, copy);
            if (std::find(sources.begin(), sources.end(), performed) == sources.end()) {
              sources.push_back(performed);
            }
          }
        }
        SVOD_ASSIGN_OR_RETURN(shared[node], context_.Make(Op::kEnd, sources));
        continue;
      }
      if (private_.contains(node)) {
        of[0][node] = node;
        ScratchArgument scratch = node->arg<ScratchArgument>();
        for (size_t copy = 1; copy < copies; ++copy) {
          scratch.id = next_scratch++;
          SVOD_ASSIGN_OR_RETURN(of[copy][node],
                                context_.Make(node->op(), node->dtype(), {}, scratch));
        }
        continue;
      }
      bool varies = depends_.contains(node);
      for (size_t copy = 0; copy < (varies ? copies : 1); ++copy) {
        std::vector<const UOp*> sources;
        for (const UOp* source : node->sources()) {
          // The order of accesses names loops, not what their counters became.
          bool is_loop = source == loop_ && node->op() == Op::kAfter;
          sources.push_back(is_loop ? outer_ : find(source, copy));
        }
        if (!varies && sources == node->sources()) continue;
        if (is_masked_ && node->op() == Op::kStore && !private_.contains(BaseBuffer(node))) {
          SVOD_ASSIGN_OR_RETURN(sources[0], StoredAt(node->source(0), sources[0], counters[copy]));
        }
        SVOD_ASSIGN_OR_RETURN(const UOp* made,
                              context_.Make(node->op(), node->dtype(), sources, node->argument()));
        (varies ? of[copy] : shared)[node] = made;
      }
    }
    return find(sink_, 0);
  }

  // The INDEX of a store of iteration `counter`, gated to be none of those beyond the end; `copy`
  // is that of the iteration which is computed instead.
  absl::StatusOr<const UOp*> StoredAt(const UOp* index, const UOp* copy, const UOp* counter) {
    Replaced replaced = {{loop_, counter}};
    SVOD_ASSIGN_OR_RETURN(const UOp* position, CopyNodes(index->source(1), replaced, context_));
    const UOp* gate = Make(Op::kCmpLt, {counter, loop_->source(0)});
    if (copy->num_sources() == 3) {
      const UOp* own = copy->source(2);
      if (own->dtype().is_vector()) gate = SplatOf(gate, own->dtype().lanes);
      gate = Make(Op::kAnd, {own, gate});
    } else if (position->dtype().is_vector()) {
      gate = SplatOf(gate, position->dtype().lanes);
    }
    return context_.Make(Op::kIndex, {copy->source(0), position, gate});
  }

  // Lane l folds every amount-th element from l on; then lanes fold in halves.
  absl::StatusOr<const UOp*> Group() {
    int lanes = static_cast<int>(action_.amount);
    const UOp* extent = loop_->source(0);
    const UOp* amount = context_.Index(lanes);
    for (const UOp* reduce : reduces_) {
      ReduceKind kind = reduce->arg<ReduceArgument>().kind;
      Scalar scalar = reduce->dtype().scalar;
      bool rounds_once = (scalar == Scalar::kF16 || scalar == Scalar::kBF16) &&
                         (kind == ReduceKind::kAdd || kind == ReduceKind::kMul);
      if (rounds_once || reduce->dtype().is_vector()) {
        return Illegal("a sum of halves rounds once, lanes would each");
      }
    }
    const UOp *whole, *rest, *mask = nullptr;
    if (IsConst(extent)) {
      if (ConstInt(extent) < lanes) return Illegal("the extent is below the amount");
      whole = context_.Index(ConstInt(extent) / lanes);
      int64_t left = ConstInt(extent) % lanes;
      rest = context_.Index(left);
    } else {
      // A loop whose end is negative runs no times, and has no rest either.
      if (pass_.ranges.Of(extent).min < 0) {
        extent = Make(Op::kMax, {extent, context_.Index(0)});
      }
      whole = Make(Op::kFloordiv, {extent, amount});
      rest = Make(Op::kFloormod, {extent, amount});
    }
    outer_ = Make(Op::kRange, {whole}, loop_->argument());
    LaneRewriter main(loop_, Make(Op::kMul, {outer_, amount}), lanes, nullptr, context_);
    std::optional<LaneRewriter> tail;
    if (!IsConstInt(rest, 0)) {
      mask = Make(Op::kCmpLt, {LaneNumbers(lanes), SplatOf(rest, lanes)});
      tail.emplace(loop_, Make(Op::kMul, {whole, amount}), lanes, mask, context_);
    }
    Replaced replaced, again;
    // The last elements are folded over loops of their own.
    if (tail.has_value()) {
      int64_t next_axis = 0;
      for (const UOp* node : order_) {
        const auto* axis = std::get_if<AxisArgument>(&node->argument());
        if (axis != nullptr) next_axis = std::max(next_axis, axis->axis + 1);
      }
      for (const UOp* reduce : reduces_) {
        for (const UOp* range : reduce->sources().subspan(1)) {
          if (range == loop_ || again.contains(range)) continue;
          for (const UOp* part : Toposort(range->source(0))) {
            if (part->op() == Op::kRange) return Illegal("loops of one sum depend on one another");
          }
          again[range] = Make(Op::kRange, {range->source(0)},
                              AxisArgument{next_axis++, range->arg<AxisArgument>().kind});
        }
      }
    }
    for (const UOp* node : order_) {
      if (std::find(reduces_.begin(), reduces_.end(), node) != reduces_.end()) {
        SVOD_ASSIGN_OR_RETURN(replaced[node], Fold(node, main, tail, mask, lanes, replaced, again));
        continue;
      }
      SVOD_RETURN_IF_ERROR(InContext(main.Rewrite(node, replaced)));
      if (tail.has_value() && !again.contains(node)) {
        SVOD_RETURN_IF_ERROR(InContext(tail->Rewrite(node, again)));
      }
    }
    return main.Get(sink_, replaced);
  }

  absl::StatusOr<const UOp*> Fold(const UOp* reduce, LaneRewriter& main,
                                  std::optional<LaneRewriter>& tail, const UOp* mask, int lanes,
                                  const Replaced& replaced, const Replaced& again) {
    ReduceKind kind = reduce->arg<ReduceArgument>().kind;
    Op fold = ReduceOp(kind);
    auto vector_of = [&](LaneRewriter& lane, const Replaced& others) -> absl::StatusOr<const UOp*> {
      SVOD_ASSIGN_OR_RETURN(const UOp* value, lane.Get(reduce->source(0), others));
      return value->dtype().is_vector() ? value : SplatOf(value, lanes);
    };
    SVOD_ASSIGN_OR_RETURN(const UOp* value, vector_of(main, replaced));
    std::vector<const UOp*> sources = {value}, others;
    for (const UOp* range : reduce->sources().subspan(1)) {
      SVOD_ASSIGN_OR_RETURN(const UOp* copy, main.Get(range == loop_ ? outer_ : range, replaced));
      sources.push_back(copy);
      if (range != loop_ && tail.has_value()) others.push_back(again.at(range));
    }
    SVOD_ASSIGN_OR_RETURN(const UOp* folded,
                          context_.Make(Op::kReduce, sources, reduce->argument()));
    if (tail.has_value()) {
      SVOD_ASSIGN_OR_RETURN(const UOp* last, vector_of(*tail, again));
      const UOp* identity = context_.Bits(last->dtype(), ReduceIdentity(kind, reduce->dtype()));
      last = Make(Op::kWhere, {mask, last, identity});
      if (!others.empty()) {
        others.insert(others.begin(), last);
        SVOD_ASSIGN_OR_RETURN(last, context_.Make(Op::kReduce, others, reduce->argument()));
      }
      folded = Make(fold, {folded, last});
    }
    for (int half = lanes / 2; half >= 1; half /= 2) {
      std::vector<uint16_t> low, high;
      for (int lane = 0; lane < half; ++lane) {
        low.push_back(static_cast<uint16_t>(lane));
        high.push_back(static_cast<uint16_t>(lane + half));
      }
      folded = Make(fold, {Make(Op::kLanes, {folded}, LanesArgument{low}),
                           Make(Op::kLanes, {folded}, LanesArgument{high})});
    }
    return folded;
  }

  const UOp* sink_;
  const LoopAction& action_;
  PassContext& pass_;
  Context& context_;
  std::vector<const UOp*> order_;
  const UOp* loop_ = nullptr;
  const UOp* end_ = nullptr;
  std::vector<const UOp*> reduces_;
  absl::flat_hash_set<const UOp*> depends_;  // on the loop's counter, inside the loop
  absl::flat_hash_set<const UOp*> inside_;   // loops inside it
  absl::flat_hash_set<const UOp*> private_;  // scratch memory of one iteration
  bool updates_ = false;                     // a buffer is loaded and stored in the loop
  bool is_masked_ = false;
  const UOp* outer_ = nullptr;
  const UOp* base_ = nullptr;
};

}  // namespace

bool HasAmount(LoopAction::Kind kind) {
  return kind != Kind::kSwap && kind != Kind::kMerge && kind != Kind::kStream &&
         kind != Kind::kExpand && kind != Kind::kDot;
}

std::string ToString(const LoopAction& action) {
  if (!HasAmount(action.kind)) {
    return absl::StrCat(kNames[static_cast<int>(action.kind)], "(", action.axis, ")");
  }
  return absl::StrCat(kNames[static_cast<int>(action.kind)], "(", action.axis, ", ", action.amount,
                      ")");
}

absl::StatusOr<LoopAction> ParseLoopAction(absl::string_view text) {
  absl::string_view rest = text;
  auto bad = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("action, got '", text,
                     "', expected one such as 'upcast(0, 16)', "
                     "'unroll(1, 4)', 'group(2, 64)', 'split(0, 32)', "
                     "'swap(0)', 'merge(0)', 'pack(1, 1)', 'stream(0)', 'expand(1)' or 'dot(2)'"));
  };
  for (size_t i = 0; i < std::size(kNames); ++i) {
    Kind kind = static_cast<Kind>(i);
    rest = text;
    if (!absl::ConsumePrefix(&rest, kNames[i])) continue;
    if (!absl::ConsumePrefix(&rest, "(") || !absl::ConsumeSuffix(&rest, ")")) return bad();
    if (!HasAmount(kind)) {
      LoopAction action{kind, 0, 1};
      if (!absl::SimpleAtoi(rest, &action.axis) || action.axis < 0) return bad();
      return action;
    }
    std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(rest, absl::MaxSplits(',', 1));
    LoopAction action{kind, 0, 0};
    if (!absl::SimpleAtoi(parts.first, &action.axis) ||
        !absl::SimpleAtoi(parts.second, &action.amount)) {
      return bad();
    }
    bool is_vector = kind == Kind::kUpcast || kind == Kind::kGroup;
    int64_t least = kind == Kind::kPack || kind == Kind::kExchange ? 1 : 2;
    int64_t most = is_vector              ? kMaxLanes
                   : kind == Kind::kSplit ? kMaxSplit
                   : kind == Kind::kPack  ? kMaxPackedColumns
                                          : kMaxUnroll;
    bool fits = action.amount >= least && action.amount <= most &&
                (!is_vector || IsPowerOfTwo(action.amount));
    if (action.axis < 0 || !fits) {
      return absl::InvalidArgumentError(
          absl::StrCat("action '", text, "': amount, got ", action.amount, ", expected ",
                       is_vector ? "a power of two, " : "", least, " to ", most));
    }
    return action;
  }
  return bad();
}

absl::StatusOr<const UOp*> ApplyLoopAction(const UOp* sink, const LoopAction& action,
                                           PassContext& context) {
  auto apply = [&]() -> absl::StatusOr<const UOp*> {
    switch (action.kind) {
      case Kind::kSplit:
        return SplitLoop(sink, action.axis, action.amount, context);
      case Kind::kSwap:
        return SwapLoops(sink, action.axis, context);
      case Kind::kMerge:
        return MergeLoops(sink, action.axis, context);
      case Kind::kPack:
        return PackPanel(sink, action.axis, action.amount, context);
      case Kind::kExchange:
        return ExchangeLoops(sink, action.axis, action.amount, context);
      case Kind::kExpand:
        return ExpandSums(sink, action.axis, context);
      case Kind::kStream:
        return StreamStores(sink, action.axis, context);
      case Kind::kDot:
        return DotProducts(sink, action.axis, context);
      case Kind::kUpcast:
      case Kind::kUnroll:
      case Kind::kGroup:
        break;
    }
    return Actor(sink, action, context).Run();
  };
  SVOD_ASSIGN_OR_RETURN(const UOp* result, apply());
  // Loops that would have to interleave, and accesses whose order is lost, show here.
  Function function;
  function.root = result;
  absl::Status verified = Verify(function);
  if (verified.ok()) return result;
  return absl::InvalidArgumentError(absl::StrCat(ToString(action), ": ", verified.message()));
}

}  // namespace svod
