#include "jit/kernel_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace svod {
namespace {

using Found = KernelTable::Found;
using Outcome = KernelTable::Outcome;

KernelKey Key(absl::string_view text, uint64_t hash = 1) {
  return {{hash, hash}, std::make_shared<const std::string>(text)};
}

Found Make(absl::string_view name) {
  auto kernel = std::make_shared<CompiledKernel>();
  kernel->name = std::string(name);
  return {std::make_shared<KernelEntry>(kernel), kernel};
}

Found MustNotMake() {
  ADD_FAILURE() << "made again";
  return Make("again");
}

TEST(KernelTableTest, MakesOnceAndFindsAfterwards) {
  KernelTable table;
  Outcome outcome;
  EXPECT_EQ(table.Find(Key("a"), 0), nullptr);
  auto made = table.GetOrMake(Key("a"), 0, &outcome, [] { return Make("a"); });
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(outcome, Outcome::kMade);
  auto found = table.GetOrMake(Key("a"), 0, &outcome, MustNotMake);
  EXPECT_EQ(outcome, Outcome::kHit);
  EXPECT_EQ(found->kernel, made->kernel);
  EXPECT_EQ(table.Find(Key("a"), 0), made->kernel);
  EXPECT_EQ(table.hits(), 2);
}

// A hash only finds: whoever builds two kernels of one hash must not get the other's code.
TEST(KernelTableTest, EqualHashesWithDifferentContentsAreDifferentKernels) {
  KernelTable table;
  Outcome outcome;
  auto a = table.GetOrMake(Key("a", 7), 0, &outcome, [] { return Make("a"); });
  auto b = table.GetOrMake(Key("b", 7), 0, &outcome, [] { return Make("b"); });
  EXPECT_EQ(outcome, Outcome::kMade);
  EXPECT_EQ(table.Find(Key("a", 7), 0)->name, "a");
  EXPECT_EQ(table.Find(Key("b", 7), 0)->name, "b");
  EXPECT_EQ(table.Find(Key("c", 7), 0), nullptr);
}

TEST(KernelTableTest, FailuresAreNotKept) {
  KernelTable table;
  Outcome outcome;
  auto failed = table.GetOrMake(Key("a"), 0, &outcome, []() -> absl::StatusOr<Found> {
    return absl::UnimplementedError("no such thing");
  });
  EXPECT_EQ(failed.status(), absl::UnimplementedError("no such thing"));
  EXPECT_TRUE(table.GetOrMake(Key("a"), 0, &outcome, [] { return Make("a"); }).ok());
}

TEST(KernelTableTest, ExceptionsComeOutAsStatus) {
  KernelTable table;
  Outcome outcome;
  auto failed = table.GetOrMake(Key("a"), 0, &outcome,
                                []() -> absl::StatusOr<Found> { throw std::runtime_error("odd"); });
  EXPECT_EQ(failed.status(), absl::InternalError("kernel cache: exception: odd"));
  failed = table.GetOrMake(Key("a"), 0, &outcome,
                           []() -> absl::StatusOr<Found> { throw std::bad_alloc(); });
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(KernelTableTest, EmptiedEntryIsMadeAgainUnderEveryKey) {
  KernelTable table;
  Outcome outcome;
  Found found = Make("a");
  (void)table.GetOrMake(Key("a"), 0, &outcome, [&] { return found; });
  (void)table.GetOrMake(Key("alias"), 0, &outcome, [&] { return found; });
  EXPECT_EQ(found.entry->Remove(/*only_unused=*/true), nullptr) << "it is in use here";
  found.kernel = nullptr;
  EXPECT_NE(found.entry->Remove(/*only_unused=*/true), nullptr);
  EXPECT_EQ(table.Find(Key("a"), 0), nullptr);
  EXPECT_EQ(table.Find(Key("alias"), 0), nullptr);
  table.RemoveEmpty();
  EXPECT_TRUE(table.Entries().empty());
  EXPECT_TRUE(table.GetOrMake(Key("a"), 0, &outcome, [] { return Make("a"); }).ok());
  EXPECT_EQ(outcome, Outcome::kMade);
}

TEST(KernelTableTest, EntriesRememberTheirLastUse) {
  KernelTable table;
  Outcome outcome;
  auto made = table.GetOrMake(Key("a"), 0, &outcome, [] { return Make("a"); });
  (void)table.Find(Key("a"), 17);
  EXPECT_EQ(made->entry->last_used(), 17);
}

TEST(KernelTableConcurrencyTest, WaitersShareOneResultOrOneFailure) {
  for (bool fails : {false, true}) {
    KernelTable table;
    constexpr int kThreads = 6;
    std::atomic<int> made = 0, waited = 0, arrived = 0;
    std::vector<std::thread> threads;
    std::vector<absl::StatusOr<Found>> results(kThreads, absl::UnknownError(""));
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        Outcome outcome;
        ++arrived;
        results[t] = table.GetOrMake(Key("a"), 0, &outcome, [&]() -> absl::StatusOr<Found> {
          ++made;
          while (arrived < kThreads) std::this_thread::yield();
          // Long enough for the others to come from the counter to the wait.
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          if (fails) return absl::InternalError("broken");
          return Make("a");
        });
        if (outcome == Outcome::kWaited) ++waited;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(made, 1);
    EXPECT_EQ(waited, kThreads - 1);
    for (const auto& result : results) {
      if (fails) {
        EXPECT_EQ(result.status(), absl::InternalError("broken"));
      } else {
        EXPECT_EQ(result->kernel, results[0]->kernel);
      }
    }
  }
}

TEST(KernelTableConcurrencyTest, MakingFindingAndEvictingAtOnce) {
  KernelTable table;
  std::atomic<bool> stop = false;
  std::thread evictor([&] {
    while (!stop) {
      for (const auto& entry : table.Entries()) entry->Remove(/*only_unused=*/true);
      table.RemoveEmpty();
    }
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 3000; ++i) {
        std::string name = absl::StrCat(i % 23);
        KernelKey key = Key(name, static_cast<uint64_t>(i % 23));
        Outcome outcome;
        auto found = table.GetOrMake(key, i, &outcome, [&] { return Make(name); });
        ASSERT_TRUE(found.ok());
        ASSERT_EQ(found->kernel->name, name);
        auto again = table.Find(key, i);
        ASSERT_TRUE(again == nullptr || again->name == name);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stop = true;
  evictor.join();
}

}  // namespace
}  // namespace svod
