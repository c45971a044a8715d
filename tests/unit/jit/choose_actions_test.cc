// The choice of loop actions: what it does to typical kernels, and that results stay.
#include "jit/choose_actions.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "ir/evaluate.h"
#include "ir/passes/simplify.h"
#include "ir/program.h"
#include "ir/text.h"

namespace svod {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Chosen {
  Module module;
  const UOp* before = nullptr;
  const UOp* after = nullptr;
  std::string text;
};

Chosen Choose(absl::string_view text, const char* cpu) {
  Chosen chosen;
  auto module = ParseModule(text, "k.uop", std::make_shared<Context>());
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return chosen;
  chosen.module = *std::move(module);
  chosen.before = chosen.module.functions[0].root;
  PassContext pass(*chosen.module.context);
  auto after = OptimizeLoops(chosen.before, *MakeTarget("x86_64-linux-gnu", cpu, ""), pass);
  EXPECT_TRUE(after.ok()) << after.status();
  chosen.after = after.value_or(nullptr);
  if (chosen.after != nullptr) chosen.text = PrintCanonical(chosen.after).value_or("");
  return chosen;
}

// Small integers, whose sums are exact in every order.
std::vector<float> Results(const UOp* sink, std::vector<int64_t> sizes) {
  std::vector<std::vector<float>> buffers;
  std::vector<absl::Span<std::byte>> spans;
  for (int64_t size : sizes) {
    buffers.emplace_back(static_cast<size_t>(size));
    for (size_t i = 0; i < buffers.back().size(); ++i) {
      buffers.back()[i] = static_cast<float>((i * 7 + 3) % 11) - 5.0f;
    }
  }
  for (auto& buffer : buffers) {
    spans.push_back({reinterpret_cast<std::byte*>(buffer.data()), buffer.size() * sizeof(float)});
  }
  absl::Status status = Evaluate(sink, spans);
  EXPECT_TRUE(status.ok()) << status;
  return buffers[0];
}

std::string Relu(int64_t n) {
  return absl::StrCat("kernel @relu(%y: out f32[", n, "], %x: f32[", n, "]) opts=[auto] {\n",
                      "  %i = range ", n, " loop\n  %v = load %x[%i]\n  %r = max %v, 0.0\n",
                      "  store %y[%i], %r\n  end %i\n}\n");
}

std::string Matmul(int64_t m, int64_t n, int64_t k) {
  return absl::StrCat("kernel @mm(%y: out f32[", m, ", ", n, "], %a: f32[", m, ", ", k,
                      "], %b: f32[", k, ", ", n, "]) opts=[auto, mulacc] {\n  %i = range ", m,
                      " loop\n  %j = range ", n, " loop\n  %k = range ", k,
                      " reduce\n  %v = load %a[%i, %k]\n  %w = load %b[%k, %j]\n",
                      "  %p = mul %v, %w\n  %s = reduce_add %p, %k\n  store %y[%i, %j], %s\n",
                      "  end %j\n  end %i\n}\n");
}

TEST(ChooseActions, ElementwiseLoopsBecomeVectors) {
  for (int64_t n : {1, 2, 3, 17, 64, 127, 1000, 1023}) {
    for (const char* cpu : {"x86-64", "haswell", "znver4"}) {
      Chosen chosen = Choose(Relu(n), cpu);
      if (n >= 17) {
        EXPECT_THAT(chosen.text, HasSubstr("opts=[upcast(0, "));
      }
      EXPECT_THAT(chosen.text, Not(HasSubstr("auto")));
      EXPECT_EQ(Results(chosen.after, {n, n}), Results(chosen.before, {n, n})) << chosen.text;
    }
  }
}

TEST(ChooseActions, MatmulsBecomeRegisterTiles) {
  for (auto [m, n, k] : {std::tuple{1, 16, 3}, {17, 33, 19}, {64, 64, 8}, {5, 7, 1}, {3, 127, 5}}) {
    Chosen chosen = Choose(Matmul(m, n, k), "znver4");
    if (m > 1) {
      EXPECT_THAT(chosen.text, AllOf(HasSubstr("upcast(1, "), HasSubstr("unroll(0, ")));
    }
    EXPECT_EQ(Results(chosen.after, {m * n, m * k, k * n}),
              Results(chosen.before, {m * n, m * k, k * n}))
        << chosen.text;
  }
}

TEST(ChooseActions, TwoTilesReadRowsFarApartAsTheyLie) {
  Chosen chosen = Choose(Matmul(16, 272, 9), "znver4");
  EXPECT_THAT(chosen.text, AllOf(HasSubstr("unroll(0, 8)"), Not(HasSubstr("pack"))));
  EXPECT_EQ(Results(chosen.after, {16 * 272, 16 * 9, 9 * 272}),
            Results(chosen.before, {16 * 272, 16 * 9, 9 * 272}))
      << chosen.text;
}

TEST(ChooseActions, RowsFarApartArePacked) {
  Chosen chosen = Choose(Matmul(40, 272, 9), "znver4");
  EXPECT_THAT(chosen.text, AllOf(HasSubstr("pack(0, 1)"), HasSubstr("local f32")));
  EXPECT_EQ(Results(chosen.after, {40 * 272, 40 * 9, 9 * 272}),
            Results(chosen.before, {40 * 272, 40 * 9, 9 * 272}))
      << chosen.text;
}

std::string Columns(int64_t rows, int64_t columns) {
  return absl::StrCat("kernel @columns(%y: out f32[", columns, "], %x: f32[", rows, ", ", columns,
                      "]) opts=[auto] {\n  %j = range ", columns, " loop\n  %r = range ", rows,
                      " reduce\n  %v = load %x[%r, %j]\n  %s = reduce_add %v, %r\n",
                      "  store %y[%j], %s\n  end %j\n}\n");
}

TEST(ChooseActions, SumsOfWideColumnsReadWholeRows) {
  for (auto [rows, columns] :
       {std::pair{2, 1023}, {3, 1000}, {17, 4097}, {127, 640}, {8, 513}, {1000, 17}, {5, 1}}) {
    Chosen chosen = Choose(Columns(rows, columns), "znver4");
    if (columns > 512) {
      EXPECT_THAT(chosen.text, HasSubstr("exchange(1, "));
    } else {
      EXPECT_THAT(chosen.text, Not(HasSubstr("exchange")));
    }
    EXPECT_EQ(Results(chosen.after, {columns, rows * columns}),
              Results(chosen.before, {columns, rows * columns}))
        << chosen.text;
  }
  // Two rows of results share the rows that they sum up: a tile of both is better.
  EXPECT_THAT(Choose(Matmul(2, 1024, 64), "znver4").text, Not(HasSubstr("exchange")));
}

TEST(ChooseActions, ResultsBeyondTheLastCacheGoPastIt) {
  const int64_t many = MakeTarget("x86_64-linux-gnu", "znver4", "")->last_level_bytes / 4;
  EXPECT_THAT(Choose(Relu(many), "znver4").text, Not(HasSubstr("stream")));
  Chosen chosen = Choose(Relu(2 * many), "znver4");
  EXPECT_THAT(chosen.text, AllOf(HasSubstr("upcast(0, 32), stream(0)"), HasSubstr(", stream\n")));
  // A result that is read as well stays in the caches.
  std::string in_place = absl::StrCat(
      "kernel @relu(%y: inout f32[", 2 * many, "]) opts=[auto] {\n  %i = range ", 2 * many,
      " loop\n  %v = load %y[%i]\n  %r = max %v, 0.0\n  store %y[%i], %r\n  end %i\n}\n");
  EXPECT_THAT(Choose(in_place, "znver4").text, Not(HasSubstr("stream")));
}

// What one loop reads down a column, the loop around it reads along a row.
TEST(ChooseActions, TransposesTakeBlocks) {
  Chosen chosen = Choose(R"(
kernel @transpose(%y: out f32[19, 41], %x: f32[41, 19]) opts=[auto] {
  %i = range 19 loop
  %j = range 41 loop
  %v = load %x[%j, %i]
  store %y[%i, %j], %v
  end %j
  end %i
}
)",
                         "znver4");
  EXPECT_THAT(chosen.text, HasSubstr("opts=[upcast(1, 16), unroll(0, 16)]"));
  EXPECT_EQ(Results(chosen.after, {19 * 41, 41 * 19}), Results(chosen.before, {19 * 41, 41 * 19}))
      << chosen.text;
}

// 3 x 3 windows of a picture with a border of zeros: rows and columns are merged in the panel.
TEST(ChooseActions, WindowsArePackedWithTheirBorder) {
  Chosen chosen = Choose(R"(
kernel @conv(%y: out f32[12, 6, 20], %x: f32[2, 6, 20], %w: f32[12, 2, 3, 3]) opts=[auto, mulacc] {
  %o = range 12 loop
  %r = range 6 loop
  %q = range 20 loop
  %c = range 2 reduce
  %u = range 3 reduce
  %v = range 3 reduce
  %r1 = add %r, %u
  %q1 = add %q, %v
  %r_low = cmplt 0, %r1
  %r_high = cmplt %r1, 7
  %q_low = cmplt 0, %q1
  %q_high = cmplt %q1, 21
  %r_in = and %r_low, %r_high
  %q_in = and %q_low, %q_high
  %in = and %r_in, %q_in
  %r0 = add %r1, -1
  %q0 = add %q1, -1
  %z = load %x[%c, %r0, %q0], gate=%in
  %k = load %w[%o, %c, %u, %v]
  %p = mul %k, %z
  %s = reduce_add %p, %c, %u, %v
  store %y[%o, %r, %q], %s
  end %q
  end %r
  end %o
}
)",
                         "znver4");
  EXPECT_THAT(chosen.text, AllOf(HasSubstr("pack(0, 2), merge(1)"), HasSubstr("unroll(0, ")));
  EXPECT_EQ(Results(chosen.after, {12 * 6 * 20, 2 * 6 * 20, 12 * 2 * 9}),
            Results(chosen.before, {12 * 6 * 20, 2 * 6 * 20, 12 * 2 * 9}))
      << chosen.text;
}

// Depthwise 3 x 3 windows: terms are written out, and rows share what their windows overlap in.
TEST(ChooseActions, ShortWindowsAreWrittenOut) {
  Chosen chosen = Choose(R"(
kernel @depthwise(%y: out f32[5, 12, 40], %x: f32[5, 14, 42], %w: f32[5, 3, 3]) opts=[auto, mulacc] {
  %c = range 5 loop
    %i = range 12 loop
      %j = range 40 loop
        %k = range 3 reduce
          %l = range 3 reduce
          %r = add %i, %k
          %q = add %j, %l
          %v = load %x[%c, %r, %q]
          %f = load %w[%c, %k, %l]
          %p = mul %v, %f
          %s = reduce_add %p, %k, %l
        store %y[%c, %i, %j], %s
      end %j
    end %i
  end %c
}
)",
                         "znver4");
  EXPECT_THAT(chosen.text, AllOf(HasSubstr("expand(3), upcast(2, 16), unroll(1, 4)"),
                                 Not(HasSubstr(" reduce"))));
  EXPECT_EQ(Results(chosen.after, {5 * 12 * 40, 5 * 14 * 42, 45}),
            Results(chosen.before, {5 * 12 * 40, 5 * 14 * 42, 45}))
      << chosen.text;
}

// Eight columns are one vector: two rows of them use a weight twice.
TEST(ChooseActions, ShortColumnsAreTiledOverTwoLoops) {
  Chosen chosen = Choose(R"(
kernel @conv(%y: out f32[8, 10, 10], %x: f32[6, 14, 14], %w: f32[8, 6, 5, 5]) opts=[auto, mulacc] {
  %o = range 8 loop
    %i = range 10 loop
      %j = range 10 loop
        %c = range 6 reduce
          %k = range 5 reduce
            %l = range 5 reduce
            %r = add %i, %k
            %q = add %j, %l
            %v = load %x[%c, %r, %q]
            %f = load %w[%o, %c, %k, %l]
            %p = mul %v, %f
            %s = reduce_add %p, %c, %k, %l
        store %y[%o, %i, %j], %s
      end %j
    end %i
  end %o
}
)",
                         "znver4");
  EXPECT_THAT(chosen.text, HasSubstr("upcast(2, 8), unroll(0, 8), unroll(1, 2)"));
  EXPECT_EQ(Results(chosen.after, {8 * 100, 6 * 14 * 14, 8 * 6 * 25}),
            Results(chosen.before, {8 * 100, 6 * 14 * 14, 8 * 6 * 25}))
      << chosen.text;
}

// Rows of scores are kept, exponentiated and used: several at a time, on transposed keys.
TEST(ChooseActions, AttentionTakesSeveralRowsAtATime) {
  Chosen chosen = Choose(R"(
kernel @attend(%y: out f32[24, 16], %q: f32[24, 8], %k: f32[40, 8], %v: f32[40, 16]) opts=[auto, mulacc] {
  %scores = local f32[40]
  %i = range 24 loop
    %t = range 40 loop
    %d = range 8 reduce
    %a = load %q[%i, %d]
    %b = load %k[%t, %d]
    %ab = mul %a, %b
    %s = reduce_add %ab, %d
    store %scores[%t], %s
    end %t
    %m = range 40 reduce
    %sm = load %scores[%m]
    %max = reduce_max %sm, %m
    %e = range 16 loop
    %u = range 40 reduce
    %su = load %scores[%u]
    %w = sub %su, %max
    %x = load %v[%u, %e]
    %wx = mul %w, %x
    %sum = reduce_add %wx, %u
    store %y[%i, %e], %sum
    end %e
  end %i
}
)",
                         "znver4");
  EXPECT_THAT(chosen.text, AllOf(HasSubstr("pack(0, 1)"), HasSubstr("unroll(0, ")));
  // Both products ask for a tile of rows; the loop over rows is cut once.
  EXPECT_EQ(chosen.text.find("unroll(0, "), chosen.text.rfind("unroll(0, ")) << chosen.text;
  EXPECT_EQ(Results(chosen.after, {24 * 16, 24 * 8, 40 * 8, 40 * 16}),
            Results(chosen.before, {24 * 16, 24 * 8, 40 * 8, 40 * 16}))
      << chosen.text;
}

// Bytes are multiplied four at a time; what their signs ask for is put right once, not a tile.
TEST(ChooseActions, ExtremesOfRowsFoldAlongThem) {
  std::string text = R"(kernel @rows(%y: out f32[6, 1], %x: f32[6, 4096]) opts=[auto] {
    %r = range 6 loop
      %i = range 4096 reduce
        %v = load %x[%r, %i]
      %m = reduce_max %v, %i
      store %y[%r, 0], %m
    end %r
  })";
  Chosen chosen = Choose(text, "znver4");
  // Eight registers hide the steps that look after NaN; AVX2 has not so many.
  EXPECT_THAT(chosen.text, HasSubstr("opts=[group(1, 128)]"));
  EXPECT_THAT(Choose(text, "haswell").text, HasSubstr("opts=[group(1, 32)]"));
  EXPECT_EQ(Results(chosen.after, {6, 6 * 4096}), Results(chosen.before, {6, 6 * 4096}));
}

// max(x - max(x)) of each row: what follows a fold waits for its end.
std::string RowsOfMaxima(int64_t rows, int64_t columns) {
  return absl::StrCat("kernel @rows(%y: out f32[", rows, ", ", columns, "], %x: f32[", rows, ", ",
                      columns, "]) opts=[auto] {\n  %r = range ", rows, " loop\n  %i = range ",
                      columns, " reduce\n  %v = load %x[%r, %i]\n  %m = reduce_max %v, %i\n",
                      "  %j = range ", columns, " loop\n  %w = load %x[%r, %j]\n",
                      "  %d = sub %w, %m\n  store %y[%r, %j], %d\n  end %j\n  end %r\n}\n");
}

TEST(ChooseActions, FoldsOfSeveralRowsGoSideBySide) {
  // The caches that a named CPU counts on: 32 KiB, 1 MiB, 32 MiB.
  struct Case {
    int64_t rows, columns;
    const char* unroll;  // null: one row at a time
  } cases[] = {
      {64, 3, "unroll(0, 8)"},
      {64, 17, "unroll(0, 8)"},
      {64, 127, "unroll(0, 4)"},
      {64, 1024, "unroll(0, 2)"},
      {3, 127, "unroll(0, 2)"},
      {1, 127, nullptr},
      {64, 4096, nullptr},             // two rows and results: more than half the cache
      {1 << 20, 127, "unroll(0, 4)"},  // short rows wait, wherever they come from
      {1 << 16, 1024, nullptr},        // long rows from memory do not
  };
  for (const Case& one : cases) {
    std::string text = RowsOfMaxima(one.rows, one.columns);
    Chosen chosen = Choose(text, "znver4");
    if (one.unroll != nullptr) {
      EXPECT_THAT(chosen.text, HasSubstr(one.unroll)) << one.rows << " x " << one.columns;
    } else {
      EXPECT_THAT(chosen.text, Not(HasSubstr("unroll(0"))) << one.rows << " x " << one.columns;
    }
    if (one.rows * one.columns > 10000) continue;
    std::vector<int64_t> sizes(2, one.rows * one.columns);
    EXPECT_EQ(Results(chosen.after, sizes), Results(chosen.before, sizes)) << text;
  }
}

TEST(ChooseActions, ProductsOfBytesAreDotProducts) {
  for (const char* cpu : {"haswell", "znver4"}) {
    Chosen chosen = Choose(R"(
kernel @mm(%y: out i32[70, 96], %a: i8[70, 300], %b: i8[300, 96]) opts=[auto] {
  %i = range 70 loop
    %j = range 96 loop
      %k = range 300 reduce
      %v = load %a[%i, %k]
      %w = load %b[%k, %j]
      %x = cast %v : i32
      %z = cast %w : i32
      %p = mul %x, %z
      %s = reduce_add %p, %k
      store %y[%i, %j], %s
    end %j
  end %i
})",
                           cpu);
    EXPECT_THAT(chosen.text, AllOf(HasSubstr("opts=[dot(2), "), HasSubstr("pack(0, "),
                                   HasSubstr("unroll(0, "), HasSubstr("dot_u8i8")));
    std::vector<size_t> sizes = {4 * 70 * 96, 70 * 300, 300 * 96};
    std::vector<std::vector<std::byte>> results;
    for (const UOp* sink : {chosen.before, chosen.after}) {
      std::vector<std::vector<std::byte>> buffers;
      std::vector<absl::Span<std::byte>> spans;
      for (size_t size : sizes) {
        buffers.emplace_back(size);
        for (size_t i = 0; i < size; ++i) buffers.back()[i] = static_cast<std::byte>(i * 7 + i / 9);
      }
      for (auto& buffer : buffers) spans.push_back(absl::MakeSpan(buffer));
      absl::Status status = Evaluate(sink, spans);
      EXPECT_TRUE(status.ok()) << status;
      results.push_back(buffers[0]);
    }
    EXPECT_EQ(results[0], results[1]) << chosen.text;
  }
}

// The text of the chosen kernel as it is compiled, with what is known of counters worked in.
std::string Simplified(const Chosen& chosen) {
  PassContext pass(*chosen.module.context);
  absl::StatusOr<const UOp*> simplified = RunSimplify(chosen.after, pass);
  EXPECT_TRUE(simplified.ok()) << simplified.status();
  return simplified.ok() ? PrintCanonical(*simplified).value_or("") : "";
}

// Loops of `extents` around one of 40 elements, whose counters choose between values of one load.
std::string Stacked(const std::vector<int64_t>& extents) {
  std::string shape, loops, position, ends, value = "%v";
  for (size_t i = 0; i < extents.size(); ++i) {
    absl::StrAppend(&shape, extents[i], ", ");
    absl::StrAppend(&loops, "%i", i, " = range ", extents[i], " loop\n%n", i, " = cast %i", i,
                    " : i32\n");
    absl::StrAppend(&position, "%i", i, ", ");
    absl::StrAppend(&ends, "end %i", extents.size() - 1 - i, "\n");
  }
  std::string body = "%j = range 40 loop\n%v = load %x[%j]\n";
  for (size_t i = 0; i < extents.size(); ++i) {
    for (int64_t k = 0; k + 1 < extents[i]; ++k) {
      const std::string id = absl::StrCat(i, "_", k);
      absl::StrAppend(&body, "%m", id, " = mul ", value, ", ", k + 2, ".0\n%c", id, " = cmpeq %n",
                      i, ", ", k, "\n%w", id, " = where %c", id, ", %m", id, ", ", value, "\n");
      value = absl::StrCat("%w", id);
    }
  }
  return absl::StrCat("kernel @stacked(%y: out f32[", shape, "40], %x: f32[40]) opts=[auto] {\n",
                      loops, body, "store %y[", position, "%j], ", value, "\nend %j\n", ends,
                      "}\n");
}

TEST(ChooseActions, LoopsThatChooseBetweenValuesAreWrittenOut) {
  Chosen one = Choose(Stacked({3}), "znver4");
  EXPECT_THAT(Simplified(one), AllOf(HasSubstr("unroll(0, 3)"), Not(HasSubstr("where"))));
  EXPECT_EQ(Results(one.after, {120, 40}), Results(one.before, {120, 40})) << one.text;
  Chosen two = Choose(Stacked({6, 6}), "haswell");
  EXPECT_THAT(Simplified(two), AllOf(HasSubstr("opts=[unroll(0, 6), unroll(1, 6), upcast("),
                                     Not(HasSubstr("where"))));
  EXPECT_EQ(Results(two.after, {1440, 40}), Results(two.before, {1440, 40})) << two.text;
}

TEST(ChooseActions, ManyChoicesTogetherStayLoopsOutside) {
  Chosen many = Choose(Stacked({2, 8, 8}), "znver4");
  EXPECT_THAT(Simplified(many), AllOf(HasSubstr("unroll(1, 8), unroll(2, 8)"), HasSubstr("where"),
                                      Not(HasSubstr("unroll(0, "))));
  EXPECT_EQ(Results(many.after, {5120, 40}), Results(many.before, {5120, 40}));
  Chosen longer = Choose(Stacked({9}), "znver4");
  EXPECT_THAT(Simplified(longer), AllOf(HasSubstr("where"), Not(HasSubstr("unroll(0, 9)"))));
}

TEST(ChooseActions, KernelsThatDoNotAskStayAsTheyAre) {
  std::string text = Relu(64);
  text.replace(text.find("auto"), 4, "mine");
  Chosen chosen = Choose(text, "znver4");
  EXPECT_EQ(chosen.after, chosen.before);
}

TEST(ChooseActions, WhatWasChosenAndPrintedCanBeAppliedAgain) {
  for (const std::string& text : {Relu(1000), Matmul(64, 64, 64), Matmul(127, 1023, 17)}) {
    for (const char* cpu : {"x86-64", "haswell", "znver4"}) {
      Chosen chosen = Choose(text, cpu);
      const size_t begin = chosen.text.find("opts=[") + 6;
      std::string opts = chosen.text.substr(begin, chosen.text.find(']', begin) - begin);
      opts = opts.substr(0, 6) == "mulacc" ? absl::StrCat("mulacc, apply", opts.substr(6))
                                           : absl::StrCat("apply, ", opts);
      std::string again = text;
      const size_t at = again.find("opts=[") + 6;
      again.replace(at, again.find(']', at) - at, opts);
      EXPECT_EQ(Choose(again, cpu).after->hash(), chosen.after->hash()) << chosen.text;
    }
  }
}

}  // namespace
}  // namespace svod
