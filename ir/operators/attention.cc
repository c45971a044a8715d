#include "ir/operators/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/matmul.h"
#include "ir/operators/reductions.h"
#include "ir/operators/shaping.h"

namespace svod {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A mask of up to 4 dimensions as [B, G, H / G, S, T], each of them or 1.
const UOp* GroupedMask(TensorBuilder& builder, const UOp* mask, int64_t num_key_heads,
                       int64_t num_shared, int64_t num_heads) {
  int64_t rank = builder.RankOf(mask);
  if (rank > 4) {
    return FailOperator(builder, "attention", "mask", ShapeToString(builder.ShapeOf(mask)),
                        "at most 4 dimensions");
  }
  for (; rank < 4; ++rank) mask = builder.Unsqueeze(mask, 0);
  const UOp* heads = builder.Dim(mask, 1);
  if (heads == nullptr) return nullptr;
  Shape shape = DimsBetween(builder, mask, 0, 4);
  if (IsConstInt(heads, num_heads)) {
    shape[1] = builder.Index(num_key_heads);
    shape.insert(shape.begin() + 2, builder.Index(num_shared));
  } else if (IsConstInt(heads, 1)) {
    shape.insert(shape.begin() + 2, builder.Index(1));
  } else {
    return FailOperator(builder, "attention", "heads of the mask",
                        ShapeToString(builder.ShapeOf(mask)), absl::StrCat(num_heads, " or 1"));
  }
  return builder.Reshape(mask, shape);
}

}  // namespace

const UOp* Attention(TensorBuilder& builder, const UOp* q, const UOp* k, const UOp* v,
                     const AttentionOptions& options) {
  if (!IsFloating(builder, "attention", {q, k, v})) return nullptr;
  Dims& dims = builder.dims();
  ShapeSpan qs = builder.ShapeOf(q), ks = builder.ShapeOf(k), vs = builder.ShapeOf(v);
  std::string shapes =
      absl::StrCat("q ", ShapeToString(qs), ", k ", ShapeToString(ks), ", v ", ShapeToString(vs));
  if (qs.size() != 4 || ks.size() != 4 || vs.size() != 4 || !dims.Same(qs[0], ks[0]) ||
      !dims.Same(ks[0], vs[0]) || !dims.Same(ks[1], vs[1]) || !dims.Same(ks[2], vs[2]) ||
      !dims.Same(qs[3], ks[3])) {
    return FailOperator(builder, "attention", "shapes", shapes,
                        "q [B, H, S, D], k [B, G, T, D], v [B, G, T, E]");
  }
  int64_t num_heads = builder.ConstDim(q, 1, "attention: heads of q");
  int64_t num_key_heads = builder.ConstDim(k, 1, "attention: heads of k");
  if (!builder.ok()) return nullptr;
  if (num_key_heads < 1 || num_heads % num_key_heads != 0) {
    return FailOperator(builder, "attention", "heads", shapes,
                        "those of q to be a multiple of those of k");
  }
  int64_t num_shared = num_heads / num_key_heads;
  Expression wide_q = Widen(builder, q);
  DType wide = WideDType(q->dtype());
  Expression factor(builder, nullptr);
  if (options.scale.has_value()) {
    factor = wide_q.Number(*options.scale);
  } else if (IsConst(qs[3])) {
    // Of no features every score is 0, whatever the scale.
    double num_features = static_cast<double>(std::max<int64_t>(ConstInt(qs[3]), 1));
    factor = wide_q.Number(1 / std::sqrt(num_features));
  } else {
    factor = Recip(Sqrt(DimensionValue(builder, qs[3], wide)));
  }
  const UOp* group = builder.Index(num_key_heads);
  const UOp* grouped_q =
      builder.Reshape(wide_q, {qs[0], group, builder.Index(num_shared), qs[2], qs[3]});
  const UOp* grouped_k = builder.Unsqueeze(Widen(builder, k), 2);
  const UOp* grouped_v = builder.Unsqueeze(Widen(builder, v), 2);
  MatmulOptions by_rows;
  by_rows.transpose_y = true;
  Expression scores = Expression(builder, Matmul(builder, grouped_q, grouped_k, by_rows)) * factor;
  Shape shape = DimsBetween(builder, scores, 0, builder.RankOf(scores));
  if (options.mask != nullptr) {
    const UOp* mask = GroupedMask(builder, options.mask, num_key_heads, num_shared, num_heads);
    if (mask == nullptr) return nullptr;
    if (mask->dtype().is_bool()) {
      scores = Select(Expression(builder, mask), scores, -kInfinity);
    } else if (mask->dtype().is_float()) {
      scores = scores + Expression(builder, builder.Cast(mask, wide));
    } else {
      return FailOperator(builder, "attention", "mask", ToString(mask->dtype()), "bool or a float");
    }
  }
  // A mask that is larger where the scores have 1 would make more of them.
  bool fits = builder.ok();
  for (size_t i = 0; fits && i < shape.size(); ++i) {
    fits = dims.Same(builder.ShapeOf(scores)[i], shape[i]);
  }
  if (options.mask != nullptr && !fits) {
    builder.Take().IgnoreError();
    return FailOperator(builder, "attention", "mask", ShapeToString(builder.ShapeOf(options.mask)),
                        absl::StrCat("what broadcasts to [B, H, S, T] of ", shapes));
  }
  if (options.causal) {
    const UOp* offset = options.offset == nullptr ? builder.Index(0) : options.offset;
    scores = Select(Expression(builder, TriangularMask(builder, qs[2], ks[2], offset)), scores,
                    -kInfinity);
  }
  const UOp* mixed = Matmul(builder, Softmax(builder, scores, -1), grouped_v);
  return builder.Cast(builder.Reshape(mixed, {qs[0], qs[1], qs[2], vs[3]}), q->dtype());
}

const UOp* RotaryEmbedding(TensorBuilder& builder, const UOp* x, const UOp* cosines,
                           const UOp* sines, bool interleaved) {
  if (!IsFloating(builder, "rotary_embedding", {x, cosines, sines})) return nullptr;
  int64_t rank = builder.RankOf(x);
  int64_t size = builder.ConstDim(x, -1, "rotary_embedding: features");
  if (size < 0) return nullptr;
  if (size % 2 != 0) {
    return FailOperator(builder, "rotary_embedding", "features", ShapeToString(builder.ShapeOf(x)),
                        "an even last dimension");
  }
  Shape shape = DimsBetween(builder, x, 0, rank), pairs = shape;
  pairs.back() = builder.Index(interleaved ? size / 2 : 2);
  pairs.push_back(builder.Index(interleaved ? 2 : size / 2));
  int64_t axis = interleaved ? rank : rank - 1;
  const UOp* paired = builder.Reshape(Widen(builder, x), pairs);
  auto part = [&](int64_t i) {
    const UOp* one = builder.ShrinkAxis(paired, axis, builder.Index(i), builder.Index(1));
    return Expression(builder, builder.Squeeze(one, axis));
  };
  Expression first = part(0), second = part(1);
  Expression c = Widen(builder, cosines), s = Widen(builder, sines);
  const UOp* turned = StackTensors(builder, {first * c - second * s, second * c + first * s}, axis);
  if (!builder.ok()) return nullptr;
  ShapeSpan result = builder.ShapeOf(turned);
  bool fits = result.size() == pairs.size();
  for (size_t i = 0; fits && i < pairs.size(); ++i) {
    fits = builder.dims().Same(result[i], pairs[i]);
  }
  if (!fits) {
    return FailOperator(
        builder, "rotary_embedding", "angles",
        absl::StrCat(ShapeToString(builder.ShapeOf(cosines)), " and ",
                     ShapeToString(builder.ShapeOf(sines)), " for ", ShapeToString(shape)),
        "[S, D / 2]");
  }
  return builder.Cast(builder.Reshape(turned, shape), x->dtype());
}

}  // namespace svod
