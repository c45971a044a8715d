#include "tools/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace svod {
namespace {

using ::testing::HasSubstr;

Tensor Parse(absl::string_view spec) {
  absl::StatusOr<Tensor> tensor = ParseTensor(spec);
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  return tensor.ok() ? *tensor : Tensor();
}

std::string ErrorOf(absl::string_view spec) {
  absl::StatusOr<Tensor> tensor = ParseTensor(spec);
  EXPECT_FALSE(tensor.ok()) << spec;
  EXPECT_EQ(tensor.status().code(), absl::StatusCode::kInvalidArgument) << tensor.status();
  return std::string(tensor.status().message());
}

TEST(ParseTensor, ReadsValuesRowByRow) {
  Tensor tensor = Parse("2x3xi32=1,-2, 3,4,0x10,6");
  EXPECT_EQ(tensor.shape(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(FormatTensor(tensor), "[[ 1 -2  3]\n [ 4 16  6]]");
}

TEST(ParseTensor, OneValueFillsAll) {
  EXPECT_EQ(FormatTensor(Parse("3xf32=1.5")), "[1.5 1.5 1.5]");
}

TEST(ParseTensor, ScalarsEmptyAndExtremes) {
  EXPECT_EQ(FormatTensor(Parse("f32=2.5")), "2.5");
  EXPECT_EQ(FormatTensor(Parse("0x4xf32=")), "[]");
  EXPECT_EQ(FormatTensor(Parse("2xi8=-128,127")), "[-128  127]");
  EXPECT_EQ(FormatTensor(Parse("1xu64=18446744073709551615")), "[18446744073709551615]");
  EXPECT_EQ(FormatTensor(Parse("2xbool=true,0")), "[ True False]");
  EXPECT_EQ(FormatTensor(Parse("3xf32=nan,inf,-inf")), "[ nan  inf -inf]");
}

TEST(ParseTensor, IotaAndRandomAreReproducible) {
  EXPECT_EQ(FormatTensor(Parse("4xbf16=iota")), "[0. 1. 2. 3.]");
  Tensor a = Parse("100xf32=random(3)"), b = Parse("100xf32=random(3)"),
         c = Parse("100xf32=random");
  EXPECT_TRUE(std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin()));
  EXPECT_FALSE(std::equal(a.bytes().begin(), a.bytes().end(), c.bytes().begin()));
}

TEST(ParseTensor, ErrorsSayWhatWasExpected) {
  EXPECT_THAT(ErrorOf("2xf32"), HasSubstr("expected TYPE=VALUES"));
  EXPECT_THAT(ErrorOf("2xf33=1"), HasSubstr("unknown dtype 'f33'"));
  EXPECT_THAT(ErrorOf("2xf32=1,2,3"), HasSubstr("number of values, got 3, expected 2 or 1"));
  EXPECT_THAT(ErrorOf("2xi8=1,128"), HasSubstr("value 1, got 128, expected a value of i8"));
  EXPECT_THAT(ErrorOf("2xu8=-1"), HasSubstr("got -1, expected a value of u8, 0 to 255"));
  EXPECT_THAT(ErrorOf("2xi32=1.5"), HasSubstr("got '1.5', expected a value of i32"));
  EXPECT_THAT(ErrorOf("2xf32=random(x)"), HasSubstr("seed"));
  EXPECT_THAT(ErrorOf("99999999999999999999xf32=1"), HasSubstr("dimension"));
}

TEST(ParseTensor, HugeSizesAreRefusedBeforeAllocation) {
  EXPECT_EQ(ParseTensor("4611686018427387904x4xf32=0").status().code(),
            absl::StatusCode::kResourceExhausted);
}

// The expected texts are what NumPy 1.24 prints for the same arrays.
TEST(FormatTensor, FloatsLikeNumPy) {
  EXPECT_EQ(FormatTensor(Parse("4xf32=1,2.5,-3.25,100")), "[  1.     2.5   -3.25 100.  ]");
  EXPECT_EQ(FormatTensor(Parse("3xf32=0.1,0.2,0.3")), "[0.1 0.2 0.3]");
  EXPECT_EQ(FormatTensor(Parse("2xf64=0.333333333333333333,1")), "[0.33333333 1.        ]");
  EXPECT_EQ(FormatTensor(Parse("2xf32=1e-5,1")), "[1.e-05 1.e+00]");
  EXPECT_EQ(FormatTensor(Parse("2xf32=1e10,1")), "[1.e+10 1.e+00]");
  EXPECT_EQ(FormatTensor(Parse("2xf16=0.1,65504")), "[1.00e-01 6.55e+04]");
}

TEST(FormatTensor, NestsAndSummarisesLikeNumPy) {
  EXPECT_EQ(FormatTensor(Parse("2x2x2xi32=iota")), "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]");
  EXPECT_EQ(FormatTensor(Parse("2000xi32=iota")), "[   0    1    2 ... 1997 1998 1999]");
  EXPECT_EQ(FormatTensor(Parse("30xi32=iota")),
            "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n"
            " 24 25 26 27 28 29]");
}

}  // namespace
}  // namespace svod
