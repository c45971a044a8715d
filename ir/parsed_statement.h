// ParsedStatement: one line or call of the text, read but without its node yet.
// Included by the parser only. Must not know blocks.
#ifndef SVOD_IR_PARSED_STATEMENT_H_
#define SVOD_IR_PARSED_STATEMENT_H_

#include <optional>
#include <vector>

#include "ir/lexer.h"
#include "ir/operators/operator_table.h"
#include "ir/uop.h"

namespace svod {

// Words that are values: true, false, inf, nan.
inline bool IsLiteralWord(const Token& token) {
  return token.IsWord("true") || token.IsWord("false") || token.IsWord("inf") ||
         token.IsWord("nan");
}

struct LiteralStep {
  Token token;
  std::optional<Op> op;  // absent: the literal
};

struct ParsedOperand {
  enum class Kind : uint8_t { kNode, kLiteral, kKernel, kList, kWord };
  Token token;
  Kind kind = Kind::kNode;
  const UOp* node = nullptr;  // null for literals whose type is not known yet
  std::optional<DType> dtype;
  std::vector<ParsedOperand> items = {};  // of a list, whose token is its '['
  // Arithmetic on nothing but literals, whose type is not known yet: literals, each followed by the
  // ops that take what precedes them, as on a stack. Empty for a single literal.
  std::vector<LiteralStep> steps = {};
};

// "f32[64, %n]"
struct ParsedShape {
  Token token;
  DType dtype;
  bool has_dims = false;
  std::vector<ParsedOperand> dims;
};

struct ParsedAttribute {
  Token name;
  ParsedOperand value;
};

// Read by one grammar for all ops and operators; which parts one has is checked afterwards.
struct ParsedStatement {
  std::vector<Token> names;  // several for the results of an operator
  Token op_token;
  Op op = Op::kConst;
  const OperatorInfo* composite = nullptr;  // not null: an operator, not `op`
  ReduceKind reduce = ReduceKind::kAdd;
  ScatterKind scatter = ScatterKind::kSet;
  std::optional<Token> string;
  std::optional<ParsedShape> shape;  // before the operands: reg f32[4]
  std::vector<ParsedOperand> operands;
  std::optional<Token> address;  // the '[' of %x[...]
  std::vector<ParsedOperand> coordinates;
  std::optional<ParsedOperand> list;  // [0, 2]
  std::optional<Token> keyword;       // loop, reduce
  std::vector<ParsedAttribute> attributes;
  std::vector<Token> flags;         // bare words: exact, keep
  std::optional<ParsedShape> type;  // after ':'
};

}  // namespace svod

#endif  // SVOD_IR_PARSED_STATEMENT_H_
