#include "jit/llvm_status.h"

#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace svod {

absl::Status ToStatus(llvm::Error error, absl::string_view context) {
  if (!error) return absl::OkStatus();
  std::string reasons;
  bool exhausted = false;
  llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase& info) {
    absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", info.message());
    if (info.convertToErrorCode() == std::errc::not_enough_memory) exhausted = true;
  });
  std::string message = absl::StrCat(context, ": ", reasons);
  if (exhausted) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

}  // namespace svod
