#include "ir/passes/dot_products.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/linearize.h"
#include "ir/open_loops.h"
#include "ir/passes/copy_nodes.h"
#include "ir/range_arithmetic.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

constexpr int64_t kBytes = 4;

bool KeepsValues(const UOp* cast) {
  DType from = cast->source(0)->dtype(), to = cast->dtype();
  if (!from.is_integer() || !to.is_integer() || from.is_vector()) return false;
  IntRange inner = TypeRange(from), outer = TypeRange(to);
  return outer.Contains(inner.min) && outer.Contains(inner.max);
}

class Packer {
 public:
  Packer(const UOp* sink, int64_t axis, PassContext& pass)
      : sink_(sink),
        axis_(axis),
        pass_(pass),
        context_(pass.context),
        order_(Toposort(sink)),
        open_(order_) {}

  absl::StatusOr<const UOp*> Run() {
    SVOD_RETURN_IF_ERROR(FindLoop());
    SVOD_ASSIGN_OR_RETURN(linear_, Linearize(sink_));
    Cut();
    Replaced replaced;
    for (const UOp* reduce : reduces_) {
      SVOD_ASSIGN_OR_RETURN(replaced[reduce], Pack(reduce));
    }
    SVOD_RETURN_IF_ERROR(error_);
    return CopyNodes(sink_, replaced, context_);
  }

 private:
  // One factor of a product.
  struct Factor {
    const UOp* byte;
    bool is_signed() const { return byte->dtype().is_signed(); }
  };

  absl::Status Illegal(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("dot(", axis_, "): ", what));
  }

  absl::Status FindLoop() {
    for (const UOp* node : order_) {
      const auto* axis = std::get_if<AxisArgument>(&node->argument());
      if (axis == nullptr) continue;
      next_axis_ = std::max(next_axis_, axis->axis + 1);
      if (axis->axis == axis_ && node->op() == Op::kRange) loop_ = node;
    }
    if (loop_ == nullptr) return Illegal("axis, got none of the kernel's loops");
    for (const UOp* node : order_) {
      if (node->op() == Op::kEnd && node->source(0) == loop_) {
        return Illegal("axis, got a loop, expected a reduction's");
      }
      if (node->op() != Op::kReduce) continue;
      absl::Span<const UOp* const> ranges = node->sources().subspan(1);
      bool closes = std::find(ranges.begin(), ranges.end(), loop_) != ranges.end();
      if (closes) reduces_.push_back(node);
    }
    return absl::OkStatus();
  }

  const UOp* Make(Op op, DType dtype, absl::Span<const UOp* const> sources,
                  const Argument& argument = {}) {
    absl::StatusOr<const UOp*> node = context_.Make(op, dtype, sources, argument);
    if (node.ok()) return *node;
    if (error_.ok()) error_ = node.status();
    return sources[0];
  }
  const UOp* Make(Op op, std::initializer_list<const UOp*> sources) {
    return Make(op, DType(), {sources.begin(), sources.size()});
  }
  const UOp* I32(int64_t value) { return context_.Int(Scalar::kI32, value); }

  // Whole fours, and what is left.
  void Cut() {
    const UOp* extent = loop_->source(0);
    if (pass_.ranges.Of(extent).min < 0) extent = Make(Op::kMax, {extent, context_.Index(0)});
    if (IsConst(extent)) {
      whole_ = context_.Index(ConstInt(extent) / kBytes);
      rest_ = context_.Index(ConstInt(extent) % kBytes);
    } else {
      whole_ = Make(Op::kFloordiv, {extent, context_.Index(kBytes)});
      rest_ = Make(Op::kFloormod, {extent, context_.Index(kBytes)});
    }
    outer_ = Make(Op::kRange, DType(), {whole_}, loop_->argument());
  }

  const UOp* FreshRange(const UOp* range) {
    return Make(Op::kRange, DType(), {range->source(0)},
                AxisArgument{next_axis_++, range->arg<AxisArgument>().kind});
  }

  // `root` with other counters.
  absl::StatusOr<const UOp*> At(const UOp* root, const Replaced& counters) {
    Replaced copies = counters;
    SVOD_ASSIGN_OR_RETURN(const UOp* copy, CopyNodes(root, copies, context_));
    for (const UOp* node : Toposort(root)) {
      bool can_copy = !copies.contains(node) || counters.contains(node) ||
                      IsElementwise(node->op()) || node->op() == Op::kIndex ||
                      node->op() == Op::kLoad;
      if (!can_copy) return Illegal(absl::StrCat("a factor is made by ", InfoOf(node->op()).text));
    }
    return copy;
  }

  // The bytes of a factor at counters base, base + 1, ... as an i32; zero from `count` on, if that
  // is not null.
  absl::StatusOr<const UOp*> Word(const Factor& factor, const UOp* base, const UOp* count,
                                  Replaced counters) {
    const UOp* word = nullptr;
    for (int64_t i = 0; i < kBytes; ++i) {
      if (count != nullptr && pass_.ranges.Of(count).max <= i) break;
      counters[loop_] = i == 0 ? base : Make(Op::kAdd, {base, context_.Index(i)});
      SVOD_ASSIGN_OR_RETURN(const UOp* byte, At(factor.byte, counters));
      if (factor.is_signed()) byte = Make(Op::kCast, Scalar::kU8, {byte});
      if (count != nullptr && pass_.ranges.Of(count).min <= i) {
        const UOp* is_inside = Make(Op::kCmpLt, {context_.Index(i), count});
        byte = Make(Op::kWhere, {is_inside, byte, context_.Int(Scalar::kU8, 0)});
      }
      byte = Make(Op::kCast, Scalar::kI32, {byte});
      if (i > 0) byte = Make(Op::kShl, {byte, I32(8 * i)});
      word = word == nullptr ? byte : Make(Op::kOr, {word, byte});
    }
    return word;
  }

  // The dot product of bytes from `base` on; see Word.
  absl::StatusOr<const UOp*> Dot(const Factor& row, const Factor& column, const UOp* base,
                                 const UOp* count, const Replaced& counters, const UOp* addend) {
    SVOD_ASSIGN_OR_RETURN(const UOp* x, Word(row, base, count, counters));
    SVOD_ASSIGN_OR_RETURN(const UOp* y, Word(column, base, count, counters));
    bool flips = row.is_signed() == column.is_signed();
    if (flips) x = Make(Op::kXor, {x, I32(-0x7f7f7f80)});  // 0x80808080
    bool is_row_unsigned = row.is_signed() == flips;
    return Make(Op::kDotU8I8, {is_row_unsigned ? x : y, is_row_unsigned ? y : x, addend});
  }

  absl::StatusOr<const UOp*> Pack(const UOp* reduce) {
    const UOp* product = reduce->source(0);
    if (reduce->arg<ReduceArgument>().kind != ReduceKind::kAdd || product->op() != Op::kMul ||
        product->dtype() != Scalar::kI32) {
      return Illegal("a sum is not one of products in i32");
    }
    Factor factors[] = {{ByteUnder(product->source(0), context_)},
                        {ByteUnder(product->source(1), context_)}};
    if (factors[0].byte == nullptr || factors[1].byte == nullptr) {
      return Illegal("a factor is not of 8 bits");
    }
    // The row is the one that stays the same in the loop around the sum.
    auto parent = linear_.parent_loop.find(reduce->source(1));
    if (parent != linear_.parent_loop.end() &&
        open_.DependsOn(product->source(0), parent->second)) {
      std::swap(factors[0], factors[1]);
    }
    const auto& [row, column] = factors;

    std::vector<const UOp*> ranges, all_again, others_again;
    Replaced again, others;  // counters of loops of their own
    for (const UOp* range : reduce->sources().subspan(1)) {
      if (!open_.At(range->source(0)).empty() && reduce->num_sources() > 2) {
        return Illegal("loops of one sum depend on others");
      }
      ranges.push_back(range == loop_ ? outer_ : range);
      all_again.push_back(again[range] = FreshRange(range));
      if (range != loop_) others_again.push_back(others[range] = FreshRange(range));
    }
    const UOp* zero = I32(0);
    const UOp* base = Make(Op::kMul, {outer_, context_.Index(kBytes)});
    SVOD_ASSIGN_OR_RETURN(const UOp* dot, Dot(row, column, base, nullptr, {}, zero));
    const UOp* sum = Sum(dot, ranges, reduce);
    if (!IsConstInt(rest_, 0)) {
      base = IsConst(whole_) ? context_.Index(ConstInt(whole_) * kBytes)
                             : Make(Op::kMul, {whole_, context_.Index(kBytes)});
      SVOD_ASSIGN_OR_RETURN(
          dot, Dot(row, column, base, rest_, others, others_again.empty() ? sum : zero));
      sum = others_again.empty() ? dot : Make(Op::kAdd, {sum, Sum(dot, others_again, reduce)});
    }
    if (row.is_signed() != column.is_signed()) return sum;
    SVOD_ASSIGN_OR_RETURN(const UOp* byte, At(column.byte, again));
    const UOp* flipped = Sum(Make(Op::kCast, Scalar::kI32, {byte}), all_again, reduce);
    return Make(Op::kAdd, {sum, Make(Op::kMul, {flipped, I32(row.is_signed() ? -128 : 128)})});
  }

  const UOp* Sum(const UOp* value, absl::Span<const UOp* const> ranges, const UOp* reduce) {
    std::vector<const UOp*> sources = {value};
    sources.insert(sources.end(), ranges.begin(), ranges.end());
    return Make(Op::kReduce, DType(), sources, reduce->argument());
  }

  const UOp* sink_;
  int64_t axis_;
  PassContext& pass_;
  Context& context_;
  std::vector<const UOp*> order_;
  OpenLoops open_;
  LinearKernel linear_;
  const UOp* loop_ = nullptr;
  std::vector<const UOp*> reduces_;
  int64_t next_axis_ = 0;
  const UOp *outer_ = nullptr, *whole_ = nullptr, *rest_ = nullptr;
  absl::Status error_;
};

}  // namespace

const UOp* ByteUnder(const UOp* node, Context& context) {
  while (node->op() == Op::kCast && KeepsValues(node)) node = node->source(0);
  DType dtype = node->dtype();
  if (dtype == Scalar::kI8 || dtype == Scalar::kU8) return node;
  if (node->op() != Op::kWhere || dtype.is_vector()) return nullptr;
  // Of padding, and of zero points.
  for (int i : {1, 2}) {
    const UOp* constant = node->source(i);
    const UOp* byte = IsConst(constant) ? ByteUnder(node->source(3 - i), context) : nullptr;
    if (byte == nullptr || !TypeRange(byte->dtype()).Contains(ConstInt(constant))) continue;
    constant = context.Int(byte->dtype(), ConstInt(constant));
    absl::StatusOr<const UOp*> where = context.Make(
        Op::kWhere, {node->source(0), i == 1 ? constant : byte, i == 1 ? byte : constant});
    return where.ok() ? *where : nullptr;
  }
  return nullptr;
}

absl::StatusOr<const UOp*> DotProducts(const UOp* sink, int64_t axis, PassContext& context) {
  return Packer(sink, axis, context).Run();
}

}  // namespace svod
