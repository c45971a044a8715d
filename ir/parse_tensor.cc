// The parser's tensors: ops of graph blocks, made exactly as they are written, and the shapes of
// all values, so that what does not fit is reported in its line.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/parser.h"

namespace svod {

const UOp* Parser::CheckShape(const UOp* node) {
  bool is_tensor = InfoOf(node->op()).op_class == OpClass::kTensor ||
                   (IsElementwise(node->op()) && !node->dtype().is_vector());
  if (!is_tensor) return node;
  const UOp* culprit = nullptr;
  absl::Status status = tensors_.shapes().Of(node, &culprit).status();
  if (status.ok()) return node;
  return FailAt(culprit == node ? nullptr : culprit, status.message());
}

// --- Lists and axes ---------------------------------------------------------------------------

bool Parser::DimsAttribute(absl::string_view name, std::vector<const UOp*>* dims) {
  Attribute* attribute = FindAttribute(name);
  if (attribute == nullptr || attribute->value.kind != Operand::Kind::kList) {
    return Fail(attribute == nullptr ? statement_.op_token : attribute->value.token,
                absl::StrCat(statement_.op_token.text, ": expected a list '", name,
                             "=[...]' with one item a dimension"));
  }
  return ResolveDims(&attribute->value.items, dims);
}

bool Parser::AxisOf(const Operand& operand, const UOp* tensor, int64_t* axis) {
  if (!IntegerOf(operand, std::numeric_limits<int64_t>::min(), axis)) return false;
  *axis = tensors_.Axis(tensor, *axis, statement_.op_token.text);
  if (*axis >= 0) return true;
  return Fail(operand.token, tensors_.Take().message());
}

bool Parser::AxisAttribute(const UOp* tensor, int64_t* axis) {
  Attribute* attribute = FindAttribute("axis");
  if (attribute != nullptr) return AxisOf(attribute->value, tensor, axis);
  return Fail(statement_.op_token,
              absl::StrCat(statement_.op_token.text, ": expected the axis, such as 'axis=0'"));
}

// Leaves *axes alone if the line has none.
bool Parser::AxesAttribute(const UOp* tensor, std::vector<int64_t>* axes) {
  Attribute* attribute = FindAttribute("axes");
  if (attribute == nullptr) return true;
  if (attribute->value.kind != Operand::Kind::kList) {
    return Fail(attribute->value.token, absl::StrCat("got ", Describe(attribute->value.token),
                                                     ", expected a list of axes such as '[0, 1]'"));
  }
  for (const Operand& item : attribute->value.items) {
    axes->emplace_back();
    if (!AxisOf(item, tensor, &axes->back())) return false;
  }
  return true;
}

// --- Nodes ------------------------------------------------------------------------------------

const UOp* Parser::BuildTensorNode(absl::Span<const UOp* const> sources, const Argument& argument) {
  DType dtype = statement_.type.has_value() ? statement_.type->dtype : DType();
  return Build(statement_.op, dtype, sources, argument);
}

const UOp* Parser::BuildTensorOp() {
  Op op = statement_.op;
  absl::string_view word = statement_.op_token.text;
  auto num_operands = static_cast<size_t>(InfoOf(op).min_sources);
  if (statement_.operands.size() != num_operands) {
    return FailNode(statement_.op_token,
                    absl::StrCat(word, ": number of operands, got ", statement_.operands.size(),
                                 ", expected ", num_operands));
  }
  if (!ResolveOperands(std::nullopt)) return nullptr;
  std::vector<const UOp*> sources = OperandNodes();
  if (op == Op::kReduceAxis) return BuildReduceAxis();
  if (op == Op::kReshape || op == Op::kExpand) {
    bool ok = op == Op::kReshape ? ReshapeDims(sources[0], &sources)
                                 : ResolveDims(&statement_.list->items, &sources);
    if (!ok) return nullptr;
    return BuildTensorNode(sources, {});
  }
  if (op == Op::kPad || op == Op::kShrink) {
    const Syntax syntax = SyntaxOf(op);
    const char* const* names = syntax.attributes;
    std::vector<const UOp*> first, second;
    if (!DimsAttribute(names[0], &first) || !DimsAttribute(names[1], &second)) return nullptr;
    if (first.size() != second.size()) {
      return FailNode(FindAttribute(names[1])->value.token,
                      absl::StrCat(word, ": got ", first.size(), " in ", names[0], " and ",
                                   second.size(), " in ", names[1], ", expected as many"));
    }
    sources.insert(sources.end(), first.begin(), first.end());
    sources.insert(sources.end(), second.begin(), second.end());
    return BuildTensorNode(sources, {});
  }
  if (op == Op::kGather || op == Op::kScatter) {
    int64_t axis = 0;
    if (!AxisAttribute(sources[0], &axis)) return nullptr;
    if (op == Op::kScatter) {
      return BuildTensorNode(sources, ScatterArgument{statement_.scatter, axis});
    }
    return BuildTensorNode(sources, AxesArgument{{&axis, 1}});
  }
  if (op == Op::kPermute || op == Op::kFlip) {
    std::vector<int64_t> axes;
    if (FindAttribute("axes") == nullptr) {
      return FailNode(statement_.op_token,
                      absl::StrCat(word, ": expected the axes, such as 'axes=[1, 0]'"));
    }
    if (!AxesAttribute(sources[0], &axes)) return nullptr;
    return BuildTensorNode(sources, AxesArgument{axes});
  }
  return BuildTensorNode(sources, {});
}

// As NumPy: one -1 stands for what is left.
bool Parser::ReshapeDims(const UOp* x, std::vector<const UOp*>* sources) {
  std::optional<size_t> rest;
  svod::Shape given;
  for (Operand& item : statement_.list->items) {
    bool is_rest = item.kind == Operand::Kind::kLiteral && item.token.text == "-1";
    if (is_rest && rest.has_value()) return Fail(item.token, "got -1 twice, expected it once");
    if (!is_rest && !Resolve(&item, DType(Scalar::kIndex))) return false;
    if (is_rest) rest = sources->size();
    if (!is_rest) given.push_back(item.node);
    sources->push_back(item.node);
  }
  if (!rest.has_value()) return true;
  ShapeSpan from = tensors_.ShapeOf(x);
  if (!tensors_.ok()) return Fail(statement_.operands[0].token, tensors_.Take().message());
  Dims& dims = tensors_.dims();
  const UOp* wanted = dims.Floordiv(dims.Product(from), dims.Product(given));
  if (wanted == nullptr) {
    return Fail(statement_.list->token, "dimensions, expected index expressions");
  }
  (*sources)[*rest] = wanted;
  return true;
}

// Without `keep` the axes are dropped by a reshape of its own.
const UOp* Parser::BuildReduceAxis() {
  const UOp* x = statement_.operands[0].node;
  std::vector<int64_t> axes;
  if (FindAttribute("axes") == nullptr) {
    int rank = tensors_.RankOf(x);
    if (!tensors_.ok()) return FailNode(statement_.operands[0].token, tensors_.Take().message());
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  if (!AxesAttribute(x, &axes)) return nullptr;
  std::sort(axes.begin(), axes.end());
  const UOp* kept = BuildTensorNode({x}, ReduceAxesArgument{statement_.reduce, axes});
  if (kept == nullptr || HasFlag("keep") || axes.empty()) return kept;
  NotePlace(kept, statement_.op_token);
  svod::Shape shape;
  ShapeSpan from = tensors_.ShapeOf(x);
  for (size_t i = 0; i < from.size(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i))) {
      shape.push_back(from[i]);
    }
  }
  const UOp* dropped = tensors_.Reshape(kept, shape);
  return dropped != nullptr ? dropped : FailNode(statement_.op_token, tensors_.Take().message());
}

}  // namespace svod
