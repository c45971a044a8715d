// EstimateCostNs: what a kernel costs by its loops.
#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "ir/linearize.h"
#include "ir/open_loops.h"
#include "ir/passes/apply_actions.h"
#include "ir/ranges.h"
#include "plan/prepare.h"

namespace svod {
namespace {

// What is left of the time when loops become vectors, as they will in kernels that ask for it.
constexpr double kOfVectors = 0.2;
// What is left of that when sums of products become tiles, whose operands stay in registers.
constexpr double kOfTiles = 0.2;

// One evaluation of a node [ns]: throughputs of a present core at 4 GHz, vectors by 64 bytes.
double NodeCostNs(const UOp* node) {
  DType dtype = node->op() == Op::kStore ? node->source(1)->dtype() : node->dtype();
  double pieces = static_cast<double>(std::max<int64_t>(1, (dtype.size_bytes() + 63) / 64));
  if (HasFlag(node->op(), kTranscendental)) return 2.0 * dtype.lanes;
  OpClass op_class = InfoOf(node->op()).op_class;
  if (op_class == OpClass::kMemory) {
    bool is_access = node->op() == Op::kLoad || node->op() == Op::kStore;
    return is_access ? 0.25 * pieces : 0;
  }
  bool is_division = node->op() == Op::kCdiv || node->op() == Op::kCmod ||
                     node->op() == Op::kFloordiv || node->op() == Op::kFloormod;
  if (is_division) return 2.0 * dtype.lanes;
  if (node->op() == Op::kFdiv || node->op() == Op::kSqrt) return 1.0 * pieces;
  return IsLanewise(node->op()) || node->op() == Op::kReduce ? 0.15 * pieces : 0;
}

// The outermost counters of sums of products, both of whose factors some loops around use again.
absl::flat_hash_set<const UOp*> TiledSums(const UOp* sink) {
  std::vector<const UOp*> order = Toposort(sink);
  OpenLoops open(order);
  absl::flat_hash_set<const UOp*> counters;
  for (const UOp* reduce : order) {
    if (reduce->op() != Op::kReduce || reduce->arg<ReduceArgument>().kind != ReduceKind::kAdd) {
      continue;
    }
    const UOp* product = reduce->source(0);
    while (product->op() == Op::kCast) product = product->source(0);
    if (product->op() != Op::kMul) continue;
    auto is_used_again = [&](const UOp* factor) {
      const std::vector<const UOp*>& around = open.At(reduce);
      return std::any_of(around.begin(), around.end(),
                         [&](const UOp* loop) { return !open.DependsOn(factor, loop); });
    };
    if (!is_used_again(product->source(0)) || !is_used_again(product->source(1))) continue;
    counters.insert(reduce->source(1));
  }
  return counters;
}

}  // namespace

double EstimateCostNs(const UOp* sink) {
  absl::StatusOr<LinearKernel> linear = Linearize(sink);
  if (!linear.ok()) return 0;
  RangeAnalysis ranges;
  auto trips_of = [&](const UOp* extent) {
    return static_cast<double>(std::max<int64_t>(ranges.Of(extent).max, 0));
  };
  const bool is_open = HasOpt(sink, kAutoOpt) || HasOpt(sink, kApplyOpt);
  absl::flat_hash_set<const UOp*> tiled;
  if (is_open) tiled = TiledSums(sink);
  double cost_ns = 5, trips = 1, cores = 1;
  std::vector<double> outer;
  for (const Step& step : linear->steps) {
    if (step.kind == Step::Kind::kLoopBegin) {
      outer.push_back(trips);
      trips *= trips_of(step.node->source(0));
      if (tiled.contains(step.node)) trips *= kOfTiles;
    } else if (step.kind == Step::Kind::kLoopEnd) {
      trips = outer.back();
      outer.pop_back();
    } else {
      if (step.node->op() == Op::kCoreId) cores = trips_of(step.node->source(0));
      // A REDUCE is listed behind its loop, but folds in every round of it.
      double rounds = trips;
      if (step.node->op() == Op::kReduce) {
        for (int i = 1; i < step.node->num_sources(); ++i) {
          rounds *= trips_of(step.node->source(i)->source(0));
          if (tiled.contains(step.node->source(i))) rounds *= kOfTiles;
        }
      }
      cost_ns += rounds * NodeCostNs(step.node);
    }
  }
  return cost_ns * cores * (is_open ? kOfVectors : 1);
}

}  // namespace svod
