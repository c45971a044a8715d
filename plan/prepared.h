// PreparedOp: the steps of an execution plan, ready to run but for what Build captures.
// Included by plan/, executor/ and tools/. Plain data; knows neither levels nor threads.
#ifndef SVOD_PLAN_PREPARED_H_
#define SVOD_PLAN_PREPARED_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/btree_map.h"
#include "ir/uop.h"
#include "jit/kernel.h"
#include "plan/device.h"

namespace svod {

// The variable whose value a launch gives by itself; plans never set it.
inline constexpr char kCoreIdName[] = "core_id";

// Values by name, in the order of names so that text made from them is stable.
using VariableMap = absl::btree_map<std::string, int64_t>;

// Bounds of one DEFINE_VAR that an op consumes.
struct RuntimeVar {
  std::string name;
  int64_t min = 0;  // inclusive
  int64_t max = 0;  // inclusive
  bool operator==(const RuntimeVar&) const = default;
};

// The DEFINE_VARs under `root` in topological order, the first of each name.
std::vector<RuntimeVar> CollectRuntimeVars(const UOp* root);

// One launch of a compiled kernel. Copies share the kernel.
struct PreparedKernel {
  uint64_t id = 0;                         // need not be unique in a plan (levels.h)
  std::shared_ptr<const Context> context;  // keeps `ast` alive
  const UOp* ast = nullptr;                // the kernel's SINK, for inspection; may be null
  std::shared_ptr<const CompiledKernel> kernel;
  DeviceSpec device;                   // may differ from the plan's
  std::vector<size_t> buffer_indices;  // into the plan's buffers, in slot order
  std::vector<size_t> output_indices;  // positions in buffer_indices that are written
  std::vector<int64_t> values;         // by position in kernel->variable_names
  // Values that no call may override. They decide launch sizes; `values` holds them too.
  VariableMap fixed_variables;
  std::vector<uint64_t> dependencies;         // ids of ops
  std::vector<RuntimeVar> runtime_variables;  // filled by whoever prepares, not by Build

  // What each buffer must satisfy, by position; empty: nothing. Checked in Build and when a buffer
  // is bound.
  std::vector<int64_t> min_bytes;
  std::vector<int64_t> alignments;  // [bytes]
  double cost_ns = 0;               // estimate over all cores; 0: from bytes touched

  // Filled by Build, whatever stood there.
  std::vector<void*> buffer_pointers;
  std::vector<uint64_t> buffer_ids;
};

// Copies buffer_indices[1] to buffer_indices[0]; further indices are ignored.
struct PreparedCopy {
  uint64_t id = 0;
  std::vector<size_t> buffer_indices;  // {destination, source}
  std::vector<uint64_t> dependencies;
};

// States that buffer_indices[0] is the stretch of buffer_indices[1] from byte_offset on. Moves
// nothing; Build checks it, and rebinding the base moves the view along.
struct PreparedBufferView {
  uint64_t id = 0;
  std::vector<size_t> buffer_indices;  // {view, base}
  int64_t byte_offset = 0;             // in the base
  int64_t byte_size = 0;
  std::vector<uint64_t> dependencies;
};

// A call of a function registered under `kind` (custom_function.h).
struct PreparedCustomFunction {
  uint64_t id = 0;
  std::string kind;
  std::shared_ptr<const Context> context;  // keeps `attributes` alive
  std::vector<const UOp*> attributes;
  std::vector<size_t> buffer_indices;
  VariableMap fixed_variables;
  std::vector<uint64_t> dependencies;
  std::vector<RuntimeVar> runtime_variables;  // those of the attributes; filled as for kernels
};

using PreparedOp =
    std::variant<PreparedKernel, PreparedCopy, PreparedBufferView, PreparedCustomFunction>;

// The fields that all four kinds have.
inline uint64_t IdOf(const PreparedOp& op) {
  return std::visit([](const auto& o) { return o.id; }, op);
}
inline const std::vector<uint64_t>& DependenciesOf(const PreparedOp& op) {
  return std::visit([](const auto& o) -> const std::vector<uint64_t>& { return o.dependencies; },
                    op);
}

// "kernel 7: id, device, buffers, outputs, values, fixed variables, dependencies"; no addresses.
std::string DebugString(const PreparedKernel& kernel);

}  // namespace svod

#endif  // SVOD_PLAN_PREPARED_H_
