// AccessOrder: follows a kernel statement by statement and says what each memory access must come
// after. Included by KernelBuilder, which makes the AFTERs, and by the printer, which leaves out
// those that the builder would make again. Must not make nodes.
#ifndef SVOD_IR_ACCESS_ORDER_H_
#define SVOD_IR_ACCESS_ORDER_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/numeric/int128.h"
#include "absl/types/span.h"
#include "ir/ranges.h"
#include "ir/uop.h"

namespace svod {

// The same statements give the same answers in every context: nothing here depends on addresses or
// on the order in which the context made its nodes.
//
// An access comes after every earlier access of its buffer which may touch the same element, where
// one of the two is a store and no path of sources leads from the later to the earlier. An access
// of a buffer that may change also names each open loop that it would not depend on otherwise.
// Accesses are named in an order of their content, then loops from the outermost in, so that the
// AFTER is the same when independent statements change places.
// Cost: constant per statement, on average. Where exactness would cost more (very many accesses
// that may all touch one another), accesses are ordered that need not be, by a join: an AFTER of
// everything so far. The order of the statements always satisfies what is added.
class AccessOrder {
 public:
  AccessOrder();

  // Tells of a node that a statement made; sources come before users. Constants may be left out.
  void Note(const UOp* node);
  bool IsNoted(const UOp* node) const { return numbers_.contains(node); }
  // Whether the loops that a noted node depends on are all open. Constants depend on none.
  bool IsInOpenLoops(const UOp* node) const;
  // The same for the value of a REDUCE given to AlsoCloses, whose loops have just closed.
  bool IsInReducedLoops(const UOp* node) const;
  // Whether a noted node is under an effect that was noted.
  bool IsTakenUp(const UOp* node) const;

  // Loops. `range` has been noted; so has `closer`, the END or the first REDUCE, of which the
  // ranges are the innermost open ones, outermost first.
  void Open(const UOp* range);
  void Close(absl::Span<const UOp* const> ranges, const UOp* closer);
  // A further REDUCE over the ranges that the last Close closed. False when another statement than
  // arithmetic came in between.
  bool AlsoCloses(const UOp* reduce);
  // Ends the group of REDUCEs of the last Close; every other call does so by itself. Returns a
  // store in their loops that none of them depends on, or null.
  const UOp* FinishReduces();

  int num_open() const { return static_cast<int>(frames_.size()) - 1; }
  const UOp* open_range(int depth) const { return frames_[depth + 1].range; }

  struct Access {
    const UOp* state;  // what the statement names: a buffer or an AFTER
    const UOp* index;  // an INDEX of that buffer, position and gate, in any state
    const UOp* other;  // the stored value or the load's alternative; null: none
    int lanes;         // consecutive elements at each position
    bool is_store;
  };
  struct Plan {
    bool ok = true;  // false: find_after had no join
    const UOp* state = nullptr;
    std::vector<const UOp*> after;  // the address is AFTER(state, after...), or state if empty
    std::vector<std::pair<int, const UOp*>> joins;  // frame, AFTER
    // Per frame, how many of its first entries the access comes after, touching or not.
    std::vector<std::pair<uint32_t, uint32_t>> covers;
  };
  // AFTER(sources), made or found; null if there is none.
  using AfterOf = absl::FunctionRef<const UOp*(absl::Span<const UOp* const> sources)>;

  // What the access must come after. Changes nothing that can be seen but the credits below.
  Plan PlanAccess(const Access& access, AfterOf after_of);
  // Notes the LOAD or STORE `node`, its INDEX and its AFTERs. `plan` is null for an access that is
  // taken as it stands.
  void Commit(const UOp* node, const Access& access, const Plan* plan);

  // The effects of the innermost open loop (or the kernel) that no later effect takes up.
  std::vector<const UOp*> PendingEffects() const;
  // Whether `effect` stands in the innermost open loop (or the kernel), not in one inside it.
  bool IsHere(const UOp* effect) const;
  // Makes everything under `node` taken up; called for each END, and for the SINK.
  void TakeUp(const UOp* node);
  void AddEffect(const UOp* effect);

  // Work that PlanAccess may still do before it becomes inexact. A caller that drops a plan puts
  // back what it cost.
  struct Credits {
    int64_t tests = 1 << 14;
    int64_t visits = 1 << 20;
  };
  const Credits& credits() const { return credits_; }
  void set_credits(const Credits& credits) { credits_ = credits; }

 private:
  struct Info {
    const UOp* node;
    absl::uint128 loops = 0;   // depths of the open loops that it depends on
    uint32_t last_access = 0;  // largest number of an access or closed loop under it, itself too
    uint32_t visited = 0;      // by the search of this number
    int32_t loop = -1;         // serial number of the innermost loop that it depends on
    // Effects: the loop in which they stand, by serial number. RANGEs: their depth.
    int32_t home = -1;
    bool taken_up = false;
  };
  struct Location {
    const UOp* index;
    int lanes;
    bool is_store;
  };
  // An access, or all accesses of a closed loop, which stand for them from then on.
  struct Entry {
    // The access, or closers of its loop, each of which depends on all of it. Empty: a later store
    // stands for it.
    std::vector<const UOp*> nodes;
    absl::InlinedVector<Location, 1> locations;
    uint32_t cover = 0;  // it comes after so many of the first entries of its history
    bool loads_anything = false, stores_anything = false;
  };
  // Single accesses whose positions differ by constants, by those constants.
  struct Group {
    const UOp* base;  // null: constant positions
    std::map<int64_t, std::vector<uint32_t>> entries;
    int64_t widest = 1;
  };
  // What has happened to one buffer in one open loop, in order.
  struct History {
    const UOp* join = nullptr;  // comes after all that is forgotten
    bool has_forgotten = false;
    std::vector<Entry> entries;
    std::vector<Group> groups;
    absl::flat_hash_map<const UOp*, uint32_t> group_of;
    std::vector<uint32_t> closed_loops;
    // By frame around this one: of how many of its entries a store here comes after, and which.
    std::vector<std::pair<uint32_t, uint32_t>> outer_covers;
  };
  using Histories = absl::flat_hash_map<const UOp*, History>;  // by base buffer
  struct Frame {
    const UOp* range = nullptr;
    int32_t serial = 0;
    Histories histories;
    std::vector<const UOp*> effects;
  };

  static absl::uint128 Bit(int depth) { return absl::uint128(1) << depth; }
  const Info* Find(const UOp* node) const;
  Info* Find(const UOp* node) { return const_cast<Info*>(std::as_const(*this).Find(node)); }
  uint32_t NumberOf(const UOp* node) const;  // from 1 on in the order of noting; 0: not noted
  absl::uint128 LoopsOf(const UOp* node) const;

  bool OrderAfter(const Access& access, size_t frame, Plan* plan);
  uint32_t KnownCover(const UOp* base, size_t frame, const Plan& plan) const;
  void AddOuterCover(History* history, size_t frame, uint32_t cover, uint32_t entry);
  bool FindConflicts(const Access& access, const History& history, std::vector<uint32_t>* found);
  bool EntryConflicts(const Access& access, const Entry& entry);
  bool JoinAll(const Access& access, AfterOf after_of, Plan* plan);
  void Record(const UOp* node, const Access& access, const Plan* plan);
  using Closers = std::vector<const UOp*>;
  absl::flat_hash_map<const UOp*, Closers> DependentsOf(const std::vector<Frame>& closed,
                                                        absl::Span<const UOp* const> closers) const;
  void Merge(Histories& from, absl::Span<const UOp* const> closers,
             absl::FunctionRef<Closers(const Entry&)> closers_of);

  void StartSearch();
  void Visit(const UOp* node);
  bool IsVisited(const UOp* node) const { return infos_[NumberOf(node)].visited == search_; }
  bool IsVisited(const Entry& entry) const;
  bool IsReached(const UOp* target);

  std::vector<Info> infos_;  // by number; infos_[0] is nobody's
  absl::flat_hash_map<const UOp*, uint32_t> numbers_;
  std::vector<Frame> frames_;  // frames_[0] is the kernel itself
  std::vector<bool> is_open_;  // by serial number
  // The loops of the last Close, while REDUCEs may join.
  std::vector<const UOp*> reduces_;
  std::vector<Frame> reduced_;
  std::vector<std::pair<uint32_t, uint32_t>> heap_;  // to be expanded: last access, number
  uint32_t search_ = 0;
  Credits credits_;
  RangeAnalysis ranges_;
};

}  // namespace svod

#endif  // SVOD_IR_ACCESS_ORDER_H_
