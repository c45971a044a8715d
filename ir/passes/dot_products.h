// DotProducts: the loop action that folds four products of bytes at a time.
// Included by loop_actions.cc and by the choice of actions. Must not know targets.
#ifndef SVOD_IR_PASSES_DOT_PRODUCTS_H_
#define SVOD_IR_PASSES_DOT_PRODUCTS_H_

#include "absl/status/statusor.h"
#include "ir/pass.h"

namespace svod {

// The integer of 8 bits whose value a node has, whatever wider types it went through; null if there
// is none. Makes nodes where a choice between a byte and a constant was made in a wider type.
const UOp* ByteUnder(const UOp* node, Context& context);

// Sums over loop `axis`, k, of products of bytes in i32 become sums of dot products:
//   sum over k of i32(a[i, k]) * i32(b[k, j])
// becomes
//   sum over k of dot_u8i8(a[i, 4 k .. 4 k + 3], b[4 k .. 4 k + 3, j], 0)
// and one more for what is left when four does not divide the extent, with zeros. Where both are
// signed, or both unsigned, the one that does not move with the loop around the sum has the top
// bits of its bytes flipped, which adds or takes 128 times the other one's sum: that is put right
// by a sum of its own. All of this is exact in arithmetic that wraps. Errors: InvalidArgument,
// saying why, when a sum of the loop is no such sum.
absl::StatusOr<const UOp*> DotProducts(const UOp* sink, int64_t axis, PassContext& context);

}  // namespace svod

#endif  // SVOD_IR_PASSES_DOT_PRODUCTS_H_
