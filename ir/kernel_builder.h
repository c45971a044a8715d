// KernelBuilder: writes a kernel statement by statement, in program order, as text does.
// Included by the parser and by embedders. Must not know text.
#ifndef SVOD_IR_KERNEL_BUILDER_H_
#define SVOD_IR_KERNEL_BUILDER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/access_order.h"
#include "ir/program.h"
#include "ir/uop.h"

namespace svod {

// Statements happen in the order of the calls. Where two accesses of one buffer may touch the same
// element and nothing else orders them, the builder puts an AFTER between them (see AccessOrder);
// an access of a buffer that may change is kept inside every loop that is open. So the node graph
// means what the sequence of calls means.
//
// Errors stick: after a failed call every method returns null (and takes null), and Finish returns
// the first failure. Operands are nodes that this builder returned, constants of its context, or
// arithmetic on them. One thread at a time.
class KernelBuilder {
 public:
  KernelBuilder(std::shared_ptr<Context> context, absl::string_view name);

  Context& context() { return *context_; }
  const absl::Status& status() const { return status_; }
  // The earlier statement, or the operand of the failed call, that the failure is about, if any.
  const UOp* culprit() const { return culprit_; }
  const UOp* bad_operand() const { return bad_operand_; }

  // Parameters take slots 0, 1, 2, ... unless told theirs; `shape` holds index expressions.
  const UOp* Param(absl::string_view name, DType element, absl::Span<const UOp* const> shape,
                   Access access, int64_t slot = -1);
  const UOp* Param(absl::string_view name, DType element, std::initializer_list<int64_t> shape,
                   Access access);
  const UOp* Variable(absl::string_view name, int64_t min, int64_t max);
  const UOp* CoreId(const UOp* launch_size);
  // Scratch arrays of `size` elements; ids are 0, 1, 2, ... over both kinds unless told.
  const UOp* Reg(DType element, int64_t size, int64_t id = -1);
  const UOp* Local(DType element, int64_t size, int64_t id = -1);

  // Opens a loop; statements up to End are its body. Axes are 0, 1, 2, ... unless told.
  const UOp* Range(const UOp* end, AxisKind kind = AxisKind::kLoop, int64_t axis = -1);
  const UOp* Range(int64_t end, AxisKind kind = AxisKind::kLoop);
  const UOp* Range(int end, AxisKind kind = AxisKind::kLoop) { return Range(int64_t{end}, kind); }
  // Closes the innermost open loop, which must be `range`. Empty `effects` mean every store and
  // closed loop of the body that no other effect takes up; a list must take up all of them.
  const UOp* End(const UOp* range, absl::Span<const UOp* const> effects = {});
  // Folds `value` over the innermost open ranges, given outermost first, and closes them. Several
  // reduces may follow one another over the same ranges; their values are made before the first.
  const UOp* Reduce(ReduceKind kind, const UOp* value, absl::Span<const UOp* const> ranges);

  struct AccessOptions {
    const UOp* gate = nullptr;  // bool; null: none
    const UOp* alt = nullptr;   // loads: the value where the gate is false; null: 0
    int64_t alignment = 0;      // [bytes]; 0: that of one element
    int lanes = 1;              // loads: elements from a scalar position on
    bool is_stream = false;     // stores: see AlignmentArgument
    bool exact = false;         // takes `buffer` as it is: no order is added
  };
  // `position` counts elements; several positions are row-major coordinates of the shape.
  const UOp* Load(const UOp* buffer, absl::Span<const UOp* const> position,
                  const AccessOptions& options);
  const UOp* Load(const UOp* buffer, const UOp* position) { return Load(buffer, {position}, {}); }
  const UOp* Store(const UOp* buffer, absl::Span<const UOp* const> position, const UOp* value,
                   const AccessOptions& options);
  const UOp* Store(const UOp* buffer, const UOp* position, const UOp* value) {
    return Store(buffer, {position}, value, {});
  }
  // An explicit order: `buffer` after `others`.
  const UOp* After(const UOp* buffer, absl::Span<const UOp* const> others);

  // Any other op (arithmetic, vectors, casts), with its dtype where the op table wants one.
  const UOp* Make(Op op, absl::Span<const UOp* const> sources, const Argument& argument = {});
  const UOp* Make(Op op, DType dtype, absl::Span<const UOp* const> sources,
                  const Argument& argument = {});

  // Ends the kernel: its SINK. Loops must be closed. `effects` as for End.
  // Errors: the first failed call's; FailedPrecondition for an open loop; InvalidArgument for a
  // parameter that nothing uses, or an effect that is not performed.
  absl::StatusOr<const UOp*> Finish(absl::Span<const UOp* const> effects = {},
                                    absl::Span<const absl::string_view> opts = {});

 private:
  const UOp* Fail(absl::Status status, const UOp* culprit = nullptr);
  const UOp* FailInvalid(absl::string_view message, const UOp* culprit = nullptr);
  const UOp* MakeNode(Op op, DType dtype, absl::Span<const UOp* const> sources,
                      const Argument& argument);
  bool FinishReduces();
  // Whether `node` may be an operand here; fails otherwise. `in_reduced`: the loops that the last
  // reduce closed count as open.
  bool Admit(const UOp* node, bool in_reduced = false);
  bool Reject(const UOp* operand, absl::string_view message);
  bool AdmitAll(absl::Span<const UOp* const> nodes);
  bool AdmitForeign(const UOp* node);
  bool AdmitEffects(absl::Span<const UOp* const> effects);
  bool CompleteEffects(absl::Span<const UOp* const> given, std::vector<const UOp*>* effects);
  bool PerformAll(const UOp* closer);
  const UOp* Scratch(Op op, DType element, int64_t size, int64_t id);
  const UOp* Flatten(const UOp* buffer, absl::Span<const UOp* const> position);
  const UOp* MakeAccess(Op op, DType dtype, const UOp* buffer, const UOp* position,
                        const UOp* other, int lanes, const AccessOptions& options);

  std::shared_ptr<Context> context_;
  std::string name_;
  absl::Status status_;
  const UOp* culprit_ = nullptr;
  const UOp* bad_operand_ = nullptr;
  std::vector<const UOp*> params_;
  int64_t num_scratch_ = 0, num_axes_ = 0;
  absl::flat_hash_set<const UOp*> ranges_;  // all that were opened
  AccessOrder order_;
};

// Row-major position of `coordinates` in a buffer of `dims`, as arithmetic made by `make`, which
// may fail with null. Products with 1 and sums with 0 are left out.
using MakeIndexOp = absl::FunctionRef<const UOp*(Op op, const UOp* a, const UOp* b)>;
const UOp* RowMajor(absl::Span<const UOp* const> coordinates, absl::Span<const UOp* const> dims,
                    MakeIndexOp make);

}  // namespace svod

#endif  // SVOD_IR_KERNEL_BUILDER_H_
