// LineReader: one line after the other, from a terminal with editing and history or from a pipe.
// Included by the REPL. Only line_reader.cc names libedit.
#ifndef SVOD_TOOLS_LINE_READER_H_
#define SVOD_TOOLS_LINE_READER_H_

#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace svod {

class LineReader {
 public:
  virtual ~LineReader() = default;
  // The next line without its end; nullopt at the end of input. `prompt` shows on a terminal only.
  virtual std::optional<std::string> Next(const std::string& prompt) = 0;
  // True when a person types: then the REPL greets, prompts and goes on after an error.
  virtual bool interactive() const = 0;
};

// The words that may follow `line`, whose last word is to be completed.
using Completer = std::function<std::vector<std::string>(const std::string& line)>;

// Reads `in`, silently.
std::unique_ptr<LineReader> MakeStreamReader(std::istream& in);

// Reads the terminal on standard input: Emacs or vi keys as ~/.editrc says, history kept in
// `history_file` (none if empty), Tab completes.
std::unique_ptr<LineReader> MakeTerminalReader(const std::string& history_file,
                                               Completer completer);

// The last word of `line`, which completion extends: after the last space, comma, '(' or '='.
std::string LastWord(const std::string& line);

}  // namespace svod

#endif  // SVOD_TOOLS_LINE_READER_H_
