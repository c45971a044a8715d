// Random tensor graphs with data to run them on, and what their results may differ by.
// Included by tests that compare the interpreter of tensor graphs with schedules and plans.
#ifndef SVOD_TESTS_UNIT_GRAPH_GENERATOR_GRAPH_GENERATOR_H_
#define SVOD_TESTS_UNIT_GRAPH_GENERATOR_GRAPH_GENERATOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/evaluate_graph.h"
#include "ir/program.h"

namespace svod {

using VariableList = std::vector<std::pair<std::string, int64_t>>;

struct GraphGeneratorOptions {
  bool symbolic = true;     // sizes of one or two variables
  bool assigns = true;      // to inout parameters
  bool positions = true;    // gathers and scatters
  bool half_floats = true;  // f16 and bf16
  bool transcendentals = true;
  // Off: floats that reductions add or multiply up are whole numbers that stay exact, so that every
  // result is the same bit for bit in whatever order it is folded.
  bool rounded_reductions = true;
  // Dimensions of hundreds and thousands as well, for what is decided by size: set `max_elements`.
  bool large_sizes = false;
  int max_ops = 20;
  int64_t max_elements = 2000;  // of one tensor
};

// What a parameter is filled with.
struct ParamSpec {
  enum class Fill : uint8_t {
    kWhole,     // whole numbers in [low, high]
    kAny,       // floats of all magnitudes near 1, and now and then NaN, infinities and -0.0
    kModerate,  // floats in [-2, 2]
  };
  DType dtype;
  Fill fill = Fill::kWhole;
  int64_t low = -3, high = 3;
};

// A result of which float reductions are part may be folded in another order. Then it differs by at
// most `relative_error` times element by element the sum of the magnitudes of its terms, which is
// result `magnitude` of the graph `magnitudes` (f64).
// Source: Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., chapters 3 and 4: for
// sums of products, in any order, |error| <= n u / (1 - n u) * sum |terms|.
struct ResultBound {
  double relative_error = 0;  // 0: the same bits
  int magnitude = -1;
};

struct GeneratedGraph {
  std::shared_ptr<Context> context;
  Function graph;
  Function magnitudes;              // of the same parameters; root null where no result needs it
  std::vector<ParamSpec> params;    // by slot
  std::vector<ResultBound> bounds;  // by result
  std::vector<VariableList> variables;  // values to try: the least, the largest, some between
};

// The same seed and options give the same graph everywhere. All tensor ops, elementwise ops and
// dtypes; dimensions 0, 1, primes and powers of two; views of views; several results that share
// work; reads of states that later assignments replace; positions outside.
// Errors: the builder's, which is a bug of one of the two.
absl::StatusOr<GeneratedGraph> GenerateGraph(uint64_t seed, std::shared_ptr<Context> context,
                                             const GraphGeneratorOptions& options = {});

// Data for the parameters, of the shapes that they have for these values of the variables.
absl::StatusOr<std::vector<TensorValue>> MakeInputs(const GeneratedGraph& graph,
                                                    const VariableList& variables, uint64_t seed);

// "" when equal, any NaN equal to any other; else the first difference. `what` begins the text.
std::string FirstDifference(const TensorValue& got, const TensorValue& expected,
                            const std::string& what);
// The same within a bound: |got - expected| <= relative_error * magnitude, element by element.
// Where the magnitude is no number, or so large that the order decides about overflow, all is
// right.
std::string FirstDifference(const TensorValue& got, const TensorValue& expected,
                            const std::string& what, const ResultBound& bound,
                            const TensorValue& magnitude);

}  // namespace svod

#endif  // SVOD_TESTS_UNIT_GRAPH_GENERATOR_GRAPH_GENERATOR_H_
