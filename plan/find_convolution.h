// FindConvolution: sums of products that are convolutions, by how their operands are read.
// Included by winograd.cc and tests. Must not change graphs.
#ifndef SVOD_PLAN_FIND_CONVOLUTION_H_
#define SVOD_PLAN_FIND_CONVOLUTION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/shape.h"
#include "ir/uop.h"

namespace svod {

// A dimension of a product that is not 1.
struct ProductLoop {
  int64_t dimension;
  const UOp* range;  // stands for its counter
  const UOp* extent;
  bool is_summed;
};

// What a coordinate of an operand's elements is: `begin` plus the counters of at most two loops.
struct Coordinate {
  int64_t begin = 0;
  std::vector<ProductLoop> loops;
};

// A sum over channels and the elements of a window that moves over a picture by one element at a
// time, in two dimensions, without groups. Loops are in the order of the axes that they walk.
struct Convolution {
  size_t rank = 0;                      // of the product
  const UOp* picture = nullptr;         // below all movement but a PAD
  std::vector<Coordinate> coordinates;  // of the picture's elements
  const UOp* weights = nullptr;         // the factor as it is, broadcast to the product
  std::vector<ProductLoop> pictures, inputs, outputs;
  std::vector<ProductLoop> spatial, window;  // rows, columns: of the results, of the window
  // Of the picture; fixed ones have one place in all terms.
  std::vector<int64_t> picture_axes, input_axes, spatial_axes, fixed_axes;
};

// Nullopt for every other sum. Channels, rows and columns are of constant size, pictures need not
// be. Errors: those of ShapeAnalysis.
absl::StatusOr<std::optional<Convolution>> FindConvolution(const UOp* reduce, ShapeAnalysis& shapes,
                                                           Context& context);

}  // namespace svod

#endif  // SVOD_PLAN_FIND_CONVOLUTION_H_
