#include "jit/choose_streams.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"

namespace svod {

std::vector<LoopAction> ChooseStreams(const UOp* sink, const Target& target, PassContext& context) {
  std::vector<const UOp*> order = Toposort(sink);
  // Sizes that depend on variables count with the least they can be.
  auto bytes_of = [&](const UOp* param) {
    double bytes = param->dtype().size_bytes();
    for (const UOp* dimension : param->sources()) {
      bytes *= static_cast<double>(std::max<int64_t>(context.ranges.Of(dimension).min, 0));
    }
    return bytes;
  };
  absl::flat_hash_set<const UOp*> large;
  for (const UOp* node : order) {
    if (node->op() != Op::kParam) continue;
    if (bytes_of(node) > static_cast<double>(target.last_level_bytes)) large.insert(node);
  }
  if (large.empty()) return {};
  std::vector<LoopAction> actions;
  for (const UOp* node : order) {
    if (node->op() != Op::kEnd) continue;
    for (const UOp* effect : node->sources().subspan(1)) {
      if (effect->op() != Op::kStore || !large.contains(BaseBuffer(effect->source(0)))) continue;
      actions.push_back({LoopAction::Kind::kStream, node->source(0)->arg<AxisArgument>().axis, 1});
      break;
    }
  }
  return actions;
}

}  // namespace svod
