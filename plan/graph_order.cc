#include "plan/graph_order.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/ranges.h"
#include "ir/status_macros.h"
#include "plan/levels.h"

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

// Part of a PARAM or BUFFER at its largest.
struct Extent {
  const UOp* root = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
};

bool Overlap(const Extent& a, const Extent& b) {
  return a.root == b.root && a.begin < b.end && b.begin < a.end;
}

// The AFTER, or the root buffer, that says in which state an operand is; views look through.
const UOp* StateOf(const UOp* node) {
  while (node->op() == Op::kBufferView) node = node->source(0);
  return node;
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
    AddReadsBeforeWrites();
    return Sort();
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
    Extent extent{node, 0, *bytes};
    if (node->op() == Op::kBufferView) {
      const UOp* base = BaseBuffer(node->source(0));
      auto it = extents_.find(base);
      if (it == extents_.end()) return Error(node, "base, expected a buffer of the graph");
      const Extent& whole = it->second;
      int64_t offset = node->arg<ViewArgument>().byte_offset;
      if (offset < 0 || offset > whole.end - whole.begin ||
          *bytes > whole.end - whole.begin - offset) {
        return Error(node, absl::StrCat("view of ", *bytes, " bytes at offset ", offset,
                                        " leaves a buffer of ", whole.end - whole.begin, " bytes"));
      }
      extent = {whole.root, whole.begin + offset, whole.begin + offset + *bytes};
    }
    extents_[node] = extent;
    result_.buffers.push_back(node);
    return absl::OkStatus();
  }

  absl::Status AddOp(const UOp* node) {
    GraphOp op{node, {}, {}};
    std::vector<const UOp*> params;
    if (node->op() == Op::kCall) {
      absl::StatusOr<std::vector<const UOp*>> found = ParamsOf(node->source(0));
      if (!found.ok()) {
        return Annotate(found.status(), absl::StrCat("prepare: ", graph_.Describe(node)));
      }
      params = *std::move(found);
    }
    for (const UOp* source : node->sources()) {
      if (source->op() == Op::kSink) continue;
      const UOp* buffer = BaseBuffer(source);
      if (buffer == nullptr) continue;  // a bind or an attribute
      if (source->op() == Op::kIndex || !extents_.contains(buffer)) {
        return Error(node, absl::StrCat("operand ", InfoOf(source->op()).text,
                                        ", expected a parameter, buffer or view of the graph"));
      }
      GraphOp::Operand operand{source, buffer};
      size_t position = op.operands.size();
      if (position < params.size()) {
        Access access = params[position]->arg<ParamArgument>().access;
        operand.reads = access != Access::kOut;
        operand.writes = access != Access::kIn;
      }
      if (node->op() == Op::kCopy) {
        operand.reads = position == 1;
        operand.writes = position == 0;
      }
      const UOp* root = extents_.at(buffer).root;
      if (operand.writes && node->op() != Op::kCustomFunction && root->op() == Op::kParam &&
          root->arg<ParamArgument>().access == Access::kIn) {
        return Error(node, absl::StrCat("writes parameter ", graph_.Describe(root),
                                        ", which is in, expected out or inout"));
      }
      op.operands.push_back(operand);
    }
    op.after = OpsBefore(node->sources());
    size_t position = result_.ops.size();
    for (size_t i = 0; i < op.operands.size(); ++i) {
      auto& users = op.operands[i].writes ? writers_ : readers_;
      users[StateOf(op.operands[i].state)].emplace_back(position, i);
    }
    op_at_[node] = position;
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

  const Extent& ExtentOf(size_t op, size_t operand) {
    return extents_.at(result_.ops[op].operands[operand].buffer);
  }

  bool Writes(size_t op, const Extent& extent) {
    const GraphOp& graph_op = result_.ops[op];
    for (size_t i = 0; i < graph_op.operands.size(); ++i) {
      if (graph_op.operands[i].writes && Overlap(ExtentOf(op, i), extent)) return true;
    }
    return false;
  }

  // Whether AFTERs put op `first` before op `second`. Edges point to lower positions only.
  bool ComesBefore(size_t first, size_t second) {
    if (first >= second) return false;
    absl::flat_hash_set<size_t> seen = {second};
    std::vector<size_t> stack = {second};
    while (!stack.empty()) {
      size_t op = stack.back();
      stack.pop_back();
      for (size_t before : result_.ops[op].after) {
        if (before == first) return true;
        if (before > first && seen.insert(before).second) stack.push_back(before);
      }
    }
    return false;
  }

  void AddReadsBeforeWrites() {
    moved_.resize(result_.ops.size());
    for (const auto& entry : writers_) {
      for (auto [writer, operand] : entry.second) {
        const Extent& written = ExtentOf(writer, operand);
        for (const UOp* state = entry.first;;) {
          for (auto [reader, read] : readers_[state]) {
            if (reader == writer || !Overlap(written, ExtentOf(reader, read)) ||
                Writes(reader, written) || ComesBefore(writer, reader)) {
              continue;
            }
            moved_[writer].push_back(reader);
          }
          // Readers of older states come before the op that wrote this one, if one did.
          if (state->op() != Op::kAfter) break;
          bool made_by_write = std::any_of(
              state->sources().begin() + 1, state->sources().end(), [&](const UOp* dependency) {
                auto it = op_at_.find(dependency);
                return it != op_at_.end() && Writes(it->second, written);
              });
          if (made_by_write) break;
          state = StateOf(state->source(0));
        }
      }
    }
    for (std::vector<size_t>& readers : moved_) std::sort(readers.begin(), readers.end());
  }

  absl::StatusOr<GraphOps> Sort() {
    std::vector<OpNode> nodes(result_.ops.size());
    std::vector<std::vector<size_t>> after(result_.ops.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      nodes[i].id = i;
      after[i] = result_.ops[i].after;
      after[i].insert(after[i].end(), moved_[i].begin(), moved_[i].end());
    }
    SVOD_ASSIGN_OR_RETURN(DependencyGraph graph, BuildDependencyGraph(nodes, after));
    absl::StatusOr<std::vector<size_t>> order = ComputeOrder(graph);
    if (!order.ok()) {
      for (size_t writer = 0; writer < moved_.size(); ++writer) {
        if (moved_[writer].empty()) continue;
        return Error(
            result_.ops[writer].node,
            absl::StrCat("overwrites what ", graph_.Describe(result_.ops[moved_[writer][0]].node),
                         " reads while ops that read first must come after it, expected "
                         "an order given by after, or a copy"));
      }
    }
    std::vector<size_t> position_of(nodes.size());
    GraphOps sorted;
    for (size_t at = 0; at < order->size(); ++at) {
      position_of[(*order)[at]] = at;
      sorted.ops.push_back(std::move(result_.ops[(*order)[at]]));
    }
    for (GraphOp& op : sorted.ops) {
      for (size_t& before : op.after) before = position_of[before];
    }
    sorted.buffers = std::move(result_.buffers);
    sorted.variables = std::move(result_.variables);
    return sorted;
  }

  const Function& graph_;
  GraphOps result_;
  absl::flat_hash_set<absl::string_view> names_;
  absl::flat_hash_map<const UOp*, Extent> extents_;
  absl::flat_hash_map<const UOp*, size_t> op_at_;
  // By state: op and operand.
  using Users = absl::flat_hash_map<const UOp*, std::vector<std::pair<size_t, size_t>>>;
  Users readers_, writers_;
  std::vector<std::vector<size_t>> moved_;  // by writer: readers that must come first
};

}  // namespace

absl::StatusOr<GraphOps> OrderGraph(const Function& graph) { return Orderer(graph).Run(); }

}  // namespace svod
