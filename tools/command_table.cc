#include "tools/command_table.h"

#include "absl/strings/str_cat.h"
#include "ir/status_macros.h"
#include "tools/flags.h"
#include "tools/report.h"

namespace svod {
namespace {

const Command* FindCommand(absl::string_view name) {
  for (const Command& command : Commands()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

std::string HelpText() {
  std::string text =
      "svod-jit compiles tensor programs and runs them.\n\n"
      "  svod-jit COMMAND [--flag=value]... [FILE]      FILE - is standard input\n\n";
  for (const Command& command : Commands()) {
    std::string name(command.name);
    name.resize(8, ' ');
    absl::StrAppend(&text, "  ", name, command.summary, "\n");
  }
  absl::StrAppend(&text,
                  "\n  svod-jit COMMAND --help says more; --version names LLVM and the CPU.\n"
                  "Exit codes: 0 ok, 1 the program or a comparison failed, 2 usage, 3 a bug of "
                  "svod-jit.\n");
  return text;
}

std::string HelpText(const Command& command) {
  return absl::StrCat("svod-jit ", command.name, " ", command.usage, "\n  ", command.summary,
                      "\n\n", FlagHelp(command.flags));
}

absl::Status Dispatch(absl::Span<const std::string> arguments, CommandStreams& streams) {
  if (arguments.empty()) return UsageError("command, got none, see svod-jit --help");
  const std::string& first = arguments[0];
  if (first == "--help" || first == "-h" || first == "help") {
    streams.out << HelpText();
    return absl::OkStatus();
  }
  if (first == "--version") {
    SVOD_ASSIGN_OR_RETURN(std::string version, VersionText());
    streams.out << version;
    return absl::OkStatus();
  }
  const Command* command = FindCommand(first);
  if (command == nullptr) {
    std::string known;
    for (const Command& c : Commands()) absl::StrAppend(&known, known.empty() ? "" : ", ", c.name);
    return UsageError(absl::StrCat("command, got '", first, "', expected one of ", known));
  }
  for (const std::string& argument : arguments.subspan(1)) {
    if (argument == "--help") {
      streams.out << HelpText(*command);
      return absl::OkStatus();
    }
  }
  SVOD_ASSIGN_OR_RETURN(std::vector<std::string> files,
                        ParseFlags(arguments.subspan(1), command->flags));
  return command->run(files, streams);
}

}  // namespace

absl::Span<const Command> Commands() {
  static const auto* const kCommands = new std::vector<Command>{
      {"run",
       "[--flag=value]... FILE",
       "compiles a program, runs it and prints its outputs",
       {"input",     "output",   "expected_output", "atol",   "rtol",   "var",           "function",
        "interpret", "dim",      "threads",         "serial", "repeat", "profile",       "trace",
        "cpu",       "features", "cache_dir",       "opts",   "search", "winograd_error"},
       &RunRun},
      {"opt",
       "[--passes=NAME,...] FILE",
       "runs named passes (--passes=list names them) and prints the result",
       {"passes", "function", "opts"},
       &RunOpt},
      {"lower",
       "[--emit=scheduled|uops|llvm|asm] FILE",
       "prints what a kernel becomes, for any target",
       {"emit", "function", "cpu", "features", "triple", "opts", "winograd_error"},
       &RunLower},
      {"plan",
       "[--function=NAME] FILE",
       "prints the schedule of a graph: kernels, levels, buffers and places of values",
       {"function", "input", "dim", "winograd_error"},
       &RunPlan},
      {"bench",
       "[--flag=value]... FILE",
       "measures compiling and executing a program",
       {"input", "var", "function", "dim", "threads", "serial", "repeat", "cpu", "features",
        "cache_dir", "opts", "search", "winograd_error"},
       &RunBench},
      {"info",
       "[FILE]",
       "describes a program, or without one this machine and library",
       {"function", "dim"},
       &RunInfo},
      {"cache",
       "stats|clear",
       "shows or empties the directory of compiled kernels",
       {"cache_dir"},
       &RunCache},
      {"repl",
       "[FILE]",
       "reads definitions and commands line by line; :help lists them",
       {"threads", "serial", "cpu", "features", "cache_dir"},
       &RunRepl},
  };
  return *kCommands;
}

int RunCommandLine(absl::Span<const std::string> arguments, CommandStreams& streams) {
  absl::Status status = Dispatch(arguments, streams);
  streams.out.flush();
  if (status.ok() && !streams.out) {
    status = absl::UnavailableError("standard output cannot be written");
  }
  if (!status.ok()) streams.err << "svod-jit: " << status.message() << "\n";
  return ExitCode(status);
}

}  // namespace svod
