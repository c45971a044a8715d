// Rows of the operator table: subgraphs that are chosen and repeated.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/shaping.h"
#include "tools/onnx/graph_importer.h"
#include "tools/onnx/onnx_operators.h"

namespace svod {
namespace {

// Most times that a body is unrolled.
constexpr int64_t kMaxTrips = 4096;

bool SameShape(Dims& dims, ShapeSpan a, ShapeSpan b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) same = dims.Same(a[i], b[i]);
  return same;
}

OnnxResults ImportIf(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const onnx::GraphProto* branches[] = {node.Graph("then_branch"), node.Graph("else_branch")};
  if (!node.ok()) return {};
  GraphImporter& importer = node.importer();
  if (node.IsKnown(0)) {
    std::optional<std::vector<int64_t>> condition = node.KnownInts(0);
    if (!condition.has_value() || condition->size() != 1) {
      return node.Fail("condition, expected one bool");
    }
    return importer.Subgraph(*branches[(*condition)[0] != 0 ? 0 : 1], {}).value_or(OnnxResults());
  }
  // A flag or a setting makes a plan for each of its values. Graphs have no effects: on what is
  // worked out from data, both branches are worked out and one is taken.
  if (importer.NoteSettings(node.input(0))) return {};
  std::optional<std::vector<const UOp*>> on_true = importer.Subgraph(*branches[0], {});
  std::optional<std::vector<const UOp*>> on_false = importer.Subgraph(*branches[1], {});
  if (!on_true.has_value() || !on_false.has_value()) {
    importer.NoteNeeded(node.input(0));  // the branch that is not taken may not fit the inputs
    return {};
  }
  if (on_true->size() != on_false->size()) return node.Fail("branches, expected as many outputs");
  const UOp* condition = builder.Reshape(node.input(0), ShapeSpan{});
  OnnxResults results;
  for (size_t i = 0; i < on_true->size(); ++i) {
    const UOp *x = (*on_true)[i], *y = (*on_false)[i];
    ShapeSpan a = builder.ShapeOf(x), b = builder.ShapeOf(y);
    if (!SameShape(builder.dims(), a, b)) {
      importer.NoteNeeded(node.input(0));
      return node.FailUnsupported(
          absl::StrCat("output ", i, " of shape ", ShapeToString(a), " or ", ShapeToString(b),
                       " by a condition that is not known when the model is loaded"));
    }
    results.push_back(builder.Where(condition, x, y));
  }
  return results;
}

// Loop(trip count?, condition?, carried...) gives carried..., scanned...; the body takes the
// iteration's number, the condition and what is carried, and gives the condition, what is carried
// and what is scanned.
class UnrolledLoop {
 public:
  explicit UnrolledLoop(OnnxNode& node) : node_(node), builder_(node.builder()) {}

  OnnxResults Run() {
    body_ = node_.Graph("body");
    if (!node_.ok() || !ReadTrips() || !ReadCondition()) return {};
    for (size_t i = 2; i < node_.num_inputs(); ++i) carried_.push_back(node_.input(i));
    if (node_.num_outputs() < carried_.size()) {
      return node_.Fail("outputs, expected all that is carried");
    }
    scanned_.resize(node_.num_outputs() - carried_.size());
    for (int64_t i = 0; i < trips_ && goes_on_; ++i) {
      if (i == kMaxTrips) return FailTrips();
      if (!Iterate(i)) return {};
    }
    OnnxResults results = carried_;
    for (const std::vector<const UOp*>& rows : scanned_) {
      if (is_active_ != nullptr) {
        return node_.FailUnsupported("a scanned output whose length depends on data");
      }
      if (rows.empty()) return node_.FailUnsupported("a loop that scans and never runs");
      results.push_back(StackTensors(builder_, rows, 0));
    }
    return results;
  }

 private:
  bool ReadTrips() {
    if (!node_.has_input(0)) return true;
    std::optional<std::vector<int64_t>> count = node_.KnownInts(0);
    if (!count.has_value()) return false;
    if (count->size() == 1) {
      trips_ = (*count)[0];
      return true;
    }
    node_.Fail("trip count, expected one number");
    return false;
  }

  bool ReadCondition() {
    if (!node_.has_input(1)) return true;
    if (!node_.IsKnown(1)) {
      if (node_.importer().NoteSettings(node_.input(1))) return false;
      return Depend(node_.input(1));
    }
    std::optional<std::vector<int64_t>> condition = node_.KnownInts(1);
    if (!condition.has_value()) return false;
    goes_on_ = condition->empty() || (*condition)[0] != 0;
    return true;
  }

  // From here on an iteration counts only where `condition`, which data decides, and all those
  // before it were true: the others are worked out as well, and change nothing.
  bool Depend(const UOp* condition) {
    if (trips_ > kMaxTrips) {
      node_.importer().NoteNeeded(condition);
      node_.FailUnsupported(absl::StrCat(
          "a condition that is worked out from what the model is run with, without a trip count of "
          "at most ",
          kMaxTrips));
      return false;
    }
    condition = builder_.Reshape(condition, ShapeSpan{});
    is_active_ =
        is_active_ == nullptr ? condition : builder_.Make(Op::kAnd, {is_active_, condition});
    return true;
  }

  bool Iterate(int64_t i) {
    const UOp* truth = builder_.context().Bool(true);
    std::vector<const UOp*> inputs = {builder_.ConstInt(Scalar::kI64, i), truth};
    inputs.insert(inputs.end(), carried_.begin(), carried_.end());
    std::optional<std::vector<const UOp*>> outputs = node_.importer().Subgraph(*body_, inputs);
    if (!outputs.has_value()) return false;
    size_t expected = 1 + carried_.size() + scanned_.size();
    if (outputs->size() != expected) {
      node_.Fail(absl::StrCat("body: outputs, got ", outputs->size(), ", expected ", expected));
      return false;
    }
    for (size_t k = 0; k < scanned_.size(); ++k) {
      scanned_[k].push_back((*outputs)[1 + carried_.size() + k]);
    }
    if (!Carry(absl::MakeConstSpan(*outputs).subspan(1, carried_.size()))) return false;
    const UOp* condition = (*outputs)[0];
    if (condition == truth && trips_ > kMaxTrips) {  // nothing will ever end it
      FailTrips();
      return false;
    }
    const KnownValue* known = node_.importer().known().Of(condition);
    if (known == nullptr || !known->constant.has_value()) return Depend(condition);
    goes_on_ = ReadElement(known->constant->data(), known->constant->dtype, 0) != 0;
    return true;
  }

  bool Carry(absl::Span<const UOp* const> next) {
    for (size_t k = 0; k < carried_.size(); ++k) {
      if (is_active_ == nullptr) {
        carried_[k] = next[k];
        continue;
      }
      ShapeSpan a = builder_.ShapeOf(carried_[k]), b = builder_.ShapeOf(next[k]);
      if (!SameShape(builder_.dims(), a, b)) {
        node_.FailUnsupported(absl::StrCat("a carried value ", k, " of shape ", ShapeToString(a),
                                           ", then ", ShapeToString(b),
                                           ", in a loop that data ends"));
        return false;
      }
      // It is read by several iterations, which would each work it out anew.
      carried_[k] = builder_.Contiguous(builder_.Where(is_active_, next[k], carried_[k]));
    }
    return true;
  }

  OnnxResults FailTrips() {
    return node_.FailUnsupported(absl::StrCat("more than ", kMaxTrips, " iterations"));
  }

  OnnxNode& node_;
  TensorBuilder& builder_;
  const onnx::GraphProto* body_ = nullptr;
  int64_t trips_ = std::numeric_limits<int64_t>::max();
  bool goes_on_ = true;             // as far as is known now
  const UOp* is_active_ = nullptr;  // bool []: whether data lets the iteration count; null: yes
  std::vector<const UOp*> carried_;
  std::vector<std::vector<const UOp*>> scanned_;
};

OnnxResults ImportLoop(OnnxNode& node) { return UnrolledLoop(node).Run(); }

// Element i of x along an axis, without the axis.
const UOp* ElementAt(TensorBuilder& builder, const UOp* x, int64_t axis, int64_t i) {
  const UOp* part = builder.ShrinkAxis(x, axis, builder.Index(i), builder.Index(1));
  return builder.Squeeze(part, axis);
}

// Scan(state..., scanned...) gives state..., scanned....
OnnxResults ImportScan(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const onnx::GraphProto* body = node.Graph("body");
  node.Require("num_scan_inputs");
  auto num_scans = static_cast<size_t>(node.Int("num_scan_inputs", 1));
  bool is_batched = node.version() < 9;  // opset 8: (lengths?, state..., scanned...), [batch, ...]
  std::vector<int64_t> in_axes = node.Ints("scan_input_axes");
  std::vector<int64_t> out_axes = node.Ints("scan_output_axes");
  std::vector<int64_t> backward = node.Ints(is_batched ? "directions" : "scan_input_directions");
  std::vector<int64_t> out_backward = node.Ints("scan_output_directions");
  if (!node.ok()) return {};
  std::vector<const UOp*> inputs = node.inputs();
  if (is_batched) {
    if (node.has_input(0)) return node.FailUnsupported("sequence_lens");
    if (!inputs.empty()) inputs.erase(inputs.begin());
  }
  if (num_scans < 1 || inputs.size() < num_scans) {
    return node.Fail(
        absl::StrCat("num_scan_inputs, got ", num_scans, ", expected 1 to ", inputs.size()));
  }
  size_t num_states = inputs.size() - num_scans;
  if (node.num_outputs() < num_states) return node.Fail("outputs, expected one for each state");
  size_t num_scanned = node.num_outputs() - num_states;
  auto at = [](const std::vector<int64_t>& values, size_t i) {
    return i < values.size() ? values[i] : 0;
  };
  int64_t batches = 1;
  if (is_batched) batches = builder.ConstDim(inputs[0], 0, "scan");
  if (batches < 1 || batches > kMaxTrips) return node.FailUnsupported("a batch of this size");
  std::vector<std::vector<const UOp*>> final_states(num_states), final_scans(num_scanned);
  for (int64_t batch = 0; batch < batches; ++batch) {
    std::vector<const UOp*> now = inputs;
    if (is_batched) {
      for (const UOp*& x : now) x = ElementAt(builder, x, 0, batch);
    }
    std::vector<const UOp*> states(now.begin(), now.begin() + static_cast<long>(num_states));
    std::vector<std::vector<const UOp*>> scanned(num_scanned);
    int64_t trips = builder.ConstDim(now[num_states], at(in_axes, 0), "scan");
    if (trips < 0) return {};
    if (trips > kMaxTrips) return node.FailUnsupported("a scan of more than 4096 steps");
    for (int64_t i = 0; i < trips; ++i) {
      std::vector<const UOp*> step = states;
      for (size_t k = 0; k < num_scans; ++k) {
        int64_t place = at(backward, k) != 0 ? trips - 1 - i : i;
        step.push_back(ElementAt(builder, now[num_states + k], at(in_axes, k), place));
      }
      if (!node.ok()) return {};
      std::optional<std::vector<const UOp*>> outputs = node.importer().Subgraph(*body, step);
      if (!outputs.has_value()) return {};
      if (outputs->size() != num_states + num_scanned) {
        return node.Fail(absl::StrCat("body: outputs, got ", outputs->size(), ", expected ",
                                      num_states + num_scanned));
      }
      states.assign(outputs->begin(), outputs->begin() + static_cast<long>(num_states));
      for (size_t k = 0; k < num_scanned; ++k) scanned[k].push_back((*outputs)[num_states + k]);
    }
    for (size_t k = 0; k < num_states; ++k) final_states[k].push_back(states[k]);
    for (size_t k = 0; k < num_scanned; ++k) {
      if (scanned[k].empty()) return node.FailUnsupported("a scan over nothing");
      if (at(out_backward, k) != 0) std::reverse(scanned[k].begin(), scanned[k].end());
      final_scans[k].push_back(StackTensors(builder, scanned[k], at(out_axes, k)));
    }
  }
  OnnxResults results;
  for (const auto* values : {&final_states, &final_scans}) {
    for (const std::vector<const UOp*>& value : *values) {
      results.push_back(is_batched ? StackTensors(builder, value, 0) : value[0]);
    }
  }
  return results;
}

}  // namespace

OnnxRows OnnxControlRows() {
  return {
      {"If",
       {1, 11, 13, 16, 19, 21},
       1,
       1,
       ImportIf,
       "",
       "a condition that is not known when the model is loaded chooses among equal shapes"},
      {"Loop",
       {1, 11, 13, 16, 19, 21},
       0,
       -1,
       ImportLoop,
       "",
       "unrolled: the number of iterations, or a bound of it, is known when the model is loaded, "
       "at "
       "most 4096; where data ends the loop earlier nothing is scanned"},
      {"Scan", {8, 9, 11, 16, 19, 21}, 0, -1, ImportScan, "", "unrolled: at most 4096 steps"},
  };
}

}  // namespace svod
