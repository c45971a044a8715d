// DiskCache: object files by key in one directory, shared by processes and runs.
// Included by the kernel cache, tools and tests. Names nothing of LLVM.
#ifndef SVOD_JIT_DISK_CACHE_H_
#define SVOD_JIT_DISK_CACHE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "jit/compile.h"

namespace svod {

struct DiskCacheOptions {
  // Made, with mode 0700, if it is not there. Object files are run, so a directory that is not the
  // user's own, or that others can read or write, is refused.
  std::string directory;
  // Of all files together; 0: no limit. Past it the files that were longest unused go. Other
  // processes' writes are seen when this one next looks, so the limit is not sharp.
  int64_t limit_bytes = 0;
};

// One file a key, named by the key's digest. A file holds the whole key and a checksum over
// everything; whatever is wrong with a file, or the directory, is a miss and is counted, never an
// error. Files appear under their names complete, or not at all.
// Threads and processes: any number at a time.
class DiskCache {
 public:
  // Never fails: a directory that cannot be used gives a cache that misses, and problem() says why.
  static std::unique_ptr<DiskCache> Open(const DiskCacheOptions& options);
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  // The object stored under `key`, whose times are 0. Cost: about 15 us.
  std::optional<ObjectCode> Load(absl::string_view key);
  // Cost: about 100 us.
  void Store(absl::string_view key, const ObjectCode& object);

  // The same for a text, in files of their own: of a kernel's source, what it became. Not counted
  // among hits and misses.
  std::optional<std::string> LoadNote(absl::string_view key);
  void StoreNote(absl::string_view key, absl::string_view note);

  struct Stats {
    int64_t hits = 0;
    int64_t misses = 0;   // rejects included
    int64_t rejects = 0;  // files that were there but wrong
    int64_t writes = 0;
    int64_t write_failures = 0;
    int64_t pruned = 0;  // files removed for the limit
  };
  Stats stats() const;
  // Why the directory is not used, or the last reject or failed write; "" when all went well.
  std::string problem() const;

  struct Contents {
    int64_t num_files = 0;
    int64_t size_bytes = 0;
  };
  // Reads the directory. Errors: FailedPrecondition when it cannot be used, with the reason.
  absl::StatusOr<Contents> List() const;
  // Removes every entry; entries that other processes add meanwhile may stay.
  // Errors: as List.
  absl::Status Clear();

  // The name of the file for `key` in the directory.
  static std::string FileName(absl::string_view key);  // objects and notes have different keys

 private:
  explicit DiskCache(const DiskCacheOptions& options) : options_(options) {}
  void OpenDirectory();
  enum class Kind : uint32_t { kObject = 0, kNote = 1 };
  std::optional<ObjectCode> Read(absl::string_view key, Kind kind);
  absl::Status Write(absl::string_view key, const ObjectCode& object, Kind kind);
  void StoreFile(absl::string_view key, const ObjectCode& object, Kind kind);
  void Note(absl::string_view problem);
  void PruneWhenDue(int64_t written_bytes);

  const DiskCacheOptions options_;
  int directory_ = -1;  // descriptor; -1: not used
  mutable std::mutex mutex_;
  std::string problem_;
  int64_t unseen_bytes_ = 0;  // written since the directory was last measured
  bool measured_ = false;
  std::atomic<int64_t> hits_ = 0, misses_ = 0, rejects_ = 0, writes_ = 0, write_failures_ = 0,
                       pruned_ = 0;
};

}  // namespace svod

#endif  // SVOD_JIT_DISK_CACHE_H_
