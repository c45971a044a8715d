#include "jit/search_actions.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/passes/apply_actions.h"
#include "ir/passes/simplify.h"
#include "ir/status_macros.h"
#include "jit/action_neighbours.h"
#include "jit/choose_actions.h"
#include "jit/kernel_trial.h"

namespace svod {
namespace {

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The best of a few stretches, each long enough for the clock.
double BestOfSeveral(absl::FunctionRef<void()> run, bool may_repeat) {
  constexpr int64_t kStretchNs = 100'000, kEnoughNs = 300'000'000;
  constexpr int kStretches = 5;
  run();
  int64_t start = NowNs();
  run();
  int64_t once = std::max<int64_t>(NowNs() - start, 1);
  const int64_t rounds = may_repeat ? std::max<int64_t>(kStretchNs / once, 1) : 1;
  double best = static_cast<double>(once);
  int64_t spent = once;
  for (int i = 0; i < kStretches && spent < kEnoughNs; ++i) {
    start = NowNs();
    for (int64_t round = 0; round < rounds; ++round) run();
    const int64_t elapsed = NowNs() - start;
    spent += elapsed;
    best = std::min(best, static_cast<double>(elapsed) / static_cast<double>(rounds));
  }
  return best;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Search {
 public:
  Search(const UOp* sink, KernelCache& cache, const CompileOptions& options,
         const SearchOptions& search, const SearchControl& control)
      : source_(context_.Import(sink)),
        pass_(context_),
        cache_(cache),
        options_(options),
        search_(search),
        control_(control) {}

  absl::StatusOr<SearchReport> Run() {
    if (!HasOpt(source_, kAutoOpt) || HasOpt(source_, kApplyOpt)) {
      return LeftOut("its loop actions are not open to choice");
    }
    std::optional<FoundActions> known = cache_.Preferred(source_, options_);
    if (known.has_value() && known->measurements >= search_.measurements) {
      return LeftOut("it was searched before");
    }
    auto trial = KernelTrial::Create(source_, search_.max_bytes);
    if (!trial.ok()) return LeftOut(trial.status().message());
    trial_ = *std::move(trial);
    SVOD_ASSIGN_OR_RETURN(simplified_, RunSimplify(source_, pass_));
    SVOD_ASSIGN_OR_RETURN(report_.chosen, ChosenActions());
    SVOD_RETURN_IF_ERROR(OpenScratchCache());
    SVOD_ASSIGN_OR_RETURN(Form chosen, Compile(report_.chosen));
    SVOD_RETURN_IF_ERROR(trial_->KeepResults(*chosen.kernel));
    seen_.insert(DoLegalActions(simplified_, report_.chosen, pass_).sink);
    chosen.ns = Time(chosen);
    Form best = chosen;
    if (known.has_value() && known->actions.has_value()) {
      SVOD_RETURN_IF_ERROR(Consider(*known->actions, &best).status());
    }
    SVOD_RETURN_IF_ERROR(Climb(&best));
    SVOD_RETURN_IF_ERROR(CheckCancelled());
    return Decide(chosen, best);
  }

 private:
  struct Form {
    ActionList actions;
    KernelPtr kernel;
    double ns = 0;
  };

  SearchReport LeftOut(absl::string_view why) const {
    SearchReport report;
    report.left_out = std::string(why);
    return report;
  }

  absl::Status CheckCancelled() const {
    if (control_.cancelled == nullptr || !control_.cancelled->load(std::memory_order_relaxed)) {
      return absl::OkStatus();
    }
    return absl::CancelledError("search: cancelled");
  }

  // What would be chosen without a search: opts that the source does not have.
  absl::StatusOr<ActionList> ChosenActions() {
    SVOD_ASSIGN_OR_RETURN(const UOp* shaped, OptimizeLoops(source_, options_.target, pass_));
    absl::Span<const absl::string_view> before = source_->arg<FunctionArgument>().opts;
    const auto num_others =
        before.size() - static_cast<size_t>(std::count(before.begin(), before.end(), kAutoOpt));
    ActionList actions;
    for (absl::string_view opt : shaped->arg<FunctionArgument>().opts.subspan(num_others)) {
      SVOD_ASSIGN_OR_RETURN(LoopAction action, ParseLoopAction(opt));
      actions.push_back(action);
    }
    return actions;
  }

  // Forms that lose leave nothing behind.
  absl::Status OpenScratchCache() {
    KernelCacheOptions options;
    options.capacity_bytes = int64_t{16} << 20;
    SVOD_ASSIGN_OR_RETURN(scratch_cache_, KernelCache::Create(std::move(options)));
    return absl::OkStatus();
  }

  absl::StatusOr<Form> Compile(const ActionList& actions) {
    Form form{actions, nullptr};
    SVOD_ASSIGN_OR_RETURN(form.kernel, scratch_cache_->GetOrCompile(
                                           WithActions(source_, actions, context_), options_));
    return form;
  }

  double Time(const Form& form) {
    // Runs have been checked by now; a kernel does not begin to fail.
    auto run = [&] { trial_->Run(*form.kernel).IgnoreError(); };
    trial_->Restore();
    if (search_.timer) return search_.timer(form.actions, run);
    if (!trial_->must_restore()) return BestOfSeveral(run, /*may_repeat=*/true);
    return BestOfRestored(run);
  }

  // The same where each run needs the memory that the first one found.
  double BestOfRestored(absl::FunctionRef<void()> run) {
    double best = BestOfSeveral(run, /*may_repeat=*/false);
    for (int i = 0; i < 5; ++i) {
      trial_->Restore();
      const int64_t start = NowNs();
      run();
      best = std::min(best, static_cast<double>(NowNs() - start));
    }
    return best;
  }

  // Times in turns, so that what disturbs one disturbs the other. Gives the median of the ratios,
  // above 1 when `b` is faster.
  double Compare(Form* a, Form* b) {
    constexpr int kTurns = 5;
    std::vector<double> ratios;
    for (int turn = 0; turn < kTurns; ++turn) {
      const double of_a = Time(*a), of_b = Time(*b);
      a->ns = turn == 0 ? of_a : std::min(a->ns, of_a);
      b->ns = turn == 0 ? of_b : std::min(b->ns, of_b);
      ratios.push_back(of_a / of_b);
    }
    return Median(std::move(ratios));
  }

  // Whether a list's form, where it is legal and new, became the best.
  absl::StatusOr<bool> Consider(const ActionList& list, Form* best) {
    constexpr double kWorthATurn = 0.98, kBetter = 1.02;
    ShapedByList shaped = DoLegalActions(simplified_, list, pass_);
    if (!seen_.insert(shaped.sink).second) return false;
    SVOD_RETURN_IF_ERROR(CheckCancelled());
    ++report_.measured;
    absl::StatusOr<Form> form = Compile(shaped.done);
    bool is_better = false;
    if (form.ok()) {
      SVOD_ASSIGN_OR_RETURN(bool is_same, trial_->GivesKeptResults(*form->kernel));
      if (is_same) {
        form->ns = Time(*form);
        is_better = form->ns < best->ns * kWorthATurn && Compare(best, &*form) > kBetter;
      } else {
        report_.different.push_back(ToString(shaped.done));
      }
    }
    if (is_better) *best = *std::move(form);
    if (control_.progress) control_.progress(report_.measured, search_.measurements);
    return is_better;
  }

  // From the best form to its first neighbour that is better, as long as there is one.
  absl::Status Climb(Form* best) {
    bool goes_on = true;
    while (goes_on) {
      goes_on = false;
      const UOp* shaped = DoLegalActions(simplified_, best->actions, pass_).sink;
      for (const ActionList& list : NeighboursOf(best->actions, AxesOf(shaped))) {
        if (report_.measured >= search_.measurements) return absl::OkStatus();
        SVOD_ASSIGN_OR_RETURN(goes_on, Consider(list, best));
        if (goes_on) break;
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<SearchReport> Decide(Form& chosen, Form& best) {
    FoundActions found{search_.measurements, std::nullopt};
    report_.found = report_.chosen;
    report_.chosen_ns = report_.found_ns = chosen.ns;
    if (best.actions != chosen.actions && Compare(&chosen, &best) > 1 + search_.least_gain) {
      found.actions = report_.found = best.actions;
      report_.chosen_ns = chosen.ns;
      report_.found_ns = best.ns;
    }
    SVOD_RETURN_IF_ERROR(cache_.Prefer(source_, options_, found));
    return std::move(report_);
  }

  Context context_;
  const UOp* source_;
  PassContext pass_;
  KernelCache& cache_;
  const CompileOptions& options_;
  const SearchOptions& search_;
  const SearchControl& control_;
  const UOp* simplified_ = nullptr;
  std::unique_ptr<KernelTrial> trial_;
  std::shared_ptr<KernelCache> scratch_cache_;
  absl::flat_hash_set<const UOp*> seen_;  // forms, as nodes
  SearchReport report_;
};

}  // namespace

absl::StatusOr<SearchReport> SearchActions(const UOp* sink, KernelCache& cache,
                                           const CompileOptions& options,
                                           const SearchOptions& search,
                                           const SearchControl& control) {
  CompileOptions full = options;
  if (full.target.triple.empty()) {
    SVOD_ASSIGN_OR_RETURN(full.target, HostTarget());
  }
  if (search.measurements <= 0) {
    SearchReport report;
    report.left_out = "searching is off";
    return report;
  }
  return Search(sink, cache, full, search, control).Run();
}

}  // namespace svod
