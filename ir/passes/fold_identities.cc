#include "ir/passes/fold_identities.h"

namespace svod {
namespace {

const UOp* X(const Match& m) { return m["x"]; }
const UOp* ZeroOfRoot(const Match& m) { return m.Int(0); }
const UOp* OneOfRoot(const Match& m) { return m.Int(1); }

// x op y for the pattern's names, with a given op.
template <Op op>
const UOp* XY(const Match& m) {
  return m.Make(op, {m["x"], m["y"]});
}
template <Op op>
const UOp* YX(const Match& m) {
  return m.Make(op, {m["y"], m["x"]});
}

// (x op c) op d -> x op (c op d)
template <Op op>
const UOp* Reassociate(const Match& m) {
  return m.Make(op, {m["x"], m.Make(op, {m["c"], m["d"]})});
}

// (x op c) op y -> (x op y) op c: constants move outwards until they meet.
template <Op op>
const UOp* MoveOutwards(const Match& m) {
  if (IsConst(m["x"]) || IsConst(m["y"])) return nullptr;
  return m.Make(op, {m.Make(op, {m["x"], m["y"]}), m["c"]});
}

// c op x -> x op c, for one spelling of equal expressions.
template <Op op>
const UOp* ConstantToTheRight(const Match& m) {
  const UOp* root = m.root();
  if (!IsConst(root->source(0)) || IsConst(root->source(1))) return nullptr;
  return m.Make(op, {root->source(1), root->source(0)});
}

// A shift by a constant of at least the width; EvaluateScalar reads the amount as unsigned.
bool ShiftsTooFar(const UOp* shift) {
  return shift->source(1)->arg<ConstArgument>().bits >=
         static_cast<uint64_t>(shift->dtype().bits());
}

int MantissaBits(DType dtype) {
  switch (dtype.bits()) {
    case 64:
      return 53;
    case 32:
      return 24;
    default:
      return dtype.scalar == Scalar::kF16 ? 11 : 8;
  }
}

// Whether every value of `from` is a value of `to`, so that a cast between them changes nothing.
bool Holds(DType to, DType from) {
  if (from.is_bool() || to.scalar == from.scalar) return true;
  if (to.is_bool()) return false;
  if (from.is_float()) {
    // f16 has mantissa bits that bf16 lacks, which has the exponents that f16 lacks.
    return to.is_float() && to.bits() > from.bits();
  }
  int value_bits = from.bits() - (from.is_signed() ? 1 : 0);
  if (to.is_float()) {
    // f16 ends at 65504: it holds u8 and i8, whose values need 8 bits, and i16 does not fit anyway.
    return from.bits() <= MantissaBits(to);
  }
  if (to.is_signed()) return to.bits() - 1 >= value_bits;
  return from.is_unsigned() && to.bits() >= from.bits();
}

// cast(cast(x : A -> B) -> C) -> cast(x -> C).
const UOp* CastOfCast(const Match& m) {
  const DType a = m["x"]->dtype(), b = m["inner"]->dtype(), c = m.root()->dtype();
  bool is_exact = Holds(b, a);
  // By way of a float an integer saturates, directly it wraps.
  if (is_exact && b.is_float() && !a.is_float() && (c.is_integer() && !Holds(c, a))) {
    is_exact = false;
  }
  // Wrapping twice is wrapping once, if the second time is to no more bits.
  bool wraps =
      (a.is_integer() || a.is_bool()) && b.is_integer() && c.is_integer() && c.bits() <= b.bits();
  if (!is_exact && !wraps) return nullptr;
  return m.Make(Op::kCast, c, {m["x"]});
}

const UOp* BitcastOfBitcast(const Match& m) {
  return m.Make(Op::kBitcast, m.root()->dtype(), {m["x"]});
}

const UOp* SameDType(const Match& m) {
  return m["x"]->dtype() == m.root()->dtype() ? m["x"] : nullptr;
}

std::vector<RewriteRule> IntegerRules() {
  return {
      {"add-constant-right", Binary(Op::kAdd, Int("x"), Int("y")), ConstantToTheRight<Op::kAdd>},
      {"mul-constant-right", Binary(Op::kMul, Int("x"), Int("y")), ConstantToTheRight<Op::kMul>},
      {"add-int-zero", Binary(Op::kAdd, Int("x"), Zero()), X},
      {"sub-int-zero", Binary(Op::kSub, Int("x"), Zero()), X},
      {"sub-int-self", Binary(Op::kSub, Int("x"), Int("x")), ZeroOfRoot},
      {"sub-from-zero", Binary(Op::kSub, Zero(), Int("x")),
       [](const Match& m) { return m.Make(Op::kNeg, {m["x"]}); }},
      {"sub-int-constant", Binary(Op::kSub, Int("x"), IntConst("c")),
       [](const Match& m) { return m.Make(Op::kAdd, {m["x"], m.Make(Op::kNeg, {m["c"]})}); }},
      {"mul-int-one", Binary(Op::kMul, Int("x"), One()), X},
      {"mul-int-zero", Binary(Op::kMul, Int("x"), Zero()), ZeroOfRoot},
      {"mul-int-minus-one", Binary(Op::kMul, Int("x"), AllOnes()),
       [](const Match& m) { return m.Make(Op::kNeg, {m["x"]}); }},
      {"add-neg", Binary(Op::kAdd, Int("x"), Unary(Op::kNeg, Int("y"))), XY<Op::kSub>},
      {"sub-neg", Binary(Op::kSub, Int("x"), Unary(Op::kNeg, Int("y"))), XY<Op::kAdd>},
      {"neg-sub", Unary(Op::kNeg, Binary(Op::kSub, Int("x"), Int("y"))), YX<Op::kSub>},
      {"add-constants", Binary(Op::kAdd, Binary(Op::kAdd, Int("x"), IntConst("c")), IntConst("d")),
       Reassociate<Op::kAdd>},
      {"mul-constants", Binary(Op::kMul, Binary(Op::kMul, Int("x"), IntConst("c")), IntConst("d")),
       Reassociate<Op::kMul>},
      {"add-constant-outwards",
       Binary(Op::kAdd, Binary(Op::kAdd, Int("x"), IntConst("c")), Int("y")),
       MoveOutwards<Op::kAdd>},
      {"mul-of-sum", Binary(Op::kMul, Binary(Op::kAdd, Int("x"), IntConst("c")), IntConst("d")),
       [](const Match& m) {
         return m.Make(Op::kAdd,
                       {m.Make(Op::kMul, {m["x"], m["d"]}), m.Make(Op::kMul, {m["c"], m["d"]})});
       }},
      {"add-multiples",
       Binary(Op::kAdd, Binary(Op::kMul, Int("x"), IntConst("c")),
              Binary(Op::kMul, Int("x"), IntConst("d"))),
       [](const Match& m) {
         return m.Make(Op::kMul, {m["x"], m.Make(Op::kAdd, {m["c"], m["d"]})});
       }},
      {"shl-zero", Binary(Op::kShl, Int("x"), Zero()), X},
      {"shr-zero", Binary(Op::kShr, Int("x"), Zero()), X},
      {"shl-of-zero", Binary(Op::kShl, Zero(), Int("y")), ZeroOfRoot},
      {"shr-of-zero", Binary(Op::kShr, Zero(), Int("y")), ZeroOfRoot},
      {"shl-too-far", Binary(Op::kShl, Int("x"), IntConst("c")),
       [](const Match& m) { return ShiftsTooFar(m.root()) ? m.Int(0) : nullptr; }},
      {"shr-too-far", Binary(Op::kShr, Int("x"), IntConst("c")),
       [](const Match& m) {
         DType dtype = m.root()->dtype();
         if (!ShiftsTooFar(m.root()) || dtype.is_signed()) return static_cast<const UOp*>(nullptr);
         return m.Int(0);
       }},
      {"cdiv-one", Binary(Op::kCdiv, Int("x"), One()), X},
      {"floordiv-one", Binary(Op::kFloordiv, Int("x"), One()), X},
      {"cmod-one", Binary(Op::kCmod, Int("x"), One()), ZeroOfRoot},
      {"floormod-one", Binary(Op::kFloormod, Int("x"), One()), ZeroOfRoot},
      {"cdiv-zero", Binary(Op::kCdiv, Int("x"), Zero()), ZeroOfRoot},
      {"floordiv-zero", Binary(Op::kFloordiv, Int("x"), Zero()), ZeroOfRoot},
      {"cmod-zero", Binary(Op::kCmod, Int("x"), Zero()), X},
      {"floormod-zero", Binary(Op::kFloormod, Int("x"), Zero()), X},
  };
}

std::vector<RewriteRule> BitRules() {
  return {
      {"and-constant-right", Binary(Op::kAnd, IntOrBool("x"), IntOrBool("y")),
       ConstantToTheRight<Op::kAnd>},
      {"and-self", Binary(Op::kAnd, IntOrBool("x"), IntOrBool("x")), X},
      {"and-zero", Binary(Op::kAnd, IntOrBool("x"), Zero()), ZeroOfRoot},
      {"and-ones", Binary(Op::kAnd, IntOrBool("x"), AllOnes()), X},
      {"and-constants",
       Binary(Op::kAnd, Binary(Op::kAnd, IntOrBool("x"), AnyConst("c")), AnyConst("d")),
       Reassociate<Op::kAnd>},
      {"or-self", Binary(Op::kOr, IntOrBool("x"), IntOrBool("x")), X},
      {"or-zero", Binary(Op::kOr, IntOrBool("x"), Zero()), X},
      {"or-ones", Binary(Op::kOr, IntOrBool("x"), AllOnes()),
       [](const Match& m) { return m.Int(-1); }},
      {"or-constants",
       Binary(Op::kOr, Binary(Op::kOr, IntOrBool("x"), AnyConst("c")), AnyConst("d")),
       Reassociate<Op::kOr>},
      {"xor-self", Binary(Op::kXor, IntOrBool("x"), IntOrBool("x")), ZeroOfRoot},
      {"xor-zero", Binary(Op::kXor, IntOrBool("x"), Zero()), X},
      {"xor-ones", Binary(Op::kXor, IntOrBool("x"), AllOnes()),
       [](const Match& m) { return m.Make(Op::kNot, {m["x"]}); }},
      {"xor-constants",
       Binary(Op::kXor, Binary(Op::kXor, IntOrBool("x"), AnyConst("c")), AnyConst("d")),
       Reassociate<Op::kXor>},
      {"not-not", Unary(Op::kNot, Unary(Op::kNot, IntOrBool("x"))), X},
      {"add-bool", Binary(Op::kAdd, Bool("x"), Bool("y")), XY<Op::kOr>},
      {"mul-bool", Binary(Op::kMul, Bool("x"), Bool("y")), XY<Op::kAnd>},
      {"max-bool", Binary(Op::kMax, Bool("x"), Bool("y")), XY<Op::kOr>},
      {"min-bool", Binary(Op::kMin, Bool("x"), Bool("y")), XY<Op::kAnd>},
      {"cmpne-bool", Binary(Op::kCmpNe, Bool("x"), Bool("y")), XY<Op::kXor>},
      {"cmpeq-bool", Binary(Op::kCmpEq, Bool("x"), Bool("y")),
       [](const Match& m) { return m.Make(Op::kNot, {m.Make(Op::kXor, {m["x"], m["y"]})}); }},
      {"not-cmpeq", Unary(Op::kNot, Binary(Op::kCmpEq, Any("x"), Any("y"))), XY<Op::kCmpNe>},
      {"not-cmpne", Unary(Op::kNot, Binary(Op::kCmpNe, Any("x"), Any("y"))), XY<Op::kCmpEq>},
      // Not for floats: NaN makes both x < y and y <= x false.
      {"not-cmplt", Unary(Op::kNot, Binary(Op::kCmpLt, IntOrBool("x"), IntOrBool("y"))),
       YX<Op::kCmpLe>},
      {"not-cmple", Unary(Op::kNot, Binary(Op::kCmpLe, IntOrBool("x"), IntOrBool("y"))),
       YX<Op::kCmpLt>},
      {"cmplt-self", Binary(Op::kCmpLt, Any("x"), Any("x")), ZeroOfRoot},
      {"cmple-self", Binary(Op::kCmpLe, IntOrBool("x"), IntOrBool("x")), OneOfRoot},
      {"cmpeq-self", Binary(Op::kCmpEq, IntOrBool("x"), IntOrBool("x")), OneOfRoot},
      {"cmpne-self", Binary(Op::kCmpNe, IntOrBool("x"), IntOrBool("x")), ZeroOfRoot},
  };
}

std::vector<RewriteRule> OtherRules() {
  return {
      {"neg-neg", Unary(Op::kNeg, Unary(Op::kNeg, Any("x"))), X},
      {"abs-abs", Unary(Op::kAbs, Named("x", Unary(Op::kAbs, Any("y")))), X},
      {"abs-neg", Unary(Op::kAbs, Unary(Op::kNeg, Any("x"))),
       [](const Match& m) {
         // An unsigned -x is a number of its own.
         return m["x"]->dtype().is_unsigned() ? nullptr : m.Make(Op::kAbs, {m["x"]});
       }},
      {"abs-unsigned", Unary(Op::kAbs, Int("x")),
       [](const Match& m) { return m["x"]->dtype().is_unsigned() ? m["x"] : nullptr; }},
      {"max-self", Binary(Op::kMax, Any("x"), Any("x")), X},
      {"min-self", Binary(Op::kMin, Any("x"), Any("x")), X},

      {"mul-float-one", Binary(Op::kMul, Float("x"), FloatOne()), X},
      {"fdiv-float-one", Binary(Op::kFdiv, Float("x"), FloatOne()), X},
      {"sub-float-zero", Binary(Op::kSub, Float("x"), FloatZero()), X},
      {"add-float-minus-zero", Binary(Op::kAdd, Float("x"), FloatMinusZero()), X},

      {"where-true", Ternary(Op::kWhere, One(), Any("x"), Any("y")), X},
      {"where-false", Ternary(Op::kWhere, Zero(), Any("y"), Any("x")), X},
      {"where-equal", Ternary(Op::kWhere, Bool("c"), Any("x"), Any("x")), X},
      {"where-one-zero", Ternary(Op::kWhere, Bool("x"), Named("y", One()), Zero()),
       [](const Match& m) { return m["y"]->dtype().is_bool() ? m["x"] : nullptr; }},
      {"where-zero-one", Ternary(Op::kWhere, Bool("x"), Zero(), Named("y", One())),
       [](const Match& m) {
         return m["y"]->dtype().is_bool() ? m.Make(Op::kNot, {m["x"]}) : nullptr;
       }},
      {"where-not", Ternary(Op::kWhere, Unary(Op::kNot, Bool("c")), Any("x"), Any("y")),
       [](const Match& m) { return m.Make(Op::kWhere, {m["c"], m["y"], m["x"]}); }},
      {"where-where-true",
       Ternary(Op::kWhere, Bool("c"), Ternary(Op::kWhere, Bool("c"), Any("x"), Any("y")), Any("z")),
       [](const Match& m) { return m.Make(Op::kWhere, {m["c"], m["x"], m["z"]}); }},
      {"where-where-false",
       Ternary(Op::kWhere, Bool("c"), Any("z"), Ternary(Op::kWhere, Bool("c"), Any("y"), Any("x"))),
       [](const Match& m) { return m.Make(Op::kWhere, {m["c"], m["z"], m["x"]}); }},

      {"cast-same", Unary(Op::kCast, Any("x")), SameDType},
      {"cast-of-cast", Unary(Op::kCast, Named("inner", Unary(Op::kCast, Any("x")))), CastOfCast},
      {"bitcast-same", Unary(Op::kBitcast, Any("x")), SameDType},
      {"bitcast-of-bitcast", Unary(Op::kBitcast, Unary(Op::kBitcast, Any("x"))), BitcastOfBitcast},
  };
}

}  // namespace

const RuleSet& FoldIdentitiesRules() {
  static const RuleSet& rules = *[] {
    RuleSet integers(IntegerRules()), bits(BitRules()), others(OtherRules());
    return new RuleSet({&integers, &bits, &others});
  }();
  return rules;
}

absl::StatusOr<const UOp*> RunFoldIdentities(const UOp* root, PassContext& context) {
  return RewriteBottomUp(root, FoldIdentitiesRules(), context);
}

}  // namespace svod
