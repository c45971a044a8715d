// Schedules by content: what hits, what misses, what is dropped, and many threads at once.
#include "plan/schedule_cache.h"

#include <latch>
#include <thread>

#include "gmock/gmock.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "tests/unit/plan/fake_kernels.h"

namespace svod {
namespace {

using ::testing::HasSubstr;

// `size` tells graphs apart.
Module Graph(int size, absl::string_view value = "h", absl::string_view name = "g") {
  std::string text = absl::StrCat("graph @", name, "(%x: f32[", size, ", 8]) {\n  %", value,
                                  " = exp %x\n  %s = reduce_add %", value,
                                  ", axes=[1]\n  %y = contiguous %s\n  return %y\n}\n");
  return Must(ParseModule(text, "t.uop", std::make_shared<Context>()));
}

TEST(ScheduleCache, EqualGraphsOfAnyContextsShareASchedule) {
  ScheduleCache cache;
  bool is_hit = true;
  ScheduledGraphPtr first;
  {
    Module module = Graph(4);
    first = Must(cache.GetOrSchedule(module.functions[0], {}, &is_hit));
    EXPECT_FALSE(is_hit);
  }
  // The graph that was scheduled is gone; names are no content.
  ScheduledGraphPtr second = Must(cache.GetOrSchedule(Graph(4, "e").functions[0], {}, &is_hit));
  EXPECT_TRUE(is_hit);
  EXPECT_EQ(first, second);
  EXPECT_EQ(first->planned().name(), "g");
  EXPECT_FALSE(first->planned().is_kernel());
  for (const Function& function : first->memory.module.functions) {
    SVOD_EXPECT_OK(Verify(function));
  }
  for (const PlaceNote& place : first->schedule.places) {
    EXPECT_TRUE(first->source.context->Owns(place.value));
  }
  ScheduleCacheStats stats = cache.stats();
  EXPECT_EQ(stats.hits, 1);
  EXPECT_EQ(stats.misses, 1);
  EXPECT_EQ(stats.graphs, 1);
  EXPECT_EQ(stats.size_bytes, first->size_bytes());
  EXPECT_GT(stats.schedule_ms, 0);
}

TEST(ScheduleCache, OtherGraphsAndOptionsAreSchedulesOfTheirOwn) {
  ScheduleCache cache;
  std::vector<ScheduledGraphPtr> all;
  Module four = Graph(4), five = Graph(5), named = Graph(4, "h", "f");
  ScheduleRequest off, one_core;
  off.memory = MemoryMode::kOff;
  one_core.schedule.max_launch_size = 1;
  for (const Module* module : {&four, &five, &named}) {
    for (const ScheduleRequest& request : {ScheduleRequest{}, off, one_core}) {
      bool is_hit = true;
      ScheduledGraphPtr graph = Must(cache.GetOrSchedule(module->functions[0], request, &is_hit));
      EXPECT_FALSE(is_hit);
      EXPECT_THAT(all, testing::Not(testing::Contains(graph)));
      all.push_back(graph);
    }
  }
  EXPECT_EQ(cache.stats().graphs, 9);
}

TEST(ScheduleCache, ProgramsAreComparedNodeByNode) {
  auto context = std::make_shared<Context>();
  auto graph = [&](DType dtype, int64_t size, double value, bool swap) {
    const UOp* x = Must(context->Make(Op::kParam, dtype, {context->Index(size)},
                                      ParamArgument{0, Access::kIn, "x"}));
    const UOp* c = context->Float(dtype, value);
    const UOp* s =
        swap ? Must(context->Make(Op::kSub, {c, x})) : Must(context->Make(Op::kSub, {x, c}));
    return Must(context->Make(Op::kSink, {s}, FunctionArgument{false, "g", {}}));
  };
  const UOp* root = graph(Scalar::kF32, 4, 1, false);
  Context other;
  EXPECT_TRUE(IsSameProgram(root, root));
  EXPECT_TRUE(IsSameProgram(root, other.Import(root)));
  EXPECT_FALSE(IsSameProgram(root, graph(Scalar::kF32, 5, 1, false)));
  EXPECT_FALSE(IsSameProgram(root, graph(Scalar::kF64, 4, 1, false)));
  EXPECT_FALSE(IsSameProgram(root, graph(Scalar::kF32, 4, 2, false)));
  EXPECT_FALSE(IsSameProgram(root, graph(Scalar::kF32, 4, 1, true)));
  EXPECT_FALSE(
      IsSameProgram(graph(Scalar::kF32, 4, 0.0, false), graph(Scalar::kF32, 4, -0.0, false)));
}

TEST(ScheduleCache, WhatWasNotAskedForTheLongestGoes) {
  int64_t one = Must(ScheduleAndPlan(Graph(4).functions[0], {}))->size_bytes();
  ScheduleCache cache(one * 5 / 2);
  ScheduledGraphPtr held = Must(cache.GetOrSchedule(Graph(4).functions[0], {}));
  Must(cache.GetOrSchedule(Graph(5).functions[0], {}));
  Must(cache.GetOrSchedule(Graph(4).functions[0], {}));  // again
  Must(cache.GetOrSchedule(Graph(6).functions[0], {}));
  EXPECT_EQ(cache.stats().evictions, 1);
  EXPECT_EQ(cache.stats().graphs, 2);
  bool is_hit = false;
  Must(cache.GetOrSchedule(Graph(4).functions[0], {}, &is_hit));
  EXPECT_TRUE(is_hit);
  Must(cache.GetOrSchedule(Graph(5).functions[0], {}, &is_hit));
  EXPECT_FALSE(is_hit);
  cache.Clear();
  EXPECT_EQ(cache.stats().graphs, 0);
  EXPECT_EQ(cache.stats().size_bytes, 0);
  // Who holds a schedule keeps it.
  SVOD_EXPECT_OK(Verify(held->planned()));
}

TEST(ScheduleCache, KernelsStayWithTheirGraphAndCompiler) {
  ScheduleCache cache;
  ScheduledGraphPtr graph = Must(cache.GetOrSchedule(Graph(4).functions[0], {}));
  EXPECT_TRUE(cache.FindKernels(graph, "cpu").empty());
  std::shared_ptr<CompiledKernel> kernel = FakeCompiled(&NothingKernel, 0, "k");
  kernel->code_bytes = 1000;
  int64_t before = cache.stats().size_bytes;
  cache.AddKernels(graph, "cpu", {kernel});
  EXPECT_EQ(cache.stats().size_bytes, before + 1000);
  EXPECT_EQ(cache.FindKernels(graph, "cpu").size(), 1u);
  EXPECT_TRUE(cache.FindKernels(graph, "other").empty());
  ScheduleRequest off;
  off.memory = MemoryMode::kOff;
  EXPECT_TRUE(
      cache.FindKernels(Must(cache.GetOrSchedule(Graph(4).functions[0], off)), "cpu").empty());
  cache.Clear();
  EXPECT_TRUE(cache.FindKernels(graph, "cpu").empty());
  EXPECT_EQ(kernel.use_count(), 1);
}

TEST(ScheduleCache, FailuresAreGivenAndForgotten) {
  ScheduleCache cache;
  auto context = std::make_shared<Context>();
  auto param = [&](int64_t slot, int64_t size) {
    return Must(context->Make(Op::kParam, Scalar::kF32, {context->Index(size)},
                              ParamArgument{slot, Access::kIn, ""}));
  };
  Function graph;
  graph.root =
      Must(context->Make(Op::kSink, {Must(context->Make(Op::kAdd, {param(0, 3), param(1, 4)}))},
                         FunctionArgument{false, "g", {}}));
  for (int i = 0; i < 2; ++i) {
    absl::Status status = cache.GetOrSchedule(graph, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("[3]"));
  }
  EXPECT_EQ(cache.stats().failures, 2);
  EXPECT_EQ(cache.stats().graphs, 0);
}

TEST(ScheduleCacheConcurrency, ManyThreadsScheduleAGraphOnce) {
  ScheduleCache cache(1 << 20);
  constexpr int kThreads = 8, kGraphs = 6, kRounds = 20;
  std::latch start(kThreads);
  std::vector<std::thread> threads;
  std::vector<std::vector<ScheduledGraphPtr>> got(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      for (int i = 0; i < kGraphs * kRounds; ++i) {
        got[t].push_back(Must(cache.GetOrSchedule(Graph(3 + i % kGraphs).functions[0], {})));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ScheduleCacheStats stats = cache.stats();
  EXPECT_EQ(stats.graphs, kGraphs);
  EXPECT_EQ(stats.hits + stats.misses, kThreads * kGraphs * kRounds);
  EXPECT_EQ(stats.misses - stats.waits, kGraphs);
  for (int t = 1; t < kThreads; ++t) EXPECT_EQ(got[t], got[0]);
}

}  // namespace
}  // namespace svod
