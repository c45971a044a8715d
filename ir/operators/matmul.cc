#include "ir/operators/matmul.h"

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"

namespace svod {

const UOp* Matmul(TensorBuilder& builder, const UOp* x, const UOp* y,
                  const MatmulOptions& options) {
  if (!IsReady(builder, "matmul", {x, y})) return nullptr;
  if (x->dtype() != y->dtype()) {
    return FailOperator(builder, "matmul", "operand dtypes",
                        absl::StrCat(ToString(x->dtype()), " and ", ToString(y->dtype())),
                        "them equal");
  }
  std::string shapes =
      absl::StrCat(ShapeToString(builder.ShapeOf(x)), " and ", ShapeToString(builder.ShapeOf(y)));
  bool is_row = builder.RankOf(x) == 1, is_column = builder.RankOf(y) == 1;
  if (builder.RankOf(x) == 0 || builder.RankOf(y) == 0) {
    return FailOperator(builder, "matmul", "shapes", shapes, "at least one dimension each");
  }
  DType dtype = options.dtype.value_or(x->dtype());
  x = builder.Cast(x, dtype);
  y = builder.Cast(y, dtype);
  // Rows of x and columns of y, with what is summed last.
  if (is_row) {
    x = builder.Unsqueeze(x, 0);
  } else if (options.transpose_x) {
    x = builder.Transpose(x, -1, -2);
  }
  if (is_column) {
    y = builder.Unsqueeze(y, 0);
  } else if (!options.transpose_y) {
    y = builder.Transpose(y, -1, -2);
  }
  const UOp *x_size = builder.Dim(x, -1), *y_size = builder.Dim(y, -1);
  if (!builder.ok()) return nullptr;
  if (!builder.dims().Same(x_size, y_size)) {
    return FailOperator(builder, "matmul", "shapes", shapes,
                        absl::StrCat("inner dimensions ", ToString(x_size), " and ",
                                     ToString(y_size), " to be equal"));
  }
  Expression left = Widen(builder, builder.Unsqueeze(x, -2));
  Expression right = Widen(builder, builder.Unsqueeze(y, -3));
  const UOp* result = builder.ReduceAxis(ReduceKind::kAdd, left * right, {-1}, false);
  if (!builder.ok()) {
    absl::Status status = builder.Take();
    return FailOperator(builder, "matmul", "shapes", shapes,
                        absl::StrCat("leading dimensions that broadcast (", status.message(), ")"));
  }
  if (is_column) result = builder.Squeeze(result, -1);
  if (is_row) result = builder.Squeeze(result, is_column ? -1 : -2);
  return builder.Cast(result, dtype);
}

const UOp* Linear(TensorBuilder& builder, const UOp* x, const UOp* weight, const UOp* bias) {
  if (!IsReady(builder, "linear", {x, weight})) return nullptr;
  if (builder.RankOf(weight) != 2) {
    return FailOperator(builder, "linear", "weight", ShapeToString(builder.ShapeOf(weight)),
                        "2 dimensions");
  }
  DType dtype = x->dtype();
  MatmulOptions options;
  options.transpose_y = true;
  if (bias == nullptr) return Matmul(builder, x, weight, options);
  if (bias->dtype() != dtype || builder.RankOf(bias) != 1) {
    return FailOperator(builder, "linear", "bias",
                        ShapeToString(bias->dtype(), builder.ShapeOf(bias)),
                        absl::StrCat(ToString(dtype), " of 1 dimension"));
  }
  // Halves stay in f32 until the bias is in.
  options.dtype = WideDType(dtype);
  const UOp* product = Matmul(builder, x, weight, options);
  return builder.Cast(Expression(builder, product) + Widen(builder, bias), dtype);
}

}  // namespace svod
