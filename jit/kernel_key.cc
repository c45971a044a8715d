#include "jit/kernel_key.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "ir/status_macros.h"
#include "ir/text.h"
#include "jit/kernel_abi.h"
#include "llvm/Support/xxhash.h"

namespace svod {
namespace {

constexpr int kHeadingLines = 3;

std::string Heading(const CompileOptions& options) {
  const Target& target = options.target;
  std::string heading = absl::StrCat(
      "svod ", SVOD_VERSION, " build ", BuildId(), " llvm ", LlvmVersion(), " abi ",
      kKernelAbiVersion, "\ntarget ", target.triple, " ", target.cpu, " ", target.features,
      "\nlevel ", options.code_gen_level, " noalias ", options.noalias ? 1 : 0);
  // Line tables name a file in that directory.
  if (options.line_tables)
    absl::StrAppend(&heading, " lines ", absl::CEscape(options.dump_directory));
  absl::StrAppend(&heading, "\n");
  return heading;
}

// Appends arguments as bytes from which they could be read back.
class Encoder {
 public:
  explicit Encoder(std::string* out) : out_(*out) {}

  template <typename T>
  void Add(T value) {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
    char bytes[sizeof(T)];
    memcpy(bytes, &value, sizeof(T));
    out_.append(bytes, sizeof(T));
  }
  void Add(absl::string_view text) {
    Add(text.size());
    out_.append(text.data(), text.size());
  }

  void operator()(std::monostate) {}
  void operator()(const ConstArgument& a) { Add(a.bits); }
  void operator()(const VariableArgument& a) {
    Add(a.name);
    Add(a.min);
    Add(a.max);
  }
  void operator()(const ParamArgument& a) {
    Add(a.slot);
    Add(a.access);
    Add(a.name);
  }
  void operator()(const BufferArgument& a) { Add(a.id); }
  void operator()(const ScratchArgument& a) {
    Add(a.id);
    Add(a.size);
  }
  void operator()(const AlignmentArgument& a) {
    Add(a.bytes);
    Add(a.is_stream);
  }
  void operator()(const AxisArgument& a) {
    Add(a.axis);
    Add(a.kind);
  }
  void operator()(const ReduceArgument& a) { Add(a.kind); }
  void operator()(const FunctionArgument& a) {
    Add(a.is_kernel);
    Add(a.name);
    Add(a.opts.size());
    for (absl::string_view opt : a.opts) Add(opt);
  }
  void operator()(const LanesArgument& a) {
    Add(a.lanes.size());
    for (uint16_t lane : a.lanes) Add(lane);
  }
  void operator()(const ViewArgument& a) { Add(a.byte_offset); }
  void operator()(const CustomArgument& a) { Add(a.kind); }
  void operator()(const AxesArgument& a) { AddAxes(a.axes); }
  void operator()(const ReduceAxesArgument& a) {
    Add(a.kind);
    AddAxes(a.axes);
  }
  void operator()(const ScatterArgument& a) {
    Add(a.kind);
    Add(a.axis);
  }

 private:
  void AddAxes(absl::Span<const int64_t> axes) {
    Add(axes.size());
    for (int64_t axis : axes) Add(axis);
  }

  std::string& out_;
};

// Nodes in topological order, sources by position in it: equal graphs of any contexts give equal
// bytes, and only they.
void EncodeGraph(const UOp* sink, std::string* out) {
  Encoder encoder(out);
  absl::flat_hash_map<const UOp*, uint32_t> positions;
  for (const UOp* node : Toposort(sink)) {
    encoder.Add(node->op());
    encoder.Add(node->dtype().scalar);
    encoder.Add(node->dtype().lanes);
    encoder.Add(static_cast<uint32_t>(node->num_sources()));
    for (const UOp* source : node->sources()) encoder.Add(positions[source]);
    std::visit(encoder, node->argument());
    positions[node] = static_cast<uint32_t>(positions.size());
  }
}

// The GNU build id among the notes of one loaded file; "" if there is none.
std::string BuildIdIn(const char* notes, size_t size_bytes) {
  auto padded = [](size_t size) { return (size + 3) / 4 * 4; };
  while (size_bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    memcpy(&note, notes, sizeof(note));
    size_t name_bytes = padded(note.n_namesz);
    size_t content_bytes = padded(note.n_descsz);
    if (name_bytes + content_bytes > size_bytes - sizeof(note)) break;
    const char* name = notes + sizeof(note);
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
      return absl::BytesToHexString(absl::string_view(name + name_bytes, note.n_descsz));
    }
    notes = name + name_bytes + content_bytes;
    size_bytes -= sizeof(note) + name_bytes + content_bytes;
  }
  return "";
}

int FindBuildId(dl_phdr_info* info, size_t, void* result) {
  uintptr_t here = reinterpret_cast<uintptr_t>(&FindBuildId) - info->dlpi_addr;
  bool holds_us = false;
  std::string id;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && here >= segment.p_vaddr &&
        here - segment.p_vaddr < segment.p_memsz) {
      holds_us = true;
    }
    if (segment.p_type == PT_NOTE && id.empty()) {
      id = BuildIdIn(reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr),
                     segment.p_memsz);
    }
  }
  if (holds_us) *static_cast<std::string*>(result) = id;
  return holds_us ? 1 : 0;
}

}  // namespace

const std::string& BuildId() {
  static const std::string* const id = [] {
    auto* found = new std::string;
    dl_iterate_phdr(FindBuildId, found);
    return found;
  }();
  return *id;
}

KernelKey KeyOfText(std::string text) {
  llvm::XXH128_hash_t hash = llvm::xxh3_128bits(
      llvm::ArrayRef(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  return {{hash.low64, hash.high64}, std::make_shared<const std::string>(std::move(text))};
}

absl::StatusOr<KernelKey> MakeKey(const UOp* final_sink, const CompileOptions& options) {
  SVOD_ASSIGN_OR_RETURN(std::string text, PrintCanonical(final_sink));
  return KeyOfText(absl::StrCat(Heading(options), text));
}

std::string KernelText(const KernelKey& key) {
  size_t at = 0;
  for (int line = 0; line < kHeadingLines; ++line) at = key.text->find('\n', at) + 1;
  return key.text->substr(at);
}

KernelKey MakeSourceKey(const UOp* sink, const CompileOptions& options) {
  std::string text = Heading(options);
  text.push_back(options.contract_mulacc ? 1 : 0);  // a final kernel's text shows it
  EncodeGraph(sink, &text);
  return KeyOfText(std::move(text));
}

}  // namespace svod
