#include "ir/dtype.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace svod {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

TEST(DTypeTest, EveryTypeReadsBackFromItsText) {
  for (int i = 0; i < kNumScalars; ++i) {
    for (int lanes : {1, 2, 16, kMaxLanes}) {
      DType dtype(static_cast<Scalar>(i), lanes);
      absl::StatusOr<DType> parsed = ParseDType(ToString(dtype));
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      EXPECT_EQ(*parsed, dtype) << ToString(dtype);
    }
  }
}

TEST(DTypeTest, VectorsOfIndexKeepTheirX) {
  EXPECT_EQ(ToString(DType(Scalar::kIndex)), "index");
  EXPECT_EQ(ToString(DType(Scalar::kIndex, 4)), "indexx4");
}

TEST(DTypeTest, UnknownTextsListTheTypes) {
  for (const char* text : {"", "f33", "f32y8", "xf32", "f32x", "x4", "f32x4x4"}) {
    absl::StatusOr<DType> parsed = ParseDType(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("expected one of bool, i8"))
        << text;
  }
  for (const char* text : {"f32x0", "f32x1025", "f32x-1"}) {
    absl::StatusOr<DType> parsed = ParseDType(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("expected 1 to 1024")) << text;
  }
}

TEST(DTypeTest, SizesAndKinds) {
  EXPECT_EQ(DType(Scalar::kBF16, 8).size_bytes(), 16);
  EXPECT_EQ(DType(Scalar::kBool).size_bytes(), 1);
  EXPECT_EQ(DType(Scalar::kBool).bits(), 1);
  EXPECT_EQ(DType(Scalar::kIndex).bits(), 64);
  EXPECT_TRUE(DType(Scalar::kIndex).is_signed());
  EXPECT_FALSE(DType(Scalar::kBool).is_integer());
  EXPECT_TRUE(DType(Scalar::kF16, 4).is_float());
  EXPECT_EQ(DType(Scalar::kF16, 4).element(), DType(Scalar::kF16));
}

TEST(DTypeTest, LimitsOfIntegers) {
  EXPECT_EQ(MinValue(Scalar::kI8), -128);
  EXPECT_EQ(MaxValue(Scalar::kI8), 127);
  EXPECT_EQ(MinValue(Scalar::kU32), 0);
  EXPECT_EQ(MaxValue(Scalar::kU32), 4294967295);
  EXPECT_EQ(MinValue(Scalar::kI64), kLowest);
  EXPECT_EQ(MaxValue(Scalar::kIndex), kHighest);
  EXPECT_EQ(MinValue(Scalar::kU64), 0);
  EXPECT_EQ(MaxValue(Scalar::kU64), kHighest);
  EXPECT_EQ(MinValue(Scalar::kBool), 0);
  EXPECT_EQ(MaxValue(Scalar::kBool), 1);
  EXPECT_EQ(MinValue(Scalar::kF32), kLowest);
  EXPECT_EQ(MaxValue(Scalar::kF32), kHighest);
}

}  // namespace
}  // namespace svod
