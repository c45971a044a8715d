// The verifier's check that accesses of one buffer that may meet are in order.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ir/reachability.h"
#include "ir/status_macros.h"
#include "ir/verifier.h"

namespace svod {
namespace {

// Work on accesses that are not in sequence, in one kernel, before giving up: comparisons of two
// accesses, and of two classes of positions (see Access).
constexpr int64_t kMaxPairs = int64_t{1} << 28;
constexpr size_t kMaxClassPairs = size_t{1} << 20;
// Positions of one class further apart than this could meet by wrapping around.
constexpr int64_t kMaxSpread = int64_t{1} << 62;

struct Access {
  const UOp* node;
  const UOp* index;
  uint32_t place;
  int span;
  bool is_store;
  IntRange elements;
  // Positions of one class differ by constants, their offsets. A vector position is a class of its
  // own.
  uint32_t position_class = 0;
  int64_t offset = 0;
};
using Accesses = std::vector<Access>;

bool HasConflict(absl::Span<const Access> accesses) {
  return accesses.size() > 1 && std::any_of(accesses.begin(), accesses.end(),
                                            [](const Access& access) { return access.is_store; });
}

// Splits `accesses` where one interval ends before the next begins, and hands each part on.
template <typename Interval, typename Check>
absl::Status ForEachCluster(absl::Span<Access> accesses, Interval interval, Check check) {
  std::sort(accesses.begin(), accesses.end(), [&](const Access& a, const Access& b) {
    auto [a_min, a_max] = interval(a);
    auto [b_min, b_max] = interval(b);
    return a_min != b_min ? a_min < b_min : a.place < b.place;
  });
  size_t begin = 0;
  int64_t reach = 0;
  for (size_t i = 0; i <= accesses.size(); ++i) {
    bool is_apart = i == accesses.size() || (i > begin && interval(accesses[i]).first > reach);
    if (is_apart) {
      absl::Span<Access> cluster = accesses.subspan(begin, i - begin);
      if (HasConflict(cluster)) SVOD_RETURN_IF_ERROR(check(cluster));
      begin = i;
    }
    if (i == accesses.size()) break;
    int64_t max = interval(accesses[i]).second;
    reach = i == begin ? max : std::max(reach, max);
  }
  return absl::OkStatus();
}

class OrderCheck {
 public:
  explicit OrderCheck(Verifier& verifier) : v_(verifier) {}

  absl::Status Run() {
    absl::flat_hash_map<const UOp*, size_t> numbers;
    std::vector<Accesses> buffers;  // in the order of first access
    for (uint32_t place = 0; place < v_.nodes.size(); ++place) {
      const UOp* node = v_.nodes[place];
      bool is_store = node->op() == Op::kStore;
      if (!is_store && node->op() != Op::kLoad) continue;
      auto [it, is_new] = numbers.try_emplace(BaseBuffer(node->source(0)), buffers.size());
      if (is_new) buffers.emplace_back();
      buffers[it->second].push_back(
          {node, node->source(0), place, ConsecutiveElements(node), is_store, {}});
    }
    for (Accesses& accesses : buffers) {
      if (!HasConflict(accesses)) continue;
      if (!reach_.has_value()) reach_.emplace(v_.nodes);
      for (Access& access : accesses) Locate(access);
      SVOD_RETURN_IF_ERROR(ForEachCluster(
          absl::MakeSpan(accesses),
          [](const Access& a) { return std::make_pair(a.elements.min, a.elements.max); },
          [&](absl::Span<Access> cluster) { return CheckCluster(cluster); }));
    }
    return absl::OkStatus();
  }

 private:
  void Locate(Access& access) {
    const UOp* position = access.index->source(1);
    access.elements = v_.ranges.Of(position);
    if (__builtin_add_overflow(access.elements.max, access.span - 1, &access.elements.max)) {
      access.elements = IntRange::Full();
    }
    std::vector<uint64_t> key;
    auto add_node = [&](const UOp* node) { key.push_back(reinterpret_cast<uintptr_t>(node)); };
    if (position->dtype().is_vector()) {
      add_node(position);
    } else {
      Affine form = v_.ranges.AffineOf(position);
      access.offset = form.constant;
      for (const Term& term : form.terms) {
        key.push_back(static_cast<uint64_t>(term.coefficient));
        key.push_back(term.atoms.size());
        for (const Atom& atom : term.atoms) {
          add_node(atom.node);
          key.push_back(static_cast<uint64_t>(atom.lane));
        }
      }
    }
    auto [it, is_new] = classes_.try_emplace(std::move(key), classes_.size());
    access.position_class = static_cast<uint32_t>(it->second);
  }

  // A cluster of one class falls apart further by the offsets.
  absl::Status CheckCluster(absl::Span<Access> cluster) {
    bool is_one_class = true;
    int64_t lowest = cluster.front().offset, highest = lowest;
    for (const Access& access : cluster) {
      is_one_class = is_one_class && access.position_class == cluster.front().position_class;
      lowest = std::min(lowest, access.offset);
      highest = std::max(highest, access.offset);
    }
    bool is_close = lowest > -kMaxSpread / 2 && highest < kMaxSpread / 2;
    if (!is_one_class || !is_close) return CheckMeeting(cluster);
    return ForEachCluster(
        cluster, [](const Access& a) { return std::make_pair(a.offset, a.offset + a.span - 1); },
        [&](absl::Span<Access> part) { return CheckMeeting(part); });
  }

  absl::Status CheckMeeting(absl::Span<Access> accesses) {
    std::sort(accesses.begin(), accesses.end(),
              [](const Access& a, const Access& b) { return a.place < b.place; });
    SVOD_ASSIGN_OR_RETURN(bool is_sequence, IsSequence(accesses));
    return is_sequence ? absl::OkStatus() : CheckPairs(accesses);
  }

  // Whether every store comes after all before it and before all after it: the common case, and
  // cheap to see.
  absl::StatusOr<bool> IsSequence(absl::Span<const Access> accesses) {
    std::vector<std::pair<uint32_t, uint32_t>> open;
    const Access* store = nullptr;
    std::vector<const Access*> loads;  // since the last store
    bool is_sequence = true;
    auto ordered = [&](const Access* earlier, const Access* later) {
      std::optional<bool> is_reached = reach_->Quick(earlier->place, later->place);
      if (!is_reached.has_value()) open.push_back({earlier->place, later->place});
      is_sequence = is_sequence && is_reached.value_or(true);
    };
    for (const Access& access : accesses) {
      if (access.is_store) {
        for (const Access* load : loads) ordered(load, &access);
        if (store != nullptr && loads.empty()) ordered(store, &access);
        loads.clear();
        store = &access;
      } else {
        if (store != nullptr) ordered(store, &access);
        loads.push_back(&access);
      }
      if (!is_sequence) return false;
    }
    Reachability::Answer answer = reach_->FirstApart(open);
    if (answer.is_exhausted()) return Exhausted(accesses.front());
    return !answer.is_apart();
  }

  absl::Status CheckPairs(absl::Span<const Access> accesses) {
    int64_t num_accesses = static_cast<int64_t>(accesses.size());
    if (num_accesses > (int64_t{1} << 20)) return Exhausted(accesses.front());
    num_pairs_ += num_accesses * num_accesses / 2;
    if (num_pairs_ > kMaxPairs) return Exhausted(accesses.front());
    std::vector<uint32_t> places;
    for (const Access& access : accesses) places.push_back(access.place);
    Reachability::Answer answer = reach_->FirstApart(places, [&](size_t i, size_t j) {
      const Access &a = accesses[i], &b = accesses[j];
      return (a.is_store || b.is_store) && Meet(a, b);
    });
    if (answer.is_exhausted() || bounds_.size() > kMaxClassPairs)
      return Exhausted(accesses.front());
    if (!answer.is_apart()) return absl::OkStatus();
    return Unordered(accesses[answer.first], accesses[answer.second]);
  }

  // MayOverlap, with what it says of the two classes remembered.
  bool Meet(const Access& a, const Access& b) {
    if (a.elements.max < b.elements.min || b.elements.max < a.elements.min) return false;
    if (a.index->source(1)->dtype().is_vector() || b.index->source(1)->dtype().is_vector()) {
      return true;
    }
    int64_t distance;
    if (a.position_class == b.position_class) {
      distance =
          static_cast<int64_t>(static_cast<uint64_t>(a.offset) - static_cast<uint64_t>(b.offset));
      return -a.span < distance && distance < b.span;
    }
    if (a.position_class > b.position_class) return Meet(b, a);
    if (bounds_.size() > kMaxClassPairs) return true;  // CheckPairs gives up
    auto [it, is_new] = bounds_.try_emplace({a.position_class, b.position_class});
    if (is_new) {
      Affine difference =
          v_.ranges.AffineOf(a.index->source(1)) - v_.ranges.AffineOf(b.index->source(1));
      difference.constant = 0;
      it->second = BoundsOf(difference, v_.ranges);
    }
    if (it->second == IntRange::Full()) return true;
    __int128 offset = static_cast<__int128>(a.offset) - b.offset;
    return -a.span < it->second.max + offset && it->second.min + offset < b.span;
  }

  absl::Status Unordered(const Access& earlier, const Access& later) {
    return v_.Error(later.node, absl::StrCat("order against ", v_.Mention(earlier.node),
                                             ", which may touch the ", "same element of ",
                                             v_.Mention(BaseBuffer(later.index)),
                                             ", got none, expected one after the other"));
  }
  absl::Status Exhausted(const Access& access) {
    return v_.Error(access.node,
                    absl::StrCat("order of the accesses of ", v_.Mention(BaseBuffer(access.index)),
                                 ", got too many that may touch the same elements, expected fewer"),
                    absl::StatusCode::kResourceExhausted);
  }

  Verifier& v_;
  std::optional<Reachability> reach_;  // made when first needed
  absl::flat_hash_map<std::vector<uint64_t>, size_t> classes_;
  // Of the difference of two classes without their offsets, smaller class first.
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, IntRange> bounds_;
  int64_t num_pairs_ = 0;
};

}  // namespace

absl::Status VerifyAccessOrder(Verifier& verifier) { return OrderCheck(verifier).Run(); }

}  // namespace svod
