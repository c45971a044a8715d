#include "jit/compile.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/debug_options.h"
#include "ir/status_macros.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "jit/lower_to_llvm.h"
#include "jit/target_machine.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

namespace svod {
namespace {

// What the fatal error handler throws through LLVM's frames, none of which has anything to unwind.
struct FatalLlvmError {
  std::string reason;
};

thread_local bool in_compilation = false;

void ThrowFatalError(void*, const char* reason, bool) {
  if (in_compilation) throw FatalLlvmError{reason};
  // Not ours: LLVM ends the process as it does without a handler, but no longer says why itself.
  llvm::errs() << "LLVM ERROR: " << reason << "\n";
}

// Errors of the code generator. LLVM's own handler would print them and end the process.
struct RecordErrors : public llvm::DiagnosticHandler {
  explicit RecordErrors(std::string* errors) : errors(errors) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() != llvm::DS_Error) return true;
    llvm::raw_string_ostream stream(*errors);
    if (!errors->empty()) stream << "; ";
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    return true;
  }
  std::string* errors;
};

// Target machines of one thread, the last used first. Making one costs a third of a compilation.
class ThreadMachines {
 public:
  absl::StatusOr<llvm::TargetMachine*> Get(const Target& target, llvm::CodeGenOptLevel level) {
    for (size_t i = 0; i < machines_.size(); ++i) {
      const Entry& entry = machines_[i];
      if (entry.level == level && entry.target == target) {
        std::rotate(machines_.begin(), machines_.begin() + i, machines_.begin() + i + 1);
        return machines_.front().machine.get();
      }
    }
    SVOD_ASSIGN_OR_RETURN(auto machine, CreateTargetMachine(target, level));
    if (machines_.size() == kMaxMachines) machines_.pop_back();
    machines_.insert(machines_.begin(), {target, level, std::move(machine)});
    return machines_.front().machine.get();
  }
  // After a fatal error no machine may be used, or even destroyed.
  void Abandon() {
    for (Entry& entry : machines_) (void)entry.machine.release();
    machines_.clear();
  }

 private:
  static constexpr size_t kMaxMachines = 4;
  struct Entry {
    Target target;
    llvm::CodeGenOptLevel level;
    std::unique_ptr<llvm::TargetMachine> machine;
  };
  std::vector<Entry> machines_;
};

ThreadMachines& MachinesOfThread() {
  thread_local ThreadMachines machines;
  return machines;
}

// All that one compilation makes in LLVM; members go in reverse order.
struct Compilation {
  std::string errors;
  llvm::LLVMContext context;
  LoweredKernel kernel;
  llvm::SmallVector<char, 0> output;
  llvm::raw_svector_ostream stream{output};
  llvm::legacy::PassManager passes;

  Compilation() { context.setDiagnosticHandler(std::make_unique<RecordErrors>(&errors)); }
};

// Writes the stages of one kernel into the dump directory, if there is one.
class Dump {
 public:
  Dump(const CompileOptions& options, const UOp* sink) : directory_(options.dump_directory) {
    const absl::StatusOr<DebugOptions>& environment = EnvironmentDebugOptions();
    if (directory_.empty() && environment.ok()) directory_ = environment->dump_directory;
    if (is_on()) stem_ = absl::StrCat(directory_, "/kernel-", ToString(sink->hash()));
  }
  bool is_on() const { return !directory_.empty(); }
  std::string PathOf(absl::string_view extension) const { return absl::StrCat(stem_, extension); }

  absl::Status Write(absl::string_view extension, absl::string_view bytes) const {
    mkdir(directory_.c_str(), 0777);  // may exist
    std::string path = PathOf(extension);
    std::ofstream file(path, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) {
      return absl::FailedPreconditionError(
          absl::StrCat("dump: cannot write ", path, ": ", strerror(errno)));
    }
    return absl::OkStatus();
  }

 private:
  std::string directory_;
  std::string stem_;
};

absl::string_view NameOf(const UOp* sink) { return sink->arg<FunctionArgument>().name; }

absl::Status CompilerFailure(const UOp* sink, const Dump& dump, absl::string_view reason) {
  std::string message = absl::StrCat("compiling kernel ", NameOf(sink), ": ", reason);
  absl::StatusOr<std::string> text = PrintCanonical(sink);
  if (!text.ok()) return absl::InternalError(message);
  if (dump.is_on() && dump.Write(".uop", *text).ok()) {
    absl::StrAppend(&message, "; its text is in ", dump.PathOf(".uop"));
  } else {
    absl::StrAppend(&message, "; its text:\n", *text);
  }
  return absl::InternalError(message);
}

std::string PrintModule(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

absl::StatusOr<llvm::CodeGenOptLevel> LevelOf(const CompileOptions& options) {
  std::optional<llvm::CodeGenOptLevel> level = llvm::CodeGenOpt::getLevel(options.code_gen_level);
  if (level.has_value()) return *level;
  return absl::InvalidArgumentError(absl::StrCat("compile: code generation level, got ",
                                                 options.code_gen_level, ", expected 0 to 3"));
}

absl::StatusOr<Target> TargetOf(const CompileOptions& options) {
  if (options.target.triple.empty()) return HostTarget();
  return options.target;
}

// Runs `body` on a fresh compilation. LLVM's fatal errors become a Status, if the handler is
// installed; what LLVM was working on is then left where it is, since its state is unknown.
template <typename Body>
absl::Status RunCompilation(const UOp* sink, const Dump& dump, const Body& body) {
  auto compilation = std::make_unique<Compilation>();
  in_compilation = true;
  try {
    absl::Status status = body(*compilation);
    in_compilation = false;
    if (!compilation->errors.empty()) return CompilerFailure(sink, dump, compilation->errors);
    return status;
  } catch (const FatalLlvmError& error) {
    in_compilation = false;
    (void)compilation.release();
    MachinesOfThread().Abandon();
    return CompilerFailure(sink, dump, error.reason);
  }
}

absl::Status EmitFile(Compilation& compilation, llvm::TargetMachine& machine,
                      llvm::CodeGenFileType type) {
  if (machine.addPassesToEmitFile(compilation.passes, compilation.stream, nullptr, type)) {
    return absl::InternalError("compile: this target has no code emitter");
  }
  compilation.passes.run(*compilation.kernel.module);
  return absl::OkStatus();
}

absl::StatusOr<std::string> PrintStage(const Function& kernel, const CompileOptions& options,
                                       bool assembly) {
  SVOD_ASSIGN_OR_RETURN(Target target, TargetOf(options));
  SVOD_ASSIGN_OR_RETURN(llvm::CodeGenOptLevel level, LevelOf(options));
  if (options.verify) SVOD_RETURN_IF_ERROR(Verify(kernel, {.lowerable = true}));
  LowerOptions lower;
  lower.symbol = EntrySymbol(kernel.root);
  lower.noalias = options.noalias;
  lower.notes = &kernel.notes;
  std::string text;
  SVOD_RETURN_IF_ERROR(RunCompilation(
      kernel.root, Dump(options, kernel.root), [&](Compilation& compilation) -> absl::Status {
        SVOD_ASSIGN_OR_RETURN(compilation.kernel,
                              LowerToLlvm(kernel.root, target, compilation.context, lower));
        if (!assembly) {
          text = PrintModule(*compilation.kernel.module);
          return absl::OkStatus();
        }
        SVOD_ASSIGN_OR_RETURN(llvm::TargetMachine * machine, MachinesOfThread().Get(target, level));
        SVOD_RETURN_IF_ERROR(EmitFile(compilation, *machine, llvm::CodeGenFileType::AssemblyFile));
        text = compilation.stream.str().str();
        return absl::OkStatus();
      }));
  return text;
}

double MillisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace

absl::StatusOr<ObjectCode> CompileToObject(const UOp* sink, const CompileOptions& options) {
  SVOD_ASSIGN_OR_RETURN(Target target, TargetOf(options));
  SVOD_ASSIGN_OR_RETURN(llvm::CodeGenOptLevel level, LevelOf(options));
  Function kernel;
  kernel.root = sink;
  if (options.verify) SVOD_RETURN_IF_ERROR(Verify(kernel, {.lowerable = true}));

  Dump dump(options, sink);
  LowerOptions lower;
  lower.symbol = EntrySymbol(sink);
  lower.noalias = options.noalias;
  Module printed;  // holds the notes that line tables refer to
  if (dump.is_on()) {
    SVOD_ASSIGN_OR_RETURN(std::string text, PrintCanonical(sink));
    SVOD_RETURN_IF_ERROR(dump.Write(".uop", text));
    if (options.line_tables) {
      lower.debug_path = dump.PathOf(".uop");
      SVOD_ASSIGN_OR_RETURN(printed,
                            ParseModule(text, lower.debug_path, std::make_shared<Context>()));
      lower.notes = &printed.functions[0].notes;
      sink = printed.functions[0].root;
    }
  } else if (options.line_tables) {
    return absl::InvalidArgumentError(
        "compile: line tables without a dump directory, expected one to hold the text");
  }

  ObjectCode object;
  absl::Status status = RunCompilation(sink, dump, [&](Compilation& compilation) -> absl::Status {
    auto start = std::chrono::steady_clock::now();
    SVOD_ASSIGN_OR_RETURN(compilation.kernel,
                          LowerToLlvm(sink, target, compilation.context, lower));
    object.entry = compilation.kernel.symbol;
    object.scratch_bytes = compilation.kernel.scratch_bytes;
    object.lower_ms = MillisecondsSince(start);
    if (dump.is_on()) {
      SVOD_RETURN_IF_ERROR(dump.Write(".ll", PrintModule(*compilation.kernel.module)));
    }
    start = std::chrono::steady_clock::now();
    SVOD_ASSIGN_OR_RETURN(llvm::TargetMachine * machine, MachinesOfThread().Get(target, level));
    SVOD_RETURN_IF_ERROR(EmitFile(compilation, *machine, llvm::CodeGenFileType::ObjectFile));
    object.bytes = compilation.stream.str().str();
    object.code_gen_ms = MillisecondsSince(start);
    return absl::OkStatus();
  });
  SVOD_RETURN_IF_ERROR(status);
  if (dump.is_on()) {
    // A second run of the code generator; its first is timed above without this.
    SVOD_ASSIGN_OR_RETURN(std::string assembly, PrintAssembly(kernel, options));
    SVOD_RETURN_IF_ERROR(dump.Write(".s", assembly));
    SVOD_RETURN_IF_ERROR(dump.Write(".o", object.bytes));
  }
  return object;
}

absl::StatusOr<std::string> PrintLlvm(const Function& kernel, const CompileOptions& options) {
  return PrintStage(kernel, options, /*assembly=*/false);
}

absl::StatusOr<std::string> PrintAssembly(const Function& kernel, const CompileOptions& options) {
  return PrintStage(kernel, options, /*assembly=*/true);
}

std::string EntrySymbol(const UOp* sink) {
  constexpr size_t kMaxNameLength = 80;
  std::string symbol = "svod_";
  for (char c : NameOf(sink).substr(0, kMaxNameLength)) {
    bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    symbol.push_back(is_plain ? c : '_');
  }
  absl::StrAppend(&symbol, "_", ToString(sink->hash()).substr(0, 16));
  return symbol;
}

const char* LlvmVersion() { return LLVM_VERSION_STRING; }

void InstallFatalErrorHandler() {
  llvm::remove_fatal_error_handler();
  llvm::install_fatal_error_handler(ThrowFatalError);
}

}  // namespace svod
