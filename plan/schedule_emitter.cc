#include "plan/schedule_emitter.h"

#include <algorithm>
#include <queue>

#include "absl/strings/str_cat.h"
#include "ir/status_macros.h"

namespace svod {

absl::Status ScheduleEmitter::Run(Schedule* schedule) {
  int demands = s_.demands_.size();
  SVOD_RETURN_IF_ERROR(CollectItems());
  SVOD_RETURN_IF_ERROR(AddOrder());
  std::vector<int> order;
  SVOD_RETURN_IF_ERROR(Sort(&order));
  if (s_.demands_.size() > demands) return absl::OkStatus();
  for (int item : order) SVOD_RETURN_IF_ERROR(EmitItem(item));
  std::vector<const UOp*> results;
  SVOD_RETURN_IF_ERROR(EmitResults(&results));
  KeepParameters(&results);
  const auto& function = s_.graph_.root->arg<FunctionArgument>();
  graph_.root =
      s_.Make(Op::kSink, DType(), results, FunctionArgument{false, function.name, function.opts});
  SVOD_RETURN_IF_ERROR(s_.build_error_);
  schedule->module.context = s_.context_;
  absl::flat_hash_set<const UOp*> listed;
  auto list = [&](const UOp* sink) {
    if (!listed.insert(sink).second) return;
    Function kernel;
    kernel.root = sink;
    schedule->module.functions.push_back(std::move(kernel));
  };
  for (int item : order) {
    const Item& done = items_[item];
    if (done.kernel >= 0 && !s_.kernels_[done.kernel].is_copy) list(s_.kernels_[done.kernel].sink);
    if (done.effect != nullptr && done.effect->op() == Op::kCall) list(done.effect->source(0));
  }
  schedule->module.functions.push_back(std::move(graph_));
  return absl::OkStatus();
}

// A parameter that no kernel reads (all that would is empty) stays one: the first result comes
// after it.
void ScheduleEmitter::KeepParameters(std::vector<const UOp*>* results) {
  if (results->empty() || BaseBuffer((*results)[0]) == nullptr) return;
  absl::flat_hash_set<const UOp*> kept;
  std::vector<const UOp*> stack = *results;
  while (!stack.empty()) {
    const UOp* node = stack.back();
    stack.pop_back();
    if (node->op() == Op::kSink || !kept.insert(node).second) continue;
    stack.insert(stack.end(), node->sources().begin(), node->sources().end());
  }
  std::vector<const UOp*> after;
  for (const UOp* node : s_.nodes_) {
    if (node->op() == Op::kParam && !kept.contains(node)) after.push_back(node);
  }
  if (after.empty()) return;
  const UOp*& first = (*results)[0];
  if (first->op() == Op::kAfter) {
    after.insert(after.begin(), first->sources().begin(), first->sources().end());
  } else {
    after.insert(after.begin(), first);
  }
  first = s_.Make(Op::kAfter, DType(), after);
}

absl::Status ScheduleEmitter::CollectItems() {
  absl::flat_hash_map<const UOp*, int> place_of;
  for (size_t i = 0; i < s_.nodes_.size(); ++i) place_of[s_.nodes_[i]] = static_cast<int>(i);
  item_of_kernel_.resize(s_.kernels_.size());
  for (size_t i = 0; i < s_.kernels_.size(); ++i) {
    const UOp* root = s_.kernels_[i].root;
    Item item;
    item.kernel = static_cast<int>(i);
    item.place = place_of[root];
    if (root->op() == Op::kAssign) item.effect = root;
    item_of_kernel_[i] = static_cast<int>(items_.size());
    items_.push_back(std::move(item));
  }
  for (const UOp* node : s_.nodes_) {
    bool is_effect =
        node->op() == Op::kCall || node->op() == Op::kCopy || node->op() == Op::kCustomFunction;
    if (!is_effect) continue;
    Item item;
    item.effect = node;
    item.place = place_of[node];
    items_.push_back(std::move(item));
  }
  for (size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].effect != nullptr) item_of_effect_[items_[i].effect] = static_cast<int>(i);
  }
  return absl::OkStatus();
}

bool ScheduleEmitter::IsSnapshot(const UOp* source, int kernel) const {
  return s_.demands_.snapshots.contains(source) &&
         (kernel < 0 || s_.kernels_[kernel].root != source);
}

// Which states of buffers, and which values, an item reads.
void ScheduleEmitter::AddReads(int number) {
  Item& item = items_[number];
  auto read_state = [&](const UOp* state) {
    const UOp* storage = Scheduler::StorageOf(state);
    size_t version = static_cast<size_t>(s_.VersionOf(state));
    std::vector<std::vector<Reader>>& readers = readers_[storage];
    if (readers.size() <= version) readers.resize(version + 1);
    readers[version].push_back({number, state});
    if (version > 0) item.after.push_back(item_of_effect_.at(s_.effects_on_[storage][version - 1]));
  };
  if (item.kernel >= 0) {
    const Scheduler::Kernel& kernel = s_.kernels_[item.kernel];
    for (size_t i = 1; i < kernel.operands.size(); ++i) {
      const UOp* source = kernel.operands[i].source;
      if (s_.IsState(source) && !IsSnapshot(source, item.kernel)) {
        read_state(source);
      } else {
        for (int before : s_.KernelsOf(source)) item.after.push_back(item_of_kernel_[before]);
      }
    }
    return;
  }
  for (const UOp* source : item.effect->sources()) {
    if (s_.IsState(source)) read_state(source);
  }
}

absl::Status ScheduleEmitter::AddOrder() {
  for (size_t i = 0; i < items_.size(); ++i) AddReads(static_cast<int>(i));
  for (auto& [storage, effects] : s_.effects_on_) {
    std::vector<std::vector<Reader>>& readers = readers_[storage];
    for (size_t i = 0; i < effects.size(); ++i) {
      int effect = item_of_effect_.at(effects[i]);
      if (i > 0) items_[effect].after.push_back(item_of_effect_.at(effects[i - 1]));
      if (i >= readers.size()) continue;
      for (const Reader& reader : readers[i]) {
        if (reader.item != effect) items_[effect].after.push_back(reader.item);
      }
    }
  }
  // What is returned is what the buffer holds at the end.
  for (const UOp* result : s_.graph_.root->sources()) {
    const UOp* value = s_.ResultValue(result);
    if (!s_.IsState(value) || s_.demands_.snapshots.contains(value)) continue;
    size_t changes = s_.effects_on_[Scheduler::StorageOf(value)].size();
    if (static_cast<size_t>(s_.VersionOf(value)) < changes) s_.demands_.snapshots.insert(value);
  }
  return absl::OkStatus();
}

absl::Status ScheduleEmitter::Sort(std::vector<int>* order) {
  std::vector<std::vector<int>> next(items_.size());
  std::vector<int> waits(items_.size());
  for (size_t i = 0; i < items_.size(); ++i) {
    std::vector<int>& after = items_[i].after;
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    for (int before : after) next[before].push_back(static_cast<int>(i));
    waits[i] = static_cast<int>(after.size());
  }
  using Entry = std::pair<int, int>;  // place, item
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (waits[i] == 0) ready.push({items_[i].place, static_cast<int>(i)});
  }
  while (!ready.empty()) {
    int item = ready.top().second;
    ready.pop();
    order->push_back(item);
    for (int after : next[item]) {
      if (--waits[after] == 0) ready.push({items_[after].place, after});
    }
  }
  if (order->size() == items_.size()) return absl::OkStatus();
  std::vector<int> waiting;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (waits[i] > 0) waiting.push_back(static_cast<int>(i));
  }
  return DemandSnapshots(waiting);
}

// Readers of a state that wait, in a circle, for the effect that replaces it: the state is copied.
absl::Status ScheduleEmitter::DemandSnapshots(absl::Span<const int> waiting) {
  absl::flat_hash_set<int> stuck(waiting.begin(), waiting.end());
  const UOp* culprit = items_[waiting[0]].effect;
  bool found = false;
  for (auto& [storage, effects] : s_.effects_on_) {
    std::vector<std::vector<Reader>>& readers = readers_[storage];
    for (size_t version = 0; version < std::min(readers.size(), effects.size()); ++version) {
      if (!stuck.contains(item_of_effect_.at(effects[version]))) continue;
      for (const Reader& reader : readers[version]) {
        if (!stuck.contains(reader.item)) continue;
        if (items_[reader.item].kernel < 0) {
          culprit = items_[reader.item].effect;
          continue;
        }
        s_.demands_.snapshots.insert(reader.state);
        found = true;
      }
    }
  }
  if (found) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "schedule: ", culprit == nullptr ? "graph" : s_.graph_.Describe(culprit),
      ": order, got a cycle through updates in place, expected reads of a state before what "
      "replaces it"));
}

// --- Writing ----------------------------------------------------------------------------------

std::string ScheduleEmitter::NameOf(const UOp* node) const {
  auto note = s_.graph_.notes.find(node);
  return note == s_.graph_.notes.end() ? "" : note->second.name;
}

// A PARAM, BUFFER or view of one, without the states that it was taken in.
const UOp* ScheduleEmitter::BufferNode(const UOp* state) {
  std::vector<const UOp*> views;
  const UOp* buffer = BaseBuffer(state);
  while (buffer->op() == Op::kBufferView) {
    views.push_back(buffer);
    buffer = BaseBuffer(buffer->source(0));
  }
  for (size_t i = views.size(); i-- > 0;) {
    std::vector<const UOp*> sources(views[i]->sources().begin(), views[i]->sources().end());
    sources[0] = buffer;
    buffer = s_.Make(Op::kBufferView, views[i]->dtype(), sources, views[i]->argument());
  }
  auto note = s_.graph_.notes.find(BaseBuffer(state));
  if (note != s_.graph_.notes.end()) graph_.notes.try_emplace(buffer, note->second);
  return buffer;
}

// A buffer after the effect that made the state.
const UOp* ScheduleEmitter::StateOf(const UOp* state) {
  const UOp* buffer = BufferNode(state);
  int version = s_.VersionOf(state);
  if (version == 0) return buffer;
  const UOp* effect = s_.effects_on_[Scheduler::StorageOf(state)][version - 1];
  return s_.Make(Op::kAfter, DType(), {buffer, items_[item_of_effect_.at(effect)].call});
}

const UOp* ScheduleEmitter::ReadOf(const UOp* source, int kernel) {
  if (s_.IsState(source) && !IsSnapshot(source, kernel)) return StateOf(source);
  std::vector<const UOp*> sources = {ValueBuffer(source)};
  for (int filler : s_.KernelsOf(source)) sources.push_back(items_[item_of_kernel_[filler]].call);
  return s_.Make(Op::kAfter, DType(), sources);
}

// The buffer of a value; a part's is a view of the whole's.
const UOp* ScheduleEmitter::ValueBuffer(const UOp* value) {
  auto known = buffer_of_.find(value);
  if (known != buffer_of_.end()) return known->second;
  absl::StatusOr<ShapeSpan> shape = s_.shapes_.Of(value);
  std::vector<const UOp*> sources;
  if (shape.ok()) sources.assign(shape->begin(), shape->end());
  int64_t byte_offset = 0;
  const UOp* whole = value;
  for (auto part = s_.part_of_.find(whole); part != s_.part_of_.end();
       part = s_.part_of_.find(whole)) {
    byte_offset += part->second.byte_offset;
    whole = part->second.whole;
  }
  const UOp* buffer = nullptr;
  if (whole != value) {
    sources.insert(sources.begin(), ValueBuffer(whole));
    buffer = s_.Make(Op::kBufferView, value->dtype(), sources, ViewArgument{byte_offset});
  } else {
    buffer = s_.Make(Op::kBuffer, value->dtype(), sources, BufferArgument{s_.next_buffer_id_++});
  }
  std::string name = NameOf(value);
  if (!name.empty()) graph_.notes[buffer] = {name, 0, 0};
  buffer_of_[value] = buffer;
  return buffer;
}

// A buffer after the effect before this one and after everything that reads what it replaces.
const UOp* ScheduleEmitter::WriteOf(const UOp* state, int item) {
  const UOp* buffer = BufferNode(state);
  const UOp* storage = Scheduler::StorageOf(state);
  const std::vector<const UOp*>& effects = s_.effects_on_[storage];
  size_t number = static_cast<size_t>(
      std::find(effects.begin(), effects.end(), items_[item].effect) - effects.begin());
  std::vector<const UOp*> sources = {buffer};
  auto add = [&](int before) {
    if (before != item) sources.push_back(items_[before].call);
  };
  if (number > 0) add(item_of_effect_.at(effects[number - 1]));
  std::vector<std::vector<Reader>>& readers = readers_[storage];
  if (number < readers.size()) {
    for (const Reader& reader : readers[number]) add(reader.item);
  }
  std::vector<const UOp*> unique;
  for (const UOp* source : sources) {
    if (std::find(unique.begin(), unique.end(), source) == unique.end()) unique.push_back(source);
  }
  return unique.size() == 1 ? buffer : s_.Make(Op::kAfter, DType(), unique);
}

absl::Status ScheduleEmitter::EmitItem(int number) {
  Item& item = items_[number];
  if (item.kernel < 0) {
    std::vector<const UOp*> sources;
    for (const UOp* source : item.effect->sources()) {
      if (!s_.IsState(source)) {
        sources.push_back(source);
        continue;
      }
      const std::vector<const UOp*>& effects = s_.effects_on_[Scheduler::StorageOf(source)];
      bool writes = std::find(effects.begin(), effects.end(), item.effect) != effects.end();
      sources.push_back(writes ? WriteOf(source, number) : StateOf(source));
    }
    item.call = s_.Make(item.effect->op(), item.effect->dtype(), sources, item.effect->argument());
    return absl::OkStatus();
  }
  const Scheduler::Kernel& kernel = s_.kernels_[item.kernel];
  std::vector<const UOp*> sources = {kernel.sink};
  if (item.effect != nullptr) {
    sources.push_back(WriteOf(AssignedState(kernel.root), number));
  } else {
    sources.push_back(ValueBuffer(kernel.root));
  }
  for (size_t i = 1; i < kernel.operands.size(); ++i) {
    sources.push_back(ReadOf(kernel.operands[i].source, item.kernel));
  }
  sources.insert(sources.end(), kernel.binds.begin(), kernel.binds.end());
  if (kernel.is_copy) sources.erase(sources.begin());
  item.call = s_.Make(kernel.is_copy ? Op::kCopy : Op::kCall, DType(), sources);
  return absl::OkStatus();
}

absl::StatusOr<const UOp*> ScheduleEmitter::EmitResult(const UOp* result) {
  const UOp* value = s_.ResultValue(result);
  bool is_state = s_.IsState(value) && !IsSnapshot(value, -1);
  if (is_state && value == result) return StateOf(value);
  const UOp* state = is_state ? StateOf(value) : ReadOf(value, -1);
  if (value == result) return state;
  // A reshape of what is contiguous: the same bytes under other dimensions.
  SVOD_ASSIGN_OR_RETURN(ShapeSpan shape, s_.shapes_.Of(result));
  std::vector<const UOp*> sources = {is_state ? BufferNode(value) : ValueBuffer(value)};
  sources.insert(sources.end(), shape.begin(), shape.end());
  const UOp* view = s_.Make(Op::kBufferView, result->dtype(), sources, ViewArgument{0});
  std::string name = NameOf(result);
  if (!name.empty()) graph_.notes[view] = {name, 0, 0};
  if (state->op() != Op::kAfter) return view;
  std::vector<const UOp*> after(state->sources().begin(), state->sources().end());
  after[0] = view;
  return s_.Make(Op::kAfter, DType(), after);
}

absl::Status ScheduleEmitter::EmitResults(std::vector<const UOp*>* results) {
  for (const UOp* result : s_.graph_.root->sources()) {
    if (!s_.IsState(result) && item_of_effect_.contains(result)) {
      results->push_back(items_[item_of_effect_.at(result)].call);
      continue;
    }
    SVOD_ASSIGN_OR_RETURN(const UOp* emitted, EmitResult(result));
    results->push_back(emitted);
  }
  return absl::OkStatus();
}

}  // namespace svod
