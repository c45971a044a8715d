#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ir/parser.h"
#include "ir/syntax.h"

namespace svod {
namespace {

bool IsLiteralWord(const Token& token) {
  return token.IsWord("true") || token.IsWord("false") || token.IsWord("inf") ||
         token.IsWord("nan");
}

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
std::string Suggestion(absl::string_view word) {
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
  return best.empty() ? "" : absl::StrCat(" (did you mean '", best, "'?)");
}

}  // namespace

// --- Reading ----------------------------------------------------------------------------------

bool Parser::ParseStatement(Block block) {
  if (token_.kind != Token::Kind::kWord) return FailExpected("an op");
  if (token_.text == "sink" || token_.text == "return") {
    Token word = token_;
    Advance();
    bool fits = block == (word.text == "sink" ? Block::kKernel : Block::kGraph);
    if (!fits || statement_.name.has_value()) {
      return Fail(word, absl::StrCat("got ", Describe(word), ", expected ",
                                     block == Block::kGraph    ? "'return'"
                                     : block == Block::kKernel ? "'sink'"
                                                               : "an op",
                                     fits ? " without a name" : ""));
    }
    return ParseRoot(word);
  }
  if (!ParseOp(block) || !ParseParts() || !CheckParts()) return false;
  const UOp* node = BuildStatement();
  if (node == nullptr) return false;
  bool has_value = !node->dtype().is_void();
  if (has_value && !statement_.name.has_value()) {
    return Fail(statement_.op_token, absl::StrCat(statement_.op_token.text,
                                                  ": its value has no name, expected '%name = ",
                                                  statement_.op_token.text, " ...'"));
  }
  const Token& place = statement_.name.has_value() ? *statement_.name : statement_.op_token;
  if (block == Block::kGraph && IsEffect(node->op())) graph_uses_.push_back({node, place});
  if (statement_.name.has_value()) return Define(*statement_.name, node);
  function_.notes.try_emplace(node, NodeNote{"", place.line, place.column});
  return true;
}

bool Parser::ParseOp(Block block) {
  statement_.op_token = token_;
  absl::string_view word = token_.text;
  std::optional<Op> op;
  if (absl::ConsumePrefix(&word, "reduce_")) {
    for (int kind = 0; kind <= static_cast<int>(ReduceKind::kOr); ++kind) {
      statement_.reduce = static_cast<ReduceKind>(kind);
      if (word == ToString(statement_.reduce)) {
        op = block == Block::kGraph ? Op::kReduceAxis : Op::kReduce;
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
  if (!op.has_value()) {
    return Fail(token_, absl::StrCat("unknown op ", Describe(token_), Suggestion(token_.text)));
  }
  statement_.op = *op;
  std::string reason = WhyNotIn(block, *op);
  if (!reason.empty()) return Fail(token_, reason);
  Advance();
  return error_.ok();
}

bool Parser::ParseParts() {
  auto at_end = [&] {
    return token_.kind == Token::Kind::kNewline || token_.kind == Token::Kind::kEnd ||
           token_.Is('}') || token_.Is(':');
  };
  if (!at_end()) {
    while (true) {
      if (!ParsePart()) return false;
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
  }
  if (at_end() && !token_.Is(':')) return error_.ok();
  return FailExpected("',' or the end of the line");
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
  if (token_.kind == Token::Kind::kWord && !IsLiteralWord(token_)) {
    Token word = token_;
    Advance();
    if (!error_.ok()) return false;
    if (token_.Is('=')) return ParseAttribute(word);
    Syntax syntax = SyntaxOf(statement_.op);
    if (syntax.flags[0] != nullptr && word.text == syntax.flags[0]) {
      statement_.flags.push_back(word);
      return true;
    }
    if (syntax.shape && !statement_.shape.has_value()) {
      statement_.shape.emplace();
      return ParseShapeAfter(word, &*statement_.shape);
    }
    return Fail(word, absl::StrCat("got ", Describe(word), ", expected an operand"));
  }
  statement_.operands.emplace_back();
  if (!ParseOperand(&statement_.operands.back())) return false;
  if (token_.kind == Token::Kind::kWord && SyntaxOf(statement_.op).keyword) {
    statement_.keyword = token_;
    Advance();
  }
  return error_.ok();
}

bool Parser::ParseOperand(Operand* operand) {
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
  return FailExpected("an operand");
}

bool Parser::ParseValueOperand(Operand* operand) {
  auto it = values_.find(token_.text);
  if (it == values_.end()) {
    return Fail(token_, absl::StrCat("unknown value ", Describe(token_),
                                     ", expected one that is defined above"));
  }
  *operand = {token_, Operand::Kind::kNode, it->second.node, it->second.node->dtype()};
  Advance();
  if (!error_.ok() || !token_.Is('[')) return error_.ok();
  bool is_first = statement_.operands.size() == 1 && operand == &statement_.operands.front();
  if (!is_first) return FailExpected("an address only of the first operand");
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
  return Expect(']', "after a list");
}

bool Parser::ParseAttribute(const Token& name) {
  if (!Expect('=', "after the name of an attribute")) return false;
  if (FindAttribute(name.text) != nullptr) {
    return Fail(name, absl::StrCat("attribute ", Describe(name), " is given twice"));
  }
  Attribute attribute;
  attribute.name = name;
  bool is_list = token_.Is('[') && SyntaxOf(statement_.op).attributes_are_lists;
  if (!(is_list ? ParseList(&attribute.value) : ParseOperand(&attribute.value))) return false;
  statement_.attributes.push_back(std::move(attribute));
  return true;
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
  return Expect(']', "after the dimensions");
}

bool Parser::ParseRoot(const Token& word) {
  statement_.op_token = word;
  statement_.op = Op::kSink;
  if (!ParseParts() || !CheckParts() || !ResolveOperands(std::nullopt)) return false;
  root_ = OperandNodes();
  return true;
}

// --- Checking ---------------------------------------------------------------------------------

bool Parser::CheckParts() {
  Syntax syntax = SyntaxOf(statement_.op);
  auto refuse = [&](const Token& token, absl::string_view what) {
    return Fail(token, absl::StrCat(statement_.op_token.text, " takes no ", what));
  };
  auto require = [&](absl::string_view what) {
    return Fail(token_, absl::StrCat("got ", Describe(token_), ", expected ", what, " of ",
                                     statement_.op_token.text));
  };
  if (statement_.string.has_value() != syntax.string) {
    return syntax.string ? require("the name, a string,") : refuse(*statement_.string, "string");
  }
  if (syntax.shape && !(statement_.shape.has_value() && statement_.shape->has_dims)) {
    return require("the shape, such as f32[4],");
  }
  if (statement_.address.has_value() != syntax.address) {
    return syntax.address ? require("the address, such as %x[%i],")
                          : refuse(*statement_.address, "address");
  }
  if (statement_.list.has_value() != (syntax.list != nullptr)) {
    return syntax.list != nullptr ? require(absl::StrCat(syntax.list, ","))
                                  : refuse(statement_.list->token, "list");
  }
  for (const Attribute& attribute : statement_.attributes) {
    auto is_it = [&](const char* name) { return name != nullptr && attribute.name.text == name; };
    if (std::none_of(std::begin(syntax.attributes), std::end(syntax.attributes), is_it) ||
        (statement_.op == Op::kStore && attribute.name.text == "alt")) {
      return refuse(attribute.name, absl::StrCat("attribute ", Describe(attribute.name)));
    }
  }
  for (size_t i = 0; i < statement_.operands.size(); ++i) {
    bool is_kernel = statement_.operands[i].kind == Operand::Kind::kKernel;
    if (is_kernel != (statement_.op == Op::kCall && i == 0)) {
      return Fail(statement_.operands[i].token,
                  absl::StrCat(statement_.op_token.text, ": operand, got ",
                               Describe(statement_.operands[i].token), ", expected ",
                               is_kernel ? "a value" : "a kernel such as '@k'"));
    }
  }
  if (!statement_.type.has_value()) {
    if (TakesType(statement_.op) && statement_.op != Op::kLoad && statement_.op != Op::kConst) {
      return require("the type, such as ': f32',");
    }
    return true;
  }
  if (!TakesType(statement_.op)) {
    return refuse(statement_.type->token, "type: it follows from the operands");
  }
  if (statement_.type->has_dims != (statement_.op == Op::kBufferView)) {
    return Fail(statement_.type->token,
                absl::StrCat(statement_.op_token.text, ": type, expected it ",
                             statement_.type->has_dims ? "without" : "with", " dimensions"));
  }
  return true;
}

}  // namespace svod
