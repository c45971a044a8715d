// ArenaLayout: offsets in one block of memory for stretches that are needed for a while.
// Included by memory_plan.cc and tests. Knows numbers only; no nodes, no buffers.
#ifndef SVOD_PLAN_ARENA_LAYOUT_H_
#define SVOD_PLAN_ARENA_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace svod {

// So many bytes, from one level to another.
struct Lifetime {
  int64_t bytes = 0;
  int first_level = 0;  // inclusive, from 0
  int last_level = 0;   // inclusive
};

struct ArenaLayout {
  std::vector<int64_t> offsets;  // by lifetime; multiples of `alignment` [bytes]
  int64_t bytes = 0;             // of the whole arena
};

// Gives each lifetime the lowest offset at which it meets none of those placed before it that share
// a level with it; larger ones are placed first, then earlier ones, then those that stand first.
// Errors: ResourceExhausted beyond 2^62 bytes.
// Cost: n log^2 n for n lifetimes, as long as free memory is in few pieces.
// Source: greedy-by-size of Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
// Inference", 2020.
absl::StatusOr<ArenaLayout> LayOutArena(absl::Span<const Lifetime> lifetimes, int64_t alignment);

}  // namespace svod

#endif  // SVOD_PLAN_ARENA_LAYOUT_H_
