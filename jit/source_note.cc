#include "jit/source_note.h"

#include <cstdint>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ir/program.h"

namespace svod {
namespace {

constexpr absl::string_view kVariable = "variable ", kCores = "cores ", kKey = "key";
constexpr absl::string_view kAsInSource = "as in source";

// The number of cores of a kernel's launch; null for one.
const UOp* GlobalSizeOf(const UOp* sink) {
  for (const UOp* node : Toposort(sink)) {
    if (node->op() == Op::kCoreId) return node->source(0);
  }
  return nullptr;
}

void SetGlobalSize(const UOp* size, KernelInterface* interface) {
  auto context = std::make_shared<Context>();
  interface->global_size = context->Import(size);
  interface->context = std::move(context);
}

}  // namespace

KernelInterface InterfaceOf(const UOp* final_sink) {
  KernelInterface interface;
  for (const UOp* variable : VariablesOf(final_sink)) {
    interface.variable_names.emplace_back(variable->arg<VariableArgument>().name);
  }
  if (const UOp* size = GlobalSizeOf(final_sink)) SetGlobalSize(size, &interface);
  return interface;
}

std::optional<std::string> EncodeSourceNote(const UOp* source, const UOp* final_sink,
                                            const KernelKey& key) {
  std::string text;
  for (const UOp* variable : VariablesOf(final_sink)) {
    absl::StrAppend(&text, kVariable, absl::CEscape(variable->arg<VariableArgument>().name), "\n");
  }
  if (const UOp* size = GlobalSizeOf(final_sink)) {
    const UOp* before = GlobalSizeOf(source);
    if (size->op() == Op::kConst) {
      absl::StrAppend(&text, kCores, ConstInt(size), "\n");
    } else if (before != nullptr && before->hash() == size->hash()) {
      absl::StrAppend(&text, kCores, kAsInSource, "\n");
    } else {
      return std::nullopt;
    }
  }
  absl::StrAppend(&text, kKey, "\n", *key.text);
  return text;
}

std::optional<SourceNote> DecodeSourceNote(absl::string_view text, const UOp* source) {
  SourceNote note;
  while (true) {
    const size_t end = text.find('\n');
    if (end == absl::string_view::npos) return std::nullopt;
    absl::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line == kKey) break;
    if (absl::ConsumePrefix(&line, kVariable)) {
      std::string name;
      if (!absl::CUnescape(line, &name)) return std::nullopt;
      note.interface.variable_names.push_back(std::move(name));
    } else if (absl::ConsumePrefix(&line, kCores)) {
      int64_t cores = 0;
      if (absl::SimpleAtoi(line, &cores)) {
        auto context = std::make_shared<Context>();
        note.interface.global_size = context->Index(cores);
        note.interface.context = std::move(context);
      } else {
        const UOp* size = line == kAsInSource ? GlobalSizeOf(source) : nullptr;
        if (size == nullptr) return std::nullopt;
        SetGlobalSize(size, &note.interface);
      }
    } else {
      return std::nullopt;
    }
  }
  note.key = KeyOfText(std::string(text));
  return note;
}

}  // namespace svod
