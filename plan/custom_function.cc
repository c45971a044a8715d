#include "plan/custom_function.h"

#include "absl/strings/str_cat.h"

namespace svod {

const std::shared_ptr<CustomFunctionRegistry>& CustomFunctionRegistry::Default() {
  static const auto* registry =
      new std::shared_ptr<CustomFunctionRegistry>(std::make_shared<CustomFunctionRegistry>());
  return *registry;
}

absl::Status CustomFunctionRegistry::Register(absl::string_view kind, CustomFunction function) {
  if (kind.empty() || function == nullptr) {
    return absl::InvalidArgumentError("custom function: an empty name or function");
  }
  std::lock_guard<std::mutex> lock(mutex_);
  auto made = std::make_shared<const CustomFunction>(std::move(function));
  if (!functions_.try_emplace(std::string(kind), std::move(made)).second) {
    return absl::InvalidArgumentError(
        absl::StrCat("custom function: \"", kind, "\" is registered already"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const CustomFunction>> CustomFunctionRegistry::Find(
    absl::string_view kind) const {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = functions_.find(kind);
  if (it == functions_.end()) {
    return absl::UnimplementedError(
        absl::StrCat("custom function: \"", kind, "\" is not registered"));
  }
  return it->second;
}

}  // namespace svod
