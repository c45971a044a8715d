// Cases that went wrong for users of other systems, where plans and the executor decide them.
#include "executor/executor.h"
#include "gmock/gmock.h"
#include "tests/unit/plan/fake_kernels.h"

namespace svod {
namespace {

using ::testing::ElementsAre;

// buffers[0][0] = 2 * buffers[1][0]
int32_t DoubleKernel(void* const* buffers, const int64_t*, int64_t, void*) {
  *static_cast<int64_t*>(buffers[0]) = 2 * *static_cast<const int64_t*>(buffers[1]);
  return 0;
}

// Reported case 16: results stay until the next run; a copy of them, or another output, lasts.
TEST(Cases, ResultsStayUntilTheNextRunOverwritesThem) {
  ExecutionPlanBuilder builder;
  builder.AddBuffer(1, Bytes(8));
  builder.AddBuffer(2, Bytes(8));
  builder.SetOutputBuffer(0);
  builder.AddKernel(FakeKernel(1, &DoubleKernel, {0, 1}, {0}));
  ExecutionPlan plan = Must(std::move(builder).Build());
  const Buffer input = plan.buffers()[1];

  SVOD_ASSERT_OK(input.CopyFrom<int64_t>({1}));
  SVOD_ASSERT_OK(Execute(plan));
  Buffer first = *plan.output_buffer();
  Buffer copy = Bytes(8);
  SVOD_ASSERT_OK(copy.CopyFrom(first));
  SVOD_ASSERT_OK(input.CopyFrom<int64_t>({2}));
  SVOD_ASSERT_OK(Execute(plan));
  EXPECT_EQ(first.ReadAs<int64_t>()[0], 4);  // the same memory, as documented
  EXPECT_EQ(copy.ReadAs<int64_t>()[0], 2);

  SVOD_ASSERT_OK(plan.Rebind(0, Bytes(8)));
  SVOD_ASSERT_OK(input.CopyFrom<int64_t>({5}));
  SVOD_ASSERT_OK(Execute(plan));
  EXPECT_EQ(plan.output_buffer()->ReadAs<int64_t>()[0], 10);
  EXPECT_EQ(first.ReadAs<int64_t>()[0], 4);
}

// Reported case 17: three replays of w += 1 from 0.
TEST(Cases, UpdatesInPlaceAccumulateOverReplays) {
  ExecutionPlanBuilder builder;
  builder.AddBuffer(1, Bytes(8));
  builder.SetOutputBuffer(0);
  builder.AddKernel(FakeKernel(1, &BumpKernel, {0}, {0}, {1}));
  ExecutionPlan plan = Must(std::move(builder).Build());
  std::vector<int64_t> seen;
  for (int replay = 0; replay < 3; ++replay) {
    SVOD_ASSERT_OK(Execute(plan));
    seen.push_back(plan.output_buffer()->ReadAs<int64_t>()[0]);
  }
  EXPECT_THAT(seen, ElementsAre(1, 2, 3));
}

// Reported case 18: memory is used again while a reader of a small view of it is still to run.
TEST(Cases, ReusedMemoryWaitsForReadersOfSmallViews) {
  constexpr int64_t kArenaBytes = 40 << 10;
  struct Kernels {
    static int32_t Fill(void* const* buffers, const int64_t* variables, int64_t, void*) {
      auto* out = static_cast<int32_t*>(buffers[0]);
      for (int64_t i = 0; i < kArenaBytes / 4; ++i) out[i] = static_cast<int32_t>(variables[0]);
      return 0;
    }
    static int32_t Sum(void* const* buffers, const int64_t*, int64_t, void*) {
      const auto* in = static_cast<const int32_t*>(buffers[1]);
      static_cast<int32_t*>(buffers[0])[0] = in[0] + in[1] + in[2];
      return 0;
    }
  };
  auto executor = Must(Executor::Create(4));
  ExecutionPlanBuilder builder;
  builder.KeepProgramOrder();
  Buffer arena = Bytes(kArenaBytes);
  builder.AddBuffer(1, arena);
  builder.AddBuffer(2, Must(arena.View(512, 12)));
  builder.AddBuffer(3, Bytes(4));
  builder.AddBuffer(4, Bytes(4));
  builder.SetOutputBuffers({2, 3});
  std::vector<PreparedKernel> kernels = {
      FakeKernel(1, &Kernels::Fill, {0}, {0}, {1}), FakeKernel(2, &Kernels::Sum, {2, 1}, {0}),
      FakeKernel(3, &Kernels::Fill, {0}, {0}, {7}), FakeKernel(4, &Kernels::Sum, {3, 1}, {0})};
  for (PreparedKernel& kernel : kernels) {
    kernel.cost_ns = 1e6;
    builder.AddKernel(std::move(kernel));
  }
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_EQ(plan.op_levels().size(), 4u);
  for (int run = 0; run < 20; ++run) {
    SVOD_ASSERT_OK(Execute(plan, {.executor = executor.get()}));
    EXPECT_EQ(plan.output_buffer_at(0)->ReadAs<int32_t>()[0], 3);
    EXPECT_EQ(plan.output_buffer_at(1)->ReadAs<int32_t>()[0], 21);
  }
}

// Reported case 25: one kernel fed by 40 and by 100 buffers.
TEST(Cases, KernelsTakeAnyNumberOfBuffers) {
  struct Sum {
    static int32_t All(void* const* buffers, const int64_t* variables, int64_t, void*) {
      int64_t sum = 0;
      for (int64_t i = 1; i <= variables[0]; ++i) sum += *static_cast<const int64_t*>(buffers[i]);
      *static_cast<int64_t*>(buffers[0]) = sum;
      return 0;
    }
  };
  for (int64_t count : {40, 100, 1000}) {
    ExecutionPlanBuilder builder;
    std::vector<size_t> indices;
    for (int64_t i = 0; i <= count; ++i) {
      Buffer buffer = Bytes(8);
      SVOD_ASSERT_OK(buffer.CopyFrom<int64_t>({i}));
      indices.push_back(builder.AddBuffer(static_cast<uint64_t>(i), std::move(buffer)));
    }
    builder.SetOutputBuffer(0);
    builder.AddKernel(FakeKernel(1, &Sum::All, indices, {0}, {count}));
    ExecutionPlan plan = Must(std::move(builder).Build());
    SVOD_ASSERT_OK(Execute(plan));
    EXPECT_EQ(plan.output_buffer()->ReadAs<int64_t>()[0], count * (count + 1) / 2);
  }
}

}  // namespace
}  // namespace svod
