// FillHeap: memory for a process that lives for one kernel, mapped before it is asked for.
// Included by the main file of svod-jit and tests. Not for embedders: it sets up the process's
// malloc.
#ifndef SVOD_TOOLS_FILL_HEAP_H_
#define SVOD_TOOLS_FILL_HEAP_H_

#include <cstddef>

namespace svod {

// Maps the next `size_bytes` of the main thread's heap at once, where the system can, and keeps
// what is freed. Compiling one kernel touches some 600 pages of heap for the first time, and a
// fault for each costs a virtual machine 12 us; a page of many that are mapped together, half.
void FillHeap(size_t size_bytes);

}  // namespace svod

#endif  // SVOD_TOOLS_FILL_HEAP_H_
