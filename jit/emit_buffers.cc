// Buffers: where each PARAM, REG and LOCAL of a kernel lives.
//
// A REG is promoted to SSA values if it can be, else it lies on the stack or, when large, in
// scratch with the LOCALs. PARAMs are loaded from the array of pointers once, at the start.
#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ir/passes/loop_memory.h"
#include "jit/lowering.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/MDBuilder.h"

namespace svod {
namespace {

constexpr int64_t kMaxPromotedSlots = 1024;
// REGs that cannot be promoted lie on the stack up to this size in total, then in scratch.
constexpr int64_t kMaxAllocaBytes = 16 << 10;
constexpr int64_t kMaxScratchBytes = int64_t{1} << 31;
constexpr int64_t kScratchAlignment = 64;
// Loops go through several arrays at a time. Those that begin a multiple of 4 KiB apart would meet
// in the same sets of the first cache, and there are more of them than a set has ways.
constexpr int64_t kStaggeredBytes = 1024, kStagger = 3 * kScratchAlignment;

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

bool IsScratch(const UOp* buffer) { return buffer->op() == Op::kReg || buffer->op() == Op::kLocal; }

DType AccessType(const UOp* access) {
  return access->op() == Op::kLoad ? access->dtype() : access->source(1)->dtype();
}

}  // namespace

void KernelLowering::FindAccesses() {
  for (const Step& step : linear_.steps) {
    if (step.kind != Step::Kind::kCompute) continue;
    if (step.node->op() != Op::kLoad && step.node->op() != Op::kStore) continue;
    const UOp* base = BaseBuffer(step.node->source(0));
    auto [it, fresh] = buffers_.try_emplace(base);
    if (fresh) buffer_order_.push_back(base);
    it->second.accesses.push_back(step.node);
  }
}

// A REG moves into SSA values when each access names a constant position, and all accesses move
// equally many lanes and never straddle two slots.
void KernelLowering::PromoteRegs() {
  for (const UOp* reg : buffer_order_) {
    if (reg->op() != Op::kReg) continue;
    Buffer& buffer = buffers_[reg];
    const int64_t size = reg->arg<ScratchArgument>().size * reg->dtype().lanes;
    const int lanes = AccessType(buffer.accesses[0]).lanes;
    bool uniform = (size + lanes - 1) / lanes <= kMaxPromotedSlots;
    for (const UOp* access : buffer.accesses) {
      const UOp* position = access->source(0)->source(1);
      uniform = uniform && AccessType(access).lanes == lanes && IsConst(position) &&
                !position->dtype().is_vector();
      if (!uniform) break;
      int64_t element = ConstInt(position);
      uniform = element >= 0 && element <= size;
      element *= reg->dtype().lanes;
      uniform = uniform && element % lanes == 0 && element + lanes <= size;
    }
    if (!uniform) continue;
    buffer.lanes_per_slot = lanes;
    buffer.first_slot = static_cast<int>(slots_.size());
    llvm::Type* type = RegisterType(reg->dtype().with_lanes(lanes), context_);
    slots_.resize(slots_.size() + size / lanes, llvm::Constant::getNullValue(type));
  }
}

int KernelLowering::SlotOf(const UOp* access, const Buffer& buffer) const {
  int64_t element = ConstInt(access->source(0)->source(1)) * access->source(0)->dtype().lanes;
  return buffer.first_slot + static_cast<int>(element / buffer.lanes_per_slot);
}

// Gives the REGs and LOCALs that are left a place on the stack or in scratch, filled with zeros
// where loops do not fill them first.
absl::Status KernelLowering::PlaceScratch() {
  std::vector<std::pair<const UOp*, int64_t>> placed;
  for (const UOp* node : buffer_order_) {
    Buffer& buffer = buffers_[node];
    if (!IsScratch(node) || buffer.lanes_per_slot > 0) continue;
    int64_t size;
    if (__builtin_mul_overflow(node->arg<ScratchArgument>().size, node->dtype().size_bytes(),
                               &size) ||
        size > kMaxScratchBytes || scratch_bytes_ + size > kMaxScratchBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("lower: ", NameOf(node), ": scratch of the kernel, got more than ",
                       kMaxScratchBytes, " bytes, expected at most that"));
    }
    size = RoundUp(size, kScratchAlignment);  // so that zeros can be stored in whole vectors
    EnterNode(node);
    if (node->op() == Op::kReg && alloca_bytes_ + size <= kMaxAllocaBytes) {
      auto* place = b_.CreateAlloca(llvm::ArrayType::get(b_.getInt8Ty(), size));
      place->setAlignment(llvm::Align(std::min<int64_t>(target_.vector_bytes, 16)));
      alloca_bytes_ += size;
      buffer.base = place;
    } else {
      Value* scratch = function_->getArg(3);
      buffer.base = scratch_bytes_ == 0
                        ? scratch
                        : b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), scratch, scratch_bytes_);
      scratch_bytes_ += size + (size >= kStaggeredBytes ? kStagger : 0);
    }
    placed.push_back({node, size});
  }
  // Loops come after all allocas, which must stand in the first block to cost nothing.
  for (const auto& [node, size] : placed) {
    bool is_filled = true;  // before anything reads it
    for (const UOp* access : buffers_[node].accesses) {
      if (access->op() == Op::kLoad) is_filled = is_filled && LoadsFilledScratch(access, ranges_);
    }
    if (is_filled) continue;
    EnterNode(node);
    EmitZeros(buffers_[node].base, size);
  }
  return absl::OkStatus();
}

// Whole vectors of zeros: in a row while they are few, else
//   i = 0; do { store base + i; i += vector } while (i < size);
void KernelLowering::EmitZeros(Value* base, int64_t size_bytes) {
  const int64_t step = target_.vector_bytes;
  Value* zeros =
      llvm::Constant::getNullValue(llvm::FixedVectorType::get(b_.getInt64Ty(), step / 8));
  const llvm::Align alignment(std::min<int64_t>(step, 16));
  constexpr int64_t kMaxStraight = 16;
  if (size_bytes / step <= kMaxStraight) {
    for (int64_t offset = 0; offset < size_bytes; offset += step) {
      Value* address =
          offset == 0 ? base : b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), base, offset);
      b_.CreateAlignedStore(zeros, address, alignment);
    }
    return;
  }
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* body = NewBlock(".zero");
  llvm::BasicBlock* exit = NewBlock(".zeroed");
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
  llvm::PHINode* offset = b_.CreatePHI(b_.getInt64Ty(), 2);
  offset->addIncoming(b_.getInt64(0), before);
  b_.CreateAlignedStore(zeros, b_.CreateInBoundsGEP(b_.getInt8Ty(), base, offset), alignment);
  Value* next = b_.CreateAdd(offset, b_.getInt64(step), "", true, true);
  offset->addIncoming(next, body);
  b_.CreateCondBr(b_.CreateICmpULT(next, b_.getInt64(size_bytes)), body, exit);
  b_.SetInsertPoint(exit);
}

// Loads the pointers of the PARAMs that are accessed, by slot.
void KernelLowering::EmitParams() {
  std::vector<const UOp*> params;
  for (const UOp* node : buffer_order_) {
    if (node->op() == Op::kParam) params.push_back(node);
  }
  std::sort(params.begin(), params.end(), [](const UOp* a, const UOp* b) {
    return a->arg<ParamArgument>().slot < b->arg<ParamArgument>().slot;
  });
  std::vector<llvm::Metadata*> scopes;
  llvm::MDBuilder metadata(context_);
  llvm::MDNode* domain =
      options_.noalias ? metadata.createAnonymousAliasScopeDomain("params") : nullptr;
  for (const UOp* param : params) {
    EnterNode(param);
    Value* slot = function_->getArg(0);
    if (int64_t number = param->arg<ParamArgument>().slot; number > 0) {
      slot = b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), slot, static_cast<uint64_t>(number));
    }
    llvm::LoadInst* base = b_.CreateAlignedLoad(b_.getPtrTy(), slot, llvm::Align(8));
    base->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    base->setName(NameOf(param));
    buffers_[param].base = base;
    if (options_.noalias) {
      scopes.push_back(metadata.createAnonymousAliasScope(domain, NameOf(param)));
    }
  }
  for (size_t i = 0; i < scopes.size(); ++i) {
    std::vector<llvm::Metadata*> others = scopes;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    buffers_[params[i]].scope = llvm::MDNode::get(context_, {scopes[i]});
    buffers_[params[i]].others = llvm::MDNode::get(context_, others);
  }
}

}  // namespace svod
