#include "ir/debug_options.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace svod {
namespace {

absl::Status BadValue(absl::string_view name, absl::string_view value, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("environment: ", name, ", got '", value, "', expected ", expected));
}

}  // namespace

absl::StatusOr<DebugOptions> ParseDebugOptions(
    absl::FunctionRef<const char*(const char* name)> get) {
  DebugOptions options;
  auto value_of = [&](const char* name) {
    const char* value = get(name);
    return absl::string_view(value == nullptr ? "" : value);
  };
  absl::string_view level = value_of("SVOD_DEBUG");
  if (!level.empty() &&
      (!absl::SimpleAtoi(level, &options.level) || options.level < 0 || options.level > 5)) {
    return BadValue("SVOD_DEBUG", level, "0 to 5, such as SVOD_DEBUG=3");
  }
  options.dump_directory = std::string(value_of("SVOD_DUMP"));
  absl::string_view verify = value_of("SVOD_VERIFY");
  if (verify == "off") {
    options.verify = VerifyLevel::kOff;
  } else if (verify == "each") {
    options.verify = VerifyLevel::kEach;
  } else if (!verify.empty() && verify != "stages") {
    return BadValue("SVOD_VERIFY", verify, "off, stages or each, such as SVOD_VERIFY=each");
  }
  options.home_directory = std::string(value_of("HOME"));
  options.cache_directory = std::string(value_of("XDG_CACHE_HOME"));
  if (options.cache_directory.empty() && !options.home_directory.empty()) {
    options.cache_directory = options.home_directory + "/.cache";
  }
  options.trace_file = std::string(value_of("SVOD_TRACE"));
  for (absl::string_view event :
       absl::StrSplit(value_of("SVOD_JIT_EVENTS"), ',', absl::SkipEmpty())) {
    if (event == "gdb") {
      options.gdb_events = true;
    } else if (event == "perfmap") {
      options.perfmap_events = true;
    } else {
      return BadValue("SVOD_JIT_EVENTS", event,
                      "gdb and perfmap, such as SVOD_JIT_EVENTS=gdb,perfmap");
    }
  }
  return options;
}

const absl::StatusOr<DebugOptions>& EnvironmentDebugOptions() {
  static const auto& options = *new absl::StatusOr<DebugOptions>(
      ParseDebugOptions([](const char* name) -> const char* { return std::getenv(name); }));
  return options;
}

absl::Status WriteDump(const DebugOptions& options, absl::string_view folder,
                       absl::string_view file, absl::string_view text) {
  if (options.dump_directory.empty()) return absl::OkStatus();
  std::filesystem::path path(options.dump_directory);
  path /= std::string(folder);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  path /= std::string(file);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.flush();
  if (!out)
    return absl::FailedPreconditionError(absl::StrCat(path.string(), ": cannot write the dump"));
  return absl::OkStatus();
}

}  // namespace svod
