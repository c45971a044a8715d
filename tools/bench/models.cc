// The rows of whole models: perceptrons, LeNet, a transformer's encoder block, a residual network.
// Their weights are one stream of NumPy's, which goes on from model to model.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/operators/activation.h"
#include "ir/operators/convolution.h"
#include "ir/operators/expression.h"
#include "ir/operators/matmul.h"
#include "ir/operators/normalization.h"
#include "ir/operators/pooling.h"
#include "ir/operators/reductions.h"
#include "tools/bench/workload.h"

namespace svod::bench {
namespace {

using Nodes = std::vector<const UOp*>;
using Dims = std::vector<int64_t>;

// Hands out the stream in the order of the calls.
class Weights {
 public:
  // uniform(-1, 1) * sqrt(3 / fan); fan 0: the product of all dimensions but the first.
  Operand Next(absl::string_view name, Dims dims, int64_t fan = 0) {
    Operand operand{std::string(name), Scalar::kF32, std::move(dims)};
    if (fan == 0) fan = operand.num_elements() / operand.dims[0];
    operand.filling.stream_begin = next_;
    operand.filling.scale = std::sqrt(3.0 / static_cast<double>(fan));
    next_ += operand.num_elements();
    return operand;
  }
  Operand Bias(absl::string_view name, int64_t size) { return Next(name, {size}, 9); }

 private:
  int64_t next_ = 0;
};

Operand Input(Dims dims) { return {"x", Scalar::kF32, std::move(dims)}; }

void AddPerceptron(std::vector<Workload>* out, Weights& weights, int64_t batch) {
  Workload workload{.row = absl::StrCat("m_mlp_b", batch), .group = "model"};
  workload.operands = {Input({batch, 784}),     weights.Next("w1", {512, 784}),
                       weights.Bias("b1", 512), weights.Next("w2", {512, 512}),
                       weights.Bias("b2", 512), weights.Next("w3", {10, 512}),
                       weights.Bias("b3", 10)};
  workload.flops = 2.0 * static_cast<double>(batch) * (784 * 512 + 512 * 512 + 5120);
  workload.build = [](TensorBuilder& b, const Nodes& in) {
    const UOp* hidden = Relu(b, Linear(b, in[0], in[1], in[2]));
    hidden = Relu(b, Linear(b, hidden, in[3], in[4]));
    return Linear(b, hidden, in[5], in[6]);
  };
  out->push_back(std::move(workload));
}

void AddLenet(std::vector<Workload>* out, Weights& weights) {
  Workload workload{.row = "m_lenet", .group = "model"};
  workload.operands = {Input({1, 1, 28, 28}),   weights.Next("c1", {6, 1, 5, 5}),
                       weights.Bias("d1", 6),   weights.Next("c2", {16, 6, 5, 5}),
                       weights.Bias("d2", 16),  weights.Next("w1", {120, 400}),
                       weights.Bias("b1", 120), weights.Next("w2", {84, 120}),
                       weights.Bias("b2", 84),  weights.Next("w3", {10, 84}),
                       weights.Bias("b3", 10)};
  workload.flops = 2.0 * (28 * 28 * 150 + 100 * 16 * 150 + 48000 + 10080 + 840);
  workload.build = [](TensorBuilder& b, const Nodes& in) {
    const PoolOptions pool = {.kernel = {2}};
    const UOp* x = Convolution(b, in[0], in[1], in[2], {.padding = {2}});
    x = MaxPool(b, Relu(b, x), pool);
    x = MaxPool(b, Relu(b, Convolution(b, x, in[3], in[4])), pool);
    x = b.Reshape(x, {1, 400});
    x = Relu(b, Linear(b, x, in[5], in[6]));
    x = Relu(b, Linear(b, x, in[7], in[8]));
    return Linear(b, x, in[9], in[10]);
  };
  out->push_back(std::move(workload));
}

// Weights [inputs, outputs], unlike Linear's.
const UOp* Dense(TensorBuilder& b, const UOp* x, const UOp* weight, const UOp* bias) {
  return b.Add(Matmul(b, x, weight), bias);
}

void AddEncoder(std::vector<Workload>* out, Weights& weights) {
  const int64_t tokens = 128, width = 256, heads = 4, inner = 1024;
  Workload workload{.row = "m_encoder", .group = "model"};
  std::vector<Operand>& operands = workload.operands;
  operands.push_back(Input({tokens, width}));
  auto dense = [&](absl::string_view name, int64_t inputs, int64_t outputs) {
    operands.push_back(weights.Next(absl::StrCat(name, "w"), {inputs, outputs}, inputs));
    operands.push_back(weights.Bias(absl::StrCat(name, "b"), outputs));
  };
  auto norm = [&](absl::string_view name) {
    Operand gain = weights.Next(absl::StrCat(name, "g"), {width}, 1);
    gain.filling.base = 1;
    gain.filling.factor = 0.1f;
    operands.push_back(std::move(gain));
    operands.push_back(weights.Bias(absl::StrCat(name, "b"), width));
  };
  for (const char* name : {"q", "k", "v", "o"}) dense(name, width, width);
  norm("n");
  dense("f", width, inner);
  dense("h", inner, width);
  norm("y");
  workload.flops = 2.0 * tokens * width * (4 * width + 2 * inner) + 4.0 * tokens * tokens * width;
  workload.build = [=](TensorBuilder& b, const Nodes& in) {
    auto split = [&](const UOp* x) {
      return b.Permute(b.Reshape(x, {tokens, heads, width / heads}), {1, 0, 2});
    };
    const UOp* x = in[0];
    const UOp* q = split(Dense(b, x, in[1], in[2]));
    const UOp* k = split(Dense(b, x, in[3], in[4]));
    const UOp* v = split(Dense(b, x, in[5], in[6]));
    Expression scores(b, Matmul(b, q, k, {.transpose_y = true}));
    const UOp* mixed = Matmul(b, Softmax(b, scores * 0.125), v);
    mixed = b.Reshape(b.Permute(mixed, {1, 0, 2}), {tokens, width});
    const UOp* first = b.Add(x, Dense(b, mixed, in[7], in[8]));
    first = LayerNorm(b, first, in[9], in[10]);
    Expression wide(b, Dense(b, first, in[11], in[12]));
    Expression gelu = wide * ((wide * 0.70710678).Of(Op::kErf) + 1.0) * 0.5;
    const UOp* second = b.Add(first, Dense(b, gelu, in[13], in[14]));
    return LayerNorm(b, second, in[15], in[16]);
  };
  out->push_back(std::move(workload));
}

void AddResidualNetwork(std::vector<Workload>* out, Weights& weights) {
  Workload workload{.row = "m_resnet", .group = "model"};
  workload.operands.push_back(Input({1, 3, 224, 224}));
  auto convolution = [&](absl::string_view name, int64_t inputs, int64_t size, double side) {
    workload.operands.push_back(weights.Next(absl::StrCat(name, "w"), {64, inputs, size, size}));
    workload.operands.push_back(weights.Bias(absl::StrCat(name, "b"), 64));
    workload.flops += 2.0 * 64 * static_cast<double>(inputs * size * size) * side * side;
  };
  convolution("s", 3, 7, 112);
  const int num_blocks = 4;
  for (int i = 0; i < num_blocks; ++i) {
    convolution(absl::StrCat("p", i), 64, 3, 56);
    convolution(absl::StrCat("u", i), 64, 3, 56);
  }
  workload.build = [=](TensorBuilder& b, const Nodes& in) {
    const UOp* x = Convolution(b, in[0], in[1], in[2], {.stride = {2}, .padding = {3}});
    x = MaxPool(b, Relu(b, x), {.kernel = {3}, .stride = {2}, .padding = {1}});
    for (size_t at = 3; at < in.size(); at += 4) {
      const UOp* y = Relu(b, Convolution(b, x, in[at], in[at + 1], {.padding = {1}}));
      y = Convolution(b, y, in[at + 2], in[at + 3], {.padding = {1}});
      x = Relu(b, b.Add(y, x));
    }
    return b.Reshape(GlobalAveragePool(b, x), {1, 64});
  };
  out->push_back(std::move(workload));
}

}  // namespace

void AddModelWorkloads(std::vector<Workload>* out) {
  const size_t begin = out->size();
  Weights weights;
  AddPerceptron(out, weights, 1);
  AddPerceptron(out, weights, 64);
  AddLenet(out, weights);
  AddEncoder(out, weights);
  AddResidualNetwork(out, weights);
  for (size_t i = begin; i < out->size(); ++i) {
    for (const Operand& operand : (*out)[i].operands) {
      (*out)[i].read_bytes += static_cast<double>(operand.size_bytes());
    }
  }
}

}  // namespace svod::bench
