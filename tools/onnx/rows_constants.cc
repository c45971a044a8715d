// Rows of the operator table: constants, and tensors that depend on positions alone.
#include <algorithm>
#include <cmath>

#include "ir/operators/compose.h"
#include "ir/operators/indexing.h"
#include "ir/operators/shaping.h"
#include "tools/onnx/onnx_operators.h"

namespace svod {
namespace {

OnnxResults ImportConstant(OnnxNode& node) {
  std::optional<ConstantTensor> tensor = node.TensorAttribute("value");
  if (!tensor.has_value()) tensor = node.SparseTensorAttribute("sparse_value");
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

OnnxRows OnnxConstantRows() {
  return {
      {"Constant", {1, 9, 11, 12, 13, 19, 21}, 0, 0, ImportConstant, "", "no strings"},
      {"ConstantOfShape", {9, 20, 21}, 1, 1, ImportConstantOfShape},
      {"EyeLike", {9, 22}, 1, 1, ImportEyeLike},
      {"OneHot", {9, 11}, 3, 3, ImportOneHot},
      {"Range", {11}, 3, 3, ImportRange},
      {"Trilu", {14}, 1, 2, ImportTrilu},
  };
}

}  // namespace svod
