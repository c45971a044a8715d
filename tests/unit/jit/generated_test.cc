// Generated kernels, brought to their final UOps: machine code against the interpreter.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/evaluate.h"
#include "ir/pipeline.h"
#include "ir/program.h"
#include "ir/text.h"
#include "tests/unit/jit/kernel_runner.h"
#include "tests/unit/kernel_generator.h"

namespace svod {
namespace {

// Runs all cores of the launch, one after another, as the interpreter does.
void RunAllCores(const RunnableKernel& code, const GeneratedKernel& kernel, const UOp* sink,
                 Buffers& memory) {
  std::vector<void*> pointers;
  for (auto& bytes : memory) pointers.push_back(bytes.data());
  std::vector<int64_t> variables;
  for (const UOp* variable : VariablesOf(sink)) {
    for (const auto& [name, value] : kernel.variables) {
      if (name == variable->arg<VariableArgument>().name) variables.push_back(value);
    }
  }
  int64_t cores = 1;
  for (const UOp* node : Toposort(sink)) {
    if (node->op() == Op::kCoreId) cores = *EvaluateIndex(node->source(0), kernel.variables);
  }
  for (int64_t core = 0; core < cores; ++core) code.Run(pointers, variables, core);
}

void CheckSeeds(uint64_t first, uint64_t last) {
  const auto& targets = RunnableTargets();
  for (uint64_t seed = first; seed < last; ++seed) {
    auto context = std::make_shared<Context>();
    GeneratorOptions options;
    options.transcendentals = seed % 4 == 0;
    auto kernel = GenerateKernel(seed, context, options);
    ASSERT_TRUE(kernel.ok()) << "seed " << seed << ": " << kernel.status();
    auto sink = OptimizeKernel(kernel->sink, *context);
    ASSERT_TRUE(sink.ok()) << "seed " << seed << ": " << sink.status();
    auto expected = Interpret(*sink, *kernel);
    ASSERT_TRUE(expected.ok()) << "seed " << seed << ": " << expected.status();
    const auto& [name, target] = targets[seed % targets.size()];
    LowerOptions lower;
    lower.noalias = seed % 2 == 0;
    auto code = Load(*sink, target, lower);
    ASSERT_TRUE(code.ok()) << "seed " << seed << ": " << code.status();
    Buffers memory = kernel->buffers;
    RunAllCores(*code, *kernel, *sink, memory);
    std::string difference = FirstDifference(*kernel, memory, *expected);
    ASSERT_EQ(difference, "") << "seed " << seed << " on " << name << "\n"
                              << PrintCanonical(*sink).value_or("");
  }
}

TEST(GeneratedTest, MachineCodeEqualsTheInterpreter) { CheckSeeds(0, 200); }

TEST(GeneratedTest, SlowMachineCodeEqualsTheInterpreter) { CheckSeeds(200, 20000); }

}  // namespace
}  // namespace svod
