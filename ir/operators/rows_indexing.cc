// Rows of the operator table: reads and writes at positions.
#include "absl/strings/str_cat.h"
#include "ir/operators/indexing.h"
#include "ir/operators/operator_rows.h"

namespace svod {
namespace {

constexpr const char* kIndexing = "Indexing";
constexpr AttributeInfo kAxis = {"axis", AttributeKind::kInt, nullptr};
constexpr AttributeInfo kMode = {"mode", AttributeKind::kWord, "set"};

std::optional<ScatterKind> ModeOf(TensorBuilder& builder, const OperatorCall& call) {
  return Choice<ScatterKind>(builder, call, "mode",
                             {{"set", ScatterKind::kSet},
                              {"add", ScatterKind::kAdd},
                              {"mul", ScatterKind::kMul},
                              {"max", ScatterKind::kMax},
                              {"min", ScatterKind::kMin}});
}

OperatorResults BuildOneHot(TensorBuilder& builder, const OperatorCall& call) {
  Shape depth = call.Get<Shape>("depth");
  if (depth.size() != 1) {
    builder.FailInvalid(absl::StrCat("depth, got ", depth.size(), " numbers, expected one"));
    return {};
  }
  return One(OneHot(builder, call.operand(0), depth[0], call.Get<DType>("dtype"),
                    call.Get<int64_t>("axis")));
}

}  // namespace

void AddIndexingRows(OperatorRows* rows) {
  rows->push_back(
      {"take",
       "x, positions",
       {{"axis", AttributeKind::kInt, "0"}},
       "y",
       "x [A..., N, B...], positions [P...] of integers, y [A..., P..., B...]",
       "parts of x at positions along axis; negative ones count from the end, "
       "outside there is 0",
       kIndexing,
       [](TensorBuilder& builder, const OperatorCall& call) {
         return One(Take(builder, call.operand(0), call.operand(1), call.Get<int64_t>("axis")));
       }});
  rows->push_back({"take_along_axis",
                   "x, positions",
                   {kAxis},
                   "y",
                   "x and positions broadcast but along axis, where y has positions' dimension",
                   "elements of x at positions along axis, as take",
                   kIndexing,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(TakeAlongAxis(builder, call.operand(0), call.operand(1),
                                              call.Get<int64_t>("axis")));
                   }});
  rows->push_back({"embedding",
                   "table, ids",
                   {},
                   "y",
                   "table [N, D...], ids [P...] of integers, y [P..., D...]",
                   "rows of table by number, as take",
                   kIndexing,
                   Binary<Embedding>});
  rows->push_back({"one_hot",
                   "ids",
                   {{"depth", AttributeKind::kDims, nullptr},
                    {"axis", AttributeKind::kInt, "-1"},
                    {"dtype", AttributeKind::kDType, "f32"}},
                   "y",
                   "y has ids' dimensions and depth, as dimension axis",
                   "1 at the position that ids give along axis, else 0; negative ids count from "
                   "the end",
                   kIndexing,
                   BuildOneHot});
  rows->push_back({"gather_nd",
                   "x, positions",
                   {},
                   "y",
                   "x [D1, ..., DK, R...], positions [P..., K], y [P..., R...]",
                   "parts of x at positions of K coordinates, as take",
                   kIndexing,
                   Binary<GatherNd>});
  rows->push_back(
      {"scatter_nd",
       "x, positions, updates",
       {kMode},
       "y",
       "x [D1, ..., DK, R...], positions [P..., K], updates [P..., R...], y as x",
       "x after updates were stored (set) or folded in (add, mul, max, min) at "
       "positions, in row-major order; outside they are left out",
       kIndexing,
       [](TensorBuilder& builder, const OperatorCall& call) {
         auto mode = ModeOf(builder, call);
         if (!mode.has_value()) return OperatorResults();
         return One(ScatterNd(builder, call.operand(0), call.operand(1), call.operand(2), *mode));
       }});
  rows->push_back({"scatter_elements",
                   "x, positions, updates",
                   {kAxis, kMode},
                   "y",
                   "positions and updates of one shape, no larger than x's but along axis; y as x",
                   "x after updates went to positions along axis, as scatter_nd",
                   kIndexing,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     auto mode = ModeOf(builder, call);
                     if (!mode.has_value()) return OperatorResults();
                     return One(ScatterElements(builder, call.operand(0), call.operand(1),
                                                call.operand(2), call.Get<int64_t>("axis"), *mode));
                   }});
}

}  // namespace svod
