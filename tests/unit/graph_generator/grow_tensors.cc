// Growth by tensor ops.
#include <algorithm>
#include <numeric>

#include "tests/unit/graph_generator/generator.h"

namespace svod {
namespace {

Shape Copied(ShapeSpan shape) { return Shape(shape.begin(), shape.end()); }

}  // namespace

// --- Movement -----------------------------------------------------------------------------------

void Generator::GrowMovement() {
  Item x = AnyItem();
  Shape shape = Copied(b_.ShapeOf(x.node));
  auto rank = static_cast<int64_t>(shape.size());
  switch (random_.Pick(0, 6)) {
    case 0:
      return GrowReshape(x);
    case 1: {
      for (const UOp*& dimension : shape) {
        if (IsConstInt(dimension, 1) && random_.OneIn(2)) dimension = AnyDimension();
      }
      if (random_.OneIn(2) && rank < 5) shape.insert(shape.begin(), AnyDimension());
      if (!IsSmall(shape)) return;
      return AddMoved(x, [&](const UOp* node) { return b_.Expand(node, shape); });
    }
    case 2: {
      std::vector<int64_t> axes(shape.size());
      std::iota(axes.begin(), axes.end(), 0);
      for (size_t i = axes.size(); i > 1; --i) {
        std::swap(axes[i - 1],
                  axes[static_cast<size_t>(random_.Pick(0, static_cast<int64_t>(i) - 1))]);
      }
      return AddMoved(x, [&](const UOp* node) { return b_.Permute(node, axes); });
    }
    case 3:
      return GrowPad(x);
    case 4:
      return GrowShrink(x);
    case 5: {
      std::vector<int64_t> axes;
      for (int64_t i = 0; i < rank; ++i) {
        if (random_.OneIn(2)) axes.push_back(i);
      }
      return AddMoved(x, [&](const UOp* node) { return b_.Flip(node, axes); });
    }
    default:
      return AddMoved(x, [&](const UOp* node) { return b_.Contiguous(node); });
  }
}

void Generator::GrowReshape(const Item& x) {
  Shape shape = Copied(b_.ShapeOf(x.node));
  for (int64_t steps = random_.Pick(1, 3); steps > 0; --steps) {
    if (random_.OneIn(3) && shape.size() >= 2) {  // join two neighbours
      auto at = static_cast<size_t>(random_.Pick(0, static_cast<int64_t>(shape.size()) - 2));
      const UOp* joined = b_.dims().Mul(shape[at], shape[at + 1]);
      // Of sums of products the least value is known too poorly.
      if (b_.dims().RangeOf(joined).min < 0) continue;
      shape[at] = joined;
      shape.erase(shape.begin() + static_cast<int64_t>(at) + 1);
    } else if (random_.OneIn(3) && shape.size() < 5) {
      shape.insert(shape.begin() + random_.Pick(0, static_cast<int64_t>(shape.size())),
                   b_.Index(1));
    } else if (!shape.empty() && shape.size() < 5) {  // split one
      auto at = static_cast<size_t>(random_.Pick(0, static_cast<int64_t>(shape.size()) - 1));
      if (!IsConst(shape[at])) continue;
      int64_t size = ConstInt(shape[at]), factor = random_.Pick(2, 5);
      if (size == 0 || size % factor != 0) continue;
      shape[at] = b_.Index(size / factor);
      shape.insert(shape.begin() + static_cast<int64_t>(at) + random_.Pick(0, 1), b_.Index(factor));
    }
  }
  AddMoved(x, [&](const UOp* node) { return b_.Reshape(node, shape); });
}

void Generator::GrowPad(const Item& x) {
  DType dtype = x.node->dtype();
  size_t rank = b_.ShapeOf(x.node).size();
  Shape low(rank, b_.Index(0)), high(rank, b_.Index(0));
  for (size_t i = 0; i < rank; ++i) {
    if (random_.OneIn(2)) low[i] = b_.Index(random_.Pick(0, 3));
    if (random_.OneIn(2)) high[i] = b_.Index(random_.Pick(0, 3));
    if (!variables_.empty() && random_.OneIn(5)) high[i] = random_.Of(variables_);
  }
  Item value = AnyConst(dtype);
  if (random_.OneIn(5)) value = NewParam(dtype, {});
  const UOp* zero = b_.Const(Scalar::kF64, 0);
  Item item = x;
  item.node = b_.Pad(x.node, value.node, low, high);
  item.bound = std::max(x.bound, value.bound);
  if (!x.exact()) {
    const UOp* size = value.node->op() == Op::kConst
                          ? b_.Const(Scalar::kF64, std::abs(ConstFloat(value.node)))
                          : zero;
    item.magnitude = b_.Pad(x.magnitude, size, low, high);
    item.positive = false;
  }
  Add(item);
}

void Generator::GrowShrink(const Item& x) {
  Shape sizes = Copied(b_.ShapeOf(x.node));
  Shape begins(sizes.size(), b_.Index(0));
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t least = b_.dims().RangeOf(sizes[i]).min;
    if (least < 0 || random_.OneIn(3)) continue;
    int64_t begin = random_.Pick(0, least);
    begins[i] = b_.Index(begin);
    if (random_.OneIn(2)) {
      sizes[i] = b_.dims().Sub(sizes[i], b_.Index(begin));
    } else {
      sizes[i] = b_.Index(random_.Pick(0, 4) == 0 ? least - begin : random_.Pick(0, least - begin));
    }
  }
  AddMoved(x, [&](const UOp* node) { return b_.Shrink(node, begins, sizes); });
}

// --- Reductions ---------------------------------------------------------------------------------

Item Generator::Reduced(ReduceKind kind, const Item& x, absl::Span<const int64_t> axes, bool keep) {
  DType dtype = x.node->dtype();
  Item item;
  item.node = b_.ReduceAxis(kind, x.node, axes, keep);
  if (item.node == nullptr || !dtype.is_float()) return item;
  ShapeSpan shape = b_.ShapeOf(x.node);
  double count = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    bool is_reduced =
        axes.empty() || std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (is_reduced) count *= static_cast<double>(b_.dims().RangeOf(shape[i]).max);
  }
  bool is_extreme = kind == ReduceKind::kMax || kind == ReduceKind::kMin;
  if (kind == ReduceKind::kAdd) item.bound = x.bound * count;
  if (kind == ReduceKind::kMul) item.bound = std::pow(x.bound, count);
  item.bound =
      item.bound <= ExactLimit(dtype) ? item.bound : std::numeric_limits<double>::infinity();
  // Extremes of nothing are infinities, which are exact but no whole numbers.
  if (is_extreme) item.bound = std::numeric_limits<double>::infinity();
  bool stays_exact = is_extreme || std::isfinite(item.bound) || count <= 1;
  if (x.exact() && stays_exact) return item;
  item.positive = x.positive && kind == ReduceKind::kAdd;
  DType accumulator = UnitRoundoff(dtype) > 0x1p-24 ? DType(Scalar::kF32) : dtype;
  double folded = kind == ReduceKind::kMul ? count * x.error : x.error;
  item.error =
      folded + (is_extreme ? 0 : (count + 1) * UnitRoundoff(accumulator) + 2 * UnitRoundoff(dtype));
  ReduceKind size_kind = is_extreme ? ReduceKind::kMax : kind;
  item.magnitude = b_.ReduceAxis(size_kind, Magnitude(x), axes, keep);
  if (is_extreme) {
    // Of nothing: -inf, which no bound is meant for; elsewhere at least 0.
    item.magnitude = b_.Make(Op::kMax, {item.magnitude, b_.Const(Scalar::kF64, 0)});
  }
  return item;
}

void Generator::GrowReduce() {
  Item x = AnyItem();
  DType dtype = x.node->dtype();
  std::vector<ReduceKind> kinds = {ReduceKind::kAdd, ReduceKind::kAdd, ReduceKind::kMax,
                                   ReduceKind::kMin, ReduceKind::kMul};
  if (!dtype.is_float()) kinds.insert(kinds.end(), {ReduceKind::kAnd, ReduceKind::kOr});
  ReduceKind kind = random_.Of(kinds);
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < b_.RankOf(x.node); ++i) {
    if (random_.OneIn(2)) axes.push_back(i);
  }
  Item item = Reduced(kind, x, axes, random_.OneIn(2));
  if (item.exact() || options_.rounded_reductions) Add(item);
}

void Generator::GrowMatmul() {
  Item x = AnyItem();
  DType dtype = x.node->dtype();
  Shape shape = Copied(b_.ShapeOf(x.node));
  if (shape.empty()) return;
  // [.., k] by [k, j]: [.., 1, k] * [j, k], summed over k.
  const UOp *k = shape.back(), *j = AnyDimension();
  Shape right = {j, k}, wide = shape;
  wide.insert(wide.end() - 1, j);
  if (!IsSmall(wide)) return;
  Item y = NewParam(dtype, right);
  Item left = x;
  left.node = b_.Unsqueeze(x.node, -2);
  if (!x.exact()) left.magnitude = b_.Unsqueeze(x.magnitude, -2);
  if (random_.OneIn(3)) {
    // As it mostly comes: the other operand transposed, and batched.
    y.node = b_.Transpose(b_.Contiguous(b_.Transpose(y.node, 0, 1)), 0, 1);
  }
  if (!b_.ok()) return;
  Item product = Binary(Op::kMul, left, y);
  if (product.node == nullptr) return;
  Item item = Reduced(ReduceKind::kAdd, product, {-1 + static_cast<int64_t>(wide.size())}, false);
  if (item.exact() || options_.rounded_reductions) Add(item);
}

void Generator::GrowSoftmax() {
  Item x = AnyItem();
  DType dtype = x.node->dtype();
  if (!dtype.is_float() || !x.exact() || b_.RankOf(x.node) == 0 || !options_.transcendentals ||
      !options_.rounded_reductions) {
    return;
  }
  const UOp* max = b_.ReduceAxis(ReduceKind::kMax, x.node, {-1}, true);
  Item e;
  e.node = b_.Make(Op::kExp, {b_.Sub(x.node, max)});
  e.positive = true;
  if (e.node == nullptr) return;
  Item sum = Reduced(ReduceKind::kAdd, e, {b_.RankOf(x.node) - 1}, true);
  Add(e);
  if (sum.exact()) return Add(Binary(Op::kFdiv, e, sum));
  Add(sum);
  Add(Binary(Op::kFdiv, e, sum));
}

// --- Positions ----------------------------------------------------------------------------------

void Generator::GrowArange() {
  DType dtype = AnyDType();
  if (dtype.is_bool()) dtype = Scalar::kI32;
  Item item;
  const UOp* size = AnyDimension();
  item.node = b_.Arange(size, dtype);
  double bound = MaxElements({size});
  item.bound = bound <= ExactLimit(dtype) ? bound : std::numeric_limits<double>::infinity();
  Add(item);
}

// Integers of that shape around the positions of a dimension, some of them outside.
Item Generator::AnyPositions(ShapeSpan shape, const UOp* along) {
  for (int attempt = 0; attempt < 4; ++attempt) {
    const Item& item = AnyItem();
    if (!item.node->dtype().is_integer()) continue;
    ShapeSpan have = b_.ShapeOf(item.node);
    bool fits = have.size() == shape.size();
    for (size_t i = 0; fits && i < shape.size(); ++i) fits = b_.dims().Same(have[i], shape[i]);
    if (fits) return item;
  }
  constexpr Scalar kIntegers[] = {Scalar::kI32, Scalar::kI64, Scalar::kU8, Scalar::kI8,
                                  Scalar::kU64};
  ParamSpec spec{random_.Of(kIntegers), ParamSpec::Fill::kWhole};
  spec.low = spec.dtype.is_unsigned() || random_.OneIn(2) ? 0 : -2;
  spec.high = std::max<int64_t>(b_.dims().RangeOf(along).max + random_.Pick(-1, 1), 0);
  return NewParam(spec.dtype, shape, Access::kIn, spec);
}

void Generator::GrowGather() {
  Item x = AnyItem();
  Shape shape = Copied(b_.ShapeOf(x.node));
  if (shape.empty()) return;
  int64_t axis = random_.Pick(0, static_cast<int64_t>(shape.size()) - 1);
  const UOp* along = shape[static_cast<size_t>(axis)];
  shape[static_cast<size_t>(axis)] = AnyDimension();
  for (const UOp*& dimension : shape) {
    if (random_.OneIn(6) && b_.dims().RangeOf(dimension).min >= 1) dimension = b_.Index(1);
  }
  if (!IsSmall(shape)) return;
  Item positions = AnyPositions(shape, along);
  AddMoved(x, [&](const UOp* node) { return b_.Gather(node, positions.node, axis); });
}

void Generator::GrowScatter() {
  Item x = AnyItem();
  if (!x.exact()) return;
  DType dtype = x.node->dtype();
  Shape shape = Copied(b_.ShapeOf(x.node));
  if (shape.empty()) return;
  int64_t axis = random_.Pick(0, static_cast<int64_t>(shape.size()) - 1);
  const UOp* along = shape[static_cast<size_t>(axis)];
  shape[static_cast<size_t>(axis)] = AnyDimension();
  if (!IsSmall(shape)) return;
  Item positions = AnyPositions(shape, along);
  Item updates = NewParam(dtype, shape);
  auto kind = dtype.is_bool() ? ScatterKind::kSet : static_cast<ScatterKind>(random_.Pick(0, 4));
  Item item;
  item.node = b_.Scatter(kind, x.node, positions.node, updates.node, axis);
  if (kind == ScatterKind::kAdd) {
    double bound = x.bound + updates.bound * MaxElements(shape);
    if (bound <= ExactLimit(dtype)) item.bound = bound;
  } else if (kind != ScatterKind::kMul) {
    item.bound = std::max(x.bound, updates.bound);
  }
  Add(item);
}

// --- Buffers ------------------------------------------------------------------------------------

void Generator::GrowAssign() {
  if (targets_.empty() || random_.OneIn(6)) {
    DType dtype = AnyDType();
    Item item = NewParam(dtype, AnyShape(), Access::kInOut);
    targets_.push_back({item.node, item});
  }
  Target& target =
      targets_[static_cast<size_t>(random_.Pick(0, static_cast<int64_t>(targets_.size()) - 1))];
  DType dtype = target.param->dtype();
  const UOp* state = target.state.node;
  double bound = target.state.bound;
  Shape shape = Copied(b_.ShapeOf(state));
  // The parts: the whole, or one or two that are apart along an axis, seen through movement.
  std::vector<const UOp*> parts = {state};
  if (!shape.empty() && !random_.OneIn(3)) {
    int64_t axis = random_.Pick(0, static_cast<int64_t>(shape.size()) - 1);
    const UOp* size = shape[static_cast<size_t>(axis)];
    int64_t least = b_.dims().RangeOf(size).min;
    const UOp* cut = b_.Index(random_.Pick(0, std::max<int64_t>(least, 0)));
    parts = {b_.ShrinkAxis(state, axis, b_.Index(0), cut)};
    if (least >= 2 && random_.OneIn(2)) {
      cut = b_.Index(random_.Pick(1, least - 1));
      parts = {b_.ShrinkAxis(state, axis, b_.Index(0), cut)};
      parts.push_back(b_.ShrinkAxis(state, axis, cut, b_.dims().Sub(size, cut)));
    }
  }
  std::vector<const UOp*> effects;
  for (const UOp* part : parts) {
    if (!b_.ok()) return;
    if (random_.OneIn(3) && b_.RankOf(part) > 1) part = b_.Transpose(part, 0, -1);
    if (random_.OneIn(3) && b_.RankOf(part) > 0) part = b_.Flip(part, {0});
    if (random_.OneIn(4) && b_.dims().RangeOf(b_.dims().Product(b_.ShapeOf(part))).min >= 0) {
      part = b_.Reshape(part, {-1});
    }
    if (!b_.ok()) return;
    Item seen;
    seen.node = part;
    Item value = Partner(dtype, seen, true);
    ShapeSpan shapes[] = {b_.ShapeOf(part), b_.ShapeOf(value.node)};
    absl::StatusOr<Shape> joined = BroadcastShapes(shapes, b_.dims(), "");
    bool fits = joined.ok() && joined->size() == shapes[0].size();
    for (size_t i = 0; fits && i < joined->size(); ++i)
      fits = b_.dims().Same((*joined)[i], shapes[0][i]);
    if (!fits) value = AnyConst(dtype);
    if (random_.OneIn(3) && !dtype.is_bool()) {
      value.node = b_.Add(part, value.node);
      value.bound = std::numeric_limits<double>::infinity();
    }
    effects.push_back(b_.Assign(part, value.node));
    bound = std::max(bound, value.bound);
  }
  if (!b_.ok()) return;
  target.state.node = b_.After(state, effects);
  target.state.bound = bound;
  if (target.state.node != nullptr) Add(target.state);
}

}  // namespace svod
