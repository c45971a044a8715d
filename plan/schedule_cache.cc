#include "plan/schedule_cache.h"

#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <utility>

#include "ir/status_macros.h"

namespace svod {

int64_t ScheduledGraph::size_bytes() const {
  size_t bytes = sizeof(*this) + source.context->size_bytes() + memory.module.context->size_bytes();
  // Notes and functions are about as large as the nodes that they are about.
  for (const Module* module : {&source, &schedule.module, &memory.module}) {
    for (const Function& function : module->functions) {
      bytes += sizeof(Function) + function.notes.capacity() * (sizeof(NodeNote) + sizeof(void*));
    }
  }
  for (const PlaceNote& place : schedule.places) {
    bytes += sizeof(place) + place.kernel.capacity() + place.reason.capacity();
  }
  bytes += memory.buffers.capacity() * sizeof(BufferPlacement);
  return static_cast<int64_t>(bytes);
}

absl::StatusOr<ScheduledGraphPtr> ScheduleAndPlan(const Function& graph,
                                                  const ScheduleRequest& request) {
  auto start = std::chrono::steady_clock::now();
  auto result = std::make_shared<ScheduledGraph>();
  result->request = request;
  result->source.context = std::make_shared<Context>();
  Function copy{result->source.context->Import(graph.root), {}, graph.file};
  if (!graph.notes.empty()) {
    // Both orders follow sources alone, so they name the same nodes.
    std::vector<const UOp*> from = Toposort(graph.root), to = Toposort(copy.root);
    for (size_t i = 0; i < from.size(); ++i) {
      auto note = graph.notes.find(from[i]);
      if (note != graph.notes.end()) copy.notes[to[i]] = note->second;
    }
  }
  result->source.functions.push_back(std::move(copy));
  SVOD_ASSIGN_OR_RETURN(result->schedule, ScheduleGraph(result->graph(), request.schedule));
  SVOD_ASSIGN_OR_RETURN(
      result->memory, PlanMemory(result->schedule.module, result->graph().name(), request.memory));
  result->schedule_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return result;
}

bool IsSameProgram(const UOp* a, const UOp* b) {
  if (a == b) return true;
  if (a->hash() != b->hash()) return false;
  std::vector<const UOp*> left = Toposort(a), right = Toposort(b);
  if (left.size() != right.size()) return false;
  absl::flat_hash_map<const UOp*, const UOp*> twin;
  twin.reserve(left.size());
  for (size_t i = 0; i < left.size(); ++i) {
    const UOp *x = left[i], *y = right[i];
    if (x->op() != y->op() || x->dtype() != y->dtype() || x->num_sources() != y->num_sources() ||
        x->argument() != y->argument()) {
      return false;
    }
    for (int s = 0; s < x->num_sources(); ++s) {
      if (twin.at(x->source(s)) != y->source(s)) return false;
    }
    twin[x] = y;
  }
  return true;
}

namespace {

// A graph that is there, or on its way.
struct Entry {
  // Who makes it keeps the graph alive meanwhile.
  const UOp* root;
  ScheduleRequest request;
  bool is_done = false;
  absl::StatusOr<ScheduledGraphPtr> result = absl::UnknownError("");
  int64_t size_bytes = 0;
  absl::flat_hash_map<std::string, ScheduleCache::Kernels> kernels;  // by compiler
  bool is_listed = false;
  std::list<std::shared_ptr<Entry>>::iterator place;  // in State::used
};

}  // namespace

struct ScheduleCache::State {
  using Bucket = std::vector<std::shared_ptr<Entry>>;

  int64_t capacity_bytes;
  mutable std::mutex mutex;
  std::condition_variable done;
  absl::flat_hash_map<Hash128, Bucket> table;
  std::list<std::shared_ptr<Entry>> used;  // the last one was asked for the longest ago
  ScheduleCacheStats stats;

  std::shared_ptr<Entry> Find(const UOp* root, const ScheduleRequest& request) {
    auto bucket = table.find(root->hash());
    if (bucket == table.end()) return nullptr;
    for (const std::shared_ptr<Entry>& entry : bucket->second) {
      if (entry->request == request && IsSameProgram(entry->root, root)) return entry;
    }
    return nullptr;
  }
  void Remove(const std::shared_ptr<Entry>& entry) {
    auto bucket = table.find(entry->root->hash());
    if (bucket == table.end()) return;
    std::erase(bucket->second, entry);
    if (bucket->second.empty()) table.erase(bucket);
    if (!entry->is_listed) return;
    used.erase(entry->place);
    entry->is_listed = false;
    --stats.graphs;
    stats.size_bytes -= entry->size_bytes;
  }
  void EvictIfOver() {
    while (stats.size_bytes > capacity_bytes && !used.empty()) {
      std::shared_ptr<Entry> last = used.back();
      Remove(last);
      ++stats.evictions;
    }
  }
};

ScheduleCache::ScheduleCache(int64_t capacity_bytes) : state_(std::make_unique<State>()) {
  state_->capacity_bytes = capacity_bytes;
}
ScheduleCache::~ScheduleCache() = default;

const std::shared_ptr<ScheduleCache>& ScheduleCache::Default() {
  static const auto* cache = new std::shared_ptr<ScheduleCache>(std::make_shared<ScheduleCache>());
  return *cache;
}

absl::StatusOr<ScheduledGraphPtr> ScheduleCache::GetOrSchedule(const Function& graph,
                                                               const ScheduleRequest& request,
                                                               bool* is_hit) {
  State& state = *state_;
  if (is_hit != nullptr) *is_hit = false;
  auto entry = std::make_shared<Entry>();
  {
    std::unique_lock<std::mutex> lock(state.mutex);
    std::shared_ptr<Entry> found = state.Find(graph.root, request);
    if (found != nullptr && found->is_done) {
      ++state.stats.hits;
      if (is_hit != nullptr) *is_hit = true;
      state.used.splice(state.used.begin(), state.used, found->place);
      return found->result;
    }
    ++state.stats.misses;
    if (found != nullptr) {
      ++state.stats.waits;
      state.done.wait(lock, [&] { return found->is_done; });
      return found->result;
    }
    entry->root = graph.root;
    entry->request = request;
    state.table[graph.root->hash()].push_back(entry);
  }
  absl::StatusOr<ScheduledGraphPtr> result = ScheduleAndPlan(graph, request);
  {
    std::unique_lock<std::mutex> lock(state.mutex);
    entry->result = result;
    entry->is_done = true;
    if (result.ok()) {
      // The caller's nodes may go from now on.
      entry->root = (*result)->graph().root;
      entry->size_bytes = (*result)->size_bytes();
      state.used.push_front(entry);
      entry->place = state.used.begin();
      entry->is_listed = true;
      ++state.stats.graphs;
      state.stats.size_bytes += entry->size_bytes;
      state.stats.schedule_ms += (*result)->schedule_ms;
      state.EvictIfOver();
    } else {
      ++state.stats.failures;
      state.Remove(entry);
    }
  }
  state.done.notify_all();
  return result;
}

ScheduleCache::Kernels ScheduleCache::FindKernels(const ScheduledGraphPtr& graph,
                                                  const std::string& compiler) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  std::shared_ptr<Entry> entry = state_->Find(graph->graph().root, graph->request);
  if (entry == nullptr || !entry->is_done) return {};
  auto it = entry->kernels.find(compiler);
  return it == entry->kernels.end() ? Kernels() : it->second;
}

void ScheduleCache::AddKernels(const ScheduledGraphPtr& graph, const std::string& compiler,
                               Kernels kernels) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  std::shared_ptr<Entry> entry = state_->Find(graph->graph().root, graph->request);
  // It may have been dropped meanwhile, and be on its way again.
  if (entry == nullptr || !entry->is_done) return;
  auto [it, is_new] = entry->kernels.try_emplace(compiler);
  if (!is_new) return;
  for (const std::shared_ptr<const CompiledKernel>& kernel : kernels) {
    entry->size_bytes += kernel->code_bytes;
    state_->stats.size_bytes += kernel->code_bytes;
  }
  it->second = std::move(kernels);
  state_->EvictIfOver();
}

void ScheduleCache::Clear() {
  std::unique_lock<std::mutex> lock(state_->mutex);
  while (!state_->used.empty()) {
    std::shared_ptr<Entry> entry = state_->used.back();
    state_->Remove(entry);
  }
}

ScheduleCacheStats ScheduleCache::stats() const {
  std::unique_lock<std::mutex> lock(state_->mutex);
  return state_->stats;
}

}  // namespace svod
