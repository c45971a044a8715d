// Places: whether a value is inlined, staged or materialised, by what each would cost. All users of
// a value are settled before it, so every request for it is known.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/status_macros.h"
#include "plan/find_pieces.h"
#include "plan/scheduler.h"

namespace svod {
namespace {

// Costs, in units of one cheap elementwise op on one element.
constexpr double kMaxWork = 1e12;
constexpr double kDivision = 4, kTranscendentalWork = 12, kGather = 3;
constexpr double kStageCost = 4;         // storing an element in scratch memory, and loading it
constexpr double kMaterialiseCost = 8;   // the same in a buffer
constexpr double kCheap = 8;             // recomputed wherever it is needed
constexpr double kLongContraction = 16;  // products in a sum that is worth tiles of its own
constexpr size_t kMaxVariants = 16;      // different elements that one kernel computes of a value
// What a row-by-row contraction may read again for each row [elements]: half of a second-level
// cache.
constexpr double kMaxStreamed = 1 << 16;

double OwnWork(const UOp* node) {
  Op op = node->op();
  if (HasFlag(op, kTranscendental))
    return op == Op::kPow ? 3 * kTranscendentalWork : kTranscendentalWork;
  if (op == Op::kFdiv || op == Op::kSqrt || op == Op::kRecip || op == Op::kCdiv ||
      op == Op::kCmod || op == Op::kFloordiv || op == Op::kFloormod) {
    return kDivision;
  }
  if (op == Op::kGather) return kGather;
  if (op == Op::kPad) return 1;
  return IsMovement(op) || IsConst(node) ? 0 : 1;
}

}  // namespace

// Whether a value is in memory whatever is decided.
bool Scheduler::IsStored(const UOp* node) const {
  return (IsState(node) && !demands_.snapshots.contains(node)) || node->op() == Op::kScatter ||
         node->op() == Op::kContiguous;
}

// A sum of products in which some operand is read more than once.
bool Scheduler::IsContraction(const UOp* reduce) {
  if (reduce->arg<ReduceAxesArgument>().kind != ReduceKind::kAdd) return false;
  const UOp* product = reduce->source(0);
  while (product->op() == Op::kCast) product = product->source(0);
  if (product->op() != Op::kMul) return false;
  double elements = values_[product].elements;
  for (const UOp* operand : product->sources()) {
    while (IsMovement(operand->op()) || operand->op() == Op::kCast) operand = operand->source(0);
    if (values_[operand].elements < elements && values_[operand].elements > 1) return true;
  }
  return false;
}

// The kind of what is made of `value` and `from`. A contraction next to reductions of another one,
// such as a layer's product added to what was normalised before, wants tiles of its own; next to
// its own reductions it is the start of a softmax.
void Scheduler::Join(const Value& from, Value* value) {
  if (from.kind == Kind::kPlain) return;
  bool is_other = value->contraction != nullptr && value->contraction != from.contraction;
  bool takes_kind = is_other ? from.kind < value->kind : from.kind > value->kind;
  if (value->kind != Kind::kPlain && !takes_kind) return;
  value->kind = from.kind;
  value->contraction = from.contraction;
}

// What a value is made of, from its sources.
absl::Status Scheduler::Describe(const UOp* node) {
  SVOD_ASSIGN_OR_RETURN(ShapeSpan shape, shapes_.Of(node));
  Value value;
  for (const UOp* dimension : shape) {
    value.elements *= static_cast<double>(std::max<int64_t>(dims_.RangeOf(dimension).max, 0));
  }
  if (IsStored(node)) {
    value.work = value.local_work = 1;
    values_[node] = value;
    return absl::OkStatus();
  }
  value.work = value.local_work = OwnWork(node);
  absl::flat_hash_set<const UOp*> seen;
  for (int i = 0; i < NumTensorSources(node); ++i) {
    const UOp* source = node->source(i);
    if (node->op() == Op::kGather && i == 0) continue;
    if (!seen.insert(source).second) continue;
    const Value& from = values_[source];
    Join(from, &value);
    value.has_reduce = value.has_reduce || from.has_reduce;
    value.contracted = std::max(value.contracted, from.contracted);
    // What is computed once for many elements counts for its share in each.
    double share = value.elements > 0 ? std::min(1.0, from.elements / value.elements) : 1;
    if (node->op() == Op::kReduceAxis)
      share = value.elements > 0 ? from.elements / value.elements : 0;
    value.work += share * (from.work + (node->op() == Op::kReduceAxis ? 1 : 0));
    double local = from.kind == Kind::kContraction ? 1 : from.local_work;
    value.local_work += share * (local + (node->op() == Op::kReduceAxis ? 1 : 0));
  }
  if (node->op() == Op::kReduceAxis) {
    value.has_reduce = true;
    if (IsContraction(node)) {
      value.kind = Kind::kContraction;
      value.contraction = node;
      value.contracted =
          std::max(value.contracted,
                   value.elements > 0 ? values_[node->source(0)].elements / value.elements : 0);
    } else if (value.kind != Kind::kPlain) {
      value.kind = Kind::kMixed;
    }
  }
  value.work = std::min(value.work, kMaxWork);
  value.local_work = std::min(value.local_work, kMaxWork);
  values_[node] = value;
  return absl::OkStatus();
}

void Scheduler::Note(const UOp* node, Place place, std::string reason) {
  int kernel = values_[node].requests.empty() ? values_[node].kernel
                                              : requests_[values_[node].requests[0]].kernel;
  if (place == Place::kMaterialised) kernel = values_[node].kernel;
  places_.push_back({node, place, "", std::move(reason)});
  note_kernels_.push_back(kernel);
}

// Where the rows that several loops need can be kept: around which loop, and which dimensions.
bool Scheduler::PlanStage(const Value& value, Stage* stage) {
  const std::vector<int>& requests = value.requests;
  std::vector<int> prefix = ChainOf(requests_[requests[0]].scope);
  for (int request : requests) {
    if (requests_[request].at.gate != requests_[requests[0]].at.gate ||
        requests_[request].at.gate != nullptr) {
      return false;
    }
    std::vector<int> chain = ChainOf(requests_[request].scope);
    size_t common = 0;
    while (common < std::min(chain.size(), prefix.size()) && chain[common] == prefix[common]) {
      ++common;
    }
    prefix.resize(common);
  }
  const Shape& first = requests_[requests[0]].at.index;
  while (true) {
    stage->free.clear();
    RangeSet used;
    for (size_t i = 0; i < first.size(); ++i) {
      bool is_fixed = true;
      for (int request : requests)
        is_fixed = is_fixed && requests_[request].at.index[i] == first[i];
      const RangeSet& ranges = RangesIn(first[i]);
      for (const UOp* range : ranges) {
        is_fixed = is_fixed && std::any_of(prefix.begin(), prefix.end(), [&](int scope) {
                     return scopes_[scope].range == range;
                   });
      }
      if (!is_fixed) {
        stage->free.push_back(i);
      } else {
        used.insert(used.end(), ranges.begin(), ranges.end());
      }
    }
    size_t keep = 0;
    while (keep < prefix.size() &&
           std::find(used.begin(), used.end(), scopes_[prefix[keep]].range) != used.end()) {
      ++keep;
    }
    if (keep == prefix.size()) break;
    prefix.resize(keep);
  }
  stage->scope = prefix.empty() ? -1 : prefix.back();
  stage->kernel = requests_[requests[0]].kernel;
  return !stage->free.empty();
}

absl::StatusOr<Scheduler::Decision> Scheduler::Decide(const UOp* node, Stage* stage) {
  Value& value = values_[node];
  const std::vector<int>& requests = value.requests;
  absl::flat_hash_set<int> users;
  double evaluations = 0, needed = 0;
  bool is_repeated = false, in_reduce = false;
  for (int request : requests) {
    users.insert(requests_[request].kernel);
    double trips = 1, own = 1;
    RangeSet set = RangesOf(requests_[request].at);
    for (int scope = requests_[request].scope; scope >= 0; scope = scopes_[scope].parent) {
      double extent = static_cast<double>(
          std::max<int64_t>(dims_.RangeOf(scopes_[scope].range->source(0)).max, 1));
      trips *= extent;
      if (std::find(set.begin(), set.end(), scopes_[scope].range) != set.end()) own *= extent;
      in_reduce = in_reduce || scopes_[scope].range->arg<AxisArgument>().kind == AxisKind::kReduce;
    }
    own = std::min(own, std::max(value.elements, 1.0));
    is_repeated = is_repeated || trips > own * 1.01;
    evaluations += trips;
    needed = std::max(needed, own);
  }
  size_t num_kernels = users.size(), variants = requests.size();
  auto loops = [&] { return absl::StrCat(variants, variants == 1 ? " use" : " uses"); };

  bool is_cheap = !value.has_reduce && value.work <= kCheap;
  if (!options_.inline_values && !IsMovement(node->op())) {
    return Decision{Place::kMaterialised, "values are not inlined"};
  }
  if (num_kernels > 1) {
    if (is_cheap) return Decision{Place::kInlined, "cheap to compute again"};
    return Decision{Place::kMaterialised, absl::StrCat(num_kernels, " kernels read it")};
  }
  bool is_folded = value.kind == Kind::kContraction && value.contracted >= kLongContraction &&
                   in_reduce && !kernels_[static_cast<size_t>(*users.begin())].stages_rows;
  if (variants == 1 && !is_repeated && is_folded) {
    return Decision{Place::kMaterialised, "sums of products that are folded would not be tiles"};
  }
  if (variants == 1 && !is_repeated) return Decision{Place::kInlined, "one use"};
  if (is_cheap && variants <= kMaxVariants) {
    return Decision{Place::kInlined, "cheap to compute again"};
  }
  if (!value.has_reduce && !in_reduce && variants <= kMaxVariants) {
    return Decision{Place::kInlined, "an elementwise kernel"};
  }
  Kernel& kernel = kernels_[static_cast<size_t>(*users.begin())];
  if (options_.stage_values && PlanStage(value, stage)) {
    double elements = 1, outer = 1;
    stage->extents.clear();
    SVOD_ASSIGN_OR_RETURN(ShapeSpan shape, shapes_.Of(node));
    for (size_t i : stage->free) {
      stage->extents.push_back(shape[i]);
      elements *= static_cast<double>(std::max<int64_t>(dims_.RangeOf(shape[i]).max, 1));
    }
    double rows = 1;
    if (stage->scope >= 0) {
      rows = scopes_[stage->scope].trips;
      const Scope& row = scopes_[stage->scope];
      outer = row.parent < 0 ? 1 : scopes_[row.parent].trips;
    }
    double bytes = elements * node->dtype().size_bytes();
    bool fits = kernel.stage_bytes + bytes <= static_cast<double>(options_.max_stage_bytes);
    bool is_complete = elements * rows <= needed * 1.01;
    // A contraction reads its other operands again for each row. That is for caches to bear, or
    // smaller than the value would be in memory.
    double inside = evaluations / std::max(rows, 1.0);
    double streamed = value.contracted * elements + inside;
    bool may_stream = streamed <= kMaxStreamed || value.elements >= streamed * outer;
    bool is_row = false;
    if (is_repeated) {
      is_row = value.kind == Kind::kMixed && stage->scope >= 0 && may_stream;
    } else if (value.kind == Kind::kContraction) {
      is_row = kernel.stages_rows;
    } else {
      double work = value.kind == Kind::kMixed ? value.local_work : value.work;
      is_row = (evaluations - needed) * work > kStageCost * needed;
    }
    if (fits && is_complete && is_row) {
      kernel.stage_bytes += bytes;
      if (is_repeated) kernel.stages_rows = true;
      return Decision{Place::kStaged, absl::StrCat(loops(), "; a row of ", bytes, " bytes")};
    }
  }
  bool may_inline = !is_repeated && variants <= kMaxVariants && value.kind != Kind::kContraction;
  double local_again = (evaluations - needed) * value.local_work;
  if (may_inline && local_again <= 2 * kMaterialiseCost * needed) {
    return Decision{Place::kInlined, absl::StrCat(loops(), ", cheaper again than in memory")};
  }
  return Decision{Place::kMaterialised, is_repeated
                                            ? "loops that do not need it would compute it again"
                                            : absl::StrCat(loops(), ", too dear to compute again")};
}

// Gives a value its place, once everything that uses it has asked for its elements.
absl::Status Scheduler::Settle(const UOp* node) {
  Value& value = values_[node];
  if (node->op() == Op::kMul) {
    // Products that a sum folds are its own.
    std::vector<int>& all = value.requests;
    auto open = std::stable_partition(all.begin(), all.end(),
                                      [&](int request) { return requests_[request].is_fused; });
    std::vector<int> fused(all.begin(), open);
    all.erase(all.begin(), open);
    for (int request : fused) SVOD_RETURN_IF_ERROR(Expand(request));
  }
  bool is_demanded = value.is_forced || demands_.materialised.contains(node);
  if (value.requests.empty() && !is_demanded) return absl::OkStatus();
  if (IsState(node) && !demands_.snapshots.contains(node)) {
    for (int request : value.requests) requests_[request].is_load = true;
    return absl::OkStatus();
  }
  if (is_demanded || IsStored(node) || demands_.snapshots.contains(node)) {
    SVOD_RETURN_IF_ERROR(Materialise(node));
    if (value.is_forced) {
      Note(node, Place::kMaterialised, value.force_reason);
    } else if (demands_.snapshots.contains(node)) {
      Note(node, Place::kMaterialised, "the buffer changes before it is read");
    } else if (demands_.materialised.contains(node)) {
      Note(node, Place::kMaterialised, "the buffer that takes it is read at other elements");
    } else {
      Note(node, Place::kMaterialised, "always in memory");
    }
    return absl::OkStatus();
  }
  SVOD_ASSIGN_OR_RETURN(ShapeSpan shape, shapes_.Of(node));
  bool is_choice = !IsMovement(node->op()) && !IsConst(node) && node->op() != Op::kArange &&
                   !(shape.empty() && node->dtype() == Scalar::kIndex) &&
                   node->op() != Op::kDefineVar && node->op() != Op::kBind;
  if (is_choice) {
    Stage stage;
    stage.value = node;
    SVOD_ASSIGN_OR_RETURN(Decision decision, Decide(node, &stage));
    bool is_told =
        value.has_reduce || decision.place != Place::kInlined || value.requests.size() > 1;
    if (decision.place == Place::kMaterialised) SVOD_RETURN_IF_ERROR(Materialise(node));
    if (is_told) Note(node, decision.place, decision.reason);
    if (decision.place == Place::kMaterialised) return absl::OkStatus();
    if (decision.place == Place::kStaged) return UseStage(node, std::move(stage));
  }
  std::vector<int> requests = value.requests;
  for (int request : requests) SVOD_RETURN_IF_ERROR(Expand(request));
  return absl::OkStatus();
}

absl::Status Scheduler::Materialise(const UOp* node) {
  for (int request : values_[node].requests) requests_[request].is_load = true;
  return PutTogether(node) ? absl::OkStatus() : AddKernel(node);
}

// Whether a value needs no kernel, since its parts are in memory anyway and can be computed where
// they belong in it.
bool Scheduler::PutTogether(const UOp* node) {
  std::vector<Piece> pieces = FindPieces(node, shapes_);
  if (pieces.empty()) return false;
  absl::flat_hash_set<const UOp*> seen;
  for (const Piece& piece : pieces) {
    if (part_of_.contains(piece.value) || !seen.insert(piece.value).second) return false;
  }
  for (const Piece& piece : pieces) {
    part_of_[piece.value] = {node, piece.begin * node->dtype().size_bytes()};
    parts_of_[node].push_back(piece.value);
    values_[piece.value].is_forced = true;
    values_[piece.value].force_reason = "a part of what is put together";
  }
  return true;
}

std::vector<int> Scheduler::KernelsOf(const UOp* value) const {
  std::vector<int> kernels;
  std::vector<const UOp*> stack = {value};
  while (!stack.empty()) {
    value = stack.back();
    stack.pop_back();
    auto parts = parts_of_.find(value);
    if (parts == parts_of_.end()) {
      kernels.push_back(values_.at(value).kernel);
    } else {
      stack.insert(stack.end(), parts->second.rbegin(), parts->second.rend());
    }
  }
  return kernels;
}

// Every request becomes a load from scratch memory, which one request more fills.
absl::Status Scheduler::UseStage(const UOp* node, Stage stage) {
  int number = static_cast<int>(stages_.size());
  std::vector<int> requests = values_[node].requests;
  Position at = requests_[requests[0]].at;
  int scope = stage.scope;
  for (size_t i = 0; i < stage.free.size(); ++i) {
    const UOp*& to = at.index[stage.free[i]];
    if (IsConstInt(stage.extents[i], 1)) {
      to = context_->Index(0);
      continue;
    }
    to = NewRange(stage.extents[i], false);
    stage.ranges.push_back(to);
    scope = Open(scope, to);
  }
  for (int request : requests) requests_[request].stage = number;
  Kernel& kernel = kernels_[static_cast<size_t>(stage.kernel)];
  kernel.hoisted_depth =
      std::min(kernel.hoisted_depth, stage.scope < 0 ? 0 : scopes_[stage.scope].depth);
  stage.request = static_cast<int>(requests_.size());
  Request filling;
  filling.value = node;
  filling.kernel = stage.kernel;
  filling.at = std::move(at);
  filling.scope = scope;
  requests_.push_back(std::move(filling));
  int filled = stage.request;
  stages_.push_back(std::move(stage));
  return Expand(filled);
}

}  // namespace svod
