#include "tests/unit/jit/test_objects.h"

#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "jit/target_machine.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

namespace svod {

std::string ObjectOfIr(absl::string_view ir) {
  absl::StatusOr<Target> host = HostTarget();
  if (!host.ok()) {
    ADD_FAILURE() << host.status();
    return "";
  }
  auto machine = CreateTargetMachine(*host, llvm::CodeGenOptLevel::None);
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> module =
      llvm::parseAssemblyString(llvm::StringRef(ir.data(), ir.size()), diagnostic, context);
  if (!machine.ok() || module == nullptr) {
    ADD_FAILURE() << machine.status() << diagnostic.getMessage().str();
    return "";
  }
  module->setTargetTriple((*machine)->getTargetTriple());
  module->setDataLayout((*machine)->createDataLayout());
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  EXPECT_FALSE(
      (*machine)->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile));
  passes.run(*module);
  return stream.str().str();
}

std::string ObjectThatReturns(absl::string_view entry, int result, int padding_bytes) {
  std::string constants;
  if (padding_bytes > 0) {
    constants =
        absl::StrCat("@table = private constant [", padding_bytes / 4, " x i32] zeroinitializer\n");
    // An address into the table keeps it in the object.
    return ObjectOfIr(absl::StrCat(
        constants, "define i32 @", entry, "(ptr %b, ptr %v, i64 %c, ptr %s) nounwind {\n",
        "  %p = getelementptr i32, ptr @table, i64 %c\n",
        "  %x = load i32, ptr %p\n  %y = add i32 %x, ", result, "\n  ret i32 %y\n}\n"));
  }
  return ObjectOfIr(absl::StrCat("define i32 @", entry,
                                 "(ptr %b, ptr %v, i64 %c, ptr %s) nounwind {\n  ret i32 ", result,
                                 "\n}\n"));
}

}  // namespace svod
