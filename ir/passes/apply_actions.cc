#include "ir/passes/apply_actions.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "ir/passes/simplify.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

using Opts = std::vector<absl::string_view>;

const UOp* WithOpts(const UOp* sink, const Opts& opts, Context& context) {
  absl::string_view name = sink->arg<FunctionArgument>().name;
  return context.Make(Op::kSink, sink->sources(), FunctionArgument{true, name, opts}).value();
}

// Where kApplyOpt stands; the number of opts when it does not.
size_t FindApply(const UOp* sink) {
  absl::Span<const absl::string_view> opts = sink->arg<FunctionArgument>().opts;
  return static_cast<size_t>(std::find(opts.begin(), opts.end(), kApplyOpt) - opts.begin());
}

// Opts that neither choose actions nor ask for some.
Opts OtherOpts(const UOp* sink) {
  Opts others;
  for (absl::string_view opt : sink->arg<FunctionArgument>().opts.subspan(0, FindApply(sink))) {
    if (opt != kAutoOpt) others.push_back(opt);
  }
  return others;
}

}  // namespace

bool HasOpt(const UOp* sink, absl::string_view opt) {
  absl::Span<const absl::string_view> opts = sink->arg<FunctionArgument>().opts;
  return std::find(opts.begin(), opts.end(), opt) != opts.end();
}

absl::StatusOr<std::vector<LoopAction>> ParseLoopActions(absl::string_view text) {
  absl::string_view rest = absl::StripAsciiWhitespace(text);
  if (absl::ConsumePrefix(&rest, "[") && !absl::ConsumeSuffix(&rest, "]")) {
    return absl::InvalidArgumentError(absl::StrCat("actions, got '", text, "', expected ']'"));
  }
  std::vector<LoopAction> actions;
  while (!(rest = absl::StripAsciiWhitespace(rest)).empty()) {
    const size_t end = std::min(rest.find(')'), rest.size() - 1) + 1;
    SVOD_ASSIGN_OR_RETURN(LoopAction action, ParseLoopAction(rest.substr(0, end)));
    actions.push_back(action);
    rest = absl::StripAsciiWhitespace(rest.substr(end));
    if (!rest.empty() && (!absl::ConsumePrefix(&rest, ",") || rest.empty())) {
      return absl::InvalidArgumentError(
          absl::StrCat("actions, got '", text, "', expected ',' between actions"));
    }
  }
  return actions;
}

std::string ToString(absl::Span<const LoopAction> actions) {
  auto append = [](std::string* out, const LoopAction& action) { *out += ToString(action); };
  return absl::StrCat("[", absl::StrJoin(actions, ", ", append), "]");
}

const UOp* WithActions(const UOp* sink, absl::Span<const LoopAction> actions, Context& context) {
  Opts opts = OtherOpts(sink);
  std::vector<std::string> texts;
  for (const LoopAction& action : actions) texts.push_back(ToString(action));
  opts.push_back(kApplyOpt);
  opts.insert(opts.end(), texts.begin(), texts.end());
  return WithOpts(sink, opts, context);
}

const UOp* WithChoice(const UOp* sink, Context& context) {
  Opts opts = OtherOpts(sink);
  opts.push_back(kAutoOpt);
  return WithOpts(sink, opts, context);
}

absl::StatusOr<const UOp*> RunApplyActions(const UOp* root, PassContext& context) {
  if (!HasOpt(root, kApplyOpt)) return root;
  Opts done = OtherOpts(root);
  SVOD_ASSIGN_OR_RETURN(const UOp* result, RunSimplify(root, context));
  std::vector<std::string> texts;
  for (absl::string_view opt : root->arg<FunctionArgument>().opts.subspan(FindApply(root) + 1)) {
    SVOD_ASSIGN_OR_RETURN(LoopAction action, ParseLoopAction(opt));
    SVOD_ASSIGN_OR_RETURN(result, ApplyLoopAction(result, action, context));
    texts.push_back(ToString(action));
  }
  done.insert(done.end(), texts.begin(), texts.end());
  return WithOpts(result, done, context.context);
}

absl::Status CheckActions(const Function& kernel) {
  if (!kernel.is_kernel() || !HasOpt(kernel.root, kApplyOpt)) return absl::OkStatus();
  Context context;  // the kernel's own stays as it is
  PassContext pass(context);
  absl::Status status = RunApplyActions(context.Import(kernel.root), pass).status();
  auto note = kernel.notes.find(kernel.root);
  if (status.ok() || note == kernel.notes.end() || note->second.line == 0) return status;
  return Annotate(status,
                  absl::StrCat(kernel.file, ":", note->second.line, ":", note->second.column));
}

}  // namespace svod
