// CheckNode: what one node must satisfy by its row of the op table, whatever stands around it.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/status_macros.h"
#include "ir/uop.h"

namespace svod {
namespace {

absl::Status Error(Op op, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(InfoOf(op).text, ": ", what));
}

std::string DTypesOf(absl::Span<const UOp* const> sources) {
  return absl::StrJoin(sources, " and ", [](std::string* out, const UOp* source) {
    absl::StrAppend(out, ToString(source->dtype()));
  });
}

absl::Status CheckOperandClass(Op op, DType dtype) {
  if (HasFlag(op, kFloating) && !dtype.is_float()) {
    return Error(op, absl::StrCat("operand dtype, got ", ToString(dtype), ", expected a float"));
  }
  if (HasFlag(op, kInteger) && !dtype.is_integer()) {
    return Error(op, absl::StrCat("operand dtype, got ", ToString(dtype), ", expected an integer"));
  }
  if (HasFlag(op, kIntegral) && !dtype.is_integer() && !dtype.is_bool()) {
    return Error(
        op, absl::StrCat("operand dtype, got ", ToString(dtype), ", expected an integer or bool"));
  }
  if (HasFlag(op, kNumeric) && !dtype.is_integer() && !dtype.is_float()) {
    return Error(op, absl::StrCat("operand dtype, got ", ToString(dtype),
                                  ", expected an integer or a float"));
  }
  return absl::OkStatus();
}

bool IsBufferState(const UOp* node) {
  return node->op() != Op::kIndex && BaseBuffer(node) != nullptr;
}

bool IsLaneCount(int64_t lanes) { return lanes >= 1 && lanes <= kMaxLanes; }

absl::Status CheckDimensions(Op op, absl::Span<const UOp* const> dims) {
  for (const UOp* dim : dims) {
    if (dim->dtype() != Scalar::kIndex) {
      return Error(op, absl::StrCat("dimension, got a ", ToString(dim->dtype()),
                                    ", expected an index expression"));
    }
    if (IsConst(dim) && ConstInt(dim) < 0) {
      return Error(op, absl::StrCat("dimension, got ", ConstInt(dim), ", expected at least 0"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckIndex(absl::Span<const UOp* const> sources) {
  const UOp* base = BaseBuffer(sources[0]);
  if (!IsBufferState(sources[0])) {
    return Error(Op::kIndex, absl::StrCat("source 0, got ", InfoOf(sources[0]->op()).text,
                                          ", expected a buffer"));
  }
  DType index = sources[1]->dtype();
  if (index.scalar != Scalar::kIndex) {
    return Error(Op::kIndex, absl::StrCat("position, got ", ToString(index), ", expected index"));
  }
  if (index.is_vector() && base->dtype().is_vector()) {
    return Error(Op::kIndex, "position, got a vector into a buffer of vectors, expected a scalar");
  }
  if (sources.size() == 3 && !sources[2]->dtype().is_bool()) {
    return Error(Op::kIndex,
                 absl::StrCat("gate, got ", ToString(sources[2]->dtype()), ", expected bool"));
  }
  return absl::OkStatus();
}

// An access moves `value` at `index`: a scalar position reaches as many neighbours as value has
// lanes, a vector position one element a lane.
absl::Status CheckAccess(Op op, const UOp* index, DType value, int64_t alignment) {
  if (index->op() != Op::kIndex) {
    return Error(op, absl::StrCat("address, got ", InfoOf(index->op()).text, ", expected index"));
  }
  DType element = index->dtype();
  int position_lanes = index->source(1)->dtype().lanes;
  if (value.scalar != element.scalar || (element.is_vector() && value.lanes != element.lanes) ||
      (position_lanes > 1 && value.lanes != position_lanes)) {
    return Error(op, absl::StrCat("value dtype, got ", ToString(value), ", expected ",
                                  ToString(position_lanes > 1 ? element.with_lanes(position_lanes)
                                                              : element),
                                  position_lanes > 1 || element.is_vector() ? "" : " or a vector"));
  }
  if (index->num_sources() == 3) {
    int gate_lanes = index->source(2)->dtype().lanes;
    if (gate_lanes != 1 && (gate_lanes != value.lanes || element.is_vector())) {
      return Error(op, absl::StrCat("gate lanes, got ", gate_lanes, ", expected 1 or ",
                                    element.is_vector() ? 1 : value.lanes));
    }
  }
  if (alignment < 0 || (alignment & (alignment - 1)) != 0 || alignment > 4096) {
    return Error(op, absl::StrCat("alignment, got ", alignment,
                                  ", expected a power of two up to 4096 bytes, or 0"));
  }
  return absl::OkStatus();
}

absl::Status CheckConversion(Op op, DType to, DType from) {
  if (to.is_void() || from.is_void()) return Error(op, "operand, got void, expected a value");
  if (op == Op::kCast && to.lanes != from.lanes) {
    return Error(op, absl::StrCat("lanes, got ", ToString(from), " to ", ToString(to),
                                  ", expected equal lanes"));
  }
  if (op == Op::kBitcast && (to.size_bytes() != from.size_bytes() || to.lanes != from.lanes ||
                             to.is_bool() != from.is_bool())) {
    return Error(op, absl::StrCat("sizes, got ", ToString(from), " to ", ToString(to),
                                  ", expected equal sizes and lanes, bool only to bool"));
  }
  return absl::OkStatus();
}

absl::Status CheckLanes(const UOp* vector, absl::Span<const uint16_t> lanes) {
  if (!IsLaneCount(static_cast<int64_t>(lanes.size()))) {
    return Error(Op::kLanes, absl::StrCat("number of lanes, got ", lanes.size(), ", expected 1 to ",
                                          kMaxLanes));
  }
  for (uint16_t lane : lanes) {
    if (lane >= vector->dtype().lanes) {
      return Error(Op::kLanes, absl::StrCat("lane, got ", lane, " of ", ToString(vector->dtype()),
                                            ", expected less than ", vector->dtype().lanes));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckControl(Op op, absl::Span<const UOp* const> sources, const Argument& argument) {
  if (op == Op::kRange || op == Op::kCoreId) {
    if (sources[0]->dtype() != Scalar::kIndex) {
      return Error(op,
                   absl::StrCat("extent, got ", ToString(sources[0]->dtype()), ", expected index"));
    }
  }
  if (op == Op::kEnd) {
    if (sources[0]->op() != Op::kRange) {
      return Error(
          op, absl::StrCat("source 0, got ", InfoOf(sources[0]->op()).text, ", expected range"));
    }
    for (const UOp* effect : sources.subspan(1)) {
      if (!IsEffect(effect->op()) || effect->op() == Op::kSink) {
        return Error(op, absl::StrCat("body, got ", InfoOf(effect->op()).text,
                                      ", expected stores and ends"));
      }
    }
  }
  if (op == Op::kReduce) {
    DType dtype = sources[0]->dtype();
    ReduceKind kind = std::get<ReduceArgument>(argument).kind;
    bool bitwise = kind == ReduceKind::kAnd || kind == ReduceKind::kOr;
    if (dtype.is_void() || (bitwise && dtype.is_float())) {
      return Error(op, absl::StrCat("reduce_", ToString(kind), ", got ", ToString(dtype),
                                    ", expected ", bitwise ? "an integer or bool" : "a value"));
    }
    for (const UOp* range : sources.subspan(1)) {
      if (range->op() != Op::kRange) {
        return Error(op,
                     absl::StrCat("reduced over ", InfoOf(range->op()).text, ", expected ranges"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPlan(Op op, absl::Span<const UOp* const> sources) {
  if (op == Op::kCall) {
    const UOp* kernel = sources[0];
    if (kernel->op() != Op::kSink || !kernel->arg<FunctionArgument>().is_kernel) {
      return Error(op, "source 0, expected the sink of a kernel");
    }
    for (const UOp* operand : sources.subspan(1)) {
      if (!IsBufferState(operand) && operand->op() != Op::kBind) {
        return Error(op, absl::StrCat("operand, got ", InfoOf(operand->op()).text,
                                      ", expected buffers, then binds"));
      }
    }
  }
  if (op == Op::kCopy && (!IsBufferState(sources[0]) || !IsBufferState(sources[1]))) {
    return Error(op, "operands, expected two buffers");
  }
  if (op == Op::kBufferView) {
    if (!IsBufferState(sources[0])) return Error(op, "source 0, expected a buffer");
    return CheckDimensions(op, sources.subspan(1));
  }
  return absl::OkStatus();
}

// Whether a tensor op may take the node: a buffer, a state of one, or a scalar-typed value.
bool IsTensor(const UOp* node) {
  return node->op() != Op::kIndex && !node->dtype().is_void() && !node->dtype().is_vector();
}

absl::Status CheckAxes(Op op, absl::Span<const int64_t> axes) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0) return Error(op, absl::StrCat("axis, got ", axes[i], ", expected at least 0"));
    for (size_t j = 0; j < i; ++j) {
      if (axes[i] == axes[j]) return Error(op, absl::StrCat("axes, got ", axes[i], " twice"));
    }
  }
  return absl::OkStatus();
}

// How many tensors lead the sources of a tensor op; index expressions follow.
int NumTensors(Op op) {
  if (op == Op::kArange) return 0;
  if (op == Op::kPad || op == Op::kGather || op == Op::kAssign) return 2;
  return op == Op::kScatter ? 3 : 1;
}

absl::Status CheckTensorOp(Op op, DType dtype, absl::Span<const UOp* const> sources,
                           const Argument& argument) {
  size_t num_tensors = static_cast<size_t>(NumTensors(op));
  for (size_t i = 0; i < sources.size(); ++i) {
    if (i < num_tensors ? !IsTensor(sources[i]) : sources[i]->dtype() != Scalar::kIndex) {
      return Error(op, absl::StrCat("source ", i, ", got ", InfoOf(sources[i]->op()).text, " of ",
                                    ToString(sources[i]->dtype()), ", expected ",
                                    i < num_tensors ? "a tensor" : "an index expression"));
    }
  }
  if ((op == Op::kPad || op == Op::kShrink) && (sources.size() - num_tensors) % 2 != 0) {
    return Error(op, absl::StrCat("amounts, got ", sources.size() - num_tensors,
                                  ", expected two a dimension"));
  }
  if (op == Op::kArange && (dtype.is_vector() || dtype.is_bool())) {
    return Error(op, absl::StrCat("dtype, got ", ToString(dtype), ", expected a number's"));
  }
  if (op == Op::kReshape || op == Op::kExpand) {
    SVOD_RETURN_IF_ERROR(CheckDimensions(op, sources.subspan(1)));
  }
  if (op == Op::kPad || op == Op::kScatter || op == Op::kAssign) {
    const UOp* other = sources[op == Op::kScatter ? 2 : 1];
    if (other->dtype() != sources[0]->dtype()) {
      return Error(op, absl::StrCat("value dtype, got ", ToString(other->dtype()), ", expected ",
                                    ToString(sources[0]->dtype())));
    }
  }
  if ((op == Op::kGather || op == Op::kScatter) && !sources[1]->dtype().is_integer()) {
    return Error(
        op, absl::StrCat("positions, got ", ToString(sources[1]->dtype()), ", expected integers"));
  }
  if (const auto* axes = std::get_if<AxesArgument>(&argument)) {
    SVOD_RETURN_IF_ERROR(CheckAxes(op, axes->axes));
    if (op == Op::kGather && axes->axes.size() != 1) {
      return Error(op, absl::StrCat("axes, got ", axes->axes.size(), ", expected 1"));
    }
  }
  if (const auto* scatter = std::get_if<ScatterArgument>(&argument)) {
    SVOD_RETURN_IF_ERROR(CheckAxes(op, {scatter->axis}));
    if (scatter->kind != ScatterKind::kSet && sources[0]->dtype().is_bool()) {
      return Error(op, "dtype of a fold, got bool, expected a number's");
    }
  }
  if (const auto* reduce = std::get_if<ReduceAxesArgument>(&argument)) {
    SVOD_RETURN_IF_ERROR(CheckAxes(op, reduce->axes));
    if (!std::is_sorted(reduce->axes.begin(), reduce->axes.end())) {
      return Error(op, "axes, expected them in ascending order");
    }
    bool bitwise = reduce->kind == ReduceKind::kAnd || reduce->kind == ReduceKind::kOr;
    if (bitwise && sources[0]->dtype().is_float()) {
      return Error(op,
                   absl::StrCat("reduce_", ToString(reduce->kind), ", got ",
                                ToString(sources[0]->dtype()), ", expected an integer or bool"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<DType> InferDType(Op op, DType dtype, absl::Span<const UOp* const> sources,
                                 const Argument& argument) {
  auto all_equal = [&](absl::Span<const UOp* const> of) -> absl::Status {
    for (const UOp* source : of) {
      if (source->dtype() != of[0]->dtype()) {
        return Error(op,
                     absl::StrCat("operand types differ, got ", DTypesOf(of), ", expected equal"));
      }
    }
    return of[0]->dtype().is_void() ? Error(op, "operand, got void, expected a value")
                                    : absl::OkStatus();
  };
  switch (InfoOf(op).dtype_rule) {
    case DTypeRule::kExplicit:
      return dtype;
    case DTypeRule::kDot: {
      const int lanes = sources[2]->dtype().lanes;
      const DType sum(op == Op::kDotBF16 ? Scalar::kF32 : Scalar::kI32, lanes);
      const DType packed(Scalar::kI32, lanes);
      if (sources[2]->dtype() != sum || sources[0]->dtype() != packed ||
          sources[1]->dtype() != packed) {
        return Error(op, absl::StrCat("operand dtypes, got ", DTypesOf(sources), ", expected ",
                                      ToString(packed), " twice and ", ToString(sum)));
      }
      return sum;
    }
    case DTypeRule::kVoid:
      return DType();
    case DTypeRule::kIndex:
      return DType(Scalar::kIndex);
    case DTypeRule::kFirstSource:
      return sources[0]->dtype();
    case DTypeRule::kSameAsOperands:
      SVOD_RETURN_IF_ERROR(all_equal(sources));
      SVOD_RETURN_IF_ERROR(CheckOperandClass(op, sources[0]->dtype()));
      return sources[0]->dtype();
    case DTypeRule::kBoolOfOperands:
      SVOD_RETURN_IF_ERROR(all_equal(sources));
      return DType(Scalar::kBool, sources[0]->dtype().lanes);
    case DTypeRule::kWhere:
      SVOD_RETURN_IF_ERROR(all_equal(sources.subspan(1)));
      if (sources[0]->dtype() != DType(Scalar::kBool, sources[1]->dtype().lanes)) {
        return Error(op,
                     absl::StrCat("condition, got ", ToString(sources[0]->dtype()), ", expected ",
                                  ToString(DType(Scalar::kBool, sources[1]->dtype().lanes))));
      }
      return sources[1]->dtype();
    case DTypeRule::kStack:
      SVOD_RETURN_IF_ERROR(all_equal(sources));
      if (sources[0]->dtype().is_vector()) {
        return Error(op, absl::StrCat("element, got ", ToString(sources[0]->dtype()),
                                      ", expected a scalar"));
      }
      if (!IsLaneCount(static_cast<int64_t>(sources.size()))) {
        return Error(op, absl::StrCat("number of elements, got ", sources.size(),
                                      ", expected 1 to ", kMaxLanes));
      }
      return sources[0]->dtype().with_lanes(static_cast<int>(sources.size()));
    case DTypeRule::kLanes: {
      absl::Span<const uint16_t> lanes = std::get<LanesArgument>(argument).lanes;
      SVOD_RETURN_IF_ERROR(CheckLanes(sources[0], lanes));
      return sources[0]->dtype().with_lanes(static_cast<int>(lanes.size()));
    }
    case DTypeRule::kPick: {
      int lanes = sources[0]->dtype().lanes;
      if (!sources[0]->dtype().is_vector() || (lanes & (lanes - 1)) != 0) {
        return Error(op, absl::StrCat("source 0, got ", ToString(sources[0]->dtype()),
                                      ", expected a vector of a power of two lanes"));
      }
      if (sources[1]->dtype().scalar != Scalar::kI32) {
        return Error(op, absl::StrCat("numbers, got ", ToString(sources[1]->dtype()),
                                      ", expected i32 or a vector of it"));
      }
      return sources[0]->dtype().with_lanes(sources[1]->dtype().lanes);
    }
  }
  return absl::InternalError("dtype rule out of range");
}

}  // namespace

absl::StatusOr<DType> CheckNode(Op op, DType dtype, absl::Span<const UOp* const> sources,
                                const Argument& argument) {
  const OpInfo& info = InfoOf(op);
  int count = static_cast<int>(sources.size());
  if (count < info.min_sources || (info.max_sources >= 0 && count > info.max_sources)) {
    std::string expected = absl::StrCat(info.min_sources);
    if (info.max_sources < 0) absl::StrAppend(&expected, " or more");
    if (info.max_sources > info.min_sources) absl::StrAppend(&expected, " to ", info.max_sources);
    return Error(op, absl::StrCat("number of operands, got ", count, ", expected ", expected));
  }
  for (const UOp* source : sources) {
    if (source == nullptr) return Error(op, "operand, got null, expected a node");
  }
  if (static_cast<ArgumentKind>(argument.index()) != info.argument) {
    return Error(op, absl::StrCat("argument kind, got ", argument.index(), ", expected ",
                                  static_cast<int>(info.argument)));
  }
  if (!IsLaneCount(dtype.lanes)) {
    return Error(op, absl::StrCat("lanes, got ", dtype.lanes, ", expected 1 to ", kMaxLanes));
  }
  if (info.dtype_rule == DTypeRule::kExplicit && dtype.is_void()) {
    return Error(op, "dtype, got void, expected a value's");
  }

  switch (info.op_class) {
    case OpClass::kBuffer:
      if (dtype.is_vector() && (op == Op::kParam || op == Op::kBuffer)) {
        return Error(op, absl::StrCat("element, got ", ToString(dtype), ", expected a scalar"));
      }
      if (const auto* scratch = std::get_if<ScratchArgument>(&argument)) {
        // 2^40 keeps every product of a size and an element from overflowing.
        if (scratch->size < 0 || scratch->size > (int64_t{1} << 40)) {
          return Error(op, absl::StrCat("size, got ", scratch->size, ", expected 0 to 2^40"));
        }
      }
      SVOD_RETURN_IF_ERROR(CheckDimensions(op, sources));
      break;
    case OpClass::kMemory:
      if (op == Op::kIndex) SVOD_RETURN_IF_ERROR(CheckIndex(sources));
      if (op == Op::kLoad) {
        SVOD_RETURN_IF_ERROR(
            CheckAccess(op, sources[0], dtype, std::get<AlignmentArgument>(argument).bytes));
        if (std::get<AlignmentArgument>(argument).is_stream) {
          return Error(op, "stream, expected a store: loads have none");
        }
        if (count == 2 && sources[1]->dtype() != dtype) {
          return Error(op, absl::StrCat("alt, got ", ToString(sources[1]->dtype()), ", expected ",
                                        ToString(dtype)));
        }
      }
      if (op == Op::kStore) {
        SVOD_RETURN_IF_ERROR(CheckAccess(op, sources[0], sources[1]->dtype(),
                                         std::get<AlignmentArgument>(argument).bytes));
      }
      if (op == Op::kAfter && !IsBufferState(sources[0])) {
        return Error(op, absl::StrCat("source 0, got ", InfoOf(sources[0]->op()).text,
                                      ", expected a buffer"));
      }
      break;
    case OpClass::kConversion:
      SVOD_RETURN_IF_ERROR(CheckConversion(op, dtype, sources[0]->dtype()));
      break;
    case OpClass::kVector:
      if (op == Op::kSplat && (sources[0]->dtype() != dtype.element() || dtype.is_void())) {
        return Error(op, absl::StrCat("element, got ", ToString(sources[0]->dtype()), ", expected ",
                                      ToString(dtype.element())));
      }
      break;
    case OpClass::kControl:
      SVOD_RETURN_IF_ERROR(CheckControl(op, sources, argument));
      break;
    case OpClass::kTensor:
      SVOD_RETURN_IF_ERROR(CheckTensorOp(op, dtype, sources, argument));
      break;
    case OpClass::kPlan:
      SVOD_RETURN_IF_ERROR(CheckPlan(op, sources));
      break;
    case OpClass::kValue:
      if (op == Op::kBind && (sources[0]->op() != Op::kDefineVar || !IsConst(sources[1]) ||
                              sources[1]->dtype() != Scalar::kIndex)) {
        return Error(op, "operands, expected a define_var and an index constant");
      }
      if (op == Op::kDefineVar) {
        const auto& variable = std::get<VariableArgument>(argument);
        if (variable.name.empty() || variable.min > variable.max) {
          return Error(op, absl::StrCat("bounds of '", variable.name, "', got [", variable.min,
                                        ", ", variable.max, "], expected min <= max and a name"));
        }
      }
      if (op == Op::kCoreId && sources[0]->dtype() != Scalar::kIndex) {
        return Error(op, "launch size, expected index");
      }
      break;
    case OpClass::kUnary:
    case OpClass::kBinary:
    case OpClass::kTernary:
    case OpClass::kDot:
      break;
  }
  return InferDType(op, dtype, sources, argument);
}

}  // namespace svod
