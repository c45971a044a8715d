// Loops. A RANGE becomes
//
//   before:  if (!(0 < end)) goto exit;            // left out when the end is a positive constant
//   body:    i = phi(0, i + 1); slot = phi(slot before, slot at the end of the body) ...
//            ...
//            if (i + 1 < end) goto body;
//   exit:    slot = phi(slot before, slot at the end of the body) ...
//
// where the slots are the elements of promoted REGs that the body stores to.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/check.h"
#include "jit/lowering.h"

namespace svod {

llvm::BasicBlock* KernelLowering::NewBlock(const char* suffix) {
  return llvm::BasicBlock::Create(context_, absl::StrCat(name_, suffix), function_);
}

void KernelLowering::FindLoopSlots() {
  std::vector<const UOp*> open;
  for (const Step& step : linear_.steps) {
    if (step.kind == Step::Kind::kLoopBegin) open.push_back(step.node);
    if (step.kind == Step::Kind::kLoopEnd && !open.empty()) open.pop_back();
    if (step.kind != Step::Kind::kCompute || step.node->op() != Op::kStore) continue;
    const Buffer& buffer = buffers_[BaseBuffer(step.node->source(0))];
    if (buffer.lanes_per_slot == 0) continue;
    for (const UOp* range : open) loop_slots_[range].push_back(SlotOf(step.node, buffer));
  }
  for (auto& [range, slots] : loop_slots_) {
    std::sort(slots.begin(), slots.end());
    slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  }
}

void KernelLowering::BeginLoop(const UOp* range) {
  EnterNode(range);
  Loop loop;
  loop.range = range;
  loop.end = ValueOf(range->source(0));
  loop.body = NewBlock(".body");
  loop.exit = NewBlock(".exit");
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(loop.end);
  loop.guarded = constant == nullptr || constant->getSExtValue() <= 0;
  if (loop.guarded) {
    Value* runs = b_.CreateICmpSGT(loop.end, b_.getInt64(0));
    loop.before = b_.GetInsertBlock();
    b_.CreateCondBr(runs, loop.body, loop.exit);
  } else {
    loop.before = b_.GetInsertBlock();
    b_.CreateBr(loop.body);
  }
  b_.SetInsertPoint(loop.body);
  loop.counter = b_.CreatePHI(b_.getInt64Ty(), 2);
  loop.counter->addIncoming(b_.getInt64(0), loop.before);
  SetValue(range, loop.counter);
  auto slots = loop_slots_.find(range);
  if (slots != loop_slots_.end()) {
    for (int slot : slots->second) {
      llvm::PHINode* phi =
          b_.CreatePHI(slots_[slot]->getType(), 2, absl::StrCat(name_, ".slot.", slot));
      phi->addIncoming(slots_[slot], loop.before);
      slots_[slot] = phi;
      loop.slots.push_back({slot, phi});
    }
  }
  loops_.push_back(std::move(loop));
}

void KernelLowering::EndLoop(const UOp* range) {
  SVOD_DCHECK(!loops_.empty() && loops_.back().range == range);
  EnterNode(range);
  Loop loop = std::move(loops_.back());
  loops_.pop_back();
  // The counter stays below its end and so below the largest i64.
  Value* next =
      b_.CreateAdd(loop.counter, b_.getInt64(1), absl::StrCat(name_, ".next"), true, true);
  Value* again = b_.CreateICmpSLT(next, loop.end, absl::StrCat(name_, ".again"));
  llvm::BasicBlock* latch = b_.GetInsertBlock();
  b_.CreateCondBr(again, loop.body, loop.exit);
  loop.counter->addIncoming(next, latch);
  for (auto& [slot, phi] : loop.slots) phi->addIncoming(slots_[slot], latch);

  loop.exit->moveAfter(latch);
  b_.SetInsertPoint(loop.exit);
  if (!loop.guarded) return;
  for (auto& [slot, phi] : loop.slots) {
    Value* before = phi->getIncomingValueForBlock(loop.before);
    llvm::PHINode* merged = b_.CreatePHI(phi->getType(), 2, absl::StrCat(name_, ".out.", slot));
    merged->addIncoming(before, loop.before);
    merged->addIncoming(slots_[slot], latch);
    slots_[slot] = merged;
  }
}

}  // namespace svod
