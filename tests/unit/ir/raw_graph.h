// RawGraph: makes nodes one by one for tests of the graph itself, without KernelBuilder's help.
// Included by tests only. Aborts the test program on a node that the op table refuses.
#ifndef SVOD_TESTS_UNIT_IR_RAW_GRAPH_H_
#define SVOD_TESTS_UNIT_IR_RAW_GRAPH_H_

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ir/uop.h"

namespace svod {

class RawGraph {
 public:
  using Nodes = std::vector<const UOp*>;

  Context context;

  const UOp* Make(Op op, DType dtype, const Nodes& sources, const Argument& argument = {}) {
    absl::StatusOr<const UOp*> node = context.Make(op, dtype, sources, argument);
    if (!node.ok()) {
      std::fprintf(stderr, "RawGraph: %s\n", node.status().ToString().c_str());
      std::abort();
    }
    return *node;
  }
  const UOp* Make(Op op, const Nodes& sources, const Argument& argument = {}) {
    return Make(op, DType(), sources, argument);
  }

  const UOp* Int(int64_t value) { return context.Index(value); }
  const UOp* Float(double value) { return context.Float(Scalar::kF32, value); }
  const UOp* Param(int64_t slot, int64_t size, Access access = Access::kInOut,
                   DType dtype = Scalar::kF32) {
    return Make(Op::kParam, dtype, {Int(size)}, ParamArgument{slot, access, ""});
  }
  const UOp* Reg(int64_t id, int64_t size, DType dtype = Scalar::kF32) {
    return Make(Op::kReg, dtype, {}, ScratchArgument{id, size});
  }
  const UOp* Local(int64_t id, int64_t size, DType dtype = Scalar::kF32) {
    return Make(Op::kLocal, dtype, {}, ScratchArgument{id, size});
  }
  const UOp* Variable(const char* name, int64_t min, int64_t max) {
    return Make(Op::kDefineVar, {}, VariableArgument{name, min, max});
  }
  const UOp* Range(int64_t axis, const UOp* end, AxisKind kind = AxisKind::kLoop) {
    return Make(Op::kRange, {end}, AxisArgument{axis, kind});
  }
  const UOp* Range(int64_t axis, int64_t end) { return Range(axis, Int(end)); }
  const UOp* End(const UOp* range, Nodes effects) {
    effects.insert(effects.begin(), range);
    return Make(Op::kEnd, effects);
  }
  const UOp* Reduce(ReduceKind kind, const UOp* value, Nodes ranges) {
    ranges.insert(ranges.begin(), value);
    return Make(Op::kReduce, ranges, ReduceArgument{kind});
  }
  const UOp* Sum(const UOp* value, const Nodes& ranges) {
    return Reduce(ReduceKind::kAdd, value, ranges);
  }
  const UOp* After(const UOp* buffer, Nodes others) {
    others.insert(others.begin(), buffer);
    return Make(Op::kAfter, others);
  }
  const UOp* Index(const UOp* buffer, const UOp* position, const UOp* gate = nullptr) {
    return gate == nullptr ? Make(Op::kIndex, {buffer, position})
                           : Make(Op::kIndex, {buffer, position, gate});
  }
  const UOp* Load(const UOp* buffer, const UOp* position, int lanes = 1) {
    return LoadAt(Index(buffer, position), lanes);
  }
  const UOp* LoadAt(const UOp* index, int lanes = 1) {
    DType dtype = index->dtype();
    if (!dtype.is_vector()) dtype = dtype.with_lanes(lanes);
    return Make(Op::kLoad, dtype, {index}, AlignmentArgument{0});
  }
  const UOp* Store(const UOp* buffer, const UOp* position, const UOp* value) {
    return Make(Op::kStore, {Index(buffer, position), value}, AlignmentArgument{0});
  }
  const UOp* StoreAt(const UOp* index, const UOp* value) {
    return Make(Op::kStore, {index, value}, AlignmentArgument{0});
  }
  const UOp* Splat(const UOp* value, int lanes) {
    return Make(Op::kSplat, value->dtype().with_lanes(lanes), {value});
  }
  // 0, 1, ..., lanes - 1
  const UOp* Ramp(int lanes) {
    Nodes elements;
    for (int i = 0; i < lanes; ++i) elements.push_back(Int(i));
    return Make(Op::kStack, elements);
  }
  const UOp* Add(const UOp* a, const UOp* b) { return Make(Op::kAdd, {a, b}); }
  const UOp* Sub(const UOp* a, const UOp* b) { return Make(Op::kSub, {a, b}); }
  const UOp* Mul(const UOp* a, const UOp* b) { return Make(Op::kMul, {a, b}); }
  const UOp* And(const UOp* a, const UOp* b) { return Make(Op::kAnd, {a, b}); }
  const UOp* Lt(const UOp* a, const UOp* b) { return Make(Op::kCmpLt, {a, b}); }
  const UOp* Le(const UOp* a, const UOp* b) { return Make(Op::kCmpLe, {a, b}); }
  const UOp* Kernel(const Nodes& effects, const char* name = "k") {
    return Make(Op::kSink, effects, FunctionArgument{true, name, {}});
  }
  const UOp* Plan(const Nodes& states, const char* name = "main") {
    return Make(Op::kSink, states, FunctionArgument{false, name, {}});
  }
};

}  // namespace svod

#endif  // SVOD_TESTS_UNIT_IR_RAW_GRAPH_H_
