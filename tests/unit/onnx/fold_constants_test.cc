#include "tools/onnx/fold_constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jit/kernel_cache.h"
#include "tests/unit/onnx/model_maker.h"

namespace svod {
namespace {

using testing::ElementsAre;

ImportedOnnx Imported(const ModelMaker& maker) {
  auto imported = ImportOnnx(maker.Proto(), {});
  EXPECT_TRUE(imported.ok()) << imported.status();
  return imported.ok() ? *std::move(imported) : ImportedOnnx();
}

std::vector<std::string> Params(const ImportedOnnx& imported) {
  auto params = ParamsOf(imported.module.functions[0].root);
  EXPECT_TRUE(params.ok()) << params.status();
  std::vector<std::string> names;
  for (const UOp* param : *params) names.emplace_back(param->arg<ParamArgument>().name);
  return names;
}

ModelMaker Weights() {
  ModelMaker maker;
  maker.Input("x", "2").Output("y");
  maker.Floats("v", {1, 2}, {2}).Floats("w", {3, 4}, {2});
  return maker;
}

TEST(FoldConstantsTest, ArithmeticOnConstantsIsTakenOut) {
  ModelMaker maker = Weights();
  maker.Node("Mul", "v w", "vw");
  maker.Node("Exp", "vw", "e");
  maker.Node("Add", "x e", "y");
  ImportedOnnx imported = Imported(maker);
  EXPECT_THAT(Params(imported), ElementsAre("x", "v", "w"));
  auto folded = TakeConstantPart(imported);
  ASSERT_TRUE(folded.ok()) << folded.status();
  EXPECT_THAT(folded->results, ElementsAre("folded_0"));
  EXPECT_THAT(Params(folded->part), ElementsAre("v", "w"));
  EXPECT_THAT(Params(imported), ElementsAre("x", "folded_0"));
  EXPECT_TRUE(imported.constants.empty());
}

TEST(FoldConstantsTest, MovementAndWhatVariesStay) {
  ModelMaker maker = Weights();
  maker.Ints("row", {1, 2});
  maker.Node("Reshape", "v row", "moved");
  maker.Node("Mul", "x moved", "m");
  maker.Node("Add", "m w", "y");
  ImportedOnnx imported = Imported(maker);
  auto folded = TakeConstantPart(imported);
  ASSERT_TRUE(folded.ok()) << folded.status();
  EXPECT_TRUE(folded->results.empty());
  EXPECT_THAT(Params(imported), ElementsAre("x", "v", "w"));
}

TEST(FoldConstantsTest, FoldedModelsGiveTheSame) {
  ModelMaker maker = Weights();
  maker.Output("c");
  maker.Node("Mul", "v w", "vw");
  maker.Node("Add", "x vw", "y");
  maker.Node("Neg", "vw", "c");
  auto model = Open(maker);
  ASSERT_TRUE(model.ok());
  auto outputs = (*model)->Run({{{"", FloatTensor({2}, {10, 20})}}});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT(FloatsOf((*outputs)[0].tensor), ElementsAre(13, 28));
  EXPECT_THAT(FloatsOf((*outputs)[1].tensor), ElementsAre(-3, -8));
}

// With an error allowed, a convolution's weights are transformed once, and the graph takes what
// they became: 36 elements for each of the 9 that the model has.
TEST(FoldConstantsTest, TransformsOfWeightsBelongToTheConstantPart) {
  ModelMaker maker;
  maker.Input("x", "1 48 12 12").Output("y");
  const ConstantTensor weights = Waves({48, 48, 3, 3}, 0.7F);
  maker.Floats("w", FloatsOf(weights), {48, 48, 3, 3});
  SetInts(maker.Node("Conv", "x w", "c"), "pads", {1, 1, 1, 1});
  maker.Node("Relu", "c", "y");
  const OnnxTensor x = {"x", Waves({1, 48, 12, 12}, 0.3F)};
  const std::vector<float> direct = FloatsOn(maker, {x});
  OnnxModelOptions options;
  options.prepare.schedule.winograd_error = 1;
  auto model = Open(maker, options);
  ASSERT_TRUE(model.ok()) << model.status();
  auto plan = (*model)->Prepare({x});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto& constants = (*plan)->imported.constants;
  ASSERT_EQ(constants.size(), 1u);
  EXPECT_EQ(constants[0].first, "folded_0");
  EXPECT_THAT(constants[0].second.shape, ElementsAre(6, 6, 48, 48));
  const std::vector<float> fast = FloatsOn(maker, {x}, options);
  ASSERT_EQ(fast.size(), direct.size());
  for (size_t i = 0; i < fast.size(); ++i) ASSERT_NEAR(fast[i], direct[i], 1e-3) << i;
}

TEST(FoldConstantsTest, WhatRunsOnceIsCompiledQuickly) {
  ModelMaker maker = Weights();
  maker.Node("Mul", "v w", "vw");
  maker.Node("Add", "x vw", "y");
  auto cache = KernelCache::Default();
  ASSERT_TRUE(cache.ok()) << cache.status();
  int num_quick = 0;
  OnnxModelOptions options;
  options.prepare.quick_provider = [&](const UOp* sink) {
    ++num_quick;
    CompileOptions compile;
    compile.code_gen_level = 0;
    return (*cache)->GetOrCompile(sink, compile);
  };
  EXPECT_THAT(FloatsOn(maker, {{"", FloatTensor({2}, {10, 20})}}, options), ElementsAre(13, 28));
  EXPECT_EQ(num_quick, 1);
  options.prepare.expected_runs = 1;
  options.prepare.schedule_cache = nullptr;
  EXPECT_THAT(FloatsOn(maker, {{"", FloatTensor({2}, {10, 20})}}, options), ElementsAre(13, 28));
  EXPECT_EQ(num_quick, 3);
}

}  // namespace
}  // namespace svod
