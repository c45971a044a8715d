#include "executor/trace.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace svod {
namespace {

std::string JsonString(absl::string_view text) {
  std::string json = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      absl::StrAppend(&json, "\\", std::string(1, c));
    } else if (byte < 0x20) {
      absl::StrAppendFormat(&json, "\\u%04x", byte);
    } else {
      json += c;
    }
  }
  return json + "\"";
}

}  // namespace

std::string ChromeTrace(absl::Span<const KernelProfile> profiles) {
  std::string json = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
  const char* separator = "\n";
  for (const KernelProfile& profile : profiles) {
    absl::StrAppend(&json, separator, "{\"name\": ", JsonString(profile.kernel->name),
                    ", \"cat\": \"kernel\", \"ph\": \"X\", \"pid\": 1, \"tid\": ", profile.thread);
    absl::StrAppendFormat(&json, ", \"ts\": %.3f, \"dur\": %.3f",
                          static_cast<double>(profile.start_ns) / 1e3,
                          static_cast<double>(profile.elapsed_ns) / 1e3);
    absl::StrAppend(&json, ", \"args\": {\"id\": ", profile.id, ", \"op\": ", profile.op_index,
                    ", \"device\": ", JsonString(ToString(profile.device)),
                    ", \"buffers\": ", profile.num_buffers, ", \"global_size\": [",
                    profile.global_size[0], ", ", profile.global_size[1], ", ",
                    profile.global_size[2], "]}}");
    separator = ",\n";
  }
  absl::StrAppend(&json, "\n]}\n");
  return json;
}

}  // namespace svod
