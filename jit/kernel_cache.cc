#include "jit/kernel_cache.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ir/debug_options.h"
#include "ir/passes/apply_actions.h"
#include "ir/pipeline.h"
#include "ir/program.h"
#include "ir/status_macros.h"
#include "ir/text.h"
#include "jit/choose_actions.h"
#include "jit/kernel_table.h"
#include "jit/source_note.h"

namespace svod {
namespace {

absl::StatusOr<const UOp*> RunPipeline(const UOp* sink, Context& context,
                                       const CompileOptions& options) {
  SVOD_RETURN_IF_ERROR(EnvironmentDebugOptions().status());
  DebugOptions debug = *EnvironmentDebugOptions();
  if (!options.verify) debug.verify = VerifyLevel::kOff;
  if (!options.dump_directory.empty()) debug.dump_directory = options.dump_directory;
  PipelineOptions pipeline;
  pipeline.contract_mulacc = options.contract_mulacc;
  pipeline.debug = &debug;
  PassContext pass(context);
  SVOD_ASSIGN_OR_RETURN(const UOp* shaped, OptimizeLoops(sink, options.target, pass));
  return OptimizeKernel(shaped, pass, pipeline);
}

std::shared_ptr<CompiledKernel> MakeKernel(KernelInterface interface, const ObjectCode& object,
                                           const LinkedCode& linked, const KernelKey& key) {
  auto kernel = std::make_shared<CompiledKernel>();
  kernel->name = object.entry;
  kernel->function = linked.function;
  kernel->code = linked.owner;
  kernel->code_bytes = linked.size_bytes;
  kernel->scratch_bytes = object.scratch_bytes;
  kernel->variable_names = std::move(interface.variable_names);
  kernel->global_size[0] = interface.global_size;
  kernel->context = std::move(interface.context);
  kernel->source = KernelText(key);
  return kernel;
}

// Dumps and checks between the passes are only made where the passes run. Without a build id
// another build's passes cannot be told from this one's.
bool MayKnowSources(const KernelCacheOptions& options) {
  const absl::StatusOr<DebugOptions>& debug = EnvironmentDebugOptions();
  return !options.disk_directory.empty() && options.optimize == nullptr && debug.ok() &&
         debug->dump_directory.empty() && debug->verify != VerifyLevel::kEach && !BuildId().empty();
}

double MillisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace

struct KernelCache::State {
  KernelCacheOptions options;
  std::shared_ptr<OrcSession> session;
  std::unique_ptr<DiskCache> disk;
  bool knows_sources = false;  // the disk has notes of what source kernels became

  KernelTable sources;  // by MakeSourceKey: saves optimising again
  KernelTable kernels;  // by MakeKey
  // Counts kernels made. As a clock it tells which kernels were not asked for since when, and,
  // other than one that ticks with each hit, is not written by hits.
  std::atomic<int64_t> time = 0;
  std::atomic<int64_t> code_bytes = 0, num_kernels = 0;
  std::atomic<int64_t> misses = 0, waits = 0, compiles = 0, failures = 0, evictions = 0;
  std::atomic<int64_t> optimize_ns{0}, compile_ns = 0;
  std::mutex found_mutex;
  absl::flat_hash_map<KernelKey, FoundActions> found;  // by MakeSourceKey
  std::mutex eviction_mutex;
  std::atomic<int64_t> evict_above_bytes = 0;

  absl::StatusOr<KernelTable::Found> MakeFinal(const UOp* final_sink, const KernelKey& key,
                                               const CompileOptions& compile_options);
  absl::StatusOr<KernelTable::Found> GetOrMakeFinal(const UOp* final_sink,
                                                    const CompileOptions& compile_options);
  absl::StatusOr<std::shared_ptr<CompiledKernel>> Compile(const UOp* final_sink,
                                                          const KernelKey& key,
                                                          const CompileOptions& compile_options);
  std::shared_ptr<CompiledKernel> LoadFromDisk(KernelInterface interface, const KernelKey& key);
  KernelTable::Found Keep(std::shared_ptr<CompiledKernel> kernel);
  // The kernel that a source became before, in memory or on the disk; nothing if that is unknown.
  std::optional<KernelTable::Found> FindBySource(const UOp* sink, const KernelKey& source_key);
  void NoteSource(const UOp* sink, const KernelKey& source_key, const UOp* final_sink,
                  const CompileOptions& compile_options);
  std::optional<FoundActions> FindActions(const KernelKey& source_key,
                                          const CompileOptions& compile_options);
  // Verified and optimised, with actions that were found for it or else with chosen ones. `sink` is
  // of `context`.
  absl::StatusOr<const UOp*> Optimize(const UOp* sink, const KernelKey& source_key,
                                      Context& context, const CompileOptions& compile_options);
  void Count(KernelTable::Outcome outcome);
  void Forget(const CompiledKernel& kernel);
  void EvictIfOver();
};

void KernelCache::State::Count(KernelTable::Outcome outcome) {
  if (outcome == KernelTable::Outcome::kHit) return;  // the table counts those
  misses.fetch_add(1, std::memory_order_relaxed);
  if (outcome == KernelTable::Outcome::kWaited) waits.fetch_add(1, std::memory_order_relaxed);
}

std::shared_ptr<CompiledKernel> KernelCache::State::LoadFromDisk(KernelInterface interface,
                                                                 const KernelKey& key) {
  if (disk == nullptr) return nullptr;
  std::optional<ObjectCode> object = disk->Load(*key.text);
  if (!object.has_value()) return nullptr;
  absl::StatusOr<LinkedCode> linked = session->Link(object->bytes, object->entry);
  // Whatever is wrong with it, compiling it again says so if it matters.
  if (!linked.ok()) return nullptr;
  return MakeKernel(std::move(interface), *object, *linked, key);
}

absl::StatusOr<std::shared_ptr<CompiledKernel>> KernelCache::State::Compile(
    const UOp* final_sink, const KernelKey& key, const CompileOptions& compile_options) {
  auto start = std::chrono::steady_clock::now();
  SVOD_ASSIGN_OR_RETURN(ObjectCode object, options.compile(final_sink, compile_options));
  SVOD_ASSIGN_OR_RETURN(LinkedCode linked, session->Link(object.bytes, object.entry));
  std::shared_ptr<CompiledKernel> kernel = MakeKernel(InterfaceOf(final_sink), object, linked, key);
  kernel->compile_ms = MillisecondsSince(start);
  if (disk != nullptr) disk->Store(*key.text, object);
  return kernel;
}

absl::StatusOr<KernelTable::Found> KernelCache::State::MakeFinal(
    const UOp* final_sink, const KernelKey& key, const CompileOptions& compile_options) {
  std::shared_ptr<CompiledKernel> kernel = LoadFromDisk(InterfaceOf(final_sink), key);
  if (kernel == nullptr) {
    auto compiled = Compile(final_sink, key, compile_options);
    if (!compiled.ok()) {
      failures.fetch_add(1, std::memory_order_relaxed);
      return compiled.status();
    }
    kernel = *std::move(compiled);
    compiles.fetch_add(1, std::memory_order_relaxed);
    compile_ns.fetch_add(static_cast<int64_t>(kernel->compile_ms * 1e6), std::memory_order_relaxed);
  }
  return Keep(std::move(kernel));
}

KernelTable::Found KernelCache::State::Keep(std::shared_ptr<CompiledKernel> kernel) {
  code_bytes.fetch_add(kernel->code_bytes);
  num_kernels.fetch_add(1);
  auto entry = std::make_shared<KernelEntry>(kernel);
  entry->Take(time.fetch_add(1) + 1);
  return {std::move(entry), std::move(kernel)};
}

std::optional<KernelTable::Found> KernelCache::State::FindBySource(const UOp* sink,
                                                                   const KernelKey& source_key) {
  if (!knows_sources) return std::nullopt;
  std::optional<std::string> text = disk->LoadNote(*source_key.text);
  if (!text.has_value()) return std::nullopt;
  std::optional<SourceNote> note = DecodeSourceNote(*text, sink);
  if (!note.has_value()) return std::nullopt;
  KernelTable::Outcome outcome;
  auto found = kernels.GetOrMake(note->key, time.load(std::memory_order_relaxed), &outcome,
                                 [&]() -> absl::StatusOr<KernelTable::Found> {
                                   std::shared_ptr<CompiledKernel> kernel =
                                       LoadFromDisk(note->interface, note->key);
                                   if (kernel == nullptr) return absl::NotFoundError("no object");
                                   return Keep(std::move(kernel));
                                 });
  if (!found.ok()) return std::nullopt;
  Count(outcome);
  if (outcome == KernelTable::Outcome::kMade) EvictIfOver();
  return *std::move(found);
}

void KernelCache::State::NoteSource(const UOp* sink, const KernelKey& source_key,
                                    const UOp* final_sink, const CompileOptions& compile_options) {
  if (!knows_sources || !compile_options.verify) return;
  absl::StatusOr<KernelKey> key = MakeKey(final_sink, compile_options);
  if (!key.ok()) return;
  std::optional<std::string> note = EncodeSourceNote(sink, final_sink, *key);
  if (note.has_value()) disk->StoreNote(*source_key.text, *note);
}

std::optional<FoundActions> KernelCache::State::FindActions(const KernelKey& source_key,
                                                            const CompileOptions& compile_options) {
  {
    std::lock_guard<std::mutex> lock(found_mutex);
    auto known = found.find(source_key);
    if (known != found.end()) return known->second;
  }
  if (disk == nullptr) return std::nullopt;
  std::optional<std::string> note =
      disk->LoadNote(FoundActionsKey(source_key, compile_options.target));
  return note.has_value() ? DecodeFoundActions(*note) : std::nullopt;
}

absl::StatusOr<const UOp*> KernelCache::State::Optimize(const UOp* sink,
                                                        const KernelKey& source_key,
                                                        Context& context,
                                                        const CompileOptions& compile_options) {
  if (HasOpt(sink, kAutoOpt)) {
    std::optional<FoundActions> better = FindActions(source_key, compile_options);
    if (better.has_value() && better->actions.has_value()) {
      auto done =
          options.optimize(WithActions(sink, *better->actions, context), context, compile_options);
      // A note that does not fit its kernel is worth no more than none.
      if (done.ok()) return done;
    }
  }
  return options.optimize(sink, context, compile_options);
}

absl::StatusOr<KernelTable::Found> KernelCache::State::GetOrMakeFinal(
    const UOp* final_sink, const CompileOptions& compile_options) {
  SVOD_ASSIGN_OR_RETURN(KernelKey key, MakeKey(final_sink, compile_options));
  KernelTable::Outcome outcome;
  auto found = kernels.GetOrMake(key, time.load(std::memory_order_relaxed), &outcome,
                                 [&] { return MakeFinal(final_sink, key, compile_options); });
  Count(outcome);
  if (outcome == KernelTable::Outcome::kMade) EvictIfOver();
  return found;
}

void KernelCache::State::Forget(const CompiledKernel& kernel) {
  code_bytes.fetch_sub(kernel.code_bytes);
  num_kernels.fetch_sub(1);
}

void KernelCache::State::EvictIfOver() {
  if (code_bytes.load() <= evict_above_bytes.load()) return;
  std::unique_lock<std::mutex> lock(eviction_mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;  // somebody is at it
  std::vector<std::pair<int64_t, std::shared_ptr<KernelEntry>>> entries;
  for (std::shared_ptr<KernelEntry>& entry : kernels.Entries()) {
    int64_t last_used = entry->last_used();
    entries.emplace_back(last_used, std::move(entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  // A step below the budget, so that the walk over all entries is paid once in many kernels.
  int64_t step_bytes = options.capacity_bytes / 8;
  for (const auto& [last_used, entry] : entries) {
    if (code_bytes.load() <= options.capacity_bytes - step_bytes) break;
    KernelPtr kernel = entry->Remove(/*only_unused=*/true);
    if (kernel == nullptr) continue;
    Forget(*kernel);
    evictions.fetch_add(1, std::memory_order_relaxed);
  }
  sources.RemoveEmpty();
  kernels.RemoveEmpty();
  // When kernels in use fill the budget, the next walk waits until there is a step more of them.
  int64_t left_bytes = code_bytes.load();
  evict_above_bytes.store(left_bytes <= options.capacity_bytes ? options.capacity_bytes
                                                               : left_bytes + step_bytes);
}

KernelCache::KernelCache(std::unique_ptr<State> state) : state_(std::move(state)) {}
KernelCache::~KernelCache() = default;

absl::StatusOr<std::shared_ptr<KernelCache>> KernelCache::Create(KernelCacheOptions options) {
  auto state = std::make_unique<State>();
  SVOD_ASSIGN_OR_RETURN(state->session, OrcSession::Create(options.session));
  if (!options.disk_directory.empty()) {
    state->disk = DiskCache::Open({options.disk_directory, options.disk_limit_bytes});
  }
  state->knows_sources = MayKnowSources(options);
  if (options.optimize == nullptr) options.optimize = RunPipeline;
  if (options.compile == nullptr) options.compile = CompileToObject;
  state->evict_above_bytes = options.capacity_bytes;
  state->options = std::move(options);
  return std::shared_ptr<KernelCache>(new KernelCache(std::move(state)));
}

absl::StatusOr<std::shared_ptr<KernelCache>> KernelCache::Default() {
  // Leaked: kernels may run while static destructors do.
  static const auto* const cache = new absl::StatusOr<std::shared_ptr<KernelCache>>(
      []() -> absl::StatusOr<std::shared_ptr<KernelCache>> {
        SVOD_RETURN_IF_ERROR(EnvironmentDebugOptions().status());
        KernelCacheOptions options;
        options.session.gdb = EnvironmentDebugOptions()->gdb_events;
        options.session.perf = EnvironmentDebugOptions()->perfmap_events;
        return Create(std::move(options));
      }());
  return *cache;
}

namespace {

// A loop that becomes vectors and a tail.
constexpr absl::string_view kWarmUpKernel = R"(
kernel @warm_up(%y: out f32[1000], %x: f32[1000]) opts=[auto] {
  %i = range 1000 loop
    %a = load %x[%i]
    %b = mul %a, 0.5
    %c = cmplt %a, %b
    %d = where %c, %b, %a
    store %y[%i], %d
  end %i
}
)";

// Keys name the target in full.
absl::StatusOr<CompileOptions> WithTarget(const CompileOptions& options) {
  CompileOptions full = options;
  if (full.target.triple.empty()) {
    SVOD_ASSIGN_OR_RETURN(full.target, HostTarget());
  }
  if (!full.target.is_host) {
    return absl::InvalidArgumentError(absl::StrCat("kernel cache: target ", full.target.triple, " ",
                                                   full.target.cpu,
                                                   ", expected one whose code this machine runs"));
  }
  return full;
}

}  // namespace

absl::StatusOr<KernelPtr> KernelCache::GetOrCompile(const UOp* sink,
                                                    const CompileOptions& options) {
  SVOD_ASSIGN_OR_RETURN(CompileOptions full, WithTarget(options));
  KernelTable::Outcome outcome;
  bool is_counted = false;
  const KernelKey key = MakeSourceKey(sink, full);
  auto make = [&]() -> absl::StatusOr<KernelTable::Found> {
    if (std::optional<KernelTable::Found> known = state_->FindBySource(sink, key)) {
      is_counted = true;
      return *std::move(known);
    }
    Context context;  // passes make nodes; the caller's context is only read
    auto start = std::chrono::steady_clock::now();
    absl::StatusOr<const UOp*> final_sink =
        state_->Optimize(context.Import(sink), key, context, full);
    state_->optimize_ns.fetch_add(static_cast<int64_t>(MillisecondsSince(start) * 1e6),
                                  std::memory_order_relaxed);
    if (!final_sink.ok()) return final_sink.status();
    is_counted = true;
    auto made = state_->GetOrMakeFinal(*final_sink, full);
    if (made.ok()) state_->NoteSource(sink, key, *final_sink, full);
    return made;
  };
  auto found =
      state_->sources.GetOrMake(key, state_->time.load(std::memory_order_relaxed), &outcome, make);
  if (outcome == KernelTable::Outcome::kMade && !is_counted) state_->failures.fetch_add(1);
  if (!is_counted) state_->Count(outcome);
  if (!found.ok()) return found.status();
  return std::move(found->kernel);
}

absl::StatusOr<KernelPtr> KernelCache::GetOrCompileFinal(const UOp* final_sink,
                                                         const CompileOptions& options) {
  SVOD_ASSIGN_OR_RETURN(CompileOptions full, WithTarget(options));
  auto found = state_->GetOrMakeFinal(final_sink, full);
  if (!found.ok()) return found.status();
  return std::move(found->kernel);
}

absl::Status KernelCache::Prefer(const UOp* sink, const CompileOptions& options,
                                 const FoundActions& found) {
  SVOD_ASSIGN_OR_RETURN(CompileOptions full, WithTarget(options));
  const KernelKey key = MakeSourceKey(sink, full);
  Context context;
  const UOp* form = context.Import(sink);
  if (found.actions.has_value()) form = WithActions(form, *found.actions, context);
  SVOD_ASSIGN_OR_RETURN(const UOp* final_sink, state_->options.optimize(form, context, full));
  SVOD_RETURN_IF_ERROR(state_->GetOrMakeFinal(final_sink, full).status());
  state_->NoteSource(sink, key, final_sink, full);
  {
    std::lock_guard<std::mutex> lock(state_->found_mutex);
    state_->found[key] = found;
  }
  state_->sources.Forget(key);
  if (state_->disk != nullptr) {
    state_->disk->StoreNote(FoundActionsKey(key, full.target), EncodeFoundActions(found));
  }
  return absl::OkStatus();
}

std::optional<FoundActions> KernelCache::Preferred(const UOp* sink, const CompileOptions& options) {
  absl::StatusOr<CompileOptions> full = WithTarget(options);
  if (!full.ok()) return std::nullopt;
  return state_->FindActions(MakeSourceKey(sink, *full), *full);
}

std::vector<absl::StatusOr<KernelPtr>> KernelCache::CompileAll(absl::Span<const UOp* const> sinks,
                                                               const CompileOptions& options,
                                                               const TaskRunner& runner) {
  // A thread that waits for another's compilation is lost to the rest, so equal kernels go once.
  std::vector<const UOp*> different;
  absl::flat_hash_map<const UOp*, size_t> position;
  for (const UOp* sink : sinks) {
    if (position.emplace(sink, different.size()).second) different.push_back(sink);
  }
  std::vector<absl::StatusOr<KernelPtr>> made(different.size(), KernelPtr());
  runner(static_cast<int>(different.size()), [&](int i) {
    made[static_cast<size_t>(i)] = GetOrCompile(different[static_cast<size_t>(i)], options);
  });
  std::vector<absl::StatusOr<KernelPtr>> results;
  results.reserve(sinks.size());
  for (const UOp* sink : sinks) results.push_back(made[position[sink]]);
  return results;
}

absl::Status KernelCache::WarmUp(const CompileOptions& options) {
  SVOD_ASSIGN_OR_RETURN(CompileOptions full, WithTarget(options));
  full.dump_directory.clear();
  full.line_tables = false;
  auto context = std::make_shared<Context>();
  SVOD_ASSIGN_OR_RETURN(Module module, ParseModule(kWarmUpKernel, "warm_up", context));
  SVOD_ASSIGN_OR_RETURN(const UOp* final_sink,
                        state_->options.optimize(module.functions[0].root, *context, full));
  SVOD_ASSIGN_OR_RETURN(ObjectCode object, state_->options.compile(final_sink, full));
  return state_->session->Link(object.bytes, object.entry).status();
}

KernelPtr KernelCache::Find(const KernelKey& key) {
  int64_t time = state_->time.load(std::memory_order_relaxed);
  KernelPtr kernel = state_->kernels.Find(key, time);
  return kernel != nullptr ? kernel : state_->sources.Find(key, time);
}

void KernelCache::Clear() {
  for (const std::shared_ptr<KernelEntry>& entry : state_->kernels.Entries()) {
    KernelPtr kernel = entry->Remove(/*only_unused=*/false);
    if (kernel != nullptr) state_->Forget(*kernel);
  }
  state_->sources.RemoveEmpty();
  state_->kernels.RemoveEmpty();
}

KernelCacheStats KernelCache::stats() const {
  KernelCacheStats stats;
  stats.hits = state_->sources.hits() + state_->kernels.hits();
  stats.misses = state_->misses.load();
  stats.waits = state_->waits.load();
  stats.compiles = state_->compiles.load();
  stats.failures = state_->failures.load();
  stats.optimize_ms = static_cast<double>(state_->optimize_ns.load()) * 1e-6;
  stats.compile_ms = static_cast<double>(state_->compile_ns.load()) * 1e-6;
  stats.evictions = state_->evictions.load();
  stats.kernels = state_->num_kernels.load();
  stats.code_bytes = state_->code_bytes.load();
  OrcSession::Usage usage = state_->session->usage();
  stats.linked_code_bytes = usage.live_code_bytes;
  stats.mapped_code_bytes = usage.mapped_code_bytes;
  if (state_->disk != nullptr) {
    stats.disk = state_->disk->stats();
    stats.disk_problem = state_->disk->problem();
  }
  return stats;
}

DiskCache* KernelCache::disk() const { return state_->disk.get(); }

}  // namespace svod
