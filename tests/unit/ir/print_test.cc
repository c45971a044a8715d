#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"

namespace svod {
namespace {

using ::testing::HasSubstr;

// What `text` prints as; the printed text must print as itself, from the same nodes.
std::string Reprint(absl::string_view text) {
  auto context = std::make_shared<Context>();
  absl::StatusOr<Module> module = ParseModule(text, "t.uop", context);
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return "";
  absl::StatusOr<std::string> printed = Print(*module);
  EXPECT_TRUE(printed.ok()) << printed.status();
  if (!printed.ok()) return "";
  absl::StatusOr<Module> again = ParseModule(*printed, "printed.uop", context);
  EXPECT_TRUE(again.ok()) << again.status() << "\n" << *printed;
  if (!again.ok()) return "";
  EXPECT_EQ(again->functions.back().root, module->functions.back().root) << *printed;
  EXPECT_EQ(*Print(*again), *printed);
  return *printed;
}

constexpr absl::string_view kSaxpy =
    R"(kernel @saxpy(%y: inout f32[64], %x: f32[64], %a: f32[1]) opts=[upcast(0, 16)] {
  %i = range 64 loop
    %c = load %a[0]
    %v = load %x[%i]
    %w = load %y[%i]
    %r = mulacc %c, %v, %w
    store %y[%i], %r
  end %i
}
)";

TEST(Print, IndentsLoopsAndKeepsNames) {
  std::string printed = Reprint(kSaxpy);
  // The load of a loop-invariant element moves out of the loop.
  EXPECT_EQ(printed,
            R"(kernel @saxpy(%y: inout f32[64], %x: f32[64], %a: f32[1]) opts=[upcast(0, 16)] {
  %c = load %a[0]
  %i = range 64 loop
    %v = load %x[%i]
    %w = load %y[%i]
    %r = mulacc %c, %v, %w
    store %y[%i], %r
  end %i
}
)");
}

}  // namespace
}  // namespace svod
