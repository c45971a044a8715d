#include "plan/schedule.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/status_macros.h"
#include "ir/verify.h"
#include "plan/graph_order.h"
#include "plan/schedule_emitter.h"
#include "plan/scheduler.h"
#include "plan/split_reductions.h"
#include "plan/winograd.h"

namespace svod {

const char* ToString(Place place) {
  constexpr const char* kNames[] = {"inlined", "staged", "materialised"};
  return kNames[static_cast<int>(place)];
}

bool IsTensorGraph(const UOp* sink) {
  if (sink->op() != Op::kSink || sink->arg<FunctionArgument>().is_kernel) return false;
  for (const UOp* result : sink->sources()) {
    if (BaseBuffer(result) == nullptr && !IsEffect(result->op())) return true;
  }
  for (const UOp* node : GraphToposort(sink)) {
    if (InfoOf(node->op()).op_class == OpClass::kTensor) return true;
  }
  return false;
}

// --- States of buffers ------------------------------------------------------------------------

bool Scheduler::IsState(const UOp* node) const {
  return node->op() != Op::kIndex && BaseBuffer(node) != nullptr;
}

const UOp* Scheduler::StorageOf(const UOp* state) {
  const UOp* buffer = BaseBuffer(state);
  while (buffer->op() == Op::kBufferView) buffer = BaseBuffer(buffer->source(0));
  return buffer;
}

int Scheduler::VersionOf(const UOp* state) {
  auto it = version_of_.find(state);
  return it == version_of_.end() ? 0 : it->second;
}

// The effects on each storage, in the order that verification has made sure of, and how many of
// them each state has seen.
absl::Status Scheduler::NumberStates() {
  absl::flat_hash_map<const UOp*, absl::flat_hash_map<const UOp*, int>> number_of;
  for (const UOp* node : nodes_) {
    std::vector<const UOp*> written;
    if (node->op() == Op::kAssign) written.push_back(StorageOf(AssignedState(node)));
    if (node->op() == Op::kCopy) written.push_back(StorageOf(node->source(0)));
    if (node->op() == Op::kCall) {
      SVOD_ASSIGN_OR_RETURN(std::vector<const UOp*> params, ParamsOf(node->source(0)));
      for (size_t i = 0; i < params.size(); ++i) {
        if (params[i]->arg<ParamArgument>().access == Access::kIn) continue;
        written.push_back(StorageOf(node->source(static_cast<int>(i) + 1)));
      }
    }
    if (node->op() == Op::kCustomFunction) {
      for (const UOp* source : node->sources()) {
        if (IsState(source)) written.push_back(StorageOf(source));
      }
    }
    for (const UOp* storage : written) {
      std::vector<const UOp*>& effects = effects_on_[storage];
      if (!effects.empty() && effects.back() == node) continue;
      effects.push_back(node);
      number_of[storage][node] = static_cast<int>(effects.size());
    }
    if (!IsState(node) || node->num_sources() == 0) continue;
    if (node->op() != Op::kAfter && node->op() != Op::kBufferView) continue;
    int version = VersionOf(node->source(0));
    if (node->op() == Op::kAfter) {
      const absl::flat_hash_map<const UOp*, int>& numbers = number_of[StorageOf(node)];
      for (const UOp* effect : node->sources().subspan(1)) {
        auto it = numbers.find(effect);
        if (it != numbers.end()) version = std::max(version, it->second);
      }
    }
    version_of_[node] = version;
  }
  return absl::OkStatus();
}

// What has to be in memory for a result: reshapes of it are views.
const UOp* Scheduler::ResultValue(const UOp* result) const {
  while (result->op() == Op::kReshape) result = result->source(0);
  return result;
}

// --- The pass ---------------------------------------------------------------------------------

Scheduler::Scheduler(const Function& graph, std::shared_ptr<Context> context,
                     const ScheduleOptions& options, ScheduleDemands& demands)
    : graph_(graph),
      context_(std::move(context)),
      options_(options),
      demands_(demands),
      shapes_(*context_),
      dims_(shapes_.dims()),
      map_(shapes_, *context_) {}

absl::Status Scheduler::Run(Schedule* schedule) {
  nodes_ = GraphToposort(graph_.root);
  for (const UOp* node : nodes_) {
    if (const auto* buffer = std::get_if<BufferArgument>(&node->argument())) {
      next_buffer_id_ = std::max(next_buffer_id_, buffer->id + 1);
    }
  }
  SVOD_RETURN_IF_ERROR(NumberStates());
  auto is_tensor = [&](const UOp* node) {
    return InfoOf(node->op()).op_class == OpClass::kTensor || IsState(node) || IsConst(node) ||
           node->op() == Op::kDefineVar || IsElementwise(node->op());
  };
  for (const UOp* node : nodes_) {
    if (!is_tensor(node)) continue;
    const UOp* culprit = nullptr;
    absl::StatusOr<ShapeSpan> shape = shapes_.Of(node, &culprit);
    if (!shape.ok()) {
      return absl::Status(
          shape.status().code(),
          absl::StrCat("schedule: ", graph_.Describe(culprit), ": ", shape.status().message()));
    }
    if (node->op() != Op::kAssign) SVOD_RETURN_IF_ERROR(Describe(node));
  }
  for (const UOp* result : graph_.root->sources()) {
    const UOp* value = ResultValue(result);
    if (IsEffect(value->op()) || (IsState(value) && !demands_.snapshots.contains(value))) continue;
    if (!is_tensor(value)) {
      return absl::InvalidArgumentError(absl::StrCat("schedule: ", graph_.Describe(result),
                                                     ": result, got ", InfoOf(value->op()).text,
                                                     ", expected a tensor"));
    }
    values_[value].is_forced = true;
    values_[value].force_reason = "the graph returns it";
  }
  for (size_t i = nodes_.size(); i-- > 0;) {
    if (nodes_[i]->op() == Op::kAssign) {
      SVOD_RETURN_IF_ERROR(AddAssign(nodes_[i]));
    } else if (is_tensor(nodes_[i])) {
      SVOD_RETURN_IF_ERROR(Settle(nodes_[i]));
    }
  }
  int demands = demands_.size();
  for (size_t i = 0; i < kernels_.size(); ++i) {
    SVOD_RETURN_IF_ERROR(BuildKernel(static_cast<int>(i)));
  }
  if (demands_.size() > demands) return absl::OkStatus();
  SVOD_RETURN_IF_ERROR(ShareKernels());
  SVOD_RETURN_IF_ERROR(ScheduleEmitter(*this).Run(schedule));
  if (demands_.size() > demands) return absl::OkStatus();
  std::reverse(places_.begin(), places_.end());
  std::reverse(note_kernels_.begin(), note_kernels_.end());
  for (size_t i = 0; i < places_.size(); ++i) {
    int number = note_kernels_[i] >= 0 ? note_kernels_[i] : KernelsOf(places_[i].value)[0];
    const Kernel& kernel = kernels_[static_cast<size_t>(number)];
    places_[i].kernel =
        kernel.is_copy ? "copy" : std::string(kernel.sink->arg<FunctionArgument>().name);
  }
  schedule->places = std::move(places_);
  return absl::OkStatus();
}

namespace {

// A graph in a context of its own, ready for scheduling, and where its nodes came from.
struct Imported {
  Function graph;
  absl::flat_hash_map<const UOp*, const UOp*> origin;
};

// Binds become the constants that they fix, except those that calls take; results that are
// constants get memory of their own, since constants are shared.
absl::StatusOr<Imported> Import(const Function& graph, Context& context) {
  Imported imported;
  imported.graph.file = graph.file;
  absl::flat_hash_map<const UOp*, const UOp*> copies;
  for (const UOp* node : GraphToposort(graph.root)) {
    std::vector<const UOp*> sources;
    for (const UOp* source : node->sources()) {
      if (source->op() == Op::kSink) {
        sources.push_back(context.Import(source));
      } else if (source->op() == Op::kBind && node->op() != Op::kCall) {
        sources.push_back(copies.at(source->source(1)));
      } else {
        sources.push_back(copies.at(source));
      }
    }
    if (node == graph.root) {
      for (const UOp*& source : sources) {
        const UOp* value = source;
        while (value->op() == Op::kReshape) value = value->source(0);
        bool is_shared = IsConst(value) || value->op() == Op::kDefineVar;
        if (!is_shared) continue;
        SVOD_ASSIGN_OR_RETURN(source, context.Make(Op::kContiguous, {source}));
      }
    }
    SVOD_ASSIGN_OR_RETURN(const UOp* copy,
                          context.Make(node->op(), node->dtype(), sources, node->argument()));
    copies[node] = copy;
    imported.origin.try_emplace(copy, node);
    auto note = graph.notes.find(node);
    if (note != graph.notes.end()) imported.graph.notes.try_emplace(copy, note->second);
  }
  imported.graph.root = copies.at(graph.root);
  return imported;
}

}  // namespace

absl::StatusOr<Schedule> ScheduleGraph(const Function& graph, const ScheduleOptions& options) {
  SVOD_RETURN_IF_ERROR(Verify(graph));
  auto context = std::make_shared<Context>();
  SVOD_ASSIGN_OR_RETURN(Imported imported, Import(graph, *context));
  if (options.winograd_error > 0) {
    SVOD_RETURN_IF_ERROR(
        RewriteConvolutions(&imported.graph, context, options.winograd_error).status());
  }
  SVOD_RETURN_IF_ERROR(SplitReductions(&imported.graph, *context));
  ScheduleDemands demands;
  // Each round adds demands, of which there are no more than nodes; two rounds are the rule.
  constexpr int kMaxRounds = 64;
  for (int round = 0; round < kMaxRounds; ++round) {
    Schedule schedule;
    int before = demands.size();
    SVOD_RETURN_IF_ERROR(Scheduler(imported.graph, context, options, demands).Run(&schedule));
    if (demands.size() > before) continue;
    for (PlaceNote& note : schedule.places) {
      auto origin = imported.origin.find(note.value);
      if (origin != imported.origin.end()) note.value = origin->second;
    }
    return schedule;
  }
  return absl::InternalError(absl::StrCat("schedule: ", graph.Describe(graph.root),
                                          ": no order of its updates after ", kMaxRounds,
                                          " rounds"));
}

}  // namespace svod
