// Rows of the operator table: integers with scales and zero points.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/convolution.h"
#include "ir/operators/elementwise.h"
#include "ir/operators/matmul.h"
#include "ir/operators/reductions.h"
#include "ir/operators/shaping.h"
#include "tools/onnx/onnx_operators.h"
#include "tools/onnx/windows.h"

namespace svod {
namespace {

// A scale or zero point of one element as it is, one of a vector along `axis` of a tensor of
// `rank`.
const UOp* Along(OnnxNode& node, const UOp* value, int64_t rank, int64_t axis) {
  TensorBuilder& builder = node.builder();
  if (value == nullptr || !node.ok()) return nullptr;
  ShapeSpan shape = builder.ShapeOf(value);
  if (shape.empty()) return value;
  if (shape.size() == 1 && IsConstInt(shape[0], 1)) return builder.Reshape(value, ShapeSpan{});
  if (shape.size() != 1) return value;  // broadcast as it is
  Shape spread(static_cast<size_t>(rank), builder.Index(1));
  spread[static_cast<size_t>(axis)] = shape[0];
  return builder.Reshape(value, spread);
}

// Rounded, moved and saturated to the zero point's dtype: of the quotient x / scale in f32.
const UOp* Quantize(TensorBuilder& builder, Expression quotient, const UOp* zero, DType dtype) {
  Expression level = quotient.Of(Op::kRound);
  if (zero != nullptr) {
    level = level + Expression(builder, builder.Cast(zero, level.node()->dtype()));
  }
  return builder.Cast(level, dtype);
}

// x less its zero point, in the smallest type that holds it: i16 for bytes.
const UOp* Centred(TensorBuilder& builder, const UOp* x, const UOp* zero) {
  if (x == nullptr) return nullptr;
  DType dtype = x->dtype().bits() <= 8 ? Scalar::kI16 : Scalar::kI32;
  const UOp* wide = builder.Cast(x, dtype);
  return zero == nullptr ? wide : builder.Sub(wide, builder.Cast(zero, dtype));
}

// How scales and zero points lie along their tensor: one for all, one for each element of an axis,
// or, with a block, one for as many elements of it.
struct ScaleLayout {
  int64_t axis = 0, block = 0;
};

std::optional<ScaleLayout> BlockLayout(OnnxNode& node, int64_t axis, int64_t block) {
  TensorBuilder& builder = node.builder();
  axis = builder.Axis(node.input(0), axis, "blocks");
  if (axis < 0) return std::nullopt;
  ShapeSpan wanted = builder.ShapeOf(node.input(0)), got = builder.ShapeOf(node.input(1));
  bool fits = block > 0 && got.size() == wanted.size();
  for (size_t i = 0; fits && i < got.size(); ++i) {
    const UOp* size = wanted[i];
    if (static_cast<int64_t>(i) == axis) {
      const UOp* last = builder.dims().Add(size, builder.Index(block - 1));
      size = builder.dims().Floordiv(last, builder.Index(block));
    }
    fits = builder.dims().Same(got[i], size);
  }
  if (!fits) {
    node.Fail(absl::StrCat("scale, got ", ShapeToString(got), ", expected one for each ", block,
                           " elements along axis ", axis, " of ", ShapeToString(wanted)));
    return std::nullopt;
  }
  return ScaleLayout{axis, block};
}

std::optional<ScaleLayout> ReadScaleLayout(OnnxNode& node) {
  int64_t axis = node.Int("axis", 1), block = node.Int("block_size", 0);
  if (!node.ok()) return std::nullopt;
  if (block != 0) return BlockLayout(node, axis, block);
  if (node.rank(1) == 0) return ScaleLayout();
  if (node.rank(0) == 0 || node.rank(1) > 1) {
    node.Fail(absl::StrCat("scale: rank, got ", node.rank(1), ", expected at most 1"));
    return std::nullopt;
  }
  if (axis < -node.rank(0) || axis >= node.rank(0)) {
    if (IsConstInt(node.builder().Dim(node.input(1), 0), 1)) return ScaleLayout();
    node.Fail(absl::StrCat("attribute 'axis', got ", axis, ", expected one of ", node.rank(0),
                           " dimensions"));
    return std::nullopt;
  }
  return ScaleLayout{axis < 0 ? axis + node.rank(0) : axis, 0};
}

// A scale or zero point as a tensor that broadcasts to input 0.
const UOp* Spread(OnnxNode& node, const UOp* value, const ScaleLayout& layout) {
  if (layout.block == 0 || value == nullptr) return Along(node, value, node.rank(0), layout.axis);
  TensorBuilder& builder = node.builder();
  const UOp* repeated = Repeat(builder, value, layout.block, layout.axis);
  return builder.ShrinkAxis(repeated, layout.axis, builder.Index(0),
                            builder.Dim(node.input(0), layout.axis));
}

OnnxResults ImportQuantizeLinear(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  if (node.Int("saturate", 1) != 1) return node.FailUnsupported("saturate=0");
  const UOp* zero_point = node.input(2);
  DType dtype = zero_point == nullptr ? DType(Scalar::kU8) : zero_point->dtype();
  dtype = node.TypeAttribute("output_dtype", dtype);
  std::optional<ScaleLayout> layout = ReadScaleLayout(node);
  if (!layout.has_value()) return {};
  const UOp* scale = Spread(node, node.input(1), *layout);
  const UOp* zero = Spread(node, zero_point, *layout);
  Expression x(builder, builder.Cast(node.input(0), Scalar::kF32));
  Expression divisor(builder, builder.Cast(scale, Scalar::kF32));
  return {Quantize(builder, x / divisor, zero, dtype)};
}

OnnxResults ImportDequantizeLinear(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  std::optional<ScaleLayout> layout = ReadScaleLayout(node);
  if (!layout.has_value()) return {};
  const UOp* scale = Spread(node, node.input(1), *layout);
  const UOp* zero = Spread(node, node.input(2), *layout);
  const UOp* x = node.input(0);
  Expression level(builder, builder.Cast(x->dtype().bits() <= 8 ? Centred(builder, x, zero)
                                         : zero == nullptr      ? x
                                                                : builder.Sub(x, zero),
                                         Scalar::kF32));
  Expression factor(builder, builder.Cast(scale, Scalar::kF32));
  return {builder.Cast(level * factor, scale->dtype())};
}

OnnxResults ImportDynamicQuantizeLinear(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  Expression x(builder, node.input(0));
  Expression high = Max({builder, Amax(builder, x)}, 0.0);
  Expression low = Min({builder, Amin(builder, x)}, 0.0);
  Expression scale = (high - low) / 255.0;
  Expression zero = (-(low / scale)).Of(Op::kRound);
  zero = Expression(builder, builder.Cast(Max(Min(zero, 255.0), 0.0), Scalar::kU8));
  return {Quantize(builder, x / scale, zero, Scalar::kU8), scale, zero};
}

// Bytes are multiplied as they are, and zero points taken from sums, which is exact in arithmetic
// that wraps: (a - s)(b - t) summed = ab summed - s (b summed) - (a summed) t + size s t.
const UOp* ProductOfBytes(TensorBuilder& builder, const UOp* a, const UOp* a_zero, const UOp* b,
                          const UOp* b_zero) {
  auto wide = [&](const UOp* x) { return Expression(builder, builder.Cast(x, Scalar::kI32)); };
  MatmulOptions options;
  options.dtype = Scalar::kI32;
  Expression product(builder, Matmul(builder, wide(a).node(), wide(b).node(), options));
  auto sum = [&](const UOp* x, int64_t axis) {
    return Expression(builder, builder.ReduceAxis(ReduceKind::kAdd, wide(x).node(), {axis}, true));
  };
  if (a_zero != nullptr) product = product - wide(a_zero) * sum(b, -2);
  if (b_zero != nullptr) product = product - sum(a, -1) * wide(b_zero);
  if (a_zero != nullptr && b_zero != nullptr) {
    product = product + wide(builder.Dim(a, -1)) * wide(a_zero) * wide(b_zero);
  }
  return product.node();
}

const UOp* IntegerProduct(OnnxNode& node, const UOp* a, const UOp* a_zero, const UOp* b,
                          const UOp* b_zero) {
  TensorBuilder& builder = node.builder();
  if (!node.ok()) return nullptr;
  // A vector of zero points is one of rows of a and of columns of b.
  int64_t a_rank = builder.RankOf(a), b_rank = builder.RankOf(b);
  if (a_zero != nullptr && a_rank >= 2) a_zero = Along(node, a_zero, a_rank, a_rank - 2);
  if (b_zero != nullptr && b_rank >= 1) b_zero = Along(node, b_zero, b_rank, b_rank - 1);
  if (a_rank >= 2 && b_rank >= 2 && a->dtype().bits() == 8 && b->dtype().bits() == 8) {
    return ProductOfBytes(builder, a, a_zero, b, b_zero);
  }
  MatmulOptions options;
  options.dtype = Scalar::kI32;
  return Matmul(builder, Centred(builder, a, a_zero), Centred(builder, b, b_zero), options);
}

OnnxResults ImportMatMulInteger(OnnxNode& node) {
  return {IntegerProduct(node, node.input(0), node.input(2), node.input(1), node.input(3))};
}

OnnxResults ImportQLinearMatMul(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp *a = node.input(0), *b = node.input(3);
  const UOp* sum = IntegerProduct(node, a, node.input(2), b, node.input(5));
  if (sum == nullptr) return {};
  int64_t rank = builder.RankOf(sum);
  auto scale = [&](size_t i, int64_t axis) {
    return Expression(
        builder,
        builder.Cast(Along(node, node.input(i), rank, std::max<int64_t>(axis, 0)), Scalar::kF32));
  };
  Expression factor = scale(1, rank - 2) * scale(4, rank - 1) / scale(6, rank - 2);
  Expression level = Expression(builder, builder.Cast(sum, Scalar::kF32)) * factor;
  const UOp* zero = Along(node, node.input(7), rank, std::max<int64_t>(rank - 2, 0));
  return {Quantize(builder, level, zero, node.input(7)->dtype())};
}

const UOp* IntegerConvolution(OnnxNode& node, const UOp* x, const UOp* x_zero, const UOp* weight,
                              const UOp* weight_zero) {
  TensorBuilder& builder = node.builder();
  std::optional<OnnxWindows> windows = ReadWindows(node, KernelOf(node, weight, 2));
  ConvolutionOptions options;
  options.groups = node.Int("group", 1);
  if (!windows.has_value()) return nullptr;
  options.stride = windows->strides;
  options.padding = windows->pads;
  options.dilation = windows->dilations;
  options.dtype = Scalar::kI32;
  if (weight_zero != nullptr) weight_zero = Along(node, weight_zero, builder.RankOf(weight), 0);
  if (x_zero != nullptr) x_zero = builder.Reshape(x_zero, ShapeSpan{});
  // The padding is the zero point, 0 when centred.
  return Convolution(builder, Centred(builder, x, x_zero), Centred(builder, weight, weight_zero),
                     nullptr, options);
}

OnnxResults ImportConvInteger(OnnxNode& node) {
  return {IntegerConvolution(node, node.input(0), node.input(2), node.input(1), node.input(3))};
}

OnnxResults ImportQLinearConv(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const UOp* sum =
      IntegerConvolution(node, node.input(0), node.input(2), node.input(3), node.input(5));
  if (sum == nullptr) return {};
  int64_t rank = builder.RankOf(sum);
  if (node.has_input(8)) sum = builder.Add(sum, Along(node, node.input(8), rank, 1));
  auto scale = [&](size_t i) {
    return Expression(builder, builder.Cast(Along(node, node.input(i), rank, 1), Scalar::kF32));
  };
  Expression factor = scale(1) * scale(4) / scale(6);
  Expression level = Expression(builder, builder.Cast(sum, Scalar::kF32)) * factor;
  const UOp* zero = Along(node, node.input(7), rank, 1);
  return {Quantize(builder, level, zero, node.input(7)->dtype())};
}

}  // namespace

OnnxRows OnnxQuantizedRows() {
  return {
      {"ConvInteger", {10}, 2, 4, ImportConvInteger},
      {"DequantizeLinear", {10, 13, 19, 21}, 2, 3, ImportDequantizeLinear},
      {"DynamicQuantizeLinear", {11}, 1, 1, ImportDynamicQuantizeLinear},
      {"MatMulInteger", {10}, 2, 4, ImportMatMulInteger},
      {"QLinearConv", {10}, 8, 9, ImportQLinearConv},
      {"QLinearMatMul", {10, 21}, 8, 8, ImportQLinearMatMul},
      {"QuantizeLinear", {10, 13, 19, 21}, 2, 3, ImportQuantizeLinear},
  };
}

}  // namespace svod
