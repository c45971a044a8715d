#include "ir/passes/lane_rewriter.h"

#include "absl/strings/str_cat.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

using Replaced = absl::flat_hash_map<const UOp*, const UOp*>;

absl::Status Illegal(const UOp* node, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(InfoOf(node->op()).text, ": ", what));
}

}  // namespace

LaneRewriter::Form LaneRewriter::FormOf(const UOp* node, const Replaced& replaced) const {
  if (node == range_) return {base_, 1, false};
  auto form = forms_.find(node);
  if (form != forms_.end()) return form->second;
  auto other = replaced.find(node);
  return {other == replaced.end() ? node : other->second, 0, false};
}

absl::StatusOr<const UOp*> LaneRewriter::Vector(const Form& form) {
  if (form.is_vector) return form.node;
  DType dtype = form.node->dtype().with_lanes(lanes_);
  if (IsConst(form.node) && form.stride == 0) {
    return context_.Bits(dtype, form.node->arg<ConstArgument>().bits);
  }
  SVOD_ASSIGN_OR_RETURN(const UOp* splat, context_.Make(Op::kSplat, dtype, {form.node}));
  if (form.stride == 0) return splat;
  std::vector<const UOp*> steps;
  for (int lane = 0; lane < lanes_; ++lane) {
    steps.push_back(context_.Int(form.node->dtype(), lane * form.stride));
  }
  SVOD_ASSIGN_OR_RETURN(const UOp* stack, context_.Make(Op::kStack, steps));
  return context_.Make(Op::kAdd, {splat, stack});
}

absl::StatusOr<const UOp*> LaneRewriter::Get(const UOp* node, const Replaced& replaced) {
  Form form = FormOf(node, replaced);
  if (form.stride == 0) return form.node;
  return Vector(form);
}

// Sums and multiples of positions with strides have strides themselves.
absl::StatusOr<bool> LaneRewriter::Stride(const UOp* node, const Replaced& replaced) {
  bool is_linear = node->op() == Op::kAdd || node->op() == Op::kSub || node->op() == Op::kMul;
  if (node->dtype() != Scalar::kIndex || !is_linear) return false;
  Form x = FormOf(node->source(0), replaced), y = FormOf(node->source(1), replaced);
  if (x.is_vector || y.is_vector) return false;
  int64_t stride;
  bool overflows;
  if (node->op() == Op::kMul) {
    if (x.stride != 0 && y.stride != 0) return false;
    const Form& moving = x.stride != 0 ? x : y;
    const Form& factor = x.stride != 0 ? y : x;
    if (moving.stride == 0) {
      stride = 0;
      overflows = false;
    } else {
      if (!IsConst(factor.node)) return false;
      overflows = __builtin_mul_overflow(moving.stride, ConstInt(factor.node), &stride);
    }
  } else if (node->op() == Op::kAdd) {
    overflows = __builtin_add_overflow(x.stride, y.stride, &stride);
  } else {
    overflows = __builtin_sub_overflow(x.stride, y.stride, &stride);
  }
  if (overflows) return false;
  SVOD_ASSIGN_OR_RETURN(const UOp* first, context_.Make(node->op(), {x.node, y.node}));
  forms_[node] = {first, stride, false};
  return true;
}

// The INDEX of an access in all lanes: at a scalar position for neighbours, else at a vector.
absl::StatusOr<const UOp*> LaneRewriter::Address(const UOp* index, bool* is_scattered,
                                                 const Replaced& replaced) {
  Form buffer = FormOf(index->source(0), replaced);
  Form position = FormOf(index->source(1), replaced);
  if (BaseBuffer(index)->dtype().is_vector()) return Illegal(index, "a buffer of vectors");
  *is_scattered = position.is_vector || position.stride != 1;
  std::vector<const UOp*> sources = {buffer.node, position.node};
  if (*is_scattered) {
    SVOD_ASSIGN_OR_RETURN(sources[1], Vector(position));
  }
  const UOp* gate = mask_;
  if (index->num_sources() == 3) {
    Form own = FormOf(index->source(2), replaced);
    gate = own.node;
    if (mask_ != nullptr) {
      SVOD_ASSIGN_OR_RETURN(gate, Vector(own));
      SVOD_ASSIGN_OR_RETURN(gate, context_.Make(Op::kAnd, {gate, mask_}));
    }
  }
  if (gate != nullptr) sources.push_back(gate);
  return context_.Make(Op::kIndex, sources);
}

// Every second element, or so, of an input: faster loaded with those between than one by one.
bool LaneRewriter::IsNearlyDense(const UOp* index, const Replaced& replaced) const {
  constexpr int64_t kMaxStride = 3;
  Form position = FormOf(index->source(1), replaced);
  const UOp* buffer = index->source(0);
  return !position.is_vector && position.stride >= 2 && position.stride <= kMaxStride &&
         lanes_ * position.stride <= kMaxLanes && buffer->op() == Op::kParam &&
         buffer->arg<ParamArgument>().access == Access::kIn;
}

// where(gate, lanes 0, stride, ... of a load without gaps, 0).
absl::Status LaneRewriter::LoadDense(const UOp* node, const Replaced& replaced) {
  const UOp* index = node->source(0);
  Form position = FormOf(index->source(1), replaced);
  DType dtype = node->dtype().with_lanes(lanes_);
  int width = static_cast<int>(lanes_ * position.stride);
  SVOD_ASSIGN_OR_RETURN(const UOp* address,
                        context_.Make(Op::kIndex, {index->source(0), position.node}));
  SVOD_ASSIGN_OR_RETURN(const UOp* load, context_.Make(Op::kLoad, node->dtype().with_lanes(width),
                                                       {address}, AlignmentArgument{}));
  std::vector<uint16_t> every;
  for (int lane = 0; lane < lanes_; ++lane) {
    every.push_back(static_cast<uint16_t>(lane * position.stride));
  }
  SVOD_ASSIGN_OR_RETURN(const UOp* value, context_.Make(Op::kLanes, {load}, LanesArgument{every}));
  const UOp* gate = mask_;
  if (index->num_sources() == 3) {
    SVOD_ASSIGN_OR_RETURN(gate, Vector(FormOf(index->source(2), replaced)));
    if (mask_ != nullptr) {
      SVOD_ASSIGN_OR_RETURN(gate, context_.Make(Op::kAnd, {gate, mask_}));
    }
  }
  if (gate != nullptr) {
    const UOp* zeros = context_.Bits(dtype, 0);
    SVOD_ASSIGN_OR_RETURN(value, context_.Make(Op::kWhere, {gate, value, zeros}));
  }
  forms_[node] = {value, 0, true};
  return absl::OkStatus();
}

absl::Status LaneRewriter::Rewrite(const UOp* node, const Replaced& replaced) {
  Op op = node->op();
  if (node == range_) return absl::OkStatus();
  bool varies = false, changes = false;
  for (const UOp* source : node->sources()) {
    varies = varies || source == range_ || Varies(source);
    changes = changes || FormOf(source, replaced).node != source;
  }
  if (!varies && !changes) return absl::OkStatus();
  if (op == Op::kIndex && varies) {
    // Its users look at it.
    forms_[node] = {node, 0, true};
    return absl::OkStatus();
  }
  if (op == Op::kLoad && varies) {
    const UOp* index = node->source(0);
    if (node->dtype().is_vector()) return Illegal(node, "it loads a vector already");
    if (node->num_sources() == 1 && IsNearlyDense(index, replaced)) {
      return LoadDense(node, replaced);
    }
    bool is_scattered = false;
    SVOD_ASSIGN_OR_RETURN(const UOp* address, Address(index, &is_scattered, replaced));
    std::vector<const UOp*> sources = {address};
    if (node->num_sources() == 2) {
      SVOD_ASSIGN_OR_RETURN(const UOp* alt, Vector(FormOf(node->source(1), replaced)));
      sources.push_back(alt);
    }
    SVOD_ASSIGN_OR_RETURN(const UOp* load, context_.Make(op, node->dtype().with_lanes(lanes_),
                                                         sources, AlignmentArgument{}));
    forms_[node] = {load, 0, true};
    return absl::OkStatus();
  }
  if (op == Op::kStore && varies) {
    const UOp* index = node->source(0);
    if (node->source(1)->dtype().is_vector()) return Illegal(node, "it stores a vector already");
    Form position = FormOf(index->source(1), replaced);
    if (position.is_vector || position.stride == 0) {
      return Illegal(node, "its place does not advance by a constant");
    }
    bool is_scattered = false;
    SVOD_ASSIGN_OR_RETURN(const UOp* address, Address(index, &is_scattered, replaced));
    SVOD_ASSIGN_OR_RETURN(const UOp* value, Vector(FormOf(node->source(1), replaced)));
    SVOD_ASSIGN_OR_RETURN(const UOp* store,
                          context_.Make(op, {address, value}, AlignmentArgument{}));
    forms_[node] = {store, 0, false};
    return absl::OkStatus();
  }
  if (op == Op::kReduce || op == Op::kEnd || op == Op::kAfter || op == Op::kRange ||
      op == Op::kSink || !varies) {
    std::vector<const UOp*> sources;
    for (int i = 0; i < node->num_sources(); ++i) {
      Form form = FormOf(node->source(i), replaced);
      bool is_value = op == Op::kReduce && i == 0;
      if ((form.is_vector || form.stride != 0) && !is_value) {
        return Illegal(node, "it depends on the counter");
      }
      if (is_value && varies) {
        SVOD_ASSIGN_OR_RETURN(form.node, Vector(form));
      }
      sources.push_back(form.node);
    }
    SVOD_ASSIGN_OR_RETURN(const UOp* copy,
                          context_.Make(op, node->dtype(), sources, node->argument()));
    forms_[node] = {copy, 0, op == Op::kReduce && varies};
    return absl::OkStatus();
  }
  SVOD_ASSIGN_OR_RETURN(bool has_stride, Stride(node, replaced));
  if (has_stride) return absl::OkStatus();
  if (!IsLanewise(op) || node->dtype().is_vector()) return Illegal(node, "it has no lanes");
  std::vector<const UOp*> sources;
  for (const UOp* source : node->sources()) {
    SVOD_ASSIGN_OR_RETURN(const UOp* vector, Vector(FormOf(source, replaced)));
    sources.push_back(vector);
  }
  SVOD_ASSIGN_OR_RETURN(const UOp* copy, context_.Make(op, node->dtype().with_lanes(lanes_),
                                                       sources, node->argument()));
  forms_[node] = {copy, 0, true};
  return absl::OkStatus();
}

}  // namespace svod
