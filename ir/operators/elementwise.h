// Elementwise operators that are short compositions: comparisons by other names, signs, logic.
// Included by importers, embedders and the operator table. Must not know reductions.
#ifndef SVOD_IR_OPERATORS_ELEMENTWISE_H_
#define SVOD_IR_OPERATORS_ELEMENTWISE_H_

#include <optional>

#include "ir/tensor_builder.h"

namespace svod {

// Operands broadcast and results have their shape. Null after a failure, which the builder holds.

// -1, 0 or 1 of x's dtype; NaN for NaN, 0 for both zeros. Of bool x itself.
const UOp* Sign(TensorBuilder& builder, const UOp* x);
const UOp* Square(TensorBuilder& builder, const UOp* x);
// 1 / sqrt(x) of a float.
const UOp* Rsqrt(TensorBuilder& builder, const UOp* x);
// x / y. Integers and bools are divided as f64, as in NumPy; the dtypes must be equal.
const UOp* Divide(TensorBuilder& builder, const UOp* x, const UOp* y);
// min(max(x, low), high), without the bounds that are not given, which are rounded to x's dtype:
// high where low > high; NaN stays NaN.
const UOp* Clip(TensorBuilder& builder, const UOp* x, std::optional<double> low,
                std::optional<double> high);
// bool; false for everything that is no float.
const UOp* IsNan(TensorBuilder& builder, const UOp* x);
const UOp* IsInf(TensorBuilder& builder, const UOp* x);
const UOp* IsFinite(TensorBuilder& builder, const UOp* x);  // true for what is no float
// Whether x is negative or -0.0; NaN by its sign bit.
const UOp* SignBit(TensorBuilder& builder, const UOp* x);
// x with the sign of y, both of one float dtype; NaN and zeros by their sign bits.
const UOp* CopySign(TensorBuilder& builder, const UOp* x, const UOp* y);
// Of the truth of operands of any dtype: x != 0, NaN is true.
const UOp* Truth(TensorBuilder& builder, const UOp* x);
const UOp* LogicalNot(TensorBuilder& builder, const UOp* x);
const UOp* LogicalAnd(TensorBuilder& builder, const UOp* x, const UOp* y);
const UOp* LogicalOr(TensorBuilder& builder, const UOp* x, const UOp* y);
const UOp* LogicalXor(TensorBuilder& builder, const UOp* x, const UOp* y);

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_ELEMENTWISE_H_
