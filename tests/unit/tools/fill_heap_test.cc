#include "tools/fill_heap.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SVOD_TEST_SANITIZER 1
#endif
#endif

namespace svod {
namespace {

// Sanitizers have allocators of their own.
#ifndef SVOD_TEST_SANITIZER
int64_t PageFaults() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

TEST(FillHeapTest, WhatIsAllocatedAfterwardsIsMapped) {
  constexpr size_t kBytes = size_t{8} << 20;
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* probe =
      mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(probe, MAP_FAILED);
  const bool can_populate = madvise(probe, page_bytes, /*MADV_POPULATE_WRITE*/ 23) == 0;
  munmap(probe, page_bytes);
  if (!can_populate) GTEST_SKIP() << "the system maps pages one by one only";

  FillHeap(kBytes);
  const int64_t before = PageFaults();
  // Both the filled part and, freed and taken again, the same memory.
  for (int round = 0; round < 2; ++round) {
    auto* bytes = static_cast<volatile char*>(malloc(kBytes / 2));
    ASSERT_NE(bytes, nullptr);
    for (size_t i = 0; i < kBytes / 2; i += page_bytes) bytes[i] = 1;
    free(const_cast<char*>(bytes));
  }
  EXPECT_LT(PageFaults() - before, static_cast<int64_t>(kBytes / 2 / page_bytes / 8));
}
#endif

}  // namespace
}  // namespace svod
