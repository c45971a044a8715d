// UOp: the one node type of every program, and the Context that owns and interns nodes.
// Included by everyone. Must not know text, passes, buffers' contents or threads.
#ifndef SVOD_IR_UOP_H_
#define SVOD_IR_UOP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/dtype.h"
#include "ir/op.h"

namespace svod {

// Who may touch a parameter: loads need kIn or kInOut, stores kOut or kInOut.
enum class Access : uint8_t { kIn, kOut, kInOut };
enum class AxisKind : uint8_t { kLoop, kReduce };
enum class ReduceKind : uint8_t { kAdd, kMul, kMax, kMin, kAnd, kOr };
enum class ScatterKind : uint8_t { kSet, kAdd, kMul, kMax, kMin };

// Spellings in the text form: "inout", "loop", "add".
const char* ToString(Access access);
const char* ToString(AxisKind kind);
const char* ToString(ReduceKind kind);
const char* ToString(ScatterKind kind);

// The arguments. Strings and lists point into the context that made the node.
struct ConstArgument {
  uint64_t bits = 0;  // the scalar in its own format, zero-extended (i8 -1 is 0xff)
  bool operator==(const ConstArgument&) const = default;
};
struct VariableArgument {
  absl::string_view name;
  int64_t min = 0;  // inclusive
  int64_t max = 0;  // inclusive
  bool operator==(const VariableArgument&) const = default;
};
struct ParamArgument {
  int64_t slot = 0;
  Access access = Access::kIn;
  absl::string_view name;  // "" prints as p<slot>
  bool operator==(const ParamArgument&) const = default;
};
struct BufferArgument {
  int64_t id = 0;
  bool operator==(const BufferArgument&) const = default;
};
struct ScratchArgument {
  int64_t id = 0;
  int64_t size = 0;  // elements of the node's dtype
  bool operator==(const ScratchArgument&) const = default;
};
struct AlignmentArgument {
  int64_t bytes = 0;       // 0: the alignment of one element
  bool is_stream = false;  // a store that may bypass the caches, since nobody reads it soon
  bool operator==(const AlignmentArgument&) const = default;
};
struct AxisArgument {
  int64_t axis = 0;  // tells ranges of equal extent apart; unique in a kernel
  AxisKind kind = AxisKind::kLoop;
  bool operator==(const AxisArgument&) const = default;
};
struct ReduceArgument {
  ReduceKind kind = ReduceKind::kAdd;
  bool operator==(const ReduceArgument&) const = default;
};
struct FunctionArgument {
  bool is_kernel = true;
  absl::string_view name;
  absl::Span<const absl::string_view> opts;  // applied optimisations, as text
  bool operator==(const FunctionArgument&) const = default;
};
struct LanesArgument {
  absl::Span<const uint16_t> lanes;
  bool operator==(const LanesArgument&) const = default;
};
struct ViewArgument {
  int64_t byte_offset = 0;
  bool operator==(const ViewArgument&) const = default;
};
struct CustomArgument {
  absl::string_view kind;
  bool operator==(const CustomArgument&) const = default;
};
// Dimensions of source 0, 0 the outermost.
struct AxesArgument {
  absl::Span<const int64_t> axes;
  bool operator==(const AxesArgument&) const = default;
};
struct ReduceAxesArgument {
  ReduceKind kind = ReduceKind::kAdd;
  absl::Span<const int64_t> axes;  // ascending
  bool operator==(const ReduceAxesArgument&) const = default;
};
struct ScatterArgument {
  ScatterKind kind = ScatterKind::kSet;
  int64_t axis = 0;
  bool operator==(const ScatterArgument&) const = default;
};

// Its alternatives stand in the order of ArgumentKind.
using Argument = std::variant<std::monostate, ConstArgument, VariableArgument, ParamArgument,
                              BufferArgument, ScratchArgument, AlignmentArgument, AxisArgument,
                              ReduceArgument, FunctionArgument, LanesArgument, ViewArgument,
                              CustomArgument, AxesArgument, ReduceAxesArgument, ScatterArgument>;

// A content hash: equal programs have equal hashes in every context, process and run.
struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Hash128&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Hash128& hash) {
    return H::combine(std::move(h), hash.low);
  }
};
std::string ToString(const Hash128& hash);  // 32 hexadecimal digits

// An immutable node. Equal nodes of one context are one pointer. Lives as long as its context.
class UOp {
 public:
  Op op() const { return op_; }
  DType dtype() const { return dtype_; }
  absl::Span<const UOp* const> sources() const { return {sources_, num_sources_}; }
  const UOp* source(int i) const { return sources_[i]; }
  int num_sources() const { return static_cast<int>(num_sources_); }
  const Argument& argument() const { return argument_; }
  // The argument as T; the op table says which T an op has.
  template <typename T>
  const T& arg() const {
    return *std::get_if<T>(&argument_);
  }
  const Hash128& hash() const { return hash_; }
  // Creation number in its context, from 0; a source's is smaller than its user's.
  uint32_t id() const { return id_; }

 private:
  friend class Context;
  friend const UOp* BaseBuffer(const UOp* node);
  UOp() = default;
  Op op_;
  DType dtype_;
  uint32_t num_sources_;
  uint32_t id_;
  const UOp* const* sources_;
  const UOp* base_buffer_;
  Hash128 hash_;
  Argument argument_;
};

// Owns nodes and interns them. One thread at a time; different contexts are independent. Nodes are
// freed together with it, without recursion. Movable; not copyable.
class Context {
 public:
  Context();
  ~Context();
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;

  // The node {op, dtype, sources, argument}, made or found. `dtype` is only read for ops whose rule
  // is kExplicit (kVoid otherwise); all others infer it.
  // Errors: InvalidArgument when the row of the op table is not met: number of sources, kind of
  // argument, dtypes and classes of the operands.
  absl::StatusOr<const UOp*> Make(Op op, DType dtype, absl::Span<const UOp* const> sources,
                                  const Argument& argument = {});
  // The same for an op that infers its dtype.
  absl::StatusOr<const UOp*> Make(Op op, absl::Span<const UOp* const> sources,
                                  const Argument& argument = {}) {
    return Make(op, DType(), sources, argument);
  }

  // Constants. Integers wrap into the dtype; a double is rounded to it; vectors get a splat.
  const UOp* Bits(DType dtype, uint64_t bits);
  const UOp* Int(DType dtype, int64_t value);
  const UOp* Index(int64_t value) { return Int(Scalar::kIndex, value); }
  const UOp* Float(DType dtype, double value);
  const UOp* Bool(bool value) { return Int(Scalar::kBool, value ? 1 : 0); }

  // The same graph in this context, which may be another. Iterative.
  const UOp* Import(const UOp* root);

  // Whether this context made the node.
  bool Owns(const UOp* node) const;

  size_t num_nodes() const;
  size_t size_bytes() const;  // memory held by nodes, sources, strings and the table

 private:
  struct State;
  std::unique_ptr<State> state_;
  const UOp* Intern(Op op, DType dtype, absl::Span<const UOp* const> sources,
                    const Argument& argument);
};

// Checks one node against its row of the op table and gives its dtype.
absl::StatusOr<DType> CheckNode(Op op, DType dtype, absl::Span<const UOp* const> sources,
                                const Argument& argument);

// Every node reachable from `root`, sources before users; the order follows sources only, not
// addresses. Iterative, linear.
std::vector<const UOp*> Toposort(const UOp* root);

// The buffer (PARAM, BUFFER, REG, LOCAL, BUFFER_VIEW) below any AFTERs and an INDEX; null if none.
// Constant time: chains of AFTERs may be long.
inline const UOp* BaseBuffer(const UOp* node) { return node->base_buffer_; }

// A CONST's value. Signed dtypes are sign-extended; IsConst is false for other ops.
inline bool IsConst(const UOp* node) { return node->op() == Op::kConst; }
int64_t ConstInt(const UOp* node);
double ConstFloat(const UOp* node);
bool IsConstInt(const UOp* node, int64_t value);

// Conversions between a scalar's bits and double; f16, bf16 and f32 are rounded to nearest even.
double BitsToDouble(Scalar scalar, uint64_t bits);
uint64_t DoubleToBits(Scalar scalar, double value);

}  // namespace svod

#endif  // SVOD_IR_UOP_H_
