// Tensor graphs in the text form: expressions, shapes in messages, round trips.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/operators/operator_table.h"
#include "ir/tensor_builder.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace svod {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::string_view kParams =
    "%n = define_var \"n\", min=1, max=8; %x: f32[4, 6], %y: f32[6], %w: inout f32[4, 6], "
    "%i: i32[4, 6], %s: f32[%n, 3], %b: bool[4, 6]";

std::string GraphText(absl::string_view body, absl::string_view result) {
  std::string uses;  // every parameter has a use
  for (absl::string_view name : {"x", "y", "w", "i", "s", "b"}) absl::StrAppend(&uses, ", %", name);
  return absl::StrCat("graph @g(", kParams, ") {\n", body, "  return ", result, uses, "\n}\n");
}

// The hash of what a graph's lines give.
absl::StatusOr<Hash128> HashOf(absl::string_view body, absl::string_view result = "%r") {
  absl::StatusOr<Module> module =
      ParseModule(GraphText(body, result), "t.uop", std::make_shared<Context>());
  if (!module.ok()) return module.status();
  absl::Status verified = Verify(module->functions[0]);
  if (!verified.ok()) return verified;
  return module->functions[0].root->hash();
}

// Both bodies define %r, as one node.
void ExpectSame(absl::string_view expression, absl::string_view lines) {
  absl::StatusOr<Hash128> a = HashOf(absl::StrCat("  %r = ", expression, "\n"));
  absl::StatusOr<Hash128> b = HashOf(lines);
  ASSERT_TRUE(a.ok()) << expression << "\n" << a.status();
  ASSERT_TRUE(b.ok()) << lines << "\n" << b.status();
  EXPECT_EQ(*a, *b) << expression;
}

std::string ErrorOf(absl::string_view line) {
  absl::StatusOr<Hash128> hash = HashOf(absl::StrCat(line, "\n"));
  EXPECT_FALSE(hash.ok()) << line;
  EXPECT_EQ(hash.status().code(), absl::StatusCode::kInvalidArgument) << line;
  return std::string(hash.status().message());
}

// --- Expressions ------------------------------------------------------------------------------

TEST(TensorExpression, PrecedenceIsPythons) {
  ExpectSame("%x + %x * %y", "%a = mul %x, %y\n%r = add %x, %a\n");
  ExpectSame("(%x + %x) * %y", "%a = add %x, %x\n%r = mul %a, %y\n");
  ExpectSame("%x - %y - %w", "%a = sub %x, %y\n%r = sub %a, %w\n");
  ExpectSame("%x - (%y - %w)", "%a = sub %y, %w\n%r = sub %x, %a\n");
  ExpectSame("%x / %y * %w", "%a = fdiv %x, %y\n%r = mul %a, %w\n");
  ExpectSame("-%x * %y", "%a = neg %x\n%r = mul %a, %y\n");
  ExpectSame("%x * -%y", "%a = neg %y\n%r = mul %x, %a\n");
  ExpectSame("- -%x", "%a = neg %x\n%r = neg %a\n");
  ExpectSame("%x + %y < %w * 2", "%a = add %x, %y\n%c = mul %w, 2.0\n%r = cmplt %a, %c\n");
  ExpectSame("%x > %y", "%r = cmplt %y, %x\n");
  ExpectSame("%x >= %y", "%r = cmple %y, %x\n");
  ExpectSame("%x <= %y", "%r = cmple %x, %y\n");
  ExpectSame("%x == %y", "%r = cmpeq %x, %y\n");
  ExpectSame("(%x != %y) == %b", "%a = cmpne %x, %y\n%r = cmpeq %a, %b\n");
}

TEST(TensorExpression, ASignAfterAValueSubtracts) {
  ExpectSame("%x -1", "%r = sub %x, 1.0\n");
  ExpectSame("%x-1.5-%y", "%a = sub %x, 1.5\n%r = sub %a, %y\n");
  ExpectSame("%x -inf", "%r = sub %x, inf\n");
  ExpectSame("%x * -1", "%r = mul %x, -1.0\n");
  ExpectSame("%x - -1e-3", "%r = sub %x, -0.001\n");
}

TEST(TensorExpression, CallsTakeWhatLinesTake) {
  ExpectSame("exp(%x)", "%r = exp %x\n");
  ExpectSame("reduce_max(%x, axes=[1], keep)", "%r = reduce_max %x, axes=[1], keep\n");
  ExpectSame("reshape(exp(%x), [6, %n * 0 + 4])",
             "%a = exp %x\n%z = mul %n, 0\n%d = add %z, 4\n%r = reshape %a, [6, %d]\n");
  ExpectSame("cast(%i : f32) * %x", "%a = cast %i : f32\n%r = mul %a, %x\n");
  ExpectSame("arange(6 : f32) + %x", "%a = arange 6 : f32\n%r = add %a, %x\n");
  ExpectSame("where(%b, %x, -%x)", "%a = neg %x\n%r = where %b, %x, %a\n");
  ExpectSame("after(%w, assign(%w, %x))", "%a = assign %w, %x\n%r = after %w, %a\n");
  // Lines take expressions as operands too.
  ExpectSame("where %x > 0, %x, -1", "%c = cmplt 0.0, %x\n%r = where %c, %x, -1.0\n");
  ExpectSame("add %x * 2, exp(%y)", "%a = mul %x, 2.0\n%e = exp %y\n%r = add %a, %e\n");
}

TEST(TensorExpression, BracketsMayGoOnOverLines) {
  ExpectSame("(%x\n    + %y\n    + exp(\n      %x\n    )\n  )",
             "%a = add %x, %y\n%e = exp %x\n%r = add %a, %e\n");
  EXPECT_THAT(ErrorOf("  %r = %x +\n %y"), HasSubstr("got end of line, expected an operand"));
}

TEST(TensorExpression, LiteralsTakeTheTypeOfWhatStandsBesideThem) {
  ExpectSame("%i * 2 + 1", "%a = mul %i, 2:i32\n%r = add %a, 1:i32\n");
  ExpectSame("2 * %x", "%r = mul 2.0, %x\n");
  ExpectSame("1 / 8 * %x", "%a = fdiv 1.0:f32, 8.0:f32\n%r = mul %a, %x\n");
  ExpectSame("%x * (1 + 2 * 3)",
             "%a = mul 2.0:f32, 3.0:f32\n%c = add 1.0:f32, %a\n%r = mul %x, %c\n");
  ExpectSame("expand(2:f32, [2 * 3, -1 + 2])", "%r = expand 2:f32, [6, 1]\n");
  EXPECT_THAT(ErrorOf("  %r = 1 + 2"), HasSubstr("t.uop:2:8: literal '1' has no type"));
  EXPECT_THAT(ErrorOf("  %r = 1 < 2"), HasSubstr("t.uop:2:8: literal '1' has no type"));
  EXPECT_THAT(ErrorOf("  %r = %i + 1.5"), HasSubstr("t.uop:2:13: literal, got '1.5'"));
}

TEST(TensorExpression, ReshapeWorksOutOneDimension) {
  ExpectSame("reshape(%x, [2, -1, 3])", "%r = reshape %x, [2, 4, 3]\n");
  ExpectSame("reshape(%s, [-1])", "%m = mul %n, 3\n%r = reshape %s, [%m]\n");
  EXPECT_THAT(ErrorOf("  %r = reshape %x, [-1, -1]"), HasSubstr("t.uop:2:25: got -1 twice"));
}

TEST(TensorExpression, ErrorsNameTheirOperator) {
  EXPECT_THAT(ErrorOf("  %r = exp(%x) + reshape(%x, [24])"),
              HasSubstr("t.uop:2:16: add: shapes, got [4, 6] and [24]"));
  EXPECT_THAT(ErrorOf("  %r = %y * (%x + permute(%x, axes=[1, 0]))"),
              HasSubstr("t.uop:2:17: add: shapes, got [4, 6] and [6, 4]"));
  EXPECT_THAT(ErrorOf("  %r = %i / 2"), HasSubstr("t.uop:2:11: '/' of i32, expected floats"));
  EXPECT_THAT(ErrorOf("  %r = %x < %y < %w"), HasSubstr("t.uop:2:16: comparisons do not chain"));
  EXPECT_THAT(ErrorOf("  %r = (%x + %y"), HasSubstr("expected ')' after an expression"));
  EXPECT_THAT(ErrorOf("  %r = exp(%x"), HasSubstr("expected ',' or ')'"));
  EXPECT_THAT(ErrorOf("  %r = %x %y"), HasSubstr("expected an operator or the end of the line"));
  EXPECT_THAT(ErrorOf("  %r = %x = %y"), HasSubstr("got '=', expected an operator"));
  EXPECT_THAT(ErrorOf("  %r = %x[0]"), HasSubstr("got '[', expected no address in a graph"));
  EXPECT_THAT(ErrorOf("  %r = exq(%x)"), HasSubstr("unknown op 'exq' (did you mean 'exp"));
  EXPECT_THAT(ErrorOf("  %r = load(%x)"), HasSubstr("load: in a graph, expected in a kernel"));
  EXPECT_THAT(ErrorOf("  %r = %x + assign(%w, %x)"), HasSubstr("t.uop:2:11: add: "));
  EXPECT_THAT(ErrorOf("  exp(%x)"), HasSubstr("exp: its value has no name"));
  EXPECT_THAT(ErrorOf("  %r, %q = %x + %y"), HasSubstr("number of names, got 2, expected 1"));
}

TEST(TensorExpression, NestingHasALimitAndLengthHasNone) {
  auto nested = [](int depth) {
    return absl::StrCat("  %r = ", std::string(static_cast<size_t>(depth), '('), "%x",
                        std::string(static_cast<size_t>(depth), ')'), "\n");
  };
  EXPECT_TRUE(HashOf(nested(256)).ok()) << HashOf(nested(256)).status();
  EXPECT_THAT(ErrorOf(nested(257)), HasSubstr("nested too deep, expected at most 256"));
  EXPECT_THAT(ErrorOf(nested(1000000)), HasSubstr("nested too deep"));
  std::string calls, closers, sum = "%x", signs;
  for (int i = 0; i < 100000; ++i) {
    calls += "exp(";
    closers += ")";
    sum += " + %x * %y";
    signs += "- ";
  }
  EXPECT_THAT(ErrorOf(absl::StrCat("  %r = ", calls, "%x", closers)), HasSubstr("too deep"));
  EXPECT_TRUE(HashOf(absl::StrCat("  %r = ", sum, "\n")).ok());
  EXPECT_TRUE(HashOf(absl::StrCat("  %r = ", signs, "%x\n")).ok());
}

// --- Composite operators ----------------------------------------------------------------------

// What the operator makes of %x when it is built in code.
template <typename Build>
void ExpectBuilds(absl::string_view expression, const Build& build) {
  auto context = std::make_shared<Context>();
  std::string text =
      absl::StrCat("graph @g(%x: f32[4, 6], %b: bool[3, 3], %q: f32[1, 2, 3, 4]) {\n",
                   "  %r = ", expression, "\n  return %r, %x, %b, %q\n}\n");
  absl::StatusOr<Module> module = ParseModule(text, "t.uop", context);
  ASSERT_TRUE(module.ok()) << module.status();
  TensorBuilder builder(context);
  const UOp* x = builder.Param("x", Scalar::kF32, {4, 6});
  const UOp* b = builder.Param("b", Scalar::kBool, {3, 3});
  const UOp* q = builder.Param("q", Scalar::kF32, {1, 2, 3, 4});
  std::pair<const char*, OperatorCall> call = build(x, b, q);
  std::vector<const UOp*> results =
      BuildOperator(builder, *FindOperator(call.first), std::move(call.second));
  ASSERT_TRUE(builder.ok()) << builder.status();
  EXPECT_EQ(module->functions[0].root->source(0), results[0]) << expression;
}

using Attributes = std::vector<std::pair<std::string, AttributeValue>>;

TEST(TensorOperator, CallsTakeAttributesOfEveryKind) {
  using Call = std::pair<const char*, OperatorCall>;
  ExpectBuilds("softmax %x, axis=0", [](const UOp* x, const UOp*, const UOp*) {
    return Call{"softmax", {{x}, {{"axis", int64_t{0}}}}};
  });
  ExpectBuilds("elu(%x, alpha=0.5)", [](const UOp* x, const UOp*, const UOp*) {
    return Call{"elu", {{x}, {{"alpha", 0.5}}}};
  });
  for (const char* text : {"sum %x, axes=[0], keep", "sum(%x, axes=0, keep=true)"}) {
    ExpectBuilds(text, [](const UOp* x, const UOp*, const UOp*) {
      return Call{"sum", {{x}, {{"axes", std::vector<int64_t>{0}}, {"keep", true}}}};
    });
  }
  ExpectBuilds("sum(%x, dtype=f64, keep=false)", [](const UOp* x, const UOp*, const UOp*) {
    return Call{"sum", {{x}, {{"dtype", DType(Scalar::kF64)}}}};
  });
  ExpectBuilds("pad_mode %x, low=[1, 0], high=1, mode=reflect",
               [](const UOp* x, const UOp*, const UOp*) {
                 return Call{"pad_mode",
                             {{x},
                              {{"low", std::vector<int64_t>{1, 0}},
                               {"high", std::vector<int64_t>{1}},
                               {"mode", std::string("reflect")}}}};
               });
  ExpectBuilds("attention(%q, %q, %q, mask=%b, causal)",
               [](const UOp*, const UOp* b, const UOp* q) {
                 return Call{"attention", {{q, q, q}, {{"mask", b}, {"causal", true}}}};
               });
}

TEST(TensorOperator, SeveralResultsTakeSeveralNames) {
  for (const char* line : {"top_k %x, count=2", "top_k(%x, count=1 * 0)", "top_k(%x, count=2)"}) {
    absl::StatusOr<Hash128> hash =
        HashOf(absl::StrCat("  %v, %k = ", line, "\n  %r = %v * cast(%k : f32)\n"));
    EXPECT_EQ(hash.ok(), !absl::StrContains(line, "*")) << hash.status();
  }
  EXPECT_THAT(ErrorOf("  %r = top_k(%x, count=2)"), HasSubstr("t.uop:2:3: number of names, got 1, "
                                                              "expected 2 for what top_k gives"));
  EXPECT_THAT(ErrorOf("  %r = top_k(%x, count=2) + 1"),
              HasSubstr("t.uop:2:8: top_k: results, got 2, expected one in an expression"));
  EXPECT_THAT(ErrorOf("  %r = exp(top_k(%x, count=2))"),
              HasSubstr("t.uop:2:12: top_k: results, got 2, expected one in an expression"));
}

TEST(TensorOperator, ErrorsNameTheCallAndTheAttribute) {
  EXPECT_THAT(ErrorOf("  %r = softmax(%x, dim=1)"),
              HasSubstr("t.uop:2:20: softmax takes no attribute 'dim', expected axis"));
  EXPECT_THAT(ErrorOf("  %r = softmax %x, axis=1, axis=1"),
              HasSubstr("t.uop:2:28: attribute 'axis' is given twice"));
  EXPECT_THAT(ErrorOf("  %r = sum %x, keep, keep=true"), HasSubstr("'keep' is given twice"));
  EXPECT_THAT(ErrorOf("  %r = softmax(%x, axis=1.5)"), HasSubstr("t.uop:2:25: literal, got '1.5'"));
  EXPECT_THAT(ErrorOf("  %r = softmax(%x, axis=2)"), HasSubstr("t.uop:2:8: softmax: "));
  EXPECT_THAT(ErrorOf("  %r = sum(%x, keep=1)"), HasSubstr("t.uop:2:21: got '1', expected true"));
  EXPECT_THAT(ErrorOf("  %r = sum(%x, dtype=f33)"), HasSubstr("t.uop:2:22: "));
  EXPECT_THAT(ErrorOf("  %r = elu(%x, alpha=%y)"),
              HasSubstr("t.uop:2:22: got '%y', expected a plain number"));
  EXPECT_THAT(ErrorOf("  %r = relu(%x, axes=[0])"),
              HasSubstr("t.uop:2:17: relu takes no attribute 'axes', expected none"));
  EXPECT_THAT(ErrorOf("  %r = gelu(%x, approximate=[0])"),
              HasSubstr("t.uop:2:29: got '[', expected a word"));
  EXPECT_THAT(ErrorOf("  %r = relu(%x, [0])"), HasSubstr("relu takes no list"));
  EXPECT_THAT(ErrorOf("  %r = relu(%x, %y)"), HasSubstr("relu: number of operands, got 2"));
  EXPECT_THAT(ErrorOf("  %r = relu(%x) : f32"), HasSubstr("got ':', expected an operator"));
  EXPECT_THAT(ErrorOf("  %r = relu %x : f32"), HasSubstr("relu takes no type"));
  EXPECT_THAT(ErrorOf("  %r = sofmax(%x)"), HasSubstr("(did you mean 'softmax'?)"));
  EXPECT_THAT(ErrorOf("  %r = %x + matmul(%x, %x)"), HasSubstr("t.uop:2:13: matmul: "));
}

TEST(TensorOperator, ExpansionsHaveThePlaceOfTheirCall) {
  absl::StatusOr<Module> module =
      ParseModule("graph @g(%w: out f32[4]) {\n  %r = softmax(%w)\n  return %r\n}\n", "t.uop",
                  std::make_shared<Context>());
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(std::string(Verify(module->functions[0]).message()), HasSubstr("t.uop:2:8: "));
}

// --- Lines that stand alone -------------------------------------------------------------------

const std::vector<GivenTensor> kGiven = {
    {"a", Scalar::kF32, {2, 3}}, {"b", Scalar::kF32, {3}}, {"c", Scalar::kI32, {2, 3}}};

TEST(GraphLine, NamesMayGoBare) {
  auto context = std::make_shared<Context>();
  absl::StatusOr<GraphLine> line = ParseGraphLine("y = b * exp(%a) - 1", "in", context, kGiven);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_THAT(line->names, ElementsAre("y"));
  EXPECT_TRUE(Verify(line->graph).ok()) << Verify(line->graph);
  absl::StatusOr<std::string> text = Print(line->graph);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, R"(graph @line(%a: f32[2, 3], %b: f32[3]) {
  %0 = exp %a
  %1 = mul %b, %0
  %y = sub %1, 1.0
  return %y
}
)");
}

TEST(GraphLine, CallsOperators) {
  auto context = std::make_shared<Context>();
  absl::StatusOr<GraphLine> line =
      ParseGraphLine("v, at = top_k a * 2, count=2, largest=false", "in", context, kGiven);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_THAT(line->names, ElementsAre("v", "at"));
  EXPECT_TRUE(Verify(line->graph).ok()) << Verify(line->graph);
  EXPECT_TRUE(ParseGraphLine("relu(a) + sum(b)", "in", context, kGiven).ok());
}

TEST(GraphLine, HasTheParametersThatItDependsOn) {
  auto context = std::make_shared<Context>();
  absl::StatusOr<GraphLine> line = ParseGraphLine("c * 2", "in", context, kGiven);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_TRUE(line->names.empty());
  EXPECT_TRUE(Verify(line->graph).ok()) << Verify(line->graph);
  absl::StatusOr<std::vector<const UOp*>> params = ParamsOf(line->graph.root);
  ASSERT_TRUE(params.ok()) << params.status();
  ASSERT_EQ(params->size(), 1u);
  EXPECT_EQ((*params)[0]->arg<ParamArgument>().name, "c");
  // A tensor may be redefined by what it was.
  line = ParseGraphLine("a = a + a", "in", context, kGiven);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_THAT(line->names, ElementsAre("a"));
}

TEST(GraphLine, ErrorsShowTheLine) {
  auto error = [](absl::string_view text) {
    absl::StatusOr<GraphLine> line =
        ParseGraphLine(text, "in", std::make_shared<Context>(), kGiven);
    return std::string(line.status().message());
  };
  EXPECT_EQ(error("y = a + z"),
            "in:1:9: unknown value 'z', expected one that is defined\ny = a + z\n        ^");
  EXPECT_EQ(error("y = a + c"),
            "in:1:7: add: operand types differ, got f32 and i32, expected equal\n"
            "y = a + c\n      ^");
  EXPECT_THAT(error("y = a\nz = b"), HasSubstr("in:2:1: got 'z', expected the end of the line"));
  EXPECT_THAT(error("x, y = a"), HasSubstr("number of names, got 2, expected 1"));
  EXPECT_THAT(error("return a"), HasSubstr("in:1:1: unknown op 'return'"));
  EXPECT_THAT(error(""), HasSubstr("in:1:1: got end of text, expected an op"));
}

// --- Round trips ------------------------------------------------------------------------------

class RandomTensors {
 public:
  explicit RandomTensors(uint32_t seed)
      : engine_(seed), builder_(std::make_shared<Context>()), n_(builder_.Variable("n", 0, 7)) {}

  absl::StatusOr<Function> Make(int num_ops) {
    for (int i = 0; i < 3; ++i) {
      std::vector<const UOp*> shape;
      for (int64_t d = Pick(0, 3); d > 0; --d) shape.push_back(Dim());
      auto access = static_cast<Access>(Pick(0, 1) * 2);
      pool_.push_back(builder_.Param(absl::StrCat("x", i), AnyDType(), shape, access));
      states_.push_back(pool_.back());
    }
    for (int i = 0; i < num_ops; ++i) {
      const UOp* node = AnyOp();
      builder_.Take().IgnoreError();
      if (node != nullptr && !node->dtype().is_void()) pool_.push_back(node);
    }
    std::vector<const UOp*> results = states_;
    for (int i = 0; i < 4; ++i) results.push_back(pool_[At(pool_.size())]);
    return builder_.Finish("g", results);
  }
  std::shared_ptr<Context> context() { return builder_.shared_context(); }

 private:
  int64_t Pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  size_t At(size_t size) { return static_cast<size_t>(Pick(0, static_cast<int64_t>(size) - 1)); }
  const UOp* Any() { return pool_[At(pool_.size())]; }
  const UOp* Dim() {
    constexpr int64_t kDims[] = {0, 1, 1, 2, 3, 5};
    return Pick(0, 3) == 0 ? n_ : builder_.Index(kDims[Pick(0, 5)]);
  }
  DType AnyDType() {
    constexpr Scalar kScalars[] = {Scalar::kF32,  Scalar::kF32, Scalar::kI32,
                                   Scalar::kBool, Scalar::kF16, Scalar::kU8};
    return kScalars[Pick(0, 5)];
  }
  std::vector<int64_t> Axes(const UOp* x, bool all) {
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < builder_.RankOf(x); ++i) {
      if (all || Pick(0, 1) == 0) axes.push_back(i);
    }
    if (all) std::shuffle(axes.begin(), axes.end(), engine_);
    return axes;
  }

  const UOp* AnyOp() {
    TensorBuilder& b = builder_;
    const UOp *x = Any(), *y = Any();
    ShapeSpan from = b.ShapeOf(x);
    std::vector<const UOp*> shape(from.begin(), from.end()), zeros(from.size(), b.Index(0)), some;
    for (size_t i = 0; i < from.size(); ++i) some.push_back(b.Index(Pick(0, 2)));
    switch (Pick(0, 17)) {
      case 0:
        return b.Make(
            static_cast<Op>(Pick(static_cast<int>(Op::kAdd), static_cast<int>(Op::kCmpNe))),
            {x, y});
      case 1:
        return b.Add(x, b.Like(x, static_cast<double>(Pick(-3, 3))));
      case 2:
        return b.Cast(x, AnyDType());
      case 3:
        return b.Reshape(x, {-1});
      case 4:
        shape.insert(shape.begin() + Pick(0, static_cast<int64_t>(shape.size())), b.Index(1));
        return b.Reshape(x, shape);
      case 5:
        for (const UOp*& dim : shape) dim = IsConstInt(dim, 1) ? Dim() : dim;
        shape.insert(shape.begin(), Dim());
        return b.Expand(x, shape);
      case 6:
        return b.Permute(x, Axes(x, true));
      case 7:
        return b.Pad(x, b.Like(x, 1), some, zeros);
      case 8:
        for (size_t i = 0; i < shape.size(); ++i) shape[i] = b.dims().Sub(shape[i], some[i]);
        return b.Shrink(x, some, shape);
      case 9:
        return b.Flip(x, Axes(x, false));
      case 10:
        return b.ReduceAxis(static_cast<ReduceKind>(Pick(0, 5)), x, Axes(x, false), Pick(0, 1));
      case 11:
        return b.Arange(Dim(), AnyDType());
      case 12:
        return b.Gather(x, y, 0);
      case 13:
        return b.Scatter(static_cast<ScatterKind>(Pick(0, 4)), x, y, Any(), 0);
      case 14:
        return b.Contiguous(x);
      case 15:
        return b.Where(x, y, Any());
      case 16:
        return b.Cast(b.dims().Add(Dim(), Dim()), AnyDType());
      default: {
        size_t at = At(states_.size());
        const UOp* target = states_[at];
        const UOp* assign = b.Assign(target, x);
        if (assign == nullptr) return nullptr;
        states_[at] = b.After(target, {assign});
        return states_[at];
      }
    }
  }

  std::mt19937 engine_;
  TensorBuilder builder_;
  const UOp* n_;
  std::vector<const UOp*> pool_, states_;
};

void CheckRoundTrips(uint32_t count) {
  int verified = 0;
  for (uint32_t seed = 0; seed < count; ++seed) {
    RandomTensors random(seed);
    absl::StatusOr<Function> graph = random.Make(static_cast<int>(seed % 40));
    ASSERT_TRUE(graph.ok()) << graph.status();
    verified += Verify(*graph).ok();
    absl::StatusOr<std::string> text = Print(*graph);
    ASSERT_TRUE(text.ok()) << text.status();
    absl::StatusOr<Module> same = ParseModule(*text, "t.uop", random.context());
    ASSERT_TRUE(same.ok()) << same.status() << "\n" << *text;
    EXPECT_EQ(same->functions[0].root, graph->root) << *text;
    absl::StatusOr<std::string> again = Print(same->functions[0]);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*text, *again);
  }
  // Assignments to parameters that may only be read are refused.
  EXPECT_GT(verified, static_cast<int>(count / 4));
}

TEST(TensorText, RandomGraphsRoundTrip) { CheckRoundTrips(1000); }
TEST(TensorTextSlow, RandomGraphsRoundTrip) { CheckRoundTrips(50000); }

TEST(TensorText, LongChainsAreLinear) {
  TensorBuilder builder(std::make_shared<Context>());
  const UOp *x = builder.Param("x", Scalar::kF32, {4}, Access::kInOut), *state = x, *y = x;
  for (int i = 0; i < 50000; ++i) {
    y = builder.Add(y, x);
    state = builder.After(state, {builder.Assign(state, builder.Add(state, y))});
  }
  absl::StatusOr<Function> graph = builder.Finish("g", {y, state});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(Verify(*graph).ok()) << Verify(*graph);
  absl::StatusOr<std::string> text = Print(*graph);
  ASSERT_TRUE(text.ok()) << text.status();
  absl::StatusOr<Module> same = ParseModule(*text, "t.uop", builder.shared_context());
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->functions[0].root, graph->root);
}

// --- Damaged text -----------------------------------------------------------------------------

constexpr absl::string_view kSeeds[] = {
    R"(graph @softmax(%x: f32[4096, 1024], %t: f32[]) {
  %s = %x * %t
  %e = exp(%s - reduce_max(%s, axes=[1], keep))
  return %e / reduce_add(%e, axes=[-1], keep)
})",
    R"(graph @g(%n = define_var "n", min=1, max=8; %x: f32[%n, 4], %w: inout f32[4, 4], %i: i32[2, 4]) {
  %r = reshape %x, [2, -1]
  %q = pad %x, 0.0, low=[1, 0], high=[1, %n]
  %f = flip %q, axes=[0]
  %k = expand(arange(%n * 2 : f32), [3, %n * 2])
  %g = gather %w, %i, axis=0
  %t = scatter_add %w, %i, %g, axis=-2
  %h = shrink %w, begin=[0, 0], size=[2, 4]
  %w1 = after %w, assign(%h, -1)
  %c = where %x > 0.5, %x, 0 - 2 * 3
  return %w1, %r, %f, %k, %t, %c
})",
    R"(graph @m(%p0: f32[2, 3], %p1: f32[3, 2]) {
  %a = permute(reshape(%p0, [1, 2, 3]), axes=[1, 0, 2])
  %b = permute %p1, axes=[1, 0]
  %c = contiguous(reduce_add(%a * %b, axes=[2]))
  return cast(%c : i32), -%c
})",
    R"(graph @o(%x: f32[4, 6], %w: f32[6, 3], %q: f32[1, 2, 3, 4], %m: bool[3, 3]) {
  %y = relu(matmul(%x, %w) + 0.5)
  %v, %k = top_k %y, count=2, axis=-1, largest=false
  %p = pad_mode(slice(%x, axis=1, begin=1, end=4), low=[1, 0], high=1, mode=reflect)
  %a = attention %q, %q, %q, mask=%m, causal
  return softmax(%y, axis=1), sum(%v, axes=0, dtype=f64), %k, %p, %a, full(shape=[2, 3], value=1)
})"};

// Programs that are nearly right: characters and spans of the seeds changed, moved and doubled.
std::string Damage(absl::string_view seed, std::mt19937& engine) {
  constexpr absl::string_view kBits[] = {"(",     ")",
                                         "[",     "]",
                                         ",",     "%x",
                                         "-",     "*",
                                         "=",     "\n",
                                         ":",     "1",
                                         "keep",  "axes=[0]",
                                         " ",     "exp",
                                         "%w",    "0.5",
                                         "{",     "}",
                                         "/",     "<=",
                                         "1:i32", "@g",
                                         "\"",    "9223372036854775807"};
  std::string text(seed);
  auto pick = [&](size_t size) { return std::uniform_int_distribution<size_t>(0, size)(engine); };
  for (size_t edits = 1 + pick(3); edits > 0; --edits) {
    size_t at = pick(text.size()), size = std::min(pick(12), text.size() - at);
    switch (pick(4)) {
      case 0:
        text.erase(at, size);
        break;
      case 1:
        text.insert(at, std::string(kBits[pick(std::size(kBits) - 1)]));
        break;
      case 2:
        text.replace(at, size, std::string(kBits[pick(std::size(kBits) - 1)]));
        break;
      case 3:
        text.insert(pick(text.size()), text.substr(at, size));
        break;
      case 4:
        if (at < text.size()) text[at] = static_cast<char>(pick(127));
        break;
    }
  }
  return text;
}

void CheckDamage(int count) {
  std::mt19937 engine(7);
  int accepted = 0;
  for (int i = 0; i < count; ++i) {
    std::string text = Damage(kSeeds[static_cast<size_t>(i) % std::size(kSeeds)], engine);
    absl::StatusOr<Module> module = ParseModule(text, "t.uop", std::make_shared<Context>());
    if (!module.ok()) {
      ASSERT_EQ(module.status().code(), absl::StatusCode::kInvalidArgument) << text;
      int line = 0, column = 0;
      std::string message(module.status().message());
      ASSERT_EQ(sscanf(message.c_str(), "t.uop:%d:%d: ", &line, &column), 2) << message;
      continue;
    }
    for (const Function& function : module->functions) {
      absl::Status status = Verify(function);
      ASSERT_TRUE(status.ok() || absl::StartsWith(status.message(), "verify: ")) << status;
      if (!status.ok()) continue;
      ++accepted;
      absl::StatusOr<std::string> printed = Print(function);
      ASSERT_TRUE(printed.ok()) << printed.status() << "\n" << text;
      absl::StatusOr<Module> again = ParseModule(*printed, "p.uop", module->context);
      ASSERT_TRUE(again.ok()) << again.status() << "\n" << *printed;
      ASSERT_EQ(again->functions[0].root, function.root) << *printed;
    }
  }
  EXPECT_GT(accepted, count / 100);
}

// Calls with operands and attributes that may or may not fit.
std::string AnyCall(const OperatorInfo& info, std::mt19937& engine) {
  auto pick = [&](size_t size) {
    return std::uniform_int_distribution<size_t>(0, size - 1)(engine);
  };
  constexpr const char* kOperands[] = {"%x", "%y", "%w",  "%i",      "%s",
                                       "%b", "%z", "%q",  "0.5",     "%x",
                                       "%x", "1",  "-%y", "%i * %i", "reshape(%x, [2, 3, 4])"};
  constexpr const char* kIntegers[] = {"0", "1", "-1", "2", "3", "-7", "64", "9223372036854775807"};
  constexpr const char* kLists[] = {"[]",   "[0]",       "[1, 0]",      "[2, 2]",
                                    "[-1]", "[0, 0, 0]", "[3, 1, 2, 1]"};
  constexpr const char* kDims[] = {"[%n]", "[2, %n]", "[0, 3]", "[1, 1]",
                                   "%n",   "[4, 6]",  "[-1, 2]"};
  constexpr const char* kWords[] = {"none",   "reflect", "edge", "wrap",
                                    "linear", "tanh",    "add",  "set"};
  constexpr const char* kDTypes[] = {"f32", "i64", "bool", "f16", "u8", "index", "f32x4"};
  constexpr const char* kNumbers[] = {"0", "1.5", "-inf", "nan", "1e300", "-2"};
  std::vector<std::string> parts;
  size_t least = static_cast<size_t>(NumOperands(info).first);
  for (size_t n = pick(8) == 0 ? pick(5) : least + pick(2); n > 0; --n) {
    parts.push_back(kOperands[pick(std::size(kOperands))]);
  }
  for (const AttributeInfo& attribute : info.attributes) {
    if (attribute.default_text != nullptr && pick(2) == 0) continue;
    std::string value;
    AttributeKind kind = pick(16) == 0 ? static_cast<AttributeKind>(pick(8)) : attribute.kind;
    switch (kind) {
      case AttributeKind::kInt:
        value = kIntegers[pick(std::size(kIntegers))];
        break;
      case AttributeKind::kFloat:
        value = kNumbers[pick(std::size(kNumbers))];
        break;
      case AttributeKind::kBool:
        value = pick(2) == 0 ? "true" : "false";
        break;
      case AttributeKind::kWord:
        value = kWords[pick(std::size(kWords))];
        break;
      case AttributeKind::kDType:
        value = kDTypes[pick(std::size(kDTypes))];
        break;
      case AttributeKind::kInts:
        value = kLists[pick(std::size(kLists))];
        break;
      case AttributeKind::kDims:
        value = kDims[pick(std::size(kDims))];
        break;
      case AttributeKind::kTensor:
        value = kOperands[pick(std::size(kOperands))];
        break;
    }
    parts.push_back(absl::StrCat(attribute.name, "=", value));
  }
  return absl::StrCat(info.name, "(", absl::StrJoin(parts, ", "), ")");
}

void CheckCalls(int count) {
  std::mt19937 engine(11);
  int accepted = 0;
  for (const OperatorInfo& info : Operators()) {
    for (int i = 0; i < count; ++i) {
      std::string call = AnyCall(info, engine);
      std::string text =
          absl::StrCat("graph @g(", kParams, ", %z: f32[0, 6], %q: f32[1, 2, 3, 4]) {\n  return ",
                       call, ", %x, %y, %w, %i, %s, %b, %z, %q\n}\n");
      absl::StatusOr<Module> module = ParseModule(text, "t.uop", std::make_shared<Context>());
      if (!module.ok()) {
        ASSERT_EQ(module.status().code(), absl::StatusCode::kInvalidArgument) << call;
        ASSERT_THAT(std::string(module.status().message()), HasSubstr("t.uop:2:")) << call;
        continue;
      }
      ++accepted;
      absl::Status status = Verify(module->functions[0]);
      ASSERT_TRUE(status.ok()) << status << "\n" << call;
      absl::StatusOr<std::string> printed = Print(module->functions[0]);
      ASSERT_TRUE(printed.ok()) << printed.status() << "\n" << call;
      absl::StatusOr<Module> again = ParseModule(*printed, "p.uop", module->context);
      ASSERT_TRUE(again.ok()) << again.status() << "\n" << call;
      ASSERT_EQ(again->functions[0].root, module->functions[0].root) << call;
    }
  }
  EXPECT_GT(accepted, count * static_cast<int>(Operators().size()) / 20);
}

TEST(TensorText, CallsOfEveryOperatorGetAnAnswer) { CheckCalls(50); }
TEST(TensorTextSlow, CallsOfEveryOperatorGetAnAnswer) { CheckCalls(3000); }

TEST(TensorText, DamagedTextGetsAnAnswerWithItsPlace) { CheckDamage(20000); }
TEST(TensorTextSlow, DamagedTextGetsAnAnswerWithItsPlace) { CheckDamage(1000000); }

}  // namespace
}  // namespace svod
