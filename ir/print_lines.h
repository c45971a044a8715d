// LineChooser: which nodes of a function become lines of its text, and what these need not say.
// Included by the printer only. Must not write text.
#ifndef SVOD_IR_PRINT_LINES_H_
#define SVOD_IR_PRINT_LINES_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "ir/access_order.h"
#include "ir/linearize.h"
#include "ir/syntax.h"
#include "ir/uop.h"

namespace svod {

struct PrintLine {
  const UOp* node;
  int depth;                     // loops around it
  bool implies_effects = false;  // END, SINK: the builder finds the effects
  bool is_exact = false;         // LOAD, STORE: the builder would add an order
  const UOp* buffer = nullptr;   // LOAD, STORE: the state that the line names
};

struct PrintLines {
  std::vector<const UOp*> header;  // what the dimensions of parameters are made of
  std::vector<const UOp*> params;  // by slot
  std::vector<PrintLine> lines;    // with that of the SINK, unless it goes without saying
};

// Follows the kernel statement by statement, as KernelBuilder will when the text is parsed, so that
// an AFTER or a list of effects is only written where the builder would make another one.
// Errors: InvalidArgument for what has no text, and those of Linearize.
absl::StatusOr<PrintLines> ChooseLines(const UOp* root);

}  // namespace svod

#endif  // SVOD_IR_PRINT_LINES_H_
