#include "ir/print_lines.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

class LineChooser {
 public:
  explicit LineChooser(const UOp* root)
      : root_(root),
        block_(root->arg<FunctionArgument>().is_kernel ? Block::kKernel : Block::kGraph) {}

  absl::StatusOr<PrintLines> Run() {
    SVOD_ASSIGN_OR_RETURN(linear_, Linearize(root_));
    ChooseHeader();
    for (const Step& step : linear_.steps) {
      if (block_ == Block::kKernel) {
        ChooseKernelLine(step);
      } else {
        ChooseGraphLine(step.node);
      }
    }
    ChooseRoot();
    SVOD_RETURN_IF_ERROR(status_);
    return std::move(result_);
  }

 private:
  void Fail(const UOp* node, absl::string_view what) {
    if (!status_.ok()) return;
    status_ =
        absl::InvalidArgumentError(absl::StrCat("print: ", InfoOf(node->op()).text, ": ", what));
  }

  int depth() const { return order_.num_open(); }

  // Parameters, and before them whatever their dimensions are made of.
  void ChooseHeader() {
    absl::flat_hash_set<const UOp*> in_header;
    std::vector<const UOp*> stack;
    for (const Step& step : linear_.steps) {
      if (step.node->op() == Op::kParam) {
        result_.params.push_back(step.node);
        stack.push_back(step.node);
      }
    }
    while (!stack.empty()) {
      const UOp* node = stack.back();
      stack.pop_back();
      for (const UOp* source : node->sources()) {
        if (!IsConst(source) && in_header.insert(source).second) stack.push_back(source);
      }
    }
    if (!in_header.empty()) {
      for (const Step& step : linear_.steps) {
        if (step.kind == Step::Kind::kCompute && in_header.contains(step.node)) {
          result_.header.push_back(step.node);
          std::string reason = WhyNotIn(Block::kHeader, step.node->op());
          if (!reason.empty()) Fail(step.node, "in the dimensions of a parameter");
        }
      }
    }
    std::stable_sort(result_.params.begin(), result_.params.end(), [](const UOp* a, const UOp* b) {
      return a->arg<ParamArgument>().slot < b->arg<ParamArgument>().slot;
    });
    for (const UOp* node : result_.header) order_.Note(node);
    for (const UOp* node : result_.params) order_.Note(node);
    chosen_.insert(result_.header.begin(), result_.header.end());
    chosen_.insert(result_.params.begin(), result_.params.end());
  }

  void ChooseGraphLine(const UOp* node) {
    if (IsConst(node) || !chosen_.insert(node).second) return;
    std::string reason = WhyNotIn(Block::kGraph, node->op());
    if (!reason.empty()) Fail(node, "in a graph");
    result_.lines.push_back({node, 0});
  }

  void ChooseKernelLine(const Step& step) {
    const UOp* node = step.node;
    Op op = node->op();
    if (step.kind == Step::Kind::kLoopEnd) return;
    if (step.kind == Step::Kind::kLoopBegin) {
      result_.lines.push_back({node, depth()});
      order_.Note(node);
      order_.Open(node);
      return;
    }
    // Addresses are part of the accesses that use them.
    if (IsConst(node) || op == Op::kIndex || op == Op::kAfter || chosen_.contains(node)) return;
    chosen_.insert(node);
    if (!WhyNotIn(Block::kKernel, op).empty()) return Fail(node, "in a kernel");
    if (op == Op::kLoad || op == Op::kStore) return ChooseAccess(node);
    if (op == Op::kEnd) return ChooseEnd(node);
    for (const UOp* source : node->sources()) ChooseState(source);
    order_.Note(node);
    if (op == Op::kReduce && !order_.AlsoCloses(node)) {
      order_.Close(node->sources().subspan(1), node);
    }
    result_.lines.push_back({node, depth()});
  }

  void ChooseEnd(const UOp* node) {
    order_.FinishReduces();
    std::vector<const UOp*> pending = order_.PendingEffects();
    PrintLine line{node, depth() - 1};
    line.implies_effects = node->sources().subspan(1) == absl::MakeConstSpan(pending);
    order_.Note(node);
    order_.TakeUp(node);
    order_.Close(node->sources().subspan(0, 1), node);
    result_.lines.push_back(line);
  }

  void ChooseRoot() {
    PrintLine line{root_, 0};
    if (block_ == Block::kKernel) {
      order_.FinishReduces();
      line.implies_effects = root_->sources() == absl::MakeConstSpan(order_.PendingEffects());
      for (const UOp* source : root_->sources()) ChooseState(source);
    }
    if (!line.implies_effects) result_.lines.push_back(line);
  }

  // AFTERs that must be lines, before whatever names them.
  void ChooseState(const UOp* state) {
    if (state->op() != Op::kAfter || chosen_.contains(state)) return;
    std::vector<std::pair<const UOp*, int>> stack = {{state, 0}};
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next < node->num_sources()) {
        const UOp* source = node->source(next++);
        if (source->op() == Op::kAfter && !chosen_.contains(source)) stack.push_back({source, 0});
        continue;
      }
      if (chosen_.insert(node).second) {
        order_.FinishReduces();
        order_.Note(node);
        result_.lines.push_back({node, depth()});
      }
      stack.pop_back();
    }
  }

  void ChooseAccess(const UOp* node) {
    const UOp* index = node->source(0);
    const UOp* state = index->source(0);
    const UOp* base = BaseBuffer(state);
    bool is_load = node->op() == Op::kLoad;
    AccessOrder::Access access{base, index, node->num_sources() > 1 ? node->source(1) : nullptr,
                               ConsecutiveElements(node), !is_load};
    order_.FinishReduces();
    PrintLine line{node, depth()};
    line.buffer = base;
    if (!unjoined_.contains(base)) {
      // What would the builder do, told only the buffer?
      AccessOrder::Credits credits = order_.credits();
      AccessOrder::Plan plan = PlanOf(access);
      if (plan.ok && IsState(plan, state)) {
        order_.Commit(node, access, &plan);
        result_.lines.push_back(line);
        return;
      }
      order_.set_credits(credits);
      if (!plan.ok) unjoined_.insert(base);
    }
    ChooseState(state);
    line.buffer = state;
    line.depth = depth();
    access.state = state;
    if (state != base && !unjoined_.contains(base)) {
      AccessOrder::Credits credits = order_.credits();
      AccessOrder::Plan plan = PlanOf(access);
      if (plan.ok && IsState(plan, state)) {
        order_.Commit(node, access, &plan);
        result_.lines.push_back(line);
        return;
      }
      order_.set_credits(credits);
      if (!plan.ok) unjoined_.insert(base);
    }
    line.is_exact = true;
    order_.Commit(node, access, nullptr);
    result_.lines.push_back(line);
  }

  AccessOrder::Plan PlanOf(const AccessOrder::Access& access) {
    return order_.PlanAccess(access, [&](absl::Span<const UOp* const> sources) -> const UOp* {
      if (afters_.empty()) {
        for (const Step& step : linear_.steps) {
          if (step.node->op() == Op::kAfter) afters_.emplace(step.node->sources(), step.node);
        }
      }
      auto it = afters_.find(sources);
      return it == afters_.end() ? nullptr : it->second;
    });
  }

  static bool IsState(const AccessOrder::Plan& plan, const UOp* state) {
    if (plan.after.empty()) return state == plan.state;
    return state->op() == Op::kAfter && state->source(0) == plan.state &&
           state->sources().subspan(1) == absl::MakeConstSpan(plan.after);
  }

  const UOp* root_;
  Block block_;
  absl::Status status_;
  LinearKernel linear_;
  AccessOrder order_;
  PrintLines result_;
  absl::flat_hash_set<const UOp*> chosen_;    // what has a line or a place in the header
  absl::flat_hash_set<const UOp*> unjoined_;  // buffers whose accesses are all printed as exact
  absl::flat_hash_map<absl::Span<const UOp* const>, const UOp*> afters_;  // by their sources
};

}  // namespace

absl::StatusOr<PrintLines> ChooseLines(const UOp* root) { return LineChooser(root).Run(); }

}  // namespace svod
