// Reference interpreter: defines what every op means. Slow and plain on purpose.
// Included by constant folding, tests and `svod-jit run --interpret`. Knows no LLVM and no threads.
#ifndef SVOD_IR_EVALUATE_H_
#define SVOD_IR_EVALUATE_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/uop.h"

namespace svod {

// One elementwise op on scalars given as bits (see ConstArgument), lane by lane for the caller.
// `dtype` is the result's, `operand` that of the last source (they differ for casts, comparisons
// and where, whose first operand is a bool). Transcendentals are libm's in f64 (f64 ones in long
// double), rounded once. A conversion rounds the exact value once, whatever lies between: i32 or
// f64 to bf16 by way of a rounded f32 would be wrong. Operands are zero-extended, bools 0 or 1.
// Never fails: every elementwise op has a value for every input.
uint64_t EvaluateScalar(Op op, DType dtype, DType operand, absl::Span<const uint64_t> operands);

// The value that a REDUCE starts from: 0, 1, the dtype's lowest or highest (floats: infinities),
// all ones, 0.
uint64_t ReduceIdentity(ReduceKind kind, DType dtype);
Op ReduceOp(ReduceKind kind);    // the binary op that folds
Op ScatterOp(ScatterKind kind);  // the same for a SCATTER that does not just store

struct EvaluateOptions {
  absl::Span<const std::pair<std::string, int64_t>> variables;
  int64_t core_id = -1;                  // -1: all cores of the launch, one after another
  int64_t max_steps = int64_t{1} << 40;  // node evaluations before ResourceExhausted
};

// Runs a kernel on memory: buffers[slot] holds the PARAM of that slot, at least as many elements as
// its dimensions say for these variables; what lies beyond those is outside. All stages of a kernel
// can be run, REDUCE and transcendentals included. Choices that machine code shares:
//   A bool in memory is true when its byte is not 0; it is written as 0 or 1.
//   REG and LOCAL hold zeros when a core starts; cores run one after another.
//   A REDUCE folds at the end of each iteration of its innermost loop; f16 and bf16 accumulate in
//   f32 and round once, when the loops have ended.
// Errors: InvalidArgument for a missing or small buffer or a missing variable, OutOfRange for a
// variable outside its bounds, and whatever Linearize says; ResourceExhausted after max_steps.
absl::Status Evaluate(const UOp* sink, absl::Span<const absl::Span<std::byte>> buffers,
                      const EvaluateOptions& options = {});

// The value of an index expression of constants and variables, such as a launch size.
absl::StatusOr<int64_t> EvaluateIndex(const UOp* node,
                                      absl::Span<const std::pair<std::string, int64_t>> variables);

}  // namespace svod

#endif  // SVOD_IR_EVALUATE_H_
