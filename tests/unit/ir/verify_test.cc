#include "ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "ir/text.h"
#include "tests/unit/ir/raw_graph.h"

namespace svod {
namespace {

using ::testing::HasSubstr;
using Nodes = RawGraph::Nodes;

absl::Status VerifyRoot(const UOp* root, const VerifyOptions& options = {}) {
  Function function;
  function.root = root;
  return Verify(function, options);
}

// The last function of a text.
absl::Status VerifyText(absl::string_view text, const VerifyOptions& options = {}) {
  absl::StatusOr<Module> module = ParseModule(text, "t.uop", std::make_shared<Context>());
  if (!module.ok()) return absl::UnknownError(module.status().message());
  return Verify(module->functions.back(), options);
}

void ExpectError(const absl::Status& status, absl::string_view message,
                 absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(message)));
}

TEST(VerifyKernelTest, AcceptsWhatTheBuilderMakes) {
  const char* kTexts[] = {
      "kernel @k(%y: out f32[4]) {\n  store %y[0], 1.0\n}\n",
      "kernel @scan(%x: inout f32[64]) {\n  %i = range 63 loop\n  %v = load %x[%i]\n"
      "  %j = add %i, 1\n  %w = load %x[%j]\n  %s = add %v, %w\n  store %x[%j], %s\n  end %i\n}\n",
      "kernel @acc(%y: out f32[4], %x: f32[4, 8]) {\n  %acc = reg f32[1]\n  %i = range 4 loop\n"
      "  store %acc[0], 0.0\n  %k = range 8 reduce\n  %a = load %acc[0]\n  %v = load %x[%i, %k]\n"
      "  %s = add %a, %v\n  store %acc[0], %s\n  end %k\n  %t = load %acc[0]\n"
      "  store %y[%i], %t\n  end %i\n}\n",
      "kernel @tri(%y: out f32[8, 8]) {\n  %i = range 8 loop\n  %n = add %i, 1\n"
      "  %j = range %n loop\n  store %y[%i, %j], 1.0\n  end %j\n  end %i\n}\n",
  };
  for (const char* text : kTexts) EXPECT_TRUE(VerifyText(text).ok()) << VerifyText(text);
}

TEST(VerifyKernelTest, AcceptsEveryExample) {
  std::filesystem::path folder =
      std::filesystem::path(SVOD_TEST_DATA).parent_path().parent_path() / "examples";
  int num_functions = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".uop") continue;
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    std::string name = entry.path().filename();
    absl::StatusOr<Module> module = ParseModule(text.str(), name, std::make_shared<Context>());
    ASSERT_TRUE(module.ok()) << module.status();
    for (const Function& function : module->functions) {
      ++num_functions;
      EXPECT_TRUE(Verify(function).ok()) << Verify(function);
    }
  }
  EXPECT_GT(num_functions, 5);
}

TEST(VerifyKernelTest, ErrorsNamePlaceNodeAndOp) {
  ExpectError(VerifyText("kernel @k(%y: f32[4]) {\n  %s = store %y[0], 1.0\n}\n"),
              "verify: t.uop:2:3: %s store: access of %y param");
}

TEST(VerifyKernelTest, AccessModes) {
  RawGraph g;
  const UOp *in = g.Param(0, 4, Access::kIn), *out = g.Param(1, 4, Access::kOut), *at = g.Int(0);
  ExpectError(VerifyRoot(g.Kernel({g.Store(in, at, g.Float(1))})),
              "verify: store: access of param, got in, expected out or inout");
  const UOp* load = g.Load(g.Param(0, 4, Access::kOut), at);
  ExpectError(VerifyRoot(g.Kernel({g.Store(out, at, load)})),
              "verify: load: access of param, got out, expected in or inout");
}

TEST(VerifyKernelTest, Roots) {
  RawGraph g;
  ExpectError(Verify(Function()), "verify: root, got null, expected sink");
  ExpectError(VerifyRoot(g.Int(1)), "verify: const: root, got const, expected sink");
  ExpectError(VerifyRoot(g.Kernel({g.Kernel({})})), "sink: operand, got sink");
  ExpectError(VerifyRoot(g.Kernel({g.Make(Op::kCall, {g.Kernel({})})})),
              "verify: call: op, got call, expected none of a graph in a kernel");
  const UOp* buffer = g.Make(Op::kBuffer, Scalar::kF32, {g.Int(4)}, BufferArgument{0});
  ExpectError(VerifyRoot(g.Kernel({g.Store(buffer, g.Int(0), g.Float(1))})), "op, got buffer");
}

TEST(VerifyKernelTest, SlotsAreUniqueAndWithoutGaps) {
  RawGraph g;
  const UOp* at = g.Int(0);
  auto with = [&](int64_t a, int64_t b) {
    return VerifyRoot(g.Kernel({g.Store(g.Param(a, 4), at, g.Load(g.Param(b, 8), at))}));
  };
  EXPECT_TRUE(with(0, 1).ok());
  ExpectError(with(0, 0), "param: slot, got 0 as param has, expected its own");
  ExpectError(with(0, 2), "param: slot, got 2 of 2 parameters, expected 0 to 1");
  ExpectError(with(0, -1), "param: slot, got -1 of 2 parameters, expected 0 to 1");
}

TEST(VerifyKernelTest, AxesScratchIdsAndNamesAreUnique) {
  RawGraph g;
  const UOp *y = g.Param(0, 64), *i = g.Range(0, 4), *j = g.Range(0, 8), *at = g.Int(0);
  ExpectError(VerifyRoot(g.Kernel({g.End(i, {g.End(j, {g.Store(y, g.Add(i, j), g.Float(0))})})})),
              "range: axis, got 0 as range has, expected its own");
  ExpectError(VerifyRoot(g.Kernel(
                  {g.Store(g.Reg(3, 1), at, g.Float(0)), g.Store(g.Local(3, 1), at, g.Float(0))})),
              "scratch id, got 3 as reg has, expected its own");
  const UOp *n = g.Variable("n", 0, 4), *other = g.Variable("n", 0, 5);
  ExpectError(VerifyRoot(g.Kernel({g.Store(y, g.Add(n, other), g.Float(0))})),
              "bounds of 'n', got [0, 4] and [0, 5], expected one variable of a name");
  ExpectError(VerifyRoot(g.Kernel({g.Store(y, g.Variable("core_id", 0, 4), g.Float(0))})),
              "%core_id define_var: name, got the reserved 'core_id', expected another");
  auto named = [&](int64_t slot) {
    return g.Make(Op::kParam, Scalar::kF32, {g.Int(4)}, ParamArgument{slot, Access::kInOut, "x"});
  };
  ExpectError(VerifyRoot(g.Kernel({g.Store(named(0), at, g.Load(named(1), at))})),
              "name, got 'x' for two parameters");
}

TEST(VerifyKernelTest, OneLaunch) {
  RawGraph g;
  const UOp *a = g.Make(Op::kCoreId, {g.Int(4)}), *b = g.Make(Op::kCoreId, {g.Int(8)});
  const UOp* y = g.Param(0, 64);
  EXPECT_TRUE(VerifyRoot(g.Kernel({g.Store(y, a, g.Float(0))})).ok());
  ExpectError(VerifyRoot(g.Kernel({g.Store(y, g.Add(a, b), g.Float(0))})),
              "core_id: launch size, got a second core_id beside core_id");
  const UOp* loaded = g.Load(g.Param(1, 4, Access::kIn, Scalar::kIndex), g.Int(0));
  ExpectError(VerifyRoot(g.Kernel({g.Store(y, g.Make(Op::kCoreId, {loaded}), g.Float(0))})),
              "core_id: launch size, got load, expected constants and variables");
}

TEST(VerifyKernelTest, DimensionsAreKnownAtLaunchAndBounded) {
  RawGraph g;
  auto with = [&](const UOp* dimension) {
    const UOp* x =
        g.Make(Op::kParam, Scalar::kF32, {dimension}, ParamArgument{0, Access::kInOut, ""});
    return VerifyRoot(g.Kernel({g.Store(x, g.Int(0), g.Float(0))}));
  };
  EXPECT_TRUE(with(g.Mul(g.Variable("n", 0, 9), g.Int(4))).ok());
  const UOp* loaded = g.Load(g.Param(1, 4, Access::kIn, Scalar::kIndex), g.Int(0));
  ExpectError(with(g.Add(loaded, g.Int(1))), "param: dimension, got add, expected constants");
  ExpectError(with(g.Variable("n", -1, 9)), "param: dimension, got a lower bound of -1");
  ExpectError(with(g.Variable("n", 0, int64_t{1} << 62)), "expected at most 2^62 bytes");
}

TEST(VerifyKernelTest, ScratchIsLimited) {
  RawGraph g;
  auto with = [&](const UOp* scratch) {
    return VerifyRoot(g.Kernel(
        {g.Store(scratch, g.Int(0), g.Float(0)), g.Store(g.Reg(1, 1), g.Int(0), g.Float(0))}));
  };
  EXPECT_TRUE(with(g.Reg(0, kMaxRegBytes / 4 - 1)).ok());
  ExpectError(with(g.Reg(0, kMaxRegBytes / 4)), "reg: scratch, got 4 bytes after 65536, expected",
              absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(with(g.Local(0, kMaxLocalBytes / 4)).ok());
  ExpectError(with(g.Local(0, kMaxLocalBytes / 4 + 1)), "local: scratch, got 1073741828 bytes",
              absl::StatusCode::kResourceExhausted);
  ExpectError(with(g.Local(0, int64_t{1} << 40)), "local: scratch, got",
              absl::StatusCode::kResourceExhausted);
}

TEST(VerifyKernelTest, EffectsArePerformedOnce) {
  RawGraph g;
  const UOp *y = g.Param(0, 4), *i = g.Range(0, 4), *store = g.Store(y, i, g.Float(0));
  ExpectError(VerifyRoot(g.Kernel({g.End(i, {store, store})})),
              "store: performed by end and by end, expected once");
  const UOp* end = g.End(i, {store});
  ExpectError(VerifyRoot(g.Kernel({end, end})), "end: performed by sink and by sink");
  ExpectError(VerifyRoot(g.Kernel({g.Int(3)})),
              "sink: effect, got const, expected stores and ends");
}

TEST(VerifyKernelTest, OperandsMustBeValues) {
  RawGraph g;
  const UOp *x = g.Param(0, 4), *at = g.Int(0), *address = g.Index(x, at);
  ExpectError(VerifyRoot(g.Kernel({g.Store(x, at, g.Add(x, x))})),
              "add: operand 0, got param, expected a value");
  ExpectError(VerifyRoot(g.Kernel({g.Store(x, at, address)})),
              "store: operand 1, got index, expected a value");
  const UOp* counts = g.Param(0, 4, Access::kInOut, Scalar::kIndex);
  ExpectError(VerifyRoot(g.Kernel({g.Store(counts, counts, at)})),
              "index: operand 1, got param, expected a value");
}

TEST(VerifyKernelTest, LoopErrorsComeWithTheirPlace) {
  RawGraph g;
  const UOp* i = g.Range(5, 4);
  Function function;
  function.root = g.Kernel({g.Store(g.Param(0, 4), i, g.Float(1))});
  function.file = "t.uop";
  function.notes[i] = {"i", 7, 3};
  ExpectError(Verify(function), "verify: t.uop:7:3: %i range: linearize: range of axis 5: never");
}

class OrderTest : public ::testing::Test {
 protected:
  RawGraph g;
  const UOp* x = g.Param(0, 64);
  const UOp* zero = g.Int(0);
  const UOp* one = g.Float(1);
};

TEST_F(OrderTest, TwoStoresOfOneElement) {
  const UOp *a = g.Store(x, zero, one), *b = g.Store(x, zero, g.Float(2));
  ExpectError(VerifyRoot(g.Kernel({a, b})),
              "verify: store: order against store, which may touch the same element of param, got "
              "none, expected one after the other");
  EXPECT_TRUE(VerifyRoot(g.Kernel({a, g.Store(g.After(x, {a}), zero, g.Float(2))})).ok());
  EXPECT_TRUE(VerifyRoot(g.Kernel({a, g.Store(x, g.Int(1), g.Float(2))})).ok());
}

TEST_F(OrderTest, ALoadAndAStore) {
  const UOp *y = g.Param(1, 64), *load = g.Load(x, zero);
  const UOp* copy = g.Store(y, zero, load);
  ExpectError(VerifyRoot(g.Kernel({copy, g.Store(x, zero, one)})), "order against");
  EXPECT_TRUE(VerifyRoot(g.Kernel({copy, g.Store(g.After(x, {load}), zero, one)})).ok());
  // A value is as good an order as an AFTER.
  EXPECT_TRUE(VerifyRoot(g.Kernel({g.Store(x, zero, g.Add(load, one))})).ok());
  // Loads need none among themselves.
  EXPECT_TRUE(VerifyRoot(g.Kernel({g.Store(y, zero, g.Add(load, g.Load(x, g.Int(0))))})).ok());
}

TEST_F(OrderTest, NamesAndPlacesOfBoth) {
  absl::Status status = VerifyText(
      "kernel @k(%x: inout f32[4]) {\n  %a = store %x[1], 1.0\n  %b = store %x[1], 2.0\n"
      "  sink %a, %b\n}\n");
  EXPECT_TRUE(status.ok()) << status;  // the builder has put an AFTER
  const UOp *a = g.Store(x, zero, one), *b = g.Store(x, zero, g.Float(2));
  Function function;
  function.root = g.Kernel({a, b});
  function.file = "t.uop";
  function.notes[a] = {"a", 2, 3};
  function.notes[b] = {"b", 3, 3};
  ExpectError(Verify(function),
              "verify: t.uop:3:3: %b store: order against %a store (t.uop:2:3), which may touch");
}

TEST_F(OrderTest, LoopsAfterOneAnother) {
  const UOp *i = g.Range(0, 64), *j = g.Range(1, 64);
  const UOp* first = g.End(i, {g.Store(x, i, one)});
  ExpectError(VerifyRoot(g.Kernel({first, g.End(j, {g.Store(x, j, one)})})), "order against store");
  EXPECT_TRUE(VerifyRoot(g.Kernel({first, g.End(j, {g.Store(g.After(x, {first}), j, one)})})).ok());
  const UOp* upper = g.Range(2, 32);
  const UOp* low = g.End(g.Range(3, 32), {g.Store(x, g.Range(3, 32), one)});
  const UOp* high = g.End(upper, {g.Store(x, g.Add(upper, g.Int(32)), one)});
  EXPECT_TRUE(VerifyRoot(g.Kernel({low, high})).ok());
}

TEST_F(OrderTest, ConstantDistancesInALoop) {
  const UOp *i = g.Range(0, 16), *at = g.Mul(i, g.Int(4));
  auto store = [&](int64_t offset, int lanes) {
    const UOp* value = lanes == 1 ? one : g.Splat(one, lanes);
    return g.StoreAt(g.Index(x, g.Add(at, g.Int(offset))), value);
  };
  EXPECT_TRUE(VerifyRoot(g.Kernel({g.End(i, {store(0, 1), store(1, 1), store(2, 2)})})).ok());
  ExpectError(VerifyRoot(g.Kernel({g.End(i, {store(0, 2), store(1, 1)})})), "order against store");
}

TEST_F(OrderTest, ScratchIsCheckedAsWell) {
  const UOp* acc = g.Reg(0, 1);
  const UOp* load = g.Store(x, zero, g.Load(acc, zero));
  ExpectError(VerifyRoot(g.Kernel({g.Store(acc, zero, one), load})), "same element of reg");
}

TEST_F(OrderTest, GathersMayMeetAnything) {
  const UOp* ramp = g.Add(g.Splat(g.Mul(g.Range(0, 4), g.Int(8)), 4), g.Ramp(4));
  const UOp* scatter = g.StoreAt(g.Index(x, ramp), g.Splat(one, 4));
  const UOp* single = g.Store(x, g.Int(9), one);
  ExpectError(VerifyRoot(g.Kernel({g.End(g.Range(0, 4), {scatter, single})})), "order against");
  const UOp* far = g.Store(x, g.Int(40), one);
  EXPECT_TRUE(VerifyRoot(g.Kernel({g.End(g.Range(0, 4), {scatter}), far})).ok());
}

TEST_F(OrderTest, SomePairsOfOneClusterNeedNoOrder) {
  // Stores of [0, 8) and [32, 40) and a load of everything after both: no sequence, but in order.
  const UOp *i = g.Range(0, 8), *j = g.Range(1, 8), *k = g.Range(2, 64);
  const UOp* a = g.End(i, {g.Store(x, i, one)});
  const UOp* b = g.End(j, {g.Store(x, g.Add(j, g.Int(32)), one)});
  const UOp* sum = g.Sum(g.Load(g.After(x, {a, b}), k), {k});
  EXPECT_TRUE(VerifyRoot(g.Kernel({a, b, g.Store(g.Param(1, 1), zero, sum)})).ok());
  const UOp* early = g.Sum(g.Load(g.After(x, {a}), k), {k});
  ExpectError(VerifyRoot(g.Kernel({a, b, g.Store(g.Param(1, 1), zero, early)})), "order against");
}

TEST_F(OrderTest, LongChainsOfDependence) {
  for (bool is_ordered : {true, false}) {
    const UOp* value = g.Load(x, zero);
    const UOp* other = g.Float(3);
    for (int i = 0; i < 5000; ++i) {
      value = g.Make(i % 2 ? Op::kNeg : Op::kSqrt, {value});
      other = g.Make(i % 2 ? Op::kNeg : Op::kSqrt, {other});
    }
    const UOp* keep = g.Store(g.Param(1, 1), zero, value);
    const UOp* store = g.Store(x, zero, is_ordered ? value : other);
    absl::Status status = VerifyRoot(g.Kernel({keep, store}));
    EXPECT_EQ(status.ok(), is_ordered) << status;
  }
}

TEST_F(OrderTest, ThousandsOfAccesses) {
  // An unrolled kernel of 8192 elements in place, and a serial chain through one element.
  const UOp *i = g.Range(0, 2), *big = g.Param(0, 1 << 14), *acc = g.Reg(0, 1);
  Nodes effects;
  const UOp* state = acc;
  for (int n = 0; n < 8192; ++n) {
    const UOp* at = g.Add(g.Mul(i, g.Int(8192)), g.Int(n));
    effects.push_back(g.Store(big, at, g.Add(g.Load(big, at), one)));
    effects.push_back(g.Store(g.After(state, {i}), zero, g.Load(g.After(state, {i}), zero)));
    state = g.After(acc, {effects.back()});
  }
  EXPECT_TRUE(VerifyRoot(g.Kernel({g.End(i, effects)})).ok());
}

TEST(VerifyLowerableTest, ReductionsTranscendentalsAndUnprovedAccesses) {
  RawGraph g;
  VerifyOptions lowerable;
  lowerable.lowerable = true;
  const UOp *y = g.Param(0, 4), *x = g.Param(1, 4), *i = g.Range(0, 4), *k = g.Range(1, 4);
  auto with = [&](const UOp* value, const UOp* at) {
    const UOp* sink = g.Kernel({g.End(i, {g.Store(y, at, value)})});
    EXPECT_TRUE(VerifyRoot(sink).ok()) << VerifyRoot(sink);
    return VerifyRoot(sink, lowerable);
  };
  EXPECT_TRUE(with(g.Load(x, i), i).ok());
  ExpectError(with(g.Sum(g.Load(x, k), {k}), i), "reduce: op, got reduce, expected that a pass");
  ExpectError(with(g.Make(Op::kExp, {g.Load(x, i)}), i), "exp: op, got exp");
  ExpectError(with(g.Load(x, g.Add(i, g.Int(1))), i),
              "load: position in param, got [1, 4], expected a proof or a gate");
  ExpectError(with(g.Load(x, i), g.Sub(i, g.Int(1))), "store: position in param, got [-1, 2]");
}

TEST(VerifySizeTest, AMillionNodesAreLinear) {
  RawGraph g;
  const UOp *x = g.Param(0, 1), *zero = g.Int(0), *state = x, *value = g.Float(0);
  Nodes effects;
  for (int i = 0; i < 125000; ++i) {  // 8 nodes each: one chain through memory
    value = g.Add(g.Make(Op::kNeg, {g.Load(state, zero)}), g.Float(i));
    effects.push_back(g.Store(state, zero, value));
    state = g.After(x, {effects.back()});
  }
  EXPECT_TRUE(VerifyRoot(g.Kernel(effects)).ok());
}

TEST(VerifySizeTest, ThousandsOfStoresBeforeThousandsOfLoads) {
  // No sequence: neither side is in order in itself, and all pairs between them may meet.
  RawGraph g;
  const UOp *x = g.Param(0, 8192), *y = g.Param(1, 4096), *i = g.Range(0, 2);
  Nodes stores;
  for (int n = 0; n < 4096; ++n) {
    const UOp* at = g.Add(g.Mul(i, g.Int(4096)), g.Int(n));
    stores.push_back(g.Store(x, at, g.Float(1)));
  }
  const UOp* written = g.After(x, stores);
  for (const UOp* state : {written, x}) {
    const UOp* sum = g.Float(0);
    for (int n = 0; n < 4096; ++n) {
      sum = g.Add(sum, g.Load(state, g.Add(g.Mul(i, g.Int(n % 5)), g.Int(n))));
    }
    Nodes effects = stores;
    effects.push_back(g.Store(y, g.Int(0), sum));
    absl::Status status = VerifyRoot(g.Kernel({g.End(i, effects)}));
    EXPECT_EQ(status.ok(), state == written) << status;
  }
}

TEST(VerifySizeTest, LongChainsOfAfters) {
  RawGraph g;
  const UOp *x = g.Param(0, 1), *zero = g.Int(0), *state = x;
  const UOp* first = g.Store(x, zero, g.Float(1));
  for (int i = 0; i < 300000; ++i) state = g.After(state, {first});
  EXPECT_TRUE(VerifyRoot(g.Kernel({first, g.Store(state, zero, g.Float(2))})).ok());
}

}  // namespace
}  // namespace svod
