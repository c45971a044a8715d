// The meaning of every elementwise op, value by value.
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/evaluate.h"

namespace svod {
namespace {

constexpr Scalar kIntegers[] = {Scalar::kI8,  Scalar::kI16, Scalar::kI32,
                                Scalar::kI64, Scalar::kU8,  Scalar::kU16,
                                Scalar::kU32, Scalar::kU64, Scalar::kIndex};
constexpr Scalar kFloats[] = {Scalar::kF16, Scalar::kBF16, Scalar::kF32, Scalar::kF64};
const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

// An integer of a dtype as bits, and back.
uint64_t ToBits(DType dtype, int64_t value) {
  return dtype.bits() == 64 ? static_cast<uint64_t>(value)
                            : static_cast<uint64_t>(value) & ((uint64_t{1} << dtype.bits()) - 1);
}
int64_t FromBits(DType dtype, uint64_t bits) {
  if (!dtype.is_signed() || dtype.bits() == 64) return static_cast<int64_t>(bits);
  int shift = 64 - dtype.bits();
  return static_cast<int64_t>(bits << shift) >> shift;
}

int64_t Int(Op op, DType dtype, std::vector<int64_t> operands) {
  std::vector<uint64_t> bits;
  for (int64_t value : operands) bits.push_back(ToBits(dtype, value));
  return FromBits(dtype, EvaluateScalar(op, dtype, dtype, bits));
}

double Float(Op op, DType dtype, std::vector<double> operands) {
  std::vector<uint64_t> bits;
  for (double value : operands) bits.push_back(DoubleToBits(dtype.scalar, value));
  return BitsToDouble(dtype.scalar, EvaluateScalar(op, dtype, dtype, bits));
}

bool Compare(Op op, DType dtype, double x, double y) {
  std::vector<uint64_t> bits = {DoubleToBits(dtype.scalar, x), DoubleToBits(dtype.scalar, y)};
  return EvaluateScalar(op, Scalar::kBool, dtype, bits) != 0;
}

int64_t FloatToInt(DType from, double value, DType to) {
  uint64_t bits = DoubleToBits(from.scalar, value);
  return FromBits(to, EvaluateScalar(Op::kCast, to, from, {bits}));
}

double IntToFloat(DType from, uint64_t bits, DType to) {
  return BitsToDouble(to.scalar, EvaluateScalar(Op::kCast, to, from, {bits}));
}

bool IsMinusZero(double value) { return value == 0 && std::signbit(value); }

TEST(EvaluateScalarTest, IntegersWrap) {
  for (Scalar scalar : kIntegers) {
    DType dtype(scalar);
    SCOPED_TRACE(ToString(dtype));
    int64_t min = MinValue(dtype);
    int64_t max = scalar == Scalar::kU64 ? -1 : MaxValue(dtype);  // as FromBits shows it
    EXPECT_EQ(Int(Op::kAdd, dtype, {max, 1}), min);               // reported case 4
    EXPECT_EQ(Int(Op::kSub, dtype, {min, 1}), max);
    EXPECT_EQ(Int(Op::kMul, dtype, {max, 2}), FromBits(dtype, ToBits(dtype, -2)));
    EXPECT_EQ(Int(Op::kNeg, dtype, {min}), min);  // reported: neg of i8 -128
    EXPECT_EQ(Int(Op::kAbs, dtype, {min}), min);  // reported: abs of i8 -128
    EXPECT_EQ(Int(Op::kNot, dtype, {min}), max);
    EXPECT_EQ(Int(Op::kMulAcc, dtype, {max, 2, 3}), FromBits(dtype, ToBits(dtype, 1)));
  }
  EXPECT_EQ(Int(Op::kAdd, Scalar::kI32, {2147483647, 1}), -2147483648);
  EXPECT_EQ(Int(Op::kMul, Scalar::kU16, {65535, 65535}), 1);  // int overflow in plain C++
}

TEST(EvaluateScalarTest, DivisionPairs) {  // reported case 2
  const int64_t a[] = {-7, 7, -7, 7}, b[] = {2, -2, -2, 2};
  const int64_t floordiv[] = {-4, -4, 3, 3}, floormod[] = {1, -1, -1, 1};
  const int64_t cdiv[] = {-3, -3, 3, 3}, cmod[] = {-1, 1, -1, 1};
  for (Scalar scalar : {Scalar::kI8, Scalar::kI16, Scalar::kI32, Scalar::kI64, Scalar::kIndex}) {
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(Int(Op::kFloordiv, scalar, {a[i], b[i]}), floordiv[i]);
      EXPECT_EQ(Int(Op::kFloormod, scalar, {a[i], b[i]}), floormod[i]);
      EXPECT_EQ(Int(Op::kCdiv, scalar, {a[i], b[i]}), cdiv[i]);
      EXPECT_EQ(Int(Op::kCmod, scalar, {a[i], b[i]}), cmod[i]);
    }
  }
}

TEST(EvaluateScalarTest, DivisionByZeroAndOfTheSmallest) {  // reported case 3
  for (Scalar scalar : kIntegers) {
    DType dtype(scalar);
    SCOPED_TRACE(ToString(dtype));
    int64_t min = MinValue(dtype);
    for (int64_t x : {int64_t{1}, min, int64_t{5}}) {
      EXPECT_EQ(Int(Op::kCdiv, dtype, {x, 0}), 0);
      EXPECT_EQ(Int(Op::kFloordiv, dtype, {x, 0}), 0);
      EXPECT_EQ(Int(Op::kCmod, dtype, {x, 0}), x);
      EXPECT_EQ(Int(Op::kFloormod, dtype, {x, 0}), x);
    }
    if (!dtype.is_signed()) continue;
    EXPECT_EQ(Int(Op::kCdiv, dtype, {min, -1}), min);
    EXPECT_EQ(Int(Op::kFloordiv, dtype, {min, -1}), min);
    EXPECT_EQ(Int(Op::kCmod, dtype, {min, -1}), 0);
    EXPECT_EQ(Int(Op::kFloormod, dtype, {min, -1}), 0);
  }
}

TEST(EvaluateScalarTest, DivisionIdentitiesForEveryPairOfI8AndU8) {
  for (Scalar scalar : {Scalar::kI8, Scalar::kU8}) {
    DType dtype(scalar);
    for (int64_t x = MinValue(dtype); x <= MaxValue(dtype); ++x) {
      for (int64_t y = MinValue(dtype); y <= MaxValue(dtype); ++y) {
        if (y == 0) continue;
        int64_t floor =
            static_cast<int64_t>(std::floor(static_cast<double>(x) / static_cast<double>(y)));
        ASSERT_EQ(Int(Op::kFloordiv, dtype, {x, y}), FromBits(dtype, ToBits(dtype, floor)));
        ASSERT_EQ(Int(Op::kFloormod, dtype, {x, y}), x - floor * y) << x << " " << y;
        ASSERT_EQ(Int(Op::kCdiv, dtype, {x, y}), FromBits(dtype, ToBits(dtype, x / y)));
        ASSERT_EQ(Int(Op::kCmod, dtype, {x, y}), x % y);
      }
    }
  }
}

TEST(EvaluateScalarTest, DivisionIsExactNearTheEndsOfI64) {  // reported: i64 division near 2^62
  int64_t big = (int64_t{1} << 62) + 1;
  EXPECT_EQ(Int(Op::kFloordiv, Scalar::kI64, {big, 3}), big / 3);
  EXPECT_EQ(Int(Op::kFloordiv, Scalar::kI64, {-big, 3}), -big / 3 - 1);
  EXPECT_EQ(Int(Op::kFloormod, Scalar::kI64, {-big, 3}), (-big) - (-big / 3 - 1) * 3);
  EXPECT_EQ(Int(Op::kCdiv, Scalar::kU64, {-1, 10}), 1844674407370955161);
}

TEST(EvaluateScalarTest, ShiftsByTheWidthOrMore) {  // reported case 6
  EXPECT_EQ(Int(Op::kShl, Scalar::kU8, {255, 32}), 0);
  EXPECT_EQ(Int(Op::kShr, Scalar::kU64, {1, 64}), 0);
  EXPECT_EQ(Int(Op::kShr, Scalar::kI32, {-8, 33}), -1);
  for (Scalar scalar : kIntegers) {
    DType dtype(scalar);
    int64_t width = dtype.bits();
    EXPECT_EQ(Int(Op::kShl, dtype, {1, width}), 0);
    EXPECT_EQ(Int(Op::kShl, dtype, {1, width - 1}), FromBits(dtype, uint64_t{1} << (width - 1)));
    EXPECT_EQ(Int(Op::kShr, dtype, {1, width}), 0);
    EXPECT_EQ(Int(Op::kShl, dtype, {3, -1}), 0);  // read as unsigned
    if (dtype.is_signed()) {
      EXPECT_EQ(Int(Op::kShr, dtype, {-3, -1}), -1);
      EXPECT_EQ(Int(Op::kShr, dtype, {-3, 1}), -2);
    }
  }
}

TEST(EvaluateScalarTest, ComparisonsReadTheSign) {
  EXPECT_EQ(EvaluateScalar(Op::kCmpLt, Scalar::kBool, Scalar::kI8, {0xff, 0}), 1u);
  EXPECT_EQ(EvaluateScalar(Op::kCmpLt, Scalar::kBool, Scalar::kU8, {0xff, 0}), 0u);
  EXPECT_EQ(EvaluateScalar(Op::kCmpLe, Scalar::kBool, Scalar::kU64, {0, ~uint64_t{0}}), 1u);
  EXPECT_EQ(EvaluateScalar(Op::kCmpLe, Scalar::kBool, Scalar::kI64, {0, ~uint64_t{0}}), 0u);
  EXPECT_EQ(Int(Op::kMax, Scalar::kI8, {-1, 0}), 0);
  EXPECT_EQ(Int(Op::kMax, Scalar::kU8, {255, 0}), 255);
  EXPECT_EQ(Int(Op::kMin, Scalar::kI64, {-1, 0}), -1);
}

TEST(EvaluateScalarTest, BoolOps) {
  for (uint64_t x : {0u, 1u}) {
    EXPECT_EQ(EvaluateScalar(Op::kNot, Scalar::kBool, Scalar::kBool, {x}), 1 - x);
    for (uint64_t y : {0u, 1u}) {
      auto bool_op = [&](Op op) {
        return EvaluateScalar(op, Scalar::kBool, Scalar::kBool, {x, y});
      };
      EXPECT_EQ(bool_op(Op::kAdd), x | y);
      EXPECT_EQ(bool_op(Op::kMul), x & y);
      EXPECT_EQ(bool_op(Op::kMax), x | y);
      EXPECT_EQ(bool_op(Op::kMin), x & y);
      EXPECT_EQ(bool_op(Op::kAnd), x & y);
      EXPECT_EQ(bool_op(Op::kOr), x | y);
      EXPECT_EQ(bool_op(Op::kXor), x ^ y);
      EXPECT_EQ(bool_op(Op::kCmpLt), uint64_t{x < y});
      EXPECT_EQ(bool_op(Op::kCmpLe), uint64_t{x <= y});
      EXPECT_EQ(bool_op(Op::kCmpEq), uint64_t{x == y});
      EXPECT_EQ(bool_op(Op::kCmpNe), uint64_t{x != y});
    }
  }
}

TEST(EvaluateScalarTest, FloatToIntegerSaturates) {  // reported case 5
  EXPECT_EQ(FloatToInt(Scalar::kF32, 300, Scalar::kU8), 255);
  EXPECT_EQ(FloatToInt(Scalar::kF32, -1.5, Scalar::kU8), 0);
  EXPECT_EQ(FloatToInt(Scalar::kF32, kNan, Scalar::kI32), 0);
  EXPECT_EQ(FloatToInt(Scalar::kF32, 3e9, Scalar::kI32), 2147483647);
  EXPECT_EQ(FloatToInt(Scalar::kF32, 2147483646, Scalar::kI32), 2147483647);
  for (Scalar from : kFloats) {
    for (Scalar to : kIntegers) {
      DType dtype(to);
      EXPECT_EQ(FloatToInt(from, kInf, to), to == Scalar::kU64 ? -1 : MaxValue(dtype));
      EXPECT_EQ(FloatToInt(from, -kInf, to), MinValue(dtype));
      EXPECT_EQ(FloatToInt(from, kNan, to), 0);
      EXPECT_EQ(FloatToInt(from, -0.75, to), 0);
      EXPECT_EQ(FloatToInt(from, 100.5, to), 100);
      EXPECT_EQ(FloatToInt(from, -100.5, to), dtype.is_signed() ? -100 : 0);
    }
  }
  EXPECT_EQ(FloatToInt(Scalar::kF64, -128.9, Scalar::kI8), -128);
  EXPECT_EQ(FloatToInt(Scalar::kF64, 127.9, Scalar::kI8), 127);
  EXPECT_EQ(FloatToInt(Scalar::kF64, 0x1p63, Scalar::kI64), MaxValue(Scalar::kI64));
  EXPECT_EQ(FloatToInt(Scalar::kF64, -0x1p63, Scalar::kI64), MinValue(Scalar::kI64));
  EXPECT_EQ(FloatToInt(Scalar::kF64, 0x1p63, Scalar::kU64), MinValue(Scalar::kI64));
  EXPECT_EQ(FloatToInt(Scalar::kF64, 0x1.fffffffffffffp63, Scalar::kU64), -2048);
  EXPECT_EQ(FloatToInt(Scalar::kF64, 9007199254740993.0, Scalar::kI64), 9007199254740992);
}

TEST(EvaluateScalarTest, IntegerToFloatRoundsOnce) {
  // reported: u64 2^64-1 to f32
  EXPECT_EQ(IntToFloat(Scalar::kU64, ~uint64_t{0}, Scalar::kF32), 18446744073709551616.0);
  EXPECT_EQ(IntToFloat(Scalar::kU64, ~uint64_t{0}, Scalar::kF64), 18446744073709551616.0);
  EXPECT_EQ(IntToFloat(Scalar::kI64, ~uint64_t{0}, Scalar::kF32), -1);
  // Just above half-way between two f32: by way of f64 it would be a tie and round down.
  uint64_t above = (uint64_t{1} << 62) + (uint64_t{1} << 38) + 1;
  EXPECT_EQ(IntToFloat(Scalar::kI64, above, Scalar::kF32), 0x1.000002p62);
  // The same for bf16: neither f32 nor f64 may stand between.
  above = (uint64_t{1} << 62) + (uint64_t{1} << 54) + 1;
  EXPECT_EQ(IntToFloat(Scalar::kI64, above, Scalar::kBF16), 0x1.02p62);
  EXPECT_EQ(IntToFloat(Scalar::kI64, 0 - above, Scalar::kBF16), -0x1.02p62);
  EXPECT_EQ(IntToFloat(Scalar::kI64, above - 1, Scalar::kBF16), 0x1p62);  // the tie itself
  EXPECT_EQ(IntToFloat(Scalar::kI32, (1u << 30) + (1u << 22) + 1, Scalar::kBF16), 0x1.02p30);
  EXPECT_EQ(IntToFloat(Scalar::kU64, ~uint64_t{0}, Scalar::kBF16), 0x1p64);
  EXPECT_EQ(IntToFloat(Scalar::kI32, 65519, Scalar::kF16), 65504);
  EXPECT_EQ(IntToFloat(Scalar::kI32, 65520, Scalar::kF16), kInf);
  EXPECT_EQ(IntToFloat(Scalar::kI64, MinValue(Scalar::kI64), Scalar::kF16), -kInf);
  EXPECT_EQ(IntToFloat(Scalar::kI64, MinValue(Scalar::kI64), Scalar::kBF16), -0x1p63);
  EXPECT_EQ(IntToFloat(Scalar::kI32, 2049, Scalar::kF16), 2048);
  EXPECT_EQ(IntToFloat(Scalar::kBool, 1, Scalar::kF16), 1);
}

TEST(EvaluateScalarTest, FloatToNarrowerFloatRoundsOnce) {
  // Above the tie by less than f32 can hold.
  EXPECT_EQ(IntToFloat(Scalar::kF64, std::bit_cast<uint64_t>(1 + 0x1p-8 + 0x1p-40), Scalar::kBF16),
            1 + 0x1p-7);
  EXPECT_EQ(IntToFloat(Scalar::kF64, std::bit_cast<uint64_t>(1 + 0x1p-11 + 0x1p-40), Scalar::kF16),
            1 + 0x1p-10);
  EXPECT_EQ(IntToFloat(Scalar::kF64, std::bit_cast<uint64_t>(1 + 0x1p-11), Scalar::kF16), 1);
  EXPECT_EQ(IntToFloat(Scalar::kF64, std::bit_cast<uint64_t>(0x1p-25 + 0x1p-70), Scalar::kF16),
            0x1p-24);
  EXPECT_EQ(IntToFloat(Scalar::kF64, std::bit_cast<uint64_t>(0x1p-25), Scalar::kF16), 0);
  EXPECT_TRUE(
      IsMinusZero(IntToFloat(Scalar::kF64, std::bit_cast<uint64_t>(-0x1p-200), Scalar::kBF16)));
  EXPECT_EQ(IntToFloat(Scalar::kF64, std::bit_cast<uint64_t>(1e300), Scalar::kF32), kInf);
  EXPECT_EQ(IntToFloat(Scalar::kF64, std::bit_cast<uint64_t>(0x1p-149), Scalar::kF32), 0x1p-149);
}

TEST(EvaluateScalarTest, ToBool) {  // reported: NaN cast to bool is true
  for (Scalar from : kFloats) {
    EXPECT_EQ(FloatToInt(from, kNan, Scalar::kBool), 1);
    EXPECT_EQ(FloatToInt(from, -0.0, Scalar::kBool), 0);
    EXPECT_EQ(FloatToInt(from, 0.25, Scalar::kBool), 1);
  }
  EXPECT_EQ(EvaluateScalar(Op::kCast, Scalar::kBool, Scalar::kI32, {256}), 1u);
}

TEST(EvaluateScalarTest, IntegerToIntegerWrapsAndExtends) {
  EXPECT_EQ(EvaluateScalar(Op::kCast, Scalar::kI64, Scalar::kI8, {0x80}), 0xffffffffffffff80u);
  EXPECT_EQ(EvaluateScalar(Op::kCast, Scalar::kI64, Scalar::kU8, {0x80}), 0x80u);
  EXPECT_EQ(EvaluateScalar(Op::kCast, Scalar::kI8, Scalar::kI64, {0x1ff}), 0xffu);
  EXPECT_EQ(EvaluateScalar(Op::kCast, Scalar::kIndex, Scalar::kI32, {0xffffffff}), ~uint64_t{0});
  EXPECT_EQ(EvaluateScalar(Op::kCast, Scalar::kU16, Scalar::kBool, {1}), 1u);
  EXPECT_EQ(EvaluateScalar(Op::kBitcast, Scalar::kU32, Scalar::kF32, {0x7fc00001}), 0x7fc00001u);
}

TEST(EvaluateScalarTest, MaxAndMinPropagateNanAndOrderZeros) {  // reported case 1
  for (Scalar scalar : kFloats) {
    for (Op op : {Op::kMax, Op::kMin}) {
      EXPECT_TRUE(std::isnan(Float(op, scalar, {1, kNan})));
      EXPECT_TRUE(std::isnan(Float(op, scalar, {kNan, 1})));
      EXPECT_TRUE(std::isnan(Float(op, scalar, {kNan, kInf})));
    }
    EXPECT_FALSE(IsMinusZero(Float(Op::kMax, scalar, {-0.0, 0.0})));
    EXPECT_FALSE(IsMinusZero(Float(Op::kMax, scalar, {0.0, -0.0})));
    EXPECT_TRUE(IsMinusZero(Float(Op::kMax, scalar, {-0.0, -0.0})));
    EXPECT_TRUE(IsMinusZero(Float(Op::kMin, scalar, {-0.0, 0.0})));
    EXPECT_TRUE(IsMinusZero(Float(Op::kMin, scalar, {0.0, -0.0})));
    EXPECT_EQ(Float(Op::kMax, scalar, {-kInf, -3}), -3);
    EXPECT_EQ(Float(Op::kMin, scalar, {-kInf, -3}), -kInf);
  }
}

TEST(EvaluateScalarTest, FloatComparisonsAreIeee) {
  for (Scalar scalar : kFloats) {
    for (double x : {kNan, 1.0}) {
      EXPECT_FALSE(Compare(Op::kCmpLt, scalar, x, kNan));
      EXPECT_FALSE(Compare(Op::kCmpLe, scalar, x, kNan));
      EXPECT_FALSE(Compare(Op::kCmpEq, scalar, x, kNan));
      EXPECT_TRUE(Compare(Op::kCmpNe, scalar, x, kNan));  // reported case 10: isnan is x != x
    }
    EXPECT_TRUE(Compare(Op::kCmpEq, scalar, 0.0, -0.0));
    EXPECT_FALSE(Compare(Op::kCmpLt, scalar, -0.0, 0.0));
    EXPECT_TRUE(Compare(Op::kCmpEq, scalar, kInf, kInf));  // reported case 10: isinf
    EXPECT_TRUE(Compare(Op::kCmpLe, scalar, -kInf, kInf));
  }
}

TEST(EvaluateScalarTest, FloatArithmeticKeepsIeeeSpecials) {  // reported case 11
  EXPECT_TRUE(std::isnan(Float(Op::kFdiv, Scalar::kF32, {0, 0})));
  EXPECT_EQ(Float(Op::kFdiv, Scalar::kF32, {1, 1}), 1);
  EXPECT_TRUE(std::isnan(Float(Op::kMul, Scalar::kF32, {kNan, 0})));
  EXPECT_EQ(Float(Op::kFdiv, Scalar::kF32, {Float(Op::kMul, Scalar::kF32, {1e38, 10}), 10}), kInf);
  // reported: x*1 and x-0.0 keep -0.0 while -0.0 + 0.0 = 0.0
  for (Scalar scalar : kFloats) {
    EXPECT_TRUE(IsMinusZero(Float(Op::kMul, scalar, {-0.0, 1})));
    EXPECT_TRUE(IsMinusZero(Float(Op::kSub, scalar, {-0.0, 0.0})));
    EXPECT_FALSE(IsMinusZero(Float(Op::kAdd, scalar, {-0.0, 0.0})));
    EXPECT_EQ(Float(Op::kRecip, scalar, {-0.0}), -kInf);
  }
  EXPECT_EQ(Float(Op::kMul, Scalar::kF32, {0x1p-126, 0.5}), 0x1p-127);  // subnormals are kept
}

TEST(EvaluateScalarTest, NarrowFloatsRoundEachOpOnce) {
  EXPECT_EQ(Float(Op::kAdd, Scalar::kF16, {2048, 1}), 2048);
  EXPECT_EQ(Float(Op::kAdd, Scalar::kBF16, {256, 1}), 256);
  EXPECT_EQ(Float(Op::kMul, Scalar::kF16, {256, 256}), kInf);
  // One rounding to f32 and one to f16, not one a product and one a sum: 2049 - 2048.
  EXPECT_EQ(Float(Op::kMulAcc, Scalar::kF16, {683, 3, -2048}), 1);
}

TEST(EvaluateScalarTest, MulAccIsFused) {
  double x = 1 + 0x1p-30;
  EXPECT_EQ(Float(Op::kMulAcc, Scalar::kF64, {x, x, -(1 + 0x1p-29)}), 0x1p-60);
  EXPECT_EQ(Float(Op::kMulAcc, Scalar::kF32, {1 + 0x1p-12, 1 + 0x1p-12, -(1 + 0x1p-11)}), 0x1p-24);
}

TEST(EvaluateScalarTest, DotOfBytesTakesUnsignedAndSigned) {
  auto dot = [](uint64_t x, uint64_t y, uint64_t z) {
    return EvaluateScalar(Op::kDotU8I8, Scalar::kI32, Scalar::kI32, {x, y, z});
  };
  EXPECT_EQ(dot(0x04030201, 0x01010101, 100), 110u);
  EXPECT_EQ(dot(0x000000ff, 0x000000ff, 0), uint64_t{0xffffffff - 254});  // 255 * -1
  EXPECT_EQ(dot(0xffffffff, 0x7f7f7f7f, 0), 4u * 255 * 127);              // beyond 16 bits
  EXPECT_EQ(dot(0x00000001, 0x00000001, 0xffffffff), 0u);                 // wraps
}

TEST(EvaluateScalarTest, DotOfHalvesRoundsTwiceAndKeepsNoSubnormals) {
  auto dot = [](float x0, float x1, float y0, float y1, float z) {
    auto halves = [](float low, float high) {
      return DoubleToBits(Scalar::kBF16, low) | DoubleToBits(Scalar::kBF16, high) << 16;
    };
    return BitsToDouble(Scalar::kF32, EvaluateScalar(Op::kDotBF16, Scalar::kF32, Scalar::kF32,
                                                     {halves(x0, x1), halves(y0, y1),
                                                      DoubleToBits(Scalar::kF32, z)}));
  };
  EXPECT_EQ(dot(2, 3, 5, 7, 1), 32);
  // The high halves first: 2^24 + 1 rounds to 2^24, from which the low ones take it.
  EXPECT_EQ(dot(-0x1p12f, 1, 0x1p12f, 1, 0x1p24f), 0);
  EXPECT_EQ(dot(1, -0x1p12f, 1, 0x1p12f, 0x1p24f), 1);
  EXPECT_EQ(dot(0x1p-130f, 0, 0x1p100f, 0, 1), 1);  // a subnormal operand
  EXPECT_EQ(dot(0x1p-70f, 0, 0x1p-60f, 0, 0), 0);   // a subnormal sum
  EXPECT_EQ(dot(0, 0, 0, 0, 0x1p-127f), 0);         // a subnormal accumulator
}

TEST(EvaluateScalarTest, NegAndAbsMoveBitsOnly) {
  EXPECT_EQ(EvaluateScalar(Op::kNeg, Scalar::kF32, Scalar::kF32, {0x7fc01234}), 0xffc01234u);
  EXPECT_EQ(EvaluateScalar(Op::kAbs, Scalar::kF16, Scalar::kF16, {0xfe01}), 0x7e01u);
  EXPECT_EQ(EvaluateScalar(Op::kNeg, Scalar::kBF16, Scalar::kBF16, {0}), 0x8000u);
  EXPECT_EQ(EvaluateScalar(Op::kWhere, Scalar::kF32, Scalar::kF32, {1, 0x7f800001, 0}),
            0x7f800001u);
}

TEST(EvaluateScalarTest, Roundings) {
  for (Scalar scalar : kFloats) {
    EXPECT_EQ(Float(Op::kRound, scalar, {2.5}), 2);
    EXPECT_EQ(Float(Op::kRound, scalar, {3.5}), 4);
    EXPECT_TRUE(IsMinusZero(Float(Op::kRound, scalar, {-0.5})));
    EXPECT_TRUE(IsMinusZero(Float(Op::kTrunc, scalar, {-0.75})));
    EXPECT_TRUE(IsMinusZero(Float(Op::kCeil, scalar, {-0.75})));
    EXPECT_EQ(Float(Op::kFloor, scalar, {-0.75}), -1);
    EXPECT_EQ(Float(Op::kFloor, scalar, {kInf}), kInf);
    EXPECT_EQ(Float(Op::kSqrt, scalar, {4}), 2);
    EXPECT_TRUE(std::isnan(Float(Op::kSqrt, scalar, {-1})));
  }
}

TEST(EvaluateScalarTest, Transcendentals) {  // reported case 20
  EXPECT_EQ(Float(Op::kSin, Scalar::kF64, {39800.0}), 0.7428572235125965);
  EXPECT_EQ(Float(Op::kCos, Scalar::kF64, {1e8}), -0.3633850893556905);
  EXPECT_EQ(Float(Op::kCos, Scalar::kF64, {1e6}), 0.9367521275331447);
  EXPECT_EQ(Float(Op::kExp, Scalar::kF64, {709.5}), 1.3549863193146328e308);
  float exp_of = 88.7f;
  EXPECT_FLOAT_EQ(static_cast<float>(Float(Op::kExp, Scalar::kF32, {exp_of})), 3.3259768e38f);
  for (Scalar scalar : kFloats) {
    EXPECT_EQ(Float(Op::kExp2, scalar, {3}), 8);
    EXPECT_EQ(Float(Op::kLog, scalar, {0}), -kInf);
    EXPECT_EQ(Float(Op::kLog2, scalar, {8}), 3);
    EXPECT_TRUE(std::isnan(Float(Op::kLog, scalar, {-1})));
    EXPECT_TRUE(std::isnan(Float(Op::kSin, scalar, {kInf})));
    EXPECT_EQ(Float(Op::kTanh, scalar, {kInf}), 1);
    EXPECT_EQ(Float(Op::kErf, scalar, {-kInf}), -1);
    EXPECT_EQ(Float(Op::kPow, scalar, {2, 10}), 1024);
    EXPECT_EQ(Float(Op::kPow, scalar, {kNan, 0}), 1);
  }
}

TEST(EvaluateScalarTest, ReduceIdentities) {
  for (Scalar scalar : kIntegers) {
    DType dtype(scalar);
    for (ReduceKind kind : {ReduceKind::kAdd, ReduceKind::kMul, ReduceKind::kMax, ReduceKind::kMin,
                            ReduceKind::kAnd, ReduceKind::kOr}) {
      uint64_t identity = ReduceIdentity(kind, dtype);
      for (int64_t x : {MinValue(dtype), int64_t{0}, int64_t{1}, MaxValue(dtype)}) {
        EXPECT_EQ(EvaluateScalar(ReduceOp(kind), dtype, dtype, {identity, ToBits(dtype, x)}),
                  ToBits(dtype, x))
            << ToString(kind) << " " << ToString(dtype) << " " << x;
      }
    }
  }
  for (Scalar scalar : kFloats) {
    EXPECT_EQ(BitsToDouble(scalar, ReduceIdentity(ReduceKind::kMax, scalar)), -kInf);
    EXPECT_EQ(BitsToDouble(scalar, ReduceIdentity(ReduceKind::kMin, scalar)), kInf);
    EXPECT_EQ(BitsToDouble(scalar, ReduceIdentity(ReduceKind::kMul, scalar)), 1);
  }
}

// Every elementwise row of the op table takes every dtype that its flags allow, at the edges of the
// dtype; the result fits the result's dtype. Run under the undefined behaviour sanitizer too.
TEST(EvaluateScalarTest, EveryRowTakesEveryValue) {
  const uint64_t kPatterns[] = {0,
                                1,
                                2,
                                3,
                                7,
                                31,
                                63,
                                64,
                                0x7f,
                                0x80,
                                0xff,
                                0x7c00,
                                0x7e01,
                                0x8000,
                                0xffff,
                                0x7f800000,
                                0x7fc00000,
                                0x80000000,
                                0xffffffff,
                                0x7ff0000000000000,
                                0x8000000000000000,
                                0x7fffffffffffffff,
                                ~uint64_t{0}};
  int64_t evaluated = 0;
  for (int row = 0; row < kNumOps; ++row) {
    Op op = static_cast<Op>(row);
    if (!IsElementwise(op)) continue;
    for (int from = 1; from < kNumScalars; ++from) {
      for (int to = 1; to < kNumScalars; ++to) {
        DType operand(static_cast<Scalar>(from)), result(static_cast<Scalar>(to));
        bool is_compare = InfoOf(op).dtype_rule == DTypeRule::kBoolOfOperands;
        if (op != Op::kCast && op != Op::kBitcast &&
            result != (is_compare ? DType(Scalar::kBool) : operand)) {
          continue;
        }
        if (op == Op::kBitcast && (operand.size_bytes() != result.size_bytes() ||
                                   operand.is_bool() != result.is_bool())) {
          continue;
        }
        if (HasFlag(op, kFloating) && !operand.is_float()) continue;
        if (HasFlag(op, kInteger) && !operand.is_integer()) continue;
        if (HasFlag(op, kIntegral) && operand.is_float()) continue;
        if (HasFlag(op, kNumeric) && operand.is_bool()) continue;
        for (uint64_t x : kPatterns) {
          for (uint64_t y : kPatterns) {
            uint64_t a = ToBits(operand, static_cast<int64_t>(x));
            uint64_t b = ToBits(operand, static_cast<int64_t>(y));
            uint64_t first = op == Op::kWhere ? x & 1 : a;
            uint64_t bits = EvaluateScalar(op, result, operand, {first, b, a});
            ASSERT_EQ(bits, ToBits(result, static_cast<int64_t>(bits)))
                << InfoOf(op).text << " " << ToString(operand) << " " << ToString(result);
            ++evaluated;
          }
        }
      }
    }
  }
  EXPECT_GT(evaluated, 100000);
}

}  // namespace
}  // namespace svod
