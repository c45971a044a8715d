#include "ir/evaluate_tensor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/evaluate.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

using Dimensions = std::vector<int64_t>;

std::string Shown(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

bool HasZero(absl::Span<const int64_t> shape) {
  return std::find(shape.begin(), shape.end(), 0) != shape.end();
}

absl::Status ShapeError(Op op, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(InfoOf(op).text, ": ", what));
}

// Row-major; zeros where there are no elements, since the products need not fit then.
Dimensions StridesOf(absl::Span<const int64_t> shape) {
  Dimensions strides(shape.size(), 0);
  if (HasZero(shape)) return strides;
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

// Strides by which an operand is read under a shape that it broadcasts to.
Dimensions BroadcastStrides(absl::Span<const int64_t> from, absl::Span<const int64_t> to) {
  Dimensions dense = StridesOf(from), strides(to.size(), 0);
  size_t lead = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == to[lead + i]) strides[lead + i] = dense[i];
  }
  return strides;
}

// Calls row(offsets, steps, length) for each innermost row of `shape`, in row-major order: element
// i of the row lies offsets[k] + i * steps[k] into operand k.
template <size_t N, typename Row>
void ForEachRow(absl::Span<const int64_t> shape, const std::array<Dimensions, N>& strides,
                std::array<int64_t, N> offsets, Row row) {
  if (HasZero(shape)) return;
  std::array<int64_t, N> steps{};
  if (shape.empty()) {
    row(offsets, steps, int64_t{1});
    return;
  }
  size_t last = shape.size() - 1;
  for (size_t k = 0; k < N; ++k) steps[k] = strides[k][last];
  Dimensions at(last, 0);
  while (true) {
    row(offsets, steps, shape[last]);
    size_t i = last;
    while (i-- > 0) {
      for (size_t k = 0; k < N; ++k) offsets[k] += strides[k][i];
      if (++at[i] < shape[i]) break;
      for (size_t k = 0; k < N; ++k) offsets[k] -= strides[k][i] * shape[i];
      at[i] = 0;
    }
    if (i == std::numeric_limits<size_t>::max()) return;
  }
}

// Copies elements of one dtype between places of two tensors.
void CopyElements(absl::Span<const int64_t> shape, const SharedTensor& from, int64_t from_base,
                  const Dimensions& from_strides, SharedTensor& to, int64_t to_base,
                  const Dimensions& to_strides) {
  const std::byte* source = from.data();
  std::byte* target = to.bytes->data() + to.offset;
  DType dtype = from.dtype;
  ForEachRow<2>(shape, {from_strides, to_strides}, {from_base, to_base},
                [&](const auto& offsets, const auto& steps, int64_t length) {
                  for (int64_t i = 0; i < length; ++i) {
                    WriteElement(target, dtype, offsets[1] + i * steps[1],
                                 ReadElement(source, dtype, offsets[0] + i * steps[0]));
                  }
                });
}

// A tensor of `shape` whose element at c is x's at base + c * strides.
absl::StatusOr<SharedTensor> Strided(Op op, const SharedTensor& x, Dimensions shape, int64_t base,
                                     const Dimensions& strides, TensorMaker& maker) {
  SVOD_ASSIGN_OR_RETURN(SharedTensor out, maker.Make(op, x.dtype, std::move(shape)));
  CopyElements(out.shape, x, base, strides, out, 0, StridesOf(out.shape));
  return out;
}

absl::StatusOr<SharedTensor> Elementwise(const UOp* node, absl::Span<const SharedTensor> tensors,
                                         TensorMaker& maker) {
  Op op = node->op();
  Dimensions shape;
  for (const SharedTensor& x : tensors) {
    Dimensions joined(std::max(shape.size(), x.shape.size()));
    for (size_t back = 1; back <= joined.size(); ++back) {
      int64_t a = back <= shape.size() ? shape[shape.size() - back] : 1;
      int64_t b = back <= x.shape.size() ? x.shape[x.shape.size() - back] : 1;
      if (a != b && a != 1 && b != 1) {
        return ShapeError(
            op, absl::StrCat("shapes, got ", Shown(shape), " and ", Shown(x.shape),
                             ", expected dimension -", back, " to be equal or one of them 1"));
      }
      joined[joined.size() - back] = a == 1 ? b : a;
    }
    shape = std::move(joined);
  }
  SVOD_ASSIGN_OR_RETURN(SharedTensor out, maker.Make(op, node->dtype(), std::move(shape)));
  constexpr size_t kMost = 3;
  std::array<Dimensions, kMost + 1> strides;
  std::array<const std::byte*, kMost> data{};
  std::array<DType, kMost> dtypes{};
  size_t count = tensors.size();
  for (size_t k = 0; k < kMost; ++k) {
    strides[k] =
        k < count ? BroadcastStrides(tensors[k].shape, out.shape) : Dimensions(out.shape.size(), 0);
    if (k < count) {
      data[k] = tensors[k].data();
      dtypes[k] = tensors[k].dtype;
    }
  }
  strides[kMost] = StridesOf(out.shape);
  DType operand = tensors.back().dtype;
  std::byte* target = out.bytes->data();
  ForEachRow<kMost + 1>(
      out.shape, strides, {}, [&](const auto& offsets, const auto& steps, int64_t length) {
        uint64_t operands[kMost] = {};
        for (int64_t i = 0; i < length; ++i) {
          for (size_t k = 0; k < count; ++k) {
            operands[k] = ReadElement(data[k], dtypes[k], offsets[k] + i * steps[k]);
          }
          WriteElement(target, out.dtype, offsets[kMost] + i * steps[kMost],
                       EvaluateScalar(op, out.dtype, operand, {operands, count}));
        }
      });
  return out;
}

absl::StatusOr<SharedTensor> Reshape(const SharedTensor& x, absl::Span<const int64_t> numbers) {
  bool is_negative = std::any_of(numbers.begin(), numbers.end(), [](int64_t n) { return n < 0; });
  if (is_negative || CountElements(numbers) != x.num_elements()) {
    return ShapeError(Op::kReshape, absl::StrCat("shapes, got ", Shown(x.shape), " to ",
                                                 Shown(numbers), ", expected as many elements"));
  }
  SharedTensor out = x;
  out.shape.assign(numbers.begin(), numbers.end());
  return out;
}

absl::StatusOr<SharedTensor> Permute(const UOp* node, const SharedTensor& x, TensorMaker& maker) {
  absl::Span<const int64_t> axes = node->arg<AxesArgument>().axes;
  if (axes.size() != x.shape.size()) {
    return ShapeError(Op::kPermute, absl::StrCat("axes, got ", axes.size(), " for shape ",
                                                 Shown(x.shape), ", expected all of them"));
  }
  Dimensions from = StridesOf(x.shape), shape, strides;
  for (int64_t axis : axes) {
    shape.push_back(x.shape[static_cast<size_t>(axis)]);
    strides.push_back(from[static_cast<size_t>(axis)]);
  }
  return Strided(Op::kPermute, x, std::move(shape), 0, strides, maker);
}

absl::StatusOr<SharedTensor> Flip(const UOp* node, const SharedTensor& x, TensorMaker& maker) {
  Dimensions strides = StridesOf(x.shape);
  int64_t base = 0;
  for (int64_t axis : node->arg<AxesArgument>().axes) {
    int64_t& stride = strides[static_cast<size_t>(axis)];
    base += stride * (x.shape[static_cast<size_t>(axis)] - 1);
    stride = -stride;
  }
  return Strided(Op::kFlip, x, x.shape, base, strides, maker);
}

absl::StatusOr<SharedTensor> Shrink(const SharedTensor& x, absl::Span<const int64_t> numbers,
                                    TensorMaker& maker) {
  size_t rank = x.shape.size();
  Dimensions strides = StridesOf(x.shape);
  int64_t base = 0;
  for (size_t i = 0; i < rank; ++i) {
    int64_t begin = numbers[i], size = numbers[rank + i];
    if (begin < 0 || size < 0 || begin > x.shape[i] || size > x.shape[i] - begin) {
      return ShapeError(Op::kShrink,
                        absl::StrCat("part, got ", size, " from ", begin, " on of dimension ", i,
                                     " of ", Shown(x.shape), ", expected it inside"));
    }
    base += begin * strides[i];
  }
  return Strided(Op::kShrink, x, Dimensions(numbers.begin() + rank, numbers.end()), base, strides,
                 maker);
}

absl::StatusOr<SharedTensor> Pad(const SharedTensor& x, const SharedTensor& value,
                                 absl::Span<const int64_t> numbers, TensorMaker& maker) {
  size_t rank = x.shape.size();
  Dimensions shape(rank);
  for (size_t i = 0; i < rank; ++i) {
    int64_t low = numbers[i], high = numbers[rank + i];
    int64_t room = std::numeric_limits<int64_t>::max() - x.shape[i];
    if (low < 0 || high < 0 || low > room || high > room - low) {
      return ShapeError(
          Op::kPad, absl::StrCat("amounts, got ", low, " and ", high, " of dimension ", i, " of ",
                                 Shown(x.shape), ", expected at least 0 and a size below 2^63"));
    }
    shape[i] = low + x.shape[i] + high;
  }
  SVOD_ASSIGN_OR_RETURN(SharedTensor out, maker.Make(Op::kPad, x.dtype, std::move(shape)));
  uint64_t fill = ReadElement(value.data(), value.dtype, 0);
  int64_t count = out.num_elements();
  for (int64_t i = 0; i < count; ++i) WriteElement(out.bytes->data(), out.dtype, i, fill);
  Dimensions strides = StridesOf(out.shape);
  int64_t base = 0;
  for (size_t i = 0; i < rank; ++i) base += numbers[i] * strides[i];
  if (count > 0) CopyElements(x.shape, x, 0, StridesOf(x.shape), out, base, strides);
  return out;
}

bool IsHalf(DType dtype) { return dtype == Scalar::kF16 || dtype == Scalar::kBF16; }

absl::StatusOr<SharedTensor> ReduceAxis(const UOp* node, const SharedTensor& x,
                                        TensorMaker& maker) {
  const auto& argument = node->arg<ReduceAxesArgument>();
  Dimensions shape = x.shape;
  for (int64_t axis : argument.axes) shape[static_cast<size_t>(axis)] = 1;
  SVOD_ASSIGN_OR_RETURN(SharedTensor out, maker.Make(Op::kReduceAxis, x.dtype, std::move(shape)));
  // Row-major order of the source is row-major order of the axes for every element of the result.
  DType accumulator = IsHalf(x.dtype) ? DType(Scalar::kF32) : x.dtype;
  std::vector<uint64_t> folded(static_cast<size_t>(out.num_elements()),
                               ReduceIdentity(argument.kind, accumulator));
  Dimensions to = StridesOf(out.shape);
  for (int64_t axis : argument.axes) to[static_cast<size_t>(axis)] = 0;
  Op fold = ReduceOp(argument.kind);
  const std::byte* data = x.data();
  ForEachRow<2>(x.shape, {StridesOf(x.shape), to}, {},
                [&](const auto& offsets, const auto& steps, int64_t length) {
                  for (int64_t i = 0; i < length; ++i) {
                    uint64_t bits = ReadElement(data, x.dtype, offsets[0] + i * steps[0]);
                    if (accumulator != x.dtype) {
                      bits = EvaluateScalar(Op::kCast, accumulator, x.dtype, {&bits, 1});
                    }
                    uint64_t& sum = folded[static_cast<size_t>(offsets[1] + i * steps[1])];
                    sum = EvaluateScalar(fold, accumulator, accumulator, {sum, bits});
                  }
                });
  for (size_t i = 0; i < folded.size(); ++i) {
    uint64_t bits = folded[i];
    if (accumulator != x.dtype) {
      bits = EvaluateScalar(Op::kCast, x.dtype, accumulator, {&bits, 1});
    }
    WriteElement(out.bytes->data(), out.dtype, static_cast<int64_t>(i), bits);
  }
  return out;
}

absl::StatusOr<SharedTensor> Arange(const UOp* node, int64_t size, TensorMaker& maker) {
  SVOD_ASSIGN_OR_RETURN(SharedTensor out, maker.Make(Op::kArange, node->dtype(), {size}));
  for (int64_t i = 0; i < size; ++i) {
    WriteElement(out.bytes->data(), out.dtype, i,
                 EvaluateScalar(Op::kCast, out.dtype, Scalar::kIndex, {static_cast<uint64_t>(i)}));
  }
  return out;
}

// The position that element i of a tensor of integers gives; -1 where it is outside [0, size).
int64_t PositionAt(const SharedTensor& positions, int64_t i, int64_t size) {
  uint64_t bits = ReadElement(positions.data(), positions.dtype, i);
  if (positions.dtype.is_signed()) {
    bits = EvaluateScalar(Op::kCast, Scalar::kI64, positions.dtype, {&bits, 1});
  }
  // Negative ones are huge, read as unsigned.
  return bits < static_cast<uint64_t>(size) ? static_cast<int64_t>(bits) : -1;
}

absl::Status CheckPositions(Op op, const SharedTensor& x, const SharedTensor& positions,
                            size_t axis) {
  bool fits = positions.shape.size() == x.shape.size() && axis < x.shape.size();
  for (size_t i = 0; fits && i < x.shape.size(); ++i) {
    fits = i == axis || positions.shape[i] <= x.shape[i];
  }
  if (fits) return absl::OkStatus();
  return ShapeError(
      op, absl::StrCat("shapes, got ", Shown(x.shape), " and positions ", Shown(positions.shape),
                       ", expected as many dimensions, and none larger but along "
                       "axis ",
                       axis));
}

absl::StatusOr<SharedTensor> Gather(const UOp* node, const SharedTensor& x,
                                    const SharedTensor& positions, TensorMaker& maker) {
  auto axis = static_cast<size_t>(node->arg<AxesArgument>().axes[0]);
  SVOD_RETURN_IF_ERROR(CheckPositions(Op::kGather, x, positions, axis));
  SVOD_ASSIGN_OR_RETURN(SharedTensor out, maker.Make(Op::kGather, x.dtype, positions.shape));
  Dimensions from = StridesOf(x.shape);
  int64_t stride = from[axis], size = x.shape[axis];
  from[axis] = 0;
  ForEachRow<2>(out.shape, {from, StridesOf(out.shape)}, {},
                [&](const auto& offsets, const auto& steps, int64_t length) {
                  for (int64_t i = 0; i < length; ++i) {
                    int64_t to = offsets[1] + i * steps[1];
                    int64_t at = PositionAt(positions, to, size);
                    if (at < 0) continue;
                    WriteElement(
                        out.bytes->data(), x.dtype, to,
                        ReadElement(x.data(), x.dtype, offsets[0] + i * steps[0] + at * stride));
                  }
                });
  return out;
}

absl::StatusOr<SharedTensor> Scatter(const UOp* node, const SharedTensor& x,
                                     const SharedTensor& positions, const SharedTensor& updates,
                                     TensorMaker& maker) {
  const auto& argument = node->arg<ScatterArgument>();
  auto axis = static_cast<size_t>(argument.axis);
  SVOD_RETURN_IF_ERROR(CheckPositions(Op::kScatter, x, positions, axis));
  if (updates.shape != positions.shape) {
    return ShapeError(Op::kScatter,
                      absl::StrCat("shapes, got positions ", Shown(positions.shape),
                                   " and updates ", Shown(updates.shape), ", expected them equal"));
  }
  SVOD_ASSIGN_OR_RETURN(SharedTensor out, maker.Make(Op::kScatter, x.dtype, x.shape));
  std::copy_n(x.data(), x.size_bytes(), out.bytes->data());
  Dimensions to = StridesOf(x.shape);
  int64_t stride = to[axis], size = x.shape[axis];
  to[axis] = 0;
  Op fold = ScatterOp(argument.kind);
  ForEachRow<2>(positions.shape, {to, StridesOf(positions.shape)}, {},
                [&](const auto& offsets, const auto& steps, int64_t length) {
                  for (int64_t i = 0; i < length; ++i) {
                    int64_t from = offsets[1] + i * steps[1];
                    int64_t at = PositionAt(positions, from, size);
                    if (at < 0) continue;
                    int64_t place = offsets[0] + i * steps[0] + at * stride;
                    uint64_t bits = ReadElement(updates.data(), x.dtype, from);
                    if (argument.kind != ScatterKind::kSet) {
                      uint64_t old = ReadElement(out.data(), x.dtype, place);
                      bits = EvaluateScalar(fold, x.dtype, x.dtype, {old, bits});
                    }
                    WriteElement(out.bytes->data(), x.dtype, place, bits);
                  }
                });
  return out;
}

}  // namespace

int64_t CountElements(absl::Span<const int64_t> shape) {
  if (HasZero(shape)) return 0;
  int64_t count = 1;
  for (int64_t dimension : shape) {
    if (__builtin_mul_overflow(count, dimension, &count)) {
      return std::numeric_limits<int64_t>::max();
    }
  }
  return count;
}

int64_t SharedTensor::num_elements() const { return CountElements(shape); }

uint64_t ReadElement(const std::byte* data, DType dtype, int64_t i) {
  auto read = [&](auto value) {
    std::memcpy(&value, data + i * static_cast<int64_t>(sizeof(value)), sizeof(value));
    return static_cast<uint64_t>(value);
  };
  switch (InfoOf(dtype.scalar).size_bytes) {
    case 1:
      return dtype.is_bool() ? uint64_t{read(uint8_t{}) != 0} : read(uint8_t{});
    case 2:
      return read(uint16_t{});
    case 4:
      return read(uint32_t{});
    default:
      return read(uint64_t{});
  }
}

void WriteElement(std::byte* data, DType dtype, int64_t i, uint64_t bits) {
  auto write = [&](auto value) {
    std::memcpy(data + i * static_cast<int64_t>(sizeof(value)), &value, sizeof(value));
  };
  switch (InfoOf(dtype.scalar).size_bytes) {
    case 1:
      return write(static_cast<uint8_t>(bits));
    case 2:
      return write(static_cast<uint16_t>(bits));
    case 4:
      return write(static_cast<uint32_t>(bits));
    default:
      return write(bits);
  }
}

absl::StatusOr<SharedTensor> TensorMaker::Make(Op op, DType dtype, std::vector<int64_t> shape) {
  for (int64_t dimension : shape) {
    if (dimension < 0) {
      return ShapeError(op, absl::StrCat("dimension, got ", dimension, " in ", Shown(shape),
                                         ", expected at least 0"));
    }
  }
  int64_t elements = CountElements(shape);
  if (elements > left_ || elements > std::numeric_limits<int64_t>::max() / 8) {
    return absl::ResourceExhaustedError(
        absl::StrCat(InfoOf(op).text, ": elements of all values together, got ", elements,
                     " more for ", Shown(shape), ", expected at most ", max_elements_));
  }
  left_ -= elements;
  SharedTensor tensor{dtype, std::move(shape), nullptr};
  tensor.bytes = std::make_shared<Bytes>(static_cast<size_t>(elements * dtype.size_bytes()));
  return tensor;
}

absl::StatusOr<SharedTensor> BroadcastTo(Op op, const SharedTensor& x,
                                         absl::Span<const int64_t> shape, TensorMaker& maker) {
  bool fits = x.shape.size() <= shape.size();
  for (size_t back = 1; fits && back <= x.shape.size(); ++back) {
    int64_t from = x.shape[x.shape.size() - back];
    fits = from == 1 || from == shape[shape.size() - back];
  }
  if (!fits) {
    return ShapeError(op, absl::StrCat("shapes, got ", Shown(x.shape), " to ", Shown(shape),
                                       ", expected equal dimensions where the first are not 1"));
  }
  return Strided(op, x, Dimensions(shape.begin(), shape.end()), 0, BroadcastStrides(x.shape, shape),
                 maker);
}

absl::StatusOr<SharedTensor> EvaluateTensorOp(const UOp* node,
                                              absl::Span<const SharedTensor> tensors,
                                              absl::Span<const int64_t> numbers,
                                              TensorMaker& maker) {
  Op op = node->op();
  if (IsElementwise(op)) return Elementwise(node, tensors, maker);
  if (op == Op::kArange) return Arange(node, numbers[0], maker);
  const SharedTensor& x = tensors[0];
  absl::Span<const int64_t> axes;
  if (op == Op::kFlip) axes = node->arg<AxesArgument>().axes;
  if (op == Op::kReduceAxis) axes = node->arg<ReduceAxesArgument>().axes;
  for (int64_t axis : axes) {
    if (static_cast<size_t>(axis) >= x.shape.size()) {
      return ShapeError(op, absl::StrCat("axis, got ", axis, " for shape ", Shown(x.shape),
                                         ", expected less than ", x.shape.size()));
    }
  }
  if ((op == Op::kPad || op == Op::kShrink) && numbers.size() != 2 * x.shape.size()) {
    return ShapeError(op, absl::StrCat("amounts, got ", numbers.size(), " for shape ",
                                       Shown(x.shape), ", expected two a dimension"));
  }
  if (op == Op::kPad && !tensors[1].shape.empty()) {
    return ShapeError(op,
                      absl::StrCat("value, got shape ", Shown(tensors[1].shape), ", expected []"));
  }
  if (op == Op::kReshape) return Reshape(x, numbers);
  if (op == Op::kExpand) return BroadcastTo(op, x, numbers, maker);
  if (op == Op::kPermute) return Permute(node, x, maker);
  if (op == Op::kFlip) return Flip(node, x, maker);
  if (op == Op::kShrink) return Shrink(x, numbers, maker);
  if (op == Op::kPad) return Pad(x, tensors[1], numbers, maker);
  if (op == Op::kReduceAxis) return ReduceAxis(node, x, maker);
  if (op == Op::kGather) return Gather(node, x, tensors[1], maker);
  if (op == Op::kScatter) return Scatter(node, x, tensors[1], tensors[2], maker);
  if (op == Op::kContiguous) return x;
  return absl::InvalidArgumentError(
      absl::StrCat("operand, got ", InfoOf(op).text, ", expected a tensor"));
}

}  // namespace svod
