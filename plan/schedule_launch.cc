// Launches: a kernel's outermost loops over cores, and its SINK in canonical form.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "ir/passes/loop_actions.h"
#include "ir/passes/lower_reduce.h"
#include "ir/status_macros.h"
#include "plan/prepare.h"
#include "plan/scheduler.h"

namespace svod {

namespace {

// Time of one core that is worth another core [ns].
constexpr double kNsPerCore = 20000;

int64_t LargestDivisor(int64_t number, int64_t limit) {
  for (int64_t divisor = std::min(number, limit); divisor > 1; --divisor) {
    if (number % divisor == 0) return divisor;
  }
  return 1;
}

}  // namespace

// Splits the outermost loops, taken as one, into chunks of equal size, one a core. The number of
// chunks follows from the shape alone.
Scheduler::Launch Scheduler::PlanLaunch(const Kernel& kernel, const UOp* effect) {
  const std::vector<const UOp*>& loops = kernel.regions[0].loops;
  Launch launch{loops, {}, nullptr};
  const UOp* whole = Make(Op::kSink, DType(), {EndOf(loops, effect)}, FunctionArgument{});
  double cores_worth = std::min(EstimateCostNs(whole) / kNsPerCore, 1e6);
  int64_t wanted = std::min<int64_t>(options_.max_launch_size, static_cast<int64_t>(cores_worth));
  size_t most = std::min(loops.size(), static_cast<size_t>(kernel.hoisted_depth));
  if (wanted < 2 || most == 0) return launch;

  size_t count = 1;
  const UOp* extent = loops[0]->source(0);
  while (count < most && dims_.RangeOf(extent).max < wanted) {
    extent = dims_.Mul(extent, loops[count++]->source(0));
  }
  int64_t cores = wanted;
  if (IsConst(extent)) {
    int64_t divisor = LargestDivisor(ConstInt(extent), wanted);
    cores = divisor * 2 > wanted ? divisor : std::min(wanted, ConstInt(extent));
  }
  if (cores < 2) return launch;
  const UOp* core = Make(Op::kCoreId, DType(), {context_->Index(cores)});
  const UOp* chunk =
      dims_.Floordiv(dims_.Add(extent, context_->Index(cores - 1)), context_->Index(cores));
  if (IsConst(extent) && ConstInt(extent) % cores == 0) {
    chunk = context_->Index(ConstInt(extent) / cores);
  }
  const UOp* first = dims_.Mul(core, chunk);
  const UOp* length = chunk;
  if (!IsConst(extent) || ConstInt(extent) % cores != 0) {
    const UOp* left = Make(Op::kSub, DType(), {extent, first});
    length = Make(Op::kMin, DType(), {chunk, left});
  }
  // In the form in which the counters below will have it, or they would be of another loop.
  launch.loop = NewRange(dims_.Normalize(length), false);
  const UOp* counter = dims_.Add(first, launch.loop);
  for (size_t i = count; i-- > 0;) {
    const UOp* own = loops[i]->source(0);
    launch.counters[loops[i]] = i == 0 ? counter : dims_.Floormod(counter, own);
    if (i > 0) counter = dims_.Floordiv(counter, own);
  }
  launch.loops.assign(loops.begin() + static_cast<ptrdiff_t>(count) - 1, loops.end());
  launch.loops[0] = launch.loop;
  return launch;
}

// The SINK of a kernel, with axes numbered as they come and the launch's counters in place: so that
// equal kernels are one, wherever in the graph they stand.
absl::StatusOr<const UOp*> Scheduler::Canonicalise(const Kernel& kernel, const UOp* effect,
                                                   const Launch& launch) {
  absl::flat_hash_map<const UOp*, const UOp*> copies;
  int64_t num_axes = 0;
  // Sources first; a counter's replacement comes before what uses it.
  std::vector<const UOp*> order;
  absl::flat_hash_set<const UOp*> seen;
  std::vector<std::pair<const UOp*, int>> stack = {{effect, 0}};
  seen.insert(effect);
  auto successor = [&](const UOp* node, int i) -> const UOp* {
    auto counter = launch.counters.find(node);
    if (counter != launch.counters.end()) return i == 0 ? counter->second : nullptr;
    return i < node->num_sources() ? node->source(i) : nullptr;
  };
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    const UOp* source = successor(node, next++);
    if (source == nullptr) {
      order.push_back(node);
      stack.pop_back();
    } else if (seen.insert(source).second) {
      stack.emplace_back(source, 0);
    }
  }
  std::vector<const UOp*> sources;
  for (const UOp* node : order) {
    auto counter = launch.counters.find(node);
    if (counter != launch.counters.end()) {
      copies[node] = copies.at(counter->second);
      continue;
    }
    sources.clear();
    for (int i = 0; i < node->num_sources(); ++i) {
      const UOp* source = node->source(i);
      bool is_loop = node->op() == Op::kAfter && i > 0 && launch.counters.contains(source);
      const UOp* copy = copies.at(is_loop ? launch.loop : source);
      if (is_loop && std::find(sources.begin(), sources.end(), copy) != sources.end()) continue;
      sources.push_back(copy);
    }
    Argument argument = node->argument();
    if (auto* axis = std::get_if<AxisArgument>(&argument)) axis->axis = num_axes++;
    copies[node] = Make(node->op(), node->dtype(), sources, argument);
  }
  SVOD_RETURN_IF_ERROR(build_error_);
  std::vector<absl::string_view> opts = {kAutoOpt};
  if (kernel.fuses_products) opts.push_back(kMulaccOpt);
  const UOp* body = Make(Op::kSink, DType(), {copies.at(effect)}, FunctionArgument{true, "", opts});
  PassContext pass(*context_);
  for (const UOp* range : kernel.grouped) {
    auto copy = copies.find(range);
    if (copy == copies.end()) continue;
    LoopAction group{LoopAction::Kind::kGroup, copy->second->arg<AxisArgument>().axis, kGroupLanes};
    absl::StatusOr<const UOp*> grouped = ApplyLoopAction(body, group, pass);
    if (grouped.ok()) body = *grouped;
  }
  SVOD_RETURN_IF_ERROR(build_error_);
  std::string name = NameOf(kernel);
  for (int i = 1;; ++i) {
    std::string unique = i == 1 ? name : absl::StrCat(name, "_", i);
    auto [it, is_new] = kernel_names_.try_emplace(unique, body);
    if (!is_new && it->second != body) continue;
    return Make(Op::kSink, DType(), body->sources(), FunctionArgument{true, unique, opts});
  }
}

std::string Scheduler::NameOf(const Kernel& kernel) {
  const UOp* root = kernel.root;
  std::string name = root->op() == Op::kAssign    ? "assign"
                     : root->op() == Op::kScatter ? "scatter"
                     : IsState(root)              ? "copy"
                     : kernel.has_contraction     ? "contract"
                     : kernel.has_reduce          ? "reduce"
                                                  : "map";
  absl::StatusOr<ShapeSpan> shape = shapes_.Of(root);
  if (!shape.ok()) return name;
  for (size_t i = 0; i < shape->size(); ++i) {
    const UOp* dimension = (*shape)[i];
    std::string text = IsConst(dimension)                  ? absl::StrCat(ConstInt(dimension))
                       : dimension->op() == Op::kDefineVar ? ToString(dimension)
                                                           : "s";
    absl::StrAppend(&name, i == 0 ? "_" : "x", text);
  }
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_') c = '_';
  }
  return name;
}

}  // namespace svod
