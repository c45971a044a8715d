// RunProgram: a plan flattened to what the executor reads, in the order in which it reads it.
// Included by plan/ and executor/. Must stay plain data: the hot loop walks it.
#ifndef SVOD_PLAN_RUN_PROGRAM_H_
#define SVOD_PLAN_RUN_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "jit/kernel_abi.h"

namespace svod {

// One launch. Copies and custom functions are launches of functions of ours. Views are no records.
struct RunRecord {
  KernelFunction function = nullptr;
  void* const* buffers = nullptr;
  const int64_t* variables = nullptr;
  int64_t cores = 1;   // calls to make, with core_id 0, 1, ...; 0 for a launch of no cores
  double cost_ns = 0;  // estimate over all cores
  uint32_t op_index = 0;
};

// A piece of a parallel segment that one thread runs: whole records, or some cores of one.
struct RunChunk {
  uint32_t first_record = 0;
  uint32_t last_record = 0;  // exclusive
  int64_t first_core = 0;    // of each record
  int64_t last_core = -1;    // exclusive; -1: all cores
};

// Records that run in order on the calling thread or, where chunks are given and threads are at
// hand, side by side. A segment starts when the one before has ended. Records of a parallel
// segment are in ascending order of op index.
struct RunSegment {
  uint32_t first_record = 0;
  uint32_t last_record = 0;  // exclusive
  uint32_t first_chunk = 0;
  uint32_t last_chunk = 0;  // exclusive; none: serial
};

struct RunProgram {
  absl::Span<const RunRecord> records;
  absl::Span<const RunSegment> segments;
  absl::Span<const RunChunk> chunks;
  bool has_parallel_segments = false;
  // Scratch blocks of threads that run at once; a segment is run by no more threads than there are
  // blocks. Null when no kernel needs scratch, and then threads are not limited.
  std::byte* scratch = nullptr;
  int64_t scratch_stride = 0;  // [bytes]
  int num_scratch_blocks = 0;
};

// Cutting groups into segments and chunks by cost. Results never depend on these.
//
// A fork hands work to a thread that may sleep: some microseconds before it pays. A group whose
// cost is below kMinParallelNs runs on the calling thread.
inline constexpr double kMinParallelNs = 20000;
// A chunk is worth fetching from the shared counter (tens of nanoseconds under contention).
inline constexpr double kMinChunkNs = 2500;
// More chunks per group than this balance no better.
inline constexpr int kMaxChunks = 512;

}  // namespace svod

#endif  // SVOD_PLAN_RUN_PROGRAM_H_
