// Fake kernels: functions of the kernel ABI that record, compute or fail, for tests without LLVM.
// Included by the tests of plan/ and executor/.
#ifndef SVOD_TESTS_UNIT_PLAN_FAKE_KERNELS_H_
#define SVOD_TESTS_UNIT_PLAN_FAKE_KERNELS_H_

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "plan/plan_builder.h"

namespace svod {

#define SVOD_ASSERT_OK(expression)                   \
  do {                                               \
    const absl::Status status_ = (expression);       \
    ASSERT_TRUE(status_.ok()) << status_.ToString(); \
  } while (false)
#define SVOD_EXPECT_OK(expression)                   \
  do {                                               \
    const absl::Status status_ = (expression);       \
    EXPECT_TRUE(status_.ok()) << status_.ToString(); \
  } while (false)

// The value of a StatusOr that a test relies on; throws, and so fails the test, when there is none.
template <typename T>
T Must(absl::StatusOr<T> value) {
  EXPECT_TRUE(value.ok()) << value.status().ToString();
  return std::move(value).value();
}

inline void ExpectError(const absl::Status& status, absl::StatusCode code,
                        absl::string_view message) {
  EXPECT_EQ(status.code(), code) << status.ToString();
  EXPECT_EQ(std::string(status.message()), std::string(message));
}

// Who ran, in which order. A kernel gets it as a buffer that it only reads as far as the plan
// knows, so that recording makes no hazards.
struct Trace {
  struct Event {
    int64_t tag;
    int64_t core;
    int64_t begin, end;  // of a clock that ticks with every begin and end
    int64_t variable;
  };
  std::atomic<int64_t> clock{0};
  std::atomic<int64_t> size{0};
  std::array<Event, 4096> events;

  std::vector<int64_t> tags() const {
    std::vector<int64_t> result;
    for (int64_t i = 0; i < size.load(); ++i) result.push_back(events[i].tag);
    return result;
  }
  const Event& Find(int64_t tag) const {
    for (int64_t i = 0; i < size.load(); ++i) {
      if (events[i].tag == tag) return events[i];
    }
    ADD_FAILURE() << "tag " << tag << " did not run";
    return events[0];
  }
  void Clear() { size = clock = 0; }
};

// buffers[0] is the Trace; variables: tag, status to return, and any one to be recorded.
inline int32_t RecordKernel(void* const* buffers, const int64_t* variables, int64_t core, void*) {
  auto* trace = static_cast<Trace*>(buffers[0]);
  int64_t begin = trace->clock.fetch_add(1);
  int64_t at = trace->size.fetch_add(1);
  int64_t end = trace->clock.fetch_add(1);
  trace->events[static_cast<size_t>(at)] = {variables[0], core, begin, end, variables[2]};
  return static_cast<int32_t>(variables[1]);
}

// buffers[0] += variables[0], as one i64 and without any guard.
inline int32_t BumpKernel(void* const* buffers, const int64_t* variables, int64_t, void*) {
  *static_cast<int64_t*>(buffers[0]) += variables[0];
  return 0;
}

inline int32_t NothingKernel(void* const*, const int64_t*, int64_t, void*) { return 0; }

inline std::shared_ptr<CompiledKernel> FakeCompiled(KernelFunction function, size_t num_variables,
                                                    std::string name = "fake") {
  auto kernel = std::make_shared<CompiledKernel>();
  kernel->name = std::move(name);
  kernel->function = function;
  for (size_t i = 0; i < num_variables; ++i) {
    kernel->variable_names.push_back(absl::StrCat("v", i));
  }
  return kernel;
}

// A launch of a function over buffers of a plan, all of its variables fixed.
inline PreparedKernel FakeKernel(uint64_t id, KernelFunction function, std::vector<size_t> buffers,
                                 std::vector<size_t> outputs, std::vector<int64_t> values = {}) {
  PreparedKernel kernel;
  kernel.id = id;
  kernel.kernel = FakeCompiled(function, values.size(), absl::StrCat("k", id));
  kernel.buffer_indices = std::move(buffers);
  kernel.output_indices = std::move(outputs);
  for (size_t i = 0; i < values.size(); ++i) {
    kernel.fixed_variables[absl::StrCat("v", i)] = values[i];
  }
  kernel.values = std::move(values);
  return kernel;
}

inline Buffer Bytes(int64_t size_bytes) { return Must(Buffer::Create(size_bytes)); }

// A builder over a trace (buffer 0) and `num_buffers` buffers of 64 bytes (1, 2, ...), with buffer
// 1, or the trace, as the output.
struct TracedPlan {
  Trace trace;
  ExecutionPlanBuilder builder;

  explicit TracedPlan(size_t num_buffers) {
    builder.AddBuffer(1000, Must(Buffer::Wrap(&trace, sizeof(Trace))));
    for (size_t i = 1; i <= num_buffers; ++i) builder.AddBuffer(1000 + i, Bytes(64));
    builder.SetOutputBuffer(num_buffers > 0 ? 1 : 0);
  }
  // A kernel that records `id` and touches buffers, of which the first `num_written` are written.
  static PreparedKernel Kernel(uint64_t id, std::vector<size_t> buffers, size_t num_written,
                               std::vector<uint64_t> dependencies = {}, int32_t code = 0) {
    buffers.insert(buffers.begin(), 0);
    std::vector<size_t> outputs;
    for (size_t i = 1; i <= num_written; ++i) outputs.push_back(i);
    PreparedKernel kernel = FakeKernel(id, &RecordKernel, std::move(buffers), std::move(outputs),
                                       {static_cast<int64_t>(id), code, 0});
    kernel.dependencies = std::move(dependencies);
    kernel.cost_ns = 1e6;  // worth a fork
    return kernel;
  }
  ExecutionPlan Build() { return Must(std::move(builder).Build()); }
};

}  // namespace svod

#endif  // SVOD_TESTS_UNIT_PLAN_FAKE_KERNELS_H_
