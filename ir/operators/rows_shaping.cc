// Rows of the operator table: putting tensors together, taking them apart, moving elements.
#include "absl/strings/str_cat.h"
#include "ir/operators/operator_rows.h"
#include "ir/operators/shaping.h"

namespace svod {
namespace {

constexpr const char* kShapes = "Shapes";
constexpr AttributeInfo kAxis = {"axis", AttributeKind::kInt, nullptr};

std::vector<int64_t> Ints(const OperatorCall& call, absl::string_view name) {
  return call.Get<std::vector<int64_t>>(name);
}

OperatorResults BuildSplit(TensorBuilder& builder, const OperatorCall& call) {
  if (call.Has("sizes") == call.Has("parts")) {
    builder.FailInvalid("attributes, got both or neither of sizes and parts, expected one");
    return {};
  }
  int64_t axis = call.Get<int64_t>("axis");
  if (call.Has("parts")) {
    return SplitEvenly(builder, call.operand(0), call.Get<int64_t>("parts"), axis);
  }
  return Split(builder, call.operand(0), call.Get<Shape>("sizes"), axis);
}

OperatorResults BuildSlice(TensorBuilder& builder, const OperatorCall& call) {
  const UOp* x = call.operand(0);
  int64_t axis = builder.Axis(x, call.Get<int64_t>("axis"), "slice");
  if (axis < 0) return {};
  Shape begin = call.Get<Shape>("begin");
  Shape end = call.Has("end") ? call.Get<Shape>("end") : Shape{builder.Dim(x, axis)};
  if (begin.size() != 1 || end.size() != 1) {
    builder.FailInvalid(absl::StrCat("begin and end, got ", begin.size(), " and ", end.size(),
                                     " numbers, expected one each"));
    return {};
  }
  return One(SliceAxis(builder, x, axis, begin[0], end[0], call.Get<int64_t>("step")));
}

OperatorResults BuildPad(TensorBuilder& builder, const OperatorCall& call) {
  auto mode = Choice<PadMode>(builder, call, "mode",
                              {{"constant", PadMode::kConstant},
                               {"reflect", PadMode::kReflect},
                               {"symmetric", PadMode::kSymmetric},
                               {"edge", PadMode::kEdge},
                               {"wrap", PadMode::kWrap}});
  if (!mode.has_value()) return {};
  return One(PadWith(builder, call.operand(0), Ints(call, "low"), Ints(call, "high"), *mode,
                     call.Get<double>("value")));
}

OperatorResults BuildTranspose(TensorBuilder& builder, const OperatorCall& call) {
  std::vector<int64_t> axes = Ints(call, "axes");
  if (!call.Has("axes")) {
    for (int64_t i = builder.RankOf(call.operand(0)); i-- > 0;) axes.push_back(i);
  }
  return One(builder.Permute(call.operand(0), axes));
}

// The two dimensions of a matrix that an attribute gives.
template <typename Build>
OperatorResults Matrix(TensorBuilder& builder, const OperatorCall& call, Build build) {
  Shape shape = call.Get<Shape>("shape");
  if (shape.size() == 2) return One(build(shape[0], shape[1]));
  builder.FailInvalid(absl::StrCat("shape, got ", ShapeToString(shape), ", expected 2 dimensions"));
  return {};
}

void AddMovement(OperatorRows* rows) {
  rows->push_back({"concatenate",
                   "x...",
                   {kAxis},
                   "y",
                   "tensors of one dtype with equal dimensions but along axis; y's is their sum",
                   "the tensors one after the other along axis",
                   kShapes,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(Concatenate(builder, call.operands(), call.Get<int64_t>("axis")));
                   }});
  rows->push_back({"stack_tensors",
                   "x...",
                   {{"axis", AttributeKind::kInt, "0"}},
                   "y",
                   "tensors of one shape and dtype; y has their number as dimension axis",
                   "the tensors side by side along a new axis",
                   kShapes,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(StackTensors(builder, call.operands(), call.Get<int64_t>("axis")));
                   }});
  rows->push_back({"split",
                   "x",
                   {{"axis", AttributeKind::kInt, "0"},
                    {"sizes", AttributeKind::kDims, ""},
                    {"parts", AttributeKind::kInt, ""}},
                   "y...",
                   "x's shape with a size along axis; sizes add up to the dimension",
                   "parts of x along axis, of the given sizes or that many of equal size",
                   kShapes,
                   BuildSplit});
  rows->push_back({"slice",
                   "x",
                   {kAxis,
                    {"begin", AttributeKind::kDims, "0"},
                    {"end", AttributeKind::kDims, ""},
                    {"step", AttributeKind::kInt, "1"}},
                   "y",
                   "x's shape with ceil((end - begin) / |step|) along axis; 0 <= begin <= end <= "
                   "the dimension, which end is by default",
                   "every step-th element from begin to before end; a negative step goes from the "
                   "last one back",
                   kShapes,
                   BuildSlice});
  rows->push_back({"pad_mode",
                   "x",
                   {{"low", AttributeKind::kInts, "0"},
                    {"high", AttributeKind::kInts, "0"},
                    {"mode", AttributeKind::kWord, "constant"},
                    {"value", AttributeKind::kFloat, "0"}},
                   "y",
                   "dimension i is low[i] + x's + high[i]; one number stands for all dimensions",
                   "x with more elements at its edges: value (constant), the mirror image without "
                   "the edge (reflect) or with it (symmetric), the edge, or the other end (wrap)",
                   kShapes,
                   BuildPad});
  rows->push_back({"tile",
                   "x",
                   {{"repeats", AttributeKind::kInts, nullptr}},
                   "y",
                   "dimension i is repeats[i] * x's; missing ones are 1, at the front",
                   "the whole of x again and again along each dimension",
                   kShapes,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(Tile(builder, call.operand(0), Ints(call, "repeats")));
                   }});
  rows->push_back({"repeat",
                   "x",
                   {{"count", AttributeKind::kInt, nullptr}, {"axis", AttributeKind::kInt, ""}},
                   "y",
                   "x's shape with count times as many along axis; without one x is flattened",
                   "every element count times in a row",
                   kShapes,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(Repeat(builder, call.operand(0), call.Get<int64_t>("count"),
                                       Optional<int64_t>(call, "axis")));
                   }});
  rows->push_back({"roll",
                   "x",
                   {{"shift", AttributeKind::kInt, nullptr}, kAxis},
                   "y",
                   "y has x's shape and dtype",
                   "elements moved shift places along axis, the last ones to the front",
                   kShapes,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(Roll(builder, call.operand(0), call.Get<int64_t>("shift"),
                                     call.Get<int64_t>("axis")));
                   }});
  rows->push_back({"transpose",
                   "x",
                   {{"axes", AttributeKind::kInts, ""}},
                   "y",
                   "dimension i of y is dimension axes[i] of x",
                   "x with its dimensions in another order, without axes in reverse",
                   kShapes,
                   BuildTranspose});
  rows->push_back({"flatten",
                   "x",
                   {{"begin", AttributeKind::kInt, "0"}, {"end", AttributeKind::kInt, "-1"}},
                   "y",
                   "dimensions begin to end, both included, become their product",
                   "x with several dimensions as one",
                   kShapes,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(Flatten(builder, call.operand(0), call.Get<int64_t>("begin"),
                                        call.Get<int64_t>("end")));
                   }});
  rows->push_back({"squeeze",
                   "x",
                   {{"axes", AttributeKind::kInts, ""}},
                   "y",
                   "without dimensions axes, which are 1; without axes, all that are 1",
                   "x without dimensions of 1",
                   kShapes,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(SqueezeAxes(builder, call.operand(0), Ints(call, "axes")));
                   }});
  rows->push_back({"unsqueeze",
                   "x",
                   {{"axes", AttributeKind::kInts, nullptr}},
                   "y",
                   "with dimensions of 1 at the places axes of y",
                   "x with new dimensions of 1",
                   kShapes,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(UnsqueezeAxes(builder, call.operand(0), Ints(call, "axes")));
                   }});
}

void AddMatrices(OperatorRows* rows) {
  AttributeInfo diagonal = {"diagonal", AttributeKind::kInt, "0"};
  AttributeInfo shape = {"shape", AttributeKind::kDims, nullptr};
  AttributeInfo dtype = {"dtype", AttributeKind::kDType, "f32"};
  rows->push_back({"tril",
                   "x",
                   {diagonal},
                   "y",
                   "x of at least 2 dimensions; y has x's shape and dtype",
                   "x with 0 above the diagonal: where column > row + diagonal",
                   kShapes,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(Tril(builder, call.operand(0), call.Get<int64_t>("diagonal")));
                   }});
  rows->push_back({"triu",
                   "x",
                   {diagonal},
                   "y",
                   "x of at least 2 dimensions; y has x's shape and dtype",
                   "x with 0 below the diagonal: where column < row + diagonal",
                   kShapes,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(Triu(builder, call.operand(0), call.Get<int64_t>("diagonal")));
                   }});
  rows->push_back(
      {"tri",
       "",
       {shape, {"diagonal", AttributeKind::kInt, "0"}, {"dtype", AttributeKind::kDType, "bool"}},
       "y",
       "y has the 2 dimensions of shape",
       "1 where column <= row + diagonal, else 0: as bool, a causal mask",
       kShapes,
       [](TensorBuilder& builder, const OperatorCall& call) {
         const UOp* bound = builder.Index(call.Get<int64_t>("diagonal"));
         return Matrix(builder, call, [&](const UOp* rows, const UOp* columns) {
           return builder.Cast(TriangularMask(builder, rows, columns, bound),
                               call.Get<DType>("dtype"));
         });
       }});
  rows->push_back({"eye",
                   "",
                   {shape, dtype},
                   "y",
                   "y has the 2 dimensions of shape",
                   "1 where row and column are equal, else 0",
                   kShapes,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return Matrix(builder, call, [&](const UOp* rows, const UOp* columns) {
                       return Eye(builder, rows, columns, call.Get<DType>("dtype"));
                     });
                   }});
  rows->push_back({"full",
                   "",
                   {shape, {"value", AttributeKind::kFloat, nullptr}, dtype},
                   "y",
                   "y has the shape and dtype",
                   "value everywhere",
                   kShapes,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(Full(builder, call.Get<Shape>("shape"), call.Get<double>("value"),
                                     call.Get<DType>("dtype")));
                   }});
}

}  // namespace

void AddShapingRows(OperatorRows* rows) {
  AddMovement(rows);
  AddMatrices(rows);
}

}  // namespace svod
