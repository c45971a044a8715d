#include "plan/graph_order.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/ranges.h"
#include "ir/status_macros.h"

namespace svod {

std::vector<const UOp*> GraphToposort(const UOp* sink) {
  std::vector<const UOp*> order;
  absl::flat_hash_set<const UOp*> seen = {sink};
  std::vector<std::pair<const UOp*, int>> stack = {{sink, 0}};  // node, next source
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next == node->num_sources()) {
      order.push_back(node);
      stack.pop_back();
      continue;
    }
    const UOp* source = node->source(next++);
    if (source->op() != Op::kSink && seen.insert(source).second) stack.emplace_back(source, 0);
  }
  return order;
}

absl::StatusOr<int64_t> MaxBytes(const UOp* buffer) {
  SVOD_ASSIGN_OR_RETURN(int64_t elements, MaxElements(buffer));
  return elements * buffer->dtype().size_bytes();
}

namespace {

bool IsGraphOp(const UOp* node) {
  return node->op() == Op::kCall || node->op() == Op::kCopy || node->op() == Op::kCustomFunction;
}

bool IsGraphBuffer(const UOp* node) {
  return node->op() == Op::kParam || node->op() == Op::kBuffer || node->op() == Op::kBufferView;
}

class Orderer {
 public:
  explicit Orderer(const Function& graph) : graph_(graph) {}

  absl::StatusOr<GraphOps> Run() {
    std::vector<const UOp*> nodes = GraphToposort(graph_.root);
    // A variable that is only bound has its value already.
    absl::flat_hash_set<const UOp*> free;
    for (const UOp* node : nodes) {
      if (node->op() != Op::kBind) free.insert(node->sources().begin(), node->sources().end());
    }
    for (const UOp* node : nodes) {
      if (node->op() == Op::kDefineVar && free.contains(node) &&
          names_.insert(node->arg<VariableArgument>().name).second) {
        result_.variables.push_back(node);
      }
      if (IsGraphBuffer(node)) SVOD_RETURN_IF_ERROR(AddBuffer(node));
      if (IsGraphOp(node)) SVOD_RETURN_IF_ERROR(AddOp(node));
    }
    return std::move(result_);
  }

 private:
  absl::Status Error(const UOp* node, absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("prepare: ", graph_.Describe(node), ": ", what));
  }

  absl::Status AddBuffer(const UOp* node) {
    absl::StatusOr<int64_t> bytes = MaxBytes(node);
    if (!bytes.ok()) {
      return Annotate(bytes.status(), absl::StrCat("prepare: ", graph_.Describe(node)));
    }
    if (node->op() == Op::kBufferView) {
      int64_t whole = sizes_.at(BaseBuffer(node->source(0)));
      int64_t offset = node->arg<ViewArgument>().byte_offset;
      // At its largest: verification has only made sure that some size fits.
      if (*bytes > whole - offset) {
        return Error(node, absl::StrCat("view of ", *bytes, " bytes at offset ", offset,
                                        " leaves a buffer of ", whole, " bytes"));
      }
    }
    sizes_[node] = *bytes;
    result_.buffers.push_back(node);
    return absl::OkStatus();
  }

  absl::Status AddOp(const UOp* node) {
    GraphOp op{node, {}, {}};
    const std::vector<const UOp*>* params = nullptr;
    if (node->op() == Op::kCall) {
      auto [it, is_new] = params_.try_emplace(node->source(0));
      if (is_new) {
        SVOD_ASSIGN_OR_RETURN(it->second, ParamsOf(node->source(0)));
      }
      params = &it->second;
    }
    for (const UOp* source : node->sources()) {
      if (source->op() == Op::kSink) continue;
      const UOp* buffer = BaseBuffer(source);
      if (buffer == nullptr) continue;  // a bind or an attribute
      size_t position = op.operands.size();
      // What a custom function writes is not declared.
      bool writes = true;
      if (params != nullptr) {
        writes = (*params)[position]->arg<ParamArgument>().access != Access::kIn;
      }
      if (node->op() == Op::kCopy) writes = position == 0;
      op.operands.push_back({buffer, writes});
    }
    op.after = OpsBefore(node->sources());
    op_at_[node] = result_.ops.size();
    result_.ops.push_back(std::move(op));
    return absl::OkStatus();
  }

  // The ops that AFTERs under these operands name, nearest ones only where that is enough.
  std::vector<size_t> OpsBefore(absl::Span<const UOp* const> operands) {
    std::vector<size_t> found;
    absl::flat_hash_set<const UOp*> seen;
    std::vector<const UOp*> stack;
    auto push = [&](const UOp* node) {
      if (node->op() != Op::kSink && seen.insert(node).second) stack.push_back(node);
    };
    for (const UOp* operand : operands) push(operand);
    while (!stack.empty()) {
      const UOp* node = stack.back();
      stack.pop_back();
      if (auto it = op_at_.find(node); it != op_at_.end()) {
        found.push_back(it->second);
        continue;
      }
      bool is_after = node->op() == Op::kAfter;
      // An op that took the state below has come after everything that made it: so a chain of
      // updates costs one step an update.
      bool covered = is_after && std::any_of(node->sources().begin() + 1, node->sources().end(),
                                             [&](const UOp* dependency) {
                                               return Takes(dependency, node->source(0));
                                             });
      for (int i = covered ? 1 : 0; i < node->num_sources(); ++i) push(node->source(i));
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  static bool Takes(const UOp* op, const UOp* state) {
    return IsGraphOp(op) &&
           std::find(op->sources().begin(), op->sources().end(), state) != op->sources().end();
  }

  const Function& graph_;
  GraphOps result_;
  absl::flat_hash_set<absl::string_view> names_;
  absl::flat_hash_map<const UOp*, std::vector<const UOp*>> params_;  // of called kernels
  absl::flat_hash_map<const UOp*, int64_t> sizes_;                   // of buffers [bytes]
  absl::flat_hash_map<const UOp*, size_t> op_at_;
};

}  // namespace

absl::StatusOr<GraphOps> OrderGraph(const Function& graph) { return Orderer(graph).Run(); }

}  // namespace svod
