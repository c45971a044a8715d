#include "jit/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "jit/orc_session.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#define SVOD_TEST_LEAKS 1
#endif
#endif

namespace svod {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// kernel @name: y[i] = x[i] * x[i], written with a loop
const UOp* Square(Context& context, absl::string_view name) {
  auto make = [&](Op op, std::vector<const UOp*> sources, const Argument& argument = {}) {
    return *context.Make(op, sources, argument);
  };
  const UOp* size = context.Index(64);
  const UOp* x =
      *context.Make(Op::kParam, Scalar::kF32, {size}, ParamArgument{0, Access::kIn, "x"});
  const UOp* y =
      *context.Make(Op::kParam, Scalar::kF32, {size}, ParamArgument{1, Access::kOut, "y"});
  const UOp* range = make(Op::kRange, {size}, AxisArgument{0, AxisKind::kLoop});
  const UOp* load =
      *context.Make(Op::kLoad, Scalar::kF32, {make(Op::kIndex, {x, range})}, AlignmentArgument{});
  const UOp* store = make(Op::kStore, {make(Op::kIndex, {y, range}), make(Op::kMul, {load, load})},
                          AlignmentArgument{});
  return make(Op::kSink, {make(Op::kEnd, {range, store})}, FunctionArgument{true, name, {}});
}

Function AsFunction(const UOp* sink) {
  Function function;
  function.root = sink;
  return function;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST(CompileTest, ObjectRunsAndSaysHowLongItTook) {
  Context context;
  auto object = CompileToObject(Square(context, "square"), {});
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_GT(object->lower_ms, 0);
  EXPECT_GT(object->code_gen_ms, 0);
  EXPECT_EQ(object->scratch_bytes, 0);
  auto session = OrcSession::Create();
  auto code = (*session)->Link(object->bytes, object->entry);
  ASSERT_TRUE(code.ok()) << code.status();
  float x[64], y[64] = {};
  for (int i = 0; i < 64; ++i) x[i] = static_cast<float>(i) - 20;
  void* buffers[] = {x, y};
  EXPECT_EQ(code->function(buffers, nullptr, 0, nullptr), 0);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(y[i], x[i] * x[i]);
}

// Entries of the disk tier are compared byte for byte between machines by some users.
TEST(CompileTest, BytesDependOnContentOnly) {
  Context first;
  for (int i = 0; i < 100; ++i) first.Index(1000 + i);  // other ids and addresses
  std::string expected = CompileToObject(Square(first, "square"), {})->bytes;
  Context second;
  EXPECT_EQ(CompileToObject(Square(second, "square"), {})->bytes, expected);
  std::string on_thread;
  std::thread([&] {
    Context third;
    on_thread = CompileToObject(Square(third, "square"), {})->bytes;
  }).join();
  EXPECT_EQ(on_thread, expected);
}

// A thread keeps its code generator, and takes a new one now and then and after errors.
TEST(CompileTest, BytesDoNotDependOnWhatWasCompiledBefore) {
  Context context;
  auto compile = [&](absl::string_view name, int level) {
    CompileOptions options;
    options.code_gen_level = level;
    auto object = CompileToObject(Square(context, name), options);
    EXPECT_TRUE(object.ok()) << object.status();
    return object.ok() ? object->bytes : "";
  };
  const std::string first = compile("square", 1);
  const std::string other = compile("other", 1), plain = compile("square", 0);
  EXPECT_NE(first, other);
  EXPECT_NE(first, plain);
  for (int i = 0; i < 150; ++i) {
    EXPECT_EQ(compile("square", 1), first) << i;
    EXPECT_EQ(compile("other", 1), other) << i;
    if (i % 40 == 0) {
      EXPECT_EQ(compile("square", 0), plain) << i;
      // Text is made from a context of its own.
      EXPECT_TRUE(PrintAssembly(AsFunction(Square(context, "square")), {}).ok());
    }
  }
  std::string elsewhere;
  std::thread([&] { elsewhere = compile("square", 1); }).join();
  EXPECT_EQ(elsewhere, first);
}

TEST(CompileTest, EntrySymbolIsPlainBoundedAndDependsOnContent) {
  Context context;
  EXPECT_THAT(EntrySymbol(Square(context, "a.b c")), StartsWith("svod_a_b_c_"));
  EXPECT_NE(EntrySymbol(Square(context, "a.b")), EntrySymbol(Square(context, "a,b")));
  EXPECT_LE(EntrySymbol(Square(context, std::string(5000, 'x'))).size(), 110u);
  Context other;
  EXPECT_EQ(EntrySymbol(Square(context, "a")), EntrySymbol(Square(other, "a")));
}

TEST(CompileTest, TextOfStagesForAnyTarget) {
  Context context;
  Function square = AsFunction(Square(context, "square"));
  CompileOptions options;
  options.target = *MakeTarget("x86_64-linux-gnu", "haswell", "");
  EXPECT_THAT(*PrintLlvm(square, options), HasSubstr("define i32 @svod_square_"));
  EXPECT_THAT(*PrintAssembly(square, options), HasSubstr("vmulss"));
  options.target = *MakeTarget("x86_64-linux-gnu", "x86-64", "");
  EXPECT_THAT(*PrintAssembly(square, options), HasSubstr("\tmulss"));
  options.target = *MakeTarget("aarch64-linux-gnu", "", "");
  EXPECT_THAT(*PrintAssembly(square, options), HasSubstr("fmul\ts"));
}

TEST(CompileTest, LevelOutsideItsRangeIsInvalid) {
  Context context;
  CompileOptions options;
  options.code_gen_level = 4;
  EXPECT_EQ(CompileToObject(Square(context, "square"), options).status(),
            absl::InvalidArgumentError("compile: code generation level, got 4, expected 0 to 3"));
  options.code_gen_level = -1;
  EXPECT_FALSE(PrintAssembly(AsFunction(Square(context, "square")), options).ok());
}

class CompileDumpTest : public ::testing::Test {
 protected:
  CompileDumpTest() {
    std::string pattern = ::testing::TempDir() + "/svod_compile_XXXXXX";
    root_ = mkdtemp(pattern.data());
    options_.dump_directory = root_ + "/dump";
  }
  ~CompileDumpTest() override { fs::remove_all(root_); }
  std::string PathOf(const UOp* sink, absl::string_view extension) const {
    return absl::StrCat(root_, "/dump/kernel-", ToString(sink->hash()), extension);
  }
  std::string root_;
  CompileOptions options_;
};

TEST_F(CompileDumpTest, EveryStageIsWritten) {
  Context context;
  const UOp* sink = Square(context, "square");
  auto object = CompileToObject(sink, options_);
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_THAT(ReadFile(PathOf(sink, ".uop")), HasSubstr("mul"));
  EXPECT_THAT(ReadFile(PathOf(sink, ".ll")), HasSubstr("define i32 @svod_square_"));
  EXPECT_THAT(ReadFile(PathOf(sink, ".s")), HasSubstr("svod_square_"));
  EXPECT_EQ(ReadFile(PathOf(sink, ".o")), object->bytes);
}

TEST_F(CompileDumpTest, DirectoryThatCannotBeWrittenIsNamed) {
  options_.dump_directory = "/proc/no/such";
  Context context;
  absl::Status status = CompileToObject(Square(context, "square"), options_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("dump: cannot write /proc/no/such/kernel-"));
}

TEST_F(CompileDumpTest, LineTablesPointAtTheDumpedText) {
  Context context;
  const UOp* sink = Square(context, "square");
  options_.line_tables = true;
  auto object = CompileToObject(sink, options_);
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_THAT(object->bytes, HasSubstr(".debug_line"));
  EXPECT_THAT(object->bytes, HasSubstr(fs::path(PathOf(sink, ".uop")).filename().string()));
  options_.line_tables = false;
  EXPECT_THAT(CompileToObject(sink, options_)->bytes, Not(HasSubstr(".debug_line")));
  options_.line_tables = true;
  options_.dump_directory = "";
  EXPECT_EQ(CompileToObject(sink, options_).status().code(), absl::StatusCode::kInvalidArgument);
}

// A target that MakeTarget refuses makes the code generator give up the only way it knows.
TEST_F(CompileDumpTest, FatalErrorOfTheCodeGeneratorBecomesAStatus) {
  CompileOptions broken;
  broken.target = *MakeTarget("x86_64-linux-gnu", "x86-64", "");
  broken.target.features = "-64bit,-64bit-mode";
  Context context;
  const UOp* sink = Square(context, "square");
  InstallFatalErrorHandler();
#ifdef SVOD_TEST_LEAKS
  __lsan::ScopedDisabler the_compilation_that_is_given_up;
#endif
  absl::Status status = CompileToObject(sink, broken).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), StartsWith("compiling kernel square: "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("; its text:\n"));
  broken.dump_directory = options_.dump_directory;
  status = CompileToObject(sink, broken).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("; its text is in ", PathOf(sink, ".uop"))));
  EXPECT_TRUE(fs::exists(PathOf(sink, ".uop")));
  EXPECT_TRUE(CompileToObject(sink, {}).ok()) << "the next compilation works";
}

TEST(CompileConcurrencyTest, ThreadsCompileAtOnce) {
  std::vector<std::thread> threads;
  std::vector<std::string> bytes(3);
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        Context context;
        CompileOptions options;
        options.code_gen_level = i % 2;
        auto object = CompileToObject(Square(context, absl::StrCat("k", i)), options);
        ASSERT_TRUE(object.ok()) << object.status();
        bytes[t] += object->bytes;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bytes[1], bytes[0]);
  EXPECT_EQ(bytes[2], bytes[0]);
}

}  // namespace
}  // namespace svod
