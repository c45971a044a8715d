// ExchangeLoops: the loop action that takes a reduction's loop out of the loop that it stands in.
// Included by loop_actions.cc only.
#ifndef SVOD_IR_PASSES_EXCHANGE_LOOPS_H_
#define SVOD_IR_PASSES_EXCHANGE_LOOPS_H_

#include "absl/status/statusor.h"
#include "ir/pass.h"

namespace svod {

// Loop j with reductions over `axis`, r, in it:
//   for j { y[j] = f(fold over r of x[r, j]) }
// becomes
//   for j { sums[j] = identity }
//   for r, `amount` at a time { for j { sums[j] = sums[j] fold x[r, j] fold x[r + 1, j] ... } }
//   for j { y[j] = f(sums[j]) }
// so that rows of memory are read as they lie. Every sum folds in the order that it had. What is
// left of r when the amount does not divide it is folded the same way. Errors: InvalidArgument,
// saying why, when r is not all that its reductions fold over, does not stand directly in a loop
// that stores, or has no constant extent; when j has none either, or the sums would take more than
// kMaxExchangeBytes; when what is folded is loaded from what j stores to; when with an amount above
// 1 there are loops inside r.
inline constexpr int64_t kMaxExchangeBytes = int64_t{1} << 20;
absl::StatusOr<const UOp*> ExchangeLoops(const UOp* sink, int64_t axis, int64_t amount,
                                         PassContext& context);

}  // namespace svod

#endif  // SVOD_IR_PASSES_EXCHANGE_LOOPS_H_
