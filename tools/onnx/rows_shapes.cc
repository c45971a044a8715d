// Rows of the operator table: shapes, movement, indexing, constants.
#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/indexing.h"
#include "ir/operators/shaping.h"
#include "tools/onnx/onnx_operators.h"

namespace svod {
namespace {

OnnxResults ImportIdentity(OnnxNode& node) { return {node.input(0)}; }

OnnxResults ImportConstant(OnnxNode& node) {
  std::optional<ConstantTensor> tensor = node.TensorAttribute("value");
  if (node.HasAttribute("sparse_value")) return node.FailUnsupported("a sparse tensor");
  if (node.HasAttribute("value_string") || node.HasAttribute("value_strings")) {
    return node.FailUnsupported("a string");
  }
  if (tensor.has_value()) return {node.Constant(*std::move(tensor))};
  TensorBuilder& builder = node.builder();
  if (node.HasAttribute("value_int")) {
    return {builder.ConstInt(Scalar::kI64, node.Int("value_int", 0))};
  }
  if (node.HasAttribute("value_float")) {
    return {builder.Const(Scalar::kF32, node.Float("value_float", 0))};
  }
  if (node.HasAttribute("value_ints")) return {node.IntsConstant(node.Ints("value_ints"))};
  if (node.HasAttribute("value_floats")) {
    return {node.FloatsConstant(node.Floats("value_floats"), Scalar::kF32)};
  }
  return node.Fail("attributes, got none, expected one value");
}

OnnxResults ImportConstantOfShape(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  std::optional<ConstantTensor> value = node.TensorAttribute("value");
  std::optional<Shape> shape = node.KnownDims(0);
  if (!shape.has_value()) return {};
  const UOp* element = builder.Const(Scalar::kF32, 0);
  if (value.has_value()) {
    if (value->bytes.size() != static_cast<size_t>(value->dtype.size_bytes())) {
      return node.Fail("attribute 'value', got several elements, expected one");
    }
    element = builder.Reshape(node.Constant(*std::move(value)), ShapeSpan{});
  }
  return {builder.Expand(element, *shape)};
}

OnnxResults ImportShape(OnnxNode& node) {
  ShapeSpan dims = node.builder().ShapeOf(node.input(0));
  auto rank = static_cast<int64_t>(dims.size());
  auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  int64_t begin = clamp(node.Int("start", 0)), end = clamp(node.Int("end", rank));
  end = std::max(begin, end);
  return {
      node.DimsTensor(dims.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)))};
}

OnnxResults ImportSize(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp* size = builder.dims().Product(builder.ShapeOf(node.input(0)));
  return {DimensionValue(builder, size, Scalar::kI64)};
}

OnnxResults ImportReshape(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp* x = node.input(0);
  bool allow_zero = node.Bool("allowzero", false);
  node.Ignore({"consumed_inputs"});
  std::optional<Shape> shape;
  if (node.version() < 5) {
    shape = builder.ConstShape(node.Ints("shape"));
  } else {
    shape = node.KnownDims(1);
  }
  if (!shape.has_value() || !node.ok()) return {};
  ShapeSpan from = builder.ShapeOf(x);
  Shape others;
  const UOp** rest = nullptr;
  for (size_t i = 0; i < shape->size(); ++i) {
    const UOp*& dimension = (*shape)[i];
    if (IsConstInt(dimension, 0) && !allow_zero) {
      if (i >= from.size()) {
        return node.Fail(absl::StrCat("shape: dimension ", i, ", got 0, expected a number, since ",
                                      "the operand has ", from.size(), " dimensions"));
      }
      dimension = from[i];
    }
    if (!IsConstInt(dimension, -1)) {
      others.push_back(dimension);
    } else if (rest == nullptr) {
      rest = &dimension;
    } else {
      return node.Fail("shape, got -1 twice, expected it once");
    }
  }
  if (rest != nullptr) {
    Dims& dims = builder.dims();
    const UOp *all = dims.Product(from), *known = dims.Product(others);
    if (IsConstInt(known, 0)) {
      *rest = builder.Index(0);
    } else {
      *rest = dims.Floordiv(all, known);
    }
  }
  return {builder.Reshape(x, *shape)};
}

// Axes come as an attribute until opset 12 and as an input since 13.
std::optional<std::vector<int64_t>> Axes(OnnxNode& node) {
  if (node.version() < 13) return node.Ints("axes");
  if (!node.has_input(1)) return std::vector<int64_t>();
  return node.KnownInts(1);
}

OnnxResults ImportSqueeze(OnnxNode& node) {
  std::optional<std::vector<int64_t>> axes = Axes(node);
  if (!axes.has_value()) return {};
  return {SqueezeAxes(node.builder(), node.input(0), *axes)};
}

OnnxResults ImportUnsqueeze(OnnxNode& node) {
  std::optional<std::vector<int64_t>> axes = Axes(node);
  if (!axes.has_value()) return {};
  return {UnsqueezeAxes(node.builder(), node.input(0), *axes)};
}

OnnxResults ImportFlatten(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  ShapeSpan shape = builder.ShapeOf(node.input(0));
  auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = node.Int("axis", 1);
  if (axis < -rank || axis > rank) {
    return node.Fail(
        absl::StrCat("attribute 'axis', got ", axis, ", expected ", -rank, " to ", rank));
  }
  if (axis < 0) axis += rank;
  auto at = static_cast<size_t>(axis);
  Dims& dims = builder.dims();
  const UOp *rows = dims.Product(shape.subspan(0, at)), *columns = dims.Product(shape.subspan(at));
  return {builder.Reshape(node.input(0), Shape{rows, columns})};
}

OnnxResults ImportTranspose(OnnxNode& node) {
  std::vector<int64_t> axes = node.Ints("perm");
  if (axes.empty()) {
    for (int64_t i = node.rank(0); i-- > 0;) axes.push_back(i);
  }
  return {node.builder().Permute(node.input(0), axes)};
}

OnnxResults ImportConcat(OnnxNode& node) {
  if (node.version() >= 4) node.Require("axis");
  return {Concatenate(node.builder(), node.inputs(), node.Int("axis", 1))};
}

OnnxResults ImportExpand(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  std::optional<Shape> shape = node.KnownDims(1);
  if (!shape.has_value()) return {};
  ShapeSpan own = builder.ShapeOf(node.input(0));
  absl::StatusOr<Shape> both = BroadcastShapes({own, *shape}, builder.dims(), "expand");
  if (!both.ok()) return {builder.Fail(both.status())};
  return {builder.Expand(node.input(0), *both)};
}

OnnxResults ImportSplit(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp* x = node.input(0);
  int64_t axis = builder.Axis(x, node.Int("axis", 0), "split");
  auto parts = static_cast<int64_t>(node.num_outputs());
  if (node.version() >= 18) parts = node.Int("num_outputs", parts);
  Shape sizes;
  if (node.version() < 13 && node.HasAttribute("split")) {
    sizes = builder.ConstShape(node.Ints("split"));
  } else if (node.has_input(1)) {
    std::optional<Shape> given = node.KnownDims(1);
    if (!given.has_value()) return {};
    sizes = *given;
  } else {
    int64_t size = builder.ConstDim(x, axis, "split");
    if (size < 0 || parts < 1) return {};
    // The last part is smaller when it does not come out even.
    int64_t step = (size + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) {
      sizes.push_back(builder.Index(std::clamp<int64_t>(size - i * step, 0, step)));
    }
  }
  if (axis < 0) return {};
  return Split(builder, x, sizes, axis);
}

// One axis of a Slice. Ends beyond the tensor mean its end, negative ones count from there.
const UOp* SliceOne(OnnxNode& node, const UOp* x, int64_t axis, const UOp* begin, const UOp* end,
                    int64_t step) {
  TensorBuilder& builder = node.builder();
  Dims& dims = builder.dims();
  const UOp* size = builder.Dim(x, axis);
  if (size == nullptr) return nullptr;
  auto place = [&](const UOp* at, const UOp* low, const UOp* high) {
    if (dims.RangeOf(at).max < 0) at = dims.Add(at, size);
    if (dims.AtMost(at, low)) return low;
    if (dims.AtMost(high, at)) return high;
    if (dims.AtMost(low, at) && dims.AtMost(at, high)) return at;
    return dims.Max(low, dims.Min(at, high));
  };
  const UOp *zero = builder.Index(0), *last = dims.Sub(size, builder.Index(1));
  const UOp* minus_one = builder.Index(-1);
  if (step > 0) {
    begin = place(begin, zero, size);
    end = place(end, zero, size);
    if (!dims.AtMost(begin, end)) {
      end = dims.AtMost(end, begin) ? begin : dims.Max(begin, end);
    }
    return SliceAxis(builder, x, axis, begin, end, step);
  }
  // From `begin` down to above `end`: elements end + 1 to begin, the last one first.
  begin = place(begin, minus_one, last);
  bool to_front = IsConst(end) && ConstInt(end) <= std::numeric_limits<int32_t>::min();
  end = to_front ? minus_one : place(end, minus_one, last);
  const UOp *low = dims.Add(end, builder.Index(1)), *high = dims.Add(begin, builder.Index(1));
  if (!dims.AtMost(low, high)) high = dims.AtMost(high, low) ? low : dims.Max(low, high);
  return SliceAxis(builder, x, axis, low, high, step);
}

OnnxResults ImportSlice(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  std::optional<Shape> begins, ends;
  std::vector<int64_t> axes, steps;
  if (node.version() < 10) {
    begins = builder.ConstShape(node.Ints("starts"));
    ends = builder.ConstShape(node.Ints("ends"));
    axes = node.Ints("axes");
  } else {
    begins = node.KnownDims(1);
    ends = node.KnownDims(2);
    if (node.has_input(3)) axes = node.KnownInts(3).value_or(axes);
    if (node.has_input(4)) steps = node.KnownInts(4).value_or(steps);
  }
  if (!begins.has_value() || !ends.has_value() || !node.ok()) return {};
  size_t count = begins->size();
  if (axes.empty()) {
    for (size_t i = 0; i < count; ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (steps.empty()) steps.assign(count, 1);
  if (ends->size() != count || axes.size() != count || steps.size() != count) {
    return node.Fail(absl::StrCat("starts, ends, axes and steps, got ", count, ", ", ends->size(),
                                  ", ", axes.size(), " and ", steps.size(),
                                  " numbers, expected as many of each"));
  }
  const UOp* x = node.input(0);
  for (size_t i = 0; i < count; ++i) {
    if (steps[i] == 0) return node.Fail("steps, got 0, expected another number");
    int64_t axis = builder.Axis(x, axes[i], "slice");
    if (axis < 0) return {};
    x = SliceOne(node, x, axis, (*begins)[i], (*ends)[i], steps[i]);
  }
  return {x};
}

OnnxResults ImportPad(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp* x = node.input(0);
  auto rank = static_cast<size_t>(node.rank(0));
  int mode = node.Choice("mode", "constant", {"constant", "reflect", "edge", "wrap"});
  std::vector<int64_t> pads, axes;
  const UOp* value = builder.Like(x, 0);
  if (node.version() < 11) {
    pads = node.Ints(node.version() == 1 ? "paddings" : "pads");
    value = builder.Like(x, node.Float("value", 0));
  } else {
    std::optional<std::vector<int64_t>> given = node.KnownInts(1);
    if (!given.has_value()) return {};
    pads = *given;
    if (node.has_input(2)) value = builder.Reshape(node.input(2), ShapeSpan{});
    if (node.has_input(3)) axes = node.KnownInts(3).value_or(axes);
  }
  if (axes.empty()) {
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (!node.ok()) return {};
  if (pads.size() != 2 * axes.size()) {
    return node.Fail(
        absl::StrCat("pads, got ", pads.size(), " numbers, expected ", 2 * axes.size()));
  }
  std::vector<int64_t> low(rank, 0), high(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = builder.Axis(x, axes[i], "pad");
    if (axis < 0) return {};
    int64_t before = pads[i], after = pads[i + axes.size()];
    // Negative amounts cut off.
    if (before < 0 || after < 0) {
      Dims& dims = builder.dims();
      const UOp* begin = builder.Index(std::max<int64_t>(-before, 0));
      const UOp* size = dims.Sub(dims.Sub(builder.Dim(x, axis), begin),
                                 builder.Index(std::max<int64_t>(-after, 0)));
      x = builder.ShrinkAxis(x, axis, begin, size);
    }
    low[static_cast<size_t>(axis)] = std::max<int64_t>(before, 0);
    high[static_cast<size_t>(axis)] = std::max<int64_t>(after, 0);
  }
  if (mode == 0) return {builder.Pad(x, value, builder.ConstShape(low), builder.ConstShape(high))};
  constexpr PadMode kModes[] = {PadMode::kConstant, PadMode::kReflect, PadMode::kEdge,
                                PadMode::kWrap};
  if (mode < 0) return {};
  return {PadWith(builder, x, low, high, kModes[mode])};
}

OnnxResults ImportTile(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  std::optional<std::vector<int64_t>> repeats;
  if (node.version() < 6) {
    std::optional<std::vector<int64_t>> tiles = node.KnownInts(1), axis = node.KnownInts(2);
    if (!tiles.has_value() || !axis.has_value() || tiles->size() != 1 || axis->size() != 1) {
      return node.Fail("tiles and axis, expected one number each");
    }
    repeats = std::vector<int64_t>(static_cast<size_t>(node.rank(0)), 1);
    int64_t at = builder.Axis(node.input(0), (*axis)[0], "tile");
    if (at < 0) return {};
    (*repeats)[static_cast<size_t>(at)] = (*tiles)[0];
  } else {
    repeats = node.KnownInts(1);
  }
  if (!repeats.has_value()) return {};
  if (static_cast<int64_t>(repeats->size()) != node.rank(0)) {
    return node.Fail(
        absl::StrCat("repeats, got ", repeats->size(), " numbers, expected ", node.rank(0)));
  }
  return {Tile(builder, node.input(0), *repeats)};
}

OnnxResults ImportGather(OnnxNode& node) {
  return {Take(node.builder(), node.input(0), node.input(1), node.Int("axis", 0))};
}

OnnxResults ImportGatherElements(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp *x = node.input(0), *positions = node.input(1);
  int64_t axis = builder.Axis(x, node.Int("axis", 0), "gather_elements");
  if (axis < 0 || node.rank(0) != node.rank(1)) {
    return node.Fail("ranks of data and indices, expected them equal");
  }
  // Elsewhere than along the axis positions may be fewer than elements.
  Shape begin(static_cast<size_t>(node.rank(0)), builder.Index(0));
  ShapeSpan wanted = builder.ShapeOf(positions);
  Shape size(wanted.begin(), wanted.end());
  size[static_cast<size_t>(axis)] = builder.Dim(x, axis);
  return {TakeAlongAxis(builder, builder.Shrink(x, begin, size), positions, axis)};
}

int ReductionOf(OnnxNode& node) {
  return node.Choice("reduction", "none", {"none", "add", "mul", "max", "min"});
}

constexpr ScatterKind kScatterKinds[] = {ScatterKind::kSet, ScatterKind::kAdd, ScatterKind::kMul,
                                         ScatterKind::kMax, ScatterKind::kMin};

OnnxResults ImportScatterElements(OnnxNode& node) {
  int64_t axis = node.Int("axis", 0);
  int reduction = ReductionOf(node);
  if (reduction < 0) return {};
  return {ScatterElements(node.builder(), node.input(0), node.input(1), node.input(2), axis,
                          kScatterKinds[reduction])};
}

OnnxResults ImportScatterNd(OnnxNode& node) {
  int reduction = ReductionOf(node);
  if (reduction < 0) return {};
  return {ScatterNd(node.builder(), node.input(0), node.input(1), node.input(2),
                    kScatterKinds[reduction])};
}

OnnxResults ImportRange(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  DType dtype = node.input(0)->dtype();
  bool is_known = node.IsKnown(0) && node.IsKnown(1) && node.IsKnown(2);
  if (is_known || dtype.is_float()) {
    std::optional<std::vector<double>> numbers[3];
    for (size_t i = 0; i < 3; ++i) {
      numbers[i] = node.KnownNumbers(i);
      if (!numbers[i].has_value()) return {};
      if (numbers[i]->size() != 1) return node.Fail("start, limit and delta, expected numbers");
    }
    double begin = (*numbers[0])[0], end = (*numbers[1])[0], step = (*numbers[2])[0];
    double count = std::max(std::ceil((end - begin) / step), 0.0);
    if (step == 0 || !(count < 1e12)) return node.Fail("range, expected a number of elements");
    Expression steps(builder, builder.Arange(builder.Index(static_cast<int64_t>(count)), dtype));
    return {steps.Of(Op::kMul, step) + begin};
  }
  // Symbolic: whole numbers.
  std::optional<Shape> begin = node.KnownDims(0), end = node.KnownDims(1), step = node.KnownDims(2);
  if (!begin.has_value() || !end.has_value() || !step.has_value()) return {};
  const UOp* delta = (*step)[0];
  if (!IsConst(delta) || ConstInt(delta) <= 0) {
    return node.FailUnsupported("a symbolic range with a step that is not positive");
  }
  Dims& dims = builder.dims();
  const UOp* span = dims.Sub((*end)[0], (*begin)[0]);
  span = dims.Add(span, builder.Index(ConstInt(delta) - 1));
  const UOp* count = dims.Floordiv(span, delta);
  if (dims.RangeOf(count).min < 0) count = dims.Max(count, builder.Index(0));
  Expression steps(builder, builder.Arange(count, dtype));
  Expression first = DimensionValue(builder, (*begin)[0], dtype);
  return {steps.Of(Op::kMul, static_cast<double>(ConstInt(delta))) + first};
}

OnnxResults ImportDepthToSpace(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp* x = node.input(0);
  node.Require("blocksize");
  int64_t block = node.Int("blocksize", 1);
  int mode = node.Choice("mode", "DCR", {"DCR", "CRD"});
  ShapeSpan from = builder.ShapeOf(x);
  if (from.size() != 4 || block < 1) return node.Fail("expected rank 4 and a blocksize above 0");
  Dims& dims = builder.dims();
  const UOp* b = builder.Index(block);
  const UOp *n = from[0], *h = from[2], *w = from[3];
  const UOp* c = dims.Floordiv(from[1], dims.Mul(b, b));
  Shape apart = mode == 0 ? Shape{n, b, b, c, h, w} : Shape{n, c, b, b, h, w};
  std::vector<int64_t> axes = {0, 3, 4, 1, 5, 2};
  if (mode == 1) axes = {0, 1, 4, 2, 5, 3};
  x = builder.Permute(builder.Reshape(x, apart), axes);
  return {builder.Reshape(x, Shape{n, c, dims.Mul(h, b), dims.Mul(w, b)})};
}

OnnxResults ImportSpaceToDepth(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp* x = node.input(0);
  node.Require("blocksize");
  int64_t block = node.Int("blocksize", 1);
  ShapeSpan from = builder.ShapeOf(x);
  if (from.size() != 4 || block < 1) return node.Fail("expected rank 4 and a blocksize above 0");
  Dims& dims = builder.dims();
  const UOp* b = builder.Index(block);
  const UOp *n = from[0], *c = from[1];
  const UOp *h = dims.Floordiv(from[2], b), *w = dims.Floordiv(from[3], b);
  x = builder.Permute(builder.Reshape(x, Shape{n, c, h, b, w, b}), {0, 3, 5, 1, 2, 4});
  return {builder.Reshape(x, Shape{n, dims.Mul(c, dims.Mul(b, b)), h, w})};
}

OnnxResults ImportOneHot(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  int64_t axis = node.Int("axis", -1);
  std::optional<std::vector<double>> depth = node.KnownNumbers(1);
  if (!depth.has_value() || depth->size() != 1) {
    return node.Fail("depth, expected one number that is known");
  }
  const UOp* ids = node.input(0);
  if (ids->dtype().is_float()) ids = builder.Cast(ids, Scalar::kI64);
  const UOp* hot =
      OneHot(builder, ids, builder.Index(static_cast<int64_t>((*depth)[0])), Scalar::kBool, axis);
  const UOp* values = node.input(2);
  auto at = [&](int64_t i) {
    return builder.Reshape(builder.ShrinkAxis(values, 0, builder.Index(i), builder.Index(1)),
                           ShapeSpan{});
  };
  return {builder.Where(hot, at(1), at(0))};
}

OnnxResults ImportEyeLike(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  DType dtype = node.TypeAttribute("dtype", node.input(0)->dtype());
  int64_t k = node.Int("k", 0);
  if (node.rank(0) != 2) return node.Fail("rank, expected 2");
  const UOp *rows = builder.Dim(node.input(0), 0), *columns = builder.Dim(node.input(0), 1);
  Expression row = PositionsAlong(builder, 2, 0, rows, Scalar::kI64);
  Expression column = PositionsAlong(builder, 2, 1, columns, Scalar::kI64);
  return {builder.Cast(Equal(row + static_cast<double>(k), column), dtype)};
}

OnnxResults ImportTrilu(OnnxNode& node) {
  bool upper = node.Bool("upper", true);
  int64_t k = 0;
  if (node.has_input(1)) {
    std::optional<std::vector<int64_t>> given = node.KnownInts(1);
    if (!given.has_value()) return {};
    if (given->size() != 1) return node.Fail("k, expected one number");
    k = (*given)[0];
  }
  return {upper ? Triu(node.builder(), node.input(0), k) : Tril(node.builder(), node.input(0), k)};
}

}  // namespace

OnnxRows OnnxShapeRows() {
  return {
      {"Concat", {1, 4, 11, 13}, 1, -1, ImportConcat},
      {"Constant", {1, 9, 11, 12, 13, 19, 21}, 0, 0, ImportConstant, "", "no sparse tensors"},
      {"ConstantOfShape", {9, 20, 21}, 1, 1, ImportConstantOfShape},
      {"DepthToSpace", {1, 11, 13}, 1, 1, ImportDepthToSpace},
      {"Expand", {8, 13}, 2, 2, ImportExpand},
      {"EyeLike", {9, 22}, 1, 1, ImportEyeLike},
      {"Flatten", {1, 9, 11, 13, 21}, 1, 1, ImportFlatten},
      {"Gather", {1, 11, 13}, 2, 2, ImportGather},
      {"GatherElements", {11, 13}, 2, 2, ImportGatherElements},
      {"Identity", {1, 13, 14, 16, 19, 21}, 1, 1, ImportIdentity, "", "no sequences"},
      {"OneHot", {9, 11}, 3, 3, ImportOneHot},
      {"Pad", {1, 2, 11, 13, 18, 19, 21}, 1, 4, ImportPad},
      {"Range", {11}, 3, 3, ImportRange},
      {"Reshape", {1, 5, 13, 14, 19, 21}, 1, 2, ImportReshape},
      {"Scatter", {9}, 3, 3, ImportScatterElements, "", "", 11},
      {"ScatterElements", {11, 13, 16, 18}, 3, 3, ImportScatterElements},
      {"ScatterND", {11, 13, 16, 18}, 3, 3, ImportScatterNd},
      {"Shape", {1, 13, 15, 19, 21}, 1, 1, ImportShape},
      {"Size", {1, 13, 19, 21}, 1, 1, ImportSize},
      {"Slice", {1, 10, 11, 13}, 1, 5, ImportSlice},
      {"SpaceToDepth", {1, 13}, 1, 1, ImportSpaceToDepth},
      {"Split", {1, 2, 11, 13, 18}, 1, 2, ImportSplit},
      {"Squeeze", {1, 11, 13, 21}, 1, 2, ImportSqueeze},
      {"Tile", {1, 6, 13}, 2, 3, ImportTile},
      {"Transpose", {1, 13, 21}, 1, 1, ImportTranspose},
      {"Trilu", {14}, 1, 2, ImportTrilu},
      {"Unsqueeze", {1, 11, 13, 21}, 1, 2, ImportUnsqueeze},
  };
}

}  // namespace svod
