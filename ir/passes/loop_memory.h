// What the stores in a loop reach: StoresApart and FillsScratch.
// Included by loop actions and by code generation. Must not change nodes.
#ifndef SVOD_IR_PASSES_LOOP_MEMORY_H_
#define SVOD_IR_PASSES_LOOP_MEMORY_H_

#include "absl/container/flat_hash_set.h"
#include "ir/ranges.h"
#include "ir/uop.h"

namespace svod {

// Whether different iterations of `loop` never store to one place. `inside`: the loops in it.
// `other`, if not null: a store to the same buffer that may not meet this one of another iteration
// either. False when it is not known.
bool StoresApart(const UOp* store, const UOp* loop, const absl::flat_hash_set<const UOp*>& inside,
                 RangeAnalysis& ranges, const UOp* other = nullptr);

// Whether the loops that END node `end` closes store to every element of a scratch array, whatever
// it held before. False when it is not known.
bool FillsScratch(const UOp* end, const UOp* scratch, RangeAnalysis& ranges);

// Whether a LOAD reads a scratch array in a state that loops have filled as above. `fill`, if not
// null, gets the END of those loops.
bool LoadsFilledScratch(const UOp* load, RangeAnalysis& ranges, const UOp** fill = nullptr);

}  // namespace svod

#endif  // SVOD_IR_PASSES_LOOP_MEMORY_H_
