// Integers, comparisons and the dispatch over ops.
#include "jit/emit_alu.h"

#include "ir/check.h"
#include "ir/evaluate.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/PatternMatch.h"

namespace svod {
namespace {

llvm::Type* WithLanes(llvm::Type* element, int lanes) {
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, lanes);
}

llvm::Type* ElementType(Scalar scalar, llvm::LLVMContext& context) {
  if (scalar == Scalar::kF32) return llvm::Type::getFloatTy(context);
  if (scalar == Scalar::kF64) return llvm::Type::getDoubleTy(context);
  return llvm::Type::getIntNTy(context, DType(scalar).bits());
}

}  // namespace

llvm::Type* RegisterType(DType dtype, llvm::LLVMContext& context) {
  return WithLanes(ElementType(dtype.scalar, context), dtype.lanes);
}

llvm::Type* MemoryType(DType dtype, llvm::LLVMContext& context) {
  if (dtype.is_bool()) return WithLanes(llvm::Type::getInt8Ty(context), dtype.lanes);
  return RegisterType(dtype, context);
}

llvm::Constant* EmitConstant(DType dtype, uint64_t bits, llvm::LLVMContext& context) {
  llvm::Constant* element;
  if (dtype.scalar == Scalar::kF32) {
    element = llvm::ConstantFP::get(
        context, llvm::APFloat(llvm::APFloat::IEEEsingle(), llvm::APInt(32, bits)));
  } else if (dtype.scalar == Scalar::kF64) {
    element = llvm::ConstantFP::get(
        context, llvm::APFloat(llvm::APFloat::IEEEdouble(), llvm::APInt(64, bits)));
  } else {
    element = llvm::ConstantInt::get(ElementType(dtype.scalar, context), bits);
  }
  if (!dtype.is_vector()) return element;
  return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(dtype.lanes), element);
}

llvm::Value* AluEmitter::Elementwise(const UOp* node, absl::Span<Value* const> v) {
  const Op op = node->op();
  const DType dtype = node->dtype();
  const DType operand = node->source(node->num_sources() - 1)->dtype();
  SVOD_DCHECK(IsLanewise(op) && !HasFlag(op, kTranscendental));
  if (InfoOf(op).op_class == OpClass::kDot) return Dot(op, v[0], v[1], v[2]);
  if (op == Op::kCast) return Cast(dtype, operand, v[0]);
  if (op == Op::kBitcast) return Bitcast(dtype, v[0]);
  if (op == Op::kWhere) return b_.CreateSelect(v[0], v[1], v[2]);
  if (op == Op::kMulAcc) {
    if (!dtype.is_float()) return b_.CreateAdd(b_.CreateMul(v[0], v[1]), v[2]);
    return Narrow(dtype, MulAdd(Widen(dtype, v[0]), Widen(dtype, v[1]), Widen(dtype, v[2])));
  }
  if (v.size() == 1) return Unary(op, dtype, v[0]);
  return Binary(op, operand, v[0], v[1]);
}

llvm::Value* AluEmitter::Unary(Op op, DType dtype, Value* x) {
  if (!dtype.is_float()) {
    if (op == Op::kNeg) return b_.CreateNeg(x);
    if (op == Op::kNot) return b_.CreateNot(x);
    SVOD_DCHECK(op == Op::kAbs);
    // The flag "smallest integer is poison" stays off: it wraps to itself.
    return dtype.is_signed() ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b_.getFalse()) : x;
  }
  if (op == Op::kNeg || op == Op::kAbs) {  // these move bits and never round
    uint64_t sign = uint64_t{1} << (dtype.bits() - 1);
    if (dtype.bits() == 16) {
      return op == Op::kNeg ? b_.CreateXor(x, Int(x, sign)) : b_.CreateAnd(x, Int(x, sign - 1));
    }
    return op == Op::kNeg ? b_.CreateFNeg(x) : Abs(x);
  }
  Value* wide = Widen(dtype, x);
  if (op == Op::kRecip) {
    wide = b_.CreateFDiv(Real(wide, 1), wide);
  } else if (op == Op::kSqrt) {
    wide = b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, wide);
  } else {
    wide = RoundToIntegral(op, wide);
  }
  return Narrow(dtype, wide);
}

llvm::Value* AluEmitter::Binary(Op op, DType dtype, Value* x, Value* y) {
  if (op == Op::kCmpLt || op == Op::kCmpLe || op == Op::kCmpEq || op == Op::kCmpNe) {
    return Compare(op, dtype, x, y);
  }
  if (!dtype.is_float()) return IntegerBinary(op, dtype, x, y);
  Value* a = Widen(dtype, x);
  Value* b = Widen(dtype, y);
  Value* result;
  if (op == Op::kAdd) {
    result = b_.CreateFAdd(a, b);
  } else if (op == Op::kSub) {
    result = b_.CreateFSub(a, b);
  } else if (op == Op::kMul) {
    result = b_.CreateFMul(a, b);
  } else if (op == Op::kFdiv) {
    result = b_.CreateFDiv(a, b);
  } else {
    SVOD_DCHECK(op == Op::kMax || op == Op::kMin);
    result = MaxMin(op, a, b);
  }
  return Narrow(dtype, result);
}

llvm::Value* AluEmitter::IntegerBinary(Op op, DType dtype, Value* x, Value* y) {
  const bool is_bool = dtype.is_bool(), is_signed = dtype.is_signed();
  if (op == Op::kAdd) return is_bool ? b_.CreateOr(x, y) : b_.CreateAdd(x, y);
  if (op == Op::kMul) return is_bool ? b_.CreateAnd(x, y) : b_.CreateMul(x, y);
  if (op == Op::kSub) return b_.CreateSub(x, y);
  if (op == Op::kAnd) return b_.CreateAnd(x, y);
  if (op == Op::kOr) return b_.CreateOr(x, y);
  if (op == Op::kXor) return b_.CreateXor(x, y);
  if (op == Op::kMax) {
    if (is_bool) return b_.CreateOr(x, y);
    return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, x,
                                    y);
  }
  if (op == Op::kMin) {
    if (is_bool) return b_.CreateAnd(x, y);
    return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, x,
                                    y);
  }
  if (op == Op::kShl || op == Op::kShr) return Shift(op, dtype, x, y);
  return Divide(op, dtype, x, y);
}

// The hardware's division faults on a zero divisor and on the smallest integer by -1. Both divisors
// become 1, which gives the right answer for the second (x / 1 wraps to x, x % 1 is 0); the first
// is put right afterwards. With a constant divisor the builder folds all of this away.
llvm::Value* AluEmitter::Divide(Op op, DType dtype, Value* x, Value* y) {
  const bool quotient = op == Op::kCdiv || op == Op::kFloordiv;
  Value* by_zero = b_.CreateICmpEQ(y, Int(y, 0));
  Value* replace = by_zero;
  if (dtype.is_signed()) {
    Value* smallest = b_.CreateICmpEQ(x, Int(x, uint64_t{1} << (dtype.bits() - 1)));
    Value* minus_one = b_.CreateICmpEQ(y, Int(y, ~uint64_t{0}));
    replace = b_.CreateOr(by_zero, b_.CreateAnd(smallest, minus_one));
  }
  Value* divisor = b_.CreateSelect(replace, Int(y, 1), y);
  Value* on_zero = quotient ? Int(x, 0) : x;
  if (!dtype.is_signed()) {
    Value* result = quotient ? b_.CreateUDiv(x, divisor) : b_.CreateURem(x, divisor);
    return b_.CreateSelect(by_zero, on_zero, result);
  }
  if (op == Op::kCmod) {
    return b_.CreateSelect(by_zero, on_zero, b_.CreateSRem(x, divisor));
  }
  Value* truncated = b_.CreateSDiv(x, divisor);
  if (op == Op::kCdiv) return b_.CreateSelect(by_zero, on_zero, truncated);
  // Flooring differs where the division is not exact and the signs differ.
  Value* remainder = b_.CreateSub(x, b_.CreateMul(truncated, divisor));
  Value* inexact = b_.CreateICmpNE(remainder, Int(x, 0));
  Value* signs_differ = b_.CreateICmpSLT(b_.CreateXor(x, divisor), Int(x, 0));
  Value* adjust = b_.CreateAnd(inexact, signs_differ);
  Value* result = quotient ? b_.CreateSelect(adjust, b_.CreateSub(truncated, Int(x, 1)), truncated)
                           : b_.CreateSelect(adjust, b_.CreateAdd(remainder, divisor), remainder);
  return b_.CreateSelect(by_zero, on_zero, result);
}

llvm::Value* AluEmitter::Shift(Op op, DType dtype, Value* x, Value* y) {
  llvm::Constant* last = Int(y, static_cast<uint64_t>(dtype.bits()) - 1);
  // The builder folds neither the bound nor the choice for vectors; the code generator would, after
  // looking at them many times.
  const llvm::APInt* amount = nullptr;
  if (llvm::PatternMatch::match(y, llvm::PatternMatch::m_APInt(amount)) &&
      amount->ult(static_cast<uint64_t>(dtype.bits()))) {
    if (op == Op::kShl) return b_.CreateShl(x, y);
    return dtype.is_signed() ? b_.CreateAShr(x, y) : b_.CreateLShr(x, y);
  }
  if (op == Op::kShr && dtype.is_signed()) {
    return b_.CreateAShr(x, b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, y, last));
  }
  Value* in_range = b_.CreateICmpULE(y, last);
  Value* shifted = op == Op::kShl ? b_.CreateShl(x, y) : b_.CreateLShr(x, y);
  return b_.CreateSelect(in_range, shifted, Int(x, 0));
}

llvm::Value* AluEmitter::Compare(Op op, DType dtype, Value* x, Value* y) {
  if (dtype.is_float()) {
    Value* a = Widen(dtype, x);
    Value* b = Widen(dtype, y);
    if (op == Op::kCmpLt) return b_.CreateFCmpOLT(a, b);
    if (op == Op::kCmpLe) return b_.CreateFCmpOLE(a, b);
    return op == Op::kCmpEq ? b_.CreateFCmpOEQ(a, b) : b_.CreateFCmpUNE(a, b);
  }
  if (op == Op::kCmpEq) return b_.CreateICmpEQ(x, y);
  if (op == Op::kCmpNe) return b_.CreateICmpNE(x, y);
  if (op == Op::kCmpLt) {
    return dtype.is_signed() ? b_.CreateICmpSLT(x, y) : b_.CreateICmpULT(x, y);
  }
  return dtype.is_signed() ? b_.CreateICmpSLE(x, y) : b_.CreateICmpULE(x, y);
}

llvm::Value* AluEmitter::Cast(DType to, DType from, Value* x) {
  if (from.is_float()) {
    if (to.is_float()) return FloatToFloat(to, from, x);
    Value* wide = Widen(from, x);
    if (to.is_bool()) return b_.CreateFCmpUNE(wide, Real(wide, 0));
    return FloatToInteger(to, wide);
  }
  if (to.is_bool()) return from.is_bool() ? x : b_.CreateICmpNE(x, Int(x, 0));
  if (to.is_float()) return IntegerToFloat(to, from, x);
  llvm::Type* type = IntType(x, to.bits());
  return from.is_signed() ? b_.CreateSExtOrTrunc(x, type) : b_.CreateZExtOrTrunc(x, type);
}

llvm::Value* AluEmitter::Bitcast(DType to, Value* x) {
  return b_.CreateBitCast(x, RegisterType(to, b_.getContext()));
}

}  // namespace svod
