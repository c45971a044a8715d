// Growth by elementwise ops.
#include <algorithm>

#include "tests/unit/graph_generator/generator.h"

namespace svod {
namespace {

constexpr double kAnything = std::numeric_limits<double>::infinity();

// The bound of whole numbers, or "anything" once the dtype cannot hold all of them.
double Bounded(DType dtype, double bound) { return bound <= ExactLimit(dtype) ? bound : kAnything; }

}  // namespace

void Generator::GrowUnary() {
  Item x = AnyItem();
  DType dtype = x.node->dtype();
  std::vector<Op> ops;
  for (int i = 0; i < kNumOps; ++i) {
    Op op = static_cast<Op>(i);
    if (InfoOf(op).op_class != OpClass::kUnary) continue;
    if (HasFlag(op, kFloating) && !dtype.is_float()) continue;
    if (HasFlag(op, kNumeric) && dtype.is_bool()) continue;
    if (HasFlag(op, kIntegral) && dtype.is_float()) continue;
    if (HasFlag(op, kTranscendental) && !options_.transcendentals) continue;
    bool smooth =
        op == Op::kNeg || op == Op::kAbs || (x.positive && (op == Op::kSqrt || op == Op::kRecip));
    if (!x.exact() && !smooth) continue;
    ops.push_back(op);
  }
  if (ops.empty()) return;
  Op op = random_.Of(ops);
  Item item;
  item.node = b_.Make(op, {x.node});
  bool keeps_bound = op == Op::kNeg || op == Op::kAbs || op == Op::kTrunc || op == Op::kFloor ||
                     op == Op::kCeil || op == Op::kRound;
  if (keeps_bound) item.bound = x.bound;
  if (!x.exact()) {
    bool is_root = op == Op::kSqrt || op == Op::kRecip;
    item.magnitude = is_root ? b_.Make(op, {x.magnitude}) : x.magnitude;
    item.error = x.error + (is_root ? 2 * UnitRoundoff(dtype) : 0);
    item.positive = x.positive && op != Op::kNeg;
  }
  Add(item);
}

Item Generator::Binary(Op op, const Item& x, const Item& y) {
  Item item;
  DType dtype = x.node->dtype();
  item.node = b_.Make(op, {x.node, y.node});
  if (item.node == nullptr || !dtype.is_float()) return item;
  bool is_extreme = op == Op::kMax || op == Op::kMin;
  if (op == Op::kAdd || op == Op::kSub) item.bound = Bounded(dtype, x.bound + y.bound);
  if (op == Op::kMul) item.bound = Bounded(dtype, x.bound * y.bound);
  if (is_extreme) item.bound = std::max(x.bound, y.bound);
  if (std::isnan(item.bound)) item.bound = kAnything;
  if (x.exact() && y.exact()) return item;
  const UOp *a = Magnitude(x), *c = Magnitude(y);
  item.error = x.error + y.error + 2 * UnitRoundoff(dtype);
  if (op == Op::kMul) {
    item.magnitude = b_.Add(b_.Mul(a, c), b_.Const(Scalar::kF64, MinNormal(dtype)));
  } else if (op == Op::kFdiv) {
    item.magnitude = b_.Make(op, {a, c});
  } else {
    item.magnitude = is_extreme ? b_.Make(Op::kMax, {a, c}) : b_.Add(a, c);
  }
  return item;
}

void Generator::GrowBinary() {
  Item x = AnyItem();
  DType dtype = x.node->dtype();
  std::vector<Op> ops;
  for (int i = 0; i < kNumOps; ++i) {
    Op op = static_cast<Op>(i);
    if (InfoOf(op).op_class != OpClass::kBinary) continue;
    if (HasFlag(op, kFloating) && !dtype.is_float()) continue;
    if (HasFlag(op, kNumeric) && dtype.is_bool()) continue;
    if (HasFlag(op, kInteger) && !dtype.is_integer()) continue;
    if (HasFlag(op, kIntegral) && dtype.is_float()) continue;
    if (HasFlag(op, kTranscendental) && !options_.transcendentals) continue;
    bool smooth = op == Op::kAdd || op == Op::kSub || op == Op::kMul || op == Op::kMax ||
                  op == Op::kMin || op == Op::kFdiv;
    if (!x.exact() && !smooth) continue;
    ops.push_back(op);
    if (op == Op::kAdd || op == Op::kMul || op == Op::kMax) ops.insert(ops.end(), 3, op);
  }
  Op op = random_.Of(ops);
  bool smooth =
      op == Op::kAdd || op == Op::kSub || op == Op::kMul || op == Op::kMax || op == Op::kMin;
  Item y = Partner(dtype, x, !smooth);
  if (op != Op::kFdiv && random_.OneIn(2)) std::swap(x, y);
  Add(Binary(op, x, y));
}

void Generator::GrowTernary() {
  Item x = AnyItem();
  DType dtype = x.node->dtype();
  if (random_.OneIn(3) && !dtype.is_bool() && x.exact()) {
    Item y = Partner(dtype, x, true);
    Item product;
    product.node = b_.Mul(x.node, y.node);  // for its shape
    if (product.node == nullptr) return;
    Item z = Partner(dtype, product, true);
    Item item;
    item.node = b_.Make(Op::kMulAcc, {x.node, y.node, z.node});
    item.bound = Bounded(dtype, x.bound * y.bound + z.bound);
    if (std::isnan(item.bound)) item.bound = kAnything;
    return Add(item);
  }
  Item y = Partner(dtype, x, false);
  Item wide;
  wide.node = b_.Make(Op::kCmpEq, {x.node, y.node});  // for its shape
  if (wide.node == nullptr) return;
  Item condition = Partner(Scalar::kBool, wide, true);
  Item item;
  item.node = b_.Where(condition.node, x.node, y.node);
  item.bound = std::max(x.bound, y.bound);
  if (!x.exact() || !y.exact()) {
    item.error = std::max(x.error, y.error);
    item.magnitude = b_.Where(condition.node, Magnitude(x), Magnitude(y));
  }
  Add(item);
}

void Generator::GrowConversion() {
  Item x = AnyItem();
  if (!x.exact()) return;
  DType from = x.node->dtype(), to = AnyDType();
  Item item;
  if (random_.OneIn(4) && !from.is_bool()) {
    constexpr Scalar kBySize[][3] = {{Scalar::kI8, Scalar::kU8, Scalar::kU8},
                                     {Scalar::kI16, Scalar::kU16, Scalar::kF16},
                                     {Scalar::kI32, Scalar::kU32, Scalar::kF32},
                                     {Scalar::kI64, Scalar::kU64, Scalar::kF64}};
    int64_t size = from.size_bytes();
    to = random_.Of(kBySize[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3]);
    if (to == Scalar::kF16 && !options_.half_floats) return;
    item.node = b_.Bitcast(x.node, to);
    if (item.node == x.node) return;
    return Add(item);
  }
  item.node = b_.Cast(x.node, to);
  if (item.node == x.node) return;
  if (to.is_float()) {
    double bound = x.bound;
    if (from.is_bool()) bound = 1;
    if (from == Scalar::kI8 || from == Scalar::kU8) bound = 256;
    item.bound = Bounded(to, bound);
  }
  Add(item);
}

}  // namespace svod
