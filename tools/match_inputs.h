// MatchInputs: which of the inputs that something wants each given one is.
// Included by the tool and the importer of models. Must not know tensors.
#ifndef SVOD_TOOLS_MATCH_INPUTS_H_
#define SVOD_TOOLS_MATCH_INPUTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace svod {

struct WantedInput {
  std::string name;
  std::string type;  // as messages show it
};

// The position among `wanted` of each given input, by its name; "" stands for the first that none
// before it is. Every wanted one is given.
// Errors: InvalidArgument for one that is missing, unknown or given twice, naming those wanted.
absl::StatusOr<std::vector<size_t>> MatchInputNames(absl::Span<const WantedInput> wanted,
                                                    absl::Span<const std::string> given);

}  // namespace svod

#endif  // SVOD_TOOLS_MATCH_INPUTS_H_
