// Fused multiply-add without the instruction: x * y + z, rounded once.
#include "jit/emit_alu.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Intrinsics.h"

namespace svod {

// The product of two f32 is exact in f64. Its sum with z is rounded to odd there, with the rounding
// error that Knuth's TwoSum gives exactly, and then once to f32 (Boldo and Melquiond, "Emulation of
// FMA and correctly rounded sums", 2008).
llvm::Value* AluEmitter::MulAddF32(Value* x, Value* y, Value* z) {
  llvm::Type* type = DoubleType(x);
  Value* product = b_.CreateFMul(b_.CreateFPExt(x, type), b_.CreateFPExt(y, type));
  Value* addend = b_.CreateFPExt(z, type);
  Value* sum = b_.CreateFAdd(product, addend);
  Value* addend_part = b_.CreateFSub(sum, product);
  Value* product_part = b_.CreateFSub(sum, addend_part);
  Value* error =
      b_.CreateFAdd(b_.CreateFSub(product, product_part), b_.CreateFSub(addend, addend_part));
  // An infinite sum has a NaN for an error, which is not "ordered and unequal".
  Value* inexact = b_.CreateFCmpONE(error, Real(error, 0));
  Value* bits = ToBits(sum);
  Value* error_bits = ToBits(error);
  Value* away = b_.CreateICmpSGE(b_.CreateXor(bits, error_bits), Int(bits, 0));
  Value* even = b_.CreateICmpEQ(b_.CreateAnd(bits, Int(bits, 1)), Int(bits, 0));
  Value* step = b_.CreateSelect(away, Int(bits, 1), Int(bits, ~uint64_t{0}));
  Value* odd = b_.CreateSelect(b_.CreateAnd(inexact, even), b_.CreateAdd(bits, step), bits);
  return b_.CreateFPTrunc(FromBits(odd), FloatType(x));
}

llvm::Value* AluEmitter::MulAddF64(Value* x, Value* y, Value* z) {
  llvm::Function* function = MulAddF64Function();
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (vector == nullptr) return b_.CreateCall(function, {x, y, z});
  Value* result = llvm::PoisonValue::get(vector);
  for (unsigned lane = 0; lane < vector->getNumElements(); ++lane) {
    Value* element =
        b_.CreateCall(function, {b_.CreateExtractElement(x, lane), b_.CreateExtractElement(y, lane),
                                 b_.CreateExtractElement(z, lane)});
    result = b_.CreateInsertElement(result, element, lane);
  }
  return result;
}

// One function a module, called lane by lane: about 100 instructions. In integers:
//   unless x, y and z are finite and not zero: x * y + z, where one of the two steps is exact
//   product = mantissa(x) * mantissa(y) << 20, addend = mantissa(z) << 72   // 128 bits
//   the one with the smaller exponent moves right, what it loses goes into its last bit
//   sum = product +- addend, normalised, the lower half into the last bit of the upper
//   the upper half is rounded to 53 bits, fewer for a subnormal result
llvm::Function* AluEmitter::MulAddF64Function() {
  constexpr char kName[] = "svod.fma.f64";
  if (llvm::Function* made = module_.getFunction(kName)) return made;
  llvm::LLVMContext& context = module_.getContext();
  llvm::Type* real = b_.getDoubleTy();
  auto* function = llvm::Function::Create(llvm::FunctionType::get(real, {real, real, real}, false),
                                          llvm::GlobalValue::InternalLinkage, kName, module_);
  function->setDoesNotThrow();
  function->setAttributes(function->getAttributes().addFnAttributes(
      context,
      llvm::AttrBuilder(context, b_.GetInsertBlock()->getParent()->getAttributes().getFnAttrs())));
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "entry", function));
  Value* x = function->getArg(0);
  Value* y = function->getArg(1);
  Value* z = function->getArg(2);

  auto finite = [&](Value* v) {
    Value* magnitude = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v);
    return b.CreateFCmpOLT(magnitude, llvm::ConstantFP::getInfinity(real));
  };
  auto zero = [&](Value* v) { return b.CreateFCmpOEQ(v, llvm::ConstantFP::get(real, 0.0)); };
  auto return_if = [&](Value* condition, auto value) {
    auto* taken = llvm::BasicBlock::Create(context, "special", function);
    auto* next = llvm::BasicBlock::Create(context, "next", function);
    b.CreateCondBr(condition, taken, next);
    b.SetInsertPoint(taken);
    b.CreateRet(value());
    b.SetInsertPoint(next);
  };
  // A product with a zero, an infinity or a NaN is exact, and so is adding to it what is not finite
  // or adding to a zero. A finite product cannot matter to an addend that is not finite, but might
  // overflow on its own. A zero addend leaves the one rounding of the product.
  Value* exact_product = b.CreateNot(b.CreateAnd(finite(x), finite(y)));
  exact_product = b.CreateOr(exact_product, b.CreateOr(zero(x), zero(y)));
  return_if(exact_product, [&] { return b.CreateFAdd(b.CreateFMul(x, y), z); });
  return_if(b.CreateNot(finite(z)), [&] { return z; });
  return_if(zero(z), [&] { return b.CreateFMul(x, y); });

  llvm::Type* i64 = b.getInt64Ty();
  llvm::Type* i128 = b.getInt128Ty();
  auto wide = [&](uint64_t v) { return llvm::ConstantInt::get(i128, v); };
  auto leading_zeros = [&](Value* v) {
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, v, b.getFalse());
  };
  auto at_least = [&](Value* v, int64_t low) {
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v, b.getInt64(low));
  };
  auto at_most = [&](Value* v, int64_t high) {
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, v, b.getInt64(high));
  };
  // v >> n with a last bit that is 1 if any bit was lost; n in [0, width).
  auto sticky_shift = [&](Value* v, Value* n) {
    llvm::Type* type = v->getType();
    n = b.CreateZExtOrTrunc(n, type);
    Value* one = llvm::ConstantInt::get(type, 1);
    Value* mask = b.CreateSub(b.CreateShl(one, n), one);
    Value* lost = b.CreateICmpNE(b.CreateAnd(v, mask), llvm::ConstantInt::get(type, 0));
    return b.CreateOr(b.CreateLShr(v, n), b.CreateZExt(lost, type));
  };

  struct Parts {
    Value* mantissa;  // in [2^52, 2^53)
    Value* exponent;  // |v| = mantissa * 2^exponent
    Value* negative;
  };
  auto unpack = [&](Value* v) {
    Value* bits = b.CreateBitCast(v, i64);
    Value* exponent = b.CreateAnd(b.CreateLShr(bits, 52), b.getInt64(0x7ff));
    Value* fraction = b.CreateAnd(bits, b.getInt64((uint64_t{1} << 52) - 1));
    Value* subnormal = b.CreateICmpEQ(exponent, b.getInt64(0));
    Value* shift = b.CreateSub(leading_zeros(fraction), b.getInt64(11));
    shift = b.CreateSelect(subnormal, shift, b.getInt64(0));
    Value* normal = b.CreateOr(fraction, b.getInt64(uint64_t{1} << 52));
    Value* mantissa = b.CreateShl(b.CreateSelect(subnormal, fraction, normal), shift);
    exponent = b.CreateSub(at_least(exponent, 1), b.CreateAdd(shift, b.getInt64(1075)));
    return Parts{mantissa, exponent, b.CreateICmpSLT(bits, b.getInt64(0))};
  };
  Parts px = unpack(x), py = unpack(y), pz = unpack(z);

  Value* product = b.CreateMul(b.CreateZExt(px.mantissa, i128), b.CreateZExt(py.mantissa, i128));
  product = b.CreateShl(product, wide(20));
  Value* addend = b.CreateShl(b.CreateZExt(pz.mantissa, i128), wide(72));
  Value* product_exponent = b.CreateSub(b.CreateAdd(px.exponent, py.exponent), b.getInt64(20));
  Value* addend_exponent = b.CreateSub(pz.exponent, b.getInt64(72));
  Value* distance = b.CreateSub(product_exponent, addend_exponent);
  addend = sticky_shift(addend, at_most(at_least(distance, 0), 127));
  product = sticky_shift(product, at_most(at_least(b.CreateNeg(distance), 0), 127));
  Value* exponent =
      b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, product_exponent, addend_exponent);

  Value* product_negative = b.CreateXor(px.negative, py.negative);
  Value* subtract = b.CreateXor(product_negative, pz.negative);
  Value* product_larger = b.CreateICmpUGE(product, addend);
  Value* difference =
      b.CreateSelect(product_larger, b.CreateSub(product, addend), b.CreateSub(addend, product));
  Value* sum = b.CreateSelect(subtract, difference, b.CreateAdd(product, addend));
  Value* negative = b.CreateSelect(b.CreateAnd(subtract, b.CreateNot(product_larger)), pz.negative,
                                   product_negative);
  // x * y + z that cancels is +0 when rounding to nearest.
  return_if(b.CreateICmpEQ(sum, wide(0)), [&] { return llvm::ConstantFP::get(real, 0.0); });

  Value* shift = leading_zeros(sum);
  sum = b.CreateShl(sum, shift);
  Value* lost = b.CreateICmpNE(b.CreateTrunc(sum, i64), b.getInt64(0));
  Value* upper = b.CreateTrunc(b.CreateLShr(sum, wide(64)), i64);
  upper = b.CreateOr(upper, b.CreateZExt(lost, i64));
  // |result| is in [2^power, 2^(power + 1)).
  Value* power = b.CreateAdd(b.CreateSub(exponent, b.CreateTrunc(shift, i64)), b.getInt64(127));
  Value* too_small = at_most(at_least(b.CreateSub(b.getInt64(-1022), power), 0), 63);
  upper = sticky_shift(upper, too_small);
  Value* mantissa = b.CreateLShr(upper, 11);
  Value* rest = b.CreateAnd(upper, b.getInt64(0x7ff));
  Value* odd = b.CreateAnd(mantissa, b.getInt64(1));
  // Above a half, or a half and odd.
  Value* round_up = b.CreateICmpUGT(b.CreateAdd(rest, odd), b.getInt64(0x400));
  mantissa = b.CreateAdd(mantissa, b.CreateZExt(round_up, i64));
  // The mantissa's leading bit counts one in the exponent's field; a carry goes there as well.
  Value* field = b.CreateAdd(at_least(power, -1022), b.getInt64(1022));
  Value* bits = b.CreateAdd(b.CreateShl(field, 52), mantissa);
  bits = b.CreateSelect(b.CreateICmpSGT(power, b.getInt64(1023)), b.getInt64(uint64_t{0x7ff} << 52),
                        bits);
  Value* sign = b.CreateShl(b.CreateZExt(negative, i64), 63);
  b.CreateRet(b.CreateBitCast(b.CreateOr(bits, sign), real));
  return function;
}

}  // namespace svod
