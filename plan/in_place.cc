#include "plan/in_place.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/affine.h"
#include "ir/status_macros.h"
#include "ir/verify.h"

namespace svod {
namespace {

bool IsCounter(const UOp* node) { return node->op() == Op::kRange || node->op() == Op::kCoreId; }

bool IsEqual(const Affine& a, const Affine& b) {
  return a.exact && b.exact && a.constant == b.constant && a.terms == b.terms;
}

// Whether the expression is the same in every iteration and on every core.
bool IsFixed(const UOp* node) {
  for (const UOp* part : Toposort(node)) {
    if (IsCounter(part) || part->op() == Op::kLoad || part->op() == Op::kReduce) return false;
  }
  return true;
}
bool IsFixed(const Affine& affine) {
  for (const Term& term : affine.terms) {
    for (const Atom& atom : term.atoms) {
      if (!IsFixed(atom.node)) return false;
    }
  }
  return true;
}

// Something that counts, and what a position grows by with it.
struct Digit {
  const UOp* node;
  Affine stride;
};
using Digits = std::vector<Digit>;

Digits::iterator Find(Digits& digits, const UOp* node) {
  return std::find_if(digits.begin(), digits.end(),
                      [&](const Digit& digit) { return digit.node == node; });
}

// Adds `position` * `scale` to a sum of digits, if it is one.
bool AddDigits(const Affine& position, const Affine& scale, Digits& digits) {
  if (!position.exact || position.constant != 0) return false;
  for (const Term& term : position.terms) {
    const UOp* counter = nullptr;
    Affine stride = Affine::Constant(term.coefficient) * scale;
    for (const Atom& atom : term.atoms) {
      if (IsFixed(atom.node)) {
        stride = stride * Affine::Of(atom);
      } else if (counter != nullptr) {
        return false;
      } else {
        counter = atom.node;
      }
    }
    if (counter == nullptr) return false;
    auto it = Find(digits, counter);
    if (it == digits.end()) {
      digits.push_back({counter, stride});
    } else {
      it->stride = it->stride + stride;
    }
  }
  return true;
}

// Quotient and remainder of one number, one above the other, are that number again.
bool JoinQuotients(Digits& digits, RangeAnalysis& ranges) {
  for (size_t i = 0; i < digits.size();) {
    const Digit low = digits[i++];
    if (low.node->op() != Op::kFloormod) continue;
    const UOp *number = low.node->source(0), *divisor = low.node->source(1);
    auto high = std::find_if(digits.begin(), digits.end(), [&](const Digit& digit) {
      return digit.node->op() == Op::kFloordiv && digit.node->source(0) == number &&
             digit.node->source(1) == divisor;
    });
    if (high == digits.end() || !IsFixed(divisor) ||
        !IsEqual(high->stride, low.stride * ranges.AffineOf(divisor))) {
      return false;
    }
    digits.erase(high);
    digits.erase(Find(digits, low.node));
    if (!AddDigits(ranges.AffineOf(number), low.stride, digits)) return false;
    i = 0;
  }
  return true;
}

// Whether a loop has min(chunk, size - core * chunk) iterations and all cores together count up to
// `size`.
bool FindChunkedSize(const UOp* loop, const UOp* core, RangeAnalysis& ranges, Affine* chunk,
                     Affine* size) {
  const UOp* end = loop->source(0);
  if (end->op() != Op::kMin || core == nullptr || !IsConst(core->source(0))) return false;
  for (int i : {0, 1}) {
    if (!IsFixed(end->source(i))) continue;
    const UOp* length = end->source(i);
    *chunk = ranges.AffineOf(length);
    *size = ranges.AffineOf(end->source(1 - i)) + *chunk * Affine::Of({core, 0});
    if (!size->exact || !IsFixed(*size)) continue;
    int64_t cores = ConstInt(core->source(0));
    Affine all = *chunk * Affine::Constant(cores);
    if (all.is_constant() && size->is_constant() && all.exact && all.constant >= size->constant) {
      return true;
    }
    // ceil(size / cores) each.
    if (length->op() == Op::kFloordiv && IsConstInt(length->source(1), cores) &&
        IsEqual(ranges.AffineOf(length->source(0)), *size + Affine::Constant(cores - 1))) {
      return true;
    }
  }
  return false;
}

Affine SizeOf(const UOp* param, RangeAnalysis& ranges) {
  Affine size = Affine::Constant(1);
  for (const UOp* dimension : param->sources()) size = size * ranges.AffineOf(dimension);
  return size;
}

}  // namespace

absl::StatusOr<KernelAccesses> KernelAccesses::Create(const UOp* sink) {
  KernelAccesses result;
  SVOD_ASSIGN_OR_RETURN(result.params_, ParamsOf(sink));
  SVOD_ASSIGN_OR_RETURN(result.linear_, Linearize(sink));
  result.uses_.resize(result.params_.size());
  for (const Step& step : result.linear_.steps) {
    if (step.kind != Step::Kind::kCompute) continue;
    if (step.node->op() == Op::kCoreId) result.core_id_ = step.node;
    bool is_load = step.node->op() == Op::kLoad;
    if (!is_load && step.node->op() != Op::kStore) continue;
    const UOp* buffer = BaseBuffer(step.node->source(0));
    if (buffer == nullptr || buffer->op() != Op::kParam) continue;
    Uses& uses = result.uses_[static_cast<size_t>(buffer->arg<ParamArgument>().slot)];
    (is_load ? uses.loads : uses.stores).push_back(step.node);
  }
  return result;
}

const UOp* KernelAccesses::LoopOf(const UOp* node) const {
  auto it = linear_.loop_of.find(node);
  return it == linear_.loop_of.end() ? nullptr : it->second;
}

bool KernelAccesses::IsWhole(const UOp* store, const UOp* param,
                             absl::flat_hash_set<const UOp*>& counters) {
  const UOp* index = store->source(0);
  if (index->num_sources() > 2 || index->source(1)->dtype().is_vector()) return false;
  Digits digits;
  if (!AddDigits(ranges_.AffineOf(index->source(1)), Affine::Constant(1), digits) ||
      !JoinQuotients(digits, ranges_)) {
    return false;
  }
  // The digits from the last one on: each counts in steps of all that the later ones count.
  Affine step = Affine::Constant(ConsecutiveElements(store));
  while (!digits.empty()) {
    auto it = std::find_if(digits.begin(), digits.end(),
                           [&](const Digit& digit) { return IsEqual(digit.stride, step); });
    if (it == digits.end() || !IsCounter(it->node)) return false;
    const UOp* counter = it->node;
    const UOp* end = counter->source(0);
    counters.insert(counter);
    digits.erase(it);
    Affine extent = ranges_.AffineOf(end), chunk, size;
    if (IsFixed(extent)) {
      if (ranges_.Of(end).min < 0) return false;
      step = step * extent;
      continue;
    }
    auto core = Find(digits, core_id_);
    if (core == digits.end() || !FindChunkedSize(counter, core_id_, ranges_, &chunk, &size) ||
        !IsEqual(core->stride, step * chunk)) {
      return false;
    }
    counters.insert(core_id_);
    digits.erase(core);
    step = step * size;
  }
  if (!IsEqual(step, SizeOf(param, ranges_))) return false;
  // Other loops around the store must not keep it from happening.
  for (const UOp* loop = LoopOf(store); loop != nullptr;) {
    if (!counters.contains(loop) && ranges_.Of(loop->source(0)).min < 1) return false;
    auto outer = linear_.parent_loop.find(loop);
    loop = outer == linear_.parent_loop.end() ? nullptr : outer->second;
  }
  return core_id_ == nullptr || counters.contains(core_id_) ||
         ranges_.Of(core_id_->source(0)).min >= 1;
}

bool KernelAccesses::HasSizeOf(size_t slot, const UOp* buffer) {
  return params_[slot]->sources() == buffer->sources() ||
         IsEqual(SizeOf(params_[slot], ranges_), SizeOf(buffer, ranges_));
}

bool KernelAccesses::WritesWhole(size_t slot) {
  Uses& uses = uses_[slot];
  if (params_[slot]->arg<ParamArgument>().access != Access::kOut) return false;
  if (!uses.known) {
    uses.known = true;
    for (const UOp* store : uses.stores) {
      absl::flat_hash_set<const UOp*> counters;
      if (IsWhole(store, params_[slot], counters)) uses.whole = store;
    }
  }
  return uses.whole != nullptr;
}

bool KernelAccesses::InPlace(size_t in, size_t out) {
  const UOp *from = params_[in], *to = params_[out];
  if (from->arg<ParamArgument>().access != Access::kIn || !HasSizeOf(in, to) ||
      from->dtype().size_bytes() != to->dtype().size_bytes() || uses_[out].stores.size() != 1) {
    return false;
  }
  const UOp* store = uses_[out].stores[0];
  absl::flat_hash_set<const UOp*> counters;
  if (to->arg<ParamArgument>().access != Access::kOut || !IsWhole(store, to, counters)) {
    return false;
  }
  // Every iteration around the store has elements of its own.
  for (const UOp* loop = LoopOf(store); loop != nullptr;) {
    if (!counters.contains(loop) && ranges_.Of(loop->source(0)).max > 1) return false;
    auto outer = linear_.parent_loop.find(loop);
    loop = outer == linear_.parent_loop.end() ? nullptr : outer->second;
  }
  if (core_id_ != nullptr && !counters.contains(core_id_) &&
      ranges_.Of(core_id_->source(0)).max > 1) {
    return false;
  }
  // A bool is 0 or 1, which other bytes need not be.
  bool same_type = from->dtype() == to->dtype();
  if (!same_type && (from->dtype() == Scalar::kBool || to->dtype() == Scalar::kBool)) return false;
  for (const UOp* load : uses_[in].loads) {
    const UOp* index = load->source(0);
    if (index->num_sources() > 2 || index->source(1) != store->source(0)->source(1) ||
        ConsecutiveElements(load) != ConsecutiveElements(store) || LoopOf(load) != LoopOf(store) ||
        (!same_type && load->num_sources() > 1)) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<Function> MergeParams(const Function& kernel,
                                     absl::Span<const std::pair<size_t, size_t>> pairs,
                                     absl::string_view name, Context& context) {
  SVOD_ASSIGN_OR_RETURN(std::vector<const UOp*> params, ParamsOf(kernel.root));
  absl::flat_hash_map<const UOp*, const UOp*> made;
  absl::flat_hash_map<const UOp*, const UOp*> twin;  // PARAM that is read -> PARAM that is written
  absl::flat_hash_map<const UOp*, std::vector<const UOp*>> loads;  // by PARAM that is written
  for (auto [in, out] : pairs) twin[params[in]] = params[out];
  int64_t slot = 0;
  for (const UOp* param : params) {
    if (twin.contains(param)) continue;
    ParamArgument argument = param->arg<ParamArgument>();
    argument.slot = slot++;
    bool is_merged = std::any_of(twin.begin(), twin.end(),
                                 [&](const auto& pair) { return pair.second == param; });
    if (is_merged) argument.access = Access::kInOut;
    SVOD_ASSIGN_OR_RETURN(made[param],
                          context.Make(Op::kParam, param->dtype(), param->sources(), argument));
  }
  for (auto [from, to] : twin) made[from] = made[to];

  std::vector<const UOp*> order = Toposort(kernel.root);
  absl::flat_hash_map<const UOp*, const UOp*> store_of;  // by PARAM that is written
  for (const UOp* node : order) {
    if (node->op() == Op::kStore) store_of[BaseBuffer(node->source(0))] = node;
  }
  absl::flat_hash_map<const UOp*, absl::flat_hash_set<const UOp*>> before;  // by that PARAM
  for (auto [from, to] : twin) {
    std::vector<const UOp*> nodes = Toposort(store_of.at(to));
    before[to].insert(nodes.begin(), nodes.end());
  }
  for (const UOp* node : order) {
    if (node->op() != Op::kLoad) continue;
    auto it = twin.find(BaseBuffer(node->source(0)));
    if (it != twin.end() && !before[it->second].contains(node)) loads[it->second].push_back(node);
  }
  // Loads of what a store replaces come before it, even those whose value it does not store. They
  // may stand later in the order, so nodes are made depth first.
  auto sources_of = [&](const UOp* node) {
    std::vector<const UOp*> sources(node->sources().begin(), node->sources().end());
    if (node->op() != Op::kStore) return sources;
    auto it = loads.find(BaseBuffer(node->source(0)));
    if (it != loads.end()) sources.insert(sources.end(), it->second.begin(), it->second.end());
    return sources;
  };
  auto make = [&](const UOp* node) -> absl::StatusOr<const UOp*> {
    std::vector<const UOp*> sources;
    for (const UOp* source : node->sources()) sources.push_back(made.at(source));
    DType dtype = node->dtype();
    Argument argument = node->argument();
    if (node == kernel.root) {
      auto function = std::get<FunctionArgument>(argument);
      function.name = name;
      argument = function;
    }
    if (node->op() == Op::kLoad) {
      auto it = twin.find(BaseBuffer(node->source(0)));
      if (it != twin.end() && it->first->dtype() != it->second->dtype()) {
        DType loaded = it->second->dtype().with_lanes(dtype.lanes);
        SVOD_ASSIGN_OR_RETURN(const UOp* load, context.Make(Op::kLoad, loaded, sources, argument));
        return context.Make(Op::kBitcast, dtype, {load});
      }
    }
    if (node->op() == Op::kStore) {
      auto it = loads.find(BaseBuffer(node->source(0)));
      if (it != loads.end()) {
        const UOp* index = sources[0];
        std::vector<const UOp*> after = {index->source(0)};
        for (const UOp* load : it->second) after.push_back(made.at(load));
        SVOD_ASSIGN_OR_RETURN(const UOp* state, context.Make(Op::kAfter, after));
        SVOD_ASSIGN_OR_RETURN(sources[0], context.Make(Op::kIndex, {state, index->source(1)}));
      }
    }
    return context.Make(node->op(), dtype, sources, argument);
  };
  std::vector<const UOp*> stack = {kernel.root};
  absl::flat_hash_set<const UOp*> entered;
  while (!stack.empty()) {
    const UOp* node = stack.back();
    if (made.contains(node)) {
      stack.pop_back();
      continue;
    }
    entered.insert(node);
    bool is_ready = true;
    for (const UOp* source : sources_of(node)) {
      if (made.contains(source)) continue;
      if (entered.contains(source)) {
        return absl::InvalidArgumentError(absl::StrCat("memory: kernel ", kernel.name(),
                                                       ": a load in place comes after its store"));
      }
      stack.push_back(source);
      is_ready = false;
    }
    if (!is_ready) continue;
    stack.pop_back();
    SVOD_ASSIGN_OR_RETURN(made[node], make(node));
  }

  Function result{made.at(kernel.root), {}, kernel.file};
  for (const auto& [node, note] : kernel.notes) {
    auto it = made.find(node);
    if (it != made.end() && !twin.contains(node)) result.notes[it->second] = note;
  }
  SVOD_RETURN_IF_ERROR(Verify(result));
  return result;
}

}  // namespace svod
