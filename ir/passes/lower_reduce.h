// lower-reduce: turns each REDUCE into a register that its loops fold into.
// Included by the pipeline and tests. Must not reorder a reduction.
#ifndef SVOD_IR_PASSES_LOWER_REDUCE_H_
#define SVOD_IR_PASSES_LOWER_REDUCE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/pass.h"

namespace svod {

inline constexpr absl::string_view kMulaccOpt = "mulacc";

//   acc[0] = identity                        // in the loop around, if any
//   for r1 { for r2 { acc[0] = acc[0] op value } }
//   result = acc[0]
// REDUCEs over the same ranges share the loops. f16 and bf16 accumulate in f32 and round once, at
// the end. Folds in the order of the loops, as the interpreter does.
// In a kernel with kMulaccOpt among its opts, a float sum folds a product without rounding it
// first. Errors: Linearize's.
absl::StatusOr<const UOp*> RunLowerReduce(const UOp* root, PassContext& context);

// What a fold of values of `dtype` is computed in: f16 and bf16 in f32.
DType FoldType(DType dtype);
// Whether a kernel has kMulaccOpt.
bool FusesProducts(const UOp* sink);
// `old`, of FoldType, with one value more folded into it. Errors: Context::Make's.
absl::StatusOr<const UOp*> FoldOnce(Context& context, ReduceKind kind, const UOp* old,
                                    const UOp* value, bool fuses_products);

}  // namespace svod

#endif  // SVOD_IR_PASSES_LOWER_REDUCE_H_
