// The decompositions by function: each takes f32 or f64 operands and gives the nodes of its result.
// Included by decompose_transcendentals.cc and between the math_*.cc files. Makes nodes, nothing
// else. The errors that the comments in those files state for polynomials are those of the exact
// polynomial, relative to the function; docs/math.md has the measured errors of whole functions.
#ifndef SVOD_IR_PASSES_MATH_FUNCTIONS_H_
#define SVOD_IR_PASSES_MATH_FUNCTIONS_H_

#include "ir/passes/uop_math.h"

namespace svod {

Value DecomposeExp(Value x);           // math_exp.cc
Value DecomposeExp2(Value x);          // math_exp.cc
Value DecomposeLog(Value x);           // math_log.cc
Value DecomposeLog2(Value x);          // math_log.cc
Value DecomposeSin(Value x);           // math_trig.cc
Value DecomposeCos(Value x);           // math_trig.cc
Value DecomposeTanh(Value x);          // math_tanh_erf.cc
Value DecomposeErf(Value x);           // math_tanh_erf.cc
Value DecomposePow(Value x, Value y);  // math_pow.cc

// The same of f32 in about half the instructions.
Value TanhByTable(Value x);  // math_tables.cc
Value ErfByTable(Value x);   // math_tables.cc

// Parts that several functions share.

// Adding it to a float below 2^22 (f32), 2^51 (f64) in size rounds that to an integer n, to nearest
// even: n then stands in the low bits of the sum, and subtracting it again gives n as a float.
double RoundingShift(DType dtype);

// p * 2^n, where n stands in the low 10 (f32, i32) or 12 (f64, i64) bits of an integer of p's
// width, such as the bits of a float with RoundingShift added. p is within [0.5, 2]; |n| <= 250
// (f32), 2000 (f64), so that results may be subnormal, zero or infinite.
Value ScaleByPowerOfTwo(Value p, Value bits);

// 2^n for such an integer, n in the range of normal exponents.
Value PowerOfTwo(Value bits);

// x within [low, high]; NaN stays NaN.
Value ClampKeepingNaN(Value x, double low, double high);

// x = n ln 2 + r with |r| <= ln(2)/2 and a hair; n in the low end of `bits` as above. For x whose
// e^x is in the range of ScaleByPowerOfTwo.
struct ExpReduction {
  Value bits;
  Value r;
};
ExpReduction ReduceExp(Value x);

// The same with what rounding took from r: x = n ln 2 + r + r_low.
struct PreciseExpReduction {
  Value bits;
  Value r;
  Value r_low;
};
PreciseExpReduction ReduceExpPrecisely(Value x);

// The same for x = a * b + c, where c has at most 16 (f32) or 42 (f64) bits after the point: that
// sum is never rounded to the size of x, only r is.
ExpReduction ReduceExpOfMulAcc(Value a, Value b, double c);

// (e^r - 1 - r) / r^2 for such an r.
Value ExpTail(Value r);

// 2^(r + r_low) for |r| <= 1/2 and a hair; |r_low| is below the last place of r.
Value Exp2Polynomial(Value r);
Value Exp2Polynomial(Value r, Value r_low);

// |magnitude| with the sign of x. `magnitude` is not negative.
Value WithSignOf(Value magnitude, Value x);

// x = 2^exponent (1 + fraction) with 1 + fraction in [2/3, 4/3), both floats of x's dtype, for
// positive finite x; anything for others.
struct SplitFloat {
  Value exponent;
  Value fraction;
};
SplitFloat SplitExponent(Value x);
// The same for f64 that are not subnormal.
SplitFloat SplitNormal(Value x);

}  // namespace svod

#endif  // SVOD_IR_PASSES_MATH_FUNCTIONS_H_
