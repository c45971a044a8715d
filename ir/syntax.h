// Syntax: which parts the line of each op has, and which types go without saying.
// Included by the parser and the printer, so that the two agree. Must not know tokens.
#ifndef SVOD_IR_SYNTAX_H_
#define SVOD_IR_SYNTAX_H_

#include <optional>
#include <string>

#include "absl/types/span.h"
#include "ir/dtype.h"
#include "ir/op.h"

namespace svod {

// Which parts a line may have beside its operands.
struct Syntax {
  bool string = false, shape = false, address = false, keyword = false;
  const char* list = nullptr;      // what the list after the operands is, such as "the lanes, ..."
  const char* attributes[3] = {};  // null: none
  const char* flags[2] = {};       // bare words; null: none
};

Syntax SyntaxOf(Op op);

// Whether the line of an op ends with ": type".
bool TakesType(Op op);

// Where a line may stand: among the parameters, in a kernel or in a graph.
enum class Block : uint8_t { kHeader, kKernel, kGraph };

// Why `op` may not have a line there, as a message; "" when it may.
std::string WhyNotIn(Block block, Op op);

// The dtype that a literal without one takes as operand number `i`; nullopt when it needs to say.
// `known` holds the dtypes of all operands, nullopt for literals without one; `dtype` is the
// node's, where its text gives it (void where not).
//   Operands that must agree: that of the first operand which has one. A `where` condition: bool
//   with the branches' lanes. An extent, a launch size and a bound: index. A splat's operand: the
//   element of its dtype. What is padded with, scattered or assigned: that of the tensor it goes
//   into. (Positions are index, gates bool, stored values the buffer's element and
//   an `alt` the load's dtype; those are no plain operands.)
std::optional<DType> ExpectedDType(Op op, size_t i, absl::Span<const std::optional<DType>> known,
                                   DType dtype);

}  // namespace svod

#endif  // SVOD_IR_SYNTAX_H_
