#include "jit/code_memory.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/check.h"
#include "ir/status_macros.h"
#include "llvm/ExecutionEngine/JITLink/JITLink.h"
#include "llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h"
#include "llvm/Support/Memory.h"

namespace svod {
namespace {

constexpr size_t kLine = 64;

constexpr size_t RoundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

size_t PageSize() {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

// Counts the forks between the first process and this one.
std::atomic<uint64_t> fork_generation = 0;

void CountForks() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { fork_generation.fetch_add(1); });
  (void)registered;
}

void FillWithBreakpoints(char* bytes, size_t size_bytes) {
#if defined(__aarch64__)
  constexpr uint32_t kBreakpoint = 0xd4200000;  // brk #0
  for (size_t i = 0; i + sizeof(kBreakpoint) <= size_bytes; i += sizeof(kBreakpoint)) {
    memcpy(bytes + i, &kBreakpoint, sizeof(kBreakpoint));
  }
#else
  memset(bytes, 0xcc, size_bytes);  // int3
#endif
}

int MakeSharedMemory() {
  constexpr unsigned kExecutable = 0x10;  // MFD_EXEC; headers before Linux 6.3 lack it
  int fd = memfd_create("svod-code", MFD_CLOEXEC | kExecutable);
  if (fd < 0 && errno == EINVAL) fd = memfd_create("svod-code", MFD_CLOEXEC);
  return fd;
}

}  // namespace

absl::StatusOr<std::shared_ptr<CodeMemory>> CodeMemory::Create(const Options& options) {
  CountForks();
  Options rounded = options;
  rounded.slab_bytes = RoundUp(std::max<size_t>(options.slab_bytes, 1), PageSize());
  std::shared_ptr<CodeMemory> memory(new CodeMemory(rounded));
  std::lock_guard<std::mutex> lock(memory->mutex_);
  if (rounded.slab_bytes <= rounded.limit_bytes) {
    absl::Status status = memory->AddSlab(rounded.slab_bytes);
    if (!status.ok()) return absl::UnimplementedError(status.message());
  }
  return memory;
}

CodeMemory::~CodeMemory() {
  while (!slabs_.empty()) DropSlab(slabs_.begin());
}

absl::Status CodeMemory::AddSlab(size_t size_bytes) {
  if (size_bytes > options_.limit_bytes || mapped_bytes_ > options_.limit_bytes - size_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("code memory: ", mapped_bytes_, " bytes are in use and ", size_bytes,
                     " more wanted, expected at most ", options_.limit_bytes));
  }
  auto failed = [](absl::string_view what) {
    return absl::ResourceExhaustedError(
        absl::StrCat("code memory: ", what, " failed: ", strerror(errno)));
  };
  int fd = MakeSharedMemory();
  if (fd < 0) return failed("memfd_create");
  absl::Status status;
  void* write = MAP_FAILED;
  void* execute = MAP_FAILED;
  if (ftruncate(fd, static_cast<off_t>(size_bytes)) != 0) {
    status = failed("ftruncate");
  } else if (write = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
             write == MAP_FAILED) {
    status = failed("mapping the writable view");
  } else if (execute = mmap(nullptr, size_bytes, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
             execute == MAP_FAILED) {
    status = failed("mapping the executable view");
    munmap(write, size_bytes);
  }
  close(fd);  // the mappings keep the memory
  if (!status.ok()) return status;
  Address address = reinterpret_cast<Address>(execute);
  slabs_[address] = {static_cast<char*>(write), size_bytes, 0, fork_generation.load()};
  mapped_bytes_ += size_bytes;
  AddGap(address, size_bytes);
  return absl::OkStatus();
}

void CodeMemory::DropSlab(std::map<Address, Slab>::iterator slab) {
  auto& [address, info] = *slab;
  for (auto gap = gaps_.lower_bound(address);
       gap != gaps_.end() && gap->first < address + info.size_bytes;) {
    RemoveGap(gap++);
  }
  munmap(info.write, info.size_bytes);
  munmap(reinterpret_cast<void*>(address), info.size_bytes);
  mapped_bytes_ -= info.size_bytes;
  slabs_.erase(slab);
}

std::map<CodeMemory::Address, CodeMemory::Slab>::iterator CodeMemory::SlabOf(Address address) {
  auto slab = slabs_.upper_bound(address);
  SVOD_DCHECK(slab != slabs_.begin());
  return std::prev(slab);
}

// Merges with its neighbours, unless they belong to a slab that happens to be mapped beside.
void CodeMemory::AddGap(Address address, size_t size_bytes) {
  const auto& [slab_address, slab] = *SlabOf(address);
  auto after = gaps_.lower_bound(address);
  if (after != gaps_.begin()) {
    auto before = std::prev(after);
    if (before->first >= slab_address && before->first + before->second == address) {
      address = before->first;
      size_bytes += before->second;
      RemoveGap(before);
    }
  }
  if (after != gaps_.end() && after->first == address + size_bytes &&
      after->first < slab_address + slab.size_bytes) {
    size_bytes += after->second;
    RemoveGap(after);
  }
  gaps_[address] = size_bytes;
  gaps_by_size_.insert({size_bytes, address});
}

void CodeMemory::RemoveGap(std::map<Address, size_t>::iterator gap) {
  gaps_by_size_.erase({gap->second, gap->first});
  gaps_.erase(gap);
}

absl::StatusOr<CodeMemory::Piece> CodeMemory::Allocate(size_t size_bytes, size_t alignment) {
  if (alignment > PageSize() || size_bytes > options_.limit_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "code memory: got a piece of ", size_bytes, " bytes aligned to ", alignment,
        ", expected at most ", options_.limit_bytes, " bytes aligned to ", PageSize()));
  }
  size_bytes = RoundUp(std::max<size_t>(size_bytes, 1), kLine);
  // The best fit that has room for the padding in front, which stays a gap.
  size_t padding = alignment > kLine ? alignment - kLine : 0;
  std::lock_guard<std::mutex> lock(mutex_);
  // In a forked child the gaps of the parent's slabs are still the parent's.
  uint64_t generation = fork_generation.load(std::memory_order_relaxed);
  auto found = gaps_by_size_.lower_bound({size_bytes + padding, 0});
  while (found != gaps_by_size_.end() &&
         SlabOf(found->second)->second.fork_generation != generation) {
    auto foreign = gaps_.find(found->second);
    ++found;
    RemoveGap(foreign);
  }
  if (found == gaps_by_size_.end()) {
    SVOD_RETURN_IF_ERROR(AddSlab(std::max(options_.slab_bytes, RoundUp(size_bytes, PageSize()))));
    found = gaps_by_size_.lower_bound({size_bytes, 0});
    while (SlabOf(found->second)->second.fork_generation != generation ||
           found->second % std::max(alignment, kLine) != 0) {
      ++found;
    }
  }
  auto [gap_size, gap_address] = *found;
  RemoveGap(gaps_.find(gap_address));
  Address address = RoundUp(gap_address, std::max(alignment, kLine));
  size_t before = address - gap_address;
  size_t after = gap_size - before - size_bytes;
  if (before > 0) AddGap(gap_address, before);
  if (after > 0) AddGap(address + size_bytes, after);
  pieces_[address] = size_bytes;
  live_bytes_ += size_bytes;
  auto slab = SlabOf(address);
  slab->second.live_bytes += size_bytes;
  return Piece{slab->second.write + (address - slab->first), reinterpret_cast<char*>(address),
               size_bytes};
}

void CodeMemory::Free(char* execute) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto piece = pieces_.find(reinterpret_cast<Address>(execute));
  SVOD_DCHECK(piece != pieces_.end());
  auto [address, size_bytes] = *piece;
  pieces_.erase(piece);
  live_bytes_ -= size_bytes;
  auto slab = SlabOf(address);
  slab->second.live_bytes -= size_bytes;
  bool is_ours = slab->second.fork_generation == fork_generation.load(std::memory_order_relaxed);
  if (is_ours) {
    FillWithBreakpoints(slab->second.write + (address - slab->first), size_bytes);
    AddGap(address, size_bytes);
  }
  if (slab->second.live_bytes > 0) return;
  // One empty slab of the usual size is kept, so that a lone kernel made and dropped in turn does
  // not map and unmap each time.
  bool keep = is_ours && slab->second.size_bytes == options_.slab_bytes;
  for (auto other = slabs_.begin(); keep && other != slabs_.end(); ++other) {
    if (other != slab && other->second.live_bytes == 0) keep = false;
  }
  if (!keep) DropSlab(slab);
}

size_t CodeMemory::PieceSizeAt(const void* address) const {
  Address at = reinterpret_cast<Address>(address);
  std::lock_guard<std::mutex> lock(mutex_);
  auto piece = pieces_.upper_bound(at);
  if (piece == pieces_.begin()) return 0;
  --piece;
  return at < piece->first + piece->second ? piece->second : 0;
}

CodeMemory::Usage CodeMemory::usage() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return {static_cast<int64_t>(live_bytes_), static_cast<int64_t>(mapped_bytes_),
          static_cast<int64_t>(pieces_.size()), static_cast<int64_t>(slabs_.size())};
}

namespace {

using llvm::jitlink::BasicLayout;
using llvm::jitlink::JITLinkDylib;
using llvm::jitlink::JITLinkMemoryManager;
using llvm::jitlink::LinkGraph;
using llvm::orc::ExecutorAddr;
using llvm::orc::shared::WrapperFunctionCall;

bool IsWritable(llvm::orc::MemProt protection) {
  return (static_cast<int>(protection) & static_cast<int>(llvm::orc::MemProt::Write)) != 0;
}

class PackedManager : public JITLinkMemoryManager {
 public:
  explicit PackedManager(std::shared_ptr<CodeMemory> memory) : memory_(std::move(memory)) {}

  using JITLinkMemoryManager::allocate;
  using JITLinkMemoryManager::deallocate;

  void allocate(const JITLinkDylib*, LinkGraph& graph, OnAllocatedFunction on_allocated) override {
    on_allocated(Allocate(graph));
  }

  void deallocate(std::vector<FinalizedAlloc> allocations,
                  OnDeallocatedFunction on_deallocated) override {
    llvm::Error error = llvm::Error::success();
    for (auto it = allocations.rbegin(); it != allocations.rend(); ++it) {
      // The address is that of a Linked, which knows its piece.
      std::unique_ptr<Linked> linked(it->release().toPtr<Linked*>());
      error = llvm::joinErrors(std::move(error),
                               llvm::orc::shared::runDeallocActions(linked->at_removal));
      memory_->Free(linked->piece.execute);
    }
    on_deallocated(std::move(error));
  }

 private:
  struct Linked {
    CodeMemory::Piece piece;
    std::vector<WrapperFunctionCall> at_removal;
  };

  class InFlight : public InFlightAlloc {
   public:
    InFlight(CodeMemory& memory, LinkGraph& graph, CodeMemory::Piece piece)
        : memory_(memory), graph_(graph), piece_(piece) {}

    void abandon(OnAbandonedFunction on_abandoned) override {
      memory_.Free(piece_.execute);
      on_abandoned(llvm::Error::success());
    }

    void finalize(OnFinalizedFunction on_finalized) override {
      llvm::sys::Memory::InvalidateInstructionCache(piece_.execute, piece_.size_bytes);
      auto at_removal = llvm::orc::shared::runFinalizeActions(graph_.allocActions());
      if (!at_removal) {
        memory_.Free(piece_.execute);
        on_finalized(at_removal.takeError());
        return;
      }
      auto* linked = new Linked{piece_, std::move(*at_removal)};
      on_finalized(FinalizedAlloc(ExecutorAddr::fromPtr(linked)));
    }

   private:
    CodeMemory& memory_;
    LinkGraph& graph_;
    CodeMemory::Piece piece_;
  };

  llvm::Expected<std::unique_ptr<InFlightAlloc>> Allocate(LinkGraph& graph) {
    for (const llvm::jitlink::Section& section : graph.sections()) {
      if (IsWritable(section.getMemProt()) && !section.empty()) {
        return llvm::createStringError("writable section %s, expected only code and constants",
                                       section.getName().str().c_str());
      }
    }
    BasicLayout layout(graph);
    size_t size_bytes = 0;
    size_t alignment = 1;
    for (auto& [group, segment] : layout.segments()) {
      size_t segment_alignment = segment.Alignment.value();
      alignment = std::max(alignment, segment_alignment);
      size_bytes = RoundUp(size_bytes, segment_alignment) + segment.ContentSize +
                   static_cast<size_t>(segment.ZeroFillSize);
    }
    absl::StatusOr<CodeMemory::Piece> piece = memory_->Allocate(size_bytes, alignment);
    if (!piece.ok()) {
      return llvm::createStringError(std::make_error_code(std::errc::not_enough_memory),
                                     std::string(piece.status().message()));
    }
    FillWithBreakpoints(piece->write, piece->size_bytes);
    size_t offset = 0;
    for (auto& [group, segment] : layout.segments()) {
      offset = RoundUp(offset, segment.Alignment.value());
      segment.Addr = ExecutorAddr::fromPtr(piece->execute + offset);
      segment.WorkingMem = piece->write + offset;
      offset += segment.ContentSize;
      memset(piece->write + offset, 0, static_cast<size_t>(segment.ZeroFillSize));
      offset += static_cast<size_t>(segment.ZeroFillSize);
    }
    if (llvm::Error error = layout.apply()) {
      memory_->Free(piece->execute);
      return error;
    }
    return std::make_unique<InFlight>(*memory_, graph, *piece);
  }

  std::shared_ptr<CodeMemory> memory_;
};

}  // namespace

std::unique_ptr<JITLinkMemoryManager> MakeJitLinkMemoryManager(std::shared_ptr<CodeMemory> memory) {
  return std::make_unique<PackedManager>(std::move(memory));
}

}  // namespace svod
