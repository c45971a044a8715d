// Every elementwise op and conversion, for every dtype, as scalars and vectors, on every CPU that
// this one can stand in for: machine code against EvaluateScalar, bit for bit. Any NaN equals any
// other where an op computes one; ops that only move bits are compared bit by bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/evaluate.h"
#include "jit/target.h"
#include "tests/unit/ir/raw_graph.h"
#include "tests/unit/jit/kernel_runner.h"

namespace svod {
namespace {

std::vector<DType> ValueTypes() {
  std::vector<DType> dtypes;
  for (int i = 0; i < kNumScalars; ++i) {
    if (kScalarInfos[i].size_bytes > 0) dtypes.push_back(static_cast<Scalar>(i));
  }
  return dtypes;
}

uint64_t Mask(DType dtype) {
  if (dtype.is_bool()) return 1;
  return dtype.bits() == 64 ? ~uint64_t{0} : (uint64_t{1} << dtype.bits()) - 1;
}

bool IsNan(DType dtype, uint64_t bits) {
  return dtype.is_float() && std::isnan(BitsToDouble(dtype.scalar, bits));
}

// Numbers at which something changes: limits, powers of two and their neighbours, halves.
std::vector<uint64_t> Edges(DType dtype) {
  std::vector<uint64_t> edges;
  if (!dtype.is_float()) {
    for (int shift = 0; shift < 64; ++shift) {
      for (int64_t delta : {-1, 0, 1}) {
        uint64_t value = (uint64_t{1} << shift) + static_cast<uint64_t>(delta);
        edges.push_back(value);
        edges.push_back(0 - value);
        // Halfway between two floats of some format, and beside it: what rounds twice shows.
        for (int precision : {8, 11, 24, 53}) {
          if (shift <= precision) continue;
          uint64_t halfway = value + (uint64_t{1} << (shift - precision));
          edges.push_back(halfway);
          edges.push_back(0 - halfway);
        }
      }
    }
    for (int64_t value : {3, 5, 7, 10, 100, 255, 1000}) {
      edges.push_back(static_cast<uint64_t>(value));
      edges.push_back(static_cast<uint64_t>(-value));
    }
  } else {
    for (double value : {0.0,
                         0.5,
                         1.5,
                         2.5,
                         0.1,
                         1e-3,
                         3.0,
                         1e10,
                         1e30,
                         255.5,
                         65504.0,
                         65519.999,
                         65520.0,
                         3.4028235677973366e38,
                         3.4028235e38,
                         3.39e38,
                         1e-40,
                         1e-45,
                         7e-46,
                         5e-324,
                         2.2250738585072014e-308,
                         1.7976931348623157e308,
                         2147483647.0,
                         2147483520.0,
                         4294967295.0,
                         9223372036854774784.0,
                         300.0,
                         5.9604644775e-8,
                         2.9802322387695312e-8,
                         2.98023223876954e-8,
                         6.1e-5}) {
      edges.push_back(DoubleToBits(dtype.scalar, value));
    }
    for (int exponent = -26; exponent <= 66; ++exponent) {
      uint64_t bits = DoubleToBits(dtype.scalar, std::ldexp(1.0, exponent));
      for (int64_t delta : {-1, 0, 1}) edges.push_back(bits + static_cast<uint64_t>(delta));
      edges.push_back(DoubleToBits(dtype.scalar, std::ldexp(1.0, exponent) + 0.5));
      edges.push_back(DoubleToBits(dtype.scalar, std::ldexp(1.0, exponent) - 0.5));
    }
    uint64_t infinity = DoubleToBits(dtype.scalar, std::numeric_limits<double>::infinity());
    uint64_t quiet = DoubleToBits(dtype.scalar, std::numeric_limits<double>::quiet_NaN());
    edges.insert(edges.end(), {1, 2, infinity, infinity - 1, infinity + 1, quiet, quiet + 1});
    size_t count = edges.size();
    for (size_t i = 0; i < count; ++i) {
      edges.push_back(edges[i] ^ (uint64_t{1} << (dtype.bits() - 1)));
    }
  }
  for (uint64_t& edge : edges) edge &= Mask(dtype);
  return edges;
}

uint64_t Random(DType dtype, std::mt19937_64& random) {
  uint64_t bits = random();
  if (!dtype.is_float()) return (random() % 2 == 0 ? bits >> (random() % 64) : bits) & Mask(dtype);
  if (random() % 2 == 0) return bits & Mask(dtype);  // any exponent
  double scale = std::ldexp(1.0, static_cast<int>(random() % 40) - 20);
  double unit = static_cast<double>(static_cast<int64_t>(bits)) * 0x1p-63;
  return DoubleToBits(dtype.scalar, unit * scale);
}

// Three operands a row. Rows are of several sorts: edges, random, equal or opposite, products that
// the third operand nearly cancels or that it just tips to one side.
struct Operands {
  std::vector<uint64_t> x, y, z;
};

Operands MakeOperands(DType dtype, int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> edges = Edges(dtype);
  auto edge = [&] { return edges[random() % edges.size()]; };
  Operands operands;
  for (int i = 0; i < count; ++i) {
    // Every edge stands once as the first operand.
    uint64_t x = static_cast<size_t>(i) < edges.size() ? edges[static_cast<size_t>(i)]
                 : i % 2 == 0                          ? edge()
                                                       : Random(dtype, random);
    uint64_t y = random() % 2 == 0 ? edge() : Random(dtype, random);
    uint64_t z = random() % 2 == 0 ? edge() : Random(dtype, random);
    uint64_t sort = random() % 8;
    if (sort == 0) y = x;
    if (sort == 1) y = (x ^ (uint64_t{1} << (dtype.bits() - 1))) & Mask(dtype);
    if (sort == 2) y = (x + 1) & Mask(dtype);
    if (sort == 3 || sort == 4) {
      uint64_t product = EvaluateScalar(Op::kMul, dtype, dtype, {x, y});
      z = dtype.is_bool() ? product : EvaluateScalar(Op::kNeg, dtype, dtype, {product});
      if (sort == 4) z = (z + random() % 5 - 2) & Mask(dtype);
    }
    if (sort == 6 && dtype.bits() >= 32 && dtype.is_float()) {
      // The product lies halfway between two floats, or nearly so; the addend decides.
      int half = dtype.bits() == 32 ? 12 : 26;
      uint64_t top = uint64_t{1} << half;
      auto factor = [&] { return static_cast<double>(top | (random() % top) | 1); };
      double a = factor(), b = factor();
      double tiny = std::ldexp(a * b, -70) * (static_cast<double>(random() % 3) - 1);
      x = DoubleToBits(dtype.scalar, a);
      y = DoubleToBits(dtype.scalar, random() % 2 == 0 ? b : -b);
      z = DoubleToBits(dtype.scalar, tiny);
    }
    if (sort == 5 && dtype.is_integer()) y = random() % 140 & Mask(dtype);  // shift amounts
    operands.x.push_back(x);
    operands.y.push_back(y);
    operands.z.push_back(z);
  }
  return operands;
}

// Memory of `count` elements.
std::vector<std::byte> Pack(DType dtype, const std::vector<uint64_t>& values) {
  auto size = static_cast<size_t>(dtype.size_bytes());
  std::vector<std::byte> bytes(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) std::memcpy(&bytes[i * size], &values[i], size);
  return bytes;
}

uint64_t Unpack(DType dtype, const std::vector<std::byte>& bytes, size_t i) {
  auto size = static_cast<size_t>(dtype.size_bytes());
  uint64_t value = 0;
  std::memcpy(&value, &bytes[i * size], size);
  return value;
}

// One way to use the operands: an op and its result's dtype.
struct Use {
  Op op;
  DType result;
  bool moves_bits;
};

std::vector<Use> UsesOf(DType dtype) {
  std::vector<Use> uses;
  for (int i = 0; i < kNumOps; ++i) {
    const Op op = static_cast<Op>(i);
    if (!IsElementwise(op) || HasFlag(op, kTranscendental)) continue;
    if (HasFlag(op, kFloating) && !dtype.is_float()) continue;
    if (HasFlag(op, kInteger) && !dtype.is_integer()) continue;
    if (HasFlag(op, kIntegral) && dtype.is_float()) continue;
    if (HasFlag(op, kNumeric) && dtype.is_bool()) continue;
    if (op == Op::kCast) {
      for (DType to : ValueTypes()) uses.push_back({op, to, false});
    } else if (op == Op::kBitcast) {
      for (DType to : ValueTypes()) {
        bool fits = to.size_bytes() == dtype.size_bytes() && to.is_bool() == dtype.is_bool();
        if (fits) uses.push_back({op, to, true});
      }
    } else {
      bool compares = InfoOf(op).dtype_rule == DTypeRule::kBoolOfOperands;
      bool moves = op == Op::kNeg || op == Op::kAbs || op == Op::kWhere;
      uses.push_back({op, compares ? DType(Scalar::kBool) : dtype, moves});
    }
  }
  return uses;
}

// PARAMs 0 to 2 are the operands, 3 a bool; from 4 on one output a use, all in one loop.
const UOp* AllUses(RawGraph& g, DType dtype, int lanes, int count, const std::vector<Use>& uses) {
  const UOp* i = g.Range(0, count / lanes);
  const UOp* position = g.Mul(i, g.Int(lanes));
  std::vector<const UOp*> operands;
  for (int slot = 0; slot < 3; ++slot) {
    operands.push_back(g.Load(g.Param(slot, count, Access::kIn, dtype), position, lanes));
  }
  const UOp* condition = g.Load(g.Param(3, count, Access::kIn, Scalar::kBool), position, lanes);
  std::vector<const UOp*> stores;
  for (const Use& use : uses) {
    std::vector<const UOp*> sources;
    if (use.op == Op::kWhere) sources.push_back(condition);
    for (int s = 0; static_cast<int>(sources.size()) < InfoOf(use.op).min_sources; ++s) {
      sources.push_back(operands[static_cast<size_t>(s)]);
    }
    bool conversion = use.op == Op::kCast || use.op == Op::kBitcast;
    const UOp* value = g.Make(use.op, conversion ? use.result.with_lanes(lanes) : DType(), sources);
    auto slot = static_cast<int64_t>(4 + stores.size());
    stores.push_back(g.Store(g.Param(slot, count, Access::kOut, use.result), position, value));
  }
  return g.Kernel({g.End(i, stores)}, "all_uses");
}

class SemanticsTest : public testing::TestWithParam<std::tuple<size_t, int>> {};

// Reported cases 2 to 6, 10, 11 and the paragraph "also" are rows of this table: division pairs,
// INT_MIN / -1, wrapping, saturating conversions, shifts by too much, NaN and infinity.
void CheckAllUses(const Target& target, DType dtype, int lanes, const Operands& operands) {
  const auto count = static_cast<int>(operands.x.size());
  const std::vector<Use> uses = UsesOf(dtype);
  RawGraph g;
  auto kernel = Load(AllUses(g, dtype, lanes, count, uses), target);
  ASSERT_TRUE(kernel.ok()) << kernel.status();

  std::vector<uint64_t> conditions;
  for (int i = 0; i < count; ++i) conditions.push_back(static_cast<uint64_t>(i * 7 / 3 % 2));
  std::vector<std::vector<std::byte>> memory = {Pack(dtype, operands.x), Pack(dtype, operands.y),
                                                Pack(dtype, operands.z),
                                                Pack(Scalar::kBool, conditions)};
  for (const Use& use : uses) {
    memory.emplace_back(static_cast<size_t>(count * use.result.size_bytes()), std::byte{0xcc});
  }
  std::vector<void*> pointers;
  for (auto& bytes : memory) pointers.push_back(bytes.data());
  kernel->Run(pointers);

  for (size_t u = 0; u < uses.size(); ++u) {
    const Use& use = uses[u];
    int failures = 0;
    for (size_t i = 0; i < static_cast<size_t>(count) && failures < 3; ++i) {
      std::vector<uint64_t> v = {operands.x[i], operands.y[i], operands.z[i]};
      if (use.op == Op::kWhere) v = {conditions[i], operands.x[i], operands.y[i]};
      v.resize(static_cast<size_t>(InfoOf(use.op).min_sources));
      uint64_t expected = EvaluateScalar(use.op, use.result, dtype, v);
      uint64_t got = Unpack(use.result, memory[4 + u], i);
      if (got == expected) continue;
      if (!use.moves_bits && IsNan(use.result, got) && IsNan(use.result, expected)) continue;
      ++failures;
      v.resize(3);
      ADD_FAILURE() << InfoOf(use.op).text << " of " << ToString(dtype) << " to "
                    << ToString(use.result) << ", lanes " << lanes << std::hex << ": operands "
                    << v[0] << " " << v[1] << " " << v[2] << " give " << got << ", expected "
                    << expected;
    }
  }
}

TEST_P(SemanticsTest, EveryOpEqualsTheInterpreter) {
  const auto& [which, lanes] = GetParam();
  if (which >= RunnableTargets().size()) GTEST_SKIP() << "this machine cannot run the code";
  const Target& target = RunnableTargets()[which].second;
  for (DType dtype : ValueTypes()) {
    SCOPED_TRACE(absl::StrCat(RunnableTargets()[which].first, " ", ToString(dtype)));
    uint64_t seed = static_cast<uint64_t>(lanes) * 1000 + static_cast<uint64_t>(dtype.scalar);
    CheckAllUses(target, dtype, lanes, MakeOperands(dtype, 48 * 64, seed));
  }
}

// PARAMs 0 and 1 are packed, 2 and 3 the accumulators, 4 and 5 the results of the two ops.
constexpr Op kDots[] = {Op::kDotU8I8, Op::kDotBF16};
constexpr Scalar kDotSums[] = {Scalar::kI32, Scalar::kF32};

const UOp* AllDots(RawGraph& g, int lanes, int count) {
  const UOp* i = g.Range(0, count / lanes);
  const UOp* position = g.Mul(i, g.Int(lanes));
  auto load = [&](int slot, Scalar scalar) {
    return g.Load(g.Param(slot, count, Access::kIn, scalar), position, lanes);
  };
  const UOp *x = load(0, Scalar::kI32), *y = load(1, Scalar::kI32);
  std::vector<const UOp*> stores;
  for (int k = 0; k < 2; ++k) {
    const UOp* dot = g.Make(kDots[k], DType(), {x, y, load(2 + k, kDotSums[k])});
    stores.push_back(g.Store(g.Param(4 + k, count, Access::kOut, kDotSums[k]), position, dot));
  }
  return g.Kernel({g.End(i, stores)}, "all_dots");
}

// Words of bytes at their limits and of halves of every sort: random ones, near one another, and
// those whose products and sums are hardly normal or not at all.
std::vector<std::vector<uint64_t>> DotOperands(int count) {
  std::mt19937_64 random(7);
  auto half = [&](uint64_t sort, uint64_t exponent) -> uint64_t {
    uint64_t bits = random() & 0xffff;
    return sort < 2 ? bits : (bits & 0x807f) | (exponent + random() % 16) << 7;
  };
  std::vector<std::vector<uint64_t>> operands(4);
  for (int i = 0; i < count; ++i) {
    uint64_t sort = random() % 5;
    uint64_t ends = sort == 1 ? 0x80ff7f0080ff7f00 >> 8 * (random() % 5) : 0;
    uint64_t low = sort == 3 ? 56 : 120;
    for (int k = 0; k < 2; ++k) {
      uint64_t word = half(sort, low) | half(sort, low) << 16;
      operands[static_cast<size_t>(k)].push_back(ends != 0 && k == 0 ? ends & 0xffffffff : word);
    }
    operands[2].push_back(random() & 0xffffffff);
    uint64_t bits = random() & 0x807fffff;
    operands[3].push_back(sort == 0 ? DoubleToBits(Scalar::kF32, 1e-39)
                          : sort == 1
                              ? random() & 0xffffffff
                              : bits | (sort == 3 ? random() % 30 : 120 + random() % 16) << 23);
  }
  return operands;
}

TEST_P(SemanticsTest, DotProductsEqualTheInterpreter) {
  const auto& [which, lanes] = GetParam();
  if (which >= RunnableTargets().size()) GTEST_SKIP() << "this machine cannot run the code";
  const int count = 48 * 128;
  RawGraph g;
  auto kernel = Load(AllDots(g, lanes, count), RunnableTargets()[which].second);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<std::vector<uint64_t>> operands = DotOperands(count);
  std::vector<std::vector<std::byte>> memory;
  for (int slot = 0; slot < 4; ++slot) {
    memory.push_back(
        Pack(slot == 3 ? Scalar::kF32 : Scalar::kI32, operands[static_cast<size_t>(slot)]));
  }
  memory.resize(6, std::vector<std::byte>(4 * count));
  std::vector<void*> pointers;
  for (auto& bytes : memory) pointers.push_back(bytes.data());
  kernel->Run(pointers);
  for (size_t k = 0; k < 2; ++k) {
    for (size_t i = 0; i < count; ++i) {
      const uint64_t v[] = {operands[0][i], operands[1][i], operands[2 + k][i]};
      uint64_t expected = EvaluateScalar(kDots[k], kDotSums[k], kDotSums[k], v);
      uint64_t got = Unpack(kDotSums[k], memory[4 + k], i);
      if (k == 1 && IsNan(Scalar::kF32, got) && IsNan(Scalar::kF32, expected)) continue;
      ASSERT_EQ(got, expected) << InfoOf(kDots[k]).text << std::hex << " of " << v[0] << " " << v[1]
                               << " " << v[2];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, SemanticsTest,
                         testing::Combine(testing::Range<size_t>(0, 6),
                                          testing::Values(1, 3, 4, 8, 16)),
                         [](const auto& info) {
                           size_t which = std::get<0>(info.param);
                           const auto& targets = RunnableTargets();
                           return absl::StrCat(which < targets.size()
                                                   ? targets[which].first
                                                   : absl::StrCat("missing", which),
                                               "_x", std::get<1>(info.param));
                         });

// f16 and bf16 have few enough values for all of them, in every unary op and conversion.
TEST(SemanticsTest, EverySixteenBitFloat) {
  for (const auto& [name, target] : RunnableTargets()) {
    for (DType dtype : {DType(Scalar::kF16), DType(Scalar::kBF16)}) {
      SCOPED_TRACE(name);
      Operands operands;
      std::mt19937_64 random(1);
      for (uint64_t bits = 0; bits < 65536; ++bits) {
        operands.x.push_back(bits);
        operands.y.push_back(random() & 0xffff);
        operands.z.push_back(random() & 0xffff);
      }
      CheckAllUses(target, dtype, 16, operands);
    }
  }
}

// What cannot run here compiles at least, and refers to nothing outside of itself: no helper of a
// compiler's run-time library hides behind any op of any dtype.
TEST(SemanticsTest, ObjectsReferToNothing) {
  for (const auto& [triple, cpu] :
       std::vector<std::pair<const char*, const char*>>{{"x86_64-linux-gnu", "x86-64"},
                                                        {"x86_64-linux-gnu", "haswell"},
                                                        {"x86_64-linux-gnu", "skylake-avx512"},
                                                        {"x86_64-linux-gnu", "sapphirerapids"},
                                                        {"x86_64-linux-gnu", "znver5"},
                                                        {"aarch64-linux-gnu", "generic"},
                                                        {"aarch64-linux-gnu", "neoverse-v2"}}) {
    auto target = MakeTarget(triple, cpu, "");
    ASSERT_TRUE(target.ok()) << target.status();
    for (DType dtype : ValueTypes()) {
      for (int lanes : {1, 16}) {
        RawGraph g;
        auto object = CompileForTest(AllUses(g, dtype, lanes, 48, UsesOf(dtype)), *target);
        ASSERT_TRUE(object.ok()) << object.status();
        EXPECT_THAT(UndefinedSymbols(*object), testing::IsEmpty())
            << cpu << " " << ToString(dtype) << " x" << lanes;
      }
    }
    for (int lanes : {1, 16}) {
      RawGraph g;
      auto object = CompileForTest(AllDots(g, lanes, 48), *target);
      ASSERT_TRUE(object.ok()) << object.status();
      EXPECT_THAT(UndefinedSymbols(*object), testing::IsEmpty()) << cpu << " dots x" << lanes;
    }
  }
}

}  // namespace
}  // namespace svod
