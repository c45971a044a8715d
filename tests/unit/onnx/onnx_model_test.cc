// Models that run.
#include "tools/onnx/onnx_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/onnx/model_maker.h"

namespace svod {
namespace {

using testing::ElementsAre;

TEST(OnnxModelTest, InputsAreTakenInOrderOrByName) {
  ModelMaker maker;
  maker.Input("a", "2").Input("b", "2").Output("y");
  maker.Node("Sub", "a b", "y");
  ConstantTensor x = FloatTensor({2}, {5, 7}), y = FloatTensor({2}, {1, 2});
  auto outputs = RunOn(maker, {{"", x}, {"", y}});
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].name, "y");
  EXPECT_THAT(FloatsOf(outputs[0].tensor), ElementsAre(4, 5));
  EXPECT_THAT(FloatsOf(RunOn(maker, {{"b", x}, {"a", y}})[0].tensor), ElementsAre(-4, -5));
}

TEST(OnnxModelTest, WrongInputsAreRefusedByName) {
  ModelMaker maker;
  maker.Input("a", "2").Output("y");
  maker.Node("Relu", "a", "y");
  auto model = Open(maker);
  ASSERT_TRUE(model.ok());
  ConstantTensor x = FloatTensor({2}, {5, 7});
  auto message = [&](std::vector<OnnxTensor> inputs) {
    return std::string((*model)->Run(inputs).status().message());
  };
  EXPECT_EQ(message({}), "input a: f32[2] is missing, expected (a: f32[2])");
  EXPECT_EQ(message({{"b", x}}), "input, got 'b', expected one of a: f32[2]");
  EXPECT_EQ(message({{"", x}, {"", x}}), "inputs, got 2, expected 1 (a: f32[2])");
  EXPECT_EQ(message({{"", FloatTensor({3}, {1, 2, 3})}}), "input a: got f32[3], expected f32[2]");
  EXPECT_EQ(message({{"", IntTensor({2}, {1, 2})}}), "input a: got i64[2], expected f32[2]");
  EXPECT_EQ(message({{"", FloatTensor({2}, {1})}}),
            "input a: data, got 4 bytes, expected 8 for f32[2]");
}

TEST(OnnxModelTest, OnePlanServesAllSizesWithinBounds) {
  ModelMaker maker;
  maker.Input("x", "N 2").Output("y").Output("s");
  maker.Ints("one", {1}).Ints("minus_one", {-1}).Ints("zero", {0});
  // y = x reshaped to [2 * N] by the model's own arithmetic.
  maker.Node("Shape", "x", "shape");
  maker.Node("Gather", "shape zero", "n");
  maker.Node("Add", "n n", "size");
  maker.Node("Reshape", "x size", "y");
  maker.Node("ReduceSum", "x", "s");
  OnnxModelOptions options;
  options.dims["N"] = {1, 8};
  auto model = Open(maker, options);
  ASSERT_TRUE(model.ok());
  const OnnxPlan* first = nullptr;
  for (int64_t n : {3, 1, 8}) {
    std::vector<float> values(static_cast<size_t>(2 * n));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    std::vector<OnnxTensor> inputs = {{"", FloatTensor({n, 2}, values)}};
    auto plan = (*model)->Prepare(inputs);
    ASSERT_TRUE(plan.ok()) << plan.status();
    if (first == nullptr) first = *plan;
    EXPECT_EQ(*plan, first);
    auto outputs = (*model)->Run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_THAT((*outputs)[0].tensor.shape, ElementsAre(2 * n));
    EXPECT_EQ(FloatsOf((*outputs)[0].tensor), values);
    EXPECT_THAT(FloatsOf((*outputs)[1].tensor), ElementsAre(static_cast<float>(n * (2 * n - 1))));
  }
  EXPECT_EQ((*model)->Run({{{"", FloatTensor({9, 2}, std::vector<float>(18))}}}).status().code(),
            absl::StatusCode::kOutOfRange);
}

TEST(OnnxModelTest, MultiplesLetHalvingAndDoublingMeet) {
  ModelMaker maker;
  maker.Input("x", "1 1 H").Output("y");
  maker.Floats("scales", {1, 1, 2}, {3});
  onnx::NodeProto& pool = maker.Node("MaxPool", "x", "half");
  for (const char* name : {"kernel_shape", "strides"}) {
    onnx::AttributeProto& attribute = *pool.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INTS);
    attribute.add_ints(2);
  }
  onnx::NodeProto& resize = maker.Node("Resize", "half - scales", "whole");
  SetString(resize, "coordinate_transformation_mode", "asymmetric");
  SetString(resize, "nearest_mode", "floor");
  maker.Node("Add", "x whole", "y");
  OnnxModelOptions options;
  options.dims["H"] = {2, 8};
  auto refused = Open(maker, options);
  ASSERT_TRUE(refused.ok());
  EXPECT_FALSE((*refused)->Run({{{"", FloatTensor({1, 1, 2}, {1, 2})}}}).ok());
  options.dims["H"] = {2, 8, 2};
  auto model = Open(maker, options);
  ASSERT_TRUE(model.ok());
  auto outputs = (*model)->Run({{{"", FloatTensor({1, 1, 4}, {1, 2, 3, 4})}}});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT(FloatsOf((*outputs)[0].tensor), ElementsAre(3, 4, 7, 8));
  EXPECT_EQ((*model)->Run({{{"", FloatTensor({1, 1, 3}, {1, 2, 3})}}}).status().message(),
            "input x: got f32[1, 1, 3], expected f32[1, 1, H * 2]");
}

TEST(OnnxModelTest, WithoutBoundsEverySizeHasItsPlan) {
  ModelMaker maker;
  maker.Input("x", "N").Output("y");
  maker.Node("Neg", "x", "y");
  auto model = Open(maker);
  ASSERT_TRUE(model.ok());
  for (int64_t n : {2, 5, 2}) {
    auto outputs = (*model)->Run({{{"", FloatTensor({n}, std::vector<float>(n, 1))}}});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_THAT((*outputs)[0].tensor.shape, ElementsAre(n));
  }
}

TEST(OnnxModelTest, ShapesMayDependOnTheValuesOfInputs) {
  ModelMaker maker;
  maker.Input("x", "6").Input("shape", "2", onnx::TensorProto::INT64).Output("y");
  maker.Node("Reshape", "x shape", "y");
  auto model = Open(maker);
  ASSERT_TRUE(model.ok());
  ConstantTensor x = FloatTensor({6}, {1, 2, 3, 4, 5, 6});
  for (int64_t rows : {2, 3, 2}) {
    auto outputs = (*model)->Run({{{"", x}, {"", IntTensor({2}, {rows, -1})}}});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_THAT((*outputs)[0].tensor.shape, ElementsAre(rows, 6 / rows));
  }
}

TEST(OnnxModelTest, AnOutputMayBeAnInputOrAConstantOrTwice) {
  ModelMaker maker;
  maker.Input("x", "2").Input("unused", "2").Output("x").Output("c").Output("y").Output("z");
  maker.Floats("c", {3, 4}, {2});
  maker.Node("Relu", "x", "y");
  maker.Node("Identity", "y", "z");
  ConstantTensor x = FloatTensor({2}, {-1, 1});
  auto outputs = RunOn(maker, {{"", x}, {"", x}});
  ASSERT_EQ(outputs.size(), 4u);
  EXPECT_THAT(FloatsOf(outputs[0].tensor), ElementsAre(-1, 1));
  EXPECT_THAT(FloatsOf(outputs[1].tensor), ElementsAre(3, 4));
  EXPECT_THAT(FloatsOf(outputs[2].tensor), ElementsAre(0, 1));
  EXPECT_THAT(FloatsOf(outputs[3].tensor), ElementsAre(0, 1));
}

TEST(OnnxModelTest, FunctionsAreExpandedWithTheirAttributes) {
  ModelMaker maker;
  maker.Input("x", "2").Output("y");
  onnx::NodeProto& call = maker.Node("Leaky", "x", "y");
  call.set_domain("mine");
  SetFloat(call, "slope", 0.5f);
  onnx::FunctionProto& function = *maker.model().add_functions();
  function.set_name("Leaky");
  function.set_domain("mine");
  function.add_input("a");
  function.add_input("bias");  // left out
  function.add_output("b");
  function.add_attribute("slope");
  onnx::NodeProto& node = *function.add_node();
  node.set_op_type("LeakyRelu");
  node.add_input("a");
  node.add_output("b");
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name("alpha");
  attribute.set_ref_attr_name("slope");
  attribute.set_type(onnx::AttributeProto::FLOAT);
  EXPECT_THAT(FloatsOf(RunOn(maker, {{"", FloatTensor({2}, {-4, 4})}})[0].tensor),
              ElementsAre(-2, 4));
}

}  // namespace
}  // namespace svod
