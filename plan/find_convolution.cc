#include "plan/find_convolution.h"

#include <algorithm>
#include <utility>

#include "ir/status_macros.h"
#include "plan/index_map.h"

namespace svod {
namespace {

using Loops = std::vector<ProductLoop>;

bool IsIn(const Loops& loops, const ProductLoop& loop) {
  return std::any_of(loops.begin(), loops.end(),
                     [&](const ProductLoop& other) { return other.range == loop.range; });
}

class Finder {
 public:
  Finder(ShapeAnalysis& shapes, Context& context)
      : shapes_(shapes), context_(context), map_(shapes, context) {}

  absl::StatusOr<std::optional<Convolution>> Find(const UOp* reduce) {
    const auto& argument = reduce->arg<ReduceAxesArgument>();
    const UOp* product = reduce->source(0);
    if (argument.kind != ReduceKind::kAdd || product->op() != Op::kMul) return std::nullopt;
    SVOD_ASSIGN_OR_RETURN(ShapeSpan shape, shapes_.Of(product));
    Shape index;
    for (size_t i = 0; i < shape.size(); ++i) {
      index.push_back(context_.Index(0));
      if (IsConstInt(shape[i], 1)) continue;
      const auto axis = static_cast<int64_t>(i);
      SVOD_ASSIGN_OR_RETURN(index.back(),
                            context_.Make(Op::kRange, DType(), {shape[i]}, AxisArgument{axis}));
      loops_.push_back({axis, index.back(), shape[i],
                        std::binary_search(argument.axes.begin(), argument.axes.end(), axis)});
    }
    for (int picture : {0, 1}) {
      const UOp* weights = product->source(1 - picture);
      SVOD_ASSIGN_OR_RETURN(auto below, Below(product->source(picture), index));
      SVOD_ASSIGN_OR_RETURN(auto other, Below(weights, index));
      Convolution found;
      found.rank = shape.size();
      found.picture = below.first;
      found.weights = weights;
      if (Match(below.second, other.second, &found)) return found;
    }
    return std::nullopt;
  }

 private:
  // Where the element of `operand` at `index` of the product is, below movement; a PAD is not
  // looked through.
  absl::StatusOr<std::pair<const UOp*, Shape>> Below(const UOp* operand, ShapeSpan index) {
    SVOD_ASSIGN_OR_RETURN(ShapeSpan shape, shapes_.Of(operand));
    Shape at = map_.Broadcast(index, shape);
    while (IsMovement(operand->op()) && operand->op() != Op::kPad) {
      SVOD_ASSIGN_OR_RETURN(Position below, map_.Through(operand, at));
      at = std::move(below.index);
      operand = operand->source(0);
    }
    return std::pair(operand, std::move(at));
  }

  Loops LoopsIn(const UOp* index) {
    Loops found;
    for (const UOp* node : Toposort(index)) {
      for (const ProductLoop& loop : loops_) {
        if (loop.range == node) found.push_back(loop);
      }
    }
    return found;
  }

  std::optional<Coordinate> CoordinateOf(const UOp* index) {
    Affine affine = shapes_.dims().ranges().AffineOf(index);
    Coordinate coordinate{affine.constant, {}};
    if (!affine.exact || affine.constant < 0 || affine.terms.size() > 2) return std::nullopt;
    for (const Term& term : affine.terms) {
      if (term.atoms.size() != 1 || term.coefficient != 1) return std::nullopt;
      Loops loops = LoopsIn(term.atoms[0].node);
      if (loops.size() != 1 || loops[0].range != term.atoms[0].node) return std::nullopt;
      coordinate.loops.push_back(loops[0]);
    }
    // What is summed comes last.
    if (coordinate.loops.size() == 2 && coordinate.loops[0].is_summed) {
      std::swap(coordinate.loops[0], coordinate.loops[1]);
    }
    return coordinate;
  }

  // Every loop has one part in a convolution, by the operands that move with it.
  bool Match(const Shape& picture_at, const Shape& weights_at, Convolution* found) {
    Loops in_weights, in_picture;
    for (const UOp* index : weights_at) {
      for (const ProductLoop& loop : LoopsIn(index)) in_weights.push_back(loop);
    }
    for (size_t i = 0; i < picture_at.size(); ++i) {
      const auto axis = static_cast<int64_t>(i);
      std::optional<Coordinate> coordinate = CoordinateOf(picture_at[i]);
      if (!coordinate.has_value()) return false;
      const Loops& loops = coordinate->loops;
      for (const ProductLoop& loop : loops) {
        if (IsIn(in_picture, loop)) return false;
        in_picture.push_back(loop);
      }
      if (loops.empty()) {
        found->fixed_axes.push_back(axis);
      } else if (loops.size() == 1) {
        // Groups would move with both operands without being summed.
        if (loops[0].is_summed != IsIn(in_weights, loops[0])) return false;
        (loops[0].is_summed ? found->inputs : found->pictures).push_back(loops[0]);
        (loops[0].is_summed ? found->input_axes : found->picture_axes).push_back(axis);
      } else {
        const bool is_window = !loops[0].is_summed && !IsIn(in_weights, loops[0]) &&
                               loops[1].is_summed && IsIn(in_weights, loops[1]);
        if (!is_window || !IsConst(loops[0].extent) || !IsConst(loops[1].extent)) return false;
        found->spatial.push_back(loops[0]);
        found->window.push_back(loops[1]);
        found->spatial_axes.push_back(axis);
      }
      found->coordinates.push_back(*std::move(coordinate));
    }
    for (const ProductLoop& loop : loops_) {
      if (IsIn(in_picture, loop)) continue;
      if (loop.is_summed || !IsIn(in_weights, loop)) return false;
      found->outputs.push_back(loop);
    }
    auto is_const = [](const Loops& loops) {
      return !loops.empty() && std::all_of(loops.begin(), loops.end(),
                                           [](const auto& loop) { return IsConst(loop.extent); });
    };
    return found->spatial.size() == 2 && is_const(found->inputs) && is_const(found->outputs);
  }

  ShapeAnalysis& shapes_;
  Context& context_;
  IndexMap map_;
  Loops loops_;
};

}  // namespace

absl::StatusOr<std::optional<Convolution>> FindConvolution(const UOp* reduce, ShapeAnalysis& shapes,
                                                           Context& context) {
  return Finder(shapes, context).Find(reduce);
}

}  // namespace svod
