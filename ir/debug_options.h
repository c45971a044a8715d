// DebugOptions: what the environment says: the switches of SVOD_* variables and the user's folders.
// Included by the pipeline, jit/, executor/ and tools/. The only reader of the environment.
#ifndef SVOD_IR_DEBUG_OPTIONS_H_
#define SVOD_IR_DEBUG_OPTIONS_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace svod {

enum class VerifyLevel : uint8_t {
  kOff,
  kStages,  // what enters and what leaves the pipeline
  kEach,    // after every pass, too
};

struct DebugOptions {
  // SVOD_DEBUG=0..5: summary, kernel timings, schedule, UOps, LLVM IR, assembly; each adds to the
  // one before; -1: nothing.
  int level = -1;
  std::string dump_directory;                 // SVOD_DUMP=dir; "": no dumps
  VerifyLevel verify = VerifyLevel::kStages;  // SVOD_VERIFY=off|stages|each
  std::string trace_file;                     // SVOD_TRACE=t.json; "": no trace
  bool gdb_events = false;                    // SVOD_JIT_EVENTS=gdb,perfmap
  bool perfmap_events = false;

  // Where a user's files go: HOME, and XDG_CACHE_HOME or HOME/.cache; "" when unknown.
  std::string home_directory;
  std::string cache_directory;
};

// Parses what `get` gives for each variable; null is an unset one.
// Errors: InvalidArgument for an unknown value, with an example of a right one.
absl::StatusOr<DebugOptions> ParseDebugOptions(
    absl::FunctionRef<const char*(const char* name)> get);

// The process's own, parsed at the first call. Thread-safe.
const absl::StatusOr<DebugOptions>& EnvironmentDebugOptions();

// Writes dump_directory/folder/file and flushes it; makes the folder. Does nothing without a
// directory. Errors: FailedPrecondition, with the path, when it cannot be written.
absl::Status WriteDump(const DebugOptions& options, absl::string_view folder,
                       absl::string_view file, absl::string_view text);

}  // namespace svod

#endif  // SVOD_IR_DEBUG_OPTIONS_H_
