#include "jit/found_actions.h"

#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ir/passes/apply_actions.h"

namespace svod {
namespace {

constexpr absl::string_view kMeasurements = "measurements ", kActions = "actions ";
constexpr absl::string_view kChosen = "as chosen";

// The processor's name in full, which tells machines apart that run the same code at other speeds;
// "" where the system does not say.
const std::string& ProcessorName() {
  static const std::string* const name = [] {
    auto* found = new std::string;
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; found->empty() && std::getline(file, line);) {
      if (absl::StartsWith(line, "model name")) *found = line;
    }
    return found;
  }();
  return *name;
}

}  // namespace

std::string FoundActionsKey(const KernelKey& source, const Target& target) {
  return absl::StrCat("found actions\nmachine ", ProcessorName(), " caches ", target.l1_bytes, " ",
                      target.l2_bytes, " ", target.last_level_bytes, "\n", *source.text);
}

std::string EncodeFoundActions(const FoundActions& found) {
  return absl::StrCat(kMeasurements, found.measurements, "\n", kActions,
                      found.actions.has_value() ? ToString(*found.actions) : std::string(kChosen),
                      "\n");
}

std::optional<FoundActions> DecodeFoundActions(absl::string_view text) {
  FoundActions found;
  const size_t end = text.find('\n');
  if (end == absl::string_view::npos) return std::nullopt;
  absl::string_view first = text.substr(0, end), second = text.substr(end + 1);
  if (!absl::ConsumePrefix(&first, kMeasurements) ||
      !absl::SimpleAtoi(first, &found.measurements) || !absl::ConsumePrefix(&second, kActions) ||
      !absl::ConsumeSuffix(&second, "\n")) {
    return std::nullopt;
  }
  if (second == kChosen) return found;
  absl::StatusOr<std::vector<LoopAction>> actions = ParseLoopActions(second);
  if (!actions.ok()) return std::nullopt;
  found.actions = *std::move(actions);
  return found;
}

}  // namespace svod
