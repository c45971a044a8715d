// Repl: definitions, tensors and commands, line by line.
// Included by the repl command and its tests. Prints to the streams it is given only.
#ifndef SVOD_TOOLS_REPL_H_
#define SVOD_TOOLS_REPL_H_

#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/line_reader.h"
#include "tools/session.h"

namespace svod {

// A line is a definition (`kernel ...` or `graph ...`, which may go on over lines until its braces
// close), a tensor (`x = 4xf32=iota`, shown by `x`), an expression on tensors (`y = relu(x * 2)`),
// which is run and printed and may go on until its brackets close, or a command that starts with
// ':'. Names of tensors may begin with '%'. A line that fails leaves functions, tensors and
// settings as they were.
class Repl {
 public:
  Repl(std::unique_ptr<Session> session, std::ostream& out, std::ostream& err);

  // Reads until :quit or the end. On a terminal errors are shown and the loop goes on; otherwise
  // the first error ends it and is the result, with the number of its line.
  absl::Status Run(LineReader& reader);

  // One complete input, lines joined by '\n'.
  absl::Status Execute(const std::string& input);

  // True while `input` has more opening brackets than closing ones.
  static bool IsIncomplete(const std::string& input);

  // For Tab: commands, functions, tensors, ops and operators that extend the last word of `line`.
  std::vector<std::string> Complete(const std::string& line) const;

 private:
  struct ReplCommand;
  static const std::vector<ReplCommand>& Table();

  absl::Status Evaluate(absl::string_view line);
  absl::Status DefineTensor(absl::string_view name, absl::string_view spec);
  absl::Status Help(const std::vector<std::string>& words);
  absl::Status LoadFile(const std::vector<std::string>& words);
  absl::Status ShowPlan(const std::vector<std::string>& words);
  absl::Status ShowUOps(const std::vector<std::string>& words);
  absl::Status ShowLlvm(const std::vector<std::string>& words);
  absl::Status ShowAssembly(const std::vector<std::string>& words);
  absl::Status RunProgram(const std::vector<std::string>& words);
  absl::Status Time(const std::vector<std::string>& words);
  absl::Status Profile(const std::vector<std::string>& words);
  absl::Status ShowCache(const std::vector<std::string>& words);
  absl::Status Set(const std::vector<std::string>& words);
  absl::Status List(const std::vector<std::string>& words);
  absl::Status Quit(const std::vector<std::string>& words);
  absl::Status Show(const std::vector<std::string>& words, Stage stage);
  absl::StatusOr<RunRequest> Request(const std::vector<std::string>& words, int repeat);

  std::unique_ptr<Session> session_;
  std::ostream& out_;
  std::ostream& err_;
  std::map<std::string, Tensor> tensors_;
  bool serial_ = false;
  bool quit_ = false;
};

}  // namespace svod

#endif  // SVOD_TOOLS_REPL_H_
