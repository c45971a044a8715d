#include "jit/disk_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/status_macros.h"
#include "llvm/Support/BLAKE3.h"

namespace svod {
namespace {

constexpr char kMagic[8] = {'S', 'V', 'O', 'D', 'K', 'R', 'N', '\n'};
constexpr uint32_t kFormat = 2;
constexpr absl::string_view kSuffix = ".kernel";
constexpr absl::string_view kTemporaryPrefix = ".new-";
constexpr int64_t kMaxFileBytes = int64_t{1} << 28;
constexpr time_t kStaleSeconds = 3600;  // a temporary file this old has lost its writer

using Digest = std::array<uint8_t, 32>;

// What a file starts with; key, entry and object follow without gaps.
struct Header {
  char magic[8];
  uint32_t format;
  uint32_t kind;
  uint64_t key_bytes;
  uint64_t entry_bytes;
  uint64_t object_bytes;
  int64_t scratch_bytes;
  Digest digest;  // of the whole file, with zeros here
};
static_assert(sizeof(Header) == 80);

Digest DigestOf(absl::string_view bytes) {
  llvm::BLAKE3 hasher;
  hasher.update(llvm::StringRef(bytes.data(), bytes.size()));
  return hasher.final();
}

Digest DigestOfFile(const Header& header, absl::string_view body) {
  Header zeroed = header;
  zeroed.digest = {};
  llvm::BLAKE3 hasher;
  hasher.update(llvm::StringRef(reinterpret_cast<const char*>(&zeroed), sizeof(zeroed)));
  hasher.update(llvm::StringRef(body.data(), body.size()));
  return hasher.final();
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool Close() { return fd_ < 0 || close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

bool ReadAll(int fd, char* bytes, size_t size) {
  while (size > 0) {
    ssize_t n = read(fd, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// Makes the directory and those above it; failure shows when it is opened.
void MakeDirectories(const std::string& path) {
  for (size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    mkdir(path.substr(0, at).c_str(), 0700);
    if (at == std::string::npos) return;
  }
}

// Object files for this machine start so; a checksum alone does not say that it is one.
bool IsObjectFile(absl::string_view bytes) {
#if defined(__aarch64__)
  constexpr char kMachine = '\xb7';
#else
  constexpr char kMachine = '\x3e';
#endif
  constexpr size_t kElfHeaderBytes = 64;
  return bytes.size() >= kElfHeaderBytes &&
         absl::StartsWith(bytes,
                          "\x7f"
                          "ELF") &&
         bytes[4] == 2 /* 64 bits */ && bytes[5] == 1 /* little endian */ &&
         bytes[16] == 1 /* relocatable */ && bytes[17] == 0 && bytes[18] == kMachine &&
         bytes[19] == 0;
}

struct File {
  std::string name;
  int64_t size_bytes;
  struct timespec modified;
};

// The cache's files, temporary ones included. Others in the directory are left alone.
std::vector<File> FilesIn(int directory) {
  std::vector<File> files;
  int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* stream = fd < 0 ? nullptr : fdopendir(fd);
  if (stream == nullptr) {
    if (fd >= 0) close(fd);
    return files;
  }
  while (const dirent* entry = readdir(stream)) {
    absl::string_view name = entry->d_name;
    struct stat info;
    if ((absl::EndsWith(name, kSuffix) || absl::StartsWith(name, kTemporaryPrefix)) &&
        fstatat(directory, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(info.st_mode)) {
      files.push_back({std::string(name), info.st_size, info.st_mtim});
    }
  }
  closedir(stream);
  return files;
}

bool IsTemporary(const File& file) { return absl::StartsWith(file.name, kTemporaryPrefix); }

}  // namespace

std::unique_ptr<DiskCache> DiskCache::Open(const DiskCacheOptions& options) {
  std::unique_ptr<DiskCache> cache(new DiskCache(options));
  cache->OpenDirectory();
  return cache;
}

DiskCache::~DiskCache() {
  if (directory_ >= 0) close(directory_);
}

void DiskCache::OpenDirectory() {
  const std::string& path = options_.directory;
  MakeDirectories(path);
  int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat info;
  if (fd < 0 || fstat(fd, &info) != 0) {
    Note(absl::StrCat("disk cache: cannot open ", path, ": ", strerror(errno)));
  } else if (info.st_uid != geteuid()) {
    Note(absl::StrCat("disk cache: ", path, " is owned by user ", info.st_uid, ", expected ",
                      geteuid()));
  } else if ((info.st_mode & 0077) != 0) {
    Note(absl::StrFormat("disk cache: %s has mode %04o, expected 0700 (others can reach it)", path,
                         info.st_mode & 07777));
  } else {
    directory_ = fd;
    return;
  }
  if (fd >= 0) close(fd);
}

void DiskCache::Note(absl::string_view problem) {
  std::lock_guard<std::mutex> lock(mutex_);
  problem_ = std::string(problem);
}

std::string DiskCache::FileName(absl::string_view key) {
  Digest digest = DigestOf(key);
  std::string name;
  for (int i = 0; i < 20; ++i) absl::StrAppend(&name, absl::Hex(digest[i], absl::kZeroPad2));
  return absl::StrCat(name, kSuffix);
}

std::optional<ObjectCode> DiskCache::Load(absl::string_view key) {
  if (directory_ < 0) return std::nullopt;
  std::optional<ObjectCode> object = Read(key, Kind::kObject);
  (object.has_value() ? hits_ : misses_).fetch_add(1, std::memory_order_relaxed);
  return object;
}

std::optional<std::string> DiskCache::LoadNote(absl::string_view key) {
  if (directory_ < 0) return std::nullopt;
  std::optional<ObjectCode> note = Read(key, Kind::kNote);
  if (!note.has_value()) return std::nullopt;
  return std::move(note->bytes);
}

std::optional<ObjectCode> DiskCache::Read(absl::string_view key, Kind kind) {
  std::string name = FileName(key);
  auto reject = [&](absl::string_view what) {
    rejects_.fetch_add(1, std::memory_order_relaxed);
    Note(absl::StrCat("disk cache: ", name, " ", what));
    return std::nullopt;
  };
  // O_NONBLOCK: a pipe of that name must not hang us.
  Descriptor file(openat(directory_, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) {
    if (errno == ENOENT) return std::nullopt;
    return reject(absl::StrCat("cannot be opened: ", strerror(errno)));
  }
  struct stat info;
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return reject("is no file");
  if (info.st_uid != geteuid()) return reject("is owned by another user");
  if (info.st_size < static_cast<int64_t>(sizeof(Header)) || info.st_size > kMaxFileBytes) {
    return reject("has a wrong size");
  }
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  if (!ReadAll(file.get(), bytes.data(), bytes.size())) return reject("cannot be read");

  Header header;
  memcpy(&header, bytes.data(), sizeof(header));
  absl::string_view body = absl::string_view(bytes).substr(sizeof(header));
  if (memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) return reject("has a wrong magic number");
  if (header.format != kFormat) {
    return reject(absl::StrCat("has format ", header.format, ", expected ", kFormat));
  }
  if (header.digest != DigestOfFile(header, body)) return reject("has a wrong checksum");
  // The sizes are trusted from here on, but for sums that would wrap.
  if (header.key_bytes > body.size() || header.entry_bytes > body.size() - header.key_bytes ||
      header.object_bytes != body.size() - header.key_bytes - header.entry_bytes ||
      header.scratch_bytes < 0) {
    return reject("has wrong sizes");
  }
  if (header.kind != static_cast<uint32_t>(kind) || body.substr(0, header.key_bytes) != key) {
    return reject("holds another key");
  }
  absl::string_view object = body.substr(header.key_bytes + header.entry_bytes);
  if (kind == Kind::kObject && !IsObjectFile(object)) {
    return reject("holds no object file for this machine");
  }
  if (options_.limit_bytes > 0) futimens(file.get(), nullptr);  // used now

  ObjectCode code;
  code.entry = std::string(body.substr(header.key_bytes, header.entry_bytes));
  code.bytes = std::string(object);
  code.scratch_bytes = header.scratch_bytes;
  return code;
}

void DiskCache::Store(absl::string_view key, const ObjectCode& object) {
  StoreFile(key, object, Kind::kObject);
}

void DiskCache::StoreNote(absl::string_view key, absl::string_view note) {
  ObjectCode file;
  file.bytes = std::string(note);
  StoreFile(key, file, Kind::kNote);
}

void DiskCache::StoreFile(absl::string_view key, const ObjectCode& object, Kind kind) {
  if (directory_ < 0) return;
  absl::Status status = Write(key, object, kind);
  if (!status.ok()) {
    write_failures_.fetch_add(1, std::memory_order_relaxed);
    Note(status.message());
    return;
  }
  if (kind == Kind::kObject) writes_.fetch_add(1, std::memory_order_relaxed);
  if (options_.limit_bytes > 0) {
    PruneWhenDue(static_cast<int64_t>(sizeof(Header) + key.size() + object.bytes.size()));
  }
}

absl::Status DiskCache::Write(absl::string_view key, const ObjectCode& object, Kind kind) {
  std::string body = absl::StrCat(key, object.entry, object.bytes);
  Header header = {};
  memcpy(header.magic, kMagic, sizeof(kMagic));
  header.format = kFormat;
  header.kind = static_cast<uint32_t>(kind);
  header.key_bytes = key.size();
  header.entry_bytes = object.entry.size();
  header.object_bytes = object.bytes.size();
  header.scratch_bytes = object.scratch_bytes;
  header.digest = DigestOfFile(header, body);

  // Unlike any other writer's: of this process, its children, and those of other machines.
  static std::atomic<uint64_t> next_temporary = 0;
  static const uint32_t token = std::random_device()();
  std::string name = FileName(key);
  std::string temporary = absl::StrCat(kTemporaryPrefix, absl::Hex(token), "-", getpid(), "-",
                                       next_temporary.fetch_add(1, std::memory_order_relaxed));
  auto failed = [&](absl::string_view what) {
    std::string reason = strerror(errno);
    unlinkat(directory_, temporary.c_str(), 0);
    return absl::UnavailableError(absl::StrCat("disk cache: ", what, " ", name, ": ", reason));
  };
  Descriptor file(openat(directory_, temporary.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return failed("cannot create");
  // Not synced: after a power failure a checksum that does not match is a miss.
  if (!WriteAll(file.get(), {reinterpret_cast<const char*>(&header), sizeof(header)}) ||
      !WriteAll(file.get(), body) || !file.Close()) {
    return failed("cannot write");
  }
  if (renameat(directory_, temporary.c_str(), directory_, name.c_str()) != 0) {
    return failed("cannot put in place");
  }
  return absl::OkStatus();
}

void DiskCache::PruneWhenDue(int64_t written_bytes) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    unseen_bytes_ += written_bytes;
    if (measured_ && unseen_bytes_ < options_.limit_bytes / 16) return;
    measured_ = true;
    unseen_bytes_ = 0;
  }
  std::vector<File> files = FilesIn(directory_);
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return std::tie(a.modified.tv_sec, a.modified.tv_nsec, a.name) <
           std::tie(b.modified.tv_sec, b.modified.tv_nsec, b.name);
  });
  int64_t total_bytes = 0;
  for (const File& file : files) total_bytes += file.size_bytes;
  // Some way below the limit, so that the next few writes need not look again.
  bool is_over = total_bytes > options_.limit_bytes;
  int64_t goal_bytes = options_.limit_bytes / 16 * 14;
  time_t now = time(nullptr);
  for (const File& file : files) {
    bool stale = IsTemporary(file) && file.modified.tv_sec < now - kStaleSeconds;
    bool oldest = is_over && !IsTemporary(file) && total_bytes > goal_bytes;
    if (!stale && !oldest) continue;
    if (unlinkat(directory_, file.name.c_str(), 0) != 0) continue;
    total_bytes -= file.size_bytes;
    pruned_.fetch_add(1, std::memory_order_relaxed);
  }
}

DiskCache::Stats DiskCache::stats() const {
  return {hits_.load(),   misses_.load(),         rejects_.load(),
          writes_.load(), write_failures_.load(), pruned_.load()};
}

std::string DiskCache::problem() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return problem_;
}

absl::StatusOr<DiskCache::Contents> DiskCache::List() const {
  if (directory_ < 0) return absl::FailedPreconditionError(problem());
  Contents contents;
  for (const File& file : FilesIn(directory_)) {
    if (IsTemporary(file)) continue;
    ++contents.num_files;
    contents.size_bytes += file.size_bytes;
  }
  return contents;
}

absl::Status DiskCache::Clear() {
  if (directory_ < 0) return absl::FailedPreconditionError(problem());
  for (const File& file : FilesIn(directory_)) {
    if (!IsTemporary(file)) unlinkat(directory_, file.name.c_str(), 0);
  }
  return absl::OkStatus();
}

}  // namespace svod
