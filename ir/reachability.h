// Reachability: whether one node depends on another, for many questions about one graph.
// Included by the verifier. Must not know what nodes mean.
#ifndef SVOD_IR_REACHABILITY_H_
#define SVOD_IR_REACHABILITY_H_

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "ir/uop.h"

namespace svod {

// Nodes are named by their place in the list given, which has sources before users.
class Reachability {
 public:
  explicit Reachability(const std::vector<const UOp*>& nodes);

  // Whether `user` depends on `source`; nullopt when a short search does not tell.
  std::optional<bool> Quick(uint32_t source, uint32_t user);

  // What the two below find: the first pair of which the later does not depend on the earlier, by
  // indices; or that it would take too long to tell.
  struct Answer {
    enum class Kind { kInOrder, kApart, kExhausted };
    Kind kind = Kind::kInOrder;
    size_t first = 0, second = 0;  // for kApart

    bool is_apart() const { return kind == Kind::kApart; }
    bool is_exhausted() const { return kind == Kind::kExhausted; }
  };
  // Asks for the pairs {source, user}; both indices of the answer are that of the pair. First is
  // the one of the earliest source.
  Answer FirstApart(absl::Span<const std::pair<uint32_t, uint32_t>> pairs);
  // Asks for all pairs of `places`, which ascend, that must be in order. First is the one of the
  // earliest place, then of the earliest user. Cost: a call of `must_be_ordered` for each pair.
  Answer FirstApart(absl::Span<const uint32_t> places,
                    absl::FunctionRef<bool(size_t, size_t)> must_be_ordered);

 private:
  // As many sources as one walk follows: enough to pay for it, few enough for the cache.
  static constexpr size_t kWords = 4;
  static constexpr size_t kMaxSources = kWords * 64;
  using Bits = std::array<uint64_t, kWords>;

  // Works out which nodes up to `last_user` depend on which of `sources`, at most kMaxSources in
  // ascending order, repeats allowed. False when the work of all walks is more than one may ask
  // for.
  bool Walk(absl::Span<const uint32_t> sources, uint32_t last_user);
  bool IsReached(size_t source, uint32_t user) const {
    return (reached_[user - origin_][source / 64] >> (source % 64) & 1) != 0;
  }

  std::vector<uint32_t> first_source_;  // by place, into sources_; one more at the end
  std::vector<uint32_t> sources_;
  std::vector<uint32_t> visited_;  // by place: number of the search that was there last
  uint32_t search_ = 0;
  std::vector<uint32_t> stack_;
  std::vector<Bits> reached_;  // of the last walk, from origin_ on
  uint32_t origin_ = 0;
  int64_t steps_left_ = int64_t{1} << 33;
};

}  // namespace svod

#endif  // SVOD_IR_REACHABILITY_H_
