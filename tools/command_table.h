// The commands of svod-jit in one table.
// Included by main and tests. Each command's work is in commands_*.cc.
#ifndef SVOD_TOOLS_COMMAND_TABLE_H_
#define SVOD_TOOLS_COMMAND_TABLE_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace svod {

// What a command reads and writes; the tests put strings there.
struct CommandStreams {
  std::istream& in;
  std::ostream& out;  // results
  std::ostream& err;  // messages
  bool is_terminal;   // a person types at `in`
};

struct Command {
  absl::string_view name;
  absl::string_view usage;    // what follows the name
  absl::string_view summary;  // one line
  std::vector<absl::string_view> flags;
  absl::Status (*run)(absl::Span<const std::string> files, CommandStreams& streams);
};

absl::Span<const Command> Commands();

// Runs `arguments` (the program's name left out) and gives the exit code: 0 ok, 1 the program or a
// comparison failed, 2 usage, 3 a bug of ours. Writes the error, if any, to streams.err.
int RunCommandLine(absl::Span<const std::string> arguments, CommandStreams& streams);

// The commands' functions, for the table.
absl::Status RunRun(absl::Span<const std::string> files, CommandStreams& streams);
absl::Status RunOpt(absl::Span<const std::string> files, CommandStreams& streams);
absl::Status RunLower(absl::Span<const std::string> files, CommandStreams& streams);
absl::Status RunPlan(absl::Span<const std::string> files, CommandStreams& streams);
absl::Status RunBench(absl::Span<const std::string> files, CommandStreams& streams);
absl::Status RunInfo(absl::Span<const std::string> files, CommandStreams& streams);
absl::Status RunCache(absl::Span<const std::string> files, CommandStreams& streams);
absl::Status RunRepl(absl::Span<const std::string> files, CommandStreams& streams);

}  // namespace svod

#endif  // SVOD_TOOLS_COMMAND_TABLE_H_
