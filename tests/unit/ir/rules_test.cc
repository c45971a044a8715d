// Every rewrite rule: one line each that shows what it does, and agreement with the interpreter on
// random operands of every type that its pattern takes.
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/passes/fold_constants.h"
#include "ir/passes/fold_identities.h"
#include "ir/passes/simplify.h"
#include "ir/passes/simplify_ranges.h"
#include "tests/unit/ir/expressions.h"
#include "tests/unit/ir/raw_graph.h"

namespace svod {
namespace {

// --- One line a rule
// ------------------------------------------------------------------------------

RawGraph* graph = nullptr;

// A node with operators, so that a line reads as what it means.
struct E {
  const UOp* node;
};
E Make(Op op, const std::vector<E>& operands, DType dtype = DType()) {
  std::vector<const UOp*> sources;
  for (E operand : operands) sources.push_back(operand.node);
  return {graph->Make(op, dtype, sources)};
}
E C(DType dtype, int64_t value) { return {graph->context.Int(dtype, value)}; }
E C(E like, int64_t value) { return C(like.node->dtype(), value); }
E F(double value) { return {graph->context.Float(Scalar::kF32, value)}; }
E B(bool value) { return {graph->context.Bool(value)}; }
E Operand(int64_t slot, DType dtype) {
  return {graph->Load(graph->Param(slot, 64, Access::kIn, dtype.element()), graph->Int(0),
                      dtype.lanes)};
}
E X(DType dtype = Scalar::kI32) { return Operand(0, dtype); }
E Y(DType dtype = Scalar::kI32) { return Operand(1, dtype); }
E Z(DType dtype = Scalar::kI32) { return Operand(2, dtype); }
E P() { return X(Scalar::kBool); }
E Q() { return Y(Scalar::kBool); }
E A(int64_t min, int64_t max) { return {graph->Variable("a", min, max)}; }
E I(int64_t end) { return {graph->Range(0, end)}; }
E Cast(E x, DType dtype) { return Make(Op::kCast, {x}, dtype); }
E Bitcast(E x, DType dtype) { return Make(Op::kBitcast, {x}, dtype); }
E Splat(E x, int lanes) { return {graph->Splat(x.node, lanes)}; }
E Stack(const std::vector<E>& elements) { return Make(Op::kStack, elements); }
E Take(E x, const std::vector<uint16_t>& lanes) {
  return {graph->Make(Op::kLanes, {x.node}, LanesArgument{lanes})};
}
E operator+(E x, E y) { return Make(Op::kAdd, {x, y}); }
E operator-(E x, E y) { return Make(Op::kSub, {x, y}); }
E operator*(E x, E y) { return Make(Op::kMul, {x, y}); }
E operator-(E x) { return Make(Op::kNeg, {x}); }
E operator~(E x) { return Make(Op::kNot, {x}); }
E operator&(E x, E y) { return Make(Op::kAnd, {x, y}); }
E operator|(E x, E y) { return Make(Op::kOr, {x, y}); }
E operator^(E x, E y) { return Make(Op::kXor, {x, y}); }
E operator<<(E x, E y) { return Make(Op::kShl, {x, y}); }
E operator>>(E x, E y) { return Make(Op::kShr, {x, y}); }
E operator<(E x, E y) { return Make(Op::kCmpLt, {x, y}); }
E operator<=(E x, E y) { return Make(Op::kCmpLe, {x, y}); }
E operator==(E x, E y) { return Make(Op::kCmpEq, {x, y}); }
E operator!=(E x, E y) { return Make(Op::kCmpNe, {x, y}); }
E operator+(E x, int64_t c) { return x + C(x, c); }
E operator-(E x, int64_t c) { return x - C(x, c); }
E operator*(E x, int64_t c) { return x * C(x, c); }
E operator<(E x, int64_t c) { return x < C(x, c); }
E operator<(int64_t c, E x) { return C(x, c) < x; }
E operator<=(E x, int64_t c) { return x <= C(x, c); }
E operator<=(int64_t c, E x) { return C(x, c) <= x; }
E operator==(E x, int64_t c) { return x == C(x, c); }
E operator!=(E x, int64_t c) { return x != C(x, c); }
E FloorDiv(E x, int64_t c) { return Make(Op::kFloordiv, {x, C(x, c)}); }
E FloorMod(E x, int64_t c) { return Make(Op::kFloormod, {x, C(x, c)}); }
E Cdiv(E x, int64_t c) { return Make(Op::kCdiv, {x, C(x, c)}); }
E Cmod(E x, int64_t c) { return Make(Op::kCmod, {x, C(x, c)}); }
E Max(E x, E y) { return Make(Op::kMax, {x, y}); }
E Min(E x, E y) { return Make(Op::kMin, {x, y}); }
E Abs(E x) { return Make(Op::kAbs, {x}); }
E Where(E c, E x, E y) { return Make(Op::kWhere, {c, x, y}); }

struct Line {
  const char* rule;
  E before;
  E after;
};

std::vector<Line> FoldingLines() {
  const DType f = Scalar::kF32, i4 = DType(Scalar::kI32, 4);
  return {
      {"fold-constant", C(Scalar::kI8, 127) + 1, C(Scalar::kI8, -128)},
      {"fold-constant", Stack({F(1), F(2)}) * Splat(F(3), 2), Stack({F(3), F(6)})},
      {"splat-constant", Splat(F(2), 4), {graph->context.Float(DType(Scalar::kF32, 4), 2)}},
      {"splat-one-lane", Splat(X(), 1), X()},
      {"stack-of-equal", Stack({X(f), X(f), X(f)}), Splat(X(f), 3)},
      {"lanes-of-constant", Take(Stack({F(1), F(2), F(3)}), {2, 0}), Stack({F(3), F(1)})},
      {"lanes-of-splat", Take(Splat(X(f), 4), {1, 2}), Splat(X(f), 2)},
      {"lanes-of-stack", Take(Stack({X(), Y(), Z()}), {2}), Z()},
      {"lanes-of-lanes", Take(Take(X(i4), {3, 2, 1}), {1, 0}), Take(X(i4), {2, 3})},
      {"lanes-all", Take(X(i4), {0, 1, 2, 3}), X(i4)},
  };
}

std::vector<Line> IntegerLines() {
  const DType u = Scalar::kU32;
  return {
      {"add-constant-right", C(X(), 3) + X(), X() + 3},
      {"mul-constant-right", C(X(), 3) * X(), X() * 3},
      {"add-int-zero", X() + 0, X()},
      {"sub-int-zero", X() - 0, X()},
      {"sub-int-self", X() - X(), C(X(), 0)},
      {"sub-from-zero", C(X(), 0) - X(), -X()},
      {"sub-int-constant", X() - 5, X() + -5},
      {"mul-int-one", X() * 1, X()},
      {"mul-int-zero", X() * 0, C(X(), 0)},
      {"mul-int-minus-one", X() * -1, -X()},
      {"add-neg", X() + -Y(), X() - Y()},
      {"sub-neg", X() - -Y(), X() + Y()},
      {"neg-sub", -(X() - Y()), Y() - X()},
      {"add-constants", X() + 3 + 4, X() + 7},
      {"mul-constants", X() * 3 * 4, X() * 12},
      {"add-constant-outwards", (X() + 3) + Y(), (X() + Y()) + 3},
      {"mul-of-sum", (X() + 3) * 4, X() * 4 + 12},
      {"add-multiples", X() * 3 + X() * 4, X() * 7},
      {"shl-zero", X() << C(X(), 0), X()},
      {"shr-zero", X() >> C(X(), 0), X()},
      {"shl-of-zero", C(X(), 0) << X(), C(X(), 0)},
      {"shr-of-zero", C(X(), 0) >> X(), C(X(), 0)},
      {"shl-too-far", X() << C(X(), 32), C(X(), 0)},
      {"shr-too-far", X(u) >> C(X(u), 40), C(X(u), 0)},
      {"cdiv-one", Cdiv(X(), 1), X()},
      {"floordiv-one", FloorDiv(X(), 1), X()},
      {"cmod-one", Cmod(X(), 1), C(X(), 0)},
      {"floormod-one", FloorMod(X(), 1), C(X(), 0)},
      {"cdiv-zero", Cdiv(X(), 0), C(X(), 0)},
      {"floordiv-zero", FloorDiv(X(), 0), C(X(), 0)},
      {"cmod-zero", Cmod(X(), 0), X()},
      {"floormod-zero", FloorMod(X(), 0), X()},
  };
}

std::vector<Line> BitLines() {
  const DType f = Scalar::kF32;
  return {
      {"and-constant-right", C(X(), 6) & X(), X() & C(X(), 6)},
      {"and-self", P() & P(), P()},
      {"and-zero", X() & C(X(), 0), C(X(), 0)},
      {"and-ones", P() & B(true), P()},
      {"and-constants", (X() & C(X(), 6)) & C(X(), 3), X() & C(X(), 2)},
      {"or-self", X() | X(), X()},
      {"or-zero", P() | B(false), P()},
      {"or-ones", P() | B(true), B(true)},
      {"or-constants", (X() | C(X(), 6)) | C(X(), 3), X() | C(X(), 7)},
      {"xor-self", X() ^ X(), C(X(), 0)},
      {"xor-zero", X() ^ C(X(), 0), X()},
      {"xor-ones", X() ^ C(X(), -1), ~X()},
      {"xor-constants", (X() ^ C(X(), 6)) ^ C(X(), 3), X() ^ C(X(), 5)},
      {"not-not", ~~X(), X()},
      {"add-bool", P() + Q(), P() | Q()},
      {"mul-bool", P() * Q(), P() & Q()},
      {"max-bool", Max(P(), Q()), P() | Q()},
      {"min-bool", Min(P(), Q()), P() & Q()},
      {"cmpne-bool", P() != Q(), P() ^ Q()},
      {"cmpeq-bool", P() == Q(), ~(P() ^ Q())},
      {"not-cmpeq", ~(X(f) == Y(f)), X(f) != Y(f)},
      {"not-cmpne", ~(X(f) != Y(f)), X(f) == Y(f)},
      {"not-cmplt", ~(X() < Y()), Y() <= X()},
      {"not-cmple", ~(X() <= Y()), Y() < X()},
      {"cmplt-self", X(f) < X(f), B(false)},
      {"cmple-self", X() <= X(), B(true)},
      {"cmpeq-self", X() == X(), B(true)},
      {"cmpne-self", X() != X(), B(false)},
  };
}

std::vector<Line> OtherLines() {
  const DType f = Scalar::kF32, i8 = Scalar::kI8, i16 = Scalar::kI16, u = Scalar::kU32;
  return {
      {"neg-neg", - -X(f), X(f)},
      {"abs-abs", Abs(Abs(X(f))), Abs(X(f))},
      {"abs-neg", Abs(-X(f)), Abs(X(f))},
      {"abs-unsigned", Abs(X(u)), X(u)},
      {"max-self", Max(X(f), X(f)), X(f)},
      {"min-self", Min(X(f), X(f)), X(f)},
      // reported: x * 1 and x - 0.0 keep -0.0, -0.0 + 0.0 is 0.0
      {"mul-float-one", X(f) * F(1), X(f)},
      {"fdiv-float-one", Make(Op::kFdiv, {X(f), F(1)}), X(f)},
      {"sub-float-zero", X(f) - F(0), X(f)},
      {"add-float-minus-zero", X(f) + F(-0.0), X(f)},
      {"where-true", Where(B(true), X(f), Y(f)), X(f)},
      {"where-false", Where(B(false), X(f), Y(f)), Y(f)},
      {"where-equal", Where(P(), X(f), X(f)), X(f)},
      {"where-one-zero", Where(P(), B(true), B(false)), P()},
      {"where-zero-one", Where(P(), B(false), B(true)), ~P()},
      {"where-not", Where(~P(), X(f), Y(f)), Where(P(), Y(f), X(f))},
      {"where-where-true", Where(P(), Where(P(), X(), Y()), Z()), Where(P(), X(), Z())},
      {"where-where-false", Where(P(), X(), Where(P(), Y(), Z())), Where(P(), X(), Z())},
      {"cast-same", Cast(X(f), f), X(f)},
      {"cast-of-cast", Cast(Cast(X(i8), i16), f), Cast(X(i8), f)},
      {"bitcast-same", Bitcast(X(f), f), X(f)},
      {"bitcast-of-bitcast", Bitcast(Bitcast(X(f), u), f), X(f)},
  };
}

std::vector<Line> RangeLines() {
  const E a = A(0, 15), i = I(10), s = A(-8, 8);
  return {
      {"known-value", FloorDiv(a, 16), C(a, 0)},
      {"known-value", a < 16, B(true)},
      {"known-operand", Y(Scalar::kIndex) + I(1), Y(Scalar::kIndex)},
      {"index-open-gate",
       {graph->Index(graph->Param(7, 10), i.node, (i < 10).node)},
       {graph->Index(graph->Param(7, 10), i.node)}},
      {"cdiv-natural", Cdiv(a, 4), FloorDiv(a, 4)},
      {"cmod-natural", Cmod(a, 4), FloorMod(a, 4)},
      {"cmod-inside", Cmod(s, -9), s},
      {"cdiv-of-cdiv", Cdiv(Cdiv(X(), 3), 4), Cdiv(X(), 12)},
      {"floordiv-of-floordiv", FloorDiv(FloorDiv(X(), 3), 4), FloorDiv(X(), 12)},
      {"floormod-inside", FloorMod(a, 16), a},
      {"floormod-of-floormod", FloorMod(FloorMod(X(), 12), 4), FloorMod(X(), 4)},
      {"cdiv-of-product", Cdiv(s * 3, 3), s},
      {"floordiv-of-product", FloorDiv(s * -3, -3), s},
      {"floordiv-common-factor", FloorDiv(s * 3, 12), FloorDiv(s, 4)},
      {"floormod-common-factor", FloorMod(s * 3, 12), FloorMod(s, 4) * 3},
      {"floordiv-of-sum", FloorDiv(s * 16 + a, 16), s},
      {"floordiv-of-sum", FloorDiv(s * 12 + i + 6, 4), s * 3 + FloorDiv(i + 2, 4) + 1},
      {"floormod-of-sum", FloorMod(s * 16 + a, 16), a},
      {"recombine-floor", FloorDiv(X(), 3) * 3 + FloorMod(X(), 3), X()},
      {"recombine-trunc", Cmod(X(), 3) + Cdiv(X(), 3) * 3, X()},
      {"cmplt-sum-left", a + 3 < 9, a < 6},
      {"cmplt-sum-right", 9 < a + 3, 6 < a},
      {"cmple-constant-right", a <= 3, a < 4},
      {"cmple-constant-left", 3 <= a, 2 < a},
      {"cmpeq-sum", X() + 3 == 2, X() == -1},
      {"cmpne-sum", X() + 3 != 2, X() != -1},
      {"cmplt-product-left", s * 4 < 9, s < 3},
      {"cmplt-product-right", -9 < s * 4, -3 < s},
      {"cmplt-quotient", FloorDiv(s, 4) < 1, s < 4},
      {"max-by-range", Max(a, C(a, -1)), a},
      {"min-by-range", Min(C(a, 20), a), a},
      {"and-mask-inside", a & C(a, 31), a},
      {"cast-round-trip", Cast(Cast(a, Scalar::kI8), Scalar::kIndex), a},
  };
}

class RulesTest : public ::testing::Test {
 protected:
  RulesTest() { graph = &g_; }
  ~RulesTest() override { graph = nullptr; }

  static std::vector<Line> AllLines() {
    std::vector<Line> all;
    for (const std::vector<Line>& lines :
         {FoldingLines(), IntegerLines(), BitLines(), OtherLines(), RangeLines()}) {
      all.insert(all.end(), lines.begin(), lines.end());
    }
    return all;
  }

  RawGraph g_;
};

std::string Show(const UOp* node) {
  std::string text;
  absl::flat_hash_map<const UOp*, int> numbers;
  for (const UOp* step : Toposort(node)) {
    int number = static_cast<int>(numbers.size());
    numbers[step] = number;
    absl::StrAppend(&text, "\n  %", number, " = ", InfoOf(step->op()).text);
    for (const UOp* source : step->sources()) absl::StrAppend(&text, " %", numbers[source]);
    if (IsConst(step)) absl::StrAppend(&text, " ", ConstInt(step));
    absl::StrAppend(&text, " : ", ToString(step->dtype()));
  }
  return text;
}

TEST_F(RulesTest, EachLineDoesWhatItSays) {
  for (const Line& line : AllLines()) {
    SCOPED_TRACE(line.rule);
    PassContext pass(g_.context);
    absl::StatusOr<const UOp*> result = RewriteBottomUp(line.before.node, SimplifyRules(), pass);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(*result, line.after.node) << Show(*result) << "\nexpected" << Show(line.after.node);
    EXPECT_GT(pass.rule_hits[line.rule], 0) << "the rule was not used";
  }
}

TEST_F(RulesTest, EveryRuleHasALineAndAUniqueName) {
  std::set<std::string> shown, names;
  for (const Line& line : AllLines()) shown.insert(line.rule);
  for (const RewriteRule& rule : SimplifyRules().rules()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name << " twice";
    EXPECT_EQ(shown.count(rule.name), 1u) << rule.name << " has no line";
  }
  EXPECT_EQ(shown.size(), names.size());
}

// --- Agreement with the interpreter
// ---------------------------------------------------------------

// Random expressions that a pattern matches, of any types that it admits.
class PatternInstances {
 public:
  PatternInstances(RawGraph& graph, uint64_t seed) : g_(graph), random_(seed) {}

  RandomValues& random() { return random_; }

  // Null when this try met types that do not go together.
  const UOp* Generate(const Pattern& pattern) {
    names_.clear();
    DType dtype(random_.OneIn(4) ? Scalar::kBool : random_.AnyScalar(), random_.OneIn(4) ? 4 : 1);
    return Of(pattern, dtype);
  }

  // An expression of any elementwise op on small things.
  const UOp* Anything(DType dtype, int depth) {
    if (depth == 0 || random_.OneIn(6)) return LeafOf(dtype);
    for (int tries = 0; tries < 50; ++tries) {
      Op op = static_cast<Op>(random_.Between(0, kNumOps - 1));
      if (HasFlag(op, kTranscendental)) continue;
      Pattern pattern{Leaf::kNone, op, nullptr, {}};
      for (int i = 0; i < InfoOf(op).min_sources; ++i) pattern.sources.push_back(Any(nullptr));
      if (!IsElementwise(op)) continue;
      if (const UOp* node = Of(pattern, dtype, depth - 1)) return node;
    }
    return LeafOf(dtype);
  }

 private:
  const UOp* Of(const Pattern& pattern, DType dtype, int depth = 0) {
    if (pattern.name != nullptr && names_.contains(pattern.name)) {
      const UOp* known = names_[pattern.name];
      return known->dtype() == dtype ? known : nullptr;
    }
    const UOp* node = pattern.leaf == Leaf::kNone ? OpOf(pattern, dtype, depth)
                                                  : LeafFor(pattern.leaf, dtype, depth);
    if (node != nullptr && pattern.name != nullptr) names_[pattern.name] = node;
    return node;
  }

  const UOp* OpOf(const Pattern& pattern, DType dtype, int depth) {
    std::vector<DType> operands(pattern.sources.size(), dtype);
    Argument argument;
    std::vector<uint16_t> lanes;
    if (InfoOf(pattern.op).dtype_rule == DTypeRule::kBoolOfOperands) {
      if (!dtype.is_bool()) return nullptr;
      operands.assign(operands.size(), DType(random_.AnyScalar(), dtype.lanes));
    } else if (pattern.op == Op::kWhere) {
      operands[0] = DType(Scalar::kBool, dtype.lanes);
    } else if (pattern.op == Op::kCast || pattern.op == Op::kBitcast) {
      operands[0] = DType(random_.OneIn(4) ? dtype.scalar : random_.AnyScalar(), dtype.lanes);
    } else if (pattern.op == Op::kSplat) {
      operands[0] = dtype.element();
    } else if (pattern.op == Op::kLanes) {
      operands[0] = dtype.with_lanes(4);
      bool in_order = random_.OneIn(2);
      for (int i = 0; i < dtype.lanes; ++i) {
        lanes.push_back(static_cast<uint16_t>(in_order ? i : random_.Between(0, 3)));
      }
      argument = LanesArgument{lanes};
    }
    std::vector<const UOp*> sources;
    for (size_t i = 0; i < operands.size(); ++i) {
      sources.push_back(Of(pattern.sources[i], operands[i], depth));
      if (sources.back() == nullptr) return nullptr;
    }
    absl::StatusOr<const UOp*> made = g_.context.Make(pattern.op, dtype, sources, argument);
    return made.ok() && (*made)->dtype() == dtype ? *made : nullptr;
  }

  const UOp* LeafFor(Leaf leaf, DType dtype, int depth) {
    const UOp* node = nullptr;
    switch (leaf) {
      case Leaf::kNone:
        return nullptr;
      case Leaf::kAny:
      case Leaf::kInt:
      case Leaf::kBool:
      case Leaf::kIntOrBool:
      case Leaf::kFloat:
        node = depth > 0 ? Anything(dtype, depth) : LeafOf(dtype);
        break;
      case Leaf::kConst:
      case Leaf::kIntConst:
        node = ConstantOf(dtype);
        break;
      case Leaf::kZero:
      case Leaf::kFloatZero:
        node = g_.context.Int(dtype, 0);
        break;
      case Leaf::kOne:
      case Leaf::kFloatOne:
        node = g_.context.Int(dtype, 1);
        break;
      case Leaf::kAllOnes:
        node = g_.context.Int(dtype, -1);
        break;
      case Leaf::kFloatMinusZero:
        node = g_.context.Float(dtype, -0.0);
        break;
    }
    return Accepts(leaf, node) ? node : nullptr;
  }

  const UOp* ConstantOf(DType dtype) {
    // Numbers that divide each other are what most rules ask for.
    if (dtype.is_integer() && !random_.OneIn(3)) {
      return g_.context.Int(dtype, random_.Pick<int64_t>({1, 2, 3, 4, 6, 8, 12, 16, 24, 64, -1, -2,
                                                          -4, 0, 31, 15, 127, 5}));
    }
    return g_.context.Bits(dtype, random_.Bits(dtype));
  }

  // Something opaque, mostly; integers often with a range.
  const UOp* LeafOf(DType dtype) {
    int64_t slot = random_.Between(0, 3);
    if (random_.OneIn(6)) return ConstantOf(dtype);
    if (dtype == DType(Scalar::kIndex) && random_.OneIn(2)) {
      if (random_.OneIn(2)) return g_.Range(slot, random_.Pick<int64_t>({1, 2, 5, 16, 100}));
      int64_t min = random_.Pick<int64_t>({-100, -8, -1, 0, 0, 3});
      const char* names[] = {"a", "b", "c", "d"};
      return g_.Variable(names[slot], min, min + random_.Pick<int64_t>({0, 1, 7, 15, 1000}));
    }
    if (dtype.is_integer() && random_.OneIn(2)) {
      // A load of a narrow type, or a remainder, has a range that the rules can use.
      Scalar narrow = random_.Pick<Scalar>({Scalar::kI8, Scalar::kU8, Scalar::kBool});
      if (random_.OneIn(2)) {
        return g_.Make(Op::kCast, dtype, {Load(slot, dtype.lanes, narrow)});
      }
      const UOp* bound = g_.context.Int(dtype, random_.Pick<int64_t>({1, 2, 4, 7, 16, 100}));
      return g_.Make(random_.OneIn(2) ? Op::kFloormod : Op::kCmod,
                     {Load(slot, dtype.lanes, dtype.scalar), bound});
    }
    return Load(slot, dtype.lanes, dtype.scalar);
  }
  const UOp* Load(int64_t slot, int lanes, Scalar scalar) {
    return g_.Load(g_.Param(slot, 64, Access::kIn, scalar), g_.Int(0), lanes);
  }

  RawGraph& g_;
  RandomValues random_;
  std::map<std::string, const UOp*> names_;
};

void ExpectSameValues(const UOp* before, const UOp* after, RandomValues& random,
                      absl::string_view what, int trials = 12) {
  for (int i = 0; i < trials; ++i) {
    Leaves leaves = RandomLeaves(before, random);
    for (const auto& [node, value] : RandomLeaves(after, random)) leaves.try_emplace(node, value);
    Lanes expected = EvaluateExpression(before, leaves), got = EvaluateExpression(after, leaves);
    ASSERT_TRUE(SameLanes(before->dtype(), expected, got))
        << what << ": got " << got[0] << ", expected " << expected[0] << Show(before) << "\nbecame"
        << Show(after);
  }
}

// Rules whose pattern takes anything: the instances are made by hand.
const UOp* SpecialInstance(absl::string_view rule, PatternInstances& instances, RawGraph& g) {
  RandomValues& random = instances.random();
  DType dtype(random.AnyScalar());
  if (rule == "stack-of-equal") {
    const UOp* x = instances.Anything(dtype, 1);
    return g.Make(Op::kStack, {x, x, x});
  }
  if (rule == "lanes-of-constant" || rule == "lanes-of-stack") {
    RawGraph::Nodes elements;
    for (int i = 0; i < 4; ++i) {
      elements.push_back(rule == "lanes-of-stack" ? instances.Anything(dtype, 1)
                                                  : g.context.Bits(dtype, random.Bits(dtype)));
    }
    std::vector<uint16_t> lanes;
    for (int64_t i = random.Between(1, 3); i > 0; --i) {
      lanes.push_back(static_cast<uint16_t>(random.Between(0, 3)));
    }
    return g.Make(Op::kLanes, {g.Make(Op::kStack, elements)}, LanesArgument{lanes});
  }
  return nullptr;
}

TEST_F(RulesTest, EveryRuleAgreesWithTheInterpreter) {
  constexpr int kTries = 30000, kEnough = 60;
  uint64_t seed = 1;
  for (const RewriteRule& rule : SimplifyRules().rules()) {
    // About memory; the kernels of the passes' tests show that it keeps their values.
    if (absl::string_view(rule.name) == "index-open-gate") continue;
    SCOPED_TRACE(rule.name);
    PatternInstances instances(g_, ++seed);
    PassContext pass(g_.context);
    int applied = 0;
    for (int i = 0; i < kTries && applied < kEnough; ++i) {
      const UOp* before = SpecialInstance(rule.name, instances, g_);
      if (before == nullptr) {
        before = rule.pattern.leaf == Leaf::kNone
                     ? instances.Generate(rule.pattern)
                     : instances.Anything(DType(instances.random().AnyScalar()), 1);
      }
      if (before == nullptr) continue;
      const UOp* after = RuleSet::Apply(rule, before, pass);
      if (after == nullptr) continue;
      ++applied;
      ASSERT_EQ(before->dtype(), after->dtype());
      ExpectSameValues(before, after, instances.random(), rule.name);
      if (HasFatalFailure()) return;
    }
    EXPECT_GE(applied, 20) << "too few instances of the rule were met";
  }
}

TEST_F(RulesTest, RandomExpressionsKeepTheirValues) {
  PatternInstances instances(g_, 99);
  PassContext pass(g_.context);
  int changed = 0;
  for (int i = 0; i < 3000; ++i) {
    DType dtype(instances.random().AnyScalar(), instances.random().OneIn(4) ? 4 : 1);
    const UOp* before = instances.Anything(dtype, 4);
    absl::StatusOr<const UOp*> after = RewriteBottomUp(before, SimplifyRules(), pass);
    ASSERT_TRUE(after.ok()) << after.status();
    if (*after == before) continue;
    ++changed;
    ExpectSameValues(before, *after, instances.random(), absl::StrCat("expression ", i), 6);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(changed, 1000);
}

// --- Division and remainder, exhaustively
// ---------------------------------------------------------

// reported case 14
class DivisionFuzz {
 public:
  DivisionFuzz(RawGraph& graph, DType dtype, uint64_t seed)
      : g_(graph), dtype_(dtype), random_(seed) {}

  const UOp* Expression(int depth) {
    if (depth == 0) return LeafOf();
    const Op op = random_.Pick<Op>({Op::kFloordiv, Op::kFloormod, Op::kCdiv, Op::kCmod, Op::kAdd,
                                    Op::kAdd, Op::kMul, Op::kSub, Op::kMax, Op::kMin, Op::kNeg});
    const UOp* x = Expression(depth - 1);
    if (op == Op::kNeg) return g_.Make(op, {x});
    bool divides = op != Op::kAdd && op != Op::kSub && op != Op::kMax && op != Op::kMin;
    const UOp* y = divides && !random_.OneIn(8) ? Constant() : Expression(depth - 1);
    return g_.Make(op, {x, y});
  }

  const UOp* Compare(int depth) {
    const Op op = random_.Pick<Op>({Op::kCmpLt, Op::kCmpLe, Op::kCmpEq, Op::kCmpNe});
    return random_.OneIn(2) ? g_.Make(op, {Expression(depth), Constant()})
                            : g_.Make(op, {Constant(), Expression(depth)});
  }

  const UOp* a() { return g_.Variable("a", -6, 7); }
  const UOp* b() { return g_.Variable("b", 0, 11); }

 private:
  const UOp* Constant() {
    return g_.context.Int(
        dtype_, random_.Pick<int64_t>({1, 2, 3, 4, 6, 8, 12, 5, 7, -1, -2, -3, -4, 0, 24}));
  }
  const UOp* LeafOf() {
    if (random_.OneIn(5)) return Constant();
    const UOp* variable = random_.OneIn(2) ? a() : b();
    return dtype_ == DType(Scalar::kIndex) ? variable : g_.Make(Op::kCast, dtype_, {variable});
  }

  RawGraph& g_;
  DType dtype_;
  RandomValues random_;
};

TEST_F(RulesTest, NestedDivisionsAreEqualOnEveryPoint) {
  uint64_t seed = 1000;
  int64_t changed = 0;
  for (Scalar scalar : {Scalar::kIndex, Scalar::kI32, Scalar::kI8, Scalar::kU8, Scalar::kU64}) {
    DivisionFuzz fuzz(g_, scalar, ++seed);
    PassContext pass(g_.context);
    for (int i = 0; i < 700; ++i) {
      const UOp* before = i % 4 == 0 ? fuzz.Compare(3) : fuzz.Expression(2 + i % 3);
      absl::StatusOr<const UOp*> after = RewriteBottomUp(before, SimplifyRules(), pass);
      ASSERT_TRUE(after.ok()) << after.status() << Show(before);
      if (*after == before) continue;
      ++changed;
      for (int64_t a = -6; a <= 7; ++a) {
        for (int64_t b = 0; b <= 11; ++b) {
          Leaves leaves = {{fuzz.a(), {static_cast<uint64_t>(a)}},
                           {fuzz.b(), {static_cast<uint64_t>(b)}}};
          ASSERT_EQ(EvaluateExpression(before, leaves), EvaluateExpression(*after, leaves))
              << "a = " << a << ", b = " << b << Show(before) << "\nbecame" << Show(*after);
        }
      }
    }
  }
  EXPECT_GT(changed, 2500);
}

TEST_F(RulesTest, WhatMustNotFoldDoesNot) {
  const DType f = Scalar::kF32;
  const float inf = std::numeric_limits<float>::infinity();
  for (E kept : {
           X(f) + F(0),  // -0.0 + 0.0 is 0.0
           X(f) * F(0),  // NaN, -0.0, inf
           X(f) - X(f),
           Make(Op::kFdiv, {X(f), X(f)}),           // reported case 11
           Make(Op::kFdiv, {X(f) * F(10), F(10)}),  // reported case 11
           X(f) == X(f),
           X(f) != X(f),                                  // reported case 10: isnan
           Abs(X(f)) == F(inf),                           // reported case 10: isinf
           X() + 1 < X(),                                 // reported case 4
           Make(Op::kExp, {F(1)}),                        // its decomposition gives the bits
           Cast(Cast(X(Scalar::kI32), f), Scalar::kI32),  // f32 does not hold every i32
           Cast(Cast(X(Scalar::kI8), f), Scalar::kU8),    // saturates, does not wrap
           X() >> C(X(), 40),                             // the sign, not 0
           X() * 4 < 12,                                  // may wrap
       }) {
    PassContext pass(g_.context);
    EXPECT_EQ(*RewriteBottomUp(kept.node, SimplifyRules(), pass), kept.node) << Show(kept.node);
  }
}

// Folded and computed values agree by construction; these are the ones that users met.
TEST_F(RulesTest, FoldedConstantsOfReportedCases) {
  auto folded = [&](E e) {
    PassContext pass(g_.context);
    return E{*RewriteBottomUp(e.node, SimplifyRules(), pass)};
  };
  auto expect = [&](E e, E value) {
    EXPECT_EQ(folded(e).node, value.node) << Show(folded(e).node) << Show(value.node);
  };
  const DType i32 = Scalar::kI32, u8 = Scalar::kU8, f = Scalar::kF32;
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const int64_t int_min = std::numeric_limits<int32_t>::min();
  // 2
  expect(FloorDiv(C(i32, -7), 2), C(i32, -4));
  expect(FloorMod(C(i32, 7), -2), C(i32, -1));
  expect(Cdiv(C(i32, -7), 2), C(i32, -3));
  expect(Cmod(C(i32, -7), -2), C(i32, -1));
  // 3
  expect(Cdiv(C(i32, int_min), -1), C(i32, int_min));
  expect(Cmod(C(i32, int_min), -1), C(i32, 0));
  expect(Cdiv(C(i32, 1), 0), C(i32, 0));
  // 4
  expect(C(i32, 2147483647) + 1, C(i32, int_min));
  expect(C(i32, 2147483647) + 1 < C(i32, 2147483647), B(true));
  // 5
  expect(Cast(F(300), u8), C(u8, 255));
  expect(Cast(F(-1.5), u8), C(u8, 0));
  expect(Cast(F(nan), i32), C(i32, 0));
  expect(Cast(F(3e9), i32), C(i32, 2147483647));
  expect(Cast(F(2147483646), i32), C(i32, 2147483647));
  // 6
  expect(C(u8, 255) << C(u8, 32), C(u8, 0));
  expect(C(i32, -8) >> C(i32, 33), C(i32, -1));
  // 1, 10, 11
  EXPECT_TRUE(std::isnan(ConstFloat(folded(Max(F(1), F(nan))).node)));
  EXPECT_TRUE(std::isnan(ConstFloat(folded(Make(Op::kFdiv, {F(0), F(0)})).node)));
  EXPECT_TRUE(std::isnan(ConstFloat(folded(F(nan) * F(0)).node)));
  expect(F(nan) != F(nan), B(true));
  expect(Abs(F(-inf)) == F(inf), B(true));
  expect(Make(Op::kFdiv, {F(1e38) * F(10), F(10)}), F(inf));
  // the paragraph below the table
  expect(Cast(F(nan), Scalar::kBool), B(true));
  expect(F(-0.0) * F(1), F(-0.0));
  expect(F(-0.0) - F(0), F(-0.0));
  expect(F(-0.0) + F(0), F(0));
  expect(Abs(C(Scalar::kI8, -128)), C(Scalar::kI8, -128));
  expect(-C(Scalar::kI8, -128), C(Scalar::kI8, -128));
  expect(Cast(C(Scalar::kU64, -1), f), F(18446744073709551616.0));
}

}  // namespace
}  // namespace svod
