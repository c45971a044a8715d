// transpose-loads: loads of columns of a square become loads of its rows, transposed in registers.
// Included by the pipeline and tests. Must not know loop actions.
#ifndef SVOD_IR_PASSES_TRANSPOSE_LOADS_H_
#define SVOD_IR_PASSES_TRANSPOSE_LOADS_H_

#include "absl/status/statusor.h"
#include "ir/pass.h"

namespace svod {

// n loads of n lanes each from a parameter that is only read, ungated, where lane l of load j is at
// position p + j + s l with one p and stride s for all, become n loads of n neighbours and log2(n)
// steps in which pairs of them exchange halves, quarters, and so on. n is a power of two from 4 on,
// and n elements are at most 64 bytes. No bit changes, and nothing else is read.
// Source: Eklundh, "A Fast Computer Method for Matrix Transposing", IEEE Trans. Computers C-21
// (1972). Errors: Internal for what a kernel cannot hold.
absl::StatusOr<const UOp*> RunTransposeLoads(const UOp* root, PassContext& context);

}  // namespace svod

#endif  // SVOD_IR_PASSES_TRANSPOSE_LOADS_H_
