// KernelKey: what a compiled kernel is found by.
// Included by the kernel cache, by callers that look a kernel up often, and tests.
#ifndef SVOD_JIT_KERNEL_KEY_H_
#define SVOD_JIT_KERNEL_KEY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/uop.h"
#include "jit/compile.h"

namespace svod {

// The whole content that decides a kernel's code, and its hash. The hash only finds; equality
// compares the content, so that no collision, made or met, gives somebody else's code. Cheap to
// copy; copies compare by pointer.
struct KernelKey {
  Hash128 hash;
  std::shared_ptr<const std::string> text;

  bool operator==(const KernelKey& other) const {
    return text == other.text || (hash == other.hash && *text == *other.text);
  }
  template <typename H>
  friend H AbslHashValue(H h, const KernelKey& key) {
    return H::combine(std::move(h), key.hash);
  }
};

// The key of a final kernel: versions of Svod, its build, LLVM and the kernel ABI; target with all
// features; options; canonical text. Readable, and equal in every process of one build.
// Errors: what PrintCanonical says. Cost: that of printing.
absl::StatusOr<KernelKey> MakeKey(const UOp* final_sink, const CompileOptions& options);

// The key that has this text.
KernelKey KeyOfText(std::string text);

// The key of a kernel at any stage: the same heading, then its nodes as bytes, which mean the same
// in every process of one build. Cost: about 20 ns a node.
KernelKey MakeSourceKey(const UOp* sink, const CompileOptions& options);

// The canonical text of the kernel that a key of MakeKey was made from.
std::string KernelText(const KernelKey& key);

// Identifies this build of Svod: the linker's build id of the file that holds it, in hexadecimal;
// "" when it has none.
const std::string& BuildId();

}  // namespace svod

#endif  // SVOD_JIT_KERNEL_KEY_H_
