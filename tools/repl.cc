#include "tools/repl.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ir/status_macros.h"
#include "tools/callables.h"
#include "tools/report.h"

namespace svod {

struct Repl::ReplCommand {
  absl::string_view name;
  absl::string_view arguments;
  absl::string_view help;
  absl::Status (Repl::*run)(const std::vector<std::string>& words);
};

const std::vector<Repl::ReplCommand>& Repl::Table() {
  static const auto* const kTable = new std::vector<ReplCommand>{
      {":help", "[NAME]", "lists the commands, ops and operators, or explains one", &Repl::Help},
      {":load", "FILE", "reads definitions from a file", &Repl::LoadFile},
      {":list", "", "names the functions and tensors of the session", &Repl::List},
      {":ir", "[@FUNCTION]", "prints a function's UOps as written and as compiled",
       &Repl::ShowUOps},
      {":llvm", "[@FUNCTION]", "prints the LLVM IR of a function's kernels", &Repl::ShowLlvm},
      {":asm", "[@FUNCTION]", "prints the machine code of a function's kernels",
       &Repl::ShowAssembly},
      {":plan", "[@FUNCTION]",
       "prints a graph's schedule: kernels, levels, buffers and places of values", &Repl::ShowPlan},
      {":run", "[@FUNCTION] [INPUT]... [VAR=NUMBER]...",
       "runs a function and prints its outputs, which become tensors of the session; an INPUT is "
       "%x, a tensor such as 4xf32=iota, or %param=... to name the parameter; without inputs the "
       "tensors named like the parameters are taken",
       &Repl::RunProgram},
      {":time", "[@FUNCTION] [INPUT]...", "runs a function many times and prints how long it takes",
       &Repl::Time},
      {":profile", "[@FUNCTION] [INPUT]...", "runs a function once and prints each kernel's time",
       &Repl::Profile},
      {":cache", "", "prints the kernel cache's counters", &Repl::ShowCache},
      {":set", "[NAME VALUE]", "changes threads, serial, cpu or features; alone it prints them",
       &Repl::Set},
      {":quit", "", "ends the session", &Repl::Quit},
  };
  return *kTable;
}

Repl::Repl(std::unique_ptr<Session> session, std::ostream& out, std::ostream& err)
    : session_(std::move(session)), out_(out), err_(err) {}

namespace {

bool IsNameChar(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; }

// The name and the text after '=' of `%x = ...` or `x = ...`; no name where it is no definition.
std::pair<absl::string_view, absl::string_view> SplitDefinition(absl::string_view text) {
  size_t equals = text.find('=');
  if (equals == absl::string_view::npos) return {"", text};
  absl::string_view name = absl::StripAsciiWhitespace(text.substr(0, equals));
  absl::ConsumePrefix(&name, "%");
  return {name, absl::StripAsciiWhitespace(text.substr(equals + 1))};
}

// Whether what stands after '=' is a tensor as ParseTensor reads it, and no expression:
// "2x3xf32=...", "f32=1.5", "@x.npy".
bool IsTensorSpec(absl::string_view spec) {
  if (absl::StartsWith(spec, "@")) return true;
  size_t size = 0;
  while (size < spec.size() && absl::ascii_isdigit(spec[size])) ++size;
  if (size > 0 && size < spec.size() && spec[size] == 'x') return true;
  size_t equals = spec.find('=');
  return equals != absl::string_view::npos && ParseDType(spec.substr(0, equals)).ok();
}

bool IsDefinition(absl::string_view text) {
  for (absl::string_view word : {"kernel", "graph"}) {
    if (absl::StartsWith(text, word) && text.size() > word.size() &&
        (absl::ascii_isspace(text[word.size()]) || text[word.size()] == '@')) {
      return true;
    }
  }
  return text == "kernel" || text == "graph";
}

}  // namespace

bool Repl::IsIncomplete(const std::string& input) {
  int depth = 0, num_brackets = 0;
  bool quoted = false, any = false;
  for (size_t i = 0; i < input.size(); ++i) {
    char c = input[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"' || c == '\n') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '/' && i + 1 < input.size() && input[i + 1] == '/') {
      while (i + 1 < input.size() && input[i + 1] != '\n') ++i;
    } else if (c == '{') {
      ++depth;
      any = true;
    } else if (c == '}') {
      --depth;
    } else if (c == '(' || c == '[') {
      ++num_brackets;
    } else if (c == ')' || c == ']') {
      --num_brackets;
    }
  }
  absl::string_view start = absl::StripLeadingAsciiWhitespace(input);
  if (absl::StartsWith(start, ":")) return false;
  return depth > 0 || (IsDefinition(start) ? !any : num_brackets > 0);
}

absl::Status Repl::Run(LineReader& reader) {
  if (reader.interactive()) {
    out_ << "Svod. :help lists the commands, :quit leaves.\n";
  }
  int line_number = 0;
  while (!quit_) {
    std::optional<std::string> line = reader.Next("svod> ");
    if (!line.has_value()) break;
    int first_line = ++line_number;
    std::string input = *line;
    while (IsIncomplete(input)) {
      line = reader.Next("  ... ");
      if (!line.has_value()) break;
      ++line_number;
      absl::StrAppend(&input, "\n", *line);
    }
    absl::Status status = Execute(input);
    out_.flush();
    if (status.ok()) continue;
    if (!reader.interactive()) return Annotate(status, absl::StrCat("line ", first_line));
    err_ << "error: " << status.message() << "\n";
  }
  if (reader.interactive() && !quit_) out_ << "\n";
  return absl::OkStatus();
}

absl::Status Repl::Execute(const std::string& input) {
  absl::string_view text = absl::StripAsciiWhitespace(input);
  if (text.empty() || (absl::StartsWith(text, "//") && !absl::StrContains(text, '\n'))) {
    return absl::OkStatus();
  }
  if (text[0] == ':') {
    std::vector<std::string> words =
        absl::StrSplit(text, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    for (const ReplCommand& command : Table()) {
      if (words[0] == command.name) return (this->*command.run)(words);
    }
    std::string known = absl::StrJoin(Table(), ", ", [](std::string* out, const ReplCommand& c) {
      absl::StrAppend(out, c.name);
    });
    return absl::InvalidArgumentError(
        absl::StrCat("command, got '", words[0], "', expected one of ", known));
  }
  if (IsDefinition(text) || absl::StartsWith(text, "//")) return session_->Load(input, "<input>");
  auto [name, spec] = SplitDefinition(text);
  if (!name.empty() && IsTensorSpec(spec)) return DefineTensor(name, spec);
  absl::string_view shown = text;
  bool has_sigil = absl::ConsumePrefix(&shown, "%");
  auto it = tensors_.find(std::string(shown));
  if (it != tensors_.end()) {
    out_ << FormatNamed({it->first, it->second});
    return absl::OkStatus();
  }
  bool is_word = std::all_of(shown.begin(), shown.end(), IsNameChar);
  if (is_word && has_sigil) {
    return absl::NotFoundError(absl::StrCat("tensor %", shown, " is not defined"));
  }
  if (is_word) {
    return absl::InvalidArgumentError(
        absl::StrCat("got '", shown.substr(0, 40),
                     "', expected a kernel or graph, name = tensor or expression, or a :command"));
  }
  return Evaluate(text);
}

absl::Status Repl::Evaluate(absl::string_view line) {
  std::vector<NamedTensor> given;
  for (const auto& [name, tensor] : tensors_) given.push_back({name, tensor});
  SVOD_ASSIGN_OR_RETURN(RunResult result, session_->RunLine(line, "<input>", given, serial_));
  for (const NamedTensor& output : result.outputs) {
    out_ << FormatNamed(output);
    if (!output.name.empty()) tensors_[output.name] = output.tensor;
  }
  return absl::OkStatus();
}

absl::Status Repl::DefineTensor(absl::string_view name, absl::string_view spec) {
  bool valid = !name.empty() && std::all_of(name.begin(), name.end(), IsNameChar);
  if (!valid) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor name, got '", name, "', expected letters, digits, '_' and '.'"));
  }
  SVOD_ASSIGN_OR_RETURN(Tensor tensor, ParseTensor(spec));
  tensors_[std::string(name)] = tensor;
  return absl::OkStatus();
}

absl::Status Repl::Help(const std::vector<std::string>& words) {
  for (const ReplCommand& command : Table()) {
    if (words.size() == 1) {
      out_ << absl::StreamFormat("  %-9s %s\n", std::string(command.name),
                                 std::string(command.help.substr(0, command.help.find(';'))));
    } else if (words[1] == command.name || absl::StrCat(":", words[1]) == command.name) {
      out_ << command.name << " " << command.arguments << "\n  " << command.help << "\n";
      return absl::OkStatus();
    }
  }
  if (words.size() > 1) {
    SVOD_ASSIGN_OR_RETURN(std::string text, DescribeCallable(words[1]));
    out_ << text;
    return absl::OkStatus();
  }
  out_
      << "Anything else is a kernel or graph definition, a tensor such as x = 2x3xf32=iota, or an\n"
         "expression such as y = relu(x * 2) of + - * / < <= > >= == !=, ops and operators:\n";
  out_ << CallablesInColumns();
  return absl::OkStatus();
}

absl::Status Repl::LoadFile(const std::vector<std::string>& words) {
  if (words.size() != 2) return absl::InvalidArgumentError(":load, expected one file");
  if (words[1] == "-") return absl::InvalidArgumentError(":load, got -, expected a file");
  std::istream* no_stream = nullptr;
  return session_->LoadFile(words[1], no_stream);
}

absl::Status Repl::List(const std::vector<std::string>&) {
  for (const Function& function : session_->module().functions) {
    out_ << (function.is_kernel() ? "kernel @" : "graph @") << function.name() << "\n";
  }
  for (const auto& [name, tensor] : tensors_) {
    out_ << "%" << name << ": " << TypeString(tensor.dtype(), tensor.shape()) << "\n";
  }
  return absl::OkStatus();
}

absl::Status Repl::Show(const std::vector<std::string>& words, Stage stage) {
  SVOD_ASSIGN_OR_RETURN(const Function* function,
                        session_->Find(words.size() > 1 ? words[1] : std::string()));
  SVOD_ASSIGN_OR_RETURN(std::string text, session_->Emit(*function, stage));
  out_ << text;
  return absl::OkStatus();
}

absl::Status Repl::ShowUOps(const std::vector<std::string>& words) {
  SVOD_ASSIGN_OR_RETURN(const Function* function,
                        session_->Find(words.size() > 1 ? words[1] : std::string()));
  SVOD_ASSIGN_OR_RETURN(std::string written, session_->Written(*function));
  SVOD_ASSIGN_OR_RETURN(std::string compiled, session_->Emit(*function, Stage::kUOps));
  out_ << "// as written\n" << written << "// as compiled\n" << compiled;
  return absl::OkStatus();
}

absl::Status Repl::ShowPlan(const std::vector<std::string>& words) {
  SVOD_ASSIGN_OR_RETURN(const Function* function,
                        session_->Find(words.size() > 1 ? words[1] : std::string()));
  SVOD_ASSIGN_OR_RETURN(std::string text, session_->DescribePlan(*function));
  out_ << text;
  return absl::OkStatus();
}

absl::Status Repl::ShowLlvm(const std::vector<std::string>& words) {
  return Show(words, Stage::kLlvm);
}

absl::Status Repl::ShowAssembly(const std::vector<std::string>& words) {
  return Show(words, Stage::kAssembly);
}

absl::StatusOr<RunRequest> Repl::Request(const std::vector<std::string>& words, int repeat) {
  RunRequest request;
  request.repeat = repeat;
  request.serial = serial_;
  for (size_t i = 1; i < words.size(); ++i) {
    absl::string_view word = words[i];
    if (i == 1 && word[0] == '@' && !absl::EndsWith(word, ".npy")) {
      request.function = std::string(word);
      continue;
    }
    NamedTensor input;
    size_t equals = word.find('=');
    if (word[0] == '%' && equals != absl::string_view::npos) {
      input.name = std::string(word.substr(1, equals - 1));
      word.remove_prefix(equals + 1);
    }
    if (word[0] == '%') {
      auto it = tensors_.find(std::string(word.substr(1)));
      if (it == tensors_.end()) {
        return absl::NotFoundError(absl::StrCat("tensor ", word, " is not defined"));
      }
      input.tensor = it->second;
      request.inputs.push_back(input);
      continue;
    }
    int64_t value;
    bool variable = input.name.empty() && equals != absl::string_view::npos &&
                    !absl::ascii_isdigit(word[0]) && !ParseDType(word.substr(0, equals)).ok();
    if (variable) {
      if (!absl::SimpleAtoi(word.substr(equals + 1), &value)) {
        return absl::InvalidArgumentError(
            absl::StrCat("variable, got '", word, "', expected NAME=NUMBER"));
      }
      request.variables.push_back({std::string(word.substr(0, equals)), value});
      continue;
    }
    SVOD_ASSIGN_OR_RETURN(input.tensor, ParseTensor(word));
    request.inputs.push_back(input);
  }
  if (request.inputs.empty()) {
    SVOD_ASSIGN_OR_RETURN(const Function* function, session_->Find(request.function));
    SVOD_ASSIGN_OR_RETURN(std::vector<std::string> names, InputNames(*function));
    for (const std::string& name : names) {
      auto it = tensors_.find(name);
      if (it != tensors_.end()) request.inputs.push_back({name, it->second});
    }
  }
  return request;
}

absl::Status Repl::RunProgram(const std::vector<std::string>& words) {
  SVOD_ASSIGN_OR_RETURN(RunRequest request, Request(words, 1));
  SVOD_ASSIGN_OR_RETURN(RunResult result, session_->Run(request));
  for (const NamedTensor& output : result.outputs) {
    out_ << FormatNamed(output);
    tensors_[output.name] = output.tensor;
  }
  return absl::OkStatus();
}

absl::Status Repl::Time(const std::vector<std::string>& words) {
  SVOD_ASSIGN_OR_RETURN(RunRequest request, Request(words, 1));
  SVOD_ASSIGN_OR_RETURN(RunResult result, session_->Run(request));
  // About a quarter of a second of executions, judged by the first.
  int64_t first = std::max<int64_t>(result.execute_ns[0], 1);
  request.repeat = static_cast<int>(std::clamp<int64_t>(250'000'000 / first, 5, 100'000));
  SVOD_ASSIGN_OR_RETURN(result, session_->Run(request));
  out_ << FormatTimes(result);
  return absl::OkStatus();
}

absl::Status Repl::Profile(const std::vector<std::string>& words) {
  SVOD_ASSIGN_OR_RETURN(RunRequest request, Request(words, 1));
  SVOD_ASSIGN_OR_RETURN(RunResult result, session_->Run(request));
  out_ << FormatProfile(result);
  return absl::OkStatus();
}

absl::Status Repl::ShowCache(const std::vector<std::string>&) {
  out_ << FormatCacheStats(session_->cache().stats());
  return absl::OkStatus();
}

absl::Status Repl::Set(const std::vector<std::string>& words) {
  SessionSettings settings = session_->settings();
  if (words.size() == 1) {
    out_ << "threads " << session_->threads() << "\nserial " << (serial_ ? "on" : "off") << "\ncpu "
         << session_->target().cpu << "\nfeatures " << session_->target().features << "\n";
    return absl::OkStatus();
  }
  if (words.size() != 3) return absl::InvalidArgumentError(":set, expected a name and a value");
  const std::string& name = words[1];
  const std::string& value = words[2];
  if (name == "serial") {
    if (value != "on" && value != "off") {
      return absl::InvalidArgumentError(
          absl::StrCat("serial, got '", value, "', expected on or off"));
    }
    serial_ = value == "on";
    return absl::OkStatus();
  }
  if (name == "threads") {
    int threads;
    if (!absl::SimpleAtoi(value, &threads) || threads < 0 || threads > 1024) {
      return absl::InvalidArgumentError(
          absl::StrCat("threads, got '", value, "', expected 0 to 1024"));
    }
    settings.threads = threads;
  } else if (name == "cpu") {
    settings.cpu = value;
  } else if (name == "features") {
    settings.features = value;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("setting, got '", name, "', expected threads, serial, cpu or features"));
  }
  return session_->SetSettings(settings);
}

absl::Status Repl::Quit(const std::vector<std::string>&) {
  quit_ = true;
  return absl::OkStatus();
}

std::vector<std::string> Repl::Complete(const std::string& line) const {
  std::string word = LastWord(line);
  std::vector<std::string> candidates;
  auto offer = [&](std::string candidate) {
    if (absl::StartsWith(candidate, word)) candidates.push_back(std::move(candidate));
  };
  for (const ReplCommand& command : Table()) offer(std::string(command.name));
  for (const Function& function : session_->module().functions) {
    offer(absl::StrCat("@", function.name()));
  }
  for (const auto& [name, tensor] : tensors_) {
    offer(absl::StrCat("%", name));
    if (!word.empty()) offer(name);
  }
  // Of all the ops only those that begin like the word are of use.
  if (!word.empty() && line[0] != ':') {
    for (const std::string& name : CallableNames()) offer(name);
  }
  return candidates;
}

}  // namespace svod
