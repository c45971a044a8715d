#include "tests/unit/graph_generator/graph_shrinker.h"

#include <set>

#include "ir/shape.h"
#include "tests/unit/ir/tensor_values.h"

namespace svod {
namespace {

class Shrinker {
 public:
  Shrinker(const GraphCase& failing, absl::FunctionRef<bool(const GraphCase&)> fails, int max_calls)
      : best_(failing), fails_(fails), calls_left_(max_calls) {}

  GraphCase Run() {
    while (calls_left_ > 0 &&
           (DropResults() || ReturnInnerValues() || DropEffects() || FixVariables() ||
            ReplaceNodes() || LowerDimensions() || SimplifyData())) {
    }
    return best_;
  }

 private:
  RebuildPlan Unchanged() const {
    RebuildPlan plan;
    auto results = best_.graph.root->sources();
    plan.results.assign(results.begin(), results.end());
    return plan;
  }

  bool Keep(const GraphCase& candidate) {
    if (calls_left_-- <= 0 || !fails_(candidate)) return false;
    best_ = candidate;
    return true;
  }

  bool Try(const RebuildPlan& plan) {
    absl::StatusOr<GraphCase> candidate = Rebuild(best_, plan);
    return candidate.ok() && Keep(*candidate);
  }

  bool DropResults() {
    auto results = best_.graph.root->sources();
    for (size_t i = 0; i < results.size() && results.size() > 1; ++i) {
      RebuildPlan plan = Unchanged();
      plan.results.erase(plan.results.begin() + static_cast<int64_t>(i));
      if (Try(plan)) return true;
    }
    return false;
  }

  // A value that a result is made of in its place; the first ones hold least.
  bool ReturnInnerValues() {
    if (best_.graph.root->sources().size() != 1) return false;
    for (const UOp* node : Toposort(best_.graph.root->source(0))) {
      if (node == best_.graph.root->source(0)) continue;
      bool is_value = InfoOf(node->op()).op_class == OpClass::kTensor || IsElementwise(node->op());
      if (!(is_value || node->op() == Op::kAfter) || node->dtype().is_void()) continue;
      RebuildPlan plan;
      plan.results = {node};
      if (Try(plan)) return true;
    }
    return false;
  }

  bool DropEffects() {
    for (const UOp* node : Toposort(best_.graph.root)) {
      if (node->op() != Op::kAssign) continue;
      RebuildPlan plan = Unchanged();
      plan.dropped = {node};
      if (Try(plan)) return true;
    }
    return false;
  }

  bool FixVariables() {
    if (best_.variables.empty()) return false;
    RebuildPlan plan = Unchanged();
    plan.fix_variables = true;
    return Try(plan);
  }

  // From the results down, so that what goes first takes most with it.
  bool ReplaceNodes() {
    std::vector<const UOp*> nodes = Toposort(best_.graph.root);
    ShapeAnalysis shapes(*best_.context);
    for (size_t i = nodes.size(); i-- > 0;) {
      const UOp* node = nodes[i];
      Op op = node->op();
      if (op == Op::kSink || op == Op::kParam || op == Op::kConst || op == Op::kDefineVar ||
          node->dtype().is_void()) {
        continue;
      }
      absl::StatusOr<ShapeSpan> shape = shapes.Of(node);
      if (!shape.ok()) continue;
      for (const UOp* source : node->sources()) {
        if (source->dtype() != node->dtype()) continue;
        RebuildPlan plan = Unchanged();
        plan.nodes[node] = source;
        if (Try(plan)) return true;
      }
      if (node->dtype() == Scalar::kIndex && shape->empty()) continue;  // a dimension
      RebuildPlan alone;
      alone.results = {node};
      absl::StatusOr<GraphCase> part = Rebuild(best_, alone);
      if (!part.ok()) continue;
      absl::StatusOr<std::vector<TensorValue>> values = Interpret(*part);
      if (!values.ok()) continue;
      RebuildPlan plan = Unchanged();
      plan.values[node] = (*values)[0];
      if (Try(plan)) return true;
    }
    return false;
  }

  bool LowerDimensions() {
    std::set<int64_t> sizes;
    for (const UOp* node : Toposort(best_.graph.root)) {
      if (IsConst(node) && node->dtype() == Scalar::kIndex && ConstInt(node) > 1) {
        sizes.insert(ConstInt(node));
      }
    }
    for (auto it = sizes.rbegin(); it != sizes.rend(); ++it) {
      for (int64_t lower : {int64_t{1}, int64_t{2}, *it / 2, *it - 1}) {
        if (lower >= *it || lower < 1) continue;
        RebuildPlan plan = Unchanged();
        plan.dimension = {*it, lower};
        if (Try(plan)) return true;
      }
    }
    return false;
  }

  bool SimplifyData() {
    for (size_t slot = 0; slot < best_.params.size(); ++slot) {
      TensorValue plain = ZeroTensor(best_.params[slot].dtype, best_.params[slot].shape);
      for (bool counts : {false, true}) {
        for (int64_t i = 0; i < plain.num_elements() && counts; ++i) {
          uint64_t number = static_cast<uint64_t>(i % 7);
          plain.SetBitsAt(i, EvaluateScalar(Op::kCast, plain.dtype, Scalar::kI64, {&number, 1}));
        }
        if (SameBits(plain, best_.params[slot])) break;
        GraphCase candidate = best_;
        candidate.params[slot] = plain;
        if (Interpret(candidate).ok() && Keep(candidate)) return true;
      }
    }
    return false;
  }

  GraphCase best_;
  absl::FunctionRef<bool(const GraphCase&)> fails_;
  int calls_left_;
};

}  // namespace

GraphCase ShrinkCase(const GraphCase& failing, absl::FunctionRef<bool(const GraphCase&)> fails,
                     int max_calls) {
  return Shrinker(failing, fails, max_calls).Run();
}

}  // namespace svod
