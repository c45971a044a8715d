#include "tools/fill_heap.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace svod {
namespace {

// MADV_POPULATE_WRITE of Linux 5.14; older ones refuse it, and then pages come one by one.
constexpr int kPopulateWrite = 23;

}  // namespace

void FillHeap(size_t size_bytes) {
  constexpr int kLargestOfHeap = 16 << 20;  // larger pieces are mappings of their own, as ever
  mallopt(M_MMAP_THRESHOLD, kLargestOfHeap);
  mallopt(M_TRIM_THRESHOLD, 4 * kLargestOfHeap);
  void* piece = malloc(size_bytes);
  if (piece == nullptr) return;
  const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(piece) & ~(page_bytes - 1);
  const uintptr_t end = reinterpret_cast<uintptr_t>(piece) + size_bytes;
  // What it costs not to succeed is time.
  (void)madvise(reinterpret_cast<void*>(begin), end - begin, kPopulateWrite);
  free(piece);
}

}  // namespace svod
