#include "ir/ranges.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ir/range_arithmetic.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

// How far OfWhere looks below a node for what a condition names, and how much it looks at.
constexpr int kMaxConditionDepth = 24;
constexpr size_t kMaxConditionNodes = 512;
constexpr size_t kMaxFacts = 64;
constexpr int kMaxLaneDepth = 16;

IntRange Intersect(IntRange a, IntRange b) {
  IntRange both = {std::max(a.min, b.min), std::min(a.max, b.max)};
  return both.min <= both.max ? both : a;  // a contradiction: then the code never runs
}

bool Is64Bit(DType dtype) { return dtype.bits() == 64; }

// Recomputes ranges under a condition. The depth of the recursion is bounded.
class ConditionalRanges {
 public:
  ConditionalRanges(RangeAnalysis& ranges, const std::vector<Fact>& facts) : ranges_(ranges) {
    for (int round = 0; round < 2; ++round) {
      for (const Fact& fact : facts) {
        IntRange left = Start(fact.left), right = Start(fact.right);
        int64_t gap = fact.strict ? 1 : 0;
        IntRange below = IntRange::Full(), above = IntRange::Full();
        if (right.max >= std::numeric_limits<int64_t>::min() + gap) below.max = right.max - gap;
        if (left.min <= std::numeric_limits<int64_t>::max() - gap) above.min = left.min + gap;
        narrowed_[fact.left] = Intersect(left, below);
        narrowed_[fact.right] = Intersect(right, above);
      }
    }
  }

  IntRange Of(const UOp* node, int depth) {
    auto it = done_.find(node);
    if (it != done_.end()) return it->second;
    IntRange range = Start(node);
    // A condition on a vector holds lane by lane; ops that cross lanes would mix them.
    bool is_leaf = node->op() == Op::kLanes || depth == 0 || done_.size() > kMaxConditionNodes;
    if (!is_leaf) {
      IntRange again = RangeOfNode(node, [&](const UOp* source) { return Of(source, depth - 1); });
      range = Intersect(range, again);
    }
    done_[node] = range;
    return range;
  }

 private:
  IntRange Start(const UOp* node) {
    auto it = narrowed_.find(node);
    return it != narrowed_.end() ? it->second : ranges_.Of(node);
  }

  RangeAnalysis& ranges_;
  absl::flat_hash_map<const UOp*, IntRange> narrowed_, done_;
};

// Whether AffineOf takes `node` apart. Arithmetic of 64 bits is that of sums of products modulo
// 2^64; narrower types must not wrap, and casts must keep the value.
bool IsTakenApart(const UOp* node, RangeAnalysis& ranges) {
  Op op = node->op();
  DType dtype = node->dtype();
  if (!dtype.is_integer()) return false;
  if (op == Op::kCast) {
    DType from = node->source(0)->dtype();
    if (!from.is_integer()) return false;
    IntRange range = ranges.Of(node->source(0));
    bool is_known = from.scalar != Scalar::kU64 || range.min >= 0;
    return is_known && TypeRange(dtype).Contains(range.min) &&
           TypeRange(dtype).Contains(range.max) && (dtype.scalar != Scalar::kU64 || range.min >= 0);
  }
  if (op == Op::kShl) {
    const UOp* amount = node->source(1);
    if (!IsConst(amount) || ConstInt(amount) < 0 || ConstInt(amount) >= dtype.bits()) return false;
  } else if (op != Op::kAdd && op != Op::kSub && op != Op::kMul && op != Op::kNeg &&
             op != Op::kMulAcc) {
    return false;
  }
  return Is64Bit(dtype) || !MayWrap(node, [&](const UOp* source) { return ranges.Of(source); });
}

// One step of AffineOf or AffineOfLane, with the forms of the sources; nullopt if it is too large.
std::optional<Affine> Combine(const UOp* node, absl::FunctionRef<Affine(const UOp*)> form,
                              RangeAnalysis& ranges) {
  Op op = node->op();
  Affine result = form(node->source(0));
  if (op == Op::kCast) return result;
  if (op == Op::kNeg) result = Affine::Constant(0) - result;
  if (op == Op::kAdd) result = result + form(node->source(1));
  if (op == Op::kSub) result = result - form(node->source(1));
  if (op == Op::kMul || op == Op::kMulAcc) {
    Affine factor = form(node->source(1));
    if (result.terms.size() * factor.terms.size() > 4 * kMaxAffineTerms) return std::nullopt;
    result = result * factor;
  }
  if (op == Op::kMulAcc) result = result + form(node->source(2));
  if (op == Op::kShl) {
    int64_t factor = static_cast<int64_t>(uint64_t{1} << ConstInt(node->source(1)));
    result = result * Affine::Constant(factor);
    result.exact = result.exact && factor > 0;
  }
  if (!IsSmall(result)) return std::nullopt;
  result.exact =
      result.exact && !MayWrap(node, [&](const UOp* source) { return ranges.Of(source); });
  return result;
}

// Constants are only exact as int64; an unsigned one beyond is not.
Affine ConstantForm(const UOp* node) {
  Affine form = Affine::Constant(ConstInt(node));
  form.exact = node->dtype().scalar != Scalar::kU64 || form.constant >= 0;
  return form;
}

// A u64 that may pass INT64_MAX is itself only modulo 2^64.
Affine AtomForm(const UOp* node, int lane, RangeAnalysis& ranges) {
  Affine form = Affine::Of({node, lane});
  form.exact = node->dtype().scalar != Scalar::kU64 || ranges.Of(node).min >= 0;
  return form;
}

}  // namespace

IntRange RangeAnalysis::Of(const UOp* root) {
  auto found = known_.find(root);
  if (found != known_.end()) return found->second;
  std::vector<std::pair<const UOp*, int>> stack = {{root, 0}};  // node, next source to visit
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next < node->num_sources()) {
      const UOp* source = node->source(next);
      bool is_needed = RangeDependsOn(node, next) && !known_.contains(source);
      ++next;
      if (is_needed) stack.push_back({source, 0});
      continue;
    }
    // A source that is not asked for is a float's or an address'; it has no range.
    IntRange range = RangeOfNode(node, [&](const UOp* source) {
      auto it = known_.find(source);
      return it != known_.end() ? it->second : IntRange::Full();
    });
    known_[node] = range;
    stack.pop_back();
  }
  return known_[root];
}

IntRange RangeAnalysis::OfWhere(const UOp* node, const UOp* condition) {
  std::vector<Fact> facts = FactsOf(condition, *this);
  if (facts.empty()) return Of(node);
  return ConditionalRanges(*this, facts).Of(node, kMaxConditionDepth);
}

Affine RangeAnalysis::AffineOf(const UOp* root) {
  auto form_of = [&](const UOp* node) {
    if (IsConst(node)) return ConstantForm(node);
    auto it = affines_.find(node);
    return it != affines_.end() ? it->second : AtomForm(node, 0, *this);
  };
  if (affines_.contains(root) || !IsTakenApart(root, *this)) return form_of(root);
  std::vector<std::pair<const UOp*, int>> stack = {{root, 0}};
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next < node->num_sources()) {
      const UOp* source = node->source(next++);
      if (!affines_.contains(source) && IsTakenApart(source, *this)) stack.push_back({source, 0});
      continue;
    }
    std::optional<Affine> form = Combine(node, form_of, *this);
    affines_[node] = form.has_value() ? *std::move(form) : AtomForm(node, 0, *this);
    stack.pop_back();
  }
  return affines_[root];
}

Affine RangeAnalysis::AffineOfLane(const UOp* root, int root_lane) {
  struct Lane {
    RangeAnalysis& ranges;
    Affine Of(const UOp* node, int lane, int depth) {
      if (!node->dtype().is_vector()) return ranges.AffineOf(node);
      if (IsConst(node)) return ConstantForm(node);
      if (depth == 0 || lane >= node->dtype().lanes) return AtomForm(node, lane, ranges);
      if (node->op() == Op::kSplat) return ranges.AffineOf(node->source(0));
      if (node->op() == Op::kStack) return ranges.AffineOf(node->source(lane));
      if (node->op() == Op::kLanes) {
        return Of(node->source(0), node->arg<LanesArgument>().lanes[lane], depth - 1);
      }
      if (!IsTakenApart(node, ranges)) return AtomForm(node, lane, ranges);
      auto form = [&](const UOp* source) { return Of(source, lane, depth - 1); };
      std::optional<Affine> result = Combine(node, form, ranges);
      return result.has_value() ? *std::move(result) : AtomForm(node, lane, ranges);
    }
  };
  return Lane{*this}.Of(root, root_lane, kMaxLaneDepth);
}

std::vector<Fact> FactsOf(const UOp* condition, RangeAnalysis& ranges) {
  std::vector<Fact> facts;
  std::vector<std::pair<const UOp*, bool>> stack = {{condition, true}};  // node, its truth
  for (size_t visited = 0; !stack.empty() && visited < 4 * kMaxFacts; ++visited) {
    auto [node, holds] = stack.back();
    stack.pop_back();
    Op op = node->op();
    // The mul of bools is their and, the add their or.
    bool is_and = node->dtype().is_bool() && (op == Op::kAnd || op == Op::kMul);
    bool is_or = node->dtype().is_bool() && (op == Op::kOr || op == Op::kAdd);
    if (op == Op::kSplat) {
      stack.push_back({node->source(0), holds});
    } else if (op == Op::kNot) {
      stack.push_back({node->source(0), !holds});
    } else if ((is_and && holds) || (is_or && !holds)) {
      stack.push_back({node->source(1), holds});
      stack.push_back({node->source(0), holds});
    } else if (op == Op::kCmpLt || op == Op::kCmpLe || op == Op::kCmpEq || op == Op::kCmpNe) {
      const UOp *left = node->source(0), *right = node->source(1);
      DType dtype = left->dtype();
      if (!dtype.is_integer()) continue;
      // Half a range of u64 cannot be told as int64.
      if (dtype.scalar == Scalar::kU64 && (ranges.Of(left).min < 0 || ranges.Of(right).min < 0)) {
        continue;
      }
      if (op == Op::kCmpLt || op == Op::kCmpLe) {
        bool strict = (op == Op::kCmpLt) == holds;
        facts.push_back(holds ? Fact{left, right, strict} : Fact{right, left, strict});
      } else if ((op == Op::kCmpEq) == holds) {
        facts.push_back({left, right, false});
        facts.push_back({right, left, false});
      }
      if (facts.size() >= kMaxFacts) break;
    }
  }
  return facts;
}

absl::Span<const UOp* const> DimensionsOf(const UOp* buffer) {
  return buffer->op() == Op::kBufferView ? buffer->sources().subspan(1) : buffer->sources();
}

absl::StatusOr<int64_t> MaxElements(const UOp* buffer) {
  RangeAnalysis ranges;
  return MaxElements(buffer, ranges);
}

absl::StatusOr<int64_t> MaxElements(const UOp* buffer, RangeAnalysis& ranges) {
  constexpr int64_t kMaxBytes = int64_t{1} << 62;
  int64_t size = buffer->dtype().size_bytes();
  auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(InfoOf(buffer->op()).text, ": ", what));
  };
  int64_t elements = 1;
  if (buffer->op() == Op::kReg || buffer->op() == Op::kLocal) {
    elements = buffer->arg<ScratchArgument>().size;
  }
  for (const UOp* dimension : DimensionsOf(buffer)) {
    IntRange range = ranges.Of(dimension);
    if (range.min < 0) {
      return error(
          absl::StrCat("dimension, got a lower bound of ", range.min, ", expected 0 or more"));
    }
    if (range.max > kMaxBytes) {
      return error("dimension, got no upper bound, expected a bound of at most 2^62");
    }
    if (range.max != 0 && elements > kMaxBytes / range.max) {
      return error("size, got more than 2^62 elements, expected at most 2^62 bytes");
    }
    elements *= range.max;
  }
  if (elements > kMaxBytes / size) {
    return error(absl::StrCat("size, got ", elements, " elements of ", size,
                              " bytes, expected at most 2^62 bytes"));
  }
  return elements;
}

}  // namespace svod
