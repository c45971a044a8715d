// svod-jit's commands on a model file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/flags/reflection.h"
#include "tests/unit/onnx/model_maker.h"
#include "tools/command_table.h"

namespace svod {
namespace {

using testing::HasSubstr;

class OnnxCommandsTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() /
             ("svod_commands_" + std::to_string(getpid()) + ".onnx"))
                .string();
    ModelMaker maker;
    maker.Input("x", "N 2").Output("y");
    maker.Floats("w", {1, 2, 3, 4}, {2, 2});
    maker.Node("MatMul", "x w", "m");
    maker.Node("Relu", "m", "y");
    std::ofstream(path_, std::ios::binary) << maker.Bytes();
  }
  void TearDown() override { std::filesystem::remove(path_); }

  int Run(std::vector<std::string> arguments) {
    absl::FlagSaver saver;  // flags are the process's
    std::istringstream in;
    std::ostringstream out, err;
    CommandStreams streams{in, out, err, false};
    int code = RunCommandLine(arguments, streams);
    out_ = out.str();
    err_ = err.str();
    return code;
  }

  std::string path_, out_, err_;
};

TEST_F(OnnxCommandsTest, RunPrintsOutputsByTheModelsNames) {
  EXPECT_EQ(Run({"run", path_, "--input=x=1x2xf32=1,-1", "--cache_dir=off"}), 0) << err_;
  EXPECT_EQ(out_, "y: f32[1, 2]\n[[0. 0.]]\n");
  EXPECT_EQ(Run({"run", path_, "--input=1x2xf32=1,1", "--dim=N=1..4", "--cache_dir=off"}), 0);
  EXPECT_EQ(out_, "y: f32[1, 2]\n[[4. 6.]]\n");
}

TEST_F(OnnxCommandsTest, WhatIsWrongIsSaid) {
  EXPECT_EQ(Run({"run", path_, "--cache_dir=off"}), 1);
  EXPECT_THAT(err_, HasSubstr("input x: f32[N, 2] is missing"));
  EXPECT_EQ(Run({"run", path_, "--dim=N=4..1"}), 2);
  EXPECT_THAT(err_, HasSubstr("flag --dim: got 'N=4..1'"));
  EXPECT_EQ(Run({"run", path_, "--interpret", "--input=1x2xf32=1,1"}), 2);
  EXPECT_EQ(Run({"info", path_ + ".missing.onnx"}), 1);
}

TEST_F(OnnxCommandsTest, InfoDescribesTheModel) {
  EXPECT_EQ(Run({"info", path_, "--dim=N=3"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("opset 17\n"
                              "input x: f32[N, 2]\n"));
  EXPECT_THAT(out_, HasSubstr("operators: 1 MatMul, 1 Relu\n"
                              "parameters: 4, 16B\n"
                              "arithmetic: 30FLOP a run\n"));  // 12 products, 12 sums, 6 of relu
}

TEST_F(OnnxCommandsTest, PlanShowsKernelsAndBenchMakesUpInputs) {
  EXPECT_EQ(Run({"plan", path_, "--dim=N=1..4"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("level 0"));
  EXPECT_EQ(Run({"bench", path_, "--dim=N=2", "--cache_dir=off"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("prepare "));
}

}  // namespace
}  // namespace svod
