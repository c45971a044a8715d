// What composite operators share: checks, widening of half floats, positions, dimensions as
// numbers. Included by sources of ir/operators/. Must not know single operators.
#ifndef SVOD_IR_OPERATORS_COMPOSE_H_
#define SVOD_IR_OPERATORS_COMPOSE_H_

#include <initializer_list>
#include <optional>
#include <vector>

#include "ir/operators/expression.h"
#include "ir/tensor_builder.h"

namespace svod {

// Whether building can go on: the builder has not failed and every node is there. A missing one is
// recorded as a failure of `op`.
bool IsReady(TensorBuilder& builder, absl::string_view op, absl::Span<const UOp* const> nodes);
bool IsReady(TensorBuilder& builder, absl::string_view op, std::initializer_list<const UOp*> nodes);
// The same, and that the nodes are floats of one dtype.
bool IsFloating(TensorBuilder& builder, absl::string_view op,
                std::initializer_list<const UOp*> nodes);
// Records "op: what, got X, expected Y"; null.
const UOp* FailOperator(TensorBuilder& builder, absl::string_view op, absl::string_view what,
                        absl::string_view got, absl::string_view expected);

// f32 for f16 and bf16; other dtypes themselves. Formulas of several roundings are worked out in
// it and rounded to the operand's dtype once.
DType WideDType(DType dtype);
Expression Widen(TensorBuilder& builder, const UOp* x);
// Floats as they are; integers and bools as f64, as NumPy's true division and mean take them.
const UOp* ToFloat(TensorBuilder& builder, const UOp* x);

// A dimension as a number of `dtype`, of shape [].
Expression DimensionValue(TensorBuilder& builder, const UOp* dimension, DType dtype);
// Positions 0, 1, ... along `axis` of a tensor of `rank`: shape [1, ..., size, ..., 1].
Expression PositionsAlong(TensorBuilder& builder, int rank, int64_t axis, const UOp* size,
                          DType dtype);
// i32 where every position along the dimension fits it, else i64.
DType PositionDType(TensorBuilder& builder, const UOp* dimension);

// The axes counted from 0, ascending, all of them when none are given; nothing after a failure:
// out of range or twice.
std::optional<std::vector<int64_t>> ReducedAxes(TensorBuilder& builder, const UOp* x,
                                                absl::Span<const int64_t> axes,
                                                absl::string_view op);
// The number of elements along the axes.
const UOp* NumElements(TensorBuilder& builder, const UOp* x, absl::Span<const int64_t> axes);

// Puts `count` numbers in place of one number or none (then of `fallback`); nothing and a failure
// when there are more or fewer. `what` names the attribute.
std::optional<std::vector<int64_t>> PerDimension(TensorBuilder& builder, absl::string_view op,
                                                 absl::string_view what,
                                                 absl::Span<const int64_t> given, int64_t count,
                                                 int64_t fallback, int64_t least);

// The dimensions begin, begin + 1, ... below end of x.
Shape DimsBetween(TensorBuilder& builder, const UOp* x, int64_t begin, int64_t end);
// A formula in the wide dtype of the float x, rounded to x's dtype at the end.
template <typename Formula>
const UOp* InWide(TensorBuilder& builder, absl::string_view op, const UOp* x, Formula formula) {
  if (!IsFloating(builder, op, {x})) return nullptr;
  return builder.Cast(formula(Widen(builder, x)), x->dtype());
}
template <typename Formula>
const UOp* InWide(TensorBuilder& builder, absl::string_view op, const UOp* x, const UOp* y,
                  Formula formula) {
  if (!IsFloating(builder, op, {x, y})) return nullptr;
  return builder.Cast(formula(Widen(builder, x), Widen(builder, y)), x->dtype());
}

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_COMPOSE_H_
