// Functions of floats that have no op of their own, as compositions of those that have.
// Included by importers, embedders and the operator table. Must not know reductions.
#ifndef SVOD_IR_OPERATORS_SPECIAL_FUNCTIONS_H_
#define SVOD_IR_OPERATORS_SPECIAL_FUNCTIONS_H_

#include "ir/tensor_builder.h"

namespace svod {

// Each takes floats of one dtype, which broadcast, and gives that dtype; f16 and bf16 are worked
// out in f32 and rounded once. Special values are those of C's functions of these names. In f32 and
// f64 errors stay below 4 units in the last place over the whole range (docs/math.md has those of
// the ops beneath). Null after a failure, which the builder holds.

const UOp* Tan(TensorBuilder& builder, const UOp* x);
const UOp* Asin(TensorBuilder& builder, const UOp* x);
const UOp* Acos(TensorBuilder& builder, const UOp* x);
// Reduction to |t| <= tan(pi / 8) and a polynomial interpolated at Chebyshev's nodes.
const UOp* Atan(TensorBuilder& builder, const UOp* x);
// The angle of the point (x, y), in [-pi, pi].
const UOp* Atan2(TensorBuilder& builder, const UOp* y, const UOp* x);
const UOp* Sinh(TensorBuilder& builder, const UOp* x);
const UOp* Cosh(TensorBuilder& builder, const UOp* x);
const UOp* Asinh(TensorBuilder& builder, const UOp* x);
const UOp* Acosh(TensorBuilder& builder, const UOp* x);
const UOp* Atanh(TensorBuilder& builder, const UOp* x);
// log(1 + x) and exp(x) - 1, right near 0. Source: W. Kahan's corrections, in N. J. Higham,
// Accuracy and Stability of Numerical Algorithms, section 1.14.1 and problem 1.5.
const UOp* Log1p(TensorBuilder& builder, const UOp* x);
const UOp* Expm1(TensorBuilder& builder, const UOp* x);
// sqrt(x^2 + y^2), without overflow in between.
const UOp* Hypot(TensorBuilder& builder, const UOp* x, const UOp* y);

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_SPECIAL_FUNCTIONS_H_
