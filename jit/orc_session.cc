#include "jit/orc_session.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/status_macros.h"
#include "jit/code_memory.h"
#include "jit/llvm_status.h"
#include "llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h"
#include "llvm/ExecutionEngine/Orc/Debugging/ELFDebugObjectPlugin.h"
#include "llvm/ExecutionEngine/Orc/Debugging/PerfSupportPlugin.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderPerf.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

namespace svod {
namespace {

namespace orc = llvm::orc;

llvm::StringRef ToLlvm(absl::string_view text) { return {text.data(), text.size()}; }

// ORC gives the reason of a failed lookup to the session's reporter alone. Linking runs in place,
// on the thread that looks up, so the reason waits here for it.
thread_local llvm::Error* reported = nullptr;

void Report(llvm::Error error) {
  if (reported == nullptr) {
    llvm::consumeError(std::move(error));
    return;
  }
  *reported = llvm::joinErrors(std::move(*reported), std::move(error));
}

class ScopedReports {
 public:
  ScopedReports() : outer_(std::exchange(reported, &error_)) {}
  ~ScopedReports() {
    reported = outer_;
    llvm::consumeError(std::move(error_));
  }
  llvm::Error Take() { return std::exchange(error_, llvm::Error::success()); }

 private:
  llvm::Error error_ = llvm::Error::success();
  llvm::Error* outer_;
};

// JITLink reads what it is given with little doubt; this looks at what it takes for granted.
absl::Status CheckObject(llvm::MemoryBufferRef buffer, absl::string_view entry) {
  auto object = llvm::object::ObjectFile::createELFObjectFile(buffer);
  if (!object) return ToStatus(object.takeError(), "orc: reading the object");
  if (!(*object)->isRelocatableObject()) {
    return absl::InternalError("orc: got a linked file, expected a relocatable object");
  }
  llvm::Triple host(llvm::sys::getProcessTriple());
  if ((*object)->getArch() != host.getArch()) {
    return absl::InternalError(absl::StrCat(
        "orc: got an object for ", llvm::Triple::getArchTypeName((*object)->getArch()).str(),
        ", expected ", llvm::Triple::getArchTypeName(host.getArch()).str()));
  }
  bool has_entry = false;
  std::vector<std::string> unknown;
  for (const llvm::object::SymbolRef& symbol : (*object)->symbols()) {
    auto flags = symbol.getFlags();
    if (!flags) return ToStatus(flags.takeError(), "orc: reading symbols");
    auto name = symbol.getName();
    if (!name) return ToStatus(name.takeError(), "orc: reading symbols");
    if (name->empty()) continue;
    absl::string_view text(name->data(), name->size());
    if ((*flags & llvm::object::SymbolRef::SF_Undefined) != 0) {
      unknown.push_back(name->str());
    } else if (text == entry) {
      has_entry = true;
    }
  }
  if (!unknown.empty()) {
    return absl::InternalError(absl::StrCat("orc: code refers to ", absl::StrJoin(unknown, ", "),
                                            ", expected it to call nothing"));
  }
  if (!has_entry) {
    return absl::InternalError(absl::StrCat("orc: the object has no function ", entry));
  }
  return absl::OkStatus();
}

int64_t LoadedBytes(llvm::MemoryBufferRef buffer) {
  int64_t bytes = 0;
  auto object = llvm::object::ObjectFile::createELFObjectFile(buffer);
  if (!object) {
    llvm::consumeError(object.takeError());
    return 0;
  }
  for (const llvm::object::SectionRef& section : (*object)->sections()) {
    if (section.isText() || section.isData()) bytes += static_cast<int64_t>(section.getSize());
  }
  return bytes;
}

}  // namespace

struct OrcSession::State {
  // A JITDylib and the entries in it. Entries that are live twice, such as those of two caches,
  // go to different shelves; nearly always there is only the first.
  struct Shelf {
    orc::JITDylib* dylib;
    absl::flat_hash_set<std::string> entries;
  };

  std::shared_ptr<CodeMemory> memory;  // null: LLVM's manager
  std::unique_ptr<orc::LLJIT> jit;     // goes before the memory
  mutable std::mutex mutex;
  std::deque<Shelf> shelves;
  int64_t num_released = 0;  // since dead names were last cleared

  Shelf* Reserve(const std::string& entry) {
    std::lock_guard<std::mutex> lock(mutex);
    for (Shelf& shelf : shelves) {
      if (shelf.entries.insert(entry).second) return &shelf;
    }
    orc::JITDylib& dylib =
        jit->getExecutionSession().createBareJITDylib(absl::StrCat("kernels", shelves.size()));
    shelves.push_back({&dylib, {entry}});
    return &shelves.back();
  }

  void Release(Shelf* shelf, const std::string& entry) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      shelf->entries.erase(entry);
      // ORC keeps the names of removed symbols until told. Telling it walks over all names, so it
      // waits until as many may be dead as are alive.
      constexpr int64_t kFewest = 512;
      int64_t alive = 0;
      for (const Shelf& each : shelves) alive += static_cast<int64_t>(each.entries.size());
      if (++num_released < std::max(kFewest, alive)) return;
      num_released = 0;
    }
    jit->getExecutionSession().getSymbolStringPool()->clearDeadEntries();
  }
};

namespace {

// Removes one kernel from its session when the last user lets go.
template <typename State, typename Shelf>
struct LinkOwner {
  std::shared_ptr<State> state;
  Shelf* shelf;
  std::string entry;
  orc::ResourceTrackerSP tracker;

  ~LinkOwner() {
    llvm::consumeError(tracker->remove());
    tracker = nullptr;
    state->Release(shelf, entry);
  }
};

llvm::Error AddPlugins(const SessionOptions& options, orc::ExecutionSession& session,
                       orc::ObjectLinkingLayer& layer) {
  if (options.gdb) {
    llvm::Error error = llvm::Error::success();
    // Kernels without line tables still get their names.
    auto plugin = std::make_shared<orc::ELFDebugObjectPlugin>(
        session, /*RequireDebugSections=*/false, /*AutoRegisterCode=*/true, error);
    if (error) return error;
    layer.addPlugin(std::move(plugin));
  }
  if (options.perf) {
    layer.addPlugin(std::make_shared<orc::PerfSupportPlugin>(
        session.getExecutorProcessControl(),
        orc::ExecutorAddr::fromPtr(&llvm_orc_registerJITLoaderPerfStart),
        orc::ExecutorAddr::fromPtr(&llvm_orc_registerJITLoaderPerfEnd),
        orc::ExecutorAddr::fromPtr(&llvm_orc_registerJITLoaderPerfImpl),
        /*EmitDebugInfo=*/true, /*EmitUnwindInfo=*/false));
  }
  return llvm::Error::success();
}

}  // namespace

absl::StatusOr<std::shared_ptr<OrcSession>> OrcSession::Create(const SessionOptions& options) {
  auto state = std::make_shared<State>();
  // gdb writes breakpoints into code, which it cannot where the code is mapped twice.
  if (options.packed_memory && !options.gdb) {
    CodeMemory::Options memory_options;
    memory_options.limit_bytes = static_cast<size_t>(options.code_memory_limit_bytes);
    absl::StatusOr<std::shared_ptr<CodeMemory>> memory = CodeMemory::Create(memory_options);
    // Some systems forbid executable shared memory; LLVM's manager uses private pages.
    if (memory.ok()) state->memory = *std::move(memory);
  }
  llvm::Triple triple(llvm::sys::getProcessTriple());
  orc::LLJITBuilder builder;
  builder.setJITTargetMachineBuilder(orc::JITTargetMachineBuilder(triple))
      .setDataLayout(llvm::DataLayout(triple.computeDataLayout()))
      .setLinkProcessSymbolsByDefault(false)
      .setPlatformSetUp(orc::setUpInactivePlatform)
      // Modules never come here; without this LLJIT makes a target machine of its own.
      .setCompileFunctionCreator(
          [](orc::JITTargetMachineBuilder)
              -> llvm::Expected<std::unique_ptr<orc::IRCompileLayer::IRCompiler>> {
            return std::unique_ptr<orc::IRCompileLayer::IRCompiler>();
          })
      .setObjectLinkingLayerCreator(
          [&](orc::ExecutionSession& session) -> llvm::Expected<std::unique_ptr<orc::ObjectLayer>> {
            std::unique_ptr<orc::ObjectLinkingLayer> layer =
                state->memory == nullptr ? std::make_unique<orc::ObjectLinkingLayer>(session)
                                         : std::make_unique<orc::ObjectLinkingLayer>(
                                               session, MakeJitLinkMemoryManager(state->memory));
            session.setErrorReporter(Report);
            if (llvm::Error error = AddPlugins(options, session, *layer)) return error;
            return layer;
          });
  auto jit = builder.create();
  if (!jit) return ToStatus(jit.takeError(), "orc: creating a session");
  state->jit = std::move(*jit);
  return std::shared_ptr<OrcSession>(new OrcSession(std::move(state)));
}

OrcSession::~OrcSession() = default;

absl::StatusOr<LinkedCode> OrcSession::Link(absl::string_view object, absl::string_view entry) {
  std::string name(entry);
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(ToLlvm(object), name);
  SVOD_RETURN_IF_ERROR(CheckObject(buffer->getMemBufferRef(), entry));
  int64_t loaded_bytes = state_->memory == nullptr ? LoadedBytes(buffer->getMemBufferRef()) : 0;

  State::Shelf* shelf = state_->Reserve(name);
  auto owner = std::make_shared<LinkOwner<State, State::Shelf>>();
  owner->state = state_;
  owner->shelf = shelf;
  owner->entry = name;
  owner->tracker = shelf->dylib->createResourceTracker();

  std::string context = absl::StrCat("orc: linking ", name);
  ScopedReports reports;
  llvm::Error added = state_->jit->addObjectFile(owner->tracker, std::move(buffer));
  if (added) return ToStatus(std::move(added), context);
  auto address = state_->jit->lookupLinkerMangled(*shelf->dylib, ToLlvm(name));
  if (!address) {
    // What was reported is the cause; the lookup's own error only says that there is one.
    llvm::Error cause = reports.Take();
    if (!cause) return ToStatus(address.takeError(), context);
    llvm::consumeError(address.takeError());
    return ToStatus(std::move(cause), context);
  }
  LinkedCode code;
  code.function = address->toPtr<KernelFunction>();
  code.size_bytes =
      state_->memory == nullptr
          ? loaded_bytes
          : static_cast<int64_t>(state_->memory->PieceSizeAt(address->toPtr<const void*>()));
  code.owner = std::move(owner);
  return code;
}

OrcSession::Usage OrcSession::usage() const {
  Usage usage;
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    for (const State::Shelf& shelf : state_->shelves) {
      usage.num_kernels += static_cast<int64_t>(shelf.entries.size());
    }
  }
  usage.uses_packed_memory = state_->memory != nullptr;
  if (state_->memory != nullptr) {
    CodeMemory::Usage memory = state_->memory->usage();
    usage.live_code_bytes = memory.live_bytes;
    usage.mapped_code_bytes = memory.mapped_bytes;
  }
  return usage;
}

}  // namespace svod
