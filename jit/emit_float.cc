// Floats: the 16-bit formats, conversions and rounding, with exactly one rounding an op.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "jit/emit_alu.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace svod {

llvm::Value* AluEmitter::ToBits(Value* x) {
  return b_.CreateBitCast(x, IntType(x, x->getType()->getScalarSizeInBits()));
}

llvm::Value* AluEmitter::FromBits(Value* x) {
  bool is_double = x->getType()->getScalarSizeInBits() == 64;
  return b_.CreateBitCast(x, is_double ? DoubleType(x) : FloatType(x));
}

llvm::Value* AluEmitter::Widen(DType dtype, Value* x) {
  if (dtype.scalar == Scalar::kF16) return F16ToF32(x);
  if (dtype.scalar == Scalar::kBF16) {
    return FromBits(b_.CreateShl(b_.CreateZExt(x, IntType(x, 32)), 16));
  }
  return x;
}

llvm::Value* AluEmitter::Narrow(DType dtype, Value* x) {
  if (dtype.scalar == Scalar::kF16) return F32ToF16(x);
  if (dtype.scalar == Scalar::kBF16) return F32ToBF16(x);
  return x;
}

llvm::Value* AluEmitter::F16ToF32(Value* bits) {
  if (target_.has_half) {
    llvm::Type* half = bits->getType()->getWithNewType(b_.getHalfTy());
    return b_.CreateFPExt(b_.CreateBitCast(bits, half), FloatType(bits));
  }
  // Exponent and mantissa move to f32's places. Three cases by the exponent: in general it changes
  // its bias by 112; infinity and NaN by twice that; subnormals go through a subtraction of floats.
  Value* wide = b_.CreateZExt(bits, IntType(bits, 32));
  Value* moved = b_.CreateShl(b_.CreateAnd(wide, Int(wide, 0x7fff)), 13);
  Value* exponent = b_.CreateAnd(moved, Int(wide, 0x0f800000));
  Value* normal = b_.CreateAdd(moved, Int(wide, 112u << 23));
  Value* special = b_.CreateAdd(moved, Int(wide, 224u << 23));
  llvm::Constant* smallest_normal = Int(wide, 113u << 23);
  Value* subnormal = ToBits(
      b_.CreateFSub(FromBits(b_.CreateAdd(moved, smallest_normal)), FromBits(smallest_normal)));
  Value* result =
      b_.CreateSelect(b_.CreateICmpEQ(exponent, Int(wide, 0x0f800000)), special, normal);
  result = b_.CreateSelect(b_.CreateICmpEQ(exponent, Int(wide, 0)), subnormal, result);
  Value* sign = b_.CreateShl(b_.CreateAnd(wide, Int(wide, 0x8000)), 16);
  return FromBits(b_.CreateOr(result, sign));
}

llvm::Value* AluEmitter::F32ToF16(Value* x) {
  if (target_.has_half) {
    llvm::Type* half = x->getType()->getWithNewType(b_.getHalfTy());
    return b_.CreateBitCast(b_.CreateFPTrunc(x, half), IntType(x, 16));
  }
  Value* bits = ToBits(x);
  Value* magnitude = b_.CreateAnd(bits, Int(bits, 0x7fffffff));
  // Normal: add half of the last kept place, less one when that place is even, then cut.
  Value* odd = b_.CreateAnd(b_.CreateLShr(magnitude, 13), Int(bits, 1));
  Value* rounded = b_.CreateAdd(b_.CreateAdd(magnitude, Int(bits, 0xfff - (112u << 23))), odd);
  Value* normal = b_.CreateLShr(rounded, 13);
  // Subnormal: 0.5 has its last place at 2^-24, so that adding it rounds as f16 would.
  llvm::Constant* one_half = Int(bits, 0x3f000000);
  Value* aligned = b_.CreateFAdd(FromBits(magnitude), FromBits(one_half));
  Value* subnormal = b_.CreateSub(ToBits(aligned), one_half);
  Value* result =
      b_.CreateSelect(b_.CreateICmpULT(magnitude, Int(bits, 0x38800000)), subnormal, normal);
  result = b_.CreateSelect(b_.CreateICmpUGE(magnitude, Int(bits, 0x477ff000)), Int(bits, 0x7c00),
                           result);
  result = b_.CreateSelect(b_.CreateICmpUGT(magnitude, Int(bits, 0x7f800000)), Int(bits, 0x7e00),
                           result);
  Value* sign = b_.CreateAnd(b_.CreateLShr(bits, 16), Int(bits, 0x8000));
  return b_.CreateTrunc(b_.CreateOr(result, sign), IntType(x, 16));
}

// By integers even where AVX512-BF16 has an instruction: that one flushes subnormals.
llvm::Value* AluEmitter::F32ToBF16(Value* x) {
  Value* bits = ToBits(x);
  Value* odd = b_.CreateAnd(b_.CreateLShr(bits, 16), Int(bits, 1));
  Value* rounded = b_.CreateAdd(bits, b_.CreateAdd(odd, Int(bits, 0x7fff)));
  Value* nan = b_.CreateOr(bits, Int(bits, 0x400000));
  Value* result = b_.CreateSelect(b_.CreateFCmpUNO(x, x), nan, rounded);
  return b_.CreateTrunc(b_.CreateLShr(result, 16), IntType(x, 16));
}

// Rounds to odd: what lies between two floats becomes the one whose last bit is 1. A later rounding
// to a format with at least two bits less then equals one rounding of `x` itself.
llvm::Value* AluEmitter::F64ToF32Odd(Value* x) {
  Value* nearest = b_.CreateFPTrunc(x, FloatType(x));
  Value* back = b_.CreateFPExt(nearest, DoubleType(x));
  Value* inexact = b_.CreateFCmpONE(back, x);
  Value* too_far = b_.CreateFCmpOGT(Abs(back), Abs(x));
  Value* bits = ToBits(nearest);
  Value* below = b_.CreateSelect(too_far, b_.CreateSub(bits, Int(bits, 1)), bits);
  return FromBits(b_.CreateSelect(inexact, b_.CreateOr(below, Int(bits, 1)), bits));
}

llvm::Value* AluEmitter::FloatToFloat(DType to, DType from, Value* x) {
  if (to.scalar == from.scalar) return x;
  if (from.scalar == Scalar::kF64) {
    if (to.scalar == Scalar::kF32) return b_.CreateFPTrunc(x, FloatType(x));
    return Narrow(to, F64ToF32Odd(x));
  }
  Value* wide = Widen(from, x);
  return to.scalar == Scalar::kF64 ? b_.CreateFPExt(wide, DoubleType(wide)) : Narrow(to, wide);
}

// Truncates and saturates; NaN gives 0. Where the plain conversion is not defined, a constant takes
// its place.
llvm::Value* AluEmitter::FloatToInteger(DType to, Value* x) {
  const int bits = to.bits();
  const bool is_signed = to.is_signed();
  const double limit = std::ldexp(1.0, is_signed ? bits - 1 : bits);
  const uint64_t ones = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  llvm::Type* type = IntType(x, bits);
  Value* value = is_signed ? b_.CreateFPToSI(x, type) : b_.CreateFPToUI(x, type);
  Value* large = b_.CreateFCmpOGE(x, Real(x, limit));
  value = b_.CreateSelect(large, Int(value, is_signed ? ones >> 1 : ones), value);
  if (!is_signed) return b_.CreateSelect(b_.CreateFCmpOGT(x, Real(x, 0)), value, Int(value, 0));
  Value* small = b_.CreateFCmpOLT(x, Real(x, -limit));
  value = b_.CreateSelect(small, Int(value, uint64_t{1} << (bits - 1)), value);
  return b_.CreateSelect(b_.CreateFCmpUNO(x, x), Int(value, 0), value);
}

llvm::Value* AluEmitter::IntegerToFloat(DType to, DType from, Value* x) {
  auto convert = [&](Value* integer, llvm::Type* type) {
    return from.is_signed() ? b_.CreateSIToFP(integer, type) : b_.CreateUIToFP(integer, type);
  };
  if (to.scalar == Scalar::kF64) return convert(x, DoubleType(x));
  // Integers of 16 bits and bools are exact in f32.
  if (to.scalar == Scalar::kF32 || from.bits() <= 16) return Narrow(to, convert(x, FloatType(x)));
  if (from.bits() == 64) {
    // f64 holds 53 bits. The 11 below become one sticky bit, far below what a 16-bit float keeps:
    // rounding to odd in two's complement.
    Value* rest = b_.CreateAnd(x, Int(x, 0x7ff));
    Value* odd =
        b_.CreateAnd(b_.CreateOr(x, b_.CreateAdd(rest, Int(x, 0x7ff))), Int(x, ~uint64_t{0x7ff}));
    Value* magnitude =
        from.is_signed() ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b_.getFalse()) : x;
    x = b_.CreateSelect(b_.CreateICmpUGE(magnitude, Int(x, uint64_t{1} << 53)), odd, x);
  }
  return Narrow(to, F64ToF32Odd(convert(x, DoubleType(x))));
}

llvm::Value* AluEmitter::RoundToIntegral(Op op, Value* x) {
  if (target_.has_round) {
    llvm::Intrinsic::ID id = llvm::Intrinsic::roundeven;
    if (op == Op::kTrunc) id = llvm::Intrinsic::trunc;
    if (op == Op::kFloor) id = llvm::Intrinsic::floor;
    if (op == Op::kCeil) id = llvm::Intrinsic::ceil;
    return b_.CreateUnaryIntrinsic(id, x);
  }
  // Adding 2^23 (f64: 2^52) leaves no place for a fraction, so that the addition rounds to even.
  const bool is_double = x->getType()->getScalarSizeInBits() == 64;
  llvm::Constant* magic = Real(x, is_double ? 0x1p52 : 0x1p23);
  Value* magnitude = Abs(x);
  Value* even = b_.CreateFSub(b_.CreateFAdd(magnitude, magic), magic);
  even = b_.CreateCopySign(even, x);
  Value* result = even;
  if (op != Op::kRound) {
    // Towards zero is downwards for the magnitude.
    Value* lower = b_.CreateFSub(even, Real(x, 1));
    Value* upper = b_.CreateFAdd(even, Real(x, 1));
    Value* down = b_.CreateSelect(b_.CreateFCmpOGT(even, x), lower, even);
    Value* up = b_.CreateSelect(b_.CreateFCmpOLT(even, x), upper, even);
    if (op == Op::kFloor) result = down;
    if (op == Op::kCeil) result = up;
    if (op == Op::kTrunc) result = b_.CreateSelect(b_.CreateFCmpOLT(x, Real(x, 0)), up, down);
    result = b_.CreateCopySign(result, x);  // -0.5 rounds up to -0
  }
  return b_.CreateSelect(b_.CreateFCmpOLT(magnitude, magic), result, x);
}

// One vrangeps orders zeros and loses NaN; the sum of both brings NaN back where it was lost. LLVM
// takes six instructions, in a chain.
llvm::Value* AluEmitter::RangeMaxMin(Op op, Value* x, Value* y) {
  auto* type = llvm::cast<llvm::FixedVectorType>(x->getType());
  const bool is_f32 = type->getScalarSizeInBits() == 32;
  const unsigned lanes = type->getNumElements(), chunk = std::min(lanes, is_f32 ? 16U : 8U);
  const unsigned bits = chunk * type->getScalarSizeInBits();
  // The sign of the result is that of the comparison: bit 2. Bit 0: the larger one.
  Value* choice = b_.getInt32(op == Op::kMax ? 5 : 4);
  Value* all = b_.getInt8(0xff);
  const llvm::Intrinsic::ID by_width[] = {is_f32 ? llvm::Intrinsic::x86_avx512_mask_range_ps_128
                                                 : llvm::Intrinsic::x86_avx512_mask_range_pd_128,
                                          is_f32 ? llvm::Intrinsic::x86_avx512_mask_range_ps_256
                                                 : llvm::Intrinsic::x86_avx512_mask_range_pd_256,
                                          is_f32 ? llvm::Intrinsic::x86_avx512_mask_range_ps_512
                                                 : llvm::Intrinsic::x86_avx512_mask_range_pd_512};
  Value* result = llvm::PoisonValue::get(type);
  for (unsigned first = 0; first < lanes; first += chunk) {
    std::vector<int> mask(chunk);
    std::iota(mask.begin(), mask.end(), static_cast<int>(first));
    Value* a = chunk == lanes ? x : b_.CreateShuffleVector(x, mask);
    Value* b = chunk == lanes ? y : b_.CreateShuffleVector(y, mask);
    llvm::SmallVector<Value*, 6> operands = {a, b, choice, a, all};
    if (bits == 512) {
      if (is_f32) operands[4] = b_.getInt16(0xffff);
      operands.push_back(b_.getInt32(4));  // the rounding mode that is set
    }
    Value* part = b_.CreateIntrinsic(by_width[bits / 256], operands);
    part = b_.CreateSelect(b_.CreateFCmpUNO(a, b), b_.CreateFAdd(a, b), part);
    result = chunk == lanes ? part : b_.CreateInsertVector(type, result, part, b_.getInt64(first));
  }
  return result;
}

llvm::Value* AluEmitter::MaxMin(Op op, Value* x, Value* y) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  bool is_variable = !llvm::isa<llvm::Constant>(x) && !llvm::isa<llvm::Constant>(y);
  if (has_range_ && type != nullptr && is_variable) {
    const unsigned lanes = type->getNumElements();
    if ((lanes & (lanes - 1)) == 0 && lanes * type->getScalarSizeInBits() >= 128) {
      return RangeMaxMin(op, x, y);
    }
  }
  return b_.CreateBinaryIntrinsic(
      op == Op::kMax ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, x, y);
}

llvm::Value* AluEmitter::MulAdd(Value* x, Value* y, Value* z) {
  if (target_.has_fma) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
  }
  return x->getType()->getScalarType()->isDoubleTy() ? MulAddF64(x, y, z) : MulAddF32(x, y, z);
}

}  // namespace svod
