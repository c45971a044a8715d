#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "ir/parser.h"
#include "ir/passes/apply_actions.h"
#include "ir/text.h"

namespace svod {
namespace {

constexpr int kMaxOptDepth = 64;  // brackets in one item of opts

bool IsNumbered(absl::string_view name) {
  return std::all_of(name.begin(), name.end(), absl::ascii_isdigit);
}

}  // namespace

Parser::Parser(absl::string_view text, absl::string_view file, std::shared_ptr<Context> context,
               const Module* known)
    : lexer_(text, file), context_(context), tensors_(std::move(context)) {
  if (known == nullptr) return;
  for (const Function& function : known->functions) {
    if (function.is_kernel()) kernels_[function.name()] = {function.root, 0};
  }
}

// --- Tokens -----------------------------------------------------------------------------------

void Parser::Advance() {
  end_ = token_.offset + token_.size;
  token_ = lexer_.Next();
  if (token_.kind == Token::Kind::kError) Fail(token_, lexer_.error());
}

void Parser::SkipNewlines() {
  while (token_.kind == Token::Kind::kNewline) Advance();
}

bool Parser::Fail(const Token& token, absl::string_view message) {
  if (error_.ok()) error_ = lexer_.ErrorAt(token, message);
  return false;
}

const UOp* Parser::FailNode(const Token& token, absl::string_view message) {
  Fail(token, message);
  return nullptr;
}

bool Parser::FailExpected(absl::string_view expected) {
  return Fail(token_, absl::StrCat("got ", Describe(token_), ", expected ", expected));
}

bool Parser::Accept(char symbol) {
  if (!token_.Is(symbol)) return false;
  Advance();
  return error_.ok();
}

bool Parser::Expect(char symbol, absl::string_view where) {
  if (!token_.Is(symbol)) {
    return FailExpected(absl::StrCat("'", std::string(1, symbol), "' ", where));
  }
  Advance();
  return error_.ok();
}

// --- Blocks -----------------------------------------------------------------------------------

absl::StatusOr<Module> Parser::Run() {
  if (lexer_.text().size() >= kMaxTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat(lexer_.file(), ": text, got ",
                                                   lexer_.text().size(),
                                                   " bytes, expected less than ", kMaxTextBytes));
  }
  module_.context = context_;
  Advance();
  for (SkipNewlines(); error_.ok() && token_.kind != Token::Kind::kEnd; SkipNewlines()) {
    if (!token_.IsWord("kernel") && !token_.IsWord("graph")) {
      FailExpected("'kernel' or 'graph'");
      break;
    }
    bool is_kernel = token_.text == "kernel";
    Advance();
    if (!error_.ok() || !ParseFunction(is_kernel)) break;
  }
  if (!error_.ok()) return error_;
  return std::move(module_);
}

bool Parser::ParseName(Token* label, std::string* name) {
  if (token_.kind != Token::Kind::kFunction) return FailExpected("a name such as '@main'");
  *label = token_;
  *name = std::string(token_.text);
  auto [it, is_new] = labels_.try_emplace(label->text, label->line);
  if (!is_new) {
    return Fail(*label,
                absl::StrCat("'@", label->text, "' is defined twice, first in line ", it->second));
  }
  Advance();
  if (token_.kind != Token::Kind::kString) return error_.ok();
  // The real name, where it is not what a label may be.
  absl::Status unquoted = UnquoteString(token_.text, name);
  if (!unquoted.ok()) return Fail(token_, unquoted.message());
  Advance();
  return error_.ok();
}

bool Parser::ParseFunction(bool is_kernel) {
  Token label;
  std::string name;
  if (!ParseName(&label, &name)) return false;
  function_ = Function();
  function_.file = std::string(lexer_.file());
  builder_ = is_kernel ? std::make_unique<KernelBuilder>(context_, name) : nullptr;
  values_.clear();
  opts_.clear();
  graph_uses_.clear();
  num_params_ = num_buffers_ = 0;
  root_.reset();
  block_ = Block::kHeader;
  depth_ = 0;
  if (!ParseHeader() || !ParseOpts()) return false;
  SkipNewlines();
  block_ = is_kernel ? Block::kKernel : Block::kGraph;
  if (!Expect('{', "before the body") || !ParseBody()) return false;
  return FinishFunction(label, name);
}

// Parameters, separated by ',', among statements that end with ';' and define their dimensions.
bool Parser::ParseHeader() {
  if (!Expect('(', "before the parameters")) return false;
  SkipNewlines();
  while (error_.ok() && !token_.Is(')')) {
    if (token_.kind != Token::Kind::kValue)
      return FailExpected("a parameter such as '%x: f32[64]'");
    Token name = token_;
    Advance();
    if (token_.Is('=')) {
      statement_ = Statement();
      statement_.names.push_back(name);
      Advance();
      if (!ParseStatement()) return false;
      if (token_.kind != Token::Kind::kNewline) return FailExpected("';' after a statement");
      SkipNewlines();
      continue;
    }
    if (!ParseParam(name)) return false;
    SkipNewlines();
    if (token_.Is(')')) break;
    if (!Expect(',', "or ')' after a parameter")) return false;
    SkipNewlines();
  }
  return Expect(')', "after the parameters");
}

bool Parser::ParseParam(const Token& name) {
  if (!Expect(':', "after the name of a parameter")) return false;
  Access access = Access::kIn;
  for (Access a : {Access::kIn, Access::kOut, Access::kInOut}) {
    if (token_.IsWord(ToString(a))) {
      access = a;
      Advance();
      break;
    }
  }
  statement_ = Statement();
  Shape shape;
  if (!ParseShape(&shape)) return false;
  if (!shape.has_dims) return FailExpected("dimensions such as '[64]', or '[]' for one element");
  // slot=2 "name": where they do not follow from place and label.
  int64_t slot = num_params_;
  if (token_.IsWord("slot")) {
    Token attribute = token_;
    Advance();
    if (!ParseAttribute(attribute) || !IntegerAttribute("slot", 0, &slot)) return false;
  }
  ++num_params_;
  std::string param_name = name.text == absl::StrCat("p", slot) ? "" : std::string(name.text);
  if (token_.kind == Token::Kind::kString) {
    absl::Status unquoted = UnquoteString(token_.text, &param_name);
    if (!unquoted.ok()) return Fail(token_, unquoted.message());
    Advance();
  }
  std::vector<const UOp*> dims;
  if (!ResolveDims(&shape.dims, &dims) || !CheckElements(shape, dims)) return false;
  statement_.op_token = name;
  const UOp* param;
  if (builder_ != nullptr) {
    param = builder_->Param(param_name, shape.dtype, dims, access, slot);
    if (param == nullptr) TakeBuilderError();
  } else {
    param = Build(Op::kParam, shape.dtype, dims, ParamArgument{slot, access, param_name});
    graph_uses_.push_back({param, name});
  }
  return param != nullptr && Define(name, param);
}

bool Parser::ParseOpts() {
  if (!token_.IsWord("opts")) return error_.ok();
  Advance();
  bool are_to_do = false;
  if (!Expect('=', "after 'opts'") || !Expect('[', "before the list of opts")) return false;
  while (error_.ok() && !token_.Is(']')) {
    const Token item = token_;
    if (!ParseOpt()) return false;
    if (builder_ != nullptr && are_to_do) {
      absl::Status is_action = ParseLoopAction(opts_.back()).status();
      if (!is_action.ok()) return Fail(item, is_action.message());
    }
    are_to_do = are_to_do || opts_.back() == kApplyOpt;
    if (token_.Is(']')) break;
    if (!Expect(',', "or ']' after an item of opts")) return false;
  }
  return Expect(']', "after the list of opts");
}

bool Parser::ParseOpt() {
  if (token_.kind == Token::Kind::kString) {
    opts_.emplace_back();
    absl::Status unquoted = UnquoteString(token_.text, &opts_.back());
    if (!unquoted.ok()) return Fail(token_, unquoted.message());
    Advance();
    return error_.ok();
  }
  uint32_t begin = token_.offset;
  std::string closers;  // of the brackets that are open
  while (error_.ok()) {
    if (closers.empty() && (token_.Is(',') || token_.Is(']'))) break;
    if (token_.kind == Token::Kind::kNewline || token_.kind == Token::Kind::kEnd ||
        token_.kind == Token::Kind::kString) {
      return FailExpected(closers.empty() ? "an item of opts such as 'upcast(0, 16)'"
                                          : absl::StrCat("'", closers.substr(closers.size() - 1),
                                                         "' in an item of opts"));
    }
    if (token_.Is('(') || token_.Is('[') || token_.Is('{')) {
      closers.push_back(token_.symbol == '(' ? ')' : token_.symbol == '[' ? ']' : '}');
      if (closers.size() > kMaxOptDepth) return Fail(token_, "brackets are nested too deep");
    } else if (token_.Is(')') || token_.Is(']') || token_.Is('}')) {
      if (closers.empty() || closers.back() != token_.symbol) {
        return FailExpected("balanced brackets in an item of opts");
      }
      closers.pop_back();
    }
    Advance();
  }
  if (!error_.ok()) return false;
  if (end_ <= begin) return FailExpected("an item of opts such as 'upcast(0, 16)'");
  opts_.emplace_back(lexer_.text().substr(begin, end_ - begin));
  return true;
}

bool Parser::ParseBody() {
  for (SkipNewlines(); error_.ok() && !token_.Is('}') && token_.kind != Token::Kind::kEnd;
       SkipNewlines()) {
    if (root_.has_value()) return FailExpected("'}' after the last line of the block");
    statement_ = Statement();
    while (token_.kind == Token::Kind::kValue) {
      statement_.names.push_back(token_);
      Advance();
      if (!in_graph() || !token_.Is(',')) break;
      Advance();
      SkipNewlines();
      if (token_.kind != Token::Kind::kValue) return FailExpected("the name of a value");
    }
    if (!statement_.names.empty() && !Expect('=', "after the name of a value")) return false;
    if (!ParseStatement()) return false;
  }
  return Expect('}', "at the end of the block");
}

bool Parser::FinishFunction(const Token& label, absl::string_view name) {
  std::vector<absl::string_view> opts(opts_.begin(), opts_.end());
  statement_ = Statement();
  statement_.op_token = label;
  std::vector<const UOp*> sources = root_.value_or(std::vector<const UOp*>());
  if (builder_ != nullptr) {
    absl::StatusOr<const UOp*> sink = builder_->Finish(sources, opts);
    if (!sink.ok()) return TakeBuilderError() != nullptr;
    function_.root = *sink;
    kernels_[label.text] = {function_.root, label.line};
  } else {
    function_.root = Build(Op::kSink, DType(), sources, FunctionArgument{false, name, opts});
    if (function_.root == nullptr || !CheckGraphUse(function_.root)) return false;
  }
  function_.notes[function_.root] = {std::string(label.text), label.line, label.column};
  module_.functions.push_back(std::move(function_));
  return true;
}

// A call that nothing returned depends on would silently not happen.
bool Parser::CheckGraphUse(const UOp* root) {
  absl::flat_hash_set<const UOp*> seen = {root};
  std::vector<const UOp*> stack = {root};
  while (!stack.empty()) {
    const UOp* node = stack.back();
    stack.pop_back();
    for (const UOp* source : node->sources()) {
      if (source->op() != Op::kSink && seen.insert(source).second) stack.push_back(source);
    }
  }
  for (const auto& [node, token] : graph_uses_) {
    if (seen.contains(node)) continue;
    bool is_param = node->op() == Op::kParam;
    return Fail(token, absl::StrCat(InfoOf(node->op()).text,
                                    is_param ? ": never used, expected a use of it"
                                             : ": nothing returned comes after it, expected "
                                               "an 'after' that names it"));
  }
  return true;
}

bool Parser::Define(const Token& name, const UOp* node) {
  auto [it, is_new] = values_.try_emplace(name.text, Value{node, name.line, name.column});
  if (!is_new) {
    return Fail(name, absl::StrCat("'%", name.text, "' is defined twice, first in line ",
                                   it->second.line, ", column ", it->second.column));
  }
  std::string note = IsNumbered(name.text) ? "" : std::string(name.text);
  auto [known, is_first] =
      function_.notes.try_emplace(node, NodeNote{note, name.line, name.column});
  if (!is_first && known->second.name.empty()) known->second.name = std::move(note);
  return true;
}

void Parser::NotePlace(const UOp* node, const Token& place) {
  function_.notes.try_emplace(node, NodeNote{"", place.line, place.column});
}

void Parser::NotePlaces(const UOp* node, size_t first_id, const Token& place) {
  std::vector<const UOp*> stack = {node};
  while (!stack.empty()) {
    const UOp* next = stack.back();
    stack.pop_back();
    if (next->id() < first_id) continue;
    if (!function_.notes.try_emplace(next, NodeNote{"", place.line, place.column}).second) continue;
    stack.insert(stack.end(), next->sources().begin(), next->sources().end());
  }
}

const UOp* Parser::TakeBuilderError() {
  if (!error_.ok()) return nullptr;
  absl::string_view message = builder_->status().message();
  if (const UOp* operand = builder_->bad_operand()) {
    for (const std::vector<Operand>* list : {&statement_.operands, &statement_.coordinates}) {
      for (const Operand& o : *list) {
        if (o.node == operand) return FailNode(o.token, message);
      }
    }
    for (const Attribute& attribute : statement_.attributes) {
      if (attribute.value.node == operand) return FailNode(attribute.value.token, message);
    }
  }
  return FailAt(builder_->culprit(), message);
}

const UOp* Parser::FailAt(const UOp* culprit, absl::string_view message) {
  if (!error_.ok()) return nullptr;
  auto note = function_.notes.find(culprit);
  if (culprit == nullptr || note == function_.notes.end() || note->second.line == 0) {
    return FailNode(statement_.op_token, message);
  }
  // The place of an earlier statement: read up to it once more.
  Lexer again(lexer_.text(), lexer_.file());
  Token token = again.Next();
  while (token.kind != Token::Kind::kEnd &&
         (token.line != note->second.line || token.column != note->second.column)) {
    token = again.Next();
  }
  return FailNode(token, message);
}

absl::StatusOr<Module> ParseModule(absl::string_view text, absl::string_view file,
                                   std::shared_ptr<Context> context, const Module* known) {
  return Parser(text, file, std::move(context), known).Run();
}

}  // namespace svod
