#include "jit/kernel_table.h"

#include <exception>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"

namespace svod {
namespace {

absl::StatusOr<KernelTable::Found> WithoutExceptions(
    absl::FunctionRef<absl::StatusOr<KernelTable::Found>()> make) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("kernel cache: out of memory while compiling");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("kernel cache: exception: ", error.what()));
  }
}

// A result to hand to another thread. Statuses share their text and count references in Abseil's
// library, where the thread sanitizer does not see it; so each thread gets its own text.
absl::StatusOr<KernelTable::Found> CopyForThread(const absl::StatusOr<KernelTable::Found>& result) {
  if (result.ok()) return result;
  return absl::Status(result.status().code(), result.status().message());
}

}  // namespace

std::shared_ptr<const CompiledKernel> KernelTable::Find(const KernelKey& key, int64_t time) {
  Shard& shard = ShardOf(key);
  std::lock_guard<std::mutex> lock(shard.mutex);
  auto slot = shard.slots.find(key);
  if (slot == shard.slots.end() || slot->second.entry == nullptr) return nullptr;
  std::shared_ptr<const CompiledKernel> kernel = slot->second.entry->Take(time);
  if (kernel != nullptr) ++shard.hits;
  return kernel;
}

absl::StatusOr<KernelTable::Found> KernelTable::GetOrMake(
    const KernelKey& key, int64_t time, Outcome* outcome,
    absl::FunctionRef<absl::StatusOr<Found>()> make) {
  Shard& shard = ShardOf(key);
  std::shared_ptr<Flight> flight;
  {
    std::unique_lock<std::mutex> lock(shard.mutex);
    Slot& slot = shard.slots[key];
    if (slot.entry != nullptr) {
      Found found{slot.entry, slot.entry->Take(time)};
      if (found.kernel != nullptr) {
        ++shard.hits;
        *outcome = Outcome::kHit;
        return found;
      }
    }
    if (slot.flight != nullptr) {
      flight = slot.flight;
      lock.unlock();
      *outcome = Outcome::kWaited;
      std::unique_lock<std::mutex> flight_lock(flight->mutex);
      flight->landed.wait(flight_lock, [&] { return flight->has_landed; });
      return CopyForThread(flight->result);
    }
    flight = std::make_shared<Flight>();
    slot.entry = nullptr;
    slot.flight = flight;
  }

  *outcome = Outcome::kMade;
  absl::StatusOr<Found> result = WithoutExceptions(make);
  {
    std::lock_guard<std::mutex> lock(shard.mutex);
    auto slot = shard.slots.find(key);  // RemoveEmpty leaves keys with a flight alone
    if (result.ok()) {
      slot->second = {result->entry, nullptr};
    } else {
      shard.slots.erase(slot);
    }
  }
  {
    std::lock_guard<std::mutex> lock(flight->mutex);
    flight->result = CopyForThread(result);
    flight->has_landed = true;
  }
  flight->landed.notify_all();
  return result;
}

std::vector<std::shared_ptr<KernelEntry>> KernelTable::Entries() const {
  std::vector<std::shared_ptr<KernelEntry>> entries;
  for (const Shard& shard : shards_) {
    std::lock_guard<std::mutex> lock(shard.mutex);
    for (const auto& [key, slot] : shard.slots) {
      if (slot.entry != nullptr) entries.push_back(slot.entry);
    }
  }
  return entries;
}

void KernelTable::Forget(const KernelKey& key) {
  Shard& shard = ShardOf(key);
  std::lock_guard<std::mutex> lock(shard.mutex);
  auto slot = shard.slots.find(key);
  if (slot != shard.slots.end() && slot->second.flight == nullptr) shard.slots.erase(slot);
}

void KernelTable::RemoveEmpty() {
  for (Shard& shard : shards_) {
    std::lock_guard<std::mutex> lock(shard.mutex);
    absl::erase_if(shard.slots, [](const auto& item) {
      const Slot& slot = item.second;
      return slot.flight == nullptr && (slot.entry == nullptr || slot.entry->is_empty());
    });
  }
}

int64_t KernelTable::hits() const {
  int64_t hits = 0;
  for (const Shard& shard : shards_) {
    std::lock_guard<std::mutex> lock(shard.mutex);
    hits += shard.hits;
  }
  return hits;
}

}  // namespace svod
