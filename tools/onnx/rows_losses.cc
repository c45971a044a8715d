// Rows of the operator table: losses of classifiers.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/indexing.h"
#include "ir/operators/reductions.h"
#include "tools/onnx/onnx_operators.h"

namespace svod {
namespace {

struct LossOptions {
  bool ignores = false;
  int64_t ignore_index = 0;
  int reduction = 0;  // 0: none, 1: sum, 2: mean
};

LossOptions ReadOptions(OnnxNode& node) {
  LossOptions options;
  options.ignores = node.HasAttribute("ignore_index");
  options.ignore_index = node.Int("ignore_index", 0);
  options.reduction = node.Choice("reduction", "mean", {"none", "sum", "mean"});
  return options;
}

// -x[n, target[n, d...], d...] * weight[target[n, d...]], for log-probabilities x [N, C, d...];
// nothing for ignored targets. The mean is that of weights, too.
const UOp* NegativeLogLikelihood(OnnxNode& node, const UOp* x, const UOp* target, const UOp* weight,
                                 const LossOptions& options) {
  TensorBuilder& builder = node.builder();
  if (!node.ok()) return nullptr;
  if (builder.RankOf(x) < 2 || builder.RankOf(x) != builder.RankOf(target) + 1) {
    node.Fail(absl::StrCat("ranks, got ", builder.RankOf(x), " of the input and ",
                           builder.RankOf(target), " of the target, expected one more"));
    return nullptr;
  }
  Expression ids(builder, target);
  Expression counts = NotEqual(ids, ids.Number(static_cast<double>(options.ignore_index)));
  if (options.ignores) ids = Select(counts, ids, 0.0);
  const UOp* picked = TakeAlongAxis(builder, x, builder.Unsqueeze(ids, 1), 1);
  Expression loss = -Widen(builder, builder.Squeeze(picked, 1));
  Expression weights = loss.Number(1);
  if (weight != nullptr) weights = Widen(builder, Take(builder, weight, ids, 0));
  if (options.ignores) weights = Select(counts, weights, 0.0);
  loss = loss * weights;
  if (options.reduction != 0) {
    const UOp* total = Sum(builder, loss, {}, loss.node()->dtype());
    if (options.reduction == 2) {
      const UOp* spread = builder.Expand(weights, builder.ShapeOf(target));
      total = builder.Make(Op::kFdiv, {total, Sum(builder, spread, {}, weights.node()->dtype())});
    }
    loss = Expression(builder, total);
  }
  return builder.Cast(loss, x->dtype());
}

OnnxResults ImportNegativeLogLikelihoodLoss(OnnxNode& node) {
  LossOptions options = ReadOptions(node);
  return {NegativeLogLikelihood(node, node.input(0), node.input(1), node.input(2), options)};
}

OnnxResults ImportSoftmaxCrossEntropyLoss(OnnxNode& node) {
  LossOptions options = ReadOptions(node);
  const UOp* log_probability = LogSoftmax(node.builder(), node.input(0), 1);
  return {NegativeLogLikelihood(node, log_probability, node.input(1), node.input(2), options),
          log_probability};
}

}  // namespace

OnnxRows OnnxLossRows() {
  return {
      {"NegativeLogLikelihoodLoss", {12, 13, 22}, 2, 3, ImportNegativeLogLikelihoodLoss},
      {"SoftmaxCrossEntropyLoss", {12, 13}, 2, 3, ImportSoftmaxCrossEntropyLoss},
  };
}

}  // namespace svod
