// Tensors in files beside the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/onnx/model_maker.h"
#include "tools/onnx/model_file.h"

namespace svod {
namespace {

namespace fs = std::filesystem;

class ExternalDataTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("svod_onnx_" + std::to_string(getpid()));
    folder_ = root_ / "model";
    fs::create_directories(folder_ / "weights");
    Write(folder_ / "weights" / "w.bin");
    Write(root_ / "secret.bin");
  }
  void TearDown() override { fs::remove_all(root_); }

  static void Write(const fs::path& path) {
    std::vector<float> values = {0, 1, 2, 3};
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(values.data()), 16);
  }

  absl::StatusOr<ConstantTensor> Read(const std::string& location, const std::string& offset,
                                      const std::string& length) {
    onnx::TensorProto proto;
    proto.set_data_type(onnx::TensorProto::FLOAT);
    proto.add_dims(2);
    proto.set_data_location(onnx::TensorProto::EXTERNAL);
    auto set = [&](const char* key, const std::string& value) {
      if (value.empty()) return;
      onnx::StringStringEntryProto& entry = *proto.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    };
    set("location", location);
    set("offset", offset);
    set("length", length);
    TensorReader reader(nullptr, folder_.string());
    return reader.Read(proto);
  }

  fs::path root_, folder_;
};

TEST_F(ExternalDataTest, DataIsMappedAndUsedWhereItLies) {
  auto tensor = Read("weights/w.bin", "8", "8");
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_THAT(FloatsOf(*tensor), testing::ElementsAre(2, 3));
  EXPECT_TRUE(Read("weights/w.bin", "", "").ok());
}

TEST_F(ExternalDataTest, PathsThatLeaveTheFolderAreRefused) {
  fs::create_symlink(root_ / "secret.bin", folder_ / "link.bin");
  fs::create_directory_symlink(root_, folder_ / "up");
  for (const std::string& location :
       {std::string("../secret.bin"), std::string("weights/../../secret.bin"),
        (root_ / "secret.bin").string(), std::string("link.bin"), std::string("up/secret.bin"),
        std::string("."), std::string("w\0.bin", 6)}) {
    EXPECT_EQ(Read(location, "", "").status().code(), absl::StatusCode::kInvalidArgument)
        << location;
  }
  EXPECT_EQ(Read("", "", "").status().message(),
            "external data: location, got '', expected the name of a file");
  EXPECT_EQ(Read("missing.bin", "", "").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ExternalDataTest, RangesAreChecked) {
  auto message = [&](const std::string& offset, const std::string& length) {
    return std::string(Read("weights/w.bin", offset, length).status().message());
  };
  EXPECT_EQ(message("12", "8"), "external data: 'weights/w.bin' has 16 bytes, expected 12 + 8");
  EXPECT_EQ(message("9223372036854775807", "8"),
            "external data: 'weights/w.bin' has 16 bytes, expected 9223372036854775807 + 8");
  EXPECT_EQ(message("0", "4"), "external data: length, got 4 bytes, expected 8");
  EXPECT_EQ(message("-8", ""), "external data: offset, got '-8', expected a number");
  EXPECT_EQ(message("1e3", ""), "external data: offset, got '1e3', expected a number");
}

TEST_F(ExternalDataTest, WhatIsNotAlignedIsCopied) {
  auto tensor = Read("weights/w.bin", "2", "8");
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor->bytes.data()) % alignof(float), 0u);
}

}  // namespace
}  // namespace svod
