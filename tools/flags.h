// Command-line flags: declarations, and the parser that gives each command only its own.
// Included by commands and main. The flags themselves are Abseil flags, defined in flags.cc only.
#ifndef SVOD_TOOLS_FLAGS_H_
#define SVOD_TOOLS_FLAGS_H_

#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace svod {

// A flag that may be given several times.
struct RepeatedFlag {
  std::vector<std::string> values;
};
bool AbslParseFlag(absl::string_view text, RepeatedFlag* flag, std::string* error);
std::string AbslUnparseFlag(const RepeatedFlag& flag);

// Reads `arguments` (without the program and command names). `allowed` names the command's flags.
// A flag is --name=value, or --name / --noname for a bool; "--" ends the flags. Gives what is left,
// in order.
// Errors: UsageError for a flag that is unknown, not this command's, or has a bad value.
absl::StatusOr<std::vector<std::string>> ParseFlags(absl::Span<const std::string> arguments,
                                                    absl::Span<const absl::string_view> allowed);

// "  --input    what it does" for each.
std::string FlagHelp(absl::Span<const absl::string_view> names);

// InvalidArgument marked as a mistake on the command line, not in a program.
absl::Status UsageError(absl::string_view message);

// 0 ok, 1 the program or a comparison failed, 2 usage, 3 a bug of ours (Internal).
int ExitCode(const absl::Status& status);

}  // namespace svod

ABSL_DECLARE_FLAG(double, atol);
ABSL_DECLARE_FLAG(double, rtol);
ABSL_DECLARE_FLAG(std::string, cache_dir);
ABSL_DECLARE_FLAG(std::string, cpu);
ABSL_DECLARE_FLAG(svod::RepeatedFlag, dim);
ABSL_DECLARE_FLAG(std::string, emit);
ABSL_DECLARE_FLAG(svod::RepeatedFlag, expected_output);
ABSL_DECLARE_FLAG(std::string, features);
ABSL_DECLARE_FLAG(std::string, function);
ABSL_DECLARE_FLAG(svod::RepeatedFlag, input);
ABSL_DECLARE_FLAG(bool, interpret);
ABSL_DECLARE_FLAG(svod::RepeatedFlag, opts);
ABSL_DECLARE_FLAG(svod::RepeatedFlag, output);
ABSL_DECLARE_FLAG(std::string, passes);
ABSL_DECLARE_FLAG(bool, profile);
ABSL_DECLARE_FLAG(int, repeat);
ABSL_DECLARE_FLAG(int, search);
ABSL_DECLARE_FLAG(bool, serial);
ABSL_DECLARE_FLAG(int, threads);
ABSL_DECLARE_FLAG(std::string, trace);
ABSL_DECLARE_FLAG(std::string, triple);
ABSL_DECLARE_FLAG(svod::RepeatedFlag, var);
ABSL_DECLARE_FLAG(double, winograd_error);

#endif  // SVOD_TOOLS_FLAGS_H_
