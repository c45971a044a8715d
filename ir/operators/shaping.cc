#include "ir/operators/shaping.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"

namespace svod {
namespace {

std::string DimensionName(TensorBuilder& builder, const UOp* x, int64_t axis) {
  return absl::StrCat("dimension ", axis, " of ", ShapeToString(builder.ShapeOf(x)));
}

// Each element is the nearest one: one read at a position that is kept inside.
const UOp* PadAxisWithEdge(TensorBuilder& builder, const UOp* x, int64_t axis, int64_t low,
                           int64_t high) {
  if (low == 0 && high == 0) return x;
  Dims& dims = builder.dims();
  const UOp* size = builder.Dim(x, axis);
  const UOp* padded = dims.Add(size, builder.Index(low + high));
  const DType dtype = PositionDType(builder, padded);
  Expression last = DimensionValue(builder, dims.Sub(size, builder.Index(1)), dtype);
  Expression first = {builder, builder.ConstInt(dtype, 0)};
  Expression before = {builder, builder.ConstInt(dtype, low)};
  Expression position = PositionsAlong(builder, builder.RankOf(x), axis, padded, dtype) - before;
  Shape shape(builder.ShapeOf(x).begin(), builder.ShapeOf(x).end());
  shape[static_cast<size_t>(axis)] = padded;
  return builder.Gather(x, builder.Expand(position.Of(Op::kMin, last).Of(Op::kMax, first), shape),
                        axis);
}

// Both ends of one axis by copies of parts of the tensor.
const UOp* PadAxisWith(TensorBuilder& builder, const UOp* x, int64_t axis, int64_t low,
                       int64_t high, PadMode mode) {
  const UOp* size = builder.Dim(x, axis);
  if (size == nullptr) return nullptr;
  int64_t least = builder.dims().RangeOf(size).min;
  int64_t needed = std::max(low, high);
  if (mode == PadMode::kReflect) needed = needed == 0 ? 0 : needed + 1;
  if (mode == PadMode::kEdge) needed = 1;
  if (least < needed) {
    return FailOperator(builder, "pad_mode", absl::StrCat("amounts ", low, " and ", high),
                        DimensionName(builder, x, axis),
                        absl::StrCat("at least ", needed, " elements"));
  }
  Dims& dims = builder.dims();
  auto part = [&](const UOp* begin, int64_t count) {
    return builder.ShrinkAxis(x, axis, begin, builder.Index(count));
  };
  auto from_end = [&](int64_t back) { return dims.Sub(size, builder.Index(back)); };
  const UOp *before = nullptr, *after = nullptr;
  switch (mode) {
    case PadMode::kConstant:
      return x;
    case PadMode::kReflect:
      if (low > 0) before = builder.Flip(part(builder.Index(1), low), {axis});
      if (high > 0) after = builder.Flip(part(from_end(high + 1), high), {axis});
      break;
    case PadMode::kSymmetric:
      if (low > 0) before = builder.Flip(part(builder.Index(0), low), {axis});
      if (high > 0) after = builder.Flip(part(from_end(high), high), {axis});
      break;
    case PadMode::kEdge:
      return PadAxisWithEdge(builder, x, axis, low, high);
    case PadMode::kWrap:
      if (low > 0) before = part(from_end(low), low);
      if (high > 0) after = part(builder.Index(0), high);
      break;
  }
  std::vector<const UOp*> pieces;
  if (low > 0) pieces.push_back(before);
  pieces.push_back(x);
  if (high > 0) pieces.push_back(after);
  return Concatenate(builder, pieces, axis);
}

// No tensor reaches so far: diagonals beyond count as this one.
constexpr int64_t kFarDiagonal = int64_t{1} << 61;

const UOp* Triangle(TensorBuilder& builder, absl::string_view op, const UOp* x, int64_t diagonal,
                    bool is_lower) {
  if (!IsReady(builder, op, {x})) return nullptr;
  if (builder.RankOf(x) < 2) {
    return FailOperator(builder, op, "shape", ShapeToString(builder.ShapeOf(x)),
                        "at least 2 dimensions");
  }
  // The upper triangle is all but the lower one that ends just before its diagonal.
  diagonal = std::clamp(diagonal, -kFarDiagonal, kFarDiagonal);
  const UOp* bound = builder.Index(is_lower ? diagonal : diagonal - 1);
  const UOp* mask = TriangularMask(builder, builder.Dim(x, -2), builder.Dim(x, -1), bound);
  const UOp* zero = builder.ConstInt(x->dtype(), 0);
  return is_lower ? builder.Where(mask, x, zero) : builder.Where(mask, zero, x);
}

}  // namespace

const UOp* SliceAxis(TensorBuilder& builder, const UOp* x, int64_t axis, const UOp* begin,
                     const UOp* end, int64_t step) {
  if (!IsReady(builder, "slice", {x, begin, end})) return nullptr;
  axis = builder.Axis(x, axis, "slice");
  if (axis < 0) return nullptr;
  if (step == 0) return FailOperator(builder, "slice", "step", "0", "another number");
  const UOp* count = builder.dims().Sub(end, begin);
  const UOp* part = builder.ShrinkAxis(x, axis, begin, count);
  if (part == nullptr) return nullptr;
  if (step < 0) part = builder.Flip(part, {axis});
  if (step == 1 || step == -1) return part;
  int64_t size = builder.ConstDim(part, axis, "slice: elements between begin and end");
  if (size < 0) return nullptr;
  // Larger steps leave one element, as this one does.
  step = step < 0 ? -std::max(step, -std::max<int64_t>(size, 1))
                  : std::min(step, std::max<int64_t>(size, 1));
  int64_t num_steps = (size + step - 1) / step;
  part = builder.PadAxis(part, axis, builder.ConstInt(x->dtype(), 0), builder.Index(0),
                         builder.Index(num_steps * step - size));
  int64_t rank = builder.RankOf(x);
  Shape split = DimsBetween(builder, x, 0, axis), result = split;
  split.push_back(builder.Index(num_steps));
  split.push_back(builder.Index(step));
  result.push_back(builder.Index(num_steps));
  for (const UOp* dimension : DimsBetween(builder, x, axis + 1, rank)) {
    split.push_back(dimension);
    result.push_back(dimension);
  }
  part = builder.Reshape(part, split);
  part = builder.ShrinkAxis(part, axis + 1, builder.Index(0), builder.Index(1));
  return builder.Reshape(part, result);
}

const UOp* PadWith(TensorBuilder& builder, const UOp* x, absl::Span<const int64_t> low,
                   absl::Span<const int64_t> high, PadMode mode, double value) {
  if (!IsReady(builder, "pad_mode", {x})) return nullptr;
  int64_t rank = builder.RankOf(x);
  auto lows = PerDimension(builder, "pad_mode", "low", low, rank, 0, 0);
  auto highs = PerDimension(builder, "pad_mode", "high", high, rank, 0, 0);
  if (!lows.has_value() || !highs.has_value()) return nullptr;
  if (mode == PadMode::kConstant) {
    return builder.Pad(x, builder.Like(x, value), builder.ConstShape(*lows),
                       builder.ConstShape(*highs));
  }
  for (int64_t axis = 0; axis < rank && x != nullptr; ++axis) {
    int64_t before = (*lows)[static_cast<size_t>(axis)],
            after = (*highs)[static_cast<size_t>(axis)];
    if (before > 0 || after > 0) x = PadAxisWith(builder, x, axis, before, after, mode);
  }
  return x;
}

const UOp* Tile(TensorBuilder& builder, const UOp* x, absl::Span<const int64_t> repeats) {
  if (!IsReady(builder, "tile", {x})) return nullptr;
  size_t rank = static_cast<size_t>(builder.RankOf(x));
  size_t result_rank = std::max(rank, repeats.size());
  Shape split, wide, result;
  for (size_t i = 0; i < result_rank; ++i) {
    size_t front = result_rank - rank, missing = result_rank - repeats.size();
    const UOp* size = i < front ? builder.Index(1) : builder.ShapeOf(x)[i - front];
    int64_t count = i < missing ? 1 : repeats[i - missing];
    if (count < 0) {
      return FailOperator(builder, "tile", "repeats", absl::StrCat(count), "at least 0");
    }
    split.insert(split.end(), {builder.Index(1), size});
    wide.insert(wide.end(), {builder.Index(count), size});
    result.push_back(builder.dims().Mul(builder.Index(count), size));
  }
  return builder.Reshape(builder.Expand(builder.Reshape(x, split), wide), result);
}

const UOp* Repeat(TensorBuilder& builder, const UOp* x, int64_t count,
                  std::optional<int64_t> axis) {
  if (!IsReady(builder, "repeat", {x})) return nullptr;
  if (count < 0) return FailOperator(builder, "repeat", "count", absl::StrCat(count), "at least 0");
  if (!axis.has_value()) x = builder.Reshape(x, {-1});
  int64_t along = builder.Axis(x, axis.value_or(0), "repeat");
  if (along < 0) return nullptr;
  ShapeSpan from = builder.ShapeOf(x);
  Shape wide(from.begin(), from.end()), result = wide;
  wide.insert(wide.begin() + along + 1, builder.Index(count));
  const UOp*& repeated = result[static_cast<size_t>(along)];
  repeated = builder.dims().Mul(repeated, builder.Index(count));
  return builder.Reshape(builder.Expand(builder.Unsqueeze(x, along + 1), wide), result);
}

const UOp* Roll(TensorBuilder& builder, const UOp* x, int64_t shift, int64_t axis) {
  if (!IsReady(builder, "roll", {x})) return nullptr;
  axis = builder.Axis(x, axis, "roll");
  if (axis < 0) return nullptr;
  const UOp* size = builder.Dim(x, axis);
  if (IsConst(size)) {
    int64_t n = ConstInt(size);
    shift = n == 0 ? 0 : (shift % n + n) % n;
  }
  int64_t least = builder.dims().RangeOf(size).min;
  if (shift > least || shift < -least) {
    return FailOperator(builder, "roll", absl::StrCat("shift of ", DimensionName(builder, x, axis)),
                        absl::StrCat(shift), absl::StrCat("-", least, " to ", least));
  }
  // Where the elements that come first now stood.
  const UOp* cut =
      shift >= 0 ? builder.dims().Sub(size, builder.Index(shift)) : builder.Index(-shift);
  const UOp* first = builder.ShrinkAxis(x, axis, cut, builder.dims().Sub(size, cut));
  const UOp* second = builder.ShrinkAxis(x, axis, builder.Index(0), cut);
  return Concatenate(builder, {first, second}, axis);
}

const UOp* Flatten(TensorBuilder& builder, const UOp* x, int64_t begin, int64_t end) {
  if (!IsReady(builder, "flatten", {x})) return nullptr;
  if (builder.RankOf(x) == 0) return builder.Unsqueeze(x, 0);
  begin = builder.Axis(x, begin, "flatten");
  end = builder.Axis(x, end, "flatten");
  if (begin < 0 || end < 0) return nullptr;
  if (begin > end) {
    return FailOperator(builder, "flatten", "axes", absl::StrCat(begin, " to ", end),
                        "the first not behind the last");
  }
  Shape shape = DimsBetween(builder, x, 0, begin);
  shape.push_back(builder.dims().Product(DimsBetween(builder, x, begin, end + 1)));
  for (const UOp* d : DimsBetween(builder, x, end + 1, builder.RankOf(x))) shape.push_back(d);
  return builder.Reshape(x, shape);
}

const UOp* UnsqueezeAxes(TensorBuilder& builder, const UOp* x, absl::Span<const int64_t> axes) {
  if (!IsReady(builder, "unsqueeze", {x})) return nullptr;
  std::vector<int64_t> places;
  for (int64_t axis : axes) {
    axis = builder.Axis(x, axis, "unsqueeze", static_cast<int>(axes.size()));
    if (axis < 0) return nullptr;
    places.push_back(axis);
  }
  std::sort(places.begin(), places.end());
  if (std::adjacent_find(places.begin(), places.end()) != places.end()) {
    return FailOperator(builder, "unsqueeze", "axes", "one twice", "every axis once");
  }
  for (int64_t place : places) x = builder.Unsqueeze(x, place);
  return x;
}

const UOp* SqueezeAxes(TensorBuilder& builder, const UOp* x, absl::Span<const int64_t> axes) {
  if (!IsReady(builder, "squeeze", {x})) return nullptr;
  std::vector<int64_t> places;
  if (axes.empty()) {
    for (int64_t i = 0; i < builder.RankOf(x); ++i) {
      if (IsConstInt(builder.Dim(x, i), 1)) places.push_back(i);
    }
  } else {
    auto given = ReducedAxes(builder, x, axes, "squeeze");
    if (!given.has_value()) return nullptr;
    places = *given;
  }
  for (size_t i = places.size(); i-- > 0;) x = builder.Squeeze(x, places[i]);
  return x;
}

const UOp* TriangularMask(TensorBuilder& builder, const UOp* rows, const UOp* columns,
                          const UOp* diagonal) {
  if (!IsReady(builder, "tri", {rows, columns, diagonal})) return nullptr;
  Expression row = PositionsAlong(builder, 2, 0, rows, Scalar::kI64);
  Expression column = PositionsAlong(builder, 2, 1, columns, Scalar::kI64);
  // Further out there are no elements, and sums that would wrap.
  Dims& dims = builder.dims();
  diagonal =
      dims.Max(dims.Min(diagonal, builder.Index(kFarDiagonal)), builder.Index(-kFarDiagonal));
  return column <= row + DimensionValue(builder, diagonal, Scalar::kI64);
}

const UOp* Tril(TensorBuilder& builder, const UOp* x, int64_t diagonal) {
  return Triangle(builder, "tril", x, diagonal, true);
}

const UOp* Triu(TensorBuilder& builder, const UOp* x, int64_t diagonal) {
  return Triangle(builder, "triu", x, diagonal, false);
}

const UOp* Full(TensorBuilder& builder, ShapeSpan shape, double value, DType dtype) {
  if (!IsReady(builder, "full", shape)) return nullptr;
  return builder.Expand(builder.Const(dtype, value), shape);
}

const UOp* Eye(TensorBuilder& builder, const UOp* rows, const UOp* columns, DType dtype) {
  if (!IsReady(builder, "eye", {rows, columns})) return nullptr;
  Expression row = PositionsAlong(builder, 2, 0, rows, Scalar::kI64);
  Expression column = PositionsAlong(builder, 2, 1, columns, Scalar::kI64);
  return builder.Cast(Equal(row, column), dtype);
}

}  // namespace svod
