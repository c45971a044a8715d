// Offsets of lifetimes in an arena, against a search of all pairs.
#include "plan/arena_layout.h"

#include <random>

#include "gmock/gmock.h"
#include "tests/unit/plan/fake_kernels.h"

namespace svod {
namespace {

using ::testing::ElementsAre;

// "" when no two lifetimes that share a level share a byte.
std::string Overlap(absl::Span<const Lifetime> lives, const ArenaLayout& layout) {
  for (size_t i = 0; i < lives.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      bool in_time = lives[i].first_level <= lives[j].last_level &&
                     lives[j].first_level <= lives[i].last_level;
      bool in_space = layout.offsets[i] < layout.offsets[j] + lives[j].bytes &&
                      layout.offsets[j] < layout.offsets[i] + lives[i].bytes;
      if (in_time && in_space) return absl::StrCat(j, " and ", i);
    }
  }
  return "";
}

TEST(ArenaLayout, WhatIsAliveTogetherLiesSideBySide) {
  ArenaLayout layout = Must(LayOutArena({{100, 0, 1}, {100, 1, 2}, {100, 2, 3}}, 64));
  EXPECT_THAT(layout.offsets, ElementsAre(0, 128, 0));
  EXPECT_EQ(layout.bytes, 256);
}

TEST(ArenaLayout, LargerOnesGoFirstAndSmallOnesFillTheHoles) {
  ArenaLayout layout = Must(LayOutArena({{64, 0, 4}, {256, 1, 1}, {128, 3, 4}, {64, 3, 3}}, 64));
  EXPECT_THAT(layout.offsets, ElementsAre(256, 0, 0, 128));
  EXPECT_EQ(layout.bytes, 320);
}

TEST(ArenaLayout, NothingTakesNothing) { EXPECT_EQ(Must(LayOutArena({}, 64)).bytes, 0); }

TEST(ArenaLayout, RandomLifetimesNeverMeet) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> lives(random() % 60);
    int64_t num_levels = 1 + random() % 40, most = 1 + random() % 2000;
    int64_t sum = 0;
    std::vector<int64_t> alive(static_cast<size_t>(num_levels) * 2);
    for (Lifetime& life : lives) {
      life.bytes = 1 + static_cast<int64_t>(random()) % most;
      life.first_level = static_cast<int>(random() % num_levels);
      life.last_level = life.first_level + static_cast<int>(random() % num_levels);
      int64_t rounded = (life.bytes + 63) / 64 * 64;
      sum += rounded;
      for (int level = life.first_level; level <= life.last_level; ++level) alive[level] += rounded;
    }
    ArenaLayout layout = Must(LayOutArena(lives, 64));
    EXPECT_EQ(Overlap(lives, layout), "") << "round " << round;
    for (int64_t offset : layout.offsets) EXPECT_EQ(offset % 64, 0);
    EXPECT_LE(layout.bytes, sum);
    EXPECT_GE(layout.bytes, *std::max_element(alive.begin(), alive.end()));
    EXPECT_EQ(layout.offsets, Must(LayOutArena(lives, 64)).offsets);
  }
}

TEST(ArenaLayout, TensOfThousandsAtOnceAndInChains) {
  // Chains, where few are alive at a time; and all alive at once.
  for (int span : {1, 40000}) {
    std::vector<Lifetime> lives;
    for (int i = 0; i < 40000; ++i)
      lives.push_back({64 + i % 7 * 64, i, std::min(i + span, 40000)});
    ArenaLayout layout = Must(LayOutArena(lives, 64));
    EXPECT_LE(layout.bytes, span == 1 ? 4 * 448 : int64_t{40000} * 448);
  }
}

TEST(ArenaLayout, SizesBeyondMeasureAreRefused) {
  int64_t huge = int64_t{1} << 61;
  EXPECT_EQ(Must(LayOutArena({{huge, 0, 0}, {huge, 1, 1}}, 64)).bytes, huge);
  ExpectError(LayOutArena({{huge, 0, 0}, {huge, 0, 0}, {64, 0, 0}}, 64).status(),
              absl::StatusCode::kResourceExhausted,
              "memory: arena, got 64 bytes at offset 4611686018427387904, expected at most 2^62 in "
              "all");
  EXPECT_EQ(LayOutArena({{INT64_MAX, 0, 0}}, 64).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace svod
