#include "ir/linearize.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/loop_sets.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

constexpr uint32_t kNone = ~uint32_t{0};
constexpr uint32_t kOpen = kNone - 1;  // a node whose sources are being visited

int64_t AxisOf(const UOp* range) { return range->arg<AxisArgument>().axis; }

// "end of axis 3", "store": what a message calls a node.
std::string Name(const UOp* node) {
  if (node->op() == Op::kRange) return absl::StrCat("range of axis ", AxisOf(node));
  if (node->op() == Op::kEnd) return absl::StrCat("end of axis ", AxisOf(node->source(0)));
  if (node->op() != Op::kReduce) return InfoOf(node->op()).text;
  std::string axes = absl::StrJoin(
      node->sources().subspan(1), ", ",
      [](std::string* out, const UOp* range) { absl::StrAppend(out, AxisOf(range)); });
  return absl::StrCat("reduce_", ToString(node->arg<ReduceArgument>().kind), " over axis ", axes);
}

// Every loop stands in one place of the tree of loops, given by its closers: the loops alive at
// them are those around it. A node then runs in the innermost loop alive at it. Two facts make the
// final order a matter of walking the postorder once: a node of a loop comes before the loop's
// closer in it (the loop set of the sink is empty, so every path to the sink passes a closer), and
// so does whatever the loop needs from outside.
class Linearizer {
 public:
  Linearizer(const UOp* sink, const UOp** culprit) : sink_(sink), culprit_(culprit) {}

  absl::StatusOr<LinearKernel> Run() {
    if (sink_->op() != Op::kSink) {
      return Fail(sink_, absl::StrCat("root, got ", InfoOf(sink_->op()).text, ", expected sink"));
    }
    SVOD_RETURN_IF_ERROR(Visit());
    SVOD_RETURN_IF_ERROR(CollectClosers());
    // Reduces that share a loop need all that any of them needs before the first can run.
    if (has_shared_loops_) SVOD_RETURN_IF_ERROR(Visit());
    SVOD_RETURN_IF_ERROR(FindLiveLoops());
    SVOD_RETURN_IF_ERROR(BuildTree());
    SVOD_RETURN_IF_ERROR(Place());
    Emit();
    return std::move(result_);
  }

 private:
  struct Loop {
    const UOp* range;
    std::vector<const UOp*> closers;
    uint32_t inner = kNone;  // the next range of the reduces that close this one
    uint32_t outer = kNone;  // the range before
    uint32_t around = 0;     // the set of loops that stand around it
    uint32_t parent = kNone;
    int depth = 0;  // 1 at the top; 0: not known yet
  };
  struct Item {
    const UOp* node;
    uint32_t loop;  // kNone: the node itself; else the whole loop, and `node` is its first closer
  };
  struct Frame {
    const UOp* node;
    const std::vector<const UOp*>* group;  // reduces visited as one; null: the node alone
    size_t member;
    int source;
  };

  absl::Status Fail(const UOp* node, absl::string_view what) {
    if (culprit_ != nullptr) *culprit_ = node;
    return absl::InvalidArgumentError(absl::StrCat("linearize: ", what));
  }

  uint32_t LoopOf(const UOp* range) const { return loop_numbers_.find(range)->second; }
  int64_t Axis(uint32_t loop) const { return AxisOf(loops_[loop].range); }

  // The reduces that share `node`'s loop, or null.
  const std::vector<const UOp*>* GroupOf(const UOp* node) const {
    if (!has_shared_loops_ || node->op() != Op::kReduce) return nullptr;
    const Loop& loop = loops_[LoopOf(node->source(1))];
    return loop.closers.size() > 1 ? &loop.closers : nullptr;
  }

  // Fills order_ and index_ with the postorder from the sink. Kernels that a graph calls are not
  // entered.
  absl::Status Visit() {
    order_.clear();
    index_.clear();
    std::vector<Frame> stack;
    auto open = [&](const UOp* node) {
      const std::vector<const UOp*>* group = GroupOf(node);
      if (group != nullptr) {
        for (const UOp* member : *group) index_[member] = kOpen;
      }
      stack.push_back({node, group, 0, 0});
    };
    index_[sink_] = kOpen;
    open(sink_);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const UOp* node = frame.group == nullptr ? frame.node : (*frame.group)[frame.member];
      if (frame.source == node->num_sources()) {
        frame.source = 0;
        if (frame.group != nullptr && ++frame.member < frame.group->size()) continue;
        absl::Span<const UOp* const> done(&node, 1);
        if (frame.group != nullptr) done = *frame.group;
        for (const UOp* member : done) {
          index_[member] = static_cast<uint32_t>(order_.size());
          order_.push_back(member);
        }
        stack.pop_back();
        continue;
      }
      const UOp* source = node->source(frame.source++);
      if (source->op() == Op::kSink) {
        if (node->op() == Op::kCall && !sink_->arg<FunctionArgument>().is_kernel) continue;
        return Fail(node, absl::StrCat(Name(node), ": source, got sink, expected a node of the ",
                                       "same kernel"));
      }
      auto [it, is_new] = index_.try_emplace(source, kOpen);
      if (is_new) {
        open(source);
      } else if (it->second == kOpen) {
        // Without groups a graph has no cycle, so some reduce waits for another of its own loop.
        return Fail(source, absl::StrCat(Name(source), ": used inside its own loop, by ",
                                         Name(node), ", expected only after its end"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CollectClosers() {
    for (const UOp* node : order_) {
      if (node->op() != Op::kRange) continue;
      loop_numbers_[node] = static_cast<uint32_t>(loops_.size());
      loops_.push_back({});
      loops_.back().range = node;
    }
    for (const UOp* node : order_) {
      if (node->op() == Op::kEnd) {
        uint32_t loop = LoopOf(node->source(0));
        SVOD_RETURN_IF_ERROR(AddCloser(loop, node));
        for (const UOp* effect : node->sources().subspan(1)) {
          auto [it, is_new] = listed_in_.try_emplace(effect, loop);
          if (!is_new && it->second != loop) {
            return Fail(effect,
                        absl::StrCat(Name(effect), ": listed by the ends of axis ",
                                     Axis(it->second), " and axis ", Axis(loop), ", expected one"));
          }
        }
      } else if (node->op() == Op::kReduce) {
        SVOD_RETURN_IF_ERROR(AddReduce(node));
      }
    }
    for (const Loop& loop : loops_) {
      if (loop.closers.empty()) {
        return Fail(loop.range,
                    absl::StrCat(Name(loop.range), ": never closed, expected an end or a reduce"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddCloser(uint32_t loop, const UOp* closer) {
    std::vector<const UOp*>& closers = loops_[loop].closers;
    if (!closers.empty()) {
      const UOp* first = closers.front();
      bool shared = first->op() == Op::kReduce && closer->op() == Op::kReduce &&
                    first->sources().subspan(1) == closer->sources().subspan(1);
      if (!shared || first == closer) {
        return Fail(closer, absl::StrCat(Name(loops_[loop].range), ": closed twice, by ",
                                         Name(first), " and by ", Name(closer), ", expected once"));
      }
      has_shared_loops_ = true;
    }
    closers.push_back(closer);
    return absl::OkStatus();
  }

  absl::Status AddReduce(const UOp* reduce) {
    if (reduce->num_sources() - 1 > kMaxLoopDepth) {
      return Fail(reduce, absl::StrCat("reduce: number of ranges, got ", reduce->num_sources() - 1,
                                       ", expected at most ", kMaxLoopDepth));
    }
    uint32_t outer = kNone;
    for (const UOp* range : reduce->sources().subspan(1)) {
      uint32_t loop = LoopOf(range);
      if (!loops_[loop].closers.empty() && loops_[loop].closers.back() == reduce) {
        return Fail(reduce, absl::StrCat(Name(reduce), ": names axis ", Axis(loop),
                                         " twice, expected each once"));
      }
      SVOD_RETURN_IF_ERROR(AddCloser(loop, reduce));
      loops_[loop].outer = outer;
      if (outer != kNone) loops_[outer].inner = loop;
      outer = loop;
    }
    return absl::OkStatus();
  }

  // The loops that a node ends; the first is the outermost.
  std::vector<uint32_t> ClosedBy(const UOp* node) const {
    std::vector<uint32_t> loops;
    if (node->op() == Op::kEnd) loops.push_back(LoopOf(node->source(0)));
    if (node->op() == Op::kReduce) {
      for (const UOp* range : node->sources().subspan(1)) loops.push_back(LoopOf(range));
    }
    return loops;
  }

  absl::Status FindLiveLoops() {
    live_.assign(order_.size(), 0);
    for (size_t i = 0; i < order_.size(); ++i) {
      const UOp* node = order_[i];
      const std::vector<const UOp*>* group = GroupOf(node);
      if (group != nullptr && node != group->front()) {
        live_[i] = live_[index_[group->front()]];
        continue;
      }
      absl::Span<const UOp* const> members(&node, 1);
      if (group != nullptr) members = *group;
      uint32_t set = 0;
      for (const UOp* member : members) {
        for (const UOp* source : member->sources()) {
          if (source->op() != Op::kSink) set = sets_.Union(set, live_[index_[source]]);
        }
      }
      std::vector<uint32_t> closed = ClosedBy(node);
      if (!closed.empty()) set = sets_.Without(set, closed);
      if (node->op() == Op::kRange) set = sets_.Union(set, sets_.Single(LoopOf(node)));
      if (IsEffect(node->op())) {
        // What an END lists belongs to its loop, dependent on the counter or not.
        auto listed = listed_in_.find(node);
        if (listed != listed_in_.end()) set = sets_.Union(set, sets_.Single(listed->second));
      }
      for (size_t k = 0; k < closed.size(); ++k) {
        loops_[closed[k]].around = k == 0 ? set : sets_.Single(closed[k - 1]);
      }
      if (sets_[set].size() > size_t{kMaxLoopDepth}) {
        return Fail(node, absl::StrCat(Name(node), ": open loops, got ", sets_[set].size(),
                                       ", expected at most ", kMaxLoopDepth));
      }
      live_[i] = set;
    }
    return absl::OkStatus();
  }

  // Gives every loop its depth and parent; iterative, since chains of loops may be long.
  absl::Status BuildTree() {
    std::vector<std::pair<uint32_t, size_t>> stack;
    std::vector<bool> is_open(loops_.size(), false);
    for (uint32_t root = 0; root < loops_.size(); ++root) {
      if (loops_[root].depth == 0) stack.push_back({root, 0});
      while (!stack.empty()) {
        auto& [number, next] = stack.back();
        Loop& loop = loops_[number];
        is_open[number] = true;
        const std::vector<uint32_t>& around = sets_[loop.around];
        if (next < around.size()) {
          uint32_t outer = around[next++];
          if (is_open[outer]) return FailInterleaved(outer, number);
          if (loops_[outer].depth == 0) stack.push_back({outer, 0});
          continue;
        }
        SVOD_ASSIGN_OR_RETURN(loop.parent, InnermostOf(loop.around));
        loop.depth = loop.parent == kNone ? 1 : loops_[loop.parent].depth + 1;
        if (loop.depth > kMaxLoopDepth) {
          return Fail(loop.range, absl::StrCat(Name(loop.range), ": depth of loops, got ",
                                               loop.depth, ", expected at most ", kMaxLoopDepth));
        }
        is_open[number] = false;
        stack.pop_back();
      }
    }
    for (const Loop& loop : loops_) {
      uint32_t needed = live_[index_[loop.range->source(0)]];
      for (uint32_t other : sets_[needed]) {
        if (!StandsAround(other, loop.parent)) {
          return Fail(loop.range, absl::StrCat(Name(loop.range), ": its end depends on axis ",
                                               Axis(other), ", expected only loops around it"));
        }
      }
    }
    return absl::OkStatus();
  }

  // Whether `outer` is `loop` or stands around it.
  bool StandsAround(uint32_t outer, uint32_t loop) const {
    while (loop != kNone && loop != outer) loop = loops_[loop].parent;
    return loop == outer;
  }

  // The innermost loop of a set, whose loops must all stand in one another; kNone if it is empty.
  absl::StatusOr<uint32_t> InnermostOf(uint32_t set) {
    if (innermost_.size() <= set) innermost_.resize(sets_.size(), kOpen);
    if (innermost_[set] != kOpen) return innermost_[set];
    uint32_t innermost = kNone;
    for (uint32_t loop : sets_[set]) {
      if (innermost == kNone || loops_[loop].depth > loops_[innermost].depth) innermost = loop;
    }
    size_t found = 0;
    for (uint32_t loop = innermost; loop != kNone; loop = loops_[loop].parent) {
      if (sets_.Contains(set, loop)) ++found;
    }
    if (found != sets_[set].size()) {
      for (uint32_t loop : sets_[set]) {
        if (!StandsAround(loop, innermost)) return FailInterleaved(loop, innermost);
      }
    }
    innermost_[set] = innermost;
    return innermost;
  }

  absl::Status FailInterleaved(uint32_t a, uint32_t b) {
    return Fail(loops_[b].range,
                absl::StrCat("loops of axis ", Axis(a), " and axis ", Axis(b),
                             ": would have to interleave, expected one inside the other or one "
                             "after the other"));
  }

  // A range is still alive at the sink: some user of it is not under its closer. Names the last
  // effect on a way to the range, or to an effect of its loop.
  absl::Status FailLeaked(uint32_t loop) {
    const UOp* user = sink_;
    const UOp* next = sink_;
    for (const UOp* node = sink_; next != nullptr; node = next) {
      if (node == sink_ || user == sink_ || IsEffect(node->op())) user = node;
      next = nullptr;
      for (const UOp* source : node->sources()) {
        auto listed = listed_in_.find(source);
        bool is_of_loop =
            source->op() == Op::kRange || (listed != listed_in_.end() && listed->second == loop);
        if (sets_.Contains(live_[index_[source]], loop)) {
          if (!is_of_loop) next = source;
          break;
        }
      }
    }
    return Fail(user,
                absl::StrCat(Name(loops_[loop].range), ": used after its end, by ", Name(user),
                             ", expected only under ", Name(loops_[loop].closers.front())));
  }

  // Sorts the nodes into the bodies of their loops.
  absl::Status Place() {
    bodies_.resize(loops_.size() + 1);  // the last is the kernel's own
    for (size_t i = 0; i < order_.size(); ++i) {
      const UOp* node = order_[i];
      SVOD_ASSIGN_OR_RETURN(uint32_t loop, InnermostOf(live_[i]));
      if (node == sink_) {
        if (loop != kNone) return FailLeaked(loop);
        continue;
      }
      if (node->op() == Op::kRange) {
        result_.loop_of[node] = node;
        continue;
      }
      if (loop != kNone) result_.loop_of[node] = loops_[loop].range;
      std::vector<Item>& body = bodies_[loop == kNone ? loops_.size() : loop];
      if (node->op() != Op::kEnd && node->op() != Op::kReduce) {
        body.push_back({node, kNone});
        continue;
      }
      uint32_t closed = LoopOf(node->source(node->op() == Op::kEnd ? 0 : 1));
      if (loops_[closed].closers.front() != node) continue;
      body.push_back({node, closed});
      for (; loops_[closed].inner != kNone; closed = loops_[closed].inner) {
        bodies_[closed].push_back({node, loops_[closed].inner});
      }
    }
    return absl::OkStatus();
  }

  void Emit() {
    for (Loop& loop : loops_) {
      if (loop.parent != kNone) result_.parent_loop[loop.range] = loops_[loop.parent].range;
      result_.closers[loop.range] = loop.closers;
    }
    result_.steps.reserve(order_.size() + loops_.size());
    std::vector<std::pair<uint32_t, size_t>> stack = {{static_cast<uint32_t>(loops_.size()), 0}};
    while (!stack.empty()) {
      auto& [number, next] = stack.back();
      if (next < bodies_[number].size()) {
        Item item = bodies_[number][next++];
        if (item.loop == kNone) {
          result_.steps.push_back({Step::Kind::kCompute, item.node});
        } else {
          result_.steps.push_back({Step::Kind::kLoopBegin, loops_[item.loop].range});
          stack.push_back({item.loop, 0});
        }
        continue;
      }
      stack.pop_back();
      if (number == loops_.size()) continue;
      const Loop& loop = loops_[number];
      result_.steps.push_back({Step::Kind::kLoopEnd, loop.range});
      if (loop.outer != kNone) continue;
      for (const UOp* closer : loop.closers) {
        result_.steps.push_back({Step::Kind::kCompute, closer});
      }
    }
  }

  const UOp* sink_;
  const UOp** culprit_;
  std::vector<const UOp*> order_;
  absl::flat_hash_map<const UOp*, uint32_t> index_;
  std::vector<Loop> loops_;
  absl::flat_hash_map<const UOp*, uint32_t> loop_numbers_;
  bool has_shared_loops_ = false;
  absl::flat_hash_map<const UOp*, uint32_t> listed_in_;  // effect -> loop of the END that lists it
  LoopSets sets_;
  std::vector<uint32_t> live_;       // by index: set of loops alive
  std::vector<uint32_t> innermost_;  // by set; kOpen: not known yet
  std::vector<std::vector<Item>> bodies_;
  LinearKernel result_;
};

}  // namespace

absl::StatusOr<LinearKernel> Linearize(const UOp* sink, const UOp** culprit) {
  return Linearizer(sink, culprit).Run();
}

}  // namespace svod
