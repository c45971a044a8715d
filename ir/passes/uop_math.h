// Value: arithmetic on UOps that reads like arithmetic, for passes that write formulas as nodes.
// Included by the decompositions of ir/passes only. Must not know which function it spells.
#ifndef SVOD_IR_PASSES_UOP_MATH_H_
#define SVOD_IR_PASSES_UOP_MATH_H_

#include <initializer_list>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "ir/uop.h"

namespace svod {

// Makes nodes and keeps the first error. A failed Make is a bug of the formula (operands whose
// dtypes differ); the formula then goes on with its first operand, and whoever started it reports
// `status`.
struct UopMath {
  explicit UopMath(Context& c) : context(c) {}
  Context& context;
  absl::Status status;

  const UOp* Make(Op op, DType dtype, absl::Span<const UOp* const> sources) {
    absl::StatusOr<const UOp*> node = context.Make(op, dtype, sources);
    if (node.ok()) return *node;
    if (status.ok()) status = node.status();
    return sources[0];
  }
};

// A node of elementwise arithmetic, scalar or vector; a plain value. Literals beside a Value take
// its dtype: rounded to it for floats, wrapped for integers.
class Value {
 public:
  Value(UopMath& math, const UOp* node) : math_(&math), node_(node) {}

  const UOp* node() const { return node_; }
  UopMath& math() const { return *math_; }
  DType dtype() const { return node_->dtype(); }

  template <typename T>
  Value Literal(T literal) const {
    static_assert(std::is_arithmetic_v<T>);
    Context& context = math_->context;
    if constexpr (std::is_floating_point_v<T>) {
      return {*math_, context.Float(dtype(), static_cast<double>(literal))};
    } else {
      return {*math_, context.Int(dtype(), static_cast<int64_t>(literal))};
    }
  }

  Value Apply(Op op, std::initializer_list<Value> others = {}) const {
    const UOp* sources[3] = {node_};
    size_t count = 1;
    for (const Value& other : others) sources[count++] = other.node_;
    return {*math_, math_->Make(op, DType(), absl::MakeSpan(sources, count))};
  }

  // Conversions keep the number of lanes.
  Value CastTo(Scalar scalar) const { return Convert(Op::kCast, scalar); }
  Value BitsAs(Scalar scalar) const { return Convert(Op::kBitcast, scalar); }

 private:
  Value Convert(Op op, Scalar scalar) const {
    return {*math_, math_->Make(op, DType(scalar, dtype().lanes), {&node_, 1})};
  }

  UopMath* math_;
  const UOp* node_;
};

#define SVOD_VALUE_OPERATOR(symbol, op)                                       \
  inline Value operator symbol(Value a, Value b) { return a.Apply(op, {b}); } \
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>> \
  Value operator symbol(Value a, T b) {                                       \
    return a.Apply(op, {a.Literal(b)});                                       \
  }                                                                           \
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>> \
  Value operator symbol(T a, Value b) {                                       \
    return b.Literal(a).Apply(op, {b});                                       \
  }
SVOD_VALUE_OPERATOR(+, Op::kAdd)
SVOD_VALUE_OPERATOR(-, Op::kSub)
SVOD_VALUE_OPERATOR(*, Op::kMul)
SVOD_VALUE_OPERATOR(/, Op::kFdiv)
SVOD_VALUE_OPERATOR(&, Op::kAnd)
SVOD_VALUE_OPERATOR(|, Op::kOr)
SVOD_VALUE_OPERATOR(^, Op::kXor)
SVOD_VALUE_OPERATOR(<<, Op::kShl)
SVOD_VALUE_OPERATOR(>>, Op::kShr)
SVOD_VALUE_OPERATOR(<, Op::kCmpLt)
SVOD_VALUE_OPERATOR(<=, Op::kCmpLe)
SVOD_VALUE_OPERATOR(==, Op::kCmpEq)
SVOD_VALUE_OPERATOR(!=, Op::kCmpNe)
#undef SVOD_VALUE_OPERATOR

inline Value operator-(Value a) { return a.Apply(Op::kNeg); }
inline Value Abs(Value a) { return a.Apply(Op::kAbs); }
inline Value Round(Value a) { return a.Apply(Op::kRound); }
inline Value Trunc(Value a) { return a.Apply(Op::kTrunc); }

// Either side may be a literal of the other's dtype.
inline Value Where(Value condition, Value a, Value b) {
  return condition.Apply(Op::kWhere, {a, b});
}
inline Value Where(Value condition, double a, Value b) { return Where(condition, b.Literal(a), b); }
inline Value Where(Value condition, Value a, double b) { return Where(condition, a, a.Literal(b)); }

// a * b + c with one rounding.
inline Value Fma(Value a, Value b, Value c) { return a.Apply(Op::kMulAcc, {b, c}); }
inline Value Fma(Value a, double b, Value c) { return Fma(a, a.Literal(b), c); }
inline Value Fma(Value a, Value b, double c) { return Fma(a, b, a.Literal(c)); }
inline Value Fma(Value a, double b, double c) { return Fma(a, a.Literal(b), a.Literal(c)); }

// coefficients[0] * x^n + ... + coefficients[n], by Horner's rule: one fused step a degree. Latency
// is hidden by the other vectors of an unrolled loop, so nothing wider is worth its extra ops.
inline Value Polynomial(Value x, absl::Span<const double> coefficients) {
  Value sum = x.Literal(coefficients[0]);
  for (double coefficient : coefficients.subspan(1)) sum = Fma(sum, x, coefficient);
  return sum;
}
inline Value Polynomial(Value x, std::initializer_list<double> coefficients) {
  return Polynomial(x, absl::MakeConstSpan(coefficients.begin(), coefficients.size()));
}

// The entry of a table of a power of two of floats that each lane of `number`, i32, numbers; of
// the dtype of `like`, which has as many lanes.
inline Value PickFrom(absl::Span<const double> table, Value number, Value like) {
  std::vector<const UOp*> entries;
  Value scalar(number.math(), number.math().context.Float(like.dtype().element(), 0));
  for (double entry : table) entries.push_back(scalar.Literal(entry).node());
  const UOp* sources[] = {number.math().Make(Op::kStack, DType(), entries), number.node()};
  return {number.math(), number.math().Make(Op::kPick, DType(), sources)};
}

}  // namespace svod

#endif  // SVOD_IR_PASSES_UOP_MATH_H_
