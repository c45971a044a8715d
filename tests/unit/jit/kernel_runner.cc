#include "kernel_runner.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>

#include "ir/status_macros.h"
#include "jit/target_machine.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

namespace svod {
namespace {

struct Emitted {
  std::string bytes;
  std::string symbol;
  int64_t scratch_bytes;
};

absl::StatusOr<Emitted> Emit(const UOp* sink, const Target& target, const LowerOptions& options,
                             llvm::CodeGenFileType type) {
  // One machine a target, as compilation keeps them: its subtarget costs 0.6 ms.
  static auto& machines = *new std::vector<std::pair<Target, std::unique_ptr<llvm::TargetMachine>>>;
  llvm::TargetMachine* machine = nullptr;
  for (auto& [known, made] : machines) {
    if (known == target) machine = made.get();
  }
  if (machine == nullptr) {
    SVOD_ASSIGN_OR_RETURN(auto made, CreateTargetMachine(target));
    machines.emplace_back(target, std::move(made));
    machine = machines.back().second.get();
  }
  llvm::LLVMContext context;
  SVOD_ASSIGN_OR_RETURN(LoweredKernel lowered, LowerToLlvm(sink, target, context, options));
  if (!(lowered.module->getDataLayout() == machine->createDataLayout())) {
    return absl::InternalError("the module's data layout is not the target machine's");
  }
  llvm::SmallString<0> buffer;
  llvm::raw_svector_ostream stream(buffer);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, type, /*DisableVerify=*/true)) {
    return absl::InternalError("no emission to files");
  }
  passes.run(*lowered.module);
  return Emitted{buffer.str().str(), lowered.symbol, lowered.scratch_bytes};
}

}  // namespace

void RunnableKernel::Run(absl::Span<void* const> buffers, absl::Span<const int64_t> variables,
                         int64_t core_id) const {
  size_t size = static_cast<size_t>(scratch_bytes + 63) / 64 * 64;
  void* scratch = size > 0 ? std::aligned_alloc(64, size) : nullptr;
  if (scratch != nullptr) std::memset(scratch, 0xa5, size);
  code.function(buffers.data(), variables.data(), core_id, scratch);
  std::free(scratch);
}

absl::StatusOr<std::string> LowerToText(const UOp* sink, const Target& target,
                                        const LowerOptions& options) {
  llvm::LLVMContext context;
  SVOD_ASSIGN_OR_RETURN(LoweredKernel lowered, LowerToLlvm(sink, target, context, options));
  std::string text;
  llvm::raw_string_ostream stream(text);
  lowered.module->print(stream, nullptr);
  return text;
}

absl::StatusOr<std::string> CompileToAssembly(const UOp* sink, const Target& target,
                                              const LowerOptions& options) {
  SVOD_ASSIGN_OR_RETURN(Emitted emitted,
                        Emit(sink, target, options, llvm::CodeGenFileType::AssemblyFile));
  return emitted.bytes;
}

absl::StatusOr<std::string> CompileForTest(const UOp* sink, const Target& target,
                                           const LowerOptions& options) {
  SVOD_ASSIGN_OR_RETURN(Emitted emitted,
                        Emit(sink, target, options, llvm::CodeGenFileType::ObjectFile));
  return emitted.bytes;
}

absl::StatusOr<RunnableKernel> Load(const UOp* sink, const Target& target,
                                    const LowerOptions& options) {
  static auto& session = *new absl::StatusOr<std::shared_ptr<OrcSession>>(OrcSession::Create());
  if (!session.ok()) return session.status();
  SVOD_ASSIGN_OR_RETURN(Emitted emitted,
                        Emit(sink, target, options, llvm::CodeGenFileType::ObjectFile));
  SVOD_ASSIGN_OR_RETURN(LinkedCode code, (*session)->Link(emitted.bytes, emitted.symbol));
  return RunnableKernel{std::move(code), emitted.scratch_bytes};
}

std::vector<std::string> UndefinedSymbols(const std::string& object) {
  std::vector<std::string> names;
  auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object, "object"));
  if (!file) {
    llvm::consumeError(file.takeError());
    return {"<not an object file>"};
  }
  for (const llvm::object::SymbolRef& symbol : (*file)->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    bool undefined = !flags || (*flags & llvm::object::SymbolRef::SF_Undefined) != 0;
    if (undefined && name && !name->empty()) names.push_back(name->str());
    if (!flags) llvm::consumeError(flags.takeError());
    if (!name) llvm::consumeError(name.takeError());
  }
  return names;
}

const std::vector<std::pair<std::string, Target>>& RunnableTargets() {
  static const auto& targets = [] {
    auto& list = *new std::vector<std::pair<std::string, Target>>;
    if (auto host = HostTarget(); host.ok()) list.push_back({"host", *host});
    const std::vector<std::array<const char*, 3>> kOlder = {
        {"skylake_avx512", "skylake-avx512", ""},
        {"haswell", "haswell", ""},
        {"avx2_without_fma", "haswell", "-fma,-f16c"},
        {"nehalem", "nehalem", ""},
        {"x86_64", "x86-64", ""}};
    for (const auto& [name, cpu, features] : kOlder) {
      auto target = MakeTarget("", cpu, features);
      if (target.ok() && target->is_host) list.push_back({name, *target});
    }
    return std::ref(list);
  }();
  return targets;
}

}  // namespace svod
