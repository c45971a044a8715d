#include "plan/buffer.h"

#include <algorithm>
#include <cstring>

#include "gmock/gmock.h"
#include "tests/unit/plan/fake_kernels.h"

namespace svod {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(Buffer, IsAllocatedWhenFirstWantedAlignedAndZero) {
  auto allocator = std::make_shared<BufferAllocator>();
  Buffer buffer = Must(Buffer::Create(100, allocator));
  EXPECT_FALSE(buffer.is_allocated());
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_EQ(allocator->live_bytes(), 0);
  EXPECT_THAT(buffer.Read(), Each(std::byte{0}));
  EXPECT_EQ(buffer.Read().size(), 100u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
  EXPECT_EQ(allocator->live_bytes(), 100);
}

TEST(Buffer, CopiesAreTheSameBufferAndViewsAreNot) {
  Buffer buffer = Bytes(64);
  Buffer copy;
  copy = buffer;
  Buffer view = Must(buffer.View(16, 8));
  EXPECT_EQ(copy.id(), buffer.id());
  EXPECT_NE(view.id(), buffer.id());
  EXPECT_EQ(view.storage_id(), buffer.storage_id());
  EXPECT_EQ(Must(view.View(4, 4)).offset_bytes(), 20);
  SVOD_EXPECT_OK(view.CopyFrom<int32_t>({1, 2}));
  EXPECT_THAT(buffer.ReadAs<int32_t>().subspan(3, 4), ElementsAre(0, 1, 2, 0));
  EXPECT_EQ(view.data(), buffer.data() + 16);
}

TEST(Buffer, ViewsStayInside) {
  Buffer buffer = Bytes(64);
  EXPECT_TRUE(buffer.View(64, 0).ok());
  for (auto [offset, size] : std::vector<std::pair<int64_t, int64_t>>{
           {60, 5}, {-1, 4}, {0, -1}, {65, 0}, {INT64_MAX, 1}, {1, INT64_MAX}}) {
    ExpectError(buffer.View(offset, size).status(), absl::StatusCode::kInvalidArgument,
                absl::StrCat("buffer: view of ", size, " bytes at offset ", offset,
                             " leaves a buffer of 64 bytes"));
  }
  ExpectError(Buffer().View(0, 0).status(), absl::StatusCode::kFailedPrecondition,
              "buffer: view of the null buffer");
}

TEST(Buffer, CountsBytesAndRefusesThoseBeyondTheLimit) {
  auto allocator = std::make_shared<BufferAllocator>(1000);
  Buffer first = Must(Buffer::Create(600, allocator));
  SVOD_ASSERT_OK(first.Allocate());
  Buffer second = Must(Buffer::Create(500, allocator));
  ExpectError(second.Allocate(), absl::StatusCode::kResourceExhausted,
              "buffer: allocating 500 bytes beside 600 live ones, limit 1000");
  EXPECT_TRUE(second.Read().empty());
  first = Buffer();  // the last handle frees the memory
  EXPECT_EQ(allocator->live_bytes(), 0);
  SVOD_EXPECT_OK(second.Allocate());
  EXPECT_EQ(allocator->live_bytes(), 500);
  EXPECT_EQ(allocator->peak_bytes(), 600);
}

TEST(Buffer, SizesThatNoMachineHasAreErrors) {
  for (int64_t size : {INT64_MAX, INT64_MAX / 2, int64_t{1} << 60}) {
    Buffer buffer = Must(Buffer::Create(size));
    EXPECT_EQ(buffer.Allocate().code(), absl::StatusCode::kResourceExhausted) << size;
  }
  EXPECT_EQ(Buffer::Create(-1).status().code(), absl::StatusCode::kInvalidArgument);
}

// Large ones are mapped by themselves, at a multiple of a huge page.
TEST(Buffer, LargeOnesAreZeroedAndFreed) {
  auto allocator = std::make_shared<BufferAllocator>();
  for (int64_t size : {(int64_t{2} << 20) - 1, int64_t{2} << 20, (int64_t{6} << 20) + 5}) {
    Buffer buffer = Must(Buffer::Create(size, allocator));
    SVOD_ASSERT_OK(buffer.Allocate());
    absl::Span<const std::byte> bytes = buffer.Read();
    ASSERT_EQ(static_cast<int64_t>(bytes.size()), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % kBufferAlignment, 0);
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), std::byte{0}), size);
    SVOD_EXPECT_OK(buffer.CopyFrom(std::vector<std::byte>(bytes.size(), std::byte{7})));
    EXPECT_EQ(buffer.Read().back(), std::byte{7});
    buffer = Buffer();
    EXPECT_EQ(allocator->live_bytes(), 0);
  }
}

TEST(Buffer, ViewsKeepTheirStorageAlive) {
  Buffer view;
  {
    Buffer buffer = Bytes(64);
    SVOD_ASSERT_OK(buffer.CopyFrom(std::vector<std::byte>(64, std::byte{7})));
    view = Must(buffer.View(8, 8));
  }
  EXPECT_THAT(view.Read(), Each(std::byte{7}));
}

TEST(Buffer, WrapsForeignMemoryWithItsOwner) {
  auto owner = std::make_shared<std::vector<int64_t>>(4, 5);
  std::weak_ptr<std::vector<int64_t>> alive = owner;
  Buffer buffer = Must(Buffer::Wrap(owner->data(), 32, owner));
  owner.reset();
  EXPECT_FALSE(alive.expired());
  EXPECT_TRUE(buffer.is_allocated());
  EXPECT_THAT(buffer.ReadAs<int64_t>(), Each(5));
  buffer = Buffer();
  EXPECT_TRUE(alive.expired());
}

TEST(Buffer, RefusesForeignMemoryThatCannotBe) {
  int64_t value = 0;
  ExpectError(Buffer::Wrap(nullptr, 8).status(), absl::StatusCode::kInvalidArgument,
              "buffer: null memory of 8 bytes");
  ExpectError(Buffer::Wrap(&value, -8).status(), absl::StatusCode::kInvalidArgument,
              "buffer: size, got -8 bytes, expected at least 0");
  auto* last = reinterpret_cast<void*>(~uintptr_t{7});
  EXPECT_EQ(Buffer::Wrap(last, 16).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Must(Buffer::Wrap(nullptr, 0)).is_allocated());
}

TEST(Buffer, ReadOnlyMemoryIsNotWritten) {
  const int64_t value = 3;
  Buffer buffer = Must(Buffer::WrapConst(&value, 8));
  EXPECT_TRUE(Must(buffer.View(0, 4)).read_only());
  ExpectError(buffer.CopyFrom(Bytes(8)), absl::StatusCode::kFailedPrecondition,
              "buffer: memory is read-only");
  EXPECT_EQ(buffer.ReadAs<int64_t>()[0], 3);
}

TEST(Buffer, CopiesBetweenOverlappingViewsAndRefusesOtherSizes) {
  Buffer buffer = Bytes(32);
  SVOD_ASSERT_OK(buffer.CopyFrom<int64_t>({1, 2, 3, 4}));
  SVOD_ASSERT_OK(Must(buffer.View(8, 24)).CopyFrom(Must(buffer.View(0, 24))));
  EXPECT_THAT(buffer.ReadAs<int64_t>(), ElementsAre(1, 1, 2, 3));
  ExpectError(buffer.CopyFrom(Bytes(8)), absl::StatusCode::kInvalidArgument,
              "buffer: copy, got 8 bytes, expected 32");
}

TEST(Buffer, NullBufferHasNothing) {
  Buffer null;
  EXPECT_EQ(null.id(), 0u);
  EXPECT_TRUE(null.Read().empty());
  EXPECT_EQ(null.Allocate().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(null.Write().status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace svod
