// StreamStores: the loop action that has a loop's vectors stored past the caches.
// Included by loop_actions.cc only.
#ifndef SVOD_IR_PASSES_STREAM_STORES_H_
#define SVOD_IR_PASSES_STREAM_STORES_H_

#include "absl/status/statusor.h"
#include "ir/pass.h"

namespace svod {

// Marks every store of a whole vector that loop `axis` makes to a parameter which the kernel does
// not load. What is stored does not change. Errors: InvalidArgument, saying why, when there is no
// such loop or no such store.
absl::StatusOr<const UOp*> StreamStores(const UOp* sink, int64_t axis, PassContext& context);

}  // namespace svod

#endif  // SVOD_IR_PASSES_STREAM_STORES_H_
