// SplitReductions: large reductions as trees of smaller ones.
// Included by schedule.cc and tests. Must not know kernels.
#ifndef SVOD_PLAN_SPLIT_REDUCTIONS_H_
#define SVOD_PLAN_SPLIT_REDUCTIONS_H_

#include "absl/status/status.h"
#include "ir/program.h"

namespace svod {

// Longest run of elements that a float sum or product folds one after another, unless it is a sum
// of products of two operands (a contraction): beyond it, partial sums of so many are folded.
inline constexpr int64_t kMaxSequentialFold = 1024;
// Reductions to few results over at least so many elements are cut into partial results that
// different cores compute.
inline constexpr int64_t kMinParallelFold = int64_t{1} << 17;
inline constexpr int64_t kMaxParallelResults = 64;

// Rewrites each large REDUCE_AXIS of the graph into two, the outer one over partial results. The
// tree follows from the shape alone, so results do not depend on threads or options. Reductions of
// symbolic sizes are cut by their largest size. Errors: those of ShapeAnalysis.
// Source: pairwise summation bounds the error of a sum (Higham, "Accuracy and Stability of
// Numerical Algorithms", 4.2).
absl::Status SplitReductions(Function* graph, Context& context);

}  // namespace svod

#endif  // SVOD_PLAN_SPLIT_REDUCTIONS_H_
