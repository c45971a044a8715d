// Workload: a row of svod-bench as a tensor graph, with its operands and what it costs at least.
// Included by the bench's sources only.
#ifndef SVOD_TOOLS_BENCH_WORKLOAD_H_
#define SVOD_TOOLS_BENCH_WORKLOAD_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ir/program.h"
#include "ir/tensor_builder.h"
#include "tools/bench/inputs.h"

namespace svod::bench {

// What a row is, for peers that have a function for it; they read sizes from the operands.
enum class WorkKind : uint8_t {
  kOther,
  kMatmul,  // [b, m, k] or [m, k] times [b, k, n] or [k, n]
  kRelu,    // max(x * w + b, 0)
  kChain,   // tanh(1.7 x + 0.3) * sigmoid(c)
  kGelu,    // 0.5 x (1 + erf(x / sqrt(2)))
  kExp,
  kSum,        // of all elements
  kSoftmax,    // along the last of two dimensions
  kLayerNorm,  // the same
  kConvolution,
  kAttention,  // [b, l, d] each
};

struct Workload {
  std::string row;
  std::string group = {};  // "matmul", "elementwise", ...: headings of tables
  WorkKind kind = WorkKind::kOther;
  std::vector<Operand> operands = {};
  std::function<const UOp*(TensorBuilder&, const std::vector<const UOp*>&)> build = {};
  double flops = 0;
  // What must be read and written at least.
  double read_bytes = 0, written_bytes = 0;
  int64_t stride = 1, padding = 0, groups = 1;  // of convolutions
  double winograd_error = 0;                    // see ScheduleOptions
  bool is_extra = false;  // not one of the rows that peers outside this program run
};

// All of them, in the order in which they are run.
const std::vector<Workload>& Workloads();

// The graph of a workload, its operands as parameters by their names.
Module BuildGraph(const Workload& workload);

// A product x [b,] m, k times y [b,] k, n of hashed operands.
struct ProductOptions {
  bool transpose_x = false, transpose_y = false;
  DType dtype = Scalar::kF32;
  std::optional<DType> result = std::nullopt;
};
Workload MatmulWorkload(absl::string_view row, std::vector<int64_t> x, std::vector<int64_t> y,
                        const ProductOptions& options = {});

// A convolution of x n, c, h, w with w o, c / groups, kh, kw of hashed operands.
Workload ConvolutionWorkload(absl::string_view row, std::vector<int64_t> x, std::vector<int64_t> w,
                             int64_t stride, int64_t padding, int64_t groups);

// The parts of Workloads.
void AddKernelWorkloads(std::vector<Workload>* workloads);
void AddModelWorkloads(std::vector<Workload>* workloads);
void AddExtraWorkloads(std::vector<Workload>* workloads);

}  // namespace svod::bench

#endif  // SVOD_TOOLS_BENCH_WORKLOAD_H_
