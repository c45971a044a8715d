// Standard operators that the conformance data has no tests of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/onnx/model_maker.h"

namespace svod {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

// 0, 1, 2, ...
ConstantTensor Counted(std::vector<int64_t> shape) {
  int64_t count = 1;
  for (int64_t dimension : shape) count *= dimension;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
  return FloatTensor(std::move(shape), std::move(values));
}

std::vector<int64_t> ShapeOfResult(const std::vector<OnnxTensor>& outputs) {
  return outputs.empty() ? std::vector<int64_t>() : outputs[0].tensor.shape;
}

TEST(OnnxCenterCropPadTest, CropsLongAxesAndPadsShortOnes) {
  ModelMaker maker(18);
  maker.Input("x", "5 2").Ints("shape", {2, 5}).Output("y");
  maker.Node("CenterCropPad", "x shape", "y");
  // Of 5 rows those from 1 on; of 3 more columns one before and two behind.
  EXPECT_THAT(FloatsOn(maker, {{"", Counted({5, 2})}}), ElementsAre(0, 2, 3, 0, 0, 0, 4, 5, 0, 0));
}

TEST(OnnxCenterCropPadTest, AxesMayBeSymbolicAndChosen) {
  ModelMaker maker(18);
  maker.Input("x", "2 N").Ints("shape", {3}).Output("y");
  SetInts(maker.Node("CenterCropPad", "x shape", "y"), "axes", {-1});
  OnnxModelOptions options;
  options.dims["N"] = {1, 6};
  auto model = Open(maker, options);
  ASSERT_TRUE(model.ok()) << model.status();
  auto run = [&](int64_t n) {
    auto outputs = (*model)->Run({{"", Counted({2, n})}});
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return outputs.ok() ? FloatsOf((*outputs)[0].tensor) : std::vector<float>();
  };
  EXPECT_THAT(run(2), ElementsAre(0, 1, 0, 2, 3, 0));
  EXPECT_THAT(run(5), ElementsAre(1, 2, 3, 6, 7, 8));
}

TEST(OnnxCol2ImTest, OverlappingWindowsAreAdded) {
  ModelMaker maker(18);
  maker.Input("x", "1 3 2").Ints("image", {4}).Ints("block", {3}).Output("y");
  maker.Node("Col2Im", "x image block", "y");
  // Windows 0 2 4 at 0 and 1 3 5 at 1.
  std::vector<OnnxTensor> outputs = RunOn(maker, {{"", Counted({1, 3, 2})}});
  EXPECT_THAT(ShapeOfResult(outputs), ElementsAre(1, 1, 4));
  EXPECT_THAT(FloatsOf(outputs.at(0).tensor), ElementsAre(0, 3, 7, 5));
}

TEST(OnnxCol2ImTest, StridesDilationsAndPadsPlaceTheWindows) {
  ModelMaker maker(18);
  maker.Input("x", "1 4 4").Ints("image", {3, 3}).Ints("block", {2, 2}).Output("y");
  onnx::NodeProto& node = maker.Node("Col2Im", "x image block", "y");
  SetInts(node, "strides", {2, 1});
  SetInts(node, "dilations", {1, 2});
  SetInts(node, "pads", {1, 0, 0, 1});
  // Rows -1, 0 and 1, 2; columns 0, 2 and 1, 3, the last of them beyond the image.
  EXPECT_THAT(FloatsOn(maker, {{"", Counted({1, 4, 4})}}),
              ElementsAre(8, 9, 12, 2, 3, 6, 10, 11, 14));
}

TEST(OnnxCol2ImTest, ColumnsThatDoNotFitAreRefused) {
  ModelMaker maker(18);
  maker.Input("x", "1 4 5").Ints("image", {3, 3}).Ints("block", {2, 2}).Output("y");
  maker.Node("Col2Im", "x image block", "y");
  EXPECT_EQ(ImportError(maker).message(),
            "node of 'y' (Col2Im, opset 18): data, got [1, 4, 5], expected [N, C * 4, 4]");
}

TEST(OnnxAffineGridTest, ATurnedGridHasCentresOrCorners) {
  for (bool align_corners : {false, true}) {
    ModelMaker maker(20);
    // x' = y, y' = 2 x + 1.
    maker.Floats("theta", {0, 1, 0, 2, 0, 1}, {1, 2, 3}).Ints("size", {1, 1, 2, 2}).Output("y");
    maker.Input("unused", "1");
    SetInt(maker.Node("AffineGrid", "theta size", "y"), "align_corners", align_corners ? 1 : 0);
    float a = align_corners ? 1.0f : 0.5f;
    EXPECT_THAT(
        FloatsOn(maker, {{"", Counted({1})}}),
        Pointwise(FloatNear(1e-6f), {-a, 1 - 2 * a, -a, 1 + 2 * a, a, 1 - 2 * a, a, 1 + 2 * a}));
  }
}

TEST(OnnxGridSampleTest, VolumesAreSampledAlongThreeDimensions) {
  ModelMaker maker(20);
  maker.Input("x", "1 1 2 2 2").Input("grid", "1 1 1 2 3").Output("y");
  SetInt(maker.Node("GridSample", "x grid", "y"), "align_corners", 1);
  // The middle of the volume, and a quarter along x of its last edge.
  ConstantTensor grid = FloatTensor({1, 1, 1, 2, 3}, {0, 0, 0, -0.5f, 1, 1});
  EXPECT_THAT(FloatsOn(maker, {{"", Counted({1, 1, 2, 2, 2})}, {"", grid}}),
              ElementsAre(3.5f, 6.25f));
}

// The example of the operator's specification.
TEST(OnnxDeformConvTest, OffsetsMoveWhatAWindowReads) {
  ModelMaker maker(19);
  maker.Input("x", "1 1 3 3").Input("offset", "1 8 2 2").Floats("w", {1, 1, 1, 1}, {1, 1, 2, 2});
  maker.Output("y");
  SetInts(maker.Node("DeformConv", "x w offset", "y"), "kernel_shape", {2, 2});
  std::vector<float> offsets(32, 0);
  offsets[0] = 0.5f;           // the first tap, downwards, at the first place
  offsets[5 * 4 + 1] = -0.1f;  // the third tap, to the left, at the second place
  EXPECT_THAT(
      FloatsOn(maker, {{"", Counted({1, 1, 3, 3})}, {"", FloatTensor({1, 8, 2, 2}, offsets)}}),
      Pointwise(FloatNear(1e-5f), {9.5f, 11.9f, 20.0f, 24.0f}));
}

TEST(OnnxDeformConvTest, MasksGroupsAndBiasAreAsInAConvolution) {
  ModelMaker deformed(19), plain(19);
  std::vector<float> weights;
  for (int i = 0; i < 4 * 2 * 4; ++i) weights.push_back(std::sin(static_cast<float>(i)));
  for (ModelMaker* maker : {&deformed, &plain}) {
    maker->Input("x", "1 4 4 5").Floats("w", weights, {4, 2, 2, 2}).Output("y");
    maker->Floats("b", {1, 2, 3, 4}, {4});
  }
  deformed.Floats("offset", std::vector<float>(2 * 8 * 2 * 4, 0), {1, 16, 2, 4});
  deformed.Floats("mask", std::vector<float>(2 * 4 * 2 * 4, 0.5f), {1, 8, 2, 4});
  // Half of everything but the bias.
  plain.Floats("half", {0.5f}, {});
  plain.Node("Mul", "x half", "h");
  onnx::NodeProto& node = deformed.Node("DeformConv", "x w offset b mask", "y");
  SetInt(node, "offset_group", 2);
  for (onnx::NodeProto* conv : {&node, &plain.Node("Conv", "h w b", "y")}) {
    SetInt(*conv, "group", 2);
    SetInts(*conv, "strides", {2, 1});
  }
  std::vector<OnnxTensor> inputs = {{"", Counted({1, 4, 4, 5})}};
  EXPECT_THAT(FloatsOn(deformed, inputs), Pointwise(FloatNear(1e-3f), FloatsOn(plain, inputs)));
}

TEST(OnnxMaxRoiPoolTest, BinsHaveTheirLargestElementOrZero) {
  ModelMaker maker;
  maker.Input("x", "2 1 4 4").Input("rois", "3 5").Output("y");
  SetInts(maker.Node("MaxRoiPool", "x rois", "y"), "pooled_shape", {1, 2});
  // All of image 1; columns 1 to 2 of rows 0 to 1 of image 0; beyond the image.
  ConstantTensor rois = FloatTensor({3, 5}, {1, 0, 0, 3, 3, 0, 1, 0, 2, 1, 0, 6, 6, 8, 8});
  EXPECT_THAT(FloatsOn(maker, {{"", Counted({2, 1, 4, 4})}, {"", rois}}),
              ElementsAre(29, 31, 5, 6, 0, 0));
}

TEST(OnnxRoiAlignTest, AMaximumIsOfWeightedPixels) {
  ModelMaker maker(16);
  maker.Input("x", "1 1 2 2").Floats("rois", {0.5f, 0.5f, 1.5f, 1.5f}, {1, 4}).Ints("b", {0});
  maker.Output("y");
  onnx::NodeProto& node = maker.Node("RoiAlign", "x rois b", "y");
  SetString(node, "mode", "max");
  SetInt(node, "sampling_ratio", 1);
  // One sample at the middle of four pixels, a quarter of each.
  EXPECT_THAT(FloatsOn(maker, {{"", Counted({1, 1, 2, 2})}}), ElementsAre(0.75f));
}

TEST(OnnxQuantizeLinearTest, BlocksHaveScalesOfTheirOwn) {
  ModelMaker maker(21);
  maker.Input("x", "1 5").Floats("scale", {1, 2, 4}, {1, 3}).Output("y");
  onnx::NodeProto& forth = maker.Node("QuantizeLinear", "x scale", "q");
  onnx::NodeProto& back = maker.Node("DequantizeLinear", "q scale", "y");
  for (onnx::NodeProto* node : {&forth, &back}) SetInt(*node, "block_size", 2);
  EXPECT_THAT(FloatsOn(maker, {{"", FloatTensor({1, 5}, {3, 5, 7, 9, 10})}}),
              ElementsAre(3, 5, 8, 8, 8));
  SetInt(back, "block_size", 3);
  back.mutable_attribute()->DeleteSubrange(0, 1);
  EXPECT_THAT(std::string(ImportError(maker).message()),
              HasSubstr("scale, got [1, 3], expected one for each 3 elements along axis 1 of "
                        "[1, 5]"));
}

TEST(OnnxResizeTest, SizesMayKeepTheAspectRatio) {
  for (const auto& [policy, expected] :
       {std::pair("not_larger", std::vector<int64_t>{1, 1, 4, 6}),
        std::pair("not_smaller", std::vector<int64_t>{1, 1, 5, 8})}) {
    ModelMaker maker(18);
    maker.Input("x", "1 1 2 3").Ints("sizes", {4, 8}).Output("y");
    onnx::NodeProto& node = maker.Node("Resize", "x - - sizes", "y");
    SetInts(node, "axes", {2, 3});
    SetString(node, "keep_aspect_ratio_policy", policy);
    EXPECT_THAT(ShapeOfResult(RunOn(maker, {{"", Counted({1, 1, 2, 3})}})),
                ElementsAreArray(expected));
  }
}

}  // namespace
}  // namespace svod
