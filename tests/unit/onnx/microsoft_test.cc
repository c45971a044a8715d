// Operators of com.microsoft against models of standard operators that mean the same.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/onnx/model_maker.h"

namespace svod {
namespace {

constexpr absl::string_view kDomain = "com.microsoft";

void ExpectSame(const ModelMaker& a, const ModelMaker& b, const std::vector<OnnxTensor>& inputs) {
  std::vector<float> x = FloatsOn(a, inputs), y = FloatsOn(b, inputs);
  ASSERT_EQ(x.size(), y.size());
  ASSERT_FALSE(x.empty());
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-5) << i;
}

onnx::NodeProto& Microsoft(ModelMaker& maker, absl::string_view op, absl::string_view inputs,
                           absl::string_view outputs) {
  onnx::NodeProto& node = maker.Node(op, inputs, outputs);
  node.set_domain(std::string(kDomain));
  return node;
}

TEST(MicrosoftTest, FusedMatMulScalesAProductOfTransposes) {
  ModelMaker fused, plain;
  for (ModelMaker* maker : {&fused, &plain}) maker->Input("a", "3 2").Input("b", "4 3").Output("y");
  onnx::NodeProto& node = Microsoft(fused, "FusedMatMul", "a b", "y");
  SetInt(node, "transA", 1);
  SetInt(node, "transB", 1);
  SetFloat(node, "alpha", 0.5f);
  onnx::NodeProto& gemm = plain.Node("Gemm", "a b", "y");
  SetInt(gemm, "transA", 1);
  SetInt(gemm, "transB", 1);
  SetFloat(gemm, "alpha", 0.5f);
  ExpectSame(fused, plain, {{"", Waves({3, 2}, 0.7f)}, {"", Waves({4, 3}, 0.3f)}});
}

TEST(MicrosoftTest, GelusAreThatOfTheStandardDomain) {
  std::vector<OnnxTensor> inputs = {{"", Waves({2, 3}, 0.9f)}, {"", Waves({3}, 0.4f)}};
  for (const auto& [op, approximate] :
       {std::pair("BiasGelu", "none"), std::pair("FastGelu", "tanh")}) {
    ModelMaker fused(20), plain(20);
    for (ModelMaker* maker : {&fused, &plain}) maker->Input("x", "2 3").Input("b", "3").Output("y");
    Microsoft(fused, op, "x b", "y");
    plain.Node("Add", "x b", "s");
    SetString(plain.Node("Gelu", "s", "y"), "approximate", approximate);
    ExpectSame(fused, plain, inputs);
  }
}

TEST(MicrosoftTest, SkipLayerNormalizationAddsFirst) {
  ModelMaker fused, plain;
  for (ModelMaker* maker : {&fused, &plain}) {
    maker->Input("x", "1 2 4").Input("skip", "1 2 4").Input("g", "4").Input("b", "4");
    maker->Input("bias", "4").Output("y");
  }
  SetFloat(Microsoft(fused, "SkipLayerNormalization", "x skip g b bias", "y"), "epsilon", 1e-5f);
  plain.Node("Add", "x skip", "s");
  plain.Node("Add", "s bias", "t");
  plain.Node("LayerNormalization", "t g b", "y");
  ExpectSame(fused, plain,
             {{"", Waves({1, 2, 4}, 0.9f)},
              {"", Waves({1, 2, 4}, 0.2f)},
              {"", Waves({4}, 0.4f)},
              {"", Waves({4}, 0.3f)},
              {"", Waves({4}, 1.1f)}});
}

// One batch, two heads of two features.
TEST(MicrosoftTest, AttentionIsSoftmaxOfProductsByHeads) {
  ModelMaker fused, plain;
  for (ModelMaker* maker : {&fused, &plain}) {
    maker->Input("x", "1 3 4").Input("w", "4 12").Input("b", "12").Output("y");
    maker->Ints("heads", {1, 3, 2, 2}).Ints("joined", {1, 3, 4}).Floats("scale", {0.70710678f}, {});
  }
  SetInt(Microsoft(fused, "Attention", "x w b", "y"), "num_heads", 2);
  plain.Node("MatMul", "x w", "m");
  plain.Node("Add", "m b", "all");
  SetInt(plain.Node("Split", "all", "q k v"), "axis", 2);
  for (const char* name : {"q", "k", "v"}) {
    std::string part = name;
    plain.Node("Reshape", part + " heads", part + "r");
    SetInts(plain.Node("Transpose", part + "r", part + "h"), "perm",
            part == "k" ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 1, 3});
  }
  plain.Node("MatMul", "qh kh", "s");
  plain.Node("Mul", "s scale", "t");
  plain.Node("Softmax", "t", "p");
  plain.Node("MatMul", "p vh", "o");
  SetInts(plain.Node("Transpose", "o", "or"), "perm", {0, 2, 1, 3});
  plain.Node("Reshape", "or joined", "y");
  ExpectSame(fused, plain,
             {{"", Waves({1, 3, 4}, 0.9f)}, {"", Waves({4, 12}, 0.37f)}, {"", Waves({12}, 0.4f)}});
}

TEST(MicrosoftTest, AttentionLeavesOutKeysThatTheMaskHides) {
  ModelMaker masked, shorter;
  masked.Input("x", "1 3 4").Input("w", "4 12").Output("y");
  masked.graph().add_initializer()->CopyFrom([] {
    onnx::TensorProto mask;
    mask.set_name("mask");
    mask.set_data_type(onnx::TensorProto::INT32);
    mask.add_dims(1);
    mask.add_dims(3);
    for (int seen : {1, 1, 0}) mask.add_int32_data(seen);
    return mask;
  }());
  shorter.Input("x", "1 2 4").Input("w", "4 12").Output("y");
  SetInt(Microsoft(masked, "Attention", "x w - mask", "y"), "num_heads", 2);
  SetInt(Microsoft(shorter, "Attention", "x w", "y"), "num_heads", 2);
  ConstantTensor x = Waves({1, 3, 4}, 0.9f), w = Waves({4, 12}, 0.37f);
  ConstantTensor front = FloatTensor({1, 2, 4}, [&] {
    std::vector<float> values = FloatsOf(x);
    values.resize(8);
    return values;
  }());
  std::vector<float> all = FloatsOn(masked, {{"", x}, {"", w}});
  std::vector<float> two = FloatsOn(shorter, {{"", front}, {"", w}});
  ASSERT_EQ(two.size(), 8u);
  ASSERT_EQ(all.size(), 12u);
  for (size_t i = 0; i < two.size(); ++i) EXPECT_NEAR(all[i], two[i], 1e-5) << i;
}

TEST(MicrosoftTest, RotaryEmbeddingTurnsPairsByTheirPositionsAngle) {
  ModelMaker maker;
  maker.Input("x", "1 2 4").Output("y");
  maker.Ints("begin", {1});
  // Positions 0 to 2, two angles each.
  std::vector<float> cosines, sines;
  for (int i = 0; i < 6; ++i) {
    cosines.push_back(std::cos(0.5f * static_cast<float>(i)));
    sines.push_back(std::sin(0.5f * static_cast<float>(i)));
  }
  maker.Floats("cos", cosines, {3, 2}).Floats("sin", sines, {3, 2});
  Microsoft(maker, "RotaryEmbedding", "x begin cos sin", "y");
  ConstantTensor x = Waves({1, 2, 4}, 0.9f);
  std::vector<float> given = FloatsOf(x), y = FloatsOn(maker, {{"", x}});
  ASSERT_EQ(y.size(), 8u);
  for (size_t step = 0; step < 2; ++step) {
    for (size_t d = 0; d < 2; ++d) {
      float c = cosines[2 * (step + 1) + d], s = sines[2 * (step + 1) + d];
      float a = given[4 * step + d], b = given[4 * step + d + 2];
      EXPECT_NEAR(y[4 * step + d], a * c - b * s, 1e-6);
      EXPECT_NEAR(y[4 * step + d + 2], b * c + a * s, 1e-6);
    }
  }
}

}  // namespace
}  // namespace svod
