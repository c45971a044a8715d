// Target: the machine that kernels are compiled for, resolved and checked by name.
// Included by compilation, cache keys, cost models and tools. Must not include LLVM.
#ifndef SVOD_JIT_TARGET_H_
#define SVOD_JIT_TARGET_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace svod {

enum class Architecture : uint8_t { kX86_64, kAArch64 };

// Plain data; equal targets have equal strings, which is what cache keys hold.
struct Target {
  std::string triple;    // normalised, "x86_64-pc-linux-gnu"
  std::string cpu;       // as LLVM spells it, "znver5"
  std::string features;  // every feature that is on, and those off that the CPU has; sorted
  Architecture architecture = Architecture::kX86_64;
  bool is_host = false;   // code for it runs in this process
  int vector_bytes = 16;  // widest vector register [bytes]
  int vector_registers = 16;
  // Caches that one core can count on [bytes]. Of other machines than the host, and where the host
  // does not say, those of a common server.
  int64_t l1_bytes = 32 << 10;
  int64_t l2_bytes = 1 << 20;
  int64_t last_level_bytes = 32 << 20;
  // Instructions that lowering replaces by exact arithmetic where they are missing.
  bool has_fma = false;    // fused multiply-add of f32 and f64
  bool has_round = false;  // floor, ceil, trunc and round to even
  bool has_half = false;   // conversions between f16 and f32

  bool operator==(const Target&) const = default;
};

// The machine that this process runs on, with exactly the features that it reports. Worked out
// once. Threads: any.
// Errors: Unimplemented on an architecture that is neither x86-64 nor AArch64.
absl::StatusOr<Target> HostTarget();

// A target by name. An empty triple is the host's; an empty CPU is the host's when the triple names
// the host's architecture and the features are empty as well, else "generic" ("x86-64"); "host" and
// "native" are the host's CPU. `features` adds to and takes from what the CPU has:
// "+avx512f,-fma". is_host tells whether this process can run the result.
// Errors: InvalidArgument for an unknown triple, CPU or feature, listing names near it;
// Unimplemented for an architecture, system or feature set that lowering does not cover.
absl::StatusOr<Target> MakeTarget(absl::string_view triple, absl::string_view cpu,
                                  absl::string_view features);

// Whether `features` of the target turn the feature on ("avx2").
bool HasFeature(const Target& target, absl::string_view feature);

}  // namespace svod

#endif  // SVOD_JIT_TARGET_H_
