// Reductions over axes beyond the op itself: sums, means, extremes, variances, norms.
// Included by importers, embedders and the operator table. Must not know windows or scans.
#ifndef SVOD_IR_OPERATORS_REDUCTIONS_H_
#define SVOD_IR_OPERATORS_REDUCTIONS_H_

#include <cstdint>
#include <optional>

#include "ir/tensor_builder.h"

namespace svod {

// What all take: `axes`, none for all of them, negative ones from the end; `keep`, whether they
// stay as dimensions of 1. Dimensions may be symbolic. f16 and bf16 accumulate in f32 and are
// rounded once. Null after a failure, which the builder holds.
struct ReduceOptions {
  std::vector<int64_t> axes = {};
  bool keep = false;
};

// The dtype that sums and products of `dtype` have, as in NumPy: i64 for bool and signed integers,
// u64 for unsigned ones, floats themselves.
DType SumDType(DType dtype);

// Sums and products, in `dtype` or, without one, SumDType; of no elements 0 and 1.
const UOp* Sum(TensorBuilder& builder, const UOp* x, const ReduceOptions& options = {},
               std::optional<DType> dtype = std::nullopt);
const UOp* Prod(TensorBuilder& builder, const UOp* x, const ReduceOptions& options = {},
                std::optional<DType> dtype = std::nullopt);
// Extremes, in x's dtype; NaN if any is NaN. Of no elements the identity: -inf or the least number.
const UOp* Amax(TensorBuilder& builder, const UOp* x, const ReduceOptions& options = {});
const UOp* Amin(TensorBuilder& builder, const UOp* x, const ReduceOptions& options = {});
// bool: whether all, or any, are not 0; NaN is not 0.
const UOp* All(TensorBuilder& builder, const UOp* x, const ReduceOptions& options = {});
const UOp* Any(TensorBuilder& builder, const UOp* x, const ReduceOptions& options = {});
// The position of the first largest (least) element along `axis`, or among all in row-major order
// without one; NaN counts as the extreme, as in NumPy. Errors: an axis of 0 elements.
const UOp* Argmax(TensorBuilder& builder, const UOp* x, std::optional<int64_t> axis,
                  bool keep = false, DType dtype = Scalar::kI64);
const UOp* Argmin(TensorBuilder& builder, const UOp* x, std::optional<int64_t> axis,
                  bool keep = false, DType dtype = Scalar::kI64);
// Of floats in their dtype; of integers and bools in f64, which holds every sum of i32. Of no
// elements NaN.
const UOp* Mean(TensorBuilder& builder, const UOp* x, const ReduceOptions& options = {});
// The mean of squared distances from the mean, in two passes, with the count less `correction`.
const UOp* Variance(TensorBuilder& builder, const UOp* x, const ReduceOptions& options = {},
                    int64_t correction = 0);
// Its square root.
const UOp* StandardDeviation(TensorBuilder& builder, const UOp* x,
                             const ReduceOptions& options = {}, int64_t correction = 0);
// (sum |x|^order)^(1 / order); for inf and -inf the largest and least magnitude, for 0 the number
// of elements that are not 0. Integers are taken as f64.
const UOp* Norm(TensorBuilder& builder, const UOp* x, double order = 2,
                const ReduceOptions& options = {});
// log(sum(exp(x))) of floats, without overflow; of no elements or only -inf -inf.
const UOp* LogSumExp(TensorBuilder& builder, const UOp* x, const ReduceOptions& options = {});
// exp(x - max) / sum, along one axis, of floats; NaN where all are -inf.
const UOp* Softmax(TensorBuilder& builder, const UOp* x, int64_t axis = -1);
// x - max - log(sum(exp(x - max))).
const UOp* LogSoftmax(TensorBuilder& builder, const UOp* x, int64_t axis = -1);

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_REDUCTIONS_H_
