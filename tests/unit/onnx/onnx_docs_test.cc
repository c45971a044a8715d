#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "tools/onnx/onnx_operators.h"

namespace svod {
namespace {

// To write the page anew, run this test with SVOD_ONNX_PAGE_TO set to where it should go.
TEST(OnnxDocsTest, ThePageIsThatOfTheTable) {
  std::ifstream file(SVOD_ONNX_PAGE);
  ASSERT_TRUE(file.good());
  std::stringstream page;
  page << file.rdbuf();
  if (const char* path = std::getenv("SVOD_ONNX_PAGE_TO")) {
    std::ofstream(path) << OnnxOperatorsPage();
  }
  EXPECT_TRUE(page.str() == OnnxOperatorsPage())
      << "docs/onnx.md is not what the operator table gives: run\n"
      << "  SVOD_ONNX_PAGE_TO=docs/onnx.md svod_onnx_test --gtest_filter=*ThePageIs*";
}

TEST(OnnxOperatorsTest, RowsHaveAscendingVersionsAndOneNameEach) {
  std::set<std::string> names;
  for (const OnnxOperator& op : OnnxOperators()) {
    std::string name = std::string(op.domain) + ":" + std::string(op.name);
    EXPECT_TRUE(names.insert(name).second) << name << " stands in the table twice";
    ASSERT_FALSE(op.versions.empty()) << name;
    EXPECT_TRUE(std::is_sorted(op.versions.begin(), op.versions.end())) << name;
    if (op.domain.empty()) {
      EXPECT_LE(op.versions.back(), kMaxOnnxOpset) << name;
    }
    EXPECT_EQ(FindOnnxOperator(op.domain, op.name), &op);
  }
  EXPECT_GT(names.size(), 100u);
  EXPECT_EQ(FindOnnxOperator("ai.onnx", "Relu"), FindOnnxOperator("", "Relu"));
  EXPECT_EQ(FindOnnxOperator("", "NoSuch"), nullptr);
}

}  // namespace
}  // namespace svod
