#include "ir/pipeline.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/passes/apply_actions.h"
#include "ir/passes/contract_mulacc.h"
#include "ir/passes/decompose_transcendentals.h"
#include "ir/passes/fold_constants.h"
#include "ir/passes/fold_identities.h"
#include "ir/passes/guard_accesses.h"
#include "ir/passes/lower_reduce.h"
#include "ir/passes/simplify.h"
#include "ir/passes/simplify_ranges.h"
#include "ir/passes/transpose_loads.h"
#include "ir/status_macros.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace svod {
namespace {

constexpr PassInfo kPasses[] = {
    {"apply-actions", &RunApplyActions, Property::kKernel,
     "does the loop actions that a kernel's opts ask for"},
    {"contract-mulacc", &RunContractMulacc, Property::kKernel,
     "fuses float x * y + z; changes bits"},
    {"decompose-transcendentals", &RunDecomposeTranscendentals, Property::kKernel,
     "replaces exp, sin, pow, ... by arithmetic"},
    {"fold-constants", &RunFoldConstants, Property::kKernel, "computes what is constant"},
    {"fold-identities", &RunFoldIdentities, Property::kKernel,
     "algebra that holds for all values, such as x + 0"},
    {"guard-accesses", &RunGuardAccesses, Property::kNoReduce,
     "gates accesses that are not proved inside their buffers"},
    {"lower-reduce", &RunLowerReduce, Property::kKernel, "turns reductions into registers"},
    {"simplify", &RunSimplify, Property::kKernel,
     "fold-constants, fold-identities and simplify-ranges to one fixpoint"},
    {"simplify-ranges", &RunSimplifyRanges, Property::kKernel,
     "what follows from the ranges of integers"},
    {"transpose-loads", &RunTransposeLoads, Property::kKernel,
     "loads squares by rows and turns them in registers"},
};

// guard-accesses closes it, too: a gate that simplify rewrote may no longer be seen to be a proof.
constexpr const char* kKernelPipeline[] = {
    "simplify",       "transpose-loads", "lower-reduce",   "decompose-transcendentals",
    "guard-accesses", "simplify",        "guard-accesses",
};

// The necessary passes alone.
constexpr const char* kPlainPipeline[] = {"lower-reduce", "decompose-transcendentals",
                                          "guard-accesses"};

Function FunctionOf(const UOp* root) {
  Function function;
  function.root = root;
  return function;
}

absl::Status CheckNeeds(const PassInfo& pass, const UOp* root) {
  if (pass.needs == Property::kKernel) return absl::OkStatus();
  for (const UOp* node : Toposort(root)) {
    if (node->op() != Op::kReduce) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(pass.name, ": kernel, got a reduce, expected none; run lower-reduce before"));
  }
  return absl::OkStatus();
}

// An error of ours: with the kernel, so that it can be run again.
absl::Status Broken(const absl::Status& status, absl::string_view when, const UOp* root) {
  absl::StatusOr<std::string> text = Print(FunctionOf(root));
  return absl::InternalError(
      absl::StrCat("pipeline: ", when, ": ", status.message(), "\n", text.ok() ? *text : ""));
}

class Dumps {
 public:
  Dumps(const DebugOptions& debug, const UOp* sink)
      : debug_(debug), folder_(absl::StrCat("kernel-", ToString(sink->hash()))) {}

  absl::Status Write(absl::string_view step, const UOp* root) {
    if (debug_.dump_directory.empty()) return absl::OkStatus();
    SVOD_ASSIGN_OR_RETURN(std::string text, Print(FunctionOf(root)));
    return WriteDump(debug_, folder_, absl::StrFormat("%02d-%s.uop", number_, step), text);
  }
  void Next() { ++number_; }

 private:
  const DebugOptions& debug_;
  std::string folder_;
  int number_ = 0;
};

std::vector<const char*> NamesOf(absl::Span<const char* const> pipeline,
                                 const PipelineOptions& options) {
  std::vector<const char*> names;
  for (const char* name : pipeline) {
    bool is_decompose = absl::string_view(name) == "decompose-transcendentals";
    // Before the decompositions: their error bounds hold for the operations as written.
    if (options.contract_mulacc && is_decompose) names.push_back("contract-mulacc");
    names.push_back(name);
  }
  return names;
}

absl::StatusOr<const UOp*> RunAll(absl::Span<const char* const> names, const UOp* root,
                                  PassContext& context, const DebugOptions& debug, Dumps& dumps) {
  for (const char* name : names) {
    dumps.Next();
    absl::StatusOr<const UOp*> result = FindPass(name)->run(root, context);
    if (!result.ok()) return Broken(result.status(), name, root);
    if (*result == root) continue;
    root = *result;
    SVOD_RETURN_IF_ERROR(dumps.Write(name, root));
    if (debug.verify != VerifyLevel::kEach) continue;
    absl::Status status = Verify(FunctionOf(root));
    if (!status.ok()) return Broken(status, absl::StrCat("after ", name), root);
  }
  if (debug.verify != VerifyLevel::kOff) {
    absl::Status status = Verify(FunctionOf(root), {.lowerable = true});
    if (!status.ok()) return Broken(status, "result", root);
  }
  return root;
}

}  // namespace

absl::Span<const PassInfo> Passes() { return kPasses; }

const PassInfo* FindPass(absl::string_view name) {
  for (const PassInfo& pass : kPasses) {
    if (name == pass.name) return &pass;
  }
  return nullptr;
}

absl::StatusOr<const UOp*> RunPass(const PassInfo& pass, const UOp* root, PassContext& context) {
  SVOD_RETURN_IF_ERROR(CheckNeeds(pass, root));
  return pass.run(root, context);
}

absl::StatusOr<const UOp*> OptimizeKernel(const UOp* sink, PassContext& context,
                                          const PipelineOptions& options) {
  const DebugOptions* debug = options.debug;
  if (debug == nullptr) {
    SVOD_RETURN_IF_ERROR(EnvironmentDebugOptions().status());
    debug = &*EnvironmentDebugOptions();
  }
  if (debug->verify != VerifyLevel::kOff) SVOD_RETURN_IF_ERROR(Verify(FunctionOf(sink)));
  Dumps dumps(*debug, sink);
  SVOD_RETURN_IF_ERROR(dumps.Write("input", sink));

  absl::StatusOr<const UOp*> result =
      RunAll(NamesOf(kKernelPipeline, options), sink, context, *debug, dumps);
  if (result.ok()) return result;
  // The verifier wants to see that two accesses are apart, and a simpler position may hide it. The
  // kernel as it was written showed it.
  absl::StatusOr<const UOp*> plain =
      RunAll(NamesOf(kPlainPipeline, options), sink, context, *debug, dumps);
  return plain.ok() ? plain : result;
}

absl::StatusOr<const UOp*> OptimizeKernel(const UOp* sink, Context& context,
                                          const PipelineOptions& options) {
  PassContext pass(context);
  return OptimizeKernel(sink, pass, options);
}

}  // namespace svod
