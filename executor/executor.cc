// Built without the thread sanitizer: libtbb is not instrumented, and tasks that it hands from
// thread to thread would be reported as races. Nothing here touches what kernels touch.
#include "executor/executor.h"

#include <oneapi/tbb/parallel_invoke.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include "absl/strings/str_cat.h"
#include "executor/fork_join.h"

namespace svod {

struct Executor::Arena {
  explicit Arena(int num_threads) : arena(num_threads) {}
  tbb::task_arena arena;
};

Executor::Executor(std::unique_ptr<Arena> arena) : arena_(std::move(arena)) {}
Executor::~Executor() = default;

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(int num_threads) {
  constexpr int kMaxThreads = 4096;
  if (num_threads < 1 || num_threads > kMaxThreads) {
    return absl::InvalidArgumentError(absl::StrCat("executor: number of threads, got ", num_threads,
                                                   ", expected 1 to ", kMaxThreads));
  }
  return std::unique_ptr<Executor>(new Executor(std::make_unique<Arena>(num_threads)));
}

int Executor::num_threads() const { return arena_->arena.max_concurrency(); }

int MaxThreads(Executor* executor) {
  return executor != nullptr ? executor->num_threads() : tbb::this_task_arena::max_concurrency();
}

namespace {

// In sanitizer reports this frame stands where TBB's would be: a suppression of TBB's own frames
// must not hide a race between kernels.
[[gnu::noinline]] void CallWorker(Worker worker, void* context, int index) {
  worker(context, index);
}

struct Fork {
  Worker worker;
  void* context;
  tbb::task_group_context& tasks;

  // Workers 0 to last. parallel_invoke keeps its tasks on this stack and runs the first function
  // here, so that only the caller spawns and nothing is allocated.
  void Run(int last) const {
    if (last == 0) {
      CallWorker(worker, context, 0);
    } else if (last == 1) {
      tbb::parallel_invoke([this] { CallWorker(worker, context, 0); },
                           [this] { CallWorker(worker, context, 1); }, tasks);
    } else {
      tbb::parallel_invoke([this, last] { Run(last - 2); },
                           [this, last] { CallWorker(worker, context, last); },
                           [this, last] { CallWorker(worker, context, last - 1); }, tasks);
    }
  }
};

}  // namespace

class ArenaRun {
 public:
  static void Run(Executor* executor, int num_workers, Worker worker, void* context) {
    auto run = [&] {
      tbb::task_group_context tasks(tbb::task_group_context::isolated);
      Fork fork{worker, context, tasks};
      tbb::this_task_arena::isolate([&] { fork.Run(num_workers - 1); });
    };
    if (executor != nullptr) {
      executor->arena_->arena.execute(run);
    } else {
      run();
    }
  }
};

void ForkJoin(Executor* executor, int num_workers, Worker worker, void* context) {
  ArenaRun::Run(executor, num_workers, worker, context);
}

}  // namespace svod
