// Rows of the operator table: subgraphs that are chosen and repeated.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/shaping.h"
#include "tools/onnx/graph_importer.h"
#include "tools/onnx/onnx_operators.h"

namespace svod {
namespace {

// Most times that a body is unrolled.
constexpr int64_t kMaxTrips = 4096;

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
    bool same = a.size() == b.size();
    for (size_t k = 0; same && k < a.size(); ++k) same = builder.dims().Same(a[k], b[k]);
    if (!same) {
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
OnnxResults ImportLoop(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  const onnx::GraphProto* body = node.Graph("body");
  if (!node.ok()) return {};
  int64_t trips = kMaxTrips + 1;
  bool go_on = true;
  if (node.has_input(0)) {
    std::optional<std::vector<int64_t>> count = node.KnownInts(0);
    if (!count.has_value()) return {};
    if (count->size() != 1) return node.Fail("trip count, expected one number");
    trips = (*count)[0];
  }
  if (node.has_input(1)) {
    std::optional<std::vector<int64_t>> condition = node.KnownInts(1);
    if (!condition.has_value()) return {};
    go_on = condition->empty() || (*condition)[0] != 0;
  }
  std::vector<const UOp*> carried;
  for (size_t i = 2; i < node.num_inputs(); ++i) carried.push_back(node.input(i));
  size_t num_carried = carried.size();
  if (node.num_outputs() < num_carried) return node.Fail("outputs, expected all that is carried");
  size_t num_scanned = node.num_outputs() - num_carried;
  std::vector<std::vector<const UOp*>> scanned(num_scanned);
  const UOp* condition = builder.context().Bool(true);
  for (int64_t i = 0; i < trips && go_on; ++i) {
    if (i == kMaxTrips) {
      return node.FailUnsupported(absl::StrCat("more than ", kMaxTrips, " iterations"));
    }
    std::vector<const UOp*> inputs = {builder.ConstInt(Scalar::kI64, i), condition};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    std::optional<std::vector<const UOp*>> outputs = node.importer().Subgraph(*body, inputs);
    if (!outputs.has_value()) return {};
    if (outputs->size() != 1 + num_carried + num_scanned) {
      return node.Fail(absl::StrCat("body: outputs, got ", outputs->size(), ", expected ",
                                    1 + num_carried + num_scanned));
    }
    carried.assign(outputs->begin() + 1, outputs->begin() + 1 + static_cast<long>(num_carried));
    for (size_t k = 0; k < num_scanned; ++k) {
      scanned[k].push_back((*outputs)[1 + num_carried + k]);
    }
    condition = (*outputs)[0];
    const KnownValue* known = node.importer().known().Of(condition);
    if (known == nullptr || !known->constant.has_value()) {
      node.importer().NoteNeeded(condition);
      return node.FailUnsupported("a condition that is worked out from what the model is run with");
    }
    go_on = ReadElement(known->constant->data(), known->constant->dtype, 0) != 0;
  }
  OnnxResults results = carried;
  for (const std::vector<const UOp*>& rows : scanned) {
    if (rows.empty()) return node.FailUnsupported("a loop that scans and never runs");
    results.push_back(StackTensors(builder, rows, 0));
  }
  return results;
}

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
       "unrolled: the number of iterations is known when the model is loaded, at most 4096"},
      {"Scan", {8, 9, 11, 16, 19, 21}, 0, -1, ImportScan, "", "unrolled: at most 4096 steps"},
  };
}

}  // namespace svod
