#include "plan/memory_plan.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/status_macros.h"
#include "ir/verify.h"
#include "plan/arena_layout.h"
#include "plan/graph_order.h"
#include "plan/hazards.h"
#include "plan/in_place.h"
#include "plan/storage.h"

namespace svod {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

// A BUFFER of the graph and the ops that use it or views of it.
struct Intermediate {
  const UOp* node;
  int64_t bytes = 0;
  std::vector<size_t> uses;  // positions in GraphOps::ops, ascending, each once
  int first_level = 0, last_level = 0;
  bool is_placed = false;
  size_t reuses = kNone;     // whose memory it took over in place
  size_t reused_by = kNone;  // who took over its own
};

// Buffers that follow one another in place: one stretch of the arena.
struct Block {
  size_t first, last;  // Intermediates
  int64_t offset = 0, bytes = 0;
};

// How one CALL changes: parameter pairs {read, written} that become one.
using Pairs = std::vector<std::pair<size_t, size_t>>;

class MemoryPlanner {
 public:
  MemoryPlanner(const Module& module, const Function& graph)
      : module_(module), graph_(graph), context_(*module.context) {}

  absl::StatusOr<MemoryPlan> Run(MemoryMode mode) {
    SVOD_RETURN_IF_ERROR(Verify(graph_));
    SVOD_ASSIGN_OR_RETURN(ops_, OrderGraph(graph_));
    SVOD_RETURN_IF_ERROR(CollectBuffers());
    ComputeLevels();
    if (mode == MemoryMode::kArena) {
      SVOD_RETURN_IF_ERROR(ChooseBuffers());
      SVOD_RETURN_IF_ERROR(ChooseInPlace());
      SVOD_RETURN_IF_ERROR(LayOut());
    }
    if (blocks_.empty()) {
      plan_.module = module_;
    } else {
      SVOD_RETURN_IF_ERROR(Rebuild());
    }
    Report();
    return std::move(plan_);
  }

 private:
  // The PARAM or BUFFER that a view, or a view of a view, is part of.
  static const UOp* RootOf(const UOp* buffer) {
    while (buffer->op() == Op::kBufferView) buffer = BaseBuffer(buffer->source(0));
    return buffer;
  }
  static const UOp* SinkOf(const UOp* call) { return call->source(0); }
  static bool HasConstSizes(const UOp* sink) {
    absl::StatusOr<std::vector<const UOp*>> params = ParamsOf(sink);
    return params.ok() && std::all_of(params->begin(), params->end(), [](const UOp* param) {
             return std::all_of(param->sources().begin(), param->sources().end(), IsConst);
           });
  }

  absl::Status CollectBuffers() {
    absl::flat_hash_set<const UOp*> returned;
    for (const UOp* state : graph_.root->sources()) returned.insert(RootOf(BaseBuffer(state)));
    for (size_t op = 0; op < ops_.ops.size(); ++op) {
      for (const GraphOp::Operand& operand : ops_.ops[op].operands) {
        const UOp* root = RootOf(operand.buffer);
        if (root->op() != Op::kBuffer || returned.contains(root)) continue;
        auto [it, is_new] = number_of_.try_emplace(root, buffers_.size());
        if (is_new) {
          SVOD_ASSIGN_OR_RETURN(int64_t bytes, MaxBytes(root));
          buffers_.push_back({.node = root, .bytes = bytes, .uses = {}});
        }
        std::vector<size_t>& uses = buffers_[it->second].uses;
        if (uses.empty() || uses.back() != op) uses.push_back(op);
      }
    }
    return absl::OkStatus();
  }

  // As the plan will have them while every buffer has memory of its own.
  void ComputeLevels() {
    absl::flat_hash_map<const UOp*, uint64_t> space_of;
    std::vector<OpAccess> accesses(ops_.ops.size());
    for (size_t i = 0; i < ops_.ops.size(); ++i) {
      for (const GraphOp::Operand& operand : ops_.ops[i].operands) {
        uint64_t begin = 0;
        const UOp* buffer = operand.buffer;
        while (buffer->op() == Op::kBufferView) {
          begin += static_cast<uint64_t>(buffer->arg<ViewArgument>().byte_offset);
          buffer = BaseBuffer(buffer->source(0));
        }
        uint64_t space = space_of.try_emplace(buffer, space_of.size()).first->second;
        auto size = static_cast<uint64_t>(MaxBytes(operand.buffer).value_or(0));
        (operand.writes ? accesses[i].writes : accesses[i].reads)
            .push_back({space, begin, begin + size});
      }
    }
    std::vector<std::vector<size_t>> hazards = ProgramOrderDependencies(accesses);
    levels_.assign(ops_.ops.size(), 0);
    for (size_t i = 0; i < levels_.size(); ++i) {
      for (const std::vector<size_t>* befores : {&ops_.ops[i].after, &hazards[i]}) {
        for (size_t before : *befores) levels_[i] = std::max(levels_[i], levels_[before] + 1);
      }
    }
    for (Intermediate& buffer : buffers_) {
      buffer.first_level = levels_[buffer.uses.front()];
      for (size_t use : buffer.uses) buffer.last_level = std::max(buffer.last_level, levels_[use]);
    }
  }

  absl::StatusOr<KernelAccesses*> AccessesOf(const UOp* sink) {
    auto it = accesses_.find(sink);
    if (it == accesses_.end()) {
      SVOD_ASSIGN_OR_RETURN(KernelAccesses accesses, KernelAccesses::Create(sink));
      it = accesses_.emplace(sink, std::make_unique<KernelAccesses>(std::move(accesses))).first;
    }
    return it->second.get();
  }

  // The only operand of the op on this buffer or views of it; kNone when there are several.
  size_t OperandOf(const GraphOp& op, const UOp* buffer) {
    size_t found = kNone;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      if (RootOf(op.operands[i].buffer) != buffer) continue;
      if (found != kNone || op.operands[i].buffer != buffer) return kNone;
      found = i;
    }
    return found;
  }

  // Elements that nobody has written are zero, so memory is shared only by buffers that their
  // first op writes whole.
  absl::Status ChooseBuffers() {
    for (Intermediate& buffer : buffers_) {
      const GraphOp& op = ops_.ops[buffer.uses.front()];
      size_t position = OperandOf(op, buffer.node);
      if (buffer.bytes == 0 || position == kNone) continue;
      if (op.node->op() == Op::kCopy) buffer.is_placed = position == 0;
      if (op.node->op() != Op::kCall) continue;
      SVOD_ASSIGN_OR_RETURN(KernelAccesses * accesses, AccessesOf(SinkOf(op.node)));
      // A bound variable is not what the shapes of operands and parameters say.
      bool has_binds = op.node->sources().back()->op() == Op::kBind;
      bool has_bound_sizes = has_binds && !HasConstSizes(SinkOf(op.node));
      buffer.is_placed = !has_bound_sizes && accesses->HasSizeOf(position, buffer.node) &&
                         accesses->WritesWhole(position);
    }
    return absl::OkStatus();
  }

  absl::Status ChooseInPlace() {
    for (size_t number = 0; number < buffers_.size(); ++number) {
      Intermediate& buffer = buffers_[number];
      size_t op_index = buffer.uses.front();
      const GraphOp& op = ops_.ops[op_index];
      if (!buffer.is_placed || op.node->op() != Op::kCall) continue;
      size_t out = OperandOf(op, buffer.node);
      SVOD_ASSIGN_OR_RETURN(KernelAccesses * accesses, AccessesOf(SinkOf(op.node)));
      for (size_t in = 0; in < op.operands.size(); ++in) {
        auto it = number_of_.find(op.operands[in].buffer);
        if (it == number_of_.end()) continue;
        Intermediate& dying = buffers_[it->second];
        if (!dying.is_placed || dying.reused_by != kNone || !DiesAt(dying, op_index) ||
            OperandOf(op, dying.node) != in || !accesses->HasSizeOf(in, dying.node) ||
            !accesses->InPlace(in, out)) {
          continue;
        }
        dying.reused_by = number;
        buffer.reuses = it->second;
        pairs_[op_index].emplace_back(in, out);
        break;
      }
    }
    return MergeKernels();
  }

  // Whether everything else that uses the buffer is on a lower level than the op.
  bool DiesAt(const Intermediate& buffer, size_t op) {
    return std::all_of(buffer.uses.begin(), buffer.uses.end(),
                       [&](size_t use) { return use == op || levels_[use] < levels_[op]; });
  }

  // Makes the kernels that work in place; calls of those that cannot be made stay as they were.
  absl::Status MergeKernels() {
    for (const Function& function : module_.functions) {
      names_.insert(std::string(function.name()));
      if (function.is_kernel()) function_of_.try_emplace(function.root, &function);
    }
    for (auto it = pairs_.begin(); it != pairs_.end();) {
      const GraphOp& op = ops_.ops[it->first];
      const UOp* sink = SinkOf(op.node);
      auto [merged, is_new] = merged_.try_emplace({sink, it->second});
      if (is_new) {
        auto found = function_of_.find(sink);
        Function kernel = found != function_of_.end() ? *found->second : Function{sink, {}, {}};
        std::string name = absl::StrCat(kernel.name(), "_in_place");
        for (int i = 2; names_.contains(name); ++i) {
          name = absl::StrCat(kernel.name(), "_in_place", i);
        }
        absl::StatusOr<Function> function = MergeParams(kernel, it->second, name, context_);
        if (function.ok()) {
          names_.insert(name);
          merged->second = *std::move(function);
        }
      }
      if (merged->second.root != nullptr) {
        ++it;
        continue;
      }
      for (auto [in, out] : it->second) {
        buffers_[number_of_.at(op.operands[in].buffer)].reused_by = kNone;
        buffers_[number_of_.at(op.operands[out].buffer)].reuses = kNone;
      }
      it = pairs_.erase(it);
    }
    return absl::OkStatus();
  }

  absl::Status LayOut() {
    std::vector<Lifetime> lifetimes;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (!buffers_[i].is_placed || buffers_[i].reuses != kNone) continue;
      Block block{i, i, 0, buffers_[i].bytes};
      while (buffers_[block.last].reused_by != kNone) block.last = buffers_[block.last].reused_by;
      blocks_.push_back(block);
      lifetimes.push_back({block.bytes, buffers_[i].first_level, buffers_[block.last].last_level});
    }
    SVOD_ASSIGN_OR_RETURN(ArenaLayout layout, LayOutArena(lifetimes, kBufferAlignment));
    for (size_t i = 0; i < blocks_.size(); ++i) blocks_[i].offset = layout.offsets[i];
    plan_.arena_bytes = layout.bytes;
    return absl::OkStatus();
  }

  // Who had the bytes of each block before it: blocks by the block that takes over. A block that
  // had them earlier still is behind those.
  std::vector<std::vector<size_t>> Predecessors() {
    std::vector<size_t> order(blocks_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return buffers_[blocks_[a].first].first_level < buffers_[blocks_[b].first].first_level;
    });
    std::vector<std::vector<size_t>> result(blocks_.size());
    struct Piece {
      int64_t end;
      size_t block;
    };
    std::map<int64_t, Piece> pieces;  // by where they begin; disjoint
    for (size_t number : order) {
      int64_t begin = blocks_[number].offset, end = begin + blocks_[number].bytes;
      auto it = pieces.upper_bound(begin);
      if (it != pieces.begin()) --it;
      while (it != pieces.end() && it->first < end) {
        auto [at, piece] = *it;
        if (piece.end <= begin) {
          ++it;
          continue;
        }
        it = pieces.erase(it);
        result[number].push_back(piece.block);
        if (at < begin) pieces[at] = {begin, piece.block};
        if (piece.end > end) it = pieces.emplace(end, piece).first;
      }
      pieces[begin] = {end, number};
      std::sort(result[number].begin(), result[number].end());
      result[number].erase(std::unique(result[number].begin(), result[number].end()),
                           result[number].end());
    }
    return result;
  }

  absl::Status MakeViews() {
    int64_t id = 0;
    for (const UOp* buffer : ops_.buffers) {
      if (buffer->op() == Op::kBuffer) id = std::max(id, buffer->arg<BufferArgument>().id + 1);
    }
    SVOD_ASSIGN_OR_RETURN(const UOp* arena,
                          context_.Make(Op::kBuffer, Scalar::kU8,
                                        {context_.Index(plan_.arena_bytes)}, BufferArgument{id}));
    new_notes_[arena].name = "arena";
    for (const Block& block : blocks_) {
      for (size_t i = block.first; i != kNone; i = buffers_[i].reused_by) {
        const UOp* buffer = buffers_[i].node;
        std::vector<const UOp*> sources = {arena};
        sources.insert(sources.end(), buffer->sources().begin(), buffer->sources().end());
        // Two buffers may be the same stretch under the same dimensions: one node then.
        SVOD_ASSIGN_OR_RETURN(made_[buffer], context_.Make(Op::kBufferView, buffer->dtype(),
                                                           sources, ViewArgument{block.offset}));
      }
    }
    return absl::OkStatus();
  }

  // Makes what stands under `nodes`; ops under them are made already.
  absl::Status MakeAll(absl::Span<const UOp* const> nodes) {
    std::vector<const UOp*> stack(nodes.rbegin(), nodes.rend());
    while (!stack.empty()) {
      const UOp* node = stack.back();
      if (made_.contains(node) || node->op() == Op::kSink) {
        stack.pop_back();
        continue;
      }
      bool is_ready = true;
      for (const UOp* source : node->sources()) {
        if (made_.contains(source) || source->op() == Op::kSink) continue;
        stack.push_back(source);
        is_ready = false;
      }
      if (!is_ready) continue;
      stack.pop_back();
      SVOD_ASSIGN_OR_RETURN(made_[node], MakeLike(node, Made(node->sources())));
    }
    return absl::OkStatus();
  }
  std::vector<const UOp*> Made(absl::Span<const UOp* const> nodes) {
    std::vector<const UOp*> result;
    for (const UOp* node : nodes) {
      result.push_back(node->op() == Op::kSink ? node : made_.at(node));
    }
    return result;
  }
  absl::StatusOr<const UOp*> MakeLike(const UOp* node, std::vector<const UOp*> sources) {
    if (sources == node->sources()) return node;
    return context_.Make(node->op(), node->dtype(), sources, node->argument());
  }

  // The state of a buffer when all its uses but `except` have happened. One node a buffer, so that
  // many who take over from many cost no more than both together.
  absl::StatusOr<const UOp*> EndOf(size_t number, size_t except) {
    const Intermediate& buffer = buffers_[number];
    auto [it, is_new] = ends_.try_emplace(number, nullptr);
    if (is_new) {
      std::vector<const UOp*> sources = {made_.at(buffer.node)};
      for (size_t use : buffer.uses) {
        // Whoever comes first is before all others.
        if (use == except || (use == buffer.uses.front() && buffer.uses.size() > 1)) continue;
        sources.push_back(made_.at(ops_.ops[use].node));
      }
      if (sources.size() == 1) sources.push_back(made_.at(ops_.ops[buffer.uses.front()].node));
      SVOD_ASSIGN_OR_RETURN(it->second, context_.Make(Op::kAfter, sources));
    }
    return it->second;
  }

  absl::Status Rebuild() {
    SVOD_RETURN_IF_ERROR(MakeViews());
    std::vector<std::vector<size_t>> predecessors = Predecessors();
    absl::flat_hash_map<size_t, size_t> block_of;  // by the Intermediate that begins it
    for (size_t i = 0; i < blocks_.size(); ++i) block_of[blocks_[i].first] = i;
    // By level: whoever is put behind another is on a higher one.
    std::vector<size_t> order(ops_.ops.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return levels_[a] < levels_[b]; });
    for (size_t op : order) SVOD_RETURN_IF_ERROR(MakeOp(op, predecessors, block_of));
    SVOD_RETURN_IF_ERROR(MakeAll(graph_.root->sources()));
    Function graph;
    graph.file = graph_.file;
    SVOD_ASSIGN_OR_RETURN(graph.root, MakeLike(graph_.root, Made(graph_.root->sources())));
    // Buffers that are one view by now are called after the first of them.
    for (const Intermediate& buffer : buffers_) CopyNote(buffer.node, graph);
    for (const UOp* node : GraphToposort(graph_.root)) CopyNote(node, graph);
    for (const auto& [node, note] : new_notes_) graph.notes[node] = note;
    CollectFunctions(std::move(graph));
    return absl::OkStatus();
  }

  void CopyNote(const UOp* node, Function& graph) {
    auto note = graph_.notes.find(node);
    auto made = made_.find(node);
    if (note == graph_.notes.end() || made == made_.end()) return;
    graph.notes.try_emplace(made->second, note->second);
  }

  absl::Status MakeOp(size_t index, const std::vector<std::vector<size_t>>& predecessors,
                      const absl::flat_hash_map<size_t, size_t>& block_of) {
    const GraphOp& op = ops_.ops[index];
    SVOD_RETURN_IF_ERROR(MakeAll(op.node->sources()));
    std::vector<const UOp*> sources = Made(op.node->sources());
    auto pairs = pairs_.find(index);
    size_t first_operand = op.node->op() == Op::kCall ? 1 : 0;
    size_t position = 0;
    for (size_t s = first_operand; s < sources.size(); ++s) {
      if (BaseBuffer(op.node->source(static_cast<int>(s))) == nullptr) continue;
      const UOp* buffer = op.operands[position++].buffer;
      auto it = number_of_.find(buffer);
      if (it == number_of_.end()) continue;
      const Intermediate& intermediate = buffers_[it->second];
      if (!intermediate.is_placed || intermediate.uses.front() != index) continue;
      std::vector<const UOp*> after = {sources[s]};
      if (intermediate.reuses != kNone) {
        // What the kernel reads, in the state in which it does, is what it writes.
        const UOp* read = made_.at(SourceOn(op.node, buffers_[intermediate.reuses].node));
        if (sources[s] == BaseBuffer(read)) {
          sources[s] = after[0] = read;
        } else {
          after.push_back(read);
        }
        if (buffers_[intermediate.reuses].uses.size() > 2) {
          SVOD_ASSIGN_OR_RETURN(const UOp* end, EndOf(intermediate.reuses, index));
          after.push_back(end);
        }
      } else {
        for (size_t block : predecessors[block_of.at(it->second)]) {
          SVOD_ASSIGN_OR_RETURN(const UOp* end, EndOf(blocks_[block].last, kNone));
          after.push_back(end);
        }
      }
      if (after.size() > 1) {
        SVOD_ASSIGN_OR_RETURN(sources[s], context_.Make(Op::kAfter, after));
      }
    }
    if (pairs != pairs_.end()) {
      const Function& kernel = merged_.at({SinkOf(op.node), pairs->second});
      absl::flat_hash_set<size_t> gone;
      for (auto [in, out] : pairs->second) gone.insert(in + 1);
      std::vector<const UOp*> kept = {kernel.root};
      for (size_t s = 1; s < sources.size(); ++s) {
        if (!gone.contains(s)) kept.push_back(sources[s]);
      }
      sources = std::move(kept);
    }
    SVOD_ASSIGN_OR_RETURN(made_[op.node], MakeLike(op.node, std::move(sources)));
    return absl::OkStatus();
  }

  static const UOp* SourceOn(const UOp* op, const UOp* buffer) {
    return *std::find_if(op->sources().begin(), op->sources().end(),
                         [&](const UOp* source) { return BaseBuffer(source) == buffer; });
  }

  // The functions of the module in their order, each kernel followed by what works in place, and
  // without those that nobody calls any more.
  void CollectFunctions(Function graph) {
    absl::flat_hash_set<const UOp*> was_called, is_called;
    std::vector<const Function*> in_place;
    for (size_t i = 0; i < ops_.ops.size(); ++i) {
      const UOp* node = ops_.ops[i].node;
      if (node->op() != Op::kCall) continue;
      was_called.insert(SinkOf(node));
      auto pairs = pairs_.find(i);
      if (pairs == pairs_.end()) {
        is_called.insert(SinkOf(node));
        continue;
      }
      const Function& kernel = merged_.at({SinkOf(node), pairs->second});
      if (is_called.insert(kernel.root).second) {
        by_origin_[SinkOf(node)].push_back(&kernel);
      }
    }
    plan_.module.context = module_.context;
    absl::flat_hash_set<const UOp*> listed;
    for (const Function& function : module_.functions) {
      if (function.root == graph_.root) {
        plan_.module.functions.push_back(graph);
        continue;
      }
      bool is_kept = is_called.contains(function.root) || !was_called.contains(function.root);
      if (is_kept) plan_.module.functions.push_back(function);
      for (const Function* kernel : by_origin_[function.root]) {
        plan_.module.functions.push_back(*kernel);
      }
    }
  }

  void Report() {
    for (const Intermediate& buffer : buffers_) {
      BufferPlacement placement{.buffer = buffer.node, .bytes = buffer.bytes};
      placement.first_level = buffer.first_level;
      placement.last_level = buffer.last_level;
      plan_.sum_bytes += buffer.bytes;
      if (!buffer.is_placed) plan_.own_bytes += buffer.bytes;
      if (buffer.reuses != kNone) placement.reuses = buffers_[buffer.reuses].node;
      if (buffer.is_placed) {
        placement.offset = made_.at(buffer.node)->arg<ViewArgument>().byte_offset;
      }
      plan_.buffers.push_back(placement);
    }
  }

  const Module& module_;
  const Function& graph_;
  Context& context_;
  MemoryPlan plan_;
  GraphOps ops_;
  std::vector<int> levels_;            // by op
  std::vector<Intermediate> buffers_;  // in the order of their first uses
  absl::flat_hash_map<const UOp*, size_t> number_of_;
  std::vector<Block> blocks_;
  std::map<size_t, Pairs> pairs_;  // by op
  absl::flat_hash_map<const UOp*, std::unique_ptr<KernelAccesses>> accesses_;
  absl::flat_hash_map<const UOp*, const Function*> function_of_;
  absl::flat_hash_set<std::string> names_;
  absl::flat_hash_map<std::pair<const UOp*, Pairs>, Function> merged_;
  absl::flat_hash_map<const UOp*, std::vector<const Function*>> by_origin_;
  absl::flat_hash_map<const UOp*, const UOp*> made_;
  absl::flat_hash_map<size_t, const UOp*> ends_;
  absl::flat_hash_map<const UOp*, NodeNote> new_notes_;
};

}  // namespace

absl::StatusOr<MemoryPlan> PlanMemory(const Module& module, absl::string_view graph,
                                      MemoryMode mode) {
  const Function* function = module.Find(graph);
  if (function == nullptr || function->is_kernel()) {
    return absl::InvalidArgumentError(absl::StrCat("memory: @", graph, ", got ",
                                                   function == nullptr ? "no function" : "a kernel",
                                                   ", expected a graph"));
  }
  return MemoryPlanner(module, *function).Run(mode);
}

}  // namespace svod
