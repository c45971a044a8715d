// SourceNote: what the disk tier keeps of a kernel under its source's key, so that it is found
// again without the passes. Included by the kernel cache and tests.
#ifndef SVOD_JIT_SOURCE_NOTE_H_
#define SVOD_JIT_SOURCE_NOTE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ir/uop.h"
#include "jit/kernel_key.h"

namespace svod {

// What a plan asks a kernel for beyond its code, read off its final nodes.
struct KernelInterface {
  std::vector<std::string> variable_names;
  std::shared_ptr<const Context> context;  // keeps global_size alive
  const UOp* global_size = nullptr;        // null: one core
};
KernelInterface InterfaceOf(const UOp* final_sink);

struct SourceNote {
  KernelKey key;  // of the final kernel
  KernelInterface interface;
};

// The note as text. Nothing for a kernel whose number of cores is an expression that the passes
// changed, which the text could not say.
std::optional<std::string> EncodeSourceNote(const UOp* source, const UOp* final_sink,
                                            const KernelKey& key);
// Nothing for a text that is no note.
std::optional<SourceNote> DecodeSourceNote(absl::string_view text, const UOp* source);

}  // namespace svod

#endif  // SVOD_JIT_SOURCE_NOTE_H_
