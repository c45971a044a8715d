#include "tools/match_inputs.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace svod {

absl::StatusOr<std::vector<size_t>> MatchInputNames(absl::Span<const WantedInput> wanted,
                                                    absl::Span<const std::string> given) {
  auto names = [&] {
    return absl::StrJoin(wanted, ", ", [](std::string* out, const WantedInput& input) {
      absl::StrAppend(out, input.name, ": ", input.type);
    });
  };
  std::vector<bool> is_given(wanted.size(), false);
  std::vector<size_t> matched;
  for (const std::string& name : given) {
    size_t i = 0;
    while (i < wanted.size() && (name.empty() ? is_given[i] : wanted[i].name != name)) ++i;
    if (i == wanted.size()) {
      return absl::InvalidArgumentError(
          name.empty() ? absl::StrCat("inputs, got ", given.size(), ", expected ", wanted.size(),
                                      " (", names(), ")")
                       : absl::StrCat("input, got '", name, "', expected one of ", names()));
    }
    if (is_given[i]) {
      return absl::InvalidArgumentError(absl::StrCat("input ", wanted[i].name, " is given twice"));
    }
    is_given[i] = true;
    matched.push_back(i);
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (is_given[i]) continue;
    return absl::InvalidArgumentError(absl::StrCat("input ", wanted[i].name, ": ", wanted[i].type,
                                                   " is missing, expected (", names(), ")"));
  }
  return matched;
}

}  // namespace svod
