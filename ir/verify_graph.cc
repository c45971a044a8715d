// The verifier's checks of graphs: calls that fit their kernels, and the order of buffer uses.
#include <algorithm>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/range_arithmetic.h"
#include "ir/reachability.h"
#include "ir/shape.h"
#include "ir/status_macros.h"
#include "ir/verifier.h"

namespace svod {
namespace {

// Uses of one buffer whose order is looked at pair by pair.
constexpr size_t kMaxUses = size_t{1} << 14;

bool IsOpOfGraphs(const UOp* node) {
  Op op = node->op();
  OpClass op_class = InfoOf(op).op_class;
  return op_class == OpClass::kPlan || op_class == OpClass::kTensor || IsConst(node) ||
         IsElementwise(op) || op_class == OpClass::kVector || op == Op::kDefineVar ||
         op == Op::kBind || op == Op::kParam || op == Op::kBuffer || op == Op::kAfter ||
         op == Op::kSink;
}

class GraphCheck {
 public:
  explicit GraphCheck(Verifier& verifier) : v_(verifier) {}

  absl::Status Run() {
    for (const UOp* node : v_.nodes) {
      if (node->op() != Op::kAfter) continue;
      for (const UOp* source : node->sources().subspan(1)) {
        if (source->op() == Op::kCustomFunction) {
          changed_by_.insert({source, ExtentOf(node).storage});
        }
      }
    }
    absl::flat_hash_map<int64_t, const UOp*> buffer_ids;
    for (uint32_t place = 0; place < v_.nodes.size(); ++place) {
      const UOp* node = v_.nodes[place];
      Op op = node->op();
      if (!IsOpOfGraphs(node)) {
        return v_.Error(node, absl::StrCat("op, got ", InfoOf(op).text,
                                           ", expected none of a kernel in a graph"));
      }
      if (op == Op::kBuffer) {
        auto [it, is_new] = buffer_ids.try_emplace(node->arg<BufferArgument>().id, node);
        if (!is_new) {
          return v_.Error(node, absl::StrCat("id, got ", it->first, " as ", v_.Mention(it->second),
                                             " has, expected its own"));
        }
      }
      if (IsBufferState(node)) places_.emplace(node, place);
      if (op == Op::kBufferView) SVOD_RETURN_IF_ERROR(VerifyView(node));
      if (op == Op::kCall) SVOD_RETURN_IF_ERROR(VerifyCall(node, place));
      if (op == Op::kCopy) SVOD_RETURN_IF_ERROR(VerifyCopy(node, place));
      if (op == Op::kCustomFunction) SVOD_RETURN_IF_ERROR(VerifyCustom(node, place));
      if (op == Op::kAssign) SVOD_RETURN_IF_ERROR(VerifyAssign(node, place));
    }
    SVOD_RETURN_IF_ERROR(VerifyTensors(v_));
    for (const UOp* state : v_.function.root->sources()) {
      if (!IsBufferState(state)) continue;  // a value, see VerifyTensors
      Extent extent = ExtentOf(state);
      results_[extent.storage].push_back({state, places_[state], false, extent});
    }
    return VerifyOrder();
  }

 private:
  // The bytes [begin, end) of a storage that a buffer, view or state stands for.
  struct Extent {
    const UOp* storage;
    int64_t begin, end;
    bool Meets(const Extent& other) const {
      return storage == other.storage && begin < other.end && other.begin < end;
    }
  };
  // A node that touches a buffer.
  struct Use {
    const UOp* node;
    uint32_t place;
    bool writes;
    Extent extent;
    const UOp* part = nullptr;  // the SHRINK of the buffer that it keeps to, if any
  };

  Extent ExtentOf(const UOp* state) {
    const UOp* buffer = BaseBuffer(state);
    int64_t size = ElementsOf(buffer, {}).max * buffer->dtype().size_bytes();
    __int128 offset = 0;
    while (buffer->op() == Op::kBufferView) {
      offset += buffer->arg<ViewArgument>().byte_offset;
      buffer = BaseBuffer(buffer->source(0));
    }
    constexpr __int128 kLimit = __int128{1} << 62;
    int64_t begin = static_cast<int64_t>(std::clamp<__int128>(offset, 0, kLimit));
    return {buffer, begin, begin + size};
  }

  void AddUse(const UOp* state, const UOp* node, uint32_t place, bool writes,
              const UOp* part = nullptr) {
    Extent extent = ExtentOf(state);
    auto [it, is_new] = numbers_.try_emplace(extent.storage, uses_.size());
    if (is_new) uses_.emplace_back();
    uses_[it->second].push_back({node, place, writes, extent, part});
  }

  // Whether two uses may touch one byte.
  bool Meet(const Use& a, const Use& b) {
    if (!a.extent.Meets(b.extent)) return false;
    if (a.part == nullptr || b.part == nullptr ||
        BaseBuffer(a.part->source(0)) != BaseBuffer(b.part->source(0)) ||
        BeginOf(a.part).size() != BeginOf(b.part).size()) {
      return true;
    }
    for (size_t i = 0; i < BeginOf(a.part).size(); ++i) {
      auto ends_before = [&](const UOp* first, const UOp* second) {
        __int128 end =
            __int128{v_.ranges.Of(BeginOf(first)[i]).max} + v_.ranges.Of(SizeOf(first)[i]).max;
        return end <= v_.ranges.Of(BeginOf(second)[i]).min;
      };
      if (ends_before(a.part, b.part) || ends_before(b.part, a.part)) return false;
    }
    return true;
  }

  using Bindings = absl::flat_hash_map<absl::string_view, int64_t>;

  // The number of elements under the bindings of a call.
  IntRange ElementsOf(const UOp* buffer, const Bindings& bindings) {
    __int128 low = 1, high = 1;
    for (const UOp* dimension : DimensionsOf(buffer)) {
      IntRange range = bindings.empty() ? v_.ranges.Of(dimension) : RangeOf(dimension, bindings);
      // No buffer has more bytes than this, see MaxElements.
      constexpr __int128 kLimit = __int128{1} << 62;
      low = std::min(low * std::max<int64_t>(range.min, 0), kLimit);
      high = std::min(high * std::max<int64_t>(range.max, 0), kLimit);
    }
    return {static_cast<int64_t>(low), static_cast<int64_t>(high)};
  }

  static IntRange RangeOf(const UOp* dimension, const Bindings& bindings) {
    absl::flat_hash_map<const UOp*, IntRange> ranges;
    for (const UOp* node : Toposort(dimension)) {
      IntRange range = RangeOfNode(node, [&](const UOp* source) { return ranges[source]; });
      if (node->op() == Op::kDefineVar) {
        auto it = bindings.find(node->arg<VariableArgument>().name);
        if (it != bindings.end()) range = {it->second, it->second};
      }
      ranges[node] = range;
    }
    return ranges[dimension];
  }

  std::string Sized(const UOp* buffer, const Bindings& bindings) {
    IntRange elements = ElementsOf(buffer, bindings);
    std::string text = absl::StrCat(elements.min);
    if (!elements.is_single()) absl::StrAppend(&text, " to ", elements.max);
    return absl::StrCat(text, " of ", ToString(buffer->dtype()));
  }

  absl::Status VerifyView(const UOp* view) {
    int64_t offset = view->arg<ViewArgument>().byte_offset;
    const UOp* buffer = BaseBuffer(view->source(0));
    int64_t have = ElementsOf(buffer, {}).max * buffer->dtype().size_bytes();
    IntRange wanted = ElementsOf(view, {});
    int64_t size = view->dtype().size_bytes();
    if (offset < 0 || offset > have || wanted.min > (have - offset) / size) {
      return v_.Error(
          view, absl::StrCat("end, got byte ", offset, " and ", Sized(view, {}),
                             ", expected at most the ", have, " bytes of ", v_.Mention(buffer)));
    }
    if (offset % size != 0) {
      return v_.Error(view, absl::StrCat("offset, got ", offset, ", expected a multiple of ", size,
                                         " bytes, one element"));
    }
    return absl::OkStatus();
  }

  absl::Status CollectBindings(const UOp* call, int first, const std::vector<const UOp*>& variables,
                               Bindings& bindings) {
    for (int i = first; i < call->num_sources(); ++i) {
      const UOp* bind = call->source(i);
      if (bind->op() != Op::kBind) {
        return v_.Error(call, absl::StrCat("number of buffers, got more than the ", first - 1,
                                           " parameters of the kernel, or one after a bind, "
                                           "expected one each, then binds"));
      }
      const auto& variable = bind->source(0)->arg<VariableArgument>();
      int64_t value = ConstInt(bind->source(1));
      const UOp* own = nullptr;
      for (const UOp* candidate : variables) {
        if (candidate->arg<VariableArgument>().name == variable.name) own = candidate;
      }
      if (own == nullptr) {
        return v_.Error(call, absl::StrCat("bind, got '", variable.name,
                                           "', expected a variable of the kernel"));
      }
      if (!bindings.try_emplace(variable.name, value).second) {
        return v_.Error(call, absl::StrCat("bind, got '", variable.name, "' twice, expected once"));
      }
      const auto& bounds = own->arg<VariableArgument>();
      if (value < bounds.min || value > bounds.max) {
        return v_.Error(call,
                        absl::StrCat("bind of '", variable.name, "', got ", value, ", expected ",
                                     bounds.min, " to ", bounds.max),
                        absl::StatusCode::kOutOfRange);
      }
    }
    return absl::OkStatus();
  }

  // A kernel may be called many times; its nodes are walked once.
  struct Signature {
    std::vector<const UOp*> params, variables;
  };
  absl::StatusOr<const Signature*> SignatureOf(const UOp* kernel) {
    auto it = signatures_.find(kernel);
    if (it == signatures_.end()) {
      SVOD_ASSIGN_OR_RETURN(std::vector<const UOp*> params, ParamsOf(kernel));
      auto signature = std::make_unique<Signature>();
      *signature = {std::move(params), VariablesOf(kernel)};
      it = signatures_.try_emplace(kernel, std::move(signature)).first;
    }
    return it->second.get();
  }

  absl::Status VerifyCall(const UOp* call, uint32_t place) {
    absl::StatusOr<const Signature*> found = SignatureOf(call->source(0));
    if (!found.ok()) return v_.Error(call, found.status().message());
    const std::vector<const UOp*>& params = (*found)->params;
    int num_params = static_cast<int>(params.size());
    int num_buffers = 0;
    while (num_buffers + 1 < call->num_sources() &&
           call->source(num_buffers + 1)->op() != Op::kBind) {
      ++num_buffers;
    }
    if (num_buffers < num_params) {
      return v_.Error(
          call, absl::StrCat("number of buffers, got ", num_buffers, ", expected ", num_params,
                             " as kernel ", call->source(0)->arg<FunctionArgument>().name, " has"));
    }
    Bindings bindings;
    SVOD_RETURN_IF_ERROR(CollectBindings(call, num_params + 1, (*found)->variables, bindings));
    absl::flat_hash_map<const UOp*, std::vector<std::pair<int, Use>>> by_storage;
    for (int i = 0; i < num_params; ++i) {
      const UOp *param = params[i], *operand = call->source(i + 1);
      const UOp* buffer = BaseBuffer(operand);
      bool is_too_small = ElementsOf(buffer, bindings).max < ElementsOf(param, bindings).min;
      if (buffer->dtype() != param->dtype() || is_too_small) {
        return v_.Error(call, absl::StrCat("operand ", i, ", got ", Sized(buffer, bindings),
                                           ", expected at least ", Sized(param, bindings)));
      }
      bool writes = param->arg<ParamArgument>().access != Access::kIn;
      SVOD_RETURN_IF_ERROR(VerifyWritten(call, operand, writes));
      // A kernel takes its parameters to be apart, unless it only reads them.
      Use use = {call, place, writes, ExtentOf(operand)};
      for (const auto& [k, other] : by_storage[use.extent.storage]) {
        if ((writes || other.writes) && use.extent.Meets(other.extent)) {
          return v_.Error(call,
                          absl::StrCat("operands ", k, " and ", i, ", got ", v_.Mention(buffer),
                                       " twice, expected written buffers to be apart"));
        }
      }
      by_storage[use.extent.storage].push_back({i, use});
      AddUse(operand, call, place, writes);
    }
    return absl::OkStatus();
  }

  absl::Status VerifyWritten(const UOp* node, const UOp* state, bool writes) {
    const UOp* storage = ExtentOf(state).storage;
    if (!writes || storage->op() != Op::kParam ||
        storage->arg<ParamArgument>().access != Access::kIn) {
      return absl::OkStatus();
    }
    return v_.Error(
        node, absl::StrCat("writes ", v_.Mention(storage), ", got in, expected out or ", "inout"));
  }

  absl::Status VerifyCopy(const UOp* copy, uint32_t place) {
    const UOp *to = BaseBuffer(copy->source(0)), *from = BaseBuffer(copy->source(1));
    IntRange have = ElementsOf(to, {}), wanted = ElementsOf(from, {});
    if (to->dtype() != from->dtype() || have.max < wanted.min || wanted.max < have.min) {
      return v_.Error(copy, absl::StrCat("sizes, got ", Sized(from, {}), " into ", Sized(to, {}),
                                         ", expected equal"));
    }
    SVOD_RETURN_IF_ERROR(VerifyWritten(copy, copy->source(0), true));
    if (ExtentOf(copy->source(0)).Meets(ExtentOf(copy->source(1)))) {
      return v_.Error(copy, absl::StrCat("operands, got ", v_.Mention(from),
                                         " twice, expected buffers that are apart"));
    }
    AddUse(copy->source(0), copy, place, true);
    AddUse(copy->source(1), copy, place, false);
    return absl::OkStatus();
  }

  // An assignment reads values, which see the states that they name; only what it writes has an
  // order.
  absl::Status VerifyAssign(const UOp* assign, uint32_t place) {
    const UOp* part = nullptr;
    const UOp* target = assign->source(0);
    while (InfoOf(target->op()).op_class == OpClass::kTensor) {
      part = target->op() == Op::kShrink ? target : nullptr;
      target = target->source(0);
    }
    if (!IsBufferState(target)) {
      return v_.Error(assign, absl::StrCat("target, got ", v_.Mention(target),
                                           ", expected a buffer or part of one"));
    }
    SVOD_RETURN_IF_ERROR(VerifyWritten(assign, target, true));
    AddUse(target, assign, place, true, part);
    return absl::OkStatus();
  }

  // What a function writes is not declared; it is what some AFTER says it has changed.
  absl::Status VerifyCustom(const UOp* custom, uint32_t place) {
    for (const UOp* source : custom->sources()) {
      if (IsBufferState(source)) {
        bool writes = changed_by_.contains({custom, ExtentOf(source).storage});
        SVOD_RETURN_IF_ERROR(VerifyWritten(custom, source, writes));
        AddUse(source, custom, place, writes);
      } else if (!IsConst(source) && source->op() != Op::kBind && !IsValue(source)) {
        return v_.Error(custom, absl::StrCat("operand, got ", v_.Mention(source),
                                             ", expected buffers and constants"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status VerifyOrder() {
    std::optional<Reachability> reach;
    for (const std::vector<Use>& uses : uses_) {
      bool is_written =
          std::any_of(uses.begin(), uses.end(), [](const Use& use) { return use.writes; });
      if (!is_written) continue;
      if (!reach.has_value()) reach.emplace(v_.nodes);
      SVOD_RETURN_IF_ERROR(VerifyUses(uses, *reach));
      SVOD_RETURN_IF_ERROR(VerifyResults(uses, *reach));
    }
    return absl::OkStatus();
  }

  // A result is read when the graph has run, so its state must come after every write; but for
  // assignments, before which values keep the state that they name.
  absl::Status VerifyResults(const std::vector<Use>& uses, Reachability& reach) {
    std::vector<std::pair<uint32_t, uint32_t>> pairs;
    std::vector<std::pair<const Use*, const Use*>> asked;
    for (const Use& result : results_[uses.front().extent.storage]) {
      for (const Use& use : uses) {
        if (!use.writes || use.node->op() == Op::kAssign) continue;
        if (!use.extent.Meets(result.extent)) continue;
        if (use.place > result.place) return Early(result, use);
        pairs.push_back({use.place, result.place});
        asked.push_back({&result, &use});
      }
    }
    Reachability::Answer answer = reach.FirstApart(pairs);
    if (answer.is_exhausted()) return Exhausted(uses.front());
    if (!answer.is_apart()) return absl::OkStatus();
    auto [result, use] = asked[answer.first];
    return Early(*result, *use);
  }

  absl::Status Early(const Use& result, const Use& write) {
    return v_.Error(v_.function.root,
                    absl::StrCat("result, got ", v_.Mention(result.node), " without the write by ",
                                 v_.Mention(write.node), ", expected an after of it"));
  }

  absl::Status VerifyUses(const std::vector<Use>& uses, Reachability& reach) {
    // Every write against its neighbours: where all uses are in sequence this tells everything.
    std::vector<std::pair<uint32_t, uint32_t>> pairs;
    const Use* write = nullptr;
    std::vector<const Use*> reads;
    auto ask = [&](const Use& earlier, const Use& later) {
      if (earlier.node != later.node) pairs.push_back({earlier.place, later.place});
    };
    for (const Use& use : uses) {
      if (write != nullptr && (!use.writes || reads.empty())) ask(*write, use);
      if (use.writes) {
        for (const Use* read : reads) ask(*read, use);
        reads.clear();
        write = &use;
      } else {
        reads.push_back(&use);
      }
    }
    Reachability::Answer answer = reach.FirstApart(pairs);
    if (!answer.is_exhausted() && !answer.is_apart()) return absl::OkStatus();
    // Else parts of it may be used side by side.
    if (answer.is_exhausted() || uses.size() > kMaxUses) return Exhausted(uses.front());
    std::vector<uint32_t> places;
    for (const Use& use : uses) places.push_back(use.place);
    answer = reach.FirstApart(places, [&](size_t i, size_t j) {
      return uses[i].node != uses[j].node && (uses[i].writes || uses[j].writes) &&
             Meet(uses[i], uses[j]);
    });
    if (answer.is_exhausted()) return Exhausted(uses.front());
    if (!answer.is_apart()) return absl::OkStatus();
    const Use &earlier = uses[answer.first], &later = uses[answer.second];
    return v_.Error(later.node, absl::StrCat("order against ", v_.Mention(earlier.node),
                                             ", which uses ", v_.Mention(earlier.extent.storage),
                                             " too, got none, expected an after"));
  }

  absl::Status Exhausted(const Use& use) {
    return v_.Error(use.node,
                    absl::StrCat("order of the uses of ", v_.Mention(use.extent.storage),
                                 ", got too many, expected fewer"),
                    absl::StatusCode::kResourceExhausted);
  }

  Verifier& v_;
  absl::flat_hash_map<const UOp*, uint32_t> places_;           // of buffers and states
  absl::flat_hash_map<const UOp*, std::vector<Use>> results_;  // by storage
  absl::flat_hash_map<const UOp*, size_t> numbers_;            // storage -> uses_
  std::vector<std::vector<Use>> uses_;                         // in the order of places
  absl::flat_hash_map<const UOp*, std::unique_ptr<Signature>> signatures_;
  absl::flat_hash_set<std::pair<const UOp*, const UOp*>> changed_by_;
};

}  // namespace

absl::Status VerifyGraph(Verifier& verifier) { return GraphCheck(verifier).Run(); }

}  // namespace svod
