// Loads and stores: vectors, gathers and scatters, gates, and that nothing behind a false gate is
// touched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "jit/target.h"
#include "tests/unit/jit/text_kernel.h"

namespace svod {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

template <typename T>
std::vector<T> Count(size_t count, T first = 0) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// --- Vectors -------------------------------------------------------------------------------------

// Every lane count that is no power of two reads and writes its own bytes only.
TEST(LowerMemoryTest, OddLanesTouchTheirOwnBytes) {
  for (const char* dtype : {"i8", "i16", "i32", "i64"}) {
    for (int lanes : {2, 3, 5, 7, 13, 16, 24, 31}) {
      SCOPED_TRACE(absl::StrCat(dtype, "x", lanes));
      std::string text = absl::StrCat("kernel @k(%y: inout ", dtype, "[40], %x: ", dtype,
                                      "[40]) {\n  %v = load %x[3] : ", dtype, "x", lanes,
                                      "\n  %w = add %v, %v\n  store %y[2], %w\n}");
      auto check = [&](auto zero) {
        using T = decltype(zero);
        auto [y, x] = RunEverywhere(text, std::vector<T>(40, T{77}), Count<T>(40));
        for (int i = 0; i < 40; ++i) {
          bool inside = i >= 2 && i < 2 + lanes;
          EXPECT_EQ(y[static_cast<size_t>(i)], inside ? T(2 * (i + 1)) : T{77}) << i;
        }
      };
      if (std::string(dtype) == "i8") check(int8_t{0});
      if (std::string(dtype) == "i16") check(int16_t{0});
      if (std::string(dtype) == "i32") check(int32_t{0});
      if (std::string(dtype) == "i64") check(int64_t{0});
    }
  }
}

// Tables shorter and longer than registers, constant or not; numbers count modulo the table.
TEST(LowerMemoryTest, PicksLanesByNumber) {
  for (int entries : {2, 4, 8, 16, 32, 128}) {
    for (int lanes : {1, 3, 4, 8, 16, 31, 32}) {
      for (bool is_constant : {false, true}) {
        SCOPED_TRACE(absl::StrCat(entries, " entries, ", lanes, " lanes, ", is_constant));
        auto check = [&](absl::string_view dtype, auto zero) {
          using T = decltype(zero);
          std::string table = absl::StrCat("  %t = load %x[0] : ", dtype, "x", entries, "\n");
          if (is_constant) {
            table = "  %t = stack";
            for (int i = 0; i < entries; ++i) {
              absl::StrAppend(&table, i == 0 ? " " : ", ", i + 3, dtype[0] == 'f' ? ".0:" : ":",
                              dtype);
            }
            table += "\n  %unused = load %x[0]\n  store %y[39], %unused\n";
          }
          std::string text = absl::StrCat("kernel @k(%y: inout ", dtype, "[40], %x: ", dtype,
                                          "[128], %n: i32[40]) {\n", table, "  %i = load %n[1]",
                                          lanes == 1 ? "" : absl::StrCat(" : i32x", lanes),
                                          "\n  %v = pick %t, %i\n  store %y[2], %v\n}");
          std::vector<int32_t> numbers;
          for (int i = 0; i < 40; ++i) numbers.push_back(i * i * 7919 - 40000);
          auto y = std::get<0>(
              RunEverywhere(text, std::vector<T>(40, T{77}), Count<T>(128, T{3}), numbers));
          for (int i = 0; i < lanes; ++i) {
            int number = numbers[static_cast<size_t>(i) + 1] & (entries - 1);
            EXPECT_EQ(y[static_cast<size_t>(i) + 2], static_cast<T>(number + 3)) << i;
          }
        };
        check("f32", float{});
        check("i32", int32_t{});
        if (lanes == 8) check("f64", double{});
        if (lanes == 16 && entries < 128) check("i8", int8_t{});
      }
    }
  }
}

// Addresses that are aligned take the way past the caches, others do not; both store the same.
TEST(LowerMemoryTest, StreamsStoreAtEveryAlignment) {
  for (const char* dtype : {"f32x16", "f32x32", "f32x4", "f32x7", "f64x8", "i8x64"}) {
    for (int first : {0, 1, 3, 4, 8, 16}) {
      SCOPED_TRACE(absl::StrCat(dtype, " at ", first));
      std::string element(dtype, std::string(dtype).find('x'));
      std::string text = absl::StrCat(
          "kernel @k(%y: out ", element, "[200], %x: ", element,
          "[200]) {\n  %i = range 2 loop\n  %j = mul %i, 64\n  %at = add %j, ", first,
          "\n  %v = load %x[%at] : ", dtype, "\n  store %y[%at], %v, stream\n", "  end %i\n}");
      if (element == "f32") RunEverywhere(text, Count<float>(200, 5), Count<float>(200));
      if (element == "f64") RunEverywhere(text, Count<double>(200, 5), Count<double>(200));
      if (element == "i8") RunEverywhere(text, Count<int8_t>(200, 5), Count<int8_t>(200));
    }
  }
}

// Reported case 8: a 4-wide kernel on a view at byte offset 4 of aligned memory, even though the
// program wishes for more alignment.
TEST(LowerMemoryTest, ReportedVectorsOnAMisalignedView) {
  Module module = ParseKernel(R"(kernel @k(%y: out f32[8], %x: f32[8]) {
  %i = range 2 loop
    %p = mul %i, 4
    %v = load %x[%p], align=16 : f32x4
    %w = mul %v, 2.0
    store %y[%p], %w, align=16
  end %i
})");
  for (const auto& [name, target] : RunnableTargets()) {
    auto kernel = Load(module.functions[0].root, target);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    alignas(64) float x[9], y[9] = {};
    std::iota(x, x + 9, 0.0f);
    kernel->Run({y + 1, x + 1});
    EXPECT_THAT(y, ElementsAre(0, 2, 4, 6, 8, 10, 12, 14, 16)) << name;
  }
}

// align below the element's size is a promise that less is known: packed fields.
TEST(LowerMemoryTest, LessAlignmentThanTheElement) {
  Module module = ParseKernel(R"(kernel @k(%y: out f64[2], %x: f64[2]) {
  %v = load %x[0], align=1 : f64x2
  store %y[0], %v, align=1
})");
  for (const auto& [name, target] : RunnableTargets()) {
    auto kernel = Load(module.functions[0].root, target);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    alignas(64) char x[32] = {}, y[32] = {};
    double values[2] = {1.5, -2.5};
    std::memcpy(x + 3, values, 16);
    kernel->Run({y + 5, x + 3});
    EXPECT_EQ(std::memcmp(y + 5, values, 16), 0) << name;
  }
}

TEST(LowerMemoryTest, BoolsAreBytesOfZeroAndOne) {
  auto [y, z, x] =
      RunEverywhere(R"(kernel @k(%y: out bool[16], %z: out bool[1], %x: bool[16]) {
  %v = load %x[0] : boolx16
  %n = not %v
  store %y[0], %n
  %s = load %x[3]
  store %z[0], %s
})",
                    std::vector<uint8_t>(16, 0xcc), std::vector<uint8_t>(1, 0xcc),
                    std::vector<uint8_t>{0, 1, 0, 1, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1});
  EXPECT_THAT(y, ElementsAre(1, 0, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0));
  EXPECT_THAT(z, ElementsAre(1));
}

TEST(LowerMemoryTest, StackSplatAndLanes) {
  auto [y, x] = RunEverywhere(R"(kernel @k(%y: out i32[12], %x: i32[4]) {
  %a = load %x[0]
  %b = load %x[1]
  %c = load %x[2]
  %s = stack %a, %b, %c
  %t = lanes %s, [2, 0, 0, 1]
  store %y[0], %t
  %u = lanes %t, [3]
  %v = splat %u : i32x5
  store %y[4], %v
  %w = stack %u
  store %y[9], %w
  %z = lanes %u, [0, 0]
  store %y[10], %z
})",
                              std::vector<int32_t>(12), std::vector<int32_t>{5, 6, 7, 8});
  EXPECT_THAT(y, ElementsAre(7, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6, 6));
}

// --- Gathers and scatters ------------------------------------------------------------------------

TEST(LowerMemoryTest, GatherWithAndWithoutGates) {
  for (int lanes : {3, 8, 16, 40}) {
    std::string type = absl::StrCat("x", lanes);
    auto [y, p, g, x] = RunEverywhere(
        absl::StrCat("kernel @k(%y: out f32[80], %p: i64[40], %g: bool[40], %x: f32[64]) {\n",
                     "  %n = load %p[0] : i64", type, "\n  %q = cast %n : index", type,
                     "\n  %m = load %g[0] : bool", type, "\n  %a = splat -1.0 : f32", type,
                     "\n  %v = load %x[%q], gate=%m, alt=%a : f32", type,
                     "\n  store %y[0], %v\n  %w = load %x[%q], gate=%m : f32", type,
                     "\n  store %y[40], %w\n}"),
        std::vector<float>(80, 5),
        [&] {
          std::vector<int64_t> positions(40);
          // Where the gate is false the position is far outside.
          for (size_t i = 0; i < 40; ++i) {
            positions[i] = i % 3 == 1 ? int64_t{1} << 55 : static_cast<int64_t>(i * 37 % 64);
          }
          return positions;
        }(),
        [&] {
          std::vector<uint8_t> gates(40, 1);
          for (size_t i = 1; i < 40; i += 3) gates[i] = 0;
          return gates;
        }(),
        Count<float>(64));
    for (size_t i = 0; i < 40; ++i) {
      bool inside = static_cast<int>(i) < lanes;
      float value = static_cast<float>(i * 37 % 64);
      EXPECT_EQ(y[i], !inside ? 5 : i % 3 == 1 ? -1 : value) << i;
      EXPECT_EQ(y[40 + i], !inside ? 5 : i % 3 == 1 ? 0 : value) << i;
    }
  }
}

// Lanes are stored in order: of several that name one element the last one stays.
TEST(LowerMemoryTest, ScatterKeepsTheLastOfEqualPositions) {
  auto [y, x] = RunEverywhere(R"(kernel @k(%y: inout i16[8], %x: i16[8]) {
  %v = load %x[0] : i16x8
  %p = stack 1:index, 3, 1, 5, 3, 1, 7, 0
  %m = stack true:bool, true, true, true, false, true, true, true
  store %y[%p], %v, gate=%m
})",
                              std::vector<int16_t>(8, -1), Count<int16_t>(8, 10));
  EXPECT_THAT(y, ElementsAre(17, 15, -1, 11, -1, 13, -1, 16));
}

// Reported case 7: positions are 64 bits wide.
TEST(LowerMemoryTest, ReportedPositionsBeyondTwoToTheThirtyOne) {
  constexpr int64_t kElements = (int64_t{1} << 31) + 3;
  void* memory = mmap(nullptr, kElements, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no 2 GiB of address space";
  auto* bytes = static_cast<uint8_t*>(memory);
  bytes[0] = 3;
  bytes[kElements - 1] = 4;
  Module module = ParseKernel(R"(kernel @k(%y: out u8[4], %x: u8[2147483651]) {
  %p = stack 0:index, 2147483650
  %v = load %x[%p] : u8x2
  store %y[0], %v
  %w = load %x[2147483650]
  store %y[2], %w
})");
  for (const auto& [name, target] : RunnableTargets()) {
    auto kernel = Load(module.functions[0].root, target);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    uint8_t y[4] = {};
    kernel->Run({y, memory});
    EXPECT_THAT(y, ElementsAre(3, 4, 4, 0)) << name;
  }
  munmap(memory, kElements);
}

// --- Gates ---------------------------------------------------------------------------------------

TEST(LowerMemoryTest, ConstantGates) {
  auto [y, x] = RunEverywhere(R"(kernel @k(%y: inout f32[16], %x: f32[4]) {
  %a = load %x[99], gate=false, alt=7.0
  store %y[0], %a
  %b = load %x[99], gate=false
  store %y[1], %b
  %c = load %x[2], gate=true
  store %y[2], %c
  store %y[99], %c, gate=false
  store %y[3], %c, gate=true
  %g = stack true:bool, false, true, false
  %d = load %x[0], gate=%g : f32x4
  store %y[4], %d
  store %y[8], %d, gate=%g
})",
                              std::vector<float>(16, -1), std::vector<float>{1, 2, 3, 4});
  EXPECT_THAT(y, ElementsAre(7, 0, 3, 3, 1, 0, 3, 0, 1, -1, 3, -1, -1, -1, -1, -1));
}

// A page that may not be touched, with `bytes` of memory right before it.
class GuardedMemory {
 public:
  GuardedMemory() {
    page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    base_ =
        static_cast<char*>(mmap(nullptr, 3 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + page_, page_, PROT_READ | PROT_WRITE);
  }
  ~GuardedMemory() { munmap(base_, 3 * page_); }
  template <typename T>
  T* Last(size_t count) {
    return reinterpret_cast<T*>(base_ + 2 * page_) - count;
  }
  template <typename T>
  T* First() {
    return reinterpret_cast<T*>(base_ + page_);
  }

 private:
  size_t page_;
  char* base_;
};

// From the reported cases ("also"): gated accesses at the last element before an unmapped page, as
// scalars, neighbours, masked neighbours, gathers and scatters, of every size of element.
TEST(LowerMemoryTest, ReportedGatesBeforeAnUnmappedPage) {
  for (const char* dtype : {"i8", "i16", "i32", "i64"}) {
    std::string text = R"(kernel @k(%y: inout T[10], %x: inout T[10]) {
  %i = range 16 loop
    %in = cmplt %i, 10
    %v = load %x[%i], gate=%in
    store %y[%i], %v, gate=%in
  end %i
  %j = range 3 loop
    %p = mul %j, 5
    %whole = cmplt %p, 6
    %w = load %x[%p], gate=%whole : Tx5
    store %y[%p], %w, gate=%whole
  end %j
  %k = range 4 loop
    %q = mul %k, 4
    %l = splat %q : indexx4
    %o = stack 0:index, 1, 2, 3
    %r = add %l, %o
    %end = splat 10 : indexx4
    %m = cmplt %r, %end
    %a = load %x[%q], gate=%m : Tx4
    %b = add %a, %a
    store %y[%q], %b, gate=%m
    %c = load %x[%r], gate=%m : Tx4
    %d = add %c, %c
    store %y[%r], %d, gate=%m
  end %k
})";
    text = absl::StrReplaceAll(
        text, {{"T[", absl::StrCat(dtype, "[")}, {"Tx", absl::StrCat(dtype, "x")}});
    Module module = ParseKernel(text);
    for (const auto& [name, target] : RunnableTargets()) {
      SCOPED_TRACE(absl::StrCat(dtype, " ", name));
      auto kernel = Load(module.functions[0].root, target);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      auto run = [&](auto zero) {
        using T = decltype(zero);
        GuardedMemory x, y;
        std::iota(x.Last<T>(10), x.Last<T>(10) + 10, T{1});
        kernel->Run({y.Last<T>(10), x.Last<T>(10)});
        for (int i = 0; i < 10; ++i) EXPECT_EQ(y.Last<T>(10)[i], T(2 * (i + 1))) << i;
      };
      if (std::string(dtype) == "i8") run(int8_t{0});
      if (std::string(dtype) == "i16") run(int16_t{0});
      if (std::string(dtype) == "i32") run(int32_t{0});
      if (std::string(dtype) == "i64") run(int64_t{0});
    }
  }
}

// Vectors without gates end right before the page and begin right after one, at every odd width.
TEST(LowerMemoryTest, VectorsBesideUnmappedPages) {
  for (int lanes : {1, 3, 5, 6, 7, 9, 11, 13, 15, 17, 23, 31, 33}) {
    std::string type = absl::StrCat("boolx", lanes);
    Module module = ParseKernel(absl::StrCat(
        "kernel @k(%y: out bool[", lanes, "], %x: bool[", lanes, "], %z: out f32[", lanes,
        "], %w: f32[", lanes, "]) {\n  %v = load %x[0] : ", type, "\n  store %y[0], %v\n",
        "  %u = load %w[0] : f32x", lanes, "\n  store %z[0], %u\n}"));
    for (const auto& [name, target] : RunnableTargets()) {
      SCOPED_TRACE(absl::StrCat(lanes, " ", name));
      auto kernel = Load(module.functions[0].root, target);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      GuardedMemory x, y, z, w;
      auto count = static_cast<size_t>(lanes);
      std::memset(x.Last<char>(count), 1, count);
      for (size_t i = 0; i < count; ++i) w.First<float>()[i] = static_cast<float>(i);
      kernel->Run(
          {y.Last<char>(count), x.Last<char>(count), z.Last<float>(count), w.First<float>()});
      EXPECT_EQ(y.Last<char>(count)[count - 1], 1);
      EXPECT_EQ(z.Last<float>(count)[count - 1], static_cast<float>(lanes - 1));
      kernel->Run({y.First<char>(), x.First<char>(), z.First<float>(), w.First<float>()});
      EXPECT_EQ(z.First<float>()[count - 1], static_cast<float>(lanes - 1));
    }
  }
}

}  // namespace
}  // namespace svod
