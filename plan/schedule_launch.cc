// Launches: a kernel's outermost loops over cores, and its SINK in canonical form.
#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "ir/open_loops.h"
#include "ir/passes/loop_actions.h"
#include "ir/passes/lower_reduce.h"
#include "ir/selections.h"
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

// How many cores a loop is given to, and how many iterations each takes; the last may have fewer.
struct Scheduler::LoopCut {
  const UOp* loop;
  int64_t chunks;
  const UOp* chunk;  // its iterations; null: one, and no loop is left
  bool is_uneven = false;
};

namespace {

// What the loops of a sum of products are to it: rows, columns (the innermost loop is one), or
// neither, when both operands move with them or none does.
enum class LoopRole : uint8_t { kBatch, kRow, kColumn };

// Empty when the kernel is not one sum of products in a nest of loops, of which only rows may be of
// variable extent.
std::vector<LoopRole> RolesIn(const UOp* sink, const std::vector<const UOp*>& loops) {
  std::vector<const UOp*> order = Toposort(sink);
  const UOp* sum = nullptr;
  for (const UOp* node : order) {
    if (node->op() != Op::kReduce) continue;
    if (sum != nullptr) return {};
    sum = node;
  }
  if (sum == nullptr || loops.empty()) return {};
  const UOp* product = sum->source(0);
  while (product->op() == Op::kCast) product = product->source(0);
  if (product->op() != Op::kMul) return {};
  OpenLoops open(order);
  const UOp *row = product->source(0), *column = product->source(1);
  if (!open.DependsOn(column, loops.back())) std::swap(row, column);
  if (open.DependsOn(row, loops.back()) || !open.DependsOn(column, loops.back())) return {};
  std::vector<LoopRole> roles;
  for (const UOp* loop : loops) {
    bool in_row = open.DependsOn(row, loop), in_column = open.DependsOn(column, loop);
    const bool is_variable = !IsConst(loop->source(0));
    if (is_variable ? in_column || !in_row : ConstInt(loop->source(0)) < 1) return {};
    roles.push_back(in_row == in_column ? LoopRole::kBatch
                    : in_row            ? LoopRole::kRow
                                        : LoopRole::kColumn);
  }
  return roles;
}

// The most chunks of equal size that waste little when each, of so many times `inner` columns, is
// computed in tiles; 1 if there are none.
int64_t EvenChunks(int64_t extent, int64_t most, int64_t inner, int64_t tile) {
  constexpr double kMostWaste = 0.08;
  for (int64_t chunks = std::min(most, extent); chunks > 1; --chunks) {
    if (extent % chunks != 0) continue;
    int64_t size = extent / chunks * inner;
    int64_t waste = (size + tile - 1) / tile * tile - size;
    if (static_cast<double>(waste) <= kMostWaste * static_cast<double>(size)) return chunks;
  }
  return 1;
}

// Chunks of a loop, at most `most`, whose sizes are at least `smallest` and waste little of tiles
// of `tile`: the most chunks of equal size that do, else chunks of whole tiles and a smaller one.
std::pair<int64_t, int64_t> ChunksOf(int64_t extent, int64_t most, int64_t smallest, int64_t tile) {
  auto rounded = [&](int64_t size) { return (size + tile - 1) / tile * tile; };
  most = std::min(most, extent / std::max<int64_t>(smallest, 1));
  int64_t even = EvenChunks(extent, most, 1, tile);
  if (even * 2 > most) return {even, extent / even};
  for (int64_t size = rounded(std::max(smallest, (extent + most - 1) / most)); size < extent;
       size += tile) {
    int64_t last = extent % size;
    if (last == 0 || last >= smallest) return {(extent + size - 1) / size, size};
  }
  return {1, extent};
}

}  // namespace

// A sum of products is computed in tiles: cores get whole batches, then columns, so that each
// prepares its own, and only then rows.
std::vector<Scheduler::LoopCut> Scheduler::CutTiles(const std::vector<const UOp*>& loops,
                                                    const UOp* sink, int64_t wanted) {
  constexpr int64_t kTile = 32, kFewestRows = 128, kFewRows = 8, kStretch = 1024;
  std::vector<LoopRole> roles = RolesIn(sink, loops);
  std::vector<LoopCut> cuts;
  int64_t left = wanted, columns = 1, rows = 1;
  for (size_t i = 0; i < roles.size(); ++i) {
    if (roles[i] == LoopRole::kBatch) continue;
    int64_t& product = roles[i] == LoopRole::kColumn ? columns : rows;
    const double extent = static_cast<double>(dims_.RangeOf(loops[i]->source(0)).max);
    product = static_cast<int64_t>(std::min(static_cast<double>(product) * extent, 1e15));
  }
  auto cut = [&](const UOp* loop, int64_t most, int64_t smallest, int64_t tile) {
    if (!IsConst(loop->source(0))) return;
    int64_t extent = ConstInt(loop->source(0));
    auto [chunks, size] = ChunksOf(extent, std::min(most, left), smallest, tile);
    if (chunks < 2) return;
    bool is_whole = size == 1;
    cuts.push_back({loop, chunks, is_whole ? nullptr : context_->Index(size), extent % size != 0});
    left /= chunks;
  };
  for (LoopRole role : {LoopRole::kBatch, LoopRole::kColumn, LoopRole::kRow}) {
    for (size_t i = 0; i < roles.size() && left > 1; ++i) {
      if (roles[i] != role) continue;
      bool is_last = i + 1 == loops.size();
      if (role == LoopRole::kBatch) {
        cut(loops[i], left, 1, 1);
      } else if (role == LoopRole::kColumn && is_last) {
        // Few rows read an operand once: in stretches that prefetching has time for, or in a few
        // where there are no more columns, since cores with some of the rows would all read it.
        const int64_t stretch = std::clamp(ConstInt(loops[i]->source(0)) / 4, kTile, kStretch);
        cut(loops[i], left, rows <= 2 * kFewRows ? stretch : kTile, kTile);
      } else if (role == LoopRole::kColumn) {
        int64_t extent = ConstInt(loops[i]->source(0));
        int64_t most = std::min(left, columns / (2 * kTile));
        columns /= extent;
        int64_t even = EvenChunks(extent, most, columns, kTile);
        cut(loops[i], even * 4 > most ? even : most, 1, 1);
      } else {
        cut(loops[i], left, kFewestRows, kFewRows);
      }
      if (role != LoopRole::kBatch && !cuts.empty() && cuts.back().loop == loops[i]) break;
    }
  }
  std::sort(cuts.begin(), cuts.end(), [&](const LoopCut& a, const LoopCut& b) {
    return std::find(loops.begin(), loops.end(), a.loop) <
           std::find(loops.begin(), loops.end(), b.loop);
  });
  return cuts;
}

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

// Whole outermost loops as long as there are cores wanted, then equal chunks of the next one.
std::vector<Scheduler::LoopCut> Scheduler::CutOuter(absl::Span<const UOp* const> loops,
                                                    const UOp* effect, int64_t wanted) {
  std::vector<LoopCut> cuts;
  int64_t cores = 1;
  size_t given = 0;
  while (given < loops.size() && IsConst(loops[given]->source(0)) &&
         ConstInt(loops[given]->source(0)) <= wanted / cores) {
    int64_t extent = std::max<int64_t>(ConstInt(loops[given]->source(0)), 1);
    cuts.push_back({loops[given++], extent, nullptr});
    cores *= extent;
  }
  if (given == loops.size()) return cuts;
  const UOp* extent = loops[given]->source(0);
  int64_t left = std::min(wanted / cores, MostPieces(effect, loops[given]));
  int64_t chunks = IsConst(extent) ? LargestDivisor(ConstInt(extent), left) : 1;
  bool is_uneven = false;
  if (cores == 1 && chunks * 2 <= left) {
    chunks = std::min(left, std::max<int64_t>(dims_.RangeOf(extent).max, 1));
    is_uneven = true;
  }
  if (chunks < 2) return cuts;
  const UOp* chunk =
      dims_.Floordiv(dims_.Add(extent, context_->Index(chunks - 1)), context_->Index(chunks));
  cuts.push_back({loops[given], chunks, chunk, is_uneven});
  return cuts;
}

// The number of cores and what each computes follow from the shape alone.
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
  std::vector<LoopCut> cuts;
  if (kernel.has_contraction && most == loops.size()) {
    cuts = CutTiles(loops, whole, wanted);
    // A chunk of rows of which there may be none is computed row by row: tiles gain more than
    // cores.
    const bool is_variable = std::any_of(loops.begin(), loops.end(),
                                         [](const UOp* loop) { return !IsConst(loop->source(0)); });
    if (cuts.empty() && is_variable && !RolesIn(whole, loops).empty()) return launch;
  }
  if (cuts.empty()) {
    // Iterations that choose between values share what these have in common: on one core.
    std::vector<const UOp*> outer(loops.begin(), loops.begin() + static_cast<int64_t>(most));
    for (const UOp* counter : SelectingCounters(Toposort(effect))) std::erase(outer, counter);
    cuts = CutOuter(outer, effect, wanted);
  }
  int64_t cores = 1;
  for (const LoopCut& cut : cuts) cores *= cut.chunks;
  if (cores < 2) return launch;

  // Of the chunks' numbers the last varies fastest.
  const UOp* number = Make(Op::kCoreId, DType(), {context_->Index(cores)});
  for (size_t i = cuts.size(); i-- > 0;) {
    const LoopCut& cut = cuts[i];
    const UOp* chunks = context_->Index(cut.chunks);
    const UOp* mine = i == 0 ? number : dims_.Floormod(number, chunks);
    number = dims_.Floordiv(number, chunks);
    auto loop = std::find(launch.loops.begin(), launch.loops.end(), cut.loop);
    if (cut.chunk == nullptr) {
      launch.counters[cut.loop] = mine;
      launch.loops.erase(loop);
      continue;
    }
    const UOp *length = cut.chunk, *first = dims_.Mul(mine, cut.chunk);
    if (cut.is_uneven) {
      length = Make(Op::kMin, DType(),
                    {cut.chunk, Make(Op::kSub, DType(), {cut.loop->source(0), first})});
    }
    // In the form in which the counter will have it, or that would be of another loop.
    *loop = NewRange(dims_.Normalize(length), false);
    launch.counters[cut.loop] = dims_.Add(first, *loop);
    launch.inside[cut.loop] = *loop;
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
  auto [named, is_new] = name_of_kernel_.try_emplace({body, name});
  if (is_new) {
    std::string& unique = named->second;
    int& number = num_of_name_[name];
    do {
      unique = ++number == 1 ? name : absl::StrCat(name, "_", number);
    } while (!kernel_names_.insert(unique).second);
  }
  return Make(Op::kSink, DType(), body->sources(), FunctionArgument{true, named->second, opts});
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
