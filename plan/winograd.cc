#include "plan/winograd.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/evaluate.h"
#include "ir/operators/expression.h"
#include "ir/status_macros.h"
#include "ir/tensor_builder.h"
#include "plan/find_convolution.h"
#include "plan/rebuild_graph.h"
#include "plan/winograd_form.h"

namespace svod {
namespace {

using Loops = std::vector<ProductLoop>;

class Rewriter {
 public:
  Rewriter(std::shared_ptr<Context> context, double max_error,
           absl::Span<const UOp* const> constants)
      : builder_(std::move(context)), max_error_(max_error) {
    for (const UOp* constant : constants) is_constant_[constant] = true;
  }

  absl::StatusOr<const UOp*> Replace(const UOp* node) {
    Learn(node);
    if (node->op() != Op::kReduceAxis) return node;
    SVOD_ASSIGN_OR_RETURN(std::optional<Convolution> found,
                          FindConvolution(node, builder_.shapes(), builder_.context()));
    if (!found.has_value() || !IsKnown(*found)) return node;
    const WinogradForm* form = ChooseWinogradForm(SizeOf(*found), max_error_);
    if (form == nullptr) return node;
    const UOp* result = Build(*found, *form, builder_.ShapeOf(node));
    SVOD_RETURN_IF_ERROR(builder_.status());
    ++num_rewritten_;
    return result;
  }

  int num_rewritten() const { return num_rewritten_; }

 private:
  // --- What there is

  void Learn(const UOp* node) {
    if (is_constant_.contains(node)) return;
    bool varies = node->op() == Op::kParam || node->op() == Op::kBuffer ||
                  node->op() == Op::kDefineVar || IsEffect(node->op());
    for (const UOp* source : node->sources()) {
      auto known = is_constant_.find(source);
      varies = varies || known == is_constant_.end() || !known->second;
    }
    is_constant_[node] = !varies;
  }

  static Shape Extents(const Loops& loops) {
    Shape extents;
    for (const ProductLoop& loop : loops) extents.push_back(loop.extent);
    return extents;
  }
  const UOp* Extent(const Loops& loops) { return builder_.dims().Product(Extents(loops)); }

  // Whether there are forms for a convolution.
  bool IsKnown(const Convolution& found) {
    bool is_known = found.picture->dtype() == Scalar::kF32;
    for (size_t i : {0, 1}) {
      is_known = is_known && IsConstInt(found.window[i].extent, 3) &&
                 IsConst(builder_.Dim(found.picture, found.spatial_axes[i]));
    }
    return is_known;
  }

  ConvolutionSize SizeOf(const Convolution& found) {
    auto known = is_constant_.find(found.weights);
    const int64_t pictures = builder_.dims().RangeOf(Extent(found.pictures)).max;
    return {.pictures = static_cast<double>(std::max<int64_t>(pictures, 0)),
            .height = ConstInt(found.spatial[0].extent),
            .width = ConstInt(found.spatial[1].extent),
            .inputs = ConstInt(Extent(found.inputs)),
            .outputs = ConstInt(Extent(found.outputs)),
            .weights_are_constant = known != is_constant_.end() && known->second};
  }

  // --- Building

  // Whether a node is a PAD with zeros, of constant sizes, along the picture's rows and columns.
  bool IsBorder(const UOp* node, const Convolution& found) {
    if (node->op() != Op::kPad || !IsConst(node->source(1)) ||
        node->source(1)->arg<ConstArgument>().bits != 0) {
      return false;
    }
    ShapeSpan low = LowOf(node), high = HighOf(node), shape = builder_.ShapeOf(node->source(0));
    for (size_t i = 0; i < low.size(); ++i) {
      const auto axis = static_cast<int64_t>(i);
      const bool is_spatial = axis == found.spatial_axes[0] || axis == found.spatial_axes[1];
      if (!IsConst(low[i]) || !IsConst(high[i]) || (is_spatial && !IsConst(shape[i]))) return false;
      if (!is_spatial && (ConstInt(low[i]) != 0 || ConstInt(high[i]) != 0)) return false;
    }
    return true;
  }

  // The picture as [pictures, rows, columns, channels], with zeros behind up to whole patches. What
  // is copied is the picture alone: zeros around it are where patches are read, where they cost
  // little, and a copy without conditions turns squares of elements in registers.
  const UOp* Picture(const Convolution& found, const WinogradForm& form) {
    const UOp* x = found.picture;
    int64_t begin[2];
    for (size_t i : {0, 1}) {
      begin[i] = found.coordinates[static_cast<size_t>(found.spatial_axes[i])].begin;
    }
    while (IsBorder(x, found)) {
      for (size_t i : {0, 1}) {
        begin[i] -= ConstInt(LowOf(x)[static_cast<size_t>(found.spatial_axes[i])]);
      }
      x = x->source(0);
    }
    const UOp *sizes[2], *low[2], *high[2];
    for (size_t i : {0, 1}) {
      const UOp* extent = builder_.Dim(x, found.spatial_axes[i]);
      if (extent == nullptr) return nullptr;
      const int64_t results = ConstInt(found.spatial[i].extent);
      const int64_t length = ((results + form.tile - 1) / form.tile + 1) * form.tile;
      const int64_t first = std::clamp<int64_t>(begin[i], 0, ConstInt(extent));
      const int64_t end = std::clamp(begin[i] + results + 2, first, ConstInt(extent));
      const int64_t before = std::clamp<int64_t>(first - begin[i], 0, length);
      sizes[i] = builder_.Index(end - first);
      low[i] = builder_.Index(before);
      high[i] = builder_.Index(length - before - (end - first));
      x = builder_.ShrinkAxis(x, found.spatial_axes[i], builder_.Index(first), sizes[i]);
    }
    std::vector<int64_t> order;
    for (const auto* axes :
         {&found.picture_axes, &found.spatial_axes, &found.input_axes, &found.fixed_axes}) {
      order.insert(order.end(), axes->begin(), axes->end());
    }
    for (size_t axis = 0; axis < found.coordinates.size(); ++axis) {
      const Coordinate& coordinate = found.coordinates[axis];
      if (coordinate.loops.size() == 2) continue;
      const UOp* size = coordinate.loops.empty() ? builder_.Index(1) : coordinate.loops[0].extent;
      x = builder_.ShrinkAxis(x, static_cast<int64_t>(axis), builder_.Index(coordinate.begin),
                              size);
    }
    x = builder_.Contiguous(
        builder_.Reshape(builder_.Permute(x, order),
                         {Extent(found.pictures), sizes[0], sizes[1], Extent(found.inputs)}));
    const UOp* none = builder_.Index(0);
    return builder_.Pad(x, builder_.Const(Scalar::kF32, 0), {none, low[0], low[1], none},
                        {none, high[0], high[1], none});
  }

  // The weights as [rows, columns, channels, outputs] of a window.
  const UOp* Weights(const Convolution& found) {
    const UOp* w = found.weights;
    Loops kept = found.window;
    kept.insert(kept.end(), found.inputs.begin(), found.inputs.end());
    kept.insert(kept.end(), found.outputs.begin(), found.outputs.end());
    while (builder_.ok() && static_cast<size_t>(builder_.RankOf(w)) < found.rank) {
      w = builder_.Unsqueeze(w, 0);
    }
    std::vector<int64_t> order;
    for (const ProductLoop& loop : kept) order.push_back(loop.dimension);
    for (int64_t axis = 0; axis < static_cast<int64_t>(found.rank); ++axis) {
      if (std::find(order.begin(), order.end(), axis) != order.end()) continue;
      w = builder_.ShrinkAxis(w, axis, builder_.Index(0), builder_.Index(1));
      order.push_back(axis);
    }
    w = builder_.Reshape(builder_.Permute(w, order), {builder_.Index(3), builder_.Index(3),
                                                      Extent(found.inputs), Extent(found.outputs)});
    return builder_.Contiguous(w);
  }

  using Grid = std::vector<std::vector<const UOp*>>;

  // The sum of values with the weights of a row.
  const UOp* Combine(const std::vector<double>& row, const std::vector<const UOp*>& values) {
    const UOp* sum = nullptr;
    for (size_t i = 0; i < row.size(); ++i) {
      if (row[i] == 0) continue;
      Expression value(builder_, values[i]);
      if (sum == nullptr) {
        sum = row[i] == 1 ? value : row[i] == -1 ? -value : value * row[i];
      } else if (row[i] == 1 || row[i] == -1) {
        Expression before(builder_, sum);
        sum = row[i] == 1 ? before + value : before - value;
      } else {
        sum = Expression(builder_, sum) + value * row[i];
      }
    }
    return sum;
  }

  // matrix * values * transposed matrix
  Grid Transform(const WinogradForm::Matrix& matrix, const Grid& values) {
    Grid half(matrix.size()), result(matrix.size());
    for (size_t i = 0; i < matrix.size(); ++i) {
      for (size_t column = 0; column < values[0].size(); ++column) {
        std::vector<const UOp*> down;
        for (const std::vector<const UOp*>& row : values) down.push_back(row[column]);
        half[i].push_back(Combine(matrix[i], down));
      }
      for (const std::vector<double>& row : matrix) result[i].push_back(Combine(row, half[i]));
    }
    return result;
  }

  // The tensors of a grid in one, with dimensions `rows` and `columns`, which they have as 1.
  const UOp* Stack(const Grid& grid, int64_t rows, int64_t columns) {
    auto stack = [&](const std::vector<const UOp*>& values, int64_t axis) {
      const auto count = static_cast<int64_t>(values.size());
      Shape shape(static_cast<size_t>(builder_.RankOf(values[0])), builder_.Index(1));
      if (!builder_.ok()) return static_cast<const UOp*>(nullptr);
      shape[static_cast<size_t>(axis)] = builder_.Index(count);
      const UOp* number =
          builder_.Reshape(builder_.Arange(builder_.Index(count), Scalar::kI32), shape);
      const UOp* result = values.back();
      for (int64_t i = count - 1; i-- > 0;) {
        const UOp* is_it = builder_.Make(Op::kCmpEq, {number, builder_.ConstInt(Scalar::kI32, i)});
        result = builder_.Where(is_it, values[static_cast<size_t>(i)], result);
      }
      return result;
    };
    std::vector<const UOp*> stacked;
    for (const std::vector<const UOp*>& row : grid) stacked.push_back(stack(row, columns));
    return stack(stacked, rows);
  }

  // Element (row, column) of the first two of `x`'s dimensions, under `shape`.
  const UOp* Element(const UOp* x, int64_t row, int64_t column, ShapeSpan shape) {
    x = builder_.ShrinkAxis(x, 0, builder_.Index(row), builder_.Index(1));
    x = builder_.ShrinkAxis(x, 1, builder_.Index(column), builder_.Index(1));
    return builder_.Reshape(x, shape);
  }

  const UOp* Build(const Convolution& found, const WinogradForm& form, ShapeSpan to) {
    const int64_t m = form.tile, n = form.patch();
    auto index = [&](int64_t value) { return builder_.Index(value); };
    const int64_t height = ConstInt(found.spatial[0].extent);
    const int64_t width = ConstInt(found.spatial[1].extent);
    const UOp *one = index(1), *squares = index(n * n), *pictures = Extent(found.pictures);
    const UOp *rows = index((height + m - 1) / m), *columns = index((width + m - 1) / m);
    const UOp *inputs = Extent(found.inputs), *outputs = Extent(found.outputs);
    const UOp* tiles = builder_.dims().Product({pictures, rows, columns});
    if (!builder_.ok()) return nullptr;

    // Element (a, b) of a patch is element (a mod m, b mod m) of a tile or of the next one.
    const UOp* picture = builder_.Reshape(Picture(found, form),
                                          {pictures, builder_.dims().Add(rows, one), index(m),
                                           builder_.dims().Add(columns, one), index(m), inputs});
    Grid patch(static_cast<size_t>(n));
    for (int64_t a = 0; a < n; ++a) {
      for (int64_t b = 0; b < n; ++b) {
        const UOp* part = builder_.Shrink(
            picture, {index(0), index(a / m), index(a % m), index(b / m), index(b % m), index(0)},
            {pictures, rows, one, columns, one, inputs});
        patch[static_cast<size_t>(a)].push_back(
            builder_.Reshape(part, {one, one, pictures, rows, columns, inputs}));
      }
    }
    const UOp* patches = builder_.Contiguous(Stack(Transform(form.input, patch), 0, 1));
    patches = builder_.Reshape(patches, {squares, tiles, one, inputs});

    const UOp* w = Weights(found);
    Grid window(3);
    for (int64_t a = 0; a < 3; ++a) {
      for (int64_t b = 0; b < 3; ++b) {
        window[static_cast<size_t>(a)].push_back(Element(w, a, b, {one, one, inputs, outputs}));
      }
    }
    const UOp* weights = Stack(Transform(form.weights, window), 0, 1);
    weights = builder_.Transpose(builder_.Reshape(weights, {squares, one, inputs, outputs}), 2, 3);

    const UOp* products =
        builder_.ReduceAxis(ReduceKind::kAdd, builder_.Mul(patches, weights), {3}, false);
    products = builder_.Reshape(builder_.Contiguous(products),
                                {index(n), index(n), pictures, rows, columns, outputs});
    Grid sums(static_cast<size_t>(n));
    for (int64_t a = 0; a < n; ++a) {
      for (int64_t b = 0; b < n; ++b) {
        sums[static_cast<size_t>(a)].push_back(
            Element(products, a, b, {pictures, rows, one, columns, one, outputs}));
      }
    }
    const UOp* results = builder_.Contiguous(Stack(Transform(form.output, sums), 2, 4));
    results = builder_.Reshape(results, {pictures, builder_.dims().Mul(rows, index(m)),
                                         builder_.dims().Mul(columns, index(m)), outputs});
    results = builder_.Shrink(results, {index(0), index(0), index(0), index(0)},
                              {pictures, index(height), index(width), outputs});
    return Arrange(found, results, to);
  }

  // Results [pictures, rows, columns, outputs] in the order of the product's dimensions.
  const UOp* Arrange(const Convolution& found, const UOp* results, ShapeSpan to) {
    Loops loops = found.pictures;
    loops.insert(loops.end(), found.spatial.begin(), found.spatial.end());
    loops.insert(loops.end(), found.outputs.begin(), found.outputs.end());
    results = builder_.Reshape(results, Extents(loops));
    std::vector<int64_t> order;
    for (size_t i = 0; i < loops.size(); ++i) order.push_back(static_cast<int64_t>(i));
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return loops[static_cast<size_t>(a)].dimension < loops[static_cast<size_t>(b)].dimension;
    });
    return builder_.Reshape(builder_.Permute(results, order), to);
  }

  TensorBuilder builder_;
  double max_error_;
  absl::flat_hash_map<const UOp*, bool> is_constant_;
  int num_rewritten_ = 0;
};

}  // namespace

absl::StatusOr<int> RewriteConvolutions(Function* graph, std::shared_ptr<Context> context,
                                        double max_error, absl::Span<const UOp* const> constants) {
  Rewriter rewriter(context, max_error, constants);
  SVOD_RETURN_IF_ERROR(
      RebuildGraph(graph, *context, [&](const UOp* node) { return rewriter.Replace(node); }));
  return rewriter.num_rewritten();
}

}  // namespace svod
