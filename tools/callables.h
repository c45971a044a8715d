// Callables: the ops and operators that expressions may call, for help and completion.
// Included by the REPL. Must not run anything.
#ifndef SVOD_TOOLS_CALLABLES_H_
#define SVOD_TOOLS_CALLABLES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace svod {

// In the order of names, each once.
const std::vector<std::string>& CallableNames();
// The names in lines of less than 100 columns.
std::string CallablesInColumns();
// "softmax(x, axis=-1) gives y", what it means and how shapes follow; of an op its meaning.
// Errors: InvalidArgument for a name that neither has.
absl::StatusOr<std::string> DescribeCallable(absl::string_view name);

}  // namespace svod

#endif  // SVOD_TOOLS_CALLABLES_H_
