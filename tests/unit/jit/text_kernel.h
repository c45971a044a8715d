// Runs kernels in text form as machine code on every CPU that this one can stand in for, and checks
// each against the interpreter.
#ifndef SVOD_TESTS_UNIT_JIT_TEXT_KERNEL_H_
#define SVOD_TESTS_UNIT_JIT_TEXT_KERNEL_H_

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "ir/evaluate.h"
#include "ir/text.h"
#include "tests/unit/jit/kernel_runner.h"

namespace svod {

// The kernel of `text`; a test failure and some other kernel if it does not parse.
inline Module ParseKernel(const std::string& text) {
  auto module = ParseModule(text, "test.uop", std::make_shared<Context>());
  if (module.ok()) return *std::move(module);
  ADD_FAILURE() << module.status();
  return *ParseModule("kernel @failed(%y: out f32[1]) {\n  store %y[0], 0.0\n}", "failed.uop",
                      std::make_shared<Context>());
}

struct Launch {
  std::vector<std::pair<std::string, int64_t>> variables;
  int64_t core_id = 0;
};

// Runs the last kernel of `text` on every target, each time on a copy of `buffers` (vectors of
// numbers), expects the interpreter to leave the same bytes, and gives them back.
template <typename... T>
std::tuple<std::vector<T>...> RunLaunch(const std::string& text, const Launch& launch,
                                        std::vector<T>... buffers) {
  std::tuple<std::vector<T>...> result(buffers...);
  Module module = ParseKernel(text);
  const UOp* sink = module.functions.back().root;

  std::tuple<std::vector<T>...> expected(buffers...);
  std::apply(
      [&](auto&... b) {
        std::vector<absl::Span<std::byte>> spans = {
            absl::MakeSpan(reinterpret_cast<std::byte*>(b.data()), b.size() * sizeof(b[0]))...};
        EvaluateOptions options;
        options.variables = launch.variables;
        options.core_id = launch.core_id;
        absl::Status status = Evaluate(sink, spans, options);
        EXPECT_TRUE(status.ok()) << status;
      },
      expected);

  std::vector<int64_t> values;
  for (const UOp* variable : VariablesOf(sink)) {
    for (const auto& [name, value] : launch.variables) {
      if (name == variable->arg<VariableArgument>().name) values.push_back(value);
    }
  }
  auto compare = [](const auto& got, const auto& want) {
    EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(got[0])), 0)
        << "machine: " << absl::StrJoin(got, " ") << "\ninterpreter: " << absl::StrJoin(want, " ");
  };
  for (const auto& [name, target] : RunnableTargets()) {
    SCOPED_TRACE(name);
    auto kernel = Load(sink, target);
    if (!kernel.ok()) {
      ADD_FAILURE() << kernel.status();
      return result;
    }
    result = std::tuple<std::vector<T>...>(buffers...);
    std::apply(
        [&](auto&... b) {
          std::vector<void*> pointers = {static_cast<void*>(b.data())...};
          kernel->Run(pointers, values, launch.core_id);
        },
        result);
    std::apply(
        [&](const auto&... got) {
          std::apply([&](const auto&... want) { (compare(got, want), ...); }, expected);
        },
        result);
  }
  return result;
}

template <typename... T>
std::tuple<std::vector<T>...> RunEverywhere(const std::string& text, std::vector<T>... buffers) {
  return RunLaunch(text, {}, std::move(buffers)...);
}

}  // namespace svod

#endif  // SVOD_TESTS_UNIT_JIT_TEXT_KERNEL_H_
