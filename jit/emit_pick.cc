// pick: lanes of a table by number. x86-64 has instructions for tables of 32-bit elements that fill
// a register (8 lanes with AVX2, 16 with AVX-512): larger tables take one for each register and
// selects by the upper bits of the numbers. Everything else looks lanes up in memory.
#include <algorithm>

#include "jit/lowering.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace svod {
namespace {

// More registers than this take longer than memory.
constexpr unsigned kMaxTableRegisters = 4;

unsigned LanesOf(llvm::Value* value) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return type == nullptr ? 1 : type->getNumElements();
}

}  // namespace

llvm::Value* KernelLowering::EmitPick(Value* table, Value* numbers) {
  const unsigned lanes = LanesOf(numbers), entries = LanesOf(table);
  const unsigned width = static_cast<unsigned>(target_.vector_bytes) / 4;
  const bool has_instruction = target_.architecture == Architecture::kX86_64 && width >= 8 &&
                               (width == 16 || HasFeature(target_, "avx2")) &&
                               table->getType()->getScalarSizeInBits() == 32;
  if (!has_instruction || lanes == 1 || entries > kMaxTableRegisters * width) {
    return PickOneByOne(table, numbers);
  }
  // Tables shorter than a register are repeated in it.
  if (entries < width) {
    std::vector<int> repeated(width);
    for (unsigned i = 0; i < width; ++i) repeated[i] = static_cast<int>(i % entries);
    table = b_.CreateShuffleVector(table, repeated);
  }
  std::vector<Value*> parts;
  for (unsigned first = 0; first < lanes; first += width) {
    const unsigned count = std::min(width, lanes - first);
    std::vector<int> taken(width, llvm::PoisonMaskElem);
    for (unsigned i = 0; i < count; ++i) taken[i] = static_cast<int>(first + i);
    Value* part = lanes == width ? numbers : b_.CreateShuffleVector(numbers, taken);
    part = PickHalves(table, part);
    parts.push_back(count == width ? part : Slice(part, 0, static_cast<int>(count)));
  }
  return Concatenate(std::move(parts));
}

// `numbers` fills a register; `table` takes a power of two of registers.
llvm::Value* KernelLowering::PickHalves(Value* table, Value* numbers) {
  const unsigned half = LanesOf(table) / 2;
  if (LanesOf(table) == LanesOf(numbers)) return PickWide(table, numbers);
  Value* low = PickHalves(Slice(table, 0, static_cast<int>(half)), numbers);
  Value* high = PickHalves(Slice(table, static_cast<int>(half), static_cast<int>(half)), numbers);
  llvm::Constant* bit = llvm::ConstantInt::get(numbers->getType(), half);
  Value* is_high =
      b_.CreateICmpNE(b_.CreateAnd(numbers, bit), llvm::Constant::getNullValue(numbers->getType()));
  return b_.CreateSelect(is_high, high, low);
}

// One instruction, which looks at no more of the numbers than it needs.
llvm::Value* KernelLowering::PickWide(Value* table, Value* numbers) {
  const bool is_float = table->getType()->getScalarType()->isFloatTy();
  const bool is_512 = LanesOf(table) == 16;
  const llvm::Intrinsic::ID id =
      is_512 ? (is_float ? llvm::Intrinsic::x86_avx512_permvar_sf_512
                         : llvm::Intrinsic::x86_avx512_permvar_si_512)
             : (is_float ? llvm::Intrinsic::x86_avx2_permps : llvm::Intrinsic::x86_avx2_permd);
  return b_.CreateIntrinsic(id, {table, numbers});
}

llvm::Value* KernelLowering::PickOneByOne(Value* table, Value* numbers) {
  auto* type = llvm::cast<llvm::FixedVectorType>(table->getType());
  const unsigned lanes = LanesOf(numbers);
  Value* inside =
      b_.CreateAnd(numbers, llvm::ConstantInt::get(numbers->getType(), type->getNumElements() - 1));
  auto* constant = llvm::dyn_cast<llvm::Constant>(table);
  llvm::GlobalVariable* memory = nullptr;
  if (constant != nullptr && !type->getElementType()->isIntegerTy(1)) {
    llvm::SmallVector<llvm::Constant*, 64> elements;
    for (unsigned i = 0; i < type->getNumElements(); ++i) {
      elements.push_back(constant->getAggregateElement(i));
    }
    auto* array = llvm::ArrayType::get(type->getElementType(), type->getNumElements());
    memory = new llvm::GlobalVariable(*module_, array, true, llvm::GlobalValue::PrivateLinkage,
                                      llvm::ConstantArray::get(array, elements), name_ + ".table");
    memory->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  }
  auto entry = [&](Value* number) -> Value* {
    if (memory == nullptr) return b_.CreateExtractElement(table, number);
    number = b_.CreateZExt(number, b_.getInt64Ty());
    return b_.CreateLoad(type->getElementType(),
                         b_.CreateGEP(type->getElementType(), memory, number));
  };
  if (lanes == 1 && !numbers->getType()->isVectorTy()) return entry(inside);
  Value* result = llvm::PoisonValue::get(llvm::FixedVectorType::get(type->getElementType(), lanes));
  for (unsigned lane = 0; lane < lanes; ++lane) {
    result = b_.CreateInsertElement(
        result, entry(b_.CreateExtractElement(inside, b_.getInt64(lane))), b_.getInt64(lane));
  }
  return result;
}

}  // namespace svod
