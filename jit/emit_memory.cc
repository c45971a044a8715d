// Memory: loads and stores.
//
// A gate guards in one of three ways: a false constant drops the access, a scalar branches around
// it, a vector masks its lanes. Memory behind a false gate is never touched.
#include <algorithm>
#include <optional>

#include "ir/check.h"
#include "jit/lowering.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/Support/MathExtras.h"

namespace svod {
template <typename Instruction>
Instruction* KernelLowering::Annotate(const Place& place, Instruction* instruction) {
  if (place.buffer->scope != nullptr) {
    instruction->setMetadata(llvm::LLVMContext::MD_alias_scope, place.buffer->scope);
    instruction->setMetadata(llvm::LLVMContext::MD_noalias, place.buffer->others);
  }
  return instruction;
}

llvm::Value* KernelLowering::FromMemory(DType dtype, Value* value) {
  if (!dtype.is_bool()) return value;
  return b_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
}

llvm::Value* KernelLowering::ToMemory(DType dtype, Value* value) {
  return dtype.is_bool() ? b_.CreateZExt(value, MemoryType(dtype, context_)) : value;
}

// Constant addends of the position go into an address of their own, where instruction selection
// finds them for the displacement; added before, a loop around would keep each in a register.
KernelLowering::Place KernelLowering::PlaceOf(const UOp* access, int lanes) {
  const UOp* index = access->source(0);
  const UOp* position = index->source(1);
  const DType element = index->dtype();
  Place place;
  place.buffer = &buffers_[BaseBuffer(index)];
  // Only the alignment of an element is known of a PARAM (see kernel_abi.h). A larger one in the
  // program is a wish: to rely on it would let a wrong program fault, and on processors of today an
  // unaligned move of aligned memory costs the same.
  int64_t natural = InfoOf(element.scalar).size_bytes;
  int64_t wanted = access->arg<AlignmentArgument>().bytes;
  place.alignment = llvm::Align(wanted > 0 ? std::min(wanted, natural) : natural);
  if (index->num_sources() == 3) {
    place.gate = ValueOf(index->source(2));
    auto* constant = llvm::dyn_cast<llvm::Constant>(place.gate);
    if (constant != nullptr && constant->isOneValue() && !place.gate->getType()->isVectorTy()) {
      place.gate = nullptr;
    }
  }
  int64_t displacement = 0;
  while (position->op() == Op::kAdd && !position->dtype().is_vector()) {
    const UOp* constant = position->source(1);
    const UOp* rest = position->source(0);
    if (!IsConst(constant)) std::swap(constant, rest);
    if (!IsConst(constant)) break;
    displacement = static_cast<int64_t>(static_cast<uint64_t>(displacement) +
                                        static_cast<uint64_t>(ConstInt(constant)));
    position = rest;
  }
  llvm::Type* scalar = MemoryType(element.element(), context_);
  Value* value = nullptr;
  if (IsConst(position) && !position->dtype().is_vector()) {
    displacement = static_cast<int64_t>(static_cast<uint64_t>(displacement) +
                                        static_cast<uint64_t>(ConstInt(position)));
  } else {
    value = ValueOf(position);
  }
  if (element.is_vector()) {
    if (value != nullptr) value = b_.CreateMul(value, b_.getInt64(element.lanes));
    displacement = static_cast<int64_t>(static_cast<uint64_t>(displacement) *
                                        static_cast<uint64_t>(element.lanes));
  }
  // Without "inbounds": a gated address may be anywhere.
  Value* address = place.buffer->base;
  if (value != nullptr) address = b_.CreateGEP(scalar, address, value);
  if (displacement != 0) address = b_.CreateGEP(scalar, address, b_.getInt64(displacement));
  if (position->dtype().is_vector()) {
    place.addresses = address;
    SVOD_DCHECK(position->dtype().lanes == lanes);
  } else {
    place.address = address;
  }
  (void)lanes;
  return place;
}

// Masked and gathered accesses of very many lanes are cut: where the target has no instruction for
// them, LLVM makes a chain of branches that carries the whole vector along.
int KernelLowering::ChunkLanes(llvm::FixedVectorType* type) const {
  int element_bytes = static_cast<int>(type->getScalarSizeInBits()) / 8;
  return std::clamp(target_.vector_bytes / element_bytes, 4, 64);
}

llvm::Value* KernelLowering::Slice(Value* vector, int first, int count) {
  if (vector == nullptr) return nullptr;
  auto* type = llvm::cast<llvm::FixedVectorType>(vector->getType());
  if (static_cast<int>(type->getNumElements()) == count) return vector;
  std::vector<int> lanes(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) lanes[static_cast<size_t>(i)] = first + i;
  return b_.CreateShuffleVector(vector, lanes);
}

// Joins neighbours pairwise, so that the shuffles form a tree. Only the last part may be shorter.
llvm::Value* KernelLowering::Concatenate(std::vector<Value*> parts) {
  auto lanes_of = [](Value* part) {
    return static_cast<int>(llvm::cast<llvm::FixedVectorType>(part->getType())->getNumElements());
  };
  while (parts.size() > 1) {
    std::vector<Value*> joined;
    for (size_t i = 0; i + 1 < parts.size(); i += 2) {
      const int first = lanes_of(parts[i]), second = lanes_of(parts[i + 1]);
      std::vector<int> lanes;
      for (int k = 0; k < first; ++k) lanes.push_back(k < second ? k : llvm::PoisonMaskElem);
      // Both operands of a shuffle have one type.
      Value* other = first == second ? parts[i + 1] : b_.CreateShuffleVector(parts[i + 1], lanes);
      lanes.clear();
      for (int k = 0; k < first + second; ++k) lanes.push_back(k);
      joined.push_back(b_.CreateShuffleVector(parts[i], other, lanes));
    }
    if (parts.size() % 2 == 1) joined.push_back(parts.back());
    parts = std::move(joined);
  }
  return parts[0];
}

// One element or neighbours without a mask are a plain load. `mask` null: every lane.
llvm::Value* KernelLowering::LoadLanes(const Place& place, llvm::FixedVectorType* type, Value* mask,
                                       Value* alt) {
  const int lanes = static_cast<int>(type->getNumElements());
  const int chunk = ChunkLanes(type);
  std::vector<Value*> parts;
  for (int first = 0; first < lanes; first += chunk) {
    const int count = std::min(chunk, lanes - first);
    auto* part = llvm::FixedVectorType::get(type->getElementType(), static_cast<unsigned>(count));
    Value* part_mask = Slice(mask, first, count);
    Value* part_alt = Slice(alt, first, count);
    if (place.addresses != nullptr) {
      parts.push_back(
          Annotate(place, b_.CreateMaskedGather(part, Slice(place.addresses, first, count),
                                                place.alignment, part_mask, part_alt)));
    } else {
      Value* address = b_.CreateConstGEP1_64(type->getElementType(), place.address, first);
      parts.push_back(Annotate(
          place, b_.CreateMaskedLoad(part, address, place.alignment, part_mask, part_alt)));
    }
  }
  return Concatenate(std::move(parts));
}

// The one lane that a constant mask leaves; nullopt for others.
static std::optional<int> OnlyLane(llvm::Value* mask) {
  auto* constant = llvm::dyn_cast_or_null<llvm::Constant>(mask);
  if (constant == nullptr) return std::nullopt;
  auto* type = llvm::cast<llvm::FixedVectorType>(mask->getType());
  std::optional<int> only;
  for (unsigned lane = 0; lane < type->getNumElements(); ++lane) {
    llvm::Constant* bit = constant->getAggregateElement(lane);
    if (bit == nullptr || bit->isNullValue()) continue;
    if (only.has_value()) return std::nullopt;
    only = static_cast<int>(lane);
  }
  return only;
}

void KernelLowering::StoreLanes(const Place& place, Value* value, Value* mask) {
  auto* type = llvm::cast<llvm::FixedVectorType>(value->getType());
  const int lanes = static_cast<int>(type->getNumElements());
  const int chunk = ChunkLanes(type);
  for (int first = 0; first < lanes; first += chunk) {
    const int count = std::min(chunk, lanes - first);
    Value* part = Slice(value, first, count);
    Value* part_mask = Slice(mask, first, count);
    if (place.addresses != nullptr) {
      // Lanes are stored in order, so that of two with one address the last one stays.
      Annotate(place, b_.CreateMaskedScatter(part, Slice(place.addresses, first, count),
                                             place.alignment, part_mask));
    } else if (std::optional<int> only = OnlyLane(part_mask); only.has_value()) {
      // LLVM would store as many bytes as the lane had before it was narrowed.
      Value* address = b_.CreateConstGEP1_64(type->getElementType(), place.address, first + *only);
      Value* element = b_.CreateExtractElement(part, static_cast<uint64_t>(*only));
      const auto offset = static_cast<uint64_t>(first + *only) * type->getScalarSizeInBits() / 8;
      Annotate(place, b_.CreateAlignedStore(element, address,
                                            llvm::commonAlignment(place.alignment, offset)));
    } else {
      Value* address = b_.CreateConstGEP1_64(type->getElementType(), place.address, first);
      Annotate(place, b_.CreateMaskedStore(part, address, place.alignment, part_mask));
    }
  }
}

// if (gate) { value = load } else { value = alt }, or the lanes under a vector gate.
llvm::Value* KernelLowering::LoadAt(const Place& place, DType dtype, Value* alt) {
  llvm::Type* type = MemoryType(dtype, context_);
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  const bool masked = place.gate != nullptr && place.gate->getType()->isVectorTy();
  auto load = [&]() -> Value* {
    if (place.addresses != nullptr || masked) {
      Value* memory_alt = masked ? ToMemory(dtype, alt) : nullptr;
      return FromMemory(dtype, LoadLanes(place, vector, masked ? place.gate : nullptr, memory_alt));
    }
    return FromMemory(dtype,
                      Annotate(place, b_.CreateAlignedLoad(type, place.address, place.alignment)));
  };
  if (place.gate == nullptr || masked) return load();
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(place.gate)) {
    if (constant->isNullValue()) return alt;
  }
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* inside = NewBlock(".inside");
  llvm::BasicBlock* join = NewBlock(".join");
  b_.CreateCondBr(place.gate, inside, join);
  b_.SetInsertPoint(inside);
  Value* loaded = load();
  llvm::BasicBlock* loaded_in = b_.GetInsertBlock();
  b_.CreateBr(join);
  b_.SetInsertPoint(join);
  llvm::PHINode* result = b_.CreatePHI(loaded->getType(), 2);
  result->addIncoming(loaded, loaded_in);
  result->addIncoming(alt, before);
  return result;
}

// if (address % alignment == 0) { store past the caches } else { store }
// since instructions that do need aligned addresses, and of a PARAM no more than the alignment of
// an element is known. The branch goes one way for a whole loop.
void KernelLowering::StreamAt(const Place& place, Value* stored) {
  const auto bytes =
      static_cast<uint64_t>(module_->getDataLayout().getTypeStoreSize(stored->getType()));
  const uint64_t alignment = std::min(uint64_t{1} << llvm::Log2_64(bytes & (0 - bytes)),
                                      static_cast<uint64_t>(target_.vector_bytes));
  Value* rest =
      b_.CreateAnd(b_.CreatePtrToInt(place.address, b_.getInt64Ty()), b_.getInt64(alignment - 1));
  llvm::BasicBlock* stream = NewBlock(".stream");
  llvm::BasicBlock* plain = NewBlock(".plain");
  llvm::BasicBlock* join = NewBlock(".join");
  b_.CreateCondBr(b_.CreateICmpEQ(rest, b_.getInt64(0)), stream, plain);
  b_.SetInsertPoint(stream);
  llvm::StoreInst* store = b_.CreateAlignedStore(stored, place.address, llvm::Align(alignment));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                     llvm::MDNode::get(context_, llvm::ConstantAsMetadata::get(b_.getInt32(1))));
  Annotate(place, store);
  b_.CreateBr(join);
  b_.SetInsertPoint(plain);
  Annotate(place, b_.CreateAlignedStore(stored, place.address, place.alignment));
  b_.CreateBr(join);
  b_.SetInsertPoint(join);
  has_streams_ = true;
}

// On x86-64 such stores are ordered with nothing, also not with the release that tells other cores
// that the kernel is done.
void KernelLowering::EndStreams() {
  if (!has_streams_ || target_.architecture != Architecture::kX86_64) return;
  b_.CreateIntrinsic(b_.getVoidTy(), llvm::Intrinsic::x86_sse_sfence, {});
}

void KernelLowering::StoreAt(const Place& place, DType dtype, Value* value, bool is_stream) {
  const bool masked = place.gate != nullptr && place.gate->getType()->isVectorTy();
  auto store = [&] {
    Value* stored = ToMemory(dtype, value);
    if (place.addresses != nullptr || masked) {
      StoreLanes(place, stored, masked ? place.gate : nullptr);
    } else if (is_stream && stored->getType()->isVectorTy()) {
      StreamAt(place, stored);
    } else {
      Annotate(place, b_.CreateAlignedStore(stored, place.address, place.alignment));
    }
  };
  if (place.gate == nullptr || masked) return store();
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(place.gate)) {
    if (constant->isNullValue()) return;
  }
  llvm::BasicBlock* inside = NewBlock(".inside");
  llvm::BasicBlock* join = NewBlock(".join");
  b_.CreateCondBr(place.gate, inside, join);
  b_.SetInsertPoint(inside);
  store();
  b_.CreateBr(join);
  b_.SetInsertPoint(join);
}

llvm::Value* KernelLowering::EmitLoad(const UOp* node) {
  const Buffer& buffer = buffers_[BaseBuffer(node->source(0))];
  if (buffer.lanes_per_slot > 0) return EmitPromotedLoad(node, buffer);
  Value* alt = node->num_sources() == 2
                   ? ValueOf(node->source(1))
                   : llvm::Constant::getNullValue(RegisterType(node->dtype(), context_));
  return LoadAt(PlaceOf(node, node->dtype().lanes), node->dtype(), alt);
}

void KernelLowering::EmitStore(const UOp* node) {
  const Buffer& buffer = buffers_[BaseBuffer(node->source(0))];
  if (buffer.lanes_per_slot > 0) return EmitPromotedStore(node, buffer);
  const DType dtype = node->source(1)->dtype();
  StoreAt(PlaceOf(node, dtype.lanes), dtype, ValueOf(node->source(1)),
          node->arg<AlignmentArgument>().is_stream);
}

llvm::Value* KernelLowering::EmitPromotedLoad(const UOp* node, const Buffer& buffer) {
  const UOp* index = node->source(0);
  Value* value = slots_[static_cast<size_t>(SlotOf(node, buffer))];
  if (index->num_sources() < 3) return value;
  Value* alt = node->num_sources() == 2 ? ValueOf(node->source(1))
                                        : llvm::Constant::getNullValue(value->getType());
  return b_.CreateSelect(ValueOf(index->source(2)), value, alt);
}

void KernelLowering::EmitPromotedStore(const UOp* node, const Buffer& buffer) {
  const UOp* index = node->source(0);
  Value*& slot = slots_[static_cast<size_t>(SlotOf(node, buffer))];
  Value* value = ValueOf(node->source(1));
  slot = index->num_sources() < 3 ? value : b_.CreateSelect(ValueOf(index->source(2)), value, slot);
}

}  // namespace svod
