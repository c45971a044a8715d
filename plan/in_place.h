// KernelAccesses: which parameters a kernel writes whole, and which it may read and write in place.
// Included by memory_plan.cc and tests. Looks at one kernel; knows no graphs and no memory.
#ifndef SVOD_PLAN_IN_PLACE_H_
#define SVOD_PLAN_IN_PLACE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/linearize.h"
#include "ir/program.h"
#include "ir/ranges.h"

namespace svod {

// What a verified kernel does with its parameters. Slots are those of its PARAMs.
class KernelAccesses {
 public:
  static absl::StatusOr<KernelAccesses> Create(const UOp* sink);

  const std::vector<const UOp*>& params() const { return params_; }

  // Whether the kernel surely stores every element of the parameter, which is `out`, for every
  // value of its variables.
  bool WritesWhole(size_t slot);

  // Whether the parameter has as many elements as `buffer`, for every value of the variables that
  // both name.
  bool HasSizeOf(size_t slot, const UOp* buffer);

  // Whether parameters `in` and `out` may be the same memory: they have as many elements, all of
  // one size, each element of `out` is stored once, and `in` is only loaded in the iteration that
  // stores the same element. What is loaded again in another loop is not in place.
  bool InPlace(size_t in, size_t out);

 private:
  struct Uses {
    std::vector<const UOp*> loads, stores;
    const UOp* whole = nullptr;  // a store that writes all, if `known`
    bool known = false;
  };

  // Whether positions of the store run through all elements, each counter of `counters` counting
  // one digit.
  bool IsWhole(const UOp* store, const UOp* param, absl::flat_hash_set<const UOp*>& counters);
  const UOp* LoopOf(const UOp* node) const;

  std::vector<const UOp*> params_;
  std::vector<Uses> uses_;  // by slot
  const UOp* core_id_ = nullptr;
  LinearKernel linear_;
  RangeAnalysis ranges_;
};

// The kernel with parameter `second` of each pair {first, second} standing for both, as `inout`;
// parameters `first` are gone and slots close up. It is called `name`. Its nodes are made in
// `context`, its notes follow those of `kernel`.
// Errors: InvalidArgument when the result does not verify, which says that it is not in place.
absl::StatusOr<Function> MergeParams(const Function& kernel,
                                     absl::Span<const std::pair<size_t, size_t>> pairs,
                                     absl::string_view name, Context& context);

}  // namespace svod

#endif  // SVOD_PLAN_IN_PLACE_H_
