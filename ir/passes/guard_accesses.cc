#include "ir/passes/guard_accesses.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

int LanesOf(const UOp* access) {
  return access->op() == Op::kStore ? access->source(1)->dtype().lanes : access->dtype().lanes;
}

absl::StatusOr<const UOp*> And(Context& context, const UOp* x, const UOp* y) {
  if (x == nullptr) return y;
  if (x->dtype().lanes != y->dtype().lanes) {
    SVOD_ASSIGN_OR_RETURN(x, context.Make(Op::kSplat, y->dtype(), {x}));
  }
  return context.Make(Op::kAnd, {x, y});
}

// The elements of a buffer, an expression where a dimension is one.
absl::StatusOr<const UOp*> SizeOf(Context& context, const UOp* buffer) {
  if (const auto* scratch = std::get_if<ScratchArgument>(&buffer->argument())) {
    return context.Index(scratch->size);
  }
  const UOp* size = context.Index(1);
  for (const UOp* dimension : DimensionsOf(buffer)) {
    if (IsConst(size) && IsConst(dimension)) {
      size = context.Index(ConstInt(size) * ConstInt(dimension));
    } else if (IsConstInt(size, 1)) {
      size = dimension;
    } else {
      SVOD_ASSIGN_OR_RETURN(size, context.Make(Op::kMul, {size, dimension}));
    }
  }
  return size;
}

// The INDEX of `access` with a gate that holds only inside the buffer.
absl::StatusOr<const UOp*> GuardedIndex(const UOp* access, PassContext& pass) {
  Context& context = pass.context;
  const UOp* index = access->source(0);
  const UOp* position = index->source(1);
  // So that the product of the dimensions fits.
  SVOD_RETURN_IF_ERROR(MaxElements(BaseBuffer(index), pass.ranges).status());
  SVOD_ASSIGN_OR_RETURN(const UOp* size, SizeOf(context, BaseBuffer(index)));

  if (const int lanes = ConsecutiveElements(access); lanes > 1) {
    std::vector<const UOp*> offsets;
    for (int lane = 0; lane < lanes; ++lane) offsets.push_back(context.Index(lane));
    SVOD_ASSIGN_OR_RETURN(const UOp* ramp, context.Make(Op::kStack, offsets));
    SVOD_ASSIGN_OR_RETURN(position, context.Make(Op::kSplat, ramp->dtype(), {position}));
    SVOD_ASSIGN_OR_RETURN(position, context.Make(Op::kAdd, {position, ramp}));
  }
  const DType dtype = position->dtype();
  IntRange range = pass.ranges.Of(position);
  const UOp* gate = index->num_sources() == 3 ? index->source(2) : nullptr;
  const bool below = range.min < 0, above = range.max >= pass.ranges.Of(size).min;
  // A position in doubt for another reason than its interval gets both halves.
  if (below || !above) {
    SVOD_ASSIGN_OR_RETURN(const UOp* half,
                          context.Make(Op::kCmpLe, {context.Int(dtype, 0), position}));
    SVOD_ASSIGN_OR_RETURN(gate, And(context, gate, half));
  }
  if (above || !below) {
    if (IsConst(size)) {
      size = context.Int(dtype, ConstInt(size));
    } else if (dtype.is_vector()) {
      SVOD_ASSIGN_OR_RETURN(size, context.Make(Op::kSplat, dtype, {size}));
    }
    SVOD_ASSIGN_OR_RETURN(const UOp* half, context.Make(Op::kCmpLt, {position, size}));
    SVOD_ASSIGN_OR_RETURN(gate, And(context, gate, half));
  }
  return context.Make(Op::kIndex, {index->source(0), index->source(1), gate});
}

}  // namespace

absl::StatusOr<const UOp*> RunGuardAccesses(const UOp* root, PassContext& context) {
  absl::flat_hash_map<const UOp*, const UOp*> guarded;  // only nodes that change
  std::vector<const UOp*> sources;
  for (const UOp* node : Toposort(root)) {
    const UOp* now = node;
    sources.clear();
    for (const UOp* source : node->sources()) {
      auto it = guarded.find(source);
      sources.push_back(it == guarded.end() ? source : it->second);
    }
    if (sources != node->sources()) {
      SVOD_ASSIGN_OR_RETURN(
          now, context.context.Make(node->op(), node->dtype(), sources, node->argument()));
    }
    const bool is_access = node->op() == Op::kLoad || node->op() == Op::kStore;
    if (is_access && !IsInBounds(now->source(0), LanesOf(now), context.ranges)) {
      sources.assign(now->sources().begin(), now->sources().end());
      SVOD_ASSIGN_OR_RETURN(sources[0], GuardedIndex(now, context));
      if (!IsInBounds(sources[0], LanesOf(now), context.ranges)) {
        return absl::InternalError(absl::StrCat("guard-accesses: a gate does not prove that the ",
                                                InfoOf(node->op()).text, " is inside its buffer"));
      }
      SVOD_ASSIGN_OR_RETURN(
          now, context.context.Make(node->op(), node->dtype(), sources, node->argument()));
      ++context.rule_hits["guard-accesses"];
    }
    if (now != node) guarded[node] = now;
  }
  auto it = guarded.find(root);
  return it == guarded.end() ? root : it->second;
}

}  // namespace svod
