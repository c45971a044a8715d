#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ir/parser.h"
#include "ir/syntax.h"

namespace svod {
namespace {

// Levenshtein distance, for names of a few letters.
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// " (did you mean 'mul'?)", or nothing if no op is spelled nearly so.
std::string Suggestion(absl::string_view word, bool in_graph) {
  constexpr size_t kMaxWord = 32;
  if (word.size() > kMaxWord) return "";
  std::string best;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  auto consider = [&](const std::string& name) {
    size_t distance = Distance(word, name);
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  };
  for (const OpInfo& info : kOpInfos) {
    if (!absl::StartsWith(info.text, "reduce")) consider(info.text);
  }
  for (int kind = 0; kind <= static_cast<int>(ReduceKind::kOr); ++kind) {
    consider(absl::StrCat("reduce_", ToString(static_cast<ReduceKind>(kind))));
  }
  for (int kind = 1; kind <= static_cast<int>(ScatterKind::kMin); ++kind) {
    consider(absl::StrCat("scatter_", ToString(static_cast<ScatterKind>(kind))));
  }
  if (in_graph) {
    for (const OperatorInfo& info : Operators()) consider(info.name);
  }
  return best.empty() ? "" : absl::StrCat(" (did you mean '", best, "'?)");
}

// ", expected axis or keep": what an operator takes by name.
std::string AttributeNames(const OperatorInfo& info) {
  std::string names = info.attributes.empty() ? ", expected none" : "";
  for (const AttributeInfo& attribute : info.attributes) {
    bool is_last = &attribute == &info.attributes.back();
    absl::StrAppend(&names,
                    names.empty() ? ", expected "
                    : is_last     ? " or "
                                  : ", ",
                    attribute.name);
  }
  return names;
}

}  // namespace

// --- Reading ----------------------------------------------------------------------------------

bool Parser::ParseStatement() {
  if (!is_line_ && (token_.IsWord("sink") || token_.IsWord("return"))) {
    Token word = token_;
    Advance();
    bool fits = block_ == (word.text == "sink" ? Block::kKernel : Block::kGraph);
    if (!fits || !statement_.names.empty()) {
      return Fail(word, absl::StrCat("got ", Describe(word), ", expected ",
                                     block_ == Block::kGraph    ? "'return'"
                                     : block_ == Block::kKernel ? "'sink'"
                                                                : "an op",
                                     fits ? " without a name" : ""));
    }
    return ParseRoot(word);
  }
  if (in_graph() && IsExpressionAhead()) return ParseExpressionStatement();
  if (token_.kind != Token::Kind::kWord) return FailExpected("an op");
  if (!ParseOp() || !ParseParts(0) || !CheckParts()) return false;
  if (statement_.composite != nullptr) return BuildOperatorCall() && FinishStatement(results_);
  const UOp* node = BuildStatement();
  return node != nullptr && FinishStatement({node});
}

bool Parser::FinishStatement(std::vector<const UOp*> results) {
  const std::vector<Token>& names = statement_.names;
  bool has_value = results.size() != 1 || !results[0]->dtype().is_void();
  results_ = results;
  if (has_value && names.empty() && is_line_) return true;
  if (has_value && names.empty()) {
    return Fail(statement_.op_token, absl::StrCat(statement_.op_token.text,
                                                  ": its value has no name, expected '%name = ",
                                                  statement_.op_token.text, " ...'"));
  }
  if (!names.empty() && names.size() != results.size()) {
    return Fail(names.back(),
                absl::StrCat("number of names, got ", names.size(), ", expected ", results.size(),
                             " for what ", statement_.op_token.text, " gives"));
  }
  if (is_line_) return true;
  for (size_t i = 0; i < results.size(); ++i) {
    const Token& place = names.empty() ? statement_.op_token : names[i];
    if (in_graph() && IsEffect(results[i]->op())) graph_uses_.push_back({results[i], place});
    if (names.empty()) {
      NotePlace(results[i], place);
    } else if (!Define(place, results[i])) {
      return false;
    }
  }
  return true;
}

bool Parser::ParseOp() {
  statement_.op_token = token_;
  absl::string_view word = token_.text;
  std::optional<Op> op;
  if (absl::ConsumePrefix(&word, "reduce_")) {
    for (int kind = 0; kind <= static_cast<int>(ReduceKind::kOr); ++kind) {
      statement_.reduce = static_cast<ReduceKind>(kind);
      if (word == ToString(statement_.reduce)) {
        op = in_graph() ? Op::kReduceAxis : Op::kReduce;
        break;
      }
    }
  } else if (absl::ConsumePrefix(&word, "scatter_")) {
    for (int kind = 1; kind <= static_cast<int>(ScatterKind::kMin); ++kind) {
      statement_.scatter = static_cast<ScatterKind>(kind);
      if (word == ToString(statement_.scatter)) {
        op = Op::kScatter;
        break;
      }
    }
  } else if (word != "reduce") {
    op = FindOp(word);
  }
  std::string reason = op.has_value() ? WhyNotIn(block_, *op) : "";
  if (!op.has_value() || !reason.empty()) {
    if (block_ == Block::kGraph) statement_.composite = FindOperator(token_.text);
    if (statement_.composite == nullptr) {
      return Fail(token_, op.has_value() ? reason
                                         : absl::StrCat("unknown op ", Describe(token_),
                                                        Suggestion(token_.text, in_graph())));
    }
  } else {
    statement_.op = *op;
  }
  Advance();
  return error_.ok();
}

bool Parser::IsAtEndOfLine() const {
  return token_.kind == Token::Kind::kNewline || token_.kind == Token::Kind::kEnd || token_.Is('}');
}

bool Parser::ParseParts(char close) {
  auto at_end = [&] { return close != 0 ? token_.Is(close) : IsAtEndOfLine(); };
  if (close != 0) SkipNewlines();
  if (!at_end() && !token_.Is(':')) {
    while (true) {
      if (!ParsePart()) return false;
      if (close != 0) SkipNewlines();
      if (!token_.Is(',')) break;
      Advance();
      SkipNewlines();
    }
  }
  if (!error_.ok()) return false;
  if (token_.Is(':')) {
    Advance();
    statement_.type.emplace();
    if (!ParseShape(&*statement_.type)) return false;
    if (close != 0) SkipNewlines();
  }
  if (at_end()) return error_.ok();
  return FailExpected(close != 0 ? "',' or ')'" : "',' or the end of the line");
}

bool Parser::ParsePart() {
  if (token_.kind == Token::Kind::kString) {
    if (statement_.string.has_value()) return FailExpected("one string");
    statement_.string = token_;
    Advance();
    return error_.ok();
  }
  if (token_.Is('[')) {
    if (statement_.list.has_value()) return FailExpected("one list");
    return ParseList(&statement_.list.emplace());
  }
  bool is_operand = in_graph() && IsExpressionAhead();
  if (token_.kind == Token::Kind::kWord && !IsLiteralWord(token_) && !is_operand) {
    Token word = token_;
    Advance();
    if (!error_.ok()) return false;
    if (token_.Is('=')) return ParseAttribute(word);
    if (IsFlag(word.text)) {
      statement_.flags.push_back(word);
      return true;
    }
    bool takes_shape = statement_.composite == nullptr && SyntaxOf(statement_.op).shape;
    if (takes_shape && !statement_.shape.has_value()) {
      statement_.shape.emplace();
      return ParseShapeAfter(word, &*statement_.shape);
    }
    return Fail(word, absl::StrCat("got ", Describe(word), ", expected an operand"));
  }
  Operand operand;
  may_be_address_ = !in_graph() && statement_.operands.empty();
  if (!ParseOperand(&operand)) return false;
  statement_.operands.push_back(std::move(operand));
  bool takes_keyword = statement_.composite == nullptr && SyntaxOf(statement_.op).keyword;
  if (token_.kind == Token::Kind::kWord && takes_keyword) {
    statement_.keyword = token_;
    Advance();
  }
  return error_.ok();
}

// Whether the op or operator takes the word as it stands.
bool Parser::IsFlag(absl::string_view word) const {
  if (statement_.composite != nullptr) {
    const AttributeInfo* info = FindAttributeInfo(word);
    return info != nullptr && info->kind == AttributeKind::kBool;
  }
  for (const char* flag : SyntaxOf(statement_.op).flags) {
    if (flag != nullptr && word == flag) return true;
  }
  return false;
}

bool Parser::ParseOperand(Operand* operand) {
  if (in_graph()) return ParseExpression(operand);
  return ParseSimpleOperand(operand);
}

bool Parser::ParseSimpleOperand(Operand* operand) {
  if (token_.kind == Token::Kind::kValue) return ParseValueOperand(operand);
  if (token_.kind == Token::Kind::kFunction) {
    auto it = kernels_.find(token_.text);
    if (it == kernels_.end()) {
      return Fail(token_, absl::StrCat("unknown kernel ", Describe(token_),
                                       ", expected one that is defined above"));
    }
    *operand = {token_, Operand::Kind::kKernel, it->second.first, std::nullopt};
    Advance();
    return error_.ok();
  }
  if (token_.kind == Token::Kind::kNumber || IsLiteralWord(token_)) {
    Token literal = token_;
    Advance();
    return error_.ok() && ParseLiteralOperand(literal, operand);
  }
  if (token_.kind == Token::Kind::kWord && !given_.empty()) {
    return Fail(token_,
                absl::StrCat("unknown value ", Describe(token_), ", expected one that is defined"));
  }
  return FailExpected("an operand");
}

bool Parser::ParseValueOperand(Operand* operand) {
  bool may_be_address = std::exchange(may_be_address_, false);
  auto it = values_.find(token_.text);
  if (it == values_.end()) {
    return Fail(token_, absl::StrCat("unknown value ", Describe(token_),
                                     ", expected one that is defined above"));
  }
  *operand = {token_, Operand::Kind::kNode, it->second.node, it->second.node->dtype()};
  Advance();
  if (!error_.ok() || !token_.Is('[')) return error_.ok();
  if (!may_be_address) {
    return FailExpected(in_graph() ? "no address in a graph"
                                   : "an address only of the first operand");
  }
  statement_.address = token_;
  Advance();
  SkipNewlines();
  while (error_.ok() && !token_.Is(']')) {
    Operand coordinate;
    if (!ParseOperand(&coordinate)) return false;
    statement_.coordinates.push_back(coordinate);
    SkipNewlines();
    if (token_.Is(']')) break;
    if (!Expect(',', "or ']' after a coordinate")) return false;
    SkipNewlines();
  }
  return Expect(']', "after the coordinates");
}

// "1.5:f32": the type of a literal stands right against it; the type of a line stands apart.
bool Parser::ParseLiteralOperand(const Token& literal, Operand* operand) {
  *operand = {literal, Operand::Kind::kLiteral, nullptr, std::nullopt};
  if (!token_.Is(':') || token_.offset != end_) return true;
  Advance();
  if (!error_.ok()) return false;
  if (token_.kind != Token::Kind::kWord || token_.offset != end_) {
    return FailExpected("the type of the literal right after ':'");
  }
  absl::StatusOr<DType> dtype = ParseDType(token_.text);
  if (!dtype.ok()) return Fail(token_, dtype.status().message());
  operand->dtype = *dtype;
  Advance();
  return error_.ok();
}

bool Parser::ParseList(Operand* list) {
  *list = {token_, Operand::Kind::kList, nullptr, std::nullopt};
  if (!EnterBrackets(token_)) return false;
  Advance();
  SkipNewlines();
  while (error_.ok() && !token_.Is(']')) {
    list->items.emplace_back();
    if (!ParseOperand(&list->items.back())) return false;
    SkipNewlines();
    if (token_.Is(']')) break;
    if (!Expect(',', "or ']' in a list")) return false;
    SkipNewlines();
  }
  LeaveBrackets();
  return Expect(']', "after a list");
}

bool Parser::ParseAttribute(const Token& name) {
  if (!Expect('=', "after the name of an attribute")) return false;
  if (FindAttribute(name.text) != nullptr) {
    return Fail(name, absl::StrCat("attribute ", Describe(name), " is given twice"));
  }
  Attribute attribute;
  attribute.name = name;
  if (!ParseAttributeValue(name, &attribute.value)) return false;
  statement_.attributes.push_back(std::move(attribute));
  return true;
}

bool Parser::ParseAttributeValue(const Token& name, Operand* value) {
  if (!in_graph()) return ParseOperand(value);
  if (statement_.composite == nullptr) {
    return token_.Is('[') ? ParseList(value) : ParseOperand(value);
  }
  const AttributeInfo* info = FindAttributeInfo(name.text);
  if (info == nullptr) {
    return Fail(name, absl::StrCat(statement_.op_token.text, " takes no attribute ", Describe(name),
                                   AttributeNames(*statement_.composite)));
  }
  bool is_word = info->kind == AttributeKind::kWord || info->kind == AttributeKind::kDType;
  if (!is_word) return token_.Is('[') ? ParseList(value) : ParseOperand(value);
  if (token_.kind != Token::Kind::kWord) {
    return FailExpected(info->kind == AttributeKind::kDType ? "a type such as f32" : "a word");
  }
  *value = {token_, Operand::Kind::kWord, nullptr, std::nullopt};
  Advance();
  return error_.ok();
}

bool Parser::ParseShape(Shape* shape) {
  if (token_.kind != Token::Kind::kWord) return FailExpected("a type such as f32");
  Token word = token_;
  Advance();
  return error_.ok() && ParseShapeAfter(word, shape);
}

bool Parser::ParseShapeAfter(const Token& word, Shape* shape) {
  shape->token = word;
  absl::StatusOr<DType> dtype = ParseDType(word.text);
  if (!dtype.ok()) return Fail(word, dtype.status().message());
  if (dtype->is_void()) return Fail(word, "got 'void', expected the type of a value");
  shape->dtype = *dtype;
  if (!token_.Is('[')) return true;
  shape->has_dims = true;
  if (!EnterBrackets(token_)) return false;
  Advance();
  SkipNewlines();
  while (error_.ok() && !token_.Is(']')) {
    shape->dims.emplace_back();
    if (!ParseOperand(&shape->dims.back())) return false;
    SkipNewlines();
    if (token_.Is(']')) break;
    if (!Expect(',', "or ']' after a dimension")) return false;
    SkipNewlines();
  }
  LeaveBrackets();
  return Expect(']', "after the dimensions");
}

bool Parser::ParseRoot(const Token& word) {
  statement_.op_token = word;
  statement_.op = Op::kSink;
  if (!ParseParts(0) || !CheckParts() || !ResolveOperands(std::nullopt)) return false;
  root_ = OperandNodes();
  return true;
}

}  // namespace svod
