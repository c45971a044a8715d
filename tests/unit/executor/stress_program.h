// Generated programs of fake kernels and copies over overlapping views, their plans and their
// meaning. Included by the tests of executor/.
#ifndef SVOD_TESTS_UNIT_EXECUTOR_STRESS_PROGRAM_H_
#define SVOD_TESTS_UNIT_EXECUTOR_STRESS_PROGRAM_H_

#include <cstring>
#include <random>

#include "executor/executor.h"
#include "tests/unit/plan/fake_kernels.h"

// A namespace of its own: the IR has a Step as well.
namespace svod::stress {

// buffers[0][i] = mix(i, buffers[1...]) over variables[0] bytes, variables[1] inputs; a core does
// every variables[3]-th byte. Inputs are read at other positions than are written, so any order of
// conflicting kernels shows.
inline int32_t Mix(void* const* buffers, const int64_t* variables, int64_t core, void*) {
  auto* out = static_cast<uint8_t*>(buffers[0]);
  int64_t size = variables[0], num_inputs = variables[1];
  for (int64_t i = core; i < size; i += variables[3]) {
    uint32_t value = static_cast<uint32_t>(variables[2]) + static_cast<uint32_t>(i) * 31;
    for (int64_t input = 0; input < num_inputs; ++input) {
      const auto* in = static_cast<const uint8_t*>(buffers[1 + input]);
      value = value * 167 + in[(i * 7 + 3) % variables[4 + input]];
    }
    out[i] = static_cast<uint8_t>(value ^ (value >> 11));
  }
  return 0;
}

inline constexpr int64_t kArenaBytes = 512;

struct View {
  int64_t arena, offset, size;
};

// A program as a list of steps, in the order that it must appear to run in.
struct Step {
  bool is_copy = false;
  size_t out = 0;
  std::vector<size_t> inputs;
  int64_t seed = 0, cores = 1;
};

struct Program {
  std::vector<View> views;
  std::vector<Step> steps;
};

inline Program Generate(uint32_t seed) {
  std::mt19937 random(seed);
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint32_t>(n)); };
  Program program;
  int64_t num_arenas = 1 + below(3);
  for (int64_t i = 0; i < 12; ++i) {
    int64_t size = 16 * (1 + below(8));
    program.views.push_back({below(num_arenas), below((kArenaBytes - size) / 16 + 1) * 16, size});
  }
  auto overlap = [&](size_t a, size_t b) {
    const View& x = program.views[a];
    const View& y = program.views[b];
    return x.arena == y.arena && x.offset < y.offset + y.size && y.offset < x.offset + x.size;
  };
  for (int64_t n = 10 + below(40); n > 0; --n) {
    Step step;
    step.out = static_cast<size_t>(below(12));
    step.seed = below(1 << 20);
    step.cores = below(4) == 0 ? 1 + below(5) : 1;
    for (int64_t i = below(4); i > 0; --i) {
      auto input = static_cast<size_t>(below(12));
      // A kernel may not read what another of its cores writes.
      if (!overlap(input, step.out)) step.inputs.push_back(input);
    }
    if (below(8) == 0) {
      auto source = static_cast<size_t>(below(12));
      if (program.views[source].size == program.views[step.out].size) {
        step.is_copy = true;
        step.inputs = {source};
      }
    }
    program.steps.push_back(std::move(step));
  }
  return program;
}

inline std::vector<int64_t> ValuesOf(const Program& program, const Step& step) {
  std::vector<int64_t> values = {program.views[step.out].size,
                                 static_cast<int64_t>(step.inputs.size()), step.seed, step.cores};
  for (size_t input : step.inputs) values.push_back(program.views[input].size);
  return values;
}

using Arenas = std::vector<std::vector<uint8_t>>;

// The meaning of the program: one step after another.
inline Arenas Simulate(const Program& program, int num_runs) {
  Arenas arenas(3, std::vector<uint8_t>(kArenaBytes));
  auto address = [&](size_t view) {
    const View& v = program.views[view];
    return static_cast<void*>(arenas[static_cast<size_t>(v.arena)].data() + v.offset);
  };
  for (int run = 0; run < num_runs; ++run) {
    for (const Step& step : program.steps) {
      if (step.is_copy) {
        std::memmove(address(step.out), address(step.inputs[0]),
                     static_cast<size_t>(program.views[step.out].size));
        continue;
      }
      std::vector<void*> buffers = {address(step.out)};
      for (size_t input : step.inputs) buffers.push_back(address(input));
      for (int64_t core = 0; core < step.cores; ++core) {
        Mix(buffers.data(), ValuesOf(program, step).data(), core, nullptr);
      }
    }
  }
  return arenas;
}

struct Built {
  std::vector<Buffer> arenas;
  ExecutionPlan plan;
};

inline Built Build(const Program& program) {
  ExecutionPlanBuilder builder;
  builder.KeepProgramOrder();
  std::vector<Buffer> arenas;
  for (int i = 0; i < 3; ++i) arenas.push_back(Bytes(kArenaBytes));
  for (size_t i = 0; i < program.views.size(); ++i) {
    const View& v = program.views[i];
    builder.AddBuffer(i, Must(arenas[static_cast<size_t>(v.arena)].View(v.offset, v.size)));
  }
  builder.SetOutputBuffer(0);
  auto context = std::make_shared<Context>();
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    if (step.is_copy) {
      builder.AddOp(PreparedCopy{i, {step.out, step.inputs[0]}, {}});
      continue;
    }
    std::vector<size_t> buffers = {step.out};
    buffers.insert(buffers.end(), step.inputs.begin(), step.inputs.end());
    PreparedKernel kernel = FakeKernel(i, &Mix, buffers, {0}, ValuesOf(program, step));
    auto compiled = std::make_shared<CompiledKernel>(*kernel.kernel);
    compiled->context = context;
    compiled->global_size[0] = context->Index(step.cores);
    kernel.kernel = compiled;
    kernel.cost_ns = 1e6;
    builder.AddKernel(std::move(kernel));
  }
  return {arenas, Must(std::move(builder).Build())};
}

inline Arenas Contents(const std::vector<Buffer>& arenas) {
  Arenas contents;
  for (const Buffer& arena : arenas) {
    auto bytes = arena.ReadAs<uint8_t>();
    contents.emplace_back(bytes.begin(), bytes.end());
  }
  return contents;
}

}  // namespace svod::stress

#endif  // SVOD_TESTS_UNIT_EXECUTOR_STRESS_PROGRAM_H_
