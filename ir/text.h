// Text form: parses and prints programs. docs/text.md holds the grammar.
// Included by tools, tests and dumps. Must not run passes.
#ifndef SVOD_IR_TEXT_H_
#define SVOD_IR_TEXT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/program.h"

namespace svod {

// The functions that `text` holds, made in `context`. `file` is what messages call the text.
// Errors: InvalidArgument, "file:line:column: what, got X, expected Y", the source line and a caret
// under the token. Nothing of a text that fails is kept but nodes in the context.
// Graphs may call the kernels of `known` too, whose nodes must be of the same context; a kernel in
// the text hides a known one of its name. `known` may be null.
absl::StatusOr<Module> ParseModule(absl::string_view text, absl::string_view file,
                                   std::shared_ptr<Context> context, const Module* known = nullptr);

// A tensor that a line may use.
struct GivenTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
};
struct GraphLine {
  std::vector<std::string> names;  // of the results; none for an expression alone
  Function graph;
};
// One line of a graph on tensors that are given, as the REPL reads it: `y = relu(x * 2)`,
// `v, i = top_k x, k=5`, or an expression alone. Names of values may go without '%'. The graph has
// the tensors that its results depend on as parameters, in the order of `given`, and returns the
// results.
// Errors: those of ParseModule.
absl::StatusOr<GraphLine> ParseGraphLine(absl::string_view text, absl::string_view file,
                                         std::shared_ptr<Context> context,
                                         absl::Span<const GivenTensor> given);

// The canonical text: parsing it gives the same nodes. Node names come from the notes and are made
// unique; nameless nodes are %0, %1, ... in order.
// Errors: InvalidArgument when the kernel cannot be put in order (see Linearize).
absl::StatusOr<std::string> Print(const Function& function);
absl::StatusOr<std::string> Print(const Module& module);
// The same without any names but numbers and parameters: equal programs give equal text. It is what
// cache keys compare.
absl::StatusOr<std::string> PrintCanonical(const UOp* sink);

// One node for a message, its sources by op: "add(load, const 1:f32) : f32".
std::string Summarize(const UOp* node);

}  // namespace svod

#endif  // SVOD_IR_TEXT_H_
