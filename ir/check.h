// SVOD_DCHECK: guards our own invariants in debug builds; never user input.
// Included by .cc files. In release builds it compiles to nothing.
#ifndef SVOD_IR_CHECK_H_
#define SVOD_IR_CHECK_H_

#include <cassert>

#define SVOD_DCHECK(condition) assert(condition)

#endif  // SVOD_IR_CHECK_H_
