// From text to plans, with fake kernels in the place of compiled ones.
#include "plan/prepare.h"

#include <thread>

#include "gmock/gmock.h"
#include "ir/text.h"
#include "tests/unit/plan/fake_kernels.h"

namespace svod {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

Module Parse(absl::string_view text) {
  return Must(ParseModule(text, "t.uop", std::make_shared<Context>()));
}

// Compiles nothing: every kernel does nothing, and knows its variables.
absl::StatusOr<std::shared_ptr<const CompiledKernel>> Fake(const UOp* sink) {
  auto kernel = FakeCompiled(&NothingKernel, 0, std::string(sink->arg<FunctionArgument>().name));
  for (const UOp* variable : VariablesOf(sink)) {
    kernel->variable_names.emplace_back(variable->arg<VariableArgument>().name);
  }
  return std::shared_ptr<const CompiledKernel>(std::move(kernel));
}

absl::StatusOr<ExecutionPlan> PrepareText(absl::string_view text,
                                          const PrepareOptions& options = {}) {
  return Prepare(Parse(text), "", &Fake, options);
}

absl::Status PrepareError(absl::string_view text, const PrepareOptions& options = {}) {
  return PrepareText(text, options).status();
}

constexpr absl::string_view kDouble = R"(
kernel @double(%y: out f32[16], %x: f32[16]) {
  %i = range 16 loop
    %v = load %x[%i]
    %w = add %v, %v
    store %y[%i], %w
  end %i
}
)";

constexpr absl::string_view kIncrement = R"(
kernel @inc(%w: inout f32[16]) {
  %i = range 16 loop
    %v = load %w[%i]
    %u = add %v, 1.0
    store %w[%i], %u
  end %i
}
)";

TEST(Prepare, AKernelAloneRunsOnItsParameters) {
  ExecutionPlan plan = Must(PrepareText(kDouble));
  ASSERT_EQ(plan.parameters().size(), 2u);
  EXPECT_EQ(plan.parameters()[0].name, "y");
  EXPECT_EQ(plan.parameters()[0].access, Access::kOut);
  EXPECT_EQ(plan.parameters()[1].name, "x");
  EXPECT_EQ(plan.parameters()[1].dtype, DType(Scalar::kF32));
  EXPECT_THAT(plan.parameters()[1].shape, ElementsAre(16));
  EXPECT_EQ(plan.parameters()[1].alignment, 4);
  ASSERT_EQ(plan.outputs().size(), 1u);
  EXPECT_EQ(plan.outputs()[0].name, "y");
  EXPECT_EQ(plan.output_buffer(), &plan.buffers()[0]);
  EXPECT_EQ(plan.output_buffer()->size_bytes(), 64);
  const PreparedKernel& kernel = *plan.prepared_kernels()[0];
  EXPECT_THAT(kernel.buffer_indices, ElementsAre(0, 1));
  EXPECT_THAT(kernel.output_indices, ElementsAre(0));
  EXPECT_EQ(kernel.ast->arg<FunctionArgument>().name, "double");
}

TEST(Prepare, ThePlanOutlivesTheModule) {
  absl::StatusOr<ExecutionPlan> plan;
  {
    Module module = Parse(kDouble);
    plan = Prepare(module, "double", &Fake);
  }
  EXPECT_EQ(VariablesOf(Must(std::move(plan)).prepared_kernels()[0]->ast).size(), 0u);
}

TEST(Prepare, GraphsBecomeLevelsByTheirAfters) {
  std::string text = absl::StrCat(kDouble, R"(
graph @main(%x: f32[16]) {
  %a = buffer f32[16]
  %c1 = call @double, %a, %x
  %a1 = after %a, %c1
  %b = buffer f32[16]
  %c2 = call @double, %b, %a1
  %b1 = after %b, %c2
  %d = buffer f32[16]
  %c3 = call @double, %d, %x
  %d1 = after %d, %c3
  return %b1, %d1
}
)");
  ExecutionPlan plan = Must(PrepareText(text));
  EXPECT_THAT(plan.op_levels(), ElementsAre(ElementsAre(0, 2), ElementsAre(1)));
  EXPECT_EQ(plan.num_outputs(), 2u);
  EXPECT_THAT(std::vector<std::string>({plan.outputs()[0].name, plan.outputs()[1].name}),
              ElementsAre("b", "d"));
  ASSERT_EQ(plan.parameters().size(), 1u);
  // One compilation serves all three calls.
  EXPECT_EQ(plan.kernels()[0], plan.kernels()[2]);
}

// Reported case 17, as far as a plan says it: each update comes after the one before.
TEST(Prepare, InPlaceUpdatesChain) {
  std::string text = absl::StrCat(kIncrement, R"(
graph @main(%w: inout f32[16]) {
  %c1 = call @inc, %w
  %w1 = after %w, %c1
  %c2 = call @inc, %w1
  %w2 = after %w1, %c2
  %c3 = call @inc, %w2
  %w3 = after %w2, %c3
  return %w3
}
)");
  ExecutionPlan plan = Must(PrepareText(text));
  EXPECT_THAT(plan.op_levels(), ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
  EXPECT_EQ(plan.output_buffer(), &plan.buffers()[0]);
}

TEST(Prepare, LongChainsOfUpdatesTakeLinearTime) {
  auto context = std::make_shared<Context>();
  Module module = Must(ParseModule(kIncrement, "t.uop", context));
  const UOp* kernel = module.functions[0].root;
  const UOp* state = Must(context->Make(Op::kParam, Scalar::kF32, {context->Index(16)},
                                        ParamArgument{0, Access::kInOut, "w"}));
  constexpr int kNumCalls = 3000;
  for (int i = 0; i < kNumCalls; ++i) {
    const UOp* call = Must(context->Make(Op::kCall, {kernel, state}));
    state = Must(context->Make(Op::kAfter, {state, call}));
  }
  Function graph;
  graph.root = Must(context->Make(Op::kSink, {state}, FunctionArgument{false, "main", {}}));
  module.functions.push_back(graph);
  ExecutionPlan plan = Must(Prepare(module, "main", &Fake));
  EXPECT_EQ(plan.op_levels().size(), static_cast<size_t>(kNumCalls));
  for (size_t i = 1; i < kNumCalls; ++i) EXPECT_THAT(plan.op_levels()[i], ElementsAre(i));
}

TEST(Prepare, CopiesAndViewsBecomeOps) {
  ExecutionPlan plan = Must(PrepareText(absl::StrCat(kDouble, R"(
graph @main(%y: out f32[64], %x: f32[64]) {
  %xv = buffer_view %x, offset=64 : f32[16]
  %yv = buffer_view %y, offset=128 : f32[16]
  %c = call @double, %yv, %xv
  %y1 = after %y, %c
  %yw = buffer_view %y1, offset=0 : f32[16]
  %d = copy %yw, %xv
  %y2 = after %y1, %d
  return %y2
}
)")));
  // Views first, without dependencies; then the call, then the copy, which the text puts after it.
  ASSERT_EQ(plan.prepared_ops().size(), 5u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(std::holds_alternative<PreparedBufferView>(plan.prepared_ops()[i]));
  }
  EXPECT_THAT(plan.op_levels(), ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4)));
  const PreparedKernel& kernel = *plan.prepared_kernels()[0];
  const Buffer* y = plan.output_buffer();
  EXPECT_EQ(plan.buffers()[kernel.buffer_indices[0]].data(), y->data() + 128);
  // Bound memory takes its views along.
  Buffer other = Bytes(256);
  SVOD_ASSERT_OK(plan.Bind("y", other));
  EXPECT_EQ(kernel.buffer_pointers[0], other.data() + 128);
}

TEST(Prepare, CustomFunctionsGetBuffersAttributesAndBinds) {
  auto registry = std::make_shared<CustomFunctionRegistry>();
  SVOD_ASSERT_OK(registry->Register("sort", [](const CustomCall&) { return absl::OkStatus(); }));
  PrepareOptions options;
  options.custom_functions = registry;
  absl::string_view text = R"(
graph @main(%y: inout f32[64]) {
  %n = define_var "n", min=0, max=9
  %b = bind %n, 5
  %c = custom_function "sort", %y, 3:i32, %b
  %y1 = after %y, %c
  return %y1
}
)";
  ExecutionPlan plan = Must(PrepareText(text, options));
  const auto& custom = std::get<PreparedCustomFunction>(plan.prepared_ops()[0]);
  EXPECT_EQ(custom.kind, "sort");
  EXPECT_THAT(custom.buffer_indices, ElementsAre(0));
  ASSERT_EQ(custom.attributes.size(), 1u);
  EXPECT_EQ(ConstInt(custom.attributes[0]), 3);
  EXPECT_THAT(custom.fixed_variables, ElementsAre(Pair("n", 5)));
  ExpectError(PrepareError(text), absl::StatusCode::kUnimplemented,
              "custom function: \"sort\" is not registered");
}

constexpr absl::string_view kSized = R"(
kernel @fill(%n = define_var "n", min=1, max=64; %y: out f32[%n]) {
  %i = range %n loop
    store %y[%i], 1.0
  end %i
}
)";

// Reported case 15, as far as a plan says it.
TEST(Prepare, VariablesMustBeGivenAndShapesFollowThem) {
  ExecutionPlan plan = Must(PrepareText(kSized));
  ASSERT_EQ(plan.variables().size(), 1u);
  EXPECT_EQ(plan.variables()[0].name, "n");
  EXPECT_EQ(plan.variables()[0].value, std::nullopt);
  ExpectError(plan.BeginRun(), absl::StatusCode::kFailedPrecondition,
              "execute: variable n has no value, expected 1 to 64");
  for (int64_t n : {1, 2, 3, 4, 64}) {
    SVOD_ASSERT_OK(plan.SetVariables({{"n", n}}));
    EXPECT_THAT(plan.outputs()[0].shape, ElementsAre(n));
    EXPECT_THAT(plan.outputs()[0].max_shape, ElementsAre(64));
    EXPECT_EQ(plan.program().records[0].variables[0], n);
  }
  EXPECT_EQ(plan.output_buffer()->size_bytes(), 256);
  SVOD_EXPECT_OK(plan.BeginRun());
  plan.EndRun();
}

TEST(Prepare, FirstValuesComeFromTheOptions) {
  PrepareOptions options;
  options.variables = {{"n", 5}};
  EXPECT_EQ(Must(PrepareText(kSized, options)).variables()[0].value, 5);
  options.variables = {{"n", 65}};
  ExpectError(PrepareError(kSized, options), absl::StatusCode::kOutOfRange,
              "plan: variable n, got 65, expected 1 to 64");
  options.variables = {{"m", 5}};
  ExpectError(PrepareError(kSized, options), absl::StatusCode::kInvalidArgument,
              "prepare: no variable m");
}

TEST(Prepare, BindsFixVariablesAndSizes) {
  auto graph = [](int64_t size, int64_t bound) {
    return absl::StrCat(kSized, "graph @main() {\n  %y = buffer f32[", size,
                        "]\n  %n = define_var \"n\", min=1, max=64\n  %b = bind %n, ", bound,
                        "\n  %c = call @fill, %y, %b\n  %y1 = after %y, %c\n  return %y1\n}\n");
  };
  ExecutionPlan plan = Must(PrepareText(graph(5, 5)));
  EXPECT_THAT(plan.prepared_kernels()[0]->fixed_variables, ElementsAre(Pair("n", 5)));
  EXPECT_THAT(plan.prepared_kernels()[0]->values, ElementsAre(5));
  SVOD_ASSERT_OK(plan.SetVariables({{"n", 9}}));
  EXPECT_EQ(plan.program().records[0].variables[0], 5);
  SVOD_EXPECT_OK(plan.BeginRun());  // nothing is left to be given
  plan.EndRun();
  EXPECT_EQ(PrepareError(graph(5, 6)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PrepareError(graph(64, 65)).code(), absl::StatusCode::kOutOfRange);
}

TEST(Prepare, BuffersMustHoldTheLargestSizeOfWhatIsNotBound) {
  // Verification lets 63 elements through, since n may be small; a plan that serves all n does not.
  ExpectError(PrepareError(absl::StrCat(kSized, R"(graph @main() {
  %y = buffer f32[63]
  %c = call @fill, %y
  %y1 = after %y, %c
  return %y1
}
)")),
              absl::StatusCode::kInvalidArgument,
              "prepare: t.uop:9:3: %c: size of operand 0, got 252 bytes, expected at least 256");
}

TEST(Prepare, BindingChecksAccessAlignmentAndNames) {
  alignas(64) static float memory[32];
  ExecutionPlan plan = Must(PrepareText(kDouble));
  ExpectError(plan.Bind("z", Bytes(64)), absl::StatusCode::kInvalidArgument,
              "plan: no parameter z, expected one of [y, x]");
  ExpectError(plan.Bind("y", Must(Buffer::WrapConst(memory, 64))),
              absl::StatusCode::kInvalidArgument,
              "binding y: the buffer is read-only, the plan writes");
  ExpectError(plan.Bind("x", Must(Buffer::Wrap(reinterpret_cast<char*>(memory) + 2, 64))),
              absl::StatusCode::kInvalidArgument,
              "binding x: alignment, got an address 2 bytes past a multiple of 4, expected "
              "a multiple");
  ExpectError(plan.Bind("x", Bytes(60)), absl::StatusCode::kInvalidArgument,
              "binding x: plan: size of buffer 1, got 60 bytes, expected at least 64");
  SVOD_EXPECT_OK(plan.Bind("x", Must(Buffer::WrapConst(memory, 64))));
  // The same memory twice is an update in place.
  SVOD_EXPECT_OK(plan.Bind("y", Must(Buffer::Wrap(memory, 64))));
}

// Reported case 8: accesses that state no alignment take any element; those that do are checked.
TEST(Prepare, StatedAlignmentsAreAskedOfTheBuffers) {
  alignas(64) static float memory[32];
  auto text = [](absl::string_view align) {
    return absl::StrCat("kernel @v(%y: out f32[16], %x: f32[16]) {\n  %v = load %x[0]", align,
                        " : f32x4\n  store %y[0], %v\n}\n");
  };
  Buffer at_4 = Must(Buffer::Wrap(memory + 1, 64));
  ExecutionPlan loose = Must(PrepareText(text("")));
  SVOD_EXPECT_OK(loose.Bind("x", at_4));
  ExecutionPlan strict = Must(PrepareText(text(", align=16")));
  EXPECT_EQ(strict.FindParameter("x")->alignment, 16);
  ExpectError(strict.Bind("x", at_4), absl::StatusCode::kInvalidArgument,
              "binding x: alignment, got an address 4 bytes past a multiple of 16, expected "
              "a multiple");
}

TEST(Prepare, ParametersOfTheCallersTakeNoMemory) {
  PrepareOptions options;
  options.allocate_parameters = false;
  options.allocator = std::make_shared<BufferAllocator>();
  ExecutionPlan plan = Must(PrepareText(kDouble, options));
  EXPECT_EQ(options.allocator->live_bytes(), 0);
  ExpectError(plan.BeginRun(), absl::StatusCode::kFailedPrecondition,
              "execute: parameter y has no buffer, bind one first");
  SVOD_ASSERT_OK(plan.Bind("y", Bytes(64)));
  ExpectError(plan.BeginRun(), absl::StatusCode::kFailedPrecondition,
              "execute: parameter x has no buffer, bind one first");
  SVOD_ASSERT_OK(plan.Bind("x", Bytes(64)));
  SVOD_EXPECT_OK(plan.BeginRun());
  plan.EndRun();
}

TEST(Prepare, MemoryBeyondTheLimitIsAnError) {
  PrepareOptions options;
  options.allocator = std::make_shared<BufferAllocator>(100);
  absl::Status status = PrepareError(kDouble, options);
  ExpectError(status, absl::StatusCode::kResourceExhausted,
              "plan: buffer 1: buffer: allocating 64 bytes beside 64 live ones, limit 100");
  EXPECT_EQ(options.allocator->live_bytes(), 0);
}

TEST(Prepare, NamesOfFunctions) {
  std::string text = absl::StrCat(kDouble, kIncrement);
  ExpectError(PrepareError(text), absl::StatusCode::kInvalidArgument,
              "prepare: 2 kernels and no graph, expected the name of one");
  ExpectError(Prepare(Parse(text), "triple", &Fake).status(), absl::StatusCode::kInvalidArgument,
              "prepare: no function @triple");
  EXPECT_EQ(Must(Prepare(Parse(text), "inc", &Fake)).parameters().size(), 1u);
}

TEST(Prepare, ProgramsAreVerifiedFirst) {
  // A call reads what another writes, without an order; text would have put one there.
  auto context = std::make_shared<Context>();
  Module module = Must(ParseModule(absl::StrCat(kIncrement, kDouble), "t.uop", context));
  auto param = [&](int64_t slot, absl::string_view name) {
    return Must(context->Make(Op::kParam, Scalar::kF32, {context->Index(16)},
                              ParamArgument{slot, Access::kInOut, name}));
  };
  const UOp *w = param(0, "w"), *y = param(1, "y");
  const UOp* inc = Must(context->Make(Op::kCall, {module.functions[0].root, w}));
  const UOp* twice = Must(context->Make(Op::kCall, {module.functions[1].root, y, w}));
  Function graph;
  graph.root = Must(context->Make(
      Op::kSink,
      {Must(context->Make(Op::kAfter, {w, inc})), Must(context->Make(Op::kAfter, {y, twice}))},
      FunctionArgument{false, "main", {}}));
  module.functions.push_back(graph);
  absl::Status status = Prepare(module, "main", &Fake).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("verify: "));
  // And so are the kernels that a graph calls.
  status = PrepareError(R"(
kernel @bad(%y: out f32[16], %x: f32[16]) {
  store %x[0], 1.0
  store %y[0], 1.0
}
graph @main(%x: f32[16], %y: out f32[16]) {
  %c = call @bad, %y, %x
  %y1 = after %y, %c
  return %y1
}
)");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("verify: t.uop:3:"));
}

// The calls of the provider, with failures on demand.
TEST(Prepare, AllKernelsAreAskedForAtOnceAndTheFirstErrorByOrderWins) {
  std::string text;
  std::string calls = "graph @main(%x: f32[16]) {\n";
  for (int i = 0; i < 6; ++i) {
    std::string kernel(kDouble);
    kernel.replace(kernel.find("@double"), 7, absl::StrCat("@k", i));
    kernel.replace(kernel.find("add %v, %v"), 10, absl::StrCat("add %v, ", i, ".0"));
    text += kernel;
    absl::StrAppend(&calls, "  %b", i, " = buffer f32[16]\n  %c", i, " = call @k", i, ", %b", i,
                    ", %x\n  %s", i, " = after %b", i, ", %c", i, "\n");
  }
  text += calls + "  return %s0, %s1, %s2, %s3, %s4, %s5\n}\n";
  // A runner that takes the tasks backwards, on two threads.
  std::vector<int> sizes;
  PrepareOptions options;
  options.task_runner = [&](int num_tasks, const std::function<void(int)>& task) {
    sizes.push_back(num_tasks);
    std::thread other([&] {
      for (int i = num_tasks - 1; i >= num_tasks / 2; --i) task(i);
    });
    for (int i = num_tasks / 2 - 1; i >= 0; --i) task(i);
    other.join();
  };
  SVOD_EXPECT_OK(PrepareText(text, options).status());
  EXPECT_THAT(sizes, ElementsAre(6));
  KernelProvider failing =
      [](const UOp* sink) -> absl::StatusOr<std::shared_ptr<const CompiledKernel>> {
    absl::string_view name = sink->arg<FunctionArgument>().name;
    if (name == "k2" || name == "k4") return absl::InternalError(absl::StrCat("no ", name));
    return Fake(sink);
  };
  ExpectError(Prepare(Parse(text), "", failing, options).status(), absl::StatusCode::kInternal,
              "compiling kernel k2: no k2");
}

TEST(Prepare, MistakesOfTheProviderAreFound) {
  auto provide = [](std::shared_ptr<CompiledKernel> kernel) {
    return [kernel](const UOp*) -> absl::StatusOr<std::shared_ptr<const CompiledKernel>> {
      return std::shared_ptr<const CompiledKernel>(kernel);
    };
  };
  ExpectError(Prepare(Parse(kDouble), "", provide(nullptr)).status(), absl::StatusCode::kInternal,
              "compiling kernel double: the provider gave no kernel");
  auto kernel = FakeCompiled(&NothingKernel, 1, "odd");
  ExpectError(Prepare(Parse(kDouble), "", provide(kernel)).status(), absl::StatusCode::kInternal,
              "compiling kernel odd: it wants a variable v0 that the program does not have");
}

// Reported case 25: one kernel fed by 100 buffers.
TEST(Prepare, KernelsTakeAHundredBuffers) {
  std::string params = "%y: out f32[4]", loads;
  for (int i = 0; i < 100; ++i) {
    absl::StrAppend(&params, ", %x", i, ": f32[4]");
    absl::StrAppend(&loads, "  %l", i, " = load %x", i, "[0]\n  %s", i, " = add ",
                    i == 0 ? "0.0" : absl::StrCat("%s", i - 1), ", %l", i, "\n");
  }
  ExecutionPlan plan = Must(PrepareText(
      absl::StrCat("kernel @sum(", params, ") {\n", loads, "  store %y[0], %s99\n}\n")));
  EXPECT_EQ(plan.prepared_kernels()[0]->buffer_pointers.size(), 101u);
  EXPECT_NE(plan.FindParameter("x99"), nullptr);
}

TEST(Prepare, CostFollowsTripCounts) {
  auto cost = [](int64_t trips) {
    Module module = Parse(absl::StrCat("kernel @k(%y: out f32[", trips, "]) {\n  %i = range ",
                                       trips, " loop\n    store %y[%i], 1.0\n  end %i\n}\n"));
    return EstimateCostNs(module.functions[0].root);
  };
  EXPECT_LT(cost(16), 100);
  EXPECT_GT(cost(1 << 20), 1e5);
  EXPECT_NEAR(cost(1 << 21) / cost(1 << 20), 2, 0.1);
}

TEST(Prepare, ProductsThatBecomeTilesCostLess) {
  auto cost = [](absl::string_view shape, absl::string_view b) {
    Module module = Parse(absl::StrCat(
        R"(
kernel @k(%y: out f32[64, 64], %a: f32[64, 64], %b: f32)",
        shape, R"() opts=[auto] {
  %i = range 64 loop
    %j = range 64 loop
      %k = range 64 reduce
        %v = load %a[%i, %k]
        %w = load %b)",
        b, R"(
        %p = mul %v, %w
        %s = reduce_add %p, %k
      store %y[%i, %j], %s
    end %j
  end %i
})"));
    return EstimateCostNs(module.functions[0].root);
  };
  const double matmul = cost("[64, 64]", "[%k, %j]");
  // One factor is read once: that is for memory to bear.
  EXPECT_GT(cost("[64, 64, 64]", "[%i, %j, %k]"), 3 * matmul);
  EXPECT_LT(matmul, 30000);
}

TEST(Prepare, ReplicasRunTheSameOpsOnTheirOwnIntermediates) {
  ExecutionPlan plan = Must(PrepareText(absl::StrCat(kDouble, R"(
graph @main(%x: f32[16]) {
  %a = buffer f32[16]
  %c = call @double, %a, %x
  %a1 = after %a, %c
  return %a1
}
)")));
  ExecutionPlan replica = Must(plan.Replicate());
  EXPECT_EQ(replica.kernels()[0], plan.kernels()[0]);
  EXPECT_NE(replica.output_buffer()->data(), plan.output_buffer()->data());
  const PlanTensor* x = replica.FindParameter("x");
  ASSERT_NE(x, nullptr);
  EXPECT_EQ(replica.buffers()[x->buffer_index].data(), plan.buffers()[x->buffer_index].data());
  SVOD_EXPECT_OK(replica.Bind("x", Bytes(64)));
}

TEST(Prepare, EmptyGraphsAndParametersOfNoElements) {
  ExecutionPlan plan = Must(PrepareText(R"(
kernel @none(%y: out f32[0]) {
  %i = range 0 loop
    store %y[%i], 1.0
  end %i
}
)"));
  EXPECT_EQ(plan.outputs()[0].num_elements(), 0);
  EXPECT_EQ(plan.output_buffer()->size_bytes(), 0);
  EXPECT_NE(plan.prepared_kernels()[0]->buffer_pointers[0], nullptr);
}

}  // namespace
}  // namespace svod
