// TaskRunner: how jit/ borrows threads; it starts none itself.
// Included by jit/'s face and whoever hands it threads. Knows nothing of TBB.
#ifndef SVOD_JIT_TASK_RUNNER_H_
#define SVOD_JIT_TASK_RUNNER_H_

#include <functional>

namespace svod {

// Calls task(0) ... task(num_tasks - 1), each once, on any threads, and returns when all are done.
// num_tasks may be 0; a task may call the runner again; tasks throw nothing.
using TaskRunner = std::function<void(int num_tasks, const std::function<void(int)>& task)>;

// Runs them in order on the calling thread.
inline void RunSerially(int num_tasks, const std::function<void(int)>& task) {
  for (int i = 0; i < num_tasks; ++i) task(i);
}

}  // namespace svod

#endif  // SVOD_JIT_TASK_RUNNER_H_
