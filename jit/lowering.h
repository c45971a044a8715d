// KernelLowering: the state of one LowerToLlvm call, shared by its emitters.
// Included by lower_to_llvm.cc and the emitters of buffers, memory and control only.
#ifndef SVOD_JIT_LOWERING_H_
#define SVOD_JIT_LOWERING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "ir/linearize.h"
#include "ir/ranges.h"
#include "ir/uop.h"
#include "jit/emit_alu.h"
#include "jit/lower_to_llvm.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace svod {

class KernelLowering {
 public:
  KernelLowering(const UOp* sink, const Target& target, llvm::LLVMContext& context,
                 const LowerOptions& options);

  absl::StatusOr<LoweredKernel> Run();

 private:
  using Value = llvm::Value;

  // A PARAM, REG or LOCAL that the kernel accesses.
  struct Buffer {
    std::vector<const UOp*> accesses;  // LOADs and STOREs, in order
    Value* base = nullptr;             // first byte; null when promoted
    llvm::MDNode* scope = nullptr;     // PARAMs under noalias: accesses of this buffer
    llvm::MDNode* others = nullptr;    // ... and the scopes that they do not alias
    // REGs held in SSA values: slot k of slots_ holds lanes_per_slot elements from
    // (k - first_slot) * lanes_per_slot on. 0 lanes: not promoted.
    int lanes_per_slot = 0;
    int first_slot = 0;
  };
  struct Loop {
    const UOp* range;
    Value* end;
    llvm::BasicBlock* before;  // branches to body or exit
    llvm::BasicBlock* body;
    llvm::BasicBlock* exit;
    llvm::PHINode* counter;
    bool guarded;  // may run no times
    std::vector<std::pair<int, llvm::PHINode*>> slots;
  };
  // Where an access happens. Exactly one of `address` and `addresses` is set.
  struct Place {
    Value* address = nullptr;    // of the first of neighbouring elements
    Value* addresses = nullptr;  // of each lane's element
    Value* gate = nullptr;       // null: always
    llvm::Align alignment;
    const Buffer* buffer = nullptr;
  };

  // lower_to_llvm.cc
  absl::Status CheckOps();
  void CreateFunction();
  void CreateDebugScope();
  void EmitVariables();
  void EmitNode(const UOp* node);
  Value* EmitVector(const UOp* node);
  Value* EmitBlend(const UOp* node);
  bool IsNarrowComparison(const UOp* node);
  Value* EmitNarrow(const UOp* node);
  void EraseDeadInstructions();
  void EnterNode(const UOp* node);
  const std::string& NameOf(const UOp* node);
  Value* ValueOf(const UOp* node);
  void SetValue(const UOp* node, Value* value);

  // emit_pick.cc
  Value* EmitPick(Value* table, Value* numbers);
  Value* PickWide(Value* table, Value* numbers);
  Value* PickHalves(Value* table, Value* numbers);
  Value* PickOneByOne(Value* table, Value* numbers);

  // emit_buffers.cc
  void FindAccesses();
  void PromoteRegs();
  int SlotOf(const UOp* access, const Buffer& buffer) const;
  absl::Status PlaceScratch();
  void EmitZeros(Value* base, int64_t size_bytes);
  void EmitParams();

  // emit_memory.cc
  Value* EmitLoad(const UOp* node);
  void EmitStore(const UOp* node);
  Value* EmitPromotedLoad(const UOp* node, const Buffer& buffer);
  void EmitPromotedStore(const UOp* node, const Buffer& buffer);
  Place PlaceOf(const UOp* access, int lanes);
  Value* LoadAt(const Place& place, DType dtype, Value* alt);
  void StoreAt(const Place& place, DType dtype, Value* value, bool is_stream);
  void StreamAt(const Place& place, Value* stored);
  void EndStreams();
  Value* LoadLanes(const Place& place, llvm::FixedVectorType* type, Value* mask, Value* alt);
  void StoreLanes(const Place& place, Value* value, Value* mask);
  Value* FromMemory(DType dtype, Value* value);
  Value* ToMemory(DType dtype, Value* value);
  int ChunkLanes(llvm::FixedVectorType* type) const;
  Value* Slice(Value* vector, int first, int count);
  Value* Concatenate(std::vector<Value*> parts);
  template <typename Instruction>
  Instruction* Annotate(const Place& place, Instruction* instruction);

  // emit_control.cc
  void FindLoopSlots();
  void BeginLoop(const UOp* range);
  void EndLoop(const UOp* range);
  llvm::BasicBlock* NewBlock(const char* suffix);

  const UOp* sink_;
  const Target& target_;
  llvm::LLVMContext& context_;
  const LowerOptions& options_;
  LinearKernel linear_;
  RangeAnalysis ranges_;
  std::unique_ptr<llvm::Module> module_;
  llvm::Function* function_ = nullptr;
  llvm::IRBuilder<llvm::ConstantFolder, llvm::IRBuilderCallbackInserter> b_;
  AluEmitter alu_;
  absl::Status status_;
  int64_t scratch_bytes_ = 0;
  int64_t alloca_bytes_ = 0;
  bool has_streams_ = false;  // some store went past the caches

  absl::flat_hash_map<const UOp*, Value*> values_;
  absl::flat_hash_map<const UOp*, Buffer> buffers_;
  std::vector<const UOp*> buffer_order_;  // keys of buffers_, by first access
  std::vector<Value*> slots_;
  absl::flat_hash_map<const UOp*, std::vector<int>> loop_slots_;  // stored inside, ascending
  std::vector<Loop> loops_;                                       // open, outermost first

  std::string name_;  // of the node whose instructions are being emitted
  absl::flat_hash_map<const UOp*, std::string> names_;
  int num_unnamed_ = 0;
  llvm::DISubprogram* subprogram_ = nullptr;
};

}  // namespace svod

#endif  // SVOD_JIT_LOWERING_H_
