// A network of two layers learns to read handwritten digits, with nothing but Svod: 1,797 pictures
// of 8 x 8 pixels, of which every fifth is kept back for the test.
//
//   hidden = relu(x W1 + b1), scores = hidden W2 + b2, loss = mean of -log softmax(scores)[label]
//
// One graph is a step of stochastic gradient descent with momentum: forward, the gradients derived
// by hand, and assignments that update weights and momenta in place. It is prepared once and
// executed for every minibatch; the only thing that is copied in is which pictures it holds.
//
// With a folder as argument it leaves the trained weights there, as NumPy files; export.py makes an
// ONNX model of them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "examples/example.h"

namespace {

using svod::Op;
using svod::Scalar;
using svod::UOp;

constexpr int kPictures = 1797, kPixels = 64, kHidden = 96, kDigits = 10;
constexpr int kTest = (kPictures + 4) / 5, kTraining = kPictures - kTest;
constexpr int kBatch = 32, kEpochs = 30;
constexpr float kRate = 0.1f, kMomentum = 0.9f;
constexpr double kWanted = 0.96;

struct Pictures {
  std::vector<float> pixels;  // [n, 64], 0 to 1
  std::vector<int32_t> labels;
};

struct Digits {
  Pictures training, test;
};

// examples/data/digits.npy: a header of 128 bytes, then u8[1797, 65].
absl::StatusOr<Digits> Load() {
  const std::string path = "examples/data/digits.npy";
  auto bytes = example::ReadFile(path);
  if (!bytes.ok()) return bytes.status();
  constexpr size_t kHeader = 128, kRow = kPixels + 1;
  if (bytes->size() != kHeader + kPictures * kRow) {
    return absl::InvalidArgumentError(path + ": not the file that is expected");
  }
  Digits digits;
  for (int i = 0; i < kPictures; ++i) {
    const char* row = bytes->data() + kHeader + i * kRow;
    Pictures& set = i % 5 == 0 ? digits.test : digits.training;
    for (int k = 0; k < kPixels; ++k) set.pixels.push_back(static_cast<float>(row[k]) / 16);
    set.labels.push_back(row[kPixels]);
  }
  return digits;
}

// Numbers from a fixed seed, the same everywhere. Source: SplitMix64 (Steele et al., OOPSLA 2014).
class Random {
 public:
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t Below(uint64_t bound) { return Next() % bound; }
  float Uniform(float limit) {  // in [-limit, limit)
    return limit * (static_cast<float>(Next() >> 40) * 0x1p-23f - 1);
  }

 private:
  uint64_t state_ = 2024;
};

// The weights, as they go by in both graphs: names and shapes.
struct Layer {
  const UOp *w1, *b1, *w2, *b2;
};
Layer Weights(svod::TensorBuilder& b, svod::Access access) {
  return {b.Param("w1", Scalar::kF32, {kPixels, kHidden}, access),
          b.Param("b1", Scalar::kF32, {kHidden}, access),
          b.Param("w2", Scalar::kF32, {kHidden, kDigits}, access),
          b.Param("b2", Scalar::kF32, {kDigits}, access)};
}
constexpr const char* kWeights[] = {"w1", "b1", "w2", "b2"};

const UOp* HiddenLayer(svod::TensorBuilder& b, const Layer& layer, const UOp* x) {
  return svod::Relu(b, b.Add(svod::Matmul(b, x, layer.w1), layer.b1));
}

// The step: returns the batch's loss, the weights and the momenta, the latter two in place.
absl::StatusOr<svod::ExecutionPlan> PrepareStep() {
  svod::TensorBuilder b(std::make_shared<svod::Context>());
  const UOp* pictures = b.Param("pictures", Scalar::kF32, {kTraining, kPixels});
  const UOp* labels = b.Param("labels", Scalar::kI32, {kTraining});
  const UOp* batch = b.Param("batch", Scalar::kI32, {kBatch});
  const Layer layer = Weights(b, svod::Access::kInOut);
  const auto sum = [&](const UOp* x, int64_t axis, bool keep) {
    return b.ReduceAxis(svod::ReduceKind::kAdd, x, {axis}, keep);
  };

  // The pictures of the batch and, one-hot, their digits.
  const UOp* x =
      b.Gather(pictures, b.Expand(b.Unsqueeze(batch, 1), b.ConstShape({kBatch, kPixels})), 0);
  const UOp* digit = b.Unsqueeze(b.Gather(labels, batch, 0), 1);
  const UOp* one_hot =
      b.Cast(b.Make(Op::kCmpEq, {digit, b.Arange(b.Index(kDigits), Scalar::kI32)}), Scalar::kF32);

  const UOp* hidden = HiddenLayer(b, layer, x);
  const UOp* scores = b.Add(svod::Matmul(b, hidden, layer.w2), layer.b2);
  const UOp* log_probability = svod::LogSoftmax(b, scores, 1);
  const UOp* loss =
      svod::Mean(b, b.Make(Op::kNeg, {sum(b.Mul(log_probability, one_hot), 1, false)}));

  // d loss / d scores = (softmax(scores) - one_hot) / batch; the rest is the chain rule.
  const UOp* d_scores =
      b.Mul(b.Sub(b.Make(Op::kExp, {log_probability}), one_hot), b.Like(scores, 1.0 / kBatch));
  const UOp* d_hidden =
      b.Where(b.Make(Op::kCmpLt, {b.Like(hidden, 0), hidden}),
              svod::Matmul(b, d_scores, layer.w2, {.transpose_y = true}), b.Like(hidden, 0));
  const UOp* gradients[] = {
      svod::Matmul(b, x, d_hidden, {.transpose_x = true}), sum(d_hidden, 0, false),
      svod::Matmul(b, hidden, d_scores, {.transpose_x = true}), sum(d_scores, 0, false)};
  const UOp* weights[] = {layer.w1, layer.b1, layer.w2, layer.b2};

  // momentum = 0.9 momentum + gradient; weight -= rate * momentum.
  std::vector<const UOp*> results = {loss};
  for (int i = 0; i < 4; ++i) {
    const svod::Shape shape(b.ShapeOf(weights[i]).begin(), b.ShapeOf(weights[i]).end());
    const UOp* momentum =
        b.Param(std::string("momentum_") + kWeights[i], Scalar::kF32, shape, svod::Access::kInOut);
    const UOp* next = b.Add(b.Mul(momentum, b.Like(momentum, kMomentum)), gradients[i]);
    const UOp* moved = b.Sub(weights[i], b.Mul(next, b.Like(next, kRate)));
    results.push_back(b.After(momentum, {b.Assign(momentum, next)}));
    results.push_back(b.After(weights[i], {b.Assign(weights[i], moved)}));
  }
  return example::PrepareGraph(b, results);
}

// The digits that `count` pictures are taken for.
absl::StatusOr<svod::ExecutionPlan> PrepareReading(int64_t count) {
  svod::TensorBuilder b(std::make_shared<svod::Context>());
  const UOp* x = b.Param("pictures", Scalar::kF32, {count, kPixels});
  const Layer layer = Weights(b, svod::Access::kIn);
  const UOp* scores = b.Add(svod::Matmul(b, HiddenLayer(b, layer, x), layer.w2), layer.b2);
  return example::PrepareGraph(b, {svod::Argmax(b, scores, 1, false, Scalar::kI32)});
}

// The share of the pictures that are read right with the weights of `trained`, in whose memory they
// stay.
absl::StatusOr<double> Accuracy(const svod::ExecutionPlan& trained, const Pictures& pictures) {
  auto plan = PrepareReading(static_cast<int64_t>(pictures.labels.size()));
  if (!plan.ok()) return plan.status();
  absl::Status status = example::Fill(*plan, "pictures", pictures.pixels);
  for (const char* name : kWeights) {
    const size_t index = trained.FindParameter(name)->buffer_index;
    status.Update(plan->Bind(name, trained.buffers()[index]));
  }
  status.Update(svod::Execute(*plan));
  if (!status.ok()) return status;
  const absl::Span<const int32_t> digits = example::Result<int32_t>(*plan, 0);
  int num_right = 0;
  for (size_t i = 0; i < pictures.labels.size(); ++i) num_right += digits[i] == pictures.labels[i];
  return static_cast<double>(num_right) / static_cast<double>(pictures.labels.size());
}

// Writes a weight of `trained` to `folder`, as an array of NumPy's.
absl::Status SaveWeight(const svod::ExecutionPlan& trained, const std::string& name,
                        const std::string& folder) {
  std::string shape;
  for (const int64_t size : trained.FindParameter(name)->shape) shape += std::to_string(size) + ",";
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.resize(128 - 10 - 1, ' ');  // the data starts at byte 128
  header = std::string("\x93NUMPY\x01\0\x76\0", 10) + header + "\n";
  const absl::Span<const float> values = example::Values<float>(trained, name);

  const std::string path = folder + "/" + name + ".npy";
  std::ofstream file(path, std::ios::binary);
  file.write(header.data(), static_cast<std::streamsize>(header.size()));
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(float)));
  file.close();
  return file ? absl::OkStatus() : absl::UnavailableError(path + ": cannot be written");
}

// Trains, and saves the weights unless `folder` is empty; whether it reads well enough.
absl::StatusOr<bool> Run(const std::string& folder) {
  auto digits = Load();
  if (!digits.ok()) return digits.status();
  example::Clock clock;
  auto plan = PrepareStep();
  if (!plan.ok()) return plan.status();
  std::printf("prepared %zu kernels: %.2f s\n", plan->prepared_kernels().size(), clock.seconds());

  // Weights start uniform in +-sqrt(6 / inputs) (He et al., ICCV 2015), all else at 0.
  Random random;
  const auto weights = [&](int inputs, int outputs) {
    std::vector<float> values(size_t{1} * inputs * outputs);
    for (float& value : values) value = random.Uniform(std::sqrt(6.0f / inputs));
    return values;
  };
  absl::Status status = example::Fill(*plan, "w1", weights(kPixels, kHidden));
  status.Update(example::Fill(*plan, "w2", weights(kHidden, kDigits)));
  status.Update(example::Fill(*plan, "pictures", digits->training.pixels));
  status.Update(example::Fill(*plan, "labels", digits->training.labels));

  std::vector<int32_t> order(kTraining);
  std::iota(order.begin(), order.end(), 0);
  clock = example::Clock();
  int num_steps = 0;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
    double loss = 0;
    int num_batches = 0;
    for (int begin = 0; begin + kBatch <= kTraining; begin += kBatch, ++num_batches) {
      status.Update(example::Fill(
          *plan, "batch",
          std::vector<int32_t>(order.begin() + begin, order.begin() + begin + kBatch)));
      status.Update(svod::Execute(*plan));
      if (!status.ok()) return status;
      loss += example::Result<float>(*plan, 0)[0];
    }
    num_steps += num_batches;
    if (epoch % 5 == 4) std::printf("epoch %2d: loss %.5f\n", epoch + 1, loss / num_batches);
  }
  const double seconds = clock.seconds();

  auto training = Accuracy(*plan, digits->training), test = Accuracy(*plan, digits->test);
  if (!training.ok()) return training.status();
  if (!test.ok()) return test.status();
  std::printf("%d steps of %d pictures: %.2f s, %.0f us a step\n", num_steps, kBatch, seconds,
              1e6 * seconds / num_steps);
  std::printf("accuracy: %.2f %% of the training pictures, %.2f %% of the %d kept back\n",
              100 * *training, 100 * *test, kTest);
  if (!folder.empty()) {
    for (const char* name : kWeights) status.Update(SaveWeight(*plan, name, folder));
    if (!status.ok()) return status;
  }
  return *test >= kWanted;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2) {
    std::fprintf(stderr, "usage: digits [FOLDER FOR THE WEIGHTS]\n");
    return 2;
  }
  return example::Report(Run(argc > 1 ? argv[1] : ""));
}
