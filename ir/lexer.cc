#include "ir/lexer.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace svod {
namespace {

constexpr size_t kMaxShown = 40;    // bytes of a token that a message repeats
constexpr size_t kMaxContext = 60;  // bytes of a long line shown on each side of the caret

bool IsWordChar(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; }
bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

bool IsValueNameChar(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '$'; }
bool IsFunctionNameChar(char c) { return IsValueNameChar(c) || c == '-'; }

std::string Describe(const Token& token) {
  if (token.kind == Token::Kind::kEnd) return "end of text";
  if (token.kind == Token::Kind::kNewline) return token.symbol == ';' ? "';'" : "end of line";
  absl::string_view sigil = token.kind == Token::Kind::kValue      ? "%"
                            : token.kind == Token::Kind::kFunction ? "@"
                                                                   : "";
  bool is_long = token.text.size() > kMaxShown;
  return absl::StrCat("'", sigil, token.text.substr(0, kMaxShown), is_long ? "..." : "", "'");
}

Token Lexer::Make(Token::Kind kind, size_t begin, size_t sigil) {
  Token token;
  token.kind = kind;
  token.offset = static_cast<uint32_t>(begin);
  token.size = static_cast<uint32_t>(at_ - begin);
  token.line = line_;
  token.column = static_cast<int>(begin - line_start_ - continuation_bytes_) + 1;
  token.text = text_.substr(begin + sigil, at_ - begin - sigil);
  return token;
}

Token Lexer::Fail(size_t begin, std::string message) {
  error_ = std::move(message);
  at_ = std::max(at_, std::min(begin + 1, text_.size()));
  return Make(Token::Kind::kError, begin);
}

size_t Lexer::CodePointAt(size_t at) const {
  auto byte = [&](size_t i) -> unsigned {
    return at + i < text_.size() ? static_cast<unsigned char>(text_[at + i]) : 0u;
  };
  unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\r' ? 1 : 0;
  size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and code points beyond U+10FFFF.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
      (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) {
    return 0;
  }
  return size;
}

// Moves to the next token of this line. False: *stop is an error.
bool Lexer::SkipBlanks(Token* stop) {
  while (at_ < text_.size()) {
    char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
      continue;
    }
    if (c != '/' || at_ + 1 >= text_.size() || text_[at_ + 1] != '/') return true;
    while (at_ < text_.size() && text_[at_] != '\n') {
      size_t size = CodePointAt(at_);
      if (size == 0) {
        *stop = Fail(at_, absl::StrFormat("byte 0x%02x in a comment, expected UTF-8 text",
                                          static_cast<unsigned char>(text_[at_])));
        return false;
      }
      continuation_bytes_ += size - 1;
      at_ += size;
    }
  }
  return true;
}

Token Lexer::Next() {
  Token stop;
  if (!SkipBlanks(&stop)) return stop;
  size_t begin = at_;
  if (at_ >= text_.size()) return Make(Token::Kind::kEnd, begin);
  char c = text_[at_];
  if (c == '\n') {
    ++at_;
    Token token = Make(Token::Kind::kNewline, begin);
    ++line_;
    line_start_ = at_;
    continuation_bytes_ = 0;
    return token;
  }
  if (c == '%' || c == '@') {
    auto is_name_char = c == '%' ? IsValueNameChar : IsFunctionNameChar;
    ++at_;
    while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
    if (at_ == begin + 1) {
      return Fail(begin,
                  absl::StrCat("name, expected letters or digits after '", std::string(1, c), "'"));
    }
    return Make(c == '%' ? Token::Kind::kValue : Token::Kind::kFunction, begin, 1);
  }
  if (absl::ascii_isdigit(c) || c == '-') return ReadNumber(begin);  // or a minus
  if (absl::ascii_isalpha(c) || c == '_') {
    while (at_ < text_.size() && IsWordChar(text_[at_])) ++at_;
    return Make(Token::Kind::kWord, begin);
  }
  if (c == '"') return ReadString(begin);
  constexpr absl::string_view kSymbols = ",:=()[]{}+*/<>";
  bool is_comparison = absl::string_view("<>=!").find(c) != absl::string_view::npos &&
                       at_ + 1 < text_.size() && text_[at_ + 1] == '=';
  if (c == ';' || is_comparison || kSymbols.find(c) != absl::string_view::npos) {
    at_ += is_comparison ? 2 : 1;
    Token token = Make(c == ';' ? Token::Kind::kNewline : Token::Kind::kSymbol, begin);
    token.symbol = c;
    return token;
  }
  size_t size = CodePointAt(at_);
  if (size == 0) {
    return Fail(begin,
                absl::StrFormat("byte 0x%02x, expected UTF-8 text", static_cast<unsigned char>(c)));
  }
  at_ += size;
  Token token = Fail(begin, absl::StrCat("character '", text_.substr(begin, size),
                                         "', expected a name, number, string or punctuation"));
  return token;
}

Token Lexer::ReadNumber(size_t begin) {
  if (text_[at_] == '-') ++at_;
  if (at_ < text_.size() && absl::ascii_isalpha(text_[at_])) {  // -inf
    while (at_ < text_.size() && IsWordChar(text_[at_])) ++at_;
    if (text_.substr(begin, at_ - begin) == "-inf") return Make(Token::Kind::kNumber, begin);
    at_ = begin + 1;
  }
  if (at_ == begin + 1 &&
      (at_ >= text_.size() || !(absl::ascii_isdigit(text_[at_]) || text_[at_] == '.'))) {
    Token minus = Make(Token::Kind::kSymbol, begin);
    minus.symbol = '-';
    return minus;
  }
  // Everything that looks like part of the number belongs to it, so that '1.2.3' is one error.
  while (at_ < text_.size()) {
    char c = text_[at_];
    bool is_sign = (c == '+' || c == '-') && absl::ascii_tolower(text_[at_ - 1]) == 'e' &&
                   absl::ascii_tolower(text_[std::min(begin + 1, at_ - 1)]) != 'x';
    if (!IsWordChar(c) && !is_sign) break;
    ++at_;
  }
  return Make(Token::Kind::kNumber, begin);
}

Token Lexer::ReadString(size_t begin) {
  size_t at = begin + 1;
  size_t continuation = 0;
  while (at < text_.size() && text_[at] != '"' && text_[at] != '\n') {
    size_t size = CodePointAt(at);
    if (size == 0) {
      return Fail(at, absl::StrFormat("byte 0x%02x in a string, expected UTF-8 text",
                                      static_cast<unsigned char>(text_[at])));
    }
    continuation += size - 1;
    at += size;
    bool escapes = text_[at - 1] == '\\' && at < text_.size();
    if (escapes && (text_[at] == '"' || text_[at] == '\\')) ++at;
  }
  if (at >= text_.size() || text_[at] == '\n') {
    at_ = at;
    return Fail(begin, "string, expected '\"' before the end of the line");
  }
  at_ = at + 1;
  Token token = Make(Token::Kind::kString, begin);
  continuation_bytes_ += continuation;
  return token;
}

absl::Status Lexer::ErrorAt(const Token& token, absl::string_view message) const {
  size_t begin = std::min<size_t>(token.offset, text_.size());
  size_t line_begin = begin == 0 ? 0 : text_.rfind('\n', begin - 1);
  line_begin = begin == 0 || line_begin == absl::string_view::npos ? 0 : line_begin + 1;
  size_t line_end = text_.find('\n', begin);
  if (line_end == absl::string_view::npos) line_end = text_.size();

  // Of a very long line only the surroundings are shown; cuts fall between code points.
  size_t from = begin - line_begin > 2 * kMaxContext ? begin - kMaxContext : line_begin;
  while (from > line_begin && IsContinuation(text_[from])) --from;
  size_t to = line_end - begin > 2 * kMaxContext ? begin + kMaxContext : line_end;
  while (to < line_end && IsContinuation(text_[to])) ++to;

  // Bytes that a terminal should not see become '?'.
  auto shown = [&](size_t i, std::string* out) {
    size_t size = CodePointAt(i);
    if (size == 0 || text_[i] == '\r') {
      out->push_back(text_[i] == '\r' ? ' ' : '?');
      return size_t{1};
    }
    out->append(text_.data() + i, size);
    return size;
  };
  std::string line = from > line_begin ? "..." : "";
  std::string caret = from > line_begin ? "   " : "";
  for (size_t i = from; i < to;) {
    if (i < begin) caret.push_back(text_[i] == '\t' ? '\t' : ' ');
    i += shown(i, &line);
  }
  if (to < line_end) line.append("...");
  caret.push_back('^');
  size_t end = std::min<size_t>(begin + token.size, to);
  for (size_t i = begin + 1; i < end; ++i) {
    if (!IsContinuation(text_[i])) caret.push_back('~');
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return absl::InvalidArgumentError(absl::StrCat(file_, file_.empty() ? "" : ":", token.line, ":",
                                                 token.column, ": ", message, "\n", line, "\n",
                                                 caret));
}

std::string QuoteString(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text), "\"");
}

absl::Status UnquoteString(absl::string_view quoted, std::string* out) {
  absl::string_view body = quoted.substr(1, quoted.size() - 2);
  out->clear();
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      out->push_back(body[i]);
      continue;
    }
    char escape = i + 1 < body.size() ? body[++i] : '\0';
    uint32_t byte = 0;
    if (escape == '"' || escape == '\\' || escape == '\'') {
      out->push_back(escape);
    } else if (escape == 'n' || escape == 't' || escape == 'r') {
      out->push_back(escape == 'n' ? '\n' : escape == 't' ? '\t' : '\r');
    } else if (escape == 'x' && i + 2 < body.size() &&
               absl::SimpleHexAtoi(body.substr(i + 1, 2), &byte) &&
               absl::ascii_isxdigit(body[i + 1])) {
      out->push_back(static_cast<char>(byte));
      i += 2;
    } else {
      return absl::InvalidArgumentError(
          "string escape, expected one of \\\" \\\\ \\' \\n \\t \\r or \\x and two hex digits");
    }
  }
  return absl::OkStatus();
}

}  // namespace svod
