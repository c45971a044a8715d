// Pass: the signature that every UOp rewrite of a whole kernel has, and what passes share.
// Included by ir/passes, the pipeline and jit/. Must not name single passes.
#ifndef SVOD_IR_PASS_H_
#define SVOD_IR_PASS_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ir/ranges.h"
#include "ir/uop.h"

namespace svod {

// Handed from pass to pass of one kernel. One thread at a time.
struct PassContext {
  explicit PassContext(Context& c) : context(c) {}

  Context& context;  // new nodes are made here; the root must be of this context
  RangeAnalysis ranges;
  absl::flat_hash_map<std::string, int64_t> rule_hits;  // by rule name, for coverage
};

// A pass takes the SINK of a kernel and gives the SINK of an equal one: the interpreter computes
// the same bits from both, unless the pass is documented to change them
// (contract-mulacc, decompose-transcendentals).
// Errors: Internal when it meets what its `needs` excludes; the kernel given is never changed.
using PassFunction = absl::StatusOr<const UOp*> (*)(const UOp* root, PassContext& context);

}  // namespace svod

#endif  // SVOD_IR_PASS_H_
