#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "ir/kernel_builder.h"
#include "ir/literal.h"
#include "ir/text.h"

namespace svod {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What `text` prints as; the printed text must print as itself, from the same nodes.
std::string Reprint(absl::string_view text) {
  auto context = std::make_shared<Context>();
  absl::StatusOr<Module> module = ParseModule(text, "t.uop", context);
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return "";
  absl::StatusOr<std::string> printed = Print(*module);
  EXPECT_TRUE(printed.ok()) << printed.status();
  if (!printed.ok()) return "";
  absl::StatusOr<Module> again = ParseModule(*printed, "printed.uop", context);
  EXPECT_TRUE(again.ok()) << again.status() << "\n" << *printed;
  if (!again.ok()) return "";
  EXPECT_EQ(again->functions.back().root, module->functions.back().root) << *printed;
  EXPECT_EQ(*Print(*again), *printed);
  return *printed;
}

// The text is canonical already.
void ExpectPrintsAsItself(absl::string_view text) { EXPECT_EQ(Reprint(text), text); }

std::filesystem::path RepositoryRoot() {
  return std::filesystem::path(SVOD_TEST_DATA).parent_path().parent_path();
}

std::string ReadFile(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// --- Lines ------------------------------------------------------------------------------------

TEST(Print, LoopInvariantsMoveOutOfLoops) {
  EXPECT_EQ(Reprint(R"(
kernel @saxpy(%y: inout f32[64], %x: in f32[64], %a: f32[1]) opts=[ upcast(0, 16) ]
{
  %i = range 64
  %v = load %x[%i]; %w = load %y[%i]  // two lines in one
  %c = load %a[0]
  %r = mulacc %c,
              %v, %w
  store %y[%i], %r
  end %i
})"),
            R"(kernel @saxpy(%y: inout f32[64], %x: f32[64], %a: f32[1]) opts=[upcast(0, 16)] {
  %c = load %a[0]
  %i = range 64 loop
    %v = load %x[%i]
    %w = load %y[%i]
    %r = mulacc %c, %v, %w
    store %y[%i], %r
  end %i
}
)");
}

TEST(Print, StagesOfARow) {
  ExpectPrintsAsItself(R"(kernel @softmax(%y: out f32[4, 8], %x: f32[4, 8]) {
  %e = local f32[8]
  %r = range 4 loop
    %0 = mul %r, 8
    %i = range 8 reduce
      %1 = add %0, %i
      %v = load %x[%1]
    %max = reduce_max %v, %i
    %j = range 8 loop
      %2 = add %0, %j
      %w = load %x[%2]
      %d = sub %w, %max
      %p = exp %d
      store %e[%j], %p
    end %j
    %k = range 8 reduce
      %q = load %e[%k]
    %sum = reduce_add %q, %k
    %most = reduce_max %q, %k
    %l = range 8 loop
      %3 = add %0, %l
      %s = load %e[%l]
      %t = fdiv %s, %sum
      %u = mul %t, %most
      store %y[%3], %u
    end %l
  end %r
}
)");
}

TEST(Print, AccumulatorsNeedNoAfter) {
  ExpectPrintsAsItself(R"(kernel @sum(%y: out f32[4], %x: f32[4, 8]) {
  %acc = reg f32[1]
  %i = range 4 loop
    store %acc[0], 0.0
    %0 = mul %i, 8
    %k = range 8 reduce
      %a = load %acc[0]
      %1 = add %0, %k
      %v = load %x[%1]
      %b = add %a, %v
      store %acc[0], %b
    end %k
    %s = load %acc[0]
    store %y[%i], %s
  end %i
}
)");
}

TEST(Print, VectorsGatesAndAlignment) {
  ExpectPrintsAsItself(R"(kernel @vectors(%y: out f32[64], %x: f32[64], %n: i64[4]) {
  %v = load %x[8], align=32 : f32x8
  %w = mul %v, 2.0
  %a = lanes %w, [3]
  %g = cmplt %a, 1.5
  %l = lanes %w, [0, 2, 4, 6]
  %s = splat %a : f32x4
  %t = add %l, %s
  %m = load %x[32], gate=%g, alt=1.0, align=16 : f32x4
  %sum = add %t, %m
  store %y[0], %sum, gate=%g, align=16
  %p0 = load %n[0]
  %i0 = cast %p0 : index
  %i1 = add %i0, 1
  %p = stack %i0, %i1
  %u = load %x[%p]
  store %y[%p], %u
}
)");
}

TEST(Print, ExplicitOrdersAreWrittenWhereTheyAreNotImplied) {
  // The first load names more than it must, the second nothing although it should; the third names
  // what the builder would, and the last names something, but not all that it should.
  ExpectPrintsAsItself(R"(kernel @orders(%y: inout f32[8], %z: out f32[8]) {
  %s = store %y[1], 2.0
  %t = store %y[0], 1.0
  %0 = after %y, %s, %t
  %a = load %0[0]
  store %z[0], %a
  %b = load %y[0], exact
  store %z[1], %b
  %c = load %y[1]
  store %z[2], %c
  %1 = after %y, %s
  %d = load %1[0], exact
  store %z[3], %d
}
)");
}

// A lone list in another order is only the order of the statements; a longer one is written out.
TEST(Print, EffectsAreListedWhereTheyAreNotImplied) {
  EXPECT_EQ(Reprint(R"(kernel @effects(%y: out f32[8], %z: inout f32[8]) {
  %i = range 8 loop
    %s = store %y[%i], 1.0
    %t = store %z[%i], 2.0
    %v = load %z[%i]
    %u = store %z[7], %v
  %e = end %i, %u, %t, %s
})"),
            R"(kernel @effects(%y: out f32[8], %z: inout f32[8]) {
  %i = range 8 loop
    %t = store %z[%i], 2.0
    %v = load %z[%i]
    %u = store %z[7], %v
    %s = store %y[%i], 1.0
  end %i, %u, %t, %s
}
)");
}

TEST(Print, VariablesInTheHeader) {
  ExpectPrintsAsItself(
      R"(kernel @f(%n = define_var "n", min=1, max=64; %m = mul %n, 2; %y: out f32[%n, 4], %x: f32[%m]) {
  %c = core_id %n
  %0 = mul %c, 2
  %v = load %x[%0]
  store %y[%c], %v
}
)");
}

TEST(Print, NumbersThatDoNotFollow) {
  ExpectPrintsAsItself(R"(kernel @numbers(%b: out f32[8], %a: f32[8] slot=3) {
  %r = reg f32[1], id=5
  %i = range 8 reduce, axis=2
    %v = load %a[%i]
    store %r[0], 1.0
    %w = load %r[0]
    %s = add %v, %w
    store %b[%i], %s
  end %i
}
)");
}

TEST(Print, Graphs) {
  ExpectPrintsAsItself(R"(kernel @k(%y: out f32[8], %x: f32[8]) {
  %n = define_var "n", min=0, max=8
  %i = range %n loop
    %v = load %x[%i]
    store %y[%i], %v
  end %i
}

graph @main(%x: f32[8]) opts=["a, b", planned] {
  %d = buffer u8[16]
  %m = buffer f32[8]
  %n = define_var "n", min=0, max=8
  %b = bind %n, 5
  %c = call @k, %m, %x, %b
  %m1 = after %m, %c
  %0 = buffer_view %m1, offset=16 : f32[2, 2]
  %f = custom_function "dump it", %0, %d, 2:i64
  %1 = after %d, %f
  return %1
}
)");
}

// --- Names ------------------------------------------------------------------------------------

TEST(Print, NamesAreMadeUniqueAndPrintable) {
  auto context = std::make_shared<Context>();
  KernelBuilder builder(context, "a kernel");
  const UOp* y = builder.Param("y", Scalar::kF32, {4}, Access::kOut);
  const UOp* x = builder.Param("x-ray", Scalar::kF32, {4}, Access::kIn);
  const UOp* nameless = builder.Param("", Scalar::kF32, {4}, Access::kIn);
  const UOp* a = builder.Load(x, context->Index(0));
  const UOp* b = builder.Load(nameless, context->Index(0));
  const UOp* sum = builder.Make(Op::kAdd, {a, b});
  builder.Store(y, context->Index(0), sum);
  absl::string_view opts[] = {"split(0, 4)", "odd, one", "", " spaced"};
  Function function{builder.Finish({}, opts).value(), {}, ""};
  function.notes[a] = {"y", 0, 0};
  function.notes[b] = {"y", 0, 0};
  function.notes[sum] = {"sum of two", 0, 0};
  absl::StatusOr<std::string> printed = Print(function);
  ASSERT_TRUE(printed.ok()) << printed.status();
  EXPECT_EQ(*printed,
            R"(kernel @a_kernel "a kernel"(%y: out f32[4], %x_ray: f32[4] "x-ray", %p2: f32[4]))"
            R"( opts=[split(0, 4), "odd, one", "", " spaced"] {
  %y.1 = load %x_ray[0]
  %y.2 = load %p2[0]
  %sum_of_two = add %y.1, %y.2
  store %y[0], %sum_of_two
}
)");
  absl::StatusOr<Module> again = ParseModule(*printed, "", context);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->functions[0].root, function.root);
}

TEST(Print, CanonicalTextHasNoNamesButParametersAndVariables) {
  auto context = std::make_shared<Context>();
  absl::StatusOr<Module> module = ParseModule(
      R"(kernel @k(%n = define_var "len", min=0, max=4; %y: out f32[%n]) {
  %one = range %n loop
    %two = cast %one : f32
    store %y[%one], %two
  end %one
})",
      "", context);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(*PrintCanonical(module->functions[0].root),
            R"(kernel @k(%len = define_var "len", min=0, max=4; %y: out f32[%len]) {
  %0 = range %len loop
    %1 = cast %0 : f32
    store %y[%0], %1
  end %0
}
)");
}

TEST(Print, SayWhatHasNoText) {
  Context context;
  const UOp* b = *context.Make(Op::kBuffer, Scalar::kF32, {context.Index(4)}, BufferArgument{});
  const UOp* index = *context.Make(Op::kIndex, {b, context.Index(0)});
  const UOp* load = *context.Make(Op::kLoad, Scalar::kF32, {index}, AlignmentArgument{});
  const UOp* graph = *context.Make(Op::kSink, {load}, FunctionArgument{false, "g", {}});
  EXPECT_THAT(std::string(PrintCanonical(graph).status().message()),
              HasSubstr("print: index: in a graph"));
  EXPECT_THAT(std::string(PrintCanonical(load).status().message()),
              HasSubstr("print: root, got load, expected sink"));
}

TEST(Print, SummariesAreOneLine) {
  Context context;
  const UOp* n = *context.Make(Op::kDefineVar, {}, VariableArgument{"n", 0, 4});
  const UOp* sum = *context.Make(Op::kAdd, {n, context.Index(1)});
  EXPECT_EQ(Summarize(sum), "add(define_var, const 1:index) : index");
  EXPECT_EQ(Summarize(context.Float(DType(Scalar::kF32, 4), 0.5)), "const 0.5:f32x4");
}

// --- Literals ---------------------------------------------------------------------------------

TEST(Literal, ShortestDecimalsComeBack) {
  auto f32 = [](float value) {
    return FormatLiteral(Scalar::kF32, std::bit_cast<uint32_t>(value));
  };
  EXPECT_EQ(f32(0.1f), "0.1");
  EXPECT_EQ(f32(-0.0f), "-0.0");
  EXPECT_EQ(f32(16777216.0f), "16777216.0");
  EXPECT_EQ(f32(1e20f), "1e+20");
  EXPECT_EQ(f32(INFINITY), "inf");
  EXPECT_EQ(f32(-INFINITY), "-inf");
  EXPECT_EQ(FormatLiteral(Scalar::kF32, 0x7fc00000), "nan");
  EXPECT_EQ(FormatLiteral(Scalar::kF32, 0x7fc00001), "0x7fc00001");
  EXPECT_EQ(FormatLiteral(Scalar::kF32, 0xffc00000), "0xffc00000");
  EXPECT_EQ(FormatLiteral(Scalar::kF16, 0x2e66), "0.1");
  EXPECT_EQ(FormatLiteral(Scalar::kI8, 0x80), "-128");
  EXPECT_EQ(FormatLiteral(Scalar::kU64, ~uint64_t{0}), "18446744073709551615");
  EXPECT_EQ(FormatLiteral(Scalar::kBool, 1), "true");
}

TEST(Literal, EveryBitOfEveryTypeComesBack) {
  uint64_t state = 1;
  for (int s = 0; s < kNumScalars; ++s) {
    Scalar scalar = static_cast<Scalar>(s);
    int width = DType(scalar).bits();
    if (DType(scalar).is_void()) continue;
    // All 16-bit values; a sample of the wider ones, with many special exponents among them.
    int64_t count = width <= 16 ? int64_t{1} << width : 100000;
    for (int64_t i = 0; i < count; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      uint64_t bits = width <= 16 ? static_cast<uint64_t>(i) : state ^ (state >> 31);
      if (width > 16 && i % 4 == 0) bits &= 0x807fffffu;
      if (width < 64) bits &= (uint64_t{1} << width) - 1;
      std::string text = FormatLiteral(scalar, bits);
      absl::StatusOr<uint64_t> parsed = ParseLiteral(text, scalar);
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      ASSERT_EQ(*parsed, bits) << text << " : " << InfoOf(scalar).name;
    }
  }
}

TEST(Literal, DecimalsRoundOnceAndStayFinite) {
  // Between two f32 values, a hair above the middle: through f64 it would round to the middle,
  // down.
  EXPECT_EQ(*ParseLiteral("1.00000005960464477540", Scalar::kF32),
            std::bit_cast<uint32_t>(1.00000011920928955f));
  EXPECT_EQ(*ParseLiteral("1e-400", Scalar::kF32), 0u);
  EXPECT_EQ(*ParseLiteral("-1e-400", Scalar::kF64), uint64_t{1} << 63);
  EXPECT_EQ(*ParseLiteral("2", Scalar::kF32), std::bit_cast<uint32_t>(2.0f));
  for (absl::string_view huge : {"1e39", "-1e39", "1e400", "0.1e99999999999999999999"}) {
    EXPECT_THAT(std::string(ParseLiteral(huge, Scalar::kF32).status().message()),
                HasSubstr("expected a finite value, or inf for f32"));
  }
  for (absl::string_view wrong :
       {"", "-", "1.", ".5", "1e", "0x", "0xg", "1.2.3", "nano", "+1", "0x1ffffffff", "true"}) {
    EXPECT_FALSE(ParseLiteral(wrong, Scalar::kF32).ok()) << wrong;
  }
  EXPECT_FALSE(ParseLiteral("1.0", Scalar::kI32).ok());
  EXPECT_FALSE(ParseLiteral("-1", Scalar::kU8).ok());
  EXPECT_FALSE(ParseLiteral("1", Scalar::kBool).ok());
  EXPECT_FALSE(ParseLiteral("9223372036854775808", Scalar::kI64).ok());
}

TEST(Print, LiteralsSayTheirTypeOnlyWhereItDoesNotFollow) {
  ExpectPrintsAsItself(R"(kernel @literals(%y: out f32[8], %x: f32[8], %f: inout bool[4]) {
  %d = where false:bool, 1:i32, 2:i32
  %e = cast %d : f32
  %h = cast 7:i8 : f32
  %v = load %x[0]
  %a = add %v, 0.1
  %g = cmplt 1.5, %a
  %w = where %g, %a, -inf
  %o = where true, %w, nan
  %c = add 1.0:f32, 2.0:f32
  %q = mul %o, %c
  %r = mulacc %e, %h, %q
  %b = splat 0x7fc00001 : f32x4
  %k = lanes %b, [1]
  %s = max %r, %k
  store %y[0], %s
  store %y[1], -0.0, gate=true
  store %y[4], 0.5:f32x4
  store %f[0], true
})"
                       "\n");
}

// --- Documentation ----------------------------------------------------------------------------

TEST(TextDocumentation, HoldsEveryOpWithItsMeaning) {
  std::string page = ReadFile(RepositoryRoot() / "docs/text.md");
  page = absl::StrReplaceAll(page, {{"\\|", "|"}});
  for (const OpInfo& info : kOpInfos) {
    EXPECT_THAT(page, HasSubstr(absl::StrCat("`", info.text, "`: ", info.meaning)))
        << "docs/text.md lacks or misquotes this row of ir/op.def";
  }
}

TEST(TextDocumentation, ItsFirstExampleIsCanonical) {
  std::string page = ReadFile(RepositoryRoot() / "docs/text.md");
  size_t begin = page.find("```\nkernel ") + 4;
  ASSERT_NE(begin, std::string::npos);
  ExpectPrintsAsItself(page.substr(begin, page.find("```", begin) - begin));
}

}  // namespace
}  // namespace svod
