// The parser's check that a line has the parts of its op, before it gets a node.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/parser.h"
#include "ir/syntax.h"

namespace svod {

bool Parser::CheckParts() {
  if (statement_.composite != nullptr) return CheckOperatorParts();
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
