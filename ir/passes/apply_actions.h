// The pass apply-actions: does the loop actions that a kernel's opts ask for, as a text may.
// Included by the pipeline, the choice of actions, plan/ and tools. Must not know targets.
#ifndef SVOD_IR_PASSES_APPLY_ACTIONS_H_
#define SVOD_IR_PASSES_APPLY_ACTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/pass.h"
#include "ir/passes/loop_actions.h"
#include "ir/program.h"

namespace svod {

// Among a kernel's opts: the items after it are loop actions that are still to be done, in that
// order, and no others. Items of opts without it have been done.
inline constexpr absl::string_view kApplyOpt = "apply";

// Whether a SINK has `opt` among its opts.
bool HasOpt(const UOp* sink, absl::string_view opt);

// "upcast(0, 16), unroll(1, 4)", with or without the brackets of opts around it.
// Errors: InvalidArgument, as ParseLoopAction has them, of the first that is none.
absl::StatusOr<std::vector<LoopAction>> ParseLoopActions(absl::string_view text);
// "[upcast(0, 16), unroll(1, 4)]".
std::string ToString(absl::Span<const LoopAction> actions);

// The kernel with kApplyOpt and these actions in place of kAutoOpt, or of actions that were still
// to be done; its other opts stay. Made in `context`, which the kernel is of.
const UOp* WithActions(const UOp* sink, absl::Span<const LoopAction> actions, Context& context);
// The kernel with kAutoOpt, likewise.
const UOp* WithChoice(const UOp* sink, Context& context);

// A kernel with kApplyOpt is simplified and has its actions done, and so it is, text and all, what
// it would be if they had been chosen for it; others come back as they are.
// Errors: InvalidArgument, as ApplyLoopAction has them, when an action is not legal, or no action.
absl::StatusOr<const UOp*> RunApplyActions(const UOp* root, PassContext& context);

// Whether a verified kernel's actions can be done.
// Errors: those of RunApplyActions, after the place of the kernel in its text, "file:3:8: ".
absl::Status CheckActions(const Function& kernel);

}  // namespace svod

#endif  // SVOD_IR_PASSES_APPLY_ACTIONS_H_
