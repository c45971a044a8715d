// Subgraphs that are chosen and repeated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/onnx/model_maker.h"

namespace svod {
namespace {

using testing::ElementsAre;

ModelMaker Conditional() {
  ModelMaker maker;
  maker.Input("c", "", onnx::TensorProto::BOOL).Input("x", "2").Output("y");
  onnx::NodeProto& node = maker.Node("If", "c", "y");
  onnx::GraphProto& on_true = SetGraph(node, "then_branch");
  AddNode(on_true, "Neg", "x", "t");
  AddOutput(on_true, "t");
  onnx::GraphProto& on_false = SetGraph(node, "else_branch");
  AddNode(on_false, "Add", "x x", "f");
  AddOutput(on_false, "f");
  return maker;
}

TEST(OnnxControlTest, IfChoosesByWhatTheModelIsRunWith) {
  std::vector<std::byte> truth = {std::byte{1}, std::byte{0}};
  ConstantTensor yes{Scalar::kBool, {}, absl::MakeConstSpan(truth).subspan(0, 1), nullptr};
  ConstantTensor no{Scalar::kBool, {}, absl::MakeConstSpan(truth).subspan(1, 1), nullptr};
  ConstantTensor x = FloatTensor({2}, {1, 2});
  auto model = Open(Conditional());
  ASSERT_TRUE(model.ok());
  auto on_true = (*model)->Run({{{"", yes}, {"", x}}});
  auto on_false = (*model)->Run({{{"", no}, {"", x}}});
  ASSERT_TRUE(on_true.ok() && on_false.ok()) << on_true.status() << on_false.status();
  EXPECT_THAT(FloatsOf((*on_true)[0].tensor), ElementsAre(-1, -2));
  EXPECT_THAT(FloatsOf((*on_false)[0].tensor), ElementsAre(2, 4));
}

TEST(OnnxControlTest, IfChoosesByWhatIsWorkedOutFromData) {
  ModelMaker maker = Conditional();
  maker.graph().mutable_input()->DeleteSubrange(0, 1);
  onnx::NodeProto choice = maker.graph().node(0);
  maker.graph().clear_node();
  maker.Floats("zero", {0}, {1});
  SetInt(maker.Node("ReduceSum", "x", "sum"), "keepdims", 1);
  maker.Node("Less", "sum zero", "c");
  *maker.graph().add_node() = choice;
  EXPECT_THAT(FloatsOf(RunOn(maker, {{"", FloatTensor({2}, {1, 2})}})[0].tensor),
              ElementsAre(2, 4));
  EXPECT_THAT(FloatsOf(RunOn(maker, {{"", FloatTensor({2}, {1, -2})}})[0].tensor),
              ElementsAre(-1, 2));
}

TEST(OnnxControlTest, LoopsAreUnrolledAndSeeWhatIsAround) {
  ModelMaker maker;
  maker.Input("x", "2").Output("last").Output("all");
  maker.Ints("trips", {3});
  onnx::NodeProto& node = maker.Node("Loop", "trips - x", "last all");
  onnx::GraphProto& body = SetGraph(node, "body");
  for (const char* name : {"i", "go_on", "v"}) AddInput(body, name);
  AddNode(body, "Identity", "go_on", "still");
  AddNode(body, "Add", "v x", "next");
  AddNode(body, "Identity", "next", "row");
  for (const char* name : {"still", "next", "row"}) AddOutput(body, name);
  auto outputs = RunOn(maker, {{"", FloatTensor({2}, {1, 10})}});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_THAT(FloatsOf(outputs[0].tensor), ElementsAre(4, 40));
  EXPECT_THAT(outputs[1].tensor.shape, ElementsAre(3, 2));
  EXPECT_THAT(FloatsOf(outputs[1].tensor), ElementsAre(2, 20, 3, 30, 4, 40));
}

TEST(OnnxControlTest, BranchesOfDifferentShapesNeedAKnownCondition) {
  ModelMaker maker;
  maker.Input("x", "2").Output("y");
  maker.Floats("zero", {0}, {1}).Floats("three", {1, 2, 3}, {3});
  maker.Node("ReduceSum", "x", "sum");
  maker.Node("Less", "sum zero", "c");
  onnx::NodeProto& node = maker.Node("If", "c", "y");
  onnx::GraphProto& on_true = SetGraph(node, "then_branch");
  AddNode(on_true, "Neg", "x", "t");
  AddOutput(on_true, "t");
  onnx::GraphProto& on_false = SetGraph(node, "else_branch");
  AddNode(on_false, "Neg", "three", "f");
  AddOutput(on_false, "f");
  EXPECT_EQ(ImportError(maker).message(),
            "node of 'y' (If, opset 17): output 0 of shape [2] or [3] by a condition that is not "
            "known when the model is loaded is not supported");
}

// v doubles while its sum is below a limit, at most `trips` times.
ModelMaker Doubling(int64_t trips, bool scans) {
  ModelMaker maker;
  maker.Input("x", "2").Input("limit", "1").Output("last");
  if (scans) maker.Output("all");
  if (trips > 0) maker.Ints("trips", {trips});
  onnx::NodeProto& node =
      maker.Node("Loop", trips > 0 ? "trips - x" : "- - x", scans ? "last all" : "last");
  onnx::GraphProto& body = SetGraph(node, "body");
  for (const char* name : {"i", "go_on", "v"}) AddInput(body, name);
  AddNode(body, "Add", "v v", "next");
  SetInt(AddNode(body, "ReduceSum", "next", "sum"), "keepdims", 1);
  AddNode(body, "Less", "sum limit", "still");
  AddNode(body, "Identity", "next", "row");
  for (const char* name : {"still", "next"}) AddOutput(body, name);
  if (scans) AddOutput(body, "row");
  return maker;
}

TEST(OnnxControlTest, DataMayEndALoopThatHasATripCount) {
  auto model = Open(Doubling(6, false));
  ASSERT_TRUE(model.ok());
  ConstantTensor x = FloatTensor({2}, {1, 2});
  auto last = [&](float limit) {
    auto outputs = (*model)->Run({{{"", x}, {"", FloatTensor({1}, {limit})}}});
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return outputs.ok() ? FloatsOf((*outputs)[0].tensor) : std::vector<float>();
  };
  EXPECT_THAT(last(0), ElementsAre(2, 4));        // the condition is asked after the body
  EXPECT_THAT(last(13), ElementsAre(8, 16));      // sums 6, 12, 24
  EXPECT_THAT(last(1e9f), ElementsAre(64, 128));  // the trip count ends it
}

TEST(OnnxControlTest, AConditionThatIsFalseAtFirstLeavesWhatIsCarried) {
  ModelMaker maker = Doubling(3, false);
  onnx::NodeProto loop = maker.graph().node(0);
  maker.graph().clear_node();
  maker.Node("Less", "x limit", "below");
  maker.Node("Cast", "below", "number").add_attribute();
  onnx::AttributeProto& to = *maker.graph().mutable_node(1)->mutable_attribute(0);
  to.set_name("to");
  to.set_type(onnx::AttributeProto::INT);
  to.set_i(onnx::TensorProto::FLOAT);
  maker.Floats("half", {0.5f}, {1});
  SetInt(maker.Node("ReduceMin", "number", "least"), "keepdims", 1);
  maker.Node("Greater", "least half", "start");
  loop.set_input(1, "start");
  *maker.graph().add_node() = loop;
  ConstantTensor x = FloatTensor({2}, {1, 2});
  EXPECT_THAT(FloatsOn(maker, {{"", x}, {"", FloatTensor({1}, {2})}}), ElementsAre(1, 2));
  EXPECT_THAT(FloatsOn(maker, {{"", x}, {"", FloatTensor({1}, {7})}}), ElementsAre(4, 8));
}

TEST(OnnxControlTest, LoopsWhoseLengthDataDecidesAreRefusedClearly) {
  EXPECT_EQ(ImportError(Doubling(6, true)).message(),
            "node of 'last' (Loop, opset 17): a scanned output whose length depends on data is not "
            "supported");
  for (int64_t trips : {0, 1 << 30}) {
    EXPECT_EQ(ImportError(Doubling(trips, false)).message(),
              "node of 'last' (Loop, opset 17): a condition that is worked out from what the model "
              "is run with, without a trip count of at most 4096 is not supported");
  }
}

TEST(OnnxControlTest, LoopsOfTooManyIterationsAreRefusedAtOnce) {
  ModelMaker maker;
  maker.Input("x", "2").Output("last").Ints("trips", {1 << 30});
  onnx::GraphProto& body = SetGraph(maker.Node("Loop", "trips - x", "last"), "body");
  for (const char* name : {"i", "go_on", "v"}) AddInput(body, name);
  AddNode(body, "Identity", "go_on", "still");
  AddNode(body, "Add", "v v", "next");
  for (const char* name : {"still", "next"}) AddOutput(body, name);
  EXPECT_EQ(ImportError(maker).message(),
            "node of 'last' (Loop, opset 17): more than 4096 iterations is not supported");
}

}  // namespace
}  // namespace svod
