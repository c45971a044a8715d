// What the importer refuses, and with which words; and what it makes of names, functions and
// subgraphs.
#include "tools/onnx/import.h"

#include <gtest/gtest.h>

#include "tests/unit/onnx/model_maker.h"
#include "tools/onnx/model_file.h"

namespace svod {
namespace {

void ExpectError(const absl::Status& status, absl::StatusCode code, absl::string_view message) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_EQ(std::string(status.message()), std::string(message));
}

TEST(ImportErrorsTest, EveryNodeThatCannotBeImportedIsNamed) {
  ModelMaker maker(13);
  maker.Input("x", "2 3").Output("y").Output("z").Output("v");
  maker.Node("NoSuch", "x", "a").set_name("first");
  maker.Node("Relu", "a", "b");  // fails with its input, in silence
  maker.Node("Gelu", "x", "y");
  SetInt(maker.Node("Softmax", "x", "z"), "axis", 5);
  maker.Node("Add", "b x", "v");
  ExpectError(ImportError(maker), absl::StatusCode::kInvalidArgument,
              "node 'first' (NoSuch, opset 13): the operator is not supported\n"
              "node of 'y' (Gelu, opset 13): opset, expected 20 or later for this operator\n"
              "node of 'z' (Softmax, opset 13): softmax: axis, got 5 for shape [2, 3], expected "
              "-2 to 1");
}

TEST(ImportErrorsTest, WhatIsOnlyMissingHereIsUnimplemented) {
  ModelMaker maker;
  maker.Input("x", "2").Output("y");
  maker.Node("NoSuch", "x", "y").set_domain("my.domain");
  ExpectError(ImportError(maker), absl::StatusCode::kUnimplemented,
              "node of 'y' (my.domain.NoSuch, opset 1): the operator is not supported");
}

TEST(ImportErrorsTest, AttributesAreChecked) {
  ModelMaker maker;
  maker.Input("x", "2").Output("a").Output("b").Output("c");
  SetString(maker.Node("LeakyRelu", "x", "a"), "alpha", "much");
  SetInt(maker.Node("Relu", "x", "b"), "slope", 1);
  SetInt(maker.Node("Cast", "x", "c"), "to", onnx::TensorProto::STRING);
  ExpectError(
      ImportError(maker), absl::StatusCode::kInvalidArgument,
      "node of 'a' (LeakyRelu, opset 17): attribute 'alpha', got a string, expected a float\n"
      "node of 'b' (Relu, opset 17): attribute 'slope' is not supported\n"
      "node of 'c' (Cast, opset 17): strings are not supported");
}

TEST(ImportErrorsTest, InputsAreChecked) {
  ModelMaker maker;
  maker.Input("x", "2").Output("a").Output("b").Output("c");
  maker.Node("Add", "x", "a");
  maker.Node("Add", "x later", "b");
  maker.Node("Relu", "x x", "c");
  maker.Node("Relu", "x", "later");
  ExpectError(ImportError(maker), absl::StatusCode::kInvalidArgument,
              "node of 'a' (Add, opset 17): inputs, got 1, expected 2\n"
              "node of 'b' (Add, opset 17): input 'later', expected an input, an initializer or "
              "what an earlier node makes\n"
              "node of 'c' (Relu, opset 17): inputs, got 2, expected 1");
}

TEST(ImportErrorsTest, ACycleIsAnInputThatNoEarlierNodeMakes) {
  ModelMaker maker;
  maker.Input("x", "2").Output("a");
  maker.Node("Add", "x b", "a");
  maker.Node("Relu", "a", "b");
  EXPECT_EQ(ImportError(maker).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(ImportError(maker).message().find("input 'b'"), std::string::npos);
}

TEST(ImportErrorsTest, SymbolicDimensionsNeedBounds) {
  ModelMaker maker;
  maker.Input("x", "N ?").Output("y");
  maker.Node("Relu", "x", "y");
  ExpectError(ImportError(maker), absl::StatusCode::kInvalidArgument,
              "input 'x': dimension 'N': bounds, got none, expected --dim N=LEAST..MOST or --dim "
              "N=SIZE");
  OnnxImportOptions options;
  options.dims["N"] = {1, 8};
  options.dims["x_1"] = {5, 4};
  ExpectError(ImportError(maker, options), absl::StatusCode::kInvalidArgument,
              "input 'x': dimension 'x_1': bounds, got 5 to 4, expected 0 <= least <= most <= "
              "2^40, multiples of the step");
  options.dims["x_1"] = {4, 10, 4};
  ExpectError(ImportError(maker, options), absl::StatusCode::kInvalidArgument,
              "input 'x': dimension 'x_1': bounds, got 4 to 10 in steps of 4, expected 0 <= least "
              "<= most <= 2^40, multiples of the step");
}

TEST(ImportErrorsTest, InitializersAreChecked) {
  ModelMaker maker;
  maker.Input("x", "2").Output("y");
  maker.Floats("short", {1}, {2})
      .Floats("negative", {}, {-1})
      .Floats("huge", {}, {1 << 30, 1 << 30, 1 << 30});
  maker.Ints("cut", {1, 2});
  maker.graph().mutable_initializer(3)->mutable_raw_data()->resize(15);
  maker.Node("Relu", "x", "y");
  ExpectError(ImportError(maker), absl::StatusCode::kInvalidArgument,
              "initializer 'short': data, got 1 elements, expected 2\n"
              "initializer 'negative': dimension, got -1, expected at least 0\n"
              "initializer 'huge': shape, got [1073741824, 1073741824, 1073741824], expected at "
              "most 2^62 bytes\n"
              "initializer 'cut': raw data, got 15 bytes, expected 16");
}

TEST(ImportErrorsTest, OpsetsBeyondTheTableAreRefused) {
  ModelMaker maker(99);
  maker.Input("x", "2").Output("y");
  maker.Node("Relu", "x", "y");
  ExpectError(ImportError(maker), absl::StatusCode::kUnimplemented,
              "opset, got 99, expected 1 to 22");
}

TEST(ImportErrorsTest, AnOutputThatNoNodeMakesIsNamed) {
  ModelMaker maker;
  maker.Input("x", "2").Output("y");
  ExpectError(ImportError(maker), absl::StatusCode::kInvalidArgument,
              "output 'y': expected a node that makes it");
}

TEST(ImportErrorsTest, FunctionsThatCallThemselvesEnd) {
  ModelMaker maker;
  maker.Input("x", "2").Output("y");
  maker.Node("Forever", "x", "y").set_domain("mine");
  onnx::FunctionProto& function = *maker.model().add_functions();
  function.set_name("Forever");
  function.set_domain("mine");
  function.add_input("a");
  function.add_output("b");
  onnx::NodeProto& node = *function.add_node();
  node.set_op_type("Forever");
  node.set_domain("mine");
  node.add_input("a");
  node.add_output("b");
  EXPECT_NE(ImportError(maker).message().find("functions and subgraphs in each other, got more"),
            std::string::npos);
}

TEST(ImportErrorsTest, FunctionsThatDoubleEndlesslyAreLimited) {
  ModelMaker maker;
  maker.Input("x", "2").Output("y");
  maker.Node("f0", "x", "y").set_domain("mine");
  for (int i = 0; i < 40; ++i) {
    onnx::FunctionProto& function = *maker.model().add_functions();
    function.set_name("f" + std::to_string(i));
    function.set_domain("mine");
    function.add_input("a");
    function.add_output("c");
    for (const auto& [from, to] : {std::pair("a", "b"), std::pair("b", "c")}) {
      onnx::NodeProto& node = *function.add_node();
      node.set_op_type(i == 39 ? "Neg" : "f" + std::to_string(i + 1));
      node.set_domain(i == 39 ? "" : "mine");
      node.add_input(from);
      node.add_output(to);
    }
  }
  EXPECT_NE(ImportError(maker).message().find("nodes, got more than"), std::string::npos);
}

TEST(ParseModelTest, BytesThatAreNoModelAreRefused) {
  ExpectError(ParseModel("no protobuf", "a.onnx").status(), absl::StatusCode::kInvalidArgument,
              "a.onnx: is no ONNX model");
  ExpectError(ParseModel("", "a.onnx").status(), absl::StatusCode::kInvalidArgument,
              "a.onnx: is no ONNX model: it has no graph");
  EXPECT_EQ(ReadModel("no/such.onnx").status().code(), absl::StatusCode::kNotFound);
}

// Messages in each other, deeper than any reader's stack should follow.
TEST(ParseModelTest, DeepNestingIsRefused) {
  std::string bytes;
  for (int i = 0; i < 20000; ++i) {
    // graph { node { attribute { g { ... from the inside out.
    for (char tag : {'\x32', '\x2a', '\x0a'}) {
      std::string length;
      size_t rest = bytes.size();
      do {
        length.push_back(static_cast<char>((rest & 127) | (rest > 127 ? 128 : 0)));
        rest >>= 7;
      } while (rest > 0);
      bytes = std::string(1, tag) + length + bytes;
    }
    if (bytes.size() > 200000) break;
  }
  std::string length;
  for (size_t rest = bytes.size(); rest > 0; rest >>= 7) {
    length.push_back(static_cast<char>((rest & 127) | (rest > 127 ? 128 : 0)));
  }
  EXPECT_EQ(ParseModel("\x3a" + length + bytes, "a.onnx").status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace svod
