// Literals of the text form: values as text and back, and the types that follow without saying.
// Included by the parser, the printer and tensor input. Must not know tokens.
#ifndef SVOD_IR_LITERAL_H_
#define SVOD_IR_LITERAL_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/uop.h"

namespace svod {

// The bits (see ConstArgument) that `text` spells in `scalar`: "12", "-3.5e-7", "true", "inf",
// "-inf", "nan" (the quiet NaN), or "0x7fc00001", the bits themselves. Decimals round to the
// nearest value, ties to even; f16 and bf16 by way of f64.
// Errors: InvalidArgument when it is no literal of that type, or beyond the type's range.
absl::StatusOr<uint64_t> ParseLiteral(absl::string_view text, Scalar scalar);

// The shortest text that parses to `bits`.
std::string FormatLiteral(Scalar scalar, uint64_t bits);

// The dtype that a literal without one takes as operand number `i`; nullopt when it needs to say.
// `known` holds the dtypes of all operands, nullopt for literals without one; `dtype` is the
// node's, where its text gives it (void where not).
//   Operands that must agree: that of the first operand which has one. A `where` condition: bool
//   with the branches' lanes. An extent, a launch size and a bound: index. A splat's operand: the
//   element of its dtype. (Positions are index, gates bool, stored values the buffer's element and
//   an `alt` the load's dtype; those are no plain operands.)
std::optional<DType> ExpectedDType(Op op, size_t i, absl::Span<const std::optional<DType>> known,
                                   DType dtype);

}  // namespace svod

#endif  // SVOD_IR_LITERAL_H_
