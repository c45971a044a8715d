#include "ir/uop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "ir/float_formats.h"
#include "tests/unit/ir/raw_graph.h"

namespace svod {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(UOpTest, EqualNodesAreOnePointer) {
  RawGraph g;
  EXPECT_EQ(g.Int(3), g.Int(3));
  EXPECT_NE(g.Int(3), g.Int(4));
  EXPECT_NE(g.Int(3), g.context.Int(Scalar::kI64, 3));
  EXPECT_EQ(g.Add(g.Int(1), g.Int(2)), g.Add(g.Int(1), g.Int(2)));
  EXPECT_NE(g.Add(g.Int(1), g.Int(2)), g.Add(g.Int(2), g.Int(1)));
  EXPECT_NE(g.Range(0, 4), g.Range(1, 4));
  size_t before = g.context.num_nodes();
  g.Add(g.Int(1), g.Int(2));
  EXPECT_EQ(g.context.num_nodes(), before);
}

TEST(UOpTest, HashesDependOnContentOnly) {
  RawGraph a, b;
  b.Int(99);  // shifts creation numbers and addresses
  const UOp* second = b.Add(b.Variable("n", 0, 9), b.Int(1));
  const UOp* first = a.Add(a.Variable("n", 0, 9), a.Int(1));
  EXPECT_EQ(first->hash(), second->hash());
  EXPECT_NE(first->hash(), a.Add(a.Int(1), a.Variable("n", 0, 9))->hash());
  EXPECT_NE(a.Variable("n", 0, 9)->hash(), a.Variable("n", 0, 8)->hash());
  EXPECT_NE(a.Variable("n", 0, 9)->hash(), a.Variable("m", 0, 9)->hash());
  EXPECT_EQ(ToString(first->hash()).size(), 32u);
  // The value itself: it may not change between processes, versions or platforms by accident.
  EXPECT_EQ(ToString(a.Int(1)->hash()), ToString(b.Int(1)->hash()));
}

TEST(UOpTest, ArgumentsOutliveTheirStrings) {
  RawGraph g;
  const UOp* variable = nullptr;
  const UOp* lanes = nullptr;
  {
    std::string name = "a name that is too long for a small string";
    variable = g.Make(Op::kDefineVar, {}, VariableArgument{name, 0, 1});
    std::vector<uint16_t> list = {2, 0};
    lanes = g.Make(Op::kLanes, {g.Ramp(4)}, LanesArgument{list});
    name.assign(name.size(), '#');
    list.assign(2, 9);
  }
  EXPECT_EQ(variable->arg<VariableArgument>().name, "a name that is too long for a small string");
  EXPECT_THAT(lanes->arg<LanesArgument>().lanes, ElementsAre(2, 0));
}

TEST(UOpTest, ConstantsWrapAndRound) {
  Context c;
  EXPECT_EQ(ConstInt(c.Int(Scalar::kI8, 200)), -56);
  EXPECT_EQ(ConstInt(c.Int(Scalar::kU8, -1)), 255);
  EXPECT_EQ(ConstInt(c.Int(Scalar::kI64, std::numeric_limits<int64_t>::min())),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(c.Bool(true), c.Int(Scalar::kBool, 5));
  EXPECT_EQ(c.Bits(Scalar::kI16, 0xfffff), c.Int(Scalar::kI16, -1));
  EXPECT_EQ(ConstFloat(c.Float(Scalar::kF32, 0.1)), 0.1f);
  EXPECT_EQ(ConstFloat(c.Float(Scalar::kF64, 0.1)), 0.1);
  EXPECT_EQ(ConstFloat(c.Float(Scalar::kF16, 65519.0)), 65504);
  EXPECT_TRUE(std::isinf(ConstFloat(c.Float(Scalar::kF16, 65520.0))));
  EXPECT_TRUE(std::isnan(ConstFloat(c.Float(Scalar::kBF16, std::nan("")))));
  EXPECT_NE(c.Float(Scalar::kF32, 0.0), c.Float(Scalar::kF32, -0.0));
  EXPECT_EQ(c.Int(DType(Scalar::kI32, 4), 7)->dtype(), DType(Scalar::kI32, 4));
  EXPECT_TRUE(IsConstInt(c.Index(-3), -3));
  EXPECT_FALSE(IsConstInt(c.Float(Scalar::kF32, -3), -3));
}

TEST(UOpTest, DoubleRoundsOnceToSixteenBits) {
  // Just above the middle between two f16: rounding to f32 first would land on the middle.
  double above = 1.0 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(DoubleToBits(Scalar::kF16, above), F32ToF16(1.0f + 0x1p-10f));
  EXPECT_EQ(DoubleToBits(Scalar::kF16, 1.0 + 0x1p-11), F32ToF16(1.0f));
  EXPECT_EQ(DoubleToBits(Scalar::kBF16, -(1.0 + 0x1p-8 + 0x1p-40)), F32ToBF16(-1.0f - 0x1p-7f));
}

TEST(UOpTest, SixteenBitFormatsRoundTrip) {
  for (int bits = 0; bits < 65536; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    float f16 = F16ToF32(half), bf16 = BF16ToF32(half);
    if (!std::isnan(f16)) {
      ASSERT_EQ(F32ToF16(f16), half);
      ASSERT_EQ(DoubleToBits(Scalar::kF16, f16), half);
      ASSERT_EQ(BitsToDouble(Scalar::kF16, half), f16);
    } else {
      ASSERT_EQ(F32ToF16(f16) & 0xfc00, half & 0xfc00);
    }
    if (!std::isnan(bf16)) {
      ASSERT_EQ(F32ToBF16(bf16), half);
    }
  }
}

TEST(UOpTest, ToposortPutsSourcesFirstAndFollowsSourcesOnly) {
  RawGraph g;
  const UOp *a = g.Int(1), *b = g.Int(2), *sum = g.Add(b, a), *root = g.Mul(sum, a);
  EXPECT_THAT(Toposort(root), ElementsAre(b, a, sum, root));
  EXPECT_THAT(Toposort(a), ElementsAre(a));
}

TEST(UOpTest, AMillionNodesBuildSortImportAndFree) {
  const UOp* value;
  {
    RawGraph g;
    value = g.Variable("n", 0, 1);
    for (int i = 0; i < 1000000; ++i) value = g.Make(i % 2 ? Op::kNeg : Op::kAbs, {value});
    EXPECT_EQ(Toposort(value).size(), 1000001u);
    Context other;
    EXPECT_EQ(other.Import(value)->hash(), value->hash());
    EXPECT_EQ(other.num_nodes(), 1000001u);
  }
}

TEST(UOpTest, ToposortVisitsSharedNodesOnce) {
  RawGraph g;
  const UOp* value = g.Variable("n", 0, 1);
  for (int i = 0; i < 200; ++i) value = g.Add(value, value);  // 2^200 paths
  EXPECT_EQ(Toposort(value).size(), 201u);
}

TEST(UOpTest, ImportGivesTheSameNodesInTheSameContext) {
  RawGraph g;
  const UOp* sink = g.Kernel({g.Store(g.Param(0, 4), g.Int(0), g.Float(1))});
  EXPECT_EQ(g.context.Import(sink), sink);
}

TEST(UOpTest, BaseBufferLooksThroughAfterAndIndex) {
  RawGraph g;
  const UOp *x = g.Param(0, 4), *store = g.Store(x, g.Int(0), g.Float(1));
  EXPECT_EQ(BaseBuffer(g.Index(g.After(g.After(x, {store}), {store}), g.Int(1))), x);
  EXPECT_EQ(BaseBuffer(g.Int(1)), nullptr);
  EXPECT_EQ(BaseBuffer(store), nullptr);
}

struct Refused {
  const char* title;
  const UOp* (*node)(RawGraph& g, absl::Status* status);
  const char* message;
};

const UOp* Try(RawGraph& g, absl::Status* status, Op op, DType dtype,
               const RawGraph::Nodes& sources, const Argument& argument = {}) {
  absl::StatusOr<const UOp*> node = g.context.Make(op, dtype, sources, argument);
  *status = node.status();
  return node.ok() ? *node : nullptr;
}

// One line for each kind of complaint that a row of the op table can lead to.
const Refused kRefused[] = {
    {"count", [](RawGraph& g, absl::Status* s) { return Try(g, s, Op::kAdd, {}, {g.Int(1)}); },
     "add: number of operands, got 1, expected 2"},
    {"null", [](RawGraph& g, absl::Status* s) { return Try(g, s, Op::kNeg, {}, {nullptr}); },
     "neg: operand, got null, expected a node"},
    {"argument", [](RawGraph& g, absl::Status* s) { return Try(g, s, Op::kRange, {}, {g.Int(1)}); },
     "range: argument kind"},
    {"types",
     [](RawGraph& g, absl::Status* s) { return Try(g, s, Op::kAdd, {}, {g.Int(1), g.Float(1)}); },
     "add: operand types differ, got index and f32, expected equal"},
    {"float wanted",
     [](RawGraph& g, absl::Status* s) { return Try(g, s, Op::kExp, {}, {g.Int(1)}); },
     "exp: operand dtype, got index, expected a float"},
    {"integer wanted",
     [](RawGraph& g, absl::Status* s) { return Try(g, s, Op::kShl, {}, {g.Float(1), g.Float(1)}); },
     "shl: operand dtype, got f32, expected an integer"},
    {"void",
     [](RawGraph& g, absl::Status* s) { return Try(g, s, Op::kParam, {}, {}, ParamArgument{}); },
     "param: dtype, got void"},
    {"packed bytes",
     [](RawGraph& g, absl::Status* s) {
       return Try(g, s, Op::kDotU8I8, {}, {g.Int(1), g.Int(1), g.Int(1)});
     },
     "dot_u8i8: operand dtypes, got index and index and index, expected i32 twice and i32"},
    {"packed halves",
     [](RawGraph& g, absl::Status* s) {
       return Try(g, s, Op::kDotBF16, {}, {g.Int(1), g.Int(1), g.Float(1)});
     },
     "dot_bf16: operand dtypes, got index and index and f32, expected i32 twice and f32"},
    {"condition",
     [](RawGraph& g, absl::Status* s) {
       return Try(g, s, Op::kWhere, {}, {g.Int(1), g.Int(1), g.Int(1)});
     },
     "where: condition, got index, expected bool"},
    {"lane",
     [](RawGraph& g, absl::Status* s) {
       const uint16_t lanes[] = {4};
       return Try(g, s, Op::kLanes, {}, {g.Ramp(4)}, LanesArgument{lanes});
     },
     "lanes: lane, got 4 of indexx4, expected less than 4"},
    {"wide cast",
     [](RawGraph& g, absl::Status* s) {
       return Try(g, s, Op::kCast, DType(Scalar::kF32, 8), {g.Ramp(4)});
     },
     "cast: lanes, got indexx4 to f32x8, expected equal lanes"},
    {"bitcast",
     [](RawGraph& g, absl::Status* s) {
       return Try(g, s, Op::kBitcast, Scalar::kF64, {g.Float(1)});
     },
     "bitcast: sizes, got f32 to f64"},
    {"dimension",
     [](RawGraph& g, absl::Status* s) {
       return Try(g, s, Op::kParam, Scalar::kF32, {g.Int(-1)}, ParamArgument{});
     },
     "param: dimension, got -1, expected at least 0"},
    {"bounds",
     [](RawGraph& g, absl::Status* s) {
       return Try(g, s, Op::kDefineVar, {}, {}, VariableArgument{"n", 2, 1});
     },
     "define_var: bounds of 'n', got [2, 1], expected min <= max and a name"},
    {"position",
     [](RawGraph& g, absl::Status* s) {
       return Try(g, s, Op::kIndex, {}, {g.Param(0, 4), g.Float(1)});
     },
     "index: position, got f32, expected index"},
    {"value",
     [](RawGraph& g, absl::Status* s) {
       return Try(g, s, Op::kStore, {}, {g.Index(g.Param(0, 4), g.Int(0)), g.Int(0)},
                  AlignmentArgument{0});
     },
     "store: value dtype, got index, expected f32"},
    {"alignment",
     [](RawGraph& g, absl::Status* s) {
       return Try(g, s, Op::kStore, {}, {g.Index(g.Param(0, 4), g.Int(0)), g.Float(0)},
                  AlignmentArgument{3});
     },
     "store: alignment, got 3, expected a power of two"},
    {"table",
     [](RawGraph& g, absl::Status* s) { return Try(g, s, Op::kPick, {}, {g.Float(1), g.Int(0)}); },
     "pick: source 0, got f32, expected a vector of a power of two lanes"},
    {"numbers",
     [](RawGraph& g, absl::Status* s) { return Try(g, s, Op::kPick, {}, {g.Ramp(4), g.Int(0)}); },
     "pick: numbers, got index, expected i32"},
    {"stream",
     [](RawGraph& g, absl::Status* s) {
       return Try(g, s, Op::kLoad, DType(Scalar::kF32), {g.Index(g.Param(0, 4), g.Int(0))},
                  AlignmentArgument{0, true});
     },
     "load: stream, expected a store"},
    {"end of what",
     [](RawGraph& g, absl::Status* s) { return Try(g, s, Op::kEnd, {}, {g.Int(0), g.Int(0)}); },
     "end: source 0, got const, expected range"},
    {"reduce bits",
     [](RawGraph& g, absl::Status* s) {
       return Try(g, s, Op::kReduce, {}, {g.Float(0), g.Range(0, 4)},
                  ReduceArgument{ReduceKind::kAnd});
     },
     "reduce: reduce_and, got f32, expected an integer or bool"},
};

TEST(UOpTest, EachRowOfTheTableIsChecked) {
  for (const Refused& refused : kRefused) {
    RawGraph g;
    absl::Status status;
    size_t nodes_before = 0;
    EXPECT_EQ(refused.node(g, &status), nullptr) << refused.title;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << refused.title;
    EXPECT_THAT(std::string(status.message()), HasSubstr(refused.message)) << refused.title;
    // A refused node is not kept.
    nodes_before = g.context.num_nodes();
    (void)refused.node(g, &status);
    EXPECT_EQ(g.context.num_nodes(), nodes_before) << refused.title;
  }
}

TEST(UOpTest, OpsAreFoundByTheirText) {
  for (int i = 0; i < kNumOps; ++i) {
    EXPECT_EQ(FindOp(kOpInfos[i].text), static_cast<Op>(i)) << kOpInfos[i].text;
  }
  EXPECT_EQ(FindOp("nonesuch"), std::nullopt);
}

}  // namespace
}  // namespace svod
