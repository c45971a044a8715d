// What a plan costs per kernel: chains and sets of tiny kernels beside plain calls of the same
// code.
#include <array>

#include "executor/executor.h"
#include "ir/kernel_builder.h"
#include "jit/kernel_cache.h"
#include "plan/plan_builder.h"
#include "plan/prepare.h"
#include "tools/bench/inputs.h"
#include "tools/bench/rows.h"

namespace svod::bench {
namespace {

constexpr int kNumKernels = 1000;
constexpr int64_t kElements = 256;
constexpr int kLanes = 16;

// y[i] = a[i] op b[i] for 256 floats, 16 at a time.
const UOp* BinaryKernel(std::shared_ptr<Context> context, Op op) {
  KernelBuilder builder(context, "binary");
  const UOp* y = builder.Param("y", Scalar::kF32, {kElements}, Access::kOut);
  const UOp* a = builder.Param("a", Scalar::kF32, {kElements}, Access::kIn);
  const UOp* b = builder.Param("b", Scalar::kF32, {kElements}, Access::kIn);
  const UOp* i = builder.Range(kElements / kLanes);
  const UOp* at = builder.Make(Op::kMul, {i, context->Index(kLanes)});
  KernelBuilder::AccessOptions options;
  options.lanes = kLanes;
  const UOp* left = builder.Load(a, {at}, options);
  const UOp* right = builder.Load(b, {at}, options);
  builder.Store(y, {at}, builder.Make(op, {left, right}), {});
  builder.End(i);
  return ValueOrDie(builder.Finish());
}

// Buffers 0 to 2 are the inputs x, w and b; kernel k writes buffer k + 3. In the chain it adds b to
// what kernel k - 1 wrote or multiplies that by w; in the set each adds b to x.
struct Dispatch {
  ExecutionPlan plan;
  std::vector<KernelPtr> kernels;
  std::vector<std::array<void*, 3>> pointers;
};

Dispatch MakeDispatch(bool is_chain) {
  auto context = std::make_shared<Context>();
  const UOp* sinks[] = {BinaryKernel(context, Op::kAdd), BinaryKernel(context, Op::kMul)};
  std::vector<KernelPtr> kernels;
  for (const UOp* sink : sinks) {
    kernels.push_back(ValueOrDie(ValueOrDie(KernelCache::Default())->GetOrCompile(sink)));
  }
  ExecutionPlanBuilder builder{DeviceSpec()};
  const std::vector<Buffer> inputs = MakeInputs({{"x", Scalar::kF32, {kElements}, {.seed = 0}},
                                                 {"w", Scalar::kF32, {kElements}, {.seed = 1}},
                                                 {"b", Scalar::kF32, {kElements}, {.seed = 2}}});
  constexpr size_t kX = 0, kW = 1, kB = 2, kFirst = 3;
  for (size_t k = 0; k < kFirst + kNumKernels; ++k) {
    Buffer buffer = k < kFirst ? inputs[k] : ValueOrDie(Buffer::Create(kElements * 4));
    CheckOk(buffer.Allocate());
    builder.AddBuffer(k, buffer);
  }
  std::vector<KernelPtr> used;
  for (size_t k = 0; k < kNumKernels; ++k) {
    const bool is_mul = is_chain && k % 2 == 1;
    PreparedKernel op;
    op.id = k;
    op.context = context;
    op.ast = sinks[is_mul];
    op.kernel = kernels[is_mul];
    op.buffer_indices = {kFirst + k, is_chain && k > 0 ? kFirst + k - 1 : kX, is_mul ? kW : kB};
    op.output_indices = {0};
    op.cost_ns = EstimateCostNs(op.ast);
    if (is_chain && k > 0) op.dependencies = {k - 1};
    used.push_back(op.kernel);
    builder.AddOp(op);
  }
  builder.SetOutputBuffer(kFirst + kNumKernels - 1);
  Dispatch dispatch{ValueOrDie(std::move(builder).Build()), std::move(used), {}};
  for (const PreparedKernel* op : dispatch.plan.prepared_kernels()) {
    std::array<void*, 3> pointers;
    for (size_t i = 0; i < 3; ++i) {
      pointers[i] = dispatch.plan.buffers()[op->buffer_indices[i]].data();
    }
    dispatch.pointers.push_back(pointers);
  }
  return dispatch;
}

}  // namespace

std::vector<Record> RunDispatch(bool is_chain, Executor& executor) {
  Dispatch dispatch = MakeDispatch(is_chain);
  ExecuteOptions options;
  options.executor = &executor;
  auto samples = [&]() -> std::vector<double> {
    if (!is_chain) return {};  // peers put the results together, which is no dispatch
    return Samples(dispatch.plan.output_buffer()->data(), Scalar::kF32, kElements);
  };
  // The floor: the same function pointers called in a loop.
  auto call = [&] {
    for (size_t k = 0; k < kNumKernels; ++k) {
      dispatch.kernels[k]->function(dispatch.pointers[k].data(), nullptr, 0, nullptr);
    }
  };
  const Contender contenders[] = {{.peer = "svod",
                                   .run = [&] { CheckOk(Execute(dispatch.plan, options)); },
                                   .samples = samples},
                                  {.peer = "calls (floor)", .run = call, .samples = samples}};
  const std::vector<Timing> timings = MeasureSideBySide(contenders);
  std::vector<Record> records;
  for (size_t i = 0; i < timings.size(); ++i) {
    Record record{is_chain ? "dep1000" : "indep1000", contenders[i].peer, executor.num_threads(),
                  timings[i]};
    record.samples = contenders[i].samples();
    record.more.emplace_back("ops", kNumKernels);
    record.more.emplace_back("ns_per_op", timings[i].median_ns / kNumKernels);
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace svod::bench
