#include "tools/repl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "absl/strings/str_cat.h"

namespace svod {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kDouble[] =
    "kernel @double(%y: out f32[4], %x: f32[4]) {\n"
    "  %i = range 4 loop\n"
    "  %v = load %x[%i]\n"
    "  %r = add %v, %v\n"
    "  store %y[%i], %r\n"
    "  end %i\n"
    "}\n";

class ReplTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SessionSettings settings;
    settings.cache_dir = "off";
    settings.threads = 2;
    absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(settings);
    ASSERT_TRUE(session.ok()) << session.status();
    repl_ = std::make_unique<Repl>(*std::move(session), out_, err_);
  }
  // What the input prints; fails the test if it does not succeed.
  std::string Output(const std::string& input) {
    out_.str("");
    absl::Status status = repl_->Execute(input);
    EXPECT_TRUE(status.ok()) << input << ": " << status;
    return out_.str();
  }
  std::string Error(const std::string& input) {
    absl::Status status = repl_->Execute(input);
    EXPECT_FALSE(status.ok()) << input;
    return std::string(status.message());
  }

  std::ostringstream out_, err_;
  std::unique_ptr<Repl> repl_;
};

TEST_F(ReplTest, DefinesRunsAndKeepsResults) {
  EXPECT_EQ(Output(kDouble), "");
  EXPECT_EQ(Output("%x = 4xf32=iota"), "");
  EXPECT_EQ(Output(":run @double %x"), "y: f32[4]\n[0. 2. 4. 6.]\n");
  EXPECT_EQ(Output("%y"), "y: f32[4]\n[0. 2. 4. 6.]\n");
  // Without inputs the tensor named like the parameter is taken.
  EXPECT_EQ(Output(":run"), "y: f32[4]\n[0. 2. 4. 6.]\n");
  EXPECT_EQ(Output(":run %x=4xf32=1"), "y: f32[4]\n[2. 2. 2. 2.]\n");
  EXPECT_EQ(Output(":list"), "kernel @double\n%x: f32[4]\n%y: f32[4]\n");
}

TEST_F(ReplTest, FailedLineLeavesTheSessionAsItWas) {
  Output(kDouble);
  Output("%x = 4xf32=iota");
  std::string before = Output(":list");
  EXPECT_THAT(Error("kernel @double(%y: out f32[4]) {\n  store %y[0], %nothing\n}"),
              HasSubstr("nothing"));
  EXPECT_THAT(Error("%x = 4xf32=1,2"), HasSubstr("number of values, got 2"));
  EXPECT_THAT(Error(":run @double 3xf32=1"), HasSubstr("input x: got f32[3], expected f32[4]"));
  EXPECT_THAT(Error(":run @double %z"), HasSubstr("%z is not defined"));
  EXPECT_THAT(Error(":run @triple"), HasSubstr("got @triple, expected one of @double"));
  EXPECT_THAT(Error(":set cpu pentium9"), HasSubstr("pentium9"));
  EXPECT_THAT(Error(":nonsense"), HasSubstr("command, got ':nonsense', expected one of :help"));
  EXPECT_THAT(Error("what"), HasSubstr("expected a kernel or graph"));
  EXPECT_EQ(Output(":list"), before);
  EXPECT_EQ(Output(":run @double %x"), "y: f32[4]\n[0. 2. 4. 6.]\n");
}

TEST_F(ReplTest, ShowsEveryStage) {
  Output(kDouble);
  EXPECT_THAT(Output(":ir"), HasSubstr("kernel @double"));
  EXPECT_THAT(Output(":llvm @double"), HasSubstr("define"));
  EXPECT_THAT(Output(":asm @double"), HasSubstr("ret"));
  EXPECT_THAT(Output(":time 4xf32=1"), HasSubstr("median"));
  EXPECT_THAT(Output(":profile 4xf32=1"), HasSubstr("double"));
  EXPECT_THAT(Output(":cache"), HasSubstr("compiles 1\n"));
  EXPECT_THAT(Output(":help"), HasSubstr(":profile"));
  EXPECT_THAT(Output(":help :run"), HasSubstr("[@FUNCTION] [INPUT]"));
}

TEST_F(ReplTest, SettingsAreShownAndChanged) {
  Output(":set serial on");
  Output(":set threads 1");
  EXPECT_THAT(Output(":set"), HasSubstr("threads 1\nserial on\ncpu "));
  EXPECT_THAT(Error(":set serial perhaps"), HasSubstr("expected on or off"));
  EXPECT_THAT(Error(":set threads -1"), HasSubstr("expected 0 to 1024"));
  EXPECT_THAT(Error(":set colour red"), HasSubstr("expected threads, serial, cpu or features"));
}

TEST_F(ReplTest, GraphsCallKernelsOfTheSession) {
  Output(kDouble);
  Output(
      "graph @twice(%x: f32[4]) {\n"
      "  %t = buffer f32[4]\n"
      "  %a = call @double, %t, %x\n"
      "  %t1 = after %t, %a\n"
      "  %y = buffer f32[4]\n"
      "  %b = call @double, %y, %t1\n"
      "  %y1 = after %y, %b\n"
      "  return %y1\n"
      "}");
  EXPECT_THAT(Output(":run @twice 4xf32=iota"), HasSubstr("[ 0.  4.  8. 12.]"));
}

TEST_F(ReplTest, ExpressionsAreRunAndKept) {
  EXPECT_EQ(Output("x = 4xf32=-1,0,1,2"), "");
  EXPECT_EQ(Output("y = relu(x * 2)"), "y: f32[4]\n[0. 0. 2. 4.]\n");
  EXPECT_EQ(Output("%z = %y + 1"), "z: f32[4]\n[1. 1. 3. 5.]\n");
  EXPECT_EQ(Output("z"), "z: f32[4]\n[1. 1. 3. 5.]\n");
  EXPECT_EQ(Output("y = y / 2"), "y: f32[4]\n[0. 0. 1. 2.]\n");
  EXPECT_EQ(Output("y * (\n  2\n)"), "f32[4]\n[0. 0. 2. 4.]\n");
  EXPECT_EQ(Output("v, at = top_k(x, count=2)"), "v: f32[2]\n[2. 1.]\nat: i64[2]\n[3 2]\n");
  EXPECT_THAT(Output(":list"), HasSubstr("%at: i64[2]"));
  EXPECT_THAT(Error("w = x + nothing"), HasSubstr("<input>:1:9: unknown value 'nothing'"));
  EXPECT_THAT(Error("w = x + reshape(x, [2, 2])"), HasSubstr("add: shapes, got [4] and [2, 2]"));
  EXPECT_THAT(Error("w"), HasSubstr("expected a kernel or graph, name = tensor or expression"));
}

TEST_F(ReplTest, TensorGraphsShowTheirKernels) {
  Output("graph @g(%x: f32[4]) {\n  return relu(%x * 2)\n}");
  std::string text = Output(":ir @g");
  EXPECT_THAT(text, HasSubstr("graph @g(%x: f32[4])"));
  EXPECT_THAT(text, HasSubstr("// as compiled\nkernel @"));
  EXPECT_THAT(Output(":llvm @g"), HasSubstr("define"));
  EXPECT_THAT(Output(":run @g 4xf32=iota"), HasSubstr("[0. 2. 4. 6.]"));
}

TEST_F(ReplTest, HelpAndCompletionKnowOperators) {
  EXPECT_THAT(Output(":help"), HasSubstr(" softmax"));
  EXPECT_THAT(Output(":help softmax"), HasSubstr("softmax(x, axis=-1) gives y\n"));
  EXPECT_THAT(Output(":help top_k"), HasSubstr("top_k(x, count, axis=-1, largest=true) gives "));
  EXPECT_THAT(Output(":help reduce_max"), HasSubstr("reduce_max\n  folds source 0"));
  EXPECT_THAT(Output(":help scatter_add"), HasSubstr("scatter_add\n  source 0 after"));
  EXPECT_THAT(Output(":help expand"), HasSubstr("expand\n  source 0 repeated"));
  EXPECT_THAT(Error(":help sofmax"), HasSubstr("no command, op or operator 'sofmax'"));
  EXPECT_THAT(repl_->Complete("y = softm"), ElementsAre("softmax"));
  EXPECT_THAT(repl_->Complete("y = 2 * relu(softm"), ElementsAre("softmax"));
  EXPECT_TRUE(repl_->Complete(":run softm").empty());
}

TEST_F(ReplTest, StreamStopsAtTheFirstErrorAndNamesItsLine) {
  std::istringstream in(
      absl::StrCat("// a comment\n", kDouble, ":run @double 4xf32=1\n:oops\n:list\n"));
  std::unique_ptr<LineReader> reader = MakeStreamReader(in);
  absl::Status status = repl_->Run(*reader);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("line 10: command, got ':oops'"));
  EXPECT_EQ(out_.str(), "y: f32[4]\n[2. 2. 2. 2.]\n");
}

TEST_F(ReplTest, QuitEndsTheStream) {
  std::istringstream in(":quit\n:oops\n");
  std::unique_ptr<LineReader> reader = MakeStreamReader(in);
  EXPECT_TRUE(repl_->Run(*reader).ok());
}

TEST_F(ReplTest, CompletesCommandsFunctionsAndTensors) {
  Output(kDouble);
  Output("%data = f32=1");
  EXPECT_THAT(repl_->Complete(":pro"), ElementsAre(":profile"));
  EXPECT_THAT(repl_->Complete(":run @d"), ElementsAre("@double"));
  EXPECT_THAT(repl_->Complete(":run @double %x=%d"), ElementsAre("%data"));
  EXPECT_TRUE(repl_->Complete(":run @x").empty());
}

TEST(ReplInput, GoesOnUntilBracesClose) {
  EXPECT_TRUE(Repl::IsIncomplete("kernel @f("));
  EXPECT_TRUE(Repl::IsIncomplete("kernel @f() {\n  // }"));
  EXPECT_FALSE(Repl::IsIncomplete("kernel @f() {\n}"));
  EXPECT_FALSE(Repl::IsIncomplete(":run @f"));
  EXPECT_TRUE(Repl::IsIncomplete("y = relu(x +"));
  EXPECT_FALSE(Repl::IsIncomplete("y = relu(x +\n1)"));
  EXPECT_FALSE(Repl::IsIncomplete(":run (x"));
  EXPECT_FALSE(Repl::IsIncomplete("kernels = 4xf32=1"));
  EXPECT_FALSE(Repl::IsIncomplete("%x = 4xf32=1"));
}

}  // namespace
}  // namespace svod
