// Launches: a kernel's outermost loops over cores, and its SINK in canonical form.
#include <algorithm>
#include <limits>

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

// Sums of rows that lie apart read a stretch of every row. Into how many pieces such a loop over
// elements of rows may be cut without making stretches shorter than prefetching takes to pay.
int64_t Scheduler::MostPieces(const UOp* effect, const UOp* loop) {
  constexpr int64_t kMinStretchBytes = 4096;
  int64_t most = std::numeric_limits<int64_t>::max();
  RangeAnalysis ranges;
  for (const UOp* node : Toposort(effect)) {
    if (node->op() != Op::kLoad) continue;
    int64_t along = 0, down = 0;
    for (const Term& term : ranges.AffineOf(node->source(0)->source(1)).terms) {
      if (term.atoms.size() != 1) continue;
      const UOp* counter = term.atoms[0].node;
      if (counter == loop) along = term.coefficient;
      bool is_fold =
          counter->op() == Op::kRange && counter->arg<AxisArgument>().kind == AxisKind::kReduce;
      if (is_fold) down = std::max(down, term.coefficient);
    }
    int64_t bytes = dims_.RangeOf(loop->source(0)).max * node->dtype().size_bytes();
    if (along == 1 && down > 1) most = std::min(most, bytes / kMinStretchBytes);
  }
  return std::max<int64_t>(most, 1);
}

// Gives the outermost loops to cores: whole loops as long as there are cores wanted, then equal
// chunks of the next one. The number of cores follows from the shape alone.
Scheduler::Launch Scheduler::PlanLaunch(const Kernel& kernel, const UOp* effect) {
  const std::vector<const UOp*>& loops = kernel.regions[0].loops;
  Launch launch{loops, {}, {}};
  absl::string_view opts[] = {kAutoOpt};
  const UOp* whole =
      Make(Op::kSink, DType(), {EndOf(loops, effect)}, FunctionArgument{true, "", opts});
  double cores_worth = std::min(EstimateCostNs(whole) / kNsPerCore, 1e6);
  int64_t wanted = std::min<int64_t>(options_.max_launch_size, static_cast<int64_t>(cores_worth));
  size_t most = std::min(loops.size(), static_cast<size_t>(kernel.hoisted_depth));
  if (wanted < 2) return launch;

  int64_t cores = 1;
  size_t given = 0;
  while (given < most && IsConst(loops[given]->source(0)) &&
         ConstInt(loops[given]->source(0)) <= wanted / cores) {
    cores *= std::max<int64_t>(ConstInt(loops[given++]->source(0)), 1);
  }
  // The chunks of the loop after those.
  int64_t chunks = 1;
  bool is_uneven = false;
  if (given < most) {
    const UOp* extent = loops[given]->source(0);
    int64_t left = std::min(wanted / cores, MostPieces(effect, loops[given]));
    chunks = IsConst(extent) ? LargestDivisor(ConstInt(extent), left) : 1;
    if (cores == 1 && chunks * 2 <= left) {
      chunks = std::min(left, std::max<int64_t>(dims_.RangeOf(extent).max, 1));
      is_uneven = true;
    }
  }
  if (cores * chunks < 2) return launch;
  const UOp* core = Make(Op::kCoreId, DType(), {context_->Index(cores * chunks)});
  const UOp* number = core;  // of the loop's iteration, innermost first
  launch.loops.assign(loops.begin() + static_cast<ptrdiff_t>(given), loops.end());
  if (chunks > 1) {
    const UOp* extent = loops[given]->source(0);
    const UOp* count = context_->Index(chunks);
    const UOp* chunk = dims_.Floordiv(dims_.Add(extent, context_->Index(chunks - 1)), count);
    const UOp* length = chunk;
    const UOp* first = dims_.Mul(given == 0 ? core : dims_.Floormod(core, count), chunk);
    if (is_uneven) {
      length = Make(Op::kMin, DType(), {chunk, Make(Op::kSub, DType(), {extent, first})});
    }
    // In the form in which the counter will have it, or that would be of another loop.
    const UOp* loop = NewRange(dims_.Normalize(length), false);
    launch.loops[0] = loop;
    launch.counters[loops[given]] = dims_.Add(first, loop);
    launch.inside[loops[given]] = loop;
    number = dims_.Floordiv(core, count);
  }
  for (size_t i = given; i-- > 0;) {
    const UOp* extent = loops[i]->source(0);
    launch.counters[loops[i]] = i == 0 ? number : dims_.Floormod(number, extent);
    number = dims_.Floordiv(number, extent);
  }
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
      if (node->op() == Op::kAfter && i > 0 && launch.counters.contains(source)) {
        // What is left of the loop; a core has no more of it than it can see.
        auto inside = launch.inside.find(source);
        if (inside == launch.inside.end()) continue;
        source = inside->second;
      }
      sources.push_back(copies.at(source));
    }
    if (node->op() == Op::kAfter && sources.size() == 1) {
      copies[node] = sources[0];
      continue;
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
