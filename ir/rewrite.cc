#include "ir/rewrite.h"

#include "absl/strings/str_cat.h"
#include "ir/check.h"
#include "ir/evaluate.h"
#include "ir/order_keeper.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

bool HasBits(const UOp* node, uint64_t bits) {
  return IsConst(node) && node->arg<ConstArgument>().bits == bits;
}

int CountCommutative(const Pattern& pattern) {
  if (pattern.leaf != Leaf::kNone) return 0;
  int count = HasFlag(pattern.op, kCommutative) ? 1 : 0;
  for (const Pattern& source : pattern.sources) count += CountCommutative(source);
  return count;
}

}  // namespace

bool Accepts(Leaf leaf, const UOp* node) {
  const DType dtype = node->dtype();
  const bool is_int_or_bool = dtype.is_integer() || dtype.is_bool();
  switch (leaf) {
    case Leaf::kNone:
      return false;
    case Leaf::kAny:
      return true;
    case Leaf::kInt:
      return dtype.is_integer();
    case Leaf::kBool:
      return dtype.is_bool();
    case Leaf::kIntOrBool:
      return is_int_or_bool;
    case Leaf::kFloat:
      return dtype.is_float();
    case Leaf::kConst:
      return IsConst(node);
    case Leaf::kIntConst:
      return IsConst(node) && dtype.is_integer();
    case Leaf::kZero:
      return is_int_or_bool && HasBits(node, 0);
    case Leaf::kOne:
      return is_int_or_bool && HasBits(node, 1);
    case Leaf::kAllOnes: {
      if (!is_int_or_bool) return false;
      uint64_t mask = dtype.bits() == 64 ? ~uint64_t{0} : (uint64_t{1} << dtype.bits()) - 1;
      return HasBits(node, mask);
    }
    case Leaf::kFloatZero:
      return dtype.is_float() && HasBits(node, 0);
    case Leaf::kFloatMinusZero:
      return dtype.is_float() && HasBits(node, DoubleToBits(dtype.scalar, -0.0));
    case Leaf::kFloatOne:
      return dtype.is_float() && HasBits(node, DoubleToBits(dtype.scalar, 1.0));
  }
  return false;
}

// --- Matching
// -------------------------------------------------------------------------------------

const UOp* Match::operator[](absl::string_view name) const {
  for (int i = 0; i < num_names_; ++i) {
    if (name == names_[i].first) return names_[i].second;
  }
  SVOD_DCHECK(false);
  return nullptr;
}

const UOp* Match::Make(Op op, std::initializer_list<const UOp*> sources) const {
  return Make(op, DType(), sources);
}

const UOp* Match::Make(Op op, DType dtype, std::initializer_list<const UOp*> sources) const {
  absl::StatusOr<const UOp*> made = pass_->context.Make(op, dtype, sources);
  if (!made.ok()) return nullptr;
  bool is_constant = IsElementwise(op) && !HasFlag(op, kTranscendental);
  std::vector<uint64_t> operands;
  for (const UOp* source : sources) {
    is_constant = is_constant && IsConst(source);
    if (is_constant) operands.push_back(source->arg<ConstArgument>().bits);
  }
  if (!is_constant) return *made;
  const UOp* last = *(sources.end() - 1);
  return pass_->context.Bits((*made)->dtype(),
                             EvaluateScalar(op, (*made)->dtype(), last->dtype(), operands));
}

// Matches one pattern. Bit i of `swaps` turns round the operands of its i-th commutative op, so
// that trying all of them finds every match. Recurses on the pattern, never on the graph.
class Matcher {
 public:
  Matcher(Match& match, uint32_t swaps) : match_(match), swaps_(swaps) {}

  bool Matches(const Pattern& pattern, const UOp* node) {
    if (pattern.leaf != Leaf::kNone) {
      if (!Accepts(pattern.leaf, node)) return false;
    } else {
      if (node->op() != pattern.op ||
          node->num_sources() != static_cast<int>(pattern.sources.size())) {
        return false;
      }
      bool swapped = false;
      if (HasFlag(pattern.op, kCommutative)) {
        swapped = (swaps_ & 1) != 0;
        swaps_ >>= 1;
      }
      for (int i = 0; i < node->num_sources(); ++i) {
        if (!Matches(pattern.sources[i], node->source(swapped ? 1 - i : i))) return false;
      }
    }
    return pattern.name == nullptr || Keep(pattern.name, node);
  }

 private:
  bool Keep(absl::string_view name, const UOp* node) {
    for (int i = 0; i < match_.num_names_; ++i) {
      if (name == match_.names_[i].first) return match_.names_[i].second == node;
    }
    SVOD_DCHECK(match_.num_names_ < static_cast<int>(match_.names_.size()));
    match_.names_[match_.num_names_++] = {name.data(), node};
    return true;
  }

  Match& match_;
  uint32_t swaps_;
};

RuleSet::RuleSet(std::vector<RewriteRule> rules) : rules_(std::move(rules)) { IndexByOp(); }

RuleSet::RuleSet(std::initializer_list<const RuleSet*> parts) {
  for (const RuleSet* part : parts) {
    rules_.insert(rules_.end(), part->rules_.begin(), part->rules_.end());
  }
  IndexByOp();
}

void RuleSet::IndexByOp() {
  for (const RewriteRule& rule : rules_) {
    Entry entry{&rule, CountCommutative(rule.pattern)};
    for (int op = 0; op < kNumOps; ++op) {
      bool is_candidate =
          rule.pattern.leaf != Leaf::kNone || rule.pattern.op == static_cast<Op>(op);
      if (is_candidate) by_op_[op].push_back(entry);
    }
  }
}

const UOp* RuleSet::ApplyEntry(const Entry& entry, const UOp* node, PassContext& context) {
  for (uint32_t swaps = 0; swaps < uint32_t{1} << entry.num_commutative; ++swaps) {
    Match match(node, context);
    if (!Matcher(match, swaps).Matches(entry.rule->pattern, node)) continue;
    const UOp* result = entry.rule->rewrite(match);
    if (result != nullptr && result != node) return result;
  }
  return nullptr;
}

const UOp* RuleSet::ApplyFirst(const UOp* node, PassContext& context,
                               const RewriteRule** rule) const {
  for (const Entry& entry : by_op_[static_cast<int>(node->op())]) {
    const UOp* result = ApplyEntry(entry, node, context);
    if (result == nullptr) continue;
    *rule = entry.rule;
    return result;
  }
  return nullptr;
}

const UOp* RuleSet::Apply(const RewriteRule& rule, const UOp* node, PassContext& context) {
  return ApplyEntry({&rule, CountCommutative(rule.pattern)}, node, context);
}

// --- The engine
// -----------------------------------------------------------------------------------

namespace {

// Depth-first over sources with an explicit stack. A frame first waits for its node's sources, then
// rebuilds the node from them, then, if a rule replaces it, waits for the replacement.
class Rewriter {
 public:
  Rewriter(const UOp* root, const RuleSet& rules, PassContext& context)
      : root_(root), rules_(rules), context_(context), keeper_(root, context.context) {}

  absl::StatusOr<const UOp*> Run() {
    std::vector<const UOp*> nodes = Toposort(root_);
    originals_.insert(nodes.begin(), nodes.end());
    left_ = 64 * static_cast<int64_t>(nodes.size()) + 10000;
    stack_.push_back({root_});
    final_[root_] = nullptr;
    while (!stack_.empty()) SVOD_RETURN_IF_ERROR(Advance());
    return KeepInterface(nodes, final_[root_]);
  }

 private:
  struct Frame {
    const UOp* node;
    int next_source = 0;
    const UOp* rebuilt = nullptr;      // once the sources are done
    const UOp* replacement = nullptr;  // once a rule applied
    const RewriteRule* rule = nullptr;
  };

  // What a kernel is called with stays part of it, used or not: the SINK lists what lost its users.
  absl::StatusOr<const UOp*> KeepInterface(absl::Span<const UOp* const> nodes, const UOp* result) {
    if (result == root_ || root_->op() != Op::kSink) return result;
    if (!keeper_.AllPerformed(result, final_)) return root_;
    std::vector<const UOp*> now = Toposort(result), lost;
    absl::flat_hash_set<const UOp*> present(now.begin(), now.end());
    // Users first: a CORE_ID that is kept keeps the variables of its launch size.
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      const Op op = (*it)->op();
      if (op != Op::kParam && op != Op::kDefineVar && op != Op::kCoreId) continue;
      const UOp* node = final_[*it];
      if (present.contains(node)) continue;
      lost.push_back(node);
      for (const UOp* source : Toposort(node)) present.insert(source);
    }
    std::vector<const UOp*> sources(result->sources().begin(), result->sources().end());
    sources.insert(sources.end(), lost.rbegin(), lost.rend());
    if (lost.empty()) return result;
    return context_.context.Make(Op::kSink, sources, result->argument());
  }

  // Null in final_ means that a frame of the stack is at work on the node.
  absl::Status Need(const UOp* node, const RewriteRule* rule) {
    auto [it, is_new] = final_.try_emplace(node, nullptr);
    if (is_new) {
      stack_.push_back({node});
      stack_.back().rule = rule;
    } else if (it->second == nullptr) {
      return NoEnd(rule);
    }
    return absl::OkStatus();
  }

  absl::Status NoEnd(const RewriteRule* rule) const {
    return absl::InternalError(absl::StrCat("rewrite: rule '", rule == nullptr ? "" : rule->name,
                                            "' does not come to an end"));
  }

  absl::Status Advance() {
    Frame& frame = stack_.back();
    if (frame.replacement != nullptr) {
      Finish(final_[frame.replacement]);
      return absl::OkStatus();
    }
    while (frame.next_source < frame.node->num_sources()) {
      const UOp* source = frame.node->source(frame.next_source++);
      auto it = final_.find(source);
      if (it == final_.end() || it->second == nullptr) return Need(source, frame.rule);
    }
    SVOD_RETURN_IF_ERROR(Rebuild(frame));
    if (frame.rebuilt != frame.node) {
      auto [it, is_new] = final_.try_emplace(frame.rebuilt, nullptr);
      if (!is_new) {
        if (it->second == nullptr) return NoEnd(frame.rule);
        Finish(it->second);
        return absl::OkStatus();
      }
    }
    const RewriteRule* rule = nullptr;
    const UOp* replacement = rules_.ApplyFirst(frame.rebuilt, context_, &rule);
    if (replacement == nullptr) {
      Finish(frame.rebuilt);
      return absl::OkStatus();
    }
    if (replacement->dtype() != frame.rebuilt->dtype()) {
      return absl::InternalError(absl::StrCat("rewrite: rule '", rule->name, "' changes ",
                                              ToString(frame.rebuilt->dtype()), " to ",
                                              ToString(replacement->dtype())));
    }
    if (--left_ < 0) return NoEnd(rule);
    ++context_.rule_hits[rule->name];
    frame.replacement = replacement;
    auto it = final_.find(replacement);
    if (it != final_.end() && it->second != nullptr) return absl::OkStatus();
    return Need(replacement, rule);
  }

  absl::Status Rebuild(Frame& frame) {
    const UOp* node = frame.node;
    frame.rebuilt = node;
    sources_.clear();
    bool changed = false;
    for (const UOp* source : node->sources()) {
      sources_.push_back(final_[source]);
      changed = changed || sources_.back() != source;
    }
    if (!changed) return absl::OkStatus();
    SVOD_ASSIGN_OR_RETURN(frame.rebuilt, context_.context.Make(node->op(), node->dtype(), sources_,
                                                               node->argument()));
    // An expression on its own has no order; only a kernel has.
    if (root_->op() != Op::kSink || !originals_.contains(node)) return absl::OkStatus();
    SVOD_ASSIGN_OR_RETURN(frame.rebuilt, keeper_.Keep(node, frame.rebuilt, final_));
    return absl::OkStatus();
  }

  void Finish(const UOp* result) {
    const Frame& frame = stack_.back();
    final_[frame.node] = result;
    final_[frame.rebuilt] = result;
    // The result is at rest: no rule applies to it or below it.
    final_[result] = result;
    stack_.pop_back();
  }

  const UOp* root_;
  const RuleSet& rules_;
  PassContext& context_;
  OrderKeeper keeper_;
  absl::flat_hash_set<const UOp*> originals_;
  absl::flat_hash_map<const UOp*, const UOp*> final_;
  std::vector<Frame> stack_;
  std::vector<const UOp*> sources_;
  int64_t left_ = 0;
};

}  // namespace

absl::StatusOr<const UOp*> RewriteBottomUp(const UOp* root, const RuleSet& rules,
                                           PassContext& context) {
  return Rewriter(root, rules, context).Run();
}

}  // namespace svod
