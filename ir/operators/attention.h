// Attention of transformers, and rotary embeddings.
// Included by importers, embedders and the operator table. Must not know windows.
#ifndef SVOD_IR_OPERATORS_ATTENTION_H_
#define SVOD_IR_OPERATORS_ATTENTION_H_

#include <optional>

#include "ir/tensor_builder.h"

namespace svod {

struct AttentionOptions {
  // [B, H, S, T] or what broadcasts to it: bool, true where a query sees a key; or floats that are
  // added to the scores.
  const UOp* mask = nullptr;
  // Query i sees keys up to i + offset. A null offset is 0; T - S lets the last query see all.
  bool causal = false;
  const UOp* offset = nullptr;
  std::optional<double> scale = std::nullopt;  // of the scores; 1 / sqrt(D) without one
};

// softmax(q k^T * scale + mask) v, for q [B, H, S, D], k [B, G, T, D], v [B, G, T, E] of one float
// dtype: [B, H, S, E]. H is a multiple of G; queries h of H / G neighbours share a key head. f16
// and bf16 are worked out in f32 and rounded once. A query that sees no key gives NaN. Null after a
// failure, which the builder holds.
// Source: Vaswani et al. 2017; grouped queries: Ainslie et al. 2023.
const UOp* Attention(TensorBuilder& builder, const UOp* q, const UOp* k, const UOp* v,
                     const AttentionOptions& options = {});

// x [..., S, D], cosines and sines [S, D / 2] or what broadcasts to [..., S, D / 2], of one float
// dtype; D an even constant. Pairs of features (d, d + D / 2), or (2d, 2d + 1) if `interleaved`,
// are turned by their angle. Source: Su et al. 2021.
const UOp* RotaryEmbedding(TensorBuilder& builder, const UOp* x, const UOp* cosines,
                           const UOp* sines, bool interleaved = false);

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_ATTENTION_H_
