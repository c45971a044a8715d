// MemoryPlan: places the intermediate buffers of a scheduled graph into one arena.
// Included by prepare.cc, tools and tests. Must not allocate.
#ifndef SVOD_PLAN_MEMORY_PLAN_H_
#define SVOD_PLAN_MEMORY_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/program.h"

namespace svod {

enum class MemoryMode : uint8_t {
  kArena,  // buffers whose lifetimes do not meet share memory
  kOff,    // each buffer has its own
};

// One buffer of the graph as it was scheduled.
struct BufferPlacement {
  const UOp* buffer;            // of the graph given
  int64_t bytes = 0;            // at its largest
  int64_t offset = -1;          // in the arena [bytes]; -1: memory of its own (a result, or kOff)
  int first_level = 0;          // level of the first op that uses it
  int last_level = 0;           // of the last one
  const UOp* reuses = nullptr;  // the buffer whose memory it took over in place, element by element
};

struct MemoryPlan {
  Module module;  // the graph on views of the arena, and its kernels, some of them in place
  std::vector<BufferPlacement> buffers;
  int64_t arena_bytes = 0;  // peak: the arena's size
  int64_t sum_bytes = 0;    // of all intermediate buffers
};

// Packs the BUFFERs of a graph of CALLs and COPYs that it neither returns nor takes from outside.
// Offsets are multiples of 64 bytes. Lifetimes count levels, the longest chains of ops, so that ops
// of one level may still run side by side; first-fit by decreasing size (the greedy-by-size strategy
// of Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020). A kernel
// that reads a dying buffer at just the elements that it writes, of the same size, writes in place:
// its parameters become one `inout`. Buffers of dynamic sizes take their largest.
// Errors: InvalidArgument for what does not verify; ResourceExhausted beyond 2^62 bytes.
absl::StatusOr<MemoryPlan> PlanMemory(const Module& module, absl::string_view graph,
                                      MemoryMode mode = MemoryMode::kArena);

}  // namespace svod

#endif  // SVOD_PLAN_MEMORY_PLAN_H_
