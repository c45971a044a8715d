// EvaluateGraph. Values are immutable and shared. The memory below a PARAM or BUFFER is a storage;
// a state of it is a version: what an effect (ASSIGN, CALL, COPY) leaves behind in place of the
// version that its target names. Effects are kept as deltas, so that AFTER can join several of one
// state.
#include "ir/evaluate_graph.h"

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/evaluate.h"
#include "ir/evaluate_tensor.h"
#include "ir/ranges.h"
#include "ir/shape.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

bool IsState(const UOp* node) {
  Op op = node->op();
  return op == Op::kParam || op == Op::kBuffer || op == Op::kBufferView || op == Op::kAfter;
}

// The nodes that a value depends on; what is inside called kernels and BINDs is no part of it.
absl::Span<const UOp* const> OperandsOf(const UOp* node) {
  if (node->op() == Op::kCall) return node->sources().subspan(1);
  if (node->op() == Op::kBind) return {};
  return node->sources();
}

// Sources before users, iteratively.
std::vector<const UOp*> OrderOf(const UOp* root) {
  std::vector<const UOp*> order;
  absl::flat_hash_set<const UOp*> seen = {root};
  std::vector<std::pair<const UOp*, size_t>> stack = {{root, 0}};
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    absl::Span<const UOp* const> operands = OperandsOf(node);
    if (next == operands.size()) {
      order.push_back(node);
      stack.pop_back();
      continue;
    }
    const UOp* operand = operands[next++];
    if (seen.insert(operand).second) stack.emplace_back(operand, 0);
  }
  return order;
}

// What one effect writes to a storage: the elements of `values` at `positions` (in elements, from
// byte `offset` of the storage on), or side by side where there are no positions.
struct Delta {
  const UOp* effect;
  size_t storage;
  size_t version;  // that it leaves behind
  size_t parent;   // the version that it replaces
  int64_t offset;
  SharedTensor values;
  std::shared_ptr<Bytes> positions;
};

struct Version {
  std::vector<size_t> parents;  // smaller numbers; one, or those that an AFTER joins
  std::optional<size_t> delta;  // none where nothing but parents is joined
  size_t last = 0;              // the newest version with a delta that this one knows; 0: none
};

// A node's value. Of states `tensor` is the storage's bytes from the state's part on.
struct Value {
  SharedTensor tensor;
  size_t storage = 0, version = 0;
};

class GraphEvaluator {
 public:
  GraphEvaluator(const Function& graph, std::vector<TensorValue>& params,
                 const EvaluateGraphOptions& options)
      : graph_(graph), params_(params), options_(options), maker_(options.max_elements) {}

  absl::StatusOr<std::vector<TensorValue>> Run();

 private:
  absl::Status Evaluate(const UOp* node);
  absl::Status EvaluateNode(const UOp* node);
  absl::Status EvaluateScalarSource(const UOp* node);
  absl::Status EvaluateBuffer(const UOp* node);
  absl::Status EvaluateView(const UOp* node);
  absl::Status EvaluateAfter(const UOp* node);
  absl::Status EvaluateAssign(const UOp* node);
  absl::Status EvaluateCopy(const UOp* node);
  absl::Status EvaluateCall(const UOp* node);
  absl::Status CheckConflicts();
  absl::StatusOr<std::vector<int64_t>> Numbers(absl::Span<const UOp* const> nodes);
  absl::StatusOr<const Value*> Find(const UOp* node) const;
  void Release(const UOp* node);
  void AddDelta(const UOp* effect, const Value& target, SharedTensor values,
                std::shared_ptr<Bytes> positions);
  static void Apply(const Delta& delta, std::byte* storage);
  // The versions with deltas that `heads` know and `base`, if there is one, does not, in order.
  std::set<size_t> Missing(std::optional<size_t> base, absl::Span<const size_t> heads) const;
  // What a storage held at first.
  void Restart(const UOp* storage, Bytes& bytes) const;
  TensorValue ToTensorValue(const SharedTensor& tensor) const;

  const Function& graph_;
  std::vector<TensorValue>& params_;
  const EvaluateGraphOptions& options_;
  TensorMaker maker_;
  absl::flat_hash_map<const UOp*, Value> values_;
  absl::flat_hash_map<const UOp*, int64_t> numbers_;  // of index expressions
  absl::flat_hash_map<const UOp*, int64_t> uses_;     // still to come
  std::vector<Version> versions_;
  std::vector<Delta> deltas_;
  absl::flat_hash_map<const UOp*, std::vector<size_t>> deltas_of_;  // effect -> deltas
  std::vector<const UOp*> storages_;
  absl::flat_hash_set<int64_t> slots_;
};

// --- Deltas and versions ------------------------------------------------------------------------

void GraphEvaluator::AddDelta(const UOp* effect, const Value& target, SharedTensor values,
                              std::shared_ptr<Bytes> positions) {
  deltas_of_[effect].push_back(deltas_.size());
  versions_.push_back({{target.version}, deltas_.size(), versions_.size()});
  deltas_.push_back({effect, target.storage, versions_.size() - 1, target.version,
                     target.tensor.offset, std::move(values), std::move(positions)});
}

void GraphEvaluator::Apply(const Delta& delta, std::byte* storage) {
  std::byte* to = storage + delta.offset;
  int64_t size = delta.values.dtype.size_bytes(), count = delta.values.num_elements();
  if (delta.positions == nullptr) {
    std::copy_n(delta.values.data(), count * size, to);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    auto at = static_cast<int64_t>(ReadElement(delta.positions->data(), Scalar::kIndex, i));
    WriteElement(to, delta.values.dtype, at,
                 ReadElement(delta.values.data(), delta.values.dtype, i));
  }
}

void GraphEvaluator::Restart(const UOp* storage, Bytes& bytes) const {
  if (storage->op() == Op::kBuffer) {
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
  } else {
    // Given parameters change at the end only.
    bytes = params_[static_cast<size_t>(storage->arg<ParamArgument>().slot)].bytes;
  }
}

// Walks down from the newest version to where everything left is known to the base too, as one
// looks for the point where two histories part.
std::set<size_t> GraphEvaluator::Missing(std::optional<size_t> base,
                                         absl::Span<const size_t> heads) const {
  std::map<size_t, bool, std::greater<>> open;  // version -> the base knows it
  if (base.has_value()) open[*base] = true;
  size_t unknown = 0;
  auto visit = [&](size_t version, bool known) {
    auto [it, is_new] = open.try_emplace(version, known);
    if (is_new) unknown += known ? 0 : 1;
    if (!is_new && known && !it->second) {
      it->second = true;
      --unknown;
    }
  };
  for (size_t head : heads) visit(head, false);
  std::set<size_t> missing;
  while (unknown > 0) {
    auto [version, known] = *open.begin();
    open.erase(open.begin());
    if (!known) {
      --unknown;
      if (versions_[version].delta.has_value()) missing.insert(version);
    }
    for (size_t parent : versions_[version].parents) visit(parent, known);
  }
  return missing;
}

// Two assignments to one state must be apart: nothing says which comes first.
absl::Status GraphEvaluator::CheckConflicts() {
  std::map<size_t, std::vector<const Delta*>> by_parent;
  for (const Delta& delta : deltas_) {
    if (delta.effect->op() == Op::kAssign) by_parent[delta.parent].push_back(&delta);
  }
  for (const auto& [parent, deltas] : by_parent) {
    if (deltas.size() < 2) continue;
    absl::flat_hash_set<int64_t> written;  // bytes of the storage
    for (const Delta* delta : deltas) {
      int64_t size = delta->values.dtype.size_bytes(), count = delta->values.num_elements();
      for (int64_t i = 0; i < count; ++i) {
        int64_t at = i;
        if (delta->positions != nullptr) {
          at = static_cast<int64_t>(ReadElement(delta->positions->data(), Scalar::kIndex, i));
        }
        for (int64_t byte = 0; byte < size; ++byte) {
          if (written.insert(delta->offset + at * size + byte).second) continue;
          return absl::InvalidArgumentError(absl::StrCat(
              graph_.Describe(delta->effect),
              ": target, got two assignments to one state of a buffer that meet, expected them to "
              "be apart"));
        }
      }
    }
  }
  return absl::OkStatus();
}

// --- Nodes --------------------------------------------------------------------------------------

absl::StatusOr<const Value*> GraphEvaluator::Find(const UOp* node) const {
  auto it = values_.find(node);
  if (it != values_.end()) return &it->second;
  return absl::InvalidArgumentError(
      absl::StrCat("operand, got ", InfoOf(node->op()).text, ", expected a tensor"));
}

// The value of a dimension or an offset.
absl::StatusOr<std::vector<int64_t>> GraphEvaluator::Numbers(absl::Span<const UOp* const> nodes) {
  std::vector<int64_t> numbers;
  for (const UOp* node : nodes) {
    auto it = numbers_.find(node);
    if (it == numbers_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension, got ", InfoOf(node->op()).text,
                       ", expected an index expression of constants and variables"));
    }
    numbers.push_back(it->second);
  }
  return numbers;
}

absl::Status GraphEvaluator::EvaluateScalarSource(const UOp* node) {
  uint64_t bits = 0;
  if (node->op() == Op::kConst) {
    if (node->dtype().is_vector()) {
      return absl::InvalidArgumentError(
          absl::StrCat("dtype, got ", ToString(node->dtype()), ", expected a scalar's"));
    }
    bits = node->arg<ConstArgument>().bits;
  } else {
    SVOD_ASSIGN_OR_RETURN(int64_t value, EvaluateIndex(node, options_.variables));
    bits = static_cast<uint64_t>(value);
  }
  SVOD_ASSIGN_OR_RETURN(SharedTensor tensor, maker_.Make(node->op(), node->dtype(), {}));
  WriteElement(tensor.bytes->data(), tensor.dtype, 0, bits);
  values_[node] = {std::move(tensor)};
  return absl::OkStatus();
}

absl::Status GraphEvaluator::EvaluateBuffer(const UOp* node) {
  SVOD_ASSIGN_OR_RETURN(std::vector<int64_t> shape, Numbers(node->sources()));
  Value value;
  if (node->op() == Op::kBuffer) {
    SVOD_ASSIGN_OR_RETURN(value.tensor, maker_.Make(Op::kBuffer, node->dtype(), std::move(shape)));
  } else {
    const auto& argument = node->arg<ParamArgument>();
    auto slot = static_cast<size_t>(argument.slot);
    if (slot >= params_.size()) {
      return absl::InvalidArgumentError(absl::StrCat("number of parameters, got ", params_.size(),
                                                     ", expected more than ", slot));
    }
    if (!slots_.insert(argument.slot).second) {
      return absl::InvalidArgumentError(absl::StrCat("parameter ", slot, ", got two of that slot"));
    }
    const TensorValue& given = params_[slot];
    auto bytes = static_cast<int64_t>(given.bytes.size());
    int64_t size = node->dtype().size_bytes();
    if (given.dtype != node->dtype() || given.shape != shape || bytes % size != 0 ||
        bytes / size != CountElements(shape)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "parameter ", slot, " ('", argument.name, "'), got ", ToString(given.dtype), "[",
          absl::StrJoin(given.shape, ", "), "] of ", given.bytes.size(), " bytes, expected ",
          ToString(node->dtype()), "[", absl::StrJoin(shape, ", "), "]"));
    }
    SVOD_ASSIGN_OR_RETURN(value.tensor, maker_.Make(Op::kParam, node->dtype(), std::move(shape)));
    std::copy(given.bytes.begin(), given.bytes.end(), value.tensor.bytes->begin());
  }
  value.storage = storages_.size();
  storages_.push_back(node);
  value.version = versions_.size();
  versions_.push_back({});
  values_[node] = std::move(value);
  return absl::OkStatus();
}

absl::Status GraphEvaluator::EvaluateView(const UOp* node) {
  SVOD_ASSIGN_OR_RETURN(const Value* base, Find(node->source(0)));
  Value value = *base;
  SVOD_ASSIGN_OR_RETURN(value.tensor.shape, Numbers(DimensionsOf(node)));
  value.tensor.dtype = node->dtype();
  int64_t begin = node->arg<ViewArgument>().byte_offset;
  int64_t have = base->tensor.size_bytes(), elements = value.tensor.num_elements();
  const std::vector<int64_t>& shape = value.tensor.shape;
  bool is_negative = std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 0; });
  if (is_negative || begin < 0 || begin > have ||
      elements > (have - begin) / node->dtype().size_bytes()) {
    return absl::InvalidArgumentError(absl::StrCat("end, got byte ", begin, " and ", elements,
                                                   " of ", ToString(node->dtype()),
                                                   ", expected at most the ", have, " bytes"));
  }
  value.tensor.offset += begin;
  values_[node] = std::move(value);
  return absl::OkStatus();
}

absl::Status GraphEvaluator::EvaluateAfter(const UOp* node) {
  SVOD_ASSIGN_OR_RETURN(const Value* found, Find(node->source(0)));
  Value value = *found;
  std::vector<size_t> heads;
  for (const UOp* source : node->sources().subspan(1)) {
    if (IsState(source)) {
      SVOD_ASSIGN_OR_RETURN(const Value* other, Find(source));
      if (other->storage == value.storage) heads.push_back(other->version);
    }
    auto it = deltas_of_.find(source);
    if (it == deltas_of_.end()) continue;
    for (size_t i : it->second) {
      if (deltas_[i].storage == value.storage) heads.push_back(deltas_[i].version);
    }
  }
  std::set<size_t> missing = Missing(value.version, heads);
  if (!missing.empty()) {
    // The last reader of the old state hands its memory on.
    if (uses_[node->source(0)] == 1) values_.erase(node->source(0));
    if (value.tensor.bytes.use_count() > 1) {
      value.tensor.bytes = std::make_shared<Bytes>(*value.tensor.bytes);
    }
    if (*missing.begin() < versions_[value.version].last) {
      // Some of it was overwritten since: memory sees all writes in their order.
      Restart(storages_[value.storage], *value.tensor.bytes);
      std::set<size_t> known = Missing(std::nullopt, {value.version});
      missing.insert(known.begin(), known.end());
    }
    for (size_t version : missing) {
      Apply(deltas_[*versions_[version].delta], value.tensor.bytes->data());
    }
    if (heads.size() > 1 || versions_[heads[0]].parents[0] != value.version) {
      heads.push_back(value.version);
      versions_.push_back({heads, std::nullopt, *missing.rbegin()});
      value.version = versions_.size() - 1;
    } else {
      value.version = heads[0];
    }
  }
  values_[node] = std::move(value);
  return absl::OkStatus();
}

absl::Status GraphEvaluator::EvaluateAssign(const UOp* node) {
  const UOp* state = AssignedState(node);
  if (!IsState(state)) {
    return absl::InvalidArgumentError(
        absl::StrCat("target, got ", InfoOf(state->op()).text,
                     ", expected a buffer, or reshape, permute, shrink and flip of one"));
  }
  SVOD_ASSIGN_OR_RETURN(const Value* target, Find(state));
  SVOD_ASSIGN_OR_RETURN(const Value* part, Find(node->source(0)));
  SVOD_ASSIGN_OR_RETURN(const Value* given, Find(node->source(1)));
  SharedTensor values = given->tensor;
  if (values.shape != part->tensor.shape) {
    SVOD_ASSIGN_OR_RETURN(values, BroadcastTo(Op::kAssign, values, part->tensor.shape, maker_));
  }
  std::shared_ptr<Bytes> positions;
  if (state != node->source(0)) {
    // Where the elements of a part lie is what the same movement makes of the buffer's positions.
    std::vector<const UOp*> movement;
    for (const UOp* at = node->source(0); at != state; at = at->source(0)) movement.push_back(at);
    SVOD_ASSIGN_OR_RETURN(SharedTensor places,
                          maker_.Make(Op::kAssign, Scalar::kIndex, target->tensor.shape));
    for (int64_t i = 0; i < places.num_elements(); ++i) {
      WriteElement(places.bytes->data(), Scalar::kIndex, i, static_cast<uint64_t>(i));
    }
    for (size_t i = movement.size(); i-- > 0;) {
      SVOD_ASSIGN_OR_RETURN(std::vector<int64_t> numbers,
                            Numbers(movement[i]->sources().subspan(1)));
      SVOD_ASSIGN_OR_RETURN(places, EvaluateTensorOp(movement[i], {places}, numbers, maker_));
    }
    positions = places.bytes;
  }
  AddDelta(node, *target, std::move(values), std::move(positions));
  return absl::OkStatus();
}

absl::Status GraphEvaluator::EvaluateCopy(const UOp* node) {
  SVOD_ASSIGN_OR_RETURN(const Value* to, Find(node->source(0)));
  SVOD_ASSIGN_OR_RETURN(const Value* from, Find(node->source(1)));
  if (!IsState(node->source(0)) || from->tensor.size_bytes() != to->tensor.size_bytes()) {
    return absl::InvalidArgumentError(absl::StrCat("size, got ", from->tensor.size_bytes(),
                                                   " bytes for ", to->tensor.size_bytes(),
                                                   ", expected equal sizes of buffers"));
  }
  AddDelta(node, *to, from->tensor, nullptr);
  return absl::OkStatus();
}

absl::Status GraphEvaluator::EvaluateCall(const UOp* node) {
  const UOp* kernel = node->source(0);
  SVOD_ASSIGN_OR_RETURN(std::vector<const UOp*> params, ParamsOf(kernel));
  std::vector<SharedTensor> operands;
  std::vector<const Value*> states;
  std::vector<std::pair<std::string, int64_t>> variables;
  for (const UOp* source : node->sources().subspan(1)) {
    if (source->op() == Op::kBind) {
      variables.emplace_back(source->source(0)->arg<VariableArgument>().name,
                             ConstInt(source->source(1)));
      continue;
    }
    SVOD_ASSIGN_OR_RETURN(const Value* state, Find(source));
    states.push_back(state);
    // The kernel has memory of its own: states that others read stay as they are.
    SVOD_ASSIGN_OR_RETURN(SharedTensor copy,
                          maker_.Make(Op::kCall, state->tensor.dtype, state->tensor.shape));
    std::copy_n(state->tensor.data(), copy.size_bytes(), copy.bytes->data());
    operands.push_back(std::move(copy));
  }
  if (operands.size() != params.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("number of buffers, got ", operands.size(), ", expected ", params.size()));
  }
  // Binds come first and so win.
  variables.insert(variables.end(), options_.variables.begin(), options_.variables.end());
  std::vector<absl::Span<std::byte>> memory;
  for (SharedTensor& operand : operands) memory.push_back(absl::MakeSpan(*operand.bytes));
  EvaluateOptions options;
  options.variables = variables;
  SVOD_RETURN_IF_ERROR(svod::Evaluate(kernel, memory, options));
  for (size_t i = 0; i < operands.size(); ++i) {
    if (params[i]->arg<ParamArgument>().access == Access::kIn) continue;
    AddDelta(node, *states[i], std::move(operands[i]), nullptr);
  }
  return absl::OkStatus();
}

absl::Status GraphEvaluator::EvaluateNode(const UOp* node) {
  Op op = node->op();
  if (op == Op::kConst || op == Op::kDefineVar || op == Op::kBind) {
    SVOD_RETURN_IF_ERROR(EvaluateScalarSource(node));
  } else if (op == Op::kParam || op == Op::kBuffer) {
    return EvaluateBuffer(node);
  } else if (op == Op::kBufferView) {
    return EvaluateView(node);
  } else if (op == Op::kAfter) {
    return EvaluateAfter(node);
  } else if (op == Op::kAssign) {
    return EvaluateAssign(node);
  } else if (op == Op::kCopy) {
    return EvaluateCopy(node);
  } else if (op == Op::kCall) {
    return EvaluateCall(node);
  } else if (op == Op::kCustomFunction) {
    return absl::UnimplementedError(absl::StrCat(
        "custom function '", node->arg<CustomArgument>().kind, "' has no interpreter"));
  } else if (op != Op::kSink) {
    bool is_tensor_op = InfoOf(op).op_class == OpClass::kTensor;
    if (!(is_tensor_op || IsElementwise(op)) || node->dtype().is_vector()) {
      return absl::InvalidArgumentError(absl::StrCat("op, got ", InfoOf(op).text, " of ",
                                                     ToString(node->dtype()),
                                                     ", expected one of a graph"));
    }
    auto num_tensors = static_cast<size_t>(NumTensorSources(node));
    std::vector<SharedTensor> tensors;
    for (const UOp* source : node->sources().first(num_tensors)) {
      SVOD_ASSIGN_OR_RETURN(const Value* value, Find(source));
      tensors.push_back(value->tensor);
    }
    SVOD_ASSIGN_OR_RETURN(std::vector<int64_t> numbers,
                          Numbers(node->sources().subspan(num_tensors)));
    SVOD_ASSIGN_OR_RETURN(SharedTensor tensor, EvaluateTensorOp(node, tensors, numbers, maker_));
    values_[node] = {std::move(tensor)};
  }
  // Index expressions may be dimensions.
  auto it = values_.find(node);
  if (it != values_.end() && node->dtype() == Scalar::kIndex && it->second.tensor.shape.empty() &&
      (IsElementwise(op) || InfoOf(op).op_class == OpClass::kValue)) {
    const SharedTensor& number = it->second.tensor;
    numbers_[node] = static_cast<int64_t>(ReadElement(number.data(), number.dtype, 0));
  }
  return absl::OkStatus();
}

void GraphEvaluator::Release(const UOp* node) {
  if (--uses_[node] == 0) values_.erase(node);
}

absl::Status GraphEvaluator::Evaluate(const UOp* node) {
  absl::Status status = EvaluateNode(node);
  if (!status.ok()) return Annotate(status, absl::StrCat("evaluate: ", graph_.Describe(node)));
  if (node == graph_.root) return absl::OkStatus();
  for (const UOp* operand : OperandsOf(node)) Release(operand);
  if (node->op() == Op::kAssign) Release(AssignedState(node));
  return absl::OkStatus();
}

TensorValue GraphEvaluator::ToTensorValue(const SharedTensor& tensor) const {
  TensorValue value{tensor.dtype, tensor.shape, {}};
  value.bytes.assign(tensor.data(), tensor.data() + tensor.size_bytes());
  return value;
}

absl::StatusOr<std::vector<TensorValue>> GraphEvaluator::Run() {
  const UOp* root = graph_.root;
  if (root->op() != Op::kSink || graph_.is_kernel()) {
    return absl::InvalidArgumentError("evaluate: function, got a kernel, expected a graph");
  }
  std::vector<const UOp*> order = OrderOf(root);
  for (const UOp* node : order) {
    for (const UOp* operand : OperandsOf(node)) ++uses_[operand];
    if (node->op() == Op::kAssign) ++uses_[AssignedState(node)];
  }
  for (const UOp* node : order) SVOD_RETURN_IF_ERROR(Evaluate(node));
  SVOD_RETURN_IF_ERROR(CheckConflicts());

  std::vector<TensorValue> results;
  for (const UOp* result : root->sources()) {
    if (IsEffect(result->op())) continue;
    SVOD_ASSIGN_OR_RETURN(const Value* value, Find(result));
    results.push_back(ToTensorValue(value->tensor));
  }
  // Nothing has failed, so the parameters may change: memory has seen all effects, in order.
  for (const Delta& delta : deltas_) {
    const UOp* storage = storages_[delta.storage];
    if (storage->op() != Op::kParam) continue;
    Apply(delta, params_[static_cast<size_t>(storage->arg<ParamArgument>().slot)].bytes.data());
  }
  return results;
}

}  // namespace

int64_t TensorValue::num_elements() const { return CountElements(shape); }
uint64_t TensorValue::BitsAt(int64_t i) const { return ReadElement(bytes.data(), dtype, i); }
void TensorValue::SetBitsAt(int64_t i, uint64_t bits) {
  WriteElement(bytes.data(), dtype, i, bits);
}

absl::StatusOr<std::vector<TensorValue>> EvaluateGraph(const Function& graph,
                                                       std::vector<TensorValue>& params,
                                                       const EvaluateGraphOptions& options) {
  // What fits max_elements may still be more than the process may have.
  try {
    return GraphEvaluator(graph, params, options).Run();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("evaluate: out of memory");
  }
}

}  // namespace svod
