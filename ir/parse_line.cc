// A line of a graph that stands alone, for the REPL.
#include "absl/strings/str_cat.h"
#include "ir/parser.h"
#include "ir/status_macros.h"
#include "ir/text.h"

namespace svod {

absl::StatusOr<GraphLine> Parser::RunLine(absl::Span<const GivenTensor> given,
                                          absl::Span<const int64_t> slots) {
  if (lexer_.text().size() >= kMaxTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat(lexer_.file(), ": text, got ",
                                                   lexer_.text().size(),
                                                   " bytes, expected less than ", kMaxTextBytes));
  }
  function_.file = std::string(lexer_.file());
  block_ = Block::kGraph;
  is_line_ = true;
  for (size_t i = 0; i < given.size(); ++i) {
    SVOD_ASSIGN_OR_RETURN(
        const UOp* param,
        context_->Make(Op::kParam, given[i].dtype, tensors_.ConstShape(given[i].shape),
                       ParamArgument{slots[i], Access::kIn, given[i].name}));
    values_.try_emplace(given[i].name, Value{param, 0, 0});
    given_.insert(given[i].name);
    function_.notes.try_emplace(param, NodeNote{given[i].name, 0, 0});
  }
  Advance();
  SkipNewlines();
  GraphLine line;
  auto is_name = [&] {
    return token_.kind == Token::Kind::kValue || token_.kind == Token::Kind::kWord;
  };
  while (error_.ok() && is_name() && (NextIs('=') || NextIs(','))) {
    statement_.names.push_back(token_);
    line.names.emplace_back(token_.text);
    Advance();
    if (!token_.Is(',')) break;
    Advance();
  }
  if (!line.names.empty() && !Expect('=', "after the name of a value")) return error_;
  if (!error_.ok() || !ParseStatement()) return error_;
  SkipNewlines();
  if (token_.kind != Token::Kind::kEnd) FailExpected("the end of the line");
  if (!error_.ok()) return error_;
  statement_.op_token = token_;
  for (size_t i = 0; i < line.names.size(); ++i) {
    function_.notes[results_[i]].name = line.names[i];
  }
  function_.root = Build(Op::kSink, DType(), results_, FunctionArgument{false, "line", {}});
  if (function_.root == nullptr) return error_;
  line.graph = std::move(function_);
  return line;
}

absl::StatusOr<GraphLine> ParseGraphLine(absl::string_view text, absl::string_view file,
                                         std::shared_ptr<Context> context,
                                         absl::Span<const GivenTensor> given) {
  std::vector<int64_t> slots(given.size());
  for (size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<int64_t>(i);
  SVOD_ASSIGN_OR_RETURN(GraphLine line, Parser(text, file, context, nullptr).RunLine(given, slots));
  // A graph's slots are 0, 1, 2, ...: once more, with those of what it depends on in front.
  std::vector<bool> used(given.size(), false);
  for (const UOp* node : Toposort(line.graph.root)) {
    if (node->op() == Op::kParam) used[static_cast<size_t>(node->arg<ParamArgument>().slot)] = true;
  }
  int64_t next = 0;
  for (bool wanted : {true, false}) {
    for (size_t i = 0; i < slots.size(); ++i) {
      if (used[i] == wanted) slots[i] = next++;
    }
  }
  return Parser(text, file, std::move(context), nullptr).RunLine(given, slots);
}

}  // namespace svod
