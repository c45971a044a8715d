// Schedule: from a tensor graph to kernels and the graph of buffers and calls that Prepare takes.
// Included by prepare.cc, tools and tests. Must not compile or allocate.
#ifndef SVOD_PLAN_SCHEDULE_H_
#define SVOD_PLAN_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/program.h"

namespace svod {

// What may be done with intermediate values. Every combination gives the same results, bit for bit,
// but for winograd_error.
struct ScheduleOptions {
  bool inline_values = true;  // recompute values in their consumers; else each op is a kernel
  bool stage_values = true;   // keep rows that a kernel needs several times in scratch memory
  // Most scratch memory that the stages of one kernel may take together [bytes].
  int64_t max_stage_bytes = int64_t{1} << 18;
  // Longest loop over cores that a kernel's outer loops are split into; 1: kernels run on one core.
  int64_t max_launch_size = 32;
  // Largest error that convolutions may have for the sake of fewer products, relative to what their
  // products can sum up to at most (WinogradError); 0: sums stay as they are written.
  double winograd_error = 0;
  bool operator==(const ScheduleOptions&) const = default;
};

// Where a value of the graph lives.
enum class Place : uint8_t { kInlined, kStaged, kMaterialised };
const char* ToString(Place place);

// One decision, for printing: of a value that could have lived elsewhere.
struct PlaceNote {
  const UOp* value;  // a node of the tensor graph
  Place place;
  std::string kernel;  // the kernel that computes it
  std::string reason;  // "3 loops of k2 read it; a row of 512 bytes"
};

// Module: the kernels, then the graph `name` of BUFFERs, CALLs, COPYs and AFTERs on them. The graph
// has the tensor graph's parameters and returns, for each of its results in order, a state of a
// buffer of that shape.
struct Schedule {
  Module module;
  std::vector<PlaceNote> places;
};

// Whether a graph has anything to schedule: tensor ops, or results that are no states of buffers.
bool IsTensorGraph(const UOp* sink);

// Cuts a tensor graph into kernels. Deterministic: it depends on the graph's content alone. The
// result's nodes are of a context of its own. Reads of a buffer's state come before what replaces
// it; where that is impossible the state is copied first.
// Errors: InvalidArgument, naming the node and its place, for shapes that do not fit, for two
// assignments to one state of overlapping parts of a buffer, for results that are no tensors.
// Cost: linear in nodes.
// Source: Halide's compute_at (Ragan-Kelley et al., PLDI 2013) for stages; tinygrad's rangeify for
// movement as index arithmetic.
absl::StatusOr<Schedule> ScheduleGraph(const Function& graph, const ScheduleOptions& options = {});

}  // namespace svod

#endif  // SVOD_PLAN_SCHEDULE_H_
