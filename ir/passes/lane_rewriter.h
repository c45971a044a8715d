// LaneRewriter: a kernel's nodes with one loop counter replaced by several values at once.
// Included by loop_actions.cc only.
#ifndef SVOD_IR_PASSES_LANE_REWRITER_H_
#define SVOD_IR_PASSES_LANE_REWRITER_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ir/pass.h"

namespace svod {

// Rewrites what depends on the counter of `range`, which stands for base, base + 1, ...,
// base + lanes - 1. Positions that advance by a constant stay scalars with a stride, so that
// neighbours are loaded and stored as one vector.
class LaneRewriter {
 public:
  // `mask`, if not null, is a bool vector: lanes where it is false load nothing.
  LaneRewriter(const UOp* range, const UOp* base, int lanes, const UOp* mask, Context& context)
      : range_(range), base_(base), lanes_(lanes), mask_(mask), context_(context) {}

  // Rewrites a node whose sources are done; `replaced` holds nodes that others have rewritten.
  // Errors: InvalidArgument when lanes cannot take the node's part.
  absl::Status Rewrite(const UOp* node,
                       const absl::flat_hash_map<const UOp*, const UOp*>& replaced);
  // Whether a node takes a value of its own in each lane.
  bool Varies(const UOp* node) const {
    auto it = forms_.find(node);
    return it != forms_.end() && (it->second.stride != 0 || it->second.is_vector);
  }
  // The rewritten node: a vector where it varies, or, for effects, what performs all lanes.
  absl::StatusOr<const UOp*> Get(const UOp* node,
                                 const absl::flat_hash_map<const UOp*, const UOp*>& replaced);

 private:
  // lane l has node + stride * l, or lane l of node.
  struct Form {
    const UOp* node;
    int64_t stride = 0;
    bool is_vector = false;
  };
  Form FormOf(const UOp* node, const absl::flat_hash_map<const UOp*, const UOp*>& replaced) const;
  absl::StatusOr<const UOp*> Vector(const Form& form);
  absl::StatusOr<const UOp*> Address(const UOp* index, bool* is_scattered,
                                     const absl::flat_hash_map<const UOp*, const UOp*>& replaced);
  bool IsNearlyDense(const UOp* index,
                     const absl::flat_hash_map<const UOp*, const UOp*>& replaced) const;
  absl::Status LoadDense(const UOp* node,
                         const absl::flat_hash_map<const UOp*, const UOp*>& replaced);
  absl::StatusOr<bool> Stride(const UOp* node,
                              const absl::flat_hash_map<const UOp*, const UOp*>& replaced);

  const UOp* range_;
  const UOp* base_;
  int lanes_;
  const UOp* mask_;
  Context& context_;
  absl::flat_hash_map<const UOp*, Form> forms_;
};

}  // namespace svod

#endif  // SVOD_IR_PASSES_LANE_REWRITER_H_
