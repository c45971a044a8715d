#include "tools/kernel_opts.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ir/passes/apply_actions.h"
#include "ir/status_macros.h"

namespace svod {

struct KernelOpts::Entry {
  std::string kernel;  // "": any
  bool is_auto = false;
  std::vector<LoopAction> actions;
  std::atomic<bool> is_used = false;
};

absl::StatusOr<KernelOpts> KernelOpts::Parse(absl::Span<const std::string> texts) {
  KernelOpts opts;
  for (absl::string_view text : texts) {
    auto entry = std::make_shared<Entry>();
    const size_t equals = text.find('=');
    if (equals != absl::string_view::npos) {
      absl::string_view name = text.substr(0, equals);
      absl::ConsumePrefix(&name, "@");
      entry->kernel = std::string(name);
      text.remove_prefix(equals + 1);
    }
    entry->is_auto = text == "auto" || text == "[auto]";
    if (!entry->is_auto) {
      auto actions = ParseLoopActions(text);
      SVOD_RETURN_IF_ERROR(Annotate(actions.status(), "flag --opts"));
      entry->actions = *std::move(actions);
    }
    opts.entries_.push_back(std::move(entry));
  }
  return opts;
}

const UOp* KernelOpts::Apply(const UOp* sink, Context& context) const {
  const Entry* fitting = nullptr;
  for (const std::shared_ptr<Entry>& entry : entries_) {
    const bool fits = entry->kernel.empty() || entry->kernel == sink->arg<FunctionArgument>().name;
    if (!fits) continue;
    entry->is_used = true;
    fitting = entry.get();
  }
  if (fitting == nullptr) return sink;
  sink = context.Import(sink);
  return fitting->is_auto ? WithChoice(sink, context)
                          : WithActions(sink, fitting->actions, context);
}

absl::Status KernelOpts::CheckUsed() const {
  for (const std::shared_ptr<Entry>& entry : entries_) {
    if (entry->kernel.empty() || entry->is_used) continue;
    return absl::NotFoundError(absl::StrCat("flag --opts: kernel, got '", entry->kernel,
                                            "', expected one of the program"));
  }
  return absl::OkStatus();
}

}  // namespace svod
