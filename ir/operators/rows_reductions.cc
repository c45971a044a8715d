// Rows of the operator table: reductions, scans and sorting.
#include "ir/operators/operator_rows.h"
#include "ir/operators/reductions.h"
#include "ir/operators/scan.h"
#include "ir/operators/sorting.h"

namespace svod {
namespace {

constexpr const char* kReductions = "Reductions";
constexpr const char* kScans = "Scans and sorting";
constexpr AttributeInfo kAxes = {"axes", AttributeKind::kInts, ""};
constexpr AttributeInfo kKeep = {"keep", AttributeKind::kBool, "false"};
constexpr AttributeInfo kDType = {"dtype", AttributeKind::kDType, ""};
constexpr AttributeInfo kLastAxis = {"axis", AttributeKind::kInt, "-1"};

ReduceOptions OptionsOf(const OperatorCall& call) {
  return {call.Get<std::vector<int64_t>>("axes"), call.Get<bool>("keep")};
}

template <const UOp* (*kBuild)(TensorBuilder&, const UOp*, const ReduceOptions&)>
OperatorResults Reduction(TensorBuilder& builder, const OperatorCall& call) {
  return One(kBuild(builder, call.operand(0), OptionsOf(call)));
}
template <const UOp* (*kBuild)(TensorBuilder&, const UOp*, const ReduceOptions&,
                               std::optional<DType>)>
OperatorResults TypedReduction(TensorBuilder& builder, const OperatorCall& call) {
  return One(kBuild(builder, call.operand(0), OptionsOf(call), Optional<DType>(call, "dtype")));
}
template <const UOp* (*kBuild)(TensorBuilder&, const UOp*, const ReduceOptions&, int64_t)>
OperatorResults Spread(TensorBuilder& builder, const OperatorCall& call) {
  return One(kBuild(builder, call.operand(0), OptionsOf(call), call.Get<int64_t>("correction")));
}
template <const UOp* (*kBuild)(TensorBuilder&, const UOp*, std::optional<int64_t>, bool, DType)>
OperatorResults ArgExtreme(TensorBuilder& builder, const OperatorCall& call) {
  return One(kBuild(builder, call.operand(0), Optional<int64_t>(call, "axis"),
                    call.Get<bool>("keep"), call.Get<DType>("dtype")));
}

ScanOptions ScanOptionsOf(const OperatorCall& call) {
  return {call.Get<bool>("exclusive"), call.Get<bool>("reverse")};
}
template <const UOp* (*kBuild)(TensorBuilder&, const UOp*, int64_t, const ScanOptions&,
                               std::optional<DType>)>
OperatorResults TypedScan(TensorBuilder& builder, const OperatorCall& call) {
  return One(kBuild(builder, call.operand(0), call.Get<int64_t>("axis"), ScanOptionsOf(call),
                    Optional<DType>(call, "dtype")));
}
template <const UOp* (*kBuild)(TensorBuilder&, const UOp*, int64_t, const ScanOptions&)>
OperatorResults Scan(TensorBuilder& builder, const OperatorCall& call) {
  return One(kBuild(builder, call.operand(0), call.Get<int64_t>("axis"), ScanOptionsOf(call)));
}

void AddReductions(OperatorRows* rows) {
  const char* same = "y has x's shape without the axes (all if none are given), or 1 with keep";
  const char* sums =
      "y as for amax; floats keep their dtype, bool and signed integers give i64, unsigned ones "
      "u64, unless dtype says otherwise";
  auto add = [&](const char* name, const char* shapes, const char* meaning, auto build) {
    rows->push_back({name, "x", {kAxes, kKeep}, "y", shapes, meaning, kReductions, build});
  };
  auto typed = [&](const char* name, const char* meaning, auto build) {
    rows->push_back({name, "x", {kAxes, kKeep, kDType}, "y", sums, meaning, kReductions, build});
  };
  typed("sum", "the sum; of no elements 0", TypedReduction<Sum>);
  typed("prod", "the product; of no elements 1", TypedReduction<Prod>);
  add("amax", same, "the largest; NaN if any is NaN", Reduction<Amax>);
  add("amin", same, "the smallest; NaN if any is NaN", Reduction<Amin>);
  add("all", "y is bool, its shape as for amax", "whether none is 0; NaN is not", Reduction<All>);
  add("any", "y is bool, its shape as for amax", "whether one is not 0; NaN is not",
      Reduction<Any>);
  auto arg = [&](const char* name, const char* meaning, auto build) {
    rows->push_back(
        {name,
         "x",
         {{"axis", AttributeKind::kInt, ""}, kKeep, {"dtype", AttributeKind::kDType, "i64"}},
         "y",
         "y is an integer, of x's shape without the axis, or [] without one",
         meaning,
         kReductions,
         build});
  };
  arg("argmax",
      "position of the first largest element, or the first NaN; without an axis among all in "
      "row-major order",
      ArgExtreme<Argmax>);
  arg("argmin", "position of the first smallest element, or the first NaN", ArgExtreme<Argmin>);
  const char* floats = "y as for amax; floats keep their dtype, integers and bools give f64";
  add("mean", floats, "the mean; of no elements NaN", Reduction<Mean>);
  auto spread = [&](const char* name, const char* meaning, auto build) {
    rows->push_back({name,
                     "x",
                     {kAxes, kKeep, {"correction", AttributeKind::kInt, "0"}},
                     "y",
                     floats,
                     meaning,
                     kReductions,
                     build});
  };
  spread("variance", "the sum of squared distances from the mean over the count less correction",
         Spread<Variance>);
  spread("std", "the square root of variance", Spread<StandardDeviation>);
  rows->push_back(
      {"norm",
       "x",
       {kAxes, kKeep, {"order", AttributeKind::kFloat, "2"}},
       "y",
       floats,
       "(sum |x|^order)^(1 / order); inf and -inf: the largest and least |x|; 0: how "
       "many are not 0",
       kReductions,
       [](TensorBuilder& builder, const OperatorCall& call) {
         return One(Norm(builder, call.operand(0), call.Get<double>("order"), OptionsOf(call)));
       }});
  add("logsumexp", "x of a float dtype; y as for amax", "log(sum(exp(x))), without overflow",
      Reduction<LogSumExp>);
  auto along = [&](const char* name, const char* meaning, auto build) {
    rows->push_back({name,
                     "x",
                     {kLastAxis},
                     "y",
                     "x of a float dtype; y has x's shape and dtype",
                     meaning,
                     kReductions,
                     build});
  };
  along("softmax", "exp(x - max) / sum(exp(x - max)) along the axis",
        [](TensorBuilder& builder, const OperatorCall& call) {
          return One(Softmax(builder, call.operand(0), call.Get<int64_t>("axis")));
        });
  along("log_softmax", "x - max - log(sum(exp(x - max))) along the axis",
        [](TensorBuilder& builder, const OperatorCall& call) {
          return One(LogSoftmax(builder, call.operand(0), call.Get<int64_t>("axis")));
        });
}

void AddScans(OperatorRows* rows) {
  AttributeInfo exclusive = {"exclusive", AttributeKind::kBool, "false"};
  AttributeInfo reverse = {"reverse", AttributeKind::kBool, "false"};
  auto typed = [&](const char* name, const char* meaning, auto build) {
    rows->push_back({name,
                     "x",
                     {{"axis", AttributeKind::kInt, nullptr}, exclusive, reverse, kDType},
                     "y",
                     "y has x's shape, and its dtype as for sum",
                     meaning,
                     kScans,
                     build});
  };
  auto add = [&](const char* name, const char* meaning, auto build) {
    rows->push_back({name,
                     "x",
                     {{"axis", AttributeKind::kInt, nullptr}, exclusive, reverse},
                     "y",
                     "y has x's shape and dtype",
                     meaning,
                     kScans,
                     build});
  };
  typed("cumsum",
        "the sum of all up to each element; exclusive: of those before it; reverse: from the end",
        TypedScan<CumulativeSum>);
  typed("cumprod", "the product of all up to each element", TypedScan<CumulativeProduct>);
  add("cummax", "the largest of all up to each element", Scan<CumulativeMax>);
  add("cummin", "the smallest of all up to each element", Scan<CumulativeMin>);
  AttributeInfo descending = {"descending", AttributeKind::kBool, "false"};
  rows->push_back({"sort",
                   "x",
                   {kLastAxis, descending},
                   "values, positions",
                   "values has x's shape and dtype, positions is i64",
                   "the elements in order and where they were; stable; NaN behind all numbers, "
                   "in descending order before them",
                   kScans,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return Two(Sort(builder, call.operand(0), call.Get<int64_t>("axis"),
                                     call.Get<bool>("descending")));
                   }});
  rows->push_back({"argsort",
                   "x",
                   {kLastAxis, descending},
                   "positions",
                   "positions is i64 of x's shape",
                   "the positions that sort gives",
                   kScans,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(Sort(builder, call.operand(0), call.Get<int64_t>("axis"),
                                     call.Get<bool>("descending"))
                                    .second);
                   }});
  rows->push_back({"top_k",
                   "x",
                   {{"count", AttributeKind::kInt, nullptr},
                    kLastAxis,
                    {"largest", AttributeKind::kBool, "true"}},
                   "values, positions",
                   "x's shape with count along the axis; positions is i64",
                   "the first of sort in descending order, or in ascending if not largest",
                   kScans,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return Two(TopK(builder, call.operand(0), call.Get<int64_t>("count"),
                                     call.Get<int64_t>("axis"), call.Get<bool>("largest")));
                   }});
}

}  // namespace

void AddReductionRows(OperatorRows* rows) {
  AddReductions(rows);
  AddScans(rows);
}

}  // namespace svod
