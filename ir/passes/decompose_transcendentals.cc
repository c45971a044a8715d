#include "ir/passes/decompose_transcendentals.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "ir/passes/math_functions.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

struct Decomposition {
  Op op;
  Value (*unary)(Value x);            // null for pow
  Value (*binary)(Value x, Value y);  // null for all others
};

constexpr Decomposition kDecompositions[] = {
    {Op::kExp, &DecomposeExp, nullptr},   {Op::kExp2, &DecomposeExp2, nullptr},
    {Op::kLog, &DecomposeLog, nullptr},   {Op::kLog2, &DecomposeLog2, nullptr},
    {Op::kSin, &DecomposeSin, nullptr},   {Op::kCos, &DecomposeCos, nullptr},
    {Op::kTanh, &DecomposeTanh, nullptr}, {Op::kErf, &DecomposeErf, nullptr},
    {Op::kPow, nullptr, &DecomposePow},
};

const Decomposition* FindDecomposition(Op op) {
  for (const Decomposition& decomposition : kDecompositions) {
    if (decomposition.op == op) return &decomposition;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<const UOp*> DecomposeTranscendental(Context& context, Op op,
                                                   absl::Span<const UOp* const> sources) {
  const Decomposition* decomposition = FindDecomposition(op);
  if (decomposition == nullptr) {
    return absl::InternalError(absl::StrCat("decompose-transcendentals: op, got ", InfoOf(op).text,
                                            ", expected one with a decomposition"));
  }
  const absl::StatusOr<DType> dtype = CheckNode(op, DType(), sources, {});
  if (!dtype.ok()) return absl::InternalError(dtype.status().message());

  // The 16-bit formats compute in f32 and round once.
  UopMath math(context);
  const bool widen = dtype->scalar == Scalar::kF16 || dtype->scalar == Scalar::kBF16;
  auto operand = [&](const UOp* source) {
    Value value(math, source);
    return widen ? value.CastTo(Scalar::kF32) : value;
  };
  Value result = decomposition->unary != nullptr
                     ? decomposition->unary(operand(sources[0]))
                     : decomposition->binary(operand(sources[0]), operand(sources[1]));
  if (widen) result = result.CastTo(dtype->scalar);
  if (!math.status.ok()) {
    return absl::InternalError(absl::StrCat("decomposing ", InfoOf(op).text, " of ",
                                            ToString(*dtype), ": ", math.status.message()));
  }
  return result.node();
}

absl::StatusOr<const UOp*> RunDecomposeTranscendentals(const UOp* root, PassContext& context) {
  absl::flat_hash_map<const UOp*, const UOp*> replaced;  // only nodes that change
  std::vector<const UOp*> sources;
  for (const UOp* node : Toposort(root)) {
    sources.assign(node->sources().begin(), node->sources().end());
    bool changed = false;
    for (const UOp*& source : sources) {
      auto it = replaced.find(source);
      if (it == replaced.end()) continue;
      source = it->second;
      changed = true;
    }
    if (HasFlag(node->op(), kTranscendental)) {
      SVOD_ASSIGN_OR_RETURN(replaced[node],
                            DecomposeTranscendental(context.context, node->op(), sources));
      ++context.rule_hits[absl::StrCat("decompose-", InfoOf(node->op()).text)];
    } else if (changed) {
      SVOD_ASSIGN_OR_RETURN(replaced[node], context.context.Make(node->op(), node->dtype(), sources,
                                                                 node->argument()));
    }
  }
  auto it = replaced.find(root);
  return it == replaced.end() ? root : it->second;
}

}  // namespace svod
