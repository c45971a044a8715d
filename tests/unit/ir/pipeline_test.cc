// Passes by name and the pipeline of kernels, on text.
#include "ir/pipeline.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/evaluate.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace svod {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class PipelineTest : public ::testing::Test {
 protected:
  const UOp* Parse(absl::string_view text) {
    absl::StatusOr<Module> module = ParseModule(text, "test.uop", context_);
    EXPECT_TRUE(module.ok()) << module.status();
    return module.ok() ? module->functions[0].root : nullptr;
  }
  std::string Text(const UOp* root) {
    Function function;
    function.root = root;
    absl::StatusOr<std::string> text = Print(function);
    EXPECT_TRUE(text.ok()) << text.status();
    absl::Status status = Verify(function);
    EXPECT_TRUE(status.ok()) << status;
    // What a pass gives is text like any other.
    EXPECT_EQ(Parse(*text), root) << *text;
    return text.ok() ? *text : "";
  }
  std::string After(const char* pass, absl::string_view text) {
    PassContext pass_context(*context_);
    absl::StatusOr<const UOp*> result = RunPass(*FindPass(pass), Parse(text), pass_context);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? Text(*result) : "";
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
};

constexpr absl::string_view kRowSums = R"(kernel @sums(%y: out f32[4], %x: f32[4, 8]) {
  %i = range 4 loop
  %k = range 8 reduce
  %v = load %x[%i, %k]
  %s = reduce_add %v, %k
  store %y[%i], %s
  end %i
}
)";

TEST_F(PipelineTest, PassesAreFoundByNameOnly) {
  for (const PassInfo& pass : Passes()) EXPECT_EQ(FindPass(pass.name), &pass);
  EXPECT_EQ(FindPass("Simplify"), nullptr);
  EXPECT_EQ(FindPass(""), nullptr);
}

TEST_F(PipelineTest, ReduceBecomesARegister) {
  EXPECT_EQ(After("lower-reduce", kRowSums), R"(kernel @sums(%y: out f32[4], %x: f32[4, 8]) {
  %0 = reg f32[1]
  %1 = range 4 loop
    store %0[0], 0.0
    %2 = mul %1, 8
    %3 = range 8 reduce
      %4 = load %0[0]
      %5 = add %2, %3
      %6 = load %x[%5]
      %7 = add %4, %6
      store %0[0], %7
    end %3
    %8 = load %0[0]
    store %y[%1], %8
  end %1
}
)");
}

TEST_F(PipelineTest, ReducesOfHalvesShareLoopsAndRoundAtTheEnd) {
  EXPECT_EQ(After("lower-reduce", R"(kernel @both(%y: out f16[2], %x: f16[4, 8]) {
  %i = range 4 reduce
  %k = range 8 reduce
  %v = load %x[%i, %k]
  %s = reduce_add %v, %i, %k
  %m = reduce_max %v, %i, %k
  store %y[0], %s
  store %y[1], %m
})"),
            R"(kernel @both(%y: out f16[2], %x: f16[4, 8]) {
  %0 = reg f32[1]
  store %0[0], 0.0
  %1 = reg f32[1]
  store %1[0], -inf
  %2 = range 4 reduce
    %3 = mul %2, 8
    %4 = range 8 reduce
      %5 = load %0[0]
      %6 = add %3, %4
      %7 = load %x[%6]
      %8 = cast %7 : f32
      %9 = add %5, %8
      store %0[0], %9
      %10 = load %1[0]
      %11 = max %10, %8
      store %1[0], %11
    end %4
  end %2
  %12 = load %0[0]
  %13 = cast %12 : f16
  store %y[0], %13
  %14 = load %1[0]
  %15 = cast %14 : f16
  store %y[1], %15
}
)");
}

TEST_F(PipelineTest, UnprovedAccessesGetTheHalfOfAGateThatIsInDoubt) {
  EXPECT_EQ(After("guard-accesses", R"(kernel @shift(%y: out f32[4], %x: f32[4]) {
  %i = range 4 loop
  %j = add %i, 1
  %v = load %x[%j]
  store %y[%i], %v
  end %i
})"),
            R"(kernel @shift(%y: out f32[4], %x: f32[4]) {
  %0 = range 4 loop
    %1 = add %0, 1
    %2 = cmplt %1, 4
    %3 = load %x[%1], gate=%2
    store %y[%0], %3
  end %0
}
)");
}

TEST_F(PipelineTest, VectorAccessesAreGatedLaneByLane) {
  EXPECT_EQ(After("guard-accesses", R"(kernel @shift(%y: out f32[4], %x: f32[4], %at: i64[1]) {
  %a = load %at[0]
  %i = cast %a : index
  %g = cmplt %i, 9
  %v = load %x[%i], gate=%g : f32x4
  store %y[0], %v
})"),
            R"(kernel @shift(%y: out f32[4], %x: f32[4], %at: i64[1]) {
  %0 = load %at[0]
  %1 = cast %0 : index
  %2 = cmplt %1, 9
  %3 = splat %2 : boolx4
  %4 = splat %1 : indexx4
  %5 = stack 0:index, 1:index, 2:index, 3:index
  %6 = add %4, %5
  %7 = cmple 0, %6
  %8 = and %3, %7
  %9 = cmplt %6, 4
  %10 = and %8, %9
  %11 = load %x[%1], gate=%10 : f32x4
  store %y[0], %11
}
)");
}

TEST_F(PipelineTest, SymbolicBuffersAreGatedByTheirSizeOfNow) {
  EXPECT_EQ(After("guard-accesses", R"(kernel @next(%n = define_var "n", min=1, max=9;
             %y: out f32[%n, 2], %x: f32[%n]) {
  %i = range %n loop
  %j = add %i, 1
  %v = load %x[%j]
  store %y[%i, 1], %v
  %w = load %x[%i] : f32x2
  store %y[0], %w
  end %i
})"),
            R"(kernel @next(%n = define_var "n", min=1, max=9; %y: out f32[%n, 2], %x: f32[%n]) {
  %0 = stack 0:index, 1:index
  %1 = splat %n : indexx2
  %2 = range %n loop
    %3 = mul %2, 2
    %4 = add %3, 1
    %5 = add %2, 1
    %6 = cmplt %5, %n
    %7 = load %x[%5], gate=%6
    store %y[%4], %7
    %8 = splat %2 : indexx2
    %9 = add %8, %0
    %10 = cmplt %9, %1
    %11 = load %x[%2], gate=%10 : f32x2
    store %y[0], %11
  end %2
}
)");
}

TEST_F(PipelineTest, ContractionFusesFloatsOnly) {
  EXPECT_EQ(After("contract-mulacc", R"(kernel @k(%y: out f32[3], %x: f32[3], %z: inout i32[1]) {
  %a = load %x[0]
  %b = load %x[1]
  %c = load %x[2]
  %p = mul %a, %b
  %d = add %c, %p
  %e = sub %p, %c
  %f = sub %c, %p
  store %y[0], %d
  store %y[1], %e
  store %y[2], %f
  %i = load %z[0]
  %j = mul %i, %i
  %k = add %j, %i
  store %z[0], %k
})"),
            R"(kernel @k(%y: out f32[3], %x: f32[3], %z: inout i32[1]) {
  %0 = load %x[0]
  %1 = load %x[1]
  %2 = load %x[2]
  %3 = mulacc %0, %1, %2
  store %y[0], %3
  %4 = neg %2
  %5 = mulacc %0, %1, %4
  store %y[1], %5
  %6 = neg %0
  %7 = mulacc %6, %1, %2
  store %y[2], %7
  %8 = load %z[0]
  %9 = mul %8, %8
  %10 = add %9, %8
  store %z[0], %10
}
)");
}

// The whole way, with a transcendental, an access in doubt and a reduction.
constexpr absl::string_view kWhole = R"(kernel @whole(%y: out f32[4], %x: f32[4, 8]) {
  %i = range 4 loop
  %k = range 8 reduce
  %j = add %k, 1
  %p = mul %i, 8
  %q = add %p, %j
  %v = load %x[%q]
  %e = exp2 %v
  %s = reduce_add %e, %k
  store %y[%i], %s
  end %i
}
)";

TEST_F(PipelineTest, ResultIsReadyForLowering) {
  const UOp* sink = Parse(kWhole);
  PassContext context(*context_);
  absl::StatusOr<const UOp*> result = OptimizeKernel(sink, context);
  ASSERT_TRUE(result.ok()) << result.status();
  Function function;
  function.root = *result;
  absl::Status status = Verify(function, {.lowerable = true});
  EXPECT_TRUE(status.ok()) << status;
  (void)Text(*result);
  EXPECT_GT(context.rule_hits["lower-reduce"], 0);
  EXPECT_GT(context.rule_hits["guard-accesses"], 0);
  // Nothing is left to do.
  EXPECT_EQ(*OptimizeKernel(*result, *context_), *result);
}

TEST_F(PipelineTest, OutsideIsWhatTheVariablesSay) {
  const UOp* sink = Parse(R"(kernel @next(%n = define_var "n", min=1, max=4;
             %y: out f32[4], %x: f32[%n]) {
  %i = range 4 loop
  %v = load %x[%i]
  store %y[%i], %v
  end %i
})");
  for (const UOp* root : {sink, *OptimizeKernel(sink, *context_)}) {
    std::vector<float> x = {1, 2, 3, 4}, y(4, -1);
    absl::Span<std::byte> buffers[] = {{reinterpret_cast<std::byte*>(y.data()), 16},
                                       {reinterpret_cast<std::byte*>(x.data()), 16}};
    std::pair<std::string, int64_t> variables[] = {{"n", 2}};
    ASSERT_TRUE(Evaluate(root, buffers, {.variables = variables}).ok());
    EXPECT_THAT(y, ElementsAre(1, 2, 0, 0));
  }
}

TEST_F(PipelineTest, ContractionIsAnOption) {
  const UOp* sink = Parse(R"(kernel @k(%y: out f32[1], %x: f32[1]) {
  %a = load %x[0]
  %p = mul %a, %a
  %d = add %p, %a
  store %y[0], %d
})");
  EXPECT_THAT(Text(*OptimizeKernel(sink, *context_)), Not(HasSubstr("mulacc")));
  EXPECT_THAT(Text(*OptimizeKernel(sink, *context_, {.contract_mulacc = true, .debug = nullptr})),
              HasSubstr("mulacc"));
}

TEST_F(PipelineTest, BadKernelsAreRefusedAtTheDoor) {
  absl::StatusOr<const UOp*> y = context_->Make(Op::kParam, Scalar::kF32, {context_->Index(4)},
                                                ParamArgument{0, Access::kIn, "y"});
  const UOp* index = *context_->Make(Op::kIndex, {*y, context_->Index(0)});
  const UOp* store =
      *context_->Make(Op::kStore, {index, context_->Float(Scalar::kF32, 1)}, AlignmentArgument{});
  const UOp* sink = *context_->Make(Op::kSink, {store}, FunctionArgument{true, "k", {}});
  absl::Status status = OptimizeKernel(sink, *context_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("expected out or inout"));
}

TEST_F(PipelineTest, DumpsHoldEachStepThatChangedSomething) {
  std::string directory = ::testing::TempDir() + "/svod_pipeline_dump";
  std::filesystem::remove_all(directory);
  DebugOptions debug;
  debug.dump_directory = directory;
  debug.verify = VerifyLevel::kEach;
  const UOp* sink = Parse(kWhole);
  const UOp* result = *OptimizeKernel(sink, *context_, {.contract_mulacc = false, .debug = &debug});
  std::vector<std::string> files;
  std::string folder = directory + "/kernel-" + ToString(sink->hash());
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path().filename().string());
  }
  std::sort(files.begin(), files.end());
  EXPECT_THAT(files, ElementsAre("00-input.uop", "01-simplify.uop", "03-lower-reduce.uop",
                                 "04-decompose-transcendentals.uop", "05-guard-accesses.uop",
                                 "06-simplify.uop"));
  std::stringstream last;
  last << std::ifstream(folder + "/06-simplify.uop").rdbuf();
  EXPECT_EQ(Parse(last.str()), result);  // each dump is a program
  debug.dump_directory = "/proc/nowhere";
  absl::Status status =
      OptimizeKernel(sink, *context_, {.contract_mulacc = false, .debug = &debug}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("00-input.uop: cannot write the dump"));
}

TEST_F(PipelineTest, GuardWantsNoReduce) {
  PassContext context(*context_);
  absl::Status status = RunPass(*FindPass("guard-accesses"), Parse(kRowSums), context).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("guard-accesses: kernel, got a reduce, expected none"));
}

// --- Debug options
// --------------------------------------------------------------------------------

absl::StatusOr<DebugOptions> ParseOne(const char* name, const char* value) {
  return ParseDebugOptions([&](const char* asked) -> const char* {
    return absl::string_view(asked) == name ? value : nullptr;
  });
}

TEST(DebugOptionsTest, UnsetMeansQuietAndVerified) {
  DebugOptions options = *ParseOne("", nullptr);
  EXPECT_EQ(options.level, -1);
  EXPECT_EQ(options.verify, VerifyLevel::kStages);
  EXPECT_EQ(options.dump_directory + options.trace_file, "");
  EXPECT_FALSE(options.gdb_events || options.perfmap_events);
}

TEST(DebugOptionsTest, EachVariableIsRead) {
  EXPECT_EQ(ParseOne("SVOD_DEBUG", "5")->level, 5);
  EXPECT_EQ(ParseOne("SVOD_DEBUG", "0")->level, 0);
  EXPECT_EQ(ParseOne("HOME", "/h")->home_directory, "/h");
  EXPECT_EQ(ParseOne("HOME", "/h")->cache_directory, "/h/.cache");
  EXPECT_EQ(ParseOne("XDG_CACHE_HOME", "/c")->cache_directory, "/c");
  EXPECT_EQ(ParseOne("SVOD_DUMP", "d")->dump_directory, "d");
  EXPECT_EQ(ParseOne("SVOD_VERIFY", "off")->verify, VerifyLevel::kOff);
  EXPECT_EQ(ParseOne("SVOD_VERIFY", "stages")->verify, VerifyLevel::kStages);
  EXPECT_EQ(ParseOne("SVOD_VERIFY", "each")->verify, VerifyLevel::kEach);
  EXPECT_EQ(ParseOne("SVOD_TRACE", "t.json")->trace_file, "t.json");
  EXPECT_TRUE(ParseOne("SVOD_JIT_EVENTS", "gdb,perfmap")->gdb_events);
  EXPECT_TRUE(ParseOne("SVOD_JIT_EVENTS", "perfmap")->perfmap_events);
}

TEST(DebugOptionsTest, UnknownValuesAreErrorsWithAnExample) {
  const std::pair<const char*, const char*> bad[] = {{"SVOD_DEBUG", "6"},
                                                     {"SVOD_DEBUG", "x"},
                                                     {"SVOD_VERIFY", "on"},
                                                     {"SVOD_JIT_EVENTS", "gdb,vtune"}};
  for (auto [name, value] : bad) {
    absl::Status status = ParseOne(name, value).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(std::string("environment: ") + name + ", got '"));
    EXPECT_THAT(status.message(), HasSubstr(std::string("such as ") + name + "="));
  }
}

}  // namespace
}  // namespace svod
