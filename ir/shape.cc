#include "ir/shape.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

absl::Status Error(absl::string_view op, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(op, ": ", what));
}
absl::Status Error(const UOp* node, absl::string_view what) {
  return Error(InfoOf(node->op()).text, what);
}

// The text of a dimension, with brackets where it is part of a product.
std::string Text(const UOp* node, bool in_product, int depth) {
  constexpr int kMaxDepth = 16;
  if (IsConst(node)) return absl::StrCat(ConstInt(node));
  if (const auto* variable = std::get_if<VariableArgument>(&node->argument())) {
    return std::string(variable->name);
  }
  if (depth > kMaxDepth || node->num_sources() != 2) return InfoOf(node->op()).text;
  auto part = [&](int i, bool product) { return Text(node->source(i), product, depth + 1); };
  if (node->op() == Op::kMul) return absl::StrCat(part(0, true), " * ", part(1, true));
  if (node->op() == Op::kAdd || node->op() == Op::kSub) {
    const char* sign = node->op() == Op::kAdd ? " + " : " - ";
    std::string sum = absl::StrCat(part(0, false), sign, part(1, node->op() == Op::kSub));
    return in_product ? absl::StrCat("(", sum, ")") : sum;
  }
  return absl::StrCat(InfoOf(node->op()).text, "(", part(0, false), ", ", part(1, false), ")");
}

}  // namespace

std::string ToString(const UOp* dimension) { return Text(dimension, false, 0); }

std::string ShapeToString(ShapeSpan shape) {
  return absl::StrCat("[",
                      absl::StrJoin(shape, ", ",
                                    [](std::string* out, const UOp* dimension) {
                                      absl::StrAppend(out, ToString(dimension));
                                    }),
                      "]");
}

std::string ShapeToString(DType dtype, ShapeSpan shape) {
  return absl::StrCat(ToString(dtype), ShapeToString(shape));
}

// --- Dims -------------------------------------------------------------------------------------

const UOp* Dims::Make(Op op, const UOp* a, const UOp* b) {
  if (a == nullptr || b == nullptr) return nullptr;
  absl::StatusOr<const UOp*> node = context_.Make(op, {a, b});
  return node.ok() ? Normalize(*node) : nullptr;
}

// The order of terms: large strides first, then counters by their axes. It does not depend on the
// numbers of axes, only on their order, so that equal kernels come out equal.
static bool ComesBefore(const Term& a, const Term& b) {
  if (a.coefficient != b.coefficient) return a.coefficient > b.coefficient;
  if (a.atoms.size() != b.atoms.size()) return a.atoms.size() > b.atoms.size();
  auto axis_of = [](const Term& term) {
    int64_t axis = std::numeric_limits<int64_t>::max();
    for (const Atom& atom : term.atoms) {
      const auto* argument = std::get_if<AxisArgument>(&atom.node->argument());
      if (argument != nullptr) axis = std::min(axis, argument->axis);
    }
    return axis;
  };
  return axis_of(a) < axis_of(b);
}

// floordiv(x, c) * c * k + floormod(x, c) * k is x * k, for a product k.
Affine Dims::Recombine(Affine affine) {
  auto is_zero = [](const Affine& a) { return a.exact && a.is_constant() && a.constant == 0; };
  for (const Term& rest : affine.terms) {
    for (const Atom& atom : rest.atoms) {
      const UOp* mod = atom.node;
      if (mod->op() != Op::kFloormod || !IsConst(mod->source(1))) continue;
      const Affine times = Cofactor(rest, &atom);
      const Affine wanted = times * ranges_.AffineOf(mod->source(1));
      for (const Term& whole : affine.terms) {
        for (const Atom& other : whole.atoms) {
          const UOp* quotient = other.node;
          if (quotient->op() != Op::kFloordiv || quotient->source(0) != mod->source(0) ||
              quotient->source(1) != mod->source(1) || !is_zero(Cofactor(whole, &other) - wanted)) {
            continue;
          }
          Affine parts;
          parts.terms = {rest};
          Affine second;
          second.terms = {whole};
          Affine sum = affine - parts - second + ranges_.AffineOf(mod->source(0)) * times;
          return sum.exact && IsSmall(sum) ? Recombine(std::move(sum)) : affine;
        }
      }
    }
  }
  return affine;
}

// Rebuilds a sum of products, the constant last.
const UOp* Dims::Build(const Affine& affine) {
  const UOp* sum = nullptr;
  auto make = [&](Op op, const UOp* a, const UOp* b) { return context_.Make(op, {a, b}).value(); };
  std::vector<Term> terms = affine.terms;
  std::stable_sort(terms.begin(), terms.end(), ComesBefore);
  for (const Term& term : terms) {
    const UOp* product = nullptr;
    for (const Atom& atom : term.atoms) {
      // An atom may stand below a cast that keeps its value.
      const UOp* factor = atom.node;
      if (factor->dtype() != Scalar::kIndex) {
        factor = context_.Make(Op::kCast, Scalar::kIndex, {factor}).value();
      }
      product = product == nullptr ? factor : make(Op::kMul, product, factor);
    }
    if (term.coefficient != 1) product = make(Op::kMul, product, Const(term.coefficient));
    sum = sum == nullptr ? product : make(Op::kAdd, sum, product);
  }
  if (sum == nullptr) return Const(affine.constant);
  return affine.constant == 0 ? sum : make(Op::kAdd, sum, Const(affine.constant));
}

// Splits sum = by * quotient + rest for a divisor with variables, such as a padded width w + 2:
// division of polynomials by the divisor's longest product.
static bool SplitBySum(const Affine& sum, const Affine& by, Affine* quotient, Affine* rest) {
  const Term* lead = &by.terms[0];
  for (const Term& term : by.terms) {
    if (term.atoms.size() > lead->atoms.size()) lead = &term;
  }
  // The smallest integer has no quotient by -1.
  if (lead->coefficient <= 0) return false;
  // The product that is left of `term` by the leading one; nullopt if it does not divide it.
  auto divide = [&](Term term) -> std::optional<Affine> {
    if (term.coefficient % lead->coefficient != 0) return std::nullopt;
    for (const Atom& atom : lead->atoms) {
      auto at = std::find(term.atoms.begin(), term.atoms.end(), atom);
      if (at == term.atoms.end()) return std::nullopt;
      term.atoms.erase(at);
    }
    term.coefficient /= lead->coefficient;
    if (term.atoms.empty()) return Affine::Constant(term.coefficient);
    Affine part;
    part.terms.push_back(std::move(term));
    return part;
  };
  *quotient = Affine();
  *rest = sum;
  for (size_t step = 0; step <= kMaxAffineTerms; ++step) {
    std::optional<Affine> part;
    for (const Term& term : rest->terms) {
      if ((part = divide(term)).has_value()) break;
    }
    if (!part.has_value()) return quotient->exact && IsSmall(*quotient) && IsSmall(*rest);
    *quotient = *quotient + *part;
    *rest = *rest - *part * by;
    if (!rest->exact) return false;
  }
  return false;
}

// Splits sum = divisor * quotient + rest, term by term. False when it is not worth taking apart:
// the divisor is not positive, or something may wrap.
bool Dims::Split(const Affine& sum, const UOp* divisor, Affine* quotient, Affine* rest) {
  Affine by = ranges_.AffineOf(divisor);
  if (!sum.exact || !by.exact || ranges_.Of(divisor).min <= 0) return false;
  if (!by.is_constant()) return SplitBySum(sum, by, quotient, rest);
  const int64_t factor = by.constant;
  const int64_t below = ((sum.constant % factor) + factor) % factor;
  *quotient = Affine::Constant((sum.constant - below) / factor);
  *rest = Affine::Constant(below);
  for (Term term : sum.terms) {
    const int64_t left = term.coefficient % factor;
    // 59 x = 58 x + x: windows that slide over padded rows.
    if (left != 0) {
      Affine part;
      part.terms.push_back(term);
      if (term.coefficient > factor) part.terms[0].coefficient = left;
      *rest = *rest + part;
      if (term.coefficient < factor) continue;
    }
    term.coefficient /= factor;
    Affine part;
    part.terms.push_back(std::move(term));
    *quotient = *quotient + part;
  }
  return true;
}

// floordiv and floormod of sums: the multiples of the divisor come out, and what is left may be
// known to lie in [0, divisor).
const UOp* Dims::NormalizeDivision(const UOp* node) {
  const UOp* divisor = node->source(1);
  Affine quotient, rest;
  if (!Split(ranges_.AffineOf(node->source(0)), divisor, &quotient, &rest)) return node;
  bool is_division = node->op() == Op::kFloordiv;
  IntRange bounds = BoundsOf(rest, ranges_);
  IntRange below = BoundsOf(rest - ranges_.AffineOf(divisor), ranges_);
  if (bounds.min >= 0 && below.max < 0) return Build(is_division ? quotient : rest);
  if (quotient.is_constant() && quotient.constant == 0) return node;
  absl::StatusOr<const UOp*> left = context_.Make(node->op(), {Build(rest), divisor});
  if (!left.ok()) return node;
  if (!is_division) return *left;
  Affine sum = quotient + Affine::Of({*left, 0});
  return sum.exact && IsSmall(sum) ? Build(sum) : node;
}

const UOp* Dims::Normalize(const UOp* index) {
  if (index == nullptr || IsConst(index)) return index;
  // A variable that can have one value is that value, alone as in sums and products.
  auto leaf = [&](const UOp* node) {
    if (node->op() != Op::kDefineVar) return node;
    IntRange range = ranges_.Of(node);
    return range.is_single() ? Const(range.min) : node;
  };
  if (index->op() == Op::kDefineVar) return leaf(index);
  auto it = normal_.find(index);
  if (it != normal_.end()) return it->second;
  // Sources first; dimensions are small expressions, but text may make them deep.
  for (const UOp* node : Toposort(index)) {
    if (normal_.contains(node) || node->num_sources() == 0) continue;
    std::vector<const UOp*> sources;
    for (const UOp* source : node->sources()) {
      auto known = normal_.find(source);
      sources.push_back(known == normal_.end() ? leaf(source) : known->second);
    }
    const UOp* result = node;
    absl::StatusOr<const UOp*> made =
        context_.Make(node->op(), node->dtype(), sources, node->argument());
    if (made.ok()) result = *made;
    if (result->dtype() == Scalar::kIndex) {
      IntRange range = ranges_.Of(result);
      if (range.is_single() && IsElementwise(result->op())) {
        result = Const(range.min);
      } else if (result->op() == Op::kFloordiv || result->op() == Op::kFloormod) {
        result = NormalizeDivision(result);
      } else if (result->op() == Op::kMax || result->op() == Op::kMin) {
        const UOp *a = result->source(0), *b = result->source(1);
        if (AtMost(a, b)) {
          result = result->op() == Op::kMax ? b : a;
        } else if (AtMost(b, a)) {
          result = result->op() == Op::kMax ? a : b;
        }
      } else {
        Affine affine = ranges_.AffineOf(result);
        if (affine.exact && IsSmall(affine)) result = Build(Recombine(std::move(affine)));
      }
    }
    normal_[node] = result;
    normal_.try_emplace(result, result);
  }
  it = normal_.find(index);
  return it == normal_.end() ? index : it->second;
}

const UOp* Dims::Add(const UOp* a, const UOp* b) { return Make(Op::kAdd, a, b); }
const UOp* Dims::Sub(const UOp* a, const UOp* b) { return Make(Op::kSub, a, b); }
const UOp* Dims::Mul(const UOp* a, const UOp* b) { return Make(Op::kMul, a, b); }
const UOp* Dims::Floordiv(const UOp* a, const UOp* b) { return Make(Op::kFloordiv, a, b); }
const UOp* Dims::Floormod(const UOp* a, const UOp* b) { return Make(Op::kFloormod, a, b); }
const UOp* Dims::Min(const UOp* a, const UOp* b) { return Make(Op::kMin, a, b); }
const UOp* Dims::Max(const UOp* a, const UOp* b) { return Make(Op::kMax, a, b); }

const UOp* Dims::Product(ShapeSpan dims) {
  const UOp* product = Const(1);
  for (const UOp* dimension : dims) product = Mul(product, dimension);
  return product;
}

bool Dims::Same(const UOp* a, const UOp* b) {
  if (a == b) return true;
  if (IsConst(a) && IsConst(b)) return ConstInt(a) == ConstInt(b);
  if (Normalize(a) == Normalize(b)) return true;
  Affine difference = ranges_.AffineOf(a) - ranges_.AffineOf(b);
  if (!difference.exact || !IsSmall(difference)) return false;
  difference = Recombine(std::move(difference));
  return difference.exact && difference.is_constant() && difference.constant == 0;
}

bool Dims::AtMost(const UOp* a, const UOp* b) {
  if (ranges_.Of(a).max <= ranges_.Of(b).min) return true;
  Affine difference = ranges_.AffineOf(b) - ranges_.AffineOf(a);
  if (!difference.exact) return false;
  if (BoundsOf(difference, ranges_).min >= 0) return true;
  // d * floordiv(x, d) is x less a rest of 0 to d - 1: steps that windows take in a dimension.
  Affine whole = difference;
  int64_t least_rest = 0;
  for (const Term& term : difference.terms) {
    if (term.atoms.size() != 1 || term.atoms[0].node->op() != Op::kFloordiv) continue;
    const UOp* quotient = term.atoms[0].node;
    if (!IsConst(quotient->source(1))) continue;
    int64_t divisor = ConstInt(quotient->source(1)), rest;
    if (divisor <= 0 || term.coefficient % divisor != 0) continue;
    int64_t times = term.coefficient / divisor;
    if (__builtin_mul_overflow(std::max<int64_t>(times, 0), divisor - 1, &rest) ||
        __builtin_sub_overflow(least_rest, rest, &least_rest)) {
      return false;
    }
    Affine part;
    part.terms = {term};
    whole = whole - part + ranges_.AffineOf(quotient->source(0)) * Affine::Constant(times);
  }
  int64_t least;
  return whole.exact && !__builtin_add_overflow(BoundsOf(whole, ranges_).min, least_rest, &least) &&
         least >= 0;
}

bool Dims::BroadcastsTo(ShapeSpan from, ShapeSpan to) {
  if (from.size() > to.size()) return false;
  for (size_t back = 1; back <= from.size(); ++back) {
    const UOp* dimension = from[from.size() - back];
    if (!IsConstInt(dimension, 1) && !Same(dimension, to[to.size() - back])) return false;
  }
  return true;
}

// --- Shapes -----------------------------------------------------------------------------------

absl::StatusOr<Shape> BroadcastShapes(absl::Span<const ShapeSpan> shapes, Dims& dims,
                                      absl::string_view op) {
  Shape result;
  for (ShapeSpan shape : shapes) {
    Shape joined(std::max(shape.size(), result.size()));
    for (size_t back = 1; back <= joined.size(); ++back) {
      const UOp* a = back <= result.size() ? result[result.size() - back] : nullptr;
      const UOp* b = back <= shape.size() ? shape[shape.size() - back] : nullptr;
      const UOp*& to = joined[joined.size() - back];
      if (a == nullptr || b == nullptr) {
        to = a == nullptr ? b : a;
      } else if (IsConstInt(a, 1)) {
        to = b;
      } else if (IsConstInt(b, 1) || dims.Same(a, b)) {
        to = a;
      } else {
        return Error(
            op, absl::StrCat("shapes, got ", ShapeToString(result), " and ", ShapeToString(shape),
                             ", expected dimension -", back, " to be equal or one of them 1"));
      }
    }
    result = std::move(joined);
  }
  return result;
}

const UOp* AssignedState(const UOp* assign) {
  const UOp* target = assign->source(0);
  while (target->op() == Op::kReshape || target->op() == Op::kPermute ||
         target->op() == Op::kShrink || target->op() == Op::kFlip) {
    target = target->source(0);
  }
  return target;
}

int NumTensorSources(const UOp* node) {
  Op op = node->op();
  if (InfoOf(op).op_class != OpClass::kTensor) return node->num_sources();
  if (op == Op::kArange) return 0;
  if (op == Op::kPad || op == Op::kGather || op == Op::kAssign) return 2;
  return op == Op::kScatter ? 3 : 1;
}

absl::StatusOr<ShapeSpan> ShapeAnalysis::Of(const UOp* tensor, const UOp** culprit) {
  auto it = known_.find(tensor);
  if (it != known_.end()) return ShapeSpan(it->second);
  std::vector<std::pair<const UOp*, int>> stack = {{tensor, 0}};
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    bool has_shape_of_its_own = InfoOf(node->op()).op_class == OpClass::kBuffer ||
                                node->op() == Op::kBufferView || node->op() == Op::kBind ||
                                InfoOf(node->op()).op_class == OpClass::kVector;
    int wanted = has_shape_of_its_own         ? 0
                 : node->op() == Op::kAfter   ? 1
                 : node->op() == Op::kReshape ? 1
                                              : NumTensorSources(node);
    if (next < wanted) {
      const UOp* source = node->source(next++);
      if (!known_.contains(source)) stack.emplace_back(source, 0);
      continue;
    }
    const UOp* done = node;
    stack.pop_back();
    if (known_.contains(done)) continue;
    absl::StatusOr<Shape> shape = Infer(done);
    if (shape.ok()) {
      absl::Status size = CheckSize(done, *shape);
      if (!size.ok()) shape = size;
    }
    if (!shape.ok()) {
      if (culprit != nullptr) *culprit = done;
      return shape.status();
    }
    known_[done] = *std::move(shape);
  }
  return ShapeSpan(known_.at(tensor));
}

absl::Status ShapeAnalysis::CheckSize(const UOp* node, ShapeSpan shape) {
  if (shape.size() > kMaxRank) {
    return Error(node,
                 absl::StrCat("dimensions, got ", shape.size(), ", expected at most ", kMaxRank));
  }
  __int128 bytes = node->dtype().is_void() ? 1 : node->dtype().size_bytes();
  // Without elements the other dimensions may be of any size.
  bool is_empty = std::any_of(shape.begin(), shape.end(), [&](const UOp* dimension) {
    return dims_.RangeOf(dimension).max == 0;
  });
  for (const UOp* dimension : shape) {
    IntRange range = dims_.RangeOf(dimension);
    if (range.min < 0) {
      return Error(node, absl::StrCat("dimension, got ", ToString(dimension), " of at least ",
                                      range.min, ", expected at least 0"));
    }
    // Zero elsewhere does not make a dimension of 2^62 one that positions can reach.
    bytes *= std::max<int64_t>(range.max, 1);
    if (bytes > kMaxTensorBytes && !is_empty) {
      return Error(node, absl::StrCat("size, got ", ShapeToString(node->dtype(), shape),
                                      ", expected at most 2^62 bytes"));
    }
    bytes = std::min<__int128>(bytes, kMaxTensorBytes + __int128{1});
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> ShapeAnalysis::Infer(const UOp* node) {
  Op op = node->op();
  OpClass op_class = InfoOf(op).op_class;
  if (op_class == OpClass::kTensor) return InferTensorOp(node);
  if (op == Op::kAfter) return known_.at(node->source(0));
  if (op == Op::kParam || op == Op::kBuffer || op == Op::kBufferView) {
    Shape shape;
    for (const UOp* dimension : DimensionsOf(node)) shape.push_back(dims_.Normalize(dimension));
    return shape;
  }
  bool is_scalar =
      op == Op::kConst || op == Op::kDefineVar || op == Op::kBind || op_class == OpClass::kVector;
  if (node->dtype().is_vector() || !(is_scalar || IsElementwise(op))) {
    return Error(node, absl::StrCat("got ", InfoOf(op).text, " of ", ToString(node->dtype()),
                                    ", expected a tensor"));
  }
  if (is_scalar) return Shape();
  std::vector<ShapeSpan> shapes;
  for (const UOp* source : node->sources()) shapes.push_back(known_.at(source));
  return BroadcastShapes(shapes, dims_, InfoOf(op).text);
}

absl::StatusOr<Shape> ShapeAnalysis::InferTensorOp(const UOp* node) {
  Shape x;
  if (node->num_sources() > 0 && NumTensorSources(node) > 0) x = known_.at(node->source(0));
  size_t rank = x.size();
  auto check_rank = [&](size_t got, absl::string_view what) -> absl::Status {
    if (got == rank) return absl::OkStatus();
    return Error(node, absl::StrCat(what, ", got ", got, " for shape ", ShapeToString(x),
                                    ", expected ", rank));
  };
  auto check_axes = [&](absl::Span<const int64_t> axes) -> absl::Status {
    for (int64_t axis : axes) {
      if (static_cast<size_t>(axis) >= rank) {
        return Error(node, absl::StrCat("axis, got ", axis, " for shape ", ShapeToString(x),
                                        ", expected less than ", rank));
      }
    }
    return absl::OkStatus();
  };
  Op op = node->op();
  Shape result;
  if (op == Op::kReshape) {
    for (const UOp* dimension : NewDimsOf(node)) result.push_back(dims_.Normalize(dimension));
    const UOp *before = dims_.Product(x), *after = dims_.Product(result);
    if (before == nullptr || after == nullptr || !dims_.Same(before, after)) {
      return Error(node, absl::StrCat("shapes, got ", ShapeToString(x), " to ",
                                      ShapeToString(result), ", expected as many elements"));
    }
    return result;
  }
  if (op == Op::kExpand) {
    for (const UOp* dimension : NewDimsOf(node)) result.push_back(dims_.Normalize(dimension));
    if (dims_.BroadcastsTo(x, result)) return result;
    return Error(node, absl::StrCat("shapes, got ", ShapeToString(x), " to ", ShapeToString(result),
                                    ", expected equal dimensions where the first are not 1"));
  }
  if (op == Op::kPermute) {
    absl::Span<const int64_t> axes = node->arg<AxesArgument>().axes;
    SVOD_RETURN_IF_ERROR(check_rank(axes.size(), "axes"));
    SVOD_RETURN_IF_ERROR(check_axes(axes));
    for (int64_t axis : axes) result.push_back(x[static_cast<size_t>(axis)]);
    return result;
  }
  if (op == Op::kFlip) {
    SVOD_RETURN_IF_ERROR(check_axes(node->arg<AxesArgument>().axes));
    return x;
  }
  if (op == Op::kPad) {
    SVOD_RETURN_IF_ERROR(check_rank(LowOf(node).size(), "amounts"));
    if (!known_.at(node->source(1)).empty()) {
      return Error(node, absl::StrCat("value, got shape ",
                                      ShapeToString(known_.at(node->source(1))), ", expected []"));
    }
    for (size_t i = 0; i < rank; ++i) {
      for (const UOp* amount : {LowOf(node)[i], HighOf(node)[i]}) {
        if (dims_.RangeOf(amount).min < 0) {
          return Error(node,
                       absl::StrCat("amount, got ", ToString(amount), ", expected at least 0"));
        }
      }
      result.push_back(dims_.Add(dims_.Add(LowOf(node)[i], x[i]), HighOf(node)[i]));
    }
    return result;
  }
  if (op == Op::kShrink) {
    SVOD_RETURN_IF_ERROR(check_rank(SizeOf(node).size(), "sizes"));
    for (size_t i = 0; i < rank; ++i) {
      const UOp *begin = BeginOf(node)[i], *size = SizeOf(node)[i];
      if (dims_.RangeOf(begin).min < 0 || dims_.RangeOf(size).min < 0 ||
          !dims_.AtMost(dims_.Add(begin, size), x[i])) {
        return Error(node, absl::StrCat("part, got ", ToString(size), " from ", ToString(begin),
                                        " on of dimension ", i, " of ", ShapeToString(x),
                                        ", expected it inside"));
      }
      result.push_back(dims_.Normalize(size));
    }
    return result;
  }
  if (op == Op::kReduceAxis) {
    absl::Span<const int64_t> axes = node->arg<ReduceAxesArgument>().axes;
    SVOD_RETURN_IF_ERROR(check_axes(axes));
    result = x;
    for (int64_t axis : axes) result[static_cast<size_t>(axis)] = dims_.Const(1);
    return result;
  }
  if (op == Op::kArange) {
    return Shape{dims_.Normalize(node->source(0))};
  }
  if (op == Op::kGather || op == Op::kScatter) {
    bool is_gather = node->op() == Op::kGather;
    int64_t axis =
        is_gather ? node->arg<AxesArgument>().axes[0] : node->arg<ScatterArgument>().axis;
    const Shape& positions = known_.at(node->source(1));
    SVOD_RETURN_IF_ERROR(check_axes({axis}));
    bool fits = positions.size() == rank;
    for (size_t i = 0; fits && i < rank; ++i) {
      fits = i == static_cast<size_t>(axis) || dims_.AtMost(positions[i], x[i]);
    }
    if (!fits) {
      return Error(node, absl::StrCat("shapes, got ", ShapeToString(x), " and positions ",
                                      ShapeToString(positions),
                                      ", expected as many dimensions, and none larger but along "
                                      "axis ",
                                      axis));
    }
    if (is_gather) return positions;
    const Shape& updates = known_.at(node->source(2));
    fits = updates.size() == rank;
    for (size_t i = 0; fits && i < rank; ++i) fits = dims_.Same(updates[i], positions[i]);
    if (fits) return x;
    return Error(node,
                 absl::StrCat("shapes, got positions ", ShapeToString(positions), " and updates ",
                              ShapeToString(updates), ", expected them equal"));
  }
  if (op == Op::kContiguous) {
    return x;
  }
  if (op == Op::kAssign) {
    const Shape& value = known_.at(node->source(1));
    const UOp* target = AssignedState(node);
    if (BaseBuffer(target) == nullptr) {
      return Error(node, absl::StrCat("target, got ", InfoOf(target->op()).text,
                                      ", expected a buffer, or reshape, permute, shrink and "
                                      "flip of one"));
    }
    if (dims_.BroadcastsTo(value, x)) return x;
    return Error(node, absl::StrCat("shapes, got a value ", ShapeToString(value), " for ",
                                    ShapeToString(x), ", expected it to broadcast to that"));
  }
  return absl::InternalError(absl::StrCat(InfoOf(op).text, ": has no shape rule"));
}

}  // namespace svod
