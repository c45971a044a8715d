// Pipeline: the passes by name, and the ones that every kernel goes through before lowering.
// Included by jit/ and tools/. Must not hold rules or passes.
#ifndef SVOD_IR_PIPELINE_H_
#define SVOD_IR_PIPELINE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/debug_options.h"
#include "ir/pass.h"

namespace svod {

// What a pass relies on, which the verifier can check.
enum class Property : uint8_t {
  kKernel,    // a verified kernel
  kNoReduce,  // one without REDUCE
};

struct PassInfo {
  const char* name;  // the only spelling: flag value, dump prefix, golden file
  PassFunction run;
  Property needs;
  const char* what;  // one line
};

absl::Span<const PassInfo> Passes();
// Null if there is none of that name.
const PassInfo* FindPass(absl::string_view name);
// Runs one pass on a kernel that has what the pass needs.
// Errors: InvalidArgument when it has not; the pass's own.
absl::StatusOr<const UOp*> RunPass(const PassInfo& pass, const UOp* root, PassContext& context);

struct PipelineOptions {
  // Fuses float x * y + z, which changes bits.
  bool contract_mulacc = false;
  const DebugOptions* debug = nullptr;  // null: the environment's
};

// Makes a kernel ready for lowering: simplified, without REDUCE and transcendentals, every access
// proved inside its buffer or gated. `sink` belongs to context.context and stays as it is.
// By default the kernel is verified before and after. With a dump directory, each step that changed
// something is written to kernel-<hash>/<number>-<pass>.uop before the next one runs.
// Errors: the verifier's for a bad kernel; Internal, with the failing kernel's text, for our bugs.
absl::StatusOr<const UOp*> OptimizeKernel(const UOp* sink, PassContext& context,
                                          const PipelineOptions& options = {});
absl::StatusOr<const UOp*> OptimizeKernel(const UOp* sink, Context& context,
                                          const PipelineOptions& options = {});

}  // namespace svod

#endif  // SVOD_IR_PIPELINE_H_
