#include "ir/passes/transpose_loads.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/passes/copy_nodes.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

constexpr int kMinLanes = 4, kMaxBytes = 64;

// Loads whose lanes are `stride` apart, which begin at constant distances from one another.
struct Columns {
  const UOp* buffer;
  DType dtype;
  int64_t stride;
  Affine first;                                         // of the first load found
  std::vector<std::pair<int64_t, const UOp*>> members;  // distances from it
};

class LoadTransposer {
 public:
  explicit LoadTransposer(PassContext& pass) : pass_(pass), context_(pass.context) {}

  absl::StatusOr<const UOp*> Run(const UOp* root) {
    for (const UOp* node : Toposort(root)) {
      if (node->op() == Op::kLoad) Note(node);
    }
    Replaced replaced;
    for (Columns& columns : found_) {
      auto& members = columns.members;
      std::sort(members.begin(), members.end());
      const auto lanes = static_cast<size_t>(columns.dtype.lanes);
      for (size_t i = 0; i + lanes <= members.size();) {
        if (members[i + lanes - 1].first - members[i].first != columns.dtype.lanes - 1) {
          ++i;
          continue;
        }
        SVOD_RETURN_IF_ERROR(Transpose(columns, i, &replaced));
        i += lanes;
      }
    }
    if (replaced.empty()) return root;
    ++pass_.rule_hits["transpose-loads"];
    return CopyNodes(root, replaced, context_);
  }

 private:
  void Note(const UOp* load) {
    const UOp *index = load->source(0), *position = index->source(1);
    const DType dtype = load->dtype();
    const bool is_plain = index->num_sources() == 2 && position->dtype().is_vector() &&
                          index->source(0)->op() == Op::kParam &&
                          index->source(0)->arg<ParamArgument>().access == Access::kIn;
    if (!is_plain || dtype.lanes < kMinLanes || (dtype.lanes & (dtype.lanes - 1)) != 0 ||
        dtype.size_bytes() > kMaxBytes) {
      return;
    }
    Affine first = pass_.ranges.AffineOfLane(position, 0);
    int64_t stride = 0;
    for (int lane = 1; lane < dtype.lanes; ++lane) {
      Affine step = pass_.ranges.AffineOfLane(position, lane) - first;
      if (!step.is_constant() || !step.exact) return;
      if (lane == 1) stride = step.constant;
      if (stride < dtype.lanes || step.constant != lane * stride) return;
    }
    for (Columns& known : found_) {
      if (known.buffer != index->source(0) || known.dtype != dtype || known.stride != stride) {
        continue;
      }
      Affine distance = first - known.first;
      if (!distance.is_constant() || !distance.exact) continue;
      known.members.emplace_back(distance.constant, load);
      return;
    }
    found_.push_back({index->source(0), dtype, stride, std::move(first), {{0, load}}});
  }

  // One lane of a vector of positions.
  absl::StatusOr<const UOp*> Lane(const UOp* position, uint16_t lane) {
    if (!position->dtype().is_vector()) return position;
    if (position->op() == Op::kSplat) return position->source(0);
    if (position->op() == Op::kStack) return position->source(lane);
    if (position->op() == Op::kAdd || position->op() == Op::kSub) {
      SVOD_ASSIGN_OR_RETURN(const UOp* x, Lane(position->source(0), lane));
      SVOD_ASSIGN_OR_RETURN(const UOp* y, Lane(position->source(1), lane));
      return context_.Make(position->op(), {x, y});
    }
    return context_.Make(Op::kLanes, {position}, LanesArgument{{&lane, 1}});
  }

  absl::Status Transpose(const Columns& columns, size_t at, Replaced* replaced) {
    const int lanes = columns.dtype.lanes;
    SVOD_ASSIGN_OR_RETURN(const UOp* position,
                          Lane(columns.members[at].second->source(0)->source(1), 0));
    std::vector<const UOp*> rows;
    for (int row = 0; row < lanes; ++row) {
      const UOp* start = position;
      if (row > 0) {
        SVOD_ASSIGN_OR_RETURN(
            start, context_.Make(Op::kAdd, {position, context_.Index(row * columns.stride)}));
      }
      SVOD_ASSIGN_OR_RETURN(const UOp* index, context_.Make(Op::kIndex, {columns.buffer, start}));
      SVOD_ASSIGN_OR_RETURN(const UOp* load,
                            context_.Make(Op::kLoad, columns.dtype, {index}, AlignmentArgument{}));
      rows.push_back(load);
    }
    for (int half = lanes / 2; half >= 1; half /= 2) {
      for (int row = 0; row < lanes; ++row) {
        if ((row & half) != 0) continue;
        SVOD_RETURN_IF_ERROR(Exchange(half, &rows[static_cast<size_t>(row)],
                                      &rows[static_cast<size_t>(row + half)]));
      }
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      (*replaced)[columns.members[at + i].second] = rows[i];
    }
    return absl::OkStatus();
  }

  // The lanes of `upper` whose number has the bit `half` and those of `lower` without it change
  // places.
  absl::Status Exchange(int half, const UOp** upper, const UOp** lower) {
    std::vector<const UOp*> stays;
    std::vector<uint16_t> up, down;
    for (int lane = 0; lane < (*upper)->dtype().lanes; ++lane) {
      const bool has_bit = (lane & half) != 0;
      stays.push_back(context_.Bits(Scalar::kBool, has_bit ? 0 : 1));
      up.push_back(static_cast<uint16_t>(has_bit ? lane - half : lane));
      down.push_back(static_cast<uint16_t>(has_bit ? lane : lane + half));
    }
    SVOD_ASSIGN_OR_RETURN(const UOp* mask, context_.Make(Op::kStack, stays));
    SVOD_ASSIGN_OR_RETURN(const UOp* of_lower,
                          context_.Make(Op::kLanes, {*lower}, LanesArgument{up}));
    SVOD_ASSIGN_OR_RETURN(const UOp* of_upper,
                          context_.Make(Op::kLanes, {*upper}, LanesArgument{down}));
    SVOD_ASSIGN_OR_RETURN(*upper, context_.Make(Op::kWhere, {mask, *upper, of_lower}));
    SVOD_ASSIGN_OR_RETURN(*lower, context_.Make(Op::kWhere, {mask, of_upper, *lower}));
    return absl::OkStatus();
  }

  PassContext& pass_;
  Context& context_;
  std::vector<Columns> found_;
};

}  // namespace

absl::StatusOr<const UOp*> RunTransposeLoads(const UOp* root, PassContext& context) {
  return LoadTransposer(context).Run(root);
}

}  // namespace svod
