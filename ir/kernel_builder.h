// KernelBuilder: writes a kernel statement by statement, in program order, as text does.
// Included by the parser and by embedders. Must not know text.
#ifndef SVOD_IR_KERNEL_BUILDER_H_
#define SVOD_IR_KERNEL_BUILDER_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/program.h"
#include "ir/ranges.h"
#include "ir/uop.h"

namespace svod {

// Statements happen in the order of the calls. Where two accesses of one buffer may touch the same
// element and nothing else orders them, the builder puts an AFTER between them; an access inside a
// loop of a buffer that may change is kept inside that loop. So the node graph means what the
// sequence of calls means.
//
// Errors stick: after a failed call every method returns null (and takes null), and Finish returns
// the first failure. One thread at a time.
class KernelBuilder {
 public:
  KernelBuilder(std::shared_ptr<Context> context, absl::string_view name);

  Context& context() { return *context_; }
  const absl::Status& status() const { return status_; }

  // Parameters take slots 0, 1, 2, ...; `shape` holds index expressions or constants.
  const UOp* Param(absl::string_view name, DType element, absl::Span<const UOp* const> shape,
                   Access access);
  const UOp* Param(absl::string_view name, DType element, std::initializer_list<int64_t> shape,
                   Access access);
  const UOp* Variable(absl::string_view name, int64_t min, int64_t max);
  const UOp* CoreId(const UOp* launch_size);
  const UOp* Reg(DType element, int64_t size);
  const UOp* Local(DType element, int64_t size);

  // Opens a loop; statements up to End are its body.
  const UOp* Range(const UOp* end, AxisKind kind = AxisKind::kLoop);
  const UOp* Range(int64_t end, AxisKind kind = AxisKind::kLoop);
  // Closes the innermost open loop, which must be `range`. An empty `effects` means every store and
  // closed loop of the body that no other node takes up.
  const UOp* End(const UOp* range, absl::Span<const UOp* const> effects = {});
  // Folds `value` over the innermost open ranges, outermost first, and closes them.
  const UOp* Reduce(ReduceKind kind, const UOp* value, absl::Span<const UOp* const> ranges);

  struct AccessOptions {
    const UOp* gate = nullptr;  // bool; null: none
    const UOp* alt = nullptr;   // loads: the value where the gate is false; null: 0
    int64_t alignment = 0;      // [bytes]; 0: that of one element
    int lanes = 1;              // loads: elements from a scalar position on
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

  // Ends the kernel. Loops must be closed. `effects` as for End.
  // Errors: the first failed call's, or FailedPrecondition for an open loop.
  absl::StatusOr<const UOp*> Finish(absl::Span<const UOp* const> effects = {},
                                    absl::Span<const absl::string_view> opts = {});

 private:
  struct AccessRecord {
    const UOp* node;   // the LOAD or STORE
    const UOp* index;  // its INDEX
    int lanes;
    bool is_store;
    int depth;                      // open loops around it when it was made
    std::vector<const UOp*> loops;  // those loops, outermost first
  };
  struct OpenLoop {
    const UOp* range;
    std::vector<const UOp*> effects;
  };

  const UOp* Fail(absl::Status status);
  const UOp* Ordered(const UOp* buffer, const UOp* position, const UOp* gate, const UOp* value,
                     int lanes, bool is_store);
  bool MayOverlap(const AccessRecord& earlier, const UOp* position, int lanes);
  void TakeUp(absl::Span<const UOp* const> sources);
  void AddEffect(const UOp* effect);

  std::shared_ptr<Context> context_;
  std::string name_;
  absl::Status status_;
  int64_t next_slot_ = 0, next_scratch_ = 0, next_axis_ = 0;
  std::vector<OpenLoop> loops_;  // loops_[0] is the kernel itself, with a null range
  absl::flat_hash_map<const UOp*, std::vector<AccessRecord>> accesses_;  // by base buffer
  absl::flat_hash_map<const UOp*, const UOp*> end_of_;                   // RANGE -> END or REDUCE
  RangeAnalysis ranges_;
};

}  // namespace svod

#endif  // SVOD_IR_KERNEL_BUILDER_H_
