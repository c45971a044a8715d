// Matrix products.
// Included by importers, embedders and the operator table. Must not know windows.
#ifndef SVOD_IR_OPERATORS_MATMUL_H_
#define SVOD_IR_OPERATORS_MATMUL_H_

#include <optional>

#include "ir/tensor_builder.h"

namespace svod {

struct MatmulOptions {
  bool transpose_x = false;  // x is [..., K, M]
  bool transpose_y = false;  // y is [..., N, K]
  // Of products, sums and the result; the operands' without it. i8 operands with i32 here give
  // exact sums. Integers wrap.
  std::optional<DType> dtype = std::nullopt;
};

// x [..., M, K] times y [..., K, N]: [..., M, N], with leading dimensions that broadcast; a vector
// [K] on either side is a row or a column, whose dimension the result lacks, as in NumPy. Operands
// have one dtype, any; bools give whether any pair is true. f16 and bf16 are multiplied and added
// in f32 and rounded once. One product and one REDUCE_AXIS. Null after a failure, which the builder
// holds: shapes or dtypes that do not fit.
const UOp* Matmul(TensorBuilder& builder, const UOp* x, const UOp* y,
                  const MatmulOptions& options = {});

// x [..., K], weight [N, K], bias [N] or null: x times weight transposed, plus bias: [..., N].
const UOp* Linear(TensorBuilder& builder, const UOp* x, const UOp* weight, const UOp* bias);

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_MATMUL_H_
