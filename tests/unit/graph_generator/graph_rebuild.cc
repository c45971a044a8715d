#include "tests/unit/graph_generator/graph_rebuild.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/evaluate.h"
#include "ir/shape.h"
#include "ir/status_macros.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "tests/unit/ir/tensor_values.h"

namespace svod {
namespace {

// The corner of a value that has the new shape; all of it where the rank is another.
TensorValue Cropped(const TensorValue& from, const std::vector<int64_t>& shape) {
  TensorValue to = ZeroTensor(from.dtype, shape);
  int64_t have = from.num_elements();
  for (int64_t i = 0; i < to.num_elements() && have > 0; ++i) {
    int64_t at = 0, stride = 1, rest = i;
    if (shape.size() == from.shape.size()) {
      for (size_t d = shape.size(); d-- > 0;) {
        at += (rest % shape[d]) % from.shape[d] * stride;
        rest /= shape[d];
        stride *= from.shape[d];
      }
    } else {
      at = i % have;
    }
    to.SetBitsAt(i, from.BitsAt(at));
  }
  return to;
}

class Rebuilder {
 public:
  Rebuilder(const GraphCase& from, const RebuildPlan& plan) : from_(from), plan_(plan) {
    to_.context = std::make_shared<Context>();
    if (!plan.fix_variables) to_.variables = from.variables;
  }

  absl::StatusOr<GraphCase> Run() {
    std::vector<const UOp*> results;
    for (const UOp* result : plan_.results) {
      SVOD_RETURN_IF_ERROR(Visit(result));
      results.push_back(made_.at(result));
    }
    SVOD_ASSIGN_OR_RETURN(to_.graph.root,
                          to_.context->Make(Op::kSink, results, FunctionArgument{false, "g", {}}));
    ShapeAnalysis shapes(*to_.context);
    for (const UOp* node : Toposort(to_.graph.root)) {
      if (node->op() != Op::kSink) SVOD_RETURN_IF_ERROR(shapes.Of(node).status());
    }
    SVOD_RETURN_IF_ERROR(Verify(to_.graph));
    SVOD_RETURN_IF_ERROR(Interpret(to_).status());
    return std::move(to_);
  }

 private:
  absl::Span<const UOp* const> OperandsOf(const UOp* node) const {
    if (plan_.values.contains(node)) return {};
    auto it = plan_.nodes.find(node);
    return it != plan_.nodes.end() ? absl::MakeConstSpan(&it->second, 1) : node->sources();
  }

  absl::Status Visit(const UOp* root) {
    std::vector<std::pair<const UOp*, size_t>> stack = {{root, 0}};
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      absl::Span<const UOp* const> operands = OperandsOf(node);
      if (next < operands.size()) {
        const UOp* operand = operands[next++];
        if (!made_.contains(operand) && !plan_.dropped.contains(operand)) {
          stack.emplace_back(operand, 0);
        }
        continue;
      }
      const UOp* done = node;
      stack.pop_back();
      if (made_.contains(done)) continue;
      SVOD_ASSIGN_OR_RETURN(const UOp* made, MakeNew(done));
      made_[done] = made;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<const UOp*> MakeParam(DType dtype, absl::Span<const UOp* const> dimensions,
                                       Access access, const TensorValue& value) {
    auto slot = static_cast<int64_t>(to_.params.size());
    std::vector<int64_t> shape;
    for (const UOp* dimension : dimensions) {
      SVOD_ASSIGN_OR_RETURN(int64_t size, EvaluateIndex(dimension, to_.variables));
      if (size < 0) return absl::InvalidArgumentError("a negative dimension");
      shape.push_back(size);
    }
    to_.params.push_back(Cropped(value, shape));
    std::string name = absl::StrCat("p", slot);
    return to_.context->Make(Op::kParam, dtype, dimensions, ParamArgument{slot, access, name});
  }

  absl::StatusOr<const UOp*> MakeNew(const UOp* node) {
    auto value = plan_.values.find(node);
    if (value != plan_.values.end()) {
      std::vector<const UOp*> dimensions;
      for (int64_t size : value->second.shape) dimensions.push_back(to_.context->Index(size));
      Access access = BaseBuffer(node) == nullptr ? Access::kIn : Access::kInOut;
      return MakeParam(node->dtype(), dimensions, access, value->second);
    }
    auto other = plan_.nodes.find(node);
    if (other != plan_.nodes.end()) return made_.at(other->second);
    if (node->op() == Op::kDefineVar && plan_.fix_variables) {
      SVOD_ASSIGN_OR_RETURN(int64_t fixed, EvaluateIndex(node, from_.variables));
      return to_.context->Index(fixed);
    }
    if (plan_.dimension.has_value() && node->dtype() == Scalar::kIndex &&
        IsConstInt(node, plan_.dimension->first)) {
      return to_.context->Index(plan_.dimension->second);
    }
    std::vector<const UOp*> sources;
    for (const UOp* source : node->sources()) {
      if (!plan_.dropped.contains(source)) sources.push_back(made_.at(source));
    }
    if (node->op() == Op::kAfter && sources.size() == 1) return sources[0];
    if (node->op() == Op::kParam) {
      const auto& argument = node->arg<ParamArgument>();
      return MakeParam(node->dtype(), sources, argument.access,
                       from_.params[static_cast<size_t>(argument.slot)]);
    }
    return to_.context->Make(node->op(), node->dtype(), sources, node->argument());
  }

  const GraphCase& from_;
  const RebuildPlan& plan_;
  GraphCase to_;
  absl::flat_hash_map<const UOp*, const UOp*> made_;
};

}  // namespace

absl::StatusOr<GraphCase> Rebuild(const GraphCase& from, const RebuildPlan& plan) {
  return Rebuilder(from, plan).Run();
}

absl::StatusOr<std::vector<TensorValue>> Interpret(const GraphCase& of,
                                                   std::vector<TensorValue>* params_after) {
  std::vector<TensorValue> params = of.params;
  EvaluateGraphOptions options;
  options.variables = of.variables;
  // Shrinking may turn a crop into something huge.
  options.max_elements = int64_t{1} << 26;
  auto results = EvaluateGraph(of.graph, params, options);
  if (params_after != nullptr) *params_after = std::move(params);
  return results;
}

std::string DescribeCase(const GraphCase& of) {
  std::string text;
  for (const auto& [name, value] : of.variables)
    absl::StrAppend(&text, "// ", name, "=", value, "\n");
  for (size_t slot = 0; slot < of.params.size(); ++slot) {
    const TensorValue& value = of.params[slot];
    std::vector<double> numbers = NumbersOf(value);
    if (numbers.size() > 64) numbers.resize(64);
    absl::StrAppend(&text, "// p", slot, ": ", ToString(value.dtype), "[",
                    absl::StrJoin(value.shape, ", "), "] = ", absl::StrJoin(numbers, ","),
                    numbers.size() == 64 ? ",..." : "", "\n");
  }
  absl::StatusOr<std::string> program = Print(of.graph);
  absl::StrAppend(&text, program.ok() ? *program : program.status().ToString());
  return text;
}

}  // namespace svod
