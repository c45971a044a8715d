// Running tensor graphs in the reference interpreter, and how inputs find their parameters.
// Included by session.cc. Must not compile or print.
#ifndef SVOD_TOOLS_INTERPRET_GRAPH_H_
#define SVOD_TOOLS_INTERPRET_GRAPH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/program.h"
#include "plan/execution_plan.h"
#include "tools/session.h"

namespace svod {

// Which parameter each input is for: by name, else the next one without.
// Errors: InvalidArgument for inputs that are missing, too many, given twice or of another type,
// naming the parameter.
absl::StatusOr<std::vector<const PlanTensor*>> MatchInputs(absl::Span<const PlanTensor> parameters,
                                                           const std::vector<NamedTensor>& inputs);

// Runs a tensor graph element by element, `repeat` times on what the run before left. Results have
// the name of the parameter whose state they are, or of the value in the text, or out0, out1, ...
// Errors: those of MatchInputs and EvaluateGraph.
absl::StatusOr<RunResult> InterpretTensorGraph(const Function& graph, const RunRequest& request);

}  // namespace svod

#endif  // SVOD_TOOLS_INTERPRET_GRAPH_H_
