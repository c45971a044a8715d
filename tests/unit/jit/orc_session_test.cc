#include "jit/orc_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/unit/jit/test_objects.h"

namespace svod {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<OrcSession> Make(const SessionOptions& options = {}) {
  auto session = OrcSession::Create(options);
  EXPECT_TRUE(session.ok()) << session.status();
  return *session;
}

int Call(const LinkedCode& code) { return code.function(nullptr, nullptr, 0, nullptr); }

void ExpectError(const absl::StatusOr<LinkedCode>& code, absl::StatusCode expected,
                 absl::string_view message) {
  EXPECT_EQ(code.status().code(), expected) << code.status();
  EXPECT_THAT(std::string(code.status().message()), HasSubstr(std::string(message)));
}

int64_t CountMappings() {
  std::ifstream maps("/proc/self/maps");
  int64_t lines = 0;
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

TEST(OrcSessionTest, LinkedCodeRunsAndIsSmall) {
  auto session = Make();
  auto code = session->Link(ObjectThatReturns("f", 42), "f");
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(Call(*code), 42);
  EXPECT_EQ(code->size_bytes, 64);
  EXPECT_EQ(session->usage().num_kernels, 1);
  EXPECT_EQ(session->usage().live_code_bytes, 64);
}

TEST(OrcSessionTest, CodeReadsItsOwnConstants) {
  auto session = Make();
  auto code = session->Link(ObjectThatReturns("f", 7, 4096), "f");
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(Call(*code), 7);
  EXPECT_GE(code->size_bytes, 4096);
}

TEST(OrcSessionTest, DroppingTheLastOwnerReturnsTheMemory) {
  auto session = Make();
  auto code = session->Link(ObjectThatReturns("f", 1), "f");
  ASSERT_TRUE(code.ok());
  std::shared_ptr<const void> second = code->owner;
  code->owner = nullptr;
  EXPECT_EQ(Call(*code), 1);
  second = nullptr;
  EXPECT_EQ(session->usage().num_kernels, 0);
  EXPECT_EQ(session->usage().live_code_bytes, 0);
}

TEST(OrcSessionTest, CodeOutlivesTheSessionHandle) {
  auto session = Make();
  auto code = session->Link(ObjectThatReturns("f", 5), "f");
  session = nullptr;
  EXPECT_EQ(Call(*code), 5);
}

TEST(OrcSessionTest, OneEntryMayLiveManyTimes) {
  auto session = Make();
  std::vector<LinkedCode> codes;
  for (int i = 0; i < 5; ++i) codes.push_back(*session->Link(ObjectThatReturns("f", i), "f"));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Call(codes[i]), i);
  codes.erase(codes.begin() + 1);
  codes.push_back(*session->Link(ObjectThatReturns("f", 9), "f"));
  EXPECT_EQ(Call(codes[0]), 0);
  EXPECT_EQ(Call(codes[4]), 9);
  EXPECT_EQ(session->usage().num_kernels, 5);
}

// ORC resolves any symbol of the process by default; a kernel must reach none.
TEST(OrcSessionTest, CallsIntoTheProcessAreRefusedByName) {
  auto session = Make();
  ExpectError(session->Link(ObjectOfIr("declare i32 @system(ptr)\n"
                                       "define i32 @f(ptr %b) {\n"
                                       "  %r = call i32 @system(ptr %b)\n  ret i32 %r\n}\n"),
                            "f"),
              absl::StatusCode::kInternal,
              "orc: code refers to system, expected it to call nothing");
}

TEST(OrcSessionTest, WritableDataIsRefused) {
  auto session = Make();
  ExpectError(session->Link(ObjectOfIr("@g = internal global i32 5\n"
                                       "define i32 @f() {\n  %v = load volatile i32, ptr @g\n"
                                       "  store volatile i32 0, ptr @g\n  ret i32 %v\n}\n"),
                            "f"),
              absl::StatusCode::kInternal,
              "orc: linking f: writable section .data, expected only code and constants");
  // The name is free again, and nothing is left behind.
  EXPECT_EQ(session->usage().num_kernels, 0);
  EXPECT_EQ(session->usage().live_code_bytes, 0);
  EXPECT_EQ(Call(*session->Link(ObjectThatReturns("f", 3), "f")), 3);
}

TEST(OrcSessionTest, MissingEntryIsNamed) {
  auto session = Make();
  ExpectError(session->Link(ObjectThatReturns("f", 1), "g"), absl::StatusCode::kInternal,
              "orc: the object has no function g");
}

TEST(OrcSessionTest, WhatIsNoObjectIsAnError) {
  auto session = Make();
  ExpectError(session->Link("", "f"), absl::StatusCode::kInternal, "orc: reading the object: ");
  ExpectError(session->Link("int main() {}", "f"), absl::StatusCode::kInternal,
              "orc: reading the object: ");
  std::string object = ObjectThatReturns("f", 1);
  ExpectError(session->Link(absl::string_view(object).substr(0, object.size() / 2), "f"),
              absl::StatusCode::kInternal, "orc: reading the object: ");
  std::string foreign = object;
  foreign[18] = static_cast<char>(0xf3);  // e_machine: RISC-V
  foreign[19] = 0;
  ExpectError(session->Link(foreign, "f"), absl::StatusCode::kInternal,
              "orc: got an object for riscv64, expected ");
  std::string executable = object;
  executable[16] = 2;  // e_type: ET_EXEC
  ExpectError(session->Link(executable, "f"), absl::StatusCode::kInternal,
              "orc: got a linked file, expected a relocatable object");
}

TEST(OrcSessionTest, CodeMemoryLimitIsResourceExhaustedWithItsReason) {
  SessionOptions options;
  options.code_memory_limit_bytes = 1 << 20;
  auto session = Make(options);
  auto large = session->Link(ObjectThatReturns("f", 1, 1 << 19), "f");
  ASSERT_TRUE(large.ok()) << large.status();
  ExpectError(session->Link(ObjectThatReturns("g", 1, 1 << 19), "g"),
              absl::StatusCode::kResourceExhausted, "orc: linking g: code memory: 1048576 bytes");
  EXPECT_EQ(session->usage().num_kernels, 1);
  large->owner = nullptr;
  EXPECT_TRUE(session->Link(ObjectThatReturns("g", 1, 1 << 19), "g").ok());
}

TEST(OrcSessionTest, LlvmsOwnMemoryManagerIsTheFallback) {
  SessionOptions options;
  options.packed_memory = false;
  auto session = Make(options);
  auto code = session->Link(ObjectThatReturns("f", 8, 256), "f");
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(Call(*code), 8);
  EXPECT_GE(code->size_bytes, 256);
  EXPECT_FALSE(session->usage().uses_packed_memory);
}

TEST(OrcSessionTest, ManyKernelsShareAFewMappings) {
  auto session = Make();
  std::vector<LinkedCode> codes;
  std::string object = ObjectThatReturns("f", 6);
  codes.push_back(*session->Link(object, "f"));
  int64_t before = CountMappings();
  for (int i = 0; i < 600; ++i) {
    std::string name = absl::StrCat("f", i);
    codes.push_back(*session->Link(ObjectThatReturns(name, i), name));
  }
  EXPECT_LE(CountMappings() - before, 20);
  EXPECT_EQ(Call(codes[345 + 1]), 345);
}

TEST(OrcSessionTest, DebuggerAndProfilerPluginsLoad) {
  SessionOptions options;
  options.gdb = true;
  auto session = Make(options);
  auto code = session->Link(ObjectThatReturns("f", 4), "f");
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(Call(*code), 4);
  code->owner = nullptr;
  EXPECT_EQ(session->usage().num_kernels, 0);

  std::string directory = ::testing::TempDir();
  setenv("JITDUMPDIR", directory.c_str(), 1);
  options.gdb = false;
  options.perf = true;
  session = Make(options);
  code = session->Link(ObjectThatReturns("f", 4), "f");
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(Call(*code), 4);
}

// std::thread, since the thread sanitizer does not see into TBB.
TEST(OrcSessionConcurrencyTest, ThreadsLinkCallAndDrop) {
  auto session = Make();
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&session, t] {
      for (int i = 0; i < 60; ++i) {
        // Half of the names are shared between threads.
        std::string name = i % 2 == 0 ? absl::StrCat("f", i) : absl::StrCat("f", i, "_", t);
        auto code = session->Link(ObjectThatReturns(name, 100 * t + i), name);
        ASSERT_TRUE(code.ok()) << code.status();
        EXPECT_EQ(Call(*code), 100 * t + i);
        auto failed = session->Link(ObjectThatReturns(name, 1), "no_such_entry");
        EXPECT_FALSE(failed.ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(session->usage().num_kernels, 0);
  EXPECT_EQ(session->usage().live_code_bytes, 0);
}

}  // namespace
}  // namespace svod
