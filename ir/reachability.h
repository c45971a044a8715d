// Reachability: whether one node depends on another, for many questions about one graph.
// Included by the verifier. Must not know what nodes mean.
#ifndef SVOD_IR_REACHABILITY_H_
#define SVOD_IR_REACHABILITY_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ir/uop.h"

namespace svod {

// Nodes are named by their place in the list given, which has sources before users.
class Reachability {
 public:
  explicit Reachability(const std::vector<const UOp*>& nodes);

  // Whether `user` depends on `source`; nullopt when a short search does not tell.
  std::optional<bool> Quick(uint32_t source, uint32_t user);

  // Pairs {source, user}: the first one, in the given order, of which `user` does not depend on
  // `source`; nullopt if all do. Many questions share one walk over the nodes between.
  // is_exhausted is set, and nullopt returned, when that would take too long.
  std::optional<size_t> FirstApart(const std::vector<std::pair<uint32_t, uint32_t>>& pairs,
                                   bool* is_exhausted);

 private:
  std::vector<uint32_t> first_source_;  // by place, into sources_; one more at the end
  std::vector<uint32_t> sources_;
  std::vector<uint32_t> visited_;  // by place: number of the search that was there last
  uint32_t search_ = 0;
  std::vector<uint32_t> stack_;
  int64_t steps_left_ = int64_t{1} << 33;
};

}  // namespace svod

#endif  // SVOD_IR_REACHABILITY_H_
