// Models that were damaged: whatever is in the file, the answer is a graph or a status.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/unit/onnx/model_maker.h"
#include "tools/onnx/model_file.h"

namespace svod {
namespace {

// A model with something of everything that the importer follows.
ModelMaker Everything() {
  ModelMaker maker;
  maker.Input("x", "N 4").Input("c", "", onnx::TensorProto::BOOL).Output("y");
  maker.Floats("w", {1, 2, 3, 4, 5, 6, 7, 8}, {4, 2}).Ints("trips", {2}).Ints("flat", {-1, 2});
  maker.Node("MatMul", "x w", "a");
  SetInt(maker.Node("Softmax", "a", "b"), "axis", -1);
  maker.Node("Reshape", "b flat", "r");
  onnx::NodeProto& choice = maker.Node("If", "c", "i");
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx::GraphProto& branch = SetGraph(choice, name);
    AddNode(branch, "Neg", "r", "n");
    AddOutput(branch, "n");
  }
  onnx::SparseTensorProto& sparse = *maker.graph().add_sparse_initializer();
  sparse.mutable_values()->set_name("few");
  for (onnx::TensorProto* part : {sparse.mutable_values(), sparse.mutable_indices()}) {
    part->add_dims(1);
    part->set_data_type(onnx::TensorProto::INT64);
    part->add_int64_data(2);
  }
  sparse.add_dims(3);
  onnx::GraphProto& body = SetGraph(maker.Node("Loop", "trips - i", "y"), "body");
  for (const char* name : {"k", "go_on", "v"}) AddInput(body, name);
  AddNode(body, "Identity", "go_on", "still");
  AddNode(body, "Tanh", "v", "next");
  for (const char* name : {"still", "next"}) AddOutput(body, name);
  return maker;
}

// Imports and drops the result; a crash or a hang is the failure.
bool Import(const std::string& bytes) {
  auto model = ParseModel(bytes, "fuzz");
  if (!model.ok()) return false;
  OnnxImportOptions options;
  options.dims["N"] = {1, 4};
  return ImportOnnx(*model, options).ok();
}

std::string Damage(std::string bytes, std::mt19937& random) {
  int times = 1 + static_cast<int>(random() % 3);
  for (int i = 0; i < times && !bytes.empty(); ++i) {
    size_t at = random() % bytes.size();
    switch (random() % 4) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
        break;
      case 2:
        bytes.erase(at, 1 + random() % 8);
        break;
      default:
        bytes.insert(at, bytes.substr(random() % bytes.size(), 1 + random() % 16));
        break;
    }
  }
  return bytes;
}

TEST(OnnxFuzzTest, DamagedModelsGiveAStatus) {
  std::string bytes = Everything().Bytes();
  ASSERT_TRUE(Import(bytes));
  std::mt19937 random(1);
  int num_imported = 0;
  for (int i = 0; i < 4000; ++i) num_imported += Import(Damage(bytes, random)) ? 1 : 0;
  // Damage to names and numbers leaves some models whole.
  EXPECT_GT(num_imported, 40);
  EXPECT_LT(num_imported, 3900);
}

TEST(OnnxFuzzTest, ModelsThatAreCutShortAreRefused) {
  std::string bytes = Everything().Bytes();
  for (size_t size = 0; size < bytes.size(); ++size) Import(bytes.substr(0, size));
  EXPECT_FALSE(Import(bytes.substr(0, bytes.size() / 2)));
}

TEST(OnnxFuzzTest, DamagedConformanceModelsGiveAStatus) {
  namespace fs = std::filesystem;
  fs::path data = fs::path(SVOD_ONNX_TESTDATA) / "node";
  if (!fs::is_directory(data)) GTEST_SKIP() << "no conformance data";
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(data)) {
    if (fs::exists(entry.path() / "model.onnx")) paths.push_back(entry.path() / "model.onnx");
  }
  std::sort(paths.begin(), paths.end());
  std::mt19937 random(2);
  int num_refused = 0;
  for (const fs::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    for (int i = 0; i < 4; ++i) num_refused += Import(Damage(bytes.str(), random)) ? 0 : 1;
  }
  EXPECT_GT(num_refused, 100);
}

}  // namespace
}  // namespace svod
