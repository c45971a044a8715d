// Sums of products of bytes as sums of dot products: no bit changes, whatever the signs, sizes and
// actions that follow.
#include "ir/passes/dot_products.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "gmock/gmock.h"
#include "ir/evaluate.h"
#include "ir/passes/loop_actions.h"
#include "ir/passes/lower_reduce.h"
#include "ir/text.h"

namespace svod {
namespace {

using ::testing::HasSubstr;

constexpr int kRows = 6, kColumns = 20;

Module Parse(absl::string_view text) {
  auto module = ParseModule(text, "k.uop", std::make_shared<Context>());
  EXPECT_TRUE(module.ok()) << module.status() << "\n" << text;
  return module.ok() ? *std::move(module) : Module();
}

// Products of a, [rows, size], and b, [size, columns].
std::string Product(const char* a, const char* b, int size) {
  return absl::Substitute(R"(
kernel @mm(%y: out i32[$0, $1], %a: $2[$0, $4], %b: $3[$4, $1]) {
  %i = range $0 loop
    %j = range $1 loop
      %k = range $4 reduce
      %v = load %a[%i, %k]
      %w = load %b[%k, %j]
      %x = cast %v : i32
      %z = cast %w : i32
      %p = mul %x, %z
      %s = reduce_add %p, %k
      store %y[%i, %j], %s
    end %j
  end %i
})",
                          kRows, kColumns, a, b, size);
}

std::vector<int32_t> Results(const UOp* sink, size_t num_results, std::vector<size_t> sizes) {
  std::vector<int32_t> results(num_results);
  std::vector<std::vector<uint8_t>> buffers;
  for (size_t size : sizes) buffers.emplace_back(size);
  std::vector<absl::Span<std::byte>> spans = {
      {reinterpret_cast<std::byte*>(results.data()), 4 * results.size()}};
  unsigned state = 1;
  for (std::vector<uint8_t>& buffer : buffers) {
    for (uint8_t& byte : buffer) {
      state = state * 1664525 + 1013904223;
      byte = state >> 28 == 0 ? 0x80 : static_cast<uint8_t>(state >> 20);
    }
    spans.push_back({reinterpret_cast<std::byte*>(buffer.data()), buffer.size()});
  }
  absl::Status status = Evaluate(sink, spans);
  EXPECT_TRUE(status.ok()) << status;
  return results;
}

const UOp* Apply(const UOp* sink, const char* text, PassContext& pass) {
  auto action = ParseLoopAction(text);
  EXPECT_TRUE(action.ok()) << action.status();
  auto result = ApplyLoopAction(sink, *action, pass);
  EXPECT_TRUE(result.ok()) << result.status() << "\n" << PrintCanonical(sink).value_or("");
  return result.value_or(sink);
}

TEST(DotProducts, NoBitChangesForAnySignsAndSizes) {
  for (const char* a : {"i8", "u8"}) {
    for (const char* b : {"i8", "u8"}) {
      for (int size : {1, 3, 4, 7, 8, 17}) {
        SCOPED_TRACE(absl::StrCat(a, " ", b, " ", size));
        Module module = Parse(Product(a, b, size));
        const UOp* sink = module.functions[0].root;
        const auto elements = static_cast<size_t>(size);
        std::vector<size_t> sizes = {kRows * elements, kColumns * elements};
        const std::vector<int32_t> expected = Results(sink, kRows * kColumns, sizes);
        PassContext pass(*module.context);
        sink = Apply(sink, "dot(2)", pass);
        EXPECT_THAT(PrintCanonical(sink).value_or(""), HasSubstr("dot_u8i8"));
        for (const char* action : {"", "pack(0, 1)", "upcast(1, 8)", "unroll(0, 4)"}) {
          if (*action != 0) sink = Apply(sink, action, pass);
          EXPECT_EQ(Results(sink, kRows * kColumns, sizes), expected) << action;
        }
        sink = RunLowerReduce(sink, pass).value_or(sink);
        EXPECT_EQ(Results(sink, kRows * kColumns, sizes), expected) << "lowered";
      }
    }
  }
}

// A sum that is put right is computed once for all rows.
TEST(DotProducts, SumsThatIterationsShareGetPanels) {
  Module module = Parse(Product("i8", "i8", 8));
  PassContext pass(*module.context);
  const UOp* sink = Apply(module.functions[0].root, "dot(2)", pass);
  sink = Apply(sink, "pack(0, 1)", pass);
  int sums_in_rows = 0, locals = 0;
  for (const UOp* node : Toposort(sink)) {
    locals += node->op() == Op::kLocal;
    sums_in_rows += node->op() == Op::kReduce && node->source(0)->op() == Op::kDotU8I8;
  }
  EXPECT_EQ(locals, 2);
  EXPECT_EQ(sums_in_rows, 1);
}

// A window with a border, whose zeros were chosen in i32; sums over two counters.
TEST(DotProducts, PaddedFactorsAndSumsOverSeveralCounters) {
  Module module = Parse(R"(
kernel @conv(%y: out i32[5, 8], %a: i8[5, 2, 9], %b: u8[2, 12]) {
  %i = range 5 loop
    %j = range 8 loop
      %c = range 2 reduce
      %k = range 9 reduce
      %v = load %a[%i, %c, %k]
      %at = add %j, %k
      %from = sub %at, 2
      %inside = cmplt 1, %at
      %w = load %b[%c, %from]
      %x = cast %v : i32
      %z = cast %w : i32
      %padded = where %inside, %z, 3
      %p = mul %x, %padded
      %s = reduce_add %p, %c, %k
      store %y[%i, %j], %s
    end %j
  end %i
})");
  const UOp* sink = module.functions[0].root;
  const std::vector<int32_t> expected = Results(sink, 40, {90, 24});
  PassContext pass(*module.context);
  for (const char* action : {"dot(3)", "pack(0, 1)", "upcast(1, 8)"}) {
    sink = Apply(sink, action, pass);
    EXPECT_EQ(Results(sink, 40, {90, 24}), expected) << action;
  }
}

TEST(DotProducts, WhatIsNoSumOfProductsOfBytesIsRefused) {
  auto refusal = [](const std::string& text, const char* action) {
    Module module = Parse(text);
    PassContext pass(*module.context);
    auto result = ApplyLoopAction(module.functions[0].root, *ParseLoopAction(action), pass);
    return std::string(result.status().message());
  };
  EXPECT_THAT(refusal(Product("i8", "i8", 8), "dot(1)"),
              HasSubstr("dot(1): axis, got a loop, expected a reduction's"));
  EXPECT_THAT(refusal(Product("i8", "i8", 8), "dot(9)"), HasSubstr("none of the kernel's loops"));
  EXPECT_THAT(refusal(Product("i8", "i16", 8), "dot(2)"), HasSubstr("a factor is not of 8 bits"));
  std::string maximum = Product("i8", "i8", 8);
  maximum.replace(maximum.find("reduce_add"), 10, "reduce_max");
  EXPECT_THAT(refusal(maximum, "dot(2)"), HasSubstr("not one of products in i32"));
}

}  // namespace
}  // namespace svod
