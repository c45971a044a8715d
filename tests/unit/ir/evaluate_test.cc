// The interpreter on whole kernels: memory, loops, reductions, order, variables, cores, limits.
#include "ir/evaluate.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/ir/raw_graph.h"

namespace svod {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const float kNan = std::numeric_limits<float>::quiet_NaN();

template <typename T>
absl::Span<std::byte> Bytes(std::vector<T>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(T)};
}

class EvaluateTest : public ::testing::Test {
 protected:
  absl::Status Run(const UOp* sink, std::vector<absl::Span<std::byte>> buffers,
                   const EvaluateOptions& options = {}) {
    return Evaluate(sink, buffers, options);
  }
  void ExpectError(const absl::Status& status, absl::StatusCode code, const char* message) {
    EXPECT_EQ(status.code(), code);
    EXPECT_THAT(status.message(), HasSubstr(message));
  }
  const UOp* Const(DType dtype, int64_t value) { return g.context.Int(dtype, value); }

  RawGraph g;
};

TEST_F(EvaluateTest, LoopReadsAndWritesEveryElement) {
  const UOp* x = g.Param(0, 4, Access::kIn);
  const UOp* y = g.Param(1, 4, Access::kOut);
  const UOp* i = g.Range(0, 4);
  const UOp* sum = g.Add(g.Load(x, i), g.Float(0.5));
  const UOp* sink = g.Kernel({g.End(i, {g.Store(y, i, sum)})});
  std::vector<float> in = {1, 2, 3, 4}, out(4);
  ASSERT_TRUE(Run(sink, {Bytes(in), Bytes(out)}).ok());
  EXPECT_THAT(out, ElementsAre(1.5, 2.5, 3.5, 4.5));
}

TEST_F(EvaluateTest, OutsideReadsZeroAndIsNotWritten) {
  const UOp* x = g.Param(0, 2, Access::kIn);
  const UOp* y = g.Param(1, 2, Access::kOut);
  const UOp* i = g.Range(0, 4);
  const UOp* at = g.Sub(i, g.Int(1));  // -1 .. 2
  const UOp* sink = g.Kernel({g.End(i, {g.Store(y, at, g.Add(g.Load(x, g.Int(-1)), g.Float(7)))})});
  // One element more than the parameter has: it is outside too.
  std::vector<float> in = {1, 2, 3}, out = {0, 0, -5};
  ASSERT_TRUE(Run(sink, {Bytes(in), Bytes(out)}).ok());
  EXPECT_THAT(out, ElementsAre(7, 7, -5));
}

TEST_F(EvaluateTest, VectorAccessIsOutsideLaneByLane) {
  const UOp* x = g.Param(0, 5, Access::kIn);
  const UOp* y = g.Param(1, 5, Access::kOut);
  const UOp* v = g.Load(x, g.Int(3), 4);  // 3, 4 and two outside
  const UOp* low = g.Store(y, g.Int(-2), v);
  std::vector<float> in = {1, 2, 3, 4, 5}, out(5, -1);
  ASSERT_TRUE(Run(g.Kernel({low}), {Bytes(in), Bytes(out)}).ok());
  EXPECT_THAT(out, ElementsAre(0, 0, -1, -1, -1));
  // A position near the largest integer wraps to a negative one, not into the buffer.
  const UOp* far = g.Store(y, g.Int(std::numeric_limits<int64_t>::max()), v);
  out.assign(5, -1);
  ASSERT_TRUE(Run(g.Kernel({far}), {Bytes(in), Bytes(out)}).ok());
  EXPECT_THAT(out, ElementsAre(-1, -1, -1, -1, -1));
}

TEST_F(EvaluateTest, GatesAndAltsWorkLaneByLane) {
  const UOp* x = g.Param(0, 4, Access::kIn);
  const UOp* y = g.Param(1, 4, Access::kOut);
  const UOp* lanes = g.Ramp(4);
  const UOp* gate = g.Lt(lanes, g.Splat(g.Int(2), 4));
  const UOp* alt = g.Splat(g.Float(9), 4);
  const UOp* v = g.Make(Op::kLoad, DType(Scalar::kF32, 4), {g.Index(x, g.Int(0), gate), alt},
                        AlignmentArgument{0});
  // A vector position gathers and scatters: here it reverses.
  const UOp* back = g.Sub(g.Splat(g.Int(3), 4), lanes);
  const UOp* sink = g.Kernel({g.StoreAt(g.Index(y, back, g.Lt(back, g.Splat(g.Int(3), 4))), v)});
  std::vector<float> in = {1, 2, 3, 4}, out(4);
  ASSERT_TRUE(Run(sink, {Bytes(in), Bytes(out)}).ok());
  EXPECT_THAT(out, ElementsAre(9, 9, 2, 0));
}

TEST_F(EvaluateTest, GatedLoadAtTheEndOfMemoryTouchesNothing) {
  // reported: a gated load at the last element before an unmapped page
  const UOp* x = g.Param(0, 1, Access::kIn);
  const UOp* y = g.Param(1, 4, Access::kOut);
  const UOp* i = g.Range(0, 4);
  const UOp* v = g.LoadAt(g.Index(x, i, g.Lt(i, g.Int(1))));
  auto in = std::make_unique<float>(3);  // the address sanitizer stands behind it
  std::vector<float> out(4, -1);
  absl::Span<std::byte> one(reinterpret_cast<std::byte*>(in.get()), sizeof(float));
  ASSERT_TRUE(Run(g.Kernel({g.End(i, {g.Store(y, i, v)})}), {one, Bytes(out)}).ok());
  EXPECT_THAT(out, ElementsAre(3, 0, 0, 0));
}

TEST_F(EvaluateTest, BoolsInMemoryAreZeroOrNot) {
  const UOp* x = g.Param(0, 3, Access::kIn, Scalar::kBool);
  const UOp* y = g.Param(1, 3, Access::kOut, Scalar::kBool);
  const UOp* i = g.Range(0, 3);
  std::vector<uint8_t> in = {0, 2, 1}, out(3, 77);
  ASSERT_TRUE(
      Run(g.Kernel({g.End(i, {g.Store(y, i, g.Load(x, i))})}), {Bytes(in), Bytes(out)}).ok());
  EXPECT_THAT(out, ElementsAre(0, 1, 1));
}

TEST_F(EvaluateTest, LoopWithNegativeEndRunsNoTimes) {
  const UOp* y = g.Param(0, 4, Access::kOut);
  const UOp* n = g.Variable("n", -3, 3);
  const UOp* i = g.Range(0, n);
  const UOp* sink = g.Kernel({g.End(i, {g.Store(y, i, g.Float(1))})});
  for (int64_t value : {-3, 0, 1, 3}) {
    std::vector<float> out(4);
    std::pair<std::string, int64_t> variables[] = {{"n", value}};
    ASSERT_TRUE(Run(sink, {Bytes(out)}, {.variables = variables}).ok());
    for (int64_t at = 0; at < 4; ++at) EXPECT_EQ(out[at], at < value ? 1 : 0);
  }
}

TEST_F(EvaluateTest, NestedSymbolicLoops) {
  const UOp* y = g.Param(0, 16, Access::kInOut, Scalar::kI32);
  const UOp* i = g.Range(0, 4);
  const UOp* j = g.Range(1, i);  // a triangle
  const UOp* at = g.Add(g.Mul(i, g.Int(4)), j);
  const UOp* inner = g.End(j, {g.Store(y, at, Const(Scalar::kI32, 1))});
  std::vector<int32_t> out(16);
  ASSERT_TRUE(Run(g.Kernel({g.End(i, {inner})}), {Bytes(out)}).ok());
  EXPECT_THAT(out, ElementsAre(0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0));
}

TEST_F(EvaluateTest, AfterOrdersAccesses) {
  const UOp* y = g.Param(0, 2, Access::kInOut);
  const UOp* first = g.Store(y, g.Int(0), g.Float(1));
  const UOp* read = g.Load(g.After(y, {first}), g.Int(0));
  const UOp* second = g.Store(g.After(y, {read}), g.Int(0), g.Add(read, g.Float(1)));
  const UOp* again = g.Load(g.After(y, {second}), g.Int(0));
  const UOp* last = g.Store(g.After(y, {second}), g.Int(1), again);
  std::vector<float> out = {9, 9};
  ASSERT_TRUE(Run(g.Kernel({last}), {Bytes(out)}).ok());
  EXPECT_THAT(out, ElementsAre(2, 2));
}

TEST_F(EvaluateTest, RegistersAndScratchStartAsZeroForEachCore) {
  const UOp* y = g.Param(0, 6, Access::kOut);
  const UOp* core = g.Make(Op::kCoreId, {g.Int(3)});
  const UOp* reg = g.Reg(0, 1);
  const UOp* local = g.Local(1, 2);
  const UOp* old = g.Load(reg, g.Int(0));
  const UOp* set = g.Store(reg, g.Int(0), g.Add(old, g.Float(1)));
  const UOp* old_local = g.Load(local, g.Int(1));
  const UOp* set_local = g.Store(local, g.Int(1), g.Add(old_local, g.Float(5)));
  const UOp* at = g.Mul(core, g.Int(2));
  const UOp* a = g.Store(y, at, g.Load(g.After(reg, {set}), g.Int(0)));
  const UOp* b = g.Store(y, g.Add(at, g.Int(1)), g.Load(g.After(local, {set_local}), g.Int(1)));
  const UOp* sink = g.Kernel({a, b});
  std::vector<float> out(6);
  ASSERT_TRUE(Run(sink, {Bytes(out)}).ok());
  EXPECT_THAT(out, ElementsAre(1, 5, 1, 5, 1, 5));
  out.assign(6, 0);
  ASSERT_TRUE(Run(sink, {Bytes(out)}, {.variables = {}, .core_id = 1}).ok());
  EXPECT_THAT(out, ElementsAre(0, 0, 1, 5, 0, 0));
  ExpectError(Run(sink, {Bytes(out)}, {.variables = {}, .core_id = 3}),
              absl::StatusCode::kOutOfRange,
              "core id, got 3, expected less than the launch size 3");
}

TEST_F(EvaluateTest, VectorRegisters) {
  const UOp* y = g.Param(0, 4, Access::kOut);
  const UOp* reg = g.Reg(0, 2, DType(Scalar::kF32, 4));
  const UOp* set = g.Store(reg, g.Int(1), g.Splat(g.Float(3), 4));
  const UOp* outside = g.Store(g.After(reg, {set}), g.Int(2), g.Splat(g.Float(8), 4));
  const UOp* v = g.Load(g.After(reg, {outside}), g.Int(1));
  const UOp* w = g.Load(g.After(reg, {outside}), g.Int(7));
  std::vector<float> out(4);
  ASSERT_TRUE(Run(g.Kernel({g.Store(y, g.Int(0), g.Add(v, w))}), {Bytes(out)}).ok());
  EXPECT_THAT(out, ElementsAre(3, 3, 3, 3));
}

TEST_F(EvaluateTest, StackSplatAndLanes) {
  const UOp* y = g.Param(0, 4, Access::kOut);
  const UOp* stack = g.Make(Op::kStack, {g.Float(1), g.Float(2), g.Float(3), g.Float(4)});
  const uint16_t order[] = {3, 0, 0, 1};
  const UOp* mixed = g.Make(Op::kLanes, {stack}, LanesArgument{order});
  const uint16_t third[] = {2};
  const UOp* scalar = g.Make(Op::kLanes, {stack}, LanesArgument{third});
  const UOp* sum = g.Add(mixed, g.Splat(scalar, 4));
  std::vector<float> out(4);
  ASSERT_TRUE(Run(g.Kernel({g.Store(y, g.Int(0), sum)}), {Bytes(out)}).ok());
  EXPECT_THAT(out, ElementsAre(7, 4, 4, 5));
}

// --- Reductions
// -----------------------------------------------------------------------------------

template <typename T>
std::vector<T> ReduceAll(RawGraph& g, ReduceKind kind, DType dtype, std::vector<T> values) {
  auto n = static_cast<int64_t>(values.size());
  const UOp* x = g.Param(0, n, Access::kIn, dtype);
  const UOp* y = g.Param(1, 1, Access::kOut, dtype);
  const UOp* i = g.Range(0, g.Int(n), AxisKind::kReduce);
  const UOp* sink = g.Kernel({g.Store(y, g.Int(0), g.Reduce(kind, g.Load(x, i), {i}))});
  std::vector<T> out(1);
  absl::Span<std::byte> buffers[] = {Bytes(values), Bytes(out)};
  absl::Status status = Evaluate(sink, buffers);
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

TEST_F(EvaluateTest, ReduceMaxAndMinPropagateNan) {  // reported case 1
  for (ReduceKind kind : {ReduceKind::kMax, ReduceKind::kMin}) {
    for (const std::vector<float>& values :
         {std::vector<float>{1, kNan}, std::vector<float>{kNan, 1}, std::vector<float>{kNan}}) {
      EXPECT_TRUE(std::isnan(ReduceAll(g, kind, Scalar::kF32, values)[0]));
    }
  }
}

TEST_F(EvaluateTest, ReduceOfNegatives) {  // reported cases 12 and 23
  EXPECT_THAT(ReduceAll<float>(g, ReduceKind::kMax, Scalar::kF32, {-3, -2, -7}), ElementsAre(-2));
  EXPECT_THAT(ReduceAll<int32_t>(g, ReduceKind::kMax, Scalar::kI32, {-3, -2, -7}), ElementsAre(-2));
  EXPECT_THAT(ReduceAll<int8_t>(g, ReduceKind::kMin, Scalar::kI8, {3, -128}), ElementsAre(-128));
}

TEST_F(EvaluateTest, ReduceOfNarrowIntegersWraps) {  // reported case 23
  std::vector<uint8_t> ones(5000, 1);
  EXPECT_THAT(ReduceAll(g, ReduceKind::kAdd, Scalar::kU8, ones), ElementsAre(5000 % 256));
  // Wide enough, the sum is 5000: the cast comes first.
  const UOp* x = g.Param(0, 5000, Access::kIn, Scalar::kU8);
  const UOp* y = g.Param(1, 1, Access::kOut, Scalar::kU32);
  const UOp* i = g.Range(0, 5000);
  const UOp* wide = g.Make(Op::kCast, Scalar::kU32, {g.Load(x, i)});
  std::vector<uint32_t> out(1);
  ASSERT_TRUE(
      Run(g.Kernel({g.Store(y, g.Int(0), g.Sum(wide, {i}))}), {Bytes(ones), Bytes(out)}).ok());
  EXPECT_THAT(out, ElementsAre(5000));
}

TEST_F(EvaluateTest, ReduceIsSequentialInItsOwnPrecision) {  // reported case 23
  std::vector<float> tenths(1000000, 0.1f);
  float expected = 0;
  for (float value : tenths) expected += value;
  EXPECT_THAT(ReduceAll(g, ReduceKind::kAdd, Scalar::kF32, tenths), ElementsAre(expected));
  EXPECT_FLOAT_EQ(expected, 100958.34f);
}

TEST_F(EvaluateTest, ReduceOfHalvesAccumulatesInF32) {
  // In f16 the sum would stick at 2048.
  std::vector<uint16_t> ones(3000, 0x3c00);
  EXPECT_THAT(ReduceAll(g, ReduceKind::kAdd, Scalar::kF16, ones),
              ElementsAre(DoubleToBits(Scalar::kF16, 3000)));
  std::vector<uint16_t> bf16_ones(3000, 0x3f80);
  EXPECT_THAT(ReduceAll(g, ReduceKind::kAdd, Scalar::kBF16, bf16_ones),
              ElementsAre(DoubleToBits(Scalar::kBF16, 3000)));
}

TEST_F(EvaluateTest, EmptyReduceGivesItsIdentity) {  // reported
  const UOp* y = g.Param(0, 1, Access::kOut);
  const UOp* n = g.Variable("n", 0, 3);
  const float inf = std::numeric_limits<float>::infinity();
  std::pair<std::string, int64_t> variables[] = {{"n", 0}};
  for (auto [kind, expected] : {std::pair{ReduceKind::kAdd, 0.0f},
                                {ReduceKind::kMul, 1.0f},
                                {ReduceKind::kMax, -inf},
                                {ReduceKind::kMin, inf}}) {
    const UOp* i = g.Range(0, n);
    const UOp* value = g.Make(Op::kCast, Scalar::kF32, {i});
    std::vector<float> out(1);
    ASSERT_TRUE(Run(g.Kernel({g.Store(y, g.Int(0), g.Reduce(kind, value, {i}))}), {Bytes(out)},
                    {.variables = variables})
                    .ok());
    EXPECT_EQ(out[0], expected);
  }
}

TEST_F(EvaluateTest, ReduceStartsAnewInEachIterationAround) {
  const UOp* x = g.Param(0, 6, Access::kIn);
  const UOp* y = g.Param(1, 2, Access::kOut);
  const UOp* i = g.Range(0, 2);
  const UOp* j = g.Range(1, 3);
  const UOp* sum = g.Sum(g.Load(x, g.Add(g.Mul(i, g.Int(3)), j)), {j});
  std::vector<float> in = {1, 2, 3, 4, 5, 6}, out(2);
  ASSERT_TRUE(Run(g.Kernel({g.End(i, {g.Store(y, i, sum)})}), {Bytes(in), Bytes(out)}).ok());
  EXPECT_THAT(out, ElementsAre(6, 15));
}

TEST_F(EvaluateTest, ReducesShareLoopsAndNest) {
  const UOp* x = g.Param(0, 6, Access::kIn);
  const UOp* y = g.Param(1, 3, Access::kOut);
  const UOp* i = g.Range(0, 2);
  const UOp* j = g.Range(1, 3);
  const UOp* v = g.Load(x, g.Add(g.Mul(i, g.Int(3)), j));
  const UOp* sum = g.Sum(v, {i, j});
  const UOp* max = g.Reduce(ReduceKind::kMax, v, {i, j});
  // The largest row sum: a reduction of a reduction.
  const UOp* k = g.Range(2, 2);
  const UOp* l = g.Range(3, 3);
  const UOp* row = g.Sum(g.Load(x, g.Add(g.Mul(k, g.Int(3)), l)), {l});
  const UOp* best = g.Reduce(ReduceKind::kMax, row, {k});
  const UOp* sink =
      g.Kernel({g.Store(y, g.Int(0), sum), g.Store(y, g.Int(1), max), g.Store(y, g.Int(2), best)});
  std::vector<float> in = {1, 2, 30, 4, 5, 6}, out(3);
  ASSERT_TRUE(Run(sink, {Bytes(in), Bytes(out)}).ok());
  EXPECT_THAT(out, ElementsAre(48, 30, 33));
}

TEST_F(EvaluateTest, ReduceOfVectorsFoldsLaneByLane) {
  const UOp* x = g.Param(0, 8, Access::kIn);
  const UOp* y = g.Param(1, 4, Access::kOut);
  const UOp* i = g.Range(0, 2);
  const UOp* sum = g.Sum(g.Load(x, g.Mul(i, g.Int(4)), 4), {i});
  std::vector<float> in = {1, 2, 3, 4, 10, 20, 30, 40}, out(4);
  ASSERT_TRUE(Run(g.Kernel({g.Store(y, g.Int(0), sum)}), {Bytes(in), Bytes(out)}).ok());
  EXPECT_THAT(out, ElementsAre(11, 22, 33, 44));
}

// --- Many buffers, long chains, limits
// ------------------------------------------------------------

TEST_F(EvaluateTest, OneKernelFedByAHundredBuffers) {  // reported case 25
  for (int64_t count : {40, 100}) {
    std::vector<std::vector<float>> values;
    std::vector<absl::Span<std::byte>> buffers;
    const UOp* sum = g.Float(0);
    for (int64_t slot = 0; slot < count; ++slot) {
      values.push_back({static_cast<float>(slot)});
      sum = g.Add(sum, g.Load(g.Param(slot, 1, Access::kIn), g.Int(0)));
    }
    std::vector<float> out(1);
    for (std::vector<float>& value : values) buffers.push_back(Bytes(value));
    buffers.push_back(Bytes(out));
    const UOp* sink = g.Kernel({g.Store(g.Param(count, 1, Access::kOut), g.Int(0), sum)});
    ASSERT_TRUE(Run(sink, buffers).ok());
    EXPECT_EQ(out[0], static_cast<float>(count * (count - 1) / 2));
  }
}

TEST_F(EvaluateTest, LongChainRuns) {  // reported case 24
  const UOp* y = g.Param(0, 1, Access::kInOut);
  const UOp* value = g.Load(y, g.Int(0));
  for (int i = 0; i < 100000; ++i) value = g.Make(Op::kNeg, {value});
  std::vector<float> out = {3};
  ASSERT_TRUE(Run(g.Kernel({g.Store(y, g.Int(0), value)}), {Bytes(out)}).ok());
  EXPECT_EQ(out[0], 3);
}

TEST_F(EvaluateTest, IndexPast32Bits) {  // reported case 7, the position alone
  const UOp* x = g.Param(0, 1, Access::kIn);
  const UOp* y = g.Param(1, 2, Access::kOut);
  const UOp* i = g.Range(0, 2);
  const int64_t last = (int64_t{1} << 31) + 2;
  // An expanded axis: position 0 and 2^31 + 2 both read element 0.
  const UOp* at = g.Make(Op::kFloordiv, {g.Mul(i, g.Int(last)), g.Int(last + 1)});
  std::vector<float> in = {1}, out(2);
  ASSERT_TRUE(
      Run(g.Kernel({g.End(i, {g.Store(y, i, g.Load(x, at))})}), {Bytes(in), Bytes(out)}).ok());
  EXPECT_THAT(out, ElementsAre(1, 1));
}

TEST_F(EvaluateTest, RefusesWhatItCannotRun) {
  const UOp* y = g.Param(0, 4, Access::kInOut);
  const UOp* n = g.Variable("n", 1, 4);
  const UOp* i = g.Range(0, n);
  const UOp* sink = g.Kernel({g.End(i, {g.Store(y, i, g.Float(1))})});
  std::vector<float> four(4), three(3);
  std::pair<std::string, int64_t> two[] = {{"n", 2}}, nine[] = {{"n", 9}};
  ExpectError(Run(sink, {}, {.variables = two}), absl::StatusCode::kInvalidArgument,
              "evaluate: number of buffers, got 0, expected 1");
  ExpectError(Run(sink, {Bytes(three)}, {.variables = two}), absl::StatusCode::kInvalidArgument,
              "got 12 bytes, expected at least 16");
  ExpectError(Run(sink, {Bytes(four)}), absl::StatusCode::kInvalidArgument,
              "evaluate: variable 'n' has no value");
  ExpectError(Run(sink, {Bytes(four)}, {.variables = nine}), absl::StatusCode::kOutOfRange,
              "evaluate: variable 'n', got 9, expected 1 to 4");
  ExpectError(Evaluate(g.Int(1), {}), absl::StatusCode::kInvalidArgument,
              "expected the sink of a kernel");
  const UOp* buffer = g.Make(Op::kBuffer, Scalar::kF32, {g.Int(4)}, BufferArgument{0});
  ExpectError(Run(g.Kernel({g.Store(buffer, g.Int(0), g.Float(1))}), {}),
              absl::StatusCode::kInvalidArgument, "a kernel cannot access a buffer");
  ExpectError(Run(g.Kernel({g.Store(y, g.Int(0), g.Add(y, y))}), {Bytes(four)}),
              absl::StatusCode::kInvalidArgument, "operand, got param, expected a value");
  ExpectError(Run(g.Kernel({g.Make(Op::kCopy, {y, y})}), {Bytes(four)}),
              absl::StatusCode::kInvalidArgument, "a kernel cannot hold a copy");
}

TEST_F(EvaluateTest, StopsAfterItsSteps) {
  const UOp* y = g.Param(0, 4);
  const UOp* i = g.Range(0, int64_t{1} << 50);
  const UOp* endless = g.Kernel({g.End(i, {g.Store(y, i, g.Float(1))})});
  std::vector<float> four(4);
  ExpectError(Run(endless, {Bytes(four)}, {.variables = {}, .max_steps = 1000}),
              absl::StatusCode::kResourceExhausted, "evaluate: more than 1000 steps");
  const UOp* core = g.Make(Op::kCoreId, {g.Int(int64_t{1} << 50)});
  ExpectError(Run(g.Kernel({g.Store(y, core, g.Float(1))}), {Bytes(four)},
                  {.variables = {}, .max_steps = 1000}),
              absl::StatusCode::kResourceExhausted, "evaluate: more than 1000 steps");
  const UOp* huge = g.Local(0, int64_t{1} << 40, DType(Scalar::kF64, kMaxLanes));
  const UOp* value = g.Splat(g.context.Float(Scalar::kF64, 1), kMaxLanes);
  ExpectError(Run(g.Kernel({g.Store(huge, g.Int(0), value)}), {}),
              absl::StatusCode::kResourceExhausted, "scratch needs more than 1 GiB");
}

TEST_F(EvaluateTest, SymbolicLaunchAndIndexExpressions) {
  const UOp* n = g.Variable("n", 1, 100);
  const UOp* size = g.Make(Op::kFloordiv, {g.Add(n, g.Int(3)), g.Int(4)});
  std::pair<std::string, int64_t> variables[] = {{"n", 9}};
  EXPECT_EQ(*EvaluateIndex(size, variables), 3);
  EXPECT_EQ(*EvaluateIndex(g.Mul(g.Int(std::numeric_limits<int64_t>::max()), g.Int(2)), {}), -2);
  const UOp* bound = g.Make(Op::kBind, {n, g.Int(7)});
  EXPECT_EQ(*EvaluateIndex(g.Add(bound, g.Int(1)), {}), 8);
  ExpectError(EvaluateIndex(size, {}).status(), absl::StatusCode::kInvalidArgument,
              "variable 'n' has no value");
  ExpectError(EvaluateIndex(g.Range(0, 4), {}).status(), absl::StatusCode::kInvalidArgument,
              "index expression, got a range");
  ExpectError(EvaluateIndex(g.Float(1), {}).status(), absl::StatusCode::kInvalidArgument,
              "index expression, got a f32, expected index");

  const UOp* y = g.Param(0, 8, Access::kOut);
  const UOp* core = g.Make(Op::kCoreId, {size});
  std::vector<float> out(8);
  ASSERT_TRUE(
      Run(g.Kernel({g.Store(y, core, g.Float(1))}), {Bytes(out)}, {.variables = variables}).ok());
  EXPECT_THAT(out, ElementsAre(1, 1, 1, 0, 0, 0, 0, 0));
}

}  // namespace
}  // namespace svod
