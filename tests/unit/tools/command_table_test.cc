#include "tools/command_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "tools/flags.h"

namespace svod {
namespace {

using ::testing::HasSubstr;

struct Outcome {
  int code;
  std::string out, err;
};

// Runs one command line, as a process of its own would: with every flag at its default.
Outcome RunTool(const std::vector<std::string>& arguments, const std::string& input = "") {
  absl::FlagSaver defaults;
  std::istringstream in(input);
  std::ostringstream out, err;
  CommandStreams streams{in, out, err, false};
  int code = RunCommandLine(arguments, streams);
  return {code, out.str(), err.str()};
}

TEST(CommandLine, UsageMistakesExitWithTwo) {
  EXPECT_EQ(RunTool({}).code, 2);
  Outcome unknown = RunTool({"fly"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("command, got 'fly', expected one of run, opt, lower"));
  EXPECT_THAT(RunTool({"run", "--colour=red", "-"}).err, HasSubstr("flag, got --colour=red"));
  // A flag of another command is no flag of this one.
  EXPECT_EQ(RunTool({"info", "--input=4xf32=1", "-"}).code, 2);
  EXPECT_THAT(RunTool({"run", "--threads=many", "-"}).err, HasSubstr("flag --threads: got 'many'"));
  EXPECT_THAT(RunTool({"run", "--trace", "-"}).err, HasSubstr("expected --trace=VALUE"));
  EXPECT_THAT(RunTool({"run"}).err, HasSubstr("files, got 0, expected one"));
  EXPECT_THAT(RunTool({"cache", "--cache_dir=/x", "polish"}).err,
              HasSubstr("expected stats or clear"));
}

TEST(CommandLine, HelpNamesEveryCommandAndFlag) {
  Outcome help = RunTool({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const Command& command : Commands()) {
    EXPECT_THAT(help.out, HasSubstr(std::string(command.summary)));
    Outcome one = RunTool({std::string(command.name), "--help"});
    EXPECT_EQ(one.code, 0);
    for (absl::string_view flag : command.flags) {
      EXPECT_THAT(one.out, HasSubstr(absl::StrCat("--", flag))) << command.name;
    }
  }
}

TEST(CommandLine, VersionNamesLlvmAndTheCpu) {
  Outcome version = RunTool({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, HasSubstr("LLVM 22."));
  EXPECT_THAT(version.out, HasSubstr("\nCPU "));
}

TEST(CommandLine, ProgramMistakesExitWithOne) {
  Outcome outcome = RunTool({"run", "--cache_dir=off", "-"}, "kernel @k(");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("<stdin>:1:"));
  EXPECT_EQ(RunTool({"run", "--cache_dir=off", "/nonexistent.uop"}).code, 1);
}

TEST(CommandLine, ComparisonDecidesTheExitCode) {
  std::string program =
      "kernel @inc(%y: out i32[2], %x: i32[2]) {\n"
      "  %i = range 2 loop\n"
      "  %v = load %x[%i]\n"
      "  %r = add %v, 1\n"
      "  store %y[%i], %r\n"
      "  end %i\n"
      "}\n";
  EXPECT_EQ(
      RunTool({"run", "--cache_dir=off", "--input=2xi32=1,2", "--expected_output=2xi32=2,3", "-"},
              program)
          .code,
      0);
  Outcome wrong = RunTool(
      {"run", "--cache_dir=off", "--input=x=2xi32=1,2", "--expected_output=y=2xi32=2,4", "-"},
      program);
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err,
              HasSubstr("output y: 1 of 2 elements differ, first at [1]: got 3, expected 4"));
  Outcome missing = RunTool({"run", "--cache_dir=off", "--input=z=2xi32=1,2", "-"}, program);
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("input, got 'z', expected one of x: i32[2]"));
}

TEST(ExitCode, FollowsTheStatus) {
  EXPECT_EQ(ExitCode(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCode(absl::InvalidArgumentError("x")), 1);
  EXPECT_EQ(ExitCode(UsageError("x")), 2);
  EXPECT_EQ(ExitCode(absl::InternalError("x")), 3);
}

}  // namespace
}  // namespace svod
