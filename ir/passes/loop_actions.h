// Loop actions: what may be done to the loops of a kernel to make it fast, as data.
// Included by the choice of actions, the pipeline and tools. Must not know targets.
#ifndef SVOD_IR_PASSES_LOOP_ACTIONS_H_
#define SVOD_IR_PASSES_LOOP_ACTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/pass.h"

namespace svod {

// Among a kernel's opts: its loops are as they were written, and whoever compiles it chooses
// actions.
inline constexpr absl::string_view kAutoOpt = "auto";

struct LoopAction {
  enum class Kind : uint8_t {
    kUpcast,  // a loop's counter becomes `amount` lanes of vectors
    kUnroll,  // `amount` iterations of a loop side by side, so that they share what they load
    kGroup,   // a REDUCE's counter becomes `amount` lanes, which are folded in a tree at the end
    kSplit,   // a loop of pieces, and a loop of `amount` iterations in it with the next free axis
    kSwap,    // a loop and the one directly inside it change places
    kMerge,   // a loop and the one directly inside it become one
    kPack,  // operands of sums that a loop's iterations share are computed once, in order, before;
            // `amount` of the loops inside are dimensions behind those of the sums
    kExchange,  // a REDUCE's loop goes around the loop it is in, `amount` iterations at a time
    kStream,    // vectors that a loop stores to parameters go past the caches
    kExpand,    // a REDUCE over short loops becomes a chain of its terms
    kDot,       // a REDUCE of products of bytes takes four at a time, as dot products
  };
  Kind kind = Kind::kUpcast;
  int64_t axis = 0;  // of the RANGE
  // At least 2; upcast and group: a power of two up to kMaxLanes; unroll: up to 64; exchange: 1 to
  // 64; pack: at least 1; swap, merge, stream, expand and dot: 1.
  int64_t amount = 1;

  bool operator==(const LoopAction&) const = default;
};

// Whether actions of a kind have an amount other than 1, which their text names.
bool HasAmount(LoopAction::Kind kind);
// "upcast(0, 16)", as a kernel's opts hold it.
std::string ToString(const LoopAction& action);
// Errors: InvalidArgument for another form, an unknown action, or amounts out of range.
absl::StatusOr<LoopAction> ParseLoopAction(absl::string_view text);

// Does one action to a kernel. The result computes the same bits, but for kGroup on float sums and
// products, whose tree is part of the action. When the amount does not divide the loop's constant
// extent, the last upcast, unrolled or split iterations begin earlier and overlap those before, and
// the last group is masked. Errors: InvalidArgument, saying why, when the action is not legal: no
// such loop, an extent below the amount or not constant where it must be, a loop that carries what
// another iteration reads, scratch memory that is filled anew in every iteration.
absl::StatusOr<const UOp*> ApplyLoopAction(const UOp* sink, const LoopAction& action,
                                           PassContext& context);

}  // namespace svod

#endif  // SVOD_IR_PASSES_LOOP_ACTIONS_H_
