#include "jit/target.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ir/status_macros.h"
#include "jit/target_machine.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

// LLVM's own registration functions, for the two back ends that lowering knows. The macros of
// TargetSelect.h would pull in all twenty.
namespace svod {
namespace {

void InitializeX86() {
  static const bool done = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    return true;
  }();
  (void)done;
}

void InitializeAArch64() {
  static const bool done = [] {
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64AsmParser();
    return true;
  }();
  (void)done;
}

// The back end for a triple that ParseTriple let through, set up when it is first asked for: a
// process that runs one kernel has no use for the other.
absl::StatusOr<const llvm::Target*> BackEndFor(const llvm::Triple& triple) {
  if (triple.getArch() == llvm::Triple::x86_64) {
    InitializeX86();
  } else {
    InitializeAArch64();
  }
  std::string error;
  const llvm::Target* back_end = llvm::TargetRegistry::lookupTarget(triple, error);
  if (back_end == nullptr) return absl::InternalError(absl::StrCat("target: ", error));
  return back_end;
}

llvm::StringRef ToRef(absl::string_view view) { return {view.data(), view.size()}; }

// The at most five known names nearest to `name`, nearest first, as a list for a message.
std::string NearNames(absl::string_view name, const std::vector<std::string>& known) {
  std::vector<std::pair<unsigned, absl::string_view>> ranked;
  for (const std::string& candidate : known) {
    unsigned distance = ToRef(name).edit_distance(candidate);
    bool prefix = absl::string_view(candidate).substr(0, name.size()) == name;
    ranked.push_back({prefix && !name.empty() ? 0 : distance, candidate});
  }
  std::sort(ranked.begin(), ranked.end());
  if (ranked.size() > 5) ranked.resize(5);
  return absl::StrJoin(ranked, ", ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.second);
  });
}

std::string HostTriple() { return llvm::Triple::normalize(llvm::sys::getProcessTriple()); }

std::set<std::string> EnabledFeatures(const llvm::MCSubtargetInfo& info) {
  std::set<std::string> enabled;
  for (const llvm::SubtargetFeatureKV& feature : info.getAllProcessorFeatures()) {
    if (info.getFeatureBits().test(feature.Value)) enabled.insert(std::string(feature.Key));
  }
  return enabled;
}

absl::StatusOr<llvm::Triple> ParseTriple(absl::string_view text) {
  std::string normalized = text.empty() ? HostTriple() : llvm::Triple::normalize(ToRef(text));
  llvm::Triple triple(normalized);
  if (triple.getArch() == llvm::Triple::UnknownArch) {
    return absl::InvalidArgumentError(
        absl::StrCat("target: unknown triple '", text,
                     "', expected one such as x86_64-linux-gnu or aarch64-linux-gnu"));
  }
  bool known_arch = triple.getArch() == llvm::Triple::x86_64 ||
                    (triple.getArch() == llvm::Triple::aarch64 && !triple.isWindowsArm64EC());
  if (!known_arch || !triple.isOSLinux() || !triple.isOSBinFormatELF() || triple.isX32() ||
      triple.getEnvironment() == llvm::Triple::GNUILP32) {
    return absl::UnimplementedError(absl::StrCat(
        "target: triple '", text, "', expected Linux on x86-64 or AArch64 with 64-bit pointers"));
  }
  return triple;
}

// Features without which LLVM would refuse to generate code at all, or would generate calls.
absl::Status CheckBase(const llvm::Triple& triple, const std::set<std::string>& enabled) {
  std::vector<std::string> needed, refused;
  if (triple.getArch() == llvm::Triple::x86_64) {
    needed = {"64bit", "64bit-mode", "cx8", "sse", "sse2", "x87"};
    refused = {"16bit-mode", "32bit-mode", "soft-float"};
  } else {
    needed = {"fp-armv8", "neon"};
    refused = {"soft-float"};
  }
  for (const std::string& feature : needed) {
    if (!enabled.count(feature)) {
      return absl::UnimplementedError(
          absl::StrCat("target: without feature ", feature, " no code can be generated"));
    }
  }
  for (const std::string& feature : refused) {
    if (enabled.count(feature)) {
      return absl::UnimplementedError(
          absl::StrCat("target: with feature ", feature, " no code can be generated"));
    }
  }
  return absl::OkStatus();
}

struct HostFacts {
  std::string triple, cpu;
  std::vector<std::string> features;  // "+avx", "-fma4"; of the names that LLVM knows
  std::set<std::string> enabled;      // once the CPU's own features are applied as well
};

absl::StatusOr<std::unique_ptr<llvm::MCSubtargetInfo>> CreateSubtarget(const llvm::Triple& triple,
                                                                       const std::string& cpu,
                                                                       const std::string& features);

absl::StatusOr<HostFacts> FindHost() {
  HostFacts host;
  SVOD_ASSIGN_OR_RETURN(llvm::Triple triple, ParseTriple(""));
  host.triple = triple.str();
  host.cpu = llvm::sys::getHostCPUName().str();
  SVOD_ASSIGN_OR_RETURN(auto plain, CreateSubtarget(triple, "", ""));
  if (!plain->isCPUStringValid(host.cpu)) {
    host.cpu = triple.getArch() == llvm::Triple::x86_64 ? "x86-64" : "generic";
  }
  std::set<std::string> known;
  for (const llvm::SubtargetFeatureKV& feature : plain->getAllProcessorFeatures()) {
    known.insert(std::string(feature.Key));
  }
  for (const auto& [name, on] : llvm::sys::getHostCPUFeatures()) {
    if (known.count(name.str())) host.features.push_back((on ? "+" : "-") + name.str());
  }
  std::sort(host.features.begin(), host.features.end());
  SVOD_ASSIGN_OR_RETURN(auto full,
                        CreateSubtarget(triple, host.cpu, absl::StrJoin(host.features, ",")));
  host.enabled = EnabledFeatures(*full);
  return host;
}

const absl::StatusOr<HostFacts>& Host() {
  static const auto& host = *new absl::StatusOr<HostFacts>(FindHost());
  return host;
}

absl::StatusOr<std::unique_ptr<llvm::MCSubtargetInfo>> CreateSubtarget(
    const llvm::Triple& triple, const std::string& cpu, const std::string& features) {
  SVOD_ASSIGN_OR_RETURN(const llvm::Target* back_end, BackEndFor(triple));
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      back_end->createMCSubtargetInfo(triple, cpu, features));
  if (info == nullptr) return absl::InternalError("target: LLVM has no subtargets");
  return info;
}

absl::Status CheckCpu(const llvm::MCSubtargetInfo& info, const std::string& cpu) {
  if (info.isCPUStringValid(cpu)) return absl::OkStatus();
  std::vector<std::string> known;
  for (const llvm::SubtargetSubTypeKV& entry : info.getAllProcessorDescriptions()) {
    known.push_back(std::string(entry.Key));
  }
  return absl::InvalidArgumentError(absl::StrCat("target: unknown CPU '", cpu, "' for ",
                                                 info.getTargetTriple().str(),
                                                 ", near names: ", NearNames(cpu, known)));
}

absl::Status CheckFeatures(const llvm::MCSubtargetInfo& info,
                           const std::vector<std::string>& features) {
  std::vector<std::string> known;
  for (const llvm::SubtargetFeatureKV& entry : info.getAllProcessorFeatures()) {
    known.push_back(std::string(entry.Key));
  }
  for (const std::string& feature : features) {
    if (feature.size() < 2 || (feature[0] != '+' && feature[0] != '-')) {
      return absl::InvalidArgumentError(
          absl::StrCat("target: feature '", feature, "', expected +name or -name, such as +avx2"));
    }
    std::string name = feature.substr(1);
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return absl::InvalidArgumentError(absl::StrCat("target: unknown feature '", name, "' for ",
                                                     info.getTargetTriple().str(),
                                                     ", near names: ", NearNames(name, known)));
    }
  }
  return absl::OkStatus();
}

// Features that cannot make a kernel fault on a CPU without them: they steer the choice of
// instructions, or stand for system instructions that no kernel contains.
bool IsHarmless(absl::string_view feature) {
  static const auto& kPrefixes = *new std::vector<absl::string_view>{
      "64bit-mode", "allow-light-", "async-",    "avoid-",   "branchfusion", "cldemote",
      "clflushopt", "clwb",         "clzero",    "enqcmd",   "ermsb",        "false-deps-",
      "fast-",      "faster-",      "fsgsbase",  "fsrm",     "hreset",       "idivl-",
      "idivq-",     "inc-dec",      "invpcid",   "lea-",     "macrofusion",  "movdir",
      "mwaitx",     "no-bypass-",   "nopl",      "pad-",     "pconfig",      "pku",
      "prefer-",    "prefetchi",    "prefetchw", "prfchw",   "ptwrite",      "rdpid",
      "rdpru",      "rdrnd",        "rdseed",    "rtm",      "sbb-",         "serialize",
      "sgx",        "shstk",        "slow-",     "tsxldtrk", "tuning-",      "uintr",
      "use-",       "vzeroupper",   "waitpkg",   "wbnoinvd", "xsave",        "avx512vp2intersect"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](absl::string_view prefix) {
    return feature.substr(0, prefix.size()) == prefix;
  });
}

void FillFacts(Target& target, const std::set<std::string>& enabled) {
  auto has = [&](const char* feature) { return enabled.count(feature) > 0; };
  if (target.architecture == Architecture::kAArch64) {
    target.vector_registers = 32;
    target.has_fma = target.has_round = target.has_half = true;
    return;
  }
  if (has("avx512f")) {
    target.vector_bytes = 64;
    target.vector_registers = 32;
  } else if (has("avx")) {
    target.vector_bytes = 32;
  }
  target.has_fma = has("fma") || has("fma4");
  target.has_round = has("sse4.1");
  target.has_half = has("f16c");
}

// What the system says of the host's caches. A last level that is reported for a whole package, as
// virtual machines do, counts up to the default only.
void FillCaches(Target& target) {
  auto read = [](int name, int64_t* bytes) {
    int64_t size = sysconf(name);
    if (size > 0) *bytes = size;
  };
  const int64_t most = target.last_level_bytes;
  read(_SC_LEVEL1_DCACHE_SIZE, &target.l1_bytes);
  read(_SC_LEVEL2_CACHE_SIZE, &target.l2_bytes);
  read(_SC_LEVEL3_CACHE_SIZE, &target.last_level_bytes);
  target.last_level_bytes = std::clamp(target.last_level_bytes, target.l2_bytes, most);
}

}  // namespace

absl::StatusOr<Target> HostTarget() {
  static const auto& target = *new absl::StatusOr<Target>(MakeTarget("", "host", ""));
  return target;
}

absl::StatusOr<Target> MakeTarget(absl::string_view triple_text, absl::string_view cpu_text,
                                  absl::string_view feature_text) {
  SVOD_RETURN_IF_ERROR(Host().status());
  const HostFacts& host = *Host();
  SVOD_ASSIGN_OR_RETURN(llvm::Triple triple, ParseTriple(triple_text));
  bool host_architecture = triple.getArch() == llvm::Triple(host.triple).getArch();
  bool x86 = triple.getArch() == llvm::Triple::x86_64;

  std::string cpu(cpu_text);
  bool host_cpu = cpu == "host" || cpu == "native" ||
                  (cpu.empty() && feature_text.empty() && host_architecture);
  if (host_cpu && !host_architecture) {
    return absl::InvalidArgumentError(absl::StrCat("target: CPU '", cpu, "' is a ", host.triple,
                                                   ", expected one of ", triple.str()));
  }
  if (host_cpu) cpu = host.cpu;
  if (cpu.empty()) cpu = x86 ? "x86-64" : "generic";

  std::set<std::string> enabled = host.enabled;
  std::vector<std::string> features = absl::StrSplit(feature_text, ',', absl::SkipWhitespace());
  // Names of the host's are known to be right.
  if (!host_cpu || !features.empty()) {
    SVOD_ASSIGN_OR_RETURN(auto plain, CreateSubtarget(triple, "", ""));
    SVOD_RETURN_IF_ERROR(CheckCpu(*plain, cpu));
    SVOD_RETURN_IF_ERROR(CheckFeatures(*plain, features));
    if (host_cpu) features.insert(features.begin(), host.features.begin(), host.features.end());
    SVOD_ASSIGN_OR_RETURN(auto full, CreateSubtarget(triple, cpu, absl::StrJoin(features, ",")));
    enabled = EnabledFeatures(*full);
  }
  SVOD_ASSIGN_OR_RETURN(auto of_cpu, CreateSubtarget(triple, cpu, ""));
  SVOD_RETURN_IF_ERROR(CheckBase(triple, enabled));

  Target target;
  target.triple = triple.str();
  target.cpu = cpu;
  target.architecture = x86 ? Architecture::kX86_64 : Architecture::kAArch64;
  std::vector<std::string> canonical;
  for (const std::string& feature : enabled) canonical.push_back("+" + feature);
  for (const std::string& feature : EnabledFeatures(*of_cpu)) {
    if (!enabled.count(feature)) canonical.push_back("-" + feature);
  }
  target.features = absl::StrJoin(canonical, ",");
  target.is_host =
      host_architecture && std::all_of(enabled.begin(), enabled.end(), [&](const auto& feature) {
        return host.enabled.count(feature) > 0 || IsHarmless(feature);
      });
  FillFacts(target, enabled);
  if (host_cpu) FillCaches(target);
  return target;
}

bool HasFeature(const Target& target, absl::string_view feature) {
  for (absl::string_view entry : absl::StrSplit(target.features, ',')) {
    if (entry.size() > 1 && entry[0] == '+' && entry.substr(1) == feature) return true;
  }
  return false;
}

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> CreateTargetMachine(
    const Target& target, llvm::CodeGenOptLevel level) {
  llvm::Triple triple(target.triple);
  SVOD_ASSIGN_OR_RETURN(const llvm::Target* back_end, BackEndFor(triple));
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(
      back_end->createTargetMachine(triple, target.cpu, target.features, options, llvm::Reloc::PIC_,
                                    llvm::CodeModel::Small, level));
  if (machine == nullptr) {
    return absl::InternalError(
        absl::StrCat("target: LLVM has no code generator for ", target.triple));
  }
  return machine;
}

}  // namespace svod
