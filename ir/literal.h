// Literals of the text form: values as text and back.
// Included by the parser, the printer and tensor input. Must not know tokens.
#ifndef SVOD_IR_LITERAL_H_
#define SVOD_IR_LITERAL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/uop.h"

namespace svod {

// The bits (see ConstArgument) that `text` spells in `scalar`: "12", "-3.5e-7", "true", "inf",
// "-inf", "nan" (the quiet NaN), or "0x7fc00001", the bits themselves. Decimals round to the
// nearest value, ties to even; f16 and bf16 by way of f64.
// Errors: InvalidArgument when it is no literal of that type, or beyond the type's range.
absl::StatusOr<uint64_t> ParseLiteral(absl::string_view text, Scalar scalar);

// The shortest text that parses to `bits`.
std::string FormatLiteral(Scalar scalar, uint64_t bits);

}  // namespace svod

#endif  // SVOD_IR_LITERAL_H_
