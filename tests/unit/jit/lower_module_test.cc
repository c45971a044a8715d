// What LowerToLlvm promises of the module that it makes: names, alias facts, line tables,
// registers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "jit/target.h"
#include "tests/unit/ir/raw_graph.h"
#include "tests/unit/jit/text_kernel.h"

namespace svod {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

int CountOf(const std::string& text, const std::string& what) {
  return static_cast<int>(std::vector<std::string>(absl::StrSplit(text, what)).size()) - 1;
}

TEST(LowerModuleTest, RefusesWhatPassesReplaceBefore) {
  auto error_of = [](const std::string& text) {
    Module module = ParseKernel(text);
    llvm::LLVMContext context;
    return LowerToLlvm(module.functions[0].root, *HostTarget(), context).status();
  };
  absl::Status reduce = error_of(R"(kernel @k(%y: out f32[1], %x: f32[4]) {
  %i = range 4 reduce
  %v = load %x[%i]
  %s = reduce_add %v, %i
  store %y[0], %s
})");
  EXPECT_EQ(reduce.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(reduce.message()), HasSubstr("reduce: an op that no machine has"));
  absl::Status exp = error_of(R"(kernel @k(%y: out f32[1], %x: f32[4]) {
  %v = load %x[0]
  %e = exp %v
  store %y[0], %e
})");
  EXPECT_EQ(exp.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(exp.message()), HasSubstr("exp: an op that no machine has"));

  RawGraph g;
  llvm::LLVMContext context;
  absl::Status graph = LowerToLlvm(g.Plan({g.Param(0, 4)}), *HostTarget(), context).status();
  EXPECT_EQ(graph.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(graph.message(), "lower: got the sink of a graph, expected a kernel's");
}

constexpr char kSaxpy[] = R"(kernel @saxpy(%y: inout f32[64], %x: f32[64], %a: f32[1]) {
  %c = load %a[0]
  %s = splat %c : f32x16
  %i = range 4 loop
    %p = mul %i, 16
    %q = add %p, 0
    %v = load %x[%q] : f32x16
    %w = load %y[%q] : f32x16
    %r = mulacc %s, %v, %w
    store %y[%q], %r
  end %i
})";

TEST(LowerModuleTest, NamesFollowTheTextAndTextIsRepeatable) {
  Module module = ParseKernel(kSaxpy);
  LowerOptions options;
  options.notes = &module.functions[0].notes;
  auto text = LowerToText(module.functions[0].root, *HostTarget(), options);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("%i = phi i64 [ 0, %entry ], [ %i.next, %i.body ]"));
  EXPECT_THAT(*text, HasSubstr("%v = load <16 x float>, ptr"));
  EXPECT_THAT(*text, HasSubstr("%r = call <16 x float> @llvm.fma.v16f32("));
  // A constant added to the position went into the address; nothing is left of the addition.
  EXPECT_THAT(*text, Not(HasSubstr("%q = ")));

  Module again = ParseKernel(kSaxpy);
  LowerOptions without;
  auto first = LowerToText(module.functions[0].root, *HostTarget(), without);
  auto second = LowerToText(again.functions[0].root, *HostTarget(), without);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
  EXPECT_THAT(*first, HasSubstr("%i."));
}

TEST(LowerModuleTest, BuffersAreApartOnlyWhenTold) {
  Module module = ParseKernel(kSaxpy);
  LowerOptions options;
  auto together = LowerToText(module.functions[0].root, *HostTarget(), options);
  options.noalias = true;
  auto apart = LowerToText(module.functions[0].root, *HostTarget(), options);
  ASSERT_TRUE(together.ok() && apart.ok());
  EXPECT_THAT(*together, Not(HasSubstr("!alias.scope")));
  EXPECT_EQ(CountOf(*apart, ", !alias.scope"), 4);
  EXPECT_EQ(CountOf(*apart, ", !noalias"), 4);
}

// In-place shifts through one memory under two names: without the promise nothing is reordered.
TEST(LowerModuleTest, OverlappingBuffersKeepTheirOrder) {
  Module module = ParseKernel(R"(kernel @k(%y: out f32[8], %x: f32[8]) {
  %i = range 7 loop
    %v = load %x[%i]
    %w = add %v, 1.0
    store %y[%i], %w
  end %i
})");
  for (const auto& [name, target] : RunnableTargets()) {
    auto kernel = Load(module.functions[0].root, target);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    std::vector<float> memory(8);
    kernel->Run({&memory[1], &memory[0]});
    EXPECT_THAT(memory, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)) << name;
  }
}

TEST(LowerModuleTest, LineTablesPointAtTheText) {
  Module module = ParseKernel(kSaxpy);
  LowerOptions options;
  options.notes = &module.functions[0].notes;
  options.debug_path = "/somewhere/saxpy.uop";
  auto text = LowerToText(module.functions[0].root, *HostTarget(), options);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("!DIFile(filename: \"saxpy.uop\", directory: \"/somewhere\")"));
  EXPECT_THAT(*text, HasSubstr("!DILocation(line: 9, column: 5,"));  // the mulacc
  auto assembly = CompileToAssembly(module.functions[0].root, *HostTarget(), options);
  ASSERT_TRUE(assembly.ok());
  EXPECT_THAT(*assembly, HasSubstr(".loc\t1 9 "));
  EXPECT_TRUE(Load(module.functions[0].root, *HostTarget(), options).ok());
}

TEST(LowerModuleTest, AnyKernelNameBecomesASymbol) {
  for (const char* name : {"", "llvm.sqrt.f32", "svod.fma.f64", "a b\"c\n", "9", "\xff", "main"}) {
    RawGraph g;
    const UOp* sink = g.Kernel({g.Store(g.Param(0, 8), g.Int(0), g.Float(3))}, name);
    auto kernel = Load(sink, *HostTarget());
    ASSERT_TRUE(kernel.ok()) << name << ": " << kernel.status();
    float y = 0;
    kernel->Run({&y});
    EXPECT_EQ(y, 3);
  }
}

// The register tile of a matrix product, 14 rows of 2 vectors: accumulators stay in registers, and
// the loop holds its loads, broadcasts and multiply-adds, a counter or two and one branch.
TEST(LowerModuleTest, RegisterTileStaysInRegisters) {
  constexpr int kRows = 14, kDepth = 256;
  const DType vector(Scalar::kF32, 16);
  RawGraph g;
  const UOp* c = g.Param(0, kRows * 32, Access::kOut);
  const UOp* a = g.Param(1, kRows * kDepth, Access::kIn);
  const UOp* b = g.Param(2, kDepth * 32, Access::kIn);
  const UOp* acc = g.Reg(0, 2 * kRows, vector);
  RawGraph::Nodes before;
  for (int r = 0; r < 2 * kRows; ++r) {
    before.push_back(g.Store(acc, g.Int(r), g.context.Float(vector, 0)));
  }
  const UOp* k = g.Range(0, kDepth);
  before.push_back(k);
  const UOp* inside = g.After(acc, before);
  const UOp* panel[2];
  for (int v = 0; v < 2; ++v) {
    panel[v] = g.Load(b, g.Add(g.Mul(k, g.Int(32)), g.Int(16 * v)), 16);
  }
  RawGraph::Nodes body;
  for (int r = 0; r < kRows; ++r) {
    const UOp* factor = g.Splat(g.Load(a, g.Add(k, g.Int(r * kDepth))), 16);
    for (int v = 0; v < 2; ++v) {
      const UOp* sum = g.Load(inside, g.Int(2 * r + v));
      body.push_back(
          g.Store(inside, g.Int(2 * r + v), g.Make(Op::kMulAcc, {factor, panel[v], sum})));
    }
  }
  const UOp* done = g.After(acc, {g.End(k, body)});
  RawGraph::Nodes stores;
  for (int r = 0; r < 2 * kRows; ++r) {
    stores.push_back(g.Store(c, g.Int(r * 16), g.Load(done, g.Int(r))));
  }
  const UOp* sink = g.Kernel(stores, "tile");

  auto skylake = MakeTarget("x86_64-linux-gnu", "skylake-avx512", "");
  ASSERT_TRUE(skylake.ok()) << skylake.status();
  auto assembly = CompileToAssembly(sink, *skylake);
  ASSERT_TRUE(assembly.ok()) << assembly.status();
  size_t begin = assembly->find(".LBB0_1:"), end = assembly->find("\tjl\t.LBB0_1");
  ASSERT_NE(begin, std::string::npos) << *assembly;
  ASSERT_NE(end, std::string::npos) << *assembly;
  std::string loop = assembly->substr(begin, end - begin);
  EXPECT_EQ(CountOf(loop, "vfmadd231ps"), 28) << loop;
  EXPECT_LE(CountOf(loop, "\n\t"), 28 + 14 + 2 + 4) << loop;
  EXPECT_EQ(CountOf(*assembly, "(%rsp)"), 0) << *assembly;

  if (!HostTarget()->has_fma) return;
  auto kernel = Load(sink, *HostTarget());
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<float> x(kRows * kDepth), y(kDepth * 32), z(kRows * 32);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3;
  for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i % 5) - 2;
  kernel->Run({z.data(), x.data(), y.data()});
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t n = 0; n < 32; ++n) {
      float sum = 0;
      for (size_t i = 0; i < kDepth; ++i) sum += x[r * kDepth + i] * y[i * 32 + n];
      ASSERT_EQ(z[r * 32 + n], sum) << r << " " << n;
    }
  }
}

}  // namespace
}  // namespace svod
