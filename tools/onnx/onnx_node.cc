#include "tools/onnx/onnx_node.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/operators/compose.h"
#include "ir/operators/shaping.h"
#include "tools/onnx/graph_importer.h"

namespace svod {
namespace {

const char* TypeName(int type) {
  switch (type) {
    case onnx::AttributeProto::FLOAT:
      return "a float";
    case onnx::AttributeProto::INT:
      return "an integer";
    case onnx::AttributeProto::STRING:
      return "a string";
    case onnx::AttributeProto::TENSOR:
      return "a tensor";
    case onnx::AttributeProto::GRAPH:
      return "a graph";
    case onnx::AttributeProto::SPARSE_TENSOR:
      return "a sparse tensor";
    case onnx::AttributeProto::FLOATS:
      return "floats";
    case onnx::AttributeProto::INTS:
      return "integers";
    case onnx::AttributeProto::STRINGS:
      return "strings";
    default:
      return "another type";
  }
}

// Files of before there was a type say it by the field that they fill.
int TypeOf(const onnx::AttributeProto& attribute) {
  if (attribute.type() != onnx::AttributeProto::UNDEFINED) return attribute.type();
  if (attribute.has_f()) return onnx::AttributeProto::FLOAT;
  if (attribute.has_i()) return onnx::AttributeProto::INT;
  if (attribute.has_s()) return onnx::AttributeProto::STRING;
  if (attribute.has_t()) return onnx::AttributeProto::TENSOR;
  if (attribute.has_g()) return onnx::AttributeProto::GRAPH;
  if (attribute.has_sparse_tensor()) return onnx::AttributeProto::SPARSE_TENSOR;
  if (attribute.floats_size() > 0) return onnx::AttributeProto::FLOATS;
  if (attribute.ints_size() > 0) return onnx::AttributeProto::INTS;
  if (attribute.strings_size() > 0) return onnx::AttributeProto::STRINGS;
  return onnx::AttributeProto::UNDEFINED;
}

double NumberAt(const SharedTensor& tensor, int64_t i) {
  uint64_t bits = ReadElement(tensor.data(), tensor.dtype, i);
  if (tensor.dtype.is_float()) return BitsToDouble(tensor.dtype.scalar, bits);
  return tensor.dtype.is_signed() ? static_cast<double>(static_cast<int64_t>(bits))
                                  : static_cast<double>(bits);
}

}  // namespace

OnnxNode::OnnxNode(GraphImporter& importer, const onnx::NodeProto& proto, int64_t version,
                   std::vector<const UOp*> inputs)
    : importer_(importer),
      builder_(importer.builder()),
      proto_(proto),
      version_(version),
      inputs_(std::move(inputs)) {}

// --- Failures -----------------------------------------------------------------------------------

OnnxResults OnnxNode::Fail(absl::string_view message) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(message);
  return {};
}

OnnxResults OnnxNode::FailUnsupported(absl::string_view what) {
  if (status_.ok()) {
    status_ = absl::UnimplementedError(absl::StrCat(what, " is not supported"));
  }
  return {};
}

absl::Status OnnxNode::Finish() {
  absl::Status built = builder_.Take();
  if (status_.ok()) status_ = built;
  if (!status_.ok()) return status_;
  for (const onnx::AttributeProto& attribute : proto_.attribute()) {
    if (!asked_.contains(attribute.name())) {
      return absl::UnimplementedError(
          absl::StrCat("attribute '", attribute.name(), "' is not supported"));
    }
  }
  return absl::OkStatus();
}

// --- Values -------------------------------------------------------------------------------------

const KnownValue* OnnxNode::Known(size_t i, absl::string_view expected) {
  if (!ok()) return nullptr;
  if (!has_input(i)) {
    Fail(absl::StrCat("input ", i, ", got none, expected ", expected));
    return nullptr;
  }
  const KnownValue* value = importer_.known().Of(input(i));
  if (value != nullptr) return value;
  std::vector<std::string> inputs = importer_.NoteNeeded(input(i));
  if (inputs.empty()) {
    FailUnsupported(absl::StrCat("input ", i, " of a value that cannot be worked out (expected ",
                                 expected, ")"));
  } else {
    Fail(absl::StrCat("input ", i, ", got what depends on the model's input ",
                      absl::StrJoin(inputs, ", "), ", expected ", expected,
                      " that is known when the model is loaded"));
  }
  return nullptr;
}

bool OnnxNode::IsKnown(size_t i) {
  if (!has_input(i)) return false;
  const KnownValue* value = importer_.known().Of(input(i));
  return value != nullptr && value->constant.has_value();
}

std::optional<SharedTensor> OnnxNode::KnownTensor(size_t i) {
  const KnownValue* value = Known(i, "a tensor");
  if (value == nullptr) return std::nullopt;
  if (!value->constant.has_value()) {
    Fail(absl::StrCat("input ", i, ", got symbolic dimensions, expected numbers"));
    return std::nullopt;
  }
  return value->constant;
}

std::optional<std::vector<int64_t>> OnnxNode::KnownInts(size_t i) {
  std::optional<SharedTensor> tensor = KnownTensor(i);
  if (!tensor.has_value()) return std::nullopt;
  if (!tensor->dtype.is_integer() && !tensor->dtype.is_bool()) {
    Fail(
        absl::StrCat("input ", i, ": dtype, got ", ToString(tensor->dtype), ", expected integers"));
    return std::nullopt;
  }
  std::vector<int64_t> values;
  for (int64_t k = 0; k < tensor->num_elements(); ++k) {
    uint64_t bits = ReadElement(tensor->data(), tensor->dtype, k);
    values.push_back(ConstInt(builder_.context().Bits(tensor->dtype, bits)));
  }
  return values;
}

std::optional<std::vector<double>> OnnxNode::KnownNumbers(size_t i) {
  std::optional<SharedTensor> tensor = KnownTensor(i);
  if (!tensor.has_value()) return std::nullopt;
  std::vector<double> values;
  for (int64_t k = 0; k < tensor->num_elements(); ++k) {
    if (tensor->dtype.is_float()) {
      values.push_back(NumberAt(*tensor, k));
    } else {
      uint64_t bits = ReadElement(tensor->data(), tensor->dtype, k);
      values.push_back(static_cast<double>(ConstInt(builder_.context().Bits(tensor->dtype, bits))));
    }
  }
  return values;
}

std::optional<Shape> OnnxNode::KnownDims(size_t i) {
  const KnownValue* value = Known(i, "dimensions");
  if (value == nullptr) return std::nullopt;
  if (!value->constant.has_value()) {
    Shape dims = value->elements;
    for (const UOp*& dimension : dims) {
      if (IsConst(dimension)) dimension = builder_.Index(ConstInt(dimension));
    }
    return dims;
  }
  std::optional<std::vector<int64_t>> values = KnownInts(i);
  if (!values.has_value()) return std::nullopt;
  return builder_.ConstShape(*values);
}

// --- Attributes ---------------------------------------------------------------------------------

bool OnnxNode::HasAttribute(absl::string_view name) {
  asked_.emplace(name);
  for (const onnx::AttributeProto& attribute : proto_.attribute()) {
    if (attribute.name() == name) return true;
  }
  return false;
}

const onnx::AttributeProto* OnnxNode::Find(absl::string_view name, int type) {
  asked_.emplace(name);
  for (const onnx::AttributeProto& attribute : proto_.attribute()) {
    if (attribute.name() != name) continue;
    int got = TypeOf(attribute);
    // A list of nothing may come without a type.
    if (got == type || got == onnx::AttributeProto::UNDEFINED) return &attribute;
    Fail(
        absl::StrCat("attribute '", name, "', got ", TypeName(got), ", expected ", TypeName(type)));
    return nullptr;
  }
  return nullptr;
}

int64_t OnnxNode::Int(absl::string_view name, int64_t fallback) {
  const onnx::AttributeProto* attribute = Find(name, onnx::AttributeProto::INT);
  return attribute == nullptr ? fallback : attribute->i();
}

double OnnxNode::Float(absl::string_view name, double fallback) {
  const onnx::AttributeProto* attribute = Find(name, onnx::AttributeProto::FLOAT);
  return attribute == nullptr ? fallback : static_cast<double>(attribute->f());
}

std::string OnnxNode::String(absl::string_view name, absl::string_view fallback) {
  const onnx::AttributeProto* attribute = Find(name, onnx::AttributeProto::STRING);
  return attribute == nullptr ? std::string(fallback) : attribute->s();
}

std::vector<int64_t> OnnxNode::Ints(absl::string_view name, std::vector<int64_t> fallback) {
  const onnx::AttributeProto* attribute = Find(name, onnx::AttributeProto::INTS);
  if (attribute == nullptr) return fallback;
  return {attribute->ints().begin(), attribute->ints().end()};
}

std::vector<double> OnnxNode::Floats(absl::string_view name, std::vector<double> fallback) {
  const onnx::AttributeProto* attribute = Find(name, onnx::AttributeProto::FLOATS);
  if (attribute == nullptr) return fallback;
  return {attribute->floats().begin(), attribute->floats().end()};
}

std::vector<std::string> OnnxNode::Strings(absl::string_view name) {
  const onnx::AttributeProto* attribute = Find(name, onnx::AttributeProto::STRINGS);
  if (attribute == nullptr) return {};
  return {attribute->strings().begin(), attribute->strings().end()};
}

DType OnnxNode::TypeAttribute(absl::string_view name, DType fallback) {
  const onnx::AttributeProto* attribute = Find(name, onnx::AttributeProto::INT);
  if (attribute == nullptr) return fallback;
  absl::StatusOr<DType> dtype = DTypeOfOnnx(attribute->i());
  if (dtype.ok()) return *dtype;
  if (status_.ok()) status_ = dtype.status();
  return fallback;
}

std::optional<ConstantTensor> OnnxNode::TensorAttribute(absl::string_view name) {
  const onnx::AttributeProto* attribute = Find(name, onnx::AttributeProto::TENSOR);
  if (attribute == nullptr) return std::nullopt;
  return OrFail(importer_.reader().Read(attribute->t()));
}

std::optional<ConstantTensor> OnnxNode::SparseTensorAttribute(absl::string_view name) {
  const onnx::AttributeProto* attribute = Find(name, onnx::AttributeProto::SPARSE_TENSOR);
  if (attribute == nullptr) return std::nullopt;
  return OrFail(importer_.reader().ReadSparse(attribute->sparse_tensor()));
}

std::optional<ConstantTensor> OnnxNode::OrFail(absl::StatusOr<ConstantTensor> tensor) {
  if (tensor.ok()) return *std::move(tensor);
  if (status_.ok()) status_ = tensor.status();
  return std::nullopt;
}

const onnx::GraphProto* OnnxNode::Graph(absl::string_view name) {
  const onnx::AttributeProto* attribute = Find(name, onnx::AttributeProto::GRAPH);
  if (attribute != nullptr) return &attribute->g();
  Fail(absl::StrCat("attribute '", name, "', got none, expected a graph"));
  return nullptr;
}

void OnnxNode::Require(absl::string_view name) {
  if (!HasAttribute(name)) {
    Fail(absl::StrCat("attribute '", name, "', got none, expected a value"));
  }
}

void OnnxNode::Ignore(std::initializer_list<absl::string_view> names) {
  for (absl::string_view name : names) asked_.emplace(name);
}

int OnnxNode::Choice(absl::string_view name, absl::string_view fallback,
                     std::initializer_list<absl::string_view> words) {
  std::string value = String(name, fallback);
  int i = 0;
  for (absl::string_view word : words) {
    if (value == word) return i;
    ++i;
  }
  Fail(absl::StrCat("attribute '", name, "', got '", value, "', expected one of ",
                    absl::StrJoin(words, ", ")));
  return -1;
}

// --- Constants ----------------------------------------------------------------------------------

const UOp* OnnxNode::Constant(ConstantTensor tensor) {
  return importer_.Constant(std::move(tensor));
}

const UOp* OnnxNode::IntsConstant(absl::Span<const int64_t> values, DType dtype) {
  auto bytes = std::make_shared<Bytes>(values.size() * static_cast<size_t>(dtype.size_bytes()));
  for (size_t i = 0; i < values.size(); ++i) {
    WriteElement(bytes->data(), dtype, static_cast<int64_t>(i), static_cast<uint64_t>(values[i]));
  }
  return Constant({dtype, {static_cast<int64_t>(values.size())}, *bytes, bytes});
}

const UOp* OnnxNode::FloatsConstant(absl::Span<const double> values, DType dtype) {
  auto bytes = std::make_shared<Bytes>(values.size() * static_cast<size_t>(dtype.size_bytes()));
  for (size_t i = 0; i < values.size(); ++i) {
    WriteElement(bytes->data(), dtype, static_cast<int64_t>(i),
                 DoubleToBits(dtype.scalar, values[i]));
  }
  return Constant({dtype, {static_cast<int64_t>(values.size())}, *bytes, bytes});
}

const UOp* OnnxNode::DimsTensor(ShapeSpan dims, DType dtype) {
  std::vector<int64_t> values;
  for (const UOp* dimension : dims) {
    if (IsConst(dimension)) values.push_back(ConstInt(dimension));
  }
  if (values.size() == dims.size()) return IntsConstant(values, dtype);
  std::vector<const UOp*> numbers;
  for (const UOp* dimension : dims) numbers.push_back(DimensionValue(builder_, dimension, dtype));
  return StackTensors(builder_, numbers, 0);
}

}  // namespace svod
