#include "jit/code_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

namespace svod {
namespace {

using ::testing::HasSubstr;
using Piece = CodeMemory::Piece;

std::shared_ptr<CodeMemory> Make(size_t slab_bytes = 1 << 16, size_t limit_bytes = 1 << 24) {
  auto memory = CodeMemory::Create({slab_bytes, limit_bytes});
  EXPECT_TRUE(memory.ok()) << memory.status();
  return *memory;
}

TEST(CodeMemoryTest, BothViewsShowTheSameBytes) {
  auto memory = Make();
  Piece piece = *memory->Allocate(100, 16);
  EXPECT_NE(piece.write, piece.execute);
  EXPECT_EQ(piece.size_bytes, 128u);
  memset(piece.write, 0x5a, piece.size_bytes);
  for (size_t i = 0; i < piece.size_bytes; ++i) ASSERT_EQ(piece.execute[i], 0x5a) << i;
}

TEST(CodeMemoryTest, PiecesAreAlignedAndDoNotOverlap) {
  auto memory = Make();
  std::vector<Piece> pieces;
  for (size_t alignment : {1, 16, 64, 256, 4096, 128, 1}) {
    for (size_t size : {1, 63, 64, 65, 1000, 5000}) {
      Piece piece = *memory->Allocate(size, alignment);
      EXPECT_GE(piece.size_bytes, size);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(piece.execute) % std::max<size_t>(alignment, 64), 0u);
      pieces.push_back(piece);
    }
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.execute < b.execute; });
  for (size_t i = 1; i < pieces.size(); ++i) {
    EXPECT_LE(pieces[i - 1].execute + pieces[i - 1].size_bytes, pieces[i].execute);
  }
}

TEST(CodeMemoryTest, FreedBytesBecomeBreakpoints) {
  auto memory = Make();
  Piece kept = *memory->Allocate(64, 1);
  Piece piece = *memory->Allocate(64, 1);
  memset(kept.write, 0x11, 64);
  memset(piece.write, 0x22, 64);
  memory->Free(piece.execute);
#if defined(__x86_64__)
  EXPECT_EQ(static_cast<unsigned char>(piece.execute[0]), 0xcc);
  EXPECT_EQ(static_cast<unsigned char>(piece.execute[63]), 0xcc);
#endif
  EXPECT_EQ(kept.execute[63], 0x11);
}

TEST(CodeMemoryTest, FreedGapsMergeAndAreUsedAgain) {
  auto memory = Make(4096, 4096);
  std::vector<Piece> pieces;
  for (int i = 0; i < 64; ++i) pieces.push_back(*memory->Allocate(64, 1));
  EXPECT_EQ(memory->Allocate(64, 1).status().code(), absl::StatusCode::kResourceExhausted);
  // Every order of neighbours: the middle last, the first last, the last last.
  for (int i : {0, 2, 1, 5, 4, 3}) memory->Free(pieces[i].execute);
  Piece whole = *memory->Allocate(6 * 64, 1);
  EXPECT_EQ(whole.execute, pieces[0].execute);
}

TEST(CodeMemoryTest, EmptySlabsGoBackExceptOne) {
  auto memory = Make(4096, 1 << 20);
  std::vector<Piece> pieces;
  for (int i = 0; i < 64 * 10; ++i) pieces.push_back(*memory->Allocate(64, 1));
  EXPECT_EQ(memory->usage().num_slabs, 10);
  EXPECT_EQ(memory->usage().live_bytes, 40960);
  for (const Piece& piece : pieces) memory->Free(piece.execute);
  EXPECT_EQ(memory->usage().num_slabs, 1);
  EXPECT_EQ(memory->usage().mapped_bytes, 4096);
  EXPECT_EQ(memory->usage().live_bytes, 0);
  EXPECT_EQ(memory->usage().num_pieces, 0);
}

TEST(CodeMemoryTest, PieceLargerThanASlabGetsOneOfItsOwnAndGivesItBack) {
  auto memory = Make(4096, 1 << 20);
  Piece piece = *memory->Allocate(100'000, 4096);
  memset(piece.write, 1, piece.size_bytes);
  EXPECT_EQ(piece.execute[99'999], 1);
  EXPECT_EQ(memory->usage().mapped_bytes, 4096 + 102400);
  memory->Free(piece.execute);
  EXPECT_EQ(memory->usage().mapped_bytes, 4096);
}

TEST(CodeMemoryTest, LimitIsResourceExhaustedAndLeavesTheRestUsable) {
  auto memory = Make(4096, 8192);
  Piece piece = *memory->Allocate(4096, 1);
  EXPECT_TRUE(memory->Allocate(4096, 1).ok());
  absl::Status status = memory->Allocate(64, 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("code memory: 8192 bytes are in use and 4096 more wanted, expected at most "
                        "8192"));
  EXPECT_EQ(memory->Allocate(size_t{1} << 62, 1).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(memory->Allocate(64, 8192).status().code(), absl::StatusCode::kResourceExhausted);
  memory->Free(piece.execute);
  EXPECT_TRUE(memory->Allocate(64, 1).ok());
}

TEST(CodeMemoryTest, PieceSizeAtKnowsEveryByteOfAPieceAndNothingElse) {
  auto memory = Make();
  EXPECT_EQ(memory->PieceSizeAt(&memory), 0u);
  Piece first = *memory->Allocate(64, 1);
  Piece second = *memory->Allocate(200, 1);
  EXPECT_EQ(memory->PieceSizeAt(second.execute), 256u);
  EXPECT_EQ(memory->PieceSizeAt(second.execute + 255), 256u);
  EXPECT_EQ(memory->PieceSizeAt(second.execute + 256), 0u);
  memory->Free(second.execute);
  EXPECT_EQ(memory->PieceSizeAt(second.execute), 0u);
  EXPECT_EQ(memory->PieceSizeAt(first.execute), 64u);
}

// Contents are checked against what was written: an overlap or a bad merge would show.
TEST(CodeMemoryTest, RandomAllocationsKeepTheirBytes) {
  auto memory = Make(1 << 14, 1 << 22);
  std::mt19937 random(1);
  std::vector<std::pair<Piece, char>> live;
  for (int step = 0; step < 20'000; ++step) {
    if (live.size() > 200 || (!live.empty() && random() % 3 == 0)) {
      std::swap(live[random() % live.size()], live.back());
      auto [piece, fill] = live.back();
      ASSERT_EQ(piece.execute[0], fill);
      ASSERT_EQ(piece.execute[piece.size_bytes - 1], fill);
      memory->Free(piece.execute);
      live.pop_back();
    } else {
      size_t size = 1 + random() % (random() % 50 == 0 ? 40'000 : 1500);
      Piece piece = *memory->Allocate(size, size_t{1} << random() % 9);
      char fill = static_cast<char>(random());
      memset(piece.write, fill, piece.size_bytes);
      live.push_back({piece, fill});
    }
  }
  for (auto [piece, fill] : live) memory->Free(piece.execute);
  EXPECT_EQ(memory->usage().live_bytes, 0);
  EXPECT_EQ(memory->usage().num_slabs, 1);
}

// The pages are shared with a forked child, which must not hand them out a second time.
TEST(CodeMemoryTest, ForkedChildLeavesItsParentsPagesAlone) {
  auto memory = Make(4096, 1 << 20);
  Piece piece = *memory->Allocate(64, 1);
  memset(piece.write, 0x33, 64);
  pid_t child = fork();
  if (child == 0) {
    bool good = piece.execute[0] == 0x33;
    memory->Free(piece.execute);
    for (int i = 0; i < 200; ++i) {
      auto other = memory->Allocate(64, 1);
      good = good && other.ok();
      memset(other->write, 0x44, 64);
    }
    _exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(piece.execute[i], 0x33) << i;
  for (int i = 0; i < 63; ++i) {
    Piece other = *memory->Allocate(64, 1);
    for (int j = 0; j < 64; ++j) ASSERT_NE(other.execute[j], 0x44);
  }
}

TEST(CodeMemoryConcurrencyTest, ThreadsAllocateAndFree) {
  auto memory = Make(1 << 14, 1 << 24);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&memory, t] {
      std::vector<Piece> mine;
      for (int i = 0; i < 2000; ++i) {
        Piece piece = *memory->Allocate(64 + i % 700, 16);
        memset(piece.write, t, piece.size_bytes);
        mine.push_back(piece);
        if (mine.size() > 20) {
          Piece& old = mine[i % mine.size()];
          EXPECT_EQ(old.execute[old.size_bytes - 1], t);
          EXPECT_GT(memory->PieceSizeAt(old.execute), 0u);
          memory->Free(old.execute);
          std::swap(old, mine.back());
          mine.pop_back();
        }
      }
      for (const Piece& piece : mine) memory->Free(piece.execute);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory->usage().live_bytes, 0);
}

}  // namespace
}  // namespace svod
