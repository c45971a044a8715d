// TensorBuilder: writes a tensor graph op by op, with NumPy's broadcasting and checked shapes.
// Included by the operators, the parser and embedders. Must not know text or single operators.
#ifndef SVOD_IR_TENSOR_BUILDER_H_
#define SVOD_IR_TENSOR_BUILDER_H_

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/program.h"
#include "ir/shape.h"
#include "ir/uop.h"

namespace svod {

// Errors stick: after a failed call every method returns null (and takes null), and Finish returns
// the first failure; Take returns it too and lets the builder go on. Nodes are of the builder's
// context. Axes count from 0, negative ones from the end. One thread at a time.
//
// Errors: InvalidArgument, "op: what, got X, expected Y", for shapes that do not fit (both are
// named), axes out of range or twice, dtypes that have no rule, dimensions below 0, tensors of more
// than kMaxTensorBytes.
class TensorBuilder {
 public:
  explicit TensorBuilder(std::shared_ptr<Context> context);

  Context& context() { return *context_; }
  const std::shared_ptr<Context>& shared_context() const { return context_; }
  Dims& dims() { return shapes_.dims(); }
  ShapeAnalysis& shapes() { return shapes_; }
  const absl::Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  // Records a failure of the caller's; null.
  const UOp* Fail(absl::Status status);
  const UOp* FailInvalid(absl::string_view message);
  // The first failure, which it forgets.
  absl::Status Take();

  // --- What is given. Parameters take slots 0, 1, 2, ... unless told theirs.
  const UOp* Param(absl::string_view name, DType dtype, ShapeSpan shape,
                   Access access = Access::kIn, int64_t slot = -1);
  const UOp* Param(absl::string_view name, DType dtype, std::initializer_list<int64_t> shape,
                   Access access = Access::kIn);
  const UOp* Buffer(DType dtype, ShapeSpan shape, int64_t id = -1);
  const UOp* Variable(absl::string_view name, int64_t min, int64_t max);
  const UOp* Const(DType dtype, double value);
  const UOp* ConstInt(DType dtype, int64_t value);
  const UOp* Index(int64_t value) { return context_->Index(value); }
  Shape ConstShape(std::initializer_list<int64_t> dims);
  Shape ConstShape(absl::Span<const int64_t> dims);

  // --- What is known of a tensor; empty and void after a failure.
  ShapeSpan ShapeOf(const UOp* tensor);
  int RankOf(const UOp* tensor) { return static_cast<int>(ShapeOf(tensor).size()); }
  const UOp* Dim(const UOp* tensor, int64_t axis);  // null and a failure when out of range
  // The axis counted from 0; -1 and a failure when out of range. `extra`: ranks beyond the tensor's
  // (1 for an axis that is to be inserted).
  int64_t Axis(const UOp* tensor, int64_t axis, absl::string_view op, int extra = 0);
  // A dimension that must be constant, as an operator's `what`; -1 and a failure when it is not.
  int64_t ConstDim(const UOp* tensor, int64_t axis, absl::string_view what);

  // --- Elementwise ops; operands broadcast.
  const UOp* Make(Op op, absl::Span<const UOp* const> sources);
  const UOp* Cast(const UOp* x, DType dtype);  // x itself when it has that dtype
  const UOp* Bitcast(const UOp* x, DType dtype);
  const UOp* Add(const UOp* x, const UOp* y) { return Make(Op::kAdd, {x, y}); }
  const UOp* Sub(const UOp* x, const UOp* y) { return Make(Op::kSub, {x, y}); }
  const UOp* Mul(const UOp* x, const UOp* y) { return Make(Op::kMul, {x, y}); }
  const UOp* Where(const UOp* condition, const UOp* x, const UOp* y) {
    return Make(Op::kWhere, {condition, x, y});
  }
  // A constant of x's dtype, of shape [].
  const UOp* Like(const UOp* x, double value);

  // --- Movement. What changes nothing returns its operand.
  const UOp* Reshape(const UOp* x, ShapeSpan shape);
  // As NumPy: one -1 stands for what is left.
  const UOp* Reshape(const UOp* x, std::initializer_list<int64_t> shape);
  const UOp* Expand(const UOp* x, ShapeSpan shape);
  const UOp* Permute(const UOp* x, absl::Span<const int64_t> axes);
  const UOp* Pad(const UOp* x, const UOp* value, ShapeSpan low, ShapeSpan high);
  const UOp* Shrink(const UOp* x, ShapeSpan begin, ShapeSpan size);
  const UOp* Flip(const UOp* x, absl::Span<const int64_t> axes);
  // One axis of the above.
  const UOp* PadAxis(const UOp* x, int64_t axis, const UOp* value, const UOp* low, const UOp* high);
  const UOp* ShrinkAxis(const UOp* x, int64_t axis, const UOp* begin, const UOp* size);
  const UOp* Unsqueeze(const UOp* x, int64_t axis);  // a new dimension of 1 there
  const UOp* Squeeze(const UOp* x, int64_t axis);    // without that dimension, which must be 1
  const UOp* Transpose(const UOp* x, int64_t a, int64_t b);

  // --- Reductions, positions, memory.
  // No axes: all of them. `keep`: they stay as dimensions of 1.
  const UOp* ReduceAxis(ReduceKind kind, const UOp* x, absl::Span<const int64_t> axes, bool keep);
  const UOp* Arange(const UOp* size, DType dtype);
  const UOp* Gather(const UOp* x, const UOp* positions, int64_t axis);
  const UOp* Scatter(ScatterKind kind, const UOp* x, const UOp* positions, const UOp* updates,
                     int64_t axis);
  const UOp* Contiguous(const UOp* x);
  // Writes `value`, broadcast to the target's shape, to a buffer, a state of one, or movement of
  // either; the ASSIGN, an effect. The state of the buffer after it is After(buffer, {assign}).
  const UOp* Assign(const UOp* target, const UOp* value);
  const UOp* After(const UOp* buffer, absl::Span<const UOp* const> effects);

  // Ends the graph: a function that returns `results`, tensors or states of buffers.
  // Errors: the first failed call's.
  absl::StatusOr<Function> Finish(absl::string_view name, absl::Span<const UOp* const> results);

 private:
  const UOp* MakeNode(Op op, DType dtype, absl::Span<const UOp* const> sources,
                      const Argument& argument);
  bool Admit(absl::Span<const UOp* const> nodes);
  bool NormalizeAxes(const UOp* x, absl::Span<const int64_t> axes, absl::string_view op,
                     std::vector<int64_t>* out);

  std::shared_ptr<Context> context_;
  ShapeAnalysis shapes_;
  absl::Status status_;
  int64_t num_params_ = 0, num_buffers_ = 0;
};

}  // namespace svod

#endif  // SVOD_IR_TENSOR_BUILDER_H_
