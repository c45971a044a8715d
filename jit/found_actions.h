// FoundActions: what a timed search found for a kernel, as the disk tier keeps it.
// Included by the kernel cache, the search and tests. Names nothing of LLVM.
#ifndef SVOD_JIT_FOUND_ACTIONS_H_
#define SVOD_JIT_FOUND_ACTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ir/passes/loop_actions.h"
#include "jit/kernel_key.h"

namespace svod {

struct FoundActions {
  int measurements = 0;  // what the search was allowed
  // Instead of the chosen ones; nothing where those were not beaten.
  std::optional<std::vector<LoopAction>> actions;
};

// The note's key: of the kernel's source, and of the machine beyond what that says of its target.
std::string FoundActionsKey(const KernelKey& source, const Target& target);
std::string EncodeFoundActions(const FoundActions& found);
// Nothing for a text that is no such note.
std::optional<FoundActions> DecodeFoundActions(absl::string_view text);

}  // namespace svod

#endif  // SVOD_JIT_FOUND_ACTIONS_H_
