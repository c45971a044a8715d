// Rows of the operator table: recurrent networks, unrolled over the steps of the sequence; over as
// many as there may be, where their number is symbolic.
#include <algorithm>
#include <functional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "ir/operators/activation.h"
#include "ir/operators/compose.h"
#include "ir/operators/matmul.h"
#include "ir/operators/shaping.h"
#include "tools/onnx/onnx_operators.h"

namespace svod {
namespace {

constexpr int64_t kMaxSteps = 4096;

using Activation = std::function<Expression(Expression)>;

// Functions by name, with their parameters from alpha and beta, which those that have some take
// one after the other.
class Activations {
 public:
  explicit Activations(OnnxNode& node)
      : node_(node),
        alphas_(node.Floats("activation_alpha")),
        betas_(node.Floats("activation_beta")) {}

  Activation Make(absl::string_view name) {
    std::string lower = absl::AsciiStrToLower(name);
    TensorBuilder& b = node_.builder();
    if (lower == "relu") return [](Expression x) { return Max(x, 0.0); };
    if (lower == "tanh") return [](Expression x) { return Tanh(x); };
    if (lower == "sigmoid") return [&b](Expression x) { return Expression(b, Sigmoid(b, x)); };
    if (lower == "softsign") return [&b](Expression x) { return Expression(b, Softsign(b, x)); };
    if (lower == "softplus") return [&b](Expression x) { return Expression(b, Softplus(b, x)); };
    if (lower == "affine") {
      double alpha = Next(alphas_, &next_alpha_, 1), beta = Next(betas_, &next_beta_, 0);
      return [=](Expression x) { return x * alpha + beta; };
    }
    if (lower == "leakyrelu") {
      double alpha = Next(alphas_, &next_alpha_, 0.01);
      return [=, &b](Expression x) { return Expression(b, LeakyRelu(b, x, alpha)); };
    }
    if (lower == "thresholdedrelu") {
      double alpha = Next(alphas_, &next_alpha_, 1);
      return [=](Expression x) { return Select(x > x.Number(alpha), x, 0.0); };
    }
    if (lower == "scaledtanh") {
      double alpha = Next(alphas_, &next_alpha_, 1), beta = Next(betas_, &next_beta_, 1);
      return [=](Expression x) { return Tanh(x * beta) * alpha; };
    }
    if (lower == "hardsigmoid") {
      double alpha = Next(alphas_, &next_alpha_, 0.2), beta = Next(betas_, &next_beta_, 0.5);
      return [=](Expression x) { return Max(Min(x * alpha + beta, 1.0), 0.0); };
    }
    if (lower == "elu") {
      double alpha = Next(alphas_, &next_alpha_, 1);
      return [=, &b](Expression x) { return Expression(b, Elu(b, x, alpha)); };
    }
    node_.FailUnsupported(absl::StrCat("activation '", name, "'"));
    return [](Expression x) { return x; };
  }

 private:
  static double Next(const std::vector<double>& values, size_t* next, double fallback) {
    return *next < values.size() ? values[(*next)++] : fallback;
  }
  OnnxNode& node_;
  std::vector<double> alphas_, betas_;
  size_t next_alpha_ = 0, next_beta_ = 0;
};

// What a direction of a network works with. Weights are transposed: [input, gates * hidden].
struct Direction {
  Expression gates;  // of all steps, the inputs' share: [steps, batch, gates * hidden]
  Expression recurrent;
  const UOp* recurrent_bias;  // [gates * hidden], or null
  const UOp* peepholes;       // [3 * hidden], or null
  std::vector<Activation> functions;
};

// What a cell keeps from step to step; c is of LSTM alone.
struct State {
  Expression h, c;
};

class Recurrence {
 public:
  Recurrence(OnnxNode& node, int64_t num_gates, std::vector<std::string> functions)
      : node_(node), builder_(node.builder()), num_gates_(num_gates) {
    direction_ = node.Choice("direction", "forward", {"forward", "reverse", "bidirectional"});
    hidden_ = node.Int("hidden_size", 0);
    is_batched_ = node.Int("layout", 0) != 0;
    has_clip_ = node.HasAttribute("clip");
    clip_ = node.Float("clip", 0);
    names_ = node.Strings("activations");
    activations_.emplace(node);
    node.Int("output_sequence", 0);  // of opset 1: whether output 0 is wanted
    size_t count = functions.size() * (direction_ == 2 ? 2 : 1);
    while (names_.size() < count) names_.push_back(functions[names_.size() % functions.size()]);
    num_functions_ = functions.size();
  }

  Expression Clip(Expression x) const { return has_clip_ ? Max(Min(x, clip_), -clip_) : x; }
  // Gate `i` of several side by side along the last dimension.
  Expression Gate(Expression gates, int64_t i) const {
    return {builder_,
            builder_.ShrinkAxis(gates, -1, builder_.Index(i * hidden_), builder_.Index(hidden_))};
  }
  const UOp* Gate(const UOp* gates, int64_t i) const {
    return builder_.ShrinkAxis(gates, -1, builder_.Index(i * hidden_), builder_.Index(hidden_));
  }
  Expression Product(Expression x, const UOp* y) const {
    return {builder_, Matmul(builder_, x, y)};
  }

  // `step` gives the next state from the gates of one step. Inputs: X, W, R, B?, lengths?, h?, c?,
  // P?.
  OnnxResults Run(const std::function<State(const Direction&, Expression gates, State)>& step) {
    if (!Check()) return {};
    std::vector<const UOp*> all, last_h, last_c;
    int64_t num_directions = direction_ == 2 ? 2 : 1;
    for (int64_t d = 0; d < num_directions; ++d) {
      bool is_backward = direction_ == 1 || d == 1;
      Direction direction = Prepare(d);
      State state = {InitialState(5, d), InitialState(6, d)};
      std::vector<const UOp*> outputs(static_cast<size_t>(steps_), nullptr);
      for (int64_t i = 0; i < steps_ && node_.ok(); ++i) {
        int64_t t = is_backward ? steps_ - 1 - i : i;
        Expression gates(
            builder_,
            builder_.Squeeze(
                builder_.ShrinkAxis(direction.gates, 0, builder_.Index(t), builder_.Index(1)), 0));
        State next = step(direction, gates, state);
        Expression output = next.h;
        if (!IsWithin(t)) {
          // Beyond a sequence's end its state stays and its output is 0.
          Expression is_inside = Expression(builder_, lengths_) > static_cast<double>(t);
          output = Select(is_inside, next.h, 0.0);
          next.h = Select(is_inside, next.h, state.h);
          next.c = Select(is_inside, next.c, state.c);
        }
        // A state is read by several steps, which would each work it out anew.
        state = {{builder_, builder_.Contiguous(next.h)}, {builder_, builder_.Contiguous(next.c)}};
        outputs[static_cast<size_t>(t)] = IsWithin(t) ? state.h.node() : output.node();
      }
      if (!node_.ok()) return {};
      const UOp* stacked = StackTensors(builder_, outputs, 0);
      all.push_back(builder_.ShrinkAxis(stacked, 0, builder_.Index(0), builder_.Dim(x_, 0)));
      last_h.push_back(state.h);
      last_c.push_back(state.c);
    }
    // Y [steps, directions, batch, hidden], or [batch, steps, directions, hidden]; the last ones
    // [directions, batch, hidden], or [batch, directions, hidden].
    const UOp* y = StackTensors(builder_, all, 1);
    if (is_batched_) y = builder_.Permute(y, {2, 0, 1, 3});
    int64_t axis = is_batched_ ? 1 : 0;
    return {y, StackTensors(builder_, last_h, axis), StackTensors(builder_, last_c, axis)};
  }

 private:
  bool Check() {
    for (size_t i = 0; i < 3; ++i) {
      if (node_.rank(i) == 3) continue;
      node_.Fail(absl::StrCat("input ", i, ": rank, got ", node_.rank(i), ", expected 3"));
      return false;
    }
    x_ = node_.input(0);
    if (is_batched_) x_ = builder_.Transpose(x_, 0, 1);
    if (!node_.ok()) return false;
    const UOp* num_steps = builder_.Dim(x_, 0);
    IntRange range = builder_.dims().RangeOf(num_steps);
    steps_ = range.max;
    sure_steps_ = range.min;
    int64_t own = builder_.ConstDim(node_.input(2), 2, "R");
    if (hidden_ == 0) hidden_ = own;
    if (!node_.ok()) return false;
    if (steps_ < 1 || steps_ > kMaxSteps) {
      node_.FailUnsupported(absl::StrCat("a sequence of ", steps_, " steps"));
      return false;
    }
    int64_t directions = direction_ == 2 ? 2 : 1;
    bool fits = own == hidden_ && hidden_ > 0 &&
                IsConstInt(builder_.Dim(node_.input(2), 1), num_gates_ * hidden_) &&
                IsConstInt(builder_.Dim(node_.input(1), 1), num_gates_ * hidden_) &&
                IsConstInt(builder_.Dim(node_.input(1), 0), directions) &&
                IsConstInt(builder_.Dim(node_.input(2), 0), directions);
    if (!fits) {
      node_.Fail(absl::StrCat("shapes of W and R, got ",
                              ShapeToString(builder_.ShapeOf(node_.input(1))), " and ",
                              ShapeToString(builder_.ShapeOf(node_.input(2))), ", expected [",
                              directions, ", ", num_gates_ * hidden_, ", ...]"));
      return false;
    }
    if (node_.has_input(4)) {
      lengths_ = builder_.Unsqueeze(builder_.Cast(node_.input(4), Scalar::kI64), 1);
      sure_steps_ = 0;
    } else if (sure_steps_ < steps_) {
      lengths_ = DimensionValue(builder_, num_steps, Scalar::kI64);
    }
    return node_.ok();
  }

  // Whether every sequence has a step t.
  bool IsWithin(int64_t t) const { return t < sure_steps_; }

  // Row d of a tensor, without its dimension.
  const UOp* Row(const UOp* x, int64_t d, int64_t axis = 0) {
    if (x == nullptr) return nullptr;
    return builder_.Squeeze(builder_.ShrinkAxis(x, axis, builder_.Index(d), builder_.Index(1)),
                            axis);
  }

  Expression InitialState(size_t i, int64_t d) {
    if (node_.has_input(i)) return {builder_, Row(node_.input(i), d, is_batched_ ? 1 : 0)};
    Shape shape = {builder_.Dim(x_, 1), builder_.Index(hidden_)};
    return {builder_, builder_.Expand(builder_.Like(x_, 0), shape)};
  }

  Direction Prepare(int64_t d) {
    Expression weight(builder_, builder_.Transpose(Row(node_.input(1), d), 0, 1));
    Expression recurrent(builder_, builder_.Transpose(Row(node_.input(2), d), 0, 1));
    Expression gates = Product({builder_, x_}, weight);
    Direction direction = {gates, recurrent, nullptr, Row(node_.input(7), d), {}};
    if (const UOp* bias = Row(node_.input(3), d)) {
      const UOp* size = builder_.Index(num_gates_ * hidden_);
      const UOp* own = builder_.ShrinkAxis(bias, 0, builder_.Index(0), size);
      direction.gates = gates + Expression(builder_, own);
      direction.recurrent_bias = builder_.ShrinkAxis(bias, 0, size, size);
    }
    direction.gates = {builder_, builder_.Contiguous(direction.gates)};
    // Steps beyond a symbolic number of them have no input, and change nothing.
    const UOp* missing = builder_.dims().Sub(builder_.Index(steps_), builder_.Dim(x_, 0));
    direction.gates = {builder_,
                       builder_.PadAxis(direction.gates, 0, builder_.Like(direction.gates, 0),
                                        builder_.Index(0), missing)};
    for (size_t i = 0; i < num_functions_; ++i) {
      direction.functions.push_back(
          activations_->Make(names_[static_cast<size_t>(d) * num_functions_ + i]));
    }
    return direction;
  }

  OnnxNode& node_;
  TensorBuilder& builder_;
  const int64_t num_gates_;
  int direction_ = 0;
  int64_t hidden_ = 0;
  int64_t steps_ = 0;       // at most
  int64_t sure_steps_ = 0;  // that all sequences have
  bool is_batched_ = false, has_clip_ = false;
  double clip_ = 0;
  std::vector<std::string> names_;
  size_t num_functions_ = 0;
  std::optional<Activations> activations_;
  const UOp* x_ = nullptr;
  const UOp* lengths_ = nullptr;  // i64 [batch, 1], or [] for all
};

Expression WithBias(Expression x, const UOp* bias) {
  return bias == nullptr ? x : x + Expression(x.builder(), bias);
}

OnnxResults ImportRnn(OnnxNode& node) {
  Recurrence network(node, 1, {"Tanh"});
  OnnxResults results = network.Run([&](const Direction& d, Expression gates, State state) {
    Expression sum = gates + WithBias(network.Product(state.h, d.recurrent), d.recurrent_bias);
    return State{d.functions[0](network.Clip(sum)), state.c};
  });
  if (results.size() == 3) results.pop_back();
  return results;
}

OnnxResults ImportGru(OnnxNode& node) {
  bool is_linear_first = node.Bool("linear_before_reset", false);
  Recurrence network(node, 3, {"Sigmoid", "Tanh"});
  OnnxResults results = network.Run([&](const Direction& d, Expression gates, State state) {
    Expression h = state.h;
    Expression share = WithBias(network.Product(h, d.recurrent), d.recurrent_bias);
    Expression update =
        d.functions[0](network.Clip(network.Gate(gates, 0) + network.Gate(share, 0)));
    Expression reset =
        d.functions[0](network.Clip(network.Gate(gates, 1) + network.Gate(share, 1)));
    Expression hidden = reset * network.Gate(share, 2);
    if (!is_linear_first) {
      const UOp* bias = d.recurrent_bias == nullptr ? nullptr : network.Gate(d.recurrent_bias, 2);
      hidden = WithBias(network.Product(reset * h, network.Gate(d.recurrent, 2)), bias);
    }
    Expression candidate = d.functions[1](network.Clip(network.Gate(gates, 2) + hidden));
    return State{(1.0 - update) * candidate + update * h, state.c};
  });
  if (results.size() == 3) results.pop_back();
  return results;
}

OnnxResults ImportLstm(OnnxNode& node) {
  bool couples = node.Bool("input_forget", false);
  Recurrence network(node, 4, {"Sigmoid", "Tanh", "Tanh"});
  return network.Run([&](const Direction& d, Expression gates, State state) {
    Expression sum = gates + WithBias(network.Product(state.h, d.recurrent), d.recurrent_bias);
    // Peepholes: of the input, output and forget gates.
    auto gate = [&](int64_t i, int64_t peephole, Expression cell) {
      Expression own = network.Gate(sum, i);
      if (d.peepholes != nullptr && peephole >= 0) {
        own = own + Expression(own.builder(), network.Gate(d.peepholes, peephole)) * cell;
      }
      return network.Clip(own);
    };
    Expression input = d.functions[0](gate(0, 0, state.c));
    Expression forget = couples ? 1.0 - input : d.functions[0](gate(2, 2, state.c));
    Expression cell = forget * state.c + input * d.functions[1](gate(3, -1, state.c));
    Expression output = d.functions[0](gate(1, 1, cell));
    return State{output * d.functions[2](cell), cell};
  });
}

}  // namespace

OnnxRows OnnxRecurrentRows() {
  constexpr absl::string_view kLimits =
      "unrolled: at most 4096 steps, or a symbolic number of them with such a bound";
  return {
      {"GRU", {1, 3, 7, 14, 22}, 3, 6, ImportGru, "", kLimits},
      {"LSTM", {1, 7, 14, 22}, 3, 8, ImportLstm, "", kLimits},
      {"RNN", {1, 7, 14, 22}, 3, 6, ImportRnn, "", kLimits},
  };
}

}  // namespace svod
