// Reference interpreter of tensor graphs: what every tensor op means, element by element.
// Included by tests and `svod-jit run --interpret`. Knows no kernels and no schedules.
#ifndef SVOD_IR_EVALUATE_GRAPH_H_
#define SVOD_IR_EVALUATE_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/program.h"

namespace svod {

// Elements in row-major order, as memory holds them.
struct TensorValue {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  int64_t num_elements() const;
  // Element i as bits (see ConstArgument).
  uint64_t BitsAt(int64_t i) const;
  void SetBitsAt(int64_t i, uint64_t bits);
};

struct EvaluateGraphOptions {
  absl::Span<const std::pair<std::string, int64_t>> variables;
  int64_t max_elements = int64_t{1} << 32;  // of all values together, before ResourceExhausted
};

// Runs a graph on `params` by slot, each of the shape that its PARAM has for these variables, and
// gives what the graph returns, in order. Parameters and buffers that are assigned to are changed
// in `params`; reads see the state that they name: those of the state before an ASSIGN never see
// it. BUFFERs start as zeros. CALLs run with the kernel interpreter (evaluate.h), COPY and
// BUFFER_VIEW on bytes. Arithmetic is EvaluateScalar's; a REDUCE_AXIS folds in row-major order of
// the axes, f16 and bf16 in f32 and rounded once at the end; a SCATTER goes through positions in
// row-major order. Errors: InvalidArgument for wrong parameters and shapes that do not fit;
// OutOfRange for variables outside their bounds; Unimplemented for CUSTOM_FUNCTION.
absl::StatusOr<std::vector<TensorValue>> EvaluateGraph(const Function& graph,
                                                       std::vector<TensorValue>& params,
                                                       const EvaluateGraphOptions& options = {});

}  // namespace svod

#endif  // SVOD_IR_EVALUATE_GRAPH_H_
