#include "tools/onnx/fold_constants.h"

#include <algorithm>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

// Ops that the scheduler turns into index arithmetic, or that are better done where they are read.
bool IsFree(const UOp* node) {
  constexpr Op kFree[] = {Op::kReshape, Op::kExpand, Op::kPermute, Op::kShrink,
                          Op::kFlip,    Op::kCast,   Op::kBitcast, Op::kContiguous};
  return std::find(std::begin(kFree), std::end(kFree), node->op()) != std::end(kFree);
}

bool IsTensorNode(const UOp* node) {
  return IsElementwise(node->op()) || InfoOf(node->op()).op_class == OpClass::kTensor;
}

// What a node depends on.
struct Below {
  bool varies = false;    // with inputs or variables
  bool has_data = false;  // of constants
};

}  // namespace

absl::Status Rebuild(ImportedOnnx& imported,
                     const absl::flat_hash_map<const UOp*, const UOp*>& replaced) {
  Context& context = *imported.module.context;
  Function& function = imported.module.functions[0];
  std::set<std::string> input_params;
  for (const OnnxValueInfo& input : imported.inputs) input_params.insert(input.param);
  // What is reachable once the replaced nodes are others, sources before users.
  std::vector<const UOp*> order, params;
  absl::flat_hash_set<const UOp*> seen;
  std::vector<std::pair<const UOp*, int>> stack = {{function.root, 0}};
  seen.insert(function.root);
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    auto other = replaced.find(node);
    bool is_replaced = other != replaced.end();
    if (is_replaced ? next < 1 : next < node->num_sources()) {
      const UOp* source = is_replaced ? other->second : node->source(next);
      ++next;
      if (seen.insert(source).second) stack.emplace_back(source, 0);
      continue;
    }
    order.push_back(node);
    if (node->op() == Op::kParam) params.push_back(node);
    stack.pop_back();
  }
  std::sort(params.begin(), params.end(), [&](const UOp* a, const UOp* b) {
    const auto &x = a->arg<ParamArgument>(), &y = b->arg<ParamArgument>();
    bool x_is_input = input_params.contains(std::string(x.name));
    bool y_is_input = input_params.contains(std::string(y.name));
    return x_is_input != y_is_input ? x_is_input : x.slot < y.slot;
  });
  absl::flat_hash_map<const UOp*, const UOp*> made;
  std::set<std::string> used;
  for (size_t i = 0; i < params.size(); ++i) {
    ParamArgument argument = params[i]->arg<ParamArgument>();
    argument.slot = static_cast<int64_t>(i);
    used.insert(std::string(argument.name));
    SVOD_ASSIGN_OR_RETURN(made[params[i]], context.Make(Op::kParam, params[i]->dtype(),
                                                        params[i]->sources(), argument));
  }
  std::vector<const UOp*> sources;
  Function rebuilt;
  for (const UOp* node : order) {
    auto other = replaced.find(node);
    if (other != replaced.end()) {
      made[node] = made.at(other->second);
    } else if (node->op() != Op::kParam) {
      sources.clear();
      for (const UOp* source : node->sources()) sources.push_back(made.at(source));
      SVOD_ASSIGN_OR_RETURN(made[node],
                            context.Make(node->op(), node->dtype(), sources, node->argument()));
    }
    auto note = function.notes.find(node);
    if (note != function.notes.end() && made[node]->op() != Op::kParam) {
      rebuilt.notes.try_emplace(made[node], note->second);
    }
  }
  rebuilt.root = made.at(function.root);
  function = std::move(rebuilt);
  std::erase_if(imported.constants, [&](const auto& c) { return !used.contains(c.first); });
  for (OnnxValueInfo& input : imported.inputs) {
    if (!used.contains(input.param)) input.param.clear();
  }
  return absl::OkStatus();
}

absl::StatusOr<FoldedPart> TakeConstantPart(ImportedOnnx& imported) {
  const Function& function = imported.module.functions[0];
  Context& context = *imported.module.context;
  std::set<std::string> constants;
  for (const auto& [name, value] : imported.constants) constants.insert(name);
  absl::flat_hash_map<const UOp*, Below> below;
  for (const UOp* node : Toposort(function.root)) {
    Below own;
    if (node->op() == Op::kParam) {
      bool is_constant = constants.contains(std::string(node->arg<ParamArgument>().name));
      own = {!is_constant, is_constant};
    }
    own.varies |= node->op() == Op::kDefineVar;
    for (const UOp* source : node->sources()) {
      own.varies |= below[source].varies;
      own.has_data |= below[source].has_data;
    }
    below[node] = own;
  }
  // What a few constants grow to is better worked out anew than kept.
  int64_t most_bytes = int64_t{64} << 20;
  for (const auto& [name, value] : imported.constants) {
    most_bytes += 2 * static_cast<int64_t>(value.bytes.size());
  }
  ShapeAnalysis shapes(context);
  auto is_small = [&](const UOp* node) {
    absl::StatusOr<ShapeSpan> shape = shapes.Of(node);
    int64_t bytes = node->dtype().size_bytes();
    for (size_t i = 0; shape.ok() && i < shape->size(); ++i) {
      int64_t dimension = ConstInt((*shape)[i]);  // or it would vary
      if (dimension > 0 && bytes > most_bytes / dimension) return false;
      bytes *= dimension;
    }
    return shape.ok();
  };
  // From the results down, to the first node of each path that can be folded.
  std::vector<const UOp*> folded, stack = {function.root};
  absl::flat_hash_set<const UOp*> seen = {function.root};
  while (!stack.empty()) {
    const UOp* node = stack.back();
    stack.pop_back();
    const Below& own = below[node];
    if (!own.varies && !own.has_data) continue;
    if (node != function.root && !own.varies && IsTensorNode(node) && !IsFree(node) &&
        is_small(node)) {
      folded.push_back(node);
      continue;
    }
    for (const UOp* source : node->sources()) {
      if (seen.insert(source).second) stack.push_back(source);
    }
  }
  FoldedPart result;
  if (folded.empty()) return result;
  std::sort(folded.begin(), folded.end(),
            [](const UOp* a, const UOp* b) { return a->id() < b->id(); });
  absl::flat_hash_map<const UOp*, const UOp*> replaced;
  auto slot = static_cast<int64_t>(imported.inputs.size() + imported.constants.size());
  for (const UOp* node : folded) {
    SVOD_ASSIGN_OR_RETURN(ShapeSpan shape, shapes.Of(node));
    result.results.push_back(absl::StrCat("folded_", result.results.size()));
    SVOD_ASSIGN_OR_RETURN(replaced[node],
                          context.Make(Op::kParam, node->dtype(), shape,
                                       ParamArgument{slot++, Access::kIn, result.results.back()}));
    result.part.outputs.push_back(
        {result.results.back(), node->dtype(), Shape(shape.begin(), shape.end()), ""});
  }
  Function part;
  SVOD_ASSIGN_OR_RETURN(part.root, context.Make(Op::kSink, DType(), folded,
                                                FunctionArgument{false, "constants", {}}));
  result.part.module = {imported.module.context, {part}};
  result.part.constants = imported.constants;
  SVOD_RETURN_IF_ERROR(Rebuild(result.part, {}));
  SVOD_RETURN_IF_ERROR(Rebuild(imported, replaced));
  return result;
}

}  // namespace svod
