// Recurrent networks over a symbolic number of steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/unit/onnx/model_maker.h"

namespace svod {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

// Two features, three hidden, both directions, a batch of two.
ModelMaker Network(absl::string_view op, int64_t gates, absl::string_view steps, bool has_lengths) {
  ModelMaker maker;
  maker.Input("x", absl::StrCat(steps, " 2 2")).Output("y").Output("h");
  if (has_lengths) maker.Input("lengths", "2", onnx::TensorProto::INT32);
  maker.Floats("w", FloatsOf(Waves({2, 3 * gates, 2}, 0.7f)), {2, 3 * gates, 2});
  maker.Floats("r", FloatsOf(Waves({2, 3 * gates, 3}, 0.3f)), {2, 3 * gates, 3});
  maker.Floats("b", FloatsOf(Waves({2, 6 * gates}, 0.9f)), {2, 6 * gates});
  onnx::NodeProto& node = maker.Node(op, has_lengths ? "x w r b lengths" : "x w r b", "y h");
  SetString(node, "direction", "bidirectional");
  SetInt(node, "hidden_size", 3);
  return maker;
}

ConstantTensor Lengths(int32_t a, int32_t b) {
  auto data = std::make_shared<std::vector<int32_t>>(std::vector<int32_t>{a, b});
  absl::Span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data->data()), 8);
  return {Scalar::kI32, {2}, bytes, data};
}

void ExpectSymbolicAgrees(absl::string_view op, int64_t gates, bool has_lengths) {
  OnnxModelOptions options;
  options.dims["T"] = {1, 4};
  auto model = Open(Network(op, gates, "T", has_lengths), options);
  ASSERT_TRUE(model.ok()) << model.status();
  const OnnxPlan* plan = nullptr;
  for (int64_t steps : {3, 1, 4}) {
    std::vector<OnnxTensor> inputs = {{"", Waves({steps, 2, 2}, 0.4f)}};
    if (has_lengths) inputs.push_back({"", Lengths(static_cast<int32_t>(steps), 1)});
    auto prepared = (*model)->Prepare(inputs);
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    if (plan == nullptr) plan = *prepared;
    EXPECT_EQ(plan, *prepared) << "one plan serves all";
    auto got = (*model)->Run(inputs);
    ASSERT_TRUE(got.ok()) << got.status();
    auto wanted = RunOn(Network(op, gates, absl::StrCat(steps), has_lengths), inputs);
    ASSERT_EQ(wanted.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ((*got)[i].tensor.shape, wanted[i].tensor.shape);
      EXPECT_THAT(FloatsOf((*got)[i].tensor),
                  Pointwise(FloatNear(1e-6f), FloatsOf(wanted[i].tensor)))
          << op << ", " << steps << " steps, output " << i;
    }
  }
}

TEST(OnnxRecurrentTest, ASymbolicNumberOfStepsGivesWhatEachNumberDoes) {
  ExpectSymbolicAgrees("LSTM", 4, false);
  ExpectSymbolicAgrees("GRU", 3, false);
  ExpectSymbolicAgrees("RNN", 1, false);
}

TEST(OnnxRecurrentTest, SequencesMayBeShorterThanASymbolicNumberOfSteps) {
  ExpectSymbolicAgrees("LSTM", 4, true);
  ExpectSymbolicAgrees("GRU", 3, true);
}

TEST(OnnxRecurrentTest, ABoundOfTooManyStepsIsRefused) {
  OnnxImportOptions options;
  options.dims["T"] = {1, 5000};
  EXPECT_THAT(std::string(ImportError(Network("RNN", 1, "T", false), options).message()),
              HasSubstr("(RNN, opset 17): a sequence of 5000 steps is not supported"));
}

}  // namespace
}  // namespace svod
