// What Build checks of single ops, before anything is scheduled.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/status_macros.h"
#include "plan/plan_state.h"

namespace svod {
namespace {

template <typename... Parts>
absl::Status Invalid(const PreparedOp& op, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("plan: ", Describe(op), ": ", parts...));
}

// `value` of a variable against what the op says of it.
absl::Status CheckBounds(const PreparedOp& op, const std::vector<RuntimeVar>& variables,
                         absl::string_view name, int64_t value) {
  for (const RuntimeVar& variable : variables) {
    if (variable.name != name || name == kCoreIdName) continue;
    if (value < variable.min || value > variable.max) {
      return absl::OutOfRangeError(absl::StrCat("plan: ", Describe(op), ": variable ", name,
                                                ", got ", value, ", expected ", variable.min,
                                                " to ", variable.max));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckKernel(const PreparedOp& op, const PreparedKernel& kernel, size_t num_buffers) {
  if (kernel.output_indices.empty()) return Invalid(op, "no output indices");
  for (size_t position : kernel.output_indices) {
    if (position >= kernel.buffer_indices.size()) {
      return Invalid(op, "output position, got ", position, ", expected less than its ",
                     kernel.buffer_indices.size(), " buffers");
    }
  }
  for (size_t index : kernel.buffer_indices) {
    if (index >= num_buffers) {
      return Invalid(op, "buffer index, got ", index, ", expected less than the plan's ",
                     num_buffers);
    }
  }
  if (kernel.kernel == nullptr || kernel.kernel->function == nullptr) {
    return Invalid(op, "no compiled function");
  }
  const std::vector<std::string>& names = kernel.kernel->variable_names;
  if (kernel.values.size() < names.size()) {
    return Invalid(op, "values of variables, got ", kernel.values.size(), ", expected ",
                   names.size());
  }
  for (size_t i = 0; i < names.size(); ++i) {
    SVOD_RETURN_IF_ERROR(CheckBounds(op, kernel.runtime_variables, names[i], kernel.values[i]));
  }
  for (const auto& [name, value] : kernel.fixed_variables) {
    SVOD_RETURN_IF_ERROR(CheckBounds(op, kernel.runtime_variables, name, value));
  }
  size_t num_slots = kernel.buffer_indices.size();
  for (const std::vector<int64_t>* limits : {&kernel.min_bytes, &kernel.alignments}) {
    if (!limits->empty() && limits->size() != num_slots) {
      return Invalid(op, "sizes and alignments of buffers, got ", limits->size(), ", expected ",
                     num_slots, " or none");
    }
  }
  if (kernel.kernel->param_alignment.size() > num_slots) {
    return Invalid(op, "buffers, got ", num_slots, ", expected the compiled kernel's ",
                   kernel.kernel->param_alignment.size());
  }
  return absl::OkStatus();
}

// The two buffers of a copy or view.
absl::Status CheckPair(const PreparedOp& op, const std::vector<size_t>& indices, size_t num_buffers,
                       const char* first, const char* second) {
  if (indices.size() < 2) {
    return Invalid(op, "buffer indices, got ", indices.size(), ", expected two (", first, ", ",
                   second, ")");
  }
  if (indices[0] >= num_buffers || indices[1] >= num_buffers) {
    return Invalid(op, "buffer index, got ", first, "=", indices[0], " and ", second, "=",
                   indices[1], ", expected less than the plan's ", num_buffers);
  }
  return absl::OkStatus();
}

absl::Status CheckCustom(const PreparedOp& op, const PreparedCustomFunction& custom,
                         size_t num_buffers) {
  for (size_t index : custom.buffer_indices) {
    if (index >= num_buffers) {
      return Invalid(op, "buffer index, got ", index, ", expected less than the plan's ",
                     num_buffers);
    }
  }
  for (const auto& [name, value] : custom.fixed_variables) {
    SVOD_RETURN_IF_ERROR(CheckBounds(op, custom.runtime_variables, name, value));
  }
  return absl::OkStatus();
}

// One operand of a kernel against the buffer that it gets. A buffer without memory yet is checked
// by its offset, since storage begins at a multiple of kBufferAlignment.
absl::Status CheckOperand(const PreparedOp& op, const PreparedKernel& kernel, size_t position,
                          const Buffer& buffer) {
  if (!kernel.min_bytes.empty() && buffer.size_bytes() < kernel.min_bytes[position]) {
    return Invalid(op, "size of buffer ", position, ", got ", buffer.size_bytes(),
                   " bytes, expected at least ", kernel.min_bytes[position]);
  }
  int64_t alignment = kernel.alignments.empty() ? 1 : kernel.alignments[position];
  const std::vector<int64_t>& compiled = kernel.kernel->param_alignment;
  if (position < compiled.size()) alignment = std::max(alignment, compiled[position]);
  uint64_t address = RangeOf(buffer).begin;
  if (alignment > 1 && address % static_cast<uint64_t>(alignment) != 0) {
    return Invalid(op, "alignment of buffer ", position, ", got an address ",
                   address % static_cast<uint64_t>(alignment), " bytes past a multiple of ",
                   alignment, ", expected a multiple");
  }
  return absl::OkStatus();
}

absl::Status CheckKernelBuffers(const PreparedOp& op, const PreparedKernel& kernel,
                                absl::Span<const Buffer> buffers, bool keeps_program_order) {
  std::vector<bool> is_output(kernel.buffer_indices.size());
  for (size_t position : kernel.output_indices) is_output[position] = true;
  for (size_t i = 0; i < kernel.buffer_indices.size(); ++i) {
    const Buffer& buffer = buffers[kernel.buffer_indices[i]];
    SVOD_RETURN_IF_ERROR(CheckOperand(op, kernel, i, buffer));
    if (!is_output[i]) continue;
    if (buffer.read_only()) return Invalid(op, "writes buffer ", i, ", which is read-only");
    if (!keeps_program_order) continue;
    ByteRange written = RangeOf(buffer);
    for (size_t j = 0; j < kernel.buffer_indices.size(); ++j) {
      ByteRange other = RangeOf(buffers[kernel.buffer_indices[j]]);
      if (j != i && Overlap(written, other) && !(written == other)) {
        return Invalid(op, "buffers ", std::min(i, j), " and ", std::max(i, j),
                       " overlap in part and one is written, expected equal or separate ranges");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckView(const PreparedOp& op, const PreparedBufferView& view,
                       absl::Span<const Buffer> buffers) {
  const Buffer& out = buffers[view.buffer_indices[0]];
  const Buffer& base = buffers[view.buffer_indices[1]];
  int64_t expected_offset = base.offset_bytes() + view.byte_offset;
  if (out.storage_id() == base.storage_id() && out.offset_bytes() == expected_offset &&
      out.size_bytes() == view.byte_size) {
    return absl::OkStatus();
  }
  return Invalid(op, "view of storage ", out.storage_id(), " at ", out.offset_bytes(), " of ",
                 out.size_bytes(), " bytes over a base in storage ", base.storage_id(), " at ",
                 base.offset_bytes(), ", expected offset ", expected_offset, " and ",
                 view.byte_size, " bytes");
}

}  // namespace

std::string Describe(const PreparedOp& op) {
  if (const auto* kernel = std::get_if<PreparedKernel>(&op)) {
    if (kernel->kernel == nullptr || kernel->kernel->name.empty()) {
      return absl::StrCat("kernel ", kernel->id);
    }
    return absl::StrCat("kernel ", kernel->id, " (", kernel->kernel->name, ")");
  }
  if (const auto* custom = std::get_if<PreparedCustomFunction>(&op)) {
    return absl::StrCat("custom function op ", custom->id, " (\"", custom->kind, "\")");
  }
  const char* kind = std::holds_alternative<PreparedCopy>(op) ? "copy" : "buffer view";
  return absl::StrCat(kind, " op ", IdOf(op));
}

absl::Status CheckOps(absl::Span<const PreparedOp> ops, size_t num_buffers) {
  for (const PreparedOp& op : ops) {
    if (const auto* kernel = std::get_if<PreparedKernel>(&op)) {
      SVOD_RETURN_IF_ERROR(CheckKernel(op, *kernel, num_buffers));
    } else if (const auto* copy = std::get_if<PreparedCopy>(&op)) {
      SVOD_RETURN_IF_ERROR(
          CheckPair(op, copy->buffer_indices, num_buffers, "destination", "source"));
    } else if (const auto* view = std::get_if<PreparedBufferView>(&op)) {
      SVOD_RETURN_IF_ERROR(CheckPair(op, view->buffer_indices, num_buffers, "view", "base"));
    } else {
      SVOD_RETURN_IF_ERROR(CheckCustom(op, std::get<PreparedCustomFunction>(op), num_buffers));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBuffersOf(const PreparedOp& op, absl::Span<const Buffer> buffers,
                            bool keeps_program_order) {
  if (const auto* kernel = std::get_if<PreparedKernel>(&op)) {
    return CheckKernelBuffers(op, *kernel, buffers, keeps_program_order);
  }
  if (const auto* copy = std::get_if<PreparedCopy>(&op)) {
    const Buffer& to = buffers[copy->buffer_indices[0]];
    const Buffer& from = buffers[copy->buffer_indices[1]];
    if (to.size_bytes() != from.size_bytes()) {
      return Invalid(op, "sizes differ, got a destination of ", to.size_bytes(),
                     " bytes and a source of ", from.size_bytes(), ", expected equal");
    }
    if (to.read_only()) return Invalid(op, "the destination is read-only");
  }
  if (const auto* view = std::get_if<PreparedBufferView>(&op)) return CheckView(op, *view, buffers);
  return absl::OkStatus();
}

}  // namespace svod
