// Loops, registers and scratch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "jit/target.h"
#include "tests/unit/jit/text_kernel.h"

namespace svod {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> Iota(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

// --- Loops ---------------------------------------------------------------------------------------

TEST(LowerTest, NestedAndSequentialLoops) {
  auto [y] = RunEverywhere(R"(kernel @k(%y: inout i32[12]) {
  %i = range 3 loop
    %j = range 4 loop
      %a = mul %i, 10
      %b = add %a, %j
      %c = cast %b : i32
      %p = mul %i, 4
      %q = add %p, %j
      store %y[%q], %c
    end %j
  end %i
  %k = range 12 loop
    %v = load %y[%k]
    %w = add %v, 1
    store %y[%k], %w
  end %k
})",
                           std::vector<int32_t>(12));
  EXPECT_THAT(y, ElementsAre(1, 2, 3, 4, 11, 12, 13, 14, 21, 22, 23, 24));
}

TEST(LowerTest, SymbolicEndsOfZeroAndBelowRunNoTimes) {
  constexpr char kText[] = R"(kernel @k(%y: inout i64[8]) {
  %n = define_var "n", min=-5, max=8
  %m = define_var "m", min=-5, max=8
  %count = reg i64[1]
  store %count[0], 100
  %i = range %n loop
    %j = range %m loop
      %v = load %count[0]
      %w = add %v, 1
      store %count[0], %w
    end %j
    %f = load %count[0]
    %g = add %f, 1000
    store %count[0], %g
  end %i
  %r = load %count[0]
  store %y[0], %r
})";
  auto run = [&](int64_t n, int64_t m) {
    auto [y] = RunLaunch(kText, {.variables = {{"n", n}, {"m", m}}}, std::vector<int64_t>(8));
    return y[0];
  };
  EXPECT_EQ(run(3, 4), 3112);
  EXPECT_EQ(run(3, 0), 3100);
  EXPECT_EQ(run(3, -2), 3100);
  EXPECT_EQ(run(0, 4), 100);
  EXPECT_EQ(run(-5, 4), 100);
  EXPECT_EQ(run(1, 1), 1101);
}

TEST(LowerTest, ConstantEndsOfZeroAndBelowRunNoTimes) {
  auto [y] = RunEverywhere(R"(kernel @k(%y: inout f32[4]) {
  %i = range 0 loop
    store %y[%i], 1.0
  end %i
  %j = range -3 loop
    store %y[0], 2.0
  end %j
})",
                           std::vector<float>(4, 7));
  EXPECT_THAT(y, Each(7));
}

TEST(LowerTest, CoreIdAndVariablesComeFromTheCall) {
  for (int64_t core = 0; core < 4; ++core) {
    auto [y] = RunLaunch(R"(kernel @k(%y: inout i64[8]) {
  %b = define_var "b", min=0, max=100
  %a = define_var "a", min=0, max=100
  %c = core_id 4
  %ab = mul %a, 1000
  %s = add %ab, %b
  %v = cast %s : i64
  %p = mul %c, 2
  store %y[%p], %v
})",
                         {.variables = {{"a", 3}, {"b", 7}}, .core_id = core},
                         std::vector<int64_t>(8, -1));
    EXPECT_EQ(y[static_cast<size_t>(2 * core)], 3007);
  }
}

// --- Registers and scratch -----------------------------------------------------------------------

TEST(LowerTest, RegistersStartAtZeroAndSurviveLoops) {
  auto [y, x] = RunEverywhere(R"(kernel @k(%y: out f32[4], %x: f32[64]) {
  %acc = reg f32[2]
  %i = range 8 loop
    %j = range 8 loop
      %p = mul %i, 8
      %q = add %p, %j
      %v = load %x[%q]
      %a = load %acc[0]
      %b = add %a, %v
      store %acc[0], %b
    end %j
    %c = load %acc[1]
    %d = add %c, 1.0
    store %acc[1], %d
  end %i
  %r = load %acc[0]
  store %y[0], %r
  %s = load %acc[1]
  store %y[1], %s
})",
                              std::vector<float>(4), Iota(64));
  EXPECT_EQ(y[0], 2016);
  EXPECT_EQ(y[1], 8);
}

// A promoted store under a gate keeps the old value where the gate is false.
TEST(LowerTest, GatedRegisterAccessesSelect) {
  auto [y, x] = RunEverywhere(R"(kernel @k(%y: out f32[16], %x: f32[16]) {
  %best = reg f32[1]
  %i = range 16 loop
    %v = load %x[%i]
    %b = load %best[0]
    %more = cmplt %b, %v
    store %best[0], %v, gate=%more
    %low = cmplt %i, 3
    %r = load %best[0], gate=%low, alt=-1.0
    store %y[%i], %r
  end %i
})",
                              std::vector<float>(16),
                              std::vector<float>{1, 5, 2, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 5);
  EXPECT_EQ(y[2], 5);
  EXPECT_EQ(y[3], -1);
}

TEST(LowerTest, RegistersOfVectorsAndEvenPartsOfThem) {
  auto [y, x] = RunEverywhere(R"(kernel @k(%y: out f32[16], %x: f32[64]) {
  %a = reg f32x8[2]
  %b = reg f32[16]
  %i = range 4 loop
    %p = mul %i, 16
    %q = add %p, 8
    %v = load %x[%p] : f32x8
    %w = load %x[%q] : f32x8
    %s = load %a[0]
    %t = add %s, %v
    store %a[0], %t
    %u = load %b[8] : f32x8
    %z = add %u, %w
    store %b[8], %z
  end %i
  %r = load %a[0]
  store %y[0], %r
  %l = load %b[8] : f32x8
  store %y[8], %l
})",
                              std::vector<float>(16), Iota(64));
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(y[i], 96 + 4 * static_cast<float>(i));
}

// Positions that are no constants, and mixed sizes: the array lies in memory.
TEST(LowerTest, IndexedRegistersLieInMemory) {
  auto [y, x] =
      RunEverywhere(R"(kernel @k(%y: out i32[8], %x: i32[8]) {
  %a = reg i32[8]
  %i = range 8 loop
    %v = load %x[%i]
    store %a[%i], %v
  end %i
  %j = range 8 loop
    %k = sub 7, %j
    %w = load %a[%k]
    store %y[%j], %w
  end %j
  %u = load %a[4] : i32x4
  store %y[0], %u
})",
                    std::vector<int32_t>(8), std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(y, ElementsAre(5, 6, 7, 8, 4, 3, 2, 1));
}

// The caller's scratch is full of garbage: what was not stored must read as 0 all the same.
TEST(LowerTest, ScratchHoldsZerosAndIsReported) {
  constexpr char kText[] = R"(kernel @k(%y: out f32[8]) {
  %s = local f32[100]
  %b = local bool[3]
  %r = reg f32[5000]
  %i = range 4 loop
    %p = mul %i, 25
    %v = cast %i : f32
    store %s[%p], %v
    store %r[%p], %v
    store %b[%i], true, gate=false
  end %i
  %j = range 8 loop
    %q = mul %j, 12
    %w = load %s[%q]
    %t = load %r[%q]
    %m = load %b[1]
    %n = cast %m : f32
    %x = add %w, %t
    %o = add %x, %n
    store %y[%j], %o
  end %j
})";
  auto [y] = RunEverywhere(kText, std::vector<float>(8, 9));
  EXPECT_THAT(y, Each(0));
  Module module = ParseKernel(kText);
  llvm::LLVMContext context;
  auto lowered = LowerToLlvm(module.functions[0].root, *HostTarget(), context);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  // Each array takes whole cache lines, large ones three more; 20,000 bytes of registers are too
  // many for the stack.
  EXPECT_EQ(lowered->scratch_bytes, 448 + 64 + 20032 + 192);
}

TEST(LowerTest, ScratchBeyondTheLimitIsRefused) {
  Module module = ParseKernel(R"(kernel @k(%y: out f32[8]) {
  %s = local f32[600000000]
  %v = load %s[5]
  store %y[0], %v
})");
  llvm::LLVMContext context;
  auto lowered = LowerToLlvm(module.functions[0].root, *HostTarget(), context);
  EXPECT_EQ(lowered.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(lowered.status().message()),
              HasSubstr("scratch of the kernel, got more than 2147483648 bytes"));
}

}  // namespace
}  // namespace svod
