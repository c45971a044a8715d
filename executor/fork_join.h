// ForkJoin: the little that the executor needs of oneTBB, without its headers.
// Included by run.cc. Implemented in executor.cc, the one file that names TBB.
#ifndef SVOD_EXECUTOR_FORK_JOIN_H_
#define SVOD_EXECUTOR_FORK_JOIN_H_

#include "executor/executor.h"

namespace svod {

// Threads that may take part in a fork inside `executor`'s arena, or the caller's for null; with
// the calling one, at least 1.
int MaxThreads(Executor* executor);

// Calls worker(context, i) once for each i below num_workers, on the calling thread (which runs
// worker 0) and on threads of the arena that are free, and returns when all calls have. Workers
// must not wait for one another: one thread may run them all. Allocates nothing. The caller takes
// up no other tasks while it waits. Orders nothing that the thread sanitizer can see: run.cc does.
using Worker = void (*)(void* context, int worker);
void ForkJoin(Executor* executor, int num_workers, Worker worker, void* context);

}  // namespace svod

#endif  // SVOD_EXECUTOR_FORK_JOIN_H_
