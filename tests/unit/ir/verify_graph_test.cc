// Verify of ir/verify.h on graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "tests/unit/ir/raw_graph.h"

namespace svod {
namespace {

using ::testing::HasSubstr;
using Nodes = RawGraph::Nodes;

constexpr char kFill[] =
    "kernel @fill(%y: out f32[8]) {\n  %i = range 8 loop\n  store %y[%i], 1.0\n  end %i\n}\n";
constexpr char kDouble[] =
    "kernel @double(%y: out f32[8], %x: f32[8]) {\n  %i = range 8 loop\n  %v = load %x[%i]\n"
    "  %s = add %v, %v\n  store %y[%i], %s\n  end %i\n}\n";
constexpr char kScaled[] =
    "kernel @some(%n = define_var \"n\", min=1, max=8; %y: out f32[%n]) {\n  %i = range %n loop\n"
    "  store %y[%i], 1.0\n  end %i\n}\n";

absl::Status VerifyGraphText(absl::string_view body, absl::string_view params = "") {
  std::string text =
      absl::StrCat(kFill, kDouble, kScaled, "graph @main(", params, ") {\n", body, "}\n");
  absl::StatusOr<Module> module = ParseModule(text, "t.uop", std::make_shared<Context>());
  if (!module.ok()) return absl::UnknownError(module.status().message());
  return Verify(module->functions.back());
}

void ExpectError(const absl::Status& status, absl::string_view message,
                 absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(message)));
}

TEST(VerifyGraphTest, CallsInSequence) {
  absl::Status status = VerifyGraphText(
      "  %a = buffer f32[8]\n  %b = buffer f32[8]\n  %c = call @fill, %a\n"
      "  %a1 = after %a, %c\n  %d = call @double, %b, %a1\n  %b1 = after %b, %d\n"
      "  return %b1\n");
  EXPECT_TRUE(status.ok()) << status;
}

TEST(VerifyGraphTest, AReadMustComeAfterTheWrite) {
  ExpectError(VerifyGraphText("  %a = buffer f32[8]\n  %b = buffer f32[8]\n"
                              "  %c = call @fill, %a\n  %d = call @double, %b, %a\n"
                              "  %b1 = after %b, %d\n  %a1 = after %a, %c\n  return %b1, %a1\n"),
              "uses %a buffer (t.uop:19:3) too, got none, expected an after");
}

TEST(VerifyGraphTest, AResultMustComeAfterEveryWrite) {
  auto with = [](absl::string_view result) {
    return VerifyGraphText(
        absl::StrCat("  %a = buffer f32[8]\n  %b = buffer f32[8]\n  %c = call @fill, %a\n"
                     "  %a1 = after %a, %c\n  %d = call @double, %b, %a1\n  %b1 = after %b, %d\n"
                     "  %e = call @fill, %a1\n  %a2 = after %a, %e, %d\n  return %b1, ",
                     result, "\n"));
  };
  ExpectError(with("%a2"), "%e call: order against %d call");
  auto chain = [](absl::string_view result) {
    return VerifyGraphText(
        absl::StrCat("  %a = buffer f32[8]\n  %b = buffer f32[8]\n  %c = call @fill, %a\n"
                     "  %a1 = after %a, %c\n  %d = call @double, %b, %a1\n  %b1 = after %b, %d\n"
                     "  %a2 = after %a, %d\n  %e = call @fill, %a2\n  %a3 = after %a, %e\n"
                     "  return %b1, %a3",
                     result, "\n"));
  };
  EXPECT_TRUE(chain("").ok()) << chain("");
  ExpectError(chain(", %a1"), "result, got %a1 after (t.uop:22:3) without the write by %e call");
  ExpectError(chain(", %a"), "result, got %a buffer (t.uop:19:3) without the write by %c call");
}

TEST(VerifyGraphTest, DisjointViewsMayBeWrittenSideBySide) {
  auto with = [](int offset) {
    return VerifyGraphText(
        absl::StrCat("  %a = buffer f32[64]\n  %u = buffer_view %a, offset=0 : f32[8]\n"
                     "  %v = buffer_view %a, offset=",
                     offset,
                     " : f32[8]\n  %c = call @fill, %u\n"
                     "  %d = call @fill, %v\n  %a1 = after %a, %c, %d\n  return %a1\n"));
  };
  EXPECT_TRUE(with(32).ok()) << with(32);
  ExpectError(with(28), "call: order against");
  ExpectError(with(3), "buffer_view: offset, got 3, expected a multiple of 4 bytes");
  ExpectError(with(228),
              "buffer_view: end, got byte 228 and 8 of f32, expected at most the 256 bytes");
  EXPECT_TRUE(with(224).ok());
}

TEST(VerifyGraphTest, OperandsFitTheKernel) {
  auto call = [](absl::string_view buffers, absl::string_view operands) {
    return VerifyGraphText(
        absl::StrCat(buffers, "  %c = call ", operands, "\n  %a1 = after %a, %c\n  return %a1\n"));
  };
  EXPECT_TRUE(call("  %a = buffer f32[9]\n", "@fill, %a").ok());
  ExpectError(call("  %a = buffer f32[7]\n", "@fill, %a"),
              "%c call: operand 0, got 7 of f32, expected at least 8 of f32");
  ExpectError(call("  %a = buffer i32[8]\n", "@fill, %a"),
              "got 8 of i32, expected at least 8 of f32");
  ExpectError(call("  %a = buffer f32[8]\n", "@double, %a"),
              "number of buffers, got 1, expected 2 as kernel double has");
  ExpectError(call("  %a = buffer f32[8]\n", "@fill, %a, %a"),
              "number of buffers, got more than the 1");
  ExpectError(call("  %a = buffer f32[8]\n", "@double, %a, %a"),
              "operands 0 and 1, got %a buffer (t.uop:19:3) twice, expected written buffers to be "
              "apart");
}

TEST(VerifyGraphTest, BindsFixVariablesOfTheKernel) {
  RawGraph g;
  const UOp *n = g.Variable("n", 1, 8), *i = g.Range(0, n);
  const UOp* y = g.Make(Op::kParam, Scalar::kF32, {n}, ParamArgument{0, Access::kOut, "y"});
  const UOp* kernel = g.Kernel({g.End(i, {g.Store(y, i, g.Float(1))})});
  auto call = [&](int64_t size, const Nodes& binds) {
    Nodes sources = {kernel, g.Make(Op::kBuffer, Scalar::kF32, {g.Int(size)}, BufferArgument{0})};
    sources.insert(sources.end(), binds.begin(), binds.end());
    Function function;
    function.root = g.Plan({g.After(sources[1], {g.Make(Op::kCall, sources)})});
    return Verify(function);
  };
  auto bind = [&](const UOp* variable, int64_t value) {
    return g.Make(Op::kBind, {variable, g.Int(value)});
  };
  EXPECT_TRUE(call(5, {}).ok());  // fits while n is at most 5, which the plan checks
  EXPECT_TRUE(call(5, {bind(n, 5)}).ok());
  ExpectError(call(5, {bind(n, 6)}), "call: operand 0, got 5 of f32, expected at least 6 of f32");
  ExpectError(call(0, {}), "got 0 of f32, expected at least 1 to 8 of f32");
  ExpectError(call(8, {bind(n, 9)}), "call: bind of 'n', got 9, expected 1 to 8",
              absl::StatusCode::kOutOfRange);
  ExpectError(call(8, {bind(g.Variable("m", 0, 9), 1)}), "bind, got 'm', expected a variable");
  ExpectError(call(8, {bind(n, 1), bind(n, 2)}), "bind, got 'n' twice, expected once");
  Nodes buffer_after_bind = {bind(n, 1), g.Param(0, 8)};
  ExpectError(call(8, buffer_after_bind), "or one after a bind");
}

TEST(VerifyGraphTest, ParametersKeepTheirAccess) {
  ExpectError(
      VerifyGraphText("  %c = call @fill, %x\n  %x1 = after %x, %c\n  return %x1\n", "%x: f32[8]"),
      "writes %x param");
  EXPECT_TRUE(VerifyGraphText("  %c = call @fill, %x\n  %x1 = after %x, %c\n  return %x1\n",
                              "%x: inout f32[8]")
                  .ok());
}

TEST(VerifyGraphTest, CopiesAreOfEqualSizes) {
  auto copy = [](absl::string_view from) {
    return VerifyGraphText(absl::StrCat("  %a = buffer f32[8]\n  %b = buffer ", from,
                                        "\n  %c = copy %a, %b\n  %a1 = after %a, %c\n"
                                        "  return %a1\n"));
  };
  EXPECT_TRUE(copy("f32[2, 4]").ok()) << copy("f32[2, 4]");
  ExpectError(copy("f32[9]"), "copy: sizes, got 9 of f32 into 8 of f32, expected equal");
  ExpectError(copy("i32[8]"), "copy: sizes, got 8 of i32 into 8 of f32");
  ExpectError(VerifyGraphText("  %a = buffer f32[8]\n  %c = copy %a, %a\n  %a1 = after %a, %c\n"
                              "  return %a1\n"),
              "copy: operands, got %a buffer (t.uop:19:3) twice");
}

TEST(VerifyGraphTest, CustomFunctionsWriteWhatAnAfterSays) {
  auto two = [](absl::string_view second_result) {
    return VerifyGraphText(
        absl::StrCat("  %x = buffer f32[8]\n  %a = buffer f32[8]\n  %b = buffer f32[8]\n"
                     "  %f = custom_function \"f\", %a, %x\n  %g = custom_function \"g\", %b, %x\n"
                     "  %a1 = after %a, %f\n  %b1 = after ",
                     second_result, ", %g\n  return %a1, %b1\n"));
  };
  EXPECT_TRUE(two("%b").ok()) << two("%b");                     // both only read x
  ExpectError(two("%x"), "%g custom_function: order against");  // the second changes it
}

TEST(VerifyGraphTest, OnlyOpsOfGraphsAndBufferResults) {
  RawGraph g;
  auto verify = [](const UOp* root) {
    Function function;
    function.root = root;
    return Verify(function);
  };
  const UOp* x = g.Param(0, 8);
  ExpectError(verify(g.Plan({g.Load(x, g.Int(0))})), "expected none of a kernel in a graph");
  const UOp* n = g.Make(Op::kDefineVar, DType(), {}, VariableArgument{"n", 0, 4});
  ExpectError(verify(g.Plan({n})), "sink: result, got %n define_var, expected buffers and tensors");
  ExpectError(verify(g.Plan({g.Reg(0, 4)})), "reg: op, got reg");
  const UOp *a = g.Make(Op::kBuffer, Scalar::kF32, {g.Int(4)}, BufferArgument{0}),
            *b = g.Make(Op::kBuffer, Scalar::kF32, {g.Int(5)}, BufferArgument{0});
  ExpectError(verify(g.Plan({a, b})), "buffer: id, got 0 as buffer has, expected its own");
  const UOp* hole = g.Kernel({g.Store(g.Param(3, 4), g.Int(0), g.Float(1))});
  ExpectError(verify(g.Plan({g.After(a, {g.Make(Op::kCall, {hole, a})})})),
              "call: param: slot, got 3 of 1 parameters");
}

// --- Tensors ----------------------------------------------------------------------------------

TEST(VerifyGraphTest, AssignmentsToOneBufferHaveAnOrder) {
  constexpr absl::string_view kParams = "%w: inout f32[8], %x: f32[8]";
  auto verify = [&](absl::string_view body) { return VerifyGraphText(body, kParams); };
  // The target leads to the first, or the value does.
  absl::Status target = verify(
      "  %w1 = after %w, assign(%w, %x)\n  %b = assign %w1, %x * 2\n"
      "  return after(%w1, %b)\n");
  EXPECT_TRUE(target.ok()) << target;
  absl::Status value = verify(
      "  %w1 = after %w, assign(%w, %x)\n  %b = assign %w, %w1 * 2\n"
      "  return after(%w, %b)\n");
  EXPECT_TRUE(value.ok()) << value;
  ExpectError(
      verify("  %a = assign %w, %x\n  %b = assign %w, %w * 2\n  return after(%w, %a, %b)\n"),
      "%b assign: order against %a assign (t.uop:19:3), which uses %w param");
  // Parts that are apart need none, parts that meet do.
  auto parts = [&](int begin) {
    return verify(absl::StrCat("  %a = assign shrink(%w, begin=[0], size=[4]), 1\n",
                               "  %b = assign flip(shrink(%w, begin=[", begin,
                               "], size=[4]), axes=[0]), 2\n", "  return after(%w, %a, %b), %x\n"));
  };
  EXPECT_TRUE(parts(4).ok()) << parts(4);
  ExpectError(parts(3), "order against %a assign");
}

TEST(VerifyGraphTest, AssignmentsAndCallsOfOneBufferHaveAnOrder) {
  ExpectError(VerifyGraphText("  %c = call @fill, %w\n  %a = assign %w, 1\n"
                              "  return after(%w, %c, %a)\n",
                              "%w: inout f32[8]"),
              "order against %c call");
  absl::Status status = VerifyGraphText(
      "  %w1 = after %w, call(@fill, %w)\n  %a = assign %w1, %w1 + 1\n  return after(%w1, %a)\n",
      "%w: inout f32[8]");
  EXPECT_TRUE(status.ok()) << status;
}

TEST(VerifyGraphTest, ValuesKeepTheStateThatTheyName) {
  // %old is read though its state is replaced, and is even returned.
  absl::Status status =
      VerifyGraphText("  %w1 = after %w, assign(%w, %x)\n  %old = %w * 2\n  return %w1, %old, %w\n",
                      "%w: inout f32[8], %x: f32[8]");
  EXPECT_TRUE(status.ok()) << status;
}

TEST(VerifyGraphTest, OutputsAreReadInAStateAfterAnAssignment) {
  auto verify = [](absl::string_view body) { return VerifyGraphText(body, "%w: out f32[8]"); };
  absl::Status status = verify(
      "  %w1 = after %w, assign(%w, 1)\n  %w2 = after %w1, assign(reshape(%w1, [2, 4]), 2)\n"
      "  return %w2, %w1 + 1\n");
  EXPECT_TRUE(status.ok()) << status;
  ExpectError(verify("  return after(%w, assign(%w, exp(%w)))\n"),
              "exp: reads %w param (t.uop:18:13), got out");
  ExpectError(verify("  return after(%w, assign(reshape(%w, [2, 4]), reshape(%w, [2, 4])))\n"),
              "reshape: reads %w param");
}

TEST(VerifyGraphTest, ShapesAndDimensionsOfTensors) {
  RawGraph g;
  auto verify = [](const UOp* root) {
    Function function;
    function.root = root;
    return Verify(function);
  };
  const UOp *x = g.Param(0, 8), *y = g.Param(1, 6);
  ExpectError(verify(g.Plan({g.Add(x, y)})),
              "verify: add: shapes, got [8] and [6], expected dimension -1 to be equal or one of");
  ExpectError(verify(g.Plan({g.Make(Op::kReshape, {x, g.Int(9)})})),
              "verify: reshape: shapes, got [8] to [9], expected as many elements");
  const UOp* column = g.Make(Op::kReshape, {x, g.Int(8), g.Int(1)});
  const UOp* far = g.Make(Op::kExpand, {column, g.Int(8), g.Int(int64_t{1} << 60)});
  ExpectError(verify(g.Plan({far})), "expand: size");
  const UOp* dim = g.Make(Op::kCast, Scalar::kIndex, {g.Make(Op::kReshape, {g.Param(0, 1)})});
  ExpectError(verify(g.Plan({g.Make(Op::kExpand, {g.Float(1), dim})})),
              "expand: dimension, got cast, expected constants and variables");
}

TEST(VerifyGraphTest, ManyCallsAreLinear) {
  RawGraph g;
  const UOp *i = g.Range(0, 8), *x = g.Param(0, 8);
  const UOp* kernel = g.Kernel({g.End(i, {g.Store(x, i, g.Add(g.Load(x, i), g.Float(1)))})});
  const UOp* buffer = g.Make(Op::kBuffer, Scalar::kF32, {g.Int(8)}, BufferArgument{0});
  const UOp* state = buffer;
  for (int n = 0; n < 50000; ++n) state = g.After(buffer, {g.Make(Op::kCall, {kernel, state})});
  Function function;
  function.root = g.Plan({state});
  EXPECT_TRUE(Verify(function).ok()) << Verify(function);
}

}  // namespace
}  // namespace svod
