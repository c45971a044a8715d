#include "ir/tensor_builder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

bool IsIdentity(absl::Span<const int64_t> axes) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

}  // namespace

TensorBuilder::TensorBuilder(std::shared_ptr<Context> context)
    : context_(std::move(context)), shapes_(*context_) {}

const UOp* TensorBuilder::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
  return nullptr;
}

const UOp* TensorBuilder::FailInvalid(absl::string_view message) {
  return Fail(absl::InvalidArgumentError(message));
}

absl::Status TensorBuilder::Take() {
  absl::Status status = std::move(status_);
  status_ = absl::OkStatus();
  return status;
}

bool TensorBuilder::Admit(absl::Span<const UOp* const> nodes) {
  if (!status_.ok()) return false;
  for (const UOp* node : nodes) {
    if (node == nullptr) {
      FailInvalid("operand, got null, expected a node");
      return false;
    }
  }
  return true;
}

const UOp* TensorBuilder::MakeNode(Op op, DType dtype, absl::Span<const UOp* const> sources,
                                   const Argument& argument) {
  if (!Admit(sources)) return nullptr;
  absl::StatusOr<const UOp*> node = context_->Make(op, dtype, sources, argument);
  if (!node.ok()) return Fail(node.status());
  if (op == Op::kSink || op == Op::kDefineVar) return *node;
  absl::StatusOr<ShapeSpan> shape = shapes_.Of(*node);
  return shape.ok() ? *node : Fail(shape.status());
}

// --- What is given ----------------------------------------------------------------------------

const UOp* TensorBuilder::Param(absl::string_view name, DType dtype, ShapeSpan shape, Access access,
                                int64_t slot) {
  if (slot < 0) slot = num_params_;
  ++num_params_;
  return MakeNode(Op::kParam, dtype, shape, ParamArgument{slot, access, name});
}

const UOp* TensorBuilder::Param(absl::string_view name, DType dtype,
                                std::initializer_list<int64_t> shape, Access access) {
  return Param(name, dtype, ConstShape(shape), access);
}

const UOp* TensorBuilder::Buffer(DType dtype, ShapeSpan shape, int64_t id) {
  if (id < 0) id = num_buffers_;
  ++num_buffers_;
  return MakeNode(Op::kBuffer, dtype, shape, BufferArgument{id});
}

const UOp* TensorBuilder::Variable(absl::string_view name, int64_t min, int64_t max) {
  return MakeNode(Op::kDefineVar, DType(), {}, VariableArgument{name, min, max});
}

const UOp* TensorBuilder::Const(DType dtype, double value) { return context_->Float(dtype, value); }
const UOp* TensorBuilder::ConstInt(DType dtype, int64_t value) {
  return context_->Int(dtype, value);
}

Shape TensorBuilder::ConstShape(std::initializer_list<int64_t> dims) {
  return ConstShape(absl::Span<const int64_t>(dims.begin(), dims.size()));
}

Shape TensorBuilder::ConstShape(absl::Span<const int64_t> dims) {
  Shape shape;
  for (int64_t dimension : dims) shape.push_back(context_->Index(dimension));
  return shape;
}

// --- What is known ----------------------------------------------------------------------------

ShapeSpan TensorBuilder::ShapeOf(const UOp* tensor) {
  if (!Admit({tensor})) return {};
  absl::StatusOr<ShapeSpan> shape = shapes_.Of(tensor);
  if (shape.ok()) return *shape;
  Fail(shape.status());
  return {};
}

const UOp* TensorBuilder::Dim(const UOp* tensor, int64_t axis) {
  ShapeSpan shape = ShapeOf(tensor);
  axis = Axis(tensor, axis, "dimension");
  return axis < 0 ? nullptr : shape[static_cast<size_t>(axis)];
}

int64_t TensorBuilder::Axis(const UOp* tensor, int64_t axis, absl::string_view op, int extra) {
  int64_t rank = RankOf(tensor) + extra;
  if (!ok()) return -1;
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  FailInvalid(absl::StrCat(op, ": axis, got ", axis, " for shape ", ShapeToString(ShapeOf(tensor)),
                           ", expected ", -rank, " to ", rank - 1));
  return -1;
}

int64_t TensorBuilder::ConstDim(const UOp* tensor, int64_t axis, absl::string_view what) {
  const UOp* dimension = Dim(tensor, axis);
  if (dimension == nullptr) return -1;
  if (IsConst(dimension)) return svod::ConstInt(dimension);
  FailInvalid(absl::StrCat(what, ", got ", ToString(dimension), " in ",
                           ShapeToString(ShapeOf(tensor)), ", expected a constant"));
  return -1;
}

// --- Elementwise ------------------------------------------------------------------------------

const UOp* TensorBuilder::Make(Op op, absl::Span<const UOp* const> sources) {
  return MakeNode(op, DType(), sources, {});
}

const UOp* TensorBuilder::Cast(const UOp* x, DType dtype) {
  if (x != nullptr && x->dtype() == dtype) return x;
  return MakeNode(Op::kCast, dtype, {x}, {});
}

const UOp* TensorBuilder::Bitcast(const UOp* x, DType dtype) {
  if (x != nullptr && x->dtype() == dtype) return x;
  return MakeNode(Op::kBitcast, dtype, {x}, {});
}

const UOp* TensorBuilder::Like(const UOp* x, double value) {
  return Admit({x}) ? Const(x->dtype(), value) : nullptr;
}

// --- Movement ---------------------------------------------------------------------------------

const UOp* TensorBuilder::Reshape(const UOp* x, ShapeSpan shape) {
  if (!Admit({x}) || !Admit(shape)) return nullptr;
  ShapeSpan from = ShapeOf(x);
  bool is_same = ok() && from.size() == shape.size();
  for (size_t i = 0; is_same && i < shape.size(); ++i) is_same = dims().Same(from[i], shape[i]);
  if (is_same) return x;
  // A reshape of a reshape is one of what lies below.
  std::vector<const UOp*> sources = {x->op() == Op::kReshape ? x->source(0) : x};
  for (const UOp* dimension : shape) sources.push_back(dims().Normalize(dimension));
  return MakeNode(Op::kReshape, DType(), sources, {});
}

const UOp* TensorBuilder::Reshape(const UOp* x, std::initializer_list<int64_t> shape) {
  if (!Admit({x})) return nullptr;
  Shape given;
  const UOp** rest = nullptr;
  Shape result = ConstShape(shape);
  for (const UOp*& dimension : result) {
    if (!IsConstInt(dimension, -1)) {
      given.push_back(dimension);
    } else if (rest == nullptr) {
      rest = &dimension;
    } else {
      return FailInvalid("reshape: shape, got -1 twice, expected it at most once");
    }
  }
  if (rest != nullptr) {
    *rest = dims().Floordiv(dims().Product(ShapeOf(x)), dims().Product(given));
  }
  return Reshape(x, result);
}

const UOp* TensorBuilder::Expand(const UOp* x, ShapeSpan shape) {
  if (!Admit({x}) || !Admit(shape)) return nullptr;
  ShapeSpan from = ShapeOf(x);
  bool is_same = ok() && from.size() == shape.size();
  for (size_t i = 0; is_same && i < shape.size(); ++i) is_same = dims().Same(from[i], shape[i]);
  if (is_same) return x;
  std::vector<const UOp*> sources = {x};
  for (const UOp* dimension : shape) sources.push_back(dims().Normalize(dimension));
  return MakeNode(Op::kExpand, DType(), sources, {});
}

bool TensorBuilder::NormalizeAxes(const UOp* x, absl::Span<const int64_t> axes,
                                  absl::string_view op, std::vector<int64_t>* out) {
  for (int64_t axis : axes) {
    axis = Axis(x, axis, op);
    if (axis < 0) return false;
    out->push_back(axis);
  }
  return true;
}

const UOp* TensorBuilder::Permute(const UOp* x, absl::Span<const int64_t> axes) {
  std::vector<int64_t> positive;
  if (!Admit({x}) || !NormalizeAxes(x, axes, "permute", &positive)) return nullptr;
  if (positive.size() == ShapeOf(x).size() && IsIdentity(positive)) return x;
  return MakeNode(Op::kPermute, DType(), {x}, AxesArgument{positive});
}

const UOp* TensorBuilder::Pad(const UOp* x, const UOp* value, ShapeSpan low, ShapeSpan high) {
  if (!Admit({x, value}) || !Admit(low) || !Admit(high)) return nullptr;
  auto is_zero = [](const UOp* amount) { return IsConstInt(amount, 0); };
  bool fits = low.size() == ShapeOf(x).size() && high.size() == low.size();
  if (fits && std::all_of(low.begin(), low.end(), is_zero) &&
      std::all_of(high.begin(), high.end(), is_zero)) {
    return x;
  }
  std::vector<const UOp*> sources = {x, value};
  for (const UOp* amount : low) sources.push_back(dims().Normalize(amount));
  for (const UOp* amount : high) sources.push_back(dims().Normalize(amount));
  return MakeNode(Op::kPad, DType(), sources, {});
}

const UOp* TensorBuilder::Shrink(const UOp* x, ShapeSpan begin, ShapeSpan size) {
  if (!Admit({x}) || !Admit(begin) || !Admit(size)) return nullptr;
  ShapeSpan from = ShapeOf(x);
  bool is_same = ok() && from.size() == begin.size() && begin.size() == size.size();
  for (size_t i = 0; is_same && i < size.size(); ++i) {
    is_same = IsConstInt(begin[i], 0) && dims().Same(from[i], size[i]);
  }
  if (is_same) return x;
  std::vector<const UOp*> sources = {x};
  for (const UOp* at : begin) sources.push_back(dims().Normalize(at));
  for (const UOp* dimension : size) sources.push_back(dims().Normalize(dimension));
  return MakeNode(Op::kShrink, DType(), sources, {});
}

const UOp* TensorBuilder::Flip(const UOp* x, absl::Span<const int64_t> axes) {
  std::vector<int64_t> positive;
  if (!Admit({x}) || !NormalizeAxes(x, axes, "flip", &positive)) return nullptr;
  if (positive.empty()) return x;
  std::sort(positive.begin(), positive.end());
  return MakeNode(Op::kFlip, DType(), {x}, AxesArgument{positive});
}

const UOp* TensorBuilder::PadAxis(const UOp* x, int64_t axis, const UOp* value, const UOp* low,
                                  const UOp* high) {
  axis = Axis(x, axis, "pad");
  if (axis < 0 || !Admit({value, low, high})) return nullptr;
  Shape lows(ShapeOf(x).size(), Index(0)), highs = lows;
  lows[static_cast<size_t>(axis)] = low;
  highs[static_cast<size_t>(axis)] = high;
  return Pad(x, value, lows, highs);
}

const UOp* TensorBuilder::ShrinkAxis(const UOp* x, int64_t axis, const UOp* begin,
                                     const UOp* size) {
  axis = Axis(x, axis, "shrink");
  if (axis < 0 || !Admit({begin, size})) return nullptr;
  ShapeSpan shape = ShapeOf(x);
  Shape begins(shape.size(), Index(0)), sizes(shape.begin(), shape.end());
  begins[static_cast<size_t>(axis)] = begin;
  sizes[static_cast<size_t>(axis)] = size;
  return Shrink(x, begins, sizes);
}

const UOp* TensorBuilder::Unsqueeze(const UOp* x, int64_t axis) {
  axis = Axis(x, axis, "unsqueeze", 1);
  if (axis < 0) return nullptr;
  ShapeSpan from = ShapeOf(x);
  Shape shape(from.begin(), from.end());
  shape.insert(shape.begin() + axis, Index(1));
  return Reshape(x, shape);
}

const UOp* TensorBuilder::Squeeze(const UOp* x, int64_t axis) {
  axis = Axis(x, axis, "squeeze");
  if (axis < 0) return nullptr;
  ShapeSpan from = ShapeOf(x);
  if (!IsConstInt(from[static_cast<size_t>(axis)], 1)) {
    return FailInvalid(absl::StrCat("squeeze: dimension ", axis, " of ", ShapeToString(from),
                                    ", got ", ToString(from[static_cast<size_t>(axis)]),
                                    ", expected 1"));
  }
  Shape shape(from.begin(), from.end());
  shape.erase(shape.begin() + axis);
  return Reshape(x, shape);
}

const UOp* TensorBuilder::Transpose(const UOp* x, int64_t a, int64_t b) {
  a = Axis(x, a, "transpose");
  b = Axis(x, b, "transpose");
  if (a < 0 || b < 0) return nullptr;
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < RankOf(x); ++i) axes.push_back(i == a ? b : i == b ? a : i);
  return Permute(x, axes);
}

// --- Reductions, positions, memory --------------------------------------------------------------

const UOp* TensorBuilder::ReduceAxis(ReduceKind kind, const UOp* x, absl::Span<const int64_t> axes,
                                     bool keep) {
  std::string name = absl::StrCat("reduce_", ToString(kind));
  std::vector<int64_t> positive;
  if (!Admit({x}) || !NormalizeAxes(x, axes, name, &positive)) return nullptr;
  if (axes.empty()) {
    for (int64_t i = 0; i < RankOf(x); ++i) positive.push_back(i);
  }
  if (!ok()) return nullptr;
  std::sort(positive.begin(), positive.end());
  const UOp* reduced = positive.empty() ? x
                                        : MakeNode(Op::kReduceAxis, DType(), {x},
                                                   ReduceAxesArgument{kind, positive});
  if (keep || reduced == nullptr) return reduced;
  Shape shape;
  ShapeSpan from = ShapeOf(x);
  for (size_t i = 0; i < from.size(); ++i) {
    if (!std::binary_search(positive.begin(), positive.end(), static_cast<int64_t>(i))) {
      shape.push_back(from[i]);
    }
  }
  return Reshape(reduced, shape);
}

const UOp* TensorBuilder::Arange(const UOp* size, DType dtype) {
  if (!Admit({size})) return nullptr;
  return MakeNode(Op::kArange, dtype, {dims().Normalize(size)}, {});
}

const UOp* TensorBuilder::Gather(const UOp* x, const UOp* positions, int64_t axis) {
  axis = Axis(x, axis, "gather");
  if (axis < 0) return nullptr;
  return MakeNode(Op::kGather, DType(), {x, positions}, AxesArgument{{&axis, 1}});
}

const UOp* TensorBuilder::Scatter(ScatterKind kind, const UOp* x, const UOp* positions,
                                  const UOp* updates, int64_t axis) {
  axis = Axis(x, axis, "scatter");
  if (axis < 0) return nullptr;
  return MakeNode(Op::kScatter, DType(), {x, positions, updates}, ScatterArgument{kind, axis});
}

const UOp* TensorBuilder::Contiguous(const UOp* x) {
  return MakeNode(Op::kContiguous, DType(), {x}, {});
}

const UOp* TensorBuilder::Assign(const UOp* target, const UOp* value) {
  return MakeNode(Op::kAssign, DType(), {target, value}, {});
}

const UOp* TensorBuilder::After(const UOp* buffer, absl::Span<const UOp* const> effects) {
  if (!Admit({buffer}) || !Admit(effects)) return nullptr;
  std::vector<const UOp*> sources = {buffer};
  sources.insert(sources.end(), effects.begin(), effects.end());
  return MakeNode(Op::kAfter, DType(), sources, {});
}

absl::StatusOr<Function> TensorBuilder::Finish(absl::string_view name,
                                               absl::Span<const UOp* const> results) {
  const UOp* root = MakeNode(Op::kSink, DType(), results, FunctionArgument{false, name, {}});
  if (root == nullptr) return status_;
  Function function;
  function.root = root;
  return function;
}

}  // namespace svod
