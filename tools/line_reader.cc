#include "tools/line_reader.h"

#include <histedit.h>

#include <cstdio>

namespace svod {
namespace {

class StreamReader : public LineReader {
 public:
  explicit StreamReader(std::istream& in) : in_(in) {}
  std::optional<std::string> Next(const std::string&) override {
    std::string line;
    if (!std::getline(in_, line)) return std::nullopt;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return line;
  }
  bool interactive() const override { return false; }

 private:
  std::istream& in_;
};

class TerminalReader : public LineReader {
 public:
  TerminalReader(std::string history_file, Completer completer)
      : history_file_(std::move(history_file)), completer_(std::move(completer)) {
    edit_ = el_init("svod-jit", stdin, stdout, stderr);
    history_ = history_init();
    HistEvent event;
    history(history_, &event, H_SETSIZE, 2000);
    history(history_, &event, H_SETUNIQUE, 1);
    if (!history_file_.empty()) history(history_, &event, H_LOAD, history_file_.c_str());
    el_set(edit_, EL_CLIENTDATA, this);
    el_set(edit_, EL_PROMPT, &Prompt);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_SIGNAL, 1);
    el_set(edit_, EL_HIST, history, history_);
    el_set(edit_, EL_ADDFN, "svod-complete", "complete a command or name", &Complete);
    el_set(edit_, EL_BIND, "^I", "svod-complete", nullptr);
    el_source(edit_, nullptr);
  }
  ~TerminalReader() override {
    HistEvent event;
    if (!history_file_.empty()) history(history_, &event, H_SAVE, history_file_.c_str());
    history_end(history_);
    el_end(edit_);
  }

  std::optional<std::string> Next(const std::string& prompt) override {
    prompt_ = prompt;
    int length = 0;
    const char* text = el_gets(edit_, &length);
    if (text == nullptr || length <= 0) return std::nullopt;
    std::string line(text, static_cast<size_t>(length));
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    HistEvent event;
    if (!line.empty()) history(history_, &event, H_ENTER, line.c_str());
    return line;
  }
  bool interactive() const override { return true; }

 private:
  static TerminalReader* Self(EditLine* edit) {
    void* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return static_cast<TerminalReader*>(self);
  }
  static char* Prompt(EditLine* edit) { return Self(edit)->prompt_.data(); }

  // Inserts what all candidates share; lists them when that is nothing.
  static unsigned char Complete(EditLine* edit, int) {
    const LineInfo* info = el_line(edit);
    std::string line(info->buffer, info->cursor);
    std::vector<std::string> candidates = Self(edit)->completer_(line);
    if (candidates.empty()) return CC_ERROR;
    std::string shared = candidates[0];
    for (const std::string& candidate : candidates) {
      size_t same = 0;
      while (same < shared.size() && same < candidate.size() && shared[same] == candidate[same]) {
        ++same;
      }
      shared.resize(same);
    }
    size_t typed = LastWord(line).size();
    std::string addition = shared.size() > typed ? shared.substr(typed) : "";
    if (candidates.size() == 1) addition += ' ';
    if (!addition.empty()) {
      return el_insertstr(edit, addition.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
    }
    std::fputc('\n', stdout);
    for (const std::string& candidate : candidates) std::printf("%s  ", candidate.c_str());
    std::fputc('\n', stdout);
    return CC_REDISPLAY;
  }

  std::string history_file_;
  Completer completer_;
  std::string prompt_;
  EditLine* edit_;
  History* history_;
};

}  // namespace

std::unique_ptr<LineReader> MakeStreamReader(std::istream& in) {
  return std::make_unique<StreamReader>(in);
}

std::unique_ptr<LineReader> MakeTerminalReader(const std::string& history_file,
                                               Completer completer) {
  return std::make_unique<TerminalReader>(history_file, std::move(completer));
}

std::string LastWord(const std::string& line) {
  size_t start = line.find_last_of(" \t,(=[+*/<>-");
  return start == std::string::npos ? line : line.substr(start + 1);
}

}  // namespace svod
