#include "jit/kernel_trial.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/evaluate.h"
#include "ir/program.h"
#include "ir/ranges.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

constexpr size_t kAlignment = 64;  // what the kernel ABI asks of scratch, and what plans give

void Release(std::byte* bytes) { std::free(bytes); }

std::unique_ptr<std::byte[], void (*)(std::byte*)> AlignedBytes(size_t size_bytes) {
  size_bytes = (std::max<size_t>(size_bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  return {static_cast<std::byte*>(std::aligned_alloc(kAlignment, size_bytes)), &Release};
}

// A well mixed number of element `i` of buffer `slot`.
uint64_t Mixed(size_t slot, size_t i) {
  uint64_t bits = (slot + 1) * 0x9e3779b97f4a7c15u + i;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

// Integers are small, since they may be positions in other buffers.
uint64_t ElementBits(DType dtype, uint64_t mixed) {
  constexpr uint64_t kIntegers = 64;
  if (dtype.is_bool()) return mixed & 1;
  if (!dtype.is_float()) return mixed % kIntegers;
  return DoubleToBits(dtype.scalar, std::ldexp(static_cast<double>(mixed >> 40), -23) - 1);
}

bool IsNan(DType dtype, const std::byte* element, size_t size_bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, size_bytes);
  return std::isnan(BitsToDouble(dtype.scalar, bits));
}

bool SameResults(DType dtype, const std::byte* a, const std::byte* b, size_t size_bytes) {
  if (size_bytes == 0 || std::memcmp(a, b, size_bytes) == 0) return true;
  if (!dtype.is_float()) return false;
  const size_t step = static_cast<size_t>(DType(dtype.scalar).size_bytes());
  for (size_t at = 0; at < size_bytes; at += step) {
    if (std::memcmp(a + at, b + at, step) == 0) continue;
    if (!IsNan(dtype, a + at, step) || !IsNan(dtype, b + at, step)) return false;
  }
  return true;
}

}  // namespace

absl::Status KernelTrial::AddMemory(const UOp* param, int64_t max_bytes) {
  RangeAnalysis ranges;
  double bytes = param->dtype().size_bytes();
  for (const UOp* dimension : param->sources()) {
    bytes *= static_cast<double>(std::max<int64_t>(ranges.Of(dimension).max, 0));
  }
  if (static_cast<double>(total_bytes_) + bytes > static_cast<double>(max_bytes)) {
    return absl::ResourceExhaustedError(absl::StrCat("buffers of more than ", max_bytes, " bytes"));
  }
  const Access access = param->arg<ParamArgument>().access;
  Memory memory;
  memory.dtype = param->dtype();
  memory.is_read = access != Access::kOut;
  memory.is_written = access != Access::kIn;
  memory.size_bytes = static_cast<size_t>(bytes);
  total_bytes_ += static_cast<int64_t>(bytes);
  memory.bytes = AlignedBytes(memory.size_bytes);
  if (memory.bytes == nullptr) return absl::ResourceExhaustedError("out of memory");
  const size_t step = static_cast<size_t>(DType(memory.dtype.scalar).size_bytes());
  for (size_t i = 0; i * step < memory.size_bytes; ++i) {
    uint64_t bits = ElementBits(memory.dtype, Mixed(memories_.size(), i));
    std::memcpy(memory.bytes.get() + i * step, &bits, step);
  }
  if (memory.is_written) {
    memory.initial.assign(memory.bytes.get(), memory.bytes.get() + memory.size_bytes);
  }
  must_restore_ = must_restore_ || (memory.is_read && memory.is_written);
  pointers_.push_back(memory.bytes.get());
  memories_.push_back(std::move(memory));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<KernelTrial>> KernelTrial::Create(const UOp* sink,
                                                                 int64_t max_bytes) {
  std::unique_ptr<KernelTrial> trial(new KernelTrial());
  SVOD_ASSIGN_OR_RETURN(std::vector<const UOp*> params, ParamsOf(sink));
  for (const UOp* param : params) SVOD_RETURN_IF_ERROR(trial->AddMemory(param, max_bytes));
  for (const UOp* variable : VariablesOf(sink)) {
    const auto& argument = variable->arg<VariableArgument>();
    trial->variables_[argument.name] = argument.max;
  }
  return trial;
}

absl::Status KernelTrial::Run(const CompiledKernel& kernel) {
  std::vector<int64_t> values;
  for (const std::string& name : kernel.variable_names) {
    auto found = variables_.find(name);
    if (found == variables_.end()) return absl::InternalError(absl::StrCat("no variable ", name));
    values.push_back(found->second);
  }
  int64_t num_cores = 1;
  if (kernel.global_size[0] != nullptr) {
    std::vector<std::pair<std::string, int64_t>> named(variables_.begin(), variables_.end());
    SVOD_ASSIGN_OR_RETURN(num_cores, EvaluateIndex(kernel.global_size[0], named));
  }
  auto scratch = AlignedBytes(static_cast<size_t>(kernel.scratch_bytes));
  for (int64_t core = 0; core < num_cores; ++core) {
    if (kernel.function(pointers_.data(), values.data(), core, scratch.get()) != 0) {
      return absl::InternalError(absl::StrCat("kernel ", kernel.name, ": it failed"));
    }
  }
  return absl::OkStatus();
}

void KernelTrial::Restore() {
  for (Memory& memory : memories_) {
    if (!memory.is_written || memory.initial.empty()) continue;
    std::memcpy(memory.bytes.get(), memory.initial.data(), memory.size_bytes);
  }
}

absl::Status KernelTrial::KeepResults(const CompiledKernel& kernel) {
  Restore();
  SVOD_RETURN_IF_ERROR(Run(kernel));
  for (Memory& memory : memories_) {
    if (!memory.is_written) continue;
    memory.kept.assign(memory.bytes.get(), memory.bytes.get() + memory.size_bytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> KernelTrial::GivesKeptResults(const CompiledKernel& kernel) {
  Restore();
  SVOD_RETURN_IF_ERROR(Run(kernel));
  for (const Memory& memory : memories_) {
    if (memory.is_written &&
        !SameResults(memory.dtype, memory.bytes.get(), memory.kept.data(), memory.size_bytes)) {
      return false;
    }
  }
  return true;
}

}  // namespace svod
