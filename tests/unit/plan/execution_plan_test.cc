// Accessors, release, variables, rebinding and replicas: rows A1 to A15 and V1 to V13 of
// docs/seed.md, as far as nothing has to run.
#include "plan/execution_plan.h"

#include "gmock/gmock.h"
#include "plan/plan_state.h"
#include "tests/unit/plan/fake_kernels.h"

namespace svod {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// Buffers 0, 1, 2 of 64 bytes under node ids 100, 101, 102.
struct SmallPlan {
  std::vector<Buffer> buffers = {Bytes(64), Bytes(64), Bytes(64)};
  ExecutionPlanBuilder builder;

  SmallPlan() {
    for (size_t i = 0; i < 3; ++i) builder.AddBuffer(100 + i, buffers[i]);
    builder.SetOutputBuffer(0);
  }
  ExecutionPlan Build() { return Must(std::move(builder).Build()); }
};

// A kernel on buffer 0 with one free variable v0 in [min, max], prepared with `value`.
PreparedKernel VariableKernel(uint64_t id, int64_t value, int64_t min, int64_t max) {
  PreparedKernel kernel = FakeKernel(id, &NothingKernel, {0}, {0}, {value});
  kernel.fixed_variables.clear();
  kernel.runtime_variables = {{"v0", min, max}};
  return kernel;
}

TEST(PlanAccess, A1A2A5OutputsOrNothing) {
  ExecutionPlan empty = Must(ExecutionPlanBuilder().Build());
  EXPECT_EQ(empty.output_buffer(), nullptr);
  EXPECT_EQ(empty.output_buffer_at(0), nullptr);
  EXPECT_EQ(empty.output_buffer_index(), std::nullopt);
  SmallPlan small;
  small.builder.SetOutputBuffers({2, 1});
  ExecutionPlan plan = small.Build();
  EXPECT_EQ(plan.output_buffer(), &plan.buffers()[2]);
  EXPECT_EQ(plan.output_buffer_at(1), &plan.buffers()[1]);
  EXPECT_EQ(plan.output_buffer_at(2), nullptr);
  EXPECT_EQ(plan.output_buffer_index(), 2u);
}

TEST(PlanAccess, A3A4OutputsMayRepeat) {
  SmallPlan small;
  small.builder.SetOutputBuffers({2, 0, 2});
  ExecutionPlan plan = small.Build();
  EXPECT_EQ(plan.num_outputs(), 3u);
  EXPECT_THAT(plan.output_buffers(),
              ElementsAre(&plan.buffers()[2], &plan.buffers()[0], &plan.buffers()[2]));
}

TEST(PlanAccess, A6BuffersByNodeId) {
  SmallPlan small;
  ExecutionPlan plan = small.Build();
  EXPECT_EQ(plan.buffer(101), &plan.buffers()[1]);
  EXPECT_EQ(plan.buffer(999), nullptr);
  // Through the handle its bytes can be filled.
  SVOD_ASSERT_OK(plan.buffer(101)->CopyFrom<int64_t>(std::vector<int64_t>(8, 4)));
  EXPECT_EQ(small.buffers[1].ReadAs<int64_t>()[7], 4);
}

TEST(PlanAccess, A8A9KernelsStandInScheduleOrder) {
  SmallPlan small;
  PreparedKernel first = FakeKernel(1, &NothingKernel, {0}, {0});
  first.dependencies = {2};  // level 1
  small.builder.AddKernel(std::move(first));
  small.builder.AddOp(PreparedCopy{9, {1, 2}, {}});
  small.builder.AddKernel(FakeKernel(2, &NothingKernel, {1}, {0}));
  ExecutionPlan plan = small.Build();
  ASSERT_EQ(plan.prepared_kernels().size(), 2u);
  EXPECT_EQ(plan.prepared_kernels()[0]->id, 1u);
  EXPECT_EQ(plan.prepared_kernels()[1]->id, 2u);
  EXPECT_EQ(plan.kernels()[1], plan.prepared_kernels()[1]->kernel.get());
  EXPECT_EQ(plan.prepared_ops().size(), 3u);
  EXPECT_EQ(IdOf(plan.prepared_ops()[1]), 9u);
}

TEST(PlanAccess, A10DeviceAndMap) {
  ExecutionPlan plan = SmallPlan().Build();
  EXPECT_EQ(plan.device(), DeviceSpec());
  EXPECT_THAT(plan.ast_to_buffer_map(), ElementsAre(Pair(100, 0), Pair(101, 1), Pair(102, 2)));
}

std::vector<uint64_t> Released(const ExecutionPlan& plan, bool all) {
  std::vector<uint64_t> ids;
  auto remove = [&](uint64_t id) { ids.push_back(id); };
  if (all) {
    plan.ReleaseAllBuffers(remove);
  } else {
    plan.ReleaseIntermediateBuffers(remove);
  }
  return ids;
}

TEST(PlanRelease, A11IntermediatesAndThenAllAliases) {
  SmallPlan small;
  small.builder.AddAliasIds({100, 7});  // 100 is the output, and released as an alias all the same
  ExecutionPlan plan = small.Build();
  EXPECT_THAT(Released(plan, false), ElementsAre(101, 102, 100, 7));
}

TEST(PlanRelease, A12AllReleasesOutputsToo) {
  SmallPlan small;
  small.builder.AddAliasIds({7});
  EXPECT_THAT(Released(small.Build(), true), ElementsAre(100, 101, 102, 7));
}

TEST(PlanRelease, A13AscendsRepeatsAndKeepsTheBuffers) {
  SmallPlan small;
  small.builder.MapBuffer(5, 1);
  ExecutionPlan plan = small.Build();
  EXPECT_THAT(Released(plan, false), ElementsAre(5, 101, 102));
  EXPECT_THAT(Released(plan, false), ElementsAre(5, 101, 102));
  EXPECT_TRUE(plan.buffers()[1].is_allocated());
}

TEST(PlanRelease, A14OutputsAreKnownByTheirHandle) {
  SmallPlan small;
  small.builder.MapBuffer(5, 0);                                   // the output's other id
  small.builder.AddBuffer(6, Must(small.buffers[0].View(0, 64)));  // a view of its bytes
  EXPECT_THAT(Released(small.Build(), false), ElementsAre(6, 101, 102));
}

TEST(PlanDebug, A15PrintsCountsAndNoAddresses) {
  SmallPlan small;
  small.builder.AddKernel(FakeKernel(3, &NothingKernel, {0, 1}, {0}, {5}));
  small.builder.AddOp(PreparedCopy{9, {1, 2}, {3}});
  ExecutionPlan plan = small.Build();
  EXPECT_EQ(plan.DebugString(),
            "ExecutionPlan{ops: 2, instance_dependencies: 2, op_order: 2, kernels: 1, buffers: 3, "
            "device: cpu}");
  PreparedKernel kernel = *plan.prepared_kernels()[0];
  kernel.dependencies = {8, 9};
  EXPECT_EQ(DebugString(kernel),
            "kernel 3: device cpu, buffers [0, 1], outputs [0], values [5], fixed {v0=5}, after "
            "[8, 9]");
}

TEST(PlanVariables, V2BoundsAreInclusiveAndEveryUserCounts) {
  SmallPlan small;
  small.builder.AddKernel(VariableKernel(1, 4, 1, 8));
  small.builder.AddKernel(VariableKernel(2, 4, 4, 16));
  ExecutionPlan plan = small.Build();
  SVOD_EXPECT_OK(plan.SetVariables({{"v0", 4}}));
  SVOD_EXPECT_OK(plan.SetVariables({{"v0", 8}}));
  ExpectError(plan.SetVariables({{"v0", 9}}), absl::StatusCode::kOutOfRange,
              "plan: kernel 1 (k1): variable v0, got 9, expected 1 to 8");
  ExpectError(plan.SetVariables({{"v0", 3}}), absl::StatusCode::kOutOfRange,
              "plan: kernel 2 (k2): variable v0, got 3, expected 4 to 16");
  EXPECT_EQ(plan.variables()[0].min, 4);
  EXPECT_EQ(plan.variables()[0].max, 8);
}

TEST(PlanVariables, V3NothingChangesWhenAValueIsRefused) {
  SmallPlan small;
  small.builder.AddKernel(VariableKernel(1, 4, 1, 8));
  ExecutionPlan plan = small.Build();
  EXPECT_FALSE(plan.SetVariables({{"other", 1}, {"v0", 9}}).ok());
  EXPECT_THAT(plan.runtime_variables(), IsEmpty());
  EXPECT_THAT(plan.prepared_kernels()[0]->values, ElementsAre(4));
  EXPECT_EQ(plan.program().records[0].variables[0], 4);
}

TEST(PlanVariables, V4FixedNamesAndCoreIdAreNotValidated) {
  SmallPlan small;
  PreparedKernel fixed = VariableKernel(1, 4, 1, 8);
  fixed.fixed_variables["v0"] = 4;
  PreparedKernel cores = FakeKernel(2, &NothingKernel, {0}, {0});
  cores.runtime_variables = {{"core_id", 0, 1}};
  small.builder.AddKernel(std::move(fixed));
  small.builder.AddKernel(std::move(cores));
  ExecutionPlan plan = small.Build();
  SVOD_EXPECT_OK(plan.SetVariables({{"v0", 99}, {"core_id", 99}}));
}

TEST(PlanVariables, V5MissingNamesKeepTheirValues) {
  SmallPlan small;
  PreparedKernel kernel = FakeKernel(1, &NothingKernel, {0}, {0}, {1, 2});
  kernel.fixed_variables.clear();
  small.builder.AddKernel(std::move(kernel));
  ExecutionPlan plan = small.Build();
  SVOD_ASSERT_OK(plan.SetVariables({{"v1", 20}}));
  EXPECT_THAT(plan.prepared_kernels()[0]->values, ElementsAre(1, 20));
  SVOD_ASSERT_OK(plan.SetVariables({{"v0", 10}}));
  EXPECT_THAT(plan.prepared_kernels()[0]->values, ElementsAre(10, 20));
  EXPECT_THAT(plan.runtime_variables(), ElementsAre(Pair("v0", 10), Pair("v1", 20)));
}

TEST(PlanVariables, V6UnknownNamesAreKept) {
  ExecutionPlan plan = SmallPlan().Build();
  SVOD_EXPECT_OK(plan.SetVariables({{"nobody", 7}}));
  EXPECT_THAT(plan.runtime_variables(), ElementsAre(Pair("nobody", 7)));
}

TEST(PlanVariables, V7TheLastOfARepeatedNameCounts) {
  SmallPlan small;
  small.builder.AddKernel(VariableKernel(1, 4, 1, 8));
  ExecutionPlan plan = small.Build();
  SVOD_EXPECT_OK(plan.SetVariables({{"v0", 99}, {"v0", 5}}));  // 99 is not even validated
  EXPECT_THAT(plan.prepared_kernels()[0]->values, ElementsAre(5));
  EXPECT_THAT(plan.runtime_variables(), ElementsAre(Pair("v0", 5)));
  EXPECT_FALSE(plan.SetVariables({{"v0", 5}, {"v0", 99}}).ok());
}

TEST(PlanVariables, V8CoreIdIsIgnored) {
  SmallPlan small;
  PreparedKernel kernel = FakeKernel(1, &NothingKernel, {0}, {0});
  auto compiled = FakeCompiled(&NothingKernel, 0);
  compiled->variable_names = {"core_id"};
  kernel.kernel = compiled;
  kernel.values = {3};
  small.builder.AddKernel(std::move(kernel));
  ExecutionPlan plan = small.Build();
  SVOD_EXPECT_OK(plan.SetVariables({{"core_id", 5}}));
  EXPECT_THAT(plan.prepared_kernels()[0]->values, ElementsAre(3));
  EXPECT_THAT(plan.runtime_variables(), IsEmpty());
  EXPECT_THAT(plan.variables(), IsEmpty());
}

TEST(PlanVariables, V9FixedInOneKernelAndFreeInAnother) {
  SmallPlan small;
  PreparedKernel fixed = VariableKernel(1, 4, 1, 8);
  fixed.fixed_variables["v0"] = 4;
  small.builder.AddKernel(std::move(fixed));
  small.builder.AddKernel(VariableKernel(2, 5, 1, 8));
  ExecutionPlan plan = small.Build();
  SVOD_ASSERT_OK(plan.SetVariables({{"v0", 6}}));
  EXPECT_THAT(plan.prepared_kernels()[0]->values, ElementsAre(4));
  EXPECT_THAT(plan.prepared_kernels()[1]->values, ElementsAre(6));
}

TEST(PlanVariables, V11OnlyValuesAndLaunchSizesChange) {
  auto context = std::make_shared<Context>();
  const UOp* n = Must(context->Make(Op::kDefineVar, {}, VariableArgument{"v0", 0, 100}));
  auto compiled = FakeCompiled(&NothingKernel, 1);
  compiled->context = context;
  compiled->global_size[0] = Must(context->Make(Op::kFloordiv, {n, context->Index(2)}));
  compiled->local_size.emplace();
  (*compiled->local_size)[1] = n;
  PreparedKernel kernel = VariableKernel(1, 10, 0, 100);
  kernel.kernel = compiled;
  SmallPlan small;
  small.builder.AddKernel(std::move(kernel));
  ExecutionPlan plan = small.Build();
  EXPECT_THAT(plan.launch_sizes(0)->global_size(), ElementsAre(5, 1, 1));
  void* data = plan.prepared_kernels()[0]->buffer_pointers[0];
  SVOD_ASSERT_OK(plan.SetVariables({{"v0", 41}}));
  EXPECT_THAT(plan.launch_sizes(0)->global_size(), ElementsAre(20, 1, 1));
  EXPECT_THAT(*plan.launch_sizes(0)->local_size(), ElementsAre(1, 41, 1));
  EXPECT_EQ(plan.program().records[0].cores, 20);
  EXPECT_EQ(plan.kernels()[0], compiled.get());
  EXPECT_EQ(plan.prepared_kernels()[0]->buffer_pointers[0], data);
  EXPECT_EQ(plan.launch_sizes(1), nullptr);
}

TEST(PlanVariables, V13ValuesAreSixtyFourBitsWide) {
  SmallPlan small;
  small.builder.AddKernel(VariableKernel(1, 0, 0, INT64_MAX));
  ExecutionPlan plan = small.Build();
  SVOD_ASSERT_OK(plan.SetVariables({{"v0", (int64_t{1} << 40) + 1}}));
  EXPECT_EQ(plan.program().records[0].variables[0], (int64_t{1} << 40) + 1);
}

TEST(PlanVariables, ManyKernelsShareOneVariable) {
  SmallPlan small;
  for (uint64_t i = 0; i < 300; ++i) small.builder.AddKernel(VariableKernel(i, 4, 1, 8));
  ExecutionPlan plan = small.Build();
  SVOD_ASSERT_OK(plan.SetVariables({{"v0", 6}}));
  for (const RunRecord& record : plan.program().records) EXPECT_EQ(record.variables[0], 6);
}

TEST(PlanRebind, A7RebindingRefreshesPointersAndIds) {
  SmallPlan small;
  small.builder.AddKernel(FakeKernel(1, &NothingKernel, {0, 1}, {0}));
  small.builder.AddOp(PreparedCopy{2, {2, 1}, {}});
  ExecutionPlan plan = small.Build();
  alignas(64) std::byte memory[64] = {};
  Buffer buffer = Must(Buffer::Wrap(memory, 64));
  SVOD_ASSERT_OK(plan.Rebind(1, buffer));
  EXPECT_EQ(plan.prepared_kernels()[0]->buffer_pointers[1], memory);
  EXPECT_EQ(plan.prepared_kernels()[0]->buffer_ids[1], buffer.id());
  EXPECT_EQ(plan.program().records[0].buffers[1], memory);
  EXPECT_EQ(plan.program().records[1].buffers[1], memory);
  EXPECT_EQ(plan.buffer(101)->id(), buffer.id());
}

TEST(PlanRebind, A7RebindingChecksSizeAlignmentAndAccessAndThenChangesNothing) {
  alignas(64) static std::byte memory[128];
  SmallPlan small;
  PreparedKernel kernel = FakeKernel(1, &NothingKernel, {0, 1}, {0});
  kernel.alignments = {4, 4};
  small.builder.AddKernel(std::move(kernel));
  ExecutionPlan plan = small.Build();
  void* before = plan.program().records[0].buffers[1];
  ExpectError(plan.Rebind(3, Bytes(64)), absl::StatusCode::kInvalidArgument,
              "plan: buffer index, got 3, expected less than 3");
  ExpectError(plan.Rebind(1, Bytes(63)), absl::StatusCode::kInvalidArgument,
              "plan: size of buffer 1, got 63 bytes, expected at least 64");
  ExpectError(plan.Rebind(1, Buffer()), absl::StatusCode::kInvalidArgument,
              "plan: size of buffer 1, got 0 bytes, expected at least 64");
  ExpectError(plan.Rebind(1, Must(Buffer::Wrap(memory + 2, 64))),
              absl::StatusCode::kInvalidArgument,
              "plan: kernel 1 (k1): alignment of buffer 1, got an address 2 bytes past a multiple "
              "of 4, expected a multiple");
  ExpectError(plan.Rebind(0, Must(Buffer::WrapConst(memory, 64))),
              absl::StatusCode::kInvalidArgument,
              "plan: kernel 1 (k1): writes buffer 0, which is read-only");
  auto poor = std::make_shared<BufferAllocator>(10);
  EXPECT_EQ(plan.Rebind(1, Must(Buffer::Create(64, poor))).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(plan.program().records[0].buffers[1], before);
  EXPECT_EQ(plan.buffers()[1].id(), small.buffers[1].id());
  SVOD_EXPECT_OK(plan.Rebind(1, Must(Buffer::WrapConst(memory, 64))));
}

TEST(PlanRebind, OfALargerBufferTheFirstBytesAreUsed) {
  SmallPlan small;
  small.builder.AddOp(PreparedCopy{2, {2, 1}, {}});
  ExecutionPlan plan = small.Build();
  Buffer large = Bytes(100);
  SVOD_ASSERT_OK(plan.Rebind(1, large));
  EXPECT_EQ(plan.buffers()[1].size_bytes(), 64);
  EXPECT_EQ(plan.buffers()[1].data(), large.data());
}

TEST(PlanRebind, ViewsMoveWithTheirBase) {
  SmallPlan small;
  size_t view = small.builder.AddBuffer(5, Must(small.buffers[1].View(16, 32)));
  size_t part = small.builder.AddBuffer(6, Must(small.buffers[1].View(24, 8)));
  small.builder.AddOp(PreparedBufferView{1, {view, 1}, 16, 32, {}});
  small.builder.AddOp(PreparedBufferView{2, {part, view}, 8, 8, {}});
  small.builder.AddKernel(FakeKernel(3, &NothingKernel, {0, part}, {0}));
  ExecutionPlan plan = small.Build();
  Buffer other = Bytes(64);
  SVOD_ASSERT_OK(plan.Rebind(1, other));
  EXPECT_EQ(plan.buffers()[view].data(), other.data() + 16);
  EXPECT_EQ(plan.program().records[0].buffers[1], other.data() + 24);
  // A view alone cannot leave its base.
  absl::Status status = plan.Rebind(part, Bytes(8));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("plan: buffer view op 2: view of storage"));
  EXPECT_EQ(plan.program().records[0].buffers[1], other.data() + 24);
}

TEST(PlanRebind, A7HazardsFollowTheBytes) {
  // Two kernels of one level: 1 writes buffer 0, 2 reads buffer 1 and writes buffer 2.
  for (bool program_order : {false, true}) {
    SmallPlan small;
    if (program_order) small.builder.KeepProgramOrder();
    small.builder.AddKernel(FakeKernel(1, &NothingKernel, {0}, {0}));
    small.builder.AddKernel(FakeKernel(2, &NothingKernel, {2, 1}, {0}));
    ExecutionPlan plan = small.Build();
    EXPECT_THAT(plan.op_groups(), ElementsAre(ElementsAre(ElementsAre(0, 1))));
    // Buffer 1 becomes the half of what kernel 1 writes: apart by groups, or by levels.
    Buffer both = Bytes(96);
    SVOD_ASSERT_OK(plan.Rebind(0, Must(both.View(0, 64))));
    SVOD_ASSERT_OK(plan.Rebind(1, Must(both.View(32, 64))));
    if (program_order) {
      EXPECT_THAT(plan.op_levels(), ElementsAre(ElementsAre(0), ElementsAre(1)));
    } else {
      EXPECT_THAT(plan.op_groups(), ElementsAre(ElementsAre(ElementsAre(0), ElementsAre(1))));
    }
    // And back.
    SVOD_ASSERT_OK(plan.Rebind(1, Bytes(64)));
    EXPECT_THAT(plan.op_groups(), ElementsAre(ElementsAre(ElementsAre(0, 1))));
  }
}

TEST(PlanRebind, OperandsOfOneKernelMayBeEqualButNotOverlapInPart) {
  SmallPlan small;
  small.builder.KeepProgramOrder();
  small.builder.AddKernel(FakeKernel(1, &NothingKernel, {0, 1}, {0}));
  ExecutionPlan plan = small.Build();
  Buffer memory = Bytes(96);
  SVOD_ASSERT_OK(plan.Rebind(0, Must(memory.View(0, 64))));
  ExpectError(plan.Rebind(1, Must(memory.View(32, 64))), absl::StatusCode::kInvalidArgument,
              "plan: kernel 1 (k1): buffers 0 and 1 overlap in part and one is written, expected "
              "equal or separate ranges");
  SVOD_EXPECT_OK(plan.Rebind(1, Must(memory.View(0, 64))));
}

TEST(PlanRebind, UnboundBuffersTakeNoMemory) {
  auto allocator = std::make_shared<BufferAllocator>();
  ExecutionPlanBuilder builder;
  builder.SetAllocator(allocator);
  builder.AddUnboundBuffer(1, 1 << 20);
  builder.AddBuffer(2, Must(builder.buffer_at(0).View(0, 64)));
  builder.SetOutputBuffer(0);
  builder.AddOp(PreparedBufferView{1, {1, 0}, 0, 64, {}});
  builder.AddKernel(FakeKernel(2, &NothingKernel, {1}, {0}));
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_EQ(allocator->live_bytes(), 0);
  ExpectError(plan.BeginRun(), absl::StatusCode::kFailedPrecondition,
              "execute: buffer 0 has no memory, bind one first");
  SVOD_ASSERT_OK(plan.Rebind(0, Bytes(1 << 20)));
  EXPECT_EQ(allocator->live_bytes(), 0);
  SVOD_EXPECT_OK(plan.BeginRun());
  plan.EndRun();
}

TEST(PlanReplica, HasMemoryOfItsOwnWhereThePlanWrites) {
  SmallPlan small;
  small.builder.AddKernel(FakeKernel(1, &NothingKernel, {0, 1}, {0}));
  size_t view = small.builder.AddBuffer(9, Must(small.buffers[0].View(8, 8)));
  small.builder.AddOp(PreparedBufferView{2, {view, 0}, 8, 8, {}});
  ExecutionPlan plan = small.Build();
  SVOD_ASSERT_OK(plan.SetVariables({{"x", 3}}));
  ExecutionPlan replica = Must(plan.Replicate());
  EXPECT_EQ(replica.kernels()[0], plan.kernels()[0]);
  EXPECT_NE(replica.buffers()[0].data(), plan.buffers()[0].data());
  EXPECT_EQ(replica.buffers()[1].data(), plan.buffers()[1].data());  // only read
  EXPECT_EQ(replica.buffers()[view].data(), replica.buffers()[0].data() + 8);
  EXPECT_EQ(replica.program().records[0].buffers[0], replica.buffers()[0].data());
  EXPECT_EQ(replica.DebugString(), plan.DebugString());
  EXPECT_THAT(replica.runtime_variables(), ElementsAre(Pair("x", 3)));
}

TEST(PlanReplica, ForeignMemoryKeepsItsOverlapsAndAlignment) {
  alignas(64) static std::byte memory[256];
  ExecutionPlanBuilder builder;
  builder.AddBuffer(1, Must(Buffer::Wrap(memory + 4, 64)));
  builder.AddBuffer(2, Must(Buffer::Wrap(memory + 36, 64)));  // overlaps the first
  builder.AddBuffer(3, Must(Buffer::Wrap(memory + 128, 64)));
  builder.SetOutputBuffer(0);
  builder.AddKernel(FakeKernel(1, &NothingKernel, {0, 1, 2}, {0}));
  ExecutionPlan replica = Must(Must(std::move(builder).Build()).Replicate());
  absl::Span<const Buffer> buffers = replica.buffers();
  EXPECT_NE(buffers[0].data(), memory + 4);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffers[0].data()) % 64, 4u);
  EXPECT_EQ(buffers[1].data() - buffers[0].data(), 32);
  EXPECT_EQ(buffers[2].data(), memory + 128);
}

TEST(PlanUse, EveryCallIsRefusedWhileThePlanRuns) {
  ExecutionPlan plan = SmallPlan().Build();
  SVOD_ASSERT_OK(plan.BeginRun());
  absl::string_view message = "plan: in use by another call, expected one at a time";
  ExpectError(plan.BeginRun(), absl::StatusCode::kFailedPrecondition, message);
  ExpectError(plan.SetVariables({}), absl::StatusCode::kFailedPrecondition, message);
  ExpectError(plan.Rebind(0, Bytes(64)), absl::StatusCode::kFailedPrecondition, message);
  ExpectError(plan.Replicate().status(), absl::StatusCode::kFailedPrecondition, message);
  plan.EndRun();
  SVOD_EXPECT_OK(plan.SetVariables({}));
}

TEST(PlanGroups, E6ViewsConflictByBytesAndNotByHandle) {
  for (int64_t offset : {32, 31}) {
    ExecutionPlanBuilder builder;
    Buffer arena = Bytes(128);
    builder.AddBuffer(1, Must(arena.View(0, 32)));
    builder.AddBuffer(2, Must(arena.View(offset, 32)));
    builder.SetOutputBuffer(0);
    builder.AddKernel(FakeKernel(1, &NothingKernel, {0}, {0}));
    builder.AddKernel(FakeKernel(2, &NothingKernel, {1}, {0}));
    ExecutionPlan plan = Must(std::move(builder).Build());
    EXPECT_EQ(plan.op_groups()[0].size(), offset == 32 ? 1u : 2u);
  }
}

TEST(PlanGroups, E7InOutSlotsCountAsWritesAndTwoSlotsAsBoth) {
  // Kernel 1 has buffer 0 as its output and as an input; kernel 2 only reads it.
  SmallPlan small;
  small.builder.AddKernel(FakeKernel(1, &NothingKernel, {0, 0}, {0}));
  small.builder.AddKernel(FakeKernel(2, &NothingKernel, {1, 0}, {0}));
  EXPECT_EQ(small.Build().op_groups()[0].size(), 2u);
}

TEST(PlanSegments, CheapPlansAreOneSerialStretch) {
  SmallPlan small;
  for (uint64_t i = 0; i < 200; ++i) {
    small.builder.AddKernel(FakeKernel(i, &NothingKernel, {0}, {0}));  // all in one level
  }
  ExecutionPlan plan = small.Build();
  EXPECT_FALSE(plan.program().has_parallel_segments);
  EXPECT_EQ(plan.program().segments.size(), 1u);
}

TEST(PlanSegments, CostlyGroupsAreCutByCost) {
  SmallPlan small;
  for (uint64_t i = 0; i < 8; ++i) small.builder.AddBuffer(200 + i, Bytes(64));
  for (uint64_t i = 0; i < 8; ++i) {
    PreparedKernel kernel = FakeKernel(i, &NothingKernel, {3 + i}, {0});
    kernel.cost_ns = i < 4 ? kMinChunkNs / 2 : kMinParallelNs;
    small.builder.AddKernel(std::move(kernel));
  }
  ExecutionPlan plan = small.Build();
  ASSERT_TRUE(plan.program().has_parallel_segments);
  std::vector<uint32_t> sizes;
  for (const RunChunk& chunk : plan.program().chunks) {
    sizes.push_back(chunk.last_record - chunk.first_record);
  }
  EXPECT_THAT(sizes, ElementsAre(2, 2, 1, 1, 1, 1));
}

TEST(PlanScratch, IsAllocatedOnceForEveryThreadThatMayRun) {
  auto allocator = std::make_shared<BufferAllocator>();
  SmallPlan small;
  for (uint64_t i = 0; i < 3; ++i) {
    auto compiled = FakeCompiled(&NothingKernel, 0);
    compiled->scratch_bytes = static_cast<int64_t>(100 * i);
    PreparedKernel kernel = FakeKernel(i, &NothingKernel, {i}, {0});
    kernel.kernel = compiled;
    small.builder.AddKernel(std::move(kernel));
  }
  small.builder.SetAllocator(allocator);
  small.builder.SetMaxScratchThreads(2);
  ExecutionPlan plan = small.Build();
  EXPECT_EQ(plan.program().scratch_stride, 256);
  EXPECT_EQ(plan.program().num_scratch_blocks, 2);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(plan.program().scratch) % 64, 0u);
  EXPECT_EQ(allocator->live_bytes(), 512);
}

}  // namespace
}  // namespace svod
