// SVOD_RETURN_IF_ERROR and SVOD_ASSIGN_OR_RETURN: early returns for Status code.
// Included by .cc files and tests. Holds nothing else.
#ifndef SVOD_IR_STATUS_MACROS_H_
#define SVOD_IR_STATUS_MACROS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#define SVOD_RETURN_IF_ERROR(expression)       \
  do {                                         \
    absl::Status svod_status = (expression);   \
    if (!svod_status.ok()) return svod_status; \
  } while (false)

#define SVOD_CONCAT_INNER(a, b) a##b
#define SVOD_CONCAT(a, b) SVOD_CONCAT_INNER(a, b)

#define SVOD_ASSIGN_OR_RETURN(target, expression) \
  SVOD_ASSIGN_OR_RETURN_INNER(SVOD_CONCAT(svod_statusor_, __LINE__), target, expression)
#define SVOD_ASSIGN_OR_RETURN_INNER(statusor, target, expression) \
  auto statusor = (expression);                                   \
  if (!statusor.ok()) return statusor.status();                   \
  target = std::move(statusor).value()

namespace svod {

// The same status with "context: " before its message; OK stays OK.
inline absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

}  // namespace svod

#endif  // SVOD_IR_STATUS_MACROS_H_
