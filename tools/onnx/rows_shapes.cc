// Rows of the operator table: shapes and movement.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/shaping.h"
#include "tools/onnx/onnx_operators.h"

namespace svod {
namespace {

OnnxResults ImportIdentity(OnnxNode& node) { return {node.input(0)}; }

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

}  // namespace

OnnxRows OnnxShapeRows() {
  return {
      {"Concat", {1, 4, 11, 13}, 1, -1, ImportConcat},
      {"DepthToSpace", {1, 11, 13}, 1, 1, ImportDepthToSpace},
      {"Expand", {8, 13}, 2, 2, ImportExpand},
      {"Flatten", {1, 9, 11, 13, 21}, 1, 1, ImportFlatten},
      {"Identity", {1, 13, 14, 16, 19, 21}, 1, 1, ImportIdentity, "", "no sequences"},
      {"Reshape", {1, 5, 13, 14, 19, 21}, 1, 2, ImportReshape},
      {"Shape", {1, 13, 15, 19, 21}, 1, 1, ImportShape},
      {"Size", {1, 13, 19, 21}, 1, 1, ImportSize},
      {"SpaceToDepth", {1, 13}, 1, 1, ImportSpaceToDepth},
      {"Split", {1, 2, 11, 13, 18}, 1, 2, ImportSplit},
      {"Squeeze", {1, 11, 13, 21}, 1, 2, ImportSqueeze},
      {"Tile", {1, 6, 13}, 2, 3, ImportTile},
      {"Transpose", {1, 13, 21}, 1, 1, ImportTranspose},
      {"Unsqueeze", {1, 11, 13, 21}, 1, 2, ImportUnsqueeze},
  };
}

}  // namespace svod
