// Timed search for loop actions. Times are made up from the actions, so that nothing is left to
// chance; forms are compiled and run all the same.
#include "jit/search_actions.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "ir/passes/apply_actions.h"
#include "ir/text.h"
#include "jit/action_neighbours.h"
#include "jit/kernel_trial.h"

namespace svod {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = LoopAction::Kind;

std::string RowSums(absl::string_view opts) {
  return absl::StrCat("kernel @sums(%y: out f32[32], %x: f32[32, 48]) opts=[", opts, R"(] {
  %i = range 32 loop
    %k = range 48 reduce
      %v = load %x[%i, %k]
    %s = reduce_add %v, %k
    store %y[%i], %s
  end %i
}
)");
}

bool Has(absl::Span<const LoopAction> actions, Kind kind) {
  return std::any_of(actions.begin(), actions.end(),
                     [&](const LoopAction& action) { return action.kind == kind; });
}

class SearchActionsTest : public ::testing::Test {
 protected:
  SearchActionsTest() {
    std::string pattern = ::testing::TempDir() + "/svod_search_XXXXXX";
    root_ = mkdtemp(pattern.data());
    module_ = ParseModule(RowSums("auto"), "k.uop", std::make_shared<Context>()).value();
  }
  ~SearchActionsTest() override { fs::remove_all(root_); }

  std::shared_ptr<KernelCache> Open() const {
    KernelCacheOptions options;
    options.disk_directory = root_ + "/cache";
    return KernelCache::Create(options).value();
  }
  const UOp* sink() const { return module_.functions[0].root; }

  // Forms without vectors are twice as fast, and any with a split in them three times.
  SearchOptions Options(int measurements) {
    SearchOptions options;
    options.measurements = measurements;
    options.timer = [this](absl::Span<const LoopAction> actions, absl::FunctionRef<void()> run) {
      ++timed_;
      run();
      return Has(actions, Kind::kSplit) ? 300.0 : Has(actions, Kind::kUpcast) ? 1000.0 : 500.0;
    };
    return options;
  }

  std::string root_;
  Module module_;
  int timed_ = 0;
};

TEST_F(SearchActionsTest, ClimbsToWhatIsFasterAndTheCacheGivesIt) {
  auto cache = Open();
  const std::string before = (*cache->GetOrCompile(sink()))->source;
  EXPECT_THAT(before, HasSubstr("upcast("));
  auto report = SearchActions(sink(), *cache, {}, Options(200));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->left_out, "");
  EXPECT_TRUE(Has(report->chosen, Kind::kUpcast));
  EXPECT_TRUE(Has(report->found, Kind::kSplit));
  EXPECT_EQ(report->chosen_ns, 1000);
  EXPECT_EQ(report->found_ns, 300);
  EXPECT_TRUE(report->different.empty()) << report->different[0];
  const std::string after = (*cache->GetOrCompile(sink()))->source;
  EXPECT_THAT(after, HasSubstr("split("));
  EXPECT_THAT(after, Not(HasSubstr("apply")));
}

TEST_F(SearchActionsTest, StopsAfterItsMeasurementsAndTellsOfEach) {
  auto cache = Open();
  std::vector<int> done;
  SearchControl control;
  control.progress = [&](int number, int total) {
    done.push_back(number);
    EXPECT_EQ(total, 5);
  };
  auto report = SearchActions(sink(), *cache, {}, Options(5), control);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->measured, 5);
  EXPECT_THAT(done, ::testing::ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(SearchActionsTest, IsOffWithoutMeasurements) {
  auto cache = Open();
  auto report = SearchActions(sink(), *cache, {}, Options(0));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->left_out, "searching is off");
  EXPECT_EQ(timed_, 0);
  EXPECT_FALSE(cache->Preferred(sink(), {}).has_value());
}

TEST_F(SearchActionsTest, ASmallGainIsNone) {
  auto cache = Open();
  SearchOptions options = Options(200);
  options.timer = [](absl::Span<const LoopAction> actions, absl::FunctionRef<void()>) {
    return Has(actions, Kind::kUpcast) ? 1000.0 : 970.0;
  };
  auto report = SearchActions(sink(), *cache, {}, options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->found, report->chosen);
  EXPECT_EQ(cache->Preferred(sink(), {})->measurements, 200);
  EXPECT_FALSE(cache->Preferred(sink(), {})->actions.has_value());
  EXPECT_THAT((*cache->GetOrCompile(sink()))->source, HasSubstr("upcast("));
}

TEST_F(SearchActionsTest, CanBeCancelledAndLeavesTheCacheAsItWas) {
  auto cache = Open();
  std::atomic<bool> cancelled = false;
  SearchControl control;
  control.cancelled = &cancelled;
  control.progress = [&](int done, int) { cancelled = done == 3; };
  auto report = SearchActions(sink(), *cache, {}, Options(200), control);
  EXPECT_EQ(report.status().code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(cache->Preferred(sink(), {}).has_value());
  EXPECT_THAT((*cache->GetOrCompile(sink()))->source, HasSubstr("upcast("));
}

TEST_F(SearchActionsTest, LaterProcessesUseWhatWasFoundAndSearchNoMore) {
  std::string found;
  {
    auto cache = Open();
    ASSERT_TRUE(cache->GetOrCompile(sink()).ok());  // on the disk as it was chosen
    ASSERT_TRUE(SearchActions(sink(), *cache, {}, Options(200)).ok());
    found = (*cache->GetOrCompile(sink()))->source;
  }
  timed_ = 0;
  auto cache = Open();
  EXPECT_EQ((*cache->GetOrCompile(sink()))->source, found);
  EXPECT_EQ(cache->stats().compiles, 0);
  auto again = SearchActions(sink(), *cache, {}, Options(200));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->left_out, "it was searched before");
  EXPECT_EQ(timed_, 0);
  // More measurements go on from what was found.
  auto more = SearchActions(sink(), *cache, {}, Options(201));
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_TRUE(Has(more->found, Kind::kSplit));
}

TEST_F(SearchActionsTest, NotesThatDoNotFitAreIgnored) {
  const Target target = HostTarget().value();
  CompileOptions options;
  options.target = target;
  const std::string key = FoundActionsKey(MakeSourceKey(sink(), options), target);
  for (const char* note :
       {"", "measurements many\nactions []\n", "measurements 3\nactions [turn(1)]\n",
        "measurements 3\nactions [upcast(9, 8)]\n", "measurements 3\nactions"}) {
    fs::remove_all(root_ + "/cache");
    {
      auto cache = Open();
      cache->disk()->StoreNote(key, note);
    }
    auto cache = Open();
    auto kernel = cache->GetOrCompile(sink(), options);
    ASSERT_TRUE(kernel.ok()) << note << kernel.status();
    EXPECT_THAT((*kernel)->source, HasSubstr("upcast(")) << note;
  }
  // A file whose bytes changed is no note at all.
  fs::remove_all(root_ + "/cache");
  {
    auto cache = Open();
    cache->disk()->StoreNote(key, EncodeFoundActions({3, ActionList{}}));
  }
  EXPECT_TRUE(Open()->Preferred(sink(), options).has_value());
  for (const auto& file : fs::directory_iterator(root_ + "/cache")) {
    std::fstream bytes(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(-1, std::ios::end);
    bytes.put('!');
  }
  EXPECT_FALSE(Open()->Preferred(sink(), options).has_value());
}

TEST_F(SearchActionsTest, KernelsThatAreNotOpenOrTooLargeAreLeftOut) {
  auto cache = Open();
  for (const char* opts : {"", "apply", "upcast(0, 8)"}) {
    auto module = ParseModule(RowSums(opts), "k.uop", std::make_shared<Context>());
    ASSERT_TRUE(module.ok()) << module.status();
    auto report = SearchActions(module->functions[0].root, *cache, {}, Options(9));
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->left_out, "its loop actions are not open to choice");
  }
  SearchOptions small = Options(9);
  small.max_bytes = 1000;
  EXPECT_EQ(SearchActions(sink(), *cache, {}, small)->left_out, "buffers of more than 1000 bytes");
  EXPECT_EQ(timed_, 0);
}

TEST_F(SearchActionsTest, TheClockServesAsWell) {
  auto cache = Open();
  SearchOptions options;
  options.measurements = 3;
  auto report = SearchActions(sink(), *cache, {}, options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->measured, 3);
  EXPECT_GT(report->chosen_ns, 0);
}

TEST(ActionNeighbours, ChangeAmountsTradeThemAndTakeOrAddOne) {
  const ActionList start = {{Kind::kUpcast, 1, 16}, {Kind::kUnroll, 0, 4}};
  std::vector<ActionList> lists = NeighboursOf(start, {0, 1, 2});
  auto list = [](absl::string_view text) { return ParseLoopActions(text).value(); };
  for (const char* text : {"[upcast(1, 32), unroll(0, 4)]", "[upcast(1, 16), unroll(0, 2)]",
                           "[upcast(1, 32), unroll(0, 2)]", "[upcast(1, 8), unroll(0, 8)]",
                           "[upcast(1, 16), unroll(0, 6)]", "[upcast(1, 16)]", "[unroll(0, 4)]",
                           "[pack(0, 1), upcast(1, 16), unroll(0, 4)]",
                           "[split(2, 64), swap(2), upcast(1, 16), unroll(0, 4)]",
                           "[upcast(1, 16), unroll(0, 4), stream(1)]"}) {
    EXPECT_THAT(lists, Contains(list(text))) << text;
  }
  EXPECT_THAT(lists, Not(Contains(start)));
  for (size_t i = 0; i < lists.size(); ++i) {
    EXPECT_EQ(std::count(lists.begin(), lists.end(), lists[i]), 1) << ToString(lists[i]);
  }
}

TEST(ActionNeighbours, WhatIsNotLegalOrChangesBitsIsLeftOut) {
  auto module = ParseModule(RowSums("auto"), "k.uop", std::make_shared<Context>());
  ASSERT_TRUE(module.ok()) << module.status();
  PassContext pass(*module->context);
  ShapedByList shaped =
      DoLegalActions(module->functions[0].root,
                     {{Kind::kGroup, 1, 8}, {Kind::kUpcast, 7, 4}, {Kind::kUnroll, 0, 2}}, pass);
  EXPECT_EQ(ToString(shaped.done), "[unroll(0, 2)]");
}

TEST(KernelTrial, SeesBitsThatDifferButTakesAnyNanForAnother) {
  auto kernel = [](absl::string_view op) {
    return absl::StrCat("kernel @k(%y: out f32[64], %x: f32[64]) {\n  %i = range 64 loop\n",
                        "  %v = load %x[%i]\n", op, "\n  store %y[%i], %r\n  end %i\n}\n");
  };
  auto context = std::make_shared<Context>();
  auto cache = KernelCache::Create().value();
  auto compile = [&](absl::string_view op) {
    auto module = ParseModule(kernel(op), "k.uop", context);
    EXPECT_TRUE(module.ok()) << module.status();
    return std::pair(module->functions[0].root,
                     cache->GetOrCompile(module->functions[0].root).value());
  };
  auto root = compile("%r = sqrt %v");
  auto other_nan = compile("%s = sqrt %v\n%g = cmplt %v, 0.0\n%r = where %g, 0xffc00001:f32, %s");
  auto rounded = compile("%s = sqrt %v\n%r = mul %s, 1.0000001");
  auto trial = KernelTrial::Create(root.first, 1 << 20).value();
  ASSERT_TRUE(trial->KeepResults(*root.second).ok());
  EXPECT_TRUE(trial->GivesKeptResults(*root.second).value());
  EXPECT_TRUE(trial->GivesKeptResults(*other_nan.second).value());
  EXPECT_FALSE(trial->GivesKeptResults(*rounded.second).value());
  EXPECT_FALSE(trial->must_restore());
}

TEST(KernelTrial, GivesEachRunTheSameMemoryAndTheLargestVariables) {
  auto module = ParseModule(R"(
kernel @k(%n = define_var "n", min=0, max=40; %y: inout f32[%n]) {
  %i = range %n loop
    %v = load %y[%i]
    %r = add %v, 1.0
    store %y[%i], %r
  end %i
}
)",
                            "k.uop", std::make_shared<Context>());
  ASSERT_TRUE(module.ok()) << module.status();
  auto cache = KernelCache::Create().value();
  auto kernel = cache->GetOrCompile(module->functions[0].root).value();
  auto trial = KernelTrial::Create(module->functions[0].root, 1 << 20).value();
  EXPECT_TRUE(trial->must_restore());
  ASSERT_TRUE(trial->KeepResults(*kernel).ok());
  ASSERT_TRUE(trial->Run(*kernel).ok());
  EXPECT_TRUE(trial->GivesKeptResults(*kernel).value());
  EXPECT_EQ(KernelTrial::Create(module->functions[0].root, 100).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace svod
