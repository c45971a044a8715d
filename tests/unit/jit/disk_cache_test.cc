#include "jit/disk_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "jit/orc_session.h"
#include "tests/unit/jit/test_objects.h"

namespace svod {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Each test gets a directory above its cache directory, which is removed with it.
class DiskCacheTest : public ::testing::Test {
 protected:
  DiskCacheTest() {
    std::string pattern = ::testing::TempDir() + "/svod_disk_cache_XXXXXX";
    root_ = mkdtemp(pattern.data());
    directory_ = root_ + "/a/b";
  }
  ~DiskCacheTest() override {
    chmod(directory_.c_str(), 0700);
    fs::remove_all(root_);
  }

  std::unique_ptr<DiskCache> Open(int64_t limit_bytes = 0) const {
    return DiskCache::Open({directory_, limit_bytes});
  }
  std::string PathOf(absl::string_view key) const {
    return absl::StrCat(directory_, "/", DiskCache::FileName(key));
  }
  static ObjectCode Object(int result) {
    ObjectCode object;
    object.entry = absl::StrCat("f", result);
    object.bytes = ObjectThatReturns(object.entry, result);
    object.scratch_bytes = 64 * result;
    return object;
  }
  static std::string ReadFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  static void WriteFile(const std::string& path, absl::string_view bytes) {
    fs::remove(path);  // ext4 flushes a file that is truncated and written again: 0.1 s and more
    std::ofstream file(path, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  int NumFiles() const {
    return static_cast<int>(std::distance(fs::directory_iterator(directory_), {}));
  }

  std::string root_;
  std::string directory_;
};

using DiskCacheConcurrencyTest = DiskCacheTest;

TEST_F(DiskCacheTest, StoredObjectComesBackWholeAlsoInAnotherInstance) {
  ObjectCode object = Object(3);
  Open()->Store("key", object);
  auto cache = Open();
  auto loaded = cache->Load("key");
  ASSERT_TRUE(loaded.has_value()) << cache->problem();
  EXPECT_EQ(loaded->bytes, object.bytes);
  EXPECT_EQ(loaded->entry, "f3");
  EXPECT_EQ(loaded->scratch_bytes, 192);
  EXPECT_EQ(loaded->lower_ms + loaded->code_gen_ms, 0);
  EXPECT_FALSE(cache->Load("other key").has_value());
  EXPECT_EQ(cache->stats().hits, 1);
  EXPECT_EQ(cache->stats().misses, 1);
  EXPECT_EQ(cache->stats().rejects, 0);
  EXPECT_EQ(cache->problem(), "");
}

TEST_F(DiskCacheTest, LoadedObjectRuns) {
  Open()->Store("key", Object(3));
  auto loaded = Open()->Load("key");
  auto session = OrcSession::Create();
  auto code = (*session)->Link(loaded->bytes, loaded->entry);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(code->function(nullptr, nullptr, 0, nullptr), 3);
}

TEST_F(DiskCacheTest, DirectoriesAndFilesAreForTheOwnerAlone) {
  Open()->Store("key", Object(1));
  struct stat info;
  ASSERT_EQ(stat(directory_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  ASSERT_EQ(stat(PathOf("key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(DiskCacheTest, DirectoryThatOthersCanReachIsRefusedWithTheReason) {
  Open()->Store("key", Object(1));
  chmod(directory_.c_str(), 0755);
  auto cache = Open();
  EXPECT_THAT(cache->problem(), HasSubstr("has mode 0755, expected 0700 (others can reach it)"));
  EXPECT_FALSE(cache->Load("key").has_value());
  cache->Store("key", Object(1));
  EXPECT_EQ(cache->stats().misses + cache->stats().writes + cache->stats().write_failures, 0);
  EXPECT_EQ(cache->List().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(cache->Clear().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(DiskCacheTest, DirectoryOfAnotherUserIsRefused) {
  Open();
  if (chown(directory_.c_str(), 12345, 12345) != 0) GTEST_SKIP() << "needs root";
  EXPECT_THAT(Open()->problem(), HasSubstr(" is owned by user 12345, expected "));
}

TEST_F(DiskCacheTest, FileOfAnotherUserIsRejected) {
  auto cache = Open();
  cache->Store("key", Object(1));
  if (chown(PathOf("key").c_str(), 12345, 12345) != 0) GTEST_SKIP() << "needs root";
  EXPECT_FALSE(cache->Load("key").has_value());
  EXPECT_THAT(cache->problem(), HasSubstr("is owned by another user"));
}

TEST_F(DiskCacheTest, PathThatIsAFileIsRefusedWithTheReason) {
  WriteFile(root_ + "/a", "no directory");
  auto cache = Open();
  EXPECT_THAT(cache->problem(),
              HasSubstr(absl::StrCat("disk cache: cannot open ", directory_, ": Not a directory")));
  EXPECT_FALSE(cache->Load("key").has_value());
}

TEST_F(DiskCacheTest, WhatStandsInAFilesPlaceIsAMiss) {
  auto cache = Open();
  fs::create_directory(PathOf("directory"));
  ASSERT_EQ(mkfifo(PathOf("pipe").c_str(), 0600), 0);
  ASSERT_EQ(symlink("/etc/passwd", PathOf("link").c_str()), 0);
  WriteFile(PathOf("empty"), "");
  WriteFile(PathOf("text"), std::string(1000, 'x'));
  for (const char* key : {"directory", "pipe", "link", "empty", "text"}) {
    EXPECT_FALSE(cache->Load(key).has_value()) << key;
  }
  EXPECT_EQ(cache->stats().rejects, 5);
  EXPECT_EQ(cache->stats().misses, 5);
}

TEST_F(DiskCacheTest, FileUnderAnotherKeysNameIsRejected) {
  auto cache = Open();
  cache->Store("one", Object(1));
  fs::rename(PathOf("one"), PathOf("two"));
  EXPECT_FALSE(cache->Load("two").has_value());
  EXPECT_THAT(cache->problem(), HasSubstr("holds another key"));
}

TEST_F(DiskCacheTest, WellFormedFileWithoutObjectInsideIsRejected) {
  auto cache = Open();
  ObjectCode object = Object(1);
  object.bytes = "not an object file, but long enough to hold the header of one, with a checksum";
  cache->Store("key", object);
  EXPECT_FALSE(cache->Load("key").has_value());
  EXPECT_THAT(cache->problem(), HasSubstr("holds no object file for this machine"));
}

// JITLink linked a quarter of such files without complaint, and crashed on some.
TEST_F(DiskCacheTest, NoMutationIsAccepted) {
  auto cache = Open();
  cache->Store("key", Object(1));
  const std::string good = ReadFile(PathOf("key"));
  ASSERT_GT(good.size(), 500u);
  std::mt19937 random(1);
  int64_t expected_rejects = 0;
  auto expect_reject = [&](const std::string& bytes, absl::string_view what) {
    WriteFile(PathOf("key"), bytes);
    EXPECT_FALSE(cache->Load("key").has_value()) << what;
    EXPECT_EQ(cache->stats().rejects, ++expected_rejects) << what;
  };
  for (int i = 0; i < 400; ++i) {
    std::string bytes = good;
    size_t at = random() % bytes.size();
    if (i % 4 == 0) {
      bytes.resize(at);
    } else if (i % 4 == 1) {
      bytes.append(1 + random() % 100, static_cast<char>(random()));
    } else {
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    }
    expect_reject(bytes, absl::StrCat("mutation ", i, " at ", at));
  }
  // Every bit of the header.
  for (size_t at = 0; at < 80 * 8; ++at) {
    std::string bytes = good;
    bytes[at / 8] = static_cast<char>(bytes[at / 8] ^ (1 << at % 8));
    expect_reject(bytes, absl::StrCat("header bit ", at));
  }
  // A miss is followed by a compilation and a write, which heals the entry.
  cache->Store("key", Object(1));
  EXPECT_EQ(ReadFile(PathOf("key")), good);
  EXPECT_TRUE(cache->Load("key").has_value());
}

TEST_F(DiskCacheTest, FailedWritesLeaveNothingAndAreCounted) {
  auto cache = Open();
  fs::create_directories(PathOf("key") + "/occupied");
  cache->Store("key", Object(1));
  EXPECT_EQ(cache->stats().write_failures, 1);
  EXPECT_EQ(cache->stats().writes, 0);
  EXPECT_THAT(cache->problem(), HasSubstr("disk cache: cannot put in place "));
  EXPECT_EQ(NumFiles(), 1);
}

TEST_F(DiskCacheTest, FullDiskIsAFailedWrite) {
  auto cache = Open();
  cache->Store("before", Object(1));
  // A limit on file size stands in for a full disk: a write in the middle of a file fails.
  struct rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  struct rlimit tight = {200, old_limit.rlim_max};
  auto old_handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  cache->Store("key", Object(2));
  setrlimit(RLIMIT_FSIZE, &old_limit);
  signal(SIGXFSZ, old_handler);
  EXPECT_EQ(cache->stats().write_failures, 1);
  EXPECT_THAT(cache->problem(), HasSubstr("disk cache: cannot write "));
  EXPECT_EQ(NumFiles(), 1);
  EXPECT_TRUE(cache->Load("before").has_value());
  cache->Store("key", Object(2));
  EXPECT_TRUE(cache->Load("key").has_value());
}

TEST_F(DiskCacheTest, ReadOnlyDirectoryStillServesLoads) {
  auto cache = Open();
  cache->Store("key", Object(1));
  chmod(directory_.c_str(), 0500);
  if (access(directory_.c_str(), W_OK) == 0) {
    // Root may write all the same; then only loading from such a directory can be shown.
    EXPECT_TRUE(Open()->Load("key").has_value());
    return;
  }
  cache->Store("other", Object(2));
  EXPECT_EQ(cache->stats().write_failures, 1);
  EXPECT_TRUE(cache->Load("key").has_value());
}

TEST_F(DiskCacheTest, DirectoryRemovedWhileInUseIsAMissAndAFailedWrite) {
  auto cache = Open();
  cache->Store("key", Object(1));
  fs::remove_all(directory_);
  EXPECT_FALSE(cache->Load("key").has_value());
  cache->Store("key", Object(1));
  EXPECT_EQ(cache->stats().write_failures, 1);
}

TEST_F(DiskCacheTest, LimitRemovesTheLongestUnused) {
  ObjectCode object = Object(1);
  object.bytes.resize(10'000);
  {
    auto cache = Open();
    for (int i = 0; i < 20; ++i) {
      std::string key = absl::StrCat("key", i);
      cache->Store(key, object);
      struct timespec times[2] = {{1000 + i, 0}, {1000 + i, 0}};
      ASSERT_EQ(utimensat(AT_FDCWD, PathOf(key).c_str(), times, 0), 0);
    }
    WriteFile(directory_ + "/notes.txt", std::string(1'000'000, 'x'));
    WriteFile(directory_ + "/.new-stale", "half");
    WriteFile(directory_ + "/.new-fresh", "half");
    struct timespec times[2] = {{1000, 0}, {1000, 0}};
    utimensat(AT_FDCWD, (directory_ + "/.new-stale").c_str(), times, 0);
  }
  auto cache = Open(100'000);
  EXPECT_TRUE(cache->Load("key2").has_value());  // which makes it young
  cache->Store("new", object);
  EXPECT_FALSE(cache->Load("key0").has_value());
  EXPECT_TRUE(cache->Load("key2").has_value());
  EXPECT_TRUE(cache->Load("key19").has_value());
  EXPECT_TRUE(cache->Load("new").has_value());
  EXPECT_LE(cache->List()->size_bytes, 100'000);
  EXPECT_GE(cache->List()->num_files, 7);
  EXPECT_GE(cache->stats().pruned, 10);
  EXPECT_TRUE(fs::exists(directory_ + "/notes.txt"));
  EXPECT_TRUE(fs::exists(directory_ + "/.new-fresh"));
  EXPECT_FALSE(fs::exists(directory_ + "/.new-stale"));
}

TEST_F(DiskCacheTest, ListCountsAndClearRemoves) {
  auto cache = Open();
  cache->Store("one", Object(1));
  cache->Store("two", Object(2));
  EXPECT_EQ(cache->List()->num_files, 2);
  EXPECT_EQ(cache->List()->size_bytes,
            static_cast<int64_t>(fs::file_size(PathOf("one")) + fs::file_size(PathOf("two"))));
  ASSERT_TRUE(cache->Clear().ok());
  EXPECT_EQ(cache->List()->num_files, 0);
  EXPECT_FALSE(cache->Load("one").has_value());
}

TEST_F(DiskCacheTest, ProcessesWriteTheSameKeysAtOnce) {
  std::vector<pid_t> children;
  for (int c = 0; c < 4; ++c) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    auto cache = Open();
    ObjectCode object = Object(1);
    object.bytes.resize(50'000);
    bool good = true;
    for (int i = 0; i < 200; ++i) {
      std::string key = absl::StrCat("key", i % 10);
      cache->Store(key, object);
      auto loaded = cache->Load(key);
      good = good && loaded.has_value() && loaded->bytes == object.bytes;
    }
    _exit(good && cache->stats().write_failures == 0 && cache->stats().rejects == 0 ? 0 : 1);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(NumFiles(), 10);
}

TEST_F(DiskCacheConcurrencyTest, ThreadsShareOneInstance) {
  auto cache = Open(40'000);
  ObjectCode object = Object(1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        std::string key = absl::StrCat("key", i % 17);
        cache->Store(key, object);
        auto loaded = cache->Load(key);  // another thread may have pruned it
        EXPECT_TRUE(!loaded.has_value() || loaded->bytes == object.bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache->stats().rejects, 0);
  EXPECT_EQ(cache->stats().write_failures, 0);
  EXPECT_EQ(cache->stats().writes, 400);
}

}  // namespace
}  // namespace svod
