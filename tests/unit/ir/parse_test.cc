#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "ir/text.h"

namespace svod {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Module> Parse(absl::string_view text) {
  return ParseModule(text, "t.uop", std::make_shared<Context>());
}

// The nodes of one op under a function's root, in topological order.
std::vector<const UOp*> NodesOf(const Function& function, Op op) {
  std::vector<const UOp*> found;
  for (const UOp* node : Toposort(function.root)) {
    if (node->op() == op) found.push_back(node);
  }
  return found;
}

constexpr absl::string_view kSaxpy = R"(// y = a * x + y
kernel @saxpy(%y: inout f32[64], %x: f32[64], %a: f32[1]) opts=[upcast(0, 16)] {
  %i = range 64 loop
  %v = load %x[%i]
  %w = load %y[%i]
  %c = load %a[0]
  %r = mulacc %c, %v, %w
  store %y[%i], %r
  end %i
}
)";

TEST(Parse, ReadsAKernelWithItsHeader) {
  absl::StatusOr<Module> module = Parse(kSaxpy);
  ASSERT_TRUE(module.ok()) << module.status();
  ASSERT_EQ(module->functions.size(), 1u);
  const Function& function = module->functions[0];
  const auto& argument = function.root->arg<FunctionArgument>();
  EXPECT_TRUE(argument.is_kernel);
  EXPECT_EQ(argument.name, "saxpy");
  ASSERT_EQ(argument.opts.size(), 1u);
  EXPECT_EQ(argument.opts[0], "upcast(0, 16)");
  std::vector<const UOp*> stores = NodesOf(function, Op::kStore);
  ASSERT_EQ(stores.size(), 1u);
  EXPECT_EQ(stores[0]->source(1)->op(), Op::kMulAcc);
  const UOp* y = BaseBuffer(stores[0]->source(0));
  EXPECT_EQ(y->arg<ParamArgument>().name, "y");
  EXPECT_EQ(y->arg<ParamArgument>().access, Access::kInOut);
  // The store comes after the load through its value: nothing else is added.
  EXPECT_EQ(NodesOf(function, Op::kAfter).size(), 0u);
  // end takes up the store, the sink takes up the end.
  ASSERT_EQ(function.root->num_sources(), 1);
  EXPECT_EQ(function.root->source(0)->op(), Op::kEnd);
}

TEST(Parse, NotesNamesAndPlaces) {
  absl::StatusOr<Module> module = Parse(kSaxpy);
  ASSERT_TRUE(module.ok()) << module.status();
  const Function& function = module->functions[0];
  const UOp* range = NodesOf(function, Op::kRange)[0];
  EXPECT_EQ(function.Describe(range), "t.uop:3:3: %i");
  EXPECT_EQ(function.Describe(NodesOf(function, Op::kStore)[0]), "t.uop:8:3: store");
}

// Every error names its place and puts a caret under the token.
struct ErrorCase {
  const char* name;
  const char* text;
  const char* message;
};

class ParseError : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(ParseError, NamesItsPlace) {
  absl::StatusOr<Module> module = Parse(GetParam().text);
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(module.status().message()), HasSubstr(GetParam().message));
}

// A kernel with one line in it.
#define SVOD_LINE(line) "kernel @k(%y: out f32[8], %x: f32[8]) {\n  %i = range 8\n  " line "\n"

const ErrorCase kErrors[] = {
    {"UnknownOp", SVOD_LINE("%v = mull %i, 2"),
     "t.uop:3:8: unknown op 'mull' (did you mean 'mul'?)\n  %v = mull %i, 2\n       ^~~~"},
    {"UnknownReduce", SVOD_LINE("%v = reduce_avg %i, %i"), "unknown op 'reduce_avg'"},
    {"UnknownValue", SVOD_LINE("%v = load %z[%i]"),
     "t.uop:3:13: unknown value '%z', expected one that is defined above\n"
     "  %v = load %z[%i]\n            ^~"},
    {"Redefinition", SVOD_LINE("%i = load %x[%i]"),
     "t.uop:3:3: '%i' is defined twice, first in line 2, column 3"},
    {"MissingComma", SVOD_LINE("%v = add %i %i"), "got '%i', expected ',' or the end of the line"},
    {"OperandTypes", SVOD_LINE("%v = load %x[%i]\n  %w = add %v, %i"),
     "t.uop:4:8: add: operand types differ, got f32 and index, expected equal"},
    {"LiteralWithoutType", SVOD_LINE("%v = add 1, 2"),
     "t.uop:3:12: literal '1' has no type, expected it as in '1:i32'"},
    {"LiteralRange", SVOD_LINE("%v = add 300:u8, 2"), "literal, got '300', expected 0 to 255"},
    {"LiteralKind", SVOD_LINE("%v = add %i, 2.5"), "literal, got '2.5', expected an integer"},
    {"HugeFloat", SVOD_LINE("store %y[%i], 1e39"), "expected a finite value, or inf for f32"},
    {"UnnamedValue", SVOD_LINE("add %i, 1"), "add: its value has no name"},
    {"UnknownDType", SVOD_LINE("%v = cast %i : f33"), "t.uop:3:18: unknown dtype 'f33'"},
    {"Lanes", SVOD_LINE("%v = splat 1.0 : f32x99999"), "lanes out of range, got 99999"},
    {"MissingType", SVOD_LINE("%v = cast %i"), "got end of line, expected the type"},
    {"ExtraType", SVOD_LINE("%v = add %i, 1 : index"), "add takes no type"},
    {"Attribute", SVOD_LINE("%v = add %i, 1, gate=true"), "add takes no attribute 'gate'"},
    {"StoreAlt", SVOD_LINE("store %y[%i], 1.0, alt=0.0"), "store takes no attribute 'alt'"},
    {"TwiceAttribute", SVOD_LINE("%v = load %x[%i], align=4, align=4"), "is given twice"},
    {"LoadOfValue", SVOD_LINE("%v = load %i[%i]"), "load: got '%i', expected a buffer"},
    {"NoAddress", SVOD_LINE("%v = load %x"), "expected the address"},
    {"Coordinates", SVOD_LINE("%v = load %x[%i, %i]"), "number of coordinates, got 2, expected 1"},
    {"WrongEnd", SVOD_LINE("%j = range 8\n  end %i"), "not the innermost open loop"},
    {"EmptyLoop", SVOD_LINE("end %i"), "its loop has no effect"},
    {"OpenLoop", SVOD_LINE("store %y[%i], 1.0") "}", "t.uop:2:3: kernel: a loop is still open"},
    {"AfterItsLoop",
     SVOD_LINE("%v = load %x[%i]\n  store %y[%i], 1.0\n  end %i\n  store %y[0], %v"),
     "t.uop:6:16: load: used after the end of its loop"},
    {"UnusedParam", SVOD_LINE("store %y[%i], 1.0\n  end %i\n}"), "t.uop:1:27: param: never used"},
    {"UnfinishedBlock", SVOD_LINE("store %y[%i], 1.0"), "got end of text, expected '}'"},
    {"NoBlock", "kernal @k() {}", "t.uop:1:1: got 'kernal', expected 'kernel' or 'graph'"},
    {"UnknownKernel", "graph @g(%x: f32[4]) {\n  call @k, %x\n}", "t.uop:2:8: unknown kernel '@k'"},
    {"GraphOpInKernel", SVOD_LINE("%b = buffer f32[4]"),
     "buffer: in a kernel, expected in a graph"},
    {"KernelOpInGraph", "graph @g() {\n  %i = range 4\n}",
     "range: in a graph, expected in a kernel"},
    {"IndexLine", SVOD_LINE("%p = index %x, %i"), "index: no line of its own"},
    {"UnterminatedString", "graph @g() {\n  custom_function \"name\n}",
     "t.uop:2:19: string, expected '\"' before the end of the line"},
    {"BadCharacter", SVOD_LINE("%v = add %i, \xc3\xa9"), "t.uop:3:16: character '\xc3\xa9'"},
    {"NotUtf8", SVOD_LINE("// \xff\xfe"), "byte 0xff in a comment, expected UTF-8 text"},
    {"ShapeOverflow", "kernel @k(%x: f32[1000000000, 1000000000, 100]) {}",
     "dimensions, expected fewer than 2^62 bytes in all"},
    {"NegativeDimension", "kernel @k(%x: f32[-1]) {}", "dimension, got -1, expected at least 0"},
    {"BigInteger", "kernel @k(%x: f32[99999999999999999999]) {}",
     "expected -9223372036854775808 to"},
    {"OptsBrackets", "kernel @k() opts=[a(1] {}", "expected balanced brackets"},
    {"DeadCall",
     "kernel @k(%y: out f32[1]) {\n  store %y[0], 1.0\n}\n"
     "graph @g(%y: f32[1]) {\n  call @k, %y\n  return %y\n}",
     "t.uop:5:3: call: nothing returned comes after it"},
    {"DefinedTwice", "kernel @k() {}\nkernel @k() {}",
     "t.uop:2:8: '@k' is defined twice, first in line 1"},
    {"ReservedName", SVOD_LINE("%c = define_var \"core_id\", min=0, max=3"), "is reserved"},
    {"CoreIdOperand", SVOD_LINE("%c = core_id"), "core_id: number of operands, got 0, expected 1"},
    {"NestedAddress", SVOD_LINE("%v = load %x[%x[%i]]"), "an address only of the first operand"},
};

INSTANTIATE_TEST_SUITE_P(All, ParseError, ::testing::ValuesIn(kErrors),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Parse, RefusesNulBytes) {
  std::string text(kSaxpy);
  text[text.find("range")] = '\0';
  absl::StatusOr<Module> module = Parse(text);
  EXPECT_THAT(std::string(module.status().message()), HasSubstr("t.uop:3:8: byte 0x00"));
}

TEST(Parse, ShowsOnlyTheSurroundingsOfALongLine) {
  std::string text = absl::StrCat("kernel @k(", std::string(100000, ' '), "?");
  absl::StatusOr<Module> module = Parse(text);
  ASSERT_FALSE(module.ok());
  EXPECT_LT(module.status().message().size(), 400u);
}

TEST(Parse, BoundsTheBracketsOfOpts) {
  std::string text = absl::StrCat("kernel @k() opts=[a", std::string(100000, '('), "]");
  EXPECT_THAT(std::string(Parse(text).status().message()), HasSubstr("nested too deep"));
}

}  // namespace
}  // namespace svod
