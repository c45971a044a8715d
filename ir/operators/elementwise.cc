#include "ir/operators/elementwise.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"

namespace svod {
namespace {

// The bound as a constant of an integer dtype: what lies beyond it is clamped to its limits.
const UOp* Bound(TensorBuilder& builder, DType dtype, double bound, bool is_low) {
  if (dtype.is_float()) return builder.Const(dtype, bound);
  bound = is_low ? std::ceil(bound) : std::floor(bound);
  // 2^63: beyond it the conversion of a double has no value.
  constexpr double kLimit = 9223372036854775808.0;
  if (bound < kLimit && bound >= -kLimit) {
    int64_t value = static_cast<int64_t>(bound);
    return builder.ConstInt(dtype, std::min(std::max(value, MinValue(dtype)), MaxValue(dtype)));
  }
  return builder.ConstInt(dtype, bound < 0 ? MinValue(dtype) : MaxValue(dtype));
}

DType BitsDType(DType dtype) {
  int64_t size = dtype.size_bytes();
  return size == 2 ? Scalar::kI16 : size == 4 ? Scalar::kI32 : Scalar::kI64;
}

}  // namespace

const UOp* Sign(TensorBuilder& builder, const UOp* x) {
  if (!IsReady(builder, "sign", {x})) return nullptr;
  if (x->dtype().is_bool()) return x;
  Expression v(builder, x);
  if (x->dtype().is_unsigned()) return Min(v, 1);
  Expression sign = Select(v < 0, -1, Select(Equal(v, 0), 0, v));
  return Select(v > 0, 1, sign);
}

const UOp* Square(TensorBuilder& builder, const UOp* x) {
  if (!IsReady(builder, "square", {x})) return nullptr;
  return builder.Mul(x, x);
}

const UOp* Rsqrt(TensorBuilder& builder, const UOp* x) {
  return InWide(builder, "rsqrt", x, [](Expression v) { return Recip(Sqrt(v)); });
}

const UOp* Divide(TensorBuilder& builder, const UOp* x, const UOp* y) {
  if (!IsReady(builder, "divide", {x, y})) return nullptr;
  if (x->dtype() != y->dtype()) {
    return FailOperator(builder, "divide", "operand dtypes",
                        absl::StrCat(ToString(x->dtype()), " and ", ToString(y->dtype())),
                        "them equal");
  }
  return builder.Make(Op::kFdiv, {ToFloat(builder, x), ToFloat(builder, y)});
}

const UOp* Clip(TensorBuilder& builder, const UOp* x, std::optional<double> low,
                std::optional<double> high) {
  if (!IsReady(builder, "clip", {x})) return nullptr;
  for (std::optional<double> bound : {low, high}) {
    if (bound.has_value() && std::isnan(*bound)) {
      return FailOperator(builder, "clip", "bound", "nan", "a number");
    }
  }
  DType dtype = x->dtype();
  Expression y(builder, x);
  if (low.has_value()) y = Max(y, Expression(builder, Bound(builder, dtype, *low, true)));
  if (high.has_value()) y = Min(y, Expression(builder, Bound(builder, dtype, *high, false)));
  return y;
}

const UOp* IsNan(TensorBuilder& builder, const UOp* x) {
  if (!IsReady(builder, "isnan", {x})) return nullptr;
  return IsNan(Expression(builder, x));
}

const UOp* IsInf(TensorBuilder& builder, const UOp* x) {
  if (!IsReady(builder, "isinf", {x})) return nullptr;
  Expression v(builder, x);
  if (!x->dtype().is_float()) return NotEqual(v, v);
  return Equal(Abs(v), std::numeric_limits<double>::infinity());
}

const UOp* IsFinite(TensorBuilder& builder, const UOp* x) {
  if (!IsReady(builder, "isfinite", {x})) return nullptr;
  Expression v(builder, x);
  if (!x->dtype().is_float()) return Equal(v, v);
  return Abs(v) < std::numeric_limits<double>::infinity();
}

const UOp* SignBit(TensorBuilder& builder, const UOp* x) {
  if (!IsReady(builder, "signbit", {x})) return nullptr;
  Expression v(builder, x);
  if (x->dtype().is_bool()) return NotEqual(v, v);
  if (!x->dtype().is_float()) return v < 0;
  return Expression(builder, builder.Bitcast(x, BitsDType(x->dtype()))) < 0;
}

const UOp* CopySign(TensorBuilder& builder, const UOp* x, const UOp* y) {
  if (!IsFloating(builder, "copysign", {x, y})) return nullptr;
  Expression magnitude = Abs(Expression(builder, x));
  return Select(Expression(builder, SignBit(builder, y)), -magnitude, magnitude);
}

const UOp* Truth(TensorBuilder& builder, const UOp* x) {
  if (!IsReady(builder, "truth", {x})) return nullptr;
  return builder.Cast(x, Scalar::kBool);
}

const UOp* LogicalNot(TensorBuilder& builder, const UOp* x) {
  return builder.Make(Op::kNot, {Truth(builder, x)});
}
const UOp* LogicalAnd(TensorBuilder& builder, const UOp* x, const UOp* y) {
  return builder.Make(Op::kAnd, {Truth(builder, x), Truth(builder, y)});
}
const UOp* LogicalOr(TensorBuilder& builder, const UOp* x, const UOp* y) {
  return builder.Make(Op::kOr, {Truth(builder, x), Truth(builder, y)});
}
const UOp* LogicalXor(TensorBuilder& builder, const UOp* x, const UOp* y) {
  return builder.Make(Op::kXor, {Truth(builder, x), Truth(builder, y)});
}

}  // namespace svod
