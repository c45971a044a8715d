#include "ir/op.h"

#include "absl/container/flat_hash_map.h"

namespace svod {

std::optional<Op> FindOp(absl::string_view text) {
  static const auto* const kByText = [] {
    auto* map = new absl::flat_hash_map<absl::string_view, Op>();
    for (int i = 0; i < kNumOps; ++i) map->emplace(kOpInfos[i].text, static_cast<Op>(i));
    return map;
  }();
  auto it = kByText->find(text);
  if (it == kByText->end()) return std::nullopt;
  return it->second;
}

}  // namespace svod
