#include "ir/verify.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/linearize.h"
#include "ir/shape.h"
#include "ir/status_macros.h"
#include "ir/verifier.h"

namespace svod {

absl::Status Verifier::Error(const UOp* node, absl::string_view what, absl::StatusCode code) const {
  std::string where = function.Describe(node);
  absl::string_view op = InfoOf(node->op()).text;
  // A node without a name is described by its op already.
  bool is_named = where.find('%') != std::string::npos;
  return absl::Status(
      code, absl::StrCat("verify: ", where, is_named ? absl::StrCat(" ", op) : "", ": ", what));
}

std::string Verifier::Mention(const UOp* node) const {
  std::string where = function.Describe(node);
  size_t name = where.find('%');
  absl::string_view op = InfoOf(node->op()).text;
  if (name == std::string::npos) {
    // "a.uop:3:5: load" turns round.
    size_t colon = where.rfind(": ");
    if (colon == std::string::npos) return where;
    return absl::StrCat(op, " (", where.substr(0, colon), ")");
  }
  std::string text = absl::StrCat(where.substr(name), " ", op);
  if (name > 2) absl::StrAppend(&text, " (", where.substr(0, name - 2), ")");
  return text;
}

bool IsValue(const UOp* node) {
  OpClass op_class = InfoOf(node->op()).op_class;
  return op_class == OpClass::kValue || op_class == OpClass::kVector || IsLanewise(node->op()) ||
         node->op() == Op::kLoad || node->op() == Op::kRange || node->op() == Op::kReduce;
}

bool IsTensor(const UOp* node) {
  return InfoOf(node->op()).op_class == OpClass::kTensor ? node->op() != Op::kAssign
                                                         : IsValue(node) || IsBufferState(node);
}

bool IsBufferState(const UOp* node) {
  return node->op() != Op::kIndex && BaseBuffer(node) != nullptr;
}

namespace {

bool IsGraphOp(Op op) {
  OpClass op_class = InfoOf(op).op_class;
  return op == Op::kBuffer || op == Op::kBind || op_class == OpClass::kPlan ||
         op_class == OpClass::kTensor;
}

absl::Status CollectNodes(Verifier& v) {
  absl::flat_hash_set<const UOp*> seen = {v.function.root};
  std::vector<std::pair<const UOp*, int>> stack = {{v.function.root, 0}};
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next == node->num_sources()) {
      v.nodes.push_back(node);
      stack.pop_back();
      continue;
    }
    const UOp* source = node->source(next++);
    if (source->op() == Op::kSink) {
      if (node->op() == Op::kCall) continue;
      return v.Error(node, "operand, got sink, expected a node of the same function");
    }
    if (seen.insert(source).second) stack.push_back({source, 0});
  }
  return absl::OkStatus();
}

// CheckNode knows the dtypes of operands; here they must also be values where values are wanted.
absl::Status VerifyOperands(const Verifier& v, const UOp* node) {
  Op op = node->op();
  size_t first = 0, last = node->num_sources();  // the sources that must be values
  if (op == Op::kIndex || op == Op::kLoad || op == Op::kStore || op == Op::kBufferView) first = 1;
  if (op == Op::kReduce) last = 1;
  if (op == Op::kAfter || op == Op::kEnd || op == Op::kSink || op == Op::kCall || op == Op::kCopy ||
      op == Op::kCustomFunction) {
    last = 0;
  }
  bool takes_tensors =
      !v.function.is_kernel() && (InfoOf(op).op_class == OpClass::kTensor || IsElementwise(op));
  for (size_t i = first; i < last; ++i) {
    const UOp* source = node->source(static_cast<int>(i));
    if (IsValue(source) || (takes_tensors && IsTensor(source))) continue;
    return v.Error(node,
                   absl::StrCat("operand ", i, ", got ", v.Mention(source), ", expected a value"));
  }
  return absl::OkStatus();
}

// Dimensions and launch sizes are known before the kernel runs.
absl::Status VerifyLaunchExpressions(Verifier& v) {
  absl::flat_hash_set<const UOp*> varying;  // depends on a run of the kernel, or is no value
  for (const UOp* node : v.nodes) {
    Op op = node->op();
    bool is_expression = IsConst(node) || op == Op::kDefineVar || IsElementwise(op) ||
                         InfoOf(op).op_class == OpClass::kVector;
    for (int i = 0; i < node->num_sources(); ++i) {
      const UOp* source = node->source(i);
      if (!varying.contains(source)) continue;
      is_expression = false;
      OpClass op_class = InfoOf(op).op_class;
      bool is_size = op_class == OpClass::kBuffer || op == Op::kCoreId ||
                     (op == Op::kBufferView && i > 0) ||
                     (op_class == OpClass::kTensor && i >= NumTensorSources(node));
      if (!is_size) continue;
      return v.Error(node, absl::StrCat(op == Op::kCoreId ? "launch size" : "dimension", ", got ",
                                        v.Mention(source), ", expected constants and variables"));
    }
    if (!is_expression) varying.insert(node);
  }
  return absl::OkStatus();
}

class KernelCheck {
 public:
  explicit KernelCheck(Verifier& verifier) : v_(verifier) {}

  absl::Status Run(const VerifyOptions& options) {
    for (const UOp* node : v_.nodes) {
      if (IsGraphOp(node->op())) {
        return v_.Error(node, absl::StrCat("op, got ", InfoOf(node->op()).text,
                                           ", expected none of a graph in a kernel"));
      }
      SVOD_RETURN_IF_ERROR(VerifyOperands(v_, node));
      SVOD_RETURN_IF_ERROR(VerifyNode(node));
    }
    SVOD_RETURN_IF_ERROR(VerifyLaunchExpressions(v_));
    SVOD_RETURN_IF_ERROR(VerifyDeclarations(v_));
    const UOp* culprit = nullptr;
    absl::Status order = Linearize(v_.function.root, &culprit).status();
    if (!order.ok()) return v_.Error(culprit, order.message(), order.code());
    SVOD_RETURN_IF_ERROR(VerifyAccessOrder(v_));
    return options.lowerable ? VerifyLowerable() : absl::OkStatus();
  }

 private:
  absl::Status VerifyNode(const UOp* node) {
    Op op = node->op();
    if (op == Op::kLoad || op == Op::kStore) return VerifyAccess(node);
    if (op == Op::kReg) return AddScratch(node, reg_bytes_, kMaxRegBytes);
    if (op == Op::kLocal) return AddScratch(node, local_bytes_, kMaxLocalBytes);
    if (op == Op::kRange) return IsNew(axes_, node, node->arg<AxisArgument>().axis, "axis");
    if (op == Op::kCoreId) {
      if (core_id_ != nullptr) {
        return v_.Error(node, absl::StrCat("launch size, got a second core_id beside ",
                                           v_.Mention(core_id_), ", expected one in a kernel"));
      }
      core_id_ = node;
    }
    if (op == Op::kEnd || op == Op::kSink) return VerifyEffects(node);
    return absl::OkStatus();
  }

  absl::Status VerifyAccess(const UOp* node) {
    const UOp* buffer = BaseBuffer(node->source(0));
    if (buffer->op() != Op::kParam) return absl::OkStatus();
    Access access = buffer->arg<ParamArgument>().access;
    bool is_store = node->op() == Op::kStore;
    if (access != (is_store ? Access::kIn : Access::kOut)) return absl::OkStatus();
    return v_.Error(node, absl::StrCat("access of ", v_.Mention(buffer), ", got ", ToString(access),
                                       ", expected ", is_store ? "out" : "in", " or inout"));
  }

  absl::Status AddScratch(const UOp* node, int64_t& total, int64_t limit) {
    const auto& scratch = node->arg<ScratchArgument>();
    SVOD_RETURN_IF_ERROR(IsNew(scratch_, node, scratch.id, "scratch id"));
    // Neither factor passes 2^40 and 2^13: see CheckNode.
    int64_t bytes = scratch.size * node->dtype().size_bytes();
    if (bytes <= limit - total) {
      total += bytes;
      return absl::OkStatus();
    }
    return v_.Error(node,
                    absl::StrCat("scratch, got ", bytes, " bytes after ", total,
                                 ", expected at most ", limit, " in a kernel"),
                    absl::StatusCode::kResourceExhausted);
  }

  using Numbers = absl::flat_hash_map<int64_t, const UOp*>;
  absl::Status IsNew(Numbers& numbers, const UOp* node, int64_t number, absl::string_view what) {
    auto [it, is_new] = numbers.try_emplace(number, node);
    if (is_new) return absl::OkStatus();
    return v_.Error(node, absl::StrCat(what, ", got ", number, " as ", v_.Mention(it->second),
                                       " has, expected its own"));
  }

  absl::Status VerifyEffects(const UOp* node) {
    for (const UOp* effect : node->sources().subspan(node->op() == Op::kEnd ? 1 : 0)) {
      // A SINK may list what the kernel is called with though nothing uses it.
      bool is_interface = effect->op() == Op::kParam || effect->op() == Op::kDefineVar ||
                          effect->op() == Op::kCoreId;
      if (node->op() == Op::kSink && is_interface) continue;
      if (effect->op() != Op::kStore && effect->op() != Op::kEnd) {
        return v_.Error(
            node, absl::StrCat("effect, got ", v_.Mention(effect), ", expected stores and ends"));
      }
      auto [it, is_new] = performed_by_.try_emplace(effect, node);
      if (is_new) continue;
      return v_.Error(effect, absl::StrCat("performed by ", v_.Mention(it->second), " and by ",
                                           v_.Mention(node), ", expected once"));
    }
    return absl::OkStatus();
  }

  absl::Status VerifyLowerable() {
    for (const UOp* node : v_.nodes) {
      Op op = node->op();
      if (op == Op::kReduce || HasFlag(op, kTranscendental)) {
        return v_.Error(node, absl::StrCat("op, got ", InfoOf(op).text,
                                           ", expected that a pass has replaced it"));
      }
      if (op != Op::kLoad && op != Op::kStore) continue;
      const UOp* index = node->source(0);
      int lanes = op == Op::kStore ? node->source(1)->dtype().lanes : node->dtype().lanes;
      if (IsInBounds(index, lanes, v_.ranges)) continue;
      IntRange range = v_.ranges.Of(index->source(1));
      return v_.Error(
          node, absl::StrCat("position in ", v_.Mention(BaseBuffer(index)), ", got [", range.min,
                             ", ", range.max, "], expected a proof or a gate that it is inside"));
    }
    return absl::OkStatus();
  }

  Verifier& v_;
  const UOp* core_id_ = nullptr;
  int64_t reg_bytes_ = 0, local_bytes_ = 0;
  Numbers axes_, scratch_;
  absl::flat_hash_map<const UOp*, const UOp*> performed_by_;
};

}  // namespace

absl::Status VerifyDeclarations(Verifier& v) {
  std::vector<const UOp*> params;
  absl::flat_hash_map<int64_t, const UOp*> slots;
  absl::flat_hash_map<absl::string_view, const UOp*> variables, names;
  for (const UOp* node : v.nodes) {
    if (node->op() == Op::kParam) {
      params.push_back(node);
      const auto& param = node->arg<ParamArgument>();
      auto [it, is_new] = slots.try_emplace(param.slot, node);
      if (!is_new) {
        return v.Error(node, absl::StrCat("slot, got ", param.slot, " as ", v.Mention(it->second),
                                          " has, expected its own"));
      }
      if (!param.name.empty() && !names.try_emplace(param.name, node).second) {
        return v.Error(node, absl::StrCat("name, got '", param.name,
                                          "' for two parameters, expected its own"));
      }
    }
    if (node->op() == Op::kDefineVar) {
      absl::string_view name = node->arg<VariableArgument>().name;
      if (name == "core_id") {
        return v.Error(node, "name, got the reserved 'core_id', expected another");
      }
      auto [it, is_new] = variables.try_emplace(name, node);
      if (!is_new) {
        const auto &a = it->second->arg<VariableArgument>(), &b = node->arg<VariableArgument>();
        return v.Error(node,
                       absl::StrCat("bounds of '", name, "', got [", a.min, ", ", a.max, "] and [",
                                    b.min, ", ", b.max, "], expected one variable of a name"));
      }
    }
    OpClass op_class = InfoOf(node->op()).op_class;
    if (op_class == OpClass::kBuffer || node->op() == Op::kBufferView) {
      absl::Status size = MaxElements(node, v.ranges).status();
      if (!size.ok()) {
        // "param: dimension, ..." without the op, which the message has already.
        absl::string_view what = size.message();
        return v.Error(node, what.substr(what.find(": ") + 2));
      }
    }
  }
  for (const UOp* param : params) {
    int64_t slot = param->arg<ParamArgument>().slot;
    if (slot >= 0 && slot < static_cast<int64_t>(params.size())) continue;
    return v.Error(param, absl::StrCat("slot, got ", slot, " of ", params.size(),
                                       " parameters, expected 0 to ", params.size() - 1));
  }
  return absl::OkStatus();
}

absl::Status Verify(const Function& function, const VerifyOptions& options) {
  if (function.root == nullptr) {
    return absl::InvalidArgumentError("verify: root, got null, expected sink");
  }
  Verifier verifier(function);
  if (function.root->op() != Op::kSink) {
    return verifier.Error(
        function.root,
        absl::StrCat("root, got ", InfoOf(function.root->op()).text, ", expected sink"));
  }
  SVOD_RETURN_IF_ERROR(CollectNodes(verifier));
  if (function.is_kernel()) return KernelCheck(verifier).Run(options);
  for (const UOp* node : verifier.nodes) SVOD_RETURN_IF_ERROR(VerifyOperands(verifier, node));
  SVOD_RETURN_IF_ERROR(VerifyLaunchExpressions(verifier));
  SVOD_RETURN_IF_ERROR(VerifyDeclarations(verifier));
  return VerifyGraph(verifier);
}

}  // namespace svod
