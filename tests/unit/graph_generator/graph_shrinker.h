// ShrinkCase: from a graph that fails to a small one that fails too.
// Included by tests.
#ifndef SVOD_TESTS_UNIT_GRAPH_GENERATOR_GRAPH_SHRINKER_H_
#define SVOD_TESTS_UNIT_GRAPH_GENERATOR_GRAPH_SHRINKER_H_

#include "absl/functional/function_ref.h"
#include "tests/unit/graph_generator/graph_rebuild.h"

namespace svod {

// Makes a case smaller, greedily, as long as `fails` holds of it: leaves out results, puts
// parameters that hold their values in the place of nodes, or one of their operands, fixes
// variables, lowers dimensions, and simplifies data. Every case that `fails` sees is one that the
// interpreter runs. The result is such that no single step makes it smaller.
// Cost: about the square of the number of nodes in calls of `fails`; gives up after `max_calls`.
// Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002.
GraphCase ShrinkCase(const GraphCase& failing, absl::FunctionRef<bool(const GraphCase&)> fails,
                     int max_calls = 4000);

}  // namespace svod

#endif  // SVOD_TESTS_UNIT_GRAPH_GENERATOR_GRAPH_SHRINKER_H_
