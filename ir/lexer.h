// Lexer: cuts the text form into tokens and makes the messages that point into it.
// Included by the parser and the printer. Must not know ops or nodes.
#ifndef SVOD_IR_LEXER_H_
#define SVOD_IR_LEXER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace svod {

struct Token {
  enum class Kind : uint8_t {
    kEnd,       // end of the text
    kNewline,   // one or more line ends, or ';'
    kWord,      // add, f32x8, true
    kValue,     // %name; the text of the token is without '%'
    kFunction,  // @name; the text of the token is without '@'
    kNumber,    // 12, -3.5e-7, 0x7fc00001, -inf
    kString,    // "..."; the text of the token is with its quotes
    kSymbol,    // one of , : = ( ) [ ] { } + - * / < > <= >= == !=
    kError,     // Lexer::error() says what is wrong here
  };
  Kind kind = Kind::kEnd;
  char symbol = 0;      // the first character of kSymbol; ';' for a kNewline that is one
  uint32_t offset = 0;  // of the first byte, sigils included
  uint32_t size = 0;    // [bytes], sigils included
  int line = 1;
  int column = 1;  // in code points
  absl::string_view text;

  // Whether it is the symbol of that one character.
  bool Is(char c) const { return kind == Kind::kSymbol && symbol == c && size == 1; }
  bool IsWord(absl::string_view word) const { return kind == Kind::kWord && text == word; }
};

// "'%x'", "end of line": what a message says it got.
std::string Describe(const Token& token);

// Longest text that is read [bytes].
inline constexpr size_t kMaxTextBytes = size_t{1} << 31;

// Reads a text that must outlive it, front to back. Text is UTF-8 without NUL bytes; code points
// beyond ASCII may stand in comments and strings.
class Lexer {
 public:
  Lexer(absl::string_view text, absl::string_view file) : text_(text), file_(file) {}

  Token Next();

  // What the last kError token means.
  const std::string& error() const { return error_; }
  absl::string_view text() const { return text_; }
  absl::string_view file() const { return file_; }

  // InvalidArgument "file:line:column: message", the line and a caret under the token.
  absl::Status ErrorAt(const Token& token, absl::string_view message) const;

 private:
  Token Make(Token::Kind kind, size_t begin, size_t sigil = 0);
  Token Fail(size_t begin, std::string message);
  bool SkipBlanks(Token* stop);
  Token ReadNumber(size_t begin);
  Token ReadString(size_t begin);
  // Length of the code point at `at`; 0 when the bytes are not UTF-8 or a control character.
  size_t CodePointAt(size_t at) const;

  absl::string_view text_;
  absl::string_view file_;
  std::string error_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  size_t continuation_bytes_ = 0;  // of this line so far: bytes that are not columns
  int line_ = 1;
};

// Which characters names have. Value names: letters, digits, '_', '.' and '$'; functions also '-'.
bool IsValueNameChar(char c);
bool IsFunctionNameChar(char c);

// A string as the text form quotes it, and back. UnquoteString takes a kString token's text.
// Errors: InvalidArgument for an unknown escape.
std::string QuoteString(absl::string_view text);
absl::Status UnquoteString(absl::string_view quoted, std::string* out);

}  // namespace svod

#endif  // SVOD_IR_LEXER_H_
