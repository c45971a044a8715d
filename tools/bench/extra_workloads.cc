// Rows beyond those that peers run elsewhere: other dtypes, odd sizes, transposes, strides and
// broadcasts, which should sit on the same curve as their round neighbours.
#include "absl/strings/str_cat.h"
#include "ir/operators/activation.h"
#include "ir/operators/reductions.h"
#include "ir/operators/shaping.h"
#include "tools/bench/workload.h"

namespace svod::bench {
namespace {

using Nodes = std::vector<const UOp*>;

void AddMatrices(std::vector<Workload>* out, absl::string_view name, int64_t rows, int64_t columns,
                 double written_bytes, std::vector<Operand> more,
                 std::function<const UOp*(TensorBuilder&, const Nodes&)> build) {
  Workload workload{.row = absl::StrCat(name, "_", rows, "x", columns),
                    .group = "odd",
                    .operands = {{"x", Scalar::kF32, {rows, columns}}},
                    .build = std::move(build),
                    .read_bytes = 4.0 * static_cast<double>(rows * columns),
                    .written_bytes = written_bytes};
  for (Operand& operand : more) workload.operands.push_back(std::move(operand));
  out->push_back(std::move(workload));
}

}  // namespace

void AddExtraWorkloads(std::vector<Workload>* out) {
  auto product = [&](absl::string_view row, std::vector<int64_t> x, std::vector<int64_t> y,
                     const ProductOptions& options, absl::string_view group) {
    out->push_back(MatmulWorkload(row, std::move(x), std::move(y), options));
    out->back().group = std::string(group);
  };
  product("mm1024_f64", {1024, 1024}, {1024, 1024}, {.dtype = Scalar::kF64}, "dtype");
  product("mm1024_bf16", {1024, 1024}, {1024, 1024}, {.dtype = Scalar::kBF16}, "dtype");
  product("mm1024_f16", {1024, 1024}, {1024, 1024}, {.dtype = Scalar::kF16}, "dtype");
  product("mm1024_i8", {1024, 1024}, {1024, 1024}, {.dtype = Scalar::kI8, .result = Scalar::kI32},
          "dtype");
  // With as much error as the form with the fewest products has at most.
  out->push_back(ConvolutionWorkload("conv3x3_winograd", {1, 64, 56, 56}, {64, 64, 3, 3}, 1, 1, 1));
  out->back().winograd_error = 0.01;
  for (int64_t n : {1, 3, 17, 127, 1000, 1023}) {
    product(absl::StrCat("mm", n), {n, n}, {n, n}, {}, "odd");
  }
  product("mm1023x17x127", {1023, 17}, {17, 127}, {}, "odd");
  product("mm3x1000x1023", {3, 1000}, {1000, 1023}, {}, "odd");
  product("gemv1023", {1, 1023}, {1023, 1023}, {}, "odd");
  product("bmm127", {17, 127, 127}, {17, 127, 127}, {}, "odd");
  for (int64_t n : {1024, 1023}) {
    product(absl::StrCat("mm", n, "_nt"), {n, n}, {n, n}, {.transpose_y = true}, "odd");
    product(absl::StrCat("mm", n, "_tn"), {n, n}, {n, n}, {.transpose_x = true}, "odd");
  }
  for (int64_t n : {1, 3, 17, 127, 1000, 1023}) {
    Workload workload{.row = absl::StrCat("relu_", n),
                      .group = "odd",
                      .kind = WorkKind::kRelu,
                      .operands = {{"x", Scalar::kF32, {n}, {.seed = 0}},
                                   {"w", Scalar::kF32, {n}, {.seed = 1}},
                                   {"b", Scalar::kF32, {n}, {.seed = 2}}},
                      .read_bytes = 12.0 * static_cast<double>(n),
                      .written_bytes = 4.0 * static_cast<double>(n)};
    workload.build = [](TensorBuilder& b, const Nodes& in) {
      return Relu(b, b.Add(b.Mul(in[0], in[1]), in[2]));
    };
    out->push_back(std::move(workload));
  }
  auto square = [](int64_t rows, int64_t columns) {
    return 4.0 * static_cast<double>(rows * columns);
  };
  for (int64_t columns : {3, 17, 127, 1000, 1023}) {
    const int64_t rows = 4095;
    AddMatrices(out, "softmax", rows, columns, square(rows, columns), {},
                [](TensorBuilder& b, const Nodes& in) { return Softmax(b, in[0]); });
    out->back().kind = WorkKind::kSoftmax;
    AddMatrices(out, "rowsum", rows, columns, square(rows, 1), {},
                [](TensorBuilder& b, const Nodes& in) { return Sum(b, in[0], {.axes = {1}}); });
    AddMatrices(out, "colsum", rows, columns, square(1, columns), {},
                [](TensorBuilder& b, const Nodes& in) { return Sum(b, in[0], {.axes = {0}}); });
  }
  for (int64_t n : {1023, 2048}) {
    AddMatrices(out, "transpose", n, n, square(n, n), {}, [](TensorBuilder& b, const Nodes& in) {
      return b.Contiguous(b.Transpose(in[0], 0, 1));
    });
    AddMatrices(
        out, "addtransposed", n, n, square(n, n), {},
        [](TensorBuilder& b, const Nodes& in) { return b.Add(in[0], b.Transpose(in[0], 0, 1)); });
    AddMatrices(out, "bias", n, n, square(n, n), {{"b", Scalar::kF32, {n}, {.seed = 1}}},
                [](TensorBuilder& b, const Nodes& in) { return b.Add(in[0], in[1]); });
    AddMatrices(out, "scalerows", n, n, square(n, n), {{"s", Scalar::kF32, {n, 1}, {.seed = 1}}},
                [](TensorBuilder& b, const Nodes& in) { return b.Mul(in[0], in[1]); });
  }
  // Every second column: of each cache line half is used, but all is read.
  AddMatrices(out, "stride2", 2048, 2048, square(2048, 1024), {},
              [](TensorBuilder& b, const Nodes& in) {
                return b.Contiguous(SliceAxis(b, in[0], 1, b.Index(0), b.Index(2048), 2));
              });
  AddMatrices(out, "flip", 2048, 2048, square(2048, 2048), {},
              [](TensorBuilder& b, const Nodes& in) { return b.Contiguous(b.Flip(in[0], {1})); });
}

}  // namespace svod::bench
