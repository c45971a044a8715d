// The rows of single kernels: products, elementwise chains, reductions, convolutions, attention.
#include "absl/strings/str_cat.h"
#include "ir/operators/activation.h"
#include "ir/operators/convolution.h"
#include "ir/operators/expression.h"
#include "ir/operators/matmul.h"
#include "ir/operators/normalization.h"
#include "ir/operators/reductions.h"
#include "tools/bench/check.h"
#include "tools/bench/workload.h"

namespace svod::bench {
namespace {

using Nodes = std::vector<const UOp*>;
using Dims = std::vector<int64_t>;

Operand Hashed(absl::string_view name, Dims dims, uint32_t seed) {
  return {std::string(name), Scalar::kF32, std::move(dims), {.seed = seed}};
}

void AddElementwise(std::vector<Workload>* out, absl::string_view tag, int64_t n) {
  const auto bytes = static_cast<double>(4 * n);
  auto add = [&](absl::string_view name, WorkKind kind, std::vector<Operand> operands, auto build) {
    const auto count = static_cast<double>(operands.size());
    out->push_back({.row = absl::StrCat(name, "_", tag),
                    .group = "elementwise",
                    .kind = kind,
                    .operands = std::move(operands),
                    .build = build,
                    .read_bytes = count * bytes,
                    .written_bytes = bytes});
  };
  add("relu", WorkKind::kRelu, {Hashed("x", {n}, 0), Hashed("w", {n}, 1), Hashed("b", {n}, 2)},
      [](TensorBuilder& b, const Nodes& in) { return Relu(b, b.Add(b.Mul(in[0], in[1]), in[2])); });
  add("chain", WorkKind::kChain, {Hashed("x", {n}, 0), Hashed("c", {n}, 1)},
      [](TensorBuilder& b, const Nodes& in) {
        Expression x(b, in[0]), gate(b, Sigmoid(b, in[1]));
        return (Tanh(x * 1.7 + 0.3) * gate).node();
      });
  if (n == 4096) return;
  add("gelu", WorkKind::kGelu, {Hashed("x", {n}, 0)}, [](TensorBuilder& b, const Nodes& in) {
    Expression x(b, in[0]);
    return (x * ((x * 0.70710678).Of(Op::kErf) + 1.0) * 0.5).node();
  });
  add("exp", WorkKind::kExp, {Hashed("x", {n}, 0)},
      [](TensorBuilder& b, const Nodes& in) { return Exp(Expression(b, in[0])).node(); });
}

void AddReductions(std::vector<Workload>* out) {
  const int64_t n = 4096;
  auto add = [&](absl::string_view row, WorkKind kind, Dims dims, double written, auto build) {
    out->push_back({.row = std::string(row),
                    .group = "reduction",
                    .kind = kind,
                    .operands = {Hashed("x", std::move(dims), 0)},
                    .build = build,
                    .read_bytes = 4.0 * n * n,
                    .written_bytes = written});
  };
  add("sum_16M", WorkKind::kSum, {n * n}, 4,
      [](TensorBuilder& b, const Nodes& in) { return Sum(b, in[0]); });
  add("rowsum", WorkKind::kOther, {n, n}, 4.0 * n,
      [](TensorBuilder& b, const Nodes& in) { return Sum(b, in[0], {.axes = {1}}); });
  add("colsum", WorkKind::kOther, {n, n}, 4.0 * n,
      [](TensorBuilder& b, const Nodes& in) { return Sum(b, in[0], {.axes = {0}}); });
  add("argmax", WorkKind::kOther, {n, n}, 8.0 * n,
      [](TensorBuilder& b, const Nodes& in) { return Argmax(b, in[0], 1); });

  const int64_t rows = 4096, columns = 1024;
  const double bytes = 4.0 * rows * columns;
  out->push_back({.row = "softmax",
                  .group = "reduction",
                  .kind = WorkKind::kSoftmax,
                  .operands = {Hashed("x", {rows, columns}, 0)},
                  .build = [](TensorBuilder& b, const Nodes& in) { return Softmax(b, in[0]); },
                  .read_bytes = bytes,
                  .written_bytes = bytes});
  out->push_back(
      {.row = "layernorm",
       .group = "reduction",
       .kind = WorkKind::kLayerNorm,
       .operands = {Hashed("x", {rows, columns}, 0), Hashed("g", {columns}, 1),
                    Hashed("b", {columns}, 2)},
       .build = [](TensorBuilder& b, const Nodes& in) { return LayerNorm(b, in[0], in[1], in[2]); },
       .read_bytes = bytes,
       .written_bytes = bytes});
}

void AddConvolutions(std::vector<Workload>* out) {
  out->push_back(ConvolutionWorkload("conv3x3", {1, 64, 56, 56}, {64, 64, 3, 3}, 1, 1, 1));
  out->push_back(ConvolutionWorkload("conv7x7s2", {1, 3, 224, 224}, {64, 3, 7, 7}, 2, 3, 1));
  out->push_back(ConvolutionWorkload("convdw", {1, 128, 56, 56}, {128, 1, 3, 3}, 1, 1, 128));
}

void AddAttention(std::vector<Workload>* out) {
  const int64_t heads = 12, length = 256, depth = 64;
  const double bytes = 4.0 * heads * length * depth;
  out->push_back(
      {.row = "attn",
       .group = "attention",
       .kind = WorkKind::kAttention,
       .operands = {Hashed("q", {heads, length, depth}, 0), Hashed("k", {heads, length, depth}, 1),
                    Hashed("v", {heads, length, depth}, 2)},
       .build =
           [](TensorBuilder& b, const Nodes& in) {
             Expression scores(b, Matmul(b, in[0], in[1], {.transpose_y = true}));
             return Matmul(b, Softmax(b, scores * 0.125), in[2]);
           },
       .flops = 4.0 * heads * length * length * depth,
       .read_bytes = 3 * bytes,
       .written_bytes = bytes});
}

}  // namespace

Workload ConvolutionWorkload(absl::string_view row, Dims x, Dims w, int64_t stride, int64_t padding,
                             int64_t groups) {
  const int64_t size = (x[2] + 2 * padding - w[2]) / stride + 1;
  const double results = static_cast<double>(w[0] * size * size);
  Workload workload = {.row = std::string(row),
                       .group = "conv",
                       .kind = WorkKind::kConvolution,
                       .operands = {Hashed("x", x, 0), Hashed("w", w, 7)},
                       .flops = 2 * results * static_cast<double>(w[1] * w[2] * w[3]),
                       .written_bytes = 4 * results,
                       .stride = stride,
                       .padding = padding,
                       .groups = groups};
  workload.build = [=](TensorBuilder& b, const Nodes& in) {
    return Convolution(b, in[0], in[1], nullptr,
                       {.stride = {stride}, .padding = {padding}, .groups = groups});
  };
  for (const Operand& operand : workload.operands) {
    workload.read_bytes += static_cast<double>(operand.size_bytes());
  }
  return workload;
}

Workload MatmulWorkload(absl::string_view row, Dims x, Dims y, const ProductOptions& options) {
  const size_t rank = x.size();
  const int64_t m = x[rank - (options.transpose_x ? 1 : 2)];
  const int64_t k = x[rank - (options.transpose_x ? 2 : 1)];
  const int64_t n = y[rank - (options.transpose_y ? 2 : 1)];
  const int64_t batch = rank == 3 ? x[0] : 1;
  const DType result = options.result.value_or(options.dtype);
  Workload workload = {
      .row = std::string(row),
      .group = "matmul",
      .kind = options.transpose_x || options.transpose_y ? WorkKind::kOther : WorkKind::kMatmul,
      .operands = {Hashed("a", std::move(x), 0), Hashed("b", std::move(y), 1)},
      .flops = 2.0 * static_cast<double>(batch * m * k * n),
      .written_bytes = static_cast<double>(batch * m * n * result.size_bytes())};
  for (Operand& operand : workload.operands) {
    operand.dtype = options.dtype;
    workload.read_bytes += static_cast<double>(operand.size_bytes());
  }
  workload.build = [options](TensorBuilder& b, const Nodes& in) {
    return Matmul(b, in[0], in[1],
                  {.transpose_x = options.transpose_x,
                   .transpose_y = options.transpose_y,
                   .dtype = options.result});
  };
  return workload;
}

void AddKernelWorkloads(std::vector<Workload>* out) {
  for (int64_t n : {64, 128, 256, 512, 1024, 2048}) {
    out->push_back(MatmulWorkload(absl::StrCat("mm", n), {n, n}, {n, n}));
  }
  out->push_back(MatmulWorkload("gemv4096", {1, 4096}, {4096, 4096}));
  out->push_back(MatmulWorkload("mm8x4096", {8, 4096}, {4096, 4096}));
  out->push_back(MatmulWorkload("mm128x768x3072", {128, 768}, {768, 3072}));
  out->push_back(MatmulWorkload("bmm32", {32, 128, 64}, {32, 64, 128}));
  AddElementwise(out, "16M", int64_t{1} << 24);
  AddElementwise(out, "4k", 4096);
  AddReductions(out);
  AddConvolutions(out);
  AddAttention(out);
  out->push_back({.row = "identity",
                  .group = "dispatch",
                  .operands = {Hashed("x", {16}, 0)},
                  .build = [](TensorBuilder& b, const Nodes& in) { return Relu(b, in[0]); }});
}

const std::vector<Workload>& Workloads() {
  static const auto* workloads = [] {
    auto* made = new std::vector<Workload>;
    AddKernelWorkloads(made);
    AddModelWorkloads(made);
    const size_t num_common = made->size();
    AddExtraWorkloads(made);
    for (size_t i = num_common; i < made->size(); ++i) (*made)[i].is_extra = true;
    return made;
  }();
  return *workloads;
}

Module BuildGraph(const Workload& workload) {
  TensorBuilder builder(std::make_shared<Context>());
  Nodes operands;
  for (const Operand& operand : workload.operands) {
    operands.push_back(
        builder.Param(operand.name, operand.dtype, builder.ConstShape(operand.dims)));
  }
  const UOp* result = workload.build(builder, operands);
  Function graph = ValueOrDie(builder.Finish(workload.row, {result}));
  return {builder.shared_context(), {graph}};
}

}  // namespace svod::bench
