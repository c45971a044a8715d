// PackPanel: the loop action that computes what iterations share once, in order, in scratch memory.
// Included by loop_actions.cc only.
#ifndef SVOD_IR_PASSES_PACK_PANEL_H_
#define SVOD_IR_PASSES_PACK_PANEL_H_

#include "absl/status/statusor.h"
#include "ir/pass.h"

namespace svod {

// Operands of sums inside loop `axis`, i, that do not depend on its counter are the same in every
// iteration:
//   for i { for j { sum over k of a[i, k] * where(in(j + k), b[j + k], 0) } }
// becomes
//   for k { for j { panel[k, j] = where(in(j + k), b[j + k], 0) } }
//   for i { for j { sum over k of a[i, k] * panel[k, j] } }
// A panel is a LOCAL that holds what an operand is at each counter of the loops inside i that it
// depends on: dimensions of the loops j but the innermost `num_columns`, then of the sums'
// counters, then of those `num_columns`. A whole sum that is the same in every iteration gets a
// panel as well. A panel is filled in the innermost loop around i that the
// operand depends on, by loops whose axes are the next free ones in the order of the dimensions. No
// value changes. Errors: InvalidArgument, saying why, when there is no such loop, nothing is
// shared, or panels would take more than kMaxPanelBytes. Source: packing in GotoBLAS (Goto and van
// de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008), here of any expression, so
// of a convolution's windows as well.
inline constexpr int64_t kMaxPanelBytes = int64_t{1} << 19;
absl::StatusOr<const UOp*> PackPanel(const UOp* sink, int64_t axis, int64_t num_columns,
                                     PassContext& context);

}  // namespace svod

#endif  // SVOD_IR_PASSES_PACK_PANEL_H_
