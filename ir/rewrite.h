// Rewriting: patterns and rules as data, and the engine that applies them to a whole program.
// Included by passes and their tests. Must not know single rules.
#ifndef SVOD_IR_REWRITE_H_
#define SVOD_IR_REWRITE_H_

#include <array>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/pass.h"
#include "ir/uop.h"

namespace svod {

// What a leaf of a pattern accepts. A constant with a vector dtype counts, lane for lane.
enum class Leaf : uint8_t {
  kNone,  // not a leaf
  kAny,
  kInt,        // of an integer dtype
  kBool,       // of bool
  kIntOrBool,  // of either
  kFloat,      // of a float dtype
  kConst,      // a CONST of any dtype
  kIntConst,   // a CONST of an integer dtype
  kZero,       // integer or bool 0
  kOne,        // integer 1 or true
  kAllOnes,    // integer -1, the largest unsigned one, or true
  kFloatZero,  // +0.0
  kFloatMinusZero,
  kFloatOne,
};
bool Accepts(Leaf leaf, const UOp* node);

// A tree of ops over leaves. Equal names must meet equal nodes.
struct Pattern {
  Leaf leaf = Leaf::kNone;
  Op op = Op::kConst;            // unless a leaf
  const char* name = nullptr;    // under which Match finds the node; null: not kept
  std::vector<Pattern> sources;  // unless a leaf; as many as matched nodes have
};

inline Pattern Any(const char* name) { return {Leaf::kAny, Op::kConst, name, {}}; }
inline Pattern Int(const char* name) { return {Leaf::kInt, Op::kConst, name, {}}; }
inline Pattern Bool(const char* name) { return {Leaf::kBool, Op::kConst, name, {}}; }
inline Pattern IntOrBool(const char* name) { return {Leaf::kIntOrBool, Op::kConst, name, {}}; }
inline Pattern Float(const char* name) { return {Leaf::kFloat, Op::kConst, name, {}}; }
inline Pattern AnyConst(const char* name) { return {Leaf::kConst, Op::kConst, name, {}}; }
inline Pattern IntConst(const char* name) { return {Leaf::kIntConst, Op::kConst, name, {}}; }
inline Pattern Zero() { return {Leaf::kZero, Op::kConst, nullptr, {}}; }
inline Pattern One() { return {Leaf::kOne, Op::kConst, nullptr, {}}; }
inline Pattern AllOnes() { return {Leaf::kAllOnes, Op::kConst, nullptr, {}}; }
inline Pattern FloatZero() { return {Leaf::kFloatZero, Op::kConst, nullptr, {}}; }
inline Pattern FloatMinusZero() { return {Leaf::kFloatMinusZero, Op::kConst, nullptr, {}}; }
inline Pattern FloatOne() { return {Leaf::kFloatOne, Op::kConst, nullptr, {}}; }
inline Pattern Unary(Op op, Pattern x) { return {Leaf::kNone, op, nullptr, {std::move(x)}}; }
inline Pattern Binary(Op op, Pattern x, Pattern y) {
  return {Leaf::kNone, op, nullptr, {std::move(x), std::move(y)}};
}
inline Pattern Ternary(Op op, Pattern x, Pattern y, Pattern z) {
  return {Leaf::kNone, op, nullptr, {std::move(x), std::move(y), std::move(z)}};
}
inline Pattern Named(const char* name, Pattern pattern) {
  pattern.name = name;
  return pattern;
}

// What a rule's function is given: the nodes that the pattern's names met, and the means to make
// others. A node that cannot be made is null, and so is whatever is made of it. What is made of
// constants alone is a constant, so that a list of rules ends without fold-constants in it.
class Match {
 public:
  Match(const UOp* root, PassContext& pass) : root_(root), pass_(&pass) {}

  const UOp* operator[](absl::string_view name) const;
  const UOp* root() const { return root_; }
  Context& context() const { return pass_->context; }
  RangeAnalysis& ranges() const { return pass_->ranges; }
  IntRange Range(absl::string_view name) const { return pass_->ranges.Of((*this)[name]); }

  const UOp* Make(Op op, std::initializer_list<const UOp*> sources) const;
  const UOp* Make(Op op, DType dtype, std::initializer_list<const UOp*> sources) const;
  // An integer or bool constant of the root's dtype.
  const UOp* Int(int64_t value) const { return pass_->context.Int(root_->dtype(), value); }

 private:
  friend class Matcher;
  const UOp* root_;
  PassContext* pass_;
  int num_names_ = 0;
  std::array<std::pair<const char*, const UOp*>, 6> names_;
};

struct RewriteRule {
  const char* name;  // unique over all lists: "add-int-zero"
  Pattern pattern;
  // The node that replaces match.root(), of its dtype; null when the rule does not apply after all.
  const UOp* (*rewrite)(const Match& match);
};

// Rules in the order in which they are tried, found by the op of a node. A pattern with commutative
// ops matches its operands in either order.
class RuleSet {
 public:
  explicit RuleSet(std::vector<RewriteRule> rules);
  RuleSet(std::initializer_list<const RuleSet*> parts);  // all rules of the parts, in their order
  RuleSet(const RuleSet&) = delete;
  RuleSet& operator=(const RuleSet&) = delete;

  absl::Span<const RewriteRule> rules() const { return rules_; }
  // Tries the rules on one node; the first that applies gives the result and `rule`. Null if none.
  const UOp* ApplyFirst(const UOp* node, PassContext& context, const RewriteRule** rule) const;
  // The same for one rule.
  static const UOp* Apply(const RewriteRule& rule, const UOp* node, PassContext& context);

 private:
  struct Entry {
    const RewriteRule* rule;
    int num_commutative;  // commutative ops of its pattern: orders to try are 2^this
  };
  static const UOp* ApplyEntry(const Entry& entry, const UOp* node, PassContext& context);
  void IndexByOp();

  std::vector<RewriteRule> rules_;
  std::array<std::vector<Entry>, kNumOps> by_op_;
};

// Rewrites every node under `root`, sources first, until no rule applies to any node of the result.
// When an operand of a LOAD or STORE no longer depends on an earlier access or on a loop, the
// access gets that dependence as an AFTER (see OrderKeeper), so rules need not think of order. Each
// application is counted in context.rule_hits. Errors: Internal, naming the rule, when rules make
// nodes of another dtype or do not come to an end (after 64 applications for each node, and 10,000
// more). Cost: linear in nodes for rules that do constant work; iterative.
absl::StatusOr<const UOp*> RewriteBottomUp(const UOp* root, const RuleSet& rules,
                                           PassContext& context);

}  // namespace svod

#endif  // SVOD_IR_REWRITE_H_
