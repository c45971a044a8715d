// The verifier's checks of tensors: their shapes, and reads of parameters that are only written.
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/shape.h"
#include "ir/status_macros.h"
#include "ir/verifier.h"

namespace svod {
namespace {

bool IsTensorOp(const UOp* node) {
  return InfoOf(node->op()).op_class == OpClass::kTensor ||
         (IsElementwise(node->op()) && !node->dtype().is_vector());
}

class TensorCheck {
 public:
  explicit TensorCheck(Verifier& verifier) : v_(verifier) {}

  absl::Status Run() {
    SVOD_RETURN_IF_ERROR(VerifyResults());
    bool has_tensors = false;
    for (const UOp* node : v_.nodes) {
      bool is_tensor_op = InfoOf(node->op()).op_class == OpClass::kTensor;
      if (IsElementwise(node->op())) {
        for (const UOp* source : node->sources()) is_tensor_op |= IsBufferState(source);
      }
      has_tensors |= is_tensor_op;
    }
    if (!has_tensors) return absl::OkStatus();
    SVOD_RETURN_IF_ERROR(VerifyReads());
    return VerifyShapes();
  }

 private:
  absl::Status VerifyResults() {
    const UOp* root = v_.function.root;
    for (const UOp* result : root->sources()) {
      bool is_tensor = IsBufferState(result) ||
                       (IsConst(result) ? !result->dtype().is_vector()
                                        : IsTensorOp(result) && result->op() != Op::kAssign);
      if (is_tensor) continue;
      return v_.Error(
          root, absl::StrCat("result, got ", v_.Mention(result), ", expected buffers and tensors"));
    }
    return absl::OkStatus();
  }

  // The targets of assignments are named, not read.
  absl::Status VerifyReads() {
    absl::flat_hash_set<const UOp*> read(v_.function.root->sources().begin(),
                                         v_.function.root->sources().end());
    for (size_t i = v_.nodes.size(); i-- > 0;) {  // users before sources
      const UOp* node = v_.nodes[i];
      bool is_assign = node->op() == Op::kAssign;
      if (!IsTensorOp(node) || (!is_assign && !read.contains(node))) continue;
      for (const UOp* source : node->sources().subspan(is_assign ? 1 : 0)) {
        read.insert(source);
        SVOD_RETURN_IF_ERROR(VerifyRead(node, source));
      }
    }
    return absl::OkStatus();
  }

  absl::Status VerifyRead(const UOp* node, const UOp* source) {
    while (source->op() == Op::kBufferView) source = source->source(0);
    if (source->op() != Op::kParam || source->arg<ParamArgument>().access != Access::kOut) {
      return absl::OkStatus();
    }
    return v_.Error(node, absl::StrCat("reads ", v_.Mention(source),
                                       ", got out, expected in or inout, or a state after an "
                                       "assign"));
  }

  // Shapes are arithmetic on dimensions, which makes nodes: in a context of its own.
  absl::Status VerifyShapes() {
    Context context;
    ShapeAnalysis shapes(context);
    absl::flat_hash_map<const UOp*, const UOp*> copies, originals;
    std::vector<const UOp*> sources;
    for (const UOp* node : v_.nodes) {
      Op op = node->op();
      OpClass op_class = InfoOf(op).op_class;
      if (op == Op::kSink || (op_class == OpClass::kPlan && op != Op::kBufferView)) continue;
      sources.clear();
      for (const UOp* source :
           node->sources().subspan(0, op == Op::kAfter ? 1 : node->num_sources())) {
        auto it = copies.find(source);
        if (it == copies.end()) {
          return v_.Error(node,
                          absl::StrCat("operand, got ", v_.Mention(source), ", expected a tensor"));
        }
        sources.push_back(it->second);
      }
      if (op == Op::kAfter) {
        copies[node] = sources[0];
        continue;
      }
      bool is_explicit = InfoOf(op).dtype_rule == DTypeRule::kExplicit;
      SVOD_ASSIGN_OR_RETURN(const UOp* copy, context.Make(op, is_explicit ? node->dtype() : DType(),
                                                          sources, node->argument()));
      copies[node] = copy;
      originals.try_emplace(copy, node);
      if (!IsTensorOp(node)) continue;
      const UOp* culprit = nullptr;
      absl::Status status = shapes.Of(copy, &culprit).status();
      if (status.ok()) continue;
      auto original = originals.find(culprit);
      // "add: shapes, ..." without the op, which the message has already.
      absl::string_view what = status.message();
      size_t colon = what.find(": ");
      if (colon != absl::string_view::npos) what.remove_prefix(colon + 2);
      return v_.Error(original == originals.end() ? node : original->second, what);
    }
    return absl::OkStatus();
  }

  Verifier& v_;
};

}  // namespace

absl::Status VerifyTensors(Verifier& verifier) { return TensorCheck(verifier).Run(); }

}  // namespace svod
