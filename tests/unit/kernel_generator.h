// Random kernels with data to run them on, and the comparison of what they leave in memory.
// Included by tests that compare passes or machine code with the interpreter.
#ifndef SVOD_TESTS_UNIT_KERNEL_GENERATOR_H_
#define SVOD_TESTS_UNIT_KERNEL_GENERATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/uop.h"

namespace svod {

struct GeneratorOptions {
  bool vectors = true;
  bool reduces = true;
  bool scratch = true;  // REG and LOCAL
  bool half_floats = true;
  bool core_id = true;
  // Off where bits are compared over a decomposition, which defines new ones.
  bool transcendentals = false;
  int max_statements = 6;
};

using Buffers = std::vector<std::vector<std::byte>>;

struct GeneratedKernel {
  const UOp* sink = nullptr;
  std::vector<DType> elements;  // by slot
  Buffers buffers;              // by slot, as they are before the run
  std::vector<std::pair<std::string, int64_t>> variables;

  std::vector<absl::Span<std::byte>> Spans(Buffers& of) const;
};

// A verified kernel: loops with constant and symbolic ends, some empty; loads and stores, some
// outside their buffers, some gated, with vector positions or lanes; reductions that nest and share
// loops; registers and scratch; all dtypes and elementwise ops. The same seed and options give the
// same kernel everywhere. Its cores must run one after another: they may touch the same elements.
// Errors: the builder's, which is a bug of one of the two.
absl::StatusOr<GeneratedKernel> GenerateKernel(uint64_t seed, std::shared_ptr<Context> context,
                                               const GeneratorOptions& options = {});

// What the interpreter leaves in the buffers when it runs `sink`, the kernel or what passes made of
// it, on the kernel's data.
absl::StatusOr<Buffers> Interpret(const UOp* sink, const GeneratedKernel& kernel);

// "" when equal, all NaN being equal; else the first difference.
std::string FirstDifference(const GeneratedKernel& kernel, const Buffers& got,
                            const Buffers& expected);

}  // namespace svod

#endif  // SVOD_TESTS_UNIT_KERNEL_GENERATOR_H_
