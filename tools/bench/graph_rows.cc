// What a large program costs before it is compiled: 1,000,000 nodes, and half as many to show that
// time is linear.
#include "absl/strings/str_cat.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "tools/bench/rows.h"

namespace svod::bench {
namespace {

// A kernel that stores one chain of additions and multiplications of a loaded value.
const UOp* Chain(Context& context, int64_t num_nodes) {
  DType type(Scalar::kF32);
  const UOp* one = context.Index(1);
  const UOp* y =
      ValueOrDie(context.Make(Op::kParam, type, {one}, ParamArgument{0, Access::kOut, "y"}));
  const UOp* x =
      ValueOrDie(context.Make(Op::kParam, type, {one}, ParamArgument{1, Access::kIn, "x"}));
  const UOp* zero = context.Index(0);
  const UOp* from = ValueOrDie(context.Make(Op::kIndex, {x, zero}));
  const UOp* to = ValueOrDie(context.Make(Op::kIndex, {y, zero}));
  const UOp* value = ValueOrDie(context.Make(Op::kLoad, type, {from}, AlignmentArgument{}));
  const UOp* other = value;
  while (static_cast<int64_t>(context.num_nodes()) + 2 < num_nodes) {
    Op op = context.num_nodes() % 2 == 0 ? Op::kAdd : Op::kMul;
    const UOp* next = ValueOrDie(context.Make(op, {value, other}));
    other = value;
    value = next;
  }
  const UOp* store = ValueOrDie(context.Make(Op::kStore, {to, value}, AlignmentArgument{}));
  return ValueOrDie(context.Make(Op::kSink, {store}, FunctionArgument{true, "chain", {}}));
}

void Large(benchmark::State& state, int64_t num_nodes, absl::string_view what) {
  auto build = [&](Function& function) {
    auto context = std::make_shared<Context>();
    function.root = Chain(*context, num_nodes);
    return context;
  };
  Function function;
  std::shared_ptr<Context> context = build(function);
  std::string text = ValueOrDie(Print(function));
  for (auto _ : state) {
    if (what == "build") {
      Function other;
      std::shared_ptr<Context> built = build(other);
      benchmark::DoNotOptimize(other);
    } else if (what == "print") {
      benchmark::DoNotOptimize(ValueOrDie(Print(function)));
    } else if (what == "parse") {
      benchmark::DoNotOptimize(ValueOrDie(ParseModule(text, "chain", std::make_shared<Context>())));
    } else {
      CheckOk(Verify(function));
    }
  }
  state.counters["ops"] = static_cast<double>(num_nodes);
}

}  // namespace

void RegisterGraphRows() {
  for (const char* what : {"build", "print", "parse", "verify"}) {
    for (int64_t thousands : {500, 1000}) {
      std::string row = absl::StrCat("nodes_", what, "_", thousands, "k/svod");
      Register(row, [=](benchmark::State& s) { Large(s, thousands * 1000, what); })
          ->Iterations(1)
          ->Repetitions(3);
    }
  }
}

}  // namespace svod::bench
