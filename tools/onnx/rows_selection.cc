// Rows of the operator table: operators whose results have a size that depends on values, which
// therefore must be known when the model is loaded; and GatherND, which they lead to.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/indexing.h"
#include "ir/operators/shaping.h"
#include "tools/onnx/onnx_operators.h"

namespace svod {
namespace {

const UOp* IntsTensor(OnnxNode& node, absl::Span<const int64_t> values,
                      absl::Span<const int64_t> shape) {
  TensorBuilder& builder = node.builder();
  return builder.Reshape(node.IntsConstant(values), builder.ConstShape(shape));
}

OnnxResults ImportCompress(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  bool has_axis = node.HasAttribute("axis");
  int64_t axis = node.Int("axis", 0);
  std::optional<std::vector<int64_t>> condition = node.KnownInts(1);
  if (!condition.has_value()) return {};
  const UOp* x = node.input(0);
  if (!has_axis) x = Flatten(builder, x);
  std::vector<int64_t> positions;
  for (size_t i = 0; i < condition->size(); ++i) {
    if ((*condition)[i] != 0) positions.push_back(static_cast<int64_t>(i));
  }
  return {Take(builder, x, node.IntsConstant(positions), axis)};
}

OnnxResults ImportNonZero(OnnxNode& node) {
  std::optional<SharedTensor> x = node.KnownTensor(0);
  if (!x.has_value()) return {};
  std::vector<int64_t> shape = x->shape;
  if (shape.empty()) shape.push_back(1);
  std::vector<std::vector<int64_t>> positions(shape.size());
  for (int64_t i = 0; i < x->num_elements(); ++i) {
    uint64_t bits = ReadElement(x->data(), x->dtype, i);
    bool is_zero = x->dtype.is_float() ? BitsToDouble(x->dtype.scalar, bits) == 0 : bits == 0;
    if (is_zero) continue;
    int64_t rest = i;
    for (size_t k = shape.size(); k-- > 0;) {
      positions[k].push_back(rest % shape[k]);
      rest /= shape[k];
    }
  }
  std::vector<int64_t> all;
  for (const std::vector<int64_t>& row : positions) all.insert(all.end(), row.begin(), row.end());
  return {IntsTensor(
      node, all, {static_cast<int64_t>(shape.size()), static_cast<int64_t>(positions[0].size())})};
}

// Slices along an axis of a constant, compared element by element.
class Slices {
 public:
  Slices(const SharedTensor& x, size_t axis) : x_(x) {
    for (size_t i = 0; i < axis; ++i) outer_ *= x.shape[i];
    for (size_t i = axis + 1; i < x.shape.size(); ++i) inner_ *= x.shape[i];
    count_ = x.shape[axis];
  }
  int64_t count() const { return count_; }
  // Below, equal or above 0.
  int Compare(int64_t a, int64_t b) const {
    for (int64_t o = 0; o < outer_; ++o) {
      for (int64_t i = 0; i < inner_; ++i) {
        int order = CompareAt((o * count_ + a) * inner_ + i, (o * count_ + b) * inner_ + i);
        if (order != 0) return order;
      }
    }
    return 0;
  }

 private:
  int CompareAt(int64_t a, int64_t b) const {
    uint64_t x = ReadElement(x_.data(), x_.dtype, a), y = ReadElement(x_.data(), x_.dtype, b);
    if (x_.dtype.is_float()) {
      double p = BitsToDouble(x_.dtype.scalar, x), q = BitsToDouble(x_.dtype.scalar, y);
      return p < q ? -1 : (q < p ? 1 : 0);
    }
    if (!x_.dtype.is_signed()) return x < y ? -1 : (y < x ? 1 : 0);
    int shift = 64 - x_.dtype.bits();
    auto p = static_cast<int64_t>(x << shift), q = static_cast<int64_t>(y << shift);
    return p < q ? -1 : (q < p ? 1 : 0);
  }
  const SharedTensor& x_;
  int64_t outer_ = 1, inner_ = 1, count_ = 1;
};

OnnxResults ImportUnique(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  bool has_axis = node.HasAttribute("axis"), sorted = node.Bool("sorted", true);
  int64_t axis = node.Int("axis", 0);
  std::optional<SharedTensor> x = node.KnownTensor(0);
  if (!x.has_value()) return {};
  const UOp* data = node.input(0);
  if (has_axis) {
    axis = builder.Axis(data, axis, "unique");
    if (axis < 0) return {};
  } else {
    data = Flatten(builder, data);
    x->shape = {x->num_elements()};
  }
  Slices slices(*x, static_cast<size_t>(axis));
  std::vector<int64_t> order(static_cast<size_t>(slices.count()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return slices.Compare(a, b) < 0; });
  // Groups of equal slices, each with its first position.
  std::vector<std::vector<int64_t>> groups;
  for (int64_t i : order) {
    if (groups.empty() || slices.Compare(groups.back()[0], i) != 0) groups.emplace_back();
    groups.back().push_back(i);
  }
  if (!sorted) {
    std::sort(groups.begin(), groups.end(),
              [](const auto& a, const auto& b) { return a[0] < b[0]; });
  }
  std::vector<int64_t> first, inverse(order.size()), counts;
  for (size_t g = 0; g < groups.size(); ++g) {
    first.push_back(groups[g][0]);
    counts.push_back(static_cast<int64_t>(groups[g].size()));
    for (int64_t i : groups[g]) inverse[static_cast<size_t>(i)] = static_cast<int64_t>(g);
  }
  return {Take(builder, data, node.IntsConstant(first), axis), node.IntsConstant(first),
          node.IntsConstant(inverse), node.IntsConstant(counts)};
}

// A box as its smallest and largest coordinates.
struct Box {
  double y0, x0, y1, x1;
};

double OverlapOverUnion(const Box& a, const Box& b) {
  double height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  double width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  if (height <= 0 || width <= 0) return 0;
  double both = height * width;
  double all = (a.y1 - a.y0) * (a.x1 - a.x0) + (b.y1 - b.y0) * (b.x1 - b.x0) - both;
  return all > 0 ? both / all : 0;
}

OnnxResults ImportNonMaxSuppression(OnnxNode& node) {
  bool is_centred = node.Bool("center_point_box", false);
  std::optional<std::vector<double>> boxes = node.KnownNumbers(0), scores = node.KnownNumbers(1);
  if (!boxes.has_value() || !scores.has_value()) return {};
  TensorBuilder& builder = node.builder();
  if (node.rank(0) != 3 || node.rank(1) != 3) return node.Fail("boxes and scores, expected rank 3");
  int64_t num_batches = builder.ConstDim(node.input(1), 0, "scores");
  int64_t num_classes = builder.ConstDim(node.input(1), 1, "scores");
  int64_t num_boxes = builder.ConstDim(node.input(1), 2, "scores");
  auto num_expected = static_cast<size_t>(num_batches * num_boxes * 4);
  if (boxes->size() != num_expected) {
    return node.Fail(
        absl::StrCat("boxes, got ", boxes->size(), " numbers, expected ", num_expected));
  }
  auto number = [&](size_t i, double fallback) {
    if (!node.has_input(i)) return fallback;
    std::optional<std::vector<double>> given = node.KnownNumbers(i);
    return given.has_value() && !given->empty() ? (*given)[0] : fallback;
  };
  double most = number(2, 0), threshold = number(3, 0);
  double least_score = number(4, -std::numeric_limits<double>::infinity());
  if (!node.ok()) return {};
  std::vector<int64_t> selected;
  for (int64_t batch = 0; batch < num_batches; ++batch) {
    auto box_at = [&](int64_t i) {
      const double* b = boxes->data() + (batch * num_boxes + i) * 4;
      if (is_centred) {
        return Box{b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
      }
      return Box{std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]),
                 std::max(b[1], b[3])};
    };
    for (int64_t c = 0; c < num_classes; ++c) {
      const double* score = scores->data() + (batch * num_classes + c) * num_boxes;
      std::vector<int64_t> order(static_cast<size_t>(num_boxes)), kept;
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return score[a] > score[b]; });
      for (int64_t i : order) {
        if (static_cast<double>(kept.size()) >= most) break;
        if (score[i] <= least_score) continue;
        bool overlaps = std::any_of(kept.begin(), kept.end(), [&](int64_t other) {
          return OverlapOverUnion(box_at(i), box_at(other)) > threshold;
        });
        if (!overlaps) kept.push_back(i);
      }
      for (int64_t i : kept) selected.insert(selected.end(), {batch, c, i});
    }
  }
  return {IntsTensor(node, selected, {static_cast<int64_t>(selected.size() / 3), 3})};
}

OnnxResults ImportGatherNd(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  int64_t batch_dims = node.Int("batch_dims", 0);
  const UOp *x = node.input(0), *positions = node.input(1);
  if (batch_dims == 0) return {GatherNd(builder, x, positions)};
  if (batch_dims < 0 || batch_dims >= node.rank(0) || batch_dims >= node.rank(1)) {
    return node.Fail(absl::StrCat("attribute 'batch_dims', got ", batch_dims,
                                  ", expected less than both ranks"));
  }
  // The batch's own coordinates go in front of those that are given.
  ShapeSpan shape = builder.ShapeOf(positions);
  Shape column(shape.begin(), shape.end());
  column.back() = builder.Index(1);
  std::vector<const UOp*> columns;
  for (int64_t i = 0; i < batch_dims; ++i) {
    Expression place = PositionsAlong(builder, static_cast<int>(column.size()), i,
                                      column[static_cast<size_t>(i)], positions->dtype());
    columns.push_back(builder.Expand(place, column));
  }
  columns.push_back(positions);
  return {GatherNd(builder, x, Concatenate(builder, columns, -1))};
}

OnnxResults ImportReverseSequence(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  int64_t batch = node.Int("batch_axis", 1), time = node.Int("time_axis", 0);
  const UOp* x = node.input(0);
  batch = builder.Axis(x, batch, "reverse_sequence");
  time = builder.Axis(x, time, "reverse_sequence");
  if (batch < 0 || time < 0 || batch == time) return node.Fail("batch_axis and time_axis");
  int rank = builder.RankOf(x);
  Expression steps = PositionsAlong(builder, rank, time, builder.Dim(x, time), Scalar::kI64);
  Shape spread(static_cast<size_t>(rank), builder.Index(1));
  spread[static_cast<size_t>(batch)] = builder.Dim(x, batch);
  Expression lengths(builder, builder.Reshape(builder.Cast(node.input(1), Scalar::kI64), spread));
  Expression place = Select(steps < lengths, lengths - 1.0 - steps, steps);
  return {TakeAlongAxis(builder, x, place, time)};
}

}  // namespace

OnnxRows OnnxSelectionRows() {
  constexpr absl::string_view kKnown = "values must be known when the model is loaded";
  return {
      {"Compress",
       {9, 11},
       2,
       2,
       ImportCompress,
       "",
       "the condition must be known when the model "
       "is loaded"},
      {"GatherND", {11, 12, 13}, 2, 2, ImportGatherNd},
      {"NonMaxSuppression", {10, 11}, 2, 5, ImportNonMaxSuppression, "", kKnown},
      {"NonZero", {9, 13}, 1, 1, ImportNonZero, "", kKnown},
      {"ReverseSequence", {10}, 2, 2, ImportReverseSequence},
      {"Unique", {11}, 1, 1, ImportUnique, "", kKnown},
  };
}

}  // namespace svod
