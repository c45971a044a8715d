// Cases that users of other tensor compilers reported, as kernels in machine code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "jit/target.h"
#include "tests/unit/ir/raw_graph.h"
#include "tests/unit/jit/text_kernel.h"

namespace svod {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Reported case 1 (and 30): the maximum and minimum of rows with NaN are NaN, wherever it stands.
TEST(LowerReportedTest, ExtremesOfNanAreNan) {
  for (const char* op : {"max", "min"}) {
    std::string start = std::string(op) == "max" ? "-inf" : "inf";
    auto [y, x] = RunEverywhere(absl::StrCat(R"(kernel @k(%y: out f32[4], %x: f32[4, 2]) {
  %r = range 4 loop
    %acc = reg f32[1]
    store %acc[0], )",
                                             start, R"(
    %i = range 2 loop
      %v = load %x[%r, %i]
      %a = load %acc[0]
      %b = )",
                                             op, R"( %a, %v
      store %acc[0], %b
    end %i
    %c = load %acc[0]
    store %y[%r], %c
  end %r
})"),
                                std::vector<float>(4),
                                std::vector<float>{1, kNan, kNan, 1, kNan, kNan, -0.0f, 0.0f});
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]) && std::isnan(y[2]));
    EXPECT_EQ(y[3], 0);
    EXPECT_EQ(std::signbit(y[3]), std::string(op) == "min");
  }
}

// Reported case 12: 16 numbers padded to 32 by gates, in vectors; the maximum of negative ones.
TEST(LowerReportedTest, PaddedReductionIgnoresThePadding) {
  std::vector<float> x(16);
  std::iota(x.begin(), x.end(), -20.0f);
  auto [y, unused] = RunEverywhere(R"(kernel @k(%y: out f32[2], %x: f32[16]) {
  %acc = reg f32x8[2]
  %low = splat -inf : f32x8
  store %acc[0], %low
  %i = range 4 loop
    %p = mul %i, 8
    %inside = cmplt %p, 16
    %v = load %x[%p], gate=%inside, alt=%low : f32x8
    %a = load %acc[0]
    %b = max %a, %v
    store %acc[0], %b
    %zero = load %x[%p], gate=%inside : f32x8
    %c = load %acc[1]
    %d = add %c, %zero
    store %acc[1], %d
  end %i
  %m = load %acc[0]
  %m4 = lanes %m, [4, 5, 6, 7]
  %n4 = lanes %m, [0, 1, 2, 3]
  %k4 = max %m4, %n4
  %k0 = lanes %k4, [0]
  %k1 = lanes %k4, [1]
  %k2 = lanes %k4, [2]
  %k3 = lanes %k4, [3]
  %e0 = max %k0, %k1
  %e1 = max %k2, %k3
  %e = max %e0, %e1
  store %y[0], %e
  %s = load %acc[1]
  %s0 = lanes %s, [0]
  store %y[1], %s0
})",
                                   std::vector<float>(2), x);
  EXPECT_EQ(y[0], -5);
  EXPECT_EQ(y[1], -20 + -12);
}

// Reported case 23: 5000 ones of u8 summed in i32; the largest of negative integers.
TEST(LowerReportedTest, SumsInTheWiderType) {
  auto [y, x, z] = RunEverywhere(R"(kernel @k(%y: out i32[2], %x: u8[5000], %z: i32[4]) {
  %acc = reg i32[2]
  store %acc[1], -2147483648
  %i = range 5000 loop
    %v = load %x[%i]
    %w = cast %v : i32
    %a = load %acc[0]
    %b = add %a, %w
    store %acc[0], %b
  end %i
  %j = range 4 loop
    %c = load %z[%j]
    %d = load %acc[1]
    %e = max %c, %d
    store %acc[1], %e
  end %j
  %r = load %acc[0]
  store %y[0], %r
  %s = load %acc[1]
  store %y[1], %s
})",
                                 std::vector<int32_t>(2), std::vector<uint8_t>(5000, 1),
                                 std::vector<int32_t>{-9, -3, -7, -2147483647});
  EXPECT_THAT(y, ElementsAre(5000, -3));
}

// Reported case 25: a kernel fed by 40 and by 100 buffers.
TEST(LowerReportedTest, HundredBuffers) {
  for (int count : {40, 100}) {
    RawGraph g;
    const UOp* sum = g.Float(0);
    for (int slot = 1; slot <= count; ++slot) {
      sum = g.Add(sum, g.Load(g.Param(slot, 8, Access::kIn), g.Int(0), 8 / 8));
    }
    const UOp* sink = g.Kernel({g.Store(g.Param(0, 8, Access::kOut), g.Int(0), sum)});
    for (const auto& [name, target] : RunnableTargets()) {
      auto kernel = Load(sink, target);
      ASSERT_TRUE(kernel.ok()) << name << kernel.status();
      std::vector<float> memory(static_cast<size_t>(count) + 1);
      std::vector<void*> pointers;
      for (int slot = 0; slot <= count; ++slot) {
        memory[static_cast<size_t>(slot)] = static_cast<float>(slot);
        pointers.push_back(&memory[static_cast<size_t>(slot)]);
      }
      kernel->Run(pointers);
      EXPECT_EQ(memory[0], static_cast<float>(count * (count + 1) / 2)) << name;
    }
  }
}

// Reported cases 4, 10 and 11 and the paragraph "also", not folded because the values are loaded.
TEST(LowerReportedTest, ArithmeticThatMustNotBeFolded) {
  auto [y, z, x, i] =
      RunEverywhere(R"(kernel @k(%y: out f32[8], %z: out bool[4], %x: f32[8], %i: i32[1]) {
  %nan = load %x[1]
  %inf = load %x[2]
  %large = load %x[3]
  %minus = load %x[4]
  %zero = load %x[5]
  %max = load %i[0]
  %next = add %max, 1
  %less = cmplt %next, %max
  store %z[0], %less
  %isnan = cmpne %nan, %nan
  store %z[1], %isnan
  %isinf = cmpeq %inf, inf
  store %z[2], %isinf
  %true = cast %nan : bool
  store %z[3], %true
  %a = fdiv %zero, %zero
  store %y[0], %a
  %b = mul %nan, 0.0
  store %y[1], %b
  %c = mul %large, 10.0
  %d = fdiv %c, 10.0
  store %y[2], %d
  %e = mul %minus, 1.0
  store %y[3], %e
  %f = sub %minus, 0.0
  store %y[4], %f
  %g = add %minus, 0.0
  store %y[5], %g
  %h = add %minus, -0.0
  store %y[6], %h
})",
                    std::vector<float>(8), std::vector<uint8_t>(4),
                    std::vector<float>{1, kNan, kInfinity, 1e38f, -0.0f, 0, 0, 0},
                    std::vector<int32_t>{2147483647});
  EXPECT_THAT(z, Each(1));
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
  EXPECT_EQ(y[2], kInfinity);
  EXPECT_TRUE(std::signbit(y[3]) && std::signbit(y[4]) && !std::signbit(y[5]) &&
              std::signbit(y[6]));
}

// Case 24 for a kernel: a long chain neither recurses nor overflows in the code generator.
TEST(LowerReportedTest, LongChain) {
  RawGraph g;
  const UOp* value = g.Load(g.Param(0, 1), g.Int(0));
  for (int i = 0; i < 10000; ++i) value = g.Make(Op::kNeg, {g.Make(Op::kSqrt, {value})});
  auto object = CompileForTest(g.Kernel({g.Store(g.Param(1, 1), g.Int(0), value)}), *HostTarget());
  EXPECT_TRUE(object.ok()) << object.status();
}

}  // namespace
}  // namespace svod
