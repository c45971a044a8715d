#include "tools/flags.h"

#include <algorithm>
#include <map>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

ABSL_FLAG(double, atol, 0, "largest absolute difference from --expected_output that passes");
ABSL_FLAG(double, rtol, 0, "largest difference relative to the expected value that passes");
ABSL_FLAG(std::string, cache_dir, "",
          "directory of compiled kernels; 'off' for none; empty for the user's cache directory");
ABSL_FLAG(std::string, cpu, "", "target CPU as LLVM names it, such as haswell; empty for the host");
ABSL_FLAG(
    svod::RepeatedFlag, dim, {},
    "bounds of a symbolic dimension of an ONNX model: NAME=LEAST..MOST, NAME=LEAST..MOST..STEP "
    "or NAME=SIZE");
ABSL_FLAG(std::string, emit, "uops", "what to print: scheduled, uops, llvm or asm");
ABSL_FLAG(svod::RepeatedFlag, expected_output, {},
          "tensor that an output must equal, in order or as NAME=TENSOR");
ABSL_FLAG(std::string, features, "", "target features to add or drop, such as +avx2,-fma");
ABSL_FLAG(std::string, function, "",
          "one function of the file; without it run, bench and the REPL take the main program, "
          "opt and info all functions and lower all kernels");
ABSL_FLAG(svod::RepeatedFlag, input, {},
          "an input tensor, in order or as NAME=TENSOR: 2x3xf32=1,2,3,4,5,6  4xf32=iota  "
          "4xf32=random(7)  @file.npy");
ABSL_FLAG(bool, interpret, false, "run in the reference interpreter instead of compiled code");
ABSL_FLAG(svod::RepeatedFlag, opts, {},
          "loop actions of every kernel, or of one as KERNEL=ACTIONS, instead of chosen ones, such "
          "as '[upcast(2, 8), unroll(1, 4)]'; 'auto' chooses them for kernels of a text, too");
ABSL_FLAG(svod::RepeatedFlag, output, {},
          "file for an output instead of printing it, in order or as NAME=@file.npy");
ABSL_FLAG(std::string, passes, "", "names of passes, separated by commas, to run in that order");
ABSL_FLAG(bool, profile, false, "print the time of every kernel to standard error");
ABSL_FLAG(int, repeat, 1, "how many times to execute; bench: at least that many");
ABSL_FLAG(int, search, 0,
          "times up to that many other forms of each kernel and keeps the fastest; 0 for none");
ABSL_FLAG(bool, serial, false, "run everything on one thread in order of the plan, to bisect with");
ABSL_FLAG(int, threads, 0, "threads that execute and compile; 0 for one a core");
ABSL_FLAG(std::string, trace, "", "file for a Chrome trace of the last execution");
ABSL_FLAG(std::string, triple, "", "target triple for printing code; empty for the host");
ABSL_FLAG(svod::RepeatedFlag, var, {}, "value of a variable, as NAME=NUMBER");
ABSL_FLAG(double, winograd_error, 0,
          "largest error of 3 x 3 convolutions, relative to what their products can sum up to, for "
          "the sake of fewer products; 0 for sums as they are written");

namespace svod {
namespace {

// Occurrences travel through Abseil's one text value, apart by a character that no value holds.
constexpr char kSeparator = '\n';
constexpr absl::string_view kUsagePayload = "svod/usage";

bool IsRepeated(const absl::CommandLineFlag& flag) { return flag.IsOfType<RepeatedFlag>(); }

}  // namespace

bool AbslParseFlag(absl::string_view text, RepeatedFlag* flag, std::string*) {
  flag->values.clear();
  if (!text.empty()) flag->values = absl::StrSplit(text, kSeparator);
  return true;
}

std::string AbslUnparseFlag(const RepeatedFlag& flag) {
  return absl::StrJoin(flag.values, std::string(1, kSeparator));
}

absl::Status UsageError(absl::string_view message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kUsagePayload, absl::Cord("1"));
  return status;
}

int ExitCode(const absl::Status& status) {
  if (status.ok()) return 0;
  if (status.GetPayload(kUsagePayload).has_value()) return 2;
  return status.code() == absl::StatusCode::kInternal ? 3 : 1;
}

absl::StatusOr<std::vector<std::string>> ParseFlags(absl::Span<const std::string> arguments,
                                                    absl::Span<const absl::string_view> allowed) {
  std::vector<std::string> positional;
  std::map<std::string, std::vector<std::string>> repeated;
  bool flags_ended = false;
  for (const std::string& argument : arguments) {
    absl::string_view rest = argument;
    if (flags_ended || rest == "-" || !absl::ConsumePrefix(&rest, "-")) {
      positional.push_back(argument);
      continue;
    }
    absl::ConsumePrefix(&rest, "-");
    if (rest.empty()) {
      flags_ended = true;
      continue;
    }
    size_t equals = rest.find('=');
    bool has_value = equals != absl::string_view::npos;
    std::string name(rest.substr(0, equals));
    std::string value = has_value ? std::string(rest.substr(equals + 1)) : "true";

    absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    if (flag == nullptr && !has_value && absl::StartsWith(name, "no")) {
      name = name.substr(2);
      flag = absl::FindCommandLineFlag(name);
      value = "false";
      if (flag != nullptr && !flag->IsOfType<bool>()) flag = nullptr;
    }
    if (flag == nullptr || std::find(allowed.begin(), allowed.end(), name) == allowed.end()) {
      std::string known = absl::StrJoin(allowed, ", --");
      return UsageError(absl::StrCat("flag, got ", argument, ", expected one of --", known));
    }
    if (!has_value && !flag->IsOfType<bool>()) {
      return UsageError(
          absl::StrCat("flag --", name, ": got no value, expected --", name, "=VALUE"));
    }
    if (IsRepeated(*flag)) {
      if (absl::StrContains(value, kSeparator)) {
        return UsageError(absl::StrCat("flag --", name, ": value, got a line break"));
      }
      repeated[name].push_back(value);
      continue;
    }
    std::string error;
    if (!flag->ParseFrom(value, &error)) {
      return UsageError(absl::StrCat("flag --", name, ": got '", value, "': ", error));
    }
  }
  for (const auto& [name, values] : repeated) {
    std::string error;
    absl::FindCommandLineFlag(name)->ParseFrom(absl::StrJoin(values, std::string(1, kSeparator)),
                                               &error);
  }
  return positional;
}

std::string FlagHelp(absl::Span<const absl::string_view> names) {
  std::string help;
  for (absl::string_view name : names) {
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    if (flag == nullptr) continue;
    std::string left = absl::StrCat("  --", name, flag->IsOfType<bool>() ? "" : "=...");
    left.resize(std::max<size_t>(left.size() + 1, 24), ' ');
    absl::StrAppend(&help, left, flag->Help(), IsRepeated(*flag) ? " (may be repeated)" : "", "\n");
  }
  return help;
}

}  // namespace svod
