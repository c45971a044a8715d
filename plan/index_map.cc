#include "plan/index_map.h"

#include <algorithm>

#include "ir/status_macros.h"

namespace svod {

bool IsMovement(Op op) {
  return op == Op::kReshape || op == Op::kExpand || op == Op::kPermute || op == Op::kPad ||
         op == Op::kShrink || op == Op::kFlip;
}

const UOp* IndexMap::And(const UOp* a, const UOp* b) {
  if (a == nullptr || b == nullptr || a == b) return a == nullptr ? b : a;
  return context_.Make(Op::kAnd, {a, b}).value();
}

const UOp* IndexMap::InRange(const UOp* value, const UOp* end) {
  const UOp* gate = nullptr;
  if (!dims_.AtMost(context_.Index(0), value)) {
    gate = context_.Make(Op::kCmpLe, {context_.Index(0), value}).value();
  }
  if (!dims_.AtMost(dims_.Add(value, context_.Index(1)), end)) {
    gate = And(gate, context_.Make(Op::kCmpLt, {value, end}).value());
  }
  return gate;
}

Shape IndexMap::Broadcast(ShapeSpan index, ShapeSpan from) {
  Shape result;
  size_t skipped = index.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    result.push_back(IsConstInt(from[i], 1) ? context_.Index(0) : index[skipped + i]);
  }
  return result;
}

const UOp* IndexMap::Linear(ShapeSpan index, ShapeSpan shape) {
  const UOp* position = context_.Index(0);
  for (size_t i = 0; i < index.size(); ++i) {
    position = dims_.Add(dims_.Mul(position, shape[i]), index[i]);
  }
  return position;
}

// Runs of dimensions whose products are equal map to one another; only inside a run is there
// arithmetic to do, and none where one dimension meets one.
Position IndexMap::Reshape(ShapeSpan index, ShapeSpan to, ShapeSpan from) {
  Position result;
  result.index.resize(from.size());
  size_t i = 0, j = 0;  // next dimensions of `from` and `to`
  while (i < from.size() || j < to.size()) {
    size_t first_from = i, first_to = j;
    const UOp *product_from = context_.Index(1), *product_to = context_.Index(1);
    auto take_from = [&] { product_from = dims_.Mul(product_from, from[i++]); };
    auto take_to = [&] { product_to = dims_.Mul(product_to, to[j++]); };
    if (i < from.size()) take_from();
    if (j < to.size()) take_to();
    while (!dims_.Same(product_from, product_to)) {
      // Takes from the side that is shorter as far as that is known, or from either at the end.
      bool from_is_short = dims_.AtMost(product_from, product_to);
      if (j == to.size() || (from_is_short && i < from.size())) {
        if (i == from.size()) break;
        take_from();
      } else {
        take_to();
      }
    }
    // What is left on one side alone has dimensions of 1.
    if (i == from.size() && j < to.size()) {
      while (j < to.size()) take_to();
    }
    if (j == to.size() && i < from.size()) {
      while (i < from.size()) take_from();
    }
    const UOp* position =
        Linear(index.subspan(first_to, j - first_to), to.subspan(first_to, j - first_to));
    for (size_t k = i; k-- > first_from;) {
      bool is_first = k == first_from;
      result.index[k] = is_first ? position : dims_.Floormod(position, from[k]);
      if (!is_first) position = dims_.Floordiv(position, from[k]);
    }
  }
  for (size_t k = 0; k < from.size(); ++k) {
    if (IsConstInt(from[k], 1)) result.index[k] = context_.Index(0);
  }
  return result;
}

absl::StatusOr<Position> IndexMap::Through(const UOp* movement, ShapeSpan index) {
  SVOD_ASSIGN_OR_RETURN(ShapeSpan from, shapes_.Of(movement->source(0)));
  Op op = movement->op();
  Position result;
  if (op == Op::kReshape) {
    SVOD_ASSIGN_OR_RETURN(ShapeSpan to, shapes_.Of(movement));
    return Reshape(index, to, from);
  }
  if (op == Op::kExpand) {
    result.index = Broadcast(index, from);
  } else if (op == Op::kPermute) {
    result.index.resize(from.size());
    absl::Span<const int64_t> axes = movement->arg<AxesArgument>().axes;
    for (size_t i = 0; i < axes.size(); ++i) result.index[static_cast<size_t>(axes[i])] = index[i];
  } else if (op == Op::kPad) {
    for (size_t i = 0; i < from.size(); ++i) {
      const UOp* inner = dims_.Sub(index[i], LowOf(movement)[i]);
      result.index.push_back(inner);
      bool is_padded = !IsConstInt(LowOf(movement)[i], 0) || !IsConstInt(HighOf(movement)[i], 0);
      if (is_padded) result.gate = And(result.gate, InRange(inner, from[i]));
    }
  } else if (op == Op::kShrink) {
    for (size_t i = 0; i < from.size(); ++i) {
      result.index.push_back(dims_.Add(index[i], BeginOf(movement)[i]));
    }
  } else {
    result.index.assign(index.begin(), index.end());
    for (int64_t axis : movement->arg<AxesArgument>().axes) {
      size_t i = static_cast<size_t>(axis);
      result.index[i] = dims_.Sub(dims_.Sub(from[i], context_.Index(1)), index[i]);
    }
  }
  return result;
}

}  // namespace svod
