// Rows of the operator table: reductions, softmax, scans, sorting.
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/elementwise.h"
#include "ir/operators/indexing.h"
#include "ir/operators/reductions.h"
#include "ir/operators/scan.h"
#include "ir/operators/shaping.h"
#include "ir/operators/sorting.h"
#include "tools/onnx/onnx_operators.h"

namespace svod {
namespace {

using Reduction = const UOp* (*)(TensorBuilder&, const UOp*, const ReduceOptions&);

// Sums of the operand's own dtype, where the library's take a wider one.
const UOp* SumOf(TensorBuilder& builder, const UOp* x, const ReduceOptions& options) {
  return Sum(builder, x, options, x->dtype());
}
const UOp* ProdOf(TensorBuilder& builder, const UOp* x, const ReduceOptions& options) {
  return Prod(builder, x, options, x->dtype());
}
const UOp* MeanOf(TensorBuilder& builder, const UOp* x, const ReduceOptions& options) {
  return builder.Cast(Mean(builder, x, options), x->dtype());
}
const UOp* SumSquare(TensorBuilder& builder, const UOp* x, const ReduceOptions& options) {
  return SumOf(builder, Square(builder, x), options);
}
const UOp* L1(TensorBuilder& builder, const UOp* x, const ReduceOptions& options) {
  return SumOf(builder, builder.Make(Op::kAbs, {x}), options);
}
const UOp* L2(TensorBuilder& builder, const UOp* x, const ReduceOptions& options) {
  return builder.Cast(Norm(builder, x, 2, options), x->dtype());
}
const UOp* LogSum(TensorBuilder& builder, const UOp* x, const ReduceOptions& options) {
  return builder.Make(Op::kLog, {SumOf(builder, x, options)});
}
const UOp* LogSumExpOf(TensorBuilder& builder, const UOp* x, const ReduceOptions& options) {
  return LogSumExp(builder, x, options);
}

// Axes are an attribute until `input_since`, and an input from then on; without any, all are meant,
// or none if noop_with_empty_axes says so.
template <Reduction reduce, int64_t input_since>
OnnxResults ImportReduce(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  ReduceOptions options;
  options.keep = node.Bool("keepdims", true);
  bool noop = false;
  if (node.version() < input_since) {
    options.axes = node.Ints("axes");
  } else {
    noop = node.Bool("noop_with_empty_axes", false);
    if (node.has_input(1)) {
      std::optional<std::vector<int64_t>> axes = node.KnownInts(1);
      if (!axes.has_value()) return {};
      options.axes = *axes;
    }
  }
  if (noop && options.axes.empty()) return {node.input(0)};
  return {reduce(builder, node.input(0), options)};
}

template <bool is_max>
OnnxResults ImportArg(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  int64_t axis = builder.Axis(node.input(0), node.Int("axis", 0), "argmax");
  bool keep = node.Bool("keepdims", true), last = node.Bool("select_last_index", false);
  if (axis < 0) return {};
  const UOp* x = node.input(0);
  if (last) x = builder.Flip(x, {axis});
  const UOp* at = is_max ? Argmax(builder, x, axis, keep) : Argmin(builder, x, axis, keep);
  if (!last) return {at};
  Expression end = DimensionValue(builder, builder.Dim(x, axis), Scalar::kI64) - 1.0;
  return {end.Of(Op::kSub, {builder, at})};
}

// Until opset 12 softmax ran over all dimensions from the axis on, as one.
template <const UOp* (*softmax)(TensorBuilder&, const UOp*, int64_t)>
OnnxResults ImportSoftmax(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp* x = node.input(0);
  bool is_old = node.version() < 13;
  int64_t axis = node.Int("axis", is_old ? 1 : -1);
  // An old axis may be the rank: every element by itself.
  if (!is_old || axis != node.rank(0)) axis = builder.Axis(x, axis, "softmax");
  if (axis < 0) return {};
  if (!is_old || axis == node.rank(0) - 1) return {softmax(builder, x, axis)};
  if (axis == node.rank(0)) {
    return {builder.Squeeze(softmax(builder, builder.Unsqueeze(x, -1), -1), -1)};
  }
  ShapeSpan shape = builder.ShapeOf(x);
  Shape own(shape.begin(), shape.end());
  return {builder.Reshape(softmax(builder, Flatten(builder, x, axis, -1), axis), own)};
}

const UOp* HardmaxOf(TensorBuilder& builder, const UOp* x, int64_t axis) {
  const UOp* at = Argmax(builder, x, axis);
  return OneHot(builder, at, builder.Dim(x, axis), x == nullptr ? DType() : x->dtype(), axis);
}

OnnxResults ImportCumSum(OnnxNode& node) {
  ScanOptions options{node.Bool("exclusive", false), node.Bool("reverse", false)};
  std::optional<std::vector<int64_t>> axis = node.KnownInts(1);
  if (!axis.has_value()) return {};
  if (axis->size() != 1) return node.Fail("axis, expected one number");
  const UOp* x = node.input(0);
  return {CumulativeSum(node.builder(), x, (*axis)[0], options, x->dtype())};
}

OnnxResults ImportTopK(OnnxNode& node) {
  int64_t axis = node.Int("axis", -1), count = node.Int("k", 0);
  bool largest = node.Bool("largest", true);
  node.Bool("sorted", true);  // sorted is a fine order for those who want none
  if (node.version() >= 10) {
    std::optional<std::vector<int64_t>> k = node.KnownInts(1);
    if (!k.has_value()) return {};
    if (k->size() != 1) return node.Fail("k, expected one number");
    count = (*k)[0];
  }
  auto [values, positions] = TopK(node.builder(), node.input(0), count, axis, largest);
  return {values, positions};
}

}  // namespace

OnnxRows OnnxReductionRows() {
  return {
      {"ArgMax", {1, 11, 12, 13}, 1, 1, ImportArg<true>},
      {"ArgMin", {1, 11, 12, 13}, 1, 1, ImportArg<false>},
      {"CumSum", {11, 14}, 2, 2, ImportCumSum},
      {"Hardmax", {1, 11, 13}, 1, 1, ImportSoftmax<HardmaxOf>},
      {"LogSoftmax", {1, 11, 13}, 1, 1, ImportSoftmax<LogSoftmax>},
      {"ReduceL1", {1, 11, 13, 18}, 1, 2, ImportReduce<L1, 18>},
      {"ReduceL2", {1, 11, 13, 18}, 1, 2, ImportReduce<L2, 18>},
      {"ReduceLogSum", {1, 11, 13, 18}, 1, 2, ImportReduce<LogSum, 18>},
      {"ReduceLogSumExp", {1, 11, 13, 18}, 1, 2, ImportReduce<LogSumExpOf, 18>},
      {"ReduceMax", {1, 11, 12, 13, 18, 20}, 1, 2, ImportReduce<Amax, 18>},
      {"ReduceMean", {1, 11, 13, 18}, 1, 2, ImportReduce<MeanOf, 18>},
      {"ReduceMin", {1, 11, 12, 13, 18, 20}, 1, 2, ImportReduce<Amin, 18>},
      {"ReduceProd", {1, 11, 13, 18}, 1, 2, ImportReduce<ProdOf, 18>},
      {"ReduceSum", {1, 11, 13}, 1, 2, ImportReduce<SumOf, 13>},
      {"ReduceSumSquare", {1, 11, 13, 18}, 1, 2, ImportReduce<SumSquare, 18>},
      {"Softmax", {1, 11, 13}, 1, 1, ImportSoftmax<Softmax>},
      {"TopK", {1, 10, 11}, 1, 2, ImportTopK},
  };
}

}  // namespace svod
