// What the example programs share: from a graph to a plan, and a clock.
// Included by them alone; a program of your own needs svod/svod.h and nothing else.
#ifndef SVOD_EXAMPLES_EXAMPLE_H_
#define SVOD_EXAMPLES_EXAMPLE_H_

#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "svod/svod.h"

namespace example {

// The plan of a tensor graph, on zeroed parameters of its own: its kernels are cut out, compiled or
// found in the cache, and its memory laid out. Once; Execute then runs it any number of times.
inline absl::StatusOr<svod::ExecutionPlan> PrepareGraph(const svod::Module& module,
                                                        absl::string_view name) {
  auto cache = svod::KernelCache::Default();
  if (!cache.ok()) return cache.status();
  return svod::Prepare(module, name,
                       [&](const svod::UOp* sink) { return (*cache)->GetOrCompile(sink); });
}

// The same for what a builder has been told.
inline absl::StatusOr<svod::ExecutionPlan> PrepareGraph(
    svod::TensorBuilder& builder, const std::vector<const svod::UOp*>& results) {
  auto graph = builder.Finish("example", results);
  if (!graph.ok()) return graph.status();
  return PrepareGraph(svod::Module{builder.shared_context(), {*graph}}, "example");
}

// Copies values into a parameter: all of it, or the first elements of one of dynamic size.
template <typename T>
absl::Status Fill(svod::ExecutionPlan& plan, absl::string_view parameter,
                  const std::vector<T>& values) {
  const svod::PlanTensor* tensor = plan.FindParameter(parameter);
  if (tensor == nullptr) return absl::InvalidArgumentError("no such parameter");
  auto part = plan.buffers()[tensor->buffer_index].View(0, tensor->size_bytes());
  if (!part.ok()) return part.status();
  return part->CopyFrom(absl::MakeConstSpan(values));
}

// The elements of a parameter, or of a result, as the last run left them.
template <typename T>
absl::Span<const T> Values(const svod::ExecutionPlan& plan, absl::string_view parameter) {
  const svod::PlanTensor* tensor = plan.FindParameter(parameter);
  if (tensor == nullptr) return {};
  return plan.buffers()[tensor->buffer_index].ReadAs<T>();
}
template <typename T>
absl::Span<const T> Result(const svod::ExecutionPlan& plan, size_t position) {
  const svod::Buffer* buffer = plan.output_buffer_at(position);
  if (buffer == nullptr) return {};
  return buffer->ReadAs<T>();
}

// All of a file, which is looked for from the working directory on: start from the root of the
// tree.
inline absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return absl::NotFoundError(path + ": cannot be read");
  return text.str();
}

class Clock {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The exit code of a program: 0 if it ran and its results were right. Says what was wrong.
inline int Report(const absl::StatusOr<bool>& right) {
  if (!right.ok()) std::fprintf(stderr, "%s\n", right.status().ToString().c_str());
  std::puts(right.ok() && *right ? "right" : "WRONG");
  return right.ok() && *right ? 0 : 1;
}

}  // namespace example

#endif  // SVOD_EXAMPLES_EXAMPLE_H_
