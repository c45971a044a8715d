// Rows of the operator table: the operators of com.microsoft that exported transformers use.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/operators/activation.h"
#include "ir/operators/attention.h"
#include "ir/operators/compose.h"
#include "ir/operators/indexing.h"
#include "ir/operators/matmul.h"
#include "ir/operators/normalization.h"
#include "ir/operators/reductions.h"
#include "ir/operators/shaping.h"
#include "tools/onnx/onnx_operators.h"

namespace svod {
namespace {

OnnxResults ImportFusedMatMul(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  double alpha = node.Float("alpha", 1);
  MatmulOptions options;
  options.transpose_x = node.Bool("transA", false);
  options.transpose_y = node.Bool("transB", false);
  if (node.Bool("transBatchA", false) || node.Bool("transBatchB", false)) {
    return node.FailUnsupported("transBatchA or transBatchB");
  }
  Expression y(builder, Matmul(builder, node.input(0), node.input(1), options));
  return {alpha == 1 ? y : y * alpha};
}

OnnxResults ImportGelu(OnnxNode& node) { return {Gelu(node.builder(), node.input(0))}; }

OnnxResults ImportBiasGelu(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  return {Gelu(builder, builder.Add(node.input(0), node.input(1)))};
}

OnnxResults ImportFastGelu(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp* x = node.input(0);
  if (node.has_input(1)) x = builder.Add(x, node.input(1));
  return {GeluTanh(builder, x)};
}

// LayerNorm(x + skip + bias) of (x, skip, gamma, beta?, bias?); the simplified one has no beta and
// no mean. Outputs: the result, mean, inverse deviation, the sum.
template <bool is_simplified>
OnnxResults ImportSkipLayerNormalization(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  double epsilon = node.Float("epsilon", is_simplified ? 1e-6 : 1e-12);
  constexpr size_t kBias = is_simplified ? 3 : 4;
  const UOp* sum = builder.Add(node.input(0), node.input(1));
  if (node.has_input(kBias)) sum = builder.Add(sum, node.input(kBias));
  const UOp* y = is_simplified ? RmsNorm(builder, sum, node.input(2), -1, epsilon)
                               : LayerNorm(builder, sum, node.input(2), node.input(3), -1, epsilon);
  return {y, nullptr, nullptr, sum};
}

OnnxResults ImportSimplifiedLayerNormalization(OnnxNode& node) {
  int64_t axis = node.Int("axis", -1);
  double epsilon = node.Float("epsilon", 1e-5);
  node.TypeAttribute("stash_type", Scalar::kF32);
  return {RmsNorm(node.builder(), node.input(0), node.input(1), axis, epsilon)};
}

// [B, S, heads * D] as [B, heads, S, D].
const UOp* SplitHeads(TensorBuilder& builder, const UOp* x, int64_t num_heads) {
  if (!builder.ok() || x == nullptr) return nullptr;
  Dims& dims = builder.dims();
  const UOp* heads = builder.Index(num_heads);
  Shape shape = {builder.Dim(x, 0), builder.Dim(x, 1), heads,
                 dims.Floordiv(builder.Dim(x, 2), heads)};
  return builder.Permute(builder.Reshape(x, shape), {0, 2, 1, 3});
}

const UOp* JoinHeads(TensorBuilder& builder, const UOp* x) {
  if (!builder.ok() || x == nullptr) return nullptr;
  Shape shape = {builder.Dim(x, 0), builder.Dim(x, 2),
                 builder.dims().Mul(builder.Dim(x, 1), builder.Dim(x, 3))};
  return builder.Reshape(builder.Permute(x, {0, 2, 1, 3}), shape);
}

// Attention(x [B, S, E], weight [E, Q + K + V], bias?, mask?). The mask says how many keys each
// batch has, [B], or which ones, [B, T].
OnnxResults ImportAttention(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  node.Require("num_heads");
  int64_t num_heads = node.Int("num_heads", 1);
  bool causal = node.Bool("unidirectional", false);
  double scale = node.Float("scale", 0), masked = node.Float("mask_filter_value", -10000);
  std::vector<int64_t> sizes = node.Ints("qkv_hidden_sizes");
  if (node.Bool("do_rotary", false)) return node.FailUnsupported("do_rotary");
  node.Ignore({"past_present_share_buffer", "rotary_embedding_dim"});
  for (size_t i : {4, 5, 6}) {
    if (node.has_input(i)) return node.FailUnsupported(absl::StrCat("input ", i));
  }
  if (node.rank(0) != 3 || node.rank(1) != 2) return node.Fail("ranks of x and weight");
  const UOp* all = Matmul(builder, node.input(0), node.input(1));
  if (node.has_input(2)) all = builder.Add(all, node.input(2));
  std::vector<const UOp*> parts;
  if (sizes.empty()) {
    parts = SplitEvenly(builder, all, 3, -1);
  } else if (sizes.size() == 3) {
    parts = Split(builder, all, builder.ConstShape(sizes), -1);
  }
  if (parts.size() != 3 || num_heads < 1) return node.Fail("sizes of q, k and v, expected three");
  const UOp* q = SplitHeads(builder, parts[0], num_heads);
  const UOp* k = SplitHeads(builder, parts[1], num_heads);
  const UOp* v = SplitHeads(builder, parts[2], num_heads);
  AttentionOptions options;
  options.causal = causal;
  if (scale != 0) options.scale = scale;
  if (node.has_input(3) && node.ok()) {
    const UOp* mask = node.input(3);
    const UOp *batch = builder.Dim(q, 0), *keys = builder.Dim(k, 2), *one = builder.Index(1);
    const UOp* is_seen = nullptr;
    if (node.rank(3) == 1) {
      Expression lengths(builder, builder.Reshape(mask, Shape{batch, one, one, one}));
      is_seen = PositionsAlong(builder, 4, 3, keys, mask->dtype()) < lengths;
    } else if (node.rank(3) == 2) {
      Expression words(builder, builder.Reshape(mask, Shape{batch, one, one, keys}));
      is_seen = NotEqual(words, 0.0);
    } else {
      return node.FailUnsupported(absl::StrCat("a mask of rank ", node.rank(3)));
    }
    Expression none(builder, builder.Like(q, 0));
    options.mask = builder.Where(is_seen, none, builder.Like(q, masked));
  }
  return {JoinHeads(builder, Attention(builder, q, k, v, options))};
}

// MultiHeadAttention(q [B, S, E], k, v, bias?, ...).
OnnxResults ImportMultiHeadAttention(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  node.Require("num_heads");
  int64_t num_heads = node.Int("num_heads", 1);
  double scale = node.Float("scale", 0);
  bool causal = node.Bool("unidirectional", false);
  node.Ignore({"mask_filter_value"});
  for (size_t i : {4, 6, 7}) {
    if (node.has_input(i)) return node.FailUnsupported(absl::StrCat("input ", i));
  }
  if (!node.has_input(1) || !node.has_input(2) || node.rank(0) != 3 || node.rank(1) != 3 ||
      node.rank(2) != 3 || num_heads < 1) {
    return node.FailUnsupported("packed or missing keys and values");
  }
  const UOp* parts[3] = {node.input(0), node.input(1), node.input(2)};
  if (node.has_input(3)) {
    const UOp* begin = builder.Index(0);
    for (const UOp*& part : parts) {
      const UOp* size = builder.Dim(part, 2);
      if (size == nullptr) return {};
      part = builder.Add(part, builder.ShrinkAxis(node.input(3), 0, begin, size));
      begin = builder.dims().Add(begin, size);
    }
  }
  AttentionOptions options;
  options.causal = causal;
  options.mask = node.input(5);
  if (scale != 0) options.scale = scale;
  return {JoinHeads(builder, Attention(builder, SplitHeads(builder, parts[0], num_heads),
                                       SplitHeads(builder, parts[1], num_heads),
                                       SplitHeads(builder, parts[2], num_heads), options))};
}

// RotaryEmbedding(x [B, S, E] or [B, heads, S, D], position_ids [1] or [B, S], cos [M, D / 2],
// sin).
OnnxResults ImportRotaryEmbedding(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  bool interleaved = node.Bool("interleaved", false);
  int64_t num_heads = node.Int("num_heads", 0), partial = node.Int("rotary_embedding_dim", 0);
  node.Ignore({"is_packed_batching"});
  if (node.Float("scale", 1) != 1) return node.FailUnsupported("scale");
  const UOp* x = node.input(0);
  bool is_joined = node.rank(0) == 3;
  if (node.rank(2) != 2 || (!is_joined && node.rank(0) != 4)) return node.Fail("ranks of inputs");
  if (is_joined) {
    if (partial == 0) num_heads = 0;
    // Without a number of heads the tables' width says how many features one has.
    const UOp* features = builder.dims().Mul(builder.Dim(node.input(2), 1), builder.Index(2));
    const UOp* heads = builder.dims().Floordiv(builder.Dim(x, 2), features);
    if (num_heads == 0 && !IsConst(heads)) return node.FailUnsupported("symbolic heads");
    x = SplitHeads(builder, x, num_heads > 0 ? num_heads : ConstInt(heads));
  }
  if (!node.ok()) return {};
  const UOp* steps = builder.Dim(x, 2);
  const UOp* positions = node.input(1);
  if (node.rank(1) == 1) {  // where the sequence begins
    Expression begin(builder, builder.Reshape(positions, ShapeSpan{}));
    Expression places(builder, builder.Arange(steps, positions->dtype()));
    positions = builder.Unsqueeze(places + begin, 0);
  }
  auto table = [&](size_t i) {  // [B, 1, S, D / 2]
    return builder.Unsqueeze(Take(builder, node.input(i), positions, 0), 1);
  };
  const UOp* rest = nullptr;
  if (partial > 0) {
    const UOp *turned = builder.Index(partial), *all = builder.Dim(x, 3);
    rest = builder.ShrinkAxis(x, 3, turned, builder.dims().Sub(all, turned));
    x = builder.ShrinkAxis(x, 3, builder.Index(0), turned);
  }
  const UOp* y = RotaryEmbedding(builder, x, table(2), table(3), interleaved);
  if (rest != nullptr && node.ok() && !IsConstInt(builder.Dim(rest, 3), 0)) {
    y = Concatenate(builder, {y, rest}, 3);
  }
  return {is_joined ? JoinHeads(builder, y) : y};
}

}  // namespace

OnnxRows OnnxMicrosoftRows() {
  constexpr absl::string_view kDomain = kMicrosoftDomain;
  return {
      {"Attention", {1}, 2, 7, ImportAttention, kDomain, "no past, no bias of attention"},
      {"BiasGelu", {1}, 2, 2, ImportBiasGelu, kDomain},
      {"FastGelu", {1}, 1, 2, ImportFastGelu, kDomain},
      {"FusedMatMul", {1}, 2, 2, ImportFusedMatMul, kDomain, "no transposed batches"},
      {"Gelu", {1}, 1, 1, ImportGelu, kDomain},
      {"MultiHeadAttention",
       {1},
       1,
       8,
       ImportMultiHeadAttention,
       kDomain,
       "keys and values apart, no past, no padding mask"},
      {"RotaryEmbedding", {1}, 4, 4, ImportRotaryEmbedding, kDomain},
      {"SimplifiedLayerNormalization", {1}, 2, 2, ImportSimplifiedLayerNormalization},
      {"SkipLayerNormalization",
       {1},
       3,
       5,
       ImportSkipLayerNormalization<false>,
       kDomain,
       "no mean and deviation"},
      {"SkipSimplifiedLayerNormalization",
       {1},
       3,
       4,
       ImportSkipLayerNormalization<true>,
       kDomain,
       "no mean and deviation"},
  };
}

}  // namespace svod
