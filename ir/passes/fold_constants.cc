#include "ir/passes/fold_constants.h"

#include <algorithm>
#include <optional>

#include "ir/evaluate.h"

namespace svod {
namespace {

// The lanes of a CONST, or of a STACK of CONSTs.
std::optional<std::vector<uint64_t>> ConstantLanes(const UOp* node) {
  if (IsConst(node)) {
    return std::vector<uint64_t>(node->dtype().lanes, node->arg<ConstArgument>().bits);
  }
  if (node->op() != Op::kStack) return std::nullopt;
  std::vector<uint64_t> lanes;
  for (const UOp* source : node->sources()) {
    if (!IsConst(source)) return std::nullopt;
    lanes.push_back(source->arg<ConstArgument>().bits);
  }
  return lanes;
}

const UOp* MakeConstant(Context& context, DType dtype, const std::vector<uint64_t>& lanes) {
  bool all_equal =
      std::all_of(lanes.begin(), lanes.end(), [&](uint64_t bits) { return bits == lanes.front(); });
  if (all_equal) return context.Bits(dtype, lanes.front());
  std::vector<const UOp*> elements;
  for (uint64_t bits : lanes) elements.push_back(context.Bits(dtype.element(), bits));
  absl::StatusOr<const UOp*> stack = context.Make(Op::kStack, elements);
  return stack.ok() ? *stack : nullptr;
}

// A transcendental is left: its decomposition, folded later, gives the bits that it has at run
// time.
const UOp* FoldConstant(const Match& m) {
  const UOp* root = m.root();
  if (!IsElementwise(root->op()) || HasFlag(root->op(), kTranscendental)) return nullptr;
  std::vector<std::vector<uint64_t>> operands;
  for (const UOp* source : root->sources()) {
    std::optional<std::vector<uint64_t>> lanes = ConstantLanes(source);
    if (!lanes.has_value()) return nullptr;
    operands.push_back(*std::move(lanes));
  }
  std::vector<uint64_t> result, scalars(operands.size());
  for (size_t lane = 0; lane < operands[0].size(); ++lane) {
    for (size_t i = 0; i < operands.size(); ++i) scalars[i] = operands[i][lane];
    result.push_back(EvaluateScalar(root->op(), root->dtype().element(),
                                    root->sources().back()->dtype().element(), scalars));
  }
  return MakeConstant(m.context(), root->dtype(), result);
}

const UOp* MakeLanes(const Match& m, const UOp* vector, absl::Span<const uint16_t> lanes) {
  absl::StatusOr<const UOp*> made = m.context().Make(Op::kLanes, {vector}, LanesArgument{lanes});
  return made.ok() ? *made : nullptr;
}

absl::Span<const uint16_t> LanesOf(const UOp* node) { return node->arg<LanesArgument>().lanes; }

const UOp* StackOfEqual(const Match& m) {
  const UOp* root = m.root();
  if (root->op() != Op::kStack) return nullptr;
  const UOp* first = root->source(0);
  for (const UOp* source : root->sources()) {
    if (source != first) return nullptr;
  }
  if (root->num_sources() == 1) return first;
  return m.Make(Op::kSplat, root->dtype(), {first});
}

const UOp* LanesOfConstant(const Match& m) {
  std::optional<std::vector<uint64_t>> lanes = ConstantLanes(m["x"]);
  if (!lanes.has_value()) return nullptr;
  std::vector<uint64_t> taken;
  for (uint16_t lane : LanesOf(m.root())) taken.push_back((*lanes)[lane]);
  return MakeConstant(m.context(), m.root()->dtype(), taken);
}

const UOp* LanesOfStack(const Match& m) {
  const UOp* stack = m["x"];
  if (stack->op() != Op::kStack) return nullptr;
  std::vector<const UOp*> taken;
  for (uint16_t lane : LanesOf(m.root())) taken.push_back(stack->source(lane));
  if (taken.size() == 1) return taken[0];
  absl::StatusOr<const UOp*> made = m.context().Make(Op::kStack, taken);
  return made.ok() ? *made : nullptr;
}

const UOp* LanesOfLanes(const Match& m) {
  absl::Span<const uint16_t> inner = LanesOf(m["inner"]);
  std::vector<uint16_t> taken;
  for (uint16_t lane : LanesOf(m.root())) taken.push_back(inner[lane]);
  return MakeLanes(m, m["x"], taken);
}

const UOp* AllLanes(const Match& m) {
  absl::Span<const uint16_t> lanes = LanesOf(m.root());
  if (lanes.size() != m["x"]->dtype().lanes) return nullptr;
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (lanes[i] != i) return nullptr;
  }
  return m["x"];
}

std::vector<RewriteRule> MakeRules() {
  return {
      {"fold-constant", Any("x"), FoldConstant},
      {"splat-constant", Unary(Op::kSplat, AnyConst("c")),
       [](const Match& m) {
         return m.context().Bits(m.root()->dtype(), m["c"]->arg<ConstArgument>().bits);
       }},
      {"splat-one-lane", Unary(Op::kSplat, Any("x")),
       [](const Match& m) { return m.root()->dtype().is_vector() ? nullptr : m["x"]; }},
      {"stack-of-equal", Any("x"), StackOfEqual},
      {"lanes-of-constant", Unary(Op::kLanes, Any("x")), LanesOfConstant},
      {"lanes-of-splat", Unary(Op::kLanes, Unary(Op::kSplat, Any("x"))),
       [](const Match& m) {
         DType dtype = m.root()->dtype();
         return dtype.is_vector() ? m.Make(Op::kSplat, dtype, {m["x"]}) : m["x"];
       }},
      {"lanes-of-stack", Unary(Op::kLanes, Any("x")), LanesOfStack},
      {"lanes-of-lanes", Unary(Op::kLanes, Named("inner", Unary(Op::kLanes, Any("x")))),
       LanesOfLanes},
      {"lanes-all", Unary(Op::kLanes, Any("x")), AllLanes},
  };
}

}  // namespace

const RuleSet& FoldConstantsRules() {
  static const RuleSet& rules = *new RuleSet(MakeRules());
  return rules;
}

absl::StatusOr<const UOp*> RunFoldConstants(const UOp* root, PassContext& context) {
  return RewriteBottomUp(root, FoldConstantsRules(), context);
}

}  // namespace svod
