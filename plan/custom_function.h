// CustomFunctionRegistry: functions of the host that a plan may call by name.
// Included by plan/ and embedders. Knows nothing of threads but its own lock.
#ifndef SVOD_PLAN_CUSTOM_FUNCTION_H_
#define SVOD_PLAN_CUSTOM_FUNCTION_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "plan/buffer.h"
#include "plan/prepared.h"

namespace svod {

// What a custom function is called with. The buffers are handles to the plan's own.
struct CustomCall {
  absl::Span<const Buffer> buffers;
  absl::Span<const UOp* const> attributes;
  const VariableMap& variables;  // set in the plan so far, overlaid by those fixed for this op
};

// Runs on the thread that executes the plan, alone in its level. May be called from different
// threads in turn. Unimplemented reaches the caller of Execute as it is; other errors get the op's
// id and kind before their message.
using CustomFunction = std::function<absl::Status(const CustomCall&)>;

// Names functions. Safe to use from any thread.
class CustomFunctionRegistry {
 public:
  // The process-wide one.
  static const std::shared_ptr<CustomFunctionRegistry>& Default();

  // Errors: InvalidArgument for an empty name or function, or a name that is taken.
  absl::Status Register(absl::string_view kind, CustomFunction function);
  // Errors: Unimplemented when there is none of that name.
  absl::StatusOr<std::shared_ptr<const CustomFunction>> Find(absl::string_view kind) const;

 private:
  mutable std::mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<const CustomFunction>> functions_;
};

}  // namespace svod

#endif  // SVOD_PLAN_CUSTOM_FUNCTION_H_
