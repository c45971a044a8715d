// Loop actions: what they say, what they refuse, and that no bit changes.
#include "ir/passes/loop_actions.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "ir/evaluate.h"
#include "ir/kernel_builder.h"
#include "ir/passes/lower_reduce.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "tests/unit/kernel_generator.h"

namespace svod {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Kind = LoopAction::Kind;

TEST(LoopAction, TextComesBack) {
  for (const char* text :
       {"upcast(0, 16)", "unroll(3, 5)", "group(12, 64)", "split(1, 48)", "swap(0)", "merge(4)",
        "pack(2, 1)", "stream(1)", "exchange(4, 1)", "expand(2)", "dot(2)"}) {
    auto action = ParseLoopAction(text);
    ASSERT_TRUE(action.ok()) << action.status();
    EXPECT_EQ(ToString(*action), text);
  }
}

TEST(LoopAction, BadTextSaysWhatWasExpected) {
  for (const char* text : {"", "upcast", "upcast(0)", "upcast(0, 16", "turn(0, 2)", "unroll(a, 2)",
                           "swap(0, 1)", "merge(-1)", "pack(0)"}) {
    EXPECT_THAT(ParseLoopAction(text).status().message(), HasSubstr("expected one such as"));
  }
  EXPECT_THAT(ParseLoopAction("upcast(0, 12)").status().message(), HasSubstr("a power of two"));
  EXPECT_THAT(ParseLoopAction("unroll(0, 1)").status().message(), HasSubstr("2 to 64"));
  EXPECT_THAT(ParseLoopAction("pack(0, 9)").status().message(), HasSubstr("1 to 8"));
  EXPECT_THAT(ParseLoopAction("split(0, 1)").status().message(), HasSubstr("2 to 1048576"));
}

absl::StatusOr<Module> Parse(absl::string_view text) {
  return ParseModule(text, "k.uop", std::make_shared<Context>());
}

absl::StatusOr<std::string> Apply(absl::string_view text, absl::string_view action) {
  auto module = Parse(text);
  if (!module.ok()) return module.status();
  PassContext pass(*module->context);
  auto parsed = ParseLoopAction(action);
  if (!parsed.ok()) return parsed.status();
  auto result = ApplyLoopAction(module->functions[0].root, *parsed, pass);
  if (!result.ok()) return result.status();
  Function function;
  function.root = *result;
  absl::Status verified = Verify(function);
  if (!verified.ok()) return verified;
  return Print(function);
}

constexpr const char* kRelu = R"(
kernel @relu(%y: out f32[70], %x: f32[70]) {
  %i = range 70 loop
  %v = load %x[%i]
  %r = max %v, 0.0
  store %y[%i], %r
  end %i
})";

TEST(LoopAction, UpcastOverlapsAtTheEnd) {
  auto text = Apply(kRelu, "upcast(0, 16)");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("range 5 loop"));
  EXPECT_THAT(*text, HasSubstr("min"));
  EXPECT_THAT(*text, HasSubstr(": f32x16"));
}

TEST(LoopAction, StreamMarksWholeVectorsThatNobodyReads) {
  constexpr const char* kText = R"(
kernel @k(%y: out f32[64], %z: inout f32[64]) {
  %i = range 16 loop
  %at = mul %i, 4
  %v = load %z[%at] : f32x4
  store %y[%at], %v
  store %z[%at], %v
  end %i
})";
  auto text = Apply(kText, "stream(0)");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("store %y[%1], %2, stream\n"));
  EXPECT_THAT(*text, Not(HasSubstr("store %z[%1], %2, stream")));
  EXPECT_THAT(Apply(kText, "stream(3)").status().message(), HasSubstr("none of the kernel's"));
  EXPECT_THAT(Apply(kRelu, "stream(0)").status().message(), HasSubstr("store of whole vectors"));
}

constexpr const char* kWindows = R"(
kernel @windows(%y: out f32[8, 6], %x: f32[10, 9], %w: f32[3, 4]) {
  %i = range 8 loop
    %j = range 6 loop
      %k = range 3 reduce
        %l = range 4 reduce
        %r = add %i, %k
        %c = add %j, %l
        %v = load %x[%r, %c]
        %f = load %w[%k, %l]
        %p = mul %v, %f
        %s = reduce_add %p, %k, %l
      store %y[%i, %j], %s
    end %j
  end %i
})";

TEST(LoopAction, ExpandWritesTermsOutInOrder) {
  auto text = Apply(kWindows, "expand(2)");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, Not(HasSubstr("reduce")));
  EXPECT_THAT(*text, HasSubstr("%41 = add 0.0, %40\n"));  // the first term into the identity
  EXPECT_THAT(*text, HasSubstr("%88 = add %84, %87\n"));  // and the twelfth at the end
  EXPECT_EQ(*text, *Apply(kWindows, "expand(3)"));
}

TEST(LoopAction, ExpandOfWhatIsNotAShortReductionSaysWhy) {
  EXPECT_THAT(Apply(kWindows, "expand(0)").status().message(), HasSubstr("got a loop, expected"));
  EXPECT_THAT(Apply(kWindows, "expand(9)").status().message(), HasSubstr("none of the kernel's"));
  EXPECT_THAT(Apply(R"(
kernel @sum(%y: out f32[1], %x: f32[65]) {
  %k = range 65 reduce
  %v = load %x[%k]
  %s = reduce_add %v, %k
  store %y[0], %s
})",
                    "expand(0)")
                  .status()
                  .message(),
              HasSubstr("at most 64 terms"));
  EXPECT_THAT(Apply(R"(
kernel @nested(%y: out f32[1], %x: f32[3, 5]) {
  %k = range 3 reduce
    %l = range 5 reduce
    %v = load %x[%k, %l]
    %m = reduce_max %v, %l
  %s = reduce_add %m, %k
  store %y[0], %s
})",
                    "expand(0)")
                  .status()
                  .message(),
              HasSubstr("a loop inside it"));
}

// Rows of results that were made stores side by side are so again when they are provably apart.
TEST(LoopAction, UnrollOfSeveralStoresToOneBuffer) {
  constexpr const char* kText = R"(
kernel @k(%y: out f32[2, 12, STRIDE], %x: f32[12, 8]) {
  %i = range 12 loop
    %j = range 8 loop
      %v = load %x[%i, %j]
      %p = mul %i, STRIDE
      %q = add %p, %j
      store %y[%q], %v
      %n = neg %v
      %r = add %q, OFFSET
      store %y[%r], %n
    end %j
  end %i
})";
  auto apply = [&](absl::string_view stride, absl::string_view offset) {
    return Apply(absl::StrReplaceAll(kText, {{"STRIDE", stride}, {"OFFSET", offset}}),
                 "unroll(0, 3)");
  };
  EXPECT_TRUE(apply("8", "96").ok()) << apply("8", "96").status();
  EXPECT_TRUE(apply("16", "8").ok()) << apply("16", "8").status();
  // Row i + 1 of the one is row i of the other.
  EXPECT_THAT(apply("8", "8").status().message(), HasSubstr("the same place"));
  // Rows of the one overlap rows of the other.
  EXPECT_THAT(apply("12", "6").status().message(), HasSubstr("the same place"));
}

// Rows of a symbolic width, in vectors that overlap or stop at its end.
TEST(LoopAction, UnrollOfRowsOfSymbolicWidth) {
  constexpr const char* kText = R"(
kernel @k(%h = define_var "h", min=3, max=50; %w = define_var "w", min=LEAST, max=640; %y: out f32[8, %h, %w], %x: f32[%h, %w]) {
  %c = range 8 loop
    %i = range %h loop
      %j = range %w loop
        %v = load %x[%i, %j]
        %f = cast %c : f32
        %p = mul %v, %f
        store %y[%c, %i, %j], %p
      end %j
    end %i
  end %c
})";
  auto apply = [&](absl::string_view least) -> absl::Status {
    auto module = Parse(absl::StrReplaceAll(kText, {{"LEAST", least}}));
    if (!module.ok()) return module.status();
    PassContext pass(*module->context);
    absl::StatusOr<const UOp*> result = module->functions[0].root;
    for (const char* action : {"upcast(2, 16)", "unroll(0, 4)"}) {
      result = ApplyLoopAction(*result, *ParseLoopAction(action), pass);
      if (!result.ok()) return result.status();
    }
    return absl::OkStatus();
  };
  EXPECT_TRUE(apply("16").ok()) << apply("16");
  EXPECT_TRUE(apply("8").ok()) << apply("8");
}

// What is stored below a symbolic row's end may be the next one's.
TEST(LoopAction, UnrollOfRowsThatOverlapIsIllegal) {
  EXPECT_THAT(Apply(R"(
kernel @k(%w = define_var "w", min=16, max=640; %m = mul %w, 2; %y: out f32[8, %w], %x: f32[%m]) {
  %c = range 6 loop
    %j = range %m loop
      %v = load %x[%j]
      %r = mul %c, %w
      %q = add %r, %j
      store %y[%q], %v
    end %j
  end %c
})",
                    "unroll(0, 3)")
                  .status()
                  .message(),
              HasSubstr("the same place"));
}

TEST(LoopAction, IllegalActionsSayWhy) {
  EXPECT_THAT(Apply(kRelu, "upcast(7, 16)").status().message(),
              HasSubstr("none of the kernel's loops"));
  EXPECT_THAT(Apply(kRelu, "group(0, 16)").status().message(),
              HasSubstr("got a loop, expected a reduction's"));
  EXPECT_THAT(Apply(R"(
kernel @shift(%y: inout f32[70]) {
  %i = range 69 loop
  %j = add %i, 1
  %v = load %y[%i]
  store %y[%j], %v
  end %i
})",
                    "upcast(0, 4)")
                  .status()
                  .message(),
              HasSubstr("loads what another one may store"));
  EXPECT_THAT(Apply(R"(
kernel @last(%y: out f32[1], %x: f32[70]) {
  %i = range 70 loop
  %v = load %x[%i]
  store %y[0], %v
  end %i
})",
                    "unroll(0, 2)")
                  .status()
                  .message(),
              HasSubstr("one place in every iteration"));
}

constexpr const char* kColumns = R"(
kernel @columns(%y: out f32[5], %x: f32[7, 5]) {
  %j = range 5 loop
    %r = range 7 reduce
      %v = load %x[%r, %j]
    %s = reduce_add %v, %r
    store %y[%j], %s
  end %j
})";

TEST(LoopAction, ExchangeFoldsRowsIntoScratchMemory) {
  auto text = Apply(kColumns, "exchange(1, 3)");
  ASSERT_TRUE(text.ok()) << text.status();
  // Two blocks of three rows, and the seventh.
  EXPECT_THAT(*text, HasSubstr("local f32[5]"));
  EXPECT_THAT(*text, HasSubstr("range 2 loop"));
  EXPECT_THAT(*text, Not(HasSubstr("reduce_add")));
}

TEST(LoopAction, ExchangeSaysWhyNot) {
  EXPECT_THAT(Apply(kColumns, "exchange(0, 2)").status().message(),
              HasSubstr("got a loop, expected a reduction's"));
  EXPECT_THAT(Apply(kColumns, "exchange(1, 8)").status().message(),
              HasSubstr("the extent is below the amount"));
  std::string in_place = kColumns;
  in_place.replace(in_place.find("out f32[5]"), 10, "inout f32[35]");
  in_place.replace(in_place.find(", %x: f32[7, 5]"), 15, "");
  in_place.replace(in_place.find("%v = load"), 20,
                   "%a = mul %r, 5\n  %b = add %a, %j\n  %v = load %y[%b]\n//");
  EXPECT_THAT(Apply(in_place, "exchange(1, 2)").status().message(),
              HasSubstr("load what the loop around it stores"));
}

// y from f16 or f32 x and z, by the interpreter: numbers whose sums depend on the order.
std::vector<std::byte> Bytes(const UOp* sink, int64_t num_y, int64_t num_x, int bytes) {
  std::vector<std::byte> y(static_cast<size_t>(num_y * bytes));
  std::vector<std::byte> x(static_cast<size_t>(num_x * bytes)), z = x;
  for (size_t i = 0; i < x.size(); ++i) {
    // Exponents that stay away from infinity.
    bool is_high = i % static_cast<size_t>(bytes) == static_cast<size_t>(bytes) - 1;
    x[i] = static_cast<std::byte>(is_high ? 0x38 + i % 4 : i * 37 + 11);
    z[i] = static_cast<std::byte>(is_high ? 0x3a + i % 3 : i * 91 + 5);
  }
  std::vector<absl::Span<std::byte>> spans = {absl::MakeSpan(y), absl::MakeSpan(x),
                                              absl::MakeSpan(z)};
  absl::Status status = Evaluate(sink, spans);
  EXPECT_TRUE(status.ok()) << status;
  return y;
}

TEST(LoopAction, ExchangeKeepsTheOrderOfEverySum) {
  for (const char* fold : {"reduce_add", "reduce_mul", "reduce_max"}) {
    for (const char* type : {"f32", "f16"}) {
      for (const char* opts : {"mulacc", "none"}) {
        for (int64_t amount : {1, 2, 3, 8}) {
          // Two sums over the same rows, one of products, in a loop over blocks of columns.
          std::string text = absl::StrCat(
              "kernel @k(%y: out ", type, "[15], %x: ", type, "[11, 15], %z: ", type,
              "[11, 15]) opts=[", opts, "] {\n  %b = range 3 loop\n  %j = range 5 loop\n",
              "  %b5 = mul %b, 5\n  %c = add %b5, %j\n  %r = range 11 reduce\n",
              "  %v = load %x[%r, %c]\n  %w = load %z[%r, %c]\n  %p = mul %v, %w\n  %s = ", fold,
              " %p, %r\n  %t = reduce_add %v, %r\n  %q = sub %s, %t\n  store %y[%c], %q\n",
              "  end %j\n  end %b\n}\n");
          auto module = Parse(text);
          ASSERT_TRUE(module.ok()) << module.status();
          PassContext pass(*module->context);
          const UOp* sink = module->functions[0].root;
          auto result = ApplyLoopAction(sink, {Kind::kExchange, 2, amount}, pass);
          ASSERT_TRUE(result.ok()) << result.status();
          int bytes = type == std::string("f32") ? 4 : 2;
          auto lower = [&](const UOp* kernel) { return *RunLowerReduce(kernel, pass); };
          EXPECT_EQ(Bytes(lower(*result), 15, 165, bytes), Bytes(lower(sink), 15, 165, bytes))
              << text;
        }
      }
    }
  }
}

// Stores of different iterations of the outer loop meet: the inner loop's order matters.
constexpr const char* kDiagonals = R"(
kernel @diagonals(%y: out f32[20], %x: f32[8, 8]) {
  %i = range 8 loop
    %j = range 8 loop
    %v = load %x[%i, %j]
    %p = add %i, %j
    store %y[%p], %v
    end %j
  end %i
})";

TEST(LoopAction, LoopsWhoseStoresMeetStay) {
  EXPECT_THAT(Apply(kDiagonals, "unroll(0, 2)").status().message(), HasSubstr("the same place"));
  EXPECT_THAT(Apply(kDiagonals, "upcast(0, 4)").status().message(), HasSubstr("the same place"));
  EXPECT_THAT(Apply(kDiagonals, "swap(0)").status().message(), HasSubstr("the same place"));
  EXPECT_THAT(Apply(kDiagonals, "merge(0)").status().message(), HasSubstr("moves otherwise"));
}

// A row is kept in scratch memory: side by side, each iteration has a row of its own.
TEST(LoopAction, UnrolledIterationsHaveTheirOwnScratchMemory) {
  auto text = Apply(R"(
kernel @twice(%y: out f32[6, 4], %x: f32[6, 4]) {
  %t = local f32[4]
  %i = range 6 loop
    %j = range 4 loop
      %v = load %x[%i, %j]
      store %t[%j], %v
    end %j
    %k = range 4 loop
      %w = load %t[%k]
      %d = add %w, %w
      store %y[%i, %k], %d
    end %k
  end %i
})",
                    "unroll(0, 3)");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("%2 = local f32[4]"));
}

TEST(LoopAction, EverySecondElementIsLoadedWithThoseBetween) {
  auto text = Apply(R"(
kernel @half(%y: out f32[8], %x: f32[15]) {
  %i = range 8 loop
    %p = mul %i, 2
    %g = cmplt %p, 9
    %v = load %x[%p], gate=%g
    store %y[%i], %v
  end %i
})",
                    "upcast(0, 4)");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr(": f32x8"));
  EXPECT_THAT(*text, HasSubstr("[0, 2, 4, 6]"));
  EXPECT_THAT(*text, HasSubstr("where"));
}

// A sum over rows and columns of a window: one counter where memory has no gap between them.
TEST(LoopAction, CountersOfSumsMerge) {
  auto kernel = [](absl::string_view row) {
    return absl::StrCat(R"(
kernel @sums(%y: out f32[2], %x: f32[2, 3, 4]) {
  %i = range 2 loop
    %r = range 3 reduce
    %c = range 4 reduce
    %b = mul %i, 12
    %a = mul %r, )",
                        row, R"(
    %ab = add %a, %b
    %p = add %ab, %c
    %v = load %x[%p]
    %s = reduce_add %v, %r, %c
    store %y[%i], %s
  end %i
})");
  };
  auto text = Apply(kernel("4"), "merge(1)");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("range 12 reduce"));
  EXPECT_THAT(Apply(kernel("3"), "merge(1)").status().message(), HasSubstr("moves otherwise"));
  EXPECT_THAT(Apply(kernel("4"), "merge(2)").status().message(), HasSubstr("another counter"));
}

bool FoldsExactly(const UOp* sink, int64_t axis) {
  for (const UOp* node : Toposort(sink)) {
    if (node->op() != Op::kReduce) continue;
    bool is_it = false;
    for (const UOp* range : node->sources().subspan(1)) {
      is_it = is_it || range->arg<AxisArgument>().axis == axis;
    }
    ReduceKind kind = node->arg<ReduceArgument>().kind;
    bool rounds =
        node->dtype().is_float() && (kind == ReduceKind::kAdd || kind == ReduceKind::kMul);
    if (is_it && rounds) return false;
  }
  return true;
}

// Whatever is legal on a generated kernel leaves the same memory.
TEST(LoopAction, LegalActionsChangeNoBit) {
  std::map<Kind, int> done;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    auto context = std::make_shared<Context>();
    GeneratorOptions options;
    options.vectors = seed % 3 == 0;
    auto kernel = GenerateKernel(seed, context, options);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    auto expected = Interpret(kernel->sink, *kernel);
    ASSERT_TRUE(expected.ok()) << expected.status();
    PassContext pass(*context);
    for (const UOp* node : Toposort(kernel->sink)) {
      if (node->op() != Op::kRange) continue;
      int64_t axis = node->arg<AxisArgument>().axis;
      for (LoopAction action :
           {LoopAction{Kind::kUpcast, axis, 4}, LoopAction{Kind::kUpcast, axis, 2},
            LoopAction{Kind::kUnroll, axis, 3}, LoopAction{Kind::kUnroll, axis, 2},
            LoopAction{Kind::kExchange, axis, 1}, LoopAction{Kind::kExchange, axis, 2},
            LoopAction{Kind::kStream, axis, 1}, LoopAction{Kind::kGroup, axis, 4},
            LoopAction{Kind::kSplit, axis, 3}, LoopAction{Kind::kSplit, axis, 2},
            LoopAction{Kind::kSwap, axis, 1}, LoopAction{Kind::kMerge, axis, 1},
            LoopAction{Kind::kPack, axis, 1}, LoopAction{Kind::kExpand, axis, 1}}) {
        auto result = ApplyLoopAction(kernel->sink, action, pass);
        if (!result.ok()) continue;
        if (action.kind == Kind::kGroup && !FoldsExactly(kernel->sink, axis)) continue;
        ++done[action.kind];
        Function function;
        function.root = *result;
        std::string text = PrintCanonical(kernel->sink).value_or("") + ToString(action) + "\n" +
                           PrintCanonical(*result).value_or("");
        absl::Status verified = Verify(function);
        ASSERT_TRUE(verified.ok()) << "seed " << seed << ": " << verified << "\n" << text;
        auto got = Interpret(*result, *kernel);
        ASSERT_TRUE(got.ok()) << "seed " << seed << ": " << got.status() << "\n" << text;
        ASSERT_EQ(FirstDifference(*kernel, *got, *expected), "") << "seed " << seed << "\n" << text;
      }
    }
  }
  // Exchanges, which few generated kernels have, are tested above.
  for (Kind kind :
       {Kind::kUpcast, Kind::kUnroll, Kind::kGroup, Kind::kSplit, Kind::kStream, Kind::kExpand}) {
    EXPECT_GT(done[kind], 0) << static_cast<int>(kind);
  }
}

// The way of a large product: columns in pieces, a panel for each, vectors and tiles on it.
TEST(LoopAction, SequencesChangeNoBit) {
  auto module = Parse(R"(
kernel @mm(%y: out f32[6, 20], %a: f32[6, 5], %b: f32[20, 5]) {
  %i = range 6 loop
    %j = range 20 loop
      %k = range 5 reduce
      %v = load %a[%i, %k]
      %w = load %b[%j, %k]
      %p = mul %v, %w
      %s = reduce_add %p, %k
      store %y[%i, %j], %s
    end %j
  end %i
})");
  ASSERT_TRUE(module.ok()) << module.status();
  const UOp* sink = module->functions[0].root;
  auto results = [&](const UOp* root) {
    std::vector<std::vector<float>> buffers = {std::vector<float>(120), std::vector<float>(30),
                                               std::vector<float>(100)};
    std::vector<absl::Span<std::byte>> spans;
    for (std::vector<float>& buffer : buffers) {
      for (size_t i = 0; i < buffer.size(); ++i) buffer[i] = 1.0f / static_cast<float>(i + 1);
      spans.push_back({reinterpret_cast<std::byte*>(buffer.data()), buffer.size() * sizeof(float)});
    }
    absl::Status status = Evaluate(root, spans);
    EXPECT_TRUE(status.ok()) << status;
    return buffers[0];
  };
  const std::vector<float> expected = results(sink);
  PassContext pass(*module->context);
  for (const char* text : {"split(1, 12)", "swap(0)", "split(3, 4)", "pack(0, 1)", "upcast(4, 4)",
                           "upcast(7, 4)", "unroll(0, 4)"}) {
    auto action = ParseLoopAction(text);
    ASSERT_TRUE(action.ok()) << action.status();
    auto result = ApplyLoopAction(sink, *action, pass);
    ASSERT_TRUE(result.ok()) << result.status() << "\n" << PrintCanonical(sink).value_or("");
    sink = *result;
    EXPECT_EQ(results(sink), expected) << text << "\n" << PrintCanonical(sink).value_or("");
  }
}

// Lanes of lanes there are none: the load of a vector would become one of single elements.
TEST(LoopActions, ALoopAroundVectorsDoesNotBecomeLanes) {
  auto kernel = [](absl::string_view value) {
    return absl::StrCat(R"(
kernel @rows(%y: out f32[8, 16], %x: f32[8, 16]) {
  %i = range 8 loop
    %j = range 2 loop
      %c = mul %j, 8
      %v = )",
                        value, R"(
      store %y[%i, %c], %v
    end %j
  end %i
}
)");
  };
  EXPECT_THAT(Apply(kernel("load %x[%i, %c] : f32x8"), "upcast(0, 8)").status().message(),
              HasSubstr("load: it loads a vector already"));
  EXPECT_THAT(Apply(kernel("load %x[0, %c] : f32x8"), "upcast(0, 8)").status().message(),
              HasSubstr("store: it stores a vector already"));
  EXPECT_TRUE(Apply(kernel("load %x[%i, %c] : f32x8"), "unroll(0, 8)").ok());
}

}  // namespace
}  // namespace svod
