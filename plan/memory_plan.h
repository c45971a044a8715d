// MemoryPlan: places the intermediate buffers of a scheduled graph into one arena.
// Included by prepare.cc, tools and tests. Must not allocate.
#ifndef SVOD_PLAN_MEMORY_PLAN_H_
#define SVOD_PLAN_MEMORY_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/program.h"

namespace svod {

enum class MemoryMode : uint8_t {
  kArena,  // buffers whose lifetimes do not meet share memory
  kOff,    // each buffer has its own
};

// One intermediate buffer of the graph as it was scheduled.
struct BufferPlacement {
  const UOp* buffer;            // of the graph given
  int64_t bytes = 0;            // at its largest
  int64_t offset = -1;          // in the arena [bytes]; -1: memory of its own
  int first_level = 0;          // level of the first op that uses it
  int last_level = 0;           // of the last one
  const UOp* reuses = nullptr;  // the buffer whose memory it took over in place, element by element
};

struct MemoryPlan {
  Module module;  // the graph on views of the arena, and its kernels, some of them in place
  std::vector<BufferPlacement> buffers;  // in the order of their first uses
  int64_t arena_bytes = 0;               // the arena's size
  int64_t own_bytes = 0;                 // of intermediate buffers that keep memory of their own
  int64_t sum_bytes = 0;                 // of all intermediate buffers, as if none shared any

  // What intermediate values take while the plan runs [bytes].
  int64_t peak_bytes() const { return arena_bytes + own_bytes; }
};

// Packs the BUFFERs of a graph of CALLs, COPYs and CUSTOM_FUNCTIONs into one arena, a BUFFER of
// bytes of which they become BUFFER_VIEWs. Buffers that the graph returns keep memory of their own,
// and so do those of which the first op is not seen to write every element, since what it leaves
// out must be zero: a kernel that stores only a part, or a custom function.
//
// Offsets are multiples of 64 bytes (see arena_layout.h). Lifetimes count levels, the longest
// chains of ops, so that ops of one level may still run side by side: AFTERs put who takes over
// memory behind who used it before, always from a lower level to a higher one. A kernel that reads
// a dying buffer at just the elements that it writes, of the same size, writes in place (see
// in_place.h): its parameters become one `inout`. Buffers of dynamic sizes take their largest.
// Results are those of the graph given, bit for bit.
//
// New nodes are of the module's context, which one thread may use at a time. Deterministic.
// Errors: InvalidArgument for what does not verify; ResourceExhausted beyond 2^62 bytes.
// Cost: linear in nodes, n log^2 n in buffers.
absl::StatusOr<MemoryPlan> PlanMemory(const Module& module, absl::string_view graph,
                                      MemoryMode mode = MemoryMode::kArena);

}  // namespace svod

#endif  // SVOD_PLAN_MEMORY_PLAN_H_
