#include "ir/passes/simplify_ranges.h"

#include <algorithm>
#include <optional>

#include "ir/range_arithmetic.h"

namespace svod {
namespace {

using MaybeInt = std::optional<int64_t>;

bool Wraps(const Match& m, const UOp* node) {
  return MayWrap(node, [&](const UOp* source) { return m.ranges().Of(source); });
}

int64_t C(const Match& m, absl::string_view name) { return ConstInt(m[name]); }

MaybeInt CheckedAdd(int64_t x, int64_t y) {
  int64_t sum;
  return __builtin_add_overflow(x, y, &sum) ? std::nullopt : MaybeInt(sum);
}
MaybeInt CheckedMul(int64_t x, int64_t y) {
  int64_t product;
  return __builtin_mul_overflow(x, y, &product) ? std::nullopt : MaybeInt(product);
}

bool Fits(DType dtype, MaybeInt value) {
  return value.has_value() && MinValue(dtype) <= *value && *value <= MaxValue(dtype);
}

// A constant of x's dtype; null when it does not fit, so that the rule does not apply.
const UOp* ConstantLike(const Match& m, const UOp* x, MaybeInt value) {
  return Fits(x->dtype(), value) ? m.context().Int(x->dtype(), *value) : nullptr;
}

// False for a u64 constant beyond INT64_MAX, which ConstInt shows as negative.
bool IsTrueInt(const Match& m, absl::string_view name) {
  return !m[name]->dtype().is_unsigned() || C(m, name) >= 0;
}
// False for a u64 that may be beyond INT64_MAX: its range is Full.
bool IsTrueRange(const Match& m, absl::string_view name) {
  return !m[name]->dtype().is_unsigned() || m.Range(name).min >= 0;
}

// --- Values that are known
// ------------------------------------------------------------------------

// A node that has one value but is no constant. The counter of a loop that may run no times counts
// as 0 only because nobody looks; that it is below the loop's end is worth more, as it may be what
// shows two accesses apart. So these stay, and whatever is computed from them.
bool IsLeftAlone(const Match& m, const UOp* node) {
  bool has_range = node->dtype().is_integer() || node->dtype().is_bool();
  return has_range && !IsConst(node) && m.ranges().Of(node).is_single();
}

const UOp* KnownValue(const Match& m) {
  const UOp* root = m.root();
  const DType dtype = root->dtype();
  if (!IsElementwise(root->op()) || !(dtype.is_integer() || dtype.is_bool())) return nullptr;
  IntRange range = m.ranges().Of(root);
  if (!range.is_single()) return nullptr;
  for (const UOp* source : root->sources()) {
    if (IsLeftAlone(m, source)) return nullptr;
  }
  return m.Int(range.min);
}

// The counter of a loop that runs once, or a variable that has one value, as an operand. The RANGE
// itself has to stay: an END or a REDUCE closes it.
const UOp* KnownOperand(const Match& m) {
  const UOp* root = m.root();
  const Op op = root->op();
  if (!IsElementwise(op) && op != Op::kIndex && op != Op::kSplat && op != Op::kStack) {
    return nullptr;
  }
  std::vector<const UOp*> sources(root->sources().begin(), root->sources().end());
  bool changed = false;
  for (const UOp*& source : sources) {
    bool runs_once = source->op() == Op::kRange && IsConstInt(source->source(0), 1);
    bool is_fixed = source->op() == Op::kDefineVar && m.ranges().Of(source).is_single();
    if (!runs_once && !is_fixed) continue;
    source = m.context().Int(source->dtype(), m.ranges().Of(source).min);
    changed = true;
  }
  if (!changed) return nullptr;
  absl::StatusOr<const UOp*> made = m.context().Make(op, root->dtype(), sources, root->argument());
  return made.ok() ? *made : nullptr;
}

// --- Sums, split by what a divisor divides
// --------------------------------------------------------

// x = divisor * quotient + rest, in true integers. Null stands for 0.
struct Split {
  const UOp* quotient = nullptr;
  const UOp* rest = nullptr;
};

// The most terms that a sum is taken apart into.
constexpr size_t kMaxTerms = 16;

// The terms of a sum in which nothing can wrap; false if there are too many.
bool CollectTerms(const Match& m, const UOp* sum, std::vector<const UOp*>& terms) {
  std::vector<const UOp*> stack = {sum};
  while (!stack.empty()) {
    const UOp* node = stack.back();
    stack.pop_back();
    if (node->op() == Op::kAdd && !Wraps(m, node)) {
      stack.push_back(node->source(1));
      stack.push_back(node->source(0));
    } else {
      terms.push_back(node);
    }
    if (terms.size() + stack.size() > kMaxTerms) return false;
  }
  return true;
}

// term / divisor where that is exact and follows from the term's form.
const UOp* ExactQuotient(const Match& m, const UOp* term, int64_t divisor) {
  if (IsConst(term)) {
    int64_t value = ConstInt(term);
    if (value % divisor != 0 || (term->dtype().is_unsigned() && value < 0)) return nullptr;
    return m.context().Int(term->dtype(), value / divisor);
  }
  if (term->op() != Op::kMul || !IsConst(term->source(1)) || Wraps(m, term)) return nullptr;
  int64_t factor = ConstInt(term->source(1));
  if (factor % divisor != 0 || (term->dtype().is_unsigned() && factor < 0)) return nullptr;
  return m.Make(Op::kMul, {term->source(0), m.context().Int(term->dtype(), factor / divisor)});
}

// Nothing when no term is a multiple of the divisor, or when a partial sum could wrap.
std::optional<Split> SplitSum(const Match& m, const UOp* sum, int64_t divisor) {
  std::vector<const UOp*> terms;
  if (divisor <= 1 || !CollectTerms(m, sum, terms)) return std::nullopt;
  Split split;
  MaybeInt rest_min = 0, rest_max = 0;
  auto add = [&](const UOp*& to, const UOp* term) {
    to = to == nullptr ? term : m.Make(Op::kAdd, {to, term});
  };
  for (const UOp* term : terms) {
    if (const UOp* quotient = ExactQuotient(m, term, divisor)) {
      add(split.quotient, quotient);
      continue;
    }
    // A constant splits too, so that (x * 4 + 6) / 4 loses its 4.
    if (IsConst(term) && terms.size() > 1 && ConstInt(term) > divisor) {
      int64_t value = ConstInt(term);
      add(split.quotient, m.context().Int(term->dtype(), value / divisor));
      term = m.context().Int(term->dtype(), value % divisor);
    }
    IntRange range = m.ranges().Of(term);
    if (term->dtype().is_unsigned() && range.min < 0) return std::nullopt;  // a u64, not known
    if (rest_min.has_value()) rest_min = CheckedAdd(*rest_min, range.min);
    if (rest_max.has_value()) rest_max = CheckedAdd(*rest_max, range.max);
    add(split.rest, term);
  }
  if (split.quotient == nullptr) return std::nullopt;
  if (!Fits(sum->dtype(), rest_min) || !Fits(sum->dtype(), rest_max)) return std::nullopt;
  return split;
}

// (x * (c * k) + y) // c -> x * k + y // c
const UOp* FloordivOfSum(const Match& m) {
  std::optional<Split> split = SplitSum(m, m["x"], C(m, "c"));
  if (!split.has_value()) return nullptr;
  if (split->rest == nullptr) return split->quotient;
  return m.Make(Op::kAdd, {split->quotient, m.Make(Op::kFloordiv, {split->rest, m["c"]})});
}

// (x * (c * k) + y) % c -> y % c
const UOp* FloormodOfSum(const Match& m) {
  std::optional<Split> split = SplitSum(m, m["x"], C(m, "c"));
  if (!split.has_value()) return nullptr;
  return split->rest == nullptr ? m.Int(0) : m.Make(Op::kFloormod, {split->rest, m["c"]});
}

// --- Division
// -------------------------------------------------------------------------------------

// (x op a) op b -> x op (a * b)
template <Op op>
const UOp* DivisionOfDivision(const Match& m) {
  int64_t a = C(m, "a"), b = C(m, "b");
  if (a <= 0 || b <= 0) return nullptr;
  return m.Make(op, {m["x"], ConstantLike(m, m["x"], CheckedMul(a, b))});
}

// cdiv and cmod of what is not negative by a positive constant are floordiv and floormod.
template <Op op>
const UOp* Flooring(const Match& m) {
  bool is_natural = m.root()->dtype().is_unsigned() || m.Range("x").min >= 0;
  if (!is_natural || (!m.root()->dtype().is_unsigned() && C(m, "c") <= 0)) return nullptr;
  return m.Make(op, {m["x"], m["c"]});
}

bool IsInside(IntRange range, int64_t min, int64_t max) {
  return range.min >= min && range.max <= max;
}

// x % c -> x where 0 <= x < c
const UOp* FloormodInside(const Match& m) {
  return C(m, "c") > 0 && IsInside(m.Range("x"), 0, C(m, "c") - 1) ? m["x"] : nullptr;
}

// cmod(x, c) -> x where |x| < |c|
const UOp* CmodInside(const Match& m) {
  int64_t c = C(m, "c");
  if (c == 0 || c == std::numeric_limits<int64_t>::min()) return nullptr;
  int64_t last = (c < 0 ? -c : c) - 1;
  if (!IsTrueInt(m, "c")) return nullptr;
  return IsInside(m.Range("x"), -last, last) ? m["x"] : nullptr;
}

// (x * c) / c -> x
const UOp* QuotientOfProduct(const Match& m) {
  if (C(m, "c") == 0 || Wraps(m, m["product"])) return nullptr;
  // The one quotient that wraps, of the smallest x by -1, is x * -1 that wraps before.
  return m["x"];
}

// (x % (c * k)) % c -> x % c
const UOp* FloormodOfFloormod(const Match& m) {
  int64_t c = C(m, "c"), d = C(m, "d");
  if (c <= 0 || d <= 0 || d % c != 0) return nullptr;
  return m.Make(Op::kFloormod, {m["x"], m["c"]});
}

// x // c * c + x % c -> x, which wrapping does not disturb.
const UOp* Recombine(const Match& m) { return m["x"]; }

// (x * c) // (c * k) -> x // k, and (x * c) % (c * k) -> (x % k) * c
const UOp* CommonFactor(const Match& m) {
  int64_t c = C(m, "c"), d = C(m, "d");
  if (c <= 1 || d <= 0 || d % c != 0 || Wraps(m, m["product"])) return nullptr;
  const UOp* k = m.context().Int(m["d"]->dtype(), d / c);
  if (m.root()->op() == Op::kFloordiv) return m.Make(Op::kFloordiv, {m["x"], k});
  return m.Make(Op::kMul, {m.Make(Op::kFloormod, {m["x"], k}), m["c"]});
}

// --- Comparison
// -----------------------------------------------------------------------------------

// x + c < d -> x < d - c, where x + c does not wrap.
template <Op op>
const UOp* CompareSum(const Match& m) {
  const UOp* sum = m["sum"];
  if (Wraps(m, sum) || !IsTrueInt(m, "c") || !IsTrueInt(m, "d")) return nullptr;
  MaybeInt bound;
  int64_t difference;
  if (!__builtin_sub_overflow(C(m, "d"), C(m, "c"), &difference)) bound = difference;
  // d - c of an unsigned dtype may be negative: then the ranges decide, not this rule.
  const UOp* constant = ConstantLike(m, sum, bound);
  bool sum_is_left = m.root()->source(0) == sum;
  return sum_is_left ? m.Make(op, {m["x"], constant}) : m.Make(op, {constant, m["x"]});
}

// x + c == d -> x == d - c, which wrapping does not disturb.
template <Op op>
const UOp* EqualSum(const Match& m) {
  return m.Make(op, {m["x"], m.Make(Op::kSub, {m["d"], m["c"]})});
}

int64_t FloorQuotient(int64_t x, int64_t y) {
  int64_t quotient = x / y;
  return x % y != 0 && (x < 0) != (y < 0) ? quotient - 1 : quotient;
}

// x * c < d -> x < ceil(d / c)
const UOp* ProductLess(const Match& m) {
  int64_t c = C(m, "c"), d = C(m, "d");
  if (c <= 1 || Wraps(m, m["product"]) || !IsTrueInt(m, "d")) return nullptr;
  int64_t quotient = FloorQuotient(d, c);
  if (quotient * c != d) ++quotient;
  return m.Make(Op::kCmpLt, {m["x"], ConstantLike(m, m["x"], quotient)});
}

// d < x * c -> floor(d / c) < x
const UOp* LessProduct(const Match& m) {
  int64_t c = C(m, "c"), d = C(m, "d");
  if (c <= 1 || Wraps(m, m["product"]) || !IsTrueInt(m, "d")) return nullptr;
  return m.Make(Op::kCmpLt, {ConstantLike(m, m["x"], FloorQuotient(d, c)), m["x"]});
}

// x // c < d -> x < d * c
const UOp* QuotientLess(const Match& m) {
  int64_t c = C(m, "c"), d = C(m, "d");
  if (c <= 0 || !IsTrueInt(m, "d")) return nullptr;
  return m.Make(Op::kCmpLt, {m["x"], ConstantLike(m, m["x"], CheckedMul(d, c))});
}

// x <= c -> x < c + 1, so that comparisons with constants have one form.
const UOp* LessOrEqualConstant(const Match& m) {
  int64_t c = C(m, "c");
  if (c >= MaxValue(m["c"]->dtype()) || !IsTrueInt(m, "c")) return nullptr;
  return m.Make(Op::kCmpLt, {m["x"], ConstantLike(m, m["x"], c + 1)});
}

// c <= x -> c - 1 < x
const UOp* ConstantLessOrEqual(const Match& m) {
  int64_t c = C(m, "c");
  if (c <= MinValue(m["c"]->dtype())) return nullptr;
  return m.Make(Op::kCmpLt, {ConstantLike(m, m["x"], c - 1), m["x"]});
}

// max(x, y) -> x where x >= y always
const UOp* LargerByRange(const Match& m) {
  if (!IsTrueRange(m, "x") || !IsTrueRange(m, "y")) return nullptr;
  return m.Range("x").min >= m.Range("y").max ? m["x"] : nullptr;
}
const UOp* SmallerByRange(const Match& m) {
  if (!IsTrueRange(m, "x") || !IsTrueRange(m, "y")) return nullptr;
  return m.Range("x").max <= m.Range("y").min ? m["x"] : nullptr;
}

// --- Bits and casts
// -------------------------------------------------------------------------------

// x & (2^k - 1) -> x where 0 <= x < 2^k
const UOp* MaskInside(const Match& m) {
  int64_t c = C(m, "c");
  if (c < 0 || (static_cast<uint64_t>(c) & (static_cast<uint64_t>(c) + 1)) != 0) return nullptr;
  return IsInside(m.Range("x"), 0, c) ? m["x"] : nullptr;
}

// A cast to a narrower integer and back, of a value that fits.
const UOp* RoundTrip(const Match& m) {
  const DType narrow = m["inner"]->dtype();
  bool are_integers =
      m.root()->dtype().is_integer() && narrow.is_integer() && m["x"]->dtype().is_integer();
  if (!are_integers || m["x"]->dtype().scalar == Scalar::kU64 ||
      !IsInside(m.Range("x"), MinValue(narrow), MaxValue(narrow))) {
    return nullptr;
  }
  return m.Make(Op::kCast, m.root()->dtype(), {m["x"]});
}

// A gate that always holds.
const UOp* OpenGate(const Match& m) { return m.Make(Op::kIndex, {m["buffer"], m["position"]}); }

std::vector<RewriteRule> MakeRules() {
  const Pattern x = Int("x"), c = IntConst("c"), d = IntConst("d");
  const Pattern product = Named("product", Binary(Op::kMul, x, c));
  const Pattern sum = Named("sum", Binary(Op::kAdd, x, c));
  return {
      {"known-value", Any("x"), KnownValue},
      {"known-operand", Any("x"), KnownOperand},
      {"index-open-gate", Ternary(Op::kIndex, Any("buffer"), Any("position"), One()), OpenGate},

      {"cdiv-natural", Binary(Op::kCdiv, x, c), Flooring<Op::kFloordiv>},
      {"cmod-natural", Binary(Op::kCmod, x, c), Flooring<Op::kFloormod>},
      {"cmod-inside", Binary(Op::kCmod, x, c), CmodInside},
      {"cdiv-of-cdiv", Binary(Op::kCdiv, Binary(Op::kCdiv, x, IntConst("a")), IntConst("b")),
       DivisionOfDivision<Op::kCdiv>},
      {"floordiv-of-floordiv",
       Binary(Op::kFloordiv, Binary(Op::kFloordiv, x, IntConst("a")), IntConst("b")),
       DivisionOfDivision<Op::kFloordiv>},
      {"floormod-inside", Binary(Op::kFloormod, x, c), FloormodInside},
      {"floormod-of-floormod", Binary(Op::kFloormod, Binary(Op::kFloormod, x, d), c),
       FloormodOfFloormod},
      {"cdiv-of-product", Binary(Op::kCdiv, product, c), QuotientOfProduct},
      {"floordiv-of-product", Binary(Op::kFloordiv, product, c), QuotientOfProduct},
      {"floordiv-common-factor", Binary(Op::kFloordiv, product, d), CommonFactor},
      {"floormod-common-factor", Binary(Op::kFloormod, product, d), CommonFactor},
      {"floordiv-of-sum", Binary(Op::kFloordiv, x, c), FloordivOfSum},
      {"floormod-of-sum", Binary(Op::kFloormod, x, c), FloormodOfSum},
      {"recombine-floor",
       Binary(Op::kAdd, Binary(Op::kMul, Binary(Op::kFloordiv, x, c), c),
              Binary(Op::kFloormod, x, c)),
       Recombine},
      {"recombine-trunc",
       Binary(Op::kAdd, Binary(Op::kMul, Binary(Op::kCdiv, x, c), c), Binary(Op::kCmod, x, c)),
       Recombine},

      {"cmplt-sum-left", Binary(Op::kCmpLt, sum, d), CompareSum<Op::kCmpLt>},
      {"cmplt-sum-right", Binary(Op::kCmpLt, d, sum), CompareSum<Op::kCmpLt>},
      {"cmple-constant-right", Binary(Op::kCmpLe, x, c), LessOrEqualConstant},
      {"cmple-constant-left", Binary(Op::kCmpLe, c, x), ConstantLessOrEqual},
      {"cmpeq-sum", Binary(Op::kCmpEq, Binary(Op::kAdd, x, c), d), EqualSum<Op::kCmpEq>},
      {"cmpne-sum", Binary(Op::kCmpNe, Binary(Op::kAdd, x, c), d), EqualSum<Op::kCmpNe>},
      {"cmplt-product-left", Binary(Op::kCmpLt, product, d), ProductLess},
      {"cmplt-product-right", Binary(Op::kCmpLt, d, product), LessProduct},
      {"cmplt-quotient", Binary(Op::kCmpLt, Binary(Op::kFloordiv, x, c), d), QuotientLess},
      {"max-by-range", Binary(Op::kMax, x, Int("y")), LargerByRange},
      {"min-by-range", Binary(Op::kMin, x, Int("y")), SmallerByRange},

      {"and-mask-inside", Binary(Op::kAnd, x, c), MaskInside},
      {"cast-round-trip", Unary(Op::kCast, Named("inner", Unary(Op::kCast, x))), RoundTrip},
  };
}

}  // namespace

const RuleSet& SimplifyRangesRules() {
  static const RuleSet& rules = *new RuleSet(MakeRules());
  return rules;
}

absl::StatusOr<const UOp*> RunSimplifyRanges(const UOp* root, PassContext& context) {
  return RewriteBottomUp(root, SimplifyRangesRules(), context);
}

}  // namespace svod
