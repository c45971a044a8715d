// Whatever graphs Make allows, Linearize and Verify answer; and the order check agrees with a
// plain one that compares all pairs.
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "ir/kernel_builder.h"
#include "ir/linearize.h"
#include "ir/verify.h"
#include "tests/unit/ir/raw_graph.h"

namespace svod {
namespace {

using Nodes = RawGraph::Nodes;

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int64_t Pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  bool OneIn(int n) { return Pick(1, n) == 1; }
  template <typename T>
  T Of(const std::vector<T>& list) {
    return list[Pick(0, static_cast<int64_t>(list.size()) - 1)];
  }

 private:
  std::mt19937 engine_;
};

Argument AnyArgument(ArgumentKind kind, Random& random) {
  static constexpr absl::string_view kNames[] = {"n", "m", "core_id"};
  static constexpr uint16_t kLanes[] = {0, 1, 3, 2};
  static constexpr int64_t kAxes[] = {0, 1, 3};
  auto number = [&] { return random.OneIn(8) ? random.Pick(-2, 1 << 20) : random.Pick(0, 3); };
  switch (kind) {
    case ArgumentKind::kNone:
      return {};
    case ArgumentKind::kConst:
      return ConstArgument{static_cast<uint64_t>(random.Pick(-3, 9))};
    case ArgumentKind::kVariable:
      return VariableArgument{kNames[random.Pick(0, 2)], random.Pick(-1, 2), random.Pick(2, 9)};
    case ArgumentKind::kParam:
      return ParamArgument{number(), static_cast<Access>(random.Pick(0, 2)),
                           random.OneIn(2) ? "" : kNames[random.Pick(0, 2)]};
    case ArgumentKind::kBuffer:
      return BufferArgument{number()};
    case ArgumentKind::kScratch:
      return ScratchArgument{number(), random.OneIn(9) ? int64_t{1} << 40 : random.Pick(0, 9)};
    case ArgumentKind::kAlignment:
      return AlignmentArgument{random.OneIn(4) ? 16 : 0};
    case ArgumentKind::kAxis:
      return AxisArgument{number(), static_cast<AxisKind>(random.Pick(0, 1))};
    case ArgumentKind::kReduce:
      return ReduceArgument{static_cast<ReduceKind>(random.Pick(0, 5))};
    case ArgumentKind::kFunction:
      return FunctionArgument{random.OneIn(2), "f", {}};
    case ArgumentKind::kLanes:
      return LanesArgument{absl::MakeSpan(kLanes, random.Pick(1, 4))};
    case ArgumentKind::kView:
      return ViewArgument{random.Pick(-4, 64)};
    case ArgumentKind::kCustom:
      return CustomArgument{"f"};
    case ArgumentKind::kAxes:
      return AxesArgument{absl::MakeSpan(kAxes, random.Pick(0, 3))};
    case ArgumentKind::kReduceAxes:
      return ReduceAxesArgument{static_cast<ReduceKind>(random.Pick(0, 5)),
                                absl::MakeSpan(kAxes, random.Pick(0, 3))};
    case ArgumentKind::kScatter:
      return ScatterArgument{static_cast<ScatterKind>(random.Pick(0, 4)), random.Pick(0, 2)};
  }
  return {};
}

// Draws sources with a bent for what the op wants, so that most graphs are nearly right.
const UOp* AnyNode(RawGraph& g, Random& random, const Nodes& nodes) {
  Op op = static_cast<Op>(random.Pick(0, kNumOps - 1));
  constexpr Op kFavourites[] = {Op::kIndex, Op::kLoad, Op::kStore,  Op::kAfter, Op::kRange,
                                Op::kEnd,   Op::kEnd,  Op::kReduce, Op::kAdd,   Op::kSink};
  if (!random.OneIn(3)) op = kFavourites[random.Pick(0, 9)];
  constexpr Scalar kScalars[] = {Scalar::kIndex, Scalar::kF32, Scalar::kBool, Scalar::kI8};
  DType dtype(kScalars[random.Pick(0, 3)], random.OneIn(5) ? 4 : 1);
  const OpInfo& info = InfoOf(op);
  for (int attempt = 0; attempt < 20; ++attempt) {
    int count = info.max_sources >= 0
                    ? static_cast<int>(random.Pick(info.min_sources, info.max_sources))
                    : info.min_sources + static_cast<int>(random.Pick(0, 2));
    Nodes sources;
    for (int i = 0; i < count; ++i) sources.push_back(random.Of(nodes));
    if (op == Op::kLoad && sources[0]->op() == Op::kIndex) dtype = sources[0]->dtype();
    absl::StatusOr<const UOp*> node =
        g.context.Make(op, dtype, sources, AnyArgument(info.argument, random));
    if (node.ok()) return *node;
  }
  return nullptr;
}

TEST(VerifyFuzzTest, EveryGraphGetsAnAnswer) {
  int accepted = 0, linear = 0, graphs = 0;
  for (uint32_t seed = 0; seed < 6000; ++seed) {
    RawGraph g;
    Random random(seed);
    Nodes nodes = {g.Int(0), g.Int(3), g.Param(0, 4), g.Range(0, 3), g.Float(1)};
    int64_t count = random.Pick(5, 60);
    for (int64_t i = 0; i < count; ++i) {
      const UOp* node = AnyNode(g, random, nodes);
      if (node != nullptr) nodes.push_back(node);
    }
    for (int i = 0; i < 4; ++i) {
      // Roots: what there is, and sinks of the effects or states at hand.
      const UOp* root = random.Of(nodes);
      Nodes sources;
      bool is_kernel = i % 2 == 0;
      for (const UOp* node : nodes) {
        bool fits = is_kernel ? node->op() == Op::kEnd || node->op() == Op::kStore
                              : node->op() == Op::kAfter;
        if (fits && random.OneIn(2)) sources.push_back(node);
      }
      if (i > 0) root = is_kernel ? g.Kernel(sources) : g.Plan(sources);
      ++graphs;
      Function function;
      function.root = root;
      const UOp* culprit = nullptr;
      absl::StatusOr<LinearKernel> kernel = Linearize(root, &culprit);
      linear += kernel.ok();
      ASSERT_TRUE(kernel.ok() || culprit != nullptr) << seed;
      for (bool lowerable : {false, true}) {
        absl::Status status = Verify(function, {.lowerable = lowerable});
        accepted += status.ok() && root->num_sources() > 0;
        ASSERT_TRUE(status.ok() || absl::StartsWith(status.message(), "verify: ")) << status;
        ASSERT_NE(status.code(), absl::StatusCode::kInternal) << status;
      }
    }
  }
  EXPECT_GT(linear, graphs / 20);
  EXPECT_GT(accepted, graphs / 100);
  EXPECT_LT(accepted, graphs);
}

// The check as its definition has it: all pairs, paths by walking.
bool IsOrdered(const UOp* sink) {
  RangeAnalysis ranges;
  Nodes accesses;
  absl::flat_hash_map<const UOp*, absl::flat_hash_set<const UOp*>> below;
  for (const UOp* node : Toposort(sink)) {
    auto& mine = below[node];
    for (const UOp* source : node->sources()) {
      mine.insert(source);
      mine.insert(below[source].begin(), below[source].end());
    }
    if (node->op() == Op::kLoad || node->op() == Op::kStore) accesses.push_back(node);
  }
  for (const UOp* a : accesses) {
    for (const UOp* b : accesses) {
      if (a == b || (a->op() == Op::kLoad && b->op() == Op::kLoad)) continue;
      if (BaseBuffer(a->source(0)) != BaseBuffer(b->source(0))) continue;
      if (below[a].contains(b) || below[b].contains(a)) continue;
      if (MayOverlap(a->source(0), ConsecutiveElements(a), b->source(0), ConsecutiveElements(b),
                     ranges)) {
        return false;
      }
    }
  }
  return true;
}

TEST(VerifyFuzzTest, TheOrderCheckAgreesWithAllPairs) {
  int ordered = 0, unordered = 0;
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    RawGraph g;
    Random random(seed);
    const UOp *i = g.Range(0, 4), *j = g.Range(1, 3);
    Nodes buffers = {g.Param(0, 64), g.Param(1, 64), g.Reg(0, 64)};
    Nodes effects, happened;
    int64_t count = random.Pick(2, 9);
    int64_t spread = random.Pick(1, 12);
    for (int64_t n = 0; n < count; ++n) {
      const UOp* buffer = random.Of(buffers);
      Nodes after = {i, j};
      for (const UOp* node : happened) {
        if (random.OneIn(2)) after.push_back(node);
      }
      const UOp* at =
          g.Add(g.Add(g.Mul(i, g.Int(random.Pick(0, 1) * 8)), g.Mul(j, g.Int(random.Pick(0, 2)))),
                g.Int(random.Pick(0, spread)));
      int lanes = random.OneIn(3) ? 2 : 1;
      if (random.OneIn(8)) {
        at = g.Add(g.Splat(at, 2), g.Ramp(2));
        lanes = 2;
      }
      const UOp* state = random.OneIn(3) ? g.After(buffer, {i, j}) : g.After(buffer, after);
      const UOp* index = g.Index(state, at);
      const UOp* value = lanes == 1 ? g.Float(n) : g.Splat(g.Float(n), lanes);
      if (random.OneIn(2)) {
        value = g.Make(Op::kLoad, DType(Scalar::kF32, lanes), {index}, AlignmentArgument{0});
        happened.push_back(value);
        state = random.OneIn(2) ? g.After(buffer, {i, j, value}) : random.Of(buffers);
        index = g.Index(state, at);
      }
      effects.push_back(g.StoreAt(index, value));
      happened.push_back(effects.back());
    }
    std::sort(effects.begin(), effects.end(),
              [](const UOp* a, const UOp* b) { return a->id() < b->id(); });
    effects.erase(std::unique(effects.begin(), effects.end()), effects.end());
    Function function;
    function.root = g.Kernel({g.End(i, {g.End(j, effects)})});
    absl::Status status = Verify(function);
    if (!status.ok() && !absl::StrContains(status.message(), "order against")) {
      // Slots: not every parameter is used.
      ASSERT_TRUE(absl::StrContains(status.message(), "slot")) << status;
      continue;
    }
    ASSERT_EQ(status.ok(), IsOrdered(function.root)) << "seed " << seed << ": " << status;
    ++(status.ok() ? ordered : unordered);
  }
  EXPECT_GT(ordered, 200);
  EXPECT_GT(unordered, 200);
}

TEST(VerifyFuzzTest, WhatTheBuilderWritesIsInOrder) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    auto context = std::make_shared<Context>();
    KernelBuilder b(context, "k");
    Nodes buffers = {b.Param("x", Scalar::kF32, {64}, Access::kInOut),
                     b.Param("y", Scalar::kF32, {64}, Access::kInOut), b.Reg(Scalar::kF32, 64)};
    Nodes open;
    auto access = [&] {
      const UOp* at = context->Index(random.Pick(0, 6));
      for (const UOp* range : open) {
        if (random.OneIn(2)) {
          const UOp* scaled = b.Make(Op::kMul, {range, context->Index(random.Pick(1, 4))});
          at = b.Make(Op::kAdd, {at, scaled});
        }
      }
      const UOp* value = context->Float(Scalar::kF32, 1);
      if (random.OneIn(2)) value = b.Load(random.Of(buffers), at);
      b.Store(random.Of(buffers), at, value);
    };
    for (const UOp* buffer : buffers)
      b.Store(buffer, context->Index(0), context->Float(Scalar::kF32, 0));
    int64_t count = random.Pick(3, 25);
    for (int64_t n = 0; n < count; ++n) {
      int64_t what = random.Pick(0, 5);
      if (what == 0 && open.size() < 3) {
        open.push_back(b.Range(random.Pick(1, 4)));
      } else if (what == 1 && !open.empty()) {
        access();
        b.End(open.back());
        open.pop_back();
      } else {
        access();
      }
    }
    while (!open.empty()) {
      access();
      b.End(open.back());
      open.pop_back();
    }
    absl::StatusOr<const UOp*> sink = b.Finish();
    ASSERT_TRUE(sink.ok()) << sink.status();
    Function function;
    function.root = *sink;
    absl::Status status = Verify(function);
    ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status;
  }
}

}  // namespace
}  // namespace svod
