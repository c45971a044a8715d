#include "ir/passes/stream_stores.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/open_loops.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

// Stores below this go through the caches on every target [bytes].
constexpr int64_t kMinStreamBytes = 16;

bool IsWholeVector(const UOp* store) {
  const UOp* index = store->source(0);
  return store->source(1)->dtype().is_vector() && !index->source(1)->dtype().is_vector() &&
         index->num_sources() == 2 && !store->source(1)->dtype().is_bool() &&
         store->source(1)->dtype().size_bytes() % kMinStreamBytes == 0;
}

}  // namespace

absl::StatusOr<const UOp*> StreamStores(const UOp* sink, int64_t axis, PassContext& context) {
  auto illegal = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("stream(", axis, "): ", what));
  };
  std::vector<const UOp*> order = Toposort(sink);
  OpenLoops open(order);
  const UOp* loop = nullptr;
  absl::flat_hash_set<const UOp*> loaded;
  for (const UOp* node : order) {
    if (node->op() == Op::kEnd && node->source(0)->arg<AxisArgument>().axis == axis) {
      loop = node->source(0);
    }
    if (node->op() == Op::kLoad) loaded.insert(BaseBuffer(node->source(0)));
  }
  if (loop == nullptr) return illegal("axis, got none of the kernel's loops");
  absl::flat_hash_map<const UOp*, const UOp*> replaced;
  std::vector<const UOp*> sources;
  for (const UOp* node : order) {
    sources.clear();
    for (const UOp* source : node->sources()) {
      auto it = replaced.find(source);
      sources.push_back(it == replaced.end() ? source : it->second);
    }
    Argument argument = node->argument();
    if (node->op() == Op::kStore && open.DependsOn(node, loop) && IsWholeVector(node)) {
      const UOp* buffer = BaseBuffer(node->source(0));
      if (buffer->op() == Op::kParam && !loaded.contains(buffer)) {
        std::get<AlignmentArgument>(argument).is_stream = true;
      }
    }
    if (sources == node->sources() && argument == node->argument()) continue;
    SVOD_ASSIGN_OR_RETURN(replaced[node],
                          context.context.Make(node->op(), node->dtype(), sources, argument));
  }
  if (replaced.empty()) {
    return illegal("expected a store of whole vectors to a parameter that is not loaded");
  }
  return replaced.at(sink);
}

}  // namespace svod
