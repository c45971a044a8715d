// Byte ranges, groups and program order: rows E4 to E8 of docs/seed.md work on these.
#include "plan/hazards.h"

#include <random>

#include "gmock/gmock.h"
#include "tests/unit/plan/fake_kernels.h"

namespace svod {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ByteRange Range(uint64_t begin, uint64_t end, uint64_t space = 0) { return {space, begin, end}; }

TEST(Hazards, EmptyRangesAndOtherSpacesOverlapNothing) {
  EXPECT_TRUE(Overlap(Range(0, 8), Range(7, 9)));
  EXPECT_FALSE(Overlap(Range(0, 8), Range(8, 9)));
  EXPECT_FALSE(Overlap(Range(0, 8), Range(4, 4)));
  EXPECT_FALSE(Overlap(Range(0, 8, 1), Range(0, 8, 2)));
}

TEST(Hazards, BuffersMeetByAddressOnceTheyHaveMemory) {
  alignas(64) std::byte memory[128];
  Buffer a = Must(Buffer::Wrap(memory, 64)), b = Must(Buffer::Wrap(memory + 32, 64));
  EXPECT_NE(a.storage_id(), b.storage_id());
  EXPECT_TRUE(Overlap(RangeOf(a), RangeOf(b)));
  // Lazy ones by storage and offset.
  Buffer lazy = Bytes(64);
  Buffer low = Must(lazy.View(0, 32)), high = Must(lazy.View(32, 32));
  EXPECT_FALSE(Overlap(RangeOf(low), RangeOf(high)));
  EXPECT_TRUE(Overlap(RangeOf(lazy), RangeOf(high)));
  EXPECT_FALSE(lazy.is_allocated());
}

TEST(Hazards, E5WritesConflictWithEveryTouchAndReadsWithNone) {
  OpAccess write{{}, {Range(0, 8)}}, read{{Range(4, 12)}, {}}, apart{{Range(8, 16)}, {}};
  EXPECT_TRUE(Conflict(write, write));
  EXPECT_TRUE(Conflict(write, read));
  EXPECT_TRUE(Conflict(read, write));
  EXPECT_FALSE(Conflict(read, read));
  EXPECT_FALSE(Conflict(write, apart));
}

TEST(Hazards, E4E8FirstFitPacksLaterOpsIntoEarlierGroups) {
  // 1 conflicts with 0 and opens a group; 2 conflicts with 1 only and joins 0, before 1.
  std::vector<OpAccess> accesses = {{{}, {Range(0, 8)}},
                                    {{Range(0, 8)}, {Range(8, 16)}},
                                    {{Range(8, 16)}, {Range(16, 24)}},
                                    {{}, {Range(32, 40)}}};
  std::vector<size_t> all = {0, 1, 2, 3};
  EXPECT_THAT(PartitionGroups(all, accesses), ElementsAre(ElementsAre(0, 2, 3), ElementsAre(1)));
}

TEST(Hazards, ZeroLengthRangesConflictWithNothing) {
  std::vector<OpAccess> accesses = {{{}, {Range(0, 8)}}, {{}, {Range(4, 4)}}};
  std::vector<size_t> all = {0, 1};
  EXPECT_THAT(PartitionGroups(all, accesses), ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(ProgramOrderDependencies(accesses), ElementsAre(IsEmpty(), IsEmpty()));
}

TEST(Hazards, ProgramOrderNamesTheLastWriterAndTheReadersSince) {
  std::vector<OpAccess> accesses = {
      {{}, {Range(0, 64)}},               // 0 writes all
      {{Range(0, 32)}, {Range(64, 72)}},  // 1 reads the lower half
      {{Range(16, 48)}, {}},              // 2 reads across the middle
      {{}, {Range(0, 16)}},               // 3 overwrites what only 1 has read
      {{}, {Range(40, 64)}},              // 4 overwrites what 2 has read in part
      {{Range(0, 8)}, {}},                // 5 reads what 3 wrote
  };
  EXPECT_THAT(ProgramOrderDependencies(accesses),
              ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(0), ElementsAre(1),
                          ElementsAre(0, 2), ElementsAre(3)));
}

// Reported case 18: a 12-byte view at offset 512 inside another op's 40 KiB write.
TEST(Hazards, SmallViewInsideALargeWriteIsFound) {
  std::vector<OpAccess> accesses = {{{Range(512, 524)}, {Range(1 << 20, (1 << 20) + 4)}},
                                    {{}, {Range(0, 40 << 10)}}};
  EXPECT_TRUE(Conflict(accesses[0], accesses[1]));
  EXPECT_THAT(ProgramOrderDependencies(accesses), ElementsAre(IsEmpty(), ElementsAre(0)));
}

// Both functions against their definition, on random ranges.
TEST(Hazards, AgreeWithPairwiseConflictsOnRandomRanges) {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    std::vector<OpAccess> accesses(12);
    auto range = [&] {
      uint64_t begin = random() % 40;
      return Range(begin, begin + random() % 9, random() % 2);
    };
    for (OpAccess& access : accesses) {
      for (unsigned i = random() % 3; i > 0; --i) access.reads.push_back(range());
      for (unsigned i = random() % 3; i > 0; --i) access.writes.push_back(range());
    }
    std::vector<size_t> all(accesses.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;

    // First fit, straight from its definition.
    std::vector<std::vector<size_t>> expected;
    for (size_t op : all) {
      auto fits = [&](const std::vector<size_t>& group) {
        return std::none_of(group.begin(), group.end(),
                            [&](size_t other) { return Conflict(accesses[op], accesses[other]); });
      };
      auto group = std::find_if(expected.begin(), expected.end(), fits);
      if (group == expected.end()) group = expected.emplace(group);
      group->push_back(op);
    }
    EXPECT_EQ(PartitionGroups(all, accesses), expected);

    // The closure of the dependencies holds every conflicting pair, and every edge is a conflict.
    std::vector<std::vector<size_t>> after = ProgramOrderDependencies(accesses);
    std::vector<std::vector<bool>> reaches(all.size(), std::vector<bool>(all.size()));
    for (size_t op : all) {
      for (size_t before : after[op]) {
        ASSERT_LT(before, op);
        EXPECT_TRUE(Conflict(accesses[before], accesses[op]));
        reaches[op][before] = true;
        for (size_t i = 0; i < before; ++i) {
          if (reaches[before][i]) reaches[op][i] = true;
        }
      }
      for (size_t earlier = 0; earlier < op; ++earlier) {
        if (Conflict(accesses[earlier], accesses[op])) {
          EXPECT_TRUE(reaches[op][earlier]) << earlier << " before " << op;
        }
      }
    }
  }
}

}  // namespace
}  // namespace svod
