#include "jit/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jit/target_machine.h"

namespace svod {
namespace {

using ::testing::HasSubstr;

void ExpectError(const absl::StatusOr<Target>& target, absl::StatusCode code,
                 const std::string& message) {
  EXPECT_EQ(target.status().code(), code) << target.status();
  EXPECT_THAT(std::string(target.status().message()), HasSubstr(message));
}

TEST(TargetTest, HostRunsHere) {
  auto host = HostTarget();
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_TRUE(host->is_host);
  EXPECT_FALSE(host->cpu.empty());
  EXPECT_FALSE(host->features.empty());
  EXPECT_TRUE(CreateTargetMachine(*host).ok());
}

TEST(TargetTest, EmptyAndHostNameTheHost) {
  auto host = HostTarget();
  ASSERT_TRUE(host.ok());
  for (const char* cpu : {"", "host", "native"}) {
    auto target = MakeTarget("", cpu, "");
    ASSERT_TRUE(target.ok()) << target.status();
    EXPECT_TRUE(*target == *host) << cpu;
  }
}

TEST(TargetTest, FeaturesFollowTheCpu) {
  auto plain = MakeTarget("x86_64-linux-gnu", "x86-64", "");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->vector_bytes, 16);
  EXPECT_FALSE(plain->has_fma);
  EXPECT_FALSE(plain->has_round);
  EXPECT_FALSE(plain->has_half);

  auto haswell = MakeTarget("x86_64-linux-gnu", "haswell", "");
  ASSERT_TRUE(haswell.ok());
  EXPECT_EQ(haswell->vector_bytes, 32);
  EXPECT_EQ(haswell->vector_registers, 16);
  EXPECT_TRUE(haswell->has_fma && haswell->has_round && haswell->has_half);

  for (const char* cpu : {"skylake-avx512", "znver5"}) {
    auto wide = MakeTarget("x86_64-linux-gnu", cpu, "");
    ASSERT_TRUE(wide.ok());
    EXPECT_EQ(wide->vector_bytes, 64);
    EXPECT_EQ(wide->vector_registers, 32);
  }
}

TEST(TargetTest, FeaturesAreAddedAndTakenAway) {
  auto target = MakeTarget("x86_64-linux-gnu", "haswell", "-fma,+avx512f");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_TRUE(HasFeature(*target, "avx512f"));
  auto without = MakeTarget("x86_64-linux-gnu", "haswell", "-fma");
  ASSERT_TRUE(without.ok());
  EXPECT_FALSE(without->has_fma);
  EXPECT_FALSE(HasFeature(*without, "fma"));
  EXPECT_TRUE(HasFeature(*without, "avx2"));
  // What the CPU has and the request takes away is said, or the CPU's name would bring it back.
  EXPECT_THAT(without->features, HasSubstr("-fma"));
}

TEST(TargetTest, EqualRequestsGiveEqualStrings) {
  auto a = MakeTarget("x86_64-linux-gnu", "x86-64", "+avx2,+fma");
  auto b = MakeTarget("x86_64-pc-linux-gnu", "x86-64", "+fma,+avx,+avx2");
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->features, b->features);
}

TEST(TargetTest, CrossTargets) {
  auto arm = MakeTarget("aarch64-linux-gnu", "", "");
  ASSERT_TRUE(arm.ok()) << arm.status();
  EXPECT_EQ(arm->architecture, Architecture::kAArch64);
  EXPECT_EQ(arm->cpu, "generic");
  EXPECT_TRUE(arm->has_fma && arm->has_round && arm->has_half);
  EXPECT_TRUE(CreateTargetMachine(*arm).ok());
  EXPECT_TRUE(MakeTarget("aarch64-linux-gnu", "neoverse-v2", "").ok());
}

TEST(TargetTest, UnknownNamesListNearOnes) {
  ExpectError(MakeTarget("x86_64-linux-gnu", "znver9", ""), absl::StatusCode::kInvalidArgument,
              "target: unknown CPU 'znver9' for x86_64-unknown-linux-gnu, near names: znver1");
  ExpectError(
      MakeTarget("x86_64-linux-gnu", "", "+avx513f"), absl::StatusCode::kInvalidArgument,
      "target: unknown feature 'avx513f' for x86_64-unknown-linux-gnu, near names: avx512f");
  ExpectError(MakeTarget("aarch64-linux-gnu", "haswell", ""), absl::StatusCode::kInvalidArgument,
              "target: unknown CPU 'haswell' for aarch64-unknown-linux-gnu");
  ExpectError(MakeTarget("pdp11-linux-gnu", "", ""), absl::StatusCode::kInvalidArgument,
              "target: unknown triple 'pdp11-linux-gnu', expected one such as x86_64-linux-gnu");
  ExpectError(MakeTarget("", "x86-64", "avx2"), absl::StatusCode::kInvalidArgument,
              "target: feature 'avx2', expected +name or -name, such as +avx2");
}

TEST(TargetTest, RefusesWhatLoweringDoesNotCover) {
  for (const char* triple :
       {"x86_64-pc-windows-msvc", "x86_64-linux-gnux32", "i686-linux-gnu", "aarch64_be-linux-gnu",
        "riscv64-linux-gnu", "wasm32-unknown-unknown"}) {
    ExpectError(MakeTarget(triple, "", ""), absl::StatusCode::kUnimplemented,
                "expected Linux on x86-64 or AArch64 with 64-bit pointers");
  }
  ExpectError(MakeTarget("x86_64-linux-gnu", "x86-64", "-sse2"), absl::StatusCode::kUnimplemented,
              "target: without feature sse2 no code can be generated");
  ExpectError(MakeTarget("x86_64-linux-gnu", "i486", ""), absl::StatusCode::kUnimplemented,
              "target: without feature 64bit no code can be generated");
  ExpectError(MakeTarget("x86_64-linux-gnu", "", "+soft-float"), absl::StatusCode::kUnimplemented,
              "target: with feature soft-float no code can be generated");
  ExpectError(MakeTarget("aarch64-linux-gnu", "", "-neon"), absl::StatusCode::kUnimplemented,
              "target: without feature neon no code can be generated");
}

}  // namespace
}  // namespace svod
