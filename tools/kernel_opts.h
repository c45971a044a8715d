// KernelOpts: loop actions that the command line gives to kernels instead of those they have.
// Included by session.h. Must not print or read flags.
#ifndef SVOD_TOOLS_KERNEL_OPTS_H_
#define SVOD_TOOLS_KERNEL_OPTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/passes/loop_actions.h"
#include "ir/uop.h"

namespace svod {

class KernelOpts {
 public:
  // Each text is "ACTIONS", for every kernel, or "KERNEL=ACTIONS"; of two that fit a kernel the
  // later one counts. ACTIONS is "auto" or a list as opts hold it, "[upcast(0, 16)]".
  // Errors: InvalidArgument for what is no such text.
  static absl::StatusOr<KernelOpts> Parse(absl::Span<const std::string> texts);

  // The kernel as its text would be with those opts; itself when none are given for it. New nodes
  // are made in `context`, which need not be the kernel's. Threads: any, with contexts of their
  // own.
  const UOp* Apply(const UOp* sink, Context& context) const;
  // Errors: NotFound for a name that no kernel had so far.
  absl::Status CheckUsed() const;

 private:
  struct Entry;
  std::vector<std::shared_ptr<Entry>> entries_;
};

}  // namespace svod

#endif  // SVOD_TOOLS_KERNEL_OPTS_H_
