// PackPanel: the loop action that copies what iterations share into scratch memory, in order.
// Included by loop_actions.cc only.
#ifndef SVOD_IR_PASSES_PACK_PANEL_H_
#define SVOD_IR_PASSES_PACK_PANEL_H_

#include "absl/status/statusor.h"
#include "ir/pass.h"

namespace svod {

// Loop `axis`, i, has just one loop inside it, j:
//   for i { for j { sums over k of ... b[k, j] ... } }
// becomes
//   for j { for k { panel[k] = b[k, j] }  for i { sums over k of ... panel[k] ... } }
// for each vector load of a parameter in a REDUCE that does not depend on i. The panel is a LOCAL
// of vectors' elements. No value changes. Errors: InvalidArgument, saying why, when loops do not
// nest so, nothing is shared, or the panel would take more than kMaxPanelBytes. Source: packing in
// GotoBLAS (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008).
inline constexpr int64_t kMaxPanelBytes = int64_t{1} << 18;
absl::StatusOr<const UOp*> PackPanel(const UOp* sink, int64_t axis, PassContext& context);

}  // namespace svod

#endif  // SVOD_IR_PASSES_PACK_PANEL_H_
