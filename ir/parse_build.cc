#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/literal.h"
#include "ir/parser.h"

namespace svod {

// --- Operands ------------------------------------------------------------------------------------

// Gives a literal its node.
bool Parser::Resolve(Operand* operand, std::optional<DType> expected) {
  if (operand->kind == Operand::Kind::kKernel || operand->kind == Operand::Kind::kList ||
      operand->kind == Operand::Kind::kWord) {
    return Fail(operand->token,
                absl::StrCat("got ", Describe(operand->token), ", expected a value"));
  }
  if (operand->node != nullptr) return true;
  std::optional<DType> dtype = operand->dtype.has_value() ? operand->dtype : expected;
  if (!dtype.has_value()) {
    const Token& literal = operand->steps.empty() ? operand->token : operand->steps[0].token;
    return Fail(literal, absl::StrCat("literal ", Describe(literal),
                                      " has no type, expected it as in '1:i32'"));
  }
  if (!operand->steps.empty()) return ResolveSteps(operand, *dtype);
  absl::StatusOr<uint64_t> bits = ParseLiteral(operand->token.text, dtype->scalar);
  if (!bits.ok()) return Fail(operand->token, bits.status().message());
  operand->node = context_->Bits(*dtype, *bits);
  operand->dtype = *dtype;
  return true;
}

bool Parser::ResolveSteps(Operand* operand, DType dtype) {
  std::vector<const UOp*> stack;
  for (const LiteralStep& step : operand->steps) {
    if (!step.op.has_value()) {
      absl::StatusOr<uint64_t> bits = ParseLiteral(step.token.text, dtype.scalar);
      if (!bits.ok()) return Fail(step.token, bits.status().message());
      stack.push_back(context_->Bits(dtype, *bits));
      continue;
    }
    size_t num_sources = static_cast<size_t>(InfoOf(*step.op).min_sources);
    absl::StatusOr<const UOp*> node =
        context_->Make(*step.op, absl::MakeConstSpan(stack).subspan(stack.size() - num_sources));
    if (!node.ok()) return Fail(step.token, node.status().message());
    NotePlace(*node, step.token);
    stack.resize(stack.size() - num_sources);
    stack.push_back(*node);
  }
  operand->node = dtype == Scalar::kIndex ? tensors_.dims().Normalize(stack.back()) : stack.back();
  operand->dtype = dtype;
  return true;
}

bool Parser::ResolveOperands(std::optional<DType> type) {
  std::vector<Operand>& operands = statement_.operands;
  bool has_literal = std::any_of(operands.begin(), operands.end(),
                                 [](const Operand& o) { return o.node == nullptr; });
  if (!has_literal) return true;
  std::vector<std::optional<DType>> known;
  for (const Operand& operand : operands) known.push_back(operand.dtype);
  for (size_t i = 0; i < operands.size(); ++i) {
    std::optional<DType> expected = ExpectedDType(statement_.op, i, known, type.value_or(DType()));
    if (!Resolve(&operands[i], expected)) return false;
  }
  return true;
}

bool Parser::ResolveDims(std::vector<Operand>* dims, std::vector<const UOp*>* nodes) {
  for (Operand& dim : *dims) {
    if (!Resolve(&dim, DType(Scalar::kIndex))) return false;
    nodes->push_back(dim.node);
  }
  return true;
}

bool Parser::CheckElements(const Shape& shape, absl::Span<const UOp* const> dims) {
  constexpr int64_t kMaxBytes = int64_t{1} << 62;
  int64_t bytes = shape.dtype.size_bytes();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!IsConst(dims[i])) continue;
    int64_t dim = ConstInt(dims[i]);
    if (dim < 0) {
      return Fail(shape.dims[i].token,
                  absl::StrCat("dimension, got ", dim, ", expected at least 0"));
    }
    if (dim > 0 && bytes > kMaxBytes / dim) {
      return Fail(shape.dims[i].token, "dimensions, expected fewer than 2^62 bytes in all");
    }
    bytes *= dim;
    if (bytes == 0) break;
  }
  return true;
}

Parser::Attribute* Parser::FindAttribute(absl::string_view name) {
  for (Attribute& attribute : statement_.attributes) {
    if (attribute.name.text == name) return &attribute;
  }
  return nullptr;
}

bool Parser::HasFlag(absl::string_view name) const {
  return std::any_of(statement_.flags.begin(), statement_.flags.end(),
                     [&](const Token& flag) { return flag.text == name; });
}

bool Parser::IntegerOf(const Operand& operand, int64_t min, int64_t* value) {
  if (operand.kind != Operand::Kind::kLiteral || operand.dtype.has_value() ||
      !operand.steps.empty()) {
    return Fail(operand.token,
                absl::StrCat("got ", Describe(operand.token), ", expected a plain integer"));
  }
  absl::StatusOr<uint64_t> bits = ParseLiteral(operand.token.text, Scalar::kI64);
  if (!bits.ok()) return Fail(operand.token, bits.status().message());
  *value = static_cast<int64_t>(*bits);
  if (*value >= min) return true;
  return Fail(operand.token, absl::StrCat("got ", *value, ", expected at least ", min));
}

// Leaves *value alone if the line does not have the attribute.
bool Parser::IntegerAttribute(absl::string_view name, int64_t min, int64_t* value) {
  Attribute* attribute = FindAttribute(name);
  return attribute == nullptr || IntegerOf(attribute->value, min, value);
}

bool Parser::NodeAttribute(absl::string_view name, DType expected, const UOp** node) {
  Attribute* attribute = FindAttribute(name);
  if (attribute == nullptr) return true;
  if (!Resolve(&attribute->value, expected)) return false;
  *node = attribute->value.node;
  return true;
}

std::vector<const UOp*> Parser::OperandNodes() const {
  std::vector<const UOp*> nodes;
  nodes.reserve(statement_.operands.size());
  for (const Operand& operand : statement_.operands) nodes.push_back(operand.node);
  return nodes;
}

// --- Building ---------------------------------------------------------------------------------

const UOp* Parser::Build(Op op, DType dtype, absl::Span<const UOp* const> sources,
                         const Argument& argument) {
  if (builder_ != nullptr) {
    const UOp* node = builder_->Make(op, dtype, sources, argument);
    return node != nullptr ? node : TakeBuilderError();
  }
  absl::StatusOr<const UOp*> node = context_->Make(op, dtype, sources, argument);
  return node.ok() ? CheckShape(*node) : FailNode(statement_.op_token, node.status().message());
}

const UOp* Parser::BuildStatement() {
  if (InfoOf(statement_.op).op_class == OpClass::kTensor) return BuildTensorOp();
  switch (InfoOf(statement_.op).argument) {
    case ArgumentKind::kAlignment:
      return BuildAccess();
    case ArgumentKind::kBuffer:
    case ArgumentKind::kScratch:
      return BuildShaped();
    case ArgumentKind::kVariable:
      return BuildVariable();
    case ArgumentKind::kAxis:
      return BuildRange();
    case ArgumentKind::kLanes:
      return BuildLanes();
    case ArgumentKind::kView:
      return BuildView();
    case ArgumentKind::kNone:
    case ArgumentKind::kConst:
    case ArgumentKind::kReduce:
    case ArgumentKind::kCustom:
    case ArgumentKind::kParam:
    case ArgumentKind::kFunction:
    case ArgumentKind::kAxes:
    case ArgumentKind::kReduceAxes:
    case ArgumentKind::kScatter:
      return BuildPlain();
  }
  return nullptr;
}

// Ops with operands, perhaps a type, and nothing else of note.
const UOp* Parser::BuildPlain() {
  Op op = statement_.op;
  std::optional<DType> type;
  if (statement_.type.has_value()) type = statement_.type->dtype;
  if (op == Op::kConst) {
    if (statement_.operands.size() != 1) {
      return FailNode(statement_.op_token, "const: expected one literal");
    }
    Operand& literal = statement_.operands[0];
    if (literal.kind != Operand::Kind::kLiteral) {
      return FailNode(literal.token,
                      absl::StrCat("const: got ", Describe(literal.token), ", expected a literal"));
    }
    return Resolve(&literal, type) ? literal.node : nullptr;
  }
  if (!ResolveOperands(type)) return nullptr;
  std::vector<const UOp*> nodes = OperandNodes();
  absl::Span<const UOp* const> operands = nodes;
  if (op == Op::kCustomFunction) {
    std::string kind;
    absl::Status unquoted = UnquoteString(statement_.string->text, &kind);
    if (!unquoted.ok()) return FailNode(*statement_.string, unquoted.message());
    return Build(op, DType(), operands, CustomArgument{kind});
  }
  if (builder_ == nullptr) return Build(op, type.value_or(DType()), operands, {});
  const UOp* node = nullptr;
  size_t wanted = static_cast<size_t>(InfoOf(op).min_sources);
  if (op == Op::kEnd) wanted = 1;
  if (operands.size() < wanted) {
    bool is_open_ended = InfoOf(op).max_sources < 0;
    return FailNode(
        statement_.op_token,
        absl::StrCat(statement_.op_token.text, ": number of operands, got ", operands.size(),
                     ", expected ", wanted, is_open_ended ? " or more" : ""));
  }
  if (op == Op::kEnd) {
    node = builder_->End(operands[0], operands.subspan(1));
  } else if (op == Op::kReduce) {
    node = builder_->Reduce(statement_.reduce, operands[0], operands.subspan(1));
  } else if (op == Op::kAfter) {
    node = builder_->After(operands[0], operands.subspan(1));
  } else if (op == Op::kCoreId && operands.size() == 1) {
    node = builder_->CoreId(operands[0]);
  } else {
    return Build(op, type.value_or(DType()), operands, {});
  }
  return node != nullptr ? node : TakeBuilderError();
}

const UOp* Parser::BuildVariable() {
  VariableArgument variable;
  std::string name;
  absl::Status unquoted = UnquoteString(statement_.string->text, &name);
  if (!unquoted.ok()) return FailNode(*statement_.string, unquoted.message());
  variable.max = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  if (!IntegerAttribute("min", kLowest, &variable.min) ||
      !IntegerAttribute("max", kLowest, &variable.max)) {
    return nullptr;
  }
  if (!statement_.operands.empty()) {
    return FailNode(statement_.operands[0].token, "define_var takes no operand");
  }
  if (builder_ != nullptr) {
    const UOp* node = builder_->Variable(name, variable.min, variable.max);
    return node != nullptr ? node : TakeBuilderError();
  }
  variable.name = name;
  return Build(Op::kDefineVar, DType(), {}, variable);
}

const UOp* Parser::BuildRange() {
  if (statement_.operands.size() != 1) {
    return FailNode(statement_.op_token, absl::StrCat("range: number of operands, got ",
                                                      statement_.operands.size(), ", expected 1"));
  }
  AxisKind kind = AxisKind::kLoop;
  if (statement_.keyword.has_value()) {
    if (statement_.keyword->text == ToString(AxisKind::kReduce)) {
      kind = AxisKind::kReduce;
    } else if (statement_.keyword->text != ToString(AxisKind::kLoop)) {
      return FailNode(*statement_.keyword, absl::StrCat("got ", Describe(*statement_.keyword),
                                                        ", expected 'loop' or 'reduce'"));
    }
  }
  int64_t axis = -1;
  if (!ResolveOperands(std::nullopt) || !IntegerAttribute("axis", 0, &axis)) return nullptr;
  const UOp* node = builder_->Range(statement_.operands[0].node, kind, axis);
  return node != nullptr ? node : TakeBuilderError();
}

const UOp* Parser::BuildShaped() {
  Shape& shape = *statement_.shape;
  if (!statement_.operands.empty()) {
    return FailNode(statement_.operands[0].token,
                    absl::StrCat(statement_.op_token.text, " takes no operand"));
  }
  int64_t id = -1;
  if (!IntegerAttribute("id", 0, &id)) return nullptr;
  if (statement_.op != Op::kBuffer) {
    int64_t size = 0;
    if (shape.dims.size() != 1) {
      return FailNode(shape.token, absl::StrCat(statement_.op_token.text, ": dimensions, got ",
                                                shape.dims.size(), ", expected 1"));
    }
    if (!IntegerOf(shape.dims[0], 0, &size)) return nullptr;
    const UOp* node = statement_.op == Op::kReg ? builder_->Reg(shape.dtype, size, id)
                                                : builder_->Local(shape.dtype, size, id);
    return node != nullptr ? node : TakeBuilderError();
  }
  std::vector<const UOp*> dims;
  if (!ResolveDims(&shape.dims, &dims) || !CheckElements(shape, dims)) return nullptr;
  if (id < 0) id = num_buffers_;
  ++num_buffers_;
  return Build(Op::kBuffer, shape.dtype, dims, BufferArgument{id});
}

const UOp* Parser::BuildLanes() {
  if (!ResolveOperands(std::nullopt)) return nullptr;
  std::vector<uint16_t> lanes;
  for (const Operand& operand : statement_.list->items) {
    int64_t item = 0;
    if (!IntegerOf(operand, 0, &item)) return nullptr;
    if (item >= kMaxLanes || lanes.size() >= kMaxLanes) {
      return FailNode(statement_.list->token, absl::StrCat("lanes, expected at most ", kMaxLanes,
                                                           " and each less than that"));
    }
    lanes.push_back(static_cast<uint16_t>(item));
  }
  return Build(Op::kLanes, DType(), OperandNodes(), LanesArgument{lanes});
}

const UOp* Parser::BuildView() {
  int64_t offset = 0;
  if (!IntegerAttribute("offset", 0, &offset) || !ResolveOperands(std::nullopt)) return nullptr;
  std::vector<const UOp*> sources = OperandNodes();
  if (sources.size() != 1) {
    return FailNode(statement_.op_token, absl::StrCat("buffer_view: number of operands, got ",
                                                      sources.size(), ", expected 1"));
  }
  std::vector<const UOp*> dims;
  Shape& shape = *statement_.type;
  if (!ResolveDims(&shape.dims, &dims) || !CheckElements(shape, dims)) return nullptr;
  sources.insert(sources.end(), dims.begin(), dims.end());
  return Build(Op::kBufferView, shape.dtype, sources, ViewArgument{offset});
}

const UOp* Parser::BuildAccess() {
  bool is_load = statement_.op == Op::kLoad;
  absl::string_view word = statement_.op_token.text;
  size_t wanted = is_load ? 1 : 2;
  if (statement_.operands.size() != wanted) {
    return FailNode(statement_.op_token,
                    absl::StrCat(word, ": number of operands, got ", statement_.operands.size(),
                                 ", expected ", wanted));
  }
  const Operand& address = statement_.operands[0];
  const UOp* buffer = address.node;
  const UOp* base = buffer == nullptr ? nullptr : BaseBuffer(buffer);
  if (base == nullptr) {
    return FailNode(address.token,
                    absl::StrCat(word, ": got ", Describe(address.token), ", expected a buffer"));
  }
  std::vector<const UOp*> position;
  if (!ResolveDims(&statement_.coordinates, &position)) return nullptr;
  int lanes = 1;
  for (const UOp* coordinate : position) lanes = std::max<int>(lanes, coordinate->dtype().lanes);
  DType value = base->dtype().is_vector() ? base->dtype() : base->dtype().with_lanes(lanes);

  KernelBuilder::AccessOptions options;
  options.exact = HasFlag("exact");
  options.is_stream = HasFlag("stream");
  if (statement_.type.has_value()) {
    DType type = statement_.type->dtype;
    bool may_widen = value.lanes == 1;
    if (type.scalar != value.scalar || (!may_widen && type != value)) {
      return FailNode(statement_.type->token,
                      absl::StrCat("load: type, got ", ToString(type), ", expected ",
                                   ToString(value), may_widen ? " or a vector of it" : ""));
    }
    options.lanes = may_widen ? type.lanes : 1;
    value = type;
  }
  if (!NodeAttribute("gate", DType(Scalar::kBool), &options.gate) ||
      !NodeAttribute("alt", value, &options.alt) ||
      !IntegerAttribute("align", 0, &options.alignment)) {
    return nullptr;
  }
  const UOp* node = nullptr;
  if (is_load) {
    node = builder_->Load(buffer, position, options);
  } else {
    if (!Resolve(&statement_.operands[1], value)) return nullptr;
    node = builder_->Store(buffer, position, statement_.operands[1].node, options);
  }
  return node != nullptr ? node : TakeBuilderError();
}

}  // namespace svod
