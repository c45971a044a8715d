// The parser's expressions: infix arithmetic, calls and brackets in graph blocks. They make the
// nodes that lines of their own would make.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/parser.h"

namespace svod {
namespace {

constexpr int kMaxExpressionDepth = 256;  // brackets in one another
constexpr size_t kMaxLiteralSteps = 512;  // literals and ops whose type waits for another operand

struct InfixOperator {
  absl::string_view text;
  int precedence;  // Python's: the higher binds the tighter
  Op op;
  bool swaps;  // x > y is y < x
};
constexpr InfixOperator kInfixOperators[] = {
    {"<", 0, Op::kCmpLt, false}, {"<=", 0, Op::kCmpLe, false}, {">", 0, Op::kCmpLt, true},
    {">=", 0, Op::kCmpLe, true}, {"==", 0, Op::kCmpEq, false}, {"!=", 0, Op::kCmpNe, false},
    {"+", 1, Op::kAdd, false},   {"-", 1, Op::kSub, false},    {"*", 2, Op::kMul, false},
    {"/", 2, Op::kFdiv, false},
};

bool IsNegativeNumber(const Token& token) {
  return token.kind == Token::Kind::kNumber && token.text[0] == '-';
}

// After a value, the sign of a number is an operator: %x -1.
const InfixOperator* FindInfix(const Token& token) {
  if (token.kind != Token::Kind::kSymbol && !IsNegativeNumber(token)) return nullptr;
  absl::string_view text = IsNegativeNumber(token) ? "-" : token.text;
  for (const InfixOperator& infix : kInfixOperators) {
    if (infix.text == text) return &infix;
  }
  return nullptr;
}

}  // namespace

bool Parser::NextIs(char symbol) const {
  Lexer ahead = lexer_;
  return ahead.Next().Is(symbol);
}

// Whether the next token begins an expression, and not the word of an op or of an attribute.
bool Parser::IsExpressionAhead() const {
  switch (token_.kind) {
    case Token::Kind::kWord:
      return IsLiteralWord(token_) || NextIs('(') || (FindGiven(token_.text) && !NextIs('='));
    case Token::Kind::kValue:
    case Token::Kind::kFunction:
    case Token::Kind::kNumber:
      return true;
    case Token::Kind::kSymbol:
      return token_.Is('(') || token_.Is('-');
    case Token::Kind::kEnd:
    case Token::Kind::kNewline:
    case Token::Kind::kString:
    case Token::Kind::kError:
      return false;
  }
  return false;
}

bool Parser::FindGiven(absl::string_view name) const { return given_.contains(name); }

bool Parser::EnterBrackets(const Token& token) {
  if (++depth_ <= kMaxExpressionDepth) return true;
  return Fail(token, absl::StrCat("brackets are nested too deep, expected at most ",
                                  kMaxExpressionDepth, " in one another"));
}

void Parser::LeaveBrackets() { --depth_; }

bool Parser::ParseExpressionStatement() {
  Token first = token_;
  Operand value;
  bool is_call = first.kind == Token::Kind::kWord && NextIs('(');
  if (!(is_call ? ParseCall(&value) : ParseUnary(&value))) return false;
  statement_.op_token = first;
  if (is_call && IsAtEndOfLine()) return FinishStatement(results_);
  if (is_call && !TakeOneResult(first, &value)) return false;
  if (!ParseInfix(&value, 0)) return false;
  if (!IsAtEndOfLine()) return FailExpected("an operator or the end of the line");
  return Resolve(&value, std::nullopt) && FinishStatement({value.node});
}

bool Parser::TakeOneResult(const Token& call, Operand* value) {
  if (results_.size() != 1) {
    return Fail(call, absl::StrCat(call.text, ": results, got ", results_.size(),
                                   ", expected one in an expression"));
  }
  if (results_[0]->dtype().is_void() && IsEffect(results_[0]->op())) {
    graph_uses_.push_back({results_[0], call});
  }
  *value = {call, Operand::Kind::kNode, results_[0], results_[0]->dtype()};
  return true;
}

bool Parser::ParseExpression(Operand* value) { return ParseUnary(value) && ParseInfix(value, 0); }

bool Parser::ParseUnary(Operand* value) {
  std::vector<Token> signs;
  while (token_.Is('-')) {
    signs.push_back(token_);
    Advance();
    if (depth_ > 0) SkipNewlines();
  }
  if (!error_.ok() || !ParsePrimary(value)) return false;
  for (; !signs.empty(); signs.pop_back()) {
    if (!BuildNested(Op::kNeg, signs.back(), {*value}, value)) return false;
  }
  return true;
}

// Operators of at least `min_precedence` to the right of `value`; equal ones group to the left.
bool Parser::ParseInfix(Operand* value, int min_precedence) {
  bool was_comparison = false;
  while (true) {
    if (depth_ > 0) SkipNewlines();
    const InfixOperator* infix = FindInfix(token_);
    if (!error_.ok()) return false;
    if (infix == nullptr || infix->precedence < min_precedence) return true;
    Token token = token_;
    if (infix->precedence == 0 && was_comparison) {
      return Fail(token, "comparisons do not chain, expected brackets around one");
    }
    was_comparison = infix->precedence == 0;
    if (IsNegativeNumber(token_)) {
      token.kind = Token::Kind::kSymbol;
      token.size = 1;
      token.text = token.text.substr(0, 1);
      token_.text.remove_prefix(1);
      ++token_.offset;
      ++token_.column;
      --token_.size;
    } else {
      Advance();
      if (depth_ > 0) SkipNewlines();
    }
    Operand right;
    if (!error_.ok() || !ParseUnary(&right) || !ParseInfix(&right, infix->precedence + 1)) {
      return false;
    }
    if (infix->swaps) std::swap(*value, right);
    if (!BuildInfix(infix->op, token, std::move(*value), std::move(right), value)) return false;
  }
}

bool Parser::ParsePrimary(Operand* value) {
  if (token_.kind == Token::Kind::kWord && !IsLiteralWord(token_)) {
    if (NextIs('(')) {
      Token call = token_;
      return ParseCall(value) && TakeOneResult(call, value);
    }
    if (FindGiven(token_.text)) return ParseValueOperand(value);
  }
  if (!token_.Is('(')) return ParseSimpleOperand(value);
  if (!EnterBrackets(token_)) return false;
  Advance();
  SkipNewlines();
  if (!error_.ok() || !ParseExpression(value)) return false;
  SkipNewlines();
  LeaveBrackets();
  return Expect(')', "after an expression");
}

bool Parser::ParseCall(Operand* value) {
  if (!EnterBrackets(token_)) return false;
  auto outer = std::make_unique<Statement>(std::exchange(statement_, Statement()));
  if (!ParseOp() || !Expect('(', "after the name of an op") || !ParseParts(')') || !CheckParts()) {
    return false;
  }
  LeaveBrackets();
  if (!Expect(')', "after the operands")) return false;
  if (statement_.composite != nullptr) {
    if (!BuildOperatorCall()) return false;
  } else {
    const UOp* node = BuildStatement();
    if (node == nullptr) return false;
    NotePlace(node, statement_.op_token);
    results_ = {node};
  }
  *value = {statement_.op_token, Operand::Kind::kNode, results_[0], results_[0]->dtype()};
  statement_ = std::move(*outer);
  return true;
}

bool Parser::BuildInfix(Op op, const Token& token, Operand left, Operand right, Operand* value) {
  std::optional<DType> dtype = left.dtype.has_value() ? left.dtype : right.dtype;
  if (op == Op::kFdiv && dtype.has_value() && !dtype->is_float()) {
    return Fail(token, absl::StrCat("'/' of ", ToString(*dtype),
                                    ", expected floats; integers take floordiv or cdiv"));
  }
  return BuildNested(op, token, {std::move(left), std::move(right)}, value);
}

// Until an operand beside it gives the literals their type.
bool Parser::Defer(Op op, const Token& token, absl::Span<const Operand> operands, Operand* value) {
  Operand waiting = {token, Operand::Kind::kLiteral, nullptr, std::nullopt};
  for (const Operand& operand : operands) {
    if (operand.steps.empty()) waiting.steps.push_back({operand.token, std::nullopt});
    waiting.steps.insert(waiting.steps.end(), operand.steps.begin(), operand.steps.end());
  }
  waiting.steps.push_back({token, op});
  if (waiting.steps.size() > kMaxLiteralSteps) {
    return Fail(token, "literals, got too many without a type, expected one such as '1:i32'");
  }
  *value = std::move(waiting);
  return true;
}

bool Parser::BuildNested(Op op, const Token& token, std::vector<Operand> operands, Operand* value) {
  bool may_wait = InfoOf(op).dtype_rule == DTypeRule::kSameAsOperands;
  for (const Operand& operand : operands) {
    may_wait = may_wait && operand.kind == Operand::Kind::kLiteral && !operand.dtype.has_value();
  }
  if (may_wait) return Defer(op, token, operands, value);
  Statement outer = std::exchange(statement_, Statement());
  statement_.op = op;
  statement_.op_token = token;
  statement_.operands = std::move(operands);
  if (!ResolveOperands(std::nullopt)) return false;
  const UOp* node = Build(op, DType(), OperandNodes(), {});
  if (node == nullptr) return false;
  NotePlace(node, token);
  *value = {token, Operand::Kind::kNode, node, node->dtype()};
  statement_ = std::move(outer);
  return true;
}

}  // namespace svod
