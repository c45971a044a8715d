// What Build takes and refuses: rows T1 to T20 and B1 to B18 of docs/seed.md.
#include "plan/plan_builder.h"

#include <type_traits>

#include "gmock/gmock.h"
#include "tests/unit/plan/fake_kernels.h"

namespace svod {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

absl::Status BuildError(ExecutionPlanBuilder& builder) {
  absl::StatusOr<ExecutionPlan> plan = std::move(builder).Build();
  EXPECT_FALSE(plan.ok());
  return plan.status();
}

void ExpectBuildError(ExecutionPlanBuilder& builder, absl::string_view message,
                      absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  ExpectError(BuildError(builder), code, message);
}

// Three buffers of 64 bytes, the first is the output.
ExecutionPlanBuilder ThreeBuffers() {
  ExecutionPlanBuilder builder;
  for (uint64_t id : {100, 101, 102}) builder.AddBuffer(id, Bytes(64));
  builder.SetOutputBuffer(0);
  return builder;
}

TEST(Prepared, T1IdsNeedNotBeUnique) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.AddKernel(FakeKernel(7, &NothingKernel, {0}, {0}));
  builder.AddKernel(FakeKernel(7, &NothingKernel, {1}, {0}));
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_EQ(IdOf(plan.prepared_ops()[0]), IdOf(plan.prepared_ops()[1]));
}

TEST(Prepared, T2AstOutlivesTheCallersContext) {
  auto context = std::make_shared<Context>();
  PreparedKernel kernel = FakeKernel(1, &NothingKernel, {0}, {0});
  kernel.ast = Must(context->Make(Op::kSink, {}, FunctionArgument{true, "k", {}}));
  kernel.context = std::move(context);
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.AddKernel(std::move(kernel));
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_EQ(plan.prepared_kernels()[0]->ast->arg<FunctionArgument>().name, "k");
}

TEST(Prepared, T3T19CopiesShareTheKernel) {
  PreparedKernel kernel = FakeKernel(1, &NothingKernel, {0}, {0});
  PreparedOp op = kernel;
  PreparedOp copy = op;
  EXPECT_EQ(std::get<PreparedKernel>(copy).kernel, kernel.kernel);
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.AddOp(op);
  builder.AddOp(copy);
  EXPECT_EQ(kernel.kernel.use_count(), 5);  // three of ours, two of the builder's
  static_assert(std::is_copy_constructible_v<PreparedKernel> &&
                std::is_copy_constructible_v<PreparedCopy> &&
                std::is_copy_constructible_v<PreparedBufferView> &&
                std::is_copy_constructible_v<PreparedCustomFunction>);
}

TEST(Prepared, T4KernelsAndPlanHaveDevicesOfTheirOwn) {
  ExecutionPlanBuilder builder(DeviceSpec{"cuda", 1});
  builder.AddBuffer(1, Bytes(8));
  builder.SetOutputBuffer(0);
  builder.AddKernel(FakeKernel(1, &NothingKernel, {0}, {0}));
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_EQ(ToString(plan.device()), "cuda:1");
  EXPECT_EQ(ToString(plan.prepared_kernels()[0]->device), "cpu");
}

TEST(Prepared, T5T6IndicesAreInArgumentOrderAndOutputsArePositionsInThem) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.AddKernel(FakeKernel(1, &NothingKernel, {2, 0, 1}, {1}));
  ExecutionPlan plan = Must(std::move(builder).Build());
  const PreparedKernel& kernel = *plan.prepared_kernels()[0];
  EXPECT_EQ(kernel.buffer_pointers[0], plan.buffers()[2].data());
  EXPECT_EQ(kernel.buffer_pointers[1], plan.buffers()[0].data());
  // Position 1 is plan buffer 0, so that is what is written: a kernel that reads plan buffer 0 may
  // not run beside it, one that reads plan buffer 1 may.
  for (size_t read : {0, 1}) {
    builder = ThreeBuffers();
    size_t other = builder.AddBuffer(9, Bytes(64));
    builder.AddKernel(FakeKernel(1, &NothingKernel, {2, 0, 1}, {1}));
    builder.AddKernel(FakeKernel(2, &NothingKernel, {other, read}, {0}));
    EXPECT_EQ(Must(std::move(builder).Build()).op_groups()[0].size(), read == 0 ? 2u : 1u);
  }
}

TEST(Prepared, T7T8ValuesAreByPositionAndFixedOnesByName) {
  PreparedKernel kernel = FakeKernel(1, &NothingKernel, {0}, {0}, {5, 6});
  EXPECT_THAT(kernel.values, ElementsAre(5, 6));
  EXPECT_THAT(kernel.fixed_variables, ElementsAre(Pair("v0", 5), Pair("v1", 6)));
  kernel.fixed_variables.erase("v1");
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.AddKernel(std::move(kernel));
  ExecutionPlan plan = Must(std::move(builder).Build());
  SVOD_ASSERT_OK(plan.SetVariables({{"v0", 50}, {"v1", 60}}));
  EXPECT_THAT(plan.prepared_kernels()[0]->values, ElementsAre(5, 60));
}

TEST(Prepared, T9DependenciesAreIds) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  PreparedKernel late = FakeKernel(1, &NothingKernel, {0}, {0});
  late.dependencies = {77};
  builder.AddKernel(std::move(late));
  builder.AddKernel(FakeKernel(77, &NothingKernel, {1}, {0}));
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_THAT(plan.op_levels(), ElementsAre(ElementsAre(1), ElementsAre(0)));
}

TEST(Prepared, T10BuildFillsPointersAndIdsWhateverStoodThere) {
  PreparedKernel kernel = FakeKernel(1, &NothingKernel, {1}, {0});
  kernel.buffer_pointers = {&kernel, nullptr, nullptr};
  kernel.buffer_ids = {1, 2, 3};
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.AddKernel(std::move(kernel));
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_THAT(plan.prepared_kernels()[0]->buffer_pointers, ElementsAre(plan.buffers()[1].data()));
  EXPECT_THAT(plan.prepared_kernels()[0]->buffer_ids, ElementsAre(plan.buffers()[1].id()));
}

TEST(Prepared, T11BuildLeavesRuntimeVariablesToTheCaller) {
  PreparedKernel kernel = FakeKernel(1, &NothingKernel, {0}, {0}, {5});
  kernel.fixed_variables.clear();
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.AddKernel(kernel);
  kernel.runtime_variables = {{"v0", 1, 9}};
  builder.AddKernel(kernel);
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_THAT(plan.prepared_kernels()[0]->runtime_variables, IsEmpty());
  EXPECT_THAT(plan.prepared_kernels()[1]->runtime_variables, ElementsAre(RuntimeVar{"v0", 1, 9}));
}

TEST(Prepared, T12T13VariablesAreTheFirstOfEachNameInTopologicalOrder) {
  Context context;
  auto variable = [&](absl::string_view name, int64_t min, int64_t max) {
    return Must(context.Make(Op::kDefineVar, {}, VariableArgument{name, min, max}));
  };
  const UOp* b = variable("b", 0, 7);
  const UOp* a = variable("a", -3, 5);
  const UOp* other_b = variable("b", 1, 2);
  const UOp* sum = Must(context.Make(Op::kAdd, {b, a}));
  const UOp* root = Must(context.Make(Op::kMul, {sum, other_b}));
  EXPECT_THAT(CollectRuntimeVars(root), ElementsAre(RuntimeVar{"b", 0, 7}, RuntimeVar{"a", -3, 5}));
}

TEST(Prepared, T14CopyIsDestinationThenSource) {
  PreparedCopy copy{3, {1, 0}, {9}};
  EXPECT_EQ(IdOf(copy), 3u);
  EXPECT_THAT(DependenciesOf(copy), ElementsAre(9));
}

TEST(Prepared, T15ViewIsAStatementAboutItsBase) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  Buffer base = Bytes(64);
  size_t base_index = builder.AddBuffer(1, base);
  size_t view_index = builder.AddBuffer(2, Must(base.View(16, 8)));
  builder.AddOp(PreparedBufferView{5, {view_index, base_index}, 16, 8, {}});
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_TRUE(plan.program().records.empty());  // moves no data
}

TEST(Prepared, T16T17AnOpIsOneOfFourKinds) {
  static_assert(std::variant_size_v<PreparedOp> == 4);
  auto context = std::make_shared<Context>();
  PreparedCustomFunction custom;
  custom.id = 4;
  custom.kind = "sort";
  custom.context = context;
  custom.attributes = {context->Index(3)};
  custom.buffer_indices = {0, 1};
  custom.fixed_variables = {{"n", 2}};
  custom.dependencies = {1};
  custom.runtime_variables = {{"n", 0, 4}};
  PreparedOp op = custom;
  EXPECT_EQ(IdOf(op), 4u);
  EXPECT_THAT(DependenciesOf(op), ElementsAre(1));
}

TEST(Prepared, T18LaunchSizesAreExpressionsAndLocalOnesOptional) {
  auto context = std::make_shared<Context>();
  const UOp* n = Must(context->Make(Op::kDefineVar, {}, VariableArgument{"v0", 0, 100}));
  auto compiled = FakeCompiled(&NothingKernel, 1);
  compiled->context = context;
  compiled->global_size = {Must(context->Make(Op::kAdd, {n, context->Index(1)})), nullptr,
                           context->Index(3)};
  PreparedKernel kernel = FakeKernel(1, &NothingKernel, {0}, {0}, {4});
  kernel.kernel = compiled;
  EXPECT_TRUE(compiled->host_parallel_safe);
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.AddKernel(std::move(kernel));
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_THAT(plan.launch_sizes(0)->global_size(), ElementsAre(5, 1, 3));
  EXPECT_FALSE(plan.launch_sizes(0)->local_size().has_value());
}

TEST(Builder, T20PlanOwnsWhatItWasGiven) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.AddKernel(FakeKernel(1, &NothingKernel, {0}, {0}));
  builder.AddOpWithInstanceDependencies(FakeKernel(2, &NothingKernel, {1}, {0}), {0});
  builder.AddAliasIds({500});
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_EQ(plan.prepared_ops().size(), 2u);
  EXPECT_THAT(plan.op_order(), ElementsAre(0, 1));
  EXPECT_THAT(plan.op_levels(), ElementsAre(ElementsAre(0), ElementsAre(1)));
  EXPECT_EQ(plan.buffers().size(), 3u);
  EXPECT_EQ(plan.ast_to_buffer_map().size(), 3u);
  EXPECT_EQ(plan.num_outputs(), 1u);
  EXPECT_EQ(ToString(plan.device()), "cpu");
  EXPECT_THAT(plan.runtime_variables(), IsEmpty());
  std::vector<uint64_t> removed;
  plan.ReleaseIntermediateBuffers([&](uint64_t id) { removed.push_back(id); });
  EXPECT_THAT(removed, ElementsAre(101, 102, 500));
}

TEST(Builder, B1FreshBuilderIsEmpty) {
  ExecutionPlan plan = Must(ExecutionPlanBuilder().Build());
  EXPECT_TRUE(plan.prepared_ops().empty());
  EXPECT_TRUE(plan.buffers().empty());
  EXPECT_EQ(plan.num_outputs(), 0u);
}

TEST(Builder, B2AddBufferMapsAndAReusedIdNamesTheNewBuffer) {
  ExecutionPlanBuilder builder;
  Buffer first = Bytes(8), second = Bytes(8);
  EXPECT_EQ(builder.AddBuffer(5, first), 0u);
  EXPECT_EQ(builder.AddBuffer(5, second), 1u);
  builder.SetOutputBuffer(0);
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_EQ(plan.buffer(5)->id(), second.id());
  EXPECT_EQ(plan.buffers().size(), 2u);
  EXPECT_EQ(plan.buffers()[0].id(), first.id());
}

TEST(Builder, B3MappedIndicesAreChecked) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.MapBuffer(900, 2);
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_EQ(plan.buffer(900), &plan.buffers()[2]);
  builder = ThreeBuffers();
  builder.MapBuffer(900, 3);
  ExpectBuildError(builder, "plan: buffer index mapped to node 900, got 3, expected less than 3");
}

TEST(Builder, B4ReplaceBufferIsChecked) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  Buffer arena = Bytes(128);
  builder.ReplaceBuffer(1, Must(arena.View(64, 64)));
  builder.AddKernel(FakeKernel(1, &NothingKernel, {1}, {0}));
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_EQ(plan.prepared_kernels()[0]->buffer_pointers[0], arena.data() + 64);
  builder = ThreeBuffers();
  builder.ReplaceBuffer(3, Bytes(64));
  ExpectBuildError(builder, "plan: replacing buffer 3 of 3");
  builder = ThreeBuffers();
  builder.ReplaceBuffer(0, Buffer());
  ExpectBuildError(builder, "plan: replacing buffer 0 of 3 by the null buffer");
}

TEST(Builder, B5OutputsReplaceEarlierOnesAndAreChecked) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.SetOutputBuffers({2, 1, 2});
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_EQ(plan.num_outputs(), 3u);
  EXPECT_EQ(plan.output_buffer(), &plan.buffers()[2]);
  builder = ThreeBuffers();
  builder.SetOutputBuffers({0, 3});
  ExpectBuildError(builder, "plan: output buffer index, got 3, expected less than 3");
}

TEST(Builder, B6B7B8OpsAndTheirTablesGrowTogether) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.AddKernel(FakeKernel(1, &NothingKernel, {0}, {0}));
  builder.AddOp(PreparedCopy{2, {1, 2}, {}});
  builder.AddOpWithInstanceDependencies(FakeKernel(3, &NothingKernel, {0}, {0}), {1});
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_TRUE(std::holds_alternative<PreparedKernel>(plan.prepared_ops()[0]));
  EXPECT_THAT(plan.op_levels(), ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
}

TEST(Builder, B9AliasIdsAccumulate) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.AddAliasIds({9, 8});
  builder.AddAliasIds({9});
  ExecutionPlan plan = Must(std::move(builder).Build());
  std::vector<uint64_t> removed;
  plan.ReleaseAllBuffers([&](uint64_t id) { removed.push_back(id); });
  EXPECT_THAT(removed, ElementsAre(100, 101, 102, 9, 8, 9));
  EXPECT_EQ(plan.buffer(9), nullptr);
}

TEST(Builder, B10KernelWithoutOutputs) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.AddKernel(FakeKernel(4, &NothingKernel, {0}, {}));
  ExpectBuildError(builder, "plan: kernel 4 (k4): no output indices");
}

TEST(Builder, B11OutputPositionOutOfRange) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.AddKernel(FakeKernel(4, &NothingKernel, {0, 1}, {0, 2}));
  ExpectBuildError(builder,
                   "plan: kernel 4 (k4): output position, got 2, expected less than its 2 buffers");
}

TEST(Builder, B12BufferIndexOutOfRange) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.AddKernel(FakeKernel(4, &NothingKernel, {0, 3}, {0}));
  ExpectBuildError(builder,
                   "plan: kernel 4 (k4): buffer index, got 3, expected less than the plan's 3");
}

TEST(Builder, B13ChecksComeInOrder) {
  // Every kind of mistake at once; mending the one that is reported shows the next.
  struct Mistakes {
    bool output_range = true, buffer_range = true, second_op = true, no_outputs = true,
         cycle = true;
  } mistakes;
  auto build = [&] {
    ExecutionPlanBuilder builder;
    builder.AddBuffer(1, Bytes(8));
    PreparedKernel first = FakeKernel(1, &NothingKernel, {mistakes.buffer_range ? 5u : 0u},
                                      {mistakes.output_range ? 3u : 0u});
    if (mistakes.cycle) first.dependencies = {1};
    builder.AddKernel(std::move(first));
    builder.AddKernel(
        FakeKernel(2, &NothingKernel, {0},
                   mistakes.second_op ? std::vector<size_t>{} : std::vector<size_t>{0}));
    if (!mistakes.no_outputs) builder.SetOutputBuffer(0);
    return std::string(BuildError(builder).message());
  };
  EXPECT_THAT(build(), HasSubstr("kernel 1 (k1): output position"));  // B11 of op 1
  mistakes.output_range = false;
  EXPECT_THAT(build(), HasSubstr("kernel 1 (k1): buffer index"));  // B12 of op 1
  mistakes.buffer_range = false;
  EXPECT_THAT(build(), HasSubstr("kernel 2 (k2): no output indices"));  // B10 of op 2
  mistakes.second_op = false;
  EXPECT_THAT(build(), HasSubstr("output buffers must be set"));  // B14
  mistakes.no_outputs = false;
  EXPECT_THAT(build(), HasSubstr("cycle"));  // the graph
}

TEST(Builder, B14OutputsAreSetExplicitlyWhereThereAreBuffers) {
  ExecutionPlanBuilder builder;
  builder.AddBuffer(1, Bytes(8));
  ExpectBuildError(builder,
                   "plan: output buffers must be set explicitly, got none in a plan with buffers");
  EXPECT_TRUE(ExecutionPlanBuilder().Build().ok());
}

TEST(Builder, B15BuildAllocatesAndCapturesAddresses) {
  auto allocator = std::make_shared<BufferAllocator>();
  ExecutionPlanBuilder builder;
  builder.AddBuffer(1, Must(Buffer::Create(256, allocator)));
  builder.SetOutputBuffer(0);
  builder.AddKernel(FakeKernel(1, &NothingKernel, {0, 0}, {0}));
  EXPECT_EQ(allocator->live_bytes(), 0);
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_EQ(allocator->live_bytes(), 256);
  void* data = plan.buffers()[0].data();
  EXPECT_THAT(plan.prepared_kernels()[0]->buffer_pointers, ElementsAre(data, data));
  EXPECT_EQ(plan.program().records[0].buffers[1], data);
}

TEST(Builder, B15BuildReportsMemoryThatIsNotThere) {
  ExecutionPlanBuilder builder;
  auto allocator = std::make_shared<BufferAllocator>(100);
  builder.AddBuffer(1, Must(Buffer::Create(64, allocator)));
  builder.AddBuffer(2, Must(Buffer::Create(64, allocator)));
  builder.SetOutputBuffer(0);
  ExpectBuildError(builder,
                   "plan: buffer 1: buffer: allocating 64 bytes beside 64 live ones, "
                   "limit 100",
                   absl::StatusCode::kResourceExhausted);
}

TEST(Builder, B16CopiesViewsAndCustomFunctionsAreChecked) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.AddOp(PreparedCopy{6, {0, 7}, {}});
  ExpectBuildError(builder,
                   "plan: copy op 6: buffer index, got destination=0 and source=7, "
                   "expected less than the plan's 3");
  builder = ThreeBuffers();
  builder.AddOp(PreparedBufferView{6, {3, 0}, 0, 64, {}});
  ExpectBuildError(builder,
                   "plan: buffer view op 6: buffer index, got view=3 and base=0, "
                   "expected less than the plan's 3");
  builder = ThreeBuffers();
  PreparedCustomFunction custom;
  custom.id = 6;
  custom.kind = "sort";
  custom.buffer_indices = {3};
  builder.AddOp(custom);
  ExpectBuildError(builder,
                   "plan: custom function op 6 (\"sort\"): buffer index, got 3, expected "
                   "less than the plan's 3");
}

TEST(Builder, B17BuildConsumesTheBuilder) {
  static_assert(!std::is_copy_constructible_v<ExecutionPlanBuilder>);
  // Only an rvalue can be built.
  static_assert(
      !std::is_invocable_v<decltype(&ExecutionPlanBuilder::Build), ExecutionPlanBuilder&>);
  static_assert(
      std::is_invocable_v<decltype(&ExecutionPlanBuilder::Build), ExecutionPlanBuilder&&>);
}

TEST(Builder, B18FreshPlanHasNoStickyVariables) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  PreparedKernel kernel = FakeKernel(1, &NothingKernel, {0}, {0}, {5});
  kernel.fixed_variables.clear();
  builder.AddKernel(std::move(kernel));
  ExecutionPlan plan = Must(std::move(builder).Build());
  EXPECT_THAT(plan.runtime_variables(), IsEmpty());
  EXPECT_EQ(plan.variables()[0].value, 5);
}

TEST(Builder, E14V10ValuesShorterThanNames) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  PreparedKernel kernel = FakeKernel(3, &NothingKernel, {0}, {0}, {5, 6});
  kernel.values.pop_back();
  builder.AddKernel(std::move(kernel));
  ExpectBuildError(builder, "plan: kernel 3 (k3): values of variables, got 1, expected 2");
}

TEST(Builder, V12ValuesLeftFromPrepareAreChecked) {
  for (bool fixed : {false, true}) {
    ExecutionPlanBuilder builder = ThreeBuffers();
    PreparedKernel kernel = FakeKernel(3, &NothingKernel, {0}, {0}, {5});
    kernel.runtime_variables = {{"v0", 6, 9}};
    if (!fixed) kernel.fixed_variables.clear();
    builder.AddKernel(std::move(kernel));
    ExpectBuildError(builder, "plan: kernel 3 (k3): variable v0, got 5, expected 6 to 9",
                     absl::StatusCode::kOutOfRange);
  }
}

TEST(Builder, E15LaunchSizeOfAnUnknownVariable) {
  auto context = std::make_shared<Context>();
  auto compiled = FakeCompiled(&NothingKernel, 0, "wide");
  compiled->context = context;
  compiled->global_size[0] = Must(context->Make(Op::kDefineVar, {}, VariableArgument{"m", 0, 9}));
  PreparedKernel kernel = FakeKernel(3, &NothingKernel, {0}, {0});
  kernel.kernel = compiled;
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.AddKernel(kernel);
  ExpectBuildError(builder,
                   "plan: kernel 3 (wide): launch sizes: global_size[0]: variable m has no value");
  // A fixed variable that is none of the kernel's own is enough (E13).
  builder = ThreeBuffers();
  kernel.fixed_variables["m"] = 6;
  builder.AddKernel(kernel);
  EXPECT_THAT(Must(std::move(builder).Build()).launch_sizes(0)->global_size(),
              ElementsAre(6, 1, 1));
}

TEST(Builder, E19E20CopyArityAndExtraIndices) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.AddOp(PreparedCopy{6, {0}, {}});
  ExpectBuildError(builder,
                   "plan: copy op 6: buffer indices, got 1, expected two (destination, "
                   "source)");
  builder = ThreeBuffers();
  builder.AddOp(PreparedCopy{6, {0, 1, 99}, {}});
  EXPECT_TRUE(std::move(builder).Build().ok());
}

TEST(Builder, E21CopyOfOtherSize) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  size_t large = builder.AddBuffer(9, Bytes(65));
  builder.AddOp(PreparedCopy{6, {0, large}, {}});
  ExpectBuildError(builder,
                   "plan: copy op 6: sizes differ, got a destination of 64 bytes and a "
                   "source of 65, expected equal");
}

TEST(Builder, E22ViewArity) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.AddOp(PreparedBufferView{6, {0}, 0, 64, {}});
  ExpectBuildError(builder,
                   "plan: buffer view op 6: buffer indices, got 1, expected two (view, base)");
}

TEST(Builder, E23ViewMustLieWhereItSays) {
  Buffer base = Must(Bytes(128).View(32, 64));
  struct Case {
    Buffer view;
    int64_t byte_offset, byte_size;
    bool fits;
  };
  for (const Case& c : {Case{Must(base.View(8, 16)), 8, 16, true},
                        Case{Must(base.View(8, 16)), 4, 16, false},  // offset
                        Case{Must(base.View(8, 16)), 8, 12, false},  // size
                        Case{Bytes(16), 0, 16, false}}) {            // storage
    ExecutionPlanBuilder builder = ThreeBuffers();
    size_t base_index = builder.AddBuffer(8, base);
    size_t view_index = builder.AddBuffer(9, c.view);
    builder.AddOp(PreparedBufferView{6, {view_index, base_index}, c.byte_offset, c.byte_size, {}});
    absl::StatusOr<ExecutionPlan> plan = std::move(builder).Build();
    EXPECT_EQ(plan.ok(), c.fits);
    if (c.fits) continue;
    ExpectError(plan.status(), absl::StatusCode::kInvalidArgument,
                absl::StrCat("plan: buffer view op 6: view of storage ", c.view.storage_id(),
                             " at ", c.view.offset_bytes(), " of ", c.view.size_bytes(),
                             " bytes over a base in storage ", base.storage_id(),
                             " at 32, expected offset ", 32 + c.byte_offset, " and ", c.byte_size,
                             " bytes"));
  }
}

TEST(Builder, CustomFunctionsMustBeRegistered) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  PreparedCustomFunction custom;
  custom.kind = "nobody knows it";
  builder.AddOp(custom);
  ExpectBuildError(builder, "custom function: \"nobody knows it\" is not registered",
                   absl::StatusCode::kUnimplemented);
  CustomFunctionRegistry registry;
  auto nothing = [](const CustomCall&) { return absl::OkStatus(); };
  SVOD_EXPECT_OK(registry.Register("a", nothing));
  ExpectError(registry.Register("a", nothing), absl::StatusCode::kInvalidArgument,
              "custom function: \"a\" is registered already");
  EXPECT_EQ(registry.Register("b", nullptr).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Builder, MistakesOfTheCompiledKernelAreFound) {
  ExecutionPlanBuilder builder = ThreeBuffers();
  builder.AddBuffer(1, Buffer());
  ExpectBuildError(builder, "plan: buffer 3 (node 1) is null");
  builder = ThreeBuffers();
  builder.AddKernel(FakeKernel(1, nullptr, {0}, {0}));
  ExpectBuildError(builder, "plan: kernel 1 (k1): no compiled function");
  builder = ThreeBuffers();
  PreparedKernel kernel = FakeKernel(1, &NothingKernel, {0}, {0});
  kernel.min_bytes = {65};
  builder.AddKernel(kernel);
  ExpectBuildError(builder,
                   "plan: kernel 1 (k1): size of buffer 0, got 64 bytes, expected at least 65");
  builder = ThreeBuffers();
  kernel.min_bytes = {1, 1};
  builder.AddKernel(kernel);
  ExpectBuildError(builder,
                   "plan: kernel 1 (k1): sizes and alignments of buffers, got 2, expected "
                   "1 or none");
}

TEST(Builder, AlignmentThatKernelsAskForIsChecked) {
  alignas(64) static std::byte memory[128];
  auto compiled = FakeCompiled(&NothingKernel, 0, "vector");
  compiled->param_alignment = {32};
  PreparedKernel kernel = FakeKernel(1, &NothingKernel, {0}, {0});
  kernel.alignments = {4};
  for (bool by_compiler : {false, true}) {
    for (int64_t offset : {0, 2, 4, 32}) {
      ExecutionPlanBuilder builder;
      builder.AddBuffer(1, Must(Buffer::Wrap(memory + offset, 64)));
      builder.SetOutputBuffer(0);
      if (by_compiler) kernel.kernel = compiled;
      builder.AddKernel(kernel);
      bool fits = offset % (by_compiler ? 32 : 4) == 0;
      absl::StatusOr<ExecutionPlan> plan = std::move(builder).Build();
      EXPECT_EQ(plan.ok(), fits) << offset;
      if (!fits && by_compiler) {
        ExpectError(plan.status(), absl::StatusCode::kInvalidArgument,
                    absl::StrCat("plan: kernel 1 (vector): alignment of buffer 0, got an address ",
                                 offset, " bytes past a multiple of 32, expected a multiple"));
      }
    }
  }
}

TEST(Builder, ReadOnlyBuffersAreNotWritten) {
  static const int64_t kMemory[8] = {};
  ExecutionPlanBuilder builder;
  builder.AddBuffer(1, Must(Buffer::WrapConst(kMemory, 64)));
  builder.AddBuffer(2, Bytes(64));
  builder.SetOutputBuffer(1);
  builder.AddKernel(FakeKernel(1, &NothingKernel, {1, 0}, {0}));
  builder.AddKernel(FakeKernel(2, &NothingKernel, {1, 0}, {0, 1}));
  ExpectBuildError(builder, "plan: kernel 2 (k2): writes buffer 1, which is read-only");
}

}  // namespace
}  // namespace svod
