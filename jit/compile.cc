#include "jit/compile.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <chrono>
#include <deque>
#include <fstream>
#include <memory>
#include <mutex>
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

// All that one compilation makes in LLVM; members go in reverse order.
struct Compilation {
  std::string errors;
  llvm::LLVMContext context;
  LoweredKernel kernel;
  llvm::SmallVector<char, 0> output;
  llvm::raw_svector_ostream stream{output};
  llvm::legacy::PassManager passes;
  int num_objects = 0;  // made so far

  Compilation() { context.setDiagnosticHandler(std::make_unique<RecordErrors>(&errors)); }
};

// What compilations for one target leave for the next: making a machine costs a third of one, and a
// context with its passes a tenth.
struct CodeGenerator {
  Target target;
  llvm::CodeGenOptLevel level;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<Compilation> compilation;  // null until an object is made
};

// The code generators that nobody uses, the last used first. Threads: any.
class CodeGenerators {
 public:
  // For the caller alone, until it gives it back.
  absl::StatusOr<std::unique_ptr<CodeGenerator>> Take(const Target& target,
                                                      llvm::CodeGenOptLevel level) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (auto it = idle_.begin(); it != idle_.end(); ++it) {
        if ((*it)->level != level || !((*it)->target == target)) continue;
        std::unique_ptr<CodeGenerator> found = std::move(*it);
        idle_.erase(it);
        return found;
      }
    }
    SVOD_ASSIGN_OR_RETURN(auto machine, CreateTargetMachine(target, level));
    return std::make_unique<CodeGenerator>(
        CodeGenerator{target, level, std::move(machine), nullptr});
  }
  void Give(std::unique_ptr<CodeGenerator> generator) {
    std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_front(std::move(generator));
    if (idle_.size() > kMostIdle) idle_.pop_back();
  }

 private:
  static constexpr size_t kMostIdle = 128;  // two for each of many threads
  std::mutex mutex_;
  std::deque<std::unique_ptr<CodeGenerator>> idle_;
};

CodeGenerators& Generators() {
  // Leaked: threads may compile while static destructors run.
  static auto& generators = *new CodeGenerators();
  return generators;
}

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

// Runs `body` on the generator's compilation, which is made if there is none. LLVM's fatal errors
// become a Status, if the handler is installed; what LLVM was working with is then left where it
// is, since its state is unknown, and `generator` becomes null.
template <typename Body>
absl::Status RunCompilation(const UOp* sink, const Dump& dump,
                            std::unique_ptr<CodeGenerator>& generator, const Body& body) {
  std::unique_ptr<Compilation>& compilation = generator->compilation;
  if (compilation == nullptr) compilation = std::make_unique<Compilation>();
  in_compilation = true;
  try {
    absl::Status status = body(*generator, *compilation);
    in_compilation = false;
    if (!compilation->errors.empty()) return CompilerFailure(sink, dump, compilation->errors);
    return status;
  } catch (const FatalLlvmError& error) {
    in_compilation = false;
    (void)generator.release();
    return CompilerFailure(sink, dump, error.reason);
  }
}

absl::Status AddPasses(Compilation& compilation, llvm::TargetMachine& machine,
                       llvm::CodeGenFileType type) {
  if (machine.addPassesToEmitFile(compilation.passes, compilation.stream, nullptr, type)) {
    return absl::InternalError("compile: this target has no code emitter");
  }
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
  auto generator = std::make_unique<CodeGenerator>(CodeGenerator{target, level, nullptr, nullptr});
  if (assembly) {
    SVOD_ASSIGN_OR_RETURN(generator, Generators().Take(target, level));
  }
  std::unique_ptr<Compilation> kept = std::move(generator->compilation);
  absl::Status status = RunCompilation(
      kernel.root, Dump(options, kernel.root), generator,
      [&](CodeGenerator& taken, Compilation& compilation) -> absl::Status {
        SVOD_ASSIGN_OR_RETURN(compilation.kernel,
                              LowerToLlvm(kernel.root, target, compilation.context, lower));
        if (!assembly) {
          text = PrintModule(*compilation.kernel.module);
          return absl::OkStatus();
        }
        SVOD_RETURN_IF_ERROR(
            AddPasses(compilation, *taken.machine, llvm::CodeGenFileType::AssemblyFile));
        compilation.passes.run(*compilation.kernel.module);
        text = compilation.stream.str().str();
        return absl::OkStatus();
      });
  if (assembly && generator != nullptr) {
    generator->compilation = std::move(kept);
    Generators().Give(std::move(generator));
  }
  SVOD_RETURN_IF_ERROR(status);
  return text;
}

double MillisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

absl::Status EmitObject(const UOp* sink, const LowerOptions& lower, const Dump& dump,
                        const CodeGenerator& generator, Compilation& compilation,
                        ObjectCode& object) {
  auto start = std::chrono::steady_clock::now();
  compilation.context.setDiscardValueNames(!dump.is_on());
  SVOD_ASSIGN_OR_RETURN(compilation.kernel,
                        LowerToLlvm(sink, generator.target, compilation.context, lower));
  object.entry = compilation.kernel.symbol;
  object.scratch_bytes = compilation.kernel.scratch_bytes;
  object.lower_ms = MillisecondsSince(start);
  if (dump.is_on()) {
    SVOD_RETURN_IF_ERROR(dump.Write(".ll", PrintModule(*compilation.kernel.module)));
  }
  start = std::chrono::steady_clock::now();
  if (compilation.num_objects++ == 0) {
    SVOD_RETURN_IF_ERROR(
        AddPasses(compilation, *generator.machine, llvm::CodeGenFileType::ObjectFile));
  }
  compilation.output.clear();
  compilation.passes.run(*compilation.kernel.module);
  object.bytes = compilation.stream.str().str();
  compilation.kernel.module = nullptr;
  object.code_gen_ms = MillisecondsSince(start);
  return absl::OkStatus();
}

// A context keeps every constant that it has seen, and after an error nothing is known of it.
bool IsUsedUp(const Compilation& compilation, const absl::Status& status) {
  constexpr int kMaxObjects = 64;
  return !status.ok() || compilation.num_objects >= kMaxObjects;
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
  SVOD_ASSIGN_OR_RETURN(std::unique_ptr<CodeGenerator> generator, Generators().Take(target, level));
  absl::Status status =
      RunCompilation(sink, dump, generator,
                     [&](const CodeGenerator& taken, Compilation& compilation) -> absl::Status {
                       return EmitObject(sink, lower, dump, taken, compilation, object);
                     });
  if (generator != nullptr) {
    if (IsUsedUp(*generator->compilation, status)) generator->compilation = nullptr;
    Generators().Give(std::move(generator));
  }
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
