// Expression: a tensor under construction with the operators of arithmetic, so that formulas read
// as such. Included by sources of ir/operators/. Must not hold rules of its own.
#ifndef SVOD_IR_OPERATORS_EXPRESSION_H_
#define SVOD_IR_OPERATORS_EXPRESSION_H_

#include "ir/tensor_builder.h"

namespace svod {

// A node of a builder; null after a failure, which every operation passes on. A number beside a
// Expression is a constant of its dtype.
class Expression {
 public:
  Expression(TensorBuilder& builder, const UOp* node) : builder_(&builder), node_(node) {}

  TensorBuilder& builder() const { return *builder_; }
  const UOp* node() const { return node_; }
  operator const UOp*() const { return node_; }  // NOLINT: a Expression is a node
  Expression Of(Op op) const { return {*builder_, builder_->Make(op, {node_})}; }
  Expression Of(Op op, Expression y) const {
    return {*builder_, builder_->Make(op, {node_, y.node_})};
  }
  Expression Of(Op op, double y) const { return Of(op, Number(y)); }
  Expression Number(double value) const { return {*builder_, builder_->Like(node_, value)}; }

 private:
  TensorBuilder* builder_;
  const UOp* node_;
};

inline Expression operator-(Expression x) { return x.Of(Op::kNeg); }
inline Expression operator+(Expression x, Expression y) { return x.Of(Op::kAdd, y); }
inline Expression operator-(Expression x, Expression y) { return x.Of(Op::kSub, y); }
inline Expression operator*(Expression x, Expression y) { return x.Of(Op::kMul, y); }
inline Expression operator/(Expression x, Expression y) { return x.Of(Op::kFdiv, y); }
inline Expression operator+(Expression x, double y) { return x.Of(Op::kAdd, y); }
inline Expression operator-(Expression x, double y) { return x.Of(Op::kSub, y); }
inline Expression operator*(Expression x, double y) { return x.Of(Op::kMul, y); }
inline Expression operator/(Expression x, double y) { return x.Of(Op::kFdiv, y); }
inline Expression operator+(double x, Expression y) { return y.Number(x) + y; }
inline Expression operator-(double x, Expression y) { return y.Number(x) - y; }
inline Expression operator*(double x, Expression y) { return y.Number(x) * y; }
inline Expression operator/(double x, Expression y) { return y.Number(x) / y; }

inline Expression operator<(Expression x, Expression y) { return x.Of(Op::kCmpLt, y); }
inline Expression operator<=(Expression x, Expression y) { return x.Of(Op::kCmpLe, y); }
inline Expression operator>(Expression x, Expression y) { return y.Of(Op::kCmpLt, x); }
inline Expression operator>=(Expression x, Expression y) { return y.Of(Op::kCmpLe, x); }
inline Expression operator<(Expression x, double y) { return x < x.Number(y); }
inline Expression operator<=(Expression x, double y) { return x <= x.Number(y); }
inline Expression operator>(Expression x, double y) { return x > x.Number(y); }
inline Expression operator>=(Expression x, double y) { return x >= x.Number(y); }
// Named, since == of nodes compares pointers.
inline Expression Equal(Expression x, Expression y) { return x.Of(Op::kCmpEq, y); }
inline Expression Equal(Expression x, double y) { return x.Of(Op::kCmpEq, y); }
inline Expression NotEqual(Expression x, Expression y) { return x.Of(Op::kCmpNe, y); }
inline Expression NotEqual(Expression x, double y) { return x.Of(Op::kCmpNe, y); }
inline Expression IsNan(Expression x) { return NotEqual(x, x); }
inline Expression And(Expression x, Expression y) { return x.Of(Op::kAnd, y); }
inline Expression Or(Expression x, Expression y) { return x.Of(Op::kOr, y); }

inline Expression Max(Expression x, Expression y) { return x.Of(Op::kMax, y); }
inline Expression Min(Expression x, Expression y) { return x.Of(Op::kMin, y); }
inline Expression Max(Expression x, double y) { return x.Of(Op::kMax, y); }
inline Expression Min(Expression x, double y) { return x.Of(Op::kMin, y); }
inline Expression Abs(Expression x) { return x.Of(Op::kAbs); }
inline Expression Exp(Expression x) { return x.Of(Op::kExp); }
inline Expression Log(Expression x) { return x.Of(Op::kLog); }
inline Expression Tanh(Expression x) { return x.Of(Op::kTanh); }
inline Expression Sqrt(Expression x) { return x.Of(Op::kSqrt); }
inline Expression Recip(Expression x) { return x.Of(Op::kRecip); }

inline Expression Select(Expression condition, Expression x, Expression y) {
  return {x.builder(), x.builder().Where(condition, x, y)};
}
inline Expression Select(Expression condition, double x, Expression y) {
  return Select(condition, y.Number(x), y);
}
inline Expression Select(Expression condition, Expression x, double y) {
  return Select(condition, x, x.Number(y));
}

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_EXPRESSION_H_
