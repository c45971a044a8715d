#include "tools/onnx/known_values.h"

#include <utility>

#include "ir/evaluate.h"

namespace svod {
namespace {

bool IsTensorOp(const UOp* node) { return InfoOf(node->op()).op_class == OpClass::kTensor; }

// Positions 0, 1, ... in the place of a symbolic source, `base` the first one.
SharedTensor PositionsLike(DType dtype, std::vector<int64_t> shape, int64_t base) {
  SharedTensor positions{dtype, std::move(shape), nullptr, 0};
  auto size = static_cast<size_t>(positions.size_bytes());
  positions.bytes = std::make_shared<Bytes>(size);
  for (int64_t i = 0; i < positions.num_elements(); ++i) {
    WriteElement(positions.bytes->data(), dtype, i, static_cast<uint64_t>(base + i));
  }
  return positions;
}

}  // namespace

void KnownValues::SetConstant(const UOp* param, ConstantTensor value) {
  given_[param] = std::move(value);
  known_.erase(param);
}

std::vector<const UOp*> KnownValues::UnknownParams(const UOp* tensor) {
  std::vector<const UOp*> params;
  for (const UOp* node : Toposort(tensor)) {
    if (node->op() == Op::kParam && !given_.contains(node)) params.push_back(node);
  }
  return params;
}

const KnownValue* KnownValues::Of(const UOp* tensor) {
  if (tensor == nullptr) return nullptr;
  // Sources before users; what is known already is not entered again.
  std::vector<std::pair<const UOp*, int>> stack = {{tensor, 0}};
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (known_.contains(node)) {
      stack.pop_back();
    } else if (next < NumTensorSources(node) && node->op() != Op::kParam) {
      const UOp* source = node->source(next++);
      if (!known_.contains(source)) stack.emplace_back(source, 0);
    } else {
      const UOp* done = node;
      stack.pop_back();
      std::optional<KnownValue> value = Evaluate(done);
      known_[done] = std::move(value);
    }
  }
  const std::optional<KnownValue>& value = known_.at(tensor);
  return value.has_value() ? &*value : nullptr;
}

std::optional<std::vector<int64_t>> KnownValues::ShapeOf(const UOp* node) {
  std::vector<int64_t> shape;
  for (const UOp* dimension : builder_.ShapeOf(node)) {
    if (!IsConst(dimension)) return std::nullopt;
    shape.push_back(ConstInt(dimension));
  }
  if (CountElements(shape) > kMaxElements) return std::nullopt;
  return shape;
}

std::optional<KnownValue> KnownValues::Evaluate(const UOp* node) {
  if (node->op() == Op::kParam) {
    auto given = given_.find(node);
    if (given == given_.end()) return std::nullopt;
    const ConstantTensor& value = given->second;
    if (CountElements(value.shape) > kMaxElements) return std::nullopt;
    SharedTensor tensor{value.dtype, value.shape,
                        std::make_shared<Bytes>(value.bytes.begin(), value.bytes.end()), 0};
    return KnownValue{std::move(tensor), {}};
  }
  if (node->dtype() == Scalar::kIndex && !IsTensorOp(node)) {
    return KnownValue{std::nullopt, {builder_.dims().Normalize(node)}};
  }
  if (IsConst(node)) {
    SharedTensor tensor{node->dtype(), {}, nullptr, 0};
    tensor.bytes = std::make_shared<Bytes>(static_cast<size_t>(node->dtype().size_bytes()));
    WriteElement(tensor.bytes->data(), node->dtype(), 0, node->arg<ConstArgument>().bits);
    return KnownValue{std::move(tensor), {}};
  }
  if (!IsElementwise(node->op()) && !IsTensorOp(node)) return std::nullopt;
  if (!ShapeOf(node).has_value()) return std::nullopt;
  int num_tensors = NumTensorSources(node);
  bool is_constant = true;
  for (int i = 0; i < num_tensors; ++i) {
    const std::optional<KnownValue>& source = known_.at(node->source(i));
    if (!source.has_value()) return std::nullopt;
    is_constant &= source->constant.has_value();
  }
  std::vector<int64_t> numbers;
  for (int i = num_tensors; i < node->num_sources(); ++i) {
    const UOp* number = builder_.dims().Normalize(node->source(i));
    if (!IsConst(number)) return std::nullopt;
    numbers.push_back(ConstInt(number));
  }
  if (is_constant) return EvaluateConstant(node, numbers);
  if (CountElements(*ShapeOf(node)) > kMaxSymbolicElements) return std::nullopt;
  if (IsElementwise(node->op())) return EvaluateElementwise(node);
  if (node->op() == Op::kReduceAxis) return EvaluateReduce(node);
  return EvaluateMovement(node, numbers);
}

std::optional<KnownValue> KnownValues::EvaluateConstant(const UOp* node,
                                                        absl::Span<const int64_t> numbers) {
  std::vector<SharedTensor> tensors;
  for (int i = 0; i < NumTensorSources(node); ++i) {
    tensors.push_back(*known_.at(node->source(i))->constant);
  }
  TensorMaker maker(4 * kMaxElements);
  absl::StatusOr<SharedTensor> result = EvaluateTensorOp(node, tensors, numbers, maker);
  if (!result.ok()) return std::nullopt;
  return KnownValue{*std::move(result), {}};
}

// The elements as nodes: CONSTs of the dtype of a constant, index expressions otherwise.
std::vector<const UOp*> KnownValues::ElementsOf(const UOp* node) {
  const KnownValue& value = *known_.at(node);
  if (!value.constant.has_value()) return value.elements;
  std::vector<const UOp*> elements;
  const SharedTensor& tensor = *value.constant;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    elements.push_back(
        builder_.context().Bits(tensor.dtype, ReadElement(tensor.data(), tensor.dtype, i)));
  }
  return elements;
}

// One element of an elementwise op; null when it has no index expression. Expressions are taken
// not to overflow the dtype.
const UOp* KnownValues::Combine(const UOp* node, absl::Span<const UOp* const> operands) {
  Dims& dims = builder_.dims();
  if (node->op() == Op::kWhere) {
    const UOp* condition = operands[0];
    if (!IsConst(condition)) return nullptr;
    return operands[ConstInt(condition) != 0 ? 1 : 2];
  }
  std::vector<const UOp*> index;
  for (const UOp* operand : operands) {
    bool is_integer = operand->dtype().is_integer() || operand->dtype().is_bool();
    if (!is_integer) return nullptr;
    index.push_back(IsConst(operand) ? builder_.Index(ConstInt(operand)) : operand);
  }
  const UOp* x = index[0];
  if (index.size() == 1) {
    if (node->op() == Op::kNeg) return dims.Sub(builder_.Index(0), x);
    return node->op() == Op::kCast && node->dtype().is_integer() ? x : nullptr;
  }
  const UOp* y = index[1];
  const Op op = node->op();
  bool is_counting = dims.RangeOf(x).min >= 0;
  bool divides = dims.RangeOf(y).min > 0;
  if (op == Op::kAdd) return dims.Add(x, y);
  if (op == Op::kSub) return dims.Sub(x, y);
  if (op == Op::kMul) return dims.Mul(x, y);
  if (op == Op::kFloordiv || (op == Op::kCdiv && is_counting)) {
    return divides ? dims.Floordiv(x, y) : nullptr;
  }
  if (op == Op::kFloormod || (op == Op::kCmod && is_counting)) {
    return divides ? dims.Floormod(x, y) : nullptr;
  }
  if (op == Op::kMax || op == Op::kMin) {
    bool is_max = op == Op::kMax;
    if (dims.AtMost(x, y)) return is_max ? y : x;
    if (dims.AtMost(y, x)) return is_max ? x : y;
    return is_max ? dims.Max(x, y) : dims.Min(x, y);
  }
  auto truth = [&](bool value) { return builder_.context().Bool(value); };
  auto is_below = [&](const UOp* a, const UOp* b) {
    return dims.AtMost(dims.Add(a, builder_.Index(1)), b);
  };
  if (op == Op::kCmpLt) {
    if (is_below(x, y)) return truth(true);
    return dims.AtMost(y, x) ? truth(false) : nullptr;
  }
  if (op == Op::kCmpLe) {
    if (dims.AtMost(x, y)) return truth(true);
    return is_below(y, x) ? truth(false) : nullptr;
  }
  if (op == Op::kCmpEq || op == Op::kCmpNe) {
    bool is_equal = op == Op::kCmpEq;
    if (dims.Same(x, y)) return truth(is_equal);
    return is_below(x, y) || is_below(y, x) ? truth(!is_equal) : nullptr;
  }
  return nullptr;
}

std::optional<KnownValue> KnownValues::EvaluateElementwise(const UOp* node) {
  std::vector<int64_t> shape = *ShapeOf(node);
  TensorMaker maker(4 * kMaxElements);
  // Positions of each operand's elements in the broadcast result.
  std::vector<std::vector<const UOp*>> elements;
  std::vector<SharedTensor> positions;
  for (const UOp* source : node->sources()) {
    elements.push_back(ElementsOf(source));
    SharedTensor own = PositionsLike(Scalar::kI64, *ShapeOf(source), 0);
    absl::StatusOr<SharedTensor> spread = BroadcastTo(node->op(), own, shape, maker);
    if (!spread.ok()) return std::nullopt;
    positions.push_back(*std::move(spread));
  }
  KnownValue value;
  bool is_constant = true;
  std::vector<const UOp*> operands(elements.size());
  for (int64_t i = 0; i < CountElements(shape); ++i) {
    bool all_const = true;
    for (size_t k = 0; k < operands.size(); ++k) {
      const UOp*& operand = operands[k];
      operand = elements[k][ReadElement(positions[k].data(), Scalar::kI64, i)];
      all_const &= IsConst(operand);
      DType dtype = node->source(static_cast<int>(k))->dtype();
      // Expressions that came out constant are of dtype index.
      if (IsConst(operand) && operand->dtype() != dtype) {
        operand = builder_.ConstInt(dtype, ConstInt(operand));
      }
    }
    const UOp* element = nullptr;
    if (all_const) {
      std::vector<uint64_t> bits;
      for (const UOp* operand : operands) bits.push_back(operand->arg<ConstArgument>().bits);
      element = builder_.context().Bits(
          node->dtype(),
          EvaluateScalar(node->op(), node->dtype(), node->sources().back()->dtype(), bits));
    } else {
      element = Combine(node, operands);
    }
    if (element == nullptr) return std::nullopt;
    is_constant &= IsConst(element);
    value.elements.push_back(element);
  }
  if (!is_constant) return value;
  SharedTensor tensor{node->dtype(), shape, nullptr, 0};
  tensor.bytes = std::make_shared<Bytes>(static_cast<size_t>(tensor.size_bytes()));
  for (size_t i = 0; i < value.elements.size(); ++i) {
    uint64_t bits = value.elements[i]->arg<ConstArgument>().bits;
    WriteElement(tensor.bytes->data(), node->dtype(), static_cast<int64_t>(i), bits);
  }
  return KnownValue{std::move(tensor), {}};
}

// Movement is done on positions, and elements follow them.
std::optional<KnownValue> KnownValues::EvaluateMovement(const UOp* node,
                                                        absl::Span<const int64_t> numbers) {
  DType dtype = node->dtype() == Scalar::kIndex ? DType(Scalar::kI64) : node->dtype();
  if (!dtype.is_integer() || dtype.size_bytes() < 4) return std::nullopt;
  std::vector<const UOp*> elements = {builder_.ConstInt(node->dtype(), 0)};  // what is outside
  std::vector<SharedTensor> tensors;
  for (int i = 0; i < NumTensorSources(node); ++i) {
    const UOp* source = node->source(i);
    bool is_index = i == 1 && (node->op() == Op::kGather || node->op() == Op::kScatter);
    if (is_index) {
      const std::optional<KnownValue>& positions = known_.at(source);
      if (!positions->constant.has_value()) return std::nullopt;
      tensors.push_back(*positions->constant);
      continue;
    }
    tensors.push_back(
        PositionsLike(dtype, *ShapeOf(source), static_cast<int64_t>(elements.size())));
    std::vector<const UOp*> own = ElementsOf(source);
    elements.insert(elements.end(), own.begin(), own.end());
  }
  if (node->op() == Op::kScatter && node->arg<ScatterArgument>().kind != ScatterKind::kSet) {
    return std::nullopt;
  }
  if (node->op() == Op::kArange) return std::nullopt;
  TensorMaker maker(4 * kMaxElements);
  absl::StatusOr<SharedTensor> moved = EvaluateTensorOp(node, tensors, numbers, maker);
  if (!moved.ok()) return std::nullopt;
  KnownValue value;
  for (int64_t i = 0; i < moved->num_elements(); ++i) {
    value.elements.push_back(elements[ReadElement(moved->data(), dtype, i)]);
  }
  return value;
}

std::optional<KnownValue> KnownValues::EvaluateReduce(const UOp* node) {
  const auto& argument = node->arg<ReduceAxesArgument>();
  if (!node->dtype().is_integer()) return std::nullopt;
  std::vector<const UOp*> elements = ElementsOf(node->source(0));
  std::vector<int64_t> from = *ShapeOf(node->source(0)), to = *ShapeOf(node);
  SharedTensor own = PositionsLike(Scalar::kI64, to, 0);
  TensorMaker maker(4 * kMaxElements);
  absl::StatusOr<SharedTensor> target = BroadcastTo(node->op(), own, from, maker);
  if (!target.ok()) return std::nullopt;
  Dims& dims = builder_.dims();
  KnownValue value;
  value.elements.resize(static_cast<size_t>(CountElements(to)), nullptr);
  for (size_t i = 0; i < elements.size(); ++i) {
    const UOp* element = IsConst(elements[i]) ? builder_.Index(ConstInt(elements[i])) : elements[i];
    const UOp*& sum =
        value.elements[ReadElement(target->data(), Scalar::kI64, static_cast<int64_t>(i))];
    if (sum == nullptr) {
      sum = element;
    } else if (argument.kind == ReduceKind::kAdd) {
      sum = dims.Add(sum, element);
    } else if (argument.kind == ReduceKind::kMul) {
      sum = dims.Mul(sum, element);
    } else if (argument.kind == ReduceKind::kMax) {
      sum = dims.Max(sum, element);
    } else if (argument.kind == ReduceKind::kMin) {
      sum = dims.Min(sum, element);
    } else {
      return std::nullopt;
    }
  }
  for (const UOp* element : value.elements) {
    if (element == nullptr) return std::nullopt;
  }
  return value;
}

}  // namespace svod
