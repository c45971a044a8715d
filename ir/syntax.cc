#include "ir/syntax.h"

#include "absl/strings/str_cat.h"

namespace svod {

Syntax SyntaxOf(Op op) {
  switch (InfoOf(op).argument) {
    case ArgumentKind::kNone:
      if (op == Op::kReshape || op == Op::kExpand) {
        return {.list = "the dimensions, such as [64, %n]"};
      }
      if (op == Op::kPad) return {.attributes = {"low", "high"}};
      if (op == Op::kShrink) return {.attributes = {"begin", "size"}};
      return {};
    case ArgumentKind::kConst:
    case ArgumentKind::kParam:
    case ArgumentKind::kReduce:
    case ArgumentKind::kFunction:
      return {};
    case ArgumentKind::kAxes:
      if (op == Op::kGather) return {.attributes = {"axis"}};
      return {.attributes = {"axes"}};
    case ArgumentKind::kReduceAxes:
      return {.attributes = {"axes"}, .flags = {"keep"}};
    case ArgumentKind::kScatter:
      return {.attributes = {"axis"}};
    case ArgumentKind::kVariable:
      return {.string = true, .attributes = {"min", "max"}};
    case ArgumentKind::kBuffer:
    case ArgumentKind::kScratch:
      return {.shape = true, .attributes = {"id"}};
    case ArgumentKind::kAlignment:
      return {.address = true,
              .attributes = {"gate", "alt", "align"},
              .flags = {"exact", op == Op::kStore ? "stream" : nullptr}};
    case ArgumentKind::kAxis:
      return {.keyword = true, .attributes = {"axis"}};
    case ArgumentKind::kLanes:
      return {.list = "the lanes, such as [0, 2]"};
    case ArgumentKind::kView:
      return {.attributes = {"offset"}};
    case ArgumentKind::kCustom:
      return {.string = true};
  }
  return {};
}

bool TakesType(Op op) {
  return InfoOf(op).dtype_rule == DTypeRule::kExplicit && !SyntaxOf(op).shape;
}

std::string WhyNotIn(Block block, Op op) {
  auto reason = [&](absl::string_view what) { return absl::StrCat(InfoOf(op).text, ": ", what); };
  if (op == Op::kParam) return reason("no line of its own, expected in the header: '%x: f32[64]'");
  if (op == Op::kIndex) return reason("no line of its own, expected in an access: '%x[%i]'");
  if (op == Op::kConst || op == Op::kDefineVar || IsElementwise(op)) return "";
  if (block == Block::kHeader) return reason("in a header, expected define_var or arithmetic");
  OpClass op_class = InfoOf(op).op_class;
  bool is_for_graphs = op_class == OpClass::kPlan || op_class == OpClass::kTensor ||
                       op == Op::kBuffer || op == Op::kBind;
  if (block == Block::kGraph && !is_for_graphs && op != Op::kAfter) {
    return reason("in a graph, expected in a kernel");
  }
  if (block == Block::kKernel && is_for_graphs) return reason("in a kernel, expected in a graph");
  return "";
}

std::optional<DType> ExpectedDType(Op op, size_t i, absl::Span<const std::optional<DType>> known,
                                   DType dtype) {
  auto first_known = [&](size_t from) -> std::optional<DType> {
    for (size_t k = from; k < known.size(); ++k) {
      if (known[k].has_value()) return known[k];
    }
    return std::nullopt;
  };
  switch (InfoOf(op).dtype_rule) {
    case DTypeRule::kSameAsOperands:
    case DTypeRule::kBoolOfOperands:
    case DTypeRule::kStack:
      return first_known(0);
    case DTypeRule::kWhere: {
      std::optional<DType> branch = first_known(1);
      if (i > 0 || !branch.has_value()) return branch;
      return DType(Scalar::kBool, branch->lanes);
    }
    case DTypeRule::kDot: {
      std::optional<DType> any = first_known(0);
      if (!any.has_value()) return std::nullopt;
      return DType(i == 2 && op == Op::kDotBF16 ? Scalar::kF32 : Scalar::kI32, any->lanes);
    }
    case DTypeRule::kIndex:
      return DType(Scalar::kIndex);
    case DTypeRule::kFirstSource:
      if (op == Op::kBind) return DType(Scalar::kIndex);
      if ((op == Op::kPad && i == 1) || (op == Op::kScatter && i == 2)) return known[0];
      return std::nullopt;
    case DTypeRule::kExplicit:
      if (op == Op::kSplat) return dtype.element();
      if (op == Op::kArange) return DType(Scalar::kIndex);
      return std::nullopt;
    case DTypeRule::kVoid:
      if (op == Op::kAssign && i == 1) return known[0];
      return std::nullopt;
    case DTypeRule::kLanes:
    case DTypeRule::kPick:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace svod
