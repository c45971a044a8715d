// AluEmitter: elementwise arithmetic as LLVM instructions, scalar or vector alike.
// Included by jit/'s emitters. Must not know loops or memory.
#ifndef SVOD_JIT_EMIT_ALU_H_
#define SVOD_JIT_EMIT_ALU_H_

#include "absl/types/span.h"
#include "ir/uop.h"
#include "jit/target.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace svod {

// How a value of `dtype` is held in registers: bool is i1, f16 and bf16 are i16 (their bits, so
// that no target invents a conversion of its own), index is i64. In memory a bool is i8.
llvm::Type* RegisterType(DType dtype, llvm::LLVMContext& context);
llvm::Type* MemoryType(DType dtype, llvm::LLVMContext& context);

// The value of a CONST node.
llvm::Constant* EmitConstant(DType dtype, uint64_t bits, llvm::LLVMContext& context);

// Emits at the builder's insertion point. What it emits equals EvaluateScalar lane by lane, traps
// on no operand and calls nothing outside of the module.
class AluEmitter {
 public:
  using Value = llvm::Value;

  AluEmitter(llvm::IRBuilderBase& builder, llvm::Module& module, const Target& target)
      : b_(builder),
        module_(module),
        target_(target),
        has_range_(HasFeature(target, "avx512dq") && HasFeature(target, "avx512vl")) {}

  // `node` is lanewise and not transcendental; `operands` are its sources' values.
  Value* Elementwise(const UOp* node, absl::Span<Value* const> operands);

 private:
  // emit_alu.cc
  Value* Binary(Op op, DType dtype, Value* x, Value* y);
  Value* IntegerBinary(Op op, DType dtype, Value* x, Value* y);
  Value* Divide(Op op, DType dtype, Value* x, Value* y);
  Value* Shift(Op op, DType dtype, Value* x, Value* y);
  Value* Compare(Op op, DType dtype, Value* x, Value* y);
  Value* Unary(Op op, DType dtype, Value* x);
  Value* Cast(DType to, DType from, Value* x);
  Value* Bitcast(DType to, Value* x);

  // emit_float.cc
  // f16 and bf16 are computed in f32: Widen before, Narrow after; f32 and f64 pass unchanged.
  Value* Widen(DType dtype, Value* x);
  Value* Narrow(DType dtype, Value* x);
  Value* F16ToF32(Value* bits);
  Value* F32ToF16(Value* x);
  Value* F32ToBF16(Value* x);
  Value* F64ToF32Odd(Value* x);
  Value* FloatToFloat(DType to, DType from, Value* x);
  Value* FloatToInteger(DType to, Value* x);
  Value* IntegerToFloat(DType to, DType from, Value* x);
  Value* RoundToIntegral(Op op, Value* x);
  Value* MaxMin(Op op, Value* x, Value* y);
  Value* RangeMaxMin(Op op, Value* x, Value* y);
  Value* MulAdd(Value* x, Value* y, Value* z);

  // emit_fma.cc: exact fused arithmetic for targets without the instruction.
  Value* MulAddF32(Value* x, Value* y, Value* z);
  Value* MulAddF64(Value* x, Value* y, Value* z);
  llvm::Function* MulAddF64Function();

  // emit_dot.cc: by the target's instructions, else by arithmetic of the same value.
  Value* Dot(Op op, Value* x, Value* y, Value* z);
  Value* DotOfBytes(Value* x, Value* y, Value* z);
  Value* DotOfHalves(Value* x, Value* y, Value* z);
  Value* DotByIntrinsic(llvm::Intrinsic::ID id, Value* x, Value* y, Value* z);
  Value* DotByPairs(llvm::Intrinsic::ID id, Value* x, Value* y, Value* z);

  // The type of `x` with integer lanes of `bits` bits.
  llvm::Type* IntType(Value* x, int bits) {
    return x->getType()->getWithNewType(b_.getIntNTy(bits));
  }
  llvm::Type* FloatType(Value* x) { return x->getType()->getWithNewType(b_.getFloatTy()); }
  llvm::Type* DoubleType(Value* x) { return x->getType()->getWithNewType(b_.getDoubleTy()); }
  // Constants with as many lanes as `x`, of its type.
  llvm::Constant* Int(Value* x, uint64_t value) {
    return llvm::ConstantInt::get(x->getType(), value, false, /*ImplicitTrunc=*/true);
  }
  llvm::Constant* Real(Value* x, double value) {
    return llvm::ConstantFP::get(x->getType(), value);
  }
  // The bits of a float, and back.
  Value* ToBits(Value* x);
  Value* FromBits(Value* x);
  Value* Abs(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }

  llvm::IRBuilderBase& b_;
  llvm::Module& module_;
  const Target& target_;
  const bool has_range_;
};

}  // namespace svod

#endif  // SVOD_JIT_EMIT_ALU_H_
