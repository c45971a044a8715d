// ShapeAnalysis: the dimensions of every tensor of a graph, and arithmetic on dimensions.
// Included by whoever reads or builds tensor graphs. Must not know kernels.
#ifndef SVOD_IR_SHAPE_H_
#define SVOD_IR_SHAPE_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/ranges.h"
#include "ir/uop.h"

namespace svod {

// Dimensions, outermost first: index expressions of constants and variables, in the form that
// Dims::Normalize gives.
using Shape = std::vector<const UOp*>;
using ShapeSpan = absl::Span<const UOp* const>;

// Limits of every tensor, so that positions and sizes cannot overflow.
inline constexpr int kMaxRank = 32;
inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 62;

// Index expressions in one normal form: equal sums of products are one node, constants are folded,
// divisions that come out even are carried out. One thread at a time.
class Dims {
 public:
  explicit Dims(Context& context) : context_(context) {}

  const UOp* Const(int64_t value) { return context_.Index(value); }
  const UOp* Normalize(const UOp* index);
  const UOp* Add(const UOp* a, const UOp* b);
  const UOp* Sub(const UOp* a, const UOp* b);
  const UOp* Mul(const UOp* a, const UOp* b);
  const UOp* Floordiv(const UOp* a, const UOp* b);
  const UOp* Floormod(const UOp* a, const UOp* b);
  const UOp* Min(const UOp* a, const UOp* b);
  const UOp* Max(const UOp* a, const UOp* b);
  const UOp* Product(ShapeSpan dims);

  // Whether the two are equal for every value of their variables.
  bool Same(const UOp* a, const UOp* b);
  // Whether a <= b for every value of their variables, as far as it can be shown.
  bool AtMost(const UOp* a, const UOp* b);
  // Whether a shape broadcasts to `to` as it is: aligned at the last dimension, equal or 1 in each.
  bool BroadcastsTo(absl::Span<const UOp* const> from, absl::Span<const UOp* const> to);
  IntRange RangeOf(const UOp* index) { return ranges_.Of(index); }
  RangeAnalysis& ranges() { return ranges_; }

 private:
  const UOp* Make(Op op, const UOp* a, const UOp* b);
  const UOp* Build(const Affine& affine);
  Affine Recombine(Affine affine);
  bool Split(const Affine& sum, const UOp* divisor, Affine* quotient, Affine* rest);
  const UOp* NormalizeDivision(const UOp* node);

  Context& context_;
  RangeAnalysis ranges_;
  absl::flat_hash_map<const UOp*, const UOp*> normal_;
};

// "[64, n + 1]", "f32[64, n + 1]": shapes as messages show them.
std::string ToString(const UOp* dimension);
std::string ShapeToString(ShapeSpan shape);
std::string ShapeToString(DType dtype, ShapeSpan shape);

// The dimensions that `shapes` broadcast to, by NumPy's rules: aligned at the last one, each pair
// equal or one of them 1. `op` starts the message.
// Errors: InvalidArgument, naming both shapes.
absl::StatusOr<Shape> BroadcastShapes(absl::Span<const ShapeSpan> shapes, Dims& dims,
                                      absl::string_view op);

// Shapes of tensors, worked out once a node. Iterative. One thread at a time.
class ShapeAnalysis {
 public:
  explicit ShapeAnalysis(Context& context) : dims_(context) {}

  // The shape of a tensor; scalars, index expressions included, have none: []. The span lives as
  // long as the analysis.
  // Errors: InvalidArgument, "op: what, got X, expected Y", for a node under `tensor` whose
  // sources' shapes do not fit it, a dimension that may be negative, more than kMaxRank dimensions
  // or kMaxTensorBytes bytes, and for nodes that are no tensors; `culprit`, if not null, is that
  // node.
  absl::StatusOr<ShapeSpan> Of(const UOp* tensor, const UOp** culprit = nullptr);

  Dims& dims() { return dims_; }

 private:
  absl::StatusOr<Shape> Infer(const UOp* node);
  absl::StatusOr<Shape> InferTensorOp(const UOp* node);
  absl::Status CheckSize(const UOp* node, ShapeSpan shape);

  Dims dims_;
  absl::flat_hash_map<const UOp*, Shape> known_;
};

// --- The parts of tensor ops -----------------------------------------------------------------

// Sources of RESHAPE and EXPAND after the tensor.
inline ShapeSpan NewDimsOf(const UOp* node) { return node->sources().subspan(1); }
// Amounts before and after each dimension (PAD).
inline ShapeSpan LowOf(const UOp* pad) {
  return pad->sources().subspan(2, static_cast<size_t>(pad->num_sources() - 2) / 2);
}
inline ShapeSpan HighOf(const UOp* pad) {
  return pad->sources().subspan(2 + static_cast<size_t>(pad->num_sources() - 2) / 2);
}
// Where each dimension of a SHRINK begins, and its size.
inline ShapeSpan BeginOf(const UOp* shrink) {
  return shrink->sources().subspan(1, static_cast<size_t>(shrink->num_sources() - 1) / 2);
}
inline ShapeSpan SizeOf(const UOp* shrink) {
  return shrink->sources().subspan(1 + static_cast<size_t>(shrink->num_sources() - 1) / 2);
}
// The node that an ASSIGN's target is RESHAPE, PERMUTE, SHRINK and FLIP of: a state of a buffer, in
// graphs that verify.
const UOp* AssignedState(const UOp* assign);
// How many of a tensor op's sources are tensors; the others are index expressions.
int NumTensorSources(const UOp* node);

}  // namespace svod

#endif  // SVOD_IR_SHAPE_H_
