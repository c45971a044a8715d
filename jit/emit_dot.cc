// Dot products of packed bytes and halves.
#include <algorithm>
#include <vector>

#include "ir/check.h"
#include "jit/emit_alu.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace svod {
namespace {

using llvm::Value;

int LanesOf(Value* x) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  return vector == nullptr ? 1 : static_cast<int>(vector->getNumElements());
}

// The form of an instruction for 4, 8 or 16 lanes; not_intrinsic where the target lacks it.
struct Forms {
  llvm::Intrinsic::ID of4, of8, of16;
  llvm::Intrinsic::ID Of(int lanes) const { return lanes == 4 ? of4 : lanes == 8 ? of8 : of16; }
};
constexpr llvm::Intrinsic::ID kNone = llvm::Intrinsic::not_intrinsic;

Forms FormsOf(llvm::Intrinsic::ID of4, bool has4, llvm::Intrinsic::ID of8, bool has8,
              llvm::Intrinsic::ID of16, bool has16) {
  return {has4 ? of4 : kNone, has8 ? of8 : kNone, has16 ? of16 : kNone};
}

Forms ByteForms(const Target& target) {
  bool is_wide = HasFeature(target, "avx512vnni");
  bool is_narrow = HasFeature(target, "avxvnni") || (is_wide && HasFeature(target, "avx512vl"));
  return FormsOf(llvm::Intrinsic::x86_avx512_vpdpbusd_128, is_narrow,
                 llvm::Intrinsic::x86_avx512_vpdpbusd_256, is_narrow,
                 llvm::Intrinsic::x86_avx512_vpdpbusd_512, is_wide);
}

Forms PairForms(const Target& target) {
  return FormsOf(llvm::Intrinsic::x86_sse2_pmadd_wd, HasFeature(target, "sse2"),
                 llvm::Intrinsic::x86_avx2_pmadd_wd, HasFeature(target, "avx2"),
                 llvm::Intrinsic::x86_avx512_pmaddw_d_512, HasFeature(target, "avx512bw"));
}

Forms HalfForms(const Target& target) {
  bool is_wide = HasFeature(target, "avx512bf16");
  bool is_narrow = is_wide && HasFeature(target, "avx512vl");
  return FormsOf(llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128, is_narrow,
                 llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256, is_narrow,
                 llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512, is_wide);
}

// `emit(intrinsic, x, y, z)` on registers of 4, 8 or 16 lanes that cover those of x, y and z; null
// where the target has no form that does.
template <typename Emit>
Value* InRegisters(llvm::IRBuilderBase& b, const Forms& forms, int vector_bytes, Value* x, Value* y,
                   Value* z, Emit emit) {
  const int lanes = LanesOf(z);
  int width = 16;
  while (width > 4 && (width / 2 >= lanes || width * 4 > vector_bytes)) width /= 2;
  if (forms.Of(width) == kNone) return nullptr;
  // Lanes from `first` on, and zeros behind the last.
  auto part = [&](Value* v, int first) -> Value* {
    if (lanes == width) return v;
    auto* type = llvm::FixedVectorType::get(v->getType()->getScalarType(),
                                            static_cast<unsigned>(lanes == 1 ? width : lanes));
    if (lanes == 1) {
      return b.CreateInsertElement(llvm::Constant::getNullValue(type), v, b.getInt64(0));
    }
    std::vector<int> mask;
    for (int i = first; i < first + width; ++i) mask.push_back(std::min(i, lanes));
    return b.CreateShuffleVector(v, llvm::Constant::getNullValue(type), mask);
  };
  std::vector<Value*> results;
  for (int first = 0; first < lanes; first += width) {
    results.push_back(emit(forms.Of(width), part(x, first), part(y, first), part(z, first)));
  }
  if (lanes == 1) return b.CreateExtractElement(results[0], b.getInt64(0));
  // Put side by side in pairs, then without what lies behind the last.
  int side = width;
  while (results.size() > 1) {
    if (results.size() % 2 != 0) results.push_back(llvm::PoisonValue::get(results[0]->getType()));
    std::vector<int> both;
    for (int i = 0; i < 2 * side; ++i) both.push_back(i);
    for (size_t i = 0; i < results.size() / 2; ++i) {
      results[i] = b.CreateShuffleVector(results[2 * i], results[2 * i + 1], both);
    }
    results.resize(results.size() / 2);
    side *= 2;
  }
  if (side == lanes) return results[0];
  std::vector<int> front;
  for (int i = 0; i < lanes; ++i) front.push_back(i);
  return b.CreateShuffleVector(results[0], front);
}

}  // namespace

Value* AluEmitter::Dot(Op op, Value* x, Value* y, Value* z) {
  if (op == Op::kDotBF16) return DotOfHalves(x, y, z);
  SVOD_DCHECK(op == Op::kDotU8I8);
  return DotOfBytes(x, y, z);
}

// x and y as the intrinsic takes them: vectors of bytes, or of halves.
Value* AluEmitter::DotByIntrinsic(llvm::Intrinsic::ID id, Value* x, Value* y, Value* z) {
  llvm::Function* dot = llvm::Intrinsic::getOrInsertDeclaration(&module_, id);
  llvm::Type* packed = dot->getFunctionType()->getParamType(1);
  return b_.CreateCall(dot, {z, b_.CreateBitCast(x, packed), b_.CreateBitCast(y, packed)});
}

// Bytes 0 and 2, then 1 and 3, as 16 bits each; an instruction adds the products of pairs in 32.
Value* AluEmitter::DotByPairs(llvm::Intrinsic::ID id, Value* x, Value* y, Value* z) {
  llvm::Function* pairs = llvm::Intrinsic::getOrInsertDeclaration(&module_, id);
  llvm::Type* type = pairs->getFunctionType()->getParamType(0);
  Value *of_x = b_.CreateBitCast(x, type), *of_y = b_.CreateBitCast(y, type);
  llvm::Constant* byte = llvm::ConstantInt::get(type, 8);
  Value* even = b_.CreateCall(pairs, {b_.CreateAnd(of_x, llvm::ConstantInt::get(type, 0xff)),
                                      b_.CreateAShr(b_.CreateShl(of_y, byte), byte)});
  Value* odd = b_.CreateCall(pairs, {b_.CreateLShr(of_x, byte), b_.CreateAShr(of_y, byte)});
  return b_.CreateAdd(b_.CreateAdd(even, odd), z);
}

Value* AluEmitter::DotOfBytes(Value* x, Value* y, Value* z) {
  auto dot = [&](llvm::Intrinsic::ID id, Value* p, Value* q, Value* sum) {
    return DotByIntrinsic(id, p, q, sum);
  };
  auto pairs = [&](llvm::Intrinsic::ID id, Value* p, Value* q, Value* sum) {
    return DotByPairs(id, p, q, sum);
  };
  Value* sum = InRegisters(b_, ByteForms(target_), target_.vector_bytes, x, y, z, dot);
  if (sum != nullptr) return sum;
  sum = InRegisters(b_, PairForms(target_), target_.vector_bytes, x, y, z, pairs);
  if (sum != nullptr) return sum;
  sum = z;
  for (uint64_t shift = 0; shift < 32; shift += 8) {
    Value* of_x = b_.CreateAnd(b_.CreateLShr(x, Int(x, shift)), Int(x, 0xff));
    Value* of_y = b_.CreateAShr(b_.CreateShl(y, Int(y, 24 - shift)), Int(y, 24));
    sum = b_.CreateAdd(sum, b_.CreateMul(of_x, of_y));
  }
  return sum;
}

Value* AluEmitter::DotOfHalves(Value* x, Value* y, Value* z) {
  auto dot = [&](llvm::Intrinsic::ID id, Value* p, Value* q, Value* sum) {
    return DotByIntrinsic(id, p, q, sum);
  };
  Value* sum = InRegisters(b_, HalfForms(target_), target_.vector_bytes, x, y, z, dot);
  if (sum != nullptr) return sum;
  auto without_subnormal = [&](Value* bits) {
    Value* is_normal = b_.CreateICmpNE(b_.CreateAnd(bits, Int(bits, 0x7f800000)), Int(bits, 0));
    Value* zero = b_.CreateAnd(bits, Int(bits, 0x80000000));
    return FromBits(b_.CreateSelect(is_normal, bits, zero));
  };
  auto high = [&](Value* v) { return without_subnormal(b_.CreateAnd(v, Int(v, 0xffff0000))); };
  auto low = [&](Value* v) { return without_subnormal(b_.CreateShl(v, Int(v, 16))); };
  sum = MulAdd(high(x), high(y), without_subnormal(ToBits(z)));
  sum = MulAdd(low(x), low(y), without_subnormal(ToBits(sum)));
  return without_subnormal(ToBits(sum));
}

}  // namespace svod
