// Chrome trace: profiles as JSON for chrome://tracing and Perfetto.
// Included by tools/ and embedders. Formats only; writes no file.
#ifndef SVOD_EXECUTOR_TRACE_H_
#define SVOD_EXECUTOR_TRACE_H_

#include <string>

#include "absl/types/span.h"
#include "executor/executor.h"

namespace svod {

// One complete event per launch: name, start and length [us], thread, and the op's id, number of
// buffers and launch size as arguments. Ends with a newline.
std::string ChromeTrace(absl::Span<const KernelProfile> profiles);

}  // namespace svod

#endif  // SVOD_EXECUTOR_TRACE_H_
