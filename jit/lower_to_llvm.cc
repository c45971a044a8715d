#include "jit/lower_to_llvm.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "ir/check.h"
#include "ir/linearize.h"
#include "ir/status_macros.h"
#include "jit/lowering.h"
#include "jit/target_machine.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/Local.h"

namespace svod {
namespace {

// A symbol that every assembler takes and that LLVM does not read as an intrinsic's name.
std::string SymbolFor(absl::string_view name) {
  std::string symbol;
  for (char c : name) {
    bool plain =
        absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '$';
    symbol += plain ? c : '_';
  }
  bool reserved = symbol.empty() || absl::ascii_isdigit(static_cast<unsigned char>(symbol[0])) ||
                  symbol.rfind("llvm.", 0) == 0 || symbol.rfind("svod.", 0) == 0;
  return reserved ? "_" + symbol : symbol;
}

bool IsLowerable(Op op) {
  switch (InfoOf(op).op_class) {
    case OpClass::kValue:
    case OpClass::kMemory:
    case OpClass::kVector:
    case OpClass::kConversion:
    case OpClass::kUnary:
    case OpClass::kBinary:
    case OpClass::kTernary:
    case OpClass::kDot:
      return !HasFlag(op, kTranscendental);
    case OpClass::kBuffer:
      return op != Op::kBuffer;
    case OpClass::kControl:
      return op != Op::kReduce;
    case OpClass::kTensor:
    case OpClass::kPlan:
      return false;
  }
  return false;
}

}  // namespace

KernelLowering::KernelLowering(const UOp* sink, const Target& target, llvm::LLVMContext& context,
                               const LowerOptions& options)
    : sink_(sink),
      target_(target),
      context_(context),
      options_(options),
      module_(std::make_unique<llvm::Module>("kernel", context)),
      b_(context, llvm::ConstantFolder(),
         llvm::IRBuilderCallbackInserter([this](llvm::Instruction* made) {
           if (!made->getType()->isVoidTy() && !made->hasName()) made->setName(name_ + ".t");
         })),
      alu_(b_, *module_, target) {}

absl::Status KernelLowering::CheckOps() {
  for (const Step& step : linear_.steps) {
    const Op op = step.node->op();
    if (!IsLowerable(op)) {
      const char* who = HasFlag(op, kTranscendental) ? "decompose-transcendentals"
                        : op == Op::kReduce          ? "lower-reduce"
                                                     : nullptr;
      return absl::UnimplementedError(
          absl::StrCat("lower: %", NameOf(step.node), " ", InfoOf(op).text,
                       who != nullptr ? absl::StrCat(": an op that no machine has, expected pass ",
                                                     who, " to have replaced it")
                                      : ": an op of a graph, expected a kernel's"));
    }
  }
  return absl::OkStatus();
}

const std::string& KernelLowering::NameOf(const UOp* node) {
  auto [it, fresh] = names_.try_emplace(node);
  if (!fresh) return it->second;
  if (options_.notes != nullptr) {
    auto note = options_.notes->find(node);
    if (note != options_.notes->end()) it->second = note->second.name;
  }
  if (it->second.empty() && node->op() == Op::kParam) {
    it->second = std::string(node->arg<ParamArgument>().name);
  }
  if (it->second.empty()) {
    absl::string_view stem = node->op() == Op::kRange ? "i" : InfoOf(node->op()).text;
    it->second = absl::StrCat(stem, ".", num_unnamed_++);
  }
  return it->second;
}

void KernelLowering::EnterNode(const UOp* node) {
  name_ = NameOf(node);
  if (subprogram_ == nullptr || options_.notes == nullptr) return;
  auto note = options_.notes->find(node);
  if (note == options_.notes->end() || note->second.line == 0) return;
  b_.SetCurrentDebugLocation(
      llvm::DILocation::get(context_, static_cast<unsigned>(note->second.line),
                            static_cast<unsigned>(note->second.column), subprogram_));
}

llvm::Value* KernelLowering::ValueOf(const UOp* node) {
  if (IsConst(node)) {
    return EmitConstant(node->dtype(), node->arg<ConstArgument>().bits, context_);
  }
  auto it = values_.find(node);
  if (it != values_.end()) return it->second;
  if (status_.ok()) {
    status_ =
        absl::InternalError(absl::StrCat("lower: %", NameOf(node), " ", InfoOf(node->op()).text,
                                         ": used before its step in the kernel's order"));
  }
  return llvm::PoisonValue::get(RegisterType(node->dtype(), context_));
}

void KernelLowering::SetValue(const UOp* node, Value* value) {
  values_[node] = value;
  // The last instruction of a node bears its name; "add.3.t" are those on the way.
  if (llvm::isa<llvm::Instruction>(value) && value->getName().starts_with(name_ + ".t")) {
    value->setName(name_);
  }
}

// i32 symbol(ptr buffers, ptr variables, i64 core_id, ptr scratch); see kernel_abi.h.
void KernelLowering::CreateFunction() {
  llvm::Type* pointer = b_.getPtrTy();
  auto* type =
      llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer, b_.getInt64Ty(), pointer}, false);
  absl::string_view name = sink_->arg<FunctionArgument>().name;
  std::string symbol = SymbolFor(options_.symbol.empty() ? name : options_.symbol);
  function_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol, *module_);
  constexpr const char* kArguments[] = {"buffers", "variables", "core_id", "scratch"};
  for (unsigned i = 0; i < 4; ++i) {
    function_->getArg(i)->setName(kArguments[i]);
    // No kernel stores to the arrays, nor does scratch lie in a buffer.
    if (i != 2) function_->addParamAttr(i, llvm::Attribute::NoAlias);
    if (i < 2) function_->addParamAttr(i, llvm::Attribute::ReadOnly);
  }
  // The same set on every kernel: each new set makes the target machine build a subtarget.
  function_->setDoesNotThrow();
  function_->addFnAttr("target-cpu", target_.cpu);
  function_->addFnAttr("target-features", target_.features);
  function_->addFnAttr("frame-pointer", "all");
  if (target_.vector_bytes == 64) function_->addFnAttr("prefer-vector-width", "512");
  b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function_));
}

void KernelLowering::CreateDebugScope() {
  llvm::DIBuilder debug(*module_);
  llvm::StringRef path = options_.debug_path;
  auto [folder, file_name] = path.rsplit('/');
  if (file_name.empty()) std::swap(folder, file_name);  // no slash
  llvm::DIFile* file = debug.createFile(file_name, folder.empty() ? "." : folder);
  debug.createCompileUnit(llvm::DISourceLanguageName(llvm::dwarf::DW_LANG_C99), file, "svod", true,
                          "", 0, "", llvm::DICompileUnit::LineTablesOnly);
  llvm::DISubroutineType* type = debug.createSubroutineType(debug.getOrCreateTypeArray({}));
  int line = 1;
  if (options_.notes != nullptr) {
    auto note = options_.notes->find(sink_);
    if (note != options_.notes->end() && note->second.line > 0) line = note->second.line;
  }
  subprogram_ =
      debug.createFunction(file, function_->getName(), function_->getName(), file,
                           static_cast<unsigned>(line), type, static_cast<unsigned>(line),
                           llvm::DINode::FlagPrototyped, llvm::DISubprogram::SPFlagDefinition);
  function_->setSubprogram(subprogram_);
  debug.finalize();
  module_->addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  b_.SetCurrentDebugLocation(
      llvm::DILocation::get(context_, static_cast<unsigned>(line), 0, subprogram_));
}

void KernelLowering::EmitVariables() {
  absl::flat_hash_map<absl::string_view, Value*> loaded;
  for (const UOp* variable : VariablesOf(sink_)) {
    EnterNode(variable);
    auto position = static_cast<uint64_t>(loaded.size());
    Value* slot = b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), function_->getArg(1), position);
    llvm::LoadInst* value = b_.CreateAlignedLoad(b_.getInt64Ty(), slot, llvm::Align(8));
    value->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    absl::string_view name = variable->arg<VariableArgument>().name;
    value->setName(llvm::StringRef(name.data(), name.size()));
    loaded[name] = value;
  }
  for (const Step& step : linear_.steps) {
    if (step.node->op() == Op::kDefineVar) {
      values_[step.node] = loaded[step.node->arg<VariableArgument>().name];
    }
  }
}

// A vector of constants, made of its bytes at once where they are those of LLVM's elements: made
// lane by lane, the tables of transcendental functions are most of what lowering takes. Null for
// other vectors.
static llvm::Constant* ConstantStack(const UOp* node, llvm::LLVMContext& context) {
  const DType dtype = node->dtype().with_lanes(1);
  llvm::Type* type = RegisterType(dtype, context);
  if (!llvm::ConstantDataSequential::isElementTypeCompatible(type)) return nullptr;
  const auto size = static_cast<size_t>(type->getPrimitiveSizeInBits() / 8);
  std::string bytes;
  for (const UOp* lane : node->sources()) {
    if (!IsConst(lane)) return nullptr;
    const uint64_t bits = lane->arg<ConstArgument>().bits;
    bytes.append(reinterpret_cast<const char*>(&bits), size);
  }
  return llvm::ConstantDataVector::getRaw(bytes, static_cast<uint64_t>(node->num_sources()), type);
}

llvm::Value* KernelLowering::EmitVector(const UOp* node) {
  const int lanes = node->dtype().lanes;
  if (node->op() == Op::kSplat) {
    const UOp* scalar = node->source(0);
    if (lanes > 1 && scalar->op() == Op::kXor && IsConst(scalar->source(1))) {
      // What is loaded goes to all lanes by itself; a number from a general register would not.
      const auto count = static_cast<unsigned>(lanes);
      return b_.CreateXor(b_.CreateVectorSplat(count, ValueOf(scalar->source(0))),
                          b_.CreateVectorSplat(count, ValueOf(scalar->source(1))));
    }
    Value* element = ValueOf(scalar);
    return lanes == 1 ? element
                      : b_.CreateVectorSplat(static_cast<unsigned>(lanes), element, name_);
  }
  if (node->op() == Op::kStack) {
    if (lanes == 1) return ValueOf(node->source(0));
    if (llvm::Constant* table = ConstantStack(node, context_)) return table;
    Value* vector = llvm::PoisonValue::get(RegisterType(node->dtype(), context_));
    for (int i = 0; i < lanes; ++i) {
      vector = b_.CreateInsertElement(vector, ValueOf(node->source(i)),
                                      b_.getInt64(static_cast<uint64_t>(i)));
    }
    return vector;
  }
  if (node->op() == Op::kPick) {
    return EmitPick(ValueOf(node->source(0)), ValueOf(node->source(1)));
  }
  SVOD_DCHECK(node->op() == Op::kLanes);
  Value* vector = ValueOf(node->source(0));
  absl::Span<const uint16_t> listed = node->arg<LanesArgument>().lanes;
  const bool from_scalar = !node->source(0)->dtype().is_vector();
  if (lanes == 1) {
    return from_scalar ? vector : b_.CreateExtractElement(vector, b_.getInt64(listed[0]));
  }
  if (from_scalar) return b_.CreateVectorSplat(static_cast<unsigned>(lanes), vector);
  return b_.CreateShuffleVector(vector, std::vector<int>(listed.begin(), listed.end()));
}

// A vector of positions modulo 2^32: sums of scalars and constants are taken apart, so that only
// half as many registers are added and compared.
llvm::Value* KernelLowering::EmitNarrow(const UOp* node) {
  llvm::Type* type = llvm::FixedVectorType::get(b_.getInt32Ty(), node->dtype().lanes);
  if (node->op() == Op::kAdd) {
    return b_.CreateAdd(EmitNarrow(node->source(0)), EmitNarrow(node->source(1)));
  }
  if (node->op() == Op::kSplat) {
    return b_.CreateVectorSplat(static_cast<unsigned>(node->dtype().lanes),
                                b_.CreateTrunc(ValueOf(node->source(0)), b_.getInt32Ty()));
  }
  return b_.CreateTrunc(ValueOf(node), type);
}

// Whether a comparison of vectors of positions gives the same on their low halves.
bool KernelLowering::IsNarrowComparison(const UOp* node) {
  bool compares = node->op() == Op::kCmpLt || node->op() == Op::kCmpLe;
  if (!compares || node->dtype().lanes < 2 ||
      node->source(0)->dtype() != DType(Scalar::kIndex).with_lanes(node->dtype().lanes)) {
    return false;
  }
  const IntRange half{std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
  for (const UOp* source : node->sources()) {
    IntRange range = ranges_.Of(source);
    if (!half.Contains(range.min) || !half.Contains(range.max)) return false;
  }
  return true;
}

// A choice of lanes by constants, of which each side may take lanes from a vector of its own, is
// one shuffle; null for other choices.
llvm::Value* KernelLowering::EmitBlend(const UOp* node) {
  if (node->op() != Op::kWhere || !node->dtype().is_vector()) return nullptr;
  const UOp* mask = node->source(0);
  if (mask->op() != Op::kStack ||
      !std::all_of(mask->sources().begin(), mask->sources().end(), IsConst)) {
    return nullptr;
  }
  const UOp* from[2];
  std::vector<int> lanes(static_cast<size_t>(node->dtype().lanes));
  for (int side = 0; side < 2; ++side) {
    const UOp* value = node->source(side + 1);
    const bool takes = value->op() == Op::kLanes && value->source(0)->dtype() == node->dtype();
    from[side] = takes ? value->source(0) : value;
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      if ((ConstInt(mask->source(static_cast<int>(lane))) != 0) != (side == 0)) continue;
      lanes[lane] = takes ? value->arg<LanesArgument>().lanes[lane] : static_cast<int>(lane);
      lanes[lane] += side * static_cast<int>(lanes.size());
    }
  }
  return b_.CreateShuffleVector(ValueOf(from[0]), ValueOf(from[1]), lanes);
}

void KernelLowering::EmitNode(const UOp* node) {
  EnterNode(node);
  const Op op = node->op();
  if (Value* blend = EmitBlend(node); blend != nullptr) {
    SetValue(node, blend);
  } else if (IsNarrowComparison(node)) {
    llvm::Value *x = EmitNarrow(node->source(0)), *y = EmitNarrow(node->source(1));
    SetValue(node, op == Op::kCmpLt ? b_.CreateICmpSLT(x, y) : b_.CreateICmpSLE(x, y));
  } else if (IsLanewise(op)) {
    absl::InlinedVector<Value*, 4> operands;
    for (const UOp* source : node->sources()) operands.push_back(ValueOf(source));
    SetValue(node, alu_.Elementwise(node, operands));
  } else if (op == Op::kLoad) {
    SetValue(node, EmitLoad(node));
  } else if (op == Op::kStore) {
    EmitStore(node);
  } else if (InfoOf(op).op_class == OpClass::kVector) {
    SetValue(node, EmitVector(node));
  } else if (op == Op::kCoreId) {
    values_[node] = function_->getArg(2);
  } else if (op == Op::kBind) {
    values_[node] = ValueOf(node->source(1));
  }
  // Nothing to do for constants and variables, buffers and their states, addresses (made where they
  // are used) and what closes loops.
}

// Positions whose constant part moved into an address may be left without a user.
void KernelLowering::EraseDeadInstructions() {
  for (llvm::BasicBlock& block : *function_) {
    for (auto it = block.rbegin(); it != block.rend();) {
      llvm::Instruction& instruction = *it++;
      if (llvm::isInstructionTriviallyDead(&instruction)) instruction.eraseFromParent();
    }
  }
}

absl::StatusOr<LoweredKernel> KernelLowering::Run() {
  if (sink_->op() != Op::kSink || !sink_->arg<FunctionArgument>().is_kernel) {
    return absl::InvalidArgumentError(absl::StrCat(
        "lower: got ", sink_->op() == Op::kSink ? "the sink of a graph" : InfoOf(sink_->op()).text,
        ", expected a kernel's"));
  }
  SVOD_ASSIGN_OR_RETURN(linear_, Linearize(sink_));
  SVOD_RETURN_IF_ERROR(CheckOps());
  llvm::Triple triple(target_.triple);
  module_->setTargetTriple(triple);
  module_->setDataLayout(triple.computeDataLayout());
  FindAccesses();
  PromoteRegs();
  FindLoopSlots();
  CreateFunction();
  if (!options_.debug_path.empty()) CreateDebugScope();
  EmitParams();
  EmitVariables();
  SVOD_RETURN_IF_ERROR(PlaceScratch());
  for (const Step& step : linear_.steps) {
    if (step.kind == Step::Kind::kLoopBegin) {
      BeginLoop(step.node);
    } else if (step.kind == Step::Kind::kLoopEnd) {
      EndLoop(step.node);
    } else {
      EmitNode(step.node);
    }
    if (!status_.ok()) return status_;
  }
  EndStreams();
  b_.CreateRet(b_.getInt32(0));
  EraseDeadInstructions();

  std::string message;
  llvm::raw_string_ostream stream(message);
  if (llvm::verifyModule(*module_, &stream)) {
    return absl::InternalError(absl::StrCat("lower: LLVM refuses kernel ",
                                            sink_->arg<FunctionArgument>().name, ": ", message));
  }
  LoweredKernel result;
  result.symbol = function_->getName().str();
  result.scratch_bytes = scratch_bytes_;
  result.module = std::move(module_);
  return result;
}

absl::StatusOr<LoweredKernel> LowerToLlvm(const UOp* sink, const Target& target,
                                          llvm::LLVMContext& llvm_context,
                                          const LowerOptions& options) {
  return KernelLowering(sink, target, llvm_context, options).Run();
}

}  // namespace svod
